"""The user's own key, which proves that a reload file is the user's own."""

import functools
import hashlib
import hmac
import logging
import os
import secrets
from pathlib import Path

from qdsweep.files import write_private
from qdsweep.host import process
from qdsweep.host.lock import Lock

log = logging.getLogger(__name__)

_LENGTH = 64  # hexadecimal digits


def key_file() -> Path:
    """Returns the path of the key, which may not exist yet; in an image, the host's path."""
    key = process.host_facts().get("key")
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    return Path(key) if key else folder / "qdsweep/key"


def own_digest(text: str) -> str | None:
    """Returns the keyed digest of a text, which no other user can make.

    The key is made at its first use.

    Returns:
        HMAC-SHA256 [hex]; None where there is no key and none can be made.
    """
    key = _key(key_file())
    return key and hmac.digest(key.encode(), text.encode(), hashlib.sha256).hex()


@functools.cache  # so a run does not notice when the home folder vanishes
def _key(file: Path) -> str | None:
    try:
        if not file.exists():
            _make(file)
        about, key = file.stat(), file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError, RuntimeError) as error:
        log.warning("%s: the key cannot be made or read (%s)", file, error)
        return None
    if about.st_uid != os.geteuid() or about.st_mode & 0o077:
        log.warning("%s is not used: others may read it. Remove it: a new key is then made", file)
        return None
    if len(key) != _LENGTH:
        log.warning("%s is not used: it is damaged. Remove it: a new key is then made", file)
        return None
    return key


def _make(file: Path) -> None:
    """Makes the key atomically; of two processes, one makes it for both."""
    own = file.with_name(f"{file.name}-{secrets.token_hex(8)}")
    try:
        write_private(own, secrets.token_hex(_LENGTH // 2))
        os.link(own, file)  # unlike a rename it never replaces that of another process
    except FileExistsError:
        pass
    except OSError:  # hard links are not supported, or nothing can be written
        if not own.exists():
            raise
        with Lock(file.with_name(f"{file.name}.lock")) as lock:
            if not file.exists():
                own.rename(file)
            lock.path.unlink()  # a process that waits for it finds the key
    finally:
        own.unlink(missing_ok=True)
