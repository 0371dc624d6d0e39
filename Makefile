# The project's only command surface: people and CI run the same targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
# The oldest Spark that pyhudi runs on; Delta Lake and Iceberg are measured on it too.
SPARK40_VENV := .venv-spark40
HUDI_VENV := .venv-hudi
CLASSES := $(VENV)/spark-classes.jsa
HUDI_PYSPARK := 3.5
SF ?= 1
ROWS ?= 20000000
FROM_SEED ?= 0
SEEDS ?= 100000
MINUTES ?= 30
PYTEST_ARGS ?=
# A process for each core, each of which takes whole modules; what comes after it in PYTEST_ARGS counts, as -n 0. In the
# order of their names the folders of small modules are the last. By default those of most tests come first: one of few
# tests that take minutes would be the last, beside an idle core.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
# The rules that `make check` asks for.
RULES := $(patsubst %,tests/unit/test_%.py,layers names_of_tests packaging language seams changelog)

BIN := $(VENV)/bin
# Spark's workers take python3 from the PATH unless they are told otherwise.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
# Spark comes as source: pip makes a wheel of its 400 MB, and takes as long to compress it as for all the rest.
export DIST_EXTRA_CONFIG := $(CURDIR)/.ci/wheels.cfg
# Most of what is installed is never imported; what is, Python compiles then.
PIP := -m pip --quiet --disable-pip-version-check install --no-compile
# Tests start hundreds of processes, each of which would compile it anew where the environment forbids to keep it.
export PYTHONDONTWRITEBYTECODE :=
# A lenient editable install hides the package from mypy and its source from Spark's workers.
EDITABLE := --config-settings editable_mode=strict --editable
# The package's folders are those at the root that hold Python packages.
FOLDERS := $(patsubst %/__init__.py,%,$(wildcard */__init__.py))

.PHONY: help install classes hudi-environment environments demo test test-core test-spark check test-spark40 test-slow test-long test-touched test-report report-pictures test-interop dist release bench bench-memory clean FORCE

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.linked ## Make .venv with the package (editable) and the development tools

demo: $(VENV)/.demo $(VENV)/.linked ## Write and read back the flights of 2013, step by step
	@$(BIN)/python examples/flights.py

# Side by side, as each half waits now and then. Of what a test repeats with other values this takes a third; CI, and
# each half by itself, takes all. README.md and CONTRIBUTING.md quote the time from here.
test: ## Run the tests, about ten minutes on two quiet cores, less the slow ones and those that need Apache Hudi
	@+PYHUDI_ONE_OF=3 $(MAKE) --no-print-directory -j2 test-core test-spark

test-core: install ## Of these, run those that need no Spark, in a process that cannot import it
	$(BIN)/python -m pytest $(PARALLEL) --spark=no $(RULES:%=--ignore=%) -m "not slow and not long and not interop and not browser" $(PYTEST_ARGS)

test-spark: install $(CLASSES) ## Of these, run the others
	$(BIN)/python -m pytest $(PARALLEL) --spark=only $(RULES:%=--ignore=%) -m "not slow and not long and not interop and not browser" $(PYTEST_ARGS)

check: install ## Lint, formatting, types, the rules of layers and language, the wheel's content
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p pyhudi
	$(BIN)/python -m pytest -q $(RULES)

test-spark40: install $(SPARK40_VENV)/.spark ## Run the tests of what differs on the oldest Spark, 4.0
	$(SPARK40_VENV)/bin/python -m pytest -m "oldest and not slow and not long" tests/unit/connector tests/spark $(PYTEST_ARGS)

test-slow: install $(CLASSES) ## Run the slow tests: long histories, kills, heartbeats, mistakes made on purpose
	$(BIN)/python -m pytest -m "slow and not interop" $(PYTEST_ARGS)

test-long: install $(CLASSES) ## Run writers side by side, by 100,000 seeds and as processes, kill streams, draw longer histories (FROM_SEED=0 SEEDS=100000 MINUTES=30)
	PYHUDI_FROM_SEED=$(FROM_SEED) PYHUDI_SEEDS=$(SEEDS) $(BIN)/python -m pytest -m long tests/contract/test_interleavings.py $(PYTEST_ARGS)
	PYHUDI_STORM_MINUTES=$(MINUTES) $(BIN)/python -m pytest -m long tests/faults/test_long_storms.py $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m long tests/contract tests/faults tests/spark --ignore=tests/contract/test_interleavings.py --ignore=tests/faults/test_long_storms.py $(PYTEST_ARGS)

# What a branch left is another branch, as a clone has it, or the one of that name where there is no other clone.
BASE ?= $(shell git rev-parse --quiet --verify --abbrev-ref origin/main || echo main)

