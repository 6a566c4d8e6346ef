"""What a step of an episode costs, beside gymnasium's usual way and the physics alone.

    python benchmarks/rollouts.py [--repeats 7]

One core; policies are the same in all columns, repeats are interleaved, figures are medians of
microseconds a step. LunarLander: our two paths, `gymnasium.make` for every evaluation (pyribs'
example), and the floor: `b2World.Step` alone, timed inside our fast path. HalfCheetah-v5 with an
MLP of 64x64: our plain path against `gymnasium.make` for every evaluation. Results must be equal,
bit for bit.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from qdsweep.cpu import apply_baseline

apply_baseline("avx2")

import Box2D  # noqa: E402
import gymnasium as gym  # noqa: E402
import numpy as np  # noqa: E402
from lander_example import by_make  # noqa: E402

from qdsweep.config import domain as config  # noqa: E402
from qdsweep.domains.gymnasium_task import GymnasiumTask  # noqa: E402
from qdsweep.domains.lunar_lander import LunarLander  # noqa: E402

SEED = 52
ELITES = Path(__file__).with_name("lander_policies.npy")


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class StepClock:
    """Times `b2World.Step` while it is used."""

    def __enter__(self) -> "StepClock":
        self.seconds, self.steps = 0.0, 0
        self._raw = Box2D.b2World.__dict__["Step"]
        step, now = Box2D.b2World.Step, time.perf_counter

        def clocked(world, *arguments):
            start = now()
            step(world, *arguments)
            self.seconds += now() - start
            self.steps += 1

        Box2D.b2World.Step = clocked
        return self

    def __exit__(self, *_: object) -> None:
        Box2D.b2World.Step = self._raw
        rounds = 100_000
        start = time.perf_counter()
        for _ in range(rounds):
            time.perf_counter()
        self.seconds -= self.steps * (time.perf_counter() - start) / rounds


def lander(repeats: int) -> dict[str, list[float]]:
    policies = np.load(ELITES)
    lean, plain = LunarLander(1), LunarLander(1)
    assert lean._lean is not None
    plain._lean = None

    def example() -> list[list[float]]:
        return [list(by_make(policy, SEED)) for policy in policies]

    def ours(domain: LunarLander) -> list[list[float]]:
        return [domain._land(policy, SEED) for policy in policies]

    assert ours(lean) == ours(plain) == example(), "the same landings"
    figures: dict[str, list[float]] = {"fast": [], "plain": [], "make": [], "step": []}
    for _ in range(repeats):
        figures["fast"].append(timed(lambda: ours(lean)))
        with StepClock() as clock:
            ours(lean)
        figures["step"].append(clock.seconds)
        figures["plain"].append(timed(lambda: ours(plain)))
        figures["make"].append(timed(example))
    print(f"LunarLander: {len(policies)} landings, {clock.steps} steps")
    return {name: [1e6 * s / clock.steps for s in seconds] for name, seconds in figures.items()}


def cheetah(repeats: int, episodes: int = 4) -> dict[str, list[float]]:
    task = config.Gymnasium.model_validate_json(
        '{"type": "gymnasium", "env": "HalfCheetah-v5", "objective_range": [-1000, 1000],'
        ' "policy": {"type": "mlp", "hidden": [64, 64]},'
        ' "measures": [{"measure": "mean_observation", "component": 0, "range": [-1, 1]}]}'
    )
    domain = GymnasiumTask(task)
    policies = 0.1 * np.random.default_rng(1).normal(size=(episodes, domain.solution_dim))
    steps = 1000 * episodes
    space = domain._env.action_space
    low, high = space.low.astype(float), space.high.astype(float)
    centre, half = (low + high) / 2, (high - low) / 2

    def layers(policy: np.ndarray) -> list[np.ndarray]:
        parts, start = [], 0
        for before, after in ((17, 64), (64, 64), (64, 6)):
            parts.append(policy[start : start + before * after].reshape(after, before))
            start += before * after
            parts.append(policy[start : start + after])
            start += after
        return parts

    def by_make() -> list[list[float]]:
        results = []
        for policy in policies:
            env = gym.make("HalfCheetah-v5")
            w1, b1, w2, b2, w3, b3 = layers(policy)
            x, _ = env.reset(seed=SEED)
            total, seen, done = 0.0, [], False
            while not done:
                x = w3 @ np.tanh(w2 @ np.tanh(w1 @ x + b1) + b2) + b3
                action = (centre + half * np.tanh(x)).astype(np.float32)
                x, reward, terminated, truncated, _ = env.step(action)
                total += float(reward)
                seen.append(x)
                done = terminated or truncated
            results.append([total, float(np.mean(np.array(seen)[:, 0]))])
            env.close()
        return results

    def ours() -> list[list[float]]:
        return [domain._play(policy, SEED) for policy in policies]

    assert ours() == by_make(), "the same runs"
    figures: dict[str, list[float]] = {"plain": [], "make": []}
    for _ in range(repeats):
        figures["plain"].append(timed(ours))
        figures["make"].append(timed(by_make))
    print(f"HalfCheetah-v5: {episodes} episodes, {steps} steps")
    return {name: [1e6 * s / steps for s in seconds] for name, seconds in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="interleaved repeats (default: 7)")
    repeats = parser.parse_args().repeats
    us = {name: statistics.median(values) for name, values in lander(repeats).items()}
    print(
        f"  us a step: fast path {us['fast']:.1f}, plain path {us['plain']:.1f}, gymnasium.make "
        f"{us['make']:.1f}, b2World.Step alone {us['step']:.1f}\n"
        f"  against the floor: fast {us['fast'] / us['step']:.2f} (wanted <= 1.15), plain "
        f"{us['plain'] / us['step']:.2f}, gymnasium.make {us['make'] / us['step']:.2f}"
    )
    us = {name: statistics.median(values) for name, values in cheetah(repeats).items()}
    print(
        f"  us a step: plain path {us['plain']:.1f}, gymnasium.make {us['make']:.1f}: ratio "
        f"{us['make'] / us['plain']:.2f} (wanted >= 1.08)"
    )


if __name__ == "__main__":
    main()
