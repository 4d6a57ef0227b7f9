"""The program accepts every command line of the pages, and those that take seconds are run."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from command_line import drkm
from documented import COMMANDS, PAGES, PLACEHOLDER, ROOT, commands, parsed


def of_pages(program: str) -> pytest.MarkDecorator:
    found = {(page, words) for page in PAGES for words in commands(page, program)}
    cases = [pytest.param(words, id=f"{page.name}: {words}") for page, words in sorted(found)]
    assert len(cases) > 10
    return pytest.mark.parametrize("words", cases)


@of_pages("drkm")
def test_the_command_line_takes_what_the_pages_show(words):
    first, *rest = words.split()
    if PLACEHOLDER.search(words) or not rest or rest[0].startswith("-"):
        # A mention, or a form with placeholders: the command and its options must exist.
        command = COMMANDS.commands.get(first, COMMANDS)
        assert command is not COMMANDS or first in ("--help", "--install-completion", "COMMAND")
        known = {"--help", "--install-completion"}.union(*(param.opts for param in command.params))
        assert set(re.findall(r"(?<!\w)--?[a-z][\w-]*", words)) <= known
        return
    given = shlex.split(words)
    parsed(given)
    if given[0] == "reproduce":
        assert given[1] in (*_experiments(), "all", "--help")


def _experiments() -> list[str]:
    from drkm.experiments.registry import EXPERIMENTS

    return list(EXPERIMENTS)


@pytest.mark.parametrize("words", ["encode model data", "fit X.npy --no-such-option", "fit X.npy -o m --n-init many"])
def test_the_parser_of_these_tests_refuses_what_the_program_refuses(words):
    with pytest.raises(Exception, match=r"[Mm]issing|[Nn]o such option|valid int") as refused:
        parsed(words.split())
    assert type(refused.value).__module__.startswith(("click", "typer"))


EXAMPLES = [
    line.strip()
    for command in COMMANDS.commands.values()
    for line in (command.epilog or "").splitlines()
    if line.strip().startswith("drkm ")
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_command_line_takes_the_examples_of_its_help(line):
    parsed(shlex.split(line.split("  #")[0])[1:])


class Parsed(Exception):
    """The arguments were understood."""


@of_pages("python -m benchmarks")
def test_benchmarks_take_the_arguments_that_the_pages_show(words, monkeypatch):
    name, *arguments = shlex.split(words.removeprefix("."))
    if name.startswith(("[", "-")):
        return
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    registry = (ROOT / "benchmarks" / "__main__.py").read_text(encoding="utf-8")
    assert words.startswith(".") or f'"{name}"' in registry, name
    if "parse_args" not in source:
        assert all(f'"{argument}"' in source for argument in arguments)
        return
    monkeypatch.syspath_prepend(ROOT)
    understand = argparse.ArgumentParser.parse_args

    def stop(self, *given):
        understand(self, *given)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(Parsed):
        importlib.import_module(f"benchmarks.{name}").main()


def test_targets_of_make_that_are_named_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z]+) \?=", makefile, re.MULTILINE))
    shown = [words for page in PAGES for words in commands(page, "make")]
    assert len(shown) > 10
    for words in shown:
        target, *given = words.split()
        assert target in targets, words
        assert {word.partition("=")[0] for word in given} <= variables, words


def skeleton(text: str) -> list[str]:
    """Return lines without numbers, whose last digits depend on the machine, and without their spacing."""
    lines = [re.sub(r"-?\d[\d.,]*(e[+-]?\d+)?( [kMGT]?(flop|B))?", "N", line) for line in text.splitlines()]
    return [re.sub(r"\s+", " ", line).strip() for line in lines]


def test_the_session_of_the_page_goes_as_it_says(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    block = next(
        part for part in re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE) if part.startswith("    $ drkm fit")
    )
    images = load_digits().images
    np.save(tmp_path / "train.npy", images[:400])
    np.save(tmp_path / "new.npy", images[400:600])
    monkeypatch.chdir(tmp_path)
    for part in re.split(r"^ {4}\$ drkm ", block, flags=re.MULTILINE)[1:]:
        words, _, answer = part.partition("\n")
        done = drkm(*shlex.split(words))
        assert skeleton(done.out + done.err) == skeleton(answer)
        assert done.code == (2 if "drkm:" in answer else 0)


def test_commands_of_the_pages_that_need_no_data_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRKM_DATA", str(tmp_path))
    for words in ("datasets list", "status", "fit --help", "reproduce --help", "--help"):
        assert any(words in page.read_text(encoding="utf-8") for page in PAGES), words
        done = drkm(*words.split())
        assert done.out or done.err.startswith("drkm: "), words
        assert done.code in (0, 2), done


@pytest.mark.slow
def test_scores_of_codes_that_the_readme_names(tmp_path, monkeypatch):
    rng = np.random.RandomState(0)
    np.savetxt(tmp_path / "codes.csv", rng.randn(200, 3), delimiter=",", header="a,b,c", comments="")
    np.savetxt(
        tmp_path / "factors.csv", rng.randint(3, size=(200, 2)), delimiter=",", header="f,g", comments="", fmt="%d"
    )
    monkeypatch.chdir(tmp_path)
    assert "drkm evaluate codes.csv factors.csv" in (ROOT / "README.md").read_text(encoding="utf-8")
    done = drkm("evaluate", "codes.csv", "factors.csv")
    assert done.code == 0, done.err
    assert "MIG" in done.out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["imports"])
def test_benchmarks_that_take_seconds_run(name):
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", name], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert f"## {name}" in ran.stdout
