# make demo   the LunarLander sweep, from the installation to its report
# make test   the tests without root, cluster, image or browser
# make test-all  all tests; those of torch after `make rl`      make lint   all linters
# make torture   the long forms of the fault tests, for hours: docs/evidence.md
# make venv   only the installation: .venv/bin/qdsweep, .venv/bin/snakemake
# make extras the engines ray and mpi, the sampling tpe, the tasks qdgym_*, Atari and TensorBoard
# make rl     torch and stable-baselines3, for ppo, a2c, dqn, impala, apex_dqn and dms: docs/rl.md
#             (before `make test`, which then tests them)
# make test-rl  after it, only the tests that the last `make test` has skipped
# make mutants  checks whether the tests detect changes of the modules that decide results
# make snapshots  renews the stored texts of the tests
# make docs   the documentation site, build/site/index.html, with executed tutorials
# make image  containers/qdsweep.sif, for `snakemake --sdm apptainer`
# make bench  all comparisons with other tools: docs/benchmarks.md
# make bench-search  searches compared with Ray Tune and Optuna: docs/searches.md
# make bench-learning  TD3's training compared with torch: docs/learning.md
# make bench-rl  PPO and A2C compared with stable-baselines3: docs/rl.md
# make published  the published tables, computed with any number of interruptions: docs/published.md

# The first suitable interpreter of this machine, or of uv; `make PYTHON=...` selects another.
SUITS := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.14 \
	"$$(uv python find --no-python-downloads '>=3.11,<3.15' 2>/dev/null)"; do \
	"$$python" -c '$(SUITS)' 2>/dev/null && echo "$$python" && exit; done)
BIN := .venv/bin
comma := ,
SKIPPED ?= build/skipped.txt
CORES ?= all
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
# Without an index pip prints that no version is found, as with a wrong Python.
export IS_INDEX_THERE := $(BIN)/python -m pip index versions immutables --retries 0 >/dev/null 2>&1 || \
	echo "no package index can be reached: connect this machine to a network, or name a proxy or an index: HTTPS_PROXY=... or PIP_INDEX_URL=... make $(MAKECMDGOALS)" >&2; exit 1
OR_SAY = || eval "$$IS_INDEX_THERE"

.NOTPARALLEL:  # two pips in one folder spoil each other's work
.PHONY: demo test test-all test-rl mutants snapshots torture lint lint-script docs venv extras rl figure screenshots schemas image bench bench-search bench-learning bench-rl published

venv: .venv/compiled

# `make demo` needs it only if Python may not keep the modules that it compiles at their import. A
# folder that several users share needs it, too. Some packages have files that do not compile.
.venv/compiled: .venv/installed
	@$(BIN)/python -W ignore -m compileall -qq -j 0 .venv/lib || true
	@touch $@

