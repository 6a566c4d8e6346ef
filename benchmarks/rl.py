"""PPO and A2C compared with stable-baselines3's own `learn()`: returns, CPU time, workers.

    python benchmarks/rl.py [--seeds 10] [--steps STEPS] [--kinds ppo a2c] [--pairs 15]

Both learn CartPole-v1 for equally many environment steps, each seed in its own process. Then the
last policy plays 100 greedy episodes on common seeds. All settings are equal: those of our preset.
A2C has stable-baselines3's own advantages (`gae_lambda: 1`, not normalised) and a rate that falls
to 0, so that the end is not left to chance. An update has 1,024 steps (PPO) or 40 (A2C, as in
stable-baselines3: 5 of 8 environments), here of whole episodes with at least this many steps. CPU
seconds are those of learning and playing after a first update, without imports and compilation.

PPO with unrolls does what stable-baselines3 does, so their speeds are compared by pairs of runs,
which take turns. Their curves are compared by benchmarks/learning_curves.py. Results stay in DIR,
and the same command resumes.
"""

import argparse
import inspect
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from figures import figure, table

from qdsweep.host.machine import apply_baseline, apply_torch_baseline

apply_baseline("avx2")
apply_torch_baseline()  # one thread and the same kernels for both

import numpy as np  # noqa: E402

from qdsweep.config.cluster import Cluster  # noqa: E402
from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.config.experiment import Experiment  # noqa: E402
from qdsweep.domains import make_domain  # noqa: E402
from qdsweep.files import write_text  # noqa: E402

GREEDY = np.arange(10_000, 10_100, dtype=np.uint32)
STEPS = {"ppo": 100_000, "a2c": 500_000}
ENVIRONMENTS = 8
# Steps of an update, and the number of episodes that qdsweep plays at a time to get them.
# An episode has 500 steps at most.
UPDATE = {"ppo": {"n_steps": 1024, "batch_size": 8}, "a2c": {"n_steps": 40, "batch_size": 1}}
# Of a run of a pair.
PAIRED = 30_000
Row = dict[str, Any]


def experiment(kind: str, seed: int, steps: int) -> Experiment:
    """Ours: nothing but the first iteration is judged, so that all steps are learned from."""
    changes = {"algorithm": kind, "seed": seed, "steps": steps, **UPDATE.get(kind, {})}
    if kind == "a2c":
        changes |= {"gae_lambda": 1.0, "normalize_advantage": False, "decay_steps": steps}
    return compose("rl_cartpole", {**changes, "evaluate_every": 10_000})


def run(made: Experiment, workers: int = 1) -> Any:
    """Computes a run in this process; returns its final state."""
    from qdsweep.algorithms import make_algorithm
    from qdsweep.engines import make_engine
    from qdsweep.experiment.loop import run_loop
    from qdsweep.experiment.state import State
    from qdsweep.experiment.stop import Stop

    domain = make_domain(made.domain, made.seed)
    state = State(make_algorithm(made, domain, None), steps=0)
    engine = make_engine(Cluster(workers_per_node=workers), made, domain, None, None, {})
    try:
        engine.wait()

        def after(state: Any, seconds: dict[str, float]) -> None:
            for phase, value in seconds.items():
                state.seconds[phase] = state.seconds.get(phase, 0.0) + value

        run_loop(made, state, engine, Stop(), after)
    finally:
        engine.close()
    return state


def ours(kind: str, seed: int, steps: int) -> tuple[Any, int, float]:
    """Policy, environment steps and CPU seconds of a run of qdsweep."""
    run(experiment(kind, seed, 1))
    start = time.process_time()
    state = run(experiment(kind, seed, steps))
    return state.algorithm.learner.policy, state.steps, time.process_time() - start


