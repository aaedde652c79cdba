"""What libraries are known to keep: each entry fires on its case, and not on one that is near."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from leakscope.analysis import analyse
from leakscope.attribute.suspect import Suspect
from leakscope.explain.findings import ranked
from leakscope.explain.known import Entry, known_for, load_known, module_of, read_entries
from leakscope.explain.versions import is_within
from leakscope.model import Finding, Frame, Holding, Link, Machine, Moment, SiteTally
from leakscope.render import render
from leakscope.render.style import Style
from make import KIB, flat, line, recording

_CASES: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "known" / "cases.toml").read_text(encoding="utf-8")
)
_ENTRIES = {entry.id: entry for entry in load_known()}
_OWN = {"/there/train.py", "/there/serve.py", "/there/notebook.py"}


def test_there_are_enough_and_each_has_its_case() -> None:
    assert len(load_known()) == len(_ENTRIES) >= 25
    assert sorted(_CASES) == sorted(_ENTRIES)


@pytest.mark.parametrize("entry", load_known(), ids=lambda entry: entry.id)
def test_an_entry_fires_on_its_case_and_not_on_a_near_miss(entry: Entry) -> None:
    case = _CASES[entry.id]
    found = _known(case, "")
    assert found is not None
    assert found[0] is entry
    near = _known(case, "missing_")
    assert near is None or near[0] is not entry


def test_the_user_is_to_blame_for_a_container_of_their_own() -> None:
    history = _known(_CASES["keras-history-keeps-model"], "")
    metric = _known(_CASES["torchmetrics-list-state"], "")
    assert history is not None
    assert not history[1]
    assert metric is not None
    assert metric[1]


def test_a_setting_may_rule_an_entry_out() -> None:
    suspect = _suspect(
        [], ["~torch/nn/modules/linear.py:forward", "/there/train.py:main"], "native"
    )
    capped = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}
    machine = Machine("h", "Linux", "3.11.7", 2, allocator_settings=capped)
    assert known_for(suspect, machine, _OWN) is None


@pytest.mark.parametrize(
    ("version", "versions", "is_in"),
    [
        ("2.13.0+cpu", ">=2.0", True),
        ("2.4.0rc1", ">=2.0,<2.4", False),
        ("2.3.1", ">=2.0,<2.4", True),
        ("2.21.0", "<=2.21.0", True),
        ("2.21", "==2.21.0", True),
        ("1.9.5", "<2.0", True),
        ("unknown", ">=0", False),
        ("2.10", ">2.9", True),
    ],
)
def test_versions(version: str, versions: str, is_in: bool) -> None:
    assert is_within(version, versions) is is_in


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("kind = 'bug'", "kind = 'oops'"), "Invalid enum value"),
        (("fix = 'f'", "fiks = 'f'"), "fiks"),
        (("holders = ['a:b']", "holders = ['ab']"), "neither module:name nor Class#attribute"),
        (("holders = ['a:b']", ""), "it matches nothing"),
        (("holders = ['a:b']", "frames = ['(']"), "no regular expression"),
        (("{ torch = '*' }", "{ torch = '2.x' }"), "names no versions"),
        (("{ torch = '*' }", "{ }"), "applies to no package"),
        (("https:", "ftp:"), "https://"),
        (("title = 't'", "title = 't.'"), "its title"),
        (("[[entry]]", "[[entry"), "some.toml"),
    ],
)
def test_a_wrong_entry_is_told_with_its_place(change: tuple[str, str], told: str) -> None:
    text = (
        "[[entry]]\nid = 'x'\nkind = 'bug'\ntitle = 't'\ngrows_with = 'g'\nfix = 'f'\n"
        "url = 'https://example.org'\napplies = { torch = '*' }\nmatch = { holders = ['a:b'] }\n"
    )
    assert len(read_entries(text, "some.toml")) == 1
    with pytest.raises(ValueError, match=r"some\.toml") as error:
        read_entries(text.replace(*change), "some.toml")
    assert told in str(error.value)


def test_a_report_names_what_is_known(tmp_path: Path) -> None:
    file = _file("~torchmetrics/classification/auroc.py")
    grows = line(30 * KIB)
    maker = recording(tmp_path).steps(200, in_use=grows, blocks=flat(1000)).looked(20, 60, grows)
    maker.source("def fit(data):\n    kept = []\n    for x in data:\n        kept.append(x)\n")
    maker.holds("preds", 1.0, 20 * KIB, file=file).holds("kept", 1.0, 9 * KIB)
    report = analyse(maker.done())
    own, metric = report.findings
    assert (own.known, metric.known) == ("", "torchmetrics-list-state")
    assert metric.blame == "library"
    assert metric.rule.startswith("LS")
    assert metric.share > own.share
    entry = _ENTRIES["torchmetrics-list-state"]
    assert metric.says.endswith(entry.title)
    assert metric.fix is not None
    assert entry.url in metric.fix.text
    for style in ("terminal", "markdown"):
        shown = render(report, style, Style(width=100))
        assert "docs/known.md#torchmetrics-list-state" in shown


def test_modules_are_read_from_paths() -> None:
    assert module_of(_link("global x ~torch/_dynamo/guards.py")) == "torch._dynamo.guards"
    assert module_of(_link("global x @re/__init__.py")) == "re"
    assert module_of(_link("global x /there/train.py")) == "train"


def test_a_leak_of_the_users_own_comes_first_unless_it_is_small() -> None:
    library = _finding("re-cache", "library", 0.7)
    own = _finding("", "your-code", 0.3)
    small = _finding("", "your-code", 0.05)
    bug = _finding("tf-custom-gradient-registry", "library", 0.7)
    assert ranked([library, own]) == (own, library)
    assert ranked([library, small]) == (library, small)
    assert ranked([bug, own]) == (bug, own)


def _known(case: dict[str, Any], which: str) -> tuple[Entry, bool] | None:
    path = case.get("misses" if which else "fires", [])
    frames = case.get(f"{which}frames", [])
    kind = case.get(f"{which}kind", "native" if frames else "container")
    packages = case.get(f"{which}packages", {})
    machine = Machine("h", "Linux", "3.11.7", 2, packages=packages)
    return known_for(_suspect(path, frames, kind), machine, _OWN | _files(path))


def _files(path: list[str]) -> set[str]:
    return {word for link in path for word in link.split() if word.startswith("/there/")}


def _suspect(path: list[str], frames: list[str], kind: str) -> Suspect:
    above = [link for link in path if not link.startswith(">")]
    links = tuple(_link(link.removeprefix("> ")) for link in path) or (Link("", "", "native"),)
    places = tuple(Frame(_file(one.split(":")[0]), 1, one.split(":")[1]) for one in frames)
    holding = Holding(
        at=Moment(0, 0),
        process="1-7",
        kind=kind,
        path=links,
        grows_at=max(len(above) - 1, 0),
        item="object",
        counts=((1, 1), (2, 2)),
        sites=(SiteTally(places, 1),) if places else (),
    )
    return Suspect(holding, 1.0, 1.0, None, None, None, "", "", 2)


def _link(words: str) -> Link:
    kind, name, file, scope = (*words.split(), "", "")[:4]
    return Link(f".{name}", "object", kind, name, _file(file), scope)


def _file(short: str) -> str:
    return short.replace("~", "/env/lib/python3.11/site-packages/").replace(
        "@", "/usr/lib/python3.11/"
    )


def _finding(known: str, blame: str, share: float) -> Finding:
    return Finding("LS501", "container-grows", blame, 0.9, "it grows", 1.0, share, known=known)


def test_the_page_of_known_behaviour_is_as_the_entries_are() -> None:
    from docs.make_known import document  # type: ignore[import-not-found,unused-ignore]

    page = Path(__file__).parents[2] / "docs" / "known.md"
    assert page.read_text(encoding="utf-8") == document()
