"""Makes the pictures of `qdsweep explore` in docs/screenshots/: python docs/screenshots.py.

The runs are computed in build/screenshots/, once: about 10 minutes on two cores. The pictures are
taken in a headless Chromium.
"""

import io
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from qdsweep.runs.load import load

CLONE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CLONE / "tests/helpers"))
from exploring import Served, served  # noqa: E402
from support import BIN  # noqa: E402

HERE = Path(__file__).with_name("screenshots")
FOLDER = CLONE / "build/screenshots"
RUNS = FOLDER / "results/runs"
# Run -> its experiment, and further words of the command.
EXPERIMENTS = {
    "arm-map-elites": ("arm.yaml", "--set", "algorithm=cvt_map_elites"),
    "arm-cma-me": ("arm.yaml",),
    "hexapod": ("hexapod.yaml",),
}
MOMENT = 96  # of the lander's episode, which has 234 steps
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}
IS_WHOLE = """() => new Promise((resolve) => {
  const look = () => (explore.panel.film?.isWhole ? resolve() : setTimeout(look, 50));
  look();
})"""
STOP = """(bar, step) => { bar.value = step; bar.dispatchEvent(new Event("input")); }"""


def compute() -> None:
    """Computes the runs, if they are not finished."""
    plugins = FOLDER / "config/plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "hexapod.py", plugins)
    qdsweep("sweep", HERE / "lander.yaml")
    for run, (file, *words) in EXPERIMENTS.items():
        qdsweep("run", HERE / file, *words, "--out", RUNS / run)


def qdsweep(*words: object) -> None:
    """Types a command in the folder of the runs."""
    subprocess.run([str(BIN / "qdsweep"), *map(str, words)], cwd=FOLDER, check=True)


def open_at(browser: Browser, page_of: Served, run: str, point: list[float], **look) -> Page:
    """Opens the page at an elite, and waits until its film and all its scores are there.

    Args:
        browser: The browser.
        page_of: The page.
        run: The id of the run.
        point: The measures of a point in the elite's cell.
        look: Options of a browser context, such as the size of the window [px].
    """
    results = load(RUNS / run)
    cell = results.cells[results.at(point).row]
    page = browser.new_context(**look).new_page()
    page.goto(f"{page_of.address}&{run}/{cell}")
    page.wait_for_selector("[data-explore=ready]", state="attached")
    page.evaluate(IS_WHOLE)
    return page


def take(page: Page) -> Image.Image:
    """Returns a picture of the window."""
    page.wait_for_timeout(500)  # the next frames are drawn
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(picture: Image.Image, name: str) -> None:
    """Writes a picture without loss, with 32 levels of each colour: half the size."""
    picture.point([min(round(level / 8) * 8, 255) for level in range(256)] * 3).save(
        HERE / f"{name}.webp", lossless=True, quality=100, method=6
    )


def desktop(width: int, height: int, scheme: str = "light") -> dict[str, object]:
    """Returns the options of a window [px]."""
    size = {"width": width, "height": height}
    return {"viewport": size, "color_scheme": scheme, "device_scale_factor": 1.5}


def lander(browser: Browser) -> None:
    """Takes six maps of the lunar lander with a film, on a desktop and on a phone."""
    run = next(path.name for path in RUNS.glob("lunar_lander-cma_mae-s2-*"))
    with served("lander", cwd=FOLDER) as page_of:
        elite = (browser, page_of, run, [0.05, -0.3])
        page = open_at(*elite, **desktop(1300, 965, "dark"))
        page.locator(".controls input").evaluate(STOP, MOMENT)
        save(take(page), "lander")
        halves = []
        for scheme in ("light", "dark"):
            page = open_at(*elite, color_scheme=scheme, **PHONE)
            page.locator(".controls input").evaluate(STOP, MOMENT)
            for chip in page.locator(".chips label").all()[:-1]:
                chip.click()
            if scheme == "dark":
                page.locator("aside").evaluate("(side) => side.scrollIntoView()")
            halves.append(take(page))
    width, height = halves[0].size
    both = Image.new("RGB", (2 * width, height), "white")
    both.paste(halves[0], (0, 0))
    both.paste(halves[1], (width, 0))
    save(both, "phone")


def arm(browser: Browser) -> None:
    """Takes Voronoi cells with the joints of an arm."""
    with served("arm-map-elites", "arm-cma-me", cwd=FOLDER) as page_of:
        page = open_at(browser, page_of, "arm-cma-me", [-3.5, 5.0], **desktop(1340, 850))
        save(take(page), "arm")


def hexapod(browser: Browser) -> None:
    """Takes maps in maps of six measures."""
    with served("hexapod", cwd=FOLDER) as page_of:
        page = open_at(browser, page_of, "hexapod", [0.5] * 6, **desktop(1100, 1020))
        save(take(page), "hexapod")


def main() -> None:
    """Makes all pictures."""
    compute()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for make in (lander, arm, hexapod):
            make(browser)
        browser.close()


if __name__ == "__main__":
    main()
