"""The page in a real browser, from a file and live: what a reader does, and what the page must not do."""

from __future__ import annotations

import csv
import itertools
import json
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from benchmarks.chromium import CHROMIUM, Chromium
from benchmarks.explorer import answers_to_drags, points, sprites
from drkm import ConstrDRKM
from drkm.explorer import Subject, write_page
from drkm.explorer.content import Content
from explorer.subjects import HOSTILE, digits, new_digits, wine

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")]
PHONE, DESKTOP = 390, 1280
MAKERS = {"images": digits, "table": lambda: wine(HOSTILE), "new": new_digits}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: write_page(make(), folder / f"{name}.html") for name, make in MAKERS.items()}


@pytest.fixture(params=list(MAKERS))
def browser(request, pages, tmp_path):
    path = pages[request.param]
    with Chromium(tmp_path) as found:
        found.kind = request.param
        found.open(path.as_uri())
        found.downloads_to(tmp_path)
        found.folder = tmp_path
        yield found
        assert found.problems == []
        assert set(found.requests) - {path.as_uri()} <= {a for a in found.requests if a.startswith("blob:file")}


@contextmanager
def served(subject: Subject):
    pytest.importorskip("uvicorn")
    from drkm.explorer.server import LiveServer

    server = LiveServer(Content(subject))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server.address
    server.stop()
    thread.join(30)


def downloaded(folder, name: str) -> list[list[str]]:
    end = time.monotonic() + 30
    while not (folder / name).is_file():
        assert time.monotonic() < end, f"{name} was not given"
        time.sleep(0.02)
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def around_the_map(browser) -> list[tuple[float, float]]:
    browser.middle("#overlay")
    box = browser.value(
        "(() => { const b = document.getElementById('overlay').getBoundingClientRect();"
        "return [b.left, b.top, b.right, b.bottom]; })()"
    )
    left, top, right, bottom = box[0] + 50, box[1] + 3, box[2] - 3, box[3] - 33
    return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top + 5)]


def text(browser, selector: str) -> str:
    return browser.value(f"document.querySelector('{selector}').textContent")


def test_every_text_of_the_data_arrives_as_text(pages, tmp_path):
    with Chromium(tmp_path) as browser:
        browser.open(pages["table"].as_uri())
        assert text(browser, "#title") == HOSTILE
        assert browser.value("document.title") == f"{HOSTILE}: drkm explorer"
        assert HOSTILE in text(browser, "#legend")
        assert HOSTILE in text(browser, "#sample-shown")
        assert HOSTILE in text(browser, "#anomalies")
        assert browser.value("document.querySelectorAll('img, body script[src]').length") == 0
        assert browser.problems == []


def test_hovering_shows_a_sample(browser):
    x, y = browser.middle("#overlay")
    assert browser.value("document.getElementById('tip').hidden")
    for dx in range(0, 300, 6):
        browser.mouse("mouseMoved", x - 150 + dx, y + dx / 5)
        if not browser.value("document.getElementById('tip').hidden"):
            break
    assert text(browser, "#tip strong")
    has_picture = browser.value("document.querySelector('#tip canvas') !== null")
    assert has_picture == (browser.kind != "table")


def test_the_lasso_selects_and_the_selection_is_downloaded(browser):
    count = browser.value("JSON.parse(document.getElementById('record').textContent).count")
    browser.value("document.getElementById('lasso').click()")
    browser.drag(*around_the_map(browser))
    assert text(browser, "#selected-count") == f"{count} samples selected"
    browser.value("document.getElementById('selected-download').click()")
    rows = downloaded(browser.folder, "selected.csv")
    assert [row[0] for row in rows[1:]] == [str(row) for row in range(count)]
    if browser.kind == "table":
        assert rows[1][1] == f"{HOSTILE} 0"
    browser.value("document.getElementById('selected-clear').click()")
    assert text(browser, "#selected-count") == "Nothing selected"


def test_shift_and_dragging_selects_a_part(browser):
    (left, top), _, (right, bottom), *_ = around_the_map(browser)
    middle = (left + right) / 2
    browser.drag((left, top), (middle, top), (middle, bottom), (left, bottom), modifiers=8)
    count = int(text(browser, "#selected-count").split()[0])
    assert 0 < count < browser.value("JSON.parse(document.getElementById('record').textContent).count")


