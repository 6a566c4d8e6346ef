"""Errors that end a command with a message instead of a traceback; the exit code of a stop."""

# EX_TEMPFAIL of sysexits.h: stopped on purpose before the end. The same command resumes.
STOPPED = 75


class QdsweepError(Exception):
    """A failure that its message explains fully; the command exits with `exit_code`."""

    exit_code = 1


class StorageError(QdsweepError):
    """A file cannot be read or written; the message has the reason of the system."""

    def __init__(self, error: OSError, place: object) -> None:
        super().__init__(
            f"{error.filename or place}: cannot be written or read ({error.strerror}); fix this, "
            "then repeat the same command: it resumes"
        )


class BadInput(QdsweepError):
    """Wrong input of the user: the message names file, key, value and remedy."""

    exit_code = 2
