"""A crowd of processes as a suspect: what starts them, and where that is written."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping

from leakscope.attribute.fingerprint import fingerprint
from leakscope.attribute.suspect import Suspect
from leakscope.attribute.suspects import Explained
from leakscope.judge.crowd import Crowd
from leakscope.model import Holding, HoldingKind, Link, Moment, Site
from leakscope.record.reader import Recording

KIND = HoldingKind.PROCESSES

_STARTS_PROGRAM = ("Popen", "create_subprocess_exec", "create_subprocess_shell", "popen", "spawnv")
_STARTS_PYTHON = ("Process", "Pool", "ProcessPoolExecutor", "DataLoader", "fork", "spawn")


def explain_crowd(recording: Recording, crowd: Crowd, sources: Mapping[str, str]) -> Explained:
    """All of its growth, under the line that starts its processes, if there is only one."""
    command = recording.starts[crowd.children[-1]].command
    program = os.path.basename(command[0]) if command else "process"
    how = recording.lineage().started_by(crowd.children[-1])
    parent = " ".join(map(os.path.basename, recording.starts[crowd.parent].command[:2]))
    path = (
        Link("children of", parent or "process", "process"),
        Link("[x]", f"process {program}", "item", name=program),
    )
    holding = Holding(
        at=Moment(0, 0),
        process=crowd.process,
        kind=KIND,
        path=path,
        grows_at=0,
        item=f"process {program}",
        counts=crowd.counts,
        bytes_each=crowd.bytes_each,
    )
    starter = _starter(sources, _STARTS_PROGRAM if how == "exec" else _STARTS_PYTHON)
    suspect = Suspect(
        holding=holding,
        share=1.0,
        count_per_step=crowd.per_step,
        site=starter,
        keeper=starter,
        named=None,
        fingerprint=fingerprint(path, 1, KIND),
        is_bounded="",
        snapshots=len(crowd.counts),
    )
    return Explained(crowd.process, (suspect,))


def _starter(sources: Mapping[str, str], names: tuple[str, ...]) -> Site | None:
    """The one call in the program's files that starts such processes; of several, none is told."""
    found = [site for file, text in sources.items() for site in _calls(file, text, names)]
    return found[0] if len(found) == 1 else None


def _calls(file: str, text: str, names: tuple[str, ...]) -> Iterator[Site]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.splitlines()
    functions = {
        node: function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in names:
            source = lines[node.lineno - 1].strip()
            yield Site(file, node.lineno, functions.get(node), source)


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
