# `make` alone says what there is.
SHELL := /bin/sh
PYTHON := .venv/bin/python
READY := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help run test lint check bench chaos lock

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done

run: $(READY) ## serve Roster with its demo on http://127.0.0.1:8000 (PORT=8001 make run: elsewhere)
	@exec $(PYTHON) manage.py up --demo

test: $(READY) ## the whole test suite, in two processes
	@exec $(PYTHON) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

lint: $(READY) ## style, types, import contracts, spelling
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	PYTHONPATH=.:platform .venv/bin/lint-imports
	.venv/bin/djade --check --target-version 6.0 $$(git ls-files '*.html')
	.venv/bin/typos

check: lint test ## what CI runs

bench: $(READY) ## benchmarks against a fake model server
	@exec $(PYTHON) -m tests.bench

chaos: $(READY) ## the long load, chaos and graph tests, with their figures (an hour)
	@exec $(PYTHON) -m pytest -q -m long

lock: $(READY) ## refresh requirements.lock from pyproject.toml (needs uv)
	@command -v uv >/dev/null || { echo "Refreshing the lock needs uv: see its web site, or pip install uv." >&2; exit 1; }
	uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --universal --python-version 3.12 --extra dev pyproject.toml -o requirements.lock

$(READY): requirements.lock .python-version .ci/environment
	@.ci/environment
	@touch $@
