"""The pages' other commands, in a clone where nothing was computed before."""

import pytest
from readme import Clone, commands, needs_the_demo


@pytest.mark.timeout(1200)
def test_the_commands_that_need_no_results(tmp_path):
    clone = Clone(tmp_path / "qdsweep")
    lines = [line for line in commands() if not needs_the_demo(line)]
    assert len(lines) > 10
    for line in lines:
        clone.type(line)
