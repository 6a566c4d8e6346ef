"""The metadata of an exported sweep (RO-Crate 1.1) and its README.txt."""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from qdsweep.analysis.page.methods import core_seconds
from qdsweep.features.export.publication import KEYWORDS, LICENCES, Publication
from qdsweep.text import core_time

CRATE_FILE = "ro-crate-metadata.json"
# What a reviewer types in the folder of the package.
REVIEW = "qdsweep reproduce . --all --minutes 10"
# Types that Python's `mimetypes` knows only on some machines.
_FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    "": "text/plain",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".cff": "application/yaml",
    ".lock": "text/plain",
    ".sh": "application/x-sh",
}

_TEXT = """\
{title}
{line}
A study that can be run: {count} runs of Quality-Diversity experiments, with config and code.
checklist.md answers the questions of a reviewer. To check the study, with qdsweep {own} installed:
  sha256sum -c SHA256SUMS                    in this folder: each file is as it was packed
  qdsweep reproduce . --here --all --minutes 10   computes what fits in ten minutes, here
  {check}     the same with the libraries of requirements.lock
All runs took {time}. The code of the authors is run, so qdsweep asks first.
Expect equal bits with these libraries on x86-64 with AVX2. Exit code 0: no run that was computed
differs; 1: one does, or none was computed; 2: the package is damaged.

No file holds a pickle; numpy loads every array with allow_pickle=False.

FILES
  checklist.md          seeds, budgets, cost, hardware, versions, statistics, failures, licence.
  sweep.yaml            the declaration of the sweep (GNU parallel's grammar), with all its keys
  config/*              every file that it names: presets, clusters, values
  tables/runs.tsv       swept values and id of each run
  tables/summary.csv    a row for each run, at the sweep's budget
  tables/table.*        a row for each group: mean, standard error (CSV) or interval (md, LaTeX)
  tables/curves.csv     mean and standard error of each group over evaluations
  tables/*              further tables{search}
  figures/*.pdf, .svg   the figures; the .csv of the same name has the data that a figure shows
  report.html           tables and figures as one page (left out where it could identify a person)
  config/plugins/*      the classes and functions of the authors that runs use, and their imports
                        from there, unchanged. Of the files that they read, those that a class
                        declares (`depends`) are included; packages that they need are not
  requirements.lock     the libraries of qdsweep, with hashes; containers/* builds an image of them
  tables/digests.csv    the digest of each run, for `qdsweep audit`
  runs/ID/config.yaml   the whole experiment, with all keys
  runs/ID/metrics.csv   one row per iteration. coverage is a fraction, seconds_* are seconds
  runs/ID/archive.npz   the elites of the final archive, one row each, sorted by cell:
                          index (n,) int64
                          objective (n,), measures (n, m), solution (n, d) float64
                          further fields of the domain
                          centroids or boundaries of the cells where they are not a grid
  runs/ID/history.npz   every change of the archive: iteration, index (cell), objective (NaN where
                          the cell became empty), if cells stay where they are. Only a file with
                          `removals` has all changes that the user's own algorithm makes
  runs/ID/summary.json  final metrics, geometry of the archive, versions, seconds of each phase,
                          archive_digest: the SHA-256 over index, objective, measures and solution
                          of the rows. Equal digests mean equal results, bit for bit
  runs/ID/reevaluated-* elites evaluated again with fresh seeds (where that was done)
  ro-crate-metadata.json  what all of this is, for programs (RO-Crate 1.1)
  SHA256SUMS            check with: sha256sum -c SHA256SUMS
{public}
A run can have a larger budget in another sweep. Tables are then at the `budget` of this sweep,
and the archive is that of the end of the run.

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

REPRODUCE A RUN, in this folder (the same versions give the same archive_digest)
  qdsweep run runs/ID/config.yaml --out ../again
{again}
VERSIONS
{versions}
"""
_PUBLIC = """\
  LICENSE               the licence of this package
  CITATION.cff          how to cite it; .zenodo.json has the same for an archive
"""
_SEARCH = """
  tables/search.csv     one row per trial of the search: setting, score, rank, why it stopped
  search/LEVEL/*.json   results (PLACE-sSEED.json) and decisions (decided-BLOCK.json), each with its
                        own SHA-256. Runs that stopped early are only in these files"""
