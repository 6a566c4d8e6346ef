import json

import pytest
from pydantic import ValidationError

from qdsweep.config.search import Halving, Search


@pytest.mark.parametrize("halving", [{}, {"first": "1/27"}, {"rungs": ["1/6", "1/2", 1]}])
def test_a_search_is_read_again_from_a_plan(halving):
    search = Search(halving=halving)
    assert Search.model_validate_json(json.dumps(search.plain)) == search


def test_a_first_rung_beside_all_rungs_is_refused():
    with pytest.raises(ValidationError, match="not both"):
        Halving(first="1/3", rungs=["1/6", "1/2", 1])
