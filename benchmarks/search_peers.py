"""A search by a peer, on two cores; run by searches.py, in an environment with Ray and Optuna.

    python benchmarks/search_peers.py WAY TASK SCALE SEED WHOLES COUNTED

WAY: asha (Ray Tune's ASHA), optuna (its TPE with HyperbandPruner), random (whole runs in a process
pool). The search ends after the budget of WHOLES whole runs, and is stored in the working
directory. Another start there resumes it as its library can. Prints its records as JSON:
configuration, evaluations and score of each trial.
"""

import json
import multiprocessing
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import search_function  # noqa: E402
from search_function import SPACES, Run  # noqa: E402

Record = dict[str, Any]
FIRST, ETA, CORES = 9, 3, 2  # the first rung is a ninth


def asha(task: str, scale: int, seed: int, wholes: float, counted: bool) -> list[Record]:
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search import BasicVariantGenerator

    whole = search_function.experiment(task, scale, counted=counted)
    most = whole["evaluations"]

    class Trial(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            self.run = Run(whole, config, seed)

        def reset_config(self, config: dict[str, Any]) -> bool:
            self.setup(config)
            return True

        def step(self) -> Record:
            score = self.run.extend(self.run.evaluations + most // FIRST)
            return {"score": score, "evaluations": self.run.evaluations}

        def save_checkpoint(self, folder: str) -> None:
            Path(folder, "run.pkl").write_bytes(pickle.dumps(self.run))

        def load_checkpoint(self, folder: str) -> None:
            self.run = pickle.loads(Path(folder, "run.pkl").read_bytes())

    class Spent(tune.Stopper):
        def __init__(self) -> None:
            self.trials: dict[str, int] = {}

        def __call__(self, trial: str, result: Record) -> bool:
            self.trials[trial] = result["evaluations"]
            return result["evaluations"] >= most

        def stop_all(self) -> bool:
            return sum(self.trials.values()) >= wholes * most

    sample: dict[str, Callable[..., Any]] = {
        "log": tune.loguniform,
        "choice": lambda *values: tune.choice(list(values)),
    }
    space = {name: sample[kind](*rest) for name, (kind, *rest) in SPACES[task].items()}
    ray.init(
        num_cpus=CORES,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        _temp_dir=str(Path("session").absolute()),
    )
    folder = Path("ray").absolute()
    if tune.Tuner.can_restore(str(folder / "search")):
        tuner = tune.Tuner.restore(str(folder / "search"), Trial, resume_unfinished=True)
    else:
        tuner = tune.Tuner(
            Trial,
            param_space=space,
            tune_config=tune.TuneConfig(
                metric="score",
                mode="max",
                num_samples=500,
                max_concurrent_trials=CORES,
                reuse_actors=True,  # else each trial imports and compiles again
                search_alg=BasicVariantGenerator(random_state=seed, max_concurrent=CORES),
                scheduler=ASHAScheduler(
                    time_attr="evaluations",
                    max_t=most,
                    grace_period=most // FIRST,
                    reduction_factor=ETA,
                ),
            ),
            run_config=tune.RunConfig(
                name="search",
                storage_path=str(folder),
                stop=Spent(),
                verbose=0,
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1, num_to_keep=1),
            ),
        )
    results = tuner.fit()
    return [
        {"setting": result.config, **{key: result.metrics[key] for key in ("evaluations", "score")}}
        for result in results
        if result.metrics and "score" in result.metrics
    ]


def _optuna_worker(
    task: str, scale: int, seed: int, wholes: float, counted: bool, number: int
) -> None:
    study, spent = _study(seed, number), _spent
    whole = search_function.experiment(task, scale, counted=counted)
    most = whole["evaluations"]
    import optuna

    def objective(trial: optuna.Trial) -> float:
        setting = {
            name: trial.suggest_float(name, *rest, log=True)
            if kind == "log"
            else trial.suggest_categorical(name, rest)
            for name, (kind, *rest) in SPACES[task].items()
        }
        run, score = Run(whole, setting, seed), 0.0
        for step in range(1, FIRST + 1):
            score = run.extend(step * most // FIRST)
            trial.report(score, step)
            if step < FIRST and trial.should_prune():
                raise optuna.TrialPruned
        return score

    def stop_if_spent(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if spent(study) * most // FIRST >= wholes * most:
            study.stop()

    if spent(study) * most // FIRST < wholes * most:
        study.optimize(objective, callbacks=[stop_if_spent])


def _spent(study: Any) -> int:
    """Steps of all trials."""
    return sum(max(trial.intermediate_values, default=0) for trial in study.get_trials(False))


def _study(seed: int, number: int) -> Any:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        study_name="search",
        storage=optuna.storages.JournalStorage(JournalFileBackend("optuna.log")),
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=CORES * seed + number),
        pruner=optuna.pruners.HyperbandPruner(1, FIRST, ETA),
        load_if_exists=True,
    )


def optuna(task: str, scale: int, seed: int, wholes: float, counted: bool) -> list[Record]:
    study = _study(seed, 0)
    most = search_function.experiment(task, scale, counted=counted)["evaluations"]
    processes = [
        multiprocessing.Process(
            target=_optuna_worker, args=(task, scale, seed, wholes, counted, number)
        )
        for number in range(CORES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    ended = ("COMPLETE", "PRUNED")
    return [
        {
            "setting": trial.params,
            "evaluations": max(trial.intermediate_values) * most // FIRST,
            "score": trial.intermediate_values[max(trial.intermediate_values)],
        }
        for trial in study.get_trials()
        if trial.state.name in ended
    ]


def _whole(job: tuple[dict[str, Any], dict[str, Any], int]) -> Record:
    whole, setting, seed = job
    score = Run(whole, setting, seed).extend(whole["evaluations"])
    return {"setting": setting, "evaluations": whole["evaluations"], "score": score}


def random(task: str, scale: int, seed: int, wholes: float, counted: bool) -> list[Record]:
    import numpy as np

    number = np.random.default_rng(seed)
    whole = search_function.experiment(task, scale, counted=counted)
    settings = [
        {
            name: float(np.exp(number.uniform(*np.log(rest))))
            if kind == "log"
            else rest[number.integers(len(rest))]
            for name, (kind, *rest) in SPACES[task].items()
        }
        for _ in range(round(wholes))
    ]
    with ProcessPoolExecutor(CORES) as pool:
        return list(pool.map(_whole, [(whole, setting, seed) for setting in settings]))


if __name__ == "__main__":
    way, task, *numbers = sys.argv[1:]
    scale, seed, counted = (int(numbers[i]) for i in (0, 1, 3))
    records = globals()[way](task, scale, seed, float(numbers[2]), bool(counted))
    print(json.dumps(records))