_AGAIN = """
REPRODUCE OR EXTEND THE SEARCH, in this folder. The same versions give the same search.csv, byte for
byte
  qdsweep sweep sweep.yaml
"""


def metadata(
    name: str,
    files: Iterable[str],
    summaries: Mapping[str, dict[str, Any]],
    date: str,
    publication: Publication | None = None,
) -> bytes:
    """Returns ro-crate-metadata.json: files, runs and software; names only of who publishes it.

    Args:
        name: The sweep.
        files: What is in the export; the files of a run are one data set.
        summaries: Run -> its summary.json.
        date: The day on which the last run ended, in ISO 8601.
        publication: Who publishes it, and how; None for a blind review.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.model.person import Person
    from rocrate.model.softwareapplication import SoftwareApplication
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.name = f"The sweep {name}"
    crate.description = (
        f"Results of a parameter sweep of Quality-Diversity experiments, {len(summaries)} runs: "
        "configs, tables, figures, archives and metrics. README.txt describes each file."
    )
    crate.datePublished = date
    if publication is None:
        crate.license = (
            "Not part of this blind copy. The authors name a license when they publish it."
        )
    else:
        licence = {"@type": "CreativeWork", "name": LICENCES[publication.licence]}
        crate.license = crate.add(ContextEntity(crate, publication.url, licence))
        people = enumerate(publication.authors, start=1)
        crate.root_dataset["author"] = [
            crate.add(Person(crate, f"#author-{number}", {"name": author}))
            for number, author in people
        ]
        crate.keywords = list(KEYWORDS)
    for path in (path for path in [*files, "SHA256SUMS"] if not path.startswith("runs/")):
        about = {"name": path, "encodingFormat": _format(path)}
        crate.add_file(dest_path=path, properties=about)
    runs = [
        crate.add_dataset(
            dest_path=f"runs/{run}/",
            properties={
                "name": f"The run {run}",
                "identifier": run,
                "description": "Config, metrics and archive; archive_digest "
                f"{summary.get('archive_digest')}",
            },
        )
        for run, summary in summaries.items()
    ]
    software = [
        crate.add(
            SoftwareApplication(
                crate,
                f"#{library}-{version}",
                {"name": library, "softwareVersion": version},
            )
        )
        for library, version in _versions(summaries.values())
    ]
    made = crate.add(
        ContextEntity(
            crate,
            "#sweep",
            {"@type": "CreateAction", "name": f"The sweep {name}", "endTime": date},
        )
    )
    made["instrument"] = software
    made["object"] = crate.get("sweep.yaml")
    made["result"] = runs
    crate.root_dataset["mentions"] = made
    graph = crate.metadata.generate()
    return (json.dumps(graph, indent=1, ensure_ascii=False) + "\n").encode()


def _format(path: str) -> str:
    """Returns the type of a file."""
    return _FORMATS.get(PurePosixPath(path).suffix, "application/octet-stream")


def _versions(summaries: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Returns the libraries that the runs used, in each version."""
    return sorted({pair for summary in summaries for pair in summary.get("versions", {}).items()})


def readme(
    name: str, summaries: list[dict[str, Any]], *, searched: bool = False, public: bool = False
) -> str:
    """Returns a text that describes each file, how to load it, and the versions behind it.

    Args:
        name: The sweep.
        summaries: summary.json of its runs.
        searched: Whether a search has chosen them.
        public: Whether the package has a licence and names its authors.
    """
    libraries: dict[str, set[str]] = {}
    for summary in summaries:
        for library, version in summary.get("versions", {}).items():
            libraries.setdefault(library, set()).add(version)
    lines = [f"  {lib:14} {', '.join(sorted(seen))}" for lib, seen in sorted(libraries.items())]
    title, versions = f"The sweep {name}", "\n".join(lines)
    own = libraries.get("qdsweep", {"of any version"})
    return _TEXT.format(
        own=" or ".join(sorted(own)),
        check=REVIEW,
        time=core_time(sum(map(core_seconds, summaries))),
        title=title,
        line="=" * len(title),
        count=len(summaries),
        versions=versions,
        public=_PUBLIC if public else "",
        search=_SEARCH if searched else "",
        again=_AGAIN if searched else "",
    )
