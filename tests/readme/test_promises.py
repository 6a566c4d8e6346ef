"""docs/promises.md: every test that it names is there."""

import re

from support import REPO

PAGE = (REPO / "docs/promises.md").read_text()


def test_every_promise_has_a_test_that_is_there():
    rows = re.findall(r"^\| (?!promise |-)(.+) \| (.+) \|$", PAGE, flags=re.M)
    assert len(rows) > 30
    for promise, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests)
        assert named, promise
        for file, test in named:
            source = REPO / file
            assert source.is_file(), f"{promise}: {file}"
            if test:
                assert re.search(rf"^def {test}\(", source.read_text(), flags=re.M), (
                    f"{promise}: {file} has no {test}"
                )
