"""A package that only some experiments need is missed before any run starts."""

import pytest
from composing import BASE
from in_process import compute_run, qdsweep
from support import write_yaml

from qdsweep.config.algorithm import Composition
from qdsweep.config.compose import compose
from qdsweep.config.domain import LinearProjection
from qdsweep.errors import BadInput
from qdsweep.planning.checks import check_packages
from qdsweep.records.paths import Results

CARTPOLE = {**BASE, "domain": "cartpole", "algorithm": "map_elites"}
NOT_THERE = {**CARTPOLE, "domain": {"preset": "cartpole", "env": "no_robots:Crawler-v0"}}


def test_a_domain_in_a_module_that_is_not_there_is_refused(tmp_path):
    check_packages({"run": compose(CARTPOLE)}, Results(tmp_path))
    with pytest.raises(BadInput, match=r"domain cartpole needs no_robots:Crawler-v0: there is no"):
        check_packages({"run": compose(NOT_THERE)}, Results(tmp_path))


@pytest.mark.parametrize(
    ("part", "words"),
    [(LinearProjection, "domain lp_sphere needs"), (Composition, "algorithm cma_me needs")],
)
def test_an_extra_that_is_not_there_is_refused_with_its_remedy(tmp_path, monkeypatch, part, words):
    monkeypatch.setattr(part, "packages", ("pybullet_of_nobody",))
    with pytest.raises(BadInput, match=f"{words} pybullet_of_nobody: .*; `make extras` installs"):
        check_packages({"run": compose(BASE)}, Results(tmp_path))
    file = write_yaml(tmp_path / "experiment.yaml", BASE)
    assert words in qdsweep("run", file, "--out", "run", cwd=tmp_path, code=2)


def test_finished_runs_need_nothing(tmp_path, monkeypatch):
    made = compose(BASE)
    compute_run(BASE, tmp_path / "runs" / "done")
    monkeypatch.setattr(LinearProjection, "packages", ("no_robots",))
    check_packages({"done": made}, Results(tmp_path))
    with pytest.raises(BadInput, match="no_robots"):
        check_packages({"done": made, "other": made}, Results(tmp_path))
