# make demo   the LunarLander sweep, from nothing to its report
# make test   all tests          make lint   all linters
# make venv   the set-up alone: .venv/bin/qdsweep, .venv/bin/snakemake
# make extras what the engines ray and mpi, the sampling tpe, the tasks qdgym_* and Atari need besides
# make rl     torch and stable-baselines3, for ppo, a2c, dqn, impala and apex_dqn: docs/rl.md
# make test-rl  their tests alone
# make docs   the documentation site, build/site/index.html: its tutorials are executed
# make image  containers/qdsweep.sif, for `snakemake --sdm apptainer`
# make bench  all that is compared with a peer: docs/benchmarks.md
# make bench-search  searches beside Ray Tune's and Optuna's: docs/searches.md
# make bench-learning  TD3's training beside torch's: docs/learning.md
# make bench-rl  PPO and A2C beside stable-baselines3's: docs/rl.md
PYTHON ?= python3
BIN := .venv/bin
CORES ?= all

.PHONY: demo test test-rl torture lint docs venv extras rl figure schemas image bench bench-search bench-learning bench-rl

venv: .venv/installed

.venv/installed: envs/requirements.lock envs/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed, this is %d.%d; give PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r envs/requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r envs/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# An extra's lock has what it adds to requirements.lock.
LOCKS := envs/ray.lock envs/mpi.lock envs/search.lock envs/pybullet.lock envs/atari.lock
extras: .venv/extras

.venv/extras: .venv/installed $(LOCKS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes $(LOCKS:%=-r %)
	@touch $@

# A lock of its own: torch is large, and what pip finds must be a build for CPUs.
rl: .venv/rl

.venv/rl: .venv/installed envs/rl.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r envs/rl.lock
	@$(BIN)/python -c "import torch" || { echo "this torch needs a GPU's libraries: let pip find a build for CPUs (docs/rl.md)"; exit 1; }
	@touch $@

demo: venv
	$(BIN)/snakemake --cores $(CORES)
	@echo "open results/sweeps/demo/report.html"

# Three processes for two cores: the one with the cluster waits most of the time.
test: extras .venv/docs
	@$(MAKE) --no-print-directory rl || echo "no torch for CPUs is to be had here: the tests of ppo, a2c and the like are skipped"
	$(BIN)/python -m pytest --numprocesses 3 --durations 25

test-rl: extras rl
	$(BIN)/python -m pytest tests/unit/algorithms/rl

# The long forms of the tests of faults and trust, for hours: docs/reliability.md.
torture: extras
	QDSWEEP_TORTURE=1 $(BIN)/python -m pytest tests/faults tests/trust tests/container tests/slurm/test_image.py tests/slurm/test_kills.py tests/slurm/test_goodput.py --timeout 20000

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

# Warnings are errors: a link that leads nowhere, a command that fails.
docs: .venv/docs
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --jobs auto --quiet docs build/site
	@echo "open build/site/index.html"

.venv/docs: .venv/extras envs/docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r envs/docs.lock
	@touch $@

# The image that `--sdm apptainer` takes: containers/build.sh --help.
image:
	containers/build.sh

# The README's figure, five seeds: about half an hour on two cores.
figure: venv
	$(BIN)/snakemake --cores $(CORES) --configfile config/sweeps/lander.yaml
	cp results/sweeps/lander/plots/overview.png docs/overview.png

# On a machine that does nothing else; it needs GNU parallel, and a package index for Ray.
bench: extras
	$(BIN)/python benchmarks/bench.py

# Nearly an hour on two cores, and a package index for Ray and Optuna.
bench-search: extras
	$(BIN)/python benchmarks/searches.py

# Some minutes, and a package index for torch.
bench-learning: extras
	$(BIN)/python benchmarks/learning.py

# An hour and more, resumable.
bench-rl: rl
	$(BIN)/python benchmarks/rl.py

# What is generated from the config models: schemas and config/README.md.
schemas: venv
	$(BIN)/python -m qdsweep.cli.manual
