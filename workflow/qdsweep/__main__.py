"""`python -m qdsweep` is `qdsweep`."""

import signal
import sys

from qdsweep.warm.client import run_warm


def main() -> int:
    """Runs the command; a sweep's jobs in forks of the sweep's warm process, if there is one."""
    if sys.argv[1:2] == ["--image="]:
        code = run_warm(sys.argv[1:])
        if code is not None:
            return code
    from qdsweep import cli

    return cli.main()


if __name__ == "__main__":
    try:
        code = main()
    except KeyboardInterrupt:  # while it imports
        code = 128 + signal.SIGINT
    sys.exit(code)
