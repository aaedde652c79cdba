"""Hits as text, as JSON, and as SARIF 2.1.0 for code hosts and editors."""

from __future__ import annotations

import json

from leakscope import sarif, text
from leakscope.lint.hit import LIKELY
from leakscope.lint.reading import load_checks
from leakscope.lint.running import Outcome


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
    rules = [
        sarif.rule(check.code, check.name, check.summary, check.suggestion) for check in checks
    ]
    unread = [
        sarif.notification(f"{one.file} was not read: {one.why}", one.file)
        for one in outcome.unread
    ]
    results = [
        sarif.result(
            hit.rule,
            "warning" if hit.certainty == LIKELY else "note",
            f"{hit.says} ({hit.certainty}); {hit.suggestion}",
            [sarif.place(hit.file, hit.line, hit.column)],
        )
        for hit in outcome.hits
    ]
    return sarif.document(version, rules, results, unread)
