"""Atari games equal those of a fresh emulator for every episode, bit for bit."""

import importlib.util
import sys

import numpy as np
import pytest
from domain_makers import config, make
from refusals import refused

from qdsweep.config.compose import compose
from qdsweep.config.requirements import require_packages_of
from qdsweep.domains import plugin
from qdsweep.domains.base import CUT, TERMINATED
from qdsweep.features.atari.domains import Atari
from qdsweep.sweep.ids import decisive

LENGTH = {"measure": "episode_length", "range": [0, 20000]}
NOOP = {"measure": "mean_action", "component": 0, "range": [0, 1]}
PADDLE = {"measure": "mean_observation", "component": 72, "range": [55, 191]}
SETTINGS = {
    "type": "atari",
    "game": "Breakout",
    "max_frames": 303,
    "measures": [PADDLE, NOOP, LENGTH],
    "objective_range": [0, 100],
}
CONVOLUTIONAL = {"observation": "screen", "policy": {"type": "convolutional"}}
NATURE = {"observation": "screen", "policy": {"type": "convolutional", "network": "mnih2015"}}
if importlib.util.find_spec("ale_py") is None:
    pytest.skip("the Arcade Learning Environment: `make extras`", allow_module_level=True)


def game(**changes):
    return make(**{**SETTINGS, **changes})


def solutions_of(domain, count, seed=0):
    """Returns random policies with different behaviours."""
    solutions = np.random.default_rng(seed).normal(size=(count, domain.solution_dim))
    return solutions - solutions.mean(axis=1, keepdims=True)


def fresh(name, seed, max_frames):
    """Returns an emulator made as in the manual of the ALE."""
    from ale_py import ALEInterface, LoggerMode, roms

    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setInt("max_num_frames_per_episode", max_frames)
    ale.setFloat("repeat_action_probability", 0.25)
    ale.loadROM(roms.get_rom_path(name))
    return ale


def play(ale, weights, frame_skip=4):
    """Returns return, mean of byte 72, share of the first action, and frames of a linear policy."""
    buttons, total, seen, done = ale.getMinimalActionSet(), 0, [], []
    while not ale.game_over():
        observation = (ale.getRAM() / 255).astype(np.float32).astype(float)
        done.append(int(np.argmax(weights.dot(observation))))
        for _ in range(frame_skip):
            total += ale.act(buttons[done[-1]])
        seen.append(ale.getRAM()[72])
    return [total, np.mean(seen), np.mean(np.array(done) == 0), ale.getEpisodeFrameNumber()]


@pytest.mark.parametrize(
    ("name", "rom", "is_fast"),
    [
        ("Breakout", "breakout", True),
        ("SpaceInvaders", "space_invaders", True),
        ("Berzerk", "berzerk", False),  # draws random numbers before it starts
    ],
)
def test_it_equals_a_fresh_emulator_an_episode(name, rom, is_fast):
    domain = game(game=name)
    assert domain._emulator.is_fast == is_fast
    solutions, seeds = solutions_of(domain, 4), np.array([3, 2**32 - 1, 0, 3], dtype=np.uint32)
    result = domain.evaluate(solutions, seeds)
    assert result.steps.tolist() == result.measures[:, 2].tolist()
    for row, weights in enumerate(solutions):
        ale = fresh(rom, int(seeds[row]) % 2**31, 303)
        expected = play(ale, weights.reshape(-1, 128))
        assert [result.objective[row], *result.measures[row]] == expected
    assert len(np.unique(result.measures[:, 0])) > 1


@pytest.fixture()
def few(monkeypatch):
    """Limits the evaluations to those that the checks need."""
    monkeypatch.setattr(plugin, "_SAMPLE_SECONDS", 0.0)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "changes",
    [
        {"policy": {"type": "mlp", "hidden": [4]}, "max_frames": 42, "episodes": 2},
        {"observation": "screen", "policy": {"type": "linear"}},
        {"observation": "screen", "policy": {"type": "mlp", "hidden": [4]}},
        CONVOLUTIONAL,
        {**CONVOLUTIONAL, "pixels": "bytes", "episodes": 2, "step": 0.001},
        {**NATURE, "pixels": "bytes", "step": 0.001},
        {"game": "NameThisGame", "max_frames": 190, "policy": {"type": "mlp", "hidden": [4]}},
    ],
)
def test_no_row_depends_on_others_and_learners_get_what_they_need(changes):
    domain = game(**{"max_frames": 30, "x0": "xavier", **changes})
    plugin.check_rows(domain, batch=3)
    if "pixels" in changes:
        assert domain.actor.image == (4, 84, 84) and domain.actor.shapes[-1][0] == 4
    elif "observation" in changes:
        assert not hasattr(domain, "actor")
    else:
        assert domain.actor.discrete and domain.actor.shapes[0] == (4, 128)


