"""Learning curves of PPO and A2C compared with stable-baselines3's at equal settings.

    python benchmarks/learning_curves.py RESULTS [--tasks ...] [--algorithms ...] [--who ...]

A curve has the mean return of the exploring episodes that end in each of 20 equal windows of the
decisions. The area is the mean of these windows, above the worst return: Acrobot's is -500, so its
area is that of return + 500. Where there is no worst return, the last tenth is compared. The ratio
is that of the means over seeds, with a 90 % bootstrap interval over the seeds of both.

Each curve is computed by its own process with one thread, one after another. Finished ones are
added to docs/learning_curves.csv, and the same command computes those that are missing there. At
the end it draws docs/learning_curves.png, and writes the table of docs/rl.md. Our runs
resume in RESULTS, and so do stable-baselines3's of games, with new games. Others start again.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.host.machine import apply_baseline, apply_torch_baseline

apply_baseline("avx2")
apply_torch_baseline()  # one thread and the same kernels for both

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from qdsweep.files import write_csv, write_json, write_text  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
STEM = ROOT / "docs/learning_curves"
PAGE, START = ROOT / "docs/rl.md", "<!-- benchmarks/learning_curves.py writes this table -->\n\n"
PLUGINS = ROOT / "config/plugins"
WINDOWS = 20
SIDES = {"qdsweep": "ours", "stable-baselines3": "theirs"}
GREEDY = np.arange(10_000, 10_030, dtype=np.uint32)
COLUMNS = ["task", "algorithm", "who", "seed", "decisions", "return", "greedy", "cpu_seconds"]
Row = dict[str, Any]

# stable-baselines3's names. Its defaults, with 8 environments:
PPO = {
    "n_envs": 8,
    "n_steps": 128,
    "batch_size": 64,
    "n_epochs": 10,
    "learning_rate": 3e-4,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "normalize_advantage": True,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}
A2C = {
    "n_envs": 8,
    "n_steps": 5,
    "learning_rate": 7e-4,
    "gamma": 0.99,
    "gae_lambda": 1.0,
    "normalize_advantage": False,
    "use_rms_prop": True,
    "rms_prop_eps": 1e-5,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}
DEFAULTS = {"ppo": PPO, "a2c": A2C}


class Task(NamedTuple):
    """A task and the settings of its algorithms.

    Attributes:
        env: gymnasium's id, or a game of ale-py.
        decisions: Decisions of a run.
        seeds: Number of seeds, from 1.
        settings: Algorithm -> what differs from `DEFAULTS`, in stable-baselines3's names. `decays`:
            learning rate and clip range fall to 0. `normalizes`: VecNormalize.
        limit: Decisions of an episode, at most.
        worst: The worst return. Areas are of the distances from it. None: the mean returns of the
            last tenth are compared instead of areas.
        wanted: The least ratio to stable-baselines3; None where it is only reported.
        hidden: Hidden layers of policy and value function.
        activation: Their activation.
        is_game: Whether it is played on screens, with the network of Mnih et al. (2015).
    """

    env: str
    decisions: int
    seeds: int
    settings: dict[str, dict[str, Any]]
    limit: int
    worst: float | None = None
    wanted: float | None = None
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    is_game: bool = False


# CartPole and Acrobot: stable-baselines3's defaults. Others: the RL Zoo's settings; the grid has
# those of games. The Zoo's A2C of games has another RMSprop (RMSpropTFLike), which both leave out.
TASKS = {
    "cartpole": Task("CartPole-v1", 200_000, 10, {"a2c": {}, "ppo": {}}, 500, 0.0, 0.85),
    "acrobot": Task("Acrobot-v1", 200_000, 10, {"a2c": {}, "ppo": {}}, 500, -500.0, 0.85),
    "grid_breakout": Task(
        "grid_breakout:GridBreakout-v0",
        160_000,
        10,
        {"a2c": {"n_envs": 16, "ent_coef": 0.01, "vf_coef": 0.25}},
        limit=2500,
        worst=0.0,
        wanted=0.9,
    ),
    "lunar_lander": Task(
        "LunarLander-v3",
        500_000,
        3,
        {
            "a2c": {"gamma": 0.995, "ent_coef": 1e-5, "learning_rate": 8.3e-4, "decays": True},
            "ppo": {
                "n_envs": 16,
                "n_steps": 1024,
                "gae_lambda": 0.98,
                "gamma": 0.999,
                "n_epochs": 4,
                "ent_coef": 0.01,
            },
        },
        limit=1000,
    ),
    "half_cheetah": Task(
        "HalfCheetah-v5",
        1_000_000,
        3,
        {
            "ppo": {
                "n_envs": 1,
                "n_steps": 512,
                "gamma": 0.98,
                "learning_rate": 2.0633e-5,
                "ent_coef": 0.000401762,
                "clip_range": 0.1,
                "n_epochs": 20,
                "gae_lambda": 0.92,
                "max_grad_norm": 0.8,
                "vf_coef": 0.58096,
                "log_std_init": -2.0,
                "normalizes": True,
            }
        },
        limit=1000,
        wanted=0.9,
        hidden=(256, 256),
        activation="relu",
    ),
    "space_invaders": Task(
        "space_invaders",
        500_000,
        1,
        {"a2c": {"n_envs": 16, "ent_coef": 0.01, "vf_coef": 0.25}},
        limit=4500,
        wanted=0.7,
        is_game=True,
    ),
    "breakout": Task(
        "breakout",
        1_000_000,
        2,
        {
            "ppo": {
                "n_epochs": 4,
                "batch_size": 256,
                "learning_rate": 2.5e-4,
                "clip_range": 0.1,
                "ent_coef": 0.01,
                "decays": True,
            }
        },
        limit=1500,
        wanted=0.7,
        is_game=True,
    ),
}


class Job(NamedTuple):
    """A curve to compute; `task` and `who` are keys of `TASKS` and `SIDES`."""

    task: str
    algorithm: str
    who: str
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, in stable-baselines3's names."""
        own = TASKS[self.task].settings[self.algorithm]
        return {"decays": False, "normalizes": False, **DEFAULTS[self.algorithm], **own}


