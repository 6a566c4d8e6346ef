"""docs/published.md: the page of docs/published.csv, whose runs have the same bits here."""

import csv

from support import REPO, command


def test_the_page_is_that_of_the_table(monkeypatch):
    monkeypatch.syspath_prepend(REPO / "benchmarks")
    import published

    with published.TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    parts = {name: published.read_part(name, rows) for name in published.SWEEPS}
    text = (REPO / "docs/published.md").read_text().partition(published.START)[2]
    assert text == "\n".join(["", *published.as_page(parts)]) + "\n"
    assert published.TABLE.stat().st_size < 1_000_000


def test_a_run_of_the_table_has_the_same_bits_here(tmp_path):
    words = ("audit", REPO / "docs/published.csv", "--minutes", "0.25", "--cores", "1")
    assert "1 of 1 the same bits" in command("qdsweep", *words, cwd=tmp_path).stdout
