"""The film of an elite: pictures, drawing, scores and parameters, from every kind of domain."""

import io
import struct

import numpy as np
import pytest
from exploring import notes, pictures, records
from in_process import compute_run
from PIL import Image
from refusals import names_all, refused
from support import TINY

from qdsweep.config.cluster import Cluster
from qdsweep.config.sweep import Reevaluate
from qdsweep.elites.reevaluation import start_reevaluation
from qdsweep.experiment.fresh_seeds import fresh_seeds
from qdsweep.features.explore.cell_film import film, wilson
from qdsweep.features.rollouts.rollout import play_episode
from qdsweep.runs.load import load

SMALL = {"algorithm": "map_elites", "num_emitters": 1, "batch_size": 20, "iterations": 3, "seed": 1}
LANDER = {**SMALL, "domain": "lunar_lander", "archive": {"dims": [10, 10]}}
ARM = {**SMALL, "domain": {"preset": "arm", "solution_dim": 5}, "archive": {"dims": [10, 10]}}


def film_of(run, row):
    parts = []
    film(run, int(run.cells[row]), parts.append)
    return b"".join(parts)


@pytest.fixture(scope="module")
def lander(tmp_path_factory):
    return load(compute_run(LANDER, tmp_path_factory.mktemp("lander") / "run"))


def best_row(run):
    return int(np.argmax(run.arrays["objective"]))


def test_an_episode_has_its_pictures_its_score_and_fresh_seeds(lander):
    row = best_row(lander)
    content = film_of(lander, row)
    about, elite = notes(content), lander.elite(row)
    assert about["objective"] == elite.objective
    assert about["same"] is True
    seeds = fresh_seeds(Reevaluate(), lander.summary["id"], len(lander.cells))
    seeds = seeds.reshape(10, -1)[:, row]
    expected = lander.evaluate(elite.solution, seeds, elite)
    np.testing.assert_array_equal([score[0] for score in about["fresh"]], expected.objective)
    (parameters,) = (part for kind, part in records(content) if kind == "S")
    np.testing.assert_array_equal(np.frombuffer(parameters, "<f4"), elite.solution.astype("<f4"))
    steps = [struct.unpack_from("<HHI", part)[2] for part in pictures(content)]
    assert steps[0] == 0 and steps[-1] == about["steps"] and steps == sorted(set(steps))


def test_its_pictures_are_those_of_a_rollout(lander):
    """Each part is drawn over the pictures before it."""
    row = best_row(lander)
    shot, _ = play_episode(lander, lander.elite(row), lander.seed_of(lander.elite(row)), 30.0)
    drawn, parts = Image.new("RGB", shot.frames[0].size), pictures(film_of(lander, row))
    assert len(parts) == len(shot.frames) > 10
    differ = 0
    for part, frame in zip(parts, shot.frames, strict=True):
        x, y, _ = struct.unpack_from("<HHI", part)
        drawn.paste(Image.open(io.BytesIO(part[8:])), (x, y))
        wrong = np.abs(np.subtract(drawn, frame, dtype=int)).max(axis=2) > 48
        assert wrong.mean() < 0.01
        differ += drawn.tobytes() != shot.frames[0].tobytes()
    assert differ > len(parts) // 2, "the pictures move"


def test_the_drawing_of_an_arm_ends_at_its_measures(tmp_path):
    run = load(compute_run(ARM, tmp_path / "run"))
    about = notes(film_of(run, 3))
    (line,) = about["lines"]
    assert line[0] == [0, 0] and len(line) == 6
    np.testing.assert_allclose(line[-1], run.elite(3).measures)
    assert about["deterministic"] and about["same"] and not about["fresh"]


def test_a_domain_without_pictures_has_parameters_and_scores(tmp_path):
    content = film_of(load(compute_run(TINY, tmp_path / "run")), 0)
    assert not pictures(content)
    names_all(str(notes(content)), "'unseen': ''", "'same': True", "'parameters': 10")


PLUGIN = """
import numpy as np
from qdsweep.domains.base import Evaluation


class Dots:
    solution_dim, measures = 3000, {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
    objective_range, fields = (0.0, 7.0), {}

    def __init__(self, how):
        if how == "render":
            self.render = lambda solution, seed: np.zeros((9, 20, 40, 3), np.uint8) + seed % 200
        if how == "broken render":
            self.render = lambda solution, seed: [seed / 0]
        if how == "draw":
            self.draw = lambda solution: [[(0, 0), (1, 2)], np.ones((4, 2))]
        if how == "broken draw":
            self.draw = lambda solution: [solution]

    def evaluate(self, solutions, seeds):
        return Evaluation((seeds % 7).astype(float), solutions[:, :2])
"""


@pytest.mark.parametrize(
    ("how", "names"),
    [
        ("render", ("'width': 360", "'height': 180", "'steps': 8")),
        ("draw", ("'lines': [[[0.0, 0.0], [1.0, 2.0]], [[1.0, 1.0]",)),
        ("broken render", ("unseen", "ZeroDivisionError", "render(solution, seed)")),
        ("broken draw", ("unseen", "Dots.draw", "(3000,)", "(points, 2)")),
        ("neither", ("unseen", "gymnasium.make", "render(solution, seed)")),
    ],
)
def test_the_methods_of_a_users_domain(plugins, tmp_path, how, names):
    plugins("dots", PLUGIN)
    domain = {"type": "dots:Dots", "arguments": {"how": how}}
    run = load(
        compute_run({**SMALL, "domain": domain, "archive": {"dims": [6, 6]}}, tmp_path / "r")
    )
    content = film_of(run, 0)
    assert film(run, int(run.cells[0]), len) == (how in ("render", "draw")), "only these are kept"
    names_all(str(notes(content)), *names, "'same': True", "'parameters': 3000", "'every': 3")
    assert len(notes(content)["fresh"]) == 10


def test_a_users_domain_that_is_deterministic_is_not_scored_again(plugins, tmp_path):
    plugins(
        "calm",
        PLUGIN.replace("    def __init__", "    is_deterministic = True\n\n    def __init__"),
    )
    domain = {"type": "calm:Dots", "arguments": {"how": "draw"}}
    experiment = {**SMALL, "domain": domain, "archive": {"dims": [6, 6]}}
    about = notes(film_of(load(compute_run(experiment, tmp_path / "r")), 0))
    assert about["deterministic"] and not about["fresh"]


def test_what_cannot_be_played_is_refused(lander, tmp_path):
    empty = next(cell for cell in range(100) if cell not in lander.cells)
    with refused(empty, lander.path):
        film(lander, empty, print)


def test_an_elite_has_its_hits_where_it_was_evaluated_again(tmp_path):
    run = load(compute_run(LANDER, tmp_path / "run"))
    row = best_row(run)
    assert "hits" not in notes(film_of(run, row))
    for times in (2, 4):
        assert start_reevaluation(run.path, times, 3, Cluster()) == 0
    hits, times, low, high = notes(film_of(run, row))["hits"]
    with np.load(run.path / "reevaluated-4-3-own.npz") as file:
        assert (hits, times) == (file["hits"][row], 4)
    assert 0 <= low <= hits / times <= high <= 1
    np.testing.assert_allclose(wilson(7, 10), (0.3968, 0.8922), atol=1e-4)
    np.testing.assert_allclose(wilson(0, 10), (0.0, 0.2775), atol=1e-4)
