"""The process that plays elites: readers who leave, domains that hang or crash, and the cache."""

import asyncio
import contextlib
import os

import numpy as np
import psutil
import pytest
from exploring import notes, pictures
from in_process import compute_run

from qdsweep.features.explore import studio
from qdsweep.features.explore.studio import Cache, Studio, Wanted
from qdsweep.records.paths import Results
from qdsweep.runs.load import load

SMALL = {"algorithm": "map_elites", "num_emitters": 1, "batch_size": 20, "iterations": 3, "seed": 1}
CARTPOLE = {
    **SMALL,
    "domain": {"preset": "cartpole", "max_episode_steps": 60},
    "archive": {"dims": [4, 3]},
}
# In the process of the page only: its run is computed in this one.
PLUGIN = """
import os
import sys
import time
from qdsweep.domains.base import Evaluation


class Faulty:
    solution_dim, measures = 4, {"x": (-2.0, 2.0)}
    objective_range, fields = (0.0, 1.0), {}

    def __init__(self, how):
        self.how = how

    def render(self, solution, seed):
        import numpy as np
        yield np.zeros((20, 20, 3), np.uint8)
        print("this text is not a record", flush=True)
        if self.how == "floods":
            for _ in range(100):
                yield np.random.default_rng(0).integers(256, size=(360, 360, 3), dtype=np.uint8)
        if self.how == "hangs":
            while True:
                time.sleep(0.1)
        os.abort()

    def evaluate(self, solutions, seeds):
        return Evaluation(solutions[:, 0] * 0, solutions[:, :1])
"""


@pytest.fixture(scope="module")
def pole(tmp_path_factory):
    return load(compute_run(CARTPOLE, tmp_path_factory.mktemp("pole") / "run"))


@pytest.fixture
def faulty(plugins, tmp_path):
    plugins("faulty", PLUGIN)

    def make(how):
        domain = {"type": "faulty:Faulty", "arguments": {"how": how}}
        return load(
            compute_run({**SMALL, "domain": domain, "archive": {"dims": [6]}}, tmp_path / how)
        )

    return make


def wanted(run, row=0):
    digest = run.summary["archive_digest"][:16]
    return Wanted(run.path, digest, int(run.cells[row]), run.config["cpu_baseline"])


@contextlib.asynccontextmanager
async def opened():
    made = Studio()
    try:
        yield made
    finally:
        await made.close()


async def whole(made, request):
    return b"".join([part async for part in made.film(request)])


def test_it_is_closed_while_nobody_reads_its_pipe(faulty):
    async def play():
        made, request = Studio(), wanted(faulty("floods"))
        film = made.film(request)
        for _ in range(5):
            await anext(film)
        await asyncio.sleep(5)  # the pipe is full
        await asyncio.wait_for(made.close(), 60)
        await film.aclose()

    asyncio.run(play())


def test_films_follow_each_other_and_each_is_of_its_elite(pole):
    async def play():
        async with opened() as made:
            requests = [wanted(pole, row) for row in range(len(pole.cells))]
            return requests, await asyncio.gather(*(whole(made, each) for each in requests))

    requests, films = asyncio.run(play())
    assert all(request.is_complete for request in requests)
    for request, film, objective in zip(requests, films, pole.arrays["objective"], strict=True):
        about = notes(film)
        assert (about["number"], about["cell"]) == (request.number, request.cell)
        assert about["objective"] == objective and about["same"] is True
        assert len(about["fresh"]) == 10 and pictures(film)


def test_readers_who_leave_end_their_film_only(pole):
    """The rest of a film without a reader is never a part of the next one."""
    rows = np.random.default_rng(1).permutation(len(pole.cells))

    async def play():
        async with opened() as made:
            for row in rows:
                left, kept = wanted(pole, row), wanted(pole, (row + 1) % len(rows))
                read = 0
                async for _ in made.film(left):
                    read += 1
                    if read == 1 + row % 5:
                        made.leave(left)
                assert not left.is_complete
                about = notes(await whole(made, kept))
                assert about["objective"] == pole.elite((row + 1) % len(rows)).objective
                assert kept.is_complete and about["number"] == kept.number
            return made._process.pid, (await made.start("avx2")).pid

    before, after = asyncio.run(play())
    assert before == after, "one process has made them all"


