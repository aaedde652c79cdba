"""How near memory is to its limit, on devices and in the host; and a snapshot just before it.

Now and then a sample of each device; at 95 % of a limit, or when a device's allocator fails, one
heap snapshot, written at once. The program's own exception is not touched, and follows.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from time import monotonic_ns
from typing import NamedTuple

from leakscope.model import BlackBox, Gap, Moment, Occupant, Sample
from leakscope.observe.allocations.device_lines import frames_of
from leakscope.observe.devices.door import Block, Door, Snapshot, Stack
from leakscope.observe.devices.rows import DeviceRows
from leakscope.observe.guard import guarded
from leakscope.observe.machine.host_use import HostUse
from leakscope.record.writer import Writer

NEARLY_FULL = 0.95
_BELOW_AGAIN = 0.9
_MOST_BOXES = 4
_SAMPLE_NS = 50_000_000
_SHARE_OF_AGE = 100
_LONGEST_NS = 2_000_000_000
_HOST_NS, _FIRST_HOST_NS = 20_000_000, 250_000_000
_HOST_SHARE_OF_AGE, _LONGEST_HOST_NS = 100, 200_000_000
"""Finding the limit takes some ms: not in the first steps, which may be all there are. Asking takes
16 to 40 µs, a third of what one of eight workers spent on a row; a fifth of a second is left
before a program that takes 10 GiB/s has the last 2 GiB."""
_POOLS_PAUSE, _POOLS_NS, _POOLS_SHARE_OF_AGE = 400, 200_000_000, 25
"""Reading the pools of CUDA graphs: after so many times its cost, at least so far apart."""

_MOST_UNMATCHED = 24
"""Kinds of blocks without a tensor that are listed, the largest first."""

HOST = "host"
GRAPH_POOL, WORKSPACE, UNMATCHED = "graph pool", "workspace", "none"
_HOLDERS = {WORKSPACE: "cuBLAS or similar, by its size"}
_WORKSPACES = frozenset({32 << 20, (4096 * 2 + 16 * 8) << 10, 1 << 20})
"""Bytes that PyTorch asks for on behalf of cuBLAS and cuBLASLt, once a stream."""


class TakenNow(NamedTuple):
    """A snapshot outside the schedule."""

    file: str
    device_addresses: frozenset[int] = frozenset()
    """Where the tensors in it lie on devices."""


class NearLimit:
    """The limits of one process."""

    def __init__(
        self,
        process: str,
        writer: Writer,
        now: Callable[[], Moment],
        take_snapshot: Callable[[str], TakenNow],
    ) -> None:
        self._now = now
        self._take_snapshot = take_snapshot
        self._door: Door | None = None
        self._rows: DeviceRows | None = None
        self._described: set[int] = set()
        self.on_device: Callable[[str, str], None] | None = None
        """Called with the name of each device that comes into use, and what the driver calls it."""
        self._host = HostUse()
        self._has_observer = False
        self.reset(process, writer)

    def reset(self, process: str, writer: Writer) -> None:
        """At the start, and in a forked child."""
        self._process, self._writer = process, writer
        self._busy = allocate_lock()
        self._boxes = 0
        self._is_high: set[str] = set()
        self._began_ns = monotonic_ns()
        self._next_device_ns = self._next_host_ns = self._next_pools_ns = 0
        self._described.clear()
        self._is_closed = False

    def watch_devices(self, door: Door, rows: DeviceRows) -> None:
        self._door, self._rows = door, rows

    def close(self) -> None:
        """An observer cannot be taken back; it falls silent."""
        door = self._door
        if not self._is_closed and door is not None and (why := door.why_shut()):
            self._writer.append(Gap("GPU memory", why, self._process))
        self._is_closed = True

    def on_row(self, now_ns: int, is_disturbed: bool = False) -> None:
        """Called after every row; nearly always there is nothing to do. While a window is open only
        the host is watched: its few steps are to be seen one by one."""
        if not self._next_host_ns:
            self._next_host_ns = now_ns + _FIRST_HOST_NS
        elif now_ns >= self._next_host_ns:
            pause_ns = (now_ns - self._began_ns) // _HOST_SHARE_OF_AGE
            self._next_host_ns = now_ns + min(max(_HOST_NS, pause_ns), _LONGEST_HOST_NS)
            self._check_host()
        is_due = now_ns >= self._next_device_ns and not is_disturbed
        if is_due and self._rows is not None and self._rows.used:
            pause_ns = (now_ns - self._began_ns) // _SHARE_OF_AGE
            self._next_device_ns = now_ns + min(max(_SAMPLE_NS, pause_ns), _LONGEST_NS)
            self._sample_devices(now_ns)

    # ── devices ──

    def _sample_devices(self, now_ns: int) -> None:
        assert self._door is not None
        assert self._rows is not None
        if not self._has_observer:
            self._has_observer = True
            observe = guarded(self._on_out_of_memory, "black box", self._gap)
            self._door.on_out_of_memory(observe)
        pools = self._read_pools(now_ns)
        for index in self._rows.used:
            device = f"{self._door.kind}:{index}"
            if index not in self._described:
                self._described.add(index)
                if self.on_device is not None:
                    self.on_device(device, self._door.describe(index))
            values = self._door.details(index)
            if pools is not None:
                values["pool_bytes"] = pools.pool_bytes(device)
            self._writer.append(Sample(self._now(), self._process, device, values))
            limit, used = full_at(values)
            if self._rises_over(device, used, limit):
                self._write_box(device, "nearly full", {**values, "limit_bytes": limit})

    def _read_pools(self, now_ns: int) -> Snapshot | None:
        """What CUDA graphs have reserved, as often as its price allows: 0.4 ms for a few hundred
        blocks, 75 ms for 100,000."""
        assert self._door is not None
        if now_ns < self._next_pools_ns:
            return None
        began_ns = monotonic_ns()
        snapshot = self._door.snapshot()
        cost_ns = monotonic_ns() - began_ns
        age_ns = (now_ns - self._began_ns) // _POOLS_SHARE_OF_AGE
        self._next_pools_ns = now_ns + max(_POOLS_PAUSE * cost_ns, _POOLS_NS, age_ns)
        return snapshot

    def _on_out_of_memory(self, index: int, wanted: int, total: int, free: int) -> None:
        """Before the program gets its exception, in whichever thread asked for too much."""
        if self._is_closed or self._door is None:
            return
        values = self._door.details(index) | {"wanted_bytes": wanted}
        values["limit_bytes"] = full_at(values)[0]
        self._write_box(f"{self._door.kind}:{index}", "out of memory", values)

    # ── the host ──

    def _check_host(self) -> None:
        use = self._host.read()
        if use is not None and self._rises_over(HOST, use.used_bytes, use.limit_bytes):
            self._write_box(HOST, "nearly full", use._asdict())

    # ── the box ──

    def _rises_over(self, where: str, used: int, limit: int) -> bool:
        """True once when it passes the mark; and again after it has fallen well below."""
        if used >= NEARLY_FULL * limit:
            is_new = where not in self._is_high
            self._is_high.add(where)
            return is_new
        if used < _BELOW_AGAIN * limit:
            self._is_high.discard(where)
        return False

    def _write_box(self, where: str, why: str, values: dict[str, int]) -> None:
        if self._boxes >= _MOST_BOXES or not self._busy.acquire(blocking=False):
            return
        try:
            self._boxes += 1
            began_ns = monotonic_ns()
            taken = self._take_snapshot(why)
            unmatched = self._unmatched(where, taken.device_addresses)
            self._writer.append(
                BlackBox(
                    at=self._now(),
                    process=self._process,
                    where=where,
                    why=why,
                    values=values,
                    occupants=unmatched,
                    snapshot=taken.file,
                    spent_ns=monotonic_ns() - began_ns,
                )
            )
        finally:
            self._busy.release()

    def _unmatched(self, where: str, known: frozenset[int]) -> tuple[Occupant, ...]:
        """Blocks of a device's allocator that no tensor in the snapshot lies in, by their kind and
        the line that asked for them: pools of CUDA graphs, workspaces, what only C++ holds."""
        if where == HOST or self._door is None or (snapshot := self._door.snapshot()) is None:
            return ()
        tallies: dict[tuple[str, Stack], tuple[int, int]] = {}
        for block in snapshot.blocks:
            if block.device == where and block.address not in known:
                key = (_role_of(block), block.stack)
                count, size = tallies.get(key, (0, 0))
                tallies[key] = (count + 1, size + block.bytes)
        found = sorted(tallies.items(), key=lambda one: -one[1][1])[:_MOST_UNMATCHED]
        return tuple(
            Occupant(role, "", _HOLDERS.get(role, ""), count, size, frames_of(stack))
            for (role, stack), (count, size) in found
        )

    def _gap(self, gap: Gap) -> None:
        self._writer.append(Gap(gap.what, gap.why, self._process))


def _role_of(block: Block) -> str:
    if block.is_in_graph_pool:
        return GRAPH_POOL
    return WORKSPACE if block.bytes in _WORKSPACES else UNMATCHED


def full_at(values: dict[str, int]) -> tuple[int, int]:
    """What the allocator may have in use at most, and what it has.

    Others' memory on the device, and contexts, are not ours to take; freed blocks that are held for
    reuse are."""
    total, free = values["total_bytes"], values["free_bytes"]
    others = max(total - free - values["reserved_bytes"], 0)
    return min(total - others, values.get("allowed_bytes", total)), values["allocated_bytes"]
