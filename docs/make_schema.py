"""Writes docs/report-schema.json from the model: `python docs/make_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from leakscope.model import REPORT_SCHEMA, Report

TARGET = Path(__file__).parent / "report-schema.json"


def schema() -> str:
    """The JSON Schema of report.json, as text."""
    (reference,), components = msgspec.json.schema_components(
        [Report], ref_template="#/$defs/{name}"
    )
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"leakscope report, schema {REPORT_SCHEMA}",
        "description": (
            "What `leakscope report RUN --format json` writes. Fields may be added within one "
            "schema number; a field is never removed or given another meaning. A number is null "
            "where it is unknown or has no bound."
        ),
        **reference,
        "$defs": _with_null(components),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _with_null(node: Any) -> Any:
    """Numbers that may be NaN in the model are null in JSON, which has no NaN."""
    if isinstance(node, list):
        return [_with_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    if {"type": "null"} in node.get("anyOf", ()):
        return node
    if node.get("type") == "number":
        return {**node, "type": ["number", "null"]}
    return {key: _with_null(value) for key, value in node.items()}


if __name__ == "__main__":
    TARGET.write_text(schema(), encoding="utf-8")
    print(f"wrote {TARGET}")
