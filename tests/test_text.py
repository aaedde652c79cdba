"""Numbers and foreign strings become short, safe words."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import leakscope
from leakscope import text

NAN, INF = math.nan, math.inf
KIB, MIB, GIB = 1024, 1024**2, 1024**3


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [
        (0, "0 B"),
        (-0.0, "0 B"),
        (1, "1 B"),
        (0.3, "0.3 B"),
        (0.01, "<0.1 B"),
        (-0.01, "-<0.1 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (-1536, "-1.5 KiB"),
        (1023.99 * KIB, "1.0 MiB"),
        (24 * GIB, "24 GiB"),
        (23.98 * GIB, "24.0 GiB"),
        (412.4 * KIB, "412 KiB"),
        (2**60, "1 EiB"),
        (2**80, "1.05e+06 EiB"),
        (10**400, "unbounded"),
        (NAN, "unknown"),
        (INF, "unbounded"),
        (-INF, "unbounded"),
    ],
)
def test_size(n_bytes: float, words: str) -> None:
    assert text.size(n_bytes) == words


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(1536, "+1.5 KiB"), (-1536, "-1.5 KiB"), (0, "0 B"), (0.01, "<0.1 B"), (NAN, "unknown")],
)
def test_signed_size(n_bytes: float, words: str) -> None:
    assert text.signed_size(n_bytes) == words


@pytest.mark.parametrize(
    ("per_step", "unit", "words"),
    [
        (3.1 * MIB, "bytes", "+3.1 MiB/step"),
        (-16 * KIB, "bytes", "-16 KiB/step"),
        (0, "bytes", "0 B/step"),
        (0.01, "bytes", "<0.1 B/step"),
        (1.0, "objects", "+1 object/step"),
        (2.5, "objects", "+2.5 objects/step"),
        (0.01, "count", "+0.01/step"),
        (1e-9, "count", "<0.001/step"),
        (12_000.0, "count", "+12,000/step"),
        (NAN, "bytes", "unknown"),
        (INF, "objects", "unbounded"),
    ],
)
def test_rate(per_step: float, unit: str, words: str) -> None:
    assert text.rate(per_step, unit) == words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (2.9 * MIB, 3.3 * MIB, "+2.9 to +3.3 MiB/step"),
        (-210.0, 240.0, "-210 to +240 B/step"),
        (-100.0, 900 * KIB, "-0.1 to +900 KiB/step"),
        (-1.0, MIB * 2, "0 to +2 MiB/step"),
        (0.0, 0.0, "0 to 0 B/step"),
        (KIB, INF, "at least +1 KiB/step"),
        (-INF, KIB, "at most +1 KiB/step"),
        (-INF, INF, "unbounded"),
        (NAN, 1.0, "unknown"),
    ],
)
def test_rate_between(low: float, high: float, words: str) -> None:
    assert text.rate_between(low, high) == words


def test_rate_between_of_counts_names_the_unit_once() -> None:
    assert text.rate_between(-0.4, 2.0, "blocks") == "-0.4 to +2 blocks/step"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (2e-10, "<1 ns"),
        (0.0000021, "2.1 µs"),
        (0.45, "450 ms"),
        (0.9999, "1.0 s"),
        (1.4, "1.4 s"),
        (59.97, "1 m"),
        (187.4, "3 m 7 s"),
        (3599.7, "1 h"),
        (18_600, "5 h 10 m"),
        (86_399, "1 d"),
        (100_000, "1 d 4 h"),
        (86_400 * 400, "1.1 years"),
        (1e30, "more than 1,000 years"),
        (-187.4, "-3 m 7 s"),
        (NAN, "unknown"),
        (INF, "unbounded"),
    ],
)
def test_duration(seconds: float, words: str) -> None:
    assert text.duration(seconds) == words


@pytest.mark.parametrize(
    ("n", "words"),
    [(41_000, "41,000"), (1.0, "1"), (1.25, "1.2"), (-7, "-7"), (1e18, "1e+18"), (NAN, "unknown")],
)
def test_count(n: float, words: str) -> None:
    assert text.count(n) == words


@pytest.mark.parametrize(
    ("n", "words"), [(41_023, "~41,000"), (7, "~7"), (0, "~0"), (-123, "~-120"), (INF, "unbounded")]
)
def test_about_keeps_two_digits(n: float, words: str) -> None:
    assert text.about(n) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0 %"),
        (0.0043, "0.4 %"),
        (1e-6, "<0.1 %"),
        (0.98, "98 %"),
        (0.999, "99.9 %"),
        (0.99999, "99.9 %"),
        (1, "100 %"),
        (-0.5, "-50 %"),
        (NAN, "unknown"),
        (1e307, "unbounded"),
    ],
)
def test_percent(share: float, words: str) -> None:
    assert text.percent(share) == words


def test_plural() -> None:
    assert text.plural(1, "step") == "1 step"
    assert text.plural(412, "step") == "412 steps"
    assert text.plural(0, "process", "processes") == "0 processes"


def test_signal_name() -> None:
    assert text.signal_name(9) == "signal 9 (SIGKILL)"
    assert text.signal_name(999) == "signal 999"


def test_moment() -> None:
    assert text.moment(1_794_730_873_000_000_000) == "2026-11-15 08:21 UTC"
    assert text.moment(2**200) == "unknown"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("heap.in_use_bytes", "C heap, in use"),
        ("rss_bytes", "resident (RSS)"),
        ("python.blocks_count", "Python blocks"),
        ("jax.live_buffers_bytes", "jax live buffers"),
        ("other.rss_bytes", "other rss"),
        ("", "unknown"),
    ],
)
def test_metric(name: str, words: str) -> None:
    assert text.metric(name) == words


@pytest.mark.parametrize(
    ("foreign", "safe"),
    [
        ("plain", "plain"),
        ("a\tb\r\nc\nd", "a b c d"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\udc80", "\\udc80"),
        ("\U000e0041", "\\U000e0041"),
        ("Größe 训练 é", "Größe 训练 é"),
    ],
)
def test_clean(foreign: str, safe: str) -> None:
    assert text.clean(foreign) == safe


@given(st.text())
def test_clean_is_safe_and_done_once(foreign: str) -> None:
    safe = text.clean(foreign)
    safe.encode()
    assert text.clean(safe) == safe
    assert all(character >= " " and character != "\x7f" for character in safe)


def test_shorten() -> None:
    assert text.shorten("abcdef", 6) == "abcdef"
    assert text.shorten("abcdefg", 6) == "abcde…"
    assert text.shorten("abc", 0) == ""


def test_shorten_path_keeps_the_end() -> None:
    assert text.shorten_path("src/train.py", 20) == "src/train.py"
    assert text.shorten_path("/home/someone/project/src/train.py", 20) == "…/src/train.py"
    assert text.shorten_path("/x/averyveryverylongname.py", 10) == "…ngname.py"


@given(st.text(), st.integers(0, 40))
def test_shortened_paths_fit(path: str, width: int) -> None:
    assert len(text.shorten_path(path, width)) <= width


def test_command_line_can_be_typed_again() -> None:
    assert text.command_line(("python", "my train.py", "--lr=1")) == "python 'my train.py' --lr=1"


def test_sentence_ends_like_one() -> None:
    assert text.sentence(" it grows\nfast ") == "it grows fast."
    assert text.sentence("Really?") == "Really?"
    assert text.sentence("") == ""


@pytest.mark.parametrize(
    "function",
    [text.size, text.signed_size, text.rate, text.count, text.about, text.percent, text.duration],
)
@given(number=st.floats() | st.integers(-(2**70), 2**70))
def test_every_number_has_short_words(function: Callable[[float], str], number: float) -> None:
    words = function(number)
    assert 0 < len(words) <= 32
    assert words == text.clean(words)


@given(st.floats(), st.floats(), st.sampled_from(["bytes", "count", "objects"]))
def test_every_interval_has_words(low: float, high: float, unit: str) -> None:
    words = text.rate_between(low, high, unit)
    assert words.endswith("/step") or words in {text.UNKNOWN, text.UNBOUNDED}


def test_nothing_heavy_comes_along() -> None:
    program = (
        "import sys, leakscope.text, leakscope.errors\n"
        "print(*sorted(sys.modules.keys() & {'rich', 'msgspec', 'numpy', 'signal', 'shlex'}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(Path(leakscope.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""
