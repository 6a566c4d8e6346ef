"""The key `search` of a sweep file, in the form of plan.json."""

import json

import pytest

from qdsweep.config.search import Search


@pytest.mark.parametrize(
    "keys",
    [
        {"samples": 8},
        {"halving": {}},
        {"halving": {"first": "1/27"}},
        {"halving": {"rungs": ["1/3", "2/3", 1], "seeds": [1, 2, 3]}},
        {"sampling": "tpe", "batches": 2, "halving": {"brackets": "all"}},
        {"pbt": {"population": 4, "generations": 3}},
    ],
)
def test_what_plan_json_keeps_is_the_same_search(keys):
    search = Search(**keys)
    assert Search.model_validate_json(json.dumps(search.plain)) == search
    assert Search(**search.model_dump(mode="json")) == search
    assert set(search.plain) <= {*keys, "sampling", "seed"}
