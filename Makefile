# Everything a person types more than once. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export DAGSTER_HOME := $(CURDIR)
export DAGSTER_DISABLE_TELEMETRY := 1
TORTURE := tests/torture $(wildcard tests/records/test_fuzz_decode.py tests/components/test_components_steps.py)

.DEFAULT_GOAL := help
.PHONY: help run ui test torture test-e2e pictures bench docs lint types check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.samples ## materialize the bundled datasets, end to end
	@$(BIN)/tfr run --readers flights
	@$(BIN)/tfr run tones topics mixed digits
	@echo
	@echo "  make ui      opens all of this in the Dagster UI, on the same instance and data"

ui: $(VENV)/.samples ## open the Dagster UI on http://127.0.0.1:3000
	@$(BIN)/python -m tfr_assets.cli.ui $${PORT:-3000}

test: $(VENV)/.dev ## run all tests
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

torture: $(VENV)/.dev ## crashes, kills, full disks, flipped bits at random, for minutes; prints its seed
	@export TFR_TORTURE_SEED=$${TFR_TORTURE_SEED:-$$(date +%s)} TFR_TORTURE_SECONDS=$${TFR_TORTURE_SECONDS:-10}; \
	  echo "TFR_TORTURE_SEED=$$TFR_TORTURE_SEED TFR_TORTURE_SECONDS=$$TFR_TORTURE_SECONDS"; \
	  $(BIN)/python -m pytest -n auto -v $(TORTURE)

test-e2e: $(VENV)/.e2e ## try the UI in a real browser: Chromium, which root gets with apt if it is missing
	@command -v chromium chromium-browser google-chrome >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium fonts-dejavu-core; }
	@$(BIN)/python -m pytest tests/e2e -rs

pictures: export TFR_PICTURES := $(CURDIR)/docs
pictures: test-e2e ## take the pictures of README and docs anew, while the UI is tried

bench: $(VENV)/.dev ## measure speed and memory, as ratios within one run
	@$(BIN)/python -m tests.bench

docs: $(VENV)/.docs ## build the documentation into .site; any warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

lint: $(VENV)/.dev ## ruff: style, mistakes, formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy
	@$(BIN)/mypy

check: lint types docs test ## what CI runs, but for the browser

clean: ## remove what was built and materialized: .venv, .dagster, data
	rm -rf $(VENV) .dagster .site data .pytest_cache .hypothesis .ruff_cache .mypy_cache *.egg-info

# One environment; the stamps say which extras are in it.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1): Python 3.11, 3.12 or 3.13 is needed; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "creating $(VENV) (a few minutes, once)"
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot create environments; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@touch $@

$(VENV)/.samples: $(VENV)/.created pyproject.toml constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[samples]'
	@$(BIN)/python -m tfr_assets.compile_kernels
	@touch $@

$(VENV)/.dev: $(VENV)/.samples
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[samples,dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[samples,dev,docs]'
	@touch $@

$(VENV)/.e2e: $(VENV)/.dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[samples,dev,e2e]'
	@touch $@
