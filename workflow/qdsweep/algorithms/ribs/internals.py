"""All uses of pyribs' private attributes, as in pyribs 0.12.0.

If another version has other names, the import of this module fails and lists them.
"""

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ribs.archives import (
    ArchiveBase,
    ArrayStore,
    CVTArchive,
    DensityArchive,
    DiscountArchive,
    GridArchive,
    SlidingBoundariesArchive,
)
from ribs.emitters._evolution_strategy_emitter import _get_ranker
from ribs.emitters.opt import (
    CMAEvolutionStrategy,
    LMMAEvolutionStrategy,
    SeparableCMAEvolutionStrategy,
)
from ribs.schedulers import Scheduler

from qdsweep.records.archive import order_by_bytes
from qdsweep.versions import missing_names

_SEEN_IN = "0.12.0"


def _check() -> None:
    space: dict[str, Any] = {"solution_dim": 1, "dims": [1], "ranges": [(0.0, 1.0)]}
    store = ArrayStore({"objective": ((), np.float64)}, 1)
    edges = ("_boundaries", "_lower_bounds", "_upper_bounds", "_interval_size")
    discounts = DiscountArchive(
        solution_dim=1,
        measure_dim=1,
        learning_rate=1.0,
        threshold_min=0.0,
        discount_model_manager=None,
        result_archive=GridArchive(**space),
        init_train_points=1,
        empty_points=1,
    )
    used: list[tuple[object, tuple[str, ...]]] = [
        (store, ("_props", "_fields")),
        (GridArchive(**space), ("_store", "_objective_sum", "_stats_update")),
        (DensityArchive(measure_dim=1, bandwidth=1.0), ("_buffer",)),
        (discounts, ("_cached_data", "_cached_add_info")),
        (Scheduler, ("_add_to_archives", "_EMPTY_WARNING")),
        (SlidingBoundariesArchive(**space), edges),
    ]
    lost = [
        f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
        for owner, names in used
        for name in names
        if not hasattr(owner, name)
    ]
    properties = ("occupied", "occupied_list", "n_occupied", "updates")
    lost += [f"ArrayStore._props[{name!r}]" for name in properties if name not in store._props]
    if lost:
        raise missing_names("ribs", _SEEN_IN, lost)


def _keep_compiled() -> None:
    """Has numba keep what it compiles of pyribs' evolution strategies, as it does for archives.

    Otherwise each process compiles it again, for some seconds of a run's first iteration.
    """
    for strategy in (CMAEvolutionStrategy, LMMAEvolutionStrategy, SeparableCMAEvolutionStrategy):
        for function in vars(strategy).values():
            # It is no compiled function, or numba finds no folder that it may write.
            with contextlib.suppress(AttributeError, RuntimeError):
                function.__func__.enable_caching()


_check()
_keep_compiled()


def reduce_store(store: ArrayStore) -> tuple[Any, ...]:
    """Pickles only the occupied rows of an archive's store, so equal states have equal bytes.

    pyribs pickles the whole capacity, and its empty rows have arbitrary bytes.
    """
    occupied = np.array(store.occupied_list)
    rows = {name: np.ascontiguousarray(array[occupied]) for name, array in store._fields.items()}
    arguments = (store.field_desc, store.capacity, occupied, rows, store._props["updates"])
    return restore_store, arguments


def restore_store(
    field_desc: dict[str, Any],
    capacity: int,
    occupied: NDArray[np.int32],
    rows: dict[str, NDArray[Any]],
    updates: list[int],
) -> ArrayStore:
    """Returns the store that `reduce_store` pickled. Reload files name this function."""
    store = ArrayStore(field_desc, capacity)
    store._props["occupied"][occupied] = True
    store._props["occupied_list"][: len(occupied)] = occupied
    store._props["n_occupied"] = len(occupied)
    store._props["updates"] = list(updates)
    for name, values in rows.items():
        store._fields[name][occupied] = values
    return store


def clear_buffer(archive: DensityArchive) -> None:
    """Clears the empty rows of a new buffer, so that equal states have equal bytes."""
    archive._buffer[:] = 0


def train_discounts(archive: DiscountArchive) -> None:
    """Trains the discount model with the latest solutions, and frees these."""
    archive.train_discount_model()
    archive._cached_data = archive._cached_add_info = None


