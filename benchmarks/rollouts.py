"""The cost of a step of an episode, compared with gymnasium and with the physics only.

    python benchmarks/rollouts.py [--repeats 7]

One core; policies are the same in all columns, repeats are interleaved, times are medians of
microseconds per step. LunarLander: our two paths, `gymnasium.make` for every evaluation (pyribs'
example), and the floor. The floor is the time in `b2World.Step` inside our fast path.
HalfCheetah-v5 with an MLP of 64x64: our plain path, `gymnasium.make` for every evaluation, and the
floor. The floor is `mj_step` with the same actions. Results must be equal, bit for bit.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import Box2D  # noqa: E402
import gymnasium as gym  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from figures import figure  # noqa: E402
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


def lander(repeats: int) -> None:
    policies = np.load(ELITES)
    lean, plain = LunarLander(1), LunarLander(1)
    assert lean._lean is not None
    plain._lean = None

    def example() -> list[list[float]]:
        return [list(by_make(policy, SEED)) for policy in policies]

    def ours(domain: LunarLander) -> list[list[float]]:
        return [domain._land(policy, SEED) for policy in policies]

    assert ours(lean) == ours(plain) == example(), "the same landings"

    def resets() -> None:
        for _ in policies:
            lean._env.reset(seed=SEED)

    x, output = np.zeros(8), np.empty(4)

    def choices(steps: int) -> None:
        product, values = policies[0].reshape(4, 8).dot, output.tolist
        for _ in range(steps):
            product(x, output)
            scores = values()
            scores.index(max(scores))

    times: dict[str, list[float]] = {"fast": [], "plain": [], "make": [], "step": []}
    times |= {"reset": [], "choose": []}
    for _ in range(repeats):
        times["fast"].append(timed(lambda: ours(lean)))
        with StepClock() as clock:
            ours(lean)
        times["step"].append(clock.seconds)
        times["reset"].append(timed(resets))
        times["choose"].append(timed(lambda: choices(clock.steps)))
        times["plain"].append(timed(lambda: ours(plain)))
        times["make"].append(timed(example))
    us = a_step(times, clock.steps)
    figure(
        "LunarLander, us per step",
        "`b2World.Step` only",
        us["fast"] / us["step"],
        "<= 1.2",
        "1",
        f"{us['fast']:.1f} us against {us['step']:.1f} us; plain path {us['plain']:.1f} us, "
        f"`gymnasium.make` {us['make']:.1f} us",
        f"`b2World.Step` {us['step']:.1f} us, gymnasium's `reset` {us['reset']:.1f} us, policy "
        f"{us['choose']:.1f} us; the other "
        f"{us['fast'] - us['step'] - us['reset'] - us['choose']:.1f} us are Python: observation, "
        "forces, reward",
    )
    figure(
        "LunarLander by `gymnasium.make`, us per step",
        "`b2World.Step` only",
        us["make"] / us["step"],
        limit="1",
        detail=f"{us['make']:.1f} us against {us['step']:.1f} us",
    )


def cheetah(repeats: int, episodes: int = 4) -> None:
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

    actions: list[list[np.ndarray]] = []  # of each episode

    def by_make() -> list[list[float]]:
        actions.clear()
        results = []
        for policy in policies:
            env = gym.make("HalfCheetah-v5")
            w1, b1, w2, b2, w3, b3 = layers(policy)
            x, _ = env.reset(seed=SEED)
            total, seen, done = 0.0, [], False
            actions.append([])
            while not done:
                x = w3 @ np.tanh(w2 @ np.tanh(w1 @ x + b1) + b2) + b3
                action = (centre + half * np.tanh(x)).astype(np.float32)
                actions[-1].append(action)
                x, reward, terminated, truncated, _ = env.step(action)
                total += float(reward)
                seen.append(x)
                done = terminated or truncated
            results.append([total, float(np.mean(np.array(seen)[:, 0]))])
            env.close()
        return results

    def ours() -> list[list[float]]:
        results = domain.evaluate(policies, np.full(episodes, SEED, dtype=np.uint32))
        return np.column_stack([results.objective, results.measures]).tolist()

    bare = gym.make("HalfCheetah-v5").unwrapped
    model, data = bare.model, bare.data

    def physics(episode: list[np.ndarray]) -> None:
        for action in episode:
            data.ctrl[:] = action
            mujoco.mj_step(model, data, nstep=bare.frame_skip)

    assert ours() == by_make(), "the same runs"
    times: dict[str, list[float]] = {"plain": [], "make": [], "step": []}
    for _ in range(repeats):
        times["plain"].append(timed(ours))
        times["make"].append(timed(by_make))
        times["step"].append(0.0)
        for episode in actions:
            bare.reset(seed=SEED)
            times["step"][-1] += timed(lambda episode=episode: physics(episode))
    us = a_step(times, steps)
    figure(
        "HalfCheetah-v5, steps/s",
        "`gymnasium.make` for every evaluation",
        us["make"] / us["plain"],
        ">= 1.2",
        "1.25",
        f"{us['plain']:.1f} us per step against {us['make']:.1f} us",
        f"`mj_step` {us['step']:.1f} us; the rest is the policy and gymnasium's `step`, which both "
        "have",
    )
    figure(
        "HalfCheetah-v5, us per step",
        "`mj_step` only",
        us["plain"] / us["step"],
        limit="1",
        detail=f"{us['plain']:.1f} us against {us['step']:.1f} us",
    )


def a_step(times: dict[str, list[float]], steps: int) -> dict[str, float]:
    """Medians in microseconds per step."""
    return {name: 1e6 * statistics.median(s) / steps for name, s in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="interleaved repeats (default: 7)")
    repeats = parser.parse_args().repeats
    lander(repeats)
    cheetah(repeats)


if __name__ == "__main__":
    main()
