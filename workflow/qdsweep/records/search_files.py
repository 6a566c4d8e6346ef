"""Files of a search: its levels in plan.json, markers of places, and tables of decisions.

No file contains times, so two starts of a search write the same bytes. Each file contains its own
checksum: a file that was edited or truncated is detected and rebuilt.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from qdsweep.errors import BadInput
from qdsweep.files import damaged, read_json, write_json
from qdsweep.records.paths import SweepDir
from qdsweep.records.sums import checksum, read_checked


class Level(NamedTuple):
    """A rung, a batch or a generation.

    It has a fixed number of places. Each place gets a candidate, and extends the candidate's
    run for each seed.

    Attributes:
        name: Its folder below `search/` of the sweep.
        places: Candidates at a time.
        seeds: Swept seeds as text; `("",)` where none is swept.
        budget: Of each of its runs, in the experiment's unit.
        kind: known (candidates `first`, `first + 1`, ...), promoted, asked or exploited.
        first: Number of its first candidate.
        below: The levels whose markers its decisions read.
        block: Places of a table of decisions, one of a chain; 0: all in one.
    """

    name: str
    places: int
    seeds: tuple[str, ...]
    budget: int
    kind: str = "known"
    first: int = 0
    below: tuple[str, ...] = ()
    block: int = 0

    @property
    def blocks(self) -> int:
        """Number of tables of decisions."""
        if self.kind == "known":
            return 0
        return -(-self.places // self.block) if self.block else 1

    def block_of(self, place: int) -> int:
        """Returns the table that decides about a place."""
        return place // self.block if self.block else 0

    def sees(self, block: int, below: int) -> tuple[int, int, int]:
        """Returns what a table of promotions is about.

        Args:
            block: The table.
            below: Number of places of the level below.

        Returns:
            The first place below that it is the first to see, the one after the last, and how many
            candidates are promoted after it.
        """
        if not self.block:
            return 0, below, self.places
        each = below // self.places * self.block
        last = below if block == self.blocks - 1 else each * (block + 1)
        return each * block, last, min(self.places, self.block * (block + 1))

    def basis(self, block: int) -> tuple[int, ...]:
        """Returns numbers that change whenever a table of decisions must be rebuilt.

        A table stays as it is with more samples, where it has seen the same ones.
        """
        if self.kind != "promoted" or not self.block:
            return (self.places,)
        return (min(self.places, self.block * (block + 1)),)


class Seen(NamedTuple):
    """What a decision knows of a candidate.

    Attributes:
        place: Its place in the level below.
        setting: Its number.
        values: Its swept values, without the seed.
        score: Mean over the seeds, larger is better; None where a run failed.
        failed: Why it failed; None where it did not.
        runs: Swept seed -> its run, also of seeds that a later level is the first to have.
    """

    place: int
    setting: int
    values: Mapping[str, Any]
    score: float | None
    failed: str | None = None
    runs: Mapping[str, str] = MappingProxyType({})

    def chosen_for(self, place: int, reason: str) -> "Chosen":
        """Returns the decision that gives the candidate as it is to a place."""
        return Chosen(place, self.setting, self.values, reason, self.place, self.failed, self.runs)


class Chosen(NamedTuple):
    """The candidate that a decision gives to a place.

    Attributes:
        place: The place.
        setting: The number of the candidate.
        values: Its swept values, without the seed.
        reason: Why, for a reader.
        parent: Its place in the level below, or its donor's; None where it has none.
        failed: Why it failed before, so that nothing is computed; None where it did not.
        runs: Swept seed -> its run.
    """

    place: int
    setting: int
    values: Mapping[str, Any]
    reason: str
    parent: int | None = None
    failed: str | None = None
    runs: Mapping[str, str] = MappingProxyType({})


class Decision(NamedTuple):
    """All that the decisions of a chain have seen and chosen, up to one of them."""

    seen: list[Seen]
    chosen: list[Chosen]


def marker_path(sweep: SweepDir, level: str, place: int, seed: str) -> Path:
    """Returns where the marker of a place is."""
    return sweep.search / level / f"{place}-s{seed}.json"


def decision_path(sweep: SweepDir, level: str, block: int) -> Path:
    """Returns where a table of decisions is."""
    return sweep.search / level / f"decided-{block}.json"


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a marker or a table of decisions with its checksum."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**data, "sha256": checksum(data)})


def read_sealed(path: Path) -> dict[str, Any]:
    """Reads a marker or a table of decisions.

    Raises:
        BadInput: It is missing, truncated or was edited.
    """
    data = read_json(path)
    if data.pop("sha256", None) != checksum(data):
        raise damaged(path, ValueError("its checksum is wrong, so it was edited"))
    return data


def is_whole(path: Path) -> bool:
    """Returns whether a marker or a table of decisions is as it was written."""
    try:
        read_sealed(path)
    except BadInput:
        return False
    return True


def seen_in(sweep: SweepDir, level: Level, places: Sequence[int]) -> list[Seen]:
    """Reads what is known of some places of a level.

    Raises:
        BadInput: A marker is missing or damaged.
    """
    return [
        seen_of([read_sealed(marker_path(sweep, level.name, place, seed)) for seed in level.seeds])
        for place in places
    ]


def seen_of(markers: Sequence[Mapping[str, Any]]) -> Seen:
    """Returns the content of a place's markers, one for each seed, as that of its candidate."""
    failed = next((marker["failed"] for marker in markers if marker["failed"] is not None), None)
    scores = [marker["score"] for marker in markers]
    whole = failed is None and None not in scores
    score = sum(scores) / len(scores) if whole else None
    first = markers[0]
    return Seen(first["place"], first["setting"], first["values"], score, failed, first["runs"])


