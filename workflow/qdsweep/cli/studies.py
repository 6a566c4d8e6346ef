"""The commands of a study: init creates one, sweep runs a sweep without a Snakefile."""

import argparse
import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import Add
from qdsweep.config.files import HOME, find_preset, read_yaml
from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_baseline, has_avx2

if TYPE_CHECKING:
    from qdsweep.domains.proposal import Proposal

INIT = """\
examples:
  qdsweep init my_study              a sweep over an example of your own domain, with its test
  qdsweep init my_study --minimal    a sweep over a preset, without the example
  qdsweep init my_study --gym CartPole-v1   a task of gymnasium, with measures that differ between
                                            random policies; `module:Name-v0` for your own task
  cd my_study && snakemake --cores all
"""
SWEEP = """\
examples:
  qdsweep sweep                               config/config.yaml, on all cores, to its report
  qdsweep sweep my_sweep.yaml -n              the jobs that would be run
  qdsweep sweep published_cma_mae --cores 8   a sweep that comes with qdsweep
  qdsweep sweep my_sweep.yaml --profile profiles/slurm
Words after the file are options of Snakemake (`snakemake --help`). Results go to results/ in the
current folder.
"""
_PRESET = "experiment: lp_sphere          # a preset, a file, or the keys themselves\n"
_TASK = """\
experiment:
  domain: {}
  archive: {{dims: [30, 30]}}
  num_emitters: 5
  batch_size: 30
"""
_REEVALUATE = """\
# Evaluations of this task depend on their seed: each elite is evaluated again, and groups are
# ranked by these evaluations.
reevaluate: {times: 10}
"""
_NO_CACHES = shutil.ignore_patterns("__pycache__")
_CONFIG = "config/config.yaml"
_NAME = "my_study"  # in the templates
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-]")
_TEMPLATE = Path(__file__).parent / "study"
# Options of Snakemake that choose where jobs run.
_PLACES = ("-c", "--cores", "-j", "--jobs", "-e", "--executor", "--profile", "--workflow-profile")


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    init = add("init", "Create a study folder: config, example domain, Snakefile, profiles.", INIT)
    init.add_argument("folder", type=Path, metavar="FOLDER", help="a new folder, or an empty one")
    init.add_argument("--minimal", action="store_true", help="leave out the example domain")
    init.add_argument("--gym", metavar="ENV", help="sweep over this task of gymnasium")
    init.set_defaults(command=_init)
    # All options are Snakemake's.
    text = "Run a whole sweep (starts Snakemake)."
    usage = "qdsweep sweep [CONFIG] [WORD ...]"
    sweep = add("sweep", text, SWEEP, usage=usage, prefix_chars="\0", add_help=False)
    sweep.add_argument(
        "words",
        nargs="*",
        metavar="CONFIG WORD ...",
        help="a sweep file or a preset (default: config/config.yaml), then words for Snakemake",
    )
    sweep.set_defaults(command=partial(_sweep, sweep))


def _init(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"init {folder}: that is a file; name a new folder")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if set(there) - {".git", ".snakemake"}:
        raise BadInput(
            f"init {folder}: the folder is not empty ({', '.join(there[:5])}"
            f"{', ...' if len(there) > 5 else ''}); give a new or an empty one"
        )
    proposal = _proposal(arguments.gym) if arguments.gym else None
    for part in ("every", "minimal" if arguments.minimal or proposal else "example"):
        shutil.copytree(_TEMPLATE / part, folder, dirs_exist_ok=True, ignore=_NO_CACHES)
    name = _NOT_IN_NAMES.sub("_", folder.resolve().name).lstrip("_.-")[:100] or _NAME
    for file in (_CONFIG, "README.md", "Snakefile"):
        path = folder / file
        path.write_text(path.read_text(encoding="utf-8").replace(_NAME, name), encoding="utf-8")
    for profile in ("default", "slurm"):
        shutil.copytree(HOME / "profiles" / profile, folder / "profiles" / profile)
    if proposal is not None:
        preset = folder / f"config/domains/{proposal.name}.yaml"
        preset.parent.mkdir()
        preset.write_text(proposal.yaml, encoding="utf-8")
        config = folder / _CONFIG
        text = config.read_text(encoding="utf-8").replace(_PRESET, _TASK.format(proposal.name))
        text += _REEVALUATE if proposal.is_stochastic else ""
        config.write_text(text, encoding="utf-8")
        print(*proposal.lines, f"They are in {preset}. Check and change them there.", sep="\n")
    print(f"Created the study {folder}. Next:\n  cd {folder}\n  snakemake --cores all")
    print("Meanwhile, in another terminal of that folder:\n  qdsweep watch")
    print("`qdsweep status` prints the state of every run once.")
    return 0


def _proposal(env: str) -> "Proposal":
    apply_baseline("avx2" if has_avx2() else "native")  # before numpy is imported
    from qdsweep.domains.proposal import propose

    return propose(env)


def _sweep(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    words: list[str] = arguments.words
    if words in (["-h"], ["--help"]):
        parser.print_help()
        return 0
    chosen = []
    if words and not words[0].startswith("-"):
        file = find_preset("sweeps", words[0])
        read_yaml(file)  # Snakemake would not name a file that is not YAML
        chosen = ["--configfile", str(file)]
        words = words[1:]
    if not any(word.startswith(_PLACES) for word in words):
        words = ["--cores", "all", *words]
    program = [sys.executable, "-P", "-m", "snakemake", "--snakefile", str(HOME / "Snakefile")]
    return os.execv(sys.executable, [*program, *words, *chosen])