def pixels(browser) -> str:
    return browser.value("document.getElementById('points').toDataURL()")


def test_dragging_moves_the_map_and_reset_brings_it_back(browser):
    x, y = browser.middle("#overlay")
    before = pixels(browser)
    browser.drag((x, y), (x + 40, y + 30), (x + 80, y + 60))
    browser.until(f"document.getElementById('points').toDataURL() !== '{before}'")
    browser.value("document.getElementById('reset').click()")
    browser.until(f"document.getElementById('points').toDataURL() === '{before}'")
    browser.value("document.getElementById('closer').click()")
    browser.until(f"document.getElementById('points').toDataURL() !== '{before}'")


def test_every_colouring_and_every_code_can_be_drawn(browser):
    for select in ("colour", "across", "up"):
        seen = set()
        choices = browser.value(f"[...document.querySelectorAll('#{select} option')].map((one) => one.value)")
        for choice in choices:
            browser.value(
                f"new Promise((done) => {{ const s = document.getElementById('{select}'); s.value = '{choice}';"
                "s.dispatchEvent(new Event('change')); requestAnimationFrame(() => requestAnimationFrame(done)); })"
            )
            seen.add(pixels(browser))
        assert len(seen) == len(choices)


def test_keys_go_from_sample_to_sample(browser):
    browser.value("document.getElementById('overlay').focus()")
    first = browser.value("document.getElementById('row').value")
    moved = []
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
        browser.key(key)
        moved.append(browser.value("document.getElementById('row').value"))
    assert len({first, *moved}) > 2
    browser.key(" ")
    assert text(browser, "#selected-count") == "1 sample selected"
    browser.key("Escape")
    assert text(browser, "#selected-count") == "Nothing selected"


def test_one_sample_is_beside_its_reconstruction_and_its_neighbours(browser):
    browser.value(
        "(() => { const row = document.getElementById('row'); row.value = 5;"
        "row.dispatchEvent(new Event('change')); })()"
    )
    name = f"{HOSTILE} 5" if browser.kind == "table" else "row 5"
    browser.until(f"document.querySelector('#sample-shown strong').textContent === {json.dumps(name)}")
    assert text(browser, "#sample-shown strong") == name
    assert browser.value("document.querySelectorAll('.near > *').length") == 6
    if browser.kind == "table":
        errors = browser.value(
            "[...document.querySelectorAll('#sample-shown tbody td:last-child')].map((one) => one.textContent)"
        )
        sizes = [abs(float(error.replace("−", "-"))) for error in errors]
        shown = browser.value(
            "(() => { const box = document.querySelector('#sample-shown .scroll');"
            "return [box.scrollWidth, box.clientWidth]; })()"
        )
        assert shown[0] == shown[1]
        assert len(sizes) == 13
        assert sizes == sorted(sizes, reverse=True)
    else:
        assert browser.value("document.querySelectorAll('.pictures canvas').length") == 3


def slide(browser, code: int, value: float) -> None:
    browser.value(
        f"(() => {{ const one = document.querySelectorAll('#sliders input')[{code}]; one.value = {value};"
        "one.dispatchEvent(new Event('input')); one.dispatchEvent(new Event('change')); })()"
    )


def shown_now(browser) -> str:
    now = "document.getElementById('now')"
    return browser.value(f"{now}.querySelector('canvas')?.toDataURL() ?? {now}.textContent")


def test_sliders_move_one_code_at_a_time(browser):
    begin = shown_now(browser)
    seen = set()
    for value in (0, 4, 8):
        slide(browser, 1, value)
        seen.add(shown_now(browser))
    assert len(seen) == 3
    slide(browser, 2, 8)
    others = browser.value("[...document.querySelectorAll('#sliders output')].map((one) => one.textContent)")
    browser.value("document.getElementById('back').click()")
    back = browser.value("[...document.querySelectorAll('#sliders output')].map((one) => one.textContent)")
    assert [i for i, (one, other) in enumerate(zip(others, back, strict=True)) if one != other] == [2]
    assert shown_now(browser) == begin


