# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := .venv-peers
MINIMUM := .venv-minimum

.PHONY: demo test fuzz chaos lint format types bench minimum clean setup

demo: setup
	$(BIN)/nlpkit demo

test: lint types
	$(BIN)/pytest -n auto --dist worksteal

# bad inputs for every command: FUZZ_SECONDS=60, or FUZZ_CASES, of the list that FUZZ_SEED=1 stands for
fuzz: setup
	$(BIN)/python -m tests.fuzz

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# CHAOS_SECONDS bounds it (0: until all is tried), CHAOS_SEED takes another order.
chaos: setup
	$(BIN)/python tests/chaos/kills.py

# The peers bring packages of their own, which must not change what `make test` sees.
bench: $(PEERS)/.installed
	for script in benchmarks/bench_*.py; do $(PEERS)/bin/python $$script || exit 1; done

$(PEERS)/.installed: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -q --upgrade pip
	$(PEERS)/bin/python -m pip install -q -c constraints.txt -e . -r benchmarks/requirements.txt
	touch $@

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $(STAMP)

# The oldest versions that pyproject.toml admits: every module is imported, each group is tried.
minimum: $(MINIMUM)/.installed
	$(MINIMUM)/bin/pytest -q tests/test_smoke.py

$(MINIMUM)/.installed: pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install -q --upgrade pip
	$(MINIMUM)/bin/python -m pip install -q -c constraints-minimum.txt -e . pytest
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(MINIMUM) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
