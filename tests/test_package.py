from __future__ import annotations

import ast
import importlib.util
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
    """Yield the modules that code imports anywhere, except only for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        yield from imported(child)


ROOT = Path(drkm.__file__).parent


def module_name(file: Path) -> str:
    parts = ("drkm", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, set[str]]:
    """Return which modules of the package each one imports anywhere."""
    files = {module_name(file): file for file in ROOT.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, file in files.items():
        graph[name] = set()
        for found in imported(ast.parse(file.read_text(encoding="utf-8"))):
            # A name imported from a package is one of its modules, or defined in the package itself.
            home = found if found in files else found.rpartition(".")[0]
            if home in files:
                graph[name].add(home)
    return graph


def rooms() -> dict[str, set[str]]:
    """Return which rooms, folders or modules at the root, each room imports."""
    graph: dict[str, set[str]] = {}
    for name, needed in modules().items():
        own = [*name.split("."), "__init__"][1]
        graph.setdefault(own, set()).update({[*other.split("."), "__init__"][1] for other in needed} - {own})
    # Only the version is defined in the root itself.
    return {room: needed - {"__init__"} for room, needed in graph.items()}


def test_no_room_imports_one_that_imports_it():
    TopologicalSorter(rooms()).prepare()


def test_no_module_imports_one_that_imports_it():
    graph = modules()
    packages = {name for name in graph if (ROOT / Path(*name.split(".")[1:]) / "__init__.py").is_file()}
    # A package re-exports its modules, so these must import each other and not the package.
    TopologicalSorter({name: needed - {name} for name, needed in graph.items() if name not in packages}).prepare()
    for name, needed in graph.items():
        own = {package for package in packages if name.startswith(f"{package}.")} - {"drkm"}
        assert not needed & own, f"{name} imports the package it is in"


def test_the_root_has_few_modules():
    assert len(list(ROOT.glob("*.py"))) <= 10


#: public methods of named tuples, whose underscore avoids clashes with fields
NAMED_TUPLES = ("_asdict", "_fields", "_make", "_replace")


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in ("_version", *NAMED_TUPLES)


def test_no_private_name_is_imported_from_another_room():
    for file in ROOT.rglob("*.py"):
        own = [*module_name(file).split("."), ""][1]
        for found in imported(ast.parse(file.read_text(encoding="utf-8"))):
            parts = found.split(".")
            if parts[0] == "drkm" and len(parts) > 1 and parts[1] != own:
                assert not any(private(part) for part in parts), f"{file.relative_to(ROOT)} imports {found}"


def defined(tree: ast.AST) -> set[str]:
    """Return the attributes and methods that code defines."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    stored = [node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
    return names | {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in stored}


def test_no_private_attribute_of_another_room_is_used():
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in ROOT.rglob("*.py")}
    homes: dict[str, set[str]] = {}
    for file, tree in trees.items():
        homes.setdefault([*module_name(file).split("."), ""][1], set()).update(filter(private, defined(tree)))
    for file, tree in trees.items():
        own = homes[[*module_name(file).split("."), ""][1]]
        elsewhere = set().union(*homes.values()) - own
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not used & elsewhere, f"{file.relative_to(ROOT)} uses {used & elsewhere}"


def test_imports_go_the_way_that_contributing_says():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    chain = next(block for block in text.split("\n\n") if block.startswith("    wording → validation →"))
    levels = [re.findall(r"\w+", level) for level in chain.split("→") if level.strip()]
    graph, listed, below = rooms(), {name for level in levels for name in level}, set()
    for level in levels:
        for part in level:
            assert graph[part] & listed <= below, part
        below |= set(level)
    assert len(below) > 15


def test_contributing_names_every_room():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {part for part in rooms() if not part.startswith("_")} <= set(re.findall(r"\w+", text))


def test_kernels_and_operators_are_told_apart_by_what_they_say():
    from drkm import gram, kernels

    families = (kernels.Kernel, gram.Gram, gram.Strategy)
    members = [member for package in (kernels, gram) for member in vars(package).values() if isinstance(member, type)]
    names = {member.__name__ for member in members if issubclass(member, families)}
    found = []
    for file in Path(drkm.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                asked = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                found += [f"{file.name}: {ast.unparse(node)}"] if asked & names else []
    assert {"Kernel", "RBF", "Strategy", "Dense", "SweptGram"} <= names
    assert 0 < len(found) <= 20, "\n".join(found)


def test_the_public_surface_is_there():
    for name in ("ConstrDRKM", "load", "select", "kernels", "gram", "solvers", "metrics", "datasets", "baselines"):
        assert getattr(drkm, name) is not None
        assert name in dir(drkm)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        drkm.nothing  # noqa: B018


def exported(package: str) -> list[str]:
    name = f"drkm.{package}"
    return getattr(importlib.import_module(name), "__all__", []) if importlib.util.find_spec(name) else []


def test_packages_that_the_pages_name_need_no_import_of_their_own():
    root = Path(__file__).parents[1]
    text = "".join(page.read_text(encoding="utf-8") for page in [*root.glob("*.md"), *root.glob("docs/*.md")])
    named = {package for package, name in re.findall(r"\bdrkm\.(\w+)\.(\w+)", text) if name in exported(package)}
    named |= set(re.findall(r"currentmodule:: drkm\.(\w+)", text)) | set(re.findall(r"^   (\w+)\.\w+$", text, re.M))
    assert {"explorer", "plotting", "selection", "strange_data"} <= named
    # Not getattr, which finds packages that any test has imported.
    for name in {*named, "anomalies", "imputation"}:
        assert drkm.__getattr__(name) is importlib.import_module(f"drkm.{name}")
    assert python("import drkm; print(drkm.selection.noise_of_repeats.__name__)") == "noise_of_repeats\n"


#: lines of a function besides its signature and docstring: with these it fits on a screen
SCREEN = 48


def lines(function: ast.FunctionDef) -> int:
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    return (function.end_lineno or 0) - first.lineno + 1


def test_every_function_fits_on_a_screen():
    for file in ROOT.rglob("*.py"):
        functions = [n for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)]
        long = {function.name: lines(function) for function in functions if lines(function) > SCREEN}
        assert not long, f"{file.relative_to(ROOT)}: {long}"
