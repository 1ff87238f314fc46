# Two commands do everything from a fresh machine: `make demo` and `make test`.
# Each creates .venv when it is missing and installs exactly what constraints.txt says.
PYTHON ?= python3
BIN := .venv/bin
# Python compiles what it imports; compiling every file of every package takes a minute. It must be
# allowed to keep the result: the tests start some hundred processes, and most of them import torch.
unexport PYTHONDONTWRITEBYTECODE
PIP := @$(BIN)/pip --disable-pip-version-check install --no-compile --quiet --quiet -c constraints.txt

.PHONY: demo test test-all quick-tests all-tests coverage check lint types contract docs clean bench-rank bench-law bench-layer bench-engine bench-advice bench-training bench-exhibits verify-records attack

demo: .venv/.runs
	@$(BIN)/headwise advise --html local/advice.html

# What people run: a few minutes. test-all adds kills, clusters, end-to-end runs and
# documentation drift, and is what .ci/run calls. Checks run beside the tests:
# the type checker keeps one core busy for most of a minute.
test: .venv/.develops
	@$(MAKE) --no-print-directory --jobs=2 check quick-tests

test-all: .venv/.develops
	@$(MAKE) --no-print-directory --jobs=2 check all-tests

PYTEST := $(BIN)/pytest -n auto --dist loadgroup -q

quick-tests: .venv/.develops
	$(PYTEST) -m "not slow"

# Coverage by tracing costs a third of the time, so test-all measures it from Python 3.12 on, where it
# can count without tracing. `make coverage` measures it on any version.
COVERED := --cov=headwise --cov-report=term:skip-covered
all-tests: .venv/.develops
	if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 12))'; \
	then COVERAGE_CORE=sysmon $(PYTEST) $(COVERED); \
	else $(PYTEST); fi

coverage: .venv/.develops
	$(PYTEST) $(COVERED)

check: lint types contract

lint: .venv/.develops
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.develops
	$(BIN)/basedpyright

contract: .venv/.develops
	$(BIN)/lint-imports --no-cache

docs: .venv/.documents
	$(BIN)/python docs/make_law_page.py
	$(BIN)/zensical build --clean --strict
	# Opened from a folder, without a server, the site reads its search index as a script.
	(printf 'var __index = '; cat site/search.json) > site/search.js

bench-rank: .venv/.develops
	$(BIN)/python benchmarks/bench_rank.py

bench-law: .venv/.develops
	$(BIN)/python benchmarks/bench_law.py

bench-layer: .venv/.develops
	$(BIN)/python benchmarks/bench_layer.py

bench-engine: .venv/.develops
	$(BIN)/python benchmarks/bench_engine.py

# Trains the small tasks again, shortened (a few minutes), judges that, then the rows on record.
RERUN := local/advice-rerun.jsonl
bench-advice: .venv/.develops
	rm -f $(RERUN)
	$(BIN)/python -m benchmarks.advice.sweep --rows $(RERUN) --tasks digits-patches \
	  --sweeps heads --seeds 0,1 --steps 300
	$(BIN)/python -m benchmarks.advice.sweep --rows $(RERUN) --tasks digits-pixels \
	  --sweeps heads --ranks 3 --seeds 0,1 --steps 150
	$(BIN)/python -m benchmarks.advice.sweep --rows $(RERUN) --tasks farthest-planted-8 \
	  --sweeps single,heads --seeds 0,1 --steps 600
	$(BIN)/python -m benchmarks.advice.judge --rows $(RERUN)
	$(BIN)/python -m benchmarks.advice.judge

bench-training: .venv/.develops
	$(BIN)/python benchmarks/bench_training.py

bench-exhibits: .venv/.develops
	$(BIN)/python benchmarks/bench_exhibits.py

# Certified counts, damaged files, kills, disks, processes, the page; MINUTES and SEED may be given.
MINUTES ?= 3
SEED ?= 0
attack: .venv/.develops
	$(BIN)/python -m benchmarks.attack --minutes $(MINUTES) --seed $(SEED)

verify-records: .venv/.develops
	$(BIN)/python benchmarks/verify_records.py

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "headwise needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv .venv

.venv/.runs: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing headwise (a few minutes the first time)"
	$(PIP) -e .
	@touch $@

.venv/.develops: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing headwise and what its tests need (a few minutes the first time)"
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps timm  # the torchvision that it asks for does not load beside the CPU's torch
	@touch $@ .venv/.runs

.venv/.documents: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing headwise and what builds its documentation"
	$(PIP) -e '.[docs]'
	@touch $@

clean:
	rm -rf .venv site
