"""Templates, script and style in, one page that needs nothing else out.

Every string of a report comes from somewhere else: file names, types, source, exceptions. Three
things keep them text. Each is cleaned and cut when it is printed, and escaped by the template
engine; the numbers for the charts travel as JSON in which no `<` is left; and the page's own policy
lets no script run but ours, named by its hash, and nothing be fetched from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leakscope import text

LONGEST = 2000
"""Characters of one string that a page shows: a `repr` of 10 MB is nothing to read."""

_STYLES = ("uplot.css", "page.css")
_SCRIPTS = ("uplot.js", "words.js", "chart.js", "memory.js", "icicle.js", "page.js")
_IN_JSON = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def page(template: str, words: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """The template filled with words, and with the data that the charts are drawn from."""
    script, style = _joined(_SCRIPTS), _joined(_STYLES)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(words, policy=policy, script=Markup(script), style=Markup(style), data=_json(data))
        .rstrip("\n")
        + "\n"
    )


def shown(value: Any) -> Any:
    """What the page prints for a value: strings on one line, cut, with nothing hidden in them."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return text.clean(text.shorten(value, LONGEST))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("leakscope.render.html", "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "size": text.size,
        "count": text.count,
        "percent": text.percent,
        "duration": text.duration,
        "sentence": lambda words: text.sentence(text.shorten(words, LONGEST)),
        "plural": text.plural,
    }
    return environment


@lru_cache(maxsize=2)
def _joined(names: tuple[str, ...]) -> str:
    """Files of `assets/`, one after the other."""
    folder = files("leakscope.render.html").joinpath("assets")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _json(data: Mapping[str, Any]) -> Markup:
    """JSON that ends no element, whatever is in it."""
    encoded = msgspec.json.encode(_plain(data)).decode()
    for character, escape in _IN_JSON.items():
        encoded = encoded.replace(character, escape)
    return Markup(encoded)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {shown(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not all(isinstance(one, int) for one in value):
        return [_plain(one) for one in value]
    return value
