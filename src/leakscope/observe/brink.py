"""How near memory is to its end, on devices and in the host; and what is in it then.

Now and then a sample of each device; at 95 % of a limit, or when a device's allocator fails, one
look at everything that is in memory, written down at once: the black box. The program's own
exception is not touched, and follows.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING

from leakscope.model import LOOKS, BlackBox, Census, Gap, Mark, Moment, Sample
from leakscope.observe.budget import Budget
from leakscope.observe.device_rows import DeviceRows
from leakscope.observe.devices import Door, Snapshot
from leakscope.observe.guard import guarded
from leakscope.observe.host_use import HostUse
from leakscope.record.writer import Writer

if TYPE_CHECKING:
    from leakscope.observe.occupants import Occupancy

NEARLY_FULL = 0.95
_BELOW_AGAIN = 0.9
_LOOK_NS = 180_000_000
"""A black box takes no longer: 200 ms of a program that is about to end are well spent."""
_MOST_BOXES = 4
_SAMPLE_NS = 50_000_000
_SHARE_OF_AGE = 100
_LONGEST_NS = 2_000_000_000
_HOST_NS, _FIRST_HOST_NS = 20_000_000, 250_000_000
_HOST_SHARE_OF_AGE, _LONGEST_HOST_NS = 100, 200_000_000
"""Finding the limit takes some ms: not in the first steps, which may be all there are. Asking takes
16 to 40 µs, a third of what one of eight workers spent on a row; a fifth of a second is left
before a program that takes 10 GiB/s has the last 2 GiB."""
_FIRST_CENSUS_NS = 1_000_000_000
"""After a device has come into use."""
_POOLS_PAUSE, _POOLS_NS, _POOLS_SHARE_OF_AGE = 400, 200_000_000, 25
_CENSUS_AGES = 10
"""The next one when the device has been in use so many times as long: 0.1 s at 1 s, at 10 s and at
100 s are below 1 % from the first minute on."""
_USUAL_CENSUS_NS = 80_000_000.0
_CENSUS_CREDIT_S = 30.0
"""More of it for the first one: a run whose memory rose has spent what there was on looks."""

HOST = "host"


class Brink:
    """The limits of one process."""

    def __init__(
        self,
        process: str,
        writer: Writer,
        now: Callable[[], Moment],
        budget: Callable[[], Budget],
        tell_sources: Callable[[], None],
    ) -> None:
        self._now = now
        self._budget = budget
        self._tell_sources = tell_sources
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
        self._next_device_ns = self._next_host_ns = self._in_use_ns = 0
        self._next_census_ns = self._next_pools_ns = 0
        self._census_ns = _USUAL_CENSUS_NS
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
        # What a program in its first steps has is not yet what it runs with.
        if not self._next_census_ns:
            self._in_use_ns, self._next_census_ns = now_ns, now_ns + _FIRST_CENSUS_NS
        elif now_ns >= self._next_census_ns:
            self._take_census(now_ns)

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

    def _take_census(self, now_ns: int) -> None:
        assert self._door is not None
        assert self._rows is not None
        budget = self._budget()
        if not budget.allows(self._census_ns, now_ns, _CENSUS_CREDIT_S):
            return
        self._next_census_ns = now_ns + (_CENSUS_AGES - 1) * (now_ns - self._in_use_ns)
        from leakscope.observe.inquiry import collector_at_rest
        from leakscope.observe.occupants import look_at_device, tallies_of

        began_ns = monotonic_ns()
        with collector_at_rest():
            snapshot = self._door.snapshot()
            blocks = snapshot.blocks if snapshot is not None else []
            for index in self._rows.used:
                device = f"{self._door.kind}:{index}"
                found = look_at_device(device, blocks, began_ns + _LOOK_NS, paths=0)
                self._writer.append(Census(self._now(), self._process, device, tallies_of(found)))
        self._census_ns = float(monotonic_ns() - began_ns)
        budget.pay(int(self._census_ns), int(self._census_ns))
        values = {"longest_ns": budget.longest_ns, "spent_ns": budget.spent_ns}
        self._writer.append(
            Mark(self._now(), self._process, LOOKS[1], int(self._census_ns), values, "census")
        )

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
            found = self._look(where, began_ns + _LOOK_NS)
            self._writer.append(
                BlackBox(
                    at=self._now(),
                    process=self._process,
                    where=where,
                    why=why,
                    values=values,
                    occupants=found.occupants,
                    matched_bytes=found.matched_bytes,
                    spent_ns=monotonic_ns() - began_ns,
                )
            )
            self._tell_sources()
        finally:
            self._busy.release()

    def _look(self, where: str, deadline_ns: int) -> Occupancy:
        from leakscope.observe.inquiry import collector_at_rest
        from leakscope.observe.occupants import look_at_device, look_at_host

        with collector_at_rest():
            if where == HOST or self._door is None:
                return look_at_host(deadline_ns)
            snapshot = self._door.snapshot()
            blocks = snapshot.blocks if snapshot is not None else []
            return look_at_device(where, blocks, deadline_ns)

    def _gap(self, gap: Gap) -> None:
        self._writer.append(Gap(gap.what, gap.why, self._process))


def full_at(values: dict[str, int]) -> tuple[int, int]:
    """What the allocator may have in use at most, and what it has.

    Others' memory on the device, and contexts, are not ours to take; freed blocks that are held for
    reuse are."""
    total, free = values["total_bytes"], values["free_bytes"]
    others = max(total - free - values["reserved_bytes"], 0)
    return min(total - others, values.get("allowed_bytes", total)), values["allocated_bytes"]
