# Weir. `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
VENV_SGLANG := .venv-sglang
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup setup-test run test test-unit test-faults test-sglang test-fleet test-console test-dashboards fuzz bench lint types imports lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## build .venv with everything Weir needs to run

setup-test: $(VENV)/.installed-test ## and what its tests need

# Where python3 has no ensurepip (Debian without python3-venv) the outer pip installs into the venv.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV); }

$(VENV)/.installed: requirements.lock pyproject.toml | $(VENV)/bin/python
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; then pip="$(BIN)/python -m pip"; \
	 else pip="$(PYTHON) -m pip --python $(BIN)/python"; fi; set -e; \
	 echo "Filling $(VENV) from requirements.lock (about 200 MB the first time)"; \
	 $$pip install --quiet --no-deps --require-hashes -r requirements.lock; \
	 $$pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-test: requirements-test.lock $(VENV)/.installed
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; then pip="$(BIN)/python -m pip"; \
	 else pip="$(PYTHON) -m pip --python $(BIN)/python"; fi; set -e; \
	 echo "Adding what the tests need, from requirements-test.lock"; \
	 $$pip install --quiet --no-deps --require-hashes -r requirements-test.lock
	@touch $@

# Real SGLang with its torch is heavy and pins other versions: it has an environment of its own.
SGLANG_INSTALL := $(addprefix tests/sglang/,install.sh requirements.txt requirements-alone.txt)
$(VENV_SGLANG)/.installed: $(SGLANG_INSTALL) | $(VENV)/bin/python
	bash tests/sglang/install.sh $(VENV_SGLANG) $(PYTHON)
	@touch $@

run: setup ## start the whole system on this machine and serve
	$(BIN)/weir dev

test: setup-test ## the tests of every part, on real servers, with nothing but pip
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/unit tests/tidy tests/property
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/integration
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/acceptance tests/sdk

test-unit: setup-test ## the tests that need no server
	$(BIN)/python -m pytest tests/unit tests/tidy

# What these see happen in time must not wait for another test's processes.
FAULTS_ALONE := $(addprefix tests/faults/test_,kills.py queue_kill.py queue_drain.py)
test-faults: setup-test ## what is killed, cut off or overloaded; WEIR_STORM_SEED, WEIR_STORM_SECONDS, WEIR_METERING_SEED
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/faults tests/storm $(addprefix --ignore=,$(FAULTS_ALONE))
	$(BIN)/python -m pytest $(FAULTS_ALONE)

test-sglang: setup-test $(VENV_SGLANG)/.installed ## the gateway on real SGLang, on this CPU (2 GB the first time)
	WEIR_SGLANG_VENV=$(VENV_SGLANG) $(BIN)/python -m pytest tests/sglang

test-fleet: setup-test ## simulated replicas and the load test, in real time and against measured points
	$(BIN)/python -m pytest tests/fleet

test-console: setup-test ## the console in Chromium, and OpenAI's Node SDK (needs Node, and apt as root the first time)
	bash tests/console/install_chromium.sh
	$(BIN)/python -m pytest tests/console

test-dashboards: setup-test ## a real Prometheus and HAProxy on our configuration (apt as root the first time)
	bash tests/dashboards/install_prometheus.sh
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/dashboards

fuzz: setup-test ## 20,000 seeded requests, made from the OpenAPI document and from real ones
	$(BIN)/python -m pytest tests/fuzz

bench: setup-test ## the long benchmarks; TRACES=folder of traces (benchmarks/data/README.md)
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.metering
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.billing
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.console
	PYTHONPATH=.:tests $(BIN)/python benchmarks/tracing.py
	PYTHONPATH=. $(BIN)/python benchmarks/calibration.py
	PYTHONPATH=. $(BIN)/python benchmarks/open_loop.py --traces $(TRACES) --seeds 3
	PYTHONPATH=. $(BIN)/python benchmarks/curves.py --traces $(TRACES)

lint: setup-test ## style and house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup-test ## strict type checking
	$(BIN)/mypy

imports: setup-test ## which package may import which
	$(BIN)/lint-imports

lock: ## resolve the lock files again (needs uv)
	uv pip compile pyproject.toml --extra dev --extra loadtest --extra build --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -o requirements.lock
	uv pip compile pyproject.toml --extra dev --extra loadtest --extra build --extra test -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -o requirements-test.lock
	uv pip compile pyproject.toml -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -o deploy/docker/gateway.lock
	uv pip compile deploy/docker/worker.in -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -o deploy/docker/worker.lock
	uv pip compile deploy/docker/build.in -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet -o deploy/docker/build.lock

clean: ## remove what was built; data in .weir stays
	rm -rf $(VENV) $(VENV_SGLANG) .mypy_cache .ruff_cache .pytest_cache .hypothesis
