# Two environments: .venv has everything (LOTUS pins pandas 2 and numpy 1); .venv-pandas3 has pandas 3 and numpy 2, with the
# sources and no LOTUS. A stamp file stands for "installed", so that set-up is quick the second time.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
VENV3 := .venv-pandas3
BIN := $(VENV)/bin

# A worker for each core; whoever is done takes tests from another. Tests marked slow are not for every edit.
WORKERS := -n logical --maxprocesses 8 --dist worksteal

.PHONY: help setup setup-pandas3 demo check test lint test-pandas3 constraints clean

help:
	@echo "make demo    set up, then answer a question over the tables of examples/ (TAGFRAME_LM=model for a live model)"
	@echo "make check   set up, lint, and run the fast tests on pandas 2: in a minute or two, for everyday use"
	@echo "make test    set up, lint, and run every test, on pandas 2 with LOTUS and on pandas 3 without"
	@echo "make setup   the environment alone ($(VENV)); make lint: ruff and mypy"

setup: $(VENV)/.installed
setup-pandas3: $(VENV3)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] < (3, 11))' || { echo "tagframe needs Python 3.11 or later; set PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e ".[all,test,lint]"
	touch $@

$(VENV3)/.installed: pyproject.toml constraints-pandas3.txt
	"$(PYTHON)" -m venv $(VENV3)
	$(VENV3)/bin/pip install --quiet --upgrade pip
	$(VENV3)/bin/pip install --quiet -c constraints-pandas3.txt -e ".[dask,delta,offline,postgres,test]"
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint
	$(BIN)/python -m pytest -q $(WORKERS) -m "not slow"

test: lint test-pandas3
	$(BIN)/python -m pytest $(WORKERS)

test-pandas3: setup-pandas3
	$(VENV3)/bin/python -m pytest $(WORKERS)

constraints:
	rm -rf $(VENV) $(VENV3)
	"$(PYTHON)" -m venv $(VENV) && $(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet torch==2.13.0 && $(BIN)/pip install --quiet -e ".[all,test,lint]"
	(head -n 1 constraints.txt; $(BIN)/pip freeze --exclude-editable | sed 's/+cpu//') > constraints.new && mv constraints.new constraints.txt
	"$(PYTHON)" -m venv $(VENV3) && $(VENV3)/bin/pip install --quiet --upgrade pip
	$(VENV3)/bin/pip install --quiet torch==2.13.0 && $(VENV3)/bin/pip install --quiet -e ".[dask,delta,offline,postgres,test]"
	(head -n 1 constraints-pandas3.txt; $(VENV3)/bin/pip freeze --exclude-editable | sed 's/+cpu//') > constraints.new && mv constraints.new constraints-pandas3.txt

clean:
	rm -rf $(VENV) $(VENV3) .demo
