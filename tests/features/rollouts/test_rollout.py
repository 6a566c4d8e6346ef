"""Rendered episodes are the evaluated ones, of the requested elites."""

import base64
import io
import json

import gymnasium
import numpy as np
import pytest
from by_gymnasium import land, play
from in_process import compute_sweep
from looks import data_of, set_look
from PIL import Image, ImageSequence
from refusals import names_all, refused
from support import TINY

from qdsweep.analysis.page.gallery import films, last_frame
from qdsweep.analysis.selection import read_tables
from qdsweep.cli import main
from qdsweep.config.compose import compose
from qdsweep.config.domain_keys import require_episodes
from qdsweep.config.sweep import Rollouts, SweepFile
from qdsweep.domains.lunar_lander import LunarLander
from qdsweep.errors import BadInput
from qdsweep.features.rollouts.animations import rollouts
from qdsweep.features.rollouts.film import MAX_BYTES, Shot, filming, write_gif
from qdsweep.features.rollouts.rollout import choose, rollout
from qdsweep.planning.checks import check_sweep
from qdsweep.sweep.runs import Sweep

ALL = ["best", "median", "corners"]
SMALL = {"num_emitters": 2, "batch_size": 10, "iterations": 5, "algorithm": "map_elites"}
LANDER = {**SMALL, "domain": "lunar_lander", "archive": {"dims": [10, 10]}}
WALKER = {
    **SMALL,
    "domain": {"preset": "bipedal_walker", "max_episode_steps": 120, "evaluation_seed": "fixed"},
    "archive": {"dims": [5, 5]},
}
NORMALISED = {
    **SMALL,
    "domain": {"preset": "pendulum", "normalize_observations": True, "evaluation_seed": 7},
    "archive": {"dims": [5, 5]},
}
CARTPOLE = {**SMALL, "domain": "cartpole", "archive": {"dims": [5, 5]}}


def only_run(sweep):
    (run,) = (sweep.parents[1] / "runs").iterdir()
    return run


def computed(folder, experiment):
    return only_run(compute_sweep(folder / "results", experiment, "::: seed 1"))


