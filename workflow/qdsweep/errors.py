"""The errors that end a command with one message instead of a traceback."""


class QdsweepError(Exception):
    """A failure that its message explains in full; the command exits with `exit_code`."""

    exit_code = 1


class StorageError(QdsweepError):
    """A file cannot be read or written, as the system says."""

    def __init__(self, error: OSError, place: object) -> None:
        super().__init__(
            f"{error.filename or place}: cannot be written or read ({error.strerror}); with that "
            "mended, the same command goes on"
        )


class BadInput(QdsweepError):
    """What the user wrote cannot be run: the message names file, key, value and remedy."""

    exit_code = 2
