# Everything is set up in this folder: .tools (uv), .venv, engine/target, workers/*/.venv. `make help` lists the targets.

UV_VERSION := 0.13.8
PYTHON ?= python3
UV := .tools/bin/uv
RUN := $(UV) run --locked --no-sync

export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON := $(PYTHON)

.DEFAULT_GOAL := help
.PHONY: help setup workers

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(UV):
	@echo "setup: uv $(UV_VERSION) into .tools"
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

setup: $(UV) ## Python environment and the engine, built from source where it changed
	@$(UV) sync --locked --quiet

workers: $(UV) ## The client libraries of each language that can be built here
	@$(UV) sync --project workers/python --locked --quiet
