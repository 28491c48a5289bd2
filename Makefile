# Two commands on a fresh machine: `make demo` and `make test`. Each creates .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
# The variables pin the packages of isolated builds too, which -c does not reach. Python compiles what it imports; to
# compile all of torch takes a minute.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/pip install -q --no-compile --disable-pip-version-check
unexport PYTHONDONTWRITEBYTECODE
# What the tests of a file share is made once. Files with few tests that take long are not left for the end.
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
SITE := 'import site; print(site.getsitepackages()[0])'

.PHONY: demo test suite check unit nightly bench tools lint docs pages clean

demo: .venv/ready
	$(BIN)/ghostpoi demo -o demo

# Lint, types, imports, unit and integration tests (they build the documentation too).
test: .venv/ready
	$(MAKE) -j2 lint suite

suite: .venv/ready
	$(PYTEST)

# The fast tier: lint, types, imports and unit tests; under a minute.
check: .venv/ready
	$(MAKE) -j2 lint unit

unit: .venv/ready
	$(PYTEST) tests/unit

# What takes long: mutated inputs, kills at random moments, Dask clusters, browsers, the tools that exports are for, and
# many more examples of the invariants that `make test` tries with few.
nightly: .venv/ready tools
	$(PYTEST) tests/nightly
	$(PYTEST) -m hypothesis --hypothesis-profile thorough

# Speed, as ratios within one run; some minutes each. `make bench BENCH="scoring training"` runs some of them.
BENCH ?= prepare scoring training protect busy estimate scale trace
bench: .venv/ready
	set -e; for one in $(BENCH); do echo "== $$one"; $(BIN)/python -m benchmarks $$one; done

# The tools that exports are for, in environments of their own, which see .venv, too. Tests that need them are skipped
# without.
tools: .tools/recbole-skmob/ready .tools/datasets/ready .tools/packaging/ready

.tools/%/ready: tests/tools/%.txt .venv/ready
	$(BIN)/python -m venv --without-pip --clear .tools/$*
	$(BIN)/python -c $(SITE) > "$$(.tools/$*/bin/python -c $(SITE))/venv.pth"
	$(BIN)/pip --python .tools/$*/bin/python install -q --no-compile --disable-pip-version-check --no-deps -r $<
	@touch $@

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

# Fill the generated pages and blocks, then build the site in site/, offline.
docs: .venv/ready pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pages: .venv/ready
	$(BIN)/python docs/generate_reference.py
	$(BIN)/python -m docs.blocks

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ghostpoi needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv .venv
	$(PIP) torch
	$(PIP) -e '.[all,dev]'
	@touch $@

clean:
	rm -rf .venv .tools demo demo.private site build *.egg-info
