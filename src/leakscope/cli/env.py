"""Say what of this machine bears on memory.

leakscope env                 this machine, and the Python leakscope runs in
leakscope env RUN             the machine of a recording, and what the program had loaded
leakscope env --json          the same for another program; leakscope compare reads recordings
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

import msgspec

from leakscope import text
from leakscope.model import Machine
from leakscope.observe.counters.native_heap import open_native_heap
from leakscope.observe.machine.describe import describe_machine
from leakscope.observe.machine.installed import packages_in
from leakscope.observe.machine.loaded import libraries_in, mapped_files

_BYTES = "_bytes"


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RUN", nargs="?", help="folder of a recording")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    machine = _recorded(options.recording) if options.recording else here()
    if options.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(machine), indent=2).decode())
        sys.stdout.write("\n")
        return 0
    for title, rows in sections(machine):
        print(title)
        for name, value in rows:
            print(f"  {name:28} {text.clean(value)}")
    return 0


def here() -> Machine:
    """This machine. The libraries are those this Python has loaded, and those that packages bring
    along and would load."""
    machine = describe_machine(has_builds=True)
    brought = list(_brought_along())
    return msgspec.structs.replace(
        machine,
        allocator=open_native_heap().allocator,
        libraries=libraries_in([*mapped_files(), *brought]),
    )


def _recorded(path: str) -> Machine:
    from leakscope.analysis import load
    from leakscope.summarise.machine import machine_of

    return machine_of(load(path))


def _brought_along() -> Iterator[str]:
    for package in packages_in(path for path in sys.path if path).values():
        root, name = os.path.dirname(package.folder), package.name.replace("-", "_")
        for folder in (f"{root}/{name}/lib", f"{root}/{name}.libs"):
            if os.path.isdir(folder):
                yield from (os.path.join(folder, one) for one in os.listdir(folder))


def sections(machine: Machine) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What is known, under a few headings."""
    ram, limit = machine.ram_bytes, machine.limit_bytes
    yield (
        "machine",
        [
            ("host", machine.host),
            ("system", machine.system),
            ("cores for this process", str(machine.cpu_count)),
            ("RAM", text.size(ram) if ram is not None else text.UNKNOWN),
            (
                "memory limit",
                f"{text.size(limit)} ({machine.limit_from})" if limit is not None else "none seen",
            ),
            ("accelerators", ", ".join(machine.accelerators) or "none seen"),
        ],
    )
    yield (
        "allocator",
        [
            ("C library", machine.libc or text.UNKNOWN),
            ("loaded", machine.allocator or text.UNKNOWN),
        ],
    )
    rows = list(machine.allocator_settings.items())
    yield "settings in the environment", rows or [("none", "of those that bear on memory")]
    yield "facts", [(name, _shown(name, value)) for name, value in machine.facts.items()]
    if machine.libraries:
        yield "libraries", list(machine.libraries.items())
    versions = [("python", machine.python)]
    versions += [
        (name, " · ".join(filter(None, (version, machine.builds.get(name, "")))))
        for name, version in machine.packages.items()
    ]
    yield "packages", versions


def _shown(name: str, value: str) -> str:
    return text.size(int(value)) if name.endswith(_BYTES) and value.isdecimal() else value
