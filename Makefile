# The one task runner: people, docs and .ci/run all call these targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Spark's driver and workers: our Java, and the workers with this environment's Python.
SPARK_ENV = JAVA_HOME="$$(scripts/find_java.sh)" PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python" PYSPARK_DRIVER_PYTHON="$(CURDIR)/$(BIN)/python"
# On a terminal pip shows what it does; in a log its lines would hide the others.
PIP = $(BIN)/python -m pip install $(if $(MAKE_TERMOUT),,--quiet) --disable-pip-version-check --constraint constraints.txt
PYTEST_ARGS ?=
QUERY_SECONDS ?= 300
ROUNDS ?= 15
SIZE ?= medium
NAME ?= kernels
LONG ?= 20
# One more than the cores that CI has: a process often waits for its JVM, for servers and for clocks.
PROCESSES ?= 3
# bash counts the seconds of its own life in SECONDS: only one from the command line is meant.
SECONDS_OF_SOAK = $(if $(filter command line environment%,$(origin SECONDS)),$(SECONDS),60)
FUZZ_SECONDS ?= $(SECONDS_OF_SOAK)

.PHONY: help setup demo demo-kafka test test-fast test-long test-runtime test-matrix test-examples interop comparison audit test-kill test-soak soak simulate test-concurrency test-rules test-queries lint format changelog wheel docs fuzz bench bench-all bench-check clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## Make .venv with pinned versions, install the package, compile kernels, find or install Java 17+
	@$(BIN)/python -m variantlake.kernels.compile

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV): Java"
	@scripts/find_java.sh --install >/dev/null
	@python="$(PYTHON)"; python="$${python:-$$(scripts/find_python.sh)}" && "$$python" -m venv $(VENV) \
	  || { echo "No virtual environment was made: Debian needs the package python3-venv for it." >&2; exit 1; }
	@$(PIP) --upgrade pip
	@echo "setting up $(VENV): $$(wc -l < constraints.txt) packages"
	@$(PIP) --group dev
	@echo "setting up $(VENV): this package; then its kernels, in half a minute"
	@VARIANTLAKE_PURE_PYTHON=1 $(PIP) --no-build-isolation --editable . # compiles nothing: below
	@touch $@

demo: setup ## The main job: ingest earthquakes into a shredded Delta table and query its paths
	@$(SPARK_ENV) $(BIN)/python examples/demo.py

demo-kafka: setup ## Events through a Kafka broker, which it starts, into a table
	@$(SPARK_ENV) $(BIN)/python examples/kafka.py

# Where no byte code is to be written, a hundred processes of the tests compile the package each.
test test-fast test-long: export PYTHONDONTWRITEBYTECODE :=

test: setup ## Run all tests (Spark and Delta Spark included), or T="tests/scan tests/test_docs.py::test_…"
	@$(if $(T),,scripts/find_chromium.sh --install >/dev/null || true) # without it tests say why they are skipped
	@$(SPARK_ENV) $(BIN)/python -m pytest $(if $(T),$(T),-n $(PROCESSES) --dist loadgroup --no-loadscope-reorder) $(PYTEST_ARGS)

test-fast: setup ## Run the tests that need no Spark
	@$(BIN)/python -m pytest -n 2 -m 'not spark' $(PYTEST_ARGS)

test-long: setup ## The random tests with LONG (20) times as many examples as `make test` has
	@VARIANTLAKE_EXAMPLES=$(LONG) $(SPARK_ENV) $(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup --no-loadscope-reorder \
	  $$(grep -lE '@given|[0-9]+ \* MORE' -r tests --include='test_*.py') $(PYTEST_ARGS)

test-runtime: setup ## Install the package into an environment without development dependencies, and use it
	@rm -rf .venv-runtime && $(BIN)/python -m venv .venv-runtime
	@.venv-runtime/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt .
	@folder=$$(mktemp -d) && .venv-runtime/bin/python -P tests/runtime_smoke.py "$$folder" && rm -rf "$$folder"

test-matrix: setup ## Use the wheel with each version of docs/support.md (ROWS="spark-4.1 …" for some)
	@$(BIN)/python -m tests.matrix $(ROWS)

interop: setup ## Let every engine read our tables and write in turn with us; docs/interop.md (ENGINES="polars …" for some)
	@$(SPARK_ENV) $(BIN)/python -m interop $(ENGINES)

comparison: setup ## Let every engine do each feature with our tables; the table of docs/comparison.md (ENGINES="polars …")
	@$(SPARK_ENV) $(BIN)/python -m interop.comparison $(ENGINES)

test-examples: setup ## Run examples/dbt, dbt_spark and airflow with the wheel, each in an environment of its own
	@$(SPARK_ENV) $(BIN)/python -m tests.examples

audit: setup ## Ask PyPI's advisories about all pinned versions; fails where it cannot be asked
	@$(BIN)/python -m venv .venv-audit && .venv-audit/bin/python -m pip install --quiet pip-audit
	@.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off --requirement constraints.txt \
	  2> .venv-audit/said; code=$$?; tail -n 1 .venv-audit/said >&2; [ $$code = 0 ] || { echo "Advisories are known above, or PyPI's advisory service did not answer for a package." >&2; exit 1; }

test-kill: setup ## Kill writers and upkeep at every moment around a storage call; print the counts
	@$(BIN)/python -m tests.delta.crashes
	@$(BIN)/python -m tests.maintenance.crashes
	@$(BIN)/python -m tests.autoloading.crashes
	@$(BIN)/python -m tests.spark.streaming.crashes
	@$(SPARK_ENV) $(BIN)/python -m tests.spark.streaming.kills --kills 3

test-soak: setup ## Autoloads, a compaction and a reader with random kills, for SECONDS (60)
	@$(BIN)/python -m tests.autoloading.soak --seconds $(SECONDS_OF_SOAK)

soak: setup ## Play a year of a job with simulated clocks (minutes); fails if a figure grows without bound
	@$(BIN)/python -m tests.year

simulate: setup ## Run seeds of the simulation for SECONDS (60), a process a core; SEED=N replays one
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seconds $(SECONDS_OF_SOAK) --processes $$(nproc) --first $${FIRST:-$$(date +%s)})

