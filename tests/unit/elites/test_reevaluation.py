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
from results import forget_sums, summary
from support import POLE, TINY, command

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.sweep import Reevaluate, SweepFile
from qdsweep.domains import make_domain
from qdsweep.domains.normalizer import Normalizer, context_of
from qdsweep.elites.corrected_archive import (
    LATER,
    CorrectedRun,
    insert,
    read_robustness,
    robustness,
)
from qdsweep.elites.reevaluation import core_seconds_of, start_reevaluation
from qdsweep.errors import BadInput
from qdsweep.experiment.fresh_seeds import elite_contexts, fresh_seeds
from qdsweep.experiment.state import evaluation_seeds
from qdsweep.files import read_json, write_json
from qdsweep.planning.checks import check_sweep
from qdsweep.records.paths import RunDir
from qdsweep.records.results import stochastic_of
from qdsweep.runs.load import load
from qdsweep.sweep.runs import Sweep

SETTINGS = Reevaluate(times=8, seed=3)
NOISY_ARM = """
import numpy as np
from qdsweep.domains.base import Evaluation

class NoisyArm:
    solution_dim, fields, step, x0 = 6, {}, 0.1, np.full(6, 0.5)
    measures = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    objective_range = (-1.0, 0.0)

    def evaluate(self, solutions, seeds):
        x = np.clip(solutions, 0, 1)
        objective = -np.sqrt(np.mean(np.square(x - x.mean(axis=1, keepdims=True)), axis=1))
        angle = np.cumsum(2 * np.pi * x - np.pi, axis=1)
        ends = np.stack([np.cos(angle).sum(axis=1), np.sin(angle).sum(axis=1)], axis=1) / 12 + 0.5
        noise = np.stack([np.random.default_rng(seed).normal(size=3) for seed in seeds])
        measures = np.clip(ends + 0.02 * noise[:, 1:], 0, 1)
        return Evaluation(objective + 0.05 * noise[:, 0], measures)
"""
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
    return read_json(folder / "out/reevaluated-8-3-own.json")


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
    (copy / "out/reevaluated-8-3-own.json").unlink()
    reevaluate(copy)  # nothing is evaluated
    assert core_seconds_of(RunDir(copy / "out"), SETTINGS) == seconds
    assert core_seconds_of(RunDir(copy / "out"), Reevaluate(times=9, seed=3)) == 0


def test_each_elite_has_the_mean_over_its_own_fresh_seeds(copy):
    reevaluate(copy)
    run = load(copy / "out")
    with np.load(copy / "out/reevaluated-8-3-own.npz") as file:
        elites = dict(file)
    for elite in (0, 7, len(run.arrays["objective"]) - 1):
        noise = []
        for repeat in range(8):
            own = int(hashlib.sha256(run.summary["id"].encode()).hexdigest(), 16)
            sequence = np.random.SeedSequence([3, own], spawn_key=(2, repeat))
            seeds = sequence.generate_state(elite + 1)
            noise.append(np.random.default_rng(seeds[elite]).normal())
        true = -np.sum(run.arrays["solution"][elite] ** 2)
        assert elites["objective"][elite] == pytest.approx(true + np.mean(noise), abs=1e-12)
        assert elites["objective_std"][elite] == pytest.approx(np.std(noise, ddof=1), rel=1e-9)
    np.testing.assert_array_equal(elites["index"], run.arrays["index"])
    corrected = CorrectedRun(copy / "out", "reevaluated-8-3-own")
    assert corrected.archive.stats.qd_score == pytest.approx(figures(copy)["corrected"]["qd_score"])
    np.testing.assert_array_equal(corrected.arrays["solution"], run.arrays["solution"])


