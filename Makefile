# Every target sets up .venv by itself; `make demo` and `make test` are all a new user needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
# tests are independent of each other: a process per core, at most four, for each takes up to a gigabyte
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -gt 4 ] && echo 4 || echo $$n)
# tests start hundreds of processes: each of them would compile every source again
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo docs screenshots test test-quick check check-wheel check-install wheel golden fuzz mutants bench-compile bench-cpu bench-gpu bench-launch bench-fleet bench-tune bench-emulator bench-against format clean

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' || \
	  { echo "tilework needs Python 3.11 to 3.14; choose one with: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)  # one of another Python would keep its libraries
	$(PIP) install --quiet --no-compile -e ".[test,check,docs]"
	@touch $@

demo: $(STAMP)            ## compile the examples, run them, compare with NumPy
	$(BIN)/python -m examples.demo

docs: $(STAMP)            ## site/index.html: guides, tutorials and the reference; opens without a server
	$(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html"

screenshots: $(STAMP)     ## docs/pictures: those of the guides' pictures that show what is no more; needs Chromium
	$(BIN)/python -m docsite.screenshots

# products are small: threads would mostly wait for each other, awake
test test-quick: export OPENBLAS_NUM_THREADS := 1
test: $(STAMP)            ## all tests; no GPU needed
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests

test-quick: $(STAMP)      ## some of every folder, in a minute
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --quick tests

check: $(STAMP)           ## lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --threads $(JOBS)
	$(BIN)/pyright -p tests  # one thread: each would read all of tilework
	$(BIN)/python -m pytest -q tests/test_layers.py

wheel: $(STAMP)           ## dist/tilework-*.whl, dist/tilework_runtime-*.whl
	rm -rf build dist packages/runtime/build
	$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . ./packages/runtime

check-wheel: wheel        ## a bundle is served with the runtime's wheel; with the other the README's first example runs
	$(PYTHON) -m venv --clear --without-pip build/empty
	$(PIP) --python build/empty/bin/python install --quiet --no-compile dist/tilework_runtime-*.whl
	$(BIN)/python -m tests.installed_runtime build/empty
	$(PIP) --python build/empty/bin/python uninstall --quiet --yes tilework-runtime
	$(PIP) --python build/empty/bin/python install --quiet --no-compile dist/tilework-*.whl
	build/empty/bin/python tests/installed_example.py

check-install: $(STAMP)   ## the commands of all pages that install, each in a new environment
	$(BIN)/python -m tests.installation_page

# kernels are small: threads would mostly wait for each other
fuzz: export OPENBLAS_NUM_THREADS := 1
fuzz: $(STAMP)            ## generated kernels with fresh seeds on every device, MINUTES=10; failures become tests in fuzz-failures/ (ARGS="--only cuda")
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) $(ARGS)

golden: $(STAMP)          ## rewrite the expected TTIR and diagnostics; review the diff
	$(BIN)/python -m tests.golden.rewrite

bench-compile: $(STAMP)   ## compile times, beside Triton's when it is installed
	$(BIN)/python -m benchmarks.compile_time

bench-cpu: $(STAMP)       ## CPU kernels beside NumPy's and, where it is installed, torch's
	$(BIN)/python -m benchmarks.cpu

bench-launch: $(STAMP)    ## cost of a launch above the kernel's own work
	$(BIN)/python -m benchmarks.launch_overhead
	$(BIN)/python -m benchmarks.cuda_launch
	$(BIN)/python -m benchmarks.cpu_load
	$(BIN)/python -m benchmarks.cold_start
	$(BIN)/python -m benchmarks.bundle_start

bench-fleet: $(STAMP)     ## ranks that start together from empty caches, beside Triton where it is installed
	$(BIN)/python -m benchmarks.fleet $(ARGS)

bench-tune: $(STAMP)      ## how long tuning takes, beside Triton's where that can run
	$(BIN)/python -m benchmarks.tune
	$(BIN)/python -m benchmarks.tune_search

bench-gpu:                ## the table of GPU kernels, beside Triton and torch; needs torch, a GPU and no installation (ARGS="--rows matmul")
	@for python in $(BIN)/python $(PYTHON); do \
	  if $$python -c 'import torch' 2>/dev/null; then exec $$python -m benchmarks.gpu $(ARGS); fi; \
	done; echo "the table is measured with torch on an NVIDIA GPU, and there is no torch here" >&2; exit 1

bench-emulator: $(STAMP)  ## the PTX emulator: instructions and tensor-core tiles per second
	$(BIN)/python -m benchmarks.emulator

bench-against: $(STAMP)   ## has anything become slower? BASE=commit (ARGS="--only cpu launch")
	$(BIN)/python -m benchmarks.against $(or $(BASE),$(error which commit? make bench-against BASE=main)) $(ARGS)

mutants: $(STAMP)         ## plant mistakes, print those that no test notices; goes on where it stopped (ARGS="--sample 100 --rooms analysis")
	[ -d .mutants/reach ] || $(BIN)/python -m tests.mutants reach --jobs $(JOBS)
	$(BIN)/python -m tests.mutants run --jobs $(JOBS) $(ARGS)

format: $(STAMP)          ## as `make check` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mutants .pytest_cache .ruff_cache .hypothesis build dist site *.egg-info packages/runtime/build packages/runtime/*.egg-info
