# Each verb is what .ci/run runs too. `make` alone lists them.

PYTHON ?= python3
WORKERS ?= 2
QUICK := not fault and not fuzz and not agents

BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help install run tour test test-fast test-agents lint format types schemas docs bench build lock clean

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## Create .venv with the pinned tools and Factwire in it

# uv comes first, by pip and with its hash; it then installs the rest much faster.
$(STAMP): pyproject.toml requirements/dev.txt requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit("Factwire needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

run: $(STAMP) ## Start the Edge with the demo agent; everything it keeps is in .run
	@mkdir -p .run/workspace
	@$(BIN)/factwire edge --data .run/data --journal .run/journal.db --workspace .run/workspace --agent demo

tour: $(STAMP) ## Walk through the examples, one after the other
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/tour.sh

# Faults and fuzz run long loops, which counting lines would make three times as long.
test: $(STAMP) ## Run the whole suite, all but faults and fuzz with branch coverage
	@$(BIN)/python tools/system_packages.py
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "$(QUICK)" --cov --cov-report=term
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "(fault or fuzz) and not agents"

test-fast: $(STAMP) ## Run the suite without fault and fuzz tests, without coverage
	@$(BIN)/python tools/system_packages.py
	$(BIN)/pytest -n $(WORKERS) -m "$(QUICK)"

# A network of their own is all they get: nothing that they do leaves the machine.
test-agents: $(STAMP) ## Run real agents against a fake model on this machine
	@$(BIN)/python tools/system_packages.py
	@$(BIN)/python -m tools.agents $(BIN)/pytest -n $(WORKERS) --dist worksteal -m agents tests/agents

lint: $(STAMP) ## Check style, format, package order and stray hosts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python tools/check_hosts.py

format: $(STAMP) ## Format the code and apply the safe fixes
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

types: $(STAMP) ## Check the types, strictly
	$(BIN)/pyright

schemas: $(STAMP) ## Write schemas/, docs/reference/ and the workbench's types anew from the code
	$(BIN)/factwire schema all --output schemas
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/web_types.py

docs: $(STAMP) ## Run every snippet of README and docs/
	$(BIN)/pytest -n $(WORKERS) tests/test_docs.py

bench: $(STAMP) ## Measure, as ratios within one run
	$(BIN)/python -m bench

build: $(STAMP) ## Build sdist and wheel, then install and try the wheel
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python tools/check_wheel.py

# --no-config keeps the settings of one machine out of everybody's pins.
COMPILE = $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock"

lock: $(STAMP) ## Pin the newest tools that fit, with hashes
	$(COMPILE) --upgrade --group dev pyproject.toml --output-file requirements/dev.txt
	grep -o '^uv==[^ ]*' requirements/dev.txt | $(COMPILE) - --no-annotate --output-file requirements/uv.txt

clean: ## Remove what the other verbs made, except .venv
	rm -rf dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find src tests bench examples tools -type d -name __pycache__ -prune -exec rm -rf {} +
