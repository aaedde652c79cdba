"""Time and peak memory of analyzing three heap snapshots of a large process.

    python bench/heap_analysis.py [--python PYTHON] [--modules torch,transformers,lightning]
    python bench/heap_analysis.py --files run/heap/1-1.heap run/heap/1-2.heap run/heap/1-3.heap

The process imports the modules and keeps 4,000 records more for each snapshot. `PYTHON` needs the
modules only: leakscope and msgspec are lent to it. Each analysis is a process of its own, as it is
in the supervisor. Seconds are of CPU time: other processes of the machine do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_PROGRAM = """
import sys
{imports}
from leakscope.observe.heap.snapshot import Moment, take_snapshot
class Record:
    def __init__(self, number):
        self.number, self.name = number * 1000, f"n{{number}}"
        self.values = number * 7000, [number * 9000]
history = []
for number in (1, 2, 3):
    history.extend(Record(n) for n in range(4000))
    path = f"{{sys.argv[1]}}/{{number}}.heap"
    taken = take_snapshot(path, Moment("1-1", number, 100 * number, "api"), [])
    print(taken.objects, taken.edges, round(taken.spent_ns / 1e6))
"""

_ANALYSIS = """
import json, resource, sys, time
from pathlib import Path
began = time.process_time()
from leakscope.heap.groups import group_objects
from leakscope.heap.growth import find_growth
from leakscope.heap.links import say
from leakscope.heap.snapshot import read_snapshot
import_s = time.process_time() - began
at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read_s = group_s = 0.0
groups, objects, edges = [], 0, 0
for file in sys.argv[1:]:
    began = time.process_time()
    snapshot = read_snapshot(Path(file))
    read_s += time.process_time() - began
    began = time.process_time()
    groups.append(group_objects(snapshot))
    group_s += time.process_time() - began
    objects, edges = snapshot.count, len(snapshot.targets)
    del snapshot
began = time.process_time()
growth = find_growth(groups, [one.meta.step or 0 for one in groups])
growth_s = time.process_time() - began
print(json.dumps({
    "objects": objects, "edges": edges, "groups": len(groups[-1]), "import_s": import_s,
    "read_s": read_s, "group_s": group_s, "growth_s": growth_s,
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "start_mb": at_start / 1024,
    "found": [" ".join(link.via for link in say(one).path) for one in growth.growing[:3]],
}))
"""


def take(python: str, modules: list[str], folder: Path) -> list[Path]:
    """Three snapshots of a process that has imported the modules."""
    import msgspec

    lent = folder / "lent"
    lent.mkdir()
    (lent / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(imports="\n".join(f"import {name}" for name in modules)))
    path = os.pathsep.join([str(ROOT / "src"), str(lent)])
    subprocess.run(
        [python, str(program), str(folder)], check=True, env={**os.environ, "PYTHONPATH": path}
    )
    return [folder / f"{number}.heap" for number in (1, 2, 3)]


def analyze(files: list[Path]) -> dict[str, object]:
    """The figures of one analysis, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _ANALYSIS, *map(str, files)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    figures: dict[str, object] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--modules", default="torch,transformers,lightning")
    parser.add_argument("--files", nargs=3, type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = options.files or take(options.python, options.modules.split(","), Path(folder))
        size = sum(file.stat().st_size for file in files)
        print(f"{size / 1e6:.0f} MB in three files")
        for _ in range(options.rounds):
            figures = analyze(files)
            seconds = [figures[name] for name in ("read_s", "group_s", "growth_s")]
            total = sum(float(str(one)) for one in seconds)
            shown = {k: round(v, 2) if isinstance(v, float) else v for k, v in figures.items()}
            print(f"{total:.2f} s of CPU time in all:", shown)


if __name__ == "__main__":
    main()
