# `make up` runs Holdfast, `make test` tests it; both set up what they need. `make help` lists the rest.

PYTHON ?= python3
# Test processes at a time; JOBS=0 runs all in one process.
JOBS ?= 2
# What `make simulate` and `make oracles` run: so many seeds, from the first on.
SEEDS ?= 2000
FIRST ?= 0
# More for pytest, for instance: make test ARGS="-k signal -x"
ARGS ?=

VENV := .venv
READY := $(VENV)/.ready
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --no-input --disable-pip-version-check
SOURCES := $(wildcard holdfast tests examples bench tools)

PINS_VENV := .venv-pins
UV := $(PINS_VENV)/bin/uv
COMPILE := $(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-config --no-emit-index-url --custom-compile-command "make pins"

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help up test simulate oracles check fmt bench docs pins clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST)

up: $(READY) ## Set up and run the demo
	@$(BIN)/holdfast demo

test: $(READY) ## Set up and run all tests
	@$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

simulate: $(READY) ## Simulate thousands of seeds; make simulate SEEDS=100 FIRST=5000 for others
	@$(BIN)/holdfast simulate --seeds $(SEEDS) --first $(FIRST) --store memory
	@$(BIN)/holdfast simulate --seeds $(SEEDS) --first $(FIRST) --store sqlite

oracles: $(READY) ## Compare thousands of random processes with their oracles; make oracles SEEDS=100 FIRST=5000
	@HOLDFAST_ORACLE_SEEDS=$(SEEDS) HOLDFAST_ORACLE_FIRST=$(FIRST) $(BIN)/python -m pytest -n $(JOBS) -q tests/bpmn/oracles

check: $(READY) ## Check format, lint, types, import directions and shape
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.shape

fmt: $(READY) ## Format, and repair what lint can repair
	$(BIN)/ruff check --fix-only $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(READY) ## Run the benchmarks
	@$(BIN)/python -m bench $(ARGS)

docs: $(READY) ## Build the documents as a site, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pins: $(UV) ## Compile the pinned requirements anew, with the newest versions
	$(COMPILE) --extra dev --extra fast --extra postgres --extra redis --output-file requirements/dev.txt pyproject.toml
	printf 'hatchling>=1.27\neditables\n' | $(COMPILE) --constraint requirements/dev.txt --output-file requirements/build.txt -

clean: ## Remove the environment, caches and builds
	rm -rf $(VENV) $(PINS_VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# Build tools come first and pinned, so that installing the project itself downloads nothing.
$(READY): pyproject.toml requirements/build.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Expected $(PYTHON) to be Python 3.11 or newer, but it is not. Name another: make PYTHON=python3.12 ..." >&2; \
		exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements/build.txt -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(UV):
	@$(PYTHON) -m venv $(PINS_VENV)
	@$(PINS_VENV)/bin/python -m pip --quiet --quiet --disable-pip-version-check install uv
