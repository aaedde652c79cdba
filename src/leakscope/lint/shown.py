"""Hits as text, as JSON, and as SARIF 2.1.0 for code hosts and editors."""

from __future__ import annotations

import json
import os

from leakscope import text
from leakscope.lint.hit import LIKELY, Hit
from leakscope.lint.reading import load_checks
from leakscope.lint.running import Outcome

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PAGES = "docs/rules.md"


def to_text(outcome: Outcome) -> str:
    """One hit on two lines: where and what, and what to do; a sentence with the sum at the end."""
    lines = []
    for hit in outcome.hits:
        place = text.clean(f"{hit.file}:{hit.line}:{hit.column}")
        lines.append(f"{place}: {hit.rule} {hit.name} ({hit.certainty}): {text.clean(hit.says)}")
        lines.append(f"    {hit.suggestion}")
    lines += [f"{text.clean(one.file)}: not read: {text.clean(one.why)}" for one in outcome.unread]
    lines.append(_sum(outcome))
    return "\n".join(lines) + "\n"


def _sum(outcome: Outcome) -> str:
    files = f"{outcome.files:,} file{'' if outcome.files == 1 else 's'}"
    if not outcome.files:
        return "no Python file was read"
    if not outcome.hits:
        return f"no suspicion in {files}"
    count = len(outcome.hits)
    kinds = f"{count:,} suspicion{'' if count == 1 else 's'}"
    return f"{kinds} in {files}; `leakscope run` shows whether memory really grows there"


def to_json(outcome: Outcome) -> str:
    document = {
        "hits": [hit._asdict() for hit in outcome.hits],
        "unread": [one._asdict() for one in outcome.unread],
        "files": outcome.files,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def to_sarif(outcome: Outcome, version: str) -> str:
    checks = load_checks()[0]
    places = {check.code: place for place, check in enumerate(checks)}
    rules = [
        {
            "id": check.code,
            "name": check.name,
            "shortDescription": {"text": check.summary},
            "help": {"text": check.suggestion},
            "helpUri": f"{_PAGES}#{check.code.lower()}-{check.name}",
        }
        for check in checks
    ]
    unread = [
        {
            "level": "warning",
            "message": {"text": f"{one.file} was not read: {one.why}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(one.file)}}}],
        }
        for one in outcome.unread
    ]
    run = {
        "tool": {"driver": {"name": "leakscope", "version": version, "rules": rules}},
        "results": [_result(hit, places) for hit in outcome.hits],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": unread}],
        "columnKind": "unicodeCodePoints",
    }
    document = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _result(hit: Hit, places: dict[str, int]) -> dict[str, object]:
    region = {"startLine": hit.line, "startColumn": hit.column}
    place = {"artifactLocation": {"uri": _uri(hit.file)}, "region": region}
    return {
        "ruleId": hit.rule,
        "ruleIndex": places[hit.rule],
        "level": "warning" if hit.certainty == LIKELY else "note",
        "message": {"text": f"{hit.says} ({hit.certainty}); {hit.suggestion}"},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    return file.replace(os.sep, "/")