def write_decision(sweep: SweepDir, level: Level, block: int, decision: Decision) -> None:
    """Writes a table of decisions: all that was seen so far, and all that was chosen."""
    data = {
        "level": level.name,
        "block": block,
        "seen": [{**seen._asdict(), "runs": dict(seen.runs)} for seen in decision.seen],
        "places": [{**chosen._asdict(), "runs": dict(chosen.runs)} for chosen in decision.chosen],
    }
    write_sealed(decision_path(sweep, level.name, block), data)


def read_decision(sweep: SweepDir, level: Level, block: int) -> Decision:
    """Reads a table of decisions.

    Raises:
        BadInput: It is missing, truncated or was edited.
    """
    data = read_sealed(decision_path(sweep, level.name, block))
    seen = [Seen(**entry) for entry in data["seen"]]
    return Decision(seen, [Chosen(**entry) for entry in data["places"]])


def markers_in(sweep: SweepDir, level: Level) -> Iterator[tuple[int, Path]]:
    """Yields the existing markers of a level with their places, seed by seed of each."""
    for place in range(level.places):
        for seed in level.seeds:
            path = marker_path(sweep, level.name, place, seed)
            if path.exists():
                yield place, path


def places_left(sweep: SweepDir, levels: Sequence[Level]) -> tuple[int, int]:
    """Returns the number of places of a search without a result, and that of all."""
    total = sum(level.places * len(level.seeds) for level in levels)
    return total - sum(len([*markers_in(sweep, level)]) for level in levels), total


def read_markers(sweep: SweepDir, levels: Sequence[Level]) -> Iterator[dict[str, Any]]:
    """Yields the existing markers, level by level, place by place, seed by seed."""
    for level in levels:
        for _, path in markers_in(sweep, level):
            yield read_sealed(path)


def read_decisions(sweep: SweepDir, level: Level) -> Decision:
    """Reads all that is decided about a level, up to its last existing table.

    Raises:
        BadInput: It is truncated or was edited.
    """
    for block in reversed(range(level.blocks)):
        if decision_path(sweep, level.name, block).exists():
            return read_decision(sweep, level, block)
    return Decision([], [])


def chosen_runs(sweep: SweepDir, levels: Sequence[Level]) -> set[str]:
    """Returns the runs that decisions have given to places.

    Raises:
        BadInput: A table of decisions is truncated or was edited: the runs are unknown.
    """
    return {
        run
        for level in levels
        for chosen in read_decisions(sweep, level).chosen
        for run in chosen.runs.values()
    }


def levels_of(plan: Mapping[str, Any]) -> tuple[Level, ...]:
    """Returns the levels that plan.json has.

    Raises:
        TypeError, ValueError: An entry is no level.
    """
    return tuple(
        level._replace(seeds=tuple(level.seeds), below=tuple(level.below))
        for level in (Level(**entry) for entry in plan.get("levels", ()))
    )


def write_search_rows(sweep: SweepDir, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes search.json, rows like those of plan.json."""
    write_json(sweep.search_rows, {"rows": rows})


def read_search_rows(sweep: SweepDir) -> list[dict[str, Any]]:
    """Reads the rows of search.json; none before the search has ended.

    Raises:
        BadInput: It is damaged.
    """
    if not sweep.search_rows.exists():
        return []
    try:
        return list(read_checked(sweep.search_rows)["rows"])
    except (KeyError, TypeError) as error:
        raise damaged(sweep.search_rows, error) from None


def ordinal(number: int) -> str:
    """Returns 1st, 2nd, 3rd, 4th, ..."""
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{last or 'th'}"
