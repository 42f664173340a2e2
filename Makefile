# From a fresh checkout with Python 3.11+ and nothing else: every target first makes what it needs, once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help demo test nightly lint bench faults properties programs mutants docs jars servers java mariadb chromium venv clean

VENV := .venv
PYTHON := $(VENV)/bin/python
# One stamp per set of requirements: with the stamp there, nothing is asked of anybody.
INSTALLED := $(VENV)/installed-$(shell cat pyproject.toml airflow_cdc_provider/sandbox/pyproject.toml constraints.txt | sha256sum | cut -c1-16)
# Spark's scripts look for python and java by name. Where the environment forbids Python to cache its bytecode, each of
# hundreds of processes compiles all its imports.
READY = export PATH="$(CURDIR)/$(VENV)/bin:$$PATH" JAVA_HOME="$$($(PYTHON) -m airflow_cdc_provider.java)" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=
# A program by its Debian package, where this user may install packages.
define apt_install
if [ "$$(id -u)" = 0 ] && ! command -v $(1) > /dev/null && command -v apt-get > /dev/null; then
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) < /dev/null > /dev/null
fi
endef
FAILPOINTS = export PYTHONPATH="$(CURDIR)/tests/failpoints"

help:
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile

demo: java  ## a shop database, copied and kept exact; KEEP=1 leaves Airflow's pages up
	@$(READY)
	KEEP="$(KEEP)" exec $(PYTHON) -m airflow_cdc_provider.sandbox.demo

test: lint servers mariadb chromium  ## lint, then every layer of tests, with the same seeds each time; LAYERS="core spark" for some
	@$(READY)
	exec $(PYTHON) -m tests.run_layers $(LAYERS)

nightly: lint servers mariadb chromium  ## every test and fault, new seeds, long rounds; LAYERS="core spark" for some, SEED
	@$(READY)
	export CDC_SEED="$(or $(SEED),$(shell date +%s))"
	$(PYTHON) -m tests.run_layers --nightly $(LAYERS) && layers=0 || layers=1
	if [ -z "$(LAYERS)" ]; then $(FAILPOINTS); $(PYTHON) -m tests.faults; fi
	exit $$layers

lint: $(INSTALLED)  ## style, types, import rules
	@export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
	set -x
	ruff check .
	ruff format --check .
	mypy
	lint-imports

bench: servers  ## the figures of docs, measured on this machine; FULL=1, PEERS=1 beside other tools, ONLY="sections"
	@$(READY)
	$(FAILPOINTS)
	exec $(PYTHON) -m tests.bench $(ONLY)

faults: servers mariadb  ## every case of the fault matrix, each followed by the checker; ROUNDS, ONLY="words", SEED; writes docs/fault-report.md
	@$(READY)
	$(FAILPOINTS)
	ROUNDS="$(ROUNDS)" ONLY="$(ONLY)" CDC_SEED="$(SEED)" exec $(PYTHON) -m tests.faults

properties: jars  ## N random histories (50,000) against the reference model; writes docs/properties-report.md
	@$(READY)
	N="$(N)" exec $(PYTHON) -m tests.properties

programs: servers mariadb  ## N random programs of a replicator's life (300), held against a model; SEED, FEATURES
	@$(READY)
	$(FAILPOINTS)
	CDC_SEED="$(SEED)" FEATURES="$(FEATURES)" exec $(PYTHON) -m tests.programs $(or $(N),300)

mutants: servers  ## small code changes, one at a time: a test must detect each; ONLY="words" for some
	@$(READY)
	ONLY="$(ONLY)" exec $(PYTHON) -m tests.mutants

docs: $(INSTALLED)  ## the generated pages
	@exec $(PYTHON) -m airflow_cdc_provider.reference --write

venv: $(INSTALLED)  ## the Python environment

clean:  ## removes the environment and what tools left; the jar cache stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

jars: java
	@$(PYTHON) -m airflow_cdc_provider.jars > /dev/null
	$(PYTHON) -m airflow_cdc_provider.appcds delta

# What tests start beside Spark: brokers, connectors, earlier versions of PostgreSQL, stand-ins for warehouses.
servers: jars
	@$(PYTHON) -m airflow_cdc_provider.sandbox.jars > /dev/null
	$(PYTHON) -m airflow_cdc_provider.sandbox.environments > /dev/null
	$(PYTHON) -m airflow_cdc_provider.sandbox.archives > /dev/null

# A server to test against. Without it, and without the right to install it, its tests are skipped.
mariadb:
	@$(call apt_install,mariadbd,mariadb-server)

# A browser for the page. Without it, and without the right to install it, its test is skipped.
chromium:
	@$(call apt_install,chromium,chromium)

java: $(INSTALLED)
	@if $(PYTHON) -m airflow_cdc_provider.java > /dev/null 2>&1; then exit; fi
	if [ "$$(id -u)" = 0 ] && [ -z "$${JAVA_HOME:-}" ] && command -v apt-get > /dev/null; then
		apt-get update -qq
		# Debian 13 has no 17 any more.
		for version in 17 21; do
			if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
				openjdk-$$version-jre-headless < /dev/null > /dev/null; then break; fi
		done
	fi
	$(PYTHON) -m airflow_cdc_provider.java > /dev/null

$(INSTALLED):
	@rm -f $(VENV)/installed-*
	for python in python3 python3.13 python3.12 python3.11 none; do
		if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2> /dev/null; then break; fi
	done
	if [ "$$python" = none ]; then
		echo 'No Python 3.11, 3.12 or 3.13 here. On Debian 12 or later: apt-get install python3 python3-venv' >&2
		exit 1
	fi
	if ! uv="$$(command -v uv)"; then
		if ! "$$python" -c 'import ensurepip' 2> /dev/null; then
			if [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
				echo 'This Python cannot make environments. Type: sudo apt-get install python3-venv' >&2
				exit 1
			fi
			apt-get update -qq
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv < /dev/null > /dev/null
		fi
		"$$python" -m venv $(VENV)
		$(PYTHON) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
		uv=$(VENV)/bin/uv
	fi
	"$$uv" venv --quiet --allow-existing --python "$$(command -v "$$python")" $(VENV)
	# What is pinned and at hand is not fetched and built again: Spark alone takes 1.4 GB of the cache each time.
	install=("$$uv" pip install --quiet --python $(PYTHON) --constraint constraints.txt --editable '.[all,sandbox,dev]')
	"$${install[@]}" --offline 2> /dev/null || "$${install[@]}"
	touch $@
