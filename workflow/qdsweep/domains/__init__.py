"""Domains compute objective and measures of solutions; `make_domain` makes a domain."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from qdsweep.config.domain import DomainConfig
from qdsweep.config.requirements import remedy
from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_torch_baseline, require_baseline

if TYPE_CHECKING:  # numpy and gymnasium are only imported with a domain that needs them
    from qdsweep.domains.base import Domain

# The mutation scale for a user's class that has none.
_STEP = 0.5


def make_domain(domain: DomainConfig, seed: int = 0) -> "Domain":
    """Makes a domain from its config, which overrides the values of the class.

    Args:
        domain: One of the models of `qdsweep.config.domain`.
        seed: The seed of the run, for a random `x0`; evaluations do not depend on it.

    Returns:
        The domain, with the attributes of `Domain`. Its `x0` ``(d,)`` float64 is the starting
        point of a search, and `step` is the natural mutation scale [parameter units].

    Raises:
        BadInput: A name in the config does not exist, is not installed or does not fit. Or a
            library does not keep the `cpu_baseline` of this process.
    """
    import numpy as np

    apply_torch_baseline()  # the user's code may import torch
    module, name = domain.code.split(":")
    arguments = {key: getattr(domain, key) for key in domain.code_keys}
    try:
        make = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if not (advice := remedy(error.name or "")):
            raise
        raise BadInput(f"domain {domain.name or domain.type} needs {error.name}{advice}") from None
    made: Any = make(**arguments) if arguments else make(domain)
    require_baseline()
    values: dict[str, object] = {}
    if domain.ranges is not None:
        if len(domain.ranges) != len(made.measures):
            raise BadInput(
                f"domain.ranges has {len(domain.ranges)} entries, but {domain.type} has "
                f"{len(made.measures)} measures: {', '.join(made.measures)}"
            )
        values["measures"] = dict(zip(made.measures, domain.ranges, strict=True))
    if domain.objective_range is not None:
        values["objective_range"] = domain.objective_range
    x0: Any = domain.x0 if domain.x0 is not None else getattr(made, "x0", 0.0)
    if domain.x0 == "xavier":
        # Child (0,) of the seed belongs to the algorithm. All algorithms of a seed share this x0.
        x0 = made.xavier(np.random.SeedSequence(seed, spawn_key=(3,)))
    try:
        x0 = np.broadcast_to(np.asarray(x0, dtype=np.float64), made.solution_dim)
    except ValueError:
        raise BadInput(
            f"domain.x0 has the shape {np.shape(x0)}, but a solution of {domain.type} has "
            f"{made.solution_dim} parameters"
        ) from None
    values["x0"] = x0.copy()
    values["step"] = domain.step if domain.step is not None else getattr(made, "step", _STEP)
    for name, value in values.items():
        try:
            setattr(made, name, value)
        except AttributeError as error:
            raise BadInput(f"{domain.type} does not let {name} be set: {error}") from None
    return made


def import_libraries(domain: DomainConfig) -> "Domain | None":
    """Imports the libraries of a domain, in a process that is forked later.

    Args:
        domain: One of the models of `qdsweep.config.domain`.

    Returns:
        The domain. None for the user's own code, which is not imported, because its threads and
        open files would not survive a fork.
    """
    is_own = domain.own_parts or ":" in getattr(domain, "env", "")
    return None if is_own else make_domain(domain)