def objectives(
    archive: ArchiveBase, cells: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Returns the occupied cells among these, and the objective of each elite."""
    occupied, objective = objectives_at(archive, cells)
    return cells[occupied], objective[occupied]


def marks(
    archive: ArchiveBase, cells: NDArray[np.int64], names: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Returns the occupied cells among these, and the fields of each elite as ``(n, k)`` floats."""
    occupied, data = archive._store.retrieve(cells, fields=names)
    columns = np.column_stack([data[name].astype(np.float64) for name in names])
    return cells[occupied], columns[occupied]


def elites_in(archive: ArchiveBase, cells: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Returns the elites in some cells, as `data` of the archive."""
    occupied, data = archive._store.retrieve(cells)
    return {name: values[occupied] for name, values in data.items()}


def fields_of(archive: ArchiveBase) -> dict[str, tuple[Any, Any]]:
    """Returns shape and type of each field of an archive's elites, without the threshold."""
    fields = dict(archive._store.field_desc)
    del fields["threshold"]
    return fields


def occupied_cells(archive: ArchiveBase) -> NDArray[np.int32]:
    """Returns the cells with elites, in the order in which they were filled."""
    cells: NDArray[np.int32] = archive._store.occupied_list
    return cells


def objectives_at(
    archive: ArchiveBase, cells: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Returns which cells ``(n,)`` are occupied, and the objective of the elite in each of them."""
    occupied, data = archive._store.retrieve(cells, fields=["objective"])
    return occupied, data["objective"]


def put_elites(
    archive: ArchiveBase, cells: NDArray[np.int64], elites: dict[str, NDArray[Any]]
) -> None:
    """Makes solutions the elites of their cells, whatever was there."""
    archive._store.add(cells, elites | {"threshold": elites["objective"]})


def empty_cells(archive: ArchiveBase, cells: NDArray[np.int64]) -> None:
    """Removes the elites of some occupied cells. The others keep their order."""
    properties = archive._store._props
    properties["occupied"][cells] = False
    listed = archive._store.occupied_list
    left = listed[properties["occupied"][listed]]
    properties["occupied_list"][: len(left)] = left
    properties["n_occupied"] = len(left)


def every_objective(archive: ArchiveBase, *, indexed: bool) -> NDArray[np.float64]:
    """Returns the objective of each elite, in the order of `records.archive.archive_rows`.

    Args:
        archive: The archive, one of pyribs' with a store.
        indexed: Whether its elites have cells.
    """
    store = archive._store
    objective: NDArray[np.float64] = store._fields["objective"]
    if not indexed:
        places = store._props["occupied_list"][: len(store)]
        objective = objective[places[order_by_bytes(store._fields["solution"], places)]]
    elif len(store) < store.capacity:
        objective = objective.take(np.flatnonzero(store._props["occupied"]))
    return objective.astype(np.float64, copy=False)


def adds_in_turn(archive: ArchiveBase | None) -> bool:
    """Returns whether `add_in_turn` can add to an archive; True for None."""
    if archive is None:
        return True
    return type(archive) in (GridArchive, CVTArchive) and archive.dtypes["objective"] == np.float64


def add_in_turn(archive: Any, data: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Adds the solutions of a batch one after another, as `add_single` does for each of them.

    pyribs computes each of them with numpy, and updates all statistics after each one. This
    function computes the thresholds as Python's floats, with the same bits, and then stores the
    last solution of each cell.

    Args:
        archive: A grid or CVT archive with float64 objectives.
        data: The solutions, objectives, measures and fields ``(n, ...)``.

    Returns:
        `status` and `value` ``(n,)``, as from `add_single`.
    """
    store = archive._store
    cells = archive.index_of(data["measures"])
    objective = np.asarray(data["objective"], dtype=np.float64)
    is_occupied, old = store.retrieve(cells, fields=["threshold", "objective"])
    pairs = zip(old["threshold"].tolist(), old["objective"].tolist(), strict=True)
    occupied = zip(cells.tolist(), pairs, is_occupied.tolist(), strict=True)
    elites: dict[int, tuple[float, float]] = {cell: pair for cell, pair, is_ in occupied if is_}
    lowest, rate = float(archive.threshold_min), float(archive.learning_rate)
    first = 0.0 if lowest == -np.inf else lowest
    total, best = float(archive._objective_sum), archive.stats.obj_max
    best = -np.inf if best is None else float(best)
    status, value = [0] * len(cells), [0.0] * len(cells)
    last: dict[int, int] = {}  # cell -> row of the last solution that it took
    new, count, best_row, best_threshold = [], 0, None, 0.0
    for row, (cell, score) in enumerate(zip(cells.tolist(), objective.tolist(), strict=True)):
        threshold, elite = elites.get(cell, (first, None))
        value[row] = score - threshold
        if not score > (lowest if elite is None else threshold):
            continue
        threshold = threshold * (1.0 - rate) + score * rate
        if elite is None:
            elite = 0.0
            new.append(cell)
            status[row] = 2
        else:
            status[row] = 1
        total = total + score - elite
        elites[cell], last[cell], count = (threshold, score), row, count + 1
        if score > best:
            best, best_row, best_threshold = score, row, threshold
    if last:
        properties, size = store._props, store._props["n_occupied"]
        properties["occupied"][new] = True
        properties["occupied_list"][size : size + len(new)] = new
        properties["n_occupied"] = size + len(new)
        properties["updates"][0] += count
        rows, places = list(last.values()), list(last)
        thresholds = [elites[cell][0] for cell in places]
        if best_row is not None:  # the best elite is read from its cell, which may not keep it
            _store_rows(store, data, [best_row], cells[[best_row]], [best_threshold])
            archive._stats_update(np.float64(total), cells[best_row])
        _store_rows(store, data, rows, places, thresholds)
        if best_row is None:
            archive._stats_update(np.float64(total), places[0])
    return {"status": np.array(status, dtype=np.int32), "value": np.array(value)}


def _store_rows(
    store: ArrayStore, data: dict[str, NDArray[Any]], rows: Any, cells: Any, thresholds: list[float]
) -> None:
    for name, field in store._fields.items():
        field[cells] = thresholds if name == "threshold" else data[name][rows]


def change(part: object, name: str, value: Any) -> None:
    """Sets an attribute, even a read-only one, and keeps its type."""
    old = _get(part, name)
    if isinstance(old, np.ndarray | np.generic):
        value = np.asarray(value, dtype=old.dtype)
    setattr(part, name, value)


def change_batch_size(emitter: Any, batch_size: int) -> None:
    """Sets the number of solutions of an emitter from its next `ask` on."""
    change(emitter, "_batch_size", batch_size)
    if hasattr(emitter, "_noise_shape"):
        emitter._noise_shape = (batch_size, *emitter._noise_shape[1:])
    if not hasattr(emitter, "_opt"):
        return
    es = emitter._opt
    change(es, "batch_size", batch_size)
    if hasattr(es, "lazy_gap_evals"):  # the formula of cma_es' constructor
        *_, c1, cmu = es._calc_strat_params(batch_size // 2)
        es.lazy_gap_evals = 0.5 * batch_size / (c1 + cmu) / es.solution_dim


def change_ranker(emitter: Any, name: str) -> None:
    """Replaces the ranker of an emitter; the new one continues with the same generator."""
    ranker = _get_ranker(name, 0)
    ranker._rng = _get(_get(emitter, "_ranker"), "_rng")
    ranker.reset(emitter, emitter.archive)
    emitter._ranker = ranker


def change_sigma0(emitter: Any, sigma0: float) -> None:
    """Sets the step size that an evolution strategy has after a restart."""
    change(emitter, "_sigma0", sigma0)
    change(_get(emitter, "_opt"), "sigma0", sigma0)


def change_lr(emitter: Any, lr: float) -> None:
    """Sets the learning rate of an emitter's gradient optimiser."""
    change(_get(emitter, "_grad_opt"), "_lr", lr)


def _get(part: object, name: str) -> Any:
    if not hasattr(part, name):
        raise missing_names("ribs", _SEEN_IN, [f"{type(part).__name__}.{name}"])
    return getattr(part, name)


def boundaries(archive: SlidingBoundariesArchive) -> NDArray[np.float64]:
    """Returns the boundaries ``(m, most cells along a measure + 1)`` of a sliding archive."""
    return archive._boundaries


def set_boundaries(archive: SlidingBoundariesArchive, edges: NDArray[np.float64]) -> None:
    """Sets the boundaries as pyribs' remapping does."""
    archive._boundaries = edges.copy()
    archive._lower_bounds = edges[:, 0].copy()
    archive._upper_bounds = np.array(
        [each[dim] for each, dim in zip(edges, archive.dims, strict=True)]
    )
    archive._interval_size = archive._upper_bounds - archive._lower_bounds