def test_a_record_has_the_memory_as_the_policy_saw_it():
    domain = game(game="Pong", max_frames=3400)
    short = game(game="Pong", max_frames=42)
    weights = solutions_of(domain, 1)
    for played, end in ((domain, TERMINATED), (short, CUT)):
        result = played.evaluate(weights, np.zeros(1, dtype=np.uint32), experience=True)
        (record,) = result.experience
        decisions = -(-int(result.steps[0]) // 4)
        assert record.observations.shape == (decisions + 1, 128)
        assert record.ends.tolist() == [0] * (decisions - 1) + [end]
        assert record.rewards.sum() == result.objective[0]
        outputs = record.observations[:-1].astype(float) @ weights.reshape(-1, 128).T
        assert (record.actions.argmax(axis=1) == outputs.argmax(axis=1)).all()
        assert record.observations.min() >= 0 and record.observations.max() <= 1


def shrunk(screen):
    """Returns means over the areas of 84 x 84 pixels, from pixels that each are in one area."""
    for axis, size in enumerate(screen.shape):
        fine = np.repeat(screen, 84, axis=axis)
        shape = (84, size, -1) if axis == 0 else (-1, 84, size)
        screen = fine.reshape(shape).mean(axis=axis + (axis == 0) + (axis == 1))
    return screen / 255


# Games with three heights. DemonAttack's first screen depends on earlier episodes.
@pytest.mark.parametrize("name", ["Breakout", "Carnival", "Adventure", "DemonAttack"])
def test_a_screen_is_the_brighter_of_two_frames_in_grey(name):
    domain = game(game=name, observation="screen", max_frames=60)
    ale, rom = domain._ale, name.lower().replace("attack", "_attack")
    other = fresh(rom, 5, 60)
    domain._emulator.start(6)
    domain._eyes.act(ale.getMinimalActionSet()[1])
    domain._emulator.start(5)
    domain._eyes.begin()
    other_first = other.getScreenGrayscale()
    assert domain._eyes.look(ale.getRAM())[-84 * 84 :].reshape(84, 84) == pytest.approx(
        shrunk(other_first.astype(float)), abs=1e-6
    )
    expected = [shrunk(other.getScreenGrayscale().astype(float))] * 4
    buttons = ale.getMinimalActionSet()
    for action in (1, 2, 3, 1, 0):
        domain._eyes.act(buttons[action])
        frames = []
        for _ in range(4):
            other.act(buttons[action])
            frames.append(other.getScreenGrayscale().astype(float))
        expected = [*expected[1:], shrunk(np.maximum(frames[2], frames[3]))]
    seen = domain._eyes.look(ale.getRAM()).reshape(4, 84, 84)
    assert seen.dtype == np.float32
    assert seen == pytest.approx(np.array(expected), abs=1e-6)
    assert np.ptp(seen) > 0.1


def convolved(image, weights, biases, kernel, stride):
    """Returns a convolution by its definition."""
    weights = weights.reshape(len(weights), -1, kernel, kernel)
    size = (image.shape[1] - kernel) // stride + 1
    result = np.empty((len(weights), size, size))
    for y, x in np.ndindex(size, size):
        patch = image[:, y * stride : y * stride + kernel, x * stride : x * stride + kernel]
        result[:, y, x] = (weights * patch).sum(axis=(1, 2, 3)) + biases
    return np.maximum(result, 0)


@pytest.mark.parametrize(
    ("network", "convolutions", "units"),
    [
        ("mnih2013", [(16, 4, 8, 4), (32, 16, 4, 2)], (256, 2592)),
        ("mnih2015", [(32, 4, 8, 4), (64, 32, 4, 2), (64, 64, 3, 1)], (512, 3136)),
    ],
)
def test_a_convolutional_network_is_that_of_its_definition(network, convolutions, units):
    policy = {"type": "convolutional", "network": network}
    domain = game(observation="screen", policy=policy, x0="xavier")
    layers = [(filters, inputs * kernel**2) for filters, inputs, kernel, _ in convolutions]
    layers += [units, (4, units[0])]
    sizes = [size for outputs, inputs in layers for size in (outputs * inputs, outputs)]
    assert domain.solution_dim == sum(sizes) == len(domain.x0)
    rng = np.random.default_rng(0)
    solution = domain.x0 + rng.normal(scale=0.02, size=domain.solution_dim)
    parts = np.split(solution, np.cumsum(sizes)[:-1])
    x = image = rng.random((4, 84, 84))
    for number, (filters, _, kernel, stride) in enumerate(convolutions):
        weights, biases = parts[2 * number : 2 * number + 2]
        x = convolved(x, weights.reshape(filters, -1), biases, kernel, stride)
    x = np.maximum(parts[-4].reshape(units) @ x.reshape(-1) + parts[-3], 0)
    expected = parts[-2].reshape(4, -1) @ x + parts[-1]
    policy = domain._policy
    assert policy.network(solution)(image.reshape(-1)) == pytest.approx(expected, rel=1e-9)
    single = policy.network(solution.astype(np.float32))(image.reshape(-1).astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_a_record_of_screens_has_each_frame_once_as_the_policy_saw_it():
    domain = game(**CONVOLUTIONAL, pixels="bytes", x0="xavier", max_frames=80)
    exact = game(**CONVOLUTIONAL, x0="xavier", max_frames=80)
    seen, looked = [], domain._eyes.look

    def look(memory):
        seen.append(looked(memory).copy())
        return looked(memory)

    domain._eyes.look = look
    result = domain.evaluate(domain.x0[np.newaxis], np.zeros(1, np.uint32), experience=True)
    frames, actions, _, ends = result.experience[0][:4]
    assert (frames.dtype, frames.shape) == (np.uint8, (21, 7056))
    assert frames.nbytes + actions.nbytes < 35e6 * 20 / 4500, "18,000 frames: at most 35 MB"
    assert ends.tolist() == [0] * 19 + [CUT]
    padded = np.concatenate([np.repeat(frames[:1], 3, axis=0), frames])
    for step, stack in enumerate(seen):
        wanted = padded[step : step + 4].ravel() / np.float32(255)
        np.testing.assert_array_equal(stack, wanted)
    # Without a record it is the same episode, and a byte is the nearest to the exact mean.
    again = domain.evaluate(domain.x0[np.newaxis], np.zeros(1, np.uint32))
    assert again.measures.tolist() == result.measures.tolist() and again.experience is None
    exact._emulator.start(0)
    exact._eyes.begin()
    first = exact._eyes.look(None)[-7056:] * 255
    assert np.abs(frames[0] - first).max() < 0.5 + 1e-4 and np.ptp(frames[0]) > 50


@pytest.mark.parametrize(("name", "limit"), [("NameThisGame", 134), ("DoubleDunk", 8)])
def test_a_limit_within_the_menu_of_a_game_is_refused(name, limit):
    with refused(name, f"max_frames = {limit}"):
        game(game=name, max_frames=limit)
    domain = game(game=name, max_frames=200)
    played = domain.evaluate(np.zeros((1, domain.solution_dim)), np.arange(1), experience=True)
    assert len(played.experience[0].rewards)


def test_an_episode_may_be_longer_than_any_memory():
    assert game(max_frames=2**31 - 1, frame_skip=1).solution_dim == 4 * 128


def test_all_actions_of_a_joystick():
    assert game(full_action_space=True).solution_dim == 18 * 128
    assert game(game="Qbert").solution_dim == 6 * 128


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"game": "SpaceInvader"}, ("'SpaceInvader'", "SpaceInvaders")),
        ({"game": "breakout"}, ("Breakout",)),
        ({"game": "Joust"}, ("'Joust'",)),
        ({"policy": {"type": "convolutional"}}, ("observation: screen",)),
        ({"pixels": "bytes"}, ("pixels", "observation: screen")),
        (
            {"measures": [{"measure": "contact", "geom": "foot", "range": [0, 1]}]},
            ("contact",),
        ),
        ({"measures": [NOOP, NOOP]}, ("atari.measures",)),
        ({"frame_skip": 2**31}, ("frame_skip", 1000)),
        ({"max_frames": 2**63}, ("max_frames",)),
    ],
)
def test_what_does_not_fit_is_refused(changes, names):
    with refused(*names, kind=ValueError):
        config(**{**SETTINGS, **changes})


