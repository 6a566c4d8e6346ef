"""history.npz gives the archive of any earlier iteration; a truncated file is only dropped."""

import numpy as np
import pytest
from in_process import compute_run
from own_parts import LOSING
from refusals import refused
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.experiment import reload
from qdsweep.experiment.state import evaluation_seeds
from qdsweep.records.history import ROW, History, checksum_of, read_history
from qdsweep.records.paths import RunDir

GAUSSIAN = [{"type": "gaussian", "sigma": 9.0}]
# Elites of the user's classes get worse, leave their cells, or are replaced by equal ones.
OWN = {
    "elites are evaluated again": {"algorithm": {"type": "losing:Again"}},
    "an archive decays": {
        "algorithm": {"archive": {"type": "losing:Decaying"}, "emitters": GAUSSIAN}
    },
    "an archive forgets": {
        "algorithm": {"archive": {"type": "losing:Forgetting"}, "emitters": GAUSSIAN}
    },
    "a scheduler clears the archive": {
        "algorithm": {
            "archive": {"type": "grid"},
            "emitters": GAUSSIAN,
            "scheduler": {"type": "losing:Clearing"},
        }
    },
    "an emitter adds solutions": {
        "algorithm": {"archive": {"type": "grid"}, "emitters": [{"type": "losing:Adding"}]}
    },
}
# Elites get further samples, and leave their cells.
SAMPLED = {
    kind: {"domain": "noisy_arm_bimodal_measures", "algorithm": f"map_elites_{kind}"}
    for kind in ("adaptive", "archive_sampling", "extract")
}
CHANGES = {
    **SAMPLED,
    "grid, result archive": {},
    "thresholds below elites": {"algorithm": {"preset": "cma_mae", "result_archive": False}},
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "two batches an iteration": {"algorithm": "cma_maega", "batch_size": 4},
    **OWN,
}


@pytest.fixture(autouse=True)
def losing(plugins):
    plugins("losing", LOSING)


def run(out, iterations, change):
    compute_run({**TINY, **change, "iterations": iterations}, out)
    with np.load(out / "archive.npz") as arrays:
        return arrays["index"], arrays["objective"]


# In these, cells become empty.
EMPTIED = [name for name in OWN if "decays" not in name and "adds" not in name]


@pytest.mark.parametrize("name", CHANGES)
def test_it_gives_the_archive_of_every_shorter_run(tmp_path, name):
    change = CHANGES[name]
    run(tmp_path / "long", 9, change)
    history = read_history(RunDir(tmp_path / "long"))
    assert history is not None
    for iterations in (1, 2, 4, 7, 9):
        shorter = run(tmp_path / str(iterations), iterations, change)
        np.testing.assert_array_equal(history.at(iterations), shorter)
    assert len(history.at(0)[0]) == 0
    assert history.has_removals == (name in OWN or name in SAMPLED)
    assert np.isnan(history.objective).any() == (name in EMPTIED or name in SAMPLED)


TIES = {
    "thresholds": {"algorithm": {"preset": "cma_mae", "result_archive": False}},
    "an archive of the user's": {
        "algorithm": {"archive": {"type": "losing:Latest"}, "emitters": GAUSSIAN}
    },
}


@pytest.mark.parametrize("change", TIES.values(), ids=TIES)
def test_an_elite_of_the_same_objective_has_a_row(tmp_path, change):
    """The last row of a cell has the iteration of its elite's evaluation."""
    domain = {"type": "losing:Flat"}
    keys = {**TINY, **change, "domain": domain, "archive": {"dims": [3, 3]}}
    out = compute_run(keys, tmp_path / "out")
    with np.load(out / "archive.npz") as arrays:
        cells, seeds = arrays["index"].tolist(), arrays["evaluation_seed"].tolist()
    history = read_history(RunDir(out))
    last = dict(zip(history.index.tolist(), history.iteration.tolist(), strict=True))
    exp = compose(keys)
    found = {
        cell: seed in evaluation_seeds("solution", exp.seed, last[cell] - 1, 0, 16).tolist()
        for cell, seed in zip(cells, seeds, strict=True)
    }
    assert len(found) > 4 and all(found.values())
    assert len(history.index) > 2 * len(found)


