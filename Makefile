# Each verb is what .ci/run runs too. `make` alone lists them.

PYTHON ?= python3
PYTHONS ?= 3.12 3.13
WORKERS ?= 2
QUICK := not fault and not fuzz and not agents and not browser
SLOW := (fault or fuzz) and not agents and not browser
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist worksteal

# Thousands of processes are started by the tests; each would compile all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS := $(VENV)/.runs
HUBS := $(VENV)/.hubs

.DEFAULT_GOAL := help
.PHONY: help install run hub tour test test-fast test-pythons test-agents nightly coverage lint format types schemas web docs bench build lock clean

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## Create .venv with the pinned tools and Factwire in it

# uv comes first, by pip and with its hash; it then installs the rest much faster.
define INSTALL
	@$(PYTHON) -c 'import sys; sys.exit("Factwire needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(STAMP): pyproject.toml requirements/dev.txt requirements/uv.txt
	$(call INSTALL,requirements/dev.txt)

# What the Edge needs is a small part of that; who has all of it already is not asked to wait again.
$(RUNS): pyproject.toml requirements/run.txt requirements/uv.txt
	$(call INSTALL,requirements/run.txt)

run: $(if $(wildcard $(STAMP)),$(STAMP),$(RUNS)) ## Start the Edge and its workbench with the demo agent; all it keeps is in .run
	@mkdir -p .run/workspace
	@$(BIN)/factwire edge --data .run/data --journal .run/journal.db --workspace .run/workspace --agent demo

$(HUBS): pyproject.toml requirements/hub.txt requirements/uv.txt
	$(call INSTALL,requirements/hub.txt)

# What follows `bench` names what is measured: `make bench hub` starts no Hub.
ifeq ($(firstword $(MAKECMDGOALS)),bench)
BENCHES := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
$(if $(BENCHES),$(eval $(BENCHES): bench ; @:))
else
hub: $(if $(wildcard $(STAMP)),$(STAMP),$(HUBS)) ## Start a Hub with two people and two machines on this one; all it keeps is in .run/hub-demo
	@$(BIN)/python -m tools.hub_demo
endif

tour: $(STAMP) ## Walk through the examples, one after the other
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/tour.sh

test: $(STAMP) ## Run everything: the suite, faults and fuzz, a real browser, real agents
	@$(BIN)/python tools/system_packages.py
	@$(BIN)/python -m tools.web
	$(PYTEST) -m "$(QUICK)"
	$(PYTEST) -m "$(SLOW)" $$(grep -rlwiE 'fault|fuzz' tests --include='test_*.py')
	$(PYTEST) -m browser $$(grep -rlwi browser tests --include='test_*.py')
	@$(MAKE) --no-print-directory test-agents

test-fast: $(STAMP) ## Run the suite without faults, fuzz, browser and agents
	@$(BIN)/python tools/system_packages.py
	$(PYTEST) -m "$(QUICK)" $(PYTEST_ARGS)

# All are looked for before the first one is tried. What pyenv puts on PATH is there for versions
# that are not switched on as well, so its folders come first.
test-pythons: ## Run the fast suite on Python 3.12 and 3.13, each in a .venv of its own
	@pairs=; for version in $(PYTHONS); do \
		found=$$(ls -d "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python$$version 2>/dev/null \
			| sort -V | tail -n 1); \
		found=$${found:-$$(command -v python$$version)}; \
		"$$found" -c '' 2>/dev/null || { \
			echo "Python $$version was not found, neither in pyenv's folders nor as python$$version on PATH;" \
				"install it, or name those you have: make test-pythons PYTHONS=\"3.12\"" >&2; exit 1; }; \
		pairs="$$pairs $$version=$$found"; \
	done; \
	for pair in $$pairs; do \
		echo "Python $${pair%%=*}"; \
		$(MAKE) --no-print-directory test-fast VENV=.venv-$${pair%%=*} PYTHON="$${pair#*=}" || exit 1; \
	done

# A network of their own is all they get: nothing that they do leaves the machine.
test-agents: $(STAMP) ## Run real agents against a fake model on this machine
	@$(BIN)/python tools/system_packages.py
	@$(BIN)/python -m tools.agents $(PYTEST) -m agents tests/agents

# One trial at a time where memory and processor time are measured; hours in total.
nightly: $(STAMP) ## Run the long trials at their full figures, of which `make test` runs a share
	@$(BIN)/python tools/system_packages.py
	FACTWIRE_TRIALS=full HYPOTHESIS_PROFILE=thorough $(PYTEST) -m nightly --deselect tests/edge/test_growth.py
	FACTWIRE_TRIALS=full $(BIN)/pytest tests/edge/test_growth.py

# Counting lines makes the suite twice as long, so it is a verb of its own.
coverage: $(STAMP) ## Run the suite with branch coverage, at least 90 percent
	@$(BIN)/python tools/system_packages.py
	$(PYTEST) -m "$(QUICK)" --cov --cov-report=term

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

schemas: $(STAMP) ## Write schemas/, docs/reference/, types, the blocking client and entry points anew from the code
	$(BIN)/factwire schema all --output schemas
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/web_types.py
	$(BIN)/python tools/blocking_client.py
	$(BIN)/python tools/event_payloads.py
	$(BIN)/python tools/entry_points.py
	@$(MAKE) --no-print-directory install

web: $(STAMP) ## Build the workbench anew from web/ into src/factwire/workbench
	@$(BIN)/python -m tools.web test build

docs: $(STAMP) ## Run every snippet of README and docs/
	$(BIN)/pytest -n $(WORKERS) tests/test_docs.py

bench: $(STAMP) ## Measure, as ratios within one run; `make bench hub` what is about the Hub
	$(BIN)/python -m bench $(BENCHES) $(BENCH_ARGS)

build: $(STAMP) ## Build sdist and wheel, then install and try the wheel
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python tools/check_wheel.py

# --no-config keeps the settings of one machine out of everybody's pins.
COMPILE = $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command "make lock"

lock: $(STAMP) ## Pin the newest tools that fit, with hashes
	$(COMPILE) --upgrade --group dev pyproject.toml --output-file requirements/dev.txt
	echo hatchling | $(COMPILE) --extra edge --constraint requirements/dev.txt pyproject.toml - --output-file requirements/run.txt
	echo hatchling | $(COMPILE) --extra hub --constraint requirements/dev.txt pyproject.toml - --output-file requirements/hub.txt
	grep -o '^uv==[^ ]*' requirements/dev.txt | $(COMPILE) - --no-annotate --output-file requirements/uv.txt

clean: ## Remove what the other verbs made, except .venv
	rm -rf dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find src tests bench examples tools -type d -name __pycache__ -prune -exec rm -rf {} +
