"""The page of a sweep in a real headless browser, as a reader uses it."""

import itertools
import json
import os
import platform
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from in_process import compute_sweep, report_sweep
from refusals import names_all
from support import TINY

from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.page.report import report
from qdsweep.analysis.statistics import half_width
from qdsweep.analysis.tables.aggregate import aggregate

EXPERIMENT = {**TINY, "algorithm": "cma_me", "archive": {"dims": [20, 20]}, "iterations": 25}
SWEEP = "::: sigma0 0.1 1 ::: batch_size 8 16 ::: seed 1 2 3"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A real sweep with its page."""
    results = tmp_path_factory.mktemp("sweep") / "results"
    report_sweep(compute_sweep(results, EXPERIMENT, SWEEP, name="small"))
    return results


NASTY = ["<b>bold</b> &lt; %{x}", "50 %{y} <br> up", "a & b <i", "$x_1$ *"]
READ = [*NASTY[:3], "x₁ *"]  # a formula in plain letters, as the page does not typeset it


@pytest.fixture(scope="module")
def nasty(made):
    """The same runs under names that plotly would interpret."""
    source, sweep = made / "sweeps/small", made / "sweeps/nasty"
    shutil.copytree(source, sweep)
    plan = json.loads((source / "plan.json").read_text())
    first, second = {}, {}
    for row in plan["rows"]:
        values = row["values"]
        values["algorithm"] = first.setdefault(values.pop("sigma0"), NASTY[len(first) % 2])
        values["step"] = second.setdefault(values.pop("batch_size"), NASTY[2 + len(second) % 2])
    plan |= {"name": "nasty", "columns": ["seed", "algorithm", "step"]}
    (sweep / "plan.json").write_text(json.dumps(plan))
    aggregate(sweep, made / "runs")
    report(sweep, made / "runs")
    return sweep / "report.html"


@pytest.fixture(scope="module")
def large(made):
    """200 runs: real runs under other names, seeds and settings, and a missing one."""
    source = [
        row["id"] for row in json.loads((made / "sweeps/small/plan.json").read_text())["rows"]
    ]
    sweep = made / "sweeps" / "large"
    pictures = sweep / "plots" / "archives"
    pictures.mkdir(parents=True)
    rows = []
    for n in range(201):
        values = {"sigma0": (0.01, 0.03, 0.1, 0.3, 1.0)[n % 5], "batch_size": 2 ** (n // 5 % 4)}
        values["seed"] = n // 20
        run = f"lp_sphere-cma_me-s{values['seed']}-{n:010x}"
        rows.append({"values": values, "id": run, "iterations": 25, "evaluations": None})
        if n < 200:
            copy_run(made / "runs" / source[n % len(source)], made / "runs" / run, values)
            picture = made / "sweeps/small/plots/archives" / f"{source[n % len(source)]}.png"
            shutil.copyfile(picture, pictures / f"{run}.png")
    plan = {"name": "large", "experiment": "lp_sphere", "sweep": "::: ...", "rows": rows}
    (sweep / "plan.json").write_text(json.dumps(plan | {"columns": list(rows[0]["values"])}))
    aggregate(sweep, made / "runs")
    plot(sweep, made / "runs")
    animations = shutil.copytree(made / "sweeps/small/plots/evolution", sweep / "plots/evolution")
    for animation, row in zip(sorted(animations.glob("*.gif")), rows, strict=False):
        animation.rename(animations / f"{row['id']}.gif")
    report(sweep, made / "runs")
    return sweep / "report.html"


def copy_run(source, target, values):
    target.mkdir()
    config = yaml.safe_load((source / "config.yaml").read_text())
    config["seed"], config["batch_size"] = values["seed"], values["batch_size"]
    config["algorithm"]["emitters"][0]["sigma0"] = values["sigma0"]
    (target / "config.yaml").write_text(yaml.safe_dump(config))
    summary = json.loads((source / "summary.json").read_text())
    (target / "summary.json").write_text(json.dumps(summary | {"id": target.name}))
    for name in ("archive.npz", "history.npz"):
        os.link(source / name, target / name)
    metrics = pd.read_csv(source / "metrics.csv")
    factor = 1 + 0.05 * np.log(values["sigma0"]) + 0.02 * values["batch_size"] / 8
    for name in ("qd_score", "norm_qd_score"):  # otherwise there would only be three groups
        metrics[name] *= factor
    metrics.to_csv(target / "metrics.csv", index=False)


@pytest.fixture
def reader(chromium):
    """Opens a page, and checks at the end that it had no error and requested only the file."""
    troubles = []

    def open_page(path, width=1280, height=900):
        context = chromium.new_context(viewport={"width": width, "height": height})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.on("console", lambda entry: entry.type == "error" and troubles.append(entry.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", check_request)
        page.route("**/*", lambda route: route.continue_() if own(route) else route.abort())
        page.goto(path.as_uri())
        page.wait_for_function("document.documentElement.dataset.interactive === 'ready'")
        return page

    def own(sent):
        return getattr(sent, "request", sent).url.startswith(("file:", "data:", "blob:"))

    def check_request(request):
        if not own(request):
            troubles.append(f"a request for {request.url}")

    yield open_page
    assert troubles == []


def as_numbers(texts):
    return [float(text.replace(",", "").replace("\u2212", "-").split(" ")[0]) for text in texts]


# Tables


@pytest.mark.parametrize(
    ("name", "key"), [("Best objective", None), ("seed", "Enter")], ids=["click", "keyboard"]
)
def test_columns_sort_as_numbers_and_missing_values_stay_last(reader, large, name, key):
    """Sorted as numbers, not as 0, 1, 10, 2."""
    page = reader(large)
    head = page.locator("table[aria-label=runs] th", has_text=name).first
    column = head.evaluate("(head) => head.cellIndex")
    orders = {}
    for _ in range(2):
        button = head.get_by_role("button")
        button.press(key) if key else button.click()
        row = f"table[aria-label=runs] tbody tr td:nth-child({column + 1})"
        texts = page.locator(row).all_inner_texts()
        missing = texts.index("\u2013") if "\u2013" in texts else len(texts)
        assert len(texts) == 201 and missing in (200, 201)
        orders[head.get_attribute("aria-sort")] = as_numbers(texts[:missing])
    assert orders["ascending"] == sorted(orders["ascending"])
    assert orders["descending"] == orders["ascending"][::-1] != orders["ascending"]


def test_tables_have_the_values_of_the_files(reader, made):
    page = reader(made / "sweeps/small/report.html")
    table = pd.read_csv(made / "sweeps/small/table.csv")
    main = page.locator("#results table").first
    assert main.locator("tbody tr").count() == len(table) == 4
    assert main.locator("td.best").count() >= 1
    with page.expect_download() as caught:
        page.get_by_role("link", name="table.csv").first.click()
    assert caught.value.path().read_bytes() == (made / "sweeps/small/table.csv").read_bytes()


# Interactive figures


def hover(page, plot, trace, along=0.5):
    """Moves the mouse to a point of a line, and returns the text that appears."""
    box = page.evaluate(
        """([id, name, along]) => {
          const plot = document.getElementById(id);
          plot.scrollIntoView({block: "center"});
          const trace = plot._fullData.find((one) => one.hovertemplate?.includes(name)
            || one.name === name);
          const layout = plot._fullLayout, at = plot.getBoundingClientRect();
          const i = Math.floor(trace.x.length * along);
          return [at.x + layout._size.l + layout.xaxis.d2p(trace.x[i]),
                  at.y + layout._size.t + layout.yaxis.d2p(trace.y[i])];
        }""",
        [plot, trace, along],
    )
    page.mouse.move(box[0] - 40, box[1] - 3)
    page.mouse.move(*box, steps=4)
    page.wait_for_selector(f"#{plot} .hoverlayer .hovertext")
    return "\n".join(page.locator(f"#{plot} .hoverlayer .hovertext .line").all_text_contents())


def test_the_hover_over_a_learning_curve_shows_its_values(reader, made):
    page = reader(made / "sweeps/small/report.html")
    group = "sigma0 0.1, batch_size 16"
    words = hover(page, "curves-1", group)
    curves = pd.read_csv(made / "sweeps/small/curves.csv").query("group == @group")
    evaluations = int(re.search(r"([\d,]+) evaluations", words)[1].replace(",", ""))
    row = curves[curves["evaluations"] == evaluations].iloc[0]
    ends = re.search(r"QD score / cells ([\d.,]+) \[([\d.,]+), ([\d.,]+)\]", words).groups()
    assert group in words and "(n = 3)" in words
    last = 0.5 * 10 ** -len(ends[0].partition(".")[2])  # half of the last displayed digit
    mean, half = row["norm_qd_score_mean"], half_width(row["norm_qd_score_se"], 3)
    for text, value in zip(ends, (mean, mean - half, mean + half), strict=True):
        assert float(text.replace(",", "")) == pytest.approx(value, abs=1.01 * last)


def test_names_are_shown_as_they_are(reader, nasty):
    page = reader(nasty)
    names = page.locator("#curves-1 .legendtext").all_text_contents()
    every = [f"{first}, step {second}" for first in READ[:2] for second in READ[2:]]
    assert sorted(names) == sorted(every)
    for trace, name in enumerate(names):
        assert name in hover(page, "curves-1", escaped(page, "curves-1", trace))
    ticks = page.locator("#coordinates-1 .annotation-text").all_text_contents()
    assert {f"{name[:20]}…" if len(name) > 22 else name for name in READ} <= set(ticks)
    words = hover(page, "coordinates-1", escaped(page, "coordinates-1", 0), along=0.3)
    assert any(words.startswith(name) for name in every)


def escaped(page, plot, number):
    """The name of a line in plotly's data."""
    return page.evaluate(
        "([id, n]) => document.getElementById(id)._fullData.filter((t) => t.hovertemplate)[n].name",
        [plot, number],
    )


