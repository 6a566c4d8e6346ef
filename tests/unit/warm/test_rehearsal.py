"""What the warm process does before it forks."""

import json

import pytest
from composing import installed
from support import REPO

from qdsweep.config.compose import compose, read_domain
from qdsweep.sweep.runs import table_of_runs
from qdsweep.warm.server import prepare
from qdsweep.warm.start import _kind

PRESETS = sorted(path.stem for path in (REPO / "config/domains").glob("*.yaml"))


@pytest.mark.parametrize(
    ("swept", "rehearsals"), [("es cma_es sep_cma_es", 2), ("sigma0 0.1 0.5 2", 1)]
)
def test_runs_that_compile_alike_share_a_rehearsal(swept, rehearsals):
    runs = table_of_runs("lp_sphere", f"::: {swept} ::: seed 1 2").runs
    assert len({_kind(experiment) for experiment in runs.values()}) == rehearsals


def as_sent(*experiments) -> bytes:
    return json.dumps([experiment.model_dump(mode="json") for experiment in experiments]).encode()


@pytest.mark.parametrize("name", PRESETS)
def test_every_domain_is_rehearsed(name, capsys):
    dims = [4] * (read_domain(name).measure_dim or 2)
    settings = {"domain": name, "algorithm": "cma_me", "archive": {"dims": dims}}
    experiment = compose(settings | {"num_emitters": 1, "batch_size": 10, "iterations": 1})
    prepare(as_sent(installed(experiment)))
    assert capsys.readouterr().err == ""


def test_what_cannot_be_rehearsed_is_named_and_hides_no_other(capsys):
    settings = {"domain": "lp_sphere", "algorithm": "map_elites", "archive": {"dims": [10, 10]}}
    good = compose(settings | {"num_emitters": 1, "batch_size": 10, "iterations": 1})
    (data,) = json.loads(as_sent(good))
    wrong = {**data, "batch_size": "many"}
    prepare(json.dumps([wrong, data]).encode())
    text = capsys.readouterr().err
    assert text.count("batch_size") == text.count("'many'") == 1
