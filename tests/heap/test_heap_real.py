"""From a real program through the real walker to what grows, in the words of its source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from leakscope.heap.groups import Groups, read_groups
from leakscope.heap.growth import Growing, Growth, find_growth
from leakscope.heap.links import Said, say
from leakscope.heap.unreached import HIDDEN_CYCLE

HERE = Path(__file__).parent
PROGRAM = HERE / "leaks_in_python.py"
Found = dict[str, tuple[Growing, Said]]


def run(program: Path, folder: Path) -> list[Groups]:
    """The three snapshots that a program takes of itself."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    subprocess.run([sys.executable, str(program), str(folder)], check=True, env=environment)
    found = [read_groups(folder / f"{number}.heap") for number in (1, 2, 3)]
    return [groups for groups in found if groups is not None]


def by_holder(growth: Growth) -> Found:
    found: Found = {}
    for one in growth.growing:
        said = say(one)
        path = " ".join(link.via for link in said.path[: said.grows_at + 1])
        found[path] = (one, said)
    return found


@pytest.fixture(scope="module")
def growth(tmp_path_factory: pytest.TempPathFactory) -> Growth:
    pytest.importorskip("leakscope.observe.heap.walker")
    groups = run(PROGRAM, tmp_path_factory.mktemp("heap"))
    return find_growth(groups, [one.meta.step or 0 for one in groups])


MODULE = f"module {PROGRAM.stem}"
HOOK = "make_hook.<locals>.hook"


HOLDERS = [
    (f"{MODULE} .things", "container", "things", "", 60),
    (f"{MODULE} .by_user", "container", "by_user", "", 20),
    (f"{MODULE} .flags", "container", "flags", "", 60),
    (f"{MODULE} .trainers [x] .losses", "container", "losses", "Trainer", 300),
    ("class Trainer .registry", "container", "registry", "Trainer", 60),
    (f"{MODULE} .window", "container", "window", "", 60),
    (f"{MODULE} .first_holder", "container", "first_holder", "", 60),
    (f"{MODULE} .second_holder", "container", "second_holder", "", 60),
    (f"{MODULE} .remember default of kept in remember()", "container", "kept", "remember", 60),
    (f"{MODULE} .hook closure seen of {HOOK}()", "container", "seen", HOOK, 60),
    (f"{MODULE} .callbacks", "container", "callbacks", "", 60),
    (f"{MODULE} .partials", "container", "partials", "", 60),
    (f"{MODULE} .pairs", "container", "pairs", "", 60),
    (f"{MODULE} .alive", "container", "alive", "", 60),
    (f"{MODULE} .weak", "container", "weak", "", 60),
    (f"{MODULE} .slotted .kept", "container", "kept", "Slotted", 60),
    (f"{MODULE} .head", "chain", "head", "", 60),
    (f"{MODULE} .chain", "container", "chain", "", 60),
    (f"{MODULE} .text", "array", "text", "", 0),
    (f"{MODULE} .cycle", "container", "cycle", "", 60),
    (f"{MODULE} .errors", "container", "errors", "", 60),
    (f"{MODULE} .streams", "container", "streams", "", 60),
    ("local rows in main()", "container", "rows", "main", 60),
    ("local trainer in main() .losses", "container", "losses", "Trainer", 60),
    ("local trainer in main() .grads", "container", "grads", "Trainer", 60),
    ("lru_cache of Detector.anchors", "container", "anchors", "Detector", 60),
    ("local feeder in main() .seen", "container", "seen", "Feeder", 60),
    (f"{MODULE} .local [x]", "container", "", "", 60),
    ("local logger in main() .handlers [x] .buffer", "container", "buffer", "MemoryHandler", 60),
    ("(garbage in reference cycles)", "cycle", "", "", 60),
]
"""Path, kind, name, scope and items grown of each thing that the program leaks."""


