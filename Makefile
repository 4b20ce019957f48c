# Two commands from a fresh clone: `make demo` and `make test`. The rest: check, bench, docs, test-slow, test-servers.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# One BLAS thread a process: two test processes with two threads each would wait for one another.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

# Compiled files are kept whatever the shell says: each command that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test frozen test-slow test-servers test-lowest check bench docs dist clean help

help:
	@echo "make demo       install what the demo needs, run it, say where the report is"
	@echo "make test       install what the tests need, check the code, run the tests, print the coverage of the engine"
	@echo "make test-slow  the long numerical sweeps"
	@echo "make frozen     compare what every verb finds with the kept facts"
	@echo "make test-servers  a model extracted through the real MLServer and KServe"
	@echo "make test-lowest  the engine with the lowest supported versions of its dependencies"
	@echo "make check      lint, types, import layers, spelling, prose"
	@echo "make bench      print the figures of the documentation"
	@echo "make docs       build the documentation into site/"
	@echo "make dist       build wheel and sdist, install the wheel with each extra in an empty environment"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("reluctant needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras: nothing is installed twice.
$(VENV)/.%-installed: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[$*]'
	@touch $@

demo: $(VENV)/.demo-installed
	$(BIN)/reluctant demo

# Which branches of the engine were run; `make test COVERAGE=` does not count them.
COVERAGE ?= --branches

test: check
	$(BIN)/python -m pytest -q -n 2 -rs $(COVERAGE)

test-slow: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -q -n 2 -m slow

frozen: $(VENV)/.dev-installed
	$(BIN)/python -m benchmarks.frozen

# Each server in an environment of its own: they want other versions of the same libraries.
SERVERS := .servers
.servers/mlserver/.installed: PACKAGES := mlserver mlserver-sklearn
.servers/kserve/.installed: PACKAGES := kserve

$(SERVERS)/%/.installed:
	$(PYTHON) -m venv $(SERVERS)/$*
	$(SERVERS)/$*/bin/python -m pip --disable-pip-version-check install --quiet $(PACKAGES)
	@touch $@

test-servers: $(VENV)/.dev-installed $(SERVERS)/mlserver/.installed $(SERVERS)/kserve/.installed
	$(BIN)/python -m pytest -q -rs -m servers tests/servers

check: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --no-error-summary --num-workers 2
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python scripts/prose.py --check

bench: $(VENV)/.dev-installed
	$(BIN)/python -m benchmarks

# uv resolves each direct dependency to its lower bound.
LOWEST := .lowest
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
		--editable '.[cli,http,onnx,report,sklearn,testing]' 'pytest-xdist>=3.5'
	$(LOWEST)/bin/python -m pytest -q -n 2 -k 'not torch' tests/extraction tests/geometry tests/learning tests/networks tests/span

# The wheel as a user gets it: each extra in an empty environment, used by itself.
EXTRAS := cli onnx torch sklearn report lattice http dask testing
dist: $(BIN)/python
	rm -rf dist build/wheel
	$(PIP) build twine
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	set -e; for extra in $(EXTRAS); do \
		$(PYTHON) -m venv build/wheel/$$extra; \
		build/wheel/$$extra/bin/python -m pip --disable-pip-version-check install --quiet "$$(ls dist/*.whl)[$$extra]"; \
		(cd build/wheel && $$extra/bin/python ../../scripts/try_extra.py $$extra); \
	done

docs: $(VENV)/.docs-installed
	$(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) $(SERVERS) $(LOWEST) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
