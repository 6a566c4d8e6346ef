"""A refused setting of a sweep is reported with the file of its key."""

from pathlib import Path
from zlib import crc32

import pytest
import yaml
from refusals import names_all, refused
from support import TINY

from qdsweep.config.cluster import Cluster
from qdsweep.errors import BadInput
from qdsweep.host.lock import Lock
from qdsweep.planning.checks import check_sweep
from qdsweep.planning.request import Given, key_sources, read_sweep
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results
from qdsweep.sweep.runs import table_of_runs


@pytest.mark.parametrize(
    ("changes", "typed", "names"),
    [
        ({"confirm": {"seeds": [5, 2]}}, (), ["config/b.yaml: ", "confirm.seeds", "[5, 2]"]),
        ({"clusters": "slurm"}, (), ["config/b.yaml: ", "clusters", "'cluster'"]),
        ({}, ("name=a/b",), ["--config name: ", "name = 'a/b'"]),
    ],
)
def test_a_refusal_names_the_file_of_its_key(in_own_folder, changes, typed, names):
    files = [in_own_folder / "config/a.yaml", in_own_folder / "config/b.yaml"]
    files[0].parent.mkdir()
    files[0].write_text(yaml.safe_dump({"name": "tiny", "sweep": "::: seed 1 3"}))
    files[1].write_text(yaml.safe_dump({"experiment": TINY} | changes))
    config = dict(entry.split("=") for entry in typed)
    with refused(*names):
        settings = read_sweep(Given(config, typed, files))
        sweep = table_of_runs(settings.experiment, settings.sweep)
        check_sweep(settings, sweep, key_sources(Given({}, typed, files)))


def test_a_missing_key_is_missing_in_the_files(in_own_folder):
    files = [in_own_folder / name for name in ("a.yaml", "b.yaml")]
    for file in files:
        file.write_text("name: tiny")
    with refused("a.yaml + b.yaml: ", "experiment"):
        read_sweep(Given({}, files=files))


def test_a_file_that_is_given_twice_is_named_once(in_own_folder):
    (in_own_folder / "a.yaml").write_text("name: tiny")
    with pytest.raises(BadInput) as caught:
        read_sweep(Given({}, files=["a.yaml", "a.yaml"]))
    assert str(caught.value).count("a.yaml") == 1


def test_workers_that_an_engine_cannot_have_are_refused():
    serial = Cluster(engine="serial")
    with refused("cluster mine", "--workers 4", "engine = serial"):
        serial.with_workers(4, "mine")
    assert serial.with_workers(1, "mine") == serial
    assert Cluster().with_workers(4, "local").engine_name == "processes"


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e3", "1000.0"), ("007", "7"), ("0x1f", "31"), ("1.50", "1.5"), ("2026", ""), ("1.5", "")],
)
def test_a_name_that_yaml_reads_as_another_number_is_refused(in_own_folder, text, number):
    """Its folder in results/sweeps/ would have the name of the number."""
    data = yaml.safe_dump({"experiment": TINY})
    (in_own_folder / "a.yaml").write_text(f"name: {text}\n{data}")
    if number:
        with refused("a.yaml: ", f"name = {text}", number, f'"{text}"'):
            read_sweep(Given({}, files=["a.yaml"]))
        (in_own_folder / "a.yaml").write_text(f'name: "{text}"\n{data}')
    assert read_sweep(Given({}, files=["a.yaml"])).name == text


def test_a_number_in_place_of_a_text_is_refused_with_the_remedy(in_own_folder):
    data = {"name": "a", "experiment": TINY, "figures": {"names": {"seed": 1.0}}}
    (in_own_folder / "a.yaml").write_text(yaml.safe_dump(data))
    with refused("a.yaml: ", "figures.names.seed = 1.0", "quotes"):
        read_sweep(Given({}, files=["a.yaml"]))


@pytest.mark.parametrize("place", ["results", "results/sweeps/a/plots", "results/sweeps/a/logs"])
def test_a_file_in_the_place_of_a_folder_is_named(in_own_folder, place):
    data = {"name": "a", "experiment": TINY}
    (in_own_folder / "a.yaml").write_text(yaml.safe_dump(data))
    (in_own_folder / place).parent.mkdir(parents=True, exist_ok=True)
    (in_own_folder / place).touch()
    with refused(f"{place} is a file"):
        Start(Results(Path("results")), Given({}, files=["a.yaml"]))