@pytest.mark.parametrize(("holder", "kind", "name", "scope", "grown"), HOLDERS)
def test_holder(growth: Growth, holder: str, kind: str, name: str, scope: str, grown: int) -> None:
    """Breaks when one of the ways to keep something is not found, or is called something else."""
    found = by_holder(growth)
    assert holder in found, sorted(found)
    one, said = found[holder]
    held = said.path[said.grows_at]
    assert (one.kind, held.name, held.scope, one.items_grown) == (kind, name, scope, grown)
    if name not in ("", "buffer"):
        assert held.file == str(PROGRAM)


def test_nothing_else(growth: Growth) -> None:
    """Breaks when something that is in flight is told, or much of the growth is not."""
    assert set(by_holder(growth)) == {row[0] for row in HOLDERS}
    total = growth.visible[-1][1] - growth.visible[0][1]
    assert abs(growth.rest_bytes) < total / 50


def test_bytes_and_items(growth: Growth) -> None:
    """Breaks when what one more item keeps is not what it keeps."""
    found = by_holder(growth)
    one, said = found[f"{MODULE} .things"]
    assert said.item == "Big"
    assert [link.via for link in said.path[-2:]] == ["[x]", ".body"]
    assert 1033 + 40 < one.bytes_per_item < 1033 + 40 + 150
    assert found[f"{MODULE} .window"][0].limit == 5000
    assert found[f"{MODULE} .trainers [x] .losses"][0].holders == 5
    table, _ = found[f"{MODULE} .text"]
    assert table.bytes_grown == 60 * 800


@pytest.mark.parametrize(
    ("holder", "payload"),
    [
        (f"{MODULE} .errors", "traceback of ValueError, local batch in fails()"),
        (f"{MODULE} .streams", "local item in generator stream()"),
        (f"{MODULE} .callbacks", "self of bound method Trainer.log()"),
        (f"{MODULE} .partials", "argument of a partial"),
        ("lru_cache of Detector.anchors", "[x]"),
    ],
)
def test_what_is_kept_below(growth: Growth, holder: str, payload: str) -> None:
    """Breaks when the way on to the bytes is not said as code would say it."""
    _, said = by_holder(growth)[holder]
    assert payload in [link.via for link in said.path]


@pytest.fixture(scope="module")
def torch_growth(tmp_path_factory: pytest.TempPathFactory) -> Growth:
    pytest.importorskip("torch")
    groups = run(HERE / "leaks_in_torch.py", tmp_path_factory.mktemp("torch"))
    return find_growth(groups, [one.meta.step or 0 for one in groups])


@pytest.mark.torch
def test_torch(torch_growth: Growth) -> None:
    """Breaks when a graph, a tensor or its storage is told elsewhere than at what keeps it."""
    found = {
        path: (one.kind, one.items_grown) for path, (one, _) in by_holder(torch_growth).items()
    }
    module = "module leaks_in_torch"
    assert found == {
        f"{module} .history": ("container", 30),
        f"{module} .detached": ("container", 30),
        "local meter in main() .total": ("graph", 30),
        "local hidden in main()": ("graph", 30),
        "local seen in main()": ("array", 0),
        HIDDEN_CYCLE: ("native", 30),
    }
    total = torch_growth.visible[-1][1] - torch_growth.visible[0][1]
    assert abs(torch_growth.rest_bytes) < total / 50


@pytest.mark.torch
def test_parts_of_torch(torch_growth: Growth) -> None:
    """Breaks when what a graph has saved counts as something else."""
    found = by_holder(torch_growth)
    graph, said = found["local meter in main() .total"]
    assert said.path[said.grows_at].type == "Tensor [] float32, grad_fn AddBackward0"
    assert graph.parts["nodes"] > 0
    assert graph.parts["saved"] >= 30 * 4 * (32 + 64) * 4
    seen, _ = found["local seen in main()"]
    assert seen.parts == {"tensors": 30 * 4 * 32 * 4}
