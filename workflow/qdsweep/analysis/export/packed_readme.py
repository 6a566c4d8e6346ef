"""The README.txt in an exported sweep."""

from typing import Any

_TEXT = """\
{title}
{line}
Results of a parameter sweep of Quality-Diversity experiments: {count} runs. No file holds a pickle;
numpy loads every array with allow_pickle=False.

FILES
  sweep.yaml            what was swept, as it was declared (GNU parallel's grammar)
  tables/runs.tsv       swept values and id of every run
  tables/summary.csv    a row for each run, at the sweep's budget
  tables/table.*        a row for each group: mean and standard error over seeds (CSV, md, LaTeX)
  tables/curves.csv     mean and standard error of each group over evaluations
  tables/*              further tables{search}
  figures/*.pdf, .svg   the figures; the .csv of the same name has the data that a figure shows
  report.html           tables and figures as one page (left out where it could name somebody)
  config/plugins/*      where runs use classes or functions of their author: these, and what they
                        import from there, without comments; files that they read, and packages
                        that they need, are not here
  runs/ID/config.yaml   the whole experiment, every key
  runs/ID/metrics.csv   a row for each iteration; coverage is a fraction, seconds_* are seconds
  runs/ID/archive.npz   the elites of the final archive, a row each, sorted by cell:
                          index (n,) int64; objective (n,), measures (n, m), solution (n, d)
                          float64; further fields of the domain; centroids or boundaries of the
                          cells where they are no grid
  runs/ID/history.npz   every insertion into the archive: iteration, index (cell), objective (where
                          cells stay where they are)
  runs/ID/summary.json  final figures, the archive's geometry, versions, seconds of each phase, and
                          archive_digest: the SHA-256 over index, objective, measures and solution
                          of the rows; equal digests are equal results, bit for bit
  runs/ID/reevaluated-* elites evaluated again with fresh seeds (where that was done)
  ro-crate-metadata.json  what all of this is, for programs (RO-Crate 1.1)
  SHA256SUMS            check with: sha256sum -c SHA256SUMS

A run may have gone further than its `budget`, for another sweep: tables are at the budget, the
archive is at the end.

LOADING
  import json, numpy, pandas
  table = pandas.read_csv("tables/summary.csv")
  run = "runs/" + table["id"][0]
  elites = numpy.load(run + "/archive.npz", allow_pickle=False)
  elites["objective"].max(), elites["measures"].shape
  metrics = pandas.read_csv(run + "/metrics.csv")

  # As an archive of pyribs (with qdsweep):
  from qdsweep import load
  archive = load(run).archive

AGAIN, FROM NOTHING, in this folder (same versions: the same archive_digest)
  qdsweep run runs/ID/config.yaml --out again
{again}
VERSIONS
{versions}
"""


_SEARCH = """
  tables/search.csv     a row for each place of the search: setting, score, rank, why it stopped
  search/LEVEL/*.json   what it computed (PLACE-sSEED.json) and decided (decided-BLOCK.json), each
                        with a SHA-256 of itself; runs that stopped early are here alone"""
_AGAIN = """
THE SEARCH AGAIN, or on with more samples or rungs, in a clone of qdsweep where config/experiments/
has the experiment that sweep.yaml names: the same versions decide the same, and make the same
search.csv, byte for byte
  snakemake --cores 8 --configfile sweep.yaml
"""


def readme(name: str, summaries: list[dict[str, Any]], *, searched: bool = False) -> str:
    """Returns a text on what each file is, how to load it, and with which versions it was made.

    Args:
        name: The sweep.
        summaries: summary.json of its runs.
        searched: Whether a search has chosen them.
    """
    found: dict[str, set[str]] = {}
    for summary in summaries:
        for library, version in summary.get("versions", {}).items():
            found.setdefault(library, set()).add(version)
    lines = [f"  {name:14} {', '.join(sorted(seen))}" for name, seen in sorted(found.items())]
    title, versions = f"The sweep {name}", "\n".join(lines)
    return _TEXT.format(
        title=title,
        line="=" * len(title),
        count=len(summaries),
        versions=versions,
        search=_SEARCH if searched else "",
        again=_AGAIN if searched else "",
    )
