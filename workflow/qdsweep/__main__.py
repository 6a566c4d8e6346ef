"""`python -m qdsweep` is `qdsweep`."""

import sys

from qdsweep.cli import main

if __name__ == "__main__":
    sys.exit(main())
