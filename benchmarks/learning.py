"""What PGA-ME's learning costs beside torch's, and whether it hides behind the evaluation.

    python benchmarks/learning.py [--repeats 5] [--environment DIR] [--domain DOMAIN]

An iteration at DQD-RL's sizes is 300 critic steps and 49 variations of 10 steps, with batches of
256. Ours and torch's take turns in one process, one thread each; the figures are CPU seconds, so
that a busy machine matters little. torch is installed into DIR, or into a temporary folder. Then
ten iterations on a domain with one measure (qdgym_hopper) are run with one worker and with two:
where training is hidden, two take half of the time.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from figures import figure
from peers import install

from qdsweep.host.cpu import apply_baseline

apply_baseline("avx2")

HERE = Path(__file__).resolve().parent
PACKAGES = ("torch==2.13.0",)
EXPERIMENT = {
    "algorithm": "pga_me",
    "archive": {"dims": [1000]},
    "num_emitters": 1,
    "batch_size": 100,
    "iterations": 10,
}


def cost(python: Path, repeats: int) -> None:
    """CPU seconds of an iteration, ours and torch's."""
    words = [python, HERE / "td3_torch.py", "--time", str(repeats)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    times = json.loads(done.stdout.splitlines()[-1])
    medians = {
        name: {part: statistics.median(seconds) for part, seconds in parts.items()}
        for name, parts in times.items()
    }
    ours, torch = medians["ours"], medians["torch"]
    figure(
        "PGA-ME, learning of an iteration",
        "torch with fused Adam",
        sum(ours.values()) / sum(torch.values()),
        "<= 0.7",
        detail=", ".join(
            f"{part} {ours[part]:.2f} s against {torch[part]:.2f} s of CPU time" for part in ours
        ),
    )


def hidden(domain: str) -> None:
    """Wall seconds of a run with one worker, and with two."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "experiment.yaml")
        file.write_text(yaml.safe_dump({"domain": domain, **EXPERIMENT}))
        for workers in (1, 2):
            out = f"{folder}/{workers}"
            words = [sys.executable, "-m", "qdsweep", "run", str(file), "--out", out]
            words += ["--workers", str(workers)]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            found[workers] = json.loads(Path(out, "summary.json").read_text())
    assert found[1]["archive_digest"] == found[2]["archive_digest"]
    seconds = {workers: summary["timings"]["total"] for workers, summary in found.items()}
    figure(
        f"PGA-ME on {domain}, wall time of 2 workers",
        "half of 1 worker's",
        2 * seconds[2] / seconds[1],
        "<= 1.15",
        limit="1",
        detail=f"{seconds[2]:.1f} s against half of {seconds[1]:.1f} s",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--environment", type=Path, help="kept for the next time")
    parser.add_argument("--domain", default="qdgym_hopper", help="a preset with one measure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = install((arguments.environment or Path(folder)).absolute(), PACKAGES)
        cost(python, arguments.repeats)
    hidden(arguments.domain)


if __name__ == "__main__":
    main()
