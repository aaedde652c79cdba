"""Numbers and foreign strings in, words out. The only place that formats a number.

Every function takes any float, including NaN, infinities and values far outside what
memory can be, and returns one short line. Standard library only: the watched program
imports this file too.
"""

from __future__ import annotations

import math
import re

UNKNOWN = "unknown"
UNBOUNDED = "unbounded"

_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SMALLEST_SHOWN = 0.1
_SMALLEST_COUNTED = 0.001
_PLAIN_DIGITS_UNTIL = 1e6
"""Above this many of the largest unit a number is written with an exponent."""


def size(n_bytes: float) -> str:
    """`1536` → `1.5 KiB`. Exact multiples lose their `.0`; rounded ones keep it."""
    return _not_a_number(n_bytes) or _join(*_scaled(n_bytes, _size_unit(n_bytes)))


def signed_size(n_bytes: float) -> str:
    """`3250586` → `+3.1 MiB`; zero has no sign."""
    return _not_a_number(n_bytes) or _plus(n_bytes) + size(n_bytes)


def quantity(value: float, unit: str) -> str:
    """A value in a series' own unit: `size` for bytes, `41,000 objects` for the rest."""
    if unit == "bytes":
        return size(value)
    return _not_a_number(value) or _join(count(value), _counted(value, unit))


def rate(per_step: float, unit: str = "bytes") -> str:
    """`3250586` → `+3.1 MiB/step`; other units read `+1 object/step`."""
    plus = _plus(per_step) if unit == "bytes" else _sign(per_step)
    return _not_a_number(per_step) or f"{plus}{quantity(per_step, unit)}/step"


def rate_between(low: float, high: float, unit: str = "bytes") -> str:
    """The interval of a rate, in one unit: `+2.9 to +3.3 MiB/step`."""
    if not (math.isfinite(low) and math.isfinite(high)):
        if math.isnan(low) or math.isnan(high):
            return UNKNOWN
        if math.isinf(low) and math.isinf(high):
            return UNBOUNDED
        if math.isinf(high):
            return f"at least {rate(low, unit)}"
        return f"at most {rate(high, unit)}"
    if unit != "bytes":
        ends = f"{_sign(low)}{count(low)} to {_sign(high)}{count(high)}"
        return f"{_join(ends, _counted(0, unit))}/step"
    power = _size_unit(max(abs(low), abs(high)))
    ends = f"{_beside(low, power)} to {_beside(high, power)}"
    return f"{ends} {_SIZE_UNITS[power]}/step"


def count(n: float) -> str:
    """`41000` → `41,000`; a fraction keeps one digit, `1.25` → `1.3`."""
    if special := _not_a_number(n):
        return special
    if abs(n) >= 1e15:
        return f"{n:.3g}"
    if n == int(n):
        return f"{int(n):,}"
    if abs(n) < _SMALLEST_SHOWN:
        is_shown = abs(n) >= _SMALLEST_COUNTED
        return f"{n:.1g}" if is_shown else f"{'-' if n < 0 else ''}<{_SMALLEST_COUNTED:g}"
    return f"{n:,.1f}" if abs(n) < 1000 else f"{n:,.0f}"


def about(n: float) -> str:
    """`41023` → `~41,000`: two leading digits, for numbers that are guesses."""
    if special := _not_a_number(n):
        return special
    if n == 0 or abs(n) < 10:
        return f"~{count(round(n))}"
    unit = 10.0 ** (math.floor(math.log10(abs(n))) - 1)
    return f"~{count(float(round(n / unit)) * unit)}"


def plural(n: float, one: str, many: str | None = None) -> str:
    """`plural(1, "step")` → `1 step`, `plural(412, "step")` → `412 steps`."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """`0.98` → `98 %`. Shares just beside 0 and 100 % are not rounded onto them."""
    if special := _not_a_number(share):
        return special
    value = float(share) * 100
    if math.isinf(value):
        return UNBOUNDED
    if 0 < abs(value) < _SMALLEST_SHOWN:
        return f"{'-' if value < 0 else ''}<{_SMALLEST_SHOWN} %"
    if 0 < abs(value) < 10:
        return f"{_short(value)} %"
    if 99 < value < 100:
        return f"{math.floor(value * 10) / 10:g} %"
    return f"{count(round(value))} %"


def duration(seconds: float) -> str:
    """`18600` → `5 h 10 m`: the two largest units that matter."""
    if special := _not_a_number(seconds):
        return special
    sign, seconds = ("-" if seconds < 0 else ""), abs(float(seconds))
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995:
        return sign + _below_one_second(seconds)
    if seconds < 59.95:
        return f"{sign}{_short(seconds)} s"
    whole = round(seconds)
    if whole < 3600:
        return sign + _two_units(whole, 60, "m", 1, "s")
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return sign + _two_units(minutes, 60, "h", 1, "m")
    hours = round(seconds / 3600)
    if hours < 24 * 365:
        return sign + _two_units(hours, 24, "d", 1, "h")
    years = seconds / (365.25 * 86400)
    if years >= 1000:
        return f"{sign}more than 1,000 years"
    return f"{sign}{plural(float(f'{max(years, 1.0):.2g}'), 'year')}"


def moment(wall_ns: int) -> str:
    """A point in time, in UTC: `2026-11-15 08:21 UTC`."""
    import time

    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(wall_ns / 1e9))
    except (OverflowError, ValueError, OSError):
        return UNKNOWN


def signal_name(number: int) -> str:
    """`9` → `signal 9 (SIGKILL)`."""
    import signal

    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


_METRICS = {
    "tree.children_bytes": "processes that stay",
    "in_use_bytes": "C heap, in use",
    "held_bytes": "C heap, held free",
    "rss_bytes": "resident (RSS)",
    "uss_bytes": "private (USS)",
    "pss_bytes": "proportional (PSS)",
    "shared_bytes": "shared",
    "swap_bytes": "swapped out",
    "blocks_count": "Python blocks",
    "objects_count": "Python objects",
    "threads_count": "threads",
    "descriptors_count": "open files",
    "cgroup_use_bytes": "cgroup, in use",
    "tree.growth_bytes": "all processes together",
    "torch.cuda.allocated_bytes": "CUDA allocated",
    "torch.cuda.reserved_bytes": "CUDA reserved",
}
_OWNERS = frozenset({"", "heap", "process", "python", "cgroup"})


def metric(name: str) -> str:
    """A metric in human words: `heap.in_use_bytes` → `C heap, in use`."""
    owner, _, counter = name.rpartition(".")
    known = _METRICS.get(name) or (_METRICS.get(counter) if owner in _OWNERS else None)
    if known is not None:
        return known
    words = re.sub(r"_(bytes|count|ns)$", "", clean(name))
    return words.replace(".", " ").replace("_", " ").strip() or UNKNOWN


def clean(text: str) -> str:
    """A foreign string made safe to print on one line.

    Line breaks and tabs become spaces. Everything that could move the cursor, recolour
    or reorder the line (control characters, escapes, direction marks, lone surrogates)
    is written out as the escape a programmer would type.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_escaped, _BREAKS.sub(" ", text))


