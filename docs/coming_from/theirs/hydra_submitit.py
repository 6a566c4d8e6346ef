"""Hydra with submitit's launcher; `hydra/launcher=submitit_slurm` sends the same jobs to Slurm."""

from dataclasses import dataclass, field
from pathlib import Path

import bowl
import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig


@dataclass
class Study:
    sigma: float = 0.3
    seed: int = 1
    defaults: list = field(
        default_factory=lambda: ["_self_", {"override hydra/launcher": "submitit_local"}]
    )


ConfigStore.instance().store(name="study", node=Study)


@hydra.main(version_base="1.3", config_path=None, config_name="study")
def main(study: Study) -> None:
    score = bowl.run(study.sigma, study.seed)
    folder = Path(HydraConfig.get().runtime.output_dir)
    (folder / "score.tsv").write_text(f"{study.sigma}\t{study.seed}\t{score:.3f}\n")


if __name__ == "__main__":
    main()