test-touched: install ## Run all steps of the protocols that a change touches, once before it lands, and print the time (BASE=origin/main)
	PYTHONPATH=tests $(BIN)/python -m support.faults.touched $(BASE) -n auto --dist worksteal --spark=no -m steps tests/contract tests/faults $(PYTEST_ARGS)

test-report: install ## Open the pages of reports in a Chromium, if this machine has it
	$(BIN)/python -m pytest -m browser tests/browser $(PYTEST_ARGS)

report-pictures: install ## Make the pictures of docs/report.md, by a Chromium
	PYTHONPATH=tests $(BIN)/python docs/make_report_pictures.py

test-interop: install $(CLASSES) hudi-environment ## Run the tests against Apache Hudi's own Spark bundle and hudi-rs
	$(BIN)/python -m pytest -m interop $(PYTEST_ARGS)

dist: $(VENV)/.dist ## Build the source archive and the wheel, and try each in an environment of its own
	@DIST_EXTRA_CONFIG= .ci/dist $(BIN)/python

# The script needs Python and git alone; `make check` and `make dist`, which it runs, set up what they need.
release: ## Check, build, commit and tag a release, up to its upload (VERSION=0.2.0, DRY_RUN=1)
	@$(PYTHON) .ci/release.py $(VERSION) $(if $(DRY_RUN),--dry-run)

bench: $(VENV)/.bench $(VENV)/.linked $(SPARK40_VENV)/.spark $(HUDI_VENV)/.pyspark-$(HUDI_PYSPARK) ## Compare with other table formats and Parquet on TPC-H lineitem (SF=1)
	@$(BIN)/python benchmarks/run.py --scale $(SF)

bench-memory: install ## Measure one task's peak memory on a file group of ROWS rows
	@$(BIN)/python benchmarks/memory.py --rows $(ROWS)

clean: ## Remove everything that the other targets made
	rm -rf $(VENV) $(SPARK40_VENV) $(HUDI_VENV) .bench .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python $(SPARK40_VENV)/bin/python: %/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "pyhudi needs Python 3.10 or newer: make PYTHON=/path/to/python3")'
	$(PYTHON) -m venv $*

$(VENV)/.dependencies: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) 'setuptools>=77' $(EDITABLE) '.[dev]'
	@touch $@

# Its own Spark, and behind that all that the other environment has, the link to the package included. What pip finds
# there it does not install again, unless this Spark asks for another version.
$(SPARK40_VENV)/.spark: $(VENV)/.dependencies | $(VENV)/.linked $(SPARK40_VENV)/bin/python
	packages='import sysconfig; print(sysconfig.get_path("purelib"))' && \
	  echo "import site; site.addsitedir('$$($(BIN)/python -c "$$packages")')" \
	  > "$$($(SPARK40_VENV)/bin/python -c "$$packages")/shared.pth"
	$(SPARK40_VENV)/bin/python $(PIP) 'pyspark[connect]==4.0.*'
	@touch $@

# The link tree of a strict editable install holds the modules of the moment it was made: it is made anew, in a
# second or two, whenever a module was added or removed.
$(VENV)/.modules: FORCE | $(BIN)/python
	@new=$$(mktemp) && find $(wildcard *.py) $(FOLDERS) -name '*.py' | LC_ALL=C sort > $$new && \
	  if cmp -s $$new $@; then rm $$new; else mv $$new $@; fi

$(VENV)/.linked: $(VENV)/.dependencies $(VENV)/.modules
	$(BIN)/python $(PIP) --no-deps --no-build-isolation $(EDITABLE) .
	@touch $@

$(VENV)/.demo $(VENV)/.dist $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(VENV)/.dependencies
	$(BIN)/python $(PIP) $(EDITABLE) '.[$*]'
	@touch $@

# What Spark's Java loads; it is valid as long as Spark's jars are as they were.
$(CLASSES): $(VENV)/.dependencies | $(VENV)/.linked
	@rm -f $@
	JDK_JAVA_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' PYTHONPATH=tests \
	  $(BIN)/python -m support.archive_classes $(CURDIR)/$@ > $@.log 2>&1 || { cat $@.log; false; }

hudi-environment: $(HUDI_VENV)/.pyspark-$(HUDI_PYSPARK)

classes: $(CLASSES)

environments: $(VENV)/.linked classes $(SPARK40_VENV)/.spark hudi-environment

# The bundle we compare with is built for Spark 3.5, so Apache Hudi gets a Spark of its own; setuptools gives that Spark
# the distutils which Python 3.12 dropped.
$(HUDI_VENV)/.pyspark-$(HUDI_PYSPARK): | $(BIN)/python
	$(PYTHON) -m venv $(HUDI_VENV)
	$(HUDI_VENV)/bin/python $(PIP) 'pyspark==$(HUDI_PYSPARK).*' setuptools
	@touch $@
