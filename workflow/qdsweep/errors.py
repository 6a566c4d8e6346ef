"""The errors that end a command with one message instead of a traceback."""


class QdsweepError(Exception):
    """A failure that its message explains in full; the command exits with `exit_code`."""

    exit_code = 1


class BadInput(QdsweepError):
    """What the user wrote cannot be run: the message names file, key, value and remedy."""

    exit_code = 2
