"""Facts about the host for a process in the image, where there is no Slurm."""

import functools
import json
import os
from typing import Any

VARIABLE = "QDSWEEP_HOST"
# In a process of the mpi engine that MPI has started: how many ranks there must be.
RANKS = "QDSWEEP_RANKS"


@functools.cache
def told() -> dict[str, Any]:
    """Returns what `container.enter` has told this process; nothing outside of an image.

    `image`: the file; `digest`: its SHA-256; `slurm`: question -> answer; `helpers`: the
    process that starts the workers, if they are on several nodes; `key`: the file of the user's
    own key.
    """
    return dict(json.loads(os.environ.get(VARIABLE, "{}")))


def image() -> dict[str, Any] | None:
    """Returns the image that this process runs in, as summary.json names it."""
    path = told().get("image") or os.environ.get("APPTAINER_CONTAINER")
    return None if path is None else {"path": path, "sha256": told().get("digest")}