def test_the_result_does_not_depend_on_workers_and_is_computed_once(copy):
    expected = reevaluate(copy)
    arrays = (copy / "out/reevaluated-8-3-own.npz").read_bytes()

    def forget():
        for path in copy.glob("out/**/reevaluated-*"):
            path.unlink()

    forget()
    assert reevaluate(copy, 2) == expected
    assert (copy / "out/reevaluated-8-3-own.npz").read_bytes() == arrays
    # After the end, its files are rebuilt from the samples, without an evaluation.
    for name in ("json", "npz"):
        (copy / f"out/reevaluated-8-3-own.{name}").unlink()
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
    for name in ("reevaluated-8-3-own.npz", "archive.npz"):
        content = (out / name).read_bytes()
        for damaged in (b"", content[: len(content) // 2]):
            (out / name).write_bytes(damaged)
            with refused(name):
                if name == "archive.npz":
                    reevaluate(copy)
                else:
                    CorrectedRun(out, "reevaluated-8-3-own").arrays  # noqa: B018
        (out / name).unlink()
    (out / "reevaluated-8-3-own.json").write_text('{"id": ')
    with refused("reevaluated-8-3-own.json", "snakemake"):
        read_json(out / "reevaluated-8-3-own.json", "Run `snakemake` again to make it.")
    # archive.npz is a hard link to the file in state/, which is rebuilt from the reload file.
    command("qdsweep", "run", "experiment.yaml", "--out", "out", cwd=copy)
    assert reevaluate(copy) == expected


def noisy_arm(folder: Path, times: int, seed: int) -> dict:
    """Evaluates the elites of a run of the noisy arm again; returns the content of its file."""
    with chdir(folder):
        assert start_reevaluation(Path("out"), times, seed, Cluster()) == 0
    return read_json(folder / f"out/reevaluated-{times}-{seed}-own.json")


@pytest.fixture(scope="module")
def arm(tmp_path_factory) -> Path:
    """A run of a small arm with noise on objective and measures."""
    folder = tmp_path_factory.mktemp("arm")
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/noisyarm.py").write_text(NOISY_ARM)
    keys = {
        "domain": {"type": "noisyarm:NoisyArm", "evaluation_seed": "solution"},
        "algorithm": "map_elites",
        "archive": {"dims": [12, 12]},
        "num_emitters": 1,
        "batch_size": 40,
        "initial_solutions": 40,
        "iterations": 30,
        "seed": 1,
    }
    (folder / "experiment.yaml").write_text(yaml.safe_dump(keys))
    with chdir(folder):
        compute_run(Path("experiment.yaml"), folder / "out")
    return folder


def test_the_delivered_score_is_unbiased_with_one_evaluation_of_each_elite(arm):
    """Its mean is that of a huge sample; the corrected score is far away from its own limit."""
    run = load(arm / "out")
    arrays, about = run.arrays, run.summary["archive"]
    n, rng = len(arrays["objective"]), np.random.default_rng(3)
    seeds = rng.integers(2**32, size=(2200, n), dtype=np.uint32)
    fresh = [run.domain.evaluate(arrays["solution"], row) for row in seeds]
    objective = np.stack([one.objective for one in fresh])
    measures = np.stack([one.measures for one in fresh])
    truth = robustness(about, arrays, objective[200:], measures[200:])
    singles = [
        robustness(about, arrays, objective[[t]], measures[[t]])["delivered"]["norm_qd_score"]
        for t in range(200)
    ]
    error = np.std(singles, ddof=1) / 200**0.5
    off = abs(np.mean(singles) - truth["delivered"]["norm_qd_score"])
    assert off < 3 * np.hypot(error, truth["delivered_error"] / 144)
    assert run.summary["norm_qd_score"] > 1.3 * truth["delivered"]["norm_qd_score"]
    few = insert(about, arrays, *(many[:2].mean(axis=0) for many in (objective, measures)))
    huge = insert(about, arrays, *(many[200:].mean(axis=0) for many in (objective, measures)))
    assert abs(few[0].metrics()["qd_score"] - huge[0].metrics()["qd_score"]) > 10 * error * 144
    assert truth["delivered_error"] == pytest.approx(error * 144 / 10**0.5, rel=0.2)


def test_the_file_has_what_each_elite_delivers(arm):
    about = noisy_arm(arm, 6, 2)
    run = load(arm / "out")
    n = len(run.arrays["objective"])
    with np.load(arm / "out/reevaluated-6-2-own.npz") as file:
        elites = dict(file)
    with np.load(arm / "out/state/reevaluated-6-2-own.npz") as file:
        objective, measures = file["objective"].reshape(6, n), file["measures"].reshape(6, n, 2)
    # Cells of a grid of 12 x 12 over [0, 1] x [0, 1].
    place = np.minimum((measures * 12).astype(int), 11)
    hits = place[..., 0] * 12 + place[..., 1] == run.arrays["index"]
    np.testing.assert_array_equal(elites["hits"], hits.sum(axis=0))
    np.testing.assert_allclose(elites["measures_std"], measures.std(axis=0, ddof=1))
    assert about["hit_rate"] == pytest.approx(hits.mean())
    delivered = ((objective + 1) * hits).sum() / 6
    assert about["delivered"]["qd_score"] == pytest.approx(delivered)
    assert about["delivered"]["norm_qd_score"] == pytest.approx(delivered / 144)
    loss = (run.arrays["objective"] - objective.mean(axis=0)).mean()
    assert about["objective_loss"] == pytest.approx(loss) and loss > 0.01
    half = insert(
        run.summary["archive"],
        run.arrays,
        *(many[:3].mean(axis=0) for many in (objective, measures)),
    )[0].metrics()
    assert about["corrected_half"]["qd_score"] == pytest.approx(half["qd_score"])


def test_one_evaluation_has_no_half_and_no_error(arm):
    about = noisy_arm(arm, 1, 2)
    assert about["corrected_half"] is about["delivered_error"] is None
    assert 0 < about["hit_rate"] < 1


def test_a_file_of_an_earlier_release_gets_the_rest_from_its_samples(arm):
    out = arm / "out"
    settings = Reevaluate(times=3, seed=2, common=True)
    with chdir(arm):
        assert start_reevaluation(Path("out"), 3, 2, Cluster(), common=True) == 0
        path = out / "reevaluated-3-2.json"
        whole = read_json(path)
        old = {key: value for key, value in whole.items() if key not in (*LATER, "common")}
        for file in (path, out / "state/reevaluated-3-2.sha256"):
            file.unlink()
        write_json(path, old)
        assert read_robustness(out, settings) == whole
        (out / "state/reevaluated-3-2.npz").unlink()
        assert read_robustness(out, settings) == {**old, "common": True, **dict.fromkeys(LATER)}


@pytest.mark.parametrize("seed_matters", [True, False])
def test_it_finds_out_for_a_run_that_does_not_know(seed_matters, copy, tmp_path):
    if seed_matters:
        folder, out = copy, copy / "out"
    else:
        folder, out = tmp_path, compute_run(TINY, tmp_path / "out")
    forget_sums(out)
    about = summary(out)
    for files in (out, out / "state"):
        (files / "summary.json").unlink()
    del about["stochastic"]
    write_json(out / "state/summary.json", about)
    write_json(out / "summary.json", about)
    state = RunDir(out).state
    state.noise.unlink(missing_ok=True)
    assert stochastic_of(state, about) == "unknown"
    with chdir(folder):
        assert start_reevaluation(out, 2, 3, Cluster()) == 0
    assert stochastic_of(state, about) is seed_matters


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_archive_without_noise_is_what_it_seems(tmp_path, kind):
    keys = {key: value for key, value in TINY.items() if key not in kind}
    out = compute_run({**keys, **kind}, tmp_path / "out")
    assert start_reevaluation(out, 3, 1, Cluster()) == 0
    about = read_json(out / "reevaluated-3-1-own.json")
    assert not about["seed_matters"]
    assert about["corrected_digest"] == about["archive_digest"]
    assert about["delivered_error"] in (None, 0)
    for name, value in about["delivered"].items():
        assert value == (None if value is None else pytest.approx(about["reported"][name]))
    has_cells = about["reported"]["coverage"] is not None
    assert about["hit_rate"] == (1 if has_cells and about["elites"] else None)
    for name, value in about["reported"].items():
        assert about["corrected"][name] == (value if value is None else pytest.approx(value))
    with np.load(out / "reevaluated-3-1-own.npz") as file:
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
    seeds = fresh_seeds(Reevaluate(times=2, seed=9), summary(out)["id"], n)
    with np.load(out / "state/reevaluated-2-9-own.npz") as file:
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


@pytest.mark.parametrize("common", [False, True])
def test_fresh_seeds_are_a_function_of_seed_run_repeat_and_elite_and_none_of_the_search(common):
    settings = Reevaluate(times=4, seed=5, common=common)
    few, many = (fresh_seeds(settings, "a", n).reshape(4, n) for n in (10, 500))
    np.testing.assert_array_equal(few, many[:, :10])
    assert len(np.unique(many)) > 1990
    search = np.concatenate([evaluation_seeds("solution", 5, t, 0, 500) for t in range(20)])
    # 2,000 and 10,000 of 2^32 numbers have 0.005 common ones by chance.
    assert len(np.intersect1d(search, many)) <= 1
    shared = np.isin(fresh_seeds(settings, "another run", 500), many)
    assert shared.all() if common else shared.sum() <= 1


def test_common_seeds_are_those_of_earlier_releases():
    settings = Reevaluate(times=2, seed=5, common=True)
    assert settings.stem == "reevaluated-2-5"
    repeats = [np.random.SeedSequence(5, spawn_key=(2, t)).generate_state(7) for t in range(2)]
    np.testing.assert_array_equal(fresh_seeds(settings, "a", 7), np.concatenate(repeats))


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
