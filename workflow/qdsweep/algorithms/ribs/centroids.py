"""Centroids of CVT archives: computed once, kept, shared by the runs of a sweep."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np

from qdsweep.config.archives import CVTArchive
from qdsweep.domains.base import Floats
from qdsweep.files import atomic
from qdsweep.host.lock import Lock


class Centroids:
    """A folder of centroids, one file for each (cells, ranges, samples, seed).

    Without a folder they are any points, which will do in a rehearsal.

    k-means takes half a minute for 10,000 cells, and its last bits change with the number of
    threads: so whoever comes first computes them and everybody else reads the file.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, archive: CVTArchive, cells: int, ranges: list[tuple[float, float]]) -> Floats:
        """Gives the centroids (Vassiliades et al. 2018, alg. 1).

        Args:
            archive: The archive's config.
            cells: Number of centroids.
            ranges: (lower, upper) of each measure.

        Returns:
            ``(cells, m)`` centroids.
        """
        if self.folder is None:
            return np.random.default_rng(0).random((cells, len(ranges)))
        key = json.dumps([cells, ranges, archive.samples, archive.centroids_seed])
        name = f"cvt-{cells}-{hashlib.sha256(key.encode()).hexdigest()[:10]}.npy"
        path = self.folder / name
        centroids = _read(path)
        if centroids is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            with Lock(self.folder / f".{name}.lock", wait=math.inf):  # the others wait, then read
                centroids = _read(path)
                if centroids is None:
                    centroids = _k_means(archive, cells, ranges)
                    with atomic(path, durable=True) as file:
                        np.save(file, centroids)
        return centroids


def _read(path: Path) -> Floats | None:
    """The centroids of a file, or None where it is missing or torn."""
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None


def _k_means(archive: CVTArchive, cells: int, ranges: list[tuple[float, float]]) -> Floats:
    from ribs.archives import k_means_centroids  # pulls scikit-learn

    return k_means_centroids(
        centroids=cells,
        ranges=ranges,
        samples=archive.samples,
        seed=archive.centroids_seed,
    )[0]
