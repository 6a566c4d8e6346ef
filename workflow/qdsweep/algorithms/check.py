"""Checks of an algorithm's contract, for `qdsweep check --algorithm NAME`.

They run a small experiment with an algorithm or one of its parts, here and in another process.
"""

import copyreg
import hashlib
import io
import json
import os
import pickle
import random
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from qdsweep.algorithms import import_plugins, make_algorithm, try_changes
from qdsweep.algorithms.base import Algorithm, Candidates
from qdsweep.algorithms.changes import Changes
from qdsweep.algorithms.own import part_of, takes_fields
from qdsweep.config.compose import compose, read_domain, read_part
from qdsweep.config.experiment import Experiment
from qdsweep.config.families import Composition
from qdsweep.config.files import find_preset, read_yaml
from qdsweep.domains import make_domain
from qdsweep.domains.base import Domain, Evaluation, evaluated
from qdsweep.errors import BadInput, raised
from qdsweep.host.answer import answer, answer_of
from qdsweep.metrics import ARCHIVE_METRICS
from qdsweep.records.archive import SEED, archive_digest
from qdsweep.records.history import History

_ITERATIONS = 4
# An iteration with more batches than this counts as endless.
_MOST_BATCHES = 1000

# Digests of the solutions of each batch, and of the archive after each iteration.
Trace = list[tuple[str, str]]

# Solutions per emitter: an even number that is large enough for all emitters.
_BATCH = 6
_CELLS = 10  # along each measure
_DOMAIN = {"preset": "lp_sphere", "solution_dim": 10}
_EPISODES = {"preset": "pendulum", "max_episode_steps": 20}


def try_out(experiment: Experiment) -> None:
    """Makes the algorithm of an experiment, pickles it and asks it once: a quick check.

    Args:
        experiment: The experiment. None of its solutions is evaluated.

    Raises:
        BadInput: One of these steps fails; the message has the reason.
    """
    check = _Check(experiment)
    check.first_batch()
    try_changes(experiment, check.domain, None)


def first_trace(experiment: Experiment) -> Trace:
    """Checks an algorithm as `try_out` does, and runs some iterations of it.

    Raises:
        BadInput: One of these steps fails; the message has the reason.
    """
    try_out(experiment)
    return _Check(experiment).run(lambda algorithm: algorithm)


def check_algorithm(experiment: Experiment, elsewhere: Trace | None = None) -> str:
    """Checks that an algorithm keeps the contract of `Algorithm` in some iterations.

    The algorithm can be made, and its solutions have the right shapes. Two runs of a seed are
    equal. It resumes bit for bit from a pickle between and within iterations, with any state of
    the process's generators. Results can be written, and the history of the archive ends with it.

    Args:
        experiment: The experiment; a small batch suffices.
        elsewhere: The iterations in another process, see `trace_elsewhere`.

    Returns:
        A warning that elites may not replay, with the remedy; empty if they do.

    Raises:
        BadInput: The contract is broken; the message has the reason and the line of code.
    """
    check = _Check(experiment)
    check.first_batch()
    try_changes(experiment, check.domain, None)
    straight = check.run(lambda algorithm: algorithm)
    repeated = check.run(lambda algorithm: algorithm)
    _same(
        check.name,
        straight,
        repeated,
        "two runs of one seed differ",
        "random numbers that do not depend on `seed` (np.random, random, a generator of the "
        "module or class), the time, the order of a set",
    )
    if elsewhere is not None:
        _same(
            check.name,
            straight,
            elsewhere,
            "two runs of one seed differ in two processes",
            "the order of a set of strings, hash() of a string, id(), environment variables",
        )
    resumed = check.run(check.pickled)
    _same(
        check.name,
        straight,
        resumed,
        "it does not resume bit for bit after pickling",
        "state that is not in its attributes (np.random, random, variables of the module or "
        "class), a __getstate__ that leaves something out",
    )
    return "" if check.keeps_seeds else _no_seeds(experiment)


def _no_seeds(experiment: Experiment) -> str:
    algorithm = experiment.algorithm
    groups = algorithm.emitters if isinstance(algorithm, Composition) else []
    without = ", ".join(group.type for group in groups if not takes_fields(group))
    return (
        f"its elites have no {SEED}, so `run.replay` and `qdsweep rollout` may not find the seed "
        "of an elite. "
        + (
            f"Add **fields to the parameters of `tell` in {without}"
            if without
            else "Make the archive with `extra_fields`, and add the seeds of each batch to it "
            "(docs/plugins.md)"
        )
    )