test-concurrency: setup ## Write one table from many processes, on disk and on S3; print the counts
	@$(BIN)/python -m tests.delta.writers
	@$(BIN)/python -m tests.delta.spark_race
	@$(BIN)/python -m tests.maintenance.races

test-rules: setup ## Remove each exactness rule from a copy, plant faults for the simulation: are they noticed?
	@$(BIN)/python -m tests.mutations
	@$(BIN)/python -m tests.simulation.planted
	@$(SPARK_ENV) $(BIN)/python -m tests.mutations --spark

test-queries: setup ## Random queries on random tables against Spark, for QUERY_SECONDS (300)
	@$(SPARK_ENV) $(BIN)/python -m tests.spark.random_queries --seconds $(QUERY_SECONDS)

lint: setup ## Check format, lint and types; warnings are errors
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

changelog: setup ## Put the fragments of changes/ into the newest section of CHANGELOG.md, and remove them
	@$(BIN)/towncrier build --yes --version "$$($(BIN)/python -c 'import variantlake; print(variantlake.__version__)')"

wheel: setup ## Build wheel and sdist into dist/; install, try and weigh the wheel in an empty environment
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/python -m tests.wheel dist

format: setup ## Format the code and apply safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

fuzz: setup ## Fuzz what reads bytes from outside, guided by branches, for SECONDS a target (60); TARGETS="json ddl …"
	@test -d .venv-fuzz || { $(BIN)/python -m venv .venv-fuzz && (cd $(VENV)/lib/python*/site-packages && pwd) > "$$(echo .venv-fuzz/lib/python*/site-packages)/variantlake.pth"; }
	@.venv-fuzz/bin/python -m pip install --quiet --disable-pip-version-check atheris==3.0.0 || echo "atheris does not install here: chance chooses" >&2
	@$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(TARGETS) $(if $(RECORD),--record $(RECORD)) \
	  $$(.venv-fuzz/bin/python -c 'import atheris' 2>/dev/null && echo --python .venv-fuzz/bin/python)

docs: setup .venv-docs/.ready ## Write docs/cli.md anew from the commands; build the site in site/, strictly
	@$(BIN)/python -m variantlake.cli.reference > docs/cli.md
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet && echo "open site/index.html" || exit 1

.venv-docs/.ready: pyproject.toml constraints.txt | $(VENV)/.ready
	@$(BIN)/python -m venv --without-pip .venv-docs
	@$(BIN)/python -m pip --python .venv-docs/bin/python install --quiet --disable-pip-version-check --constraint constraints.txt --group docs
	@touch $@

bench-all: setup ## All benchmarks of a SIZE (small, medium, large), or ONLY some; write docs/performance.md and its pictures
	@$(SPARK_ENV) $(BIN)/python -m benchmarks --size $(SIZE) $(if $(ONLY),--only $(ONLY)) $(if $(PAGES),--pages)

bench: setup ## One benchmark: NAME=kernels, streams, planning … (benchmarks/), with ARGS
	@grep -qs '__main__' benchmarks/$(NAME).py || { echo "no benchmark is called $(NAME): there are" \
	  $$(grep -l '__main__"' benchmarks/*.py | xargs -n1 basename -s .py | grep -v -e __ -e worker) >&2; exit 2; }
	@$(SPARK_ENV) $(BIN)/python -m benchmarks.$(NAME) $(ARGS)

bench-check: setup ## Compare HEAD with its parent (BASE=REVISION) in turns: what became slower than the noise?
	@$(BIN)/python -m benchmarks.check $(if $(BASE),--base $(BASE)) --rounds $(ROUNDS)

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .venv-runtime .venv-audit .venv-fuzz .work/matrix .work/examples .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist spark-warehouse
