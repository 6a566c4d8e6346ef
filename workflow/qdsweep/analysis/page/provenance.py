"""What the runs of a sweep were made with: versions, machines without names, one digest."""

import hashlib
import platform
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from qdsweep.analysis.page.references import cite
from qdsweep.analysis.page.words import core_time
from qdsweep.analysis.text import listed, plural
from qdsweep.versions import installed_versions

# Distribution -> its name in a paper and what to cite for it, if the domain does not cite it.
_LIBRARIES = {
    "ribs": ("pyribs", ["tjanaka2023pyribs"]),
    "dask": ("Dask", ["rocklin2015dask"]),
    "gymnasium": ("Gymnasium", []),
    "box2d": ("Box2D", []),
    "mujoco": ("MuJoCo", []),
    "pybullet": ("PyBullet", []),
    "ale-py": ("the Arcade Learning Environment", []),
    "numpy": ("NumPy", []),
    "scipy": ("SciPy", []),
    "python": ("Python", []),
}


def sweep_digest(summaries: Iterable[dict[str, Any]]) -> str:
    """Returns the SHA-256 over the sorted ids and archive digests: equal for equal results."""
    lines = sorted(f"{one['id']} {one.get('archive_digest')}\n" for one in summaries)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def software(summaries: list[dict[str, Any]], libraries: set[str]) -> str:
    """Returns a sentence on the versions of what runs used; `libraries`: those of the domains."""
    versions: dict[str, list[str]] = {}
    for summary in summaries:
        for name, version in summary.get("versions", {}).items():
            if version not in versions.setdefault(name, []):
                versions[name].append(version)
    unused = {"gymnasium", "box2d", "mujoco", "pybullet", "ale-py"} - libraries
    if "dask" not in {summary.get("engine") for summary in summaries}:
        unused.add("dask")
    used = [
        f"{title} {listed(versions[name])}{cite(sources)}"
        for name, (title, sources) in _LIBRARIES.items()
        if name in versions and name not in unused
    ]
    own = listed(versions.get("qdsweep", ["of an unknown version"]))
    workflow = " ".join(["Snakemake", *installed_versions(["snakemake"]).values()])
    return (
        f"Runs were made by qdsweep {own} under {workflow}{cite(['moelder2021sustainable'])}"
        f" with {listed(used)}."
    )


def core_seconds(summary: dict[str, Any]) -> float:
    """Returns what a run took."""
    return float(summary.get("timings", {}).get("total", 0.0)) * int(summary.get("workers") or 1)


def hardware(
    summaries: list[dict[str, Any]], core_seconds: float, further: Mapping[str, float]
) -> str:
    """Returns a sentence on where the runs were computed, without any name of a machine.

    `further`: what was computed beside the sweep's own runs -> the core-seconds that it took.
    """
    hosts = {attempt["host"] for one in summaries for attempt in one.get("attempts", [])}
    workers = sorted({int(one.get("workers") or 1) for one in summaries})
    noun = "process" if workers == [1] else "processes"
    text = f"Each run had {listed([str(n) for n in workers], 'or')} worker {noun};"
    text += f" all together took {core_time(core_seconds + sum(further.values()))}"
    parts = [f"{core_time(spent)} of it for {what}" for what, spent in further.items() if spent]
    if parts:
        text += f" ({listed(parts)})"
    if hosts:
        text += f" on {plural(len(hosts), 'machine')}"
    if hosts == {socket.gethostname()}:
        text += f" ({_processor()})"
    if {one.get("cpu_baseline") for one in summaries} == {"avx2"}:
        text += ", with no instructions beyond AVX2"
    return f"{text}."


def _processor() -> str:
    """Returns the processor of this machine and its memory."""
    import psutil

    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1] for line in lines if line.startswith("model name")]
    model = " ".join((models or [platform.machine()])[0].split())
    memory = psutil.virtual_memory().total / 2**30
    return f"{model}, {plural(psutil.cpu_count() or 1, 'logical core')}, {memory:.0f} GiB"