# After an interruption it starts from scratch, because pip takes a half-unpacked library for a whole
# one. Snakemake needs immutables, which has no wheel for Python 3.14. `true` in place of a compiler
# omits its optional part in C. setuptools installs this project.
.venv/installed: envs/requirements.lock envs/dev.lock pyproject.toml
	@"$(PYTHON)" -c '$(SUITS)' 2>/dev/null || { echo "qdsweep needs Python 3.11 to 3.14 with venv$(if $(PYTHON),$(comma) which $(PYTHON) is not): install one (Debian: apt-get install python3-venv; without root: uv python install 3.13), or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	"$(PYTHON)" -m venv $(if $(wildcard $@),,--clear) .venv
	@sed -n '/^immutables==/,/[^\\]$$/p' envs/requirements.lock > .venv/first.lock
	@sed -n '/^setuptools==/,/[^\\]$$/p' envs/dev.lock >> .venv/first.lock
	CC=true LDSHARED=true $(INSTALL) --no-deps -r .venv/first.lock $(OR_SAY)
	$(INSTALL) --no-deps --no-compile -r envs/requirements.lock $(OR_SAY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# The packages of linters and tests only.
.venv/dev: .venv/installed envs/dev.lock
	$(INSTALL) -r envs/dev.lock $(OR_SAY)
	@touch $@

# The lock of an extra has only its additions to requirements.lock.
LOCKS := envs/ray.lock envs/mpi.lock envs/search.lock envs/pybullet.lock envs/atari.lock \
	envs/tensorboard.lock
extras: .venv/extras

.venv/extras: .venv/installed $(LOCKS)
	$(INSTALL) --no-deps $(LOCKS:%=-r %) $(OR_SAY)
	@touch $@

rl: .venv/rl

.venv/rl: .venv/installed envs/rl.sh envs/rl.lock envs/cuda.lock
	envs/rl.sh $(INSTALL) $(OR_SAY)
	@touch $@

demo: $(if $(PYTHONDONTWRITEBYTECODE),.venv/compiled,.venv/installed)
	$(BIN)/snakemake --cores $(CORES)
	@echo "open results/sweeps/demo/report.html; \`$(BIN)/qdsweep status demo\` prints the state of every run"

# Three processes for two cores, because many tests wait for processes that they have started.
# Torch is not installed for tests. After `make rl`, the tests of ppo, a2c and others run, too.
test: .venv/dev extras
	$(BIN)/python -m pytest --numprocesses 3 --durations 10 -m "not rest"

test-all: .venv/dev extras .venv/docs
	$(BIN)/python -m pytest --numprocesses 3 --durations 25

# Long texts, such as the page of a report, are compared with tests/**/__snapshots__: look at the diff.
snapshots: .venv/dev extras
	$(BIN)/python -m pytest --numprocesses 2 --snapshot-update

test-rl: .venv/dev extras rl
	@[ -s $(SKIPPED) ] || { echo "no test was skipped: first \`make test\`" >&2; exit 1; }
	$(BIN)/python -m pytest --numprocesses 3 @$(SKIPPED)

# Some hundred small changes of each of these modules, and the tests of each: tests/mutants.py.
mutants: .venv/mutants
	$(BIN)/python tests/mutants.py

.venv/mutants: .venv/dev .venv/extras envs/mutants.lock
	$(INSTALL) --no-deps -r envs/mutants.lock $(OR_SAY)
	@touch $@

# The long forms of the tests of faults and trust, for hours: docs/evidence.md.
torture: .venv/dev extras
	QDSWEEP_TORTURE=1 $(BIN)/python -m pytest tests/faults tests/trust tests/container tests/install tests/workflow tests/slurm tests/features/export/test_complete.py --timeout 20000

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory lint-script; \
	else echo "not linted: the script of qdsweep explore, which needs npm"; fi

# The files of this script share one scope, so they are linted as the browser gets them.
lint-script: .venv/installed
	mkdir -p build
	$(BIN)/python -c "from qdsweep.features.explore.page import script; print(script())" > build/explore.js
	npm ci --silent --prefix .ci/javascript
	.ci/javascript/node_modules/.bin/biome lint --config-path=.ci/javascript/biome.json --error-on-warnings build/explore.js

# Warnings are errors: a broken link, a command that fails.
docs: .venv/docs
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --jobs auto --quiet docs build/site
	@echo "open build/site/index.html"

.venv/docs: .venv/extras envs/docs.lock
	$(INSTALL) --no-deps -r envs/docs.lock $(OR_SAY)
	@touch $@

# The image for `--sdm apptainer`: containers/build.sh --help.
image:
	containers/build.sh

# The README's figure, five seeds: about half an hour on two cores.
figure: venv
	$(BIN)/snakemake --cores $(CORES) --configfile config/sweeps/lander.yaml
	cp results/sweeps/lander/plots/overview.png docs/overview.png

# On an idle machine. It needs GNU parallel, Chromium, and a package index for Ray.
bench: .venv/dev extras rl
	$(BIN)/python benchmarks/bench.py

# Nearly an hour on two cores, and a package index for Ray and Optuna.
bench-search: extras
	$(BIN)/python benchmarks/searches.py

# Some minutes, and a package index for torch.
bench-learning: extras
	$(BIN)/python benchmarks/learning.py

# More than an hour, resumable.
bench-rl: rl
	$(BIN)/python benchmarks/rl.py

# About 14 hours of one core, resumable.
published: rl
	for table in sphere cma_mae dqd; do \
	$(BIN)/snakemake --cores $(CORES) --configfile config/sweeps/published_$$table.yaml || exit; done
	$(BIN)/python benchmarks/published.py results

# The pictures of docs/guide/explore.md: about ten minutes on two cores. It needs Chromium.
screenshots: .venv/dev
	$(BIN)/python docs/screenshots.py

# Files generated from the config models: schemas, config/README.md, docs/reference/.
schemas: venv
	$(BIN)/python docs/_ext/manual.py
