"""What a code host is told at the end of a run in its CI, in the form it shows beside the code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from leakscope import text
from leakscope.model import Report
from leakscope.render import render
from leakscope.render.relocate import relocated
from leakscope.render.to_terminal import one_line

GITLAB_FILE = "leakscope-code-quality.json"
"""Our own name: another tool's report of the same kind must not be written over."""


def tell_host(
    report: Report,
    directory: str,
    environment: Mapping[str, str],
    stream: TextIO,
    *,
    is_told: bool,
) -> None:
    """Annotations where the variables of GitHub or GitLab are set, and one line for any CI's log.

    Args:
        directory: the program's working directory, where the paths of the report start.
        is_told: the one line has been written already (`--quiet`).
    """
    if environment.get("GITHUB_ACTIONS") == "true":
        # Both output streams are read for commands; stdout is the program's.
        stream.write(render(_from_checkout(report, directory, environment), "github"))
        if summary := environment.get("GITHUB_STEP_SUMMARY"):
            _write(summary, "a", render(report, "markdown") + "\n", stream)
    if environment.get("GITLAB_CI") == "true":
        checkout = environment.get("CI_PROJECT_DIR", directory)
        path = os.path.join(checkout, GITLAB_FILE)
        if _write(
            path, "w", render(_from_checkout(report, directory, environment), "gitlab"), stream
        ):
            stream.write(f"leakscope: code quality report in {text.clean(path)}\n")
    if environment.get("CI", "false").lower() not in {"", "0", "false"} and not is_told:
        stream.write(f"{one_line(report)}\n")
    stream.flush()


def _from_checkout(report: Report, directory: str, environment: Mapping[str, str]) -> Report:
    checkout = environment.get("GITHUB_WORKSPACE") or environment.get("CI_PROJECT_DIR")
    return relocated(report, directory, checkout) if checkout else report


def _write(path: str, mode: str, content: str, stream: TextIO) -> bool:
    """True if it could be written; a full disk of a CI job must not change how the run ends."""
    try:
        with open(path, mode, encoding="utf-8", errors="backslashreplace") as file:
            file.write(content)
    except OSError as error:
        why = error.strerror or str(error)
        stream.write(f"leakscope: {text.clean(path)} could not be written: {text.clean(why)}\n")
        return False
    return True
