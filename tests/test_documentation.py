"""The pages: every link leads somewhere, programs print what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from drkm import kernels

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCKS = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def text_of(page):
    return page.read_text(encoding="utf-8")


def anchors(page):
    """Anchors of a page as GitHub makes them: lower case, without punctuation, hyphens for spaces."""
    titles = re.findall(r"^#+ (.+)$", BLOCKS.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def by_name(pages):
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


def test_there_are_pages():
    assert ROOT / "README.md" in PAGES
    assert len(PAGES) > 15


@by_name(PAGES)
def test_links_lead_to_files_and_titles_that_are_there(page):
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text_of(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@by_name(sorted((ROOT / "docs").rglob("*.md")))
def test_every_page_can_be_reached_from_the_readme(page):
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        found = waiting.pop()
        if found not in seen:
            seen.add(found)
            links = re.findall(r"\]\((?!https?:)([^)\s#]+\.md)[^)]*\)", text_of(found))
            waiting += [(found.parent / link).resolve() for link in links]
    assert page in seen


@by_name([ROOT / "docs" / name for name in ("results.md", "benchmarks.md")])
def test_long_tables_are_folded(page):
    shown = re.sub(r"<details>.*?</details>", "", text_of(page), flags=re.DOTALL)
    assert all(len(table.splitlines()) <= 14 for table in re.findall(r"(?:^\|.*\n)+", shown, re.MULTILINE))
    assert text_of(page).count("<details>") == text_of(page).count("</details>") > 3


FOR_KERNEL_PCA = ROOT / "docs" / "coming-from-kernel-pca.md"


def run_program(page, number):
    program = re.findall(r"^```python\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)[number]
    names = {}
    exec(compile(program, f"{page.name}, program {number}", "exec"), names)
    return program, names


@pytest.mark.parametrize("number", [2, 3, 4])
def test_programs_print_what_the_page_says(number, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    program, _ = run_program(FOR_KERNEL_PCA, number)
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\) {4}# (.*)", program)


def test_the_kernel_of_ones_own_runs_as_it_stands(capsys):
    try:
        program, names = run_program(ROOT / "docs" / "model.md", 1)
        kernel, X = names["RationalQuadratic"], torch.from_numpy(names["X"])
        expected = 1 / (1 + torch.cdist(X, X).square() / 4)
        torch.testing.assert_close(kernel(2.0)(X, X), expected)
        exponents = -torch.rand(5, dtype=torch.float64).requires_grad_()
        value, *derivatives = kernel(2.0).jet(exponents, 2)
        for function, derivative in zip([value, *derivatives], derivatives, strict=False):
            (found,) = torch.autograd.grad(function.sum(), exponents, retain_graph=True)
            torch.testing.assert_close(found, derivative)
    finally:
        kernels.NAMES.forget("rational-quadratic")
        kernels.KINDS.forget("RationalQuadratic")
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\) {4}# (.*)", program)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_program_that_a_reader_sees_runs_as_it_stands(page):
    _, names = run_program(ROOT / page, 0)
    assert names["codes"].shape == (797, 15)
    assert names["clean"].shape == (797, 64)


def test_the_program_before_and_the_one_after_have_the_same_codes():
    before, after = (run_program(FOR_KERNEL_PCA, number)[1] for number in (0, 1))
    for name in ("codes", "new"):
        np.testing.assert_allclose(after[name], before[name], atol=1e-8)
    lost = [((names["clean"] - names["X"][1500:]) ** 2).sum(axis=1).mean() for names in (before, after)]
    assert all(f"{share:.2f}" in text_of(FOR_KERNEL_PCA) for share in lost)
    assert lost[1] < 0.6 * lost[0]
