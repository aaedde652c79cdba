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

.PHONY: demo test check lint types layers tests test-tf browser matrix matrix-tf pictures vendored bench bench-tf gpu-check gpu-deps clean

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

tests: $(READY) browser
	$(BIN)/python -m pytest -n 2 --dist worksteal -q tests/observe/heap  # whole heaps, without torch in them
	$(BIN)/python -m pytest -n 2 --dist worksteal -q --ignore tests/observe/heap

# The HTML report is tested in a real browser. Where none can be installed those tests are skipped,
# and say so.
browser:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver \
		|| echo "make: chromium could not be installed; the tests of the HTML report are skipped"; \
	else echo "make: no chromium and chromedriver, and no root or apt-get to install them;" \
		"the tests of the HTML report are skipped"; fi

# TensorFlow, Keras and JAX, in an environment of their own: torch is not in it. Where they cannot be
# installed (no wheels for this machine, no network) those tests are skipped, and make says so.
test-tf:
	@if $(MAKE) --no-print-directory $(READY_TF); then \
		$(BIN_TF)/python -m pytest -n 2 --dist worksteal -q tests/tf; \
	else echo "make: TensorFlow and JAX could not be installed; tests/tf is skipped"; fi

matrix-tf: $(READY_TF)
	LEAKSCOPE_MATRIX=whole $(BIN_TF)/python -m pytest -n 2 --dist worksteal -q tests/tf/test_tf_rules.py

bench-tf: $(READY_TF)
	$(BIN_TF)/python bench/cost_tf.py --markdown docs/cost-tf.md

# Every rule on its own program and on the repaired one.
matrix: $(READY)
	LEAKSCOPE_MATRIX=whole $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/seams/test_rule_matrix.py

# Figures for docs/cost.md and docs/accuracy-judge.md, measured on this machine.
bench: $(READY)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[bench]'
	$(BIN)/python bench/judge_lab.py --series 1000 --seed 8000 --markdown docs/accuracy-judge.md
	$(BIN)/python bench/zoo.py --markdown docs/accuracy-zoo.md
	$(BIN)/python bench/cost.py --markdown docs/cost.md
	$(BIN)/python bench/lines.py --markdown docs/lines-cost.md
	$(BIN)/python bench/walker.py --markdown docs/pauses.md
	$(BIN)/python bench/fixes.py --markdown docs/fixing.md
	$(BIN)/python bench/html_report.py --markdown docs/html-report.md

# The pictures of the documentation, from a real run.
pictures: $(READY) browser
	$(BIN)/python docs/make_pictures.py

# Files of other people that the repository carries: are they what vendor/lock.json says?
vendored: $(READY)
	$(BIN)/python vendor/revendor.py

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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,scale,ray]'
	$(BIN)/python -m compileall -q src
	touch $@

$(READY_TF): pyproject.toml constraints-tf.txt
	test -x $(BIN_TF)/python || $(PYTHON) -m venv $(VENV_TF)
	$(BIN_TF)/python -m pip install --quiet --disable-pip-version-check -c constraints-tf.txt -e '.[tf]'
	$(BIN_TF)/python -m compileall -q src
	touch $@

clean:
	rm -rf $(VENV) $(VENV_TF) $(GPU_DEPS) .leakscope examples/.leakscope