def test_a_byte_that_the_memory_lacks_is_refused():
    with refused("Breakout", 127):
        game(measures=[{**PADDLE, "component": 128}])


def experiment(**changes):
    sizes = {"archive": {"dims": [5, 5, 5]}, "num_emitters": 1, "batch_size": 10, "steps": 1000}
    return compose({"domain": {**SETTINGS, **changes}, "algorithm": "map_elites", **sizes})


def test_without_the_emulator_it_is_refused_before_anything_runs(monkeypatch):
    known = experiment()
    monkeypatch.setattr(Atari, "packages", ("ale_py_of_nobody",))
    with refused("atari", "ale_py", "`make extras`"):
        require_packages_of(known)
    monkeypatch.setitem(sys.modules, "ale_py", None)
    for name in ("games", "screens"):
        monkeypatch.delitem(sys.modules, f"qdsweep.features.atari.{name}", raising=False)
    with refused("atari", "ale_py", "`make extras`"):
        game()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"observation": "screen"}, ("policy: {type: convolutional} and pixels: bytes", "ram")),
        (CONVOLUTIONAL, ("pixels: bytes",)),
    ],
)
def test_screens_from_which_nothing_can_learn_are_refused(changes, names):
    with refused("pga_me", *names):
        compose(experiment(**changes).model_dump(mode="json"), {"algorithm": "pga_me"})


def test_the_domain_of_an_experiment_without_these_keys_is_what_it_was():
    assert not {"pixels", "network"} & set(str(decisive(experiment(**CONVOLUTIONAL))).split("'"))
