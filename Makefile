# Two commands do everything from a fresh machine: `make demo` and `make test`.
# Each creates .venv when it is missing and installs exactly what constraints.txt says.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo test check lint types contract docs clean bench-rank bench-law bench-layer bench-engine

demo: .venv/.runs
	$(BIN)/headwise demo

test: check
	$(BIN)/pytest -n auto -q

check: lint types contract

lint: .venv/.develops
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.develops
	$(BIN)/basedpyright

contract: .venv/.develops
	$(BIN)/lint-imports --no-cache

docs: .venv/.documents
	$(BIN)/zensical build --clean --strict

bench-rank: .venv/.develops
	$(BIN)/python benchmarks/bench_rank.py

bench-law: .venv/.develops
	$(BIN)/python benchmarks/bench_law.py

bench-layer: .venv/.develops
	$(BIN)/python benchmarks/bench_layer.py

bench-engine: .venv/.develops
	$(BIN)/python benchmarks/bench_engine.py

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "headwise needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv

.venv/.runs: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing headwise (a few minutes the first time)"
	$(PIP) -e .
	@touch $@

.venv/.develops: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing headwise and what its tests need (a few minutes the first time)"
	$(PIP) -e '.[dev]'
	@touch $@ .venv/.runs

.venv/.documents: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing headwise and what builds its documentation"
	$(PIP) -e '.[docs]'
	@touch $@

clean:
	rm -rf .venv site
