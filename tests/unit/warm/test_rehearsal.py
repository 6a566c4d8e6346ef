"""The work of the warm process before it forks."""

import json

import pytest

from qdsweep.config.compose import compose
from qdsweep.sweep.runs import table_of_runs
from qdsweep.warm.launcher import _kind
from qdsweep.warm.server import prepare


@pytest.mark.parametrize(
    ("swept", "rehearsals"), [("es cma_es sep_cma_es", 2), ("sigma0 0.1 0.5 2", 1)]
)
def test_runs_that_compile_alike_share_a_rehearsal(swept, rehearsals):
    runs = table_of_runs("lp_sphere", f"::: {swept} ::: seed 1 2").runs
    assert len({_kind(experiment) for experiment in runs.values()}) == rehearsals


def test_what_cannot_be_rehearsed_is_named_and_hides_no_other(capsys):
    settings = {"domain": "lp_sphere", "algorithm": "map_elites", "archive": {"dims": [10, 10]}}
    good = compose(settings | {"num_emitters": 1, "batch_size": 10, "iterations": 1})
    data = good.model_dump(mode="json")
    wrong = {**data, "batch_size": "many"}
    prepare(json.dumps([wrong, data]).encode())
    text = capsys.readouterr().err
    assert text.count("batch_size") == text.count("'many'") == 1
