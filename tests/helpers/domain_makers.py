"""Makes domains for tests."""

import json

import numpy as np
import yaml
from composing import skipped_if_missing
from pydantic import TypeAdapter
from support import REPO

from qdsweep.config.domain import DomainSettings
from qdsweep.config.requirements import require_packages
from qdsweep.domains import make_domain

PRESETS = sorted((REPO / "config" / "domains").glob("*.yaml"))
ADAPTER = TypeAdapter(DomainSettings)


def config(**values):
    return ADAPTER.validate_json(json.dumps(values))


def make(**values):
    return make_domain(config(**values))


def preset(name):
    values = yaml.safe_load((REPO / "config" / "domains" / f"{name}.yaml").read_text())
    short = {"max_frames": 400} if values["type"] == "atari" else {}
    domain = config(**{**values, **short})
    with skipped_if_missing():
        require_packages(f"domain {name}", *domain.packages)
    return make_domain(domain)


def linear_projection(function="sphere", d=100, **values):
    return make(type="linear_projection", function=function, solution_dim=d, **values)


def task(env, *measures, **values):
    values.setdefault("objective_range", [-1000, 1000])
    return {"type": "gymnasium", "env": env, "measures": list(measures), **values}


LENGTH = {"measure": "episode_length", "range": [0, 1000]}
NO_SEEDS = np.zeros(0, dtype=np.uint32)
CHEAP = ("lp_sphere", "lp_rastrigin", "lp_plateau", "arm", "maze")
GOOD = """
import numpy as np
from qdsweep.domains.base import Evaluation

class Good:
    measures = {"a": (0.0, 1.0)}
    objective_range = (0.0, 1.0)
    fields = {}
    step = 3.0
    x0 = np.array([1.0, 2.0])
    def __init__(self, d=2):
        self.solution_dim = d
    def evaluate(self, solutions, seeds):
        return Evaluation(solutions[:, 0], solutions[:, :1])
"""