def jobs() -> Iterator[Job]:
    """Yields all curves: the cheap ones first."""
    for name, task in TASKS.items():
        for algorithm in task.settings:
            for seed in range(1, task.seeds + 1):
                for who in SIDES:
                    yield Job(name, algorithm, who, seed)


class Log:
    """The exploring episodes of a run, in a file that is written as they end.

    Args:
        folder: The run's folder.
        done: Decisions of the state that the run resumes; what the file has after them is removed.
    """

    def __init__(self, folder: Path, done: int = 0) -> None:
        self.file = folder / "episodes.csv"
        kept = [line for line in read_episodes(self.file) if line[0] <= done]
        self._spent = kept[-1][2] if kept else 0.0
        self._start = time.process_time()
        self._out = self.file.open("w", buffering=1)
        for line in kept:
            print(*line, sep=",", file=self._out)

    def add(self, decisions: int, value: float) -> None:
        """Adds an episode that ended after this number of decisions of the run."""
        cpu = self._spent + time.process_time() - self._start
        print(decisions, round(value, 4), round(cpu, 2), sep=",", file=self._out)

    def leave_out(self, seconds: float) -> None:
        """Leaves CPU seconds out that are no part of the run."""
        self._start += seconds


def read_episodes(file: Path) -> list[tuple[int, float, float]]:
    """Returns (decisions, return, CPU seconds) of each episode; a broken last line is left out."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [(int(a), float(b), float(c)) for a, b, c in (line.split(",") for line in lines)]


def windows(episodes: list[tuple[int, float, float]], decisions: int) -> list[Row]:
    """Returns the mean return of the episodes of each window, and the CPU seconds until its end.

    Decision d is in window ceil(d / size). A window without an episode has the value of the
    previous one, and NaN if there is none.
    """
    size = decisions / WINDOWS
    rows, last, cpu = [], float("nan"), 0.0
    for number in range(1, WINDOWS + 1):
        own = [line for line in episodes if (number - 1) * size < line[0] <= number * size]
        if own:
            last, cpu = float(np.mean([line[1] for line in own])), own[-1][2]
        end = round(number * size)
        rows.append({"decisions": end, "return": round(last, 3), "cpu_seconds": round(cpu, 1)})
    return rows


def ratio_of(
    ours: list[float], theirs: list[float], repeats: int = 10_000
) -> tuple[float, float, float]:
    """Returns the ratio of two means, and its 90 % bootstrap interval over the values of both."""
    one, other = np.asarray(ours), np.asarray(theirs)
    rng = np.random.default_rng(0)
    drawn = [
        values[rng.integers(len(values), size=(repeats, len(values)))].mean(axis=1)
        for values in (one, other)
    ]
    low, high = np.quantile(drawn[0] / drawn[1], [0.05, 0.95])
    return float(one.mean() / other.mean()), float(low), float(high)


class Greedy:
    """Greedy episodes of the policy at the end of each window, of games only.

    Args:
        job: The run.
        folder: Its folder.
        log: Its log, which leaves their CPU seconds out.
    """

    def __init__(self, job: Job, folder: Path, log: Log, done: int) -> None:
        self.file, self._job, self._log = folder / "greedy.json", job, log
        self.rows: dict[str, float] = {}
        if self.file.exists():
            read = json.loads(self.file.read_text())
            self.rows = {end: value for end, value in read.items() if int(end) <= done}

    def play(self, end: int, policy: Any) -> None:
        """Plays the episodes at the end of a window."""
        from qdsweep.domains import make_domain

        start = time.process_time()
        domain = make_domain(experiment(self._job).domain)
        played = domain.evaluate(np.tile(policy, (len(GREEDY), 1)), GREEDY)
        self.rows[str(end)] = round(float(played.objective.mean()), 3)
        write_json(self.file, self.rows)
        self._log.leave_out(time.process_time() - start)


def crossed(before: int, now: int, decisions: int) -> int | None:
    """Returns the end of the last window that ends in (before, now]; None without one."""
    size = decisions // WINDOWS
    last = now // size
    return last * size if last > before // size else None


def experiment(job: Job, decisions: int | None = None) -> Any:
    """Returns our experiment. Only its first iteration has a greedy episode."""
    from qdsweep.config.compose import compose

    task, settings = TASKS[job.task], job.settings
    decisions = decisions or task.decisions
    rows, unroll = settings.pop("n_envs"), settings.pop("n_steps")
    decays, normalizes = settings.pop("decays"), settings.pop("normalizes")
    keys = {"type": job.algorithm, "archive": {"type": "grid"}, "unroll": unroll, **settings}
    keys |= {"vf_hidden": [*task.hidden], "evaluate_every": 10**6, "evaluation_episodes": 1}
    if decays:
        keys["decay_steps"] = decisions
    if "batch_size" in keys:
        keys["minibatch"] = keys.pop("batch_size")
    if task.is_game:
        domain: Row = {
            "preset": f"atari_{task.env}",
            "max_frames": 4 * task.limit,
            "observation": "screen",
            "pixels": "bytes",
            "policy": {"type": "convolutional", "network": "mnih2015"},
        }
        keys |= {"vf_hidden": [], "clip_rewards": True}
    else:
        measure = {"measure": "mean_observation", "range": [-1, 1]}
        domain = {
            "type": "gymnasium",
            "env": task.env,
            "policy": {"type": "mlp", "hidden": [*task.hidden], "activation": task.activation},
            "objective_range": [-10_000, 10_000],
            "measures": [{**measure, "component": component} for component in (0, 1)],
        }
        if normalizes:
            domain["normalize_observations"] = keys["normalize_rewards"] = True
    return compose(
        {
            "domain": domain,
            "algorithm": keys,
            "archive": {"dims": [2, 2]},
            "num_emitters": 1,
            "batch_size": rows,
            "seed": job.seed,
            "steps": (decisions + task.limit) * (4 if task.is_game else 1),
        }
    )


def make_games(game: str, count: int, max_frames: int, seed: int) -> Any:
    """Returns ale-py's vector environment for stable-baselines3, as our games are played.

    Sticky actions, no first no-ops, no end at the loss of a life, and no action that starts the
    game. Rewards are signs, and an episode's end has its return.
    """
    from ale_py.vector_env import AtariVectorEnv
    from gymnasium import spaces
    from stable_baselines3.common.vec_env import VecEnv

    class Games(VecEnv):
        def __init__(self) -> None:
            self.games = AtariVectorEnv(
                game,
                num_envs=count,
                num_threads=1,
                max_num_frames_per_episode=max_frames,
                repeat_action_probability=0.25,
                autoreset_mode="SameStep",
                noop_max=0,
                use_fire_reset=False,
                reward_clipping=False,
            )
            self.returns, self.lengths = np.zeros(count), np.zeros(count, np.int64)
            super().__init__(
                count, spaces.Box(0, 255, (4, 84, 84), np.uint8), self.games.single_action_space
            )

        def reset(self) -> Any:
            return self.games.reset(seed=seed)[0]

        def step_async(self, actions: Any) -> None:
            self.games.send(actions)

        def step_wait(self) -> Any:
            seen, rewards, ended, cut, about = self.games.recv()
            self.returns += rewards
            self.lengths += 1
            infos: list[Row] = [{} for _ in range(count)]
            for number in np.flatnonzero(ended | cut):
                infos[number] = {
                    "terminal_observation": about["final_obs"][number],
                    "TimeLimit.truncated": bool(cut[number] and not ended[number]),
                    "episode": {
                        "r": float(self.returns[number]),
                        "l": int(self.lengths[number]),
                    },
                }
                self.returns[number] = self.lengths[number] = 0
            return seen, np.sign(rewards), ended | cut, infos

        def close(self) -> None:
            self.games.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [None] * count

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

        def env_method(self, method_name: str, *args: Any, **keys: Any) -> list[Any]:
            return [None] * count

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * count

    return Games()


def theirs(job: Job, folder: Path, decisions: int) -> None:
    """Computes a run of stable-baselines3. Games resume from their last window with new games."""
    import inspect

    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(1)
    task, settings = TASKS[job.task], job.settings
    made: Any = getattr(stable_baselines3, job.algorithm.upper())
    equal = {key: settings[key] for key in settings.keys() & inspect.signature(made).parameters}
    if settings["decays"]:
        for key in {"learning_rate", "clip_range"} & equal.keys():
            equal[key] = (lambda first: lambda left: left * first)(equal[key])
    file = folder / "model.zip"
    if task.is_game:
        done = made.load(file, device="cpu").num_timesteps if file.exists() else 0
        envs = make_games(task.env, settings["n_envs"], 4 * task.limit, 1000 * job.seed + done)
    else:
        done = 0
        sys.path.append(str(PLUGINS))
        envs = make_vec_env(task.env, n_envs=settings["n_envs"], seed=1000 * job.seed)
        if settings["normalizes"]:
            envs = VecNormalize(envs, gamma=settings["gamma"])
    if done:
        model = made.load(file, env=envs, device="cpu")
    elif task.is_game:
        model = made("CnnPolicy", envs, seed=job.seed, device="cpu", **equal)
    else:
        network: Row = {"net_arch": {"pi": [*task.hidden], "vf": [*task.hidden]}}
        network["activation_fn"] = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[task.activation]
        if "log_std_init" in settings:  # the Zoo's
            network |= {"log_std_init": settings["log_std_init"], "ortho_init": False}
        model = made("MlpPolicy", envs, seed=job.seed, device="cpu", policy_kwargs=network, **equal)
    log = Log(folder, done)
    greedy = Greedy(job, folder, log, done)

    class Watch(BaseCallback):
        saved = done

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "episode" in info:
                    log.add(self.num_timesteps, info["episode"]["r"])
            return True

        def _on_rollout_start(self) -> None:
            if task.is_game:
                self.keep()

        def keep(self) -> None:
            """Saves the policy after a window, and plays it greedily."""
            end = crossed(self.saved, model.num_timesteps, decisions)
            if end is not None:
                self.saved = model.num_timesteps
                greedy.play(end, as_solution(job, model))
                model.save(file)

    watch = Watch()
    model.learn(decisions - done, callback=watch, reset_num_timesteps=False)
    if task.is_game:
        watch.keep()
    envs.close()


def as_solution(job: Job, model: Any) -> Any:
    """Returns the policy of stable-baselines3's model as a solution of our domain."""
    from qdsweep.algorithms import make_algorithm
    from qdsweep.domains import make_domain

    made = experiment(job)
    learner: Any = make_algorithm(made, make_domain(made.domain), None).learner  # type: ignore[attr-defined]
    learner.model.policy.load_state_dict(model.policy.state_dict())
    return learner.policy


