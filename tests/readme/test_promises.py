"""docs/evidence.md: every test that it names exists."""

import re

from support import REPO

PAGE = (REPO / "docs/evidence.md").read_text()


def test_every_guarantee_and_number_has_a_test_that_exists():
    rows = re.findall(r"^\| (?!guarantee |claim |-)(.+) \| (.+) \|$", PAGE, flags=re.M)
    assert len(rows) > 80
    for claim, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests)
        assert named, claim
        for file, test in named:
            source = REPO / file
            assert source.is_file(), f"{claim}: {file}"
            if test:
                assert re.search(rf"^def {test}\(", source.read_text(), flags=re.M), (
                    f"{claim}: {file} has no {test}"
                )


def test_its_cells_are_short():
    rows = [line.strip("| ") for line in PAGE.splitlines() if line.startswith("| ")]
    long = [cell for row in rows for cell in row.split(" | ") if len(cell.split()) > 20]
    assert not long