def test_an_earlier_release_s_history_of_own_code_is_approximate(tmp_path):
    """It lacks the further array. A resumed run extends it, and it stays approximate."""
    own, out = OWN["elites are evaluated again"], tmp_path / "out"
    run(out, 6, own)
    config = compose(str(out / "config.yaml")).model_dump(mode="json")
    history = read_history(RunDir(out))
    assert not history.is_approximate(config["algorithm"])
    # Without the rows that earlier releases lacked, and with their checksum.
    kept = ~np.isnan(history.objective)
    former = History(*(getattr(history, name)[kept] for name in ROW.names), has_removals=False)
    assert former.is_approximate(config["algorithm"])
    assert not former.is_approximate({"archive": {"type": "grid"}, "emitters": []})
    assert not former.is_approximate({"archive": {"type": "cvt"}, "emitters": [{"type": "a:B"}]})
    forget_header(out, former)
    longer = run(out, 9, own)
    resumed = read_history(RunDir(out))
    assert resumed.is_approximate(config["algorithm"])
    np.testing.assert_array_equal(resumed.at(9), longer)
    np.testing.assert_array_equal(longer, run(tmp_path / "straight", 9, own))


def forget_header(out, former):
    """Gives a finished run the history and the reload file of an earlier release."""
    files = RunDir(out).state
    saved = reload.last_saved(files)
    rows = np.rec.fromarrays([getattr(former, name) for name in ROW.names], dtype=ROW)
    header = {key: saved.header[key] for key in ("metrics", "domain")}
    header["history"] = checksum_of(rows)
    reload.save_state(
        saved.state, files, saved.header["fingerprint"], saved.header["versions"], header
    )
    np.savez_compressed(files.history, **{name: rows[name] for name in ROW.names})
    files.sums.unlink()


def npz(path):
    """Returns the history after the end of a run."""
    return path.read_bytes()


def raw(path):
    """Returns the history during a run."""
    with np.load(path) as arrays:
        content = np.rec.fromarrays([arrays[name] for name in ROW.names], dtype=ROW).tobytes()
    path.unlink()
    return content


DAMAGES = {
    "torn": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "foreign": lambda content: b"\xff" * 160,
    "shorter": lambda content: content[: -ROW.itemsize],
}


@pytest.mark.parametrize("moment", [npz, raw])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_truncated_history_does_not_stop_a_run(tmp_path, caplog, damage, moment):
    straight = run(tmp_path / "straight", 6, {})
    run(tmp_path / "out", 4, {})
    history = tmp_path / "out/state/history.npz"
    content = moment(history)
    if moment is raw:
        history = history.with_suffix(".bin")
    history.write_bytes(DAMAGES[damage](content))
    with caplog.at_level("WARNING"):
        resumed = run(tmp_path / "out", 6, {})
    np.testing.assert_array_equal(resumed, straight)
    assert str(history) in caplog.text
    assert read_history(RunDir(tmp_path / "out")) is None


def test_a_history_that_lacks_rows_does_not_stop_a_run(tmp_path):
    """Complete arrays of another run, and no file, as after an older release."""
    straight = run(tmp_path / "straight", 6, {})
    run(tmp_path / "short", 2, {})
    other = tmp_path / "short/history.npz"
    for name, content in (("foreign", other.read_bytes()), ("none", None)):
        out = tmp_path / name
        run(out, 4, {})
        (out / "history.npz").unlink()
        (out / "state/history.npz").unlink()
        if content:
            (out / "state/history.npz").write_bytes(content)
        np.testing.assert_array_equal(run(out, 6, {}), straight)
        assert read_history(RunDir(out)) is None


def test_reading_a_truncated_history_is_bad_input(tmp_path):
    (tmp_path / "history.npz").write_bytes(b"PK\x03\x04 and no more")
    with refused("history.npz"):
        read_history(RunDir(tmp_path))