def test_another_metric_can_be_chosen(reader, made):
    page = reader(made / "sweeps/small/report.html")
    page.get_by_label("Show").first.select_option(index=1)
    page.wait_for_function(
        "document.getElementById('curves-1').layout.yaxis.title.text === 'Coverage (%)'"
    )
    assert "Coverage (%)" in hover(page, "curves-1", "sigma0 1, batch_size 8")


def test_parallel_coordinates_show_values_and_keep_what_a_box_holds(reader, made):
    page = reader(made / "sweeps/small/report.html")
    words = hover(page, "coordinates-1", "sigma0 0.1, batch_size 16", along=0.3)
    assert "sigma0 0.1" in words and "batch_size 16" in words
    assert re.search(r"QD score / cells [\d.,]+ ± [\d.,]+ \(n = 3\)", words)
    # A box over the top of the second axis selects the lines of batch_size 16.
    corner = page.evaluate(
        """() => {
          const plot = document.getElementById("coordinates-1");
          const layout = plot._fullLayout, at = plot.getBoundingClientRect();
          return [at.x + layout._size.l + layout.xaxis.d2p(1),
                  at.y + layout._size.t + layout.yaxis.d2p(1)];
        }"""
    )
    page.mouse.move(corner[0] - 15, corner[1] - 15)
    page.mouse.down()
    page.mouse.move(corner[0] + 15, corner[1] + 15, steps=5)
    page.mouse.up()
    page.wait_for_function(
        "document.getElementById('coordinates-1')._fullData[0].opacity < 1 ||"
        "document.getElementById('coordinates-1')._fullData[1].opacity < 1"
    )
    shown = page.evaluate(
        "document.getElementById('coordinates-1')._fullData.map((t) => [t.name, t.opacity])"
    )
    assert {name for name, opacity in shown if opacity == 1} == {
        f"sigma0 {sigma}, batch_size 16" for sigma in ("0.1", "1")
    }