def ours(job: Job, folder: Path, decisions: int) -> None:
    """Computes a run of qdsweep, which resumes."""
    from qdsweep.experiment.attempt import Attempt
    from qdsweep.experiment.run import compute
    from qdsweep.experiment.stop import Stop
    from qdsweep.features.rl.learners.policy import RLAlgorithm
    from qdsweep.records.paths import RunDir

    sys.path.append(str(PLUGINS))
    task, tell, opened = TASKS[job.task], RLAlgorithm.tell, []

    def recorded(self: Any, candidates: Any, evaluation: Any) -> None:
        """Records the episodes of a batch. What a resumed run needs is in the reload file."""
        state: Row = vars(self).setdefault("_recorded", {"decisions": 0, "returns": {}})
        before = state["decisions"]
        if not opened:
            log = Log(folder, before)
            opened.extend([log, Greedy(job, folder, log, before)])
        log, greedy = opened
        records = evaluation.experience[: self.batch_size]
        for end, value in finished(records, state["returns"]):
            log.add(before + end, value)
        state["decisions"] = before + sum(len(record.rewards) for record in records)
        tell(self, candidates, evaluation)
        end = crossed(before, state["decisions"], decisions)
        if task.is_game and end is not None:
            greedy.play(end, self.learner.policy)

    run = RunDir(folder / "run")
    run.state.path.mkdir(parents=True, exist_ok=True)
    RLAlgorithm.tell = recorded  # type: ignore[method-assign]
    try:
        compute(Attempt.of(experiment(job, decisions), run), Stop())
    finally:
        RLAlgorithm.tell = tell  # type: ignore[method-assign]


