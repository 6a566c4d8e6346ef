"""Corrected archives: re-evaluated elites show the overestimation of a score."""

import contextlib
import hashlib
import re
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import yaml
from in_process import compute_run
from patient import EXPERIMENT, PATIENT
from refusals import names_all, refused
from support import POLE, TINY, command

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.sweep import Reevaluate, SweepFile
from qdsweep.domains import make_domain
from qdsweep.domains.normalizer import Normalizer, context_of
from qdsweep.elites.corrected_archive import CorrectedRun
from qdsweep.elites.reevaluation import core_seconds_of, fresh_seeds, start_reevaluation
from qdsweep.errors import BadInput
from qdsweep.experiment.fresh_seeds import elite_contexts
from qdsweep.experiment.state import evaluation_seeds
from qdsweep.files import read_json
from qdsweep.planning.checks import check_sweep
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import load
from qdsweep.sweep.runs import Sweep

SETTINGS = Reevaluate(times=8, seed=3)
# No solution is good enough for it.
EMPTY = {"type": "grid", "learning_rate": 0.1, "threshold_min": 1e9}
KINDS = {
    "grid, result archive": {},
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "sliding boundaries": {
        "algorithm": {"preset": "map_elites", "archive": {"type": "sliding_boundaries"}}
    },
    "proximity": {"algorithm": {"preset": "novelty_search", "result_archive": False}},
    "dns": {"algorithm": {"preset": "map_elites", "archive": {"type": "dns"}}},
    "empty": {"algorithm": {"preset": "map_elites", "archive": EMPTY}},
}


def make_noisy(folder: Path) -> Path:
    """A folder with a domain whose objective has noise N(0, 1), and a finished run of it."""
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/noisy.py").write_text(PATIENT)
    domain = {"type": "noisy:Patient", "name": "noisy", "evaluation_seed": "solution"}
    (folder / "experiment.yaml").write_text(yaml.safe_dump({**EXPERIMENT, "domain": domain}))
    with chdir(folder):
        compute_run(Path("experiment.yaml"), folder / "out")
    return folder


@pytest.fixture(scope="module")
def noisy(tmp_path_factory) -> Path:
    return make_noisy(tmp_path_factory.mktemp("noisy"))


@pytest.fixture
def copy(noisy, tmp_path) -> Path:
    """The run with the same plug-in, as a process imports only one module of a name."""
    folder = tmp_path / "copy"
    folder.mkdir()
    subprocess.run(["cp", "-a", noisy / "out", noisy / "experiment.yaml", folder], check=True)
    (folder / "config").symlink_to(noisy / "config")
    return folder


def own_plugin(folder: Path) -> Path:
    """A copy of the plug-in, to change."""
    source = (folder / "config/plugins/noisy.py").read_text()
    (folder / "config").unlink()
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/noisy.py").write_text(source)
    return folder / "config/plugins/noisy.py"


def reevaluate(folder: Path, workers: int = 1) -> dict:
    """Evaluates the elites again, and returns the content of the JSON file."""
    with chdir(folder):
        assert start_reevaluation(Path("out"), 8, 3, Cluster(workers_per_node=workers)) == 0
    return figures(folder)


def figures(folder: Path) -> dict:
    return read_json(folder / "out/reevaluated-8-3.json")


def evaluated(printed: str) -> int:
    """Returns the number of evaluations that a process has started."""
    return sum(map(int, re.findall(r"evaluates (\d+)", printed)))


