"""`qdsweep` without a command: the next step in this folder."""

from pathlib import Path

from in_process import compute_sweep, qdsweep, report_sweep
from refusals import names_all
from support import TINY, write_yaml

SWEEP = "::: seed 1 2"
REPORT = "results/sweeps/tiny/report.html"


def next_step(folder: Path) -> str:
    return qdsweep(cwd=folder)


def write_config(folder: Path, **changes: object) -> None:
    (folder / "config").mkdir(exist_ok=True)
    text = {"name": "tiny", "experiment": TINY, "sweep": SWEEP, **changes}
    write_yaml(folder / "config/config.yaml", text)


def test_an_empty_folder_needs_a_study(tmp_path):
    names_all(next_step(tmp_path), "config/config.yaml", "qdsweep init")
    assert not [*tmp_path.iterdir()]


def test_a_sweep_that_was_not_started(tmp_path):
    write_config(tmp_path)
    text = next_step(tmp_path)
    names_all(text, "tiny", "2 of 2 runs", "qdsweep plan", "qdsweep sweep", "qdsweep watch")
    (tmp_path / "Snakefile").touch()
    names_all(next_step(tmp_path), "snakemake --cores all")


def test_a_search_counts_its_places(tmp_path):
    write_config(tmp_path, sweep="::: step 0.5 1.0 2.0 ::: seed 1", search={"halving": {}})
    names_all(next_step(tmp_path), "5 of 5 places", "qdsweep plan")


def test_a_sweep_in_part_and_as_a_whole(tmp_path):
    sweep = compute_sweep(tmp_path / "results", TINY, SWEEP)
    names_all(next_step(tmp_path), "tiny", REPORT, "qdsweep status tiny", "qdsweep watch")
    report_sweep(sweep)
    for write in (lambda: None, lambda: write_config(tmp_path)):
        write()
        text = next_step(tmp_path)
        names_all(text, "tiny", REPORT, "qdsweep status tiny")
        assert "plan" not in text
    write_config(tmp_path, sweep="::: seed 1 2 3")
    names_all(next_step(tmp_path), "1 of 3 runs", "qdsweep plan")


def test_a_sweep_of_another_file_that_was_started_last_is_named(tmp_path):
    """Such as one that `--config sweep=...` has given."""
    write_config(tmp_path, name="mine", sweep="::: seed 7")
    compute_sweep(tmp_path / "results", TINY, SWEEP)
    first, *others = next_step(tmp_path).splitlines()
    names_all(first, "tiny")
    names_all("\n".join(others), "qdsweep status tiny", "mine", "1 of 1 run ", "qdsweep sweep")


def test_a_wrong_config_is_named(tmp_path):
    write_config(tmp_path, experiment="lunar_landr")
    text = qdsweep(cwd=tmp_path, code=2)
    names_all(text, "config/config.yaml", "lunar_landr", "lunar_lander")


def test_a_status_that_cannot_be_read_is_named(tmp_path):
    compute_sweep(tmp_path / "results", TINY, SWEEP)
    write_config(tmp_path)
    assert "status.json" not in next_step(tmp_path)
    file = next(tmp_path.glob("results/runs/*/state/status.json"))
    file.unlink()
    file.mkdir()
    names_all(next_step(tmp_path), file.relative_to(tmp_path), "1 of 2 runs")
    names_all(qdsweep("plan", cwd=tmp_path), file.relative_to(tmp_path))


def test_a_file_that_hides_the_package_is_named(tmp_path):
    (tmp_path / "qdsweep.py").touch()
    names_all(next_step(tmp_path), "qdsweep.py", "qdsweep init")