def finished(records: list[Any], returns: dict[int, float]) -> list[tuple[int, float]]:
    """Returns the episodes that end in a batch of unrolls, as stable-baselines3 sees them.

    Args:
        records: The n `qdsweep.domains.base.Record` of the batch, all of one length.
        returns: Row -> return of its episode so far, which is brought up to date.

    Returns:
        Number of the decision and return, in the order of the decisions: the rows take turns, so
        step t of a row ends after n t decisions.
    """
    found = []
    for row, record in enumerate(records):
        total = returns.get(row, 0.0)
        is_paused = record.token.seed is not None
        for step, (reward, end) in enumerate(zip(record.rewards, record.ends, strict=True), 1):
            total += float(reward)
            if end and not (is_paused and step == len(record.rewards)):
                found.append((len(records) * step, total))
                total = 0.0
        returns[row] = total
    return sorted(found)


RUN: dict[str, Callable[[Job, Path, int], None]] = {"ours": ours, "theirs": theirs}


def curve(job: Job, folder: Path, decisions: int) -> list[Row]:
    """Computes a curve; returns its rows of the table."""
    folder.mkdir(parents=True, exist_ok=True)
    RUN[SIDES[job.who]](job, folder, decisions)
    greedy = folder / "greedy.json"
    played = json.loads(greedy.read_text()) if greedy.exists() else {}
    rows = windows(read_episodes(folder / "episodes.csv"), decisions)
    return [{**job._asdict(), **row, "greedy": played.get(str(row["decisions"]))} for row in rows]


