from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import drkm


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_is_quick_and_does_not_import_scikit_learn():
    paths = [path for path in sys.path if path]
    code = f"""
import sys, time, torch
sys.path[:0] = {paths!r}
start = time.perf_counter()
import drkm
print(time.perf_counter() - start, "sklearn" in sys.modules, "scipy.optimize" in sys.modules)
"""
    answers = [python(code).split() for _ in range(3)]
    assert min(float(seconds) for seconds, *_ in answers) < 0.3
    assert all(loaded == "False" for _, *rest in answers for loaded in rest)


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules that code imports, wherever it does, but for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        yield from imported(child)


def parts() -> dict[str, set[str]]:
    """Return which parts of the package, modules or folders in it, each part imports."""
    root = Path(drkm.__file__).parent
    graph: dict[str, set[str]] = {path.stem: set() for path in root.iterdir() if path.stem.strip("_") != "pycache"}
    for file in root.rglob("*.py"):
        own = file.relative_to(root).with_suffix("").parts[0]
        names = [name.split(".") for name in imported(ast.parse(file.read_text(encoding="utf-8")))]
        graph[own] |= {name[1] for name in names if name[0] == "drkm" and name[1] in graph} - {own}
    return graph


def test_imports_go_one_way():
    TopologicalSorter(parts()).prepare()


def test_imports_go_the_way_that_contributing_says():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    chain = next(block for block in text.split("\n\n") if block.startswith("    kernels →"))
    levels = [re.findall(r"\w+", level) for level in chain.split("→") if level.strip()]
    graph, listed, below = parts(), {name for level in levels for name in level}, set()
    for level in levels:
        for part in level:
            assert graph[part] & listed <= below, part
        below |= set(level)
    assert len(below) > 15


def test_contributing_names_every_part():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {part for part in parts() if not part.startswith("_")} <= set(re.findall(r"\w+", text))


def test_kernels_and_operators_are_told_apart_by_what_they_say():
    from drkm import gram, kernels

    families = (kernels.Kernel, gram.Gram, gram.Strategy)
    members = [member for package in (kernels, gram) for member in vars(package).values() if isinstance(member, type)]
    names = {member.__name__ for member in members if issubclass(member, families)}
    found = []
    for file in Path(drkm.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                asked = {ast.unparse(part).split(".")[-1] for part in ast.walk(node.args[1])}
                found += [f"{file.name}: {ast.unparse(node)}"] if asked & names else []
    assert {"Kernel", "RBF", "Strategy", "Dense", "SweptGram"} <= names
    assert 0 < len(found) <= 20, "\n".join(found)


def test_the_public_surface_is_there():
    for name in ("ConstrDRKM", "load", "kernels", "gram", "solvers", "metrics", "datasets", "baselines"):
        assert getattr(drkm, name) is not None
        assert name in dir(drkm)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        drkm.nothing  # noqa: B018
