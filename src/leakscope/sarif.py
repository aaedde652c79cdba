"""SARIF 2.1.0, the parts that leakscope uses: what code hosts and editors show beside a line.

`leakscope lint` says with it what the source shows, `leakscope report` what a run has proven; a
rule has one number and one page in both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PAGES = "docs/rules.md"

Part = dict[str, Any]


def document(
    version: str, rules: Sequence[Part], results: Sequence[Part], notes: Sequence[Part]
) -> str:
    """One run of leakscope. Results refer to their rules by number, in whatever order."""
    places = {one["id"]: place for place, one in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "leakscope", "version": version, "rules": list(rules)}},
        "results": [{**one, "ruleIndex": places[one["ruleId"]]} for one in results],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(notes)}],
        "columnKind": "unicodeCodePoints",
    }
    whole = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    # A file name that is no valid text reaches us with lone surrogates, which JSON cannot hold.
    return (
        json.dumps(whole, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
        + "\n"
    )


def rule(code: str, name: str, summary: str, advice: str) -> Part:
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": summary},
        "help": {"text": advice},
        "helpUri": f"{_PAGES}#{code.lower()}-{name}",
    }


def result(code: str, level: str, says: str, places: Sequence[Part], **more: Any) -> Part:
    """`level`: error, warning or note."""
    return {
        "ruleId": code,
        "level": level,
        "message": {"text": says},
        "locations": list(places),
        **more,
    }


def notification(says: str, file: str | None = None) -> Part:
    """What the tool has to say about itself: a file it could not read, a blind spot."""
    note: Part = {"level": "warning", "message": {"text": says}}
    return note if file is None else {**note, "locations": [_located(file)]}


def place(file: str, line: int, column: int | None = None, says: str = "") -> Part:
    region = {"startLine": max(line, 1)} | ({} if column is None else {"startColumn": column})
    located = _located(file)
    located["physicalLocation"]["region"] = region
    return located | ({"message": {"text": says}} if says else {})


def _located(file: str) -> Part:
    # Spaces, percent signs and the like would end or change a URI.
    name = quote(_encoded(file.replace(os.sep, "/")), safe="/:@!$&'()*+,;=~")
    return {"physicalLocation": {"artifactLocation": {"uri": name}}}


def _encoded(file: str) -> bytes:
    """The bytes of a file's name, which need not be text."""
    try:
        return file.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return file.encode("utf-8", "backslashreplace")