def read_table(table: Path) -> pd.DataFrame:
    """Returns the table of finished curves, empty without a file."""
    return pd.read_csv(table) if table.exists() else pd.DataFrame(columns=COLUMNS)


def add(rows: list[Row], table: Path) -> None:
    """Adds a curve to the table, which stays sorted."""
    old, new = read_table(table), pd.DataFrame(rows)[COLUMNS]
    both = new if old.empty else pd.concat([old, new])
    order = {name: number for number, name in enumerate(TASKS)}
    ordered = both.sort_values(COLUMNS[:5], key=lambda c: c.map(order) if c.name == "task" else c)
    write_csv(ordered, table)


def value_of(returns: Any, worst: float | None) -> float:
    """Returns the area of a curve ``(w,)`` above the worst return, or its last tenth."""
    if worst is None:
        return float(np.nanmean(returns[-(WINDOWS // 10) :]))
    return float(np.nanmean(returns)) - worst


def compared(table: pd.DataFrame) -> list[Row]:
    """Compares both, for each task and algorithm that both have."""
    rows = []
    for (name, algorithm), part in table.groupby(["task", "algorithm"], sort=False):
        task, values = TASKS[str(name)], {}
        for who, own in part.groupby("who"):
            curves = [run["return"].to_numpy() for _, run in own.groupby("seed")]
            values[who] = [value_of(returns, task.worst) for returns in curves]
        cpu = part.groupby(["who", "seed"])["cpu_seconds"].max().groupby("who").mean()
        if len(values) < len(SIDES):
            continue
        one, other = (values[who] for who in SIDES)
        ratio, low, high = ratio_of(one, other)
        rows.append(
            {
                "task": name,
                "algorithm": algorithm,
                "seeds": [len(one), len(other)],
                "values": [float(np.mean(one)), float(np.mean(other))],
                "ratio": (ratio, low, high),
                "cpu": [float(cpu[who]) for who in SIDES],
            }
        )
    return rows


def as_markdown(rows: list[Row]) -> list[str]:
    """Returns the lines of a table in Markdown."""
    lines = [
        "| task | algorithm | compared | seeds | qdsweep | stable-baselines3 | ratio (90 %) "
        "| target | CPU time of a run |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        task = TASKS[row["task"]]
        what = "last tenth"
        if task.worst is not None:
            what = "area" if task.worst == 0 else f"area above {task.worst:.0f}"
        ratio, low, high = row["ratio"]
        several = min(row["seeds"]) > 1
        shown = f"{ratio:.2f}" + (f" ({low:.2f} to {high:.2f})" if several else "")
        target = "" if task.wanted is None else f">= {task.wanted}"
        if task.wanted is not None and task.seeds >= 10:
            target = f"lower end {target}"
        one, other = (f"{value:.4g}" for value in row["values"])
        seeds = " and ".join(map(str, dict.fromkeys(row["seeds"])))
        times = " and ".join(f"{seconds / 60:.1f}" for seconds in row["cpu"])
        cells = [task.env.rpartition(":")[2], row["algorithm"].upper(), what, seeds, one, other]
        lines.append(f"| {' | '.join([*cells, shown, target, f'{times} min'])} |")
    return lines


def with_table(page: str, lines: list[str]) -> str:
    """Returns the page with these lines in place of its table."""
    before, start, after = page.partition(START)
    return "\n".join([before + start + "\n".join(lines), "", after.partition("\n\n")[2]])


def draw(table: pd.DataFrame) -> None:
    """Draws the mean curves of both, and the range of the seeds."""
    import matplotlib.pyplot as plt

    from qdsweep.analysis.figures.style import save, short_numbers, style
    from qdsweep.analysis.legend import COLORS

    groups = list(table.groupby(["task", "algorithm"], sort=False))
    columns = min(len(groups), 4)
    lines = -(-len(groups) // columns)
    with style():
        figure, axes = plt.subplots(
            lines,
            columns,
            figsize=(2.4 * columns, 2.1 * lines),
            layout="constrained",
            squeeze=False,
        )
        for ax in axes.flat[len(groups) :]:
            ax.set_axis_off()
        for ax, ((name, algorithm), part) in zip(axes.flat, groups, strict=False):
            for color, who in zip(COLORS, SIDES, strict=False):
                own = part[part["who"] == who].pivot_table("return", "decisions", "seed")
                x = own.index.to_numpy()
                ax.plot(x, own.mean(axis=1), color=color, label=who)
                ax.fill_between(
                    x, own.min(axis=1), own.max(axis=1), color=color, alpha=0.2, linewidth=0
                )
            short_numbers(ax.xaxis, 3)
            ax.set_title(f"{TASKS[name].env.rpartition(':')[2]}, {algorithm.upper()}")
        figure.supxlabel("decisions", fontsize=9)
        figure.supylabel("return of exploring episodes", fontsize=9)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
        save(figure, STEM, (".png",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--tasks", nargs="+", default=[*TASKS], choices=[*TASKS])
    parser.add_argument("--algorithms", nargs="+", default=[*DEFAULTS], choices=[*DEFAULTS])
    parser.add_argument("--who", nargs="+", default=[*SIDES], choices=[*SIDES])
    parser.add_argument("--seeds", type=int, nargs="+", help="default: all")
    parser.add_argument("--decisions", type=int, help="of each run, to try; needs --table")
    parser.add_argument("--table", type=Path, default=STEM.with_suffix(".csv"))
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.decisions and arguments.table == STEM.with_suffix(".csv"):
        parser.error("--decisions needs --table: docs/learning_curves.csv has whole runs")
    if arguments.one:
        task, algorithm, who, seed = arguments.one
        job = Job(task, algorithm, who, int(seed))
        decisions = arguments.decisions or TASKS[task].decisions
        rows = curve(job, arguments.results / "-".join(arguments.one), decisions)
        add(rows, arguments.table)
        return
    for job in jobs():
        wanted = (
            job.task in arguments.tasks
            and job.algorithm in arguments.algorithms
            and job.who in arguments.who
            and (not arguments.seeds or job.seed in arguments.seeds)
        )
        table = read_table(arguments.table)
        is_done = (table[[*job._fields]] == [*job]).all(axis=1).any()
        if not wanted or is_done:
            continue
        words = [sys.executable, __file__, str(arguments.results), "--table", str(arguments.table)]
        if arguments.decisions:
            words += ["--decisions", str(arguments.decisions)]
        start = time.perf_counter()
        subprocess.run([*words, "--one", *map(str, job)], check=True)
        print(*job, f"{time.perf_counter() - start:.0f} s", flush=True)
    table = read_table(arguments.table)
    lines = as_markdown(compared(table))
    print("\n".join(["", *lines]))
    if arguments.table == STEM.with_suffix(".csv"):
        draw(table)
        write_text(PAGE, with_table(PAGE.read_text(), lines))


if __name__ == "__main__":
    main()
