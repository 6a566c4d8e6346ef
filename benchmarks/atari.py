"""Atari: frames and gradient steps per CPU second compared with peers, and memory.

    python benchmarks/atari.py [--repeats 5] [--frames 3000]

Learners of screens need `make rl`. Their peer is `train()` of stable-baselines3's CnnPolicy.
ale-py's plain loop repeats the actions of a random policy, so both emulate the same frames. It
reads the memory after each action, or not even that, which is the physical limit. Both take turns,
and the times are CPU seconds, so that a busy machine matters little.
"""

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from figures import figure, measure

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import numpy as np  # noqa: E402
from ale_py.vector_env import AtariVectorEnv  # noqa: E402

from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.domains import make_domain  # noqa: E402
from qdsweep.domains.policies import make_choice  # noqa: E402
from qdsweep.engines.allocation import PYTHON  # noqa: E402
from qdsweep.features.atari.games import AtariGame  # noqa: E402

GAMES = ("beam_rider", "breakout", "pong", "qbert", "space_invaders")
SIZES = {
    "algorithm": "map_elites",
    "archive": {"dims": [2, 2]},
    "num_emitters": 1,
    "batch_size": 1,
    "evaluations": 1,
}
SCREENS = {"observation": "screen", "policy": {"type": "convolutional"}, "x0": "xavier"}
LEARNT = {
    "preset": "atari_breakout",
    "observation": "screen",
    "pixels": "bytes",
    "policy": {"type": "convolutional", "network": "mnih2015"},
}


def domain_of(game: str, frames: int, **changes: object) -> AtariGame:
    """A preset whose episodes are cut, so that all games weigh alike."""
    changes = {"preset": f"atari_{game}", "max_frames": frames, **changes}
    experiment = compose({"domain": changes, **SIZES})
    made: AtariGame = make_domain(experiment.domain)  # type: ignore[assignment]
    return made


def actions_of(domain: AtariGame, solution: np.ndarray, seed: int) -> list[int]:
    choice = make_choice(domain._actions, None, 0, seed)
    return domain._play(solution, seed, choice).actions


def bare(domain: AtariGame, actions: list[int], *, reads: bool) -> int:
    """Plays actions in ale-py's plain loop, and returns the frames."""
    ale, memory, buttons, frames = domain._ale, np.empty(128, np.uint8), domain._buttons, 0
    ale.reset_game()
    for action in actions:
        if ale.game_over():
            frames += ale.getEpisodeFrameNumber()
            ale.reset_game()
        for _ in range(4):
            ale.act(buttons[action])
        if reads:
            ale.getRAM(memory)
    return frames + ale.getEpisodeFrameNumber()


def vector(env: AtariVectorEnv, decisions: int) -> int:
    """Plays random actions in ale-py's C++ environment of screens, and returns the frames."""
    for _ in range(decisions):
        env.step(env.action_space.sample())
    return 4 * decisions


def rate(play: Callable[[], int]) -> float:
    """Frames a CPU second."""
    start = time.process_time()
    return play() / (time.process_time() - start)


def rates(plays: dict[str, Callable[[], int]], repeats: int) -> dict[str, float]:
    """The median rate of each, which take turns."""
    seen = [{name: rate(play) for name, play in plays.items()} for _ in range(repeats)]
    return {name: statistics.median(rate[name] for rate in seen) for name in plays}


def memory(repeats: int, frames: int) -> None:
    """Linear policies of the memory compared with the bare loop, over five games."""
    measured = []
    for game in GAMES:
        domain = domain_of(game, frames)
        solution = np.random.default_rng(0).normal(size=(1, domain.solution_dim))
        actions = actions_of(domain, solution[0], 1)

        def ours(domain: AtariGame = domain, solution: np.ndarray = solution) -> int:
            return int(domain.evaluate(solution, np.ones(1, dtype=np.uint32)).steps[0])

        plays = {
            "ours": ours,
            "loop": partial(bare, domain, actions, reads=True),
            "emulator": partial(bare, domain, actions, reads=False),
        }
        measured.append(rates(plays, repeats))
        print(game, {name: round(rate) for name, rate in measured[-1].items()}, flush=True)
    ours, loop, emulator = (
        statistics.geometric_mean(rate[name] for rate in measured)
        for name in ("ours", "loop", "emulator")
    )
    figure(
        "Atari, linear policies of the memory, frames/s",
        "ale-py's plain loop, without a policy",
        ours / loop,
        ">= 0.8",
        limit="1",
        detail=f"{ours:.0f} frames a CPU second against {loop:.0f}, and {emulator:.0f} without "
        f"reading the memory; geometric means of {len(GAMES)} games",
        profile=f"the emulator {4e6 / emulator:.0f} us a decision, the rest "
        f"{4e6 / ours - 4e6 / emulator:.0f} us: memory, network, start and measures",
    )


