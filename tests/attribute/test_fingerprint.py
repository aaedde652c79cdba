"""A bug has one name, wherever it is met."""

from __future__ import annotations

import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from leakscope.attribute.fingerprint import fingerprint
from leakscope.model import Link

PATH = (
    Link("module train", "module", "module", "train", "/home/me/train.py"),
    Link(".trainer", "Trainer", "global", "trainer", "/home/me/train.py"),
    Link(".losses", "list", "attribute", "losses", "/home/me/train.py", "Trainer", 12),
    Link("[7]", "dict", "item"),
    Link("['loss']", "Tensor", "item"),
)

words = st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=9)
folders = st.lists(words, max_size=4).map(lambda parts: "".join(f"/{part}" for part in parts))


def changed(index: int, **changes: object) -> tuple[Link, ...]:
    links = list(PATH)
    links[index] = msgspec.structs.replace(links[index], **changes)
    return tuple(links)


def name(links: tuple[Link, ...], grows_at: int = 3, kind: str = "container") -> str:
    return fingerprint(links, grows_at, kind)


def test_it_is_eight_digits_that_never_change() -> None:
    assert re.fullmatch("[0-9a-f]{8}", name(PATH))
    assert name(PATH) == "177d6bcd", "every fingerprint ever reported would change its name"


@given(st.integers(0, 10**6), folders, st.integers(0, 10**9), words)
def test_lines_folders_and_indices_do_not_matter(
    line: int, folder: str, index: int, key: str
) -> None:
    for other in (
        changed(2, line=line),
        changed(2, file=f"{folder}/train.py"),
        changed(3, via=f"[{index}]"),
        changed(3, via=f"[{key!r}]"),
        changed(2, via=f".losses at 0x{index:x}"),
    ):
        assert name(other) == name(PATH)


@given(words)
def test_what_is_kept_and_how_the_run_got_there_do_not_matter(word: str) -> None:
    assert name(changed(4, type=word)) == name(PATH)
    assert name(changed(0, name=word, via=word)) == name(PATH)
    assert name((Link("local t in main()", "Trainer", "local", word), *PATH[2:]), 2) == name(PATH)


@given(words)
def test_other_names_are_other_bugs(word: str) -> None:
    if word not in {"losses", "Trainer", "train"}:
        assert name(changed(2, name=word)) != name(PATH)
        assert name(changed(2, scope=word)) != name(PATH)
        assert name(changed(2, file=f"/home/me/{word}.py")) != name(PATH)
        assert name(PATH, kind=word) != name(PATH)
    assert name(PATH, 2) != name(PATH, 3)


def test_a_librarys_name_says_too_little_alone() -> None:
    hooks = Link(
        "._forward_hooks",
        "OrderedDict",
        "attribute",
        "_forward_hooks",
        "/env/lib/python3.11/site-packages/torch/nn/modules/module.py",
        "Module",
    )
    encoder = Link(".encoder", "Linear", "attribute", "encoder", "/app/net.py", "Net")
    decoder = msgspec.structs.replace(encoder, via=".decoder", name="decoder")
    assert name((encoder, hooks), 1) != name((decoder, hooks), 1)
    assert name((hooks,), 0) == name((PATH[0], hooks)[1:], 0)


links = st.builds(Link, words, words, words, words, folders, words, st.integers(0, 99))


@given(st.lists(links, max_size=6).map(tuple), st.integers(-3, 9), words)
def test_any_path_has_a_name(path: tuple[Link, ...], grows_at: int, kind: str) -> None:
    assert re.fullmatch("[0-9a-f]{8}", fingerprint(path, grows_at, kind))
