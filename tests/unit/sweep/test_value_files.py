"""A refused value is shown as the line of its file."""

from pathlib import Path

import pytest
from refusals import refused
from support import TINY

from qdsweep.sweep.runs import table_of_runs


@pytest.mark.parametrize(
    ("content", "line", "value"),
    [
        ("seed\n1\n2 \n", 3, "'2 '"),
        ("seed\n1\n2\n\n", 4, "''"),
        ("seed\n1 # the first\n", 2, "'1 # the first'"),
        ("seed\n1\nx\n", 3, "'x'"),
    ],
)
def test_file_line_and_value_are_named(content, line, value, tmp_path):
    (tmp_path / "seeds.txt").write_text(content)
    with refused("seed", "'seeds.txt'", f"line {line}", value):
        table_of_runs(TINY, "::: algorithm cma_me :::: seeds.txt", Path(tmp_path))
