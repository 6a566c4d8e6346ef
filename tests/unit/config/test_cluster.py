"""What is said of a wrong cluster file."""

from pathlib import Path

import pytest
from composing import wrong

from qdsweep.config.cluster import read_cluster
from qdsweep.errors import BadInput


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("engin: serial\n", ["engin", "'engine'"]),
        ("engine: proceses\n", ["engine = 'proceses'", "'processes'"]),
        ("workers_per_node: two\n", ["workers_per_node = 'two'", "integer"]),
        ("workers_per_node: 0\n", ["workers_per_node = 0", "1"]),
        ("workers_per_node: true\n", ["workers_per_node = True", "integer"]),
        (
            "engine: ray\ndask: {address: 'tls://a:1'}\n",
            ["dask names an existing Dask cluster", "engine = ray"],
        ),
        (
            "engine: dask\nnodes: 2\ndask: {scheduler_file: s.json}\n",
            ["nodes = 1", "nodes = 2"],
        ),
        (
            "engine: dask\ndask: {address: 'tls://a:1', scheduler_file: s.json}\n",
            ["either address or scheduler_file"],
        ),
        (
            "engine: dask\ndask: {address: 'tls://a:1', tls_cert: a.pem}\n",
            ["tls_ca_file, tls_cert and tls_key are needed together"],
        ),
        ("engine: dask\ndask: {adress: 'tls://a:1'}\n", ["adress", "'address'"]),
        ("engine: ray\nray: {address: auto}\n", ["address and workers are needed together"]),
        ("engine: ray\nray: {address: 'tls://a:1', workers: 2}\n", ["ray.address", "tls://a:1"]),
        (
            "engine: ray\nworkers_per_node: 8\nray: {address: auto, workers: 2}\n",
            ["workers_per_node = 8", "ray.workers says how many"],
        ),
        ("engine: processes\ndashboard: true\n", ["dashboard", "processes"]),
        ("engine: dask\nmpi: {launcher: mpiexec}\n", ["mpi.launcher", "engine = dask"]),
        ("engine: processes\nnodes: 2\n", ["engine processes", "nodes = 2", "dask"]),
        ("runtime_min: 1h30m\n", ["runtime_min = '1h30m'", "integer"]),
        ("extra: '; rm -rf x'\n", ["extra = '; rm -rf x'"]),
        ("mem_mb_main: 300\n", ["mem_mb_main = 300", "400"]),
    ],
)
def test_wrong_cluster(text: str, parts: list[str], in_own_folder: Path):
    Path("mine.yaml").write_text(text)
    with pytest.raises(BadInput) as error:
        read_cluster("mine.yaml")
    wrong(str(error.value), "mine.yaml", parts)
    with pytest.raises(BadInput, match="did you mean 'local'"):
        read_cluster("lcal")
