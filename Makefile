# Every target sets up what it needs in .venv and works on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo reproduce test test-all test-paths test-oldest test-gpu coverage bench docs lint clean

# Tests run in one process per core, at most four, each with one thread; whole files stay together where they can.
PARALLEL := -n logical --maxprocesses 4 --dist worksteal

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(STAMP)
	$(BIN)/drkm demo

# make reproduce EXPERIMENTS=all SCALE=medium
EXPERIMENTS ?= table1
SCALE ?= quick
reproduce: $(STAMP)
	$(BIN)/drkm reproduce $(EXPERIMENTS) --scale $(SCALE)

test: $(STAMP)
	$(BIN)/python -m pytest $(PARALLEL)

test-all: $(STAMP) lint
	$(BIN)/python -m pytest $(PARALLEL) -m "not gpu"
	$(BIN)/python tests/check_wheel.py

# Under the code paths of other machines: make test-paths HOW=--quick, or HOW=--whole
HOW ?=
test-paths: $(STAMP)
	$(BIN)/python tests/code_paths.py $(HOW)

# With the oldest versions of other libraries, which warn of what later ones changed.
OLDEST := .venv-oldest
test-oldest:
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c tests/oldest.txt torch
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c tests/oldest.txt -e ".[cli,plot,data,dask,web]" \
		hypothesis pandas pymanopt pytest pytest-timeout pytest-xdist safetensors
	$(OLDEST)/bin/python -m pytest $(PARALLEL) \
		-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning -W ignore::ResourceWarning

# On a machine with a GPU and a Python of its own: torch, scikit-learn, pytest and pytest-timeout will do.
test-gpu:
	python3 -m pytest -m gpu $$(grep -rl "mark.gpu" tests --include="test_*.py")

# Of the tests of make test, processes that they start included: a quarter of an hour. One test interrupts whatever runs
# at any moment, and with it what counts the lines, which then waits for ever.
INTERRUPTS := tests/test_threads.py::test_ctrl_c_at_any_moment_restores_the_counts
coverage: $(STAMP)
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -o timeout=1500 --deselect $(INTERRUPTS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python tests/branches.py

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# The documentation site, every example run; open docs/_build/html/index.html
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(OLDEST) build dist results docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
