"""What an exported sweep is, for programs: metadata as RO-Crate 1.1 has them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

NAME = "ro-crate-metadata.json"
# What Python's `mimetypes` knows on some machines only.
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
}


def metadata(
    name: str, files: Iterable[str], summaries: Mapping[str, dict[str, Any]], date: str
) -> bytes:
    """Returns ro-crate-metadata.json: files, runs, and the software that made them; nobody's name.

    Args:
        name: The sweep.
        files: What is in the export; the files of a run are one data set.
        summaries: Run -> its summary.json.
        date: The day on which the last run ended, in ISO 8601.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.model.softwareapplication import SoftwareApplication
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.name = f"The sweep {name}"
    crate.description = (
        f"Results of a parameter sweep of Quality-Diversity experiments, {len(summaries)} runs: "
        "configs, tables, figures, archives and metrics. README.txt says what each file is."
    )
    crate.datePublished = date
    crate.license = "Not in this blind copy: its authors name one where they publish it."
    for path in (path for path in [*files, "SHA256SUMS"] if not path.startswith("runs/")):
        about = {"name": path, "encodingFormat": _FORMATS[PurePosixPath(path).suffix]}
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


def _versions(summaries: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Returns each library that runs were made with, in each version."""
    return sorted({pair for summary in summaries for pair in summary.get("versions", {}).items()})