def contents(out: Path) -> dict[str, tuple[str, int]]:
    """Returns the contents and times of the run's own files."""
    return {
        str(path.relative_to(out)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in out.rglob("*")
        if path.is_file() and not path.name.startswith("reevaluated-")
    }


def test_the_corrected_score_is_true_and_the_reported_one_is_too_high(copy):
    before = contents(copy / "out")
    about = reevaluate(copy)
    assert contents(copy / "out") == before
    run = load(copy / "out")
    # The true objective of an elite is known. Its measures have no noise, so every elite stays.
    true = -np.sum(run.arrays["solution"] ** 2, axis=1)
    n = len(true)
    assert about["elites"] == about["corrected"]["num_elites"] == n > 30
    truth, error = np.sum(true + 100), np.sqrt(n / 8)
    assert about["reported"]["qd_score"] == pytest.approx(run.summary["qd_score"])
    assert about["reported"]["qd_score"] - truth > 10 * error, "the search overestimates its elites"
    assert abs(about["corrected"]["qd_score"] - truth) < 4 * error
    assert about["seed_matters"]
    seconds = core_seconds_of(RunDir(copy / "out"), SETTINGS)
    assert seconds > 0
    (copy / "out/reevaluated-8-3.json").unlink()
    reevaluate(copy)  # nothing is evaluated
    assert core_seconds_of(RunDir(copy / "out"), SETTINGS) == seconds
    assert core_seconds_of(RunDir(copy / "out"), Reevaluate(times=9, seed=3)) == 0


def test_each_elite_has_the_mean_over_its_own_fresh_seeds(copy):
    reevaluate(copy)
    run = load(copy / "out")
    with np.load(copy / "out/reevaluated-8-3.npz") as file:
        elites = dict(file)
    for elite in (0, 7, len(run.arrays["objective"]) - 1):
        noise = []
        for repeat in range(8):
            seeds = np.random.SeedSequence(3, spawn_key=(2, repeat)).generate_state(elite + 1)
            noise.append(np.random.default_rng(seeds[elite]).normal())
        true = -np.sum(run.arrays["solution"][elite] ** 2)
        assert elites["objective"][elite] == pytest.approx(true + np.mean(noise), abs=1e-12)
        assert elites["objective_std"][elite] == pytest.approx(np.std(noise, ddof=1), rel=1e-9)
    np.testing.assert_array_equal(elites["index"], run.arrays["index"])
    corrected = CorrectedRun(copy / "out", "reevaluated-8-3")
    assert corrected.archive.stats.qd_score == pytest.approx(figures(copy)["corrected"]["qd_score"])
    np.testing.assert_array_equal(corrected.arrays["solution"], run.arrays["solution"])


def test_the_result_does_not_depend_on_workers_and_is_computed_once(copy):
    expected = reevaluate(copy)
    arrays = (copy / "out/reevaluated-8-3.npz").read_bytes()

    def forget():
        for path in copy.glob("out/**/reevaluated-*"):
            path.unlink()

    forget()
    assert reevaluate(copy, 2) == expected
    assert (copy / "out/reevaluated-8-3.npz").read_bytes() == arrays
    # After the end, its files are rebuilt from the samples, without an evaluation.
    for name in ("json", "npz"):
        (copy / f"out/reevaluated-8-3.{name}").unlink()
    words = ("reevaluate", "out", "--times", "8", "--seed", "3")
    assert evaluated(command("qdsweep", *words, cwd=copy).stdout) == 0
    assert figures(copy) == expected


def test_no_evaluations_are_refused(copy):
    done = command("qdsweep", "reevaluate", "out", "--times", "0", cwd=copy, check=2)
    names_all(done.stderr, "--times 0", 1)
    assert not [*copy.glob("out/reevaluated-*")]


def test_damaged_files_are_named_and_come_back(copy):
    """Most flipped bits in compressed samples are only detected by unpacking."""
    expected, out = reevaluate(copy), copy / "out"
    samples = RunDir(out).state.samples(SETTINGS.stem)
    whole = samples.read_bytes()
    for place in range(40, len(whole), len(whole) // 40):
        samples.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with contextlib.suppress(BadInput):
            core_seconds_of(RunDir(out), SETTINGS)
    for damaged in (whole[:500], whole[:200] + bytes(len(whole) - 1200) + whole[-1000:]):
        samples.write_bytes(damaged)
        with refused(samples):
            core_seconds_of(RunDir(out), SETTINGS)
        assert reevaluate(copy) == expected
    for name in ("reevaluated-8-3.npz", "archive.npz"):
        content = (out / name).read_bytes()
        for damaged in (b"", content[: len(content) // 2]):
            (out / name).write_bytes(damaged)
            with refused(name):
                if name == "archive.npz":
                    reevaluate(copy)
                else:
                    CorrectedRun(out, "reevaluated-8-3").arrays  # noqa: B018
        (out / name).unlink()
    (out / "reevaluated-8-3.json").write_text('{"id": ')
    with refused("reevaluated-8-3.json", "snakemake"):
        read_json(out / "reevaluated-8-3.json", "Run `snakemake` again to make it.")
    # archive.npz is a hard link to the file in state/, which is rebuilt from the reload file.
    command("qdsweep", "run", "experiment.yaml", "--out", "out", cwd=copy)
    assert reevaluate(copy) == expected


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_archive_without_noise_is_what_it_seems(tmp_path, kind):
    keys = {key: value for key, value in TINY.items() if key not in kind}
    out = compute_run({**keys, **kind}, tmp_path / "out")
    assert start_reevaluation(out, 3, 1, Cluster()) == 0
    about = read_json(out / "reevaluated-3-1.json")
    assert not about["seed_matters"]
    assert about["corrected_digest"] == about["archive_digest"]
    for name, value in about["reported"].items():
        assert about["corrected"][name] == (value if value is None else pytest.approx(value))
    with np.load(out / "reevaluated-3-1.npz") as file:
        assert (file["objective_std"] == 0).all()


def test_normalised_observations_are_those_of_each_elite(tmp_path):
    out = compute_run(POLE, tmp_path / "out", iterations=6)
    assert start_reevaluation(out, 2, 9, Cluster()) == 0
    arrays = load(out).arrays
    n = len(arrays["objective"])
    mean, std = arrays["observation_mean"], arrays["observation_std"]
    assert len(np.unique(mean[:, 0])) > 1, "elites of several iterations"
    contexts = context_of(mean, std)
    domain = make_domain(compose(POLE).domain)
    seeds = fresh_seeds(Reevaluate(times=2, seed=9), n)
    with np.load(out / "state/reevaluated-2-9.npz") as file:
        objective, measures = file["objective"], file["measures"]
    for elite in range(0, n, 3):
        own = Normalizer(contexts[elite])
        np.testing.assert_array_equal(own.mean, mean[elite])
        np.testing.assert_allclose(own.std, std[elite], rtol=1e-7)
        for row in (elite, n + elite):
            result = domain.evaluate(arrays["solution"][[elite]], seeds[[row]], contexts[elite])
            assert result.objective[0] == objective[row]
            np.testing.assert_array_equal(result.measures[0], measures[row])


def test_what_a_domain_had_learned_must_be_known():
    domain = make_domain(compose(POLE).domain)
    with refused("pole", "observation_mean", "observation_std"):
        elite_contexts(domain, {"objective": np.zeros(2)}, "pole")


def test_fresh_seeds_are_a_function_of_seed_repeat_and_elite_and_no_seed_of_the_search():
    few, many = (fresh_seeds(Reevaluate(times=4, seed=5), n).reshape(4, n) for n in (10, 500))
    np.testing.assert_array_equal(few, many[:, :10])
    assert len(np.unique(many)) > 1990
    search = np.concatenate([evaluation_seeds("solution", 5, t, 0, 500) for t in range(20)])
    # 2,000 and 10,000 of 2^32 numbers have 0.005 common ones by chance.
    assert len(np.intersect1d(search, many)) <= 1


def test_an_unfinished_run_and_a_changed_domain_are_refused(copy):
    source = own_plugin(copy)
    source.write_text(source.read_text() + "another = 1\n")
    for name in ("config.yaml", "archive.npz"):
        done = command("qdsweep", "reevaluate", "out", cwd=copy, check=2)
        names_all(done.stderr, "out", name)
        assert len(done.stderr.splitlines()) == 1
        (copy / "out/archive.npz").unlink(missing_ok=True)


def test_an_evaluation_that_fails_is_named(copy):
    source = own_plugin(copy)
    shutil.rmtree(copy / "out")
    check = 'assert not os.environ.get("BREAK"), "BREAK is set"'
    source.write_text(source.read_text().replace("noise = ", f"{check}\n        noise = "))
    command("qdsweep", "run", "experiment.yaml", "--out", "out", cwd=copy)
    done = command("qdsweep", "reevaluate", "out", cwd=copy, check=1, BREAK="1")
    names_all(done.stderr, "elite 0", "archive.npz", "AssertionError: BREAK is set", "`on_failure`")


def test_a_sweep_whose_scores_do_not_depend_on_seeds_is_refused():
    certain = {name: compose({**TINY, "domain": name}) for name in ("lp_sphere", "arm")}
    file = SweepFile(name="a", experiment="arm", reevaluate=Reevaluate())
    for runs in ({"a": certain["arm"]}, certain):
        with refused("reevaluate", "arm"):
            check_sweep(file, Sweep((), (), runs), {(): "mine.yaml"})
    luck = {**certain, "b": compose({**TINY, "domain": "lunar_lander"})}
    check_sweep(file, Sweep((), (), luck), {(): "mine.yaml"})