def test_a_reader_who_left_before_its_turn_has_no_film(pole):
    async def play():
        async with opened() as made:
            first, second = wanted(pole), wanted(pole, 1)
            films = asyncio.gather(whole(made, first), whole(made, second))
            await asyncio.sleep(0)
            made.leave(second)
            return first, second, await films

    first, second, films = asyncio.run(play())
    assert first.is_complete and not second.is_complete and films[1] == b""


def test_a_film_that_is_not_read_to_its_end_is_of_no_other_request(pole):
    async def play():
        async with opened() as made:
            async with contextlib.aclosing(made.film(wanted(pole))) as records:
                async for _ in records:
                    break
            request = wanted(pole, 2)
            return notes(await whole(made, request)), request

    about, request = asyncio.run(play())
    assert about["number"] == request.number and about["objective"] == pole.elite(2).objective


def test_an_answer_to_another_request_is_not_taken(pole):
    async def play():
        async with opened() as made:
            process, other = await made.start("avx2"), wanted(pole, 1)
            process.stdin.write(other.line)  # as a fault of the process would answer
            refused, request = wanted(pole), wanted(pole, 2)
            film = await whole(made, refused)
            return notes(film), pictures(film), refused, notes(await whole(made, request))

    about, frames, refused, after = asyncio.run(play())
    assert "error" in about and "objective" not in about and not frames
    assert not refused.is_complete
    assert after["objective"] == pole.elite(2).objective


@pytest.mark.parametrize("how", ["hangs", "crashes"])
def test_a_faulty_domain_ends_only_its_own_process(pole, faulty, monkeypatch, how):
    run = faulty(how)
    monkeypatch.setattr(studio, "PATIENCE", 5.0)

    async def play():
        async with opened() as made:
            request, other = wanted(run), wanted(pole)
            film = await whole(made, request)
            return film, request, notes(await whole(made, other))

    film, request, after = asyncio.run(play())
    assert notes(film)["error"] and len(pictures(film)) == 1
    assert not request.is_complete
    assert after["objective"] == pole.elite(0).objective


def test_a_domain_that_hangs_is_ended_when_its_reader_leaves(pole, faulty, monkeypatch):
    run = faulty("hangs")
    monkeypatch.setattr(studio, "GRACE", 0.2)

    async def play():
        async with opened() as made:
            request, pid = wanted(run), (await made.start("avx2")).pid
            async for part in made.film(request):
                if part[4:5] == b"F":
                    made.leave(request)
            return pid, notes(await whole(made, wanted(pole)))

    pid, after = asyncio.run(play())
    assert after["objective"] == pole.elite(0).objective
    assert not psutil.pid_exists(pid)


def test_a_process_that_has_grown_is_replaced(pole, monkeypatch):
    async def play():
        async with opened() as made:
            pids = []
            for limit in (1e12, 1.0, 1e12):
                monkeypatch.setattr(studio, "MOST_MEMORY", limit)
                request = wanted(pole)
                await whole(made, request)
                pids.append((await made.start("avx2")).pid)
                assert request.is_complete
            return pids

    first, second, third = asyncio.run(play())
    assert first != second == third


def test_a_run_that_has_changed_is_not_played(pole):
    async def play():
        async with opened() as made:
            request = wanted(pole)
            request.digest = "1" * 16
            return notes(await whole(made, request)), request

    about, request = asyncio.run(play())
    assert str(pole.path) in about["error"] and not request.is_complete


def test_the_cache_keeps_the_newest_films(tmp_path):
    cache = Cache(Results(tmp_path / "results"), most=2500)
    files = [cache.file("run", f"{cell:064}", cell) for cell in range(4)]
    assert len({*files, cache.file("run", f"{1:064}", 0), cache.file("other", f"{0:064}", 0)}) == 6
    for age, file in enumerate(files):
        cache.write(file, bytes(1000))
        os.utime(file, (age, age))
    assert [file.exists() for file in files] == [False, False, True, True]
    assert files[3].read_bytes() == bytes(1000)
    for name in ("..", "../../x", "/x"):  # of a summary.json that another user has made
        assert cache.file(name, "0" * 64, 1).parent.parent == tmp_path / "results/explore"
        assert ".." not in cache.file(name, "0" * 64, 1).parts
    assert [path.name for path in files[3].parent.iterdir() if path.name.startswith(".")] == []


def test_a_folder_that_cannot_be_written_has_no_films(tmp_path):
    (tmp_path / "results").write_text("a file")
    cache = Cache(Results(tmp_path / "results"))
    cache.write(cache.file("run", "0" * 64, 1), b"film")
