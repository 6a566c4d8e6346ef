"""An experiment of the shape of DQD-RL's, by gin files: python dqd_rl.py CONFIG SEED.

It has none of DQD-RL's code, which needs its container, a Dask scheduler and workers.
"""

import json
import sys
from datetime import datetime
from pathlib import Path

import bowl
import gin

gin.external_configurable(bowl.make, "make")


@gin.configurable
class Manager:
    def __init__(self, seed, logdir, total_evals=gin.REQUIRED, algorithm=gin.REQUIRED):
        self.scheduler = algorithm(seed=seed)
        self.logdir = logdir
        self.total_evals = total_evals

    def execute(self):
        archive, done = self.scheduler.archive, 0
        metrics = []
        while done < self.total_evals:
            solutions = self.scheduler.ask()
            self.scheduler.tell(*bowl.evaluate(solutions))
            done += len(solutions)
            metrics.append({"evals": done, "qd_score": round(float(archive.stats.qd_score), 3)})
        (self.logdir / "metrics.json").write_text(json.dumps(metrics))
        return metrics[-1]["qd_score"]


@gin.configurable
def experiment(seed, name=gin.REQUIRED):
    now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    logdir = Path("logs") / f"{now}_{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    logdir.mkdir(parents=True)
    (logdir / "config.gin").write_text(gin.config_str())
    (logdir / "seed").write_text(str(seed))
    print(f"{name}\t{seed}\t{Manager(seed, logdir).execute():.3f}")


if __name__ == "__main__":
    gin.parse_config_file(sys.argv[1])
    experiment(seed=int(sys.argv[2]))
