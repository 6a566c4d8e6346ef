"""Errors that end a command with a message instead of a traceback; the exit code of a stop."""

# EX_TEMPFAIL of sysexits.h: stopped on purpose before the end. The same command resumes.
STOPPED = 75


class QdsweepError(Exception):
    """A failure that its message explains fully; the command exits with `exit_code`.

    Example:
        A script that ends as a command of qdsweep does:

        >>> from qdsweep import load
        >>> from qdsweep.errors import QdsweepError
        >>> try:
        ...     run = load("no_such_run")
        ... except QdsweepError as error:
        ...     print(type(error).__name__, error.exit_code)
        BadInput 2
    """

    exit_code = 1


class StorageError(QdsweepError):
    """A file cannot be read or written; the message has the reason of the system.

    Example:
        >>> from qdsweep.errors import StorageError
        >>> raise StorageError(OSError(28, "No space left on device"), "results/runs.tsv")
        Traceback (most recent call last):
        qdsweep.errors.StorageError: results/runs.tsv: cannot be written or read (No space left...
    """

    def __init__(self, error: OSError, place: object) -> None:
        place = error.filename or place
        super().__init__(
            f"{place}: cannot be written or read ({error.strerror}); {_remedy(error, str(place))}, "
            "then repeat the same command: it resumes"
        )


def _remedy(error: OSError, place: str) -> str:
    """Returns what to do; if another user may change who writes or reads a place, that user."""
    import os  # not above, because `warm.client` must import little

    while not os.path.exists(place) and place not in ("", "/"):  # noqa: PTH110 - so is pathlib
        place = os.path.dirname(place) or "."  # noqa: PTH120
    try:
        is_others = os.stat(place).st_uid != os.geteuid()  # noqa: PTH116
    except OSError:
        is_others = False
    if not isinstance(error, PermissionError) or not is_others:
        return "fix this"
    return f"{place} belongs to {owner_of(place)}, who can allow it (chmod): ask for that"


def owner_of(place: object) -> str:
    """Returns the owner of a file in words: the name, or the number without one."""
    import os
    import pwd

    user = os.stat(str(place)).st_uid  # noqa: PTH116
    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"the user with the number {user}"


class BadInput(QdsweepError):
    """Wrong input of the user: the message names file, key, value and remedy.

    Example:
        >>> from qdsweep.config.compose import compose
        >>> compose("lp_sphere", {"sead": 1})
        Traceback (most recent call last):
        qdsweep.errors.BadInput: the command line: unknown name 'sead': ... did you mean 'seed'? ...
    """

    exit_code = 2


def raised(error: BaseException) -> str:
    """Returns the text of an error, with the line of the user's code that raised it."""
    import os  # not above, because `warm.client` must import little
    import traceback
    from pathlib import Path

    package, python = Path(__file__).parent, Path(os.__file__).parent

    def is_own(file: Path) -> bool:
        return "site-packages" not in file.parts and not file.is_relative_to(python)

    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not Path(frame.filename).is_relative_to(package)
    ]
    own = [frame for frame in frames if is_own(Path(frame.filename))]
    text = f"{type(error).__name__}: {error}"
    for frame in (own or frames)[-1:]:
        text += f" ({frame.filename}, line {frame.lineno}: {frame.line})"
    return text