def theirs(kind: str, seed: int, steps: int) -> tuple[Any, int, float]:
    """The same of stable-baselines3's."""
    from stable_baselines3 import A2C, PPO
    from stable_baselines3.common.env_util import make_vec_env

    made: Any = {"ppo": PPO, "ppo_unroll": PPO, "a2c": A2C}[kind]
    ours = experiment(kind, seed, steps).algorithm.model_dump()
    ours["n_steps"] = ours["unroll"] or UPDATE[kind]["n_steps"] // ENVIRONMENTS
    if made is PPO:
        ours["batch_size"] = ours["minibatch"]
    equal = {key: ours[key] for key in ours.keys() & inspect.signature(made).parameters}
    if kind == "a2c":
        equal["learning_rate"] = lambda left: left * ours["learning_rate"]

    def learn(steps: int) -> Any:
        environments = make_vec_env("CartPole-v1", n_envs=ENVIRONMENTS, seed=1000 * seed)
        return made("MlpPolicy", environments, seed=seed, device="cpu", **equal).learn(steps)

    learn(1)
    start = time.process_time()
    model = learn(steps)
    cpu = time.process_time() - start
    network = model.policy
    layers = [*network.mlp_extractor.policy_net, network.action_net]
    parts = [
        part for layer in layers if hasattr(layer, "weight") for part in (layer.weight, layer.bias)
    ]
    policy = np.concatenate([part.detach().numpy().ravel() for part in parts]).astype(float)
    return policy, model.num_timesteps, cpu


def trained(who: str, kind: str, seed: int, steps: int) -> dict[str, float]:
    """What one seed of one of them has come to."""
    policy, done, cpu = (ours if who == "ours" else theirs)(kind, seed, steps)
    domain = make_domain(experiment(kind, seed, steps).domain)
    result = domain.evaluate(np.tile(policy, (len(GREEDY), 1)), GREEDY)
    return {"return": float(result.objective.mean()), "steps": done, "cpu": cpu}


def computed(who: str, kind: str, seed: int, steps: int, results: Path) -> dict[str, float]:
    """The same from its file, which another process writes first."""
    file = results / f"{kind}-{who}-{seed}-{steps}.json"
    if not file.exists():
        words = [sys.executable, __file__, "--one", who, kind, str(seed), str(steps)]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        write_text(file, done.stdout.splitlines()[-1])
    result: dict[str, float] = json.loads(file.read_text())
    return result


def pairs(kind: str, number: int, steps: int, results: Path) -> Row:
    """The speeds of both in pairs of runs, whose first ones take turns."""
    speeds: list[tuple[float, float]] = []
    for seed in range(1, number + 1):
        rows = {}
        for who in ("ours", "theirs")[:: 1 if seed % 2 else -1]:
            rows[who] = computed(who, kind, seed, steps, results)
        ours, theirs = (rows[who]["steps"] / rows[who]["cpu"] for who in ("ours", "theirs"))
        speeds.append((ours, theirs))
    ratios = sorted(one / other for one, other in speeds)
    return figure(
        f"{kind}, {steps:,} steps of CartPole: steps a CPU second of playing and learning",
        "stable-baselines3",
        statistics.median(ratios),
        ">= 0.95",
        detail=f"median of {number} pairs, {ratios[0]:.2f} to {ratios[-1]:.2f}; medians "
        + " and ".join(f"{statistics.median(column):.0f}" for column in zip(*speeds, strict=True)),
    )


def compare(kind: str, seeds: int, steps: int, results: Path) -> list[Row]:
    """Returns and CPU time of both, from as many seeds."""
    result: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    for seed in range(1, seeds + 1):
        for who, rows in result.items():
            rows.append(computed(who, kind, seed, steps, results))
    returns = {who: [row["return"] for row in rows] for who, rows in result.items()}
    mean = statistics.mean(returns["theirs"])
    low, high = interval(returns["ours"], returns["theirs"])
    final = figure(
        f"{kind}, {steps:,} steps: the farther end of the 90 % interval of the difference of final "
        "returns",
        "stable-baselines3's mean",
        max(abs(low), abs(high)) / mean,
        "<= 0.1",
        detail=f"{statistics.mean(returns['ours']):.0f} and {mean:.0f}, difference {low:.0f} to "
        f"{high:.0f}, {seeds} seeds; "
        + ", ".join(f"{who} {sorted(map(round, values))}" for who, values in returns.items()),
    )
    speeds = {
        who: sum(row["steps"] for row in rows) / sum(row["cpu"] for row in rows)
        for who, rows in result.items()
    }
    speed = figure(
        f"{kind}, environment steps a CPU second",
        "stable-baselines3",
        speeds["ours"] / speeds["theirs"],
        ">= 0.9",
        detail=f"{speeds['ours']:.0f} and {speeds['theirs']:.0f}",
    )
    return [final, speed]


