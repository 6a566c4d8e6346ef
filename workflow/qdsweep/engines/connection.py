"""The connection file of a run: where its workers connect to, and with which credentials.

Anybody who can read it can run code as the user: so it is in a folder of mode 0700, has the mode
0600 and is removed with the end of the run.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qdsweep.files import atomic

if TYPE_CHECKING:
    from distributed.security import Security


class Connection(NamedTuple):
    """What a worker needs for its connection.

    Attributes:
        address: Where the main process listens, `tls://HOST:PORT`.
        certificate: The run's own self-signed certificate (PEM). Both sides show it and accept
            no other: mutual TLS.
        key: Its private key (PEM).
        directory: The main process's working directory, for the user's plug-ins.
    """

    address: str
    certificate: str
    key: str
    directory: str

    def security(self) -> "Security":
        """Returns the credentials as Dask takes them."""
        from distributed.security import (
            Security,
        )  # it imports numpy, which needs the settings first

        return Security(
            require_encryption=True,
            tls_ca_file=self.certificate,
            tls_scheduler_cert=self.certificate,
            tls_scheduler_key=self.key,
            tls_worker_cert=self.certificate,
            tls_worker_key=self.key,
        )


def temporary_credentials() -> tuple[str, str]:
    """Makes a certificate and its private key (PEM)."""
    from distributed.security import Security

    made = Security.temporary()
    return made.tls_ca_file, made.tls_scheduler_key


def write_connection(path: Path, connection: Connection) -> None:
    """Writes the file, so that at no moment another user can read it."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.parent.chmod(0o700)
    with atomic(path, "w", private=True) as file:
        json.dump(connection._asdict(), file)


def read_connection(path: Path) -> Connection | None:
    """Reads the file; None if there is none (yet)."""
    try:
        return Connection(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def remove_connection(path: Path) -> None:
    """Removes the file and with it the credentials."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        for torn in path.parent.iterdir():
            torn.unlink(missing_ok=True)
        path.parent.rmdir()
