"""The page of `qdsweep explore` in a real headless browser, as a reader uses it."""

import base64
import contextlib
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from exploring import served
from in_process import compute_run, compute_sweep, report_sweep
from inventing import make_run
from matplotlib import colormaps
from playwright.sync_api import Error
from refusals import names_all
from results import forget_sums
from support import BIN, TINY
from waiting import wait_until

from qdsweep.analysis.data import SweepData
from qdsweep.features.explore import page as embedding
from qdsweep.records.history import read_history
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import load

SMALL = {"algorithm": "map_elites", "num_emitters": 2, "batch_size": 20, "iterations": 12}
LANDER = {**SMALL, "domain": "lunar_lander", "archive": {"dims": [12, 12]}}
ARM = {**SMALL, "domain": {"preset": "arm", "solution_dim": 6}}
RUNS = {
    "lander1": {**LANDER, "seed": 1},
    "lander2": {**LANDER, "seed": 2},
    "arm": {**ARM, "algorithm": "cvt_map_elites", "archive": {"cells": 80}, "seed": 1},
    "sphere": TINY,
}
# Name -> type of archive, and number of measures.
KINDS = {
    "line": ("grid", 1),
    "cube": ("grid", 3),
    "four": ("grid", 4),
    "cvt1": ("cvt", 1),
    "cvt3": ("cvt", 3),
    "sliding": ("sliding_boundaries", 2),
    "proximity": ("proximity", 2),
    "novelty1": ("proximity", 1),
    "novelty3": ("proximity", 3),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    runs = folder / "results/runs"
    for name, experiment in RUNS.items():
        compute_run(experiment, runs / name)
    for name, (kind, measure_dim) in KINDS.items():
        run_id, _ = make_run(runs, name, 1, kind=kind, measure_dim=measure_dim)
        path = runs / run_id / "summary.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"archive_digest": "0" * 64}))
        (runs / run_id).rename(runs / name)
    return forget_sums(folder)


@pytest.fixture(scope="module")
def page_of(study):
    with served(*RUNS, *KINDS, cwd=study) as started:
        yield started


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Returns the folder of a sweep of two lunar landers, with its report."""
    results = tmp_path_factory.mktemp("reported") / "results"
    sweep = compute_sweep(results, LANDER, "::: seed 1 2", rollouts={"elites": ["best", "median"]})
    return report_sweep(sweep)


@pytest.fixture
def reader(chromium, request):
    """Opens the page. At the end it had no message in the console and no foreign request."""
    troubles, contexts = [], []
    hint = "multiple readback operations"  # the tests read pixels

    def open_page(link="", width=1440, height=900, report=None, served=None, ready=True, **options):
        page_of = None if report else served or request.getfixturevalue("page_of")
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.on("console", lambda entry: hint in entry.text.lower() or troubles.append(entry.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        base = report.as_uri() if report else f"http://127.0.0.1:{page_of.port}/"
        page.on("request", lambda entry: check_request(entry.url, base))
        page.goto(f"{base}#{link}" if report else page_of.address + ("&" + link if link else ""))
        if ready:
            until(page, "document.documentElement.dataset.explore === 'ready'")
        return page

    def check_request(url, base):
        if not url.startswith((base, "data:", "blob:")):
            troubles.append(f"a request for {url}")

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def until(page, condition, seconds=240):
    """Waits for a condition; wait_for_function needs eval, which the page forbids."""
    for _ in range(20 * seconds):
        with contextlib.suppress(Error):  # while the page is loaded again
            if page.evaluate(condition):
                return
        page.wait_for_timeout(50)
    pytest.fail(f"not reached: {condition}")


def select_space(page, run):
    """Shows the space of a run."""
    place = page.evaluate(
        "(run) => { const { archives } = explore;"
        " const spaces = [...new Set(archives.map((a) => a.space))];"
        " return spaces.indexOf(archives.find((a) => a.id === run).space); }",
        run,
    )
    page.locator(".spaces").select_option(index=place)
    page.wait_for_timeout(100)


def set_time(page, evaluations):
    page.locator(".track input").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }",
        evaluations,
    )
    page.wait_for_timeout(60)


def box_of(page, run):
    """Returns the canvas of a map."""
    return page.locator(f"figure:has(b:text-is('{run}')) > canvas")


def hover(page, run, cell):
    """Moves the pointer to a cell, and returns its place on the screen."""
    at = page.evaluate("([run, cell]) => explore.mapOf(run).middle(cell)", [run, cell])
    box = box_of(page, run).bounding_box()
    left, top = page.evaluate(
        "(run) => { const m = explore.mapOf(run); return [m.left, m.top]; }", run
    )
    x, y = box["x"] + left + at[0], box["y"] + top + at[1]
    page.mouse.move(x, y)
    page.wait_for_timeout(60)
    return x, y


def value_of(page, run):
    """Returns the text next to the name of a map."""
    return page.locator(f"figure:has(b:text-is('{run}')) figcaption span").inner_text()


def as_number(text):
    return float(text.split(" ")[0].replace(",", "").replace("\u2212", "-"))


def test_the_token_leaves_the_address_and_links_open_an_elite(reader, page_of, study):
    run = load(study / "results/runs/lander2")
    cell = int(run.cells[5])
    page = reader(f"lander2/{cell}")
    assert page.evaluate("location.hash") == f"#lander2/{cell}"
    assert page_of.token not in page.url
    assert page.locator("aside h2").inner_text() == "lander2"
    facts = page.locator("aside dd").all_inner_texts()
    assert as_number(facts[0]) == pytest.approx(run.elite(5).objective, rel=1e-5)
    page.reload()  # the token is in the storage of the tab
    until(page, "document.documentElement.dataset.explore === 'ready'")
    assert page.locator("aside h2").inner_text() == "lander2"


def test_without_the_token_there_are_no_data(chromium, page_of):
    page = chromium.new_page()
    page.goto(f"http://127.0.0.1:{page_of.port}/")
    until(page, "document.documentElement.dataset.explore === 'failed'")
    assert "qdsweep explore" in page.locator(".walk").inner_text()
    assert not page.locator("canvas").count()
    page.goto(page_of.address)  # only the part after # differs
    until(page, "document.documentElement.dataset.explore === 'ready'")
    page.close()


def test_a_run_that_is_gone_or_has_changed_is_stated(chromium, study, tmp_path):
    for name in ("gone", "changed"):
        shutil.copytree(study / "results/runs/sphere", tmp_path / name)
    cell, page = load(tmp_path / "gone").cells[0], chromium.new_page()
    with served("gone", "changed", cwd=tmp_path) as started:
        page.goto(started.address)
        until(page, "document.documentElement.dataset.explore === 'ready'")
        shutil.rmtree(tmp_path / "gone")
        about = json.loads((tmp_path / "changed/summary.json").read_text())
        about["archive_digest"] = "f" * 64
        (tmp_path / "changed/summary.json").write_text(json.dumps(about))
        for name in ("gone", "changed"):
            page.evaluate("(link) => { location.hash = link; }", f"{name}/{cell}")
            until(page, f"document.querySelector('aside h2').textContent === '{name}'")
            until(page, "document.querySelector('.screen .note') !== null")
            assert "run" in page.locator(".screen .note").inner_text()
        page.reload()
        until(page, "document.documentElement.dataset.explore === 'ready'")
        assert page.locator("figure").count() == 1
        assert "gone: " in page.locator(".head").inner_text()
    page.close()


def test_a_chosen_run_may_vanish_and_an_archive_may_change(reader, study, tmp_path):
    for name in ("sphere", "lander1", "sliding"):
        shutil.copytree(study / "results/runs" / name, tmp_path / name)
    RunDir(tmp_path / "lander1").withdraw()  # it is not finished, so the page asks again
    cell = load(tmp_path / "sphere").cells[0]
    with served("sphere", "lander1", "sliding", cwd=tmp_path) as started:
        page = reader(f"sphere/{cell}", served=started)
        page.evaluate("globalThis.isSame = true")
        shutil.rmtree(tmp_path / "sphere")
        # The space of the sphere is gone, so the page loads itself again: only then it is used.
        until(page, "globalThis.isSame === undefined && globalThis.explore?.archives.length === 2")
        until(page, "document.documentElement.dataset.explore === 'ready'")
        select_space(page, "lander1")
        path = tmp_path / "sliding/archive.npz"
        arrays = dict(np.load(path))
        arrays["measures"] = arrays["measures"] / 2
        np.savez(path, **arrays)
        about = json.loads((tmp_path / "sliding/summary.json").read_text())
        about["archive_digest"] = "f" * 64
        (tmp_path / "sliding/summary.json").write_text(json.dumps(about))
        shown = "[...explore.archives.find((a) => a.id === 'sliding').space.points]"
        until(page, f"{shown}[0] === {float(arrays['measures'].astype('<f4')[0, 0])}")
        page.close()


def with_gaps(run):
    """Changes a history: every third elite leaves its cell in the next iteration."""
    with np.load(run / "history.npz") as file:
        iteration, index, objective = (file[name] for name in ("iteration", "index", "objective"))
    lost = (np.arange(len(index)) % 3 == 0) & (iteration < iteration.max())
    iteration = np.append(iteration, iteration[lost] + 1)
    order = np.argsort(iteration, kind="stable")
    columns = {
        "iteration": iteration,
        "index": np.append(index, index[lost]),
        "objective": np.append(objective, np.full(lost.sum(), np.nan)),
    }
    columns = {name: values[order] for name, values in columns.items()}
    np.savez(run / "history.npz", **columns, removals=True)


@pytest.fixture
def gaps(study, tmp_path):
    """A page of one run, whose elites leave their cells."""
    with_gaps(shutil.copytree(study / "results/runs/sphere", tmp_path / "results/runs/gaps"))
    with served("gaps", cwd=tmp_path) as started:
        yield started, tmp_path / "results/runs/gaps"


def test_a_cell_that_became_empty_has_no_elite(reader, gaps):
    started, run = gaps
    history = read_history(load(run).files)
    cells, objective = history.at(int(history.iteration[-1]))
    emptied = next(cell for cell in history.index.tolist() if cell not in cells)
    page = reader(f"gaps/{emptied}", served=started)
    until(page, "document.querySelector('.screen .note') !== null")
    assert "empty" in page.locator(".screen .note").inner_text()
    curves = page.evaluate("explore.archives[0].curves")
    assert curves["Coverage [%]"][-1] == pytest.approx(100 * len(cells) / 144)
    assert curves["QD score"][-1] == pytest.approx(objective.sum(), rel=1e-6)
    page.close()


@pytest.mark.parametrize("run", ["lander1", "arm", "sphere", "gaps", "in a report"])
def test_the_slider_equals_the_history_cell_by_cell(reader, request, run):
    if run == "gaps":
        started, folder = request.getfixturevalue("gaps")
        page, results = reader(served=started), load(folder)
        run = page.evaluate("explore.archives[0].id")
    elif run == "in a report":
        sweep = request.getfixturevalue("reported")
        page = reader(report=sweep / "report.html")
        run = page.evaluate("explore.archives[1].id")
        results = load(run, sweep.parents[1])
    else:
        page = reader()
        select_space(page, run)
        results = load(request.getfixturevalue("study") / "results/runs" / run)
    history, evaluations = read_history(results.files), results.metrics["evaluations"].tolist()
    rng = np.random.default_rng(3)
    for iteration in [*rng.permutation(len(evaluations))[:6] + 1, len(evaluations), 1]:
        set_time(page, int(evaluations[iteration - 1]))
        shown = page.evaluate(
            "(run) => { const a = explore.archives.find((b) => b.id === run);"
            " return [...a.holder.keys()].map((cell) => a.value(cell)); }",
            run,
        )
        cells, objective = history.at(int(iteration))
        expected = {
            c: float(v) for c, v in zip(cells.tolist(), objective.astype("<f4"), strict=True)
        }
        assert {c: v for c, v in enumerate(shown) if v is not None} == expected
    set_time(page, 0)
    assert page.evaluate(
        "(run) => explore.archives.find((a) => a.id === run).holder.every((i) => i < 0)", run
    )


@pytest.mark.parametrize("run", ["lander1", "arm", "sphere", "line", "cube", "four", "sliding"])
def test_the_color_under_the_pointer_is_that_of_the_value(reader, study, run):
    page = reader()
    select_space(page, run)
    results = load(study / "results/runs" / run)
    rows = np.random.default_rng(1).permutation(len(results.cells))[:6]
    seen = 0
    for row in rows.tolist():
        cell = int(results.cells[row])
        if not page.evaluate("([run, cell]) => !!explore.mapOf(run).middle(cell)", [run, cell]):
            continue  # another disc covers it
        hover(page, run, cell)
        if page.evaluate("explore.state.hover") != cell:
            continue
        assert as_number(value_of(page, run)) == pytest.approx(
            float(results.arrays["objective"][row]), rel=6e-3, abs=0.06
        )
        color, low, high = page.evaluate(
            """([run, cell]) => {
              const map = explore.mapOf(run), { layout } = map.archive.space;
              const at = map.middle(cell), x = Math.floor(at[0] / map.inside * layout.width);
              const y = Math.floor(at[1] / map.high * layout.height);
              const row = layout.bars ? layout.height - 1 : y;
              const pixel = map.picture.getContext("2d").getImageData(x, row, 1, 1).data;
              return [[...pixel].slice(0, 3), map.archive.space.low, map.archive.space.high];
            }""",
            [run, cell],
        )
        share = (results.arrays["objective"][row] - low) / (high - low)
        expected = 255 * np.array(colormaps["viridis"](round(255 * min(max(share, 0), 1)))[:3])
        np.testing.assert_allclose(color, expected, atol=4)
        seen += 1
    assert seen >= 3


@pytest.mark.parametrize("run", [*RUNS, *KINDS])
def test_every_archive_kind_can_be_walked_on_by_keys(reader, run):
    page = reader()
    select_space(page, run)
    canvas = box_of(page, run)
    box = canvas.bounding_box()
    assert box["width"] > 200 and box["height"] > 80
    canvas.focus()
    cells = set()
    for key in ("Left", "Down", "Right", "Right", "Left", "Left", "Down"):
        canvas.press(f"Arrow{key}")
        page.wait_for_timeout(40)
        cells.add(page.evaluate("explore.state.hover"))
    assert len(cells) > 2
    assert page.locator(".where").inner_text().count(" ") > 2
    canvas.press("Enter")
    until(page, "explore.state.cell === explore.state.hover")
    assert page.evaluate("location.hash") == f"#{run}/{page.evaluate('explore.state.cell')}"
    colors = page.evaluate(
        """(run) => {
          const canvas = explore.mapOf(run).canvas, { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          return new Set(new Uint32Array(data.buffer)).size;
        }""",
        run,
    )
    assert colors > 20, "it is drawn"


def test_a_click_plays_the_elite_of_the_cell(reader, study):
    page = reader()
    select_space(page, "lander1")
    run = load(study / "results/runs/lander1")
    row = int(np.argsort(run.arrays["objective"])[len(run.cells) // 2])
    page.mouse.click(*hover(page, "lander1", int(run.cells[row])))
    canvas = page.locator(".screen canvas")
    canvas.wait_for()
    pixels = "(canvas) => [...canvas.getContext('2d').getImageData(0, 0, 360, 240).data].join()"
    first = canvas.evaluate(pixels)
    until(page, "document.querySelectorAll('aside dt').length >= 6")
    facts = dict(
        zip(
            page.locator("aside dt").all_inner_texts(),
            page.locator("aside dd").all_inner_texts(),
            strict=True,
        )
    )
    assert as_number(facts["objective"]) == pytest.approx(run.elite(row).objective, rel=1e-5)
    assert facts["played again"] == "the same score"
    bar = page.locator(".controls input")
    bar.evaluate("(bar) => { bar.value = bar.max; bar.dispatchEvent(new Event('input')); }")
    last = canvas.evaluate(pixels)
    assert first != last
    bar.evaluate("(bar) => { bar.value = 0; bar.dispatchEvent(new Event('input')); }")
    assert canvas.evaluate(pixels) not in (last, "")
    until(page, "document.querySelector('aside h3').textContent.includes('10')")
    code = page.locator(".python code").inner_text()
    page.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == code
    path, point = re.fullmatch(r'qdsweep\.load\("(.+)"\)\.at\(\[(.+)\]\)', code).groups()
    elite = load(study / path).at([float(number) for number in point.split(",")])
    assert elite.row == row
    with page.expect_download() as downloading:
        page.locator(".save").click()
    content = json.loads(downloading.value.path().read_text())
    assert content["solution"] == elite.solution.tolist()


def test_a_report_plays_the_elites_of_the_rollouts_without_a_server(reader, reported):
    page = reader(report=reported / "report.html")
    page.locator(".walk").scroll_into_view_if_needed()
    films = page.locator("[id^='explore/film']").all()
    entries = json.loads((reported / "plots/rollouts/rollouts.json").read_text())["rollouts"]
    assert len(films) == len(entries) == 2
    for entry in entries:
        run = load(entry["run"], reported.parents[1])
        label = page.evaluate(
            "(id) => explore.archives.find((a) => a.id === id).label", entry["run"]
        )
        box_of(page, label).scroll_into_view_if_needed()
        chosen = (
            "([id, cell]) => { const { place } = explore.archives.find((a) => a.id === id);"
            " return explore.state.run === place && explore.state.cell === cell; }"
        )
        asked = [entry["run"], entry["cell"]]
        while not page.evaluate(chosen, asked):  # another click would pause it
            at = page.evaluate(
                "([id, cell]) => { const m = explore.mapOf(id), [x, y] = m.middle(cell);"
                " return [x + m.left, y + m.top]; }",
                asked,
            )
            # On a busy machine the map may still move, so the click may meet another cell.
            box_of(page, label).click(position={"x": at[0], "y": at[1]})
            page.wait_for_timeout(200)
        until(page, "explore.panel.film.isWhole && explore.panel.film.frames.length > 3")
        facts = page.locator("aside dl").inner_text()
        assert "the same score" in facts
        objective = run.elite_in(entry["cell"]).objective
        assert as_number(page.locator("aside dd").first.inner_text()) == pytest.approx(
            objective, rel=1e-5
        )
    others = set(run.cells.tolist()) - {entry["cell"] for entry in entries}
    page.evaluate(
        "(link) => { location.hash = link; }", f"{entries[-1]['run']}/{sorted(others)[0]}"
    )
    until(page, "document.querySelector('.screen .note') !== null")
    assert "qdsweep explore tiny" in page.locator("aside .screen").inner_text()
    assert page.locator(".save").count() == 0 and str(reported) not in page.content()


def test_a_long_history_in_a_report_is_thinned_and_the_report_states_it(
    reader, tmp_path, monkeypatch
):
    monkeypatch.setattr(embedding, "ARCHIVES", 1500)
    sweep = report_sweep(compute_sweep(tmp_path / "results", TINY | {"iterations": 300}, ""))
    page = reader(report=sweep / "report.html")
    assert "300" not in page.locator(".head").inner_text()
    frames = page.evaluate("explore.archives[0].evaluations.length")
    assert 32 <= frames < 300 and f"{frames} times" in page.locator(".head").inner_text()


def test_a_report_lists_a_damaged_run_without_its_path(reported, tmp_path):
    folder = shutil.copytree(reported.parents[1], tmp_path / "results")
    damaged, _ = sorted((folder / "runs").iterdir())
    (damaged / "archive.npz").write_bytes(b"")
    page = embedding.embedded(SweepData.read(folder / "sweeps/tiny", folder / "runs")).html
    about = base64.b64decode(re.search(r'id="explore/index">([^<]*)<', page)[1]).decode()
    assert str(tmp_path) not in about
    (run,) = json.loads(about)["runs"]
    names_all(json.loads(about)["notes"][0], "seed 1")
    assert run["label"].endswith("seed 2")


def test_a_run_is_followed_through_a_kill_to_its_end(reader, tmp_path):
    out = tmp_path / "results/runs/grows"
    changes = {**LANDER, "iterations": 60, "reload": {"min_seconds": 0.2}}
    (tmp_path / "experiment.yaml").write_text(json.dumps(changes))
    compute = [BIN / "qdsweep", "run", "experiment.yaml", "--workers", "1", "--out", out]
    seen = []

    def frames(page):
        seen.append(page.evaluate("explore.archives[0].evaluations.length"))
        return seen[-1]

    with subprocess.Popen(compute, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: next(out.glob("state/reload-*.pkl"), None))
        with served(out, cwd=tmp_path) as started:
            page = reader(served=started)
            page.evaluate("globalThis.isSame = true")
            until(page, "explore.archives[0].evaluations.length > 3")
            page.locator(".track input").focus()
            until(page, f"explore.archives[0].evaluations.length > {frames(page)}")
            assert page.evaluate("explore.state.time === explore.archives[0].evaluations.at(-1)")
            set_time(page, 40)
            before = frames(page)
            process.kill()
            process.wait()
            assert "(not finished)" in page.evaluate(
                "getComputedStyle(document.querySelector('figcaption b'), '::after').content"
            )
            assert page.locator(".python").count() == 0
            subprocess.run(compute, cwd=tmp_path, check=True, stderr=subprocess.DEVNULL)
            until(page, "!explore.archives[0].live")
            assert frames(page) == 60 > before
            assert page.evaluate("explore.state.time") == 40, "a reader's time stays"
            assert page.evaluate("globalThis.isSame"), "the page was not loaded again"
            run = load(out)
            set_time(page, int(run.metrics["evaluations"].iloc[-1]))
            shown = page.evaluate(
                "[...explore.archives[0].holder.keys()].map((c) => explore.archives[0].value(c))"
            )
            held = {cell: value for cell, value in enumerate(shown) if value is not None}
            values = run.arrays["objective"].astype("<f4").tolist()
            assert held == dict(zip(run.cells.tolist(), values, strict=True))
            page.mouse.click(*hover(page, "grows", int(run.cells[0])))
            page.locator(".python").wait_for()
            page.close()


def test_runs_of_a_sweep_appear_when_they_start(reader, reported, tmp_path):
    folder = shutil.copytree(reported.parents[1], tmp_path / "results")
    first, second = sorted((folder / "runs").iterdir())
    for run in (first, second):
        run.rename(tmp_path / run.name)
    with served("tiny", cwd=tmp_path) as started:
        page = reader(served=started, ready=False)
        until(page, "document.querySelector('.walk .note') !== null")
        assert "0 of 2 runs" in page.locator(".walk").inner_text()
        (tmp_path / first.name).rename(first)
        until(page, "document.documentElement.dataset.explore === 'ready'")
        assert page.locator("figure").count() == 1
        assert "1 of 2 runs" in page.locator(".head").inner_text()
        (tmp_path / second.name).rename(second)
        until(page, "document.querySelectorAll('figure').length === 2")
        until(page, "!document.querySelector('.head').innerText.includes('of 2 runs')")
        page.close()


def test_a_report_shows_fewer_runs_of_large_archives(reported, monkeypatch):
    data = SweepData.read(reported, reported.parents[1] / "runs")
    number = len(re.findall(r'id="explore/run/', embedding.embedded(data).html))
    monkeypatch.setattr(embedding, "MAX_MAPS", 1)
    monkeypatch.setattr(embedding, "FILMS", 0)
    fewer = embedding.embedded(data)
    assert number == 2 and not fewer.played
    assert len(re.findall(r'id="explore/run/', fewer.html)) == 1
    monkeypatch.setattr(embedding, "CELLS", 0)
    assert len(re.findall(r'id="explore/run/', embedding.embedded(data).html)) == 2


def test_groups_of_several_sweeps_are_tested_below_the_maps(reader, reported):
    results = reported.parents[1]
    words = "::: algorithm map_elites cma_mae ::: seed 2 3 4 5 6"
    compute_sweep(results, LANDER, words, name="other")
    with served("tiny", "other", cwd=results.parent) as started:
        page = reader(served=started)
        labels = page.locator("figcaption b").all_inner_texts()
        assert labels == [
            *(f"MAP-Elites, seed {seed}" for seed in (1, 2, 3, 4, 5, 6)),
            *(f"CMA-MAE, seed {seed}" for seed in (2, 3, 4, 5, 6)),
        ]
        page.locator(".tests table").wait_for()
        head = page.locator(".tests tr").first.inner_text()
        assert "Difference" in head and "Holm" in head
        assert "1 run" in page.locator(".tests").inner_text()
        page.close()


def test_the_arm_lies_on_its_map(reader, study):
    page = reader()
    select_space(page, "arm")
    run = load(study / "results/runs/arm")
    cell = next(
        c for c in run.cells.tolist() if page.evaluate("(c) => !!explore.mapOf('arm').middle(c)", c)
    )
    page.mouse.click(*hover(page, "arm", cell))
    page.locator(".screen canvas").wait_for()
    until(page, "explore.panel.lines !== null")
    (line,) = page.evaluate("explore.panel.lines")
    np.testing.assert_allclose(line[-1], run.arrays["measures"][run.cells.tolist().index(cell)])


def test_keys_play_the_film_and_move_the_time(reader):
    page = reader("lander1/" + "0")
    select_space(page, "lander1")
    until(page, "explore.panel.film?.isWhole")
    page.keyboard.press(",")
    page.wait_for_timeout(60)
    evaluations = page.evaluate("explore.archives[0].evaluations.length")
    assert page.evaluate("explore.archives[0].frame") == evaluations - 1
    page.keyboard.press(".")
    page.wait_for_timeout(60)
    assert page.evaluate("explore.archives[0].frame") == evaluations
    page.locator("h1").click()
    before = page.evaluate("explore.panel.film.playing")
    page.keyboard.press(" ")
    assert page.evaluate("explore.panel.film.playing") != before


def test_objectives_that_differ_by_rounding_only(reader, study, tmp_path):
    run = shutil.copytree(study / "results/runs/sphere", tmp_path / "sphere")
    arrays = dict(np.load(run / "archive.npz"))
    arrays["objective"][:] = 1.0
    arrays["objective"][0] = np.nextafter(1.0, 0.0)
    np.savez(run / "archive.npz", **arrays)
    with served("sphere", cwd=tmp_path) as started:
        page = reader(served=started)
        low, high = page.evaluate("(({ low, high }) => [low, high])(explore.archives[0].space)")
        assert 0 < high - low < 1e-15
        page.close()


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_nothing_is_wider_than_the_window(reader, width, height):
    page = reader(width=width, height=height)
    for run in ("lander1", "four", "arm", "cvt3"):
        select_space(page, run)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.evaluate(
        "[...document.querySelectorAll('.walk p, .walk span, .walk b, .walk dd')]"
        ".map((element) => parseFloat(getComputedStyle(element).fontSize))"
    )
    assert min(sizes) >= 11


def test_a_tap_on_a_phone_shows_the_panel(reader, study):
    page = reader(width=390, height=844, has_touch=True, is_mobile=True)
    select_space(page, "lander1")
    run = load(study / "results/runs/lander1")
    box = box_of(page, "lander1").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    until(page, "document.querySelector('aside').getBoundingClientRect().top < innerHeight / 2")
    assert len(run.cells)


def brightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3])) / 3


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_both_themes_are_legible(reader, scheme, dark):
    page = reader(color_scheme=scheme)
    letters, paper = page.evaluate(
        "[getComputedStyle(document.querySelector('.where')).color,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    select_space(page, "four")
    key = page.evaluate(
        "[...explore.mapOf('four').key.getContext('2d').getImageData(0, 0, 18, 10).data]"
    )
    red, _, _, opaque = np.reshape(key, (-1, 4)).T
    assert page.evaluate("explore.mapOf('four').archive.color") == "#000000"
    assert (red[opaque > 200].mean() > 128) == dark, "a black line is light on a dark page"
    assert (brightness(letters) > 200 > 60 > brightness(paper)) == dark
    assert (brightness(letters) < 60 < 200 < brightness(paper)) != dark
