"""Each feature is optional: without its folder, the rest works, and what asks for it is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import REPO, TINY

FEATURES = sorted(path.parent.name for path in REPO.glob("workflow/qdsweep/features/*/__init__.py"))
# Feature -> what asks for it: the words of a command, or keys of a sweep file.
ASKED = {
    "atari": {"experiment": "atari_breakout"},
    "audit": ["audit"],
    "compare": ["compare", "a", "b"],
    "explore": ["explore"],
    "export": ["export"],
    "ga": {"experiment": {**TINY, "algorithm": "ga"}},
    "image": ["--image", "x.sif", "status"],
    "imported": {"imported": ["theirs.yaml"]},
    "learning": {"experiment": {**TINY, "algorithm": "pga_me"}},
    "live": ["watch"],
    "noise": {"experiment": {**TINY, "resampling": {"type": "fixed", "times": 2}}},
    "published": {
        "published": [{"where": {}, "metric": "coverage", "mean": 1, "source": "a paper"}]
    },
    "rl": {"experiment": {**TINY, "algorithm": "ppo"}},
    "rollouts": {"rollouts": {}},
    "scale": ["scale", "arm", "--workers", "1", "--out", "scaling"],
}


def copied(folder: Path, without: list[str]) -> dict[str, str]:
    """Copies the package without some features; returns the environment that uses the copy."""
    for part in ("config", "workflow"):
        subprocess.run(["cp", "-a", REPO / part, folder], check=True)
    for feature in without:
        subprocess.run(["rm", "-r", folder / "workflow/qdsweep/features" / feature], check=True)
    return {**os.environ, "PYTHONPATH": str(folder / "workflow")}


def refusal(asked: list[str] | dict[str, object], folder: Path, env: dict[str, str]) -> str:
    """Asks for a feature; returns what is printed."""
    words = asked
    if isinstance(asked, dict):
        sweep = {"name": "asks", "experiment": TINY, "sweep": "::: seed 1", **asked}
        (folder / "asks.yaml").write_text(yaml.safe_dump(sweep))
        words = ["plan", "asks.yaml"]
    command = [sys.executable, "-P", "-m", "qdsweep", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.mark.parametrize("without", [FEATURES, *([name] for name in FEATURES)], ids="-".join)
def test_without_a_feature_the_rest_works(without: list[str], tmp_path: Path):
    env = copied(tmp_path, without)
    sweep = {"name": "tiny", "experiment": TINY, "sweep": "::: seed 1 2"}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(sweep))
    words = ["-m", "snakemake", "--snakefile", "workflow/Snakefile", "--cores", "2"]
    command = [sys.executable, *words, "--configfile", "tiny.yaml"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "results/sweeps/tiny/report.html").is_file()
    for feature in without:
        message = refusal(ASKED[feature], tmp_path, env)
        assert "not installed" in message, message
        assert len(message.strip().splitlines()) <= 2, message  # a command has its usage above


def test_every_feature_is_asked_for_above():
    assert list(ASKED) == FEATURES
