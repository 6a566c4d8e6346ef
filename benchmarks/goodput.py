"""Goodput: what a fixed schedule of kills costs, against the same sweep undisturbed.

Runs a sweep of 4 lunar-lander runs twice: undisturbed, and with 2 SIGKILLs and 2 stops for wall
time, each started again at once. Prints useful evaluation seconds over allocated
core-seconds for both, their ratio, the work lost a kill, and the seconds from a restart to its
first new evaluation.

    python benchmarks/goodput.py [--iterations 150] [--cores 2]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BIN = Path(sys.executable).parent
# Run -> what happens to it, at these shares of its undisturbed time.
SCHEDULE = {1: ("kill", 0.3), 2: ("kill", 0.7), 3: ("wall time", 0.4), 4: ("wall time", 0.6)}


def start(out: Path, seed: int, iterations: int, *more: str) -> subprocess.Popen[bytes]:
    settings = [f"seed={seed}", f"iterations={iterations}", "algorithm=map_elites"]
    words = [word for setting in settings for word in ("--set", setting)]
    return subprocess.Popen(
        [BIN / "qdsweep", "run", "lunar_lander", *words, "--out", out, *more],
        stderr=subprocess.DEVNULL,
    )


def read(out: Path, name: str) -> dict:
    return json.loads((out / "state" / name).read_text())


def reload_files(out: Path) -> list[Path]:
    return list((out / "state").glob("reload-*.pkl"))


def last_iteration(out: Path) -> int:
    return len((out / "state/metrics.csv").read_text().splitlines()) - 1


def undisturbed(folder: Path, seed: int, iterations: int) -> tuple[float, float, str]:
    """Evaluation seconds, allocated seconds, digest."""
    out = folder / f"straight-{seed}"
    begin = time.monotonic()
    assert start(out, seed, iterations).wait() == 0
    allocated = time.monotonic() - begin
    summary = read(out, "summary.json")
    return summary["timings"]["evaluate"], allocated, summary["archive_digest"]


def disturbed(
    folder: Path, seed: int, iterations: int, expected: float
) -> tuple[float, float, str, float | None, float]:
    """The same, with the seconds since the last save (kills only) and of the restart."""
    how, share = SCHEDULE[seed]
    out = folder / f"disturbed-{seed}"
    begin = time.monotonic()
    lost = None
    if how == "kill":
        process = start(out, seed, iterations)
        time.sleep(share * expected)
        process.kill()
        process.wait()
        lost = time.time() - max(path.stat().st_mtime for path in reload_files(out))
    else:
        assert start(out, seed, iterations, "--max-seconds", str(share * expected)).wait() == 75
    saved = max(
        json.loads(path.read_bytes().split(b"\n", 2)[1])["iteration"] for path in reload_files(out)
    )
    again = time.monotonic()
    process = start(out, seed, iterations)
    while last_iteration(out) <= saved and process.poll() is None:
        time.sleep(0.02)
    restart = time.monotonic() - again
    assert process.wait() == 0
    summary = read(out, "summary.json")
    allocated = time.monotonic() - begin
    return summary["timings"]["evaluate"], allocated, summary["archive_digest"], lost, restart


def main() -> None:
    """Runs both sweeps, as many runs at once as there are cores, and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=150, help="of each run (150: a minute)")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.cores) as pool:
        folder, count = Path(name), options.iterations
        straight = list(pool.map(lambda seed: undisturbed(folder, seed, count), SCHEDULE))
        expected = [allocated for _, allocated, _ in straight]
        broken = list(
            pool.map(
                lambda seed, seconds: disturbed(folder, seed, count, seconds), SCHEDULE, expected
            )
        )
    for seed, (_, before, digest), (_, after, digest_too, _, _) in zip(
        SCHEDULE, straight, broken, strict=True
    ):
        assert digest == digest_too, "a fault changed the result"
        fault = "{} at {:.0%}".format(*SCHEDULE[seed])
        print(f"seed {seed}, {fault}: {before:.1f} s undisturbed, {after:.1f} s disturbed")
    useful = sum(evaluating for evaluating, _, _ in straight)
    undisturbed_seconds = sum(expected)
    disturbed_seconds = sum(run[1] for run in broken)
    lost = [run[3] for run in broken if run[3] is not None]
    restarts = [run[4] for run in broken]
    print(f"goodput undisturbed       {useful / undisturbed_seconds:.3f}")
    print(f"goodput with 4 faults     {useful / disturbed_seconds:.3f}")
    print(f"ratio                     {undisturbed_seconds / disturbed_seconds:.3f} (>= 0.90)")
    print(f"work lost a kill [s]      median {statistics.median(lost):.2f}, worst {max(lost):.2f}")
    print(f"restart to first new iteration [s]  median {statistics.median(restarts):.2f}")


if __name__ == "__main__":
    main()