@pytest.mark.parametrize("shard", ["0/8", "9/8", "a/b", "3", "3/", "-1/8", "1/0", "1.5/2", "²/3"])
def test_a_shard_that_there_is_not_is_refused(shard):
    typed = (f"shard={shard}",)
    with refused("--config shard: ", "shard = ", shard, "3/8"):
        read_sweep(Given({"name": "tiny", "experiment": TINY, "shard": shard}, typed))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"search": {"samples": 9, "halving": {}}}, ["search", "results"]),
        ({"search": {"sampling": "tpe", "samples": 4, "batches": 2}}, ["search", "results"]),
        ({"search": {"pbt": {"population": 4, "generations": 2}}}, ["search", "results"]),
        ({"partial": True}, ["partial"]),
    ],
)
def test_a_start_without_runs_that_are_known_takes_no_shard(in_own_folder, changes, names):
    text = "::: seed 1 2" if "partial" in changes else ":::~ sigma log 0.1 1 ::: seed 1 2"
    sweep = {"name": "tiny", "experiment": {**TINY, "algorithm": "map_elites"}, "sweep": text}
    config = {**sweep, **changes, "shard": "1/2"}
    with refused("--config shard: ", "shard = 1/2", *names):
        Start(Results(Path("results")), Given(config, ("shard=1/2",)))


def test_shards_are_parts_that_only_run_ids_decide(in_own_folder):
    """Rows of one run stay together, and a longer sweep moves no run."""

    def start(sweep: str, **changes: str) -> Start:
        config = {"name": "tiny", "experiment": TINY, "sweep": sweep, **changes}
        return Start(Results(Path("results")), Given(config))

    sweep = f"::: seed {' '.join(map(str, range(20)))} ::: iterations 5 12"
    whole = start(sweep)
    shards = [start(sweep, shard=f"{number}/3") for number in (1, 2, 3)]
    parts = [list(shard.sweep.runs) for shard in shards]
    assert sorted(run for part in parts for run in part) == sorted(whole.sweep.runs)
    for number, (part, shard) in enumerate(zip(parts, shards, strict=True), start=1):
        assert part == [run for run in whole.sweep.runs if crc32(run.encode()) % 3 == number - 1]
        assert shard.plan == whole.plan
        assert len(list(shard.forecast())) == 2 * len(part)
        assert {run.iterations for run in shard.sweep.runs.values()} == {12}
        names_all(next(shard.lines()), f"shard {number}/3", len(part), 20)
    longer = start(sweep.replace("seed", "seed 20 21 22"), shard="2/3")
    assert parts[1] == [run for run in longer.sweep.runs if run in whole.sweep.runs]


def test_the_rest_omits_runs_that_are_computed_or_have_failed(in_own_folder):
    config = {"name": "tiny", "experiment": TINY, "sweep": "::: seed 1 2 3", "shard": "rest"}
    given = Given(config, ("shard=rest",))
    start = Start(Results(Path("results")), given)
    assert list(start.sweep.runs) == list(start.whole.runs)
    held, failed, _ = (start.results.run(run).state for run in start.sweep.runs)
    failed.path.mkdir(parents=True)
    failed.failure.write_text("{}")
    with Lock(held.lock):
        start = Start(Results(Path("results")), given)
        assert start.found.taken == {held.path.parent.name, failed.path.parent.name}
        names_all(next(start.lines()), "shard rest", "1 of 3 runs")
    assert Start(Results(Path("results")), given).found.taken == {failed.path.parent.name}


def test_a_shard_of_drawn_rows_has_known_runs(in_own_folder):
    config = {
        "name": "tiny",
        "experiment": {**TINY, "algorithm": "map_elites"},
        "sweep": ":::~ sigma log 0.1 1",
        "search": {"samples": 20},
    }
    shards = [
        Start(Results(Path("results")), Given({**config, "shard": f"{number}/2"}))
        for number in (1, 2)
    ]
    assert sum(len(shard.sweep.runs) for shard in shards) == 20
    assert min(len(shard.sweep.runs) for shard in shards) > 0