def test_no_button_sends_a_figure_away(reader, made):
    page = reader(made / "sweeps/small/report.html")
    titles = page.locator(".modebar-btn").evaluate_all("(all) => all.map((b) => b.dataset.title)")
    assert len(titles) == 6 + 2  # plotly's default set has a button that uploads
    assert not [title for title in titles if "Cloud" in title or "Studio" in title]


# Layout

BLOCKS = """() => {
  const chosen = "header > *, section > h2, section > h3, section > p, section .wide, section pre,"
    + " section details, section button.copy, figure, .paper, .plot";
  const boxes = [...document.querySelectorAll(chosen)]
    .filter((one) => one.checkVisibility({contentVisibilityAuto: true}))
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && box.height > 0);
  const found = [];
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    if (a.contains(b) || b.contains(a)) return;
    const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (across > 1 && down > 1) found.push([a.outerHTML.slice(0, 80), b.outerHTML.slice(0, 80)]);
  }));
  return [boxes.length, found];
}"""


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_overlaps_and_the_page_is_as_wide_as_the_window(reader, made, width):
    page = reader(made / "sweeps/small/report.html", width)
    count, overlaps = page.evaluate(BLOCKS)
    assert count > 30 and overlaps == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.scrollHeight") > 3000
    sizes = page.evaluate(
        "[...document.querySelectorAll('main p, main td, figcaption, pre, .plot text')]"
        ".map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert min(sizes) >= 11


def test_the_main_table_fits_a_window_of_1300_pixels(reader, made):
    page = reader(made / "sweeps/small/report.html", 1300)
    wide = page.locator("#results .wide").first
    assert wide.evaluate("(block) => block.scrollWidth - block.clientWidth") <= 1


def test_every_picture_is_there_and_has_words(reader, made):
    page = reader(made / "sweeps/small/report.html")
    pictures = page.evaluate(
        """() => Promise.all([...document.images].map(async (image) => {
          image.loading = "eager";
          await image.decode();
          return [image.alt, image.naturalWidth];
        }))"""
    )
    assert len(pictures) >= 4 + 12
    assert all(len(alt) > 5 and width > 0 for alt, width in pictures)
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


# Methods


def test_methods_can_be_copied_and_name_no_machine(reader, made):
    page = reader(made / "sweeps/small/report.html")
    text = page.locator("#methods-text").inner_text()
    assert "CMA-ME (Fontaine et al., 2020; " in text and "seeds 1\u20133" in text
    page.locator("button[data-copy=methods-text]").click()
    page.wait_for_selector("button:text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == text
    newest = max(
        attempt["ended"]
        for path in (made / "runs").glob("*/summary.json")
        for attempt in json.loads(path.read_text()).get("attempts", [])
    )
    names_all(page.locator(".origin").inner_text(), newest[:10], platform.node())
    assert str(made) not in page.content()
    assert not re.search(rf"\b{re.escape(platform.node())}\b", text)


# Weight


def load_time(browser, path):
    """The least of three times, because the machine may be busy with other tests."""
    times = []
    for _ in range(3):
        page = browser.new_page()
        page.goto(path.as_uri(), wait_until="load")
        times.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
        page.close()
    return min(times)


def test_a_page_of_200_runs_is_light_and_opens_at_once(chromium, reader, made, large):
    assert large.stat().st_size < 15_000_000
    assert reader(large).locator("#runs .grid img").count() == 200
    few = load_time(chromium, made / "sweeps/small/report.html")
    many = load_time(chromium, large)
    assert many < 5 * few, "the size of a page with 12 runs"


# Dark screens, paper and phones


def colors(page, chosen):
    return page.evaluate(
        "(chosen) => { const look = getComputedStyle(document.querySelector(chosen));"
        " return [look.color, look.backgroundColor]; }",
        chosen,
    )


def brightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3])) / 3


