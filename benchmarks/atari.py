"""Frames of Atari games a CPU second, beside the emulator's own loop.

    python benchmarks/atari.py [--repeats 5] [--frames 3000]

The actions that a random policy has taken are played again in ale-py's plain loop, which reads the
memory after each (or not even that: the physical limit), so that both emulate alike. They take
turns, and the figures are CPU seconds, so that a busy machine matters little.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

from figures import figure

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import numpy as np  # noqa: E402
from ale_py.vector_env import AtariVectorEnv  # noqa: E402

from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.domains import make_domain  # noqa: E402
from qdsweep.domains.atari import AtariGame  # noqa: E402
from qdsweep.domains.policies import make_choice  # noqa: E402

GAMES = ("beam_rider", "breakout", "pong", "qbert", "space_invaders")
SIZES = {
    "algorithm": "map_elites",
    "archive": {"dims": [2, 2]},
    "num_emitters": 1,
    "batch_size": 1,
    "evaluations": 1,
}
SCREENS = {"observation": "screen", "policy": {"type": "convolutional"}, "x0": "xavier"}


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
    """Linear policies of the memory beside the bare loop, over five games."""
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
    """The convolutional network on screens beside the emulator's own environment of screens."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--frames", type=int, default=3000, help="of an episode")
    arguments = parser.parse_args()
    memory(arguments.repeats, arguments.frames)
    screens(arguments.repeats, arguments.frames)


if __name__ == "__main__":
    main()
