"""The server of the page, on 127.0.0.1, for the user who has its token."""

import asyncio
import contextlib
import hmac
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.web import Application, HTTPError, RequestHandler

from qdsweep.errors import BadInput
from qdsweep.features.compare.several import compare_sweeps
from qdsweep.features.explore import page
from qdsweep.features.explore.live import LIVE, open_run
from qdsweep.features.explore.packed import digest_of, index, pack
from qdsweep.features.explore.shown_runs import PageRuns
from qdsweep.features.explore.studio import GRACE, PATIENCE, Cache, Studio, Wanted
from qdsweep.host.machine import has_avx2
from qdsweep.host.process import return_memory
from qdsweep.records.paths import Results
from qdsweep.runs.load import Run

# The longest wait for a whole request, also between two of them [s]. The browser connects again.
IDLE_SECONDS = 30.0
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

# In the path of a request: a run, by its place and the beginning of its digest, and a cell.
_RUN, _CELL = r"(\d{1,6})/([0-9a-f]{16})", r"(\d{1,9})"


class Guarded(RequestHandler):
    """Answers the page of this server, and only with the token."""

    needs_token = True

    def set_default_headers(self) -> None:
        """Sets the headers of every answer."""
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuses other hosts (DNS rebinding), pages of other sites or ports, and other tokens."""
        headers = self.request.headers
        given = headers.get("Authorization", "").encode()
        wanted = f"Bearer {self.settings['token']}".encode()
        origin = headers.get("Origin", f"http://{self.request.host}")
        is_own = (
            _host_of(f"//{self.request.host}") in ("127.0.0.1", "localhost", "::1")
            and origin == f"http://{self.request.host}"
            and headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        )
        if not is_own or (self.needs_token and not hmac.compare_digest(given, wanted)):
            raise HTTPError(403)

    def write_error(self, status_code: int, **_: Any) -> None:
        """Writes no more than the reader needs."""
        remedy = "Open the address that qdsweep explore has printed."
        self.refuse(status_code, remedy if status_code == 403 else "")

    def refuse(self, status: int, text: str) -> None:
        """Answers with the reason why there is nothing to show."""
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text)


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


class Page(Guarded):
    """The page, its script and its style, which contain no data."""

    needs_token = False

    def initialize(self, kind: str, content: Callable[[], str]) -> None:
        """Takes the type of the answer, and the function that returns it."""
        self.kind, self.content = kind, content

    def get(self) -> None:
        """Answers."""
        self.set_header("Content-Type", f"{self.kind}; charset=utf-8")
        self.finish(self.content())


class Data(Guarded):
    """An answer about runs, or the reason why there is none. Subclasses have `answer`."""

    answer: Callable[..., Awaitable[None]]

    async def get(self, *words: str) -> None:
        """Answers."""
        try:
            await self.answer(*words)
        except BadInput as error:
            self.refuse(422, str(error))

    def run_of(self, place: str, digest: str) -> Run:
        """Returns a run of the page; its archive must be the one that the page knows."""
        known: list[Path] = self.settings["known"]
        if int(place) >= len(known):
            raise HTTPError(404)
        path = known[int(place)]
        if not path.is_dir():
            raise BadInput(f"The folder of this run is gone: {path}")
        run = open_run(path)
        if digest_of(run) != digest:
            raise BadInput("This run has changed. Load the page again.")
        return run


class IndexData(Data):
    """Spaces and runs."""

    async def answer(self) -> None:
        """Answers with JSON."""
        with contextlib.suppress(BadInput):  # a folder is gone since
            self.settings["chosen"] = await asyncio.to_thread(self.settings["choose"])
        chosen: PageRuns = self.settings["chosen"]
        about = await asyncio.to_thread(index, chosen.runs)
        known: list[Path] = self.settings["known"]
        for shown, entry in zip(chosen.runs, about["runs"], strict=True):
            if shown.path not in known:
                known.append(shown.path)
            entry["place"] = known.index(shown.path)  # the same for as long as the server runs
        further = ("title", "notes", "is_open", "sweeps")
        self.finish(about | {name: getattr(chosen, name) for name in further})


class Tests(Data):
    """The tests between the groups of several sweeps."""

    async def answer(self) -> None:
        """Answers with JSON."""
        chosen: PageRuns = self.settings["chosen"]
        if not chosen.sweeps:
            raise HTTPError(404)
        compared = await asyncio.to_thread(compare_sweeps, self.settings["results"], chosen.sweeps)
        tests = compared.comparisons
        rows = [[cell.text for cell in row] for row in tests.rows]
        about = {"title": tests.title, "columns": tests.columns, "text": tests.text, "rows": rows}
        self.finish(about | {"notes": [tests.note, *compared.notes]})


class Packed(Data):
    """The insertions of a run that the page does not have."""

    async def answer(self, place: str, digest: str, after: str) -> None:
        """Answers with packed insertions."""
        async with self.settings["packing"]:
            content = await asyncio.to_thread(pack, self.run_of(place, digest), int(after))
        self.set_header("Content-Type", "application/octet-stream")
        self.finish(content)


class EliteData(Data):
    """An elite with all its parameters, exactly."""

    async def answer(self, place: str, digest: str, cell: str) -> None:
        """Answers with JSON."""
        run = self.run_of(place, digest)
        elite = run.elite_in(int(cell))
        if elite is None:
            raise HTTPError(404)
        self.finish(
            {
                "run": run.summary["id"],
                "cell": int(cell),
                "objective": elite.objective,
                "measures": elite.measures.tolist(),
                "evaluation_seed": elite.evaluation_seed,
                "solution": elite.solution.tolist(),
            }
        )


class FilmData(Data):
    """The film of an elite, as it is made; the next time from the cache."""

    wanted: Wanted | None = None

    def on_connection_close(self) -> None:
        """Ends the film of a reader who has left."""
        if self.wanted is not None:
            self.settings["studio"].leave(self.wanted)

    async def answer(self, place: str, digest: str, cell: str) -> None:
        """Answers with records."""
        run = self.run_of(place, digest)
        studio, cache = self.settings["studio"], self.settings["cache"]
        file = cache.file(run.summary["id"], run.summary["archive_digest"], int(cell))
        self.set_header("Content-Type", "application/octet-stream")
        with contextlib.suppress(FileNotFoundError):
            self.finish(file.read_bytes())
            return
        self.wanted = wanted = Wanted(
            run.path.resolve(), digest, int(cell), str(run.config.get("cpu_baseline", "avx2"))
        )
        parts = []
        # It is read to its end or its process is ended: what is left is not the next film.
        async with contextlib.aclosing(studio.film(wanted)) as records:
            async for part in records:
                parts.append(part)
                if not wanted.is_left:
                    await self._send(part, wanted)
        if wanted.is_complete and digest != LIVE:
            cache.write(file, b"".join(parts))
        if not wanted.is_left:
            self.finish()

    async def _send(self, part: bytes, wanted: Wanted) -> None:
        try:
            self.write(part)
            async with asyncio.timeout(PATIENCE):
                await self.flush()
        except (StreamClosedError, TimeoutError):
            self.settings["studio"].leave(wanted)


async def _warm_up(studio: Studio, chosen: PageRuns) -> None:
    await studio.start("avx2" if has_avx2() else "native")
    await asyncio.to_thread(index, chosen.runs)
    for shown in chosen.runs[:1]:
        with contextlib.suppress(BadInput):
            await asyncio.to_thread(pack, open_run(shown.path))


ROUTES: list[Any] = [
    (r"/", Page, {"kind": "text/html", "content": page.html}),
    (r"/explore\.css", Page, {"kind": "text/css", "content": page.page_style}),
    (r"/explore\.js", Page, {"kind": "text/javascript", "content": page.script}),
    (r"/index", IndexData),
    (r"/tests", Tests),
    (rf"/run/{_RUN}/(\d{{1,15}})", Packed),
    (rf"/film/{_RUN}/{_CELL}", FilmData),
    (rf"/elite/{_RUN}/{_CELL}", EliteData),
]


async def serve(choose: Callable[[], PageRuns], results: Results, port: int) -> None:
    """Serves the page until a signal ends it, and prints its address.

    Args:
        choose: Returns what it shows. It is called again for each index.
        results: The folder results/, which has the cache of films.
        port: The port; 0 for a free one.

    Raises:
        BadInput: Another process listens on the port.
    """
    return_memory(1 << 18)  # the arrays of packed runs
    chosen = choose()
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"--port {port}: {reason}; leave it out to use a free port") from None
    listener.setblocking(False)
    port, token, studio = listener.getsockname()[1], secrets.token_urlsafe(32), Studio()
    application = Application(
        ROUTES,
        default_handler_class=Guarded,
        log_function=lambda handler: None,
        choose=choose,
        chosen=chosen,
        results=results,
        known=[shown.path for shown in chosen.runs],
        token=token,
        studio=studio,
        cache=Cache(results),
        packing=asyncio.Semaphore(2),  # each takes some memory
    )
    # No request of the page has a body, so none is read.
    limits = {"max_body_size": 0, "max_header_size": 1 << 16, "body_timeout": IDLE_SECONDS}
    server = HTTPServer(application, idle_connection_timeout=IDLE_SECONDS, **limits)
    server.add_socket(listener)
    # The part behind # stays in the browser: it is in no request and in no log.
    print(f"http://127.0.0.1:{port}/#token={token}", flush=True)
    print(
        f"qdsweep: open this address. From another machine, first type: ssh -L {port}:127.0.0.1:"
        f"{port} {socket.gethostname()}. Ctrl-C ends the page.",
        file=sys.stderr,
    )
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    warming = asyncio.create_task(_warm_up(studio, chosen))  # a first click waits for no import
    await end.wait()
    warming.cancel()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(studio.close(), GRACE)
    os._exit(0)  # threads and readers need not end
