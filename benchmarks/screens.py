"""PPO on Breakout's screens for a million decisions, and stable-baselines3's own PPO.

    python benchmarks/screens.py RESULTS        (3.1 core-hours; the same command resumes)

All settings are equal: those of `ppo_atari`, with a learning rate and a clip range that fall to 0
within the million decisions. Ours learns from whole episodes, stable-baselines3's from 128
decisions of each of 8 games of ale-py's AtariVectorEnv. Both have sticky actions, no first no-ops,
no end at the loss of a life, and no action that starts the game. After each tenth of the decisions,
the policy plays 30 greedy episodes of our domain on common seeds. The curves are in
docs/atari_ppo.csv and .png.
"""

import argparse
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Any

from figures import figure

from qdsweep.host.machine import apply_baseline, apply_torch_baseline

apply_baseline("avx2")
apply_torch_baseline()  # one thread and the same kernels for both

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from atari import LEARNT  # noqa: E402
from learning_curves import make_games  # noqa: E402

from qdsweep.algorithms import make_algorithm  # noqa: E402
from qdsweep.analysis.figures.style import save, style  # noqa: E402
from qdsweep.analysis.legend import COLORS  # noqa: E402
from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.config.experiment import Experiment  # noqa: E402
from qdsweep.domains import make_domain  # noqa: E402
from qdsweep.experiment import reload  # noqa: E402
from qdsweep.experiment.attempt import Attempt  # noqa: E402
from qdsweep.experiment.run import compute  # noqa: E402
from qdsweep.experiment.stop import Stop  # noqa: E402
from qdsweep.files import write_csv  # noqa: E402
from qdsweep.records.paths import RunDir  # noqa: E402

STEM = Path(__file__).resolve().parent.parent / "docs/atari_ppo"
PARTS, GAMES, SEED = 10, 8, 1
GREEDY = np.arange(10_000, 10_030, dtype=np.uint32)
Row = dict[str, Any]


def experiment(decisions: int, budget: int) -> Experiment:
    """Ours: nothing but the first iteration is judged, so that all decisions are learned from."""
    keys = {"decay_steps": decisions, "evaluate_every": 10**6, "evaluation_episodes": 1}
    return compose(
        {
            "domain": LEARNT,
            "algorithm": {"preset": "ppo_atari", **keys},
            "archive": {"dims": [2, 2]},
            "num_emitters": 1,
            "batch_size": GAMES,
            "seed": SEED,
            "steps": 4 * budget,  # frames
        }
    )


def ours(folder: Path, decisions: int, budget: int) -> tuple[Any, int]:
    """Policy and decisions of a run of qdsweep, resumed from its last part."""
    run, made = RunDir(folder / "qdsweep"), experiment(decisions, budget)
    run.state.path.mkdir(parents=True, exist_ok=True)
    compute(Attempt.of(made, run), Stop())
    saved = reload.last_saved(run.state)
    learner: Any = saved.state.algorithm.learner  # type: ignore[union-attr]
    return learner.policy, learner.steps