class _Check:
    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.name = experiment.algorithm.name
        import_plugins(experiment)
        self.domain: Domain = make_domain(experiment.domain, experiment.seed)
        self.keeps_seeds = False

    def first_batch(self) -> None:
        """Makes the algorithm, asks it once, and pickles it before and after that."""
        algorithm = self.pickled(self.make())
        candidates = self.ask(algorithm)
        if candidates is None:
            raise BadInput(f"{self.name}: the first ask returns None: an iteration needs solutions")
        self.pickled(algorithm)

    def make(self) -> Algorithm:
        return make_algorithm(self.experiment, self.domain, None)

    def run(self, between: Callable[[Algorithm], Algorithm]) -> Trace:
        """Runs some iterations, and calls `between` at each point where a run can stop."""
        _scramble()
        algorithm = between(self.make())
        trace: Trace = []
        history = _History(algorithm, self)
        for iteration in range(1, _ITERATIONS + 1):
            batch = 0
            while (candidates := self.ask(algorithm)) is not None:
                batch += 1
                where = f"batch {batch} of iteration {iteration}"
                if batch > _MOST_BATCHES:
                    raise BadInput(f"{self.name}: ask never returns None, which ends an iteration")
                trace.append((where, _digest(candidates.solutions)))
                algorithm = between(algorithm)
                if batch == 1:
                    self.call("meanwhile", algorithm.meanwhile)
                    algorithm = between(algorithm)
                evaluation = self.tell(algorithm, candidates, iteration, where)
                history.told(algorithm, evaluation)
            algorithm = between(algorithm)
            trace.append((f"the archive after iteration {iteration}", self.digest(algorithm)))
            history.end(algorithm, iteration)
        history.compare(algorithm)
        return trace

    def ask(self, algorithm: Algorithm) -> Candidates | None:
        """Asks for a batch and checks it."""
        candidates = self.call("ask", algorithm.ask)
        if candidates is None:
            return None
        solutions, dim = np.asarray(candidates.solutions), self.domain.solution_dim
        if solutions.ndim != 2 or solutions.shape[1] != dim or not len(solutions):
            raise BadInput(
                f"{self.name}: ask returns solutions of the shape {solutions.shape}; it should be "
                f"(n, {dim}), with n of at least 1"
            )
        if solutions.dtype.kind not in "fiu" or not np.isfinite(solutions).all():
            raise BadInput(f"{self.name}: ask returns solutions that are not all finite numbers")
        made: Candidates = candidates
        return made

    def tell(
        self, algorithm: Algorithm, candidates: Candidates, iteration: int, where: str
    ) -> Evaluation:
        n = len(candidates.solutions)
        sequence = np.random.SeedSequence(0, spawn_key=(1, iteration))
        seeds = sequence.generate_state(n).astype(np.uint32)
        solutions = np.array(candidates.solutions, dtype=float)
        size = getattr(self.domain, "context_dim", None)
        context = () if size is None else (np.zeros(size),)
        options = {"experience": True} if candidates.experience else {}
        evaluation = self.call(
            "evaluate of the domain",
            lambda: evaluated(self.domain.evaluate(solutions, seeds.copy(), *context, **options)),
        )
        jacobian = None
        if candidates.gradients:
            jacobian = self.domain.jacobian(solutions.copy())  # type: ignore[attr-defined]
        evaluation = evaluation._replace(jacobian=jacobian, tally=None)
        asked = candidates._replace(seeds=seeds)
        self.call(f"tell, {where},", lambda: algorithm.tell(asked, evaluation))
        told: Evaluation = evaluation
        return told

    def digest(self, algorithm: Algorithm) -> str:
        """Checks metrics and archive, and returns the digest of the archive."""
        metrics = self.call("metrics", algorithm.metrics)
        lacks = [name for name in ARCHIVE_METRICS if name not in metrics]
        if lacks:
            raise BadInput(
                f"{self.name}: metrics lacks {', '.join(lacks)} (None marks an undefined value)"
            )
        rows = self.call("archive.rows", algorithm.archive.rows)
        self.keeps_seeds = SEED in rows
        lengths = {key: len(values) for key, values in rows.items()}
        lacks = [key for key in ("objective", "measures", "solution") if key not in rows]
        if lacks or len(set(lengths.values())) > 1:
            raise BadInput(
                f"{self.name}: archive.rows has {lengths}; it needs objective, measures and "
                "solution, with one row per elite"
            )
        about = self.call("archive.describe", algorithm.archive.describe)
        if not {"type", "cells", "dims"} <= set(about):
            raise BadInput(f"{self.name}: archive.describe lacks type, cells or dims: {about}")
        return archive_digest(rows)

    def pickled(self, algorithm: Algorithm) -> Algorithm:
        """Returns the algorithm after pickling, and changes the process's random states."""
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, protocol=5)
        pickler.dispatch_table = {**copyreg.dispatch_table, **algorithm.reducers}
        try:
            pickler.dump(algorithm)
            read: Algorithm = pickle.loads(buffer.getvalue())
        except Exception as error:
            raise BadInput(
                f"{self.name} cannot be pickled, so a run could not resume after a stop: "
                f"{type(error).__name__}: {error}. Usual causes: a lambda, an open file or a class "
                "inside a function in an attribute"
            ) from error
        _scramble()
        return read

    def call(self, what: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except (Exception, SystemExit) as error:
            raise BadInput(f"{self.name}: {what} raised {raised(error)}") from error


class _History:
    """The history that a run would record.

    Args:
        algorithm: The algorithm, at its start.
        check: Its check.
    """

    def __init__(self, algorithm: Algorithm, check: _Check) -> None:
        self._check, self._changes = check, None
        is_own = bool(check.experiment.algorithm.plugins)
        archive = getattr(algorithm, "archive", None)  # `digest` names it if it is missing
        if archive is not None and check.call("archive.cells_stay", lambda: archive.cells_stay):
            self._changes = check.call("archive", lambda: Changes(archive, is_own=is_own))
        self._rows: list[Any] = []

    def told(self, algorithm: Algorithm, evaluation: Evaluation) -> None:
        """Records the cells that a batch may have changed."""
        changes = self._changes
        if changes is not None:
            told = partial(changes.told, algorithm.archive, evaluation.measures)
            self._check.call("archive.cells_of", told)

    def end(self, algorithm: Algorithm, iteration: int) -> None:
        """Records the changes of an iteration."""
        changes = self._changes
        if changes is not None:
            made = partial(changes.rows, algorithm.archive, iteration)
            self._rows.append(self._check.call("archive.objectives", made))

    def compare(self, algorithm: Algorithm) -> None:
        """Compares the end of the history with the archive.

        Raises:
            BadInput: They differ.
        """
        if self._changes is None:
            return
        rows, elites = np.concatenate(self._rows), algorithm.archive.rows()
        known = History(rows["iteration"], rows["index"], rows["objective"]).at(_ITERATIONS)
        pairs = zip(known, (elites["index"], elites["objective"]), strict=True)
        if not all(np.array_equal(*pair) for pair in pairs):
            raise BadInput(
                f"{self._check.name}: the history of its archive ends with {len(known[0])} elites, "
                f"and archive.rows has {len(elites['index'])}, or others. Usual causes: "
                "archive.objectives or archive.cells differs from archive.rows"
            )


def _same(name: str, first: Trace, second: Trace, what: str, causes: str) -> None:
    for (where, before), (_, after) in zip(first, second, strict=False):
        if before != after:
            raise BadInput(f"{name}: {what}, first in {where}. Usual causes: {causes}")


def _digest(solutions: Any) -> str:
    return hashlib.sha256(np.asarray(solutions, dtype="<f8").tobytes()).hexdigest()


def _scramble() -> None:
    """Changes the states of the process's global generators, as in another process."""
    np.random.seed()
    random.seed()


def small_experiment(
    name: str, domain: str | None, settings: Mapping[str, Any], source: str
) -> Experiment:
    """Composes an experiment with few solutions.

    Args:
        name: A preset or a file of an algorithm or of an experiment; or the `module:name` of an
            emitter, archive or scheduler class, of an `Algorithm`, or of a function that makes
            one.
        domain: Its domain: a preset, a file or a `module:Class`. None for the domain of the
            experiment. An algorithm without one gets the sphere, or a pendulum if it learns from
            episodes.
        settings: Further keys, in the form of `--set`.
        source: Where they come from, for messages.

    Raises:
        BadInput: The name is unknown, or the experiment cannot be composed.
    """
    experiment = None if ":" in name else _experiment(name)
    if experiment is not None:
        changes = {} if domain is None else {"domain": domain}
        return compose(experiment, changes | dict(settings), source=source)
    algorithm = {"name": name.rsplit(":", 1)[1], **part_of(name)} if ":" in name else name
    groups, home = 1, _DOMAIN
    if not isinstance(algorithm, dict):
        part = read_yaml(find_preset("algorithms", name))
        groups = len(part.get("emitters", [1]))
        if ":" not in str(part.get("type", ":")) and read_part("algorithm", part).needs_experience:
            home = _EPISODES
    measures = 2 if domain is None else len(make_domain(read_domain(domain)).measures)
    data = {
        "domain": domain or home,
        "algorithm": algorithm,
        "archive": {"dims": [_CELLS] * measures},
        "num_emitters": groups,
        "batch_size": _BATCH,
        "iterations": 1,
    }
    return compose(data, settings, source=source)


def _experiment(name: str) -> dict[str, Any] | None:
    """Returns the mapping of an experiment of that name; None for the name of an algorithm."""
    try:
        data = read_yaml(find_preset("algorithms", name))
    except BadInput as error:
        try:
            return read_yaml(find_preset("experiments", name))
        except BadInput:
            raise error from None
    return data if "domain" in data or "experiment" in data else None


def trace_elsewhere(experiment: Experiment) -> Trace:
    """Checks an algorithm in another process, which hashes strings differently.

    Python hashes strings differently in each process, so the order of a set of strings changes
    between runs. Code that ends its process does not end this one.

    Args:
        experiment: The experiment.

    Returns:
        The digests of its batches and archives, for comparison by `check_algorithm`.

    Raises:
        BadInput: The contract is broken, or the process has crashed; the message has the reason.
    """
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    name, about = experiment.algorithm.name, experiment.model_dump_json()
    answered = answer_of("qdsweep.algorithms.check", about, name, {"PYTHONHASHSEED": seed})
    return [(where, digest) for where, digest in json.loads(answered)]


def _trace(about: str) -> str:
    return json.dumps(first_trace(Experiment.model_validate_json(about)))


if __name__ == "__main__":
    sys.exit(answer(_trace))