@pytest.fixture(scope="module")
def lander(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lander")
    settings = {"elites": ALL, "seconds": 2.0}
    return compute_sweep(
        folder / "results",
        LANDER,
        "::: algorithm map_elites cma_me ::: seed 1 2",
        rollouts=settings,
    )


def test_a_sweep_shows_every_elite_as_it_was_scored(lander, capsys):
    rollouts(lander, lander.parents[1] / "runs")
    assert capsys.readouterr().err == "", "all scores equal those of the archive"
    folder = lander / "plots/rollouts"
    entries = json.loads((folder / "rollouts.json").read_text())["rollouts"]
    assert {path.name for path in folder.glob("*.gif")} == {entry["file"] for entry in entries}
    tables = read_tables(lander)
    medians = {group: str(tables.median_run(group)["id"]) for group in tables.series}
    assert {(entry["group"], entry["run"]) for entry in entries} == set(medians.items())
    for group, run in medians.items():
        of_group = [entry for entry in entries if entry["group"] == group]
        assert {"best", "median"} <= {entry["elite"] for entry in of_group}
        assert 3 <= len(of_group) <= 6
        with np.load(lander.parents[1] / "runs" / run / "archive.npz") as arrays:
            best = next(entry for entry in of_group if entry["elite"] == "best")
            assert best["rendered"]["objective"] == arrays["objective"].max()
    for entry in entries:
        assert entry["equal"] is True
        assert entry["own_seed"] is True
        assert entry["archive"] == entry["rendered"]
        assert (folder / entry["file"]).stat().st_size < MAX_BYTES
        with Image.open(folder / entry["file"]) as image:
            times = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
        assert 5 <= len(times) <= 42
        assert sum(times) <= 2000 + 1500 + 100


def test_labels_and_order_reach_the_animations_without_rendering(lander):
    rollouts(lander, lander.parents[1] / "runs")
    set_look(lander, labels={"cma_me": "A label"}, order=["cma_me"])
    titles = [film.title for film in films(data_of(lander)).films]
    set_look(lander)
    count = sum(title.startswith("A label: ") for title in titles)
    assert 3 <= count <= 6
    assert all(title.startswith("MAP-Elites: ") for title in titles[count:])
    assert len(titles) > count


def test_particles_and_pictures_change_no_landing():
    """The camera's environment draws flames, which are bodies in the physics."""
    make = gymnasium.make
    rng = np.random.default_rng(3)
    for case in range(12):
        solution, seed = rng.normal(size=32) * (0.3, 3.0)[case % 2], int(rng.integers(2**32))
        expected, _ = land(solution, seed)
        with filming(1.0) as shot:
            assert gymnasium.make is make, "other environments have no camera"
            result = LunarLander(1).evaluate(solution[None], np.array([seed], np.uint32))
        assert [result.objective[0], *result.measures[0]] == expected
        assert len(shot.frames) == len(shot.moments)
        assert shot.moments[0] == 0
        assert shot.moments[-1] == shot.steps


ALIKE = {
    # Box2D's worlds keep state: without a new one the second elite would have another score.
    "walker": WALKER,
    "normalised observations, each elite's own": NORMALISED,
    "a seed for each evaluation": CARTPOLE,
}


@pytest.mark.parametrize("experiment", ALIKE.values(), ids=ALIKE)
def test_every_elite_is_shown_as_it_was_scored(tmp_path, experiment, capsys):
    run = computed(tmp_path, experiment)
    entries = rollout(run, tmp_path / "out", ALL, 1.0)
    assert len(entries) > 2 and all(entry["equal"] and entry["own_seed"] for entry in entries)
    assert capsys.readouterr().err == ""
    has_own_seeds = compose(str(run / "config.yaml")).domain.evaluation_seed == "solution"
    assert len({entry["seed"] for entry in entries}) == (len(entries) if has_own_seeds else 1)
    with np.load(run / "archive.npz") as arrays:
        if "observation_mean" in arrays:
            assert len(np.unique(arrays["observation_mean"], axis=0)) > 1


def test_of_several_episodes_the_first_is_shown_and_all_are_compared(tmp_path):
    domain = {"preset": "cartpole", "episodes": 3, "evaluation_seed": 11}
    run = computed(tmp_path, {**CARTPOLE, "domain": domain})
    (entry,) = rollout(run, tmp_path / "out", ["best"], 1.0)
    assert entry["episodes"] == 3
    assert entry["equal"] is True
    with np.load(run / "archive.npz") as arrays:
        weights = arrays["solution"][np.argmax(arrays["objective"])].reshape(2, 4)
    episode = play("CartPole-v1", lambda x: int(np.argmax(weights @ x)), entry["seed"])
    assert entry["steps"] == len(episode.actions) == entry["rendered"]["objective"]


def change_archive(run, change):
    """Writes archive.npz with arrays changed by a function."""
    with np.load(run / "archive.npz") as file:
        arrays = dict(file)
    change(arrays)
    (run / "archive.npz").unlink()  # state/ has its other name
    np.savez(run / "archive.npz", **arrays)


def test_where_the_seed_is_unknown_another_one_is_stated(tmp_path):
    run = computed(tmp_path, CARTPOLE)
    change_archive(run, lambda arrays: arrays.pop("evaluation_seed"))
    (entry,) = rollout(run, tmp_path / "out", ["best"], 1.0)  # its history has the seed
    assert entry["equal"] is entry["own_seed"] is True
    (run / "history.npz").unlink()
    (entry,) = rollout(run, tmp_path / "out", ["best"], 1.0)
    assert entry["equal"] is None
    assert entry["own_seed"] is False


def test_a_score_that_is_not_the_archives_is_a_warning(tmp_path, capsys):
    run = computed(tmp_path, LANDER)

    def change(arrays):
        arrays["objective"][np.argmax(arrays["objective"])] += 1e-9

    change_archive(run, change)
    (entry,) = rollout(run, tmp_path / "out", ["best"], 0.5)
    assert entry["equal"] is False
    names_all(capsys.readouterr().err, run.name, "archive.npz")


PLUGIN = """
import gymnasium as gym
import numpy as np
from qdsweep.domains.base import Evaluation


class Cart:
    solution_dim, measures = 4, {"x": (-2.4, 2.4)}
    objective_range, fields = (0.0, 500.0), {}

    def __init__(self, how="kept"):
        self.how = how
        self.env = gym.make("CartPole-v1") if how == "kept" else None
        if how == "render":
            self.render = lambda solution, seed: np.zeros((30, 20, 40, 3), np.uint8) + 9
        if how == "broken":
            self.render = lambda solution, seed: [seed / 0]

    def evaluate(self, solutions, seeds):
        if self.how in ("render", "blind", "broken"):
            return Evaluation(solutions[:, 0] * (seeds % 7), solutions[:, 1:2])
        return Evaluation(*map(np.array, zip(*map(self.play, solutions, seeds))))

    def play(self, weights, seed):
        env = self.env or gym.make("CartPole-v1")
        x, _ = env.reset(seed=int(seed))
        total, ended = 0.0, False
        while not ended:
            x, reward, terminated, truncated, _ = env.step(int(weights @ x > 0))
            total, ended = total + reward, terminated or truncated
        if env is not self.env:
            env.close()
        return total, [float(x[0])]
"""


@pytest.mark.parametrize("how", ["kept", "new", "render", "blind", "broken"])
def test_a_plug_in_is_filmed_without_changes(tmp_path, how, capsys):
    """A new method in its class would change the ids of its finished runs."""
    name = f"cart_{how}"
    plugin = tmp_path / f"config/plugins/{name}.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(PLUGIN)
    domain = {"type": f"{name}:Cart", "arguments": {"how": how}}
    run = computed(tmp_path, {**SMALL, "domain": domain, "archive": {"dims": [6]}})
    require_episodes(compose(str(run / "config.yaml")).domain)
    refusals = {"blind": "gymnasium.make", "broken": "ZeroDivisionError"}
    if how in refusals:
        with refused("Cart", "render(solution, seed)", refusals[how]):
            rollout(run, tmp_path / "out", ["best"], 1.0)
        return
    entries = rollout(run, tmp_path / "out", ["best", "median"], 0.5)
    assert len(entries) > 1
    assert all(entry["equal"] for entry in entries)
    steps = [entry["steps"] for entry in entries]
    objectives = [entry["archive"]["objective"] for entry in entries]
    assert steps == ([29] * len(entries) if how == "render" else objectives)
    assert capsys.readouterr().err == ""


def test_of_an_atari_game_frames_are_counted(tmp_path):
    """Its pictures show decisions, which last four frames each."""
    pytest.importorskip("ale_py", reason="the Arcade Learning Environment: `make extras`")
    domain = {"preset": "atari_qbert", "max_frames": 90}
    experiment = {**SMALL, "domain": domain, "archive": {"dims": [3, 3]}, "iterations": 1}
    run = computed(tmp_path, experiment)
    (entry,) = rollout(run, tmp_path / "out", ["best"], 1.0)
    assert (entry["steps"], entry["equal"]) == (90, True)
    shot = Shot(10.0)
    shot.add_all(np.zeros((24, 8, 8, 3), np.uint8))  # 23 decisions, the last of two frames
    length = shot.seconds
    shot.count(90)
    assert shot.moments == [*range(0, 89, 4), 90] and shot.seconds == pytest.approx(length)


def test_the_command_shows_any_cell(lander, tmp_path, capsys):
    run = next((lander.parents[1] / "runs").iterdir())
    with np.load(run / "archive.npz") as arrays:
        index, measures = arrays["index"], arrays["measures"]
    x, y = np.clip(measures[3], (-1, -3), (1, 0))  # a cell at the edge has elites outside, too
    words = ["rollout", str(run), "--seconds", "0.3"]
    assert main([*words, "--elites", "best", "--at", f"{x},{y}", "--out", "x"]) == 0
    best, entry = json.loads((tmp_path / "x/rollouts.json").read_text())["rollouts"]
    assert best["elite"] == "best" and best["file"] == f"{run.name}-best.gif"
    assert entry["elite"] == f"cell-{index[3]}"
    assert list(entry["archive"]["measures"].values()) == measures[3].tolist()
    assert entry["equal"] and (tmp_path / "x" / entry["file"]).exists()
    names_all(capsys.readouterr().out, f"x/{best['file']}", f"x/{entry['file']}")
    empty = next(cell for cell in range(100) if cell not in index)
    point = f"{-0.9 + empty // 10 * 0.2:.3f},{-2.85 + empty % 10 * 0.3:.3f}"
    assert main([*words, "--at", point, "--out", "y"]) == 2
    names_all(capsys.readouterr().err, *(number.rstrip("0") for number in point.split(",")))


def test_choose():
    arrays = {
        "objective": np.array([3.0, 9.0, 1.0, 5.0, 4.0]),
        "measures": np.array([[0.0, 2.0], [1.0, 1.0], [0.0, 3.0], [2.0, 0.5], [2.0, 4.0]]),
    }
    chosen = choose(arrays, ["a b", "c/d"], ALL)
    assert [(each.name, each.row) for each in chosen] == [
        ("best", 1),
        ("median", 4),
        ("lowest-a-b", 0),  # the better one of two with 0
        ("highest-a-b", 3),
    ]
    names_all(chosen[3].title, "a b", "c/d")  # it also has the lowest value of this measure
    assert [each.row for each in choose(arrays, ["a", "c"], ["median"])] == [4]
    nothing = {"objective": np.empty(0), "measures": np.empty((0, 2))}
    assert choose(nothing, ["a", "c"], ALL) == []


@pytest.mark.parametrize("steps", [1, 7, 100, 1000])
def test_a_long_episode_is_shown_faster(steps):
    shot = Shot(longest=3.0, fps=50.0)
    picture = Image.new("RGB", (4, 4))
    shot.add(picture, 0)
    for step in range(1, steps + 1):
        shot.steps += 1
        if shot.wants(step):
            shot.add(picture, step)
    assert len(shot.frames) <= 61
    assert len(np.unique(np.diff(shot.moments))) <= 1, "at equal intervals"
    assert shot.seconds == pytest.approx(max(min(steps / 50, 3.0), 0.1))
    if steps == 1000:
        assert len(shot.frames) > 30
        assert shot.speed == pytest.approx(20 / 3)


def test_domains_without_episodes_and_imported_runs_are_refused(tmp_path, capsys):
    run = {"a": compose({**TINY, "domain": "lp_sphere"})}
    file = SweepFile(name="a", experiment="arm", rollouts=Rollouts())
    sources = {(): "mine.yaml", ("rollouts",): "--config rollouts"}
    with refused("--config rollouts", "lp_sphere"):
        check_sweep(file, Sweep((), (), run), sources)
    check_sweep(file, Sweep((), (), {"a": compose(LANDER | {"seed": 1})}), sources)
    imported = tmp_path / "imported-theirs-s1"
    imported.mkdir()
    for command in ("rollout", "reevaluate"):
        assert main([command, str(imported)]) == 2
        names_all(capsys.readouterr().err, imported.name)


def test_the_page_shows_how_an_episode_ends_until_it_is_asked_for(tmp_path):
    frames = [Image.new("RGB", (64, 48), color) for color in ("red", "lime", "blue")]
    write_gif(tmp_path / "a.gif", frames, 1.0)
    still = last_frame(tmp_path / "a.gif")
    with Image.open(io.BytesIO(base64.b64decode(still.url.partition(",")[2]))) as picture:
        assert picture.size == (still.width, still.height) == (64, 48)
        assert np.abs(np.subtract(picture.getpixel((30, 20)), (0, 0, 255))).max() < 10


def test_what_cannot_be_rendered_is_named(tmp_path, monkeypatch):
    run = computed(tmp_path, CARTPOLE)
    monkeypatch.setattr(
        "gymnasium.envs.classic_control.cartpole.CartPoleEnv.render", lambda self: None
    )
    with refused("CartPole-v1", "pygame"):
        rollout(run, tmp_path / "out", ["best"], 1.0)


def test_mujoco_renders_or_names_its_requirements(tmp_path):
    pytest.importorskip(
        "mujoco", reason="MuJoCo: `pip install 'qdsweep[mujoco]'`, up to Python 3.13"
    )
    domain = {"preset": "qd_hopper", "max_episode_steps": 30, "evaluation_seed": "fixed"}
    experiment = {**SMALL, "domain": domain, "archive": {"dims": [5]}, "iterations": 2}
    run = computed(tmp_path, experiment)
    try:
        entries = rollout(run, tmp_path / "out", ["best"], 1.0)
    except BadInput as error:
        assert "MUJOCO_GL=osmesa" in str(error)
    else:
        assert entries[0]["equal"] is True
        assert (tmp_path / "out" / entries[0]["file"]).exists()