def screens(repeats: int, frames: int) -> None:
    """The convolutional network on screens, compared with the emulator's screens."""
    domain = domain_of("breakout", frames, **SCREENS)
    solution = domain.xavier(np.random.SeedSequence(1))
    network = domain._policy.network(solution.astype(np.float32))
    seen, decisions = domain._eyes.look(domain._memory[0]), frames // 4
    actions = actions_of(domain, solution, 1)
    env = AtariVectorEnv("breakout", num_envs=1, num_threads=1)
    env.reset(seed=1)

    def decide() -> int:
        for _ in range(decisions):
            network(seen)
        return 4 * decisions

    measured = rates(
        {
            "ours": lambda: int(
                domain.evaluate(solution[np.newaxis], np.ones(1, dtype=np.uint32)).steps[0]
            ),
            "environment": lambda: vector(env, decisions),
            "network": decide,
            "emulator": partial(bare, domain, actions, reads=False),
        },
        repeats,
    )
    each = {name: 4e6 / rate for name, rate in measured.items()}
    rest = each["ours"] - each["network"] - each["emulator"]
    figure(
        "Atari, a convolutional policy of screens, frames/s",
        "ale-py's AtariVectorEnv (C++), without a policy",
        measured["ours"] / measured["environment"],
        limit="1",
        detail=f"{measured['ours']:.0f} frames a CPU second against "
        f"{measured['environment']:.0f}; a decision takes {each['ours']:.0f} us: "
        f"four frames {each['emulator']:.0f} us, network "
        f"{each['network']:.0f} us, screens {rest:.0f} us",
    )


def minibatches(get: Callable[[int], Any], size: int, batch_size: None) -> Any:
    """The minibatches of a rollout buffer, of which stable-baselines3's A2C asks for a whole."""
    return get(size)


def learning(repeats: int) -> None:
    """Gradient steps of the presets for screens, on the same transitions."""
    import torch
    from gymnasium import spaces
    from stable_baselines3 import A2C, DQN, PPO
    from stable_baselines3.common.logger import Logger

    from qdsweep.algorithms import make_algorithm
    from qdsweep.domains.base import Exploration
    from qdsweep.features.rl.learners.steps import join

    torch.set_num_threads(1)
    for kind, cls in (("ppo", PPO), ("a2c", A2C), ("dqn", DQN)):
        made = {"domain": LEARNT, **SIZES, "algorithm": f"{kind}_atari"}
        experiment = compose(made, {"buffer_size": 2000} if kind == "dqn" else {})
        domain, settings = make_domain(experiment.domain), experiment.algorithm
        learner: Any = make_algorithm(experiment, domain, None).learner  # type: ignore[attr-defined]
        weights, seeds = np.zeros((8, domain.solution_dim)), np.arange(8, dtype=np.uint32)
        wander = Exploration("softmax", np.ones((8, 1)))
        played = domain.evaluate(weights, seeds, experience=True, exploration=wander).experience
        steps = join(played, discrete=True, image=(4, 84, 84))
        every = np.arange(len(steps.rewards))

        own = {"batch_size": settings.minibatch, "n_epochs": 1, "n_steps": len(every)}
        own = {"ppo": own, "a2c": {"n_steps": len(every)}, "dqn": {"buffer_size": len(every)}}[kind]
        model: Any = cls("CnnPolicy", None, device="cpu", _init_setup_model=False, **own)
        model.observation_space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
        model.action_space, model.n_envs = spaces.Discrete(4), 1
        model._setup_model()
        model.set_logger(Logger(None, []))
        theirs = model.replay_buffer if kind == "dqn" else model.rollout_buffer
        theirs.observations[:, 0] = steps.observations[every]
        theirs.actions[:, 0, 0] = steps.actions
        theirs.rewards[:, 0] = steps.rewards
        theirs.pos, theirs.full = 0, True
        if kind == "dqn":
            theirs.next_observations[:, 0] = steps.following[every]
            for record in played:
                learner.replay.add(record)
            learner.model.replay_buffer = learner.replay.buffer
            gradients = 50
            ours, its = (
                partial(trained.train, gradients, settings.minibatch)
                for trained in (learner.model, model)
            )
        else:
            learner.model.rollout_buffer = learner._buffer(played)
            learner.model.n_epochs = 1
            gradients = math.ceil(len(every) / settings.minibatch)
            if kind == "a2c":
                theirs.get = partial(minibatches, theirs.get, settings.minibatch)
            ours, its = learner.model.train, model.train

        def counted(train: Callable[[], None], gradients: int = gradients) -> int:
            train()
            return gradients

        measured = rates({"ours": partial(counted, ours), "its": partial(counted, its)}, repeats)
        figure(
            f"Atari, {kind} on screens, gradient steps/s",
            "stable-baselines3's train()",
            measured["ours"] / measured["its"],
            ">= 0.9",
            limit="1",
            detail=f"{measured['ours']:.2f} gradient steps of {settings.minibatch} decisions a CPU "
            f"second against {measured['its']:.2f}",
        )


def peak() -> None:
    """The memory of a run of PPO on screens, in one process."""
    game = {**LEARNT, "preset": "atari_space_invaders"}
    made = {**SIZES, "domain": game, "algorithm": "ppo_atari", "batch_size": 8}
    made |= {"evaluations": None, "steps": 100_000}
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "experiment.yaml")
        file.write_text(yaml.safe_dump(made))
        cost = measure(file.parent, *PYTHON, "run", file, "--out", "out")
    figure(
        "Atari, PPO on screens with batches of 8 episodes, peak memory",
        "1.5 GiB",
        cost.memory / 1.5,
        "<= 1",
        detail=f"{cost.memory:.2f} GiB, {cost.wall:.0f} s",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--frames", type=int, default=3000, help="of an episode")
    arguments = parser.parse_args()
    memory(arguments.repeats, arguments.frames)
    screens(arguments.repeats, arguments.frames)
    learning(arguments.repeats)
    peak()


if __name__ == "__main__":
    main()
