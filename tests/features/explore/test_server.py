"""The served page: who may read it, what it answers, and runs that are gone or damaged."""

import http.client
import json
import re
import shutil
import socket
import struct

import numpy as np
import pytest
from exploring import notes, pictures, served, unpack
from in_process import compute_run, qdsweep
from refusals import names_all
from results import forget_sums

from qdsweep.features.explore.page_server import ROUTES
from qdsweep.runs.load import load

SMALL = {"algorithm": "map_elites", "num_emitters": 1, "batch_size": 20, "iterations": 3, "seed": 1}
CARTPOLE = {
    **SMALL,
    "domain": {"preset": "cartpole", "max_episode_steps": 60},
    "archive": {"dims": [4, 3]},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    for name, seed in (("first", 1), ("second", 2), ("gone", 3), ("damaged", 4), ("changed", 5)):
        compute_run({**CARTPOLE, "seed": seed}, folder / "results/runs" / name)
    return forget_sums(folder)


NAMES = ("first", "second", "gone", "damaged", "changed")


@pytest.fixture(scope="module")
def page(study):
    with served(*NAMES, cwd=study) as started:
        yield started


@pytest.fixture(scope="module")
def first(study):
    return load(study / "results/runs/first")


def source(run):
    return f"0/{run.summary['archive_digest'][:16]}"


def path_of(route, run):
    """Returns an address of a route that has an answer."""
    pattern = route[0].removesuffix("$")
    filled = {r"(\d{1,6})": "0", r"(\d{1,9})": str(run.cells[0])}
    filled[r"(\d{1,15})"] = "0"
    filled[r"([0-9a-f]{16})"] = run.summary["archive_digest"][:16]
    for group, text in filled.items():
        pattern = pattern.replace(group, text)
    path = pattern.replace("\\", "")
    assert re.fullmatch(route[0], path)
    return path


OPEN = ("/", "/explore.css", "/explore.js")
TOKENS = {
    "none": None,
    "empty": "Bearer ",
    "wrong": "Bearer " + "x" * 43,
    "not ASCII": "Bearer \xe4\xf6\xfc",
    "only the scheme": "Bearer",
}
OTHERS = {
    "another host": {"Host": "attacker.example"},
    "another host with a token": {"Host": "127.0.0.1.attacker.example"},
    "no host": {"Host": ""},
    "a broken host": {"Host": "[::1"},
    "another origin": {"Origin": "http://attacker.example"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "a file": {"Origin": "null"},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "another port of this site": {"Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route[0])
def test_each_route_refuses_all_others(page, first, route):
    path = path_of(route, first)
    answer = 404 if path == "/tests" else 200  # the page has no sweeps
    own = {"Origin": f"http://127.0.0.1:{page.port}", "Sec_Fetch_Site": "same-origin"}
    assert page.ask(path)[0] == page.ask(path, **own)[0] == answer
    for token in TOKENS.values():
        connection = http.client.HTTPConnection("127.0.0.1", page.port)
        connection.request("GET", path, headers={} if token is None else {"Authorization": token})
        assert connection.getresponse().status == (200 if path in OPEN else 403), token
    for name, headers in OTHERS.items():
        assert page.ask(path, **headers)[0] in (400, 403), name
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        assert page.ask(path, method)[0] == 405, method


def test_unknown_paths_have_no_answer(page, first):
    for path in ("/../pyproject.toml", "/%2e%2e/x", "/explore_data.js", "/run/0", "/film/0/x/1"):
        assert page.ask(path)[0] in (404, 405)
        assert page.ask(path, Authorization="")[0] == 403
    digest = source(first)[2:]
    assert page.ask(f"/run/99/{digest}/0")[0] == 404
    empty = next(cell for cell in range(12) if cell not in first.cells)
    assert page.ask(f"/elite/0/{digest}/{empty}")[0] == 404
    assert str(empty) in notes(page.get(f"/film/0/{digest}/{empty}"))["error"]


@pytest.mark.parametrize("address", ["127.0.0.2", "::1"])
def test_only_one_address_listens(page, address):
    with pytest.raises(OSError), socket.create_connection((address, page.port), timeout=5):
        pass


BODIES = {
    "of a length": "Content-Length: 90000000",
    "of another length with a promise": "Content-Length: 5\r\nExpect: 100-continue",
    "in chunks": "Transfer-Encoding: chunked\r\n\r\n5000000",
}


def send(page, head):
    """Returns a connection that has sent the head of a request."""
    connection = socket.create_connection(("127.0.0.1", page.port), timeout=60)
    connection.sendall(f"{head}\r\nHost: 127.0.0.1:{page.port}\r\n".encode())
    return connection


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("is_own", [True, False])
def test_no_body_is_read(page, body, is_own):
    """The server closes the connection, although the body has not come."""
    with send(page, "POST / HTTP/1.1") as connection:
        if is_own:
            connection.sendall(f"Authorization: Bearer {page.token}\r\n".encode())
        connection.sendall(f"{BODIES[body]}\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(1000), b""))
        assert answer.endswith(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_silent_connection_is_closed(study):
    with served("first", cwd=study, idle=0.5) as page:
        connections = [
            socket.create_connection(("127.0.0.1", page.port), timeout=60),
            send(page, "GET / HTTP/1.1"),
        ]
        for connection in connections:
            with connection:
                assert connection.recv(1000) == b""
        assert page.get("/"), "others are served"


def test_the_headers_allow_nothing_from_elsewhere(page):
    connection = http.client.HTTPConnection("127.0.0.1", page.port)
    connection.request("GET", "/")
    answer = connection.getresponse()
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in answer.headers and "Server" not in answer.headers
    assert page.token not in answer.read().decode()


def test_the_answers_are_the_run(page, first):
    about = page.index()
    assert [run["label"] for run in about["runs"]] == list(NAMES)
    packed = unpack(page.get(f"/run/{source(first)}/0"))
    assert sorted(packed.final) == sorted(first.cells)
    cell = int(first.cells[2])
    elite = json.loads(page.get(f"/elite/{source(first)}/{cell}"))
    assert elite["solution"] == first.elite(2).solution.tolist()
    assert elite["measures"] == first.elite(2).measures.tolist()
    film = page.get(f"/film/{source(first)}/{cell}")
    assert notes(film)["objective"] == elite["objective"] and pictures(film)
    assert page.get(f"/film/{source(first)}/{cell}") == film, "it comes from the cache"


def start_reading(page, path, size):
    """Reads some bytes of an answer, then closes the connection."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=60) as connection:
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{page.port}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in page.headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        while size > 0 and (part := connection.recv(min(size, 4096))):
            size -= len(part)
        linger = struct.pack("ii", 1, 0)  # closes at once
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def test_readers_who_leave_never_get_or_leave_a_film_of_another_elite(page, study):
    runs = [load(study / "results/runs" / name) for name in ("first", "second")]
    rng = np.random.default_rng(7)
    for _ in range(30):
        place, row = rng.integers(2), rng.integers(3)
        digest, cell = runs[place].summary["archive_digest"][:16], runs[place].cells[row]
        start_reading(page, f"/film/{place}/{digest}/{cell}", int(rng.integers(1, 20_000)))
    for place, run in enumerate(runs):
        digest = run.summary["archive_digest"][:16]
        for row, cell in enumerate(run.cells.tolist()):
            about = notes(page.get(f"/film/{place}/{digest}/{cell}"))
            assert (about["cell"], about["objective"]) == (cell, run.elite(row).objective)
    cached = [*(study / "results/explore").glob("*/*.film")]
    assert len(cached) == sum(len(run.cells) for run in runs)
    by_id = {run.summary["id"]: run for run in runs}
    for file in cached:
        run, cell = by_id[file.parent.name], int(file.name.split("-")[0])
        row = run.cells.tolist().index(cell)
        assert notes(file.read_bytes())["objective"] == run.elite(row).objective
    assert not [*(study / "results/explore").glob("*/.*")]


def test_a_run_that_is_gone_damaged_or_changed_is_stated(page, study):
    digests = [run["digest"] for run in page.index()["runs"]]
    folder = study / "results/runs"
    shutil.rmtree(folder / "gone")
    (folder / "damaged/archive.npz").write_bytes(b"")
    changed = json.loads((folder / "changed/summary.json").read_text())
    (folder / "changed/summary.json").write_text(json.dumps(changed | {"archive_digest": "f" * 64}))
    for place, status, name in ((2, 422, "gone"), (3, 422, "archive.npz"), (4, 422, "")):
        for kind in ("run", "elite", "film"):
            answer = page.ask(f"/{kind}/{place}/{digests[place]}/0")
            if (kind, place) == ("film", 3):  # it is read by the process that plays
                names_all(notes(answer[1])["error"], name)
            else:
                assert answer[0] == status
                names_all(answer[1].decode(), name)
    problems = [run.get("problem", "") for run in page.index()["runs"]]
    names_all(problems[2], folder.name, "gone")
    names_all(problems[3], "archive.npz")
    assert not problems[0] + problems[1] + problems[4]


def test_what_cannot_be_served_is_refused(study, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        names_all(qdsweep("explore", "first", "--port", port, cwd=study, code=2), "--port", port)
    names_all(qdsweep("explore", "frst", cwd=study, code=2), "frst", "'first'")
    names_all(qdsweep("explore", "first", "--port", 70000, cwd=study, code=2), "--port 70000")
    names_all(qdsweep("explore", cwd=tmp_path, code=2), "results/")