def shorten(text: str, width: int) -> str:
    """At most `width` characters; a cut is shown as `…`."""
    if len(text) <= width:
        return text
    return text[: max(width - 1, 0)] + "…" if width > 0 else ""


def shorten_path(path: str, width: int) -> str:
    """At most `width` characters of a path; the end says more than the start."""
    if len(path) <= width:
        return path
    parts = path.split("/")
    for start in range(1, len(parts)):
        tail = "…/" + "/".join(parts[start:])
        if len(tail) <= width:
            return tail
    return "…" + path[len(path) - width + 1 :] if width > 1 else shorten(path, width)


def command_line(words: tuple[str, ...]) -> str:
    """A command as it could be typed, safe to print."""
    import shlex

    return clean(shlex.join(words))


def sentence(text: str) -> str:
    """One clean line that ends like a sentence."""
    line = clean(text).strip()
    return line if not line or line[-1] in ".!?…" else line + "."


_BREAKS = re.compile(r"\r\n|[\t\n\v\f\r\x85\u2028\u2029]")
# C0, DEL and C1 drive the terminal; the direction marks reorder what is read (CVE-2021-42574);
# zero-width characters and soft hyphens hide; surrogates come from undecodable file names and
# cannot be encoded.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _not_a_number(value: float) -> str:
    try:
        number = float(value)
    except OverflowError:
        return UNBOUNDED
    if math.isnan(number):
        return UNKNOWN
    return UNBOUNDED if math.isinf(number) else ""


def _plus(value: float) -> str:
    """A plus sign for growth; none before the `<` that `size` writes near zero."""
    return "+" if value >= _SMALLEST_SHOWN else ""


def _sign(value: float) -> str:
    return "+" if value >= _SMALLEST_COUNTED else ""


def _join(number: str, unit: str) -> str:
    return f"{number} {unit}" if unit else number


def _counted(value: float, unit: str) -> str:
    """The unit after a number; units are named in the plural (`objects`)."""
    if unit in {"count", ""}:
        return ""
    word = clean(unit)
    return word[:-1] if value == 1 and word.endswith("s") else word


def _size_unit(n_bytes: float) -> int:
    """Index of the unit, chosen after rounding: 1023.99 KiB is 1.0 MiB."""
    power = 0
    while power < len(_SIZE_UNITS) - 1 and abs(n_bytes) / 1024**power >= 1023.5:
        power += 1
    return power


def _scaled(n_bytes: float, power: int) -> tuple[str, str]:
    value = n_bytes / 1024**power
    if 0 < abs(value) < _SMALLEST_SHOWN:
        text = f"{'-' if value < 0 else ''}<{_SMALLEST_SHOWN}"
    elif abs(value) >= _PLAIN_DIGITS_UNTIL:
        text = f"{value:.3g}"
    else:
        text = _short(value)
    return text, _SIZE_UNITS[power]


def _beside(n_bytes: float, power: int) -> str:
    """One end of an interval, in the unit of the other end; what rounds to 0 is `0`."""
    value = n_bytes / 1024**power
    if abs(value) < _SMALLEST_SHOWN / 2:
        return "0"
    return ("+" if value > 0 else "") + (
        f"{value:.1f}" if abs(value) < _SMALLEST_SHOWN else _scaled(n_bytes, power)[0]
    )


def _short(value: float) -> str:
    """One digit after the point below 100, none above; exact whole numbers have none."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.1f}" if abs(value) < 99.95 else f"{value:,.0f}"


def _below_one_second(seconds: float) -> str:
    for factor, unit in ((1e3, "ms"), (1e6, "µs"), (1e9, "ns")):
        if seconds * factor >= 0.9995:
            return f"{_short(float(f'{seconds * factor:.3g}'))} {unit}"
    return "<1 ns"


def _two_units(n: int, per: int, big: str, step: int, small: str) -> str:
    whole, rest = divmod(n, per * step)
    return f"{whole} {big} {rest} {small}" if rest else f"{whole} {big}"
