"""The page in a real browser: a copy with a script that measures it, in a frame of the width of a screen."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.chromium import CHROMIUM, Chromium
from drkm.experiments.report.page import POLICY, page
from report import pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH"),
]
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # Virtual time: the page is dumped when it has settled.
    "--virtual-time-budget=10000",
]
PHONE, DESKTOP = 360, 1280

MEASURE = """
const problems = [];
addEventListener("error", event => problems.push(String(event.message)), true);
addEventListener("securitypolicyviolation", event => problems.push("blocked " + event.blockedURI));
addEventListener("load", () => parent.postMessage({
  problems,
  width: document.documentElement.clientWidth,
  needed: document.documentElement.scrollWidth,
  images: [...document.images].map(image => [image.naturalWidth, image.naturalHeight, image.width, image.height]),
  fetched: performance.getEntriesByType("resource").map(entry => entry.name).filter(name => !name.startsWith("data:")),
  boxes: [...document.querySelectorAll(".scroll")].map(box => [box.clientWidth, box.scrollWidth]),
  headsShown: getComputedStyle(document.querySelector(".claims thead")).display !== "none",
  inkAndPaper: [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor],
}, "*"));
"""
FRAME = """<!doctype html><body style="margin:0"><iframe src="copy.html" style="width:{width}px;height:800px;border:0">
</iframe><pre id="measured"></pre><script>
addEventListener("message", event => document.getElementById("measured").textContent = JSON.stringify(event.data));
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The page with many wide tables and long words, and its copy with the script."""
    pytest.importorskip("matplotlib").use("Agg")
    place = tmp_path_factory.mktemp("page")
    text = page(pages.report("Wörter, auch Donaudampfschifffahrtsgesellschaft", wide=30))
    (place / "report.html").write_text(text, "utf-8")
    assert html.escape(POLICY) in text
    free = text.replace(html.escape(POLICY), f"{POLICY}; script-src &#x27;unsafe-inline&#x27;".replace("'", "&#x27;"))
    (place / "copy.html").write_text(free.replace("<style>", f"<script>{MEASURE}</script><style>", 1), "utf-8")
    return place


def browse(folder: Path, address: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={folder / 'profile'}", *options, address.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def measure(folder: Path, width: int, *options: str) -> dict:
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(width=width), "utf-8")
    dumped = browse(folder, frame, "--dump-dom", *options).stdout
    return json.loads(html.unescape(re.search(r'<pre id="measured">(.+?)</pre>', dumped, re.DOTALL)[1]))


@pytest.fixture(scope="module")
def phone(folder):
    return measure(folder, PHONE)


@pytest.fixture(scope="module")
def desktop(folder):
    return measure(folder, DESKTOP)


@pytest.mark.parametrize("screen", ["phone", "desktop"])
def test_nothing_goes_wrong_and_nothing_is_fetched(screen, request):
    found = request.getfixturevalue(screen)
    assert found["problems"] == []
    assert found["fetched"] == []


@pytest.mark.parametrize("screen", ["phone", "desktop"])
def test_every_figure_is_visible(screen, request):
    images = request.getfixturevalue(screen)["images"]
    assert len(images) == 2
    assert all(min(size) > 100 for size in images)


@pytest.mark.parametrize(("screen", "width"), [("phone", PHONE), ("desktop", DESKTOP)])
def test_the_page_does_not_scroll_sideways_but_its_wide_tables_do(screen, width, request):
    found = request.getfixturevalue(screen)
    assert found["width"] == width
    assert found["needed"] == width
    assert any(inside > box for box, inside in found["boxes"])
    assert all(box <= width for box, _ in found["boxes"])


def test_claims_are_cards_on_a_phone_and_a_table_on_a_desktop(phone, desktop):
    assert not phone["headsShown"]
    assert desktop["headsShown"]


@pytest.fixture(scope="module", params=[(1280, 800), (390, 844)], ids=["desktop", "phone"])
def browser(folder, tmp_path_factory, request):
    """The page in a browser that can be scrolled."""
    with Chromium(tmp_path_factory.mktemp("browser"), *request.param) as opened:
        opened.open((folder / "report.html").as_uri())
        yield opened


def test_a_newcomer_sees_a_figure_on_the_first_screen(browser):
    top, bottom = browser.value(
        "(b => [b.top, b.bottom])(document.querySelector('figure img').getBoundingClientRect())"
    )
    assert top > 0
    assert bottom < browser.value("innerHeight")


def test_a_folded_chapter_fits_on_one_screen_and_an_open_one_does_not(browser):
    height = "document.querySelector('#study').offsetHeight"
    assert browser.value(height) < browser.value("innerHeight")
    browser.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.value(height) > 1.5 * browser.value("innerHeight")


def test_the_navigation_and_the_first_column_stay(browser):
    browser.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.value("scrollTo({top: 1500, behavior: 'instant'})")
    assert browser.value("document.querySelector('nav').getBoundingClientRect().top") == 0
    first, last = browser.value("""(() => {
      const box = [...document.querySelectorAll('.scroll')].find(one => one.scrollWidth > 2 * one.clientWidth);
      const from = [...box.querySelectorAll('tbody tr:first-child td')].map(one => one.getBoundingClientRect().left);
      box.scrollLeft = 300;
      const to = [...box.querySelectorAll('tbody tr:first-child td')].map(one => one.getBoundingClientRect().left);
      return [to[0] - from[0], to.at(-1) - from.at(-1)];
    })()""")
    assert first == 0
    assert last == -300


def test_letters_of_figures_stay_readable_on_a_phone(phone):
    assert all(width >= 600 for _, _, width, _ in phone["images"])


def test_ink_and_paper_differ_in_both_schemes(folder, desktop):
    dark = measure(folder, DESKTOP, "--blink-settings=preferredColorScheme=0")
    schemes = [desktop["inkAndPaper"], dark["inkAndPaper"]]
    assert schemes[0] != schemes[1]
    assert all(contrast(*scheme) > 7 for scheme in schemes)


def test_the_page_itself_writes_nothing_to_the_console(folder):
    log = browse(folder, folder / "report.html", "--dump-dom", "--enable-logging=stderr").stderr
    assert "CONSOLE" not in log


def test_the_page_prints(folder):
    browse(folder, folder / "report.html", f"--print-to-pdf={folder / 'report.pdf'}")
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours as WCAG defines it."""

    def luminance(colour: str) -> float:
        shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)
