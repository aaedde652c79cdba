"""A small language for recordings, so that the reading half is tested on runs nobody has to make.

    recording(tmp_path).steps(200, in_use=line(2 * KIB)).done()

writes a real folder through the real writer: what is tested is what is read.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

import msgspec

from leakscope.model import (
    FORMAT_VERSION,
    REMEDY,
    BlackBox,
    Census,
    Gap,
    Holding,
    Link,
    Machine,
    Mark,
    Moment,
    ProcessEnd,
    ProcessStart,
    Pulses,
    Run,
    Sample,
    SiteTally,
    Snapshot,
    Source,
    Tally,
    Window,
)
from leakscope.record.format import SUPERVISOR_FILE, delta_code, file_of, write_run
from leakscope.record.reader import Recording, load
from leakscope.record.writer import Writer

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
SECOND = 1_000_000_000

Shape = Callable[[int], float]


def line(per_step: float, base: float = 100 * MIB) -> Shape:
    return lambda step: base + per_step * step


def flat(base: float = 100 * MIB) -> Shape:
    return lambda step: base


def step_up(at: int, size: float, base: float = 100 * MIB) -> Shape:
    return lambda step: base + (size if step >= at else 0)


def rising_until(last: int, per_step: float, base: float = 100 * MIB) -> Shape:
    return lambda step: base + per_step * min(step, last)


def wobble(shape: Shape, size: float) -> Shape:
    """The same with a fixed, patternless-looking scatter, so that tests do not depend on luck."""
    return lambda step: shape(step) + size * ((step * 2654435761 % 97) / 48 - 1)


class Maker:
    """Builds one recording; each call adds, `done()` reads it back."""

    def __init__(
        self,
        directory: pathlib.Path,
        *,
        limit_bytes: int = 16 * GIB,
        limit_from: str = "cgroup v2 limit",
        step_ns: int = SECOND // 100,
    ) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.step_ns = step_ns
        self.limit_bytes = limit_bytes
        self._supervisor = Writer(str(directory / SUPERVISOR_FILE))
        machine = Machine(
            host="here",
            system="Linux",
            python="3.11.7",
            cpu_count=2,
            ram_bytes=32 * GIB,
            limit_bytes=limit_bytes,
            limit_from=limit_from,
        )
        header = Run("run", FORMAT_VERSION, "0", 0, 0, ("python", "train.py"), "/there", machine)
        write_run(str(directory), header)

    def at(self, step: float) -> Moment:
        return Moment(wall_ns=int(step * self.step_ns), mono_ns=int(step * self.step_ns))

    def process(
        self,
        pid: int = 1,
        *,
        kind: str = "main",
        parent: int = 0,
        name: str | None = None,
        command: tuple[str, ...] = ("python", "train.py"),
        followed: bool = True,
        began: float = 0,
        **environment: str,
    ) -> Maker:
        start = ProcessStart(
            _name(pid), pid, parent, self.at(began), kind, name, command, None, environment
        )
        self._supervisor.append(start)
        if followed:
            self._writer(pid).append(
                ProcessStart(
                    _name(pid), pid, parent, self.at(0), kind, name, (), "3.11.7", environment
                )
            )
        return self

    def steps(
        self,
        count: int,
        *,
        pid: int = 1,
        source: str = "optimizer",
        first: int = 1,
        every: int = 1,
        collections_every: int | None = None,
        **columns: Shape,
    ) -> Maker:
        """Rows of the agent: `in_use=line(…)`, `rss=…`, `held=…`, `blocks=…`; others by the name
        of their column."""
        names = {"in_use": "in_use_bytes", "rss": "rss_bytes", "held": "held_bytes"}
        names["blocks"] = "blocks_count"
        steps = range(first, count + 1, every)
        rows: dict[str, list[int | None]] = {
            "mono_ns": [step * self.step_ns for step in steps],
            "step": list(steps),
        }
        for name, shape in columns.items():
            rows[names.get(name, name)] = [int(shape(step)) for step in steps]
        rows["collections_count"] = [
            step // collections_every if collections_every else 0 for step in steps
        ]
        coded = {name: delta_code(values) for name, values in rows.items()}
        self._writer(pid).append(Pulses(_name(pid), source, coded, spent_ns=1000))
        return self

    def resident(self, moments: Sequence[float], shape: Shape, *, pid: int = 1) -> Maker:
        """Rows of the supervisor: RSS at moments given in steps."""
        columns = {
            "mono_ns": delta_code(int(moment * self.step_ns) for moment in moments),
            "rss_bytes": delta_code(int(shape(int(moment))) for moment in moments),
        }
        self._supervisor.append(Pulses(_name(pid), "time", columns))
        return self

    def machine(self, moments: Sequence[float], **columns: Shape) -> Maker:
        rows = {"mono_ns": delta_code(int(moment * self.step_ns) for moment in moments)}
        for name, shape in columns.items():
            rows[name] = delta_code(int(shape(int(moment))) for moment in moments)
        self._supervisor.append(Pulses("machine", "time", rows))
        return self

    def sample(self, step: float, *, pid: int = 1, **values: int) -> Maker:
        self._supervisor.append(Sample(self.at(step), _name(pid), "process", values))
        return self

    def mark(
        self, what: str, step: float, *, pid: int = 1, lasted: float = 0, **values: int
    ) -> Maker:
        """It ended at this step, and had begun so many before."""
        moment = msgspec.structs.replace(self.at(step), step=int(step))
        duration_ns = int(lasted * self.step_ns)
        self._writer(pid).append(Mark(moment, _name(pid), what, duration_ns, values))
        return self

    def remedy(self, name: str, step: float, *, pid: int = 1, **returned: int) -> Maker:
        """At the end something was tried, and this much of each counter went."""
        values = {f"{counter} before": 10**9 for counter in returned}
        values |= {f"{counter} after": 10**9 - size for counter, size in returned.items()}
        mark = Mark(self.at(step), _name(pid), REMEDY, values=values, text=name)
        self._writer(pid).append(mark)
        return self

    def roles(self, step: float, *, pid: int = 1, **sizes: int) -> Maker:
        tallies = tuple(
            Tally("torch.Tensor", role.replace("_", " "), 1, size) for role, size in sizes.items()
        )
        self._writer(pid).append(Census(self.at(step), _name(pid), "torch.optimizer", tallies))
        return self

    def gap(self, what: str, why: str, *, pid: int = 1) -> Maker:
        self._writer(pid).append(Gap(what, why, _name(pid)))
        return self

    def looked(
        self,
        first: int,
        last: int,
        shape: Shape,
        *,
        pid: int = 1,
        blocks: float | Shape = 1000,
        source: str = "optimizer",
        devices: dict[str, Shape] | None = None,
        frozen: int = 0,
    ) -> Maker:
        """Three heap snapshots, with what the counters said at each; what they showed is told by
        `holds`."""
        count = blocks if callable(blocks) else flat(blocks)
        for number, step in enumerate((first, (first + last) // 2, last), start=1):
            moment = msgspec.structs.replace(self.at(step), step=step)
            values = {"in_use_bytes": int(shape(step)), "blocks_count": int(count(step))}
            values |= {name: int(one(step)) for name, one in (devices or {}).items()}
            values |= {"gc_enabled": 1, "frozen_count": frozen}
            mark = Mark(moment, _name(pid), "look", values=values, source=source)
            self._writer(pid).append(mark)
            self._writer(pid).append(
                Snapshot(moment, _name(pid), number, "growth", source, "", 1000, 3000, 0, values)
            )
        return self

    def holds(
        self,
        name: str,
        per_step: float,
        each: float,
        *,
        first: int = 20,
        last: int = 60,
        counts: tuple[tuple[int, int], ...] = (),
        pid: int = 1,
        kind: str = "container",
        bound: str = "",
        sites: tuple[SiteTally, ...] = (),
        file: str = "/there/train.py",
        on_device: dict[str, float] | None = None,
        part: str = "tensors",
        blocks: tuple[float, float] = (0.0, 0.0),
        below: tuple[Link, ...] = (),
    ) -> Maker:
        """A list that grows under this name in `fit()`, as the last look saw it; or something in
        it, which is reached by the links `below`."""
        path = (
            Link(f"local {name} in fit()", "list", "local", name, file, "fit", 9),
            *below,
            Link("[x]", "Tensor [4] float32", "item"),
        )
        counts = counts or ((first, int(first * per_step)), (last, int(last * per_step)))
        self._writer(pid).append(
            Holding(
                self.at(last),
                _name(pid),
                kind,
                path,
                len(below),
                "Tensor [4] float32",
                counts,
                each,
                parts={part: each},
                blocks_each=blocks[0],
                in_blocks=blocks[1],
                on_device=on_device or {},
                bound=bound,
                sites=sites,
            )
        )
        return self

    def source(self, text: str, *, file: str = "/there/train.py", pid: int = 1) -> Maker:
        self._writer(pid).append(Source(_name(pid), file, text))
        return self

    def window(
        self, step: int, *sites: SiteTally, pid: int = 1, steps: int = 6, tool: str = "memray"
    ) -> Maker:
        moment = msgspec.structs.replace(self.at(step), step=step)
        self._writer(pid).append(Window(moment, _name(pid), tool, steps, sites))
        return self

    def device(self, step: int, *, pid: int = 1, device: str = "cuda:0", **values: int) -> Maker:
        """A sample of a device from inside: allocated, reserved, free and total."""
        moment = msgspec.structs.replace(self.at(step), step=step)
        values = {f"{name}_bytes": size for name, size in values.items()}
        self._writer(pid).append(Sample(moment, _name(pid), device, values))
        return self

    def driver(self, step: int, uuid: str, **values: int) -> Maker:
        """A sample of a device by its driver; `process_4711=…` for each process on it."""
        values = {f"{name}_bytes": size for name, size in values.items()}
        self._supervisor.append(Sample(self.at(step), "machine", uuid, values))
        return self

    def box(self, box: BlackBox, *, pid: int = 1) -> Maker:
        self._writer(pid).append(msgspec.structs.replace(box, process=_name(pid)))
        return self

    def counted(self, step: int, device: str, *, pid: int = 1, **sizes: int) -> Maker:
        """A census of a device."""
        tallies = tuple(
            Tally("torch.Tensor", role.replace("_", " "), 1, size) for role, size in sizes.items()
        )
        self._writer(pid).append(Census(self.at(step), _name(pid), device, tallies))
        return self

    def ended(
        self, step: float, *, pid: int = 1, code: int | None = 0, signal: int | None = None
    ) -> Maker:
        if signal is not None:
            code = None
        self._supervisor.append(ProcessEnd(self.at(step), _name(pid), code, signal, {}))
        return self

    def done(self) -> Recording:
        return load(str(self.directory))

    def _writer(self, pid: int) -> Writer:
        return Writer(str(self.directory / file_of(_name(pid))))


def recording(directory: pathlib.Path, **settings: int) -> Maker:
    """A recording with one main process."""
    return Maker(directory, **settings).process()  # type: ignore[arg-type]


def _name(pid: int) -> str:
    return f"{pid}-7"
