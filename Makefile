# Every target works alone on a fresh machine that has Python >= 3.11, make and git:
# it makes .venv, installs what it needs, and runs. `make` or `make help` lists the targets.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test check format docs tables bench clean

VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PYTHONS := python3.11 python3.12 python3.13 python3.14 python3 python
PIP := $(BIN)/python -m pip --disable-pip-version-check
ARGS ?=
DEMO_PHANTOMS := --limit 600 --size 32 --margin 1 --disease-as binary --folds 5 --repeats 1

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed ## train a diagnoser on phantoms and open what it did (into demo/; a minute or two)
	@rm -rf demo/lidc demo/run
	@echo "1. What goes with what in 6,859 readings of lung nodules, and how sure that is (half a minute)"
	@$(BIN)/radreason network learn --readings lidc --out demo/lidc
	@echo; echo "A radiologist sees marked spiculation: network query demo/lidc spiculation=5"; echo
	@$(BIN)/radreason network query demo/lidc spiculation=5 --of malignancy
	@echo; echo "2. Phantoms: drawings with the outlines and grades of real nodules, images of nobody"
	@$(BIN)/radreason prepare phantom-ct --out demo/phantoms $(DEMO_PHANTOMS)
	@echo; echo "3. A network that sees the image, grades it and reasons about the grades (a minute)"
	@$(BIN)/radreason train experiments/demo.toml --data demo/phantoms --out demo/run --fold 0
	@echo; echo "Open"
	@echo "  demo/run/samples.png      phantoms it was not trained on, with the truth and its answers"
	@echo "  demo/run/bn2/network.svg  the network that gives the diagnosis"
	@echo "  demo/lidc/network.svg     the network of the readings, with how sure each edge is"
	@echo "and try for yourself:"
	@echo "  $(BIN)/radreason network query demo/run/bn2 spiculation=5"
	@echo "  $(BIN)/radreason network query demo/lidc spiculation=4:0.7,5:0.3 calcification=6"

test: $(VENV)/.installed ## run all tests (make test ARGS="-m 'not slow'" leaves out the slow ones)
	@$(BIN)/python -m pytest -q $(ARGS)

check: $(VENV)/.installed ## format, lint, types, import rules, generated documents
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python docs/write_cli.py --check
	@$(BIN)/python docs/write_results.py --check

format: $(VENV)/.installed ## rewrite all files in the one format, mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(VENV)/.installed ## write docs/cli.md and the picture of the README again
	@$(BIN)/python docs/write_cli.py
	@$(BIN)/radreason network learn --readings lidc --out demo/lidc
	@cp demo/lidc/network.svg docs/img/lidc-network.svg
	@echo "wrote docs/cli.md and docs/img/lidc-network.svg"

tables: $(VENV)/.installed ## write docs/results.md and its plots again from results/
	@$(BIN)/python docs/write_results.py

bench: $(VENV)/.installed-bench ## run the benchmarks: one JSON line per answer
	@for script in benchmarks/bench_*.py; do $(BIN)/python $$script $(ARGS) || exit 1; done

clean: ## remove .venv, demo/ and caches
	@rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# torch goes first and through the constraints, so that nothing later can swap it for another build.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(BIN)/python -c '' 2>/dev/null || { \
	    for python in $(PYTHON) $(PYTHONS); do \
	        if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	            echo "Making $(VENV) with $$($$python --version) ..."; \
	            exec $$python -m venv --clear $(VENV); \
	        fi; \
	    done; \
	    echo "Found no Python >= 3.11 with the venv module (tried: $(strip $(PYTHON) $(PYTHONS)))."; \
	    echo "  expected: one of them on the PATH"; \
	    echo "  try: install Python 3.11 (on Debian and Ubuntu python3-venv too), or make PYTHON=/path/to/python"; \
	    exit 1; }
	@echo "Installing into $(VENV): torch, then the rest (once; some minutes) ..."
	@$(PIP) install -qq -c constraints.txt torch
	@$(PIP) install -qq -c constraints.txt -e '.[lidc,test,dev]'
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	@$(PIP) install -qq -c constraints.txt -e '.[bench]'
	@touch $@
