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

.PHONY: demo test check lint types layers tests matrix bench gpu-check gpu-deps clean

demo: $(READY)
	cd examples && ../$(BIN)/leakscope run train_with_history.py

test: check tests

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

# Every rule on its own program and on the repaired one.
matrix: $(READY)
	LEAKSCOPE_MATRIX=whole $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/seams/test_rule_matrix.py

# Figures for docs/cost.md and docs/accuracy.md, measured on this machine.
bench: $(READY)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[bench]'
	$(BIN)/python bench/judge_lab.py --series 400 --seed 6000 --markdown docs/accuracy.md
	$(BIN)/python bench/cost.py --markdown docs/cost.md
	$(BIN)/python bench/lines.py --markdown docs/lines-cost.md
	$(BIN)/python bench/pauses.py --markdown docs/pauses.md
	$(BIN)/python bench/fixes.py --markdown docs/fixing.md

# On a machine with a GPU, whose Python has PyTorch with CUDA, numpy and scipy. What else leakscope
# needs comes from a folder, for such a machine may have no network: `make gpu-deps` fills it here.
GPU_PYTHON ?= python3
GPU_DEPS ?= .gpu-deps
gpu-check:
	PYTHONPATH=$(CURDIR)/src:$(abspath $(GPU_DEPS)) PYTHONUNBUFFERED=1 $(GPU_PYTHON) bench/gpu_check.py $(GPU_CHECK)

gpu-deps:
	$(PYTHON) -m pip install --quiet --no-deps --target $(GPU_DEPS) --python-version 3.12 --only-binary=:all: \
		--platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
		msgspec rich markdown-it-py mdurl pygments libcst pyyaml memray jinja2 markupsafe

# torch first and pinned: with the CPU build installed nothing else pulls in another one.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -q src
	touch $@

clean:
	rm -rf $(VENV) $(GPU_DEPS) .leakscope examples/.leakscope