def interval(ones: list[float], others: list[float]) -> tuple[float, float]:
    """The 90 % interval of the difference of two means (Welch); a point where nothing varies."""
    from scipy.stats import ttest_ind

    if len({*ones}) == len({*others}) == 1:
        return ones[0] - others[0], ones[0] - others[0]
    result = ttest_ind(ones, others, equal_var=False).confidence_interval(0.9)
    return float(result.low), float(result.high)


def sampling(policy: Any, repeats: int) -> Row:
    """Environment steps a wall second of exploring episodes, with one worker and with two."""
    from qdsweep.domains.base import Exploration
    from qdsweep.engines import make_engine
    from qdsweep.engines.batch import Batch

    made, rows = experiment("ppo", 1, 1000), 64
    domain = make_domain(made.domain)
    solutions = np.broadcast_to(policy, (rows, len(policy)))
    batch = Batch(
        solutions,
        np.arange(rows, dtype=np.uint32),
        experience=True,
        exploration=Exploration("softmax", np.ones((rows, 1))),
    )
    speeds: dict[int, list[float]] = {1: [], 2: []}
    engines = {
        n: make_engine(Cluster(workers_per_node=n), made, domain, None, None, {}) for n in speeds
    }
    try:
        for _ in range(repeats + 1):  # the first one is to warm up
            for workers, engine in engines.items():
                engine.wait()
                start, steps = time.perf_counter(), 0
                for _ in range(3):
                    for _, outcome in engine.evaluate(batch, [slice(0, rows)]):
                        steps += int(np.sum(outcome.evaluation.steps))
                speeds[workers].append(steps / (time.perf_counter() - start))
    finally:
        for engine in engines.values():
            engine.close()
    one_worker, two = (statistics.median(result[1:]) for result in speeds.values())
    return figure(
        "exploring episodes, steps a wall second of 2 workers",
        "1 worker",
        two / one_worker,
        ">= 1.6",
        limit="2",
        detail=f"{two:.0f} and {one_worker:.0f} steps a second",
    )


def whole(steps: int) -> tuple[Row, Any]:
    """The speed-up of a whole run by a second worker, and its Amdahl bound.

    Returns:
        The figure, and the policy that was learned.
    """
    made = experiment("ppo", 1, steps)
    one_worker, two = (run(made, workers) for workers in (1, 2))
    assert (one_worker.algorithm.learner.policy == two.algorithm.learner.policy).all()
    alone = one_worker.seconds["ask"] + one_worker.seconds["tell"]
    total = alone + one_worker.seconds["evaluate"]
    bound = total / (alone + one_worker.seconds["evaluate"] / 2)
    result = total / sum(two.seconds[phase] for phase in ("ask", "tell", "evaluate"))
    row = figure(
        "PPO, speed-up of a whole run by a second worker",
        "its bound (Amdahl)",
        result / bound,
        limit="1",
        detail=f"{result:.2f} of {bound:.2f}: learning is {alone / total:.0%} of one worker's time",
    )
    return row, one_worker.algorithm.learner.policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, help=f"of each kind (default: {STEPS})")
    parser.add_argument("--kinds", nargs="+", default=[*STEPS], choices=[*STEPS])
    parser.add_argument("--pairs", type=int, default=15, help="of runs with unrolls")
    parser.add_argument("--results", type=Path, default=Path("results/bench-rl"))
    parser.add_argument("--one", nargs=4, metavar=("WHO", "KIND", "SEED", "STEPS"))
    arguments = parser.parse_args()
    if arguments.one:
        who, kind, seed, steps = arguments.one
        print(json.dumps(trained(who, kind, int(seed), int(steps))))
        return
    arguments.results.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for kind in arguments.kinds:
        rows += compare(kind, arguments.seeds, arguments.steps or STEPS[kind], arguments.results)
    rows.append(pairs("ppo_unroll", arguments.pairs, PAIRED, arguments.results))
    speed_up, policy = whole(min(arguments.steps or 30_000, 30_000))
    rows += [speed_up, sampling(policy, 5)]
    print("\n".join(["", *table(rows)]))


if __name__ == "__main__":
    main()