def test_scores_are_downloaded_from_the_largest_to_the_smallest(browser):
    browser.value("document.getElementById('anomalies-download').click()")
    rows = downloaded(browser.folder, "anomalies.csv")
    scores = [float(row[-1]) for row in rows[1:]]
    assert scores == sorted(scores, reverse=True)
    assert rows[0][-1] == "distance_to_reconstruction"


def test_everything_that_can_be_used_has_a_name(browser):
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    used = ("button", "slider", "combobox", "checkbox", "spinbutton", "application", "link")
    found = [node for node in tree if node.get("role", {}).get("value") in used and not node.get("ignored")]
    assert len(found) > 25
    assert [node for node in found if not node.get("name", {}).get("value")] == []


@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_page_fits_its_screen(width, dark, kind, pages, tmp_path):
    with Chromium(tmp_path, width, 844, dark=dark) as browser:
        browser.open(pages[kind].as_uri())
        assert browser.value("document.documentElement.scrollWidth") <= width
        paper = browser.value("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
        assert browser.value("document.getElementById('points').getBoundingClientRect().height") > 250
        assert browser.problems == []


@pytest.mark.parametrize("width", [PHONE, 700, 961, DESKTOP])
def test_the_columns_that_a_code_moves_have_room(width, pages, tmp_path):
    with Chromium(tmp_path, width, 844) as browser:
        browser.open(pages["table"].as_uri())
        assert min(browser.value("[...document.querySelectorAll('.effect')].map((text) => text.clientWidth)")) >= 180


def test_a_layer_that_does_not_show_in_images_says_so(pages, tmp_path):
    with Chromium(tmp_path) as browser:
        browser.open(pages["images"].as_uri())
        assert text(browser, "#tiles li:nth-child(2)") == "64pixels"
        assert text(browser, "#sliders > .note") == "None of these codes changes the image visibly."
        assert browser.value("document.querySelector('#sliders > .note').previousSibling.textContent") == "Layer 2"
        browser.open(pages["table"].as_uri())
        assert browser.value("document.querySelector('#sliders > .note')") is None


def test_the_codes_that_are_chosen_can_be_read_on_a_phone(pages, tmp_path):
    with Chromium(tmp_path, PHONE, 844) as browser:
        browser.open(pages["images"].as_uri())
        # A copy that is not squeezed is as wide as its longest entry.
        narrower = browser.value(
            "[...document.querySelectorAll('#across, #up')].map((one) => { const copy = one.cloneNode(true);"
            "copy.style.flex = 'none'; copy.style.width = 'auto'; document.body.append(copy);"
            "const wide = copy.offsetWidth; copy.remove(); return one.offsetWidth - wide; })"
        )
        assert len(narrower) == 2
        assert min(narrower) >= 0


def test_a_page_of_one_sample_has_round_numbers_beside_its_map(tmp_path):
    known = wine()
    path = write_page(Subject(known.model, known.samples[:1] + 9.0), tmp_path / "one.html")
    with Chromium(tmp_path) as browser:
        browser.open(path.as_uri())
        assert text(browser, "#lead") == "1 new sample of a ConstrDRKM with 5 components, trained on 178 samples."
        browser.value(
            "(() => { window.marks = []; const paint = CanvasRenderingContext2D.prototype; const own = paint.fillText;"
            "paint.fillText = function (mark, ...more) { marks.push(mark); own.call(this, mark, ...more); };"
            "document.getElementById('reset').click(); })()"
        )
        marks = browser.until("marks.length && marks")
        assert {"0", "0.5", "−0.5"} <= set(marks), marks
        assert not [mark for mark in marks if "e−" in mark]
        assert browser.problems == []


@pytest.mark.parametrize("components", [20, 24, 60])
def test_numbers_of_many_codes_do_not_overlap(components, tmp_path):
    samples = wine().model.fitted_.X.numpy()
    path = write_page(Subject(ConstrDRKM(components).fit(samples)), tmp_path / "many.html")
    with Chromium(tmp_path) as browser:
        browser.open(path.as_uri())
        boxes = browser.until(
            "(() => { const found = [...document.querySelectorAll('.codes svg text')];"
            "return found.length && found.map((node) => node.getBBox()).map((b) => [b.x, b.x + b.width]); })()"
        )
        assert len(boxes) > 4
        assert all(right + 2 < left for (_, right), (left, _) in itertools.pairwise(boxes))


def test_a_live_page_decodes_what_all_sliders_say(tmp_path):
    subject = digits()
    with served(subject) as address, Chromium(tmp_path) as browser:
        browser.open(address)
        first = shown_now(browser)
        slide(browser, 1, 7.5)
        browser.until("document.getElementById('traverse-state').textContent.startsWith('decoded')")
        browser.until(f"document.querySelector('#now canvas').toDataURL() !== '{first}'")
        second = shown_now(browser)
        slide(browser, 2, 0.25)
        browser.until(f"document.querySelector('#now canvas').toDataURL() !== '{second}'")
        values = browser.value("[...document.querySelectorAll('#sliders output')].map((one) => one.textContent)")
        browser.value("document.getElementById('back').click()")
        base = browser.value("[...document.querySelectorAll('#sliders output')].map((one) => one.textContent)")
        assert [i for i, (one, other) in enumerate(zip(values, base, strict=True)) if one != other] == [1, 2]
        browser.value("document.getElementById('begin-here').click()")
        browser.until("document.querySelectorAll('#base option').length > 5")
        assert browser.problems == []
        assert all(request.startswith(address) for request in browser.requests)


def test_a_live_page_answers_within_100_ms_for_400_images_of_64_by_64(tmp_path):
    subject = sprites(400)
    with served(subject) as address, Chromium(tmp_path) as browser:
        browser.open(address)
        slide(browser, 1, 3.5)
        browser.until("document.getElementById('traverse-state').textContent.startsWith('decoded')")
        # The best of several, because other programs also use this machine.
        took = browser.value(
            "(async () => { const codes = [Array(15).fill(0.01)]; const took = []; for (let i = 0; i < 15; i += 1) {"
            "const began = performance.now(); codes[0][1] = 0.001 * i; const answer = await fetch('decode',"
            "{ method: 'POST', body: JSON.stringify({ codes }) }); await answer.arrayBuffer();"
            "took.push(performance.now() - began); } return took; })()"
        )
        assert min(took) < 100, took


def test_the_page_of_400_sprites_has_at_most_3_mb(tmp_path):
    path = write_page(sprites(400), tmp_path / "sprites.html")
    assert path.stat().st_size < 3e6


def test_the_page_of_50_000_points_has_at_most_8_mb_and_answers_a_drag_within_50_ms(tmp_path):
    path = write_page(points(), tmp_path / "points.html")
    assert path.stat().st_size < 8e6
    with Chromium(tmp_path) as browser:
        answers = answers_to_drags(browser, path)
        assert np.median([answer.processor for answer in answers]) < 20, answers
        # The best of several, because other programs also use this machine.
        assert min(answer.delay for answer in answers) < 50, answers
        assert browser.problems == []


def test_a_drag_of_many_points_moves_their_picture_and_a_pause_draws_them_anew(tmp_path):
    with Chromium(tmp_path) as browser:
        browser.open(write_page(points(), tmp_path / "points.html").as_uri())
        x, y = browser.middle("#overlay")
        # Simulates slow drawing; the test ends the pause.
        browser.value(
            "(() => { const now = performance.now.bind(performance); let more = 0;"
            "performance.now = () => now() + (more += 100); setTimeout = (draw) => { window.paused = draw; };"
            "document.getElementById('reset').click();"
            "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))); })()"
        )
        begin = pixels(browser)
        browser.mouse("mousePressed", x, y)
        browser.mouse("mouseMoved", x + 40, y + 30, button="left", buttons=1)
        browser.until(f"document.getElementById('points').toDataURL() !== '{begin}'")
        moved = pixels(browser)
        browser.value("window.paused(); 0")
        browser.until(f"document.getElementById('points').toDataURL() !== '{moved}'")
        drawn = pixels(browser)
        browser.mouse("mouseReleased", x + 40, y + 30)
        browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert pixels(browser) == drawn
        browser.value("document.getElementById('reset').click()")
        browser.until(f"document.getElementById('points').toDataURL() === '{begin}'")
        assert browser.problems == []