def test_a_dark_screen_has_light_letters_and_curves_and_white_pictures(reader, made):
    page = reader(made / "sweeps/small/report.html")
    light = colors(page, "body")
    grid = "document.getElementById('curves-1')._fullLayout.xaxis.gridcolor"
    before = page.evaluate(grid)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{grid} !== '{before}'")
    letters, paper = colors(page, "body")
    assert brightness(letters) > 200 > 60 > brightness(paper)
    assert brightness(light[0]) < 60 < 200 < brightness(light[1])
    assert brightness(colors(page, "figure img")[1]) == 255
    page.emulate_media(color_scheme="dark", media="print")
    assert brightness(colors(page, "body")[1]) == 255


def test_on_paper_nothing_is_cut(reader, made):
    page = reader(made / "sweeps/small/report.html", 718)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function("document.getElementById('curves-1')._fullLayout.width === 680")
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
    cut = page.evaluate(
        "[...document.querySelectorAll('.wide')].filter((b) => b.scrollWidth > b.clientWidth + 1)"
        ".map((b) => b.outerHTML.slice(0, 80))"
    )
    assert cut == []
    assert not page.locator("nav").is_visible()


def test_on_a_phone_the_first_column_stays_and_a_wide_block_is_marked(reader, made):
    page = reader(made / "sweeps/small/report.html", 390)
    wide = page.locator("#runs .wide").first
    first = wide.locator("tbody tr td").first
    assert wide.get_attribute("data-more") is not None
    place = first.bounding_box()["x"]
    wide.evaluate("(block) => { block.scrollLeft = block.scrollWidth; }")
    page.wait_for_function("!document.querySelector('#runs .wide').hasAttribute('data-more')")
    assert first.bounding_box()["x"] == pytest.approx(place, abs=1)
    assert wide.locator("tbody tr td").nth(1).bounding_box()["x"] < place
