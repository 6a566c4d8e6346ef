"""Ray: a cluster that belongs to the run, with its head on this machine, or an existing one.

Anyone who has the token of a run can run code as its user. The token is in a folder of mode 0700,
in a file of mode 0600, and is removed at the end of the run. Ray encrypts nothing.
"""

import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psutil

from qdsweep.config import cluster as config
from qdsweep.engines.executors.ray_worker import MEMORY, Scratch, is_listening
from qdsweep.engines.failures import NoWorkers
from qdsweep.engines.worker import Order
from qdsweep.errors import BadInput
from qdsweep.files import write_private
from qdsweep.host.signals import SIGNALS
from qdsweep.records.paths import StateDir

if TYPE_CHECKING:
    from qdsweep.engines.executors.ray_actors import Ray, RayService

log = logging.getLogger("qdsweep")

# How long a run waits for Ray to end before the run is saved [s]. Ray then ends in the background.
GOODBYE_SECONDS = 0.7
# The head starts a server for each client that is not a node. Some of these servers hang, and the
# head ends them after half a minute.
CLIENT_ATTEMPTS = 4
TOKEN = secrets.token_hex(32)  # one per process, because Ray reads it only once


def connect_ray(order: Order, cluster: config.Cluster, state: StateDir, helpers: object) -> "Ray":
    """Starts Ray for the run, or joins the Ray cluster that the cluster config names."""
    joined: RayService
    if cluster.ray.address is not None:
        joined = JoinedRayCluster(cluster.ray.address, order)
    else:
        joined = OwnRayCluster(cluster, state, order)
    # At its import, Ray reads the environment, which has the path of the token.
    from qdsweep.engines.executors.ray_actors import Ray

    return Ray(order, joined, cluster.workers)


class _Thread:
    """A separate thread for Ray, because Ray in the main thread would handle the signals.

    The processes that it starts end with it.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1)

    def start(self, **options: object) -> None:
        # Below `uv run`, Ray would send the whole study to its workers and start them by uv.
        os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
        import ray

        logging.getLogger("ray").setLevel(logging.ERROR)
        options |= {"log_to_driver": False, "configure_logging": False}
        self._executor.submit(ray.init, **options).result()
        for number in SIGNALS:
            signal.signal(number, signal.getsignal(number))  # Ray's C++ part has replaced them

    def end(self) -> None:
        import ray

        with contextlib.suppress(TimeoutError):
            self._executor.submit(ray.shutdown).result(GOODBYE_SECONDS)


class OwnRayCluster:
    """A cluster for one run. Its processes end with this one.

    Args:
        cluster: The cluster config.
        state: The run's state, where the other nodes find address and token.
        order: The settings of all workers.
    """

    def __init__(self, cluster: config.Cluster, state: StateDir, order: Order) -> None:
        self.options: dict[str, Any] = {}
        self.remedy = f"see {state.workers}"
        self._folder = state.connection.parent
        token = self._folder / "token"
        write_private(token, TOKEN)
        os.environ.pop("RAY_AUTH_TOKEN", None)  # it may belong to another cluster
        self._scratch = Scratch()
        os.environ.update(self._scratch.environment(token))
        before = set(psutil.Process().children())
        self._thread = _Thread()
        self._thread.start(
            address="local",
            num_cpus=cluster.workers_per_node if cluster.over_nodes() else cluster.workers,
            object_store_memory=MEMORY,
            include_dashboard=False,
            _node_ip_address=_host(cluster.interface),
        )
        self._processes = set(psutil.Process().children()) - before
        self._vital: dict[int, str] = {}
        for process in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                if (name := process.name()) in ("gcs_server", "raylet"):
                    self._vital[process.pid] = name
        if cluster.over_nodes():
            import ray

            about = {"engine": "ray", "address": ray.get_runtime_context().gcs_address}
            write_private(state.connection, json.dumps(about | {"settings": order.settings}))

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        for pid, name in self._vital.items():
            if _has_ended(pid):
                return f"Ray's process {name} has ended; the same command starts it again"
        return None

    def close(self, actors: Iterable[Any]) -> None:
        """Ends its processes, also in the middle of an evaluation, and removes the token."""
        shutil.rmtree(self._folder, ignore_errors=True)
        for process in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in process.children(recursive=True):
                    child.kill()
                if self._vital.get(process.pid) != "gcs_server":  # Ray needs it to disconnect
                    process.kill()
        self._thread.end()


class JoinedRayCluster:
    """An existing cluster, which stays unchanged.

    Args:
        address: Its address, in Ray's form.
        order: The settings of all workers.
    """

    def __init__(self, address: str, order: Order) -> None:
        # Ray starts the processes of these actors for this run, with its CPU settings.
        self.options = {"runtime_env": {"env_vars": order.settings}}
        self.remedy = f"the Ray cluster at {address} has no free core, or no node that fits"
        self._thread = _Thread()
        try:
            if address != "auto" and not is_listening(address.removeprefix("ray://")):
                raise ConnectionError("no answer")  # Ray itself would wait for minutes
            self._join(address)
        except Exception as error:  # it may be running again at the next attempt
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise NoWorkers(
                f"cluster: ray: address = {address!r}: no Ray cluster answers there, or it "
                f"rejects this process ({why})"
            ) from None

    def _join(self, address: str) -> None:
        for left in reversed(range(CLIENT_ATTEMPTS)):
            try:
                self._thread.start(address=address)
                return
            except ConnectionAbortedError:
                if not left:
                    raise
                log.warning("Ray's server for this client does not answer; asking for another one")

    def problem(self) -> None:
        """Returns None, because more cores may always become free."""

    def close(self, actors: Iterable[Any]) -> None:
        """Ends the actors, also in the middle of an evaluation, and leaves the cluster."""
        import ray

        for actor in actors:
            with contextlib.suppress(Exception):
                ray.kill(actor)
        self._thread.end()


def _has_ended(child: int) -> bool:
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # another thread has waited for it
        return True


def _host(interface: str | None) -> str | None:
    """Returns this machine's address on the chosen network; None for Ray's own choice."""
    if interface is None:
        return None
    for address in psutil.net_if_addrs().get(interface, ()):
        if address.family.name == "AF_INET":
            return address.address
    raise BadInput(
        f"cluster: interface = {interface!r}: this machine has {', '.join(psutil.net_if_addrs())}"
    )
