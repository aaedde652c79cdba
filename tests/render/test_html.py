"""The HTML report as a document: what is in it, what cannot get into it, and what it carries."""

from __future__ import annotations

import base64
import hashlib
import json
import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files

import msgspec
import pytest
from hostile import ATTACKS, hostile_exhibit
from hypothesis import HealthCheck, given, settings

import any_report
import make
import make_report
from browsing import Browser, needs_browser
from leakscope.analysis import analyse_with_picture
from leakscope.cli import main
from leakscope.model import Exhibit, Fix, Outcome, Picture, Report, Site
from leakscope.render import render
from leakscope.render.redact import redacted
from make import KIB, MIB

_ROOT = pathlib.Path(__file__).parents[2]
_ASSETS_AT_MOST = 150_000
_BYTES_AT_MOST = 5 * MIB


class _Outline(HTMLParser):
    """Elements and attributes of a page, as a browser's own parser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.policy = ""
        self.bodies: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        named = dict(attrs)
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named.get("content") or ""
        self._inside = tag if tag in self.bodies else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.bodies[self._inside].append(data)
        else:
            self.text += data


def _page(report: Report | None = None, picture: Picture | None = None) -> str:
    return render(report or make_report.leaking(), "html", None, picture)


@pytest.mark.parametrize("case", make_report.CASES)
def test_every_kind_of_report_says_its_verdict_first(case: str) -> None:
    report = make_report.CASES[case]()
    outline = _Outline(_page(report))
    words = " ".join(outline.text.split())
    assert words.index(report.verdict.value.upper()) < words.index(report.because[:30])
    for finding in report.findings:
        assert finding.says[:60] in words
    for gap in report.blind_spots:
        assert gap.why in words


def test_the_forecast_has_its_step_its_time_and_its_interval() -> None:
    words = " ".join(_Outline(_page(make_report.growing())).text.split())
    assert "+3.1 MiB/step" in words
    assert "+2.9 to +3.3 MiB/step" in words
    assert "5 h 10 m" in words
    assert "at step ~41,000, between 4 h 50 m and 5 h 40 m" in words


def test_the_page_runs_no_script_but_its_own_and_asks_for_nothing() -> None:
    outline = _Outline(_page())
    script = outline.bodies["script"][-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in outline.policy
    assert outline.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in outline.policy
    assert all(address.startswith("#") for address in outline.addresses)
    assert {"link", "iframe", "img", "base", "object", "form"}.isdisjoint(outline.elements)
    assert not any(name.startswith("on") or name == "style" for name in outline.attributes)


def test_hostile_strings_make_no_element_and_no_attribute() -> None:
    spoiled = hostile_exhibit()
    page = render(spoiled.report, "html", None, spoiled.picture, spoiled)
    harmless = _Outline(_page(make_report.leaking(), spoiled.picture))
    outline = _Outline(page)
    assert outline.attributes <= harmless.attributes | {"class"}
    assert set(outline.elements) <= set(harmless.elements) | {"a", "option", "select", "label"}
    assert len(outline.bodies["script"]) == 2, "the data and the code"
    assert len(outline.bodies["style"]) == 1
    data = outline.bodies["script"][0]
    assert "<" not in data
    assert "\u2028" not in data
    names = {one["name"] for one in json.loads(data)["runs"][0]["tree"]}
    assert ATTACKS[0] in names, "as it was written, and inert"
    hidden = "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    assert not re.search(hidden, page)
    assert "49" not in re.findall(r"7 \* 7|\b49\b", outline.text), "no template in a string is run"
    assert len(page.encode()) < _BYTES_AT_MOST


@needs_browser()
@pytest.mark.browser
def test_hostile_strings_are_inert_in_a_browser(tmp_path: pathlib.Path) -> None:
    spoiled = hostile_exhibit()
    path = tmp_path / "hostile.html"
    path.write_text(
        render(spoiled.report, "html", None, spoiled.picture, spoiled), encoding="utf-8"
    )
    browser = Browser()
    try:
        browser.open(path)
        browser.ask("for (const one of document.querySelectorAll('details')) one.open = true")
        browser.ask("memory.roles.moveTo(1); icicle.tell(icicle.nodes[1])")
        assert browser.complaints() == []
        assert len(browser.requests()) == 1
        assert browser.ask("return window.hacked") is None
        assert browser.ask("return document.images.length") == 0
        assert browser.ask("return getComputedStyle(document.body).display") == "block"
        seen = browser.ask("return document.body.innerText")
        assert "</script><script>window.hacked = 1</script>" in seen
        assert "\\u202egnp.exe" in seen
    finally:
        browser.close()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_report.reports)
def test_any_report_becomes_a_page_of_known_elements(report: Report) -> None:
    outline = _Outline(render(report, "html", None, None, Exhibit(report, Picture())))
    assert outline.elements.count("script") == 2
    assert outline.bodies["script"][-1].startswith("/*! https://github.com/leeoniya/uPlot")
    assert "runs" in json.loads(outline.bodies["script"][0])
    assert not any(name.startswith("on") for name in outline.attributes)
    assert {"img", "iframe", "link", "form"}.isdisjoint(outline.elements)


def test_the_assets_are_small_and_what_the_lock_says() -> None:
    folder = files("leakscope.render.html").joinpath("assets")
    assert sum(len(one.read_bytes()) for one in folder.iterdir()) <= _ASSETS_AT_MOST
    checked = subprocess.run(
        [sys.executable, _ROOT / "vendor" / "revendor.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def _recording(folder: pathlib.Path) -> make.Maker:
    return (
        make.recording(folder)
        .steps(200, in_use=make.line(40 * KIB), rss=make.line(50 * KIB, 300 * MIB))
        .looked(20, 60, make.line(40 * KIB))
        .holds("history", 1, 40 * KIB)
        .source("import torch\n\ndef fit():\n    history = []\n    history.append(loss)\n" * 2)
        .ended(201)
    )


def test_report_writes_the_page_and_compares(tmp_path: pathlib.Path) -> None:
    _recording(tmp_path / "a")
    _recording(tmp_path / "b")
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    assert main(["report", str(tmp_path / "a"), "-o", str(one)]) == 0
    page = one.read_text(encoding="utf-8")
    assert "A beside B" not in page
    assert 'id="icicle"' in page
    words = ["report", str(tmp_path / "a"), "--compare", str(tmp_path / "b"), "-o", str(two)]
    assert main(words) == 0
    assert "A beside B" in two.read_text(encoding="utf-8")


def test_comparing_needs_a_page(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    _recording(tmp_path / "a")
    assert main(["report", str(tmp_path / "a"), "--compare", str(tmp_path / "a")]) == 2
    assert "--compare does not take `terminal`" in capsys.readouterr().err


def test_redacted_reports_name_no_folder_and_no_machine(tmp_path: pathlib.Path) -> None:
    exhibit = analyse_with_picture(_recording(tmp_path / "a").done())
    report = msgspec.structs.replace(
        exhibit.report,
        verdict=Outcome.LEAK,
        command=("/home/ann/secret-env/bin/python", "client/x/train.py", "--data", "~/private/set"),
        machine=msgspec.structs.replace(exhibit.report.machine, host="ann-laptop"),
        findings=tuple(
            msgspec.structs.replace(
                one,
                keeper=Site("/mnt/Client B/z.py", 3, "fit", "x = open('/mnt/Client A/y.txt')"),
                fix=Fix("as below", "--- a/client/x/train.py\n+++ b/client/x/train.py\n-x\n+y\n"),
                says="open('/mnt/Client A/y.txt') at client/x/train.py:3 on ann-laptop keeps more "
                "and/or less, +3 MiB/step, see https://example.com/a/b.html",
            )
            for one in exhibit.report.findings
        ),
    )
    assert report.findings
    for to in ("html", "json", "markdown", "terminal"):
        hidden = redacted(Exhibit(report, exhibit.picture))
        shown = render(hidden.report, to, None, hidden.picture)
        for word in ("ann", "secret-env", "client/", "private/", "Client"):
            assert not re.search(rf"\b{word}", shown), (to, word)
        assert "train.py" in shown
        told = " ".join(shown.split())
        assert "+3 MiB/step" in told, "a rate is no path"
        assert "and/or" in told
        assert "/a/b.html" in told
