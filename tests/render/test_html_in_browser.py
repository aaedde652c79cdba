"""A page made from a real run, opened in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browsing import Browser, needs_browser
from leakscope.cli import main
from running import Watched, run_watched

pytestmark = [needs_browser(), pytest.mark.browser, pytest.mark.torch]

_ZOO = Path(__file__).parents[2] / "zoo" / "cpu" / "penalty-log-with-graph"
_STEP = "return memory.roles.plot.scales.x"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Watched, Watched, Path]:
    """The leaking program and the repaired one, each watched; the page of the first."""
    folder = tmp_path_factory.mktemp("zoo")
    watched = []
    for name in ("leaky", "fixed"):
        cwd = folder / name
        cwd.mkdir()
        shutil.copy(_ZOO / f"{name}.py", cwd)
        own = ["--report", str(folder / f"{name}.html")]
        watched.append(run_watched([f"{name}.py"], cwd, own=own))
    return watched[0], watched[1], folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    one = Browser()
    yield one
    one.close()


@pytest.fixture
def page(runs: tuple[Watched, Watched, Path], browser: Browser) -> Browser:
    browser.prefer("light")
    browser.open(runs[2] / "leaky.html")
    return browser


@pytest.fixture(scope="module")
def both(runs: tuple[Watched, Watched, Path]) -> Path:
    leaky, fixed, folder = runs
    path = folder / "both.html"
    words = ["report", str(leaky.directory), "--compare", str(fixed.directory), "-o", str(path)]
    assert main(words) == 0
    return path


def test_it_opens_without_a_complaint_or_a_request(page: Browser) -> None:
    assert page.complaints() == []
    (own,) = page.requests()
    assert own.endswith("/leaky.html")
    assert page.driver.title == "LEAK · leaky.py"
    # Drawn, not only laid out: the layers have left more than one colour on the canvas.
    seen = page.ask(
        "const c = document.querySelector('#roles canvas');"
        "const d = c.getContext('2d').getImageData(0, c.height / 2, c.width, 1).data;"
        "const seen = new Set();"
        "for (let i = 0; i < d.length; i += 4) seen.add(d.slice(i, i + 3).join());"
        "return seen.size"
    )
    assert seen > 3


def test_dragging_zooms_all_charts_and_a_button_shows_the_whole_run(page: Browser) -> None:
    over = page.driver.find_element(By.CSS_SELECTOR, "#roles .u-over")
    page.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", over)
    whole = page.ask(_STEP)
    ActionChains(page.driver).move_to_element_with_offset(
        over, -200, 0
    ).click_and_hold().move_by_offset(300, 0).release().perform()
    part = page.ask(_STEP)
    assert whole["min"] < part["min"] < part["max"] < whole["max"]
    assert page.ask("return memory.lines.plot.scales.x")["min"] == part["min"]
    page.driver.find_element(By.CSS_SELECTOR, "#memory [data-do=reset]").click()
    assert page.ask(_STEP)["max"] == whole["max"]
    assert page.complaints() == []


def test_hovering_tells_the_step_and_what_is_kept(page: Browser) -> None:
    over = page.driver.find_element(By.CSS_SELECTOR, "#roles .u-over")
    page.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", over)
    ActionChains(page.driver).move_to_element(over).perform()
    said = page.driver.find_element(By.CSS_SELECTOR, "#roles .tip").text
    assert said.startswith("Step ")
    assert "LS101 `sparsity`" in said
    assert "all of it" in said


def test_keys_move_zoom_and_are_spoken(page: Browser) -> None:
    chart = page.driver.find_element(By.ID, "roles")
    chart.send_keys(Keys.END)
    said = page.ask("return document.getElementById('said').textContent")
    assert said.startswith("Step ")
    assert "MiB" in said
    before = page.ask(_STEP)
    chart.send_keys("+")
    after = page.ask(_STEP)
    assert after["max"] - after["min"] < before["max"] - before["min"]
    chart.send_keys("0")
    assert page.ask(_STEP)["min"] == before["min"]


def test_a_layer_can_be_taken_out(page: Browser) -> None:
    high = "return memory.roles.plot.scales.y.max"
    before = page.ask(high)
    page.driver.find_element(By.CSS_SELECTOR, "[data-do=changes]").click()
    assert page.ask(high) > before + 50 * 2**20, "the constant part is drawn"
    kept = "//ul[@id='roles-legend']//button[contains(., 'sparsity')]"
    page.driver.find_element(By.XPATH, kept).click()
    assert page.driver.find_element(By.XPATH, kept).get_attribute("aria-pressed") == "false"


def test_a_finding_opens_and_shows_trace_source_and_diff(page: Browser) -> None:
    finding = page.driver.find_element(By.ID, "finding-1")
    diff = finding.find_element(By.CSS_SELECTOR, ".diff")
    assert diff.is_displayed(), "the first one is open"
    finding.find_element(By.TAG_NAME, "summary").click()
    assert not diff.is_displayed()
    finding.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert ".detach()" in finding.find_element(By.CSS_SELECTOR, ".diff .more").text
    assert finding.find_element(By.CSS_SELECTOR, ".suspect .via").text == ".sparsity"
    marked = finding.find_element(By.CSS_SELECTOR, "pre mark").text
    assert "self.sparsity.append(" in marked


def test_the_tree_is_searched_walked_and_entered(page: Browser) -> None:
    search = page.driver.find_element(By.ID, "search")
    search.send_keys("sparsity")
    assert page.driver.find_element(By.ID, "found").text.startswith("1 match, ")
    search.clear()
    search.send_keys("no such thing")
    assert page.driver.find_element(By.ID, "found").text == "0 matches, 0 B"
    canvas = page.driver.find_element(By.ID, "icicle")
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    assert "local log in main()" in page.driver.find_element(By.ID, "icicle-says").text
    assert page.ask("return icicle.top.name") == "local log in main()"
    canvas.send_keys(Keys.ESCAPE)
    assert page.ask("return icicle.top.parent") == -1


def test_dark_follows_the_system_and_the_button(page: Browser) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = page.ask(paper)
    page.prefer("dark")
    dark = page.ask(paper)
    assert dark != light
    page.driver.find_element(By.ID, "theme").click()
    assert page.ask(paper) == light
    assert page.complaints() == []


def test_it_prints_in_light_with_everything_open(page: Browser) -> None:
    page.driver.find_element(By.ID, "theme").click()
    page.driver.find_element(By.CSS_SELECTOR, "#finding-1 summary").click()
    page.ask(
        "addEventListener('beforeprint', () => { window.printed = ["
        "document.documentElement.dataset.theme,"
        "document.querySelectorAll('details:not([open])').length] })"
    )
    printed = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 20_000
    assert page.ask("return window.printed") == ["light", 0]
    assert page.ask("return document.documentElement.dataset.theme") == "dark", "and back"


def test_two_runs_are_on_the_same_axes(both: Path, browser: Browser) -> None:
    browser.prefer("light")
    browser.open(both)
    assert browser.complaints() == []
    assert len(browser.requests()) == 1
    legend = browser.driver.find_element(By.ID, "both-legend").text
    assert "A" in legend
    assert "B" in legend
    assert browser.ask("return comparison.chart.plot.series.length") == 3
    table = browser.driver.find_element(By.CSS_SELECTOR, "table.sides").text
    assert "not found" in table, "the finding of A is not in B"
    counter = browser.driver.find_element(By.ID, "counter")
    counter.find_element(By.XPATH, ".//option[contains(., 'RSS')]").click()
    assert browser.ask("return comparison.metric") == "process.rss_bytes"
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_from_using_it(both: Path, browser: Browser, scheme: str) -> None:
    browser.prefer(scheme)
    browser.open(both)
    browser.ask("for (const one of document.querySelectorAll('details')) one.open = true")
    assert browser.barriers() == []