def theirs(folder: Path, decisions: int, budget: int) -> tuple[Any, int]:
    """The same of stable-baselines3's PPO, resumed from its last part with new games."""
    from stable_baselines3 import PPO

    settings: Any = experiment(decisions, budget).algorithm
    file = folder / "stable_baselines3.zip"
    environments = make_games("breakout", GAMES, 6000, SEED + budget)
    if file.exists():
        model = PPO.load(file, env=environments, device="cpu")
    else:
        model = PPO(
            "CnnPolicy",
            environments,
            learning_rate=lambda left: left * settings.learning_rate,
            clip_range=lambda left: left * settings.clip_range,
            n_steps=settings.n_steps // GAMES,
            batch_size=settings.minibatch,
            n_epochs=settings.n_epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            ent_coef=settings.ent_coef,
            vf_coef=settings.vf_coef,
            max_grad_norm=settings.max_grad_norm,
            seed=SEED,
            device="cpu",
        )
    updates = -(-budget // settings.n_steps)
    model.learn(
        decisions - model.num_timesteps,
        callback=lambda now, _: now["self"].num_timesteps <= updates * settings.n_steps,
        reset_num_timesteps=False,
    )
    model.num_timesteps = updates * settings.n_steps  # it stopped after the next decision
    model.save(file)
    environments.close()
    made = experiment(decisions, budget)
    learner: Any = make_algorithm(made, make_domain(made.domain), None).learner  # type: ignore[attr-defined]
    learner.model.policy.load_state_dict(model.policy.state_dict())
    return learner.policy, model.num_timesteps


LEARNERS = {"qdsweep": ours, "stable-baselines3": theirs}


def measured(learner: str, folder: Path, decisions: int, part: int) -> Row:
    """Resumes a learner up to the end of a part, and plays its greedy episodes."""
    start = time.process_time()
    policy, done = LEARNERS[learner](folder, decisions, decisions * part // PARTS)
    cpu = time.process_time() - start
    played = make_domain(experiment(decisions, decisions).domain).evaluate(
        np.tile(policy, (len(GREEDY), 1)), GREEDY
    )
    return {
        "learner": learner,
        "decisions": done,
        "return": round(played.objective.mean(), 2),
        "standard_error": round(played.objective.std(ddof=1) / len(GREEDY) ** 0.5, 2),
        "cpu_seconds": round(cpu),
    }


def read_curve(folder: Path, learner: str) -> list[Row]:
    """Returns the rows of the finished parts of a learner."""
    file = folder / f"{learner}.csv"
    return pd.read_csv(file).to_dict("records") if file.exists() else []


def draw(curves: dict[str, list[Row]]) -> None:
    """Both curves, with standard errors over the greedy episodes."""
    with style():
        figure_, axes = plt.subplots(figsize=(5, 3), layout="constrained")
        for color, (learner, rows) in zip(COLORS, curves.items(), strict=False):
            own = pd.DataFrame(rows)
            x, y, error = own["decisions"] / 1e6, own["return"], own["standard_error"]
            axes.plot(x, y, color=color, label=learner)
            axes.fill_between(x, y - error, y + error, color=color, alpha=0.2, linewidth=0)
        axes.set(xlabel="million decisions", ylabel="return of 30 greedy episodes", ylim=(0, None))
        axes.legend()
        save(figure_, STEM, (".png",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=2, metavar=("LEARNER", "PART"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder, decisions = arguments.results, arguments.decisions
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.one:
        learner, part = arguments.one
        rows = [*read_curve(folder, learner), measured(learner, folder, decisions, int(part))]
        write_csv(pd.DataFrame(rows), folder / f"{learner}.csv")
        return
    words = [sys.executable, __file__, str(folder), "--decisions", str(decisions), "--one"]
    for part in range(1, PARTS + 1):
        processes = [
            subprocess.Popen([*words, learner, str(part)])
            for learner in LEARNERS
            if len(read_curve(folder, learner)) < part
        ]
        codes = [process.wait() for process in processes]  # of both
        if any(codes):
            sys.exit(1)
        curves = {learner: read_curve(folder, learner) for learner in LEARNERS}
        for rows in curves.values():
            print(
                ", ".join(f"{name} {value}" for name, value in rows[part - 1].items()), flush=True
            )
        if decisions == 1_000_000:
            write_csv(pd.DataFrame(chain(*curves.values())), STEM.with_suffix(".csv"))
            draw(curves)
    ours_, theirs_ = (rows[-1]["return"] for rows in curves.values())
    cpu = {learner: sum(row["cpu_seconds"] for row in rows) for learner, rows in curves.items()}
    figure(
        f"PPO on Breakout's screens, {decisions:,} decisions: mean return of 30 greedy episodes",
        "stable-baselines3's PPO",
        ours_ / theirs_,
        ">= 0.7",
        detail=f"{ours_:.1f} against {theirs_:.1f}, one seed; "
        + ", ".join(f"{learner} {seconds} CPU seconds" for learner, seconds in cpu.items()),
    )


if __name__ == "__main__":
    main()
