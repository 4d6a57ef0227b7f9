"""docs/equations.md: every formula stands in the docstring of the function that its row links to."""

import ast
import importlib
import inspect
import re
from functools import reduce
from pathlib import Path

import pytest

import drkm

PAGE = Path(__file__).parents[1] / "docs" / "equations.md"
SOURCE = Path(drkm.__file__).parent
ROW = re.compile(
    r"^\| (?P<what>[^|]+) \| `(?P<formula>[^`|]+)` \| (?P<paper>[^|]+) \| \[`(?P<name>[\w.]+)`\]\((?P<file>[^)]+)\) \|$"
)
#: how a docstring names equations of the paper
CITED = re.compile(r"[Ee]quations? ((?:\(\d+\)(?:, | and )?)+)")


def rows():
    found = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [ROW.match(line) or line for line in found if not line.startswith("| what |")]


def numbers(text):
    return set(re.findall(r"\(\d+\)", text))


def one_line(text):
    return " ".join(text.split())


def docstring(row):
    """Return the docstring of the function, which must be defined in the file that the row links to."""
    file = (PAGE.parent / row["file"]).resolve()
    module = importlib.import_module(".".join(("drkm", *file.relative_to(SOURCE.resolve()).with_suffix("").parts)))
    found = reduce(getattr, row["name"].split("."), module)
    assert Path(inspect.getsourcefile(found)).resolve() == file
    return one_line(inspect.getdoc(found))


def cited(text):
    return set().union(*map(numbers, CITED.findall(one_line(text))))


def test_every_row_has_a_formula_a_number_and_a_link():
    assert [row for row in rows() if isinstance(row, str)] == []
    assert len(rows()) > 15


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["what"] + " " + row["name"])
def test_the_docstring_has_the_formula_and_the_number_of_the_paper(row):
    text = docstring(row)
    assert one_line(row["formula"]) in text
    assert cited(text) >= numbers(row["paper"])


def test_every_equation_of_the_paper_that_a_docstring_names_is_on_the_page():
    table = {(row["name"], number) for row in rows() for number in numbers(row["paper"])}
    for file in SOURCE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for name, node in definitions(tree):
            missing = {(name, number) for number in cited(ast.get_docstring(node) or "")} - table
            assert not missing, f"{file.relative_to(SOURCE)}: {missing}"


def definitions(node, inside=""):
    """Yield classes and functions with the names that the page uses for them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield inside + child.name, child
            yield from definitions(child, f"{inside}{child.name}.")
