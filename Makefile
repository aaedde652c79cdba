# On a fresh machine with Python 3.11 two commands do everything:
#   make demo   set up, then watch a program that leaks and read the verdict
#   make test   set up, then every check
PYTHON ?= python3.11
ifeq ($(shell command -v $(PYTHON) 2>/dev/null),)
PYTHON := python3
endif
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VENV_TF := .venv-tf
BIN_TF := $(VENV_TF)/bin
READY_TF := $(VENV_TF)/.ready

.PHONY: demo test check lint types layers tests test-tf matrix matrix-tf bench bench-tf clean

demo: $(READY)
	cd examples && ../$(BIN)/leakscope run train_with_history.py

test: check tests test-tf

check: lint types layers

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

tests: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

# TensorFlow, Keras and JAX, in an environment of their own: torch is not in it.
test-tf: $(READY_TF)
	$(BIN_TF)/python -m pytest -n 2 --dist worksteal -q tests/tf

matrix-tf: $(READY_TF)
	LEAKSCOPE_MATRIX=whole $(BIN_TF)/python -m pytest -n 2 --dist worksteal -q tests/tf/test_tf_rules.py

bench-tf: $(READY_TF)
	$(BIN_TF)/python bench/cost_tf.py --markdown docs/cost-tf.md

# Every rule on its own program and on the repaired one.
matrix: $(READY)
	LEAKSCOPE_MATRIX=whole $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/seams/test_rule_matrix.py

# Figures for docs/cost.md and docs/accuracy.md, measured on this machine.
bench: $(READY)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[bench]'
	$(BIN)/python bench/judge_lab.py --series 400 --seed 6000 --markdown docs/accuracy.md
	$(BIN)/python bench/cost.py --markdown docs/cost.md
	$(BIN)/python bench/pauses.py --markdown docs/pauses.md
	$(BIN)/python bench/fixes.py --markdown docs/fixing.md

# torch first and pinned: with the CPU build installed nothing else pulls in another one.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -q src
	touch $@

$(READY_TF): pyproject.toml constraints-tf.txt
	test -x $(BIN_TF)/python || $(PYTHON) -m venv $(VENV_TF)
	$(BIN_TF)/python -m pip install --quiet --disable-pip-version-check -c constraints-tf.txt -e '.[tf]'
	$(BIN_TF)/python -m compileall -q src
	touch $@

clean:
	rm -rf $(VENV) $(VENV_TF) .leakscope examples/.leakscope
