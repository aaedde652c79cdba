"""The looks themselves: what grows, who holds it, what one more of it weighs, where it was made.

Between looks only numbers and words are kept: addresses, lengths and sizes, and within a window
weak references to what was born in it; never an object of the program. Within a look the collector
rests, so that it does not run on our account.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import NamedTuple

from leakscope.model import (
    BACKWARD,
    Gap,
    Holding,
    Moment,
    SiteTally,
    bytes_of_a_block,
)
from leakscope.observe.containers import (
    Growing,
    Lengths,
    find_again,
    find_growing,
    note_lengths,
)
from leakscope.observe.device_sites import DeviceWindow, sites_by_address
from leakscope.observe.devices import NOTHING_GIVEN, Door, Given, Stack
from leakscope.observe.graphs import GraphSizes, find_growing_graphs, note_graphs
from leakscope.observe.old_heap import Heap
from leakscope.observe.holders import UNROOTED
from leakscope.observe.leads import (
    VAGUE,
    Lead,
    leads_among,
    leads_of_arrays,
    leads_of_containers,
    leads_of_graphs,
    leads_of_populations,
    leads_of_remade,
    our_references,
)
from leakscope.observe.origins import origins
from leakscope.observe.populations import (
    Counts,
    Past,
    carry_on,
    find_growing_populations,
    note_populations,
    with_entry,
)
from leakscope.observe.sites import SiteWindow
from leakscope.observe.survivors import Survivors
from leakscope.observe.swelling import (
    Measured,
    Sizes,
    find_swollen,
    measure_arrays,
    measure_lists,
    note_sizes,
    visible_bytes,
)
from leakscope.observe.tellings import Telling, can_pile_up, path_to, take_innermost, tell
from leakscope.observe.weighing import (
    Weighed,
    believe_opaque,
    by_weight,
    grown_in_all,
    sum_of_blocks,
    take_kin,
    weigh_all,
    weigh_more,
)

_MOST_GROWING = 60
_PATHS = 5
_ENOUGH_SHARE = 0.03
"""A holder of less than so much of the growth found is not worth the search for its path."""

_EXPLAINED = 0.6
"""Below this share of the growth, what was born and lives is asked too; the next look is deep."""

_VISIBLE = 0.8
"""Of what the counters grew by. A choice: a kept graph has as much in tensors that Python does not
have, and freed memory is in neither."""

_MOSTLY = 0.5
"""Of what native windows see left behind. A choice: between none and all, seen on one program of
each kind."""

_VAGUE_FOLLOWED = 2
_SEARCH_NS = 600_000_000
"""All searches of one look together begin no pass over the heap after so long."""


class Noted(NamedTuple):
    """What a look keeps for the next: numbers and words."""

    lengths: Lengths
    graphs: GraphSizes
    sizes: Sizes
    populations: Past
    visible: int
    """Bytes of all tensors and arrays."""


class Inquiry:
    """The looks of one process."""

    def __init__(
        self,
        process: str,
        now: Callable[[], Moment],
        door: Door | None = None,
        in_use: Callable[[], int] = lambda: 0,
    ) -> None:
        self.process = process
        self._now = now
        self._noted: Noted | None = None
        self._growing: list[Growing] = []
        self._has_hidden = False
        self._graphs_alive = 0
        self._populations: Counts = {}
        self._since = self._native_since = 0
        self._native_kept = (0, 0)
        self._survivors = Survivors()
        self._window = SiteWindow(in_use)
        self._device_window = DeviceWindow(door)
        self._given = NOTHING_GIVEN
        self.device_sites: tuple[SiteTally, ...] = ()
        """Lines whose device memory, asked for in the last window, is in use still."""
        self._is_deep = False
        self._telling = Telling()
        self.gaps: list[Gap] = []
        self.explained = 0.0
        """Share of the growth that the last look found holders for."""
        self._came = 0
        self.is_visible = False
        """Tensors and arrays that Python has account for what grew, whoever holds them: a cache
        that comes and goes with the requests. No native memory grows then."""

    @property
    def own_bytes(self) -> int:
        return self._noted.lengths.own_bytes if self._noted is not None else 0

    @property
    def traced_bytes(self) -> int:
        """What the tracer took when it was started last, or gave back when it was stopped."""
        return self._window.traced_bytes

    @property
    def device_steps(self) -> int:
        """So many steps are behind `device_sites`."""
        return self._device_window.steps

    @property
    def is_tracing(self) -> bool:
        return self._window.is_open

    def first_look(self, step: int) -> None:
        with collector_at_rest():
            heap = Heap()
            self._noted = Noted(
                note_lengths(heap, step),
                note_graphs(heap.tensors),
                note_sizes(_measured(heap)),
                carry_on({}, note_populations(heap.instances), step, step),
                visible_bytes(heap.tensors, heap.arrays),
            )
            del heap
        self._graphs_alive = origins.alive

    def open_window(self, step: int, traced: int) -> None:
        """Note which containers have grown since the last look, and trace from here on."""
        assert self._noted is not None
        before = self._noted.lengths
        with collector_at_rest():
            heap = Heap(is_deep=self._is_deep)
            lengths = note_lengths(heap, step)
            growing = find_growing(lengths, before)
            inside = origins.among({one.id for one in growing})  # none, without TensorFlow
            self._growing = [one for one in growing if one.id not in inside][:_MOST_GROWING]
            steps = step - before.step
            self._has_hidden = any(one.is_hidden for one in self._growing) or bool(
                find_swollen(measure_arrays([], heap.arrays), self._noted.sizes, steps)
            )
            self._populations = note_populations(heap.instances)
            del heap
        self._noted = self._noted._replace(lengths=lengths)
        self._since = before.step
        self._device_window.open(step, traced)
        self._survivors.begin(step, mark_after=max(traced // 2, 1))
        if self._survivors.why_not:
            self.gaps.append(Gap("survivors", self._survivors.why_not, self.process))
        self._window.open()

    def begin_native(self, step: int) -> None:
        """Note all lengths anew: something of ours has been imported, and it fills the registries
        of modules, types and weak references. And in depth, see `is_held_after_all`."""
        if self._noted is not None:
            with collector_at_rest():
                heap = Heap(is_deep=True)
                visible = visible_bytes(heap.tensors, heap.arrays)
                self._noted = self._noted._replace(
                    lengths=note_lengths(heap, step),
                    populations=carry_on({}, note_populations(heap.instances), step, step),
                    visible=visible,
                )
                del heap
            self._native_since = step
        self._native_kept = (0, 0)

    def is_held_after_all(self, step: int, kept: int, steps: int) -> bool:
        """A native window of so many steps has left so much behind. Is it arrays that lie where the
        looks before did not come: in an iterator written in C, in the attributes of a class that
        is not the program's? They were told as native memory, which no Python object holds.

        Asked at the second window, of what it has left beyond the first; and then it is looked for
        in depth."""
        (kept_before, steps_before), self._native_kept = self._native_kept, (kept, steps)
        if self._noted is None or not steps_before or steps <= steps_before:
            return False
        per_step = (kept - kept_before) / (steps - steps_before)
        with collector_at_rest():
            heap = Heap(is_deep=True)
            came = visible_bytes(heap.tensors, heap.arrays) - self._noted.visible
            del heap
        is_held = came >= _MOSTLY * per_step * max(step - self._native_since, 1) > 0
        self.is_visible |= is_held
        return is_held

    def in_window(self, step: int) -> None:
        """At each step while the window is open."""
        self._survivors.mark(step)
        self._device_window.at_step(step)

    def second_look(self, step: int, grown_bytes: float, grown_blocks: int = 0) -> list[Holding]:
        """What has grown since the first look; `grown_bytes` is what it came to by the counters,
        beside so many of Python's small blocks."""
        with collector_at_rest():
            self._window.pause()
            try:
                leads = self._find_leads(step)
            finally:
                self._window.close()
            leads = self._ask_devices(leads, step)
            holdings = self._follow(leads, step, grown_bytes, grown_blocks)
            self._given = NOTHING_GIVEN
            del leads
        return holdings

    def abandon(self) -> None:
        """In a forked child, or at the end: leave nothing on."""
        self._window.close()
        self._device_window.abandon()
        self._survivors.abandon()

    def _find_leads(self, step: int) -> list[Lead]:
        assert self._noted is not None
        steps, visible = step - self._since, self._noted.visible
        # Before anything else of ours refers to them: garbage is told by reference counts.
        among = leads_among(self._survivors.end(), self._survivors.steps)
        heap = Heap(with_hidden=self._has_hidden, is_deep=self._is_deep and self._has_hidden)
        leads = leads_of_containers(find_again(self._growing, heap))
        graphs, sizes_of_graphs = find_growing_graphs(heap.tensors, self._noted.graphs, steps)
        leads += leads_of_graphs(graphs)
        sizes = self._noted.sizes
        swollen = find_swollen(measure_arrays(heap.tensors, heap.arrays), sizes, steps)
        leads += leads_of_arrays(swollen)
        remade = find_swollen(measure_lists(heap.lists_of_arrays), sizes, steps)
        leads += leads_of_remade(remade, beside=leads)
        populations = find_growing_populations(
            heap.instances, self._noted.populations, self._populations, step
        )
        populations = [with_entry(one, heap.instances) for one in populations]
        self._noted = self._noted._replace(
            graphs=sizes_of_graphs,
            sizes=note_sizes(_measured(heap), sizes),
            populations=carry_on(
                self._noted.populations, self._populations, self._noted.lengths.step, step
            ),
            visible=visible_bytes(heap.tensors, heap.arrays),
        )
        self._came = self._noted.visible - visible
        del heap, graphs, swollen, remade
        return leads + leads_of_populations(populations, beside=among)

    def _ask_devices(self, leads: list[Lead], step: int) -> list[Lead]:
        """The same leads, those that lie on a device with their lines if Python knew none."""
        snapshot = self._device_window.close(step)
        if snapshot is None:
            self.device_sites = ()
            return leads
        blocks = snapshot.blocks
        self._given = Given({block.address: block.bytes for block in blocks}, snapshot.pools)
        self.device_sites = self._device_window.survivors(blocks)
        stacks = self._device_window.stacks(blocks)
        return [self._with_device_sites(lead, stacks) for lead in leads]

    def _with_device_sites(self, lead: Lead, stacks: dict[int, Stack]) -> Lead:
        """What the backward pass has made gets its Python object where it is first looked at: that
        line did not make it."""
        on_device = sites_by_address(lead.items, stacks)
        is_of_backward = any(one.frames[0].file == BACKWARD for one in on_device)
        return lead._replace(sites=on_device) if is_of_backward or not lead.sites else lead

    def _follow(
        self, leads: list[Lead], step: int, grown_bytes: float, grown_blocks: int
    ) -> list[Holding]:
        """Weigh the leads, find who holds the largest, put those of one description together."""
        assert self._noted is not None
        ours = our_references(leads)
        growing = {
            id(lead.it) for lead in leads if lead.kind == "container" and not lead.is_doubtful
        }
        given = self._given
        clear = [lead for lead in leads if lead.kind not in VAGUE]
        firm = [lead for lead in clear if not lead.is_doubtful]
        weighed = self._believe(weigh_all(firm, growing, ours, given))
        grown_bytes += grown_blocks * bytes_of_a_block(grown_blocks, sum_of_blocks(weighed))
        # What cannot be weighed explains it, or else nothing that can will: TensorFlow's graphs.
        is_open = not any(one.opaque for one in weighed)
        if is_open and grown_in_all(weighed) < _EXPLAINED * grown_bytes:
            weighed = weigh_more(weighed, growing, ours, given)
        if grown_in_all(weighed) < _EXPLAINED * grown_bytes:
            doubtful = [lead for lead in clear if lead.is_doubtful]
            weighed += self._believe(weigh_all(doubtful, growing, ours, given))
            weighed.sort(key=by_weight)
            del doubtful
        del clear, firm
        self.explained = grown_in_all(weighed) / max(grown_bytes, 1.0)
        self.is_visible = self._came > _VISIBLE * max(grown_bytes, 1.0)
        self._is_deep = self.explained < _EXPLAINED
        if self._is_deep:
            vague = [lead for lead in leads if lead.kind in VAGUE]
            vague_weighed = weigh_all(vague, growing, ours, given)
            # A linked list that the program holds by its head is no guess.
            entered = [one for one in vague_weighed if one.lead.entry is not None]
            self.explained += sum(one.grown_bytes for one in entered) / max(grown_bytes, 1.0)
            weighed += vague_weighed[:_VAGUE_FOLLOWED]
            weighed.sort(key=by_weight)
            del vague, vague_weighed, entered
        enough = _ENOUGH_SHARE * grown_in_all(weighed)
        own = {id(leads), id(weighed), *map(id, leads), *map(id, weighed)}
        own.update(id(mine) for lead in leads for mine in (lead.items, lead.keys, lead.older))
        deadline_ns = monotonic_ns() + _SEARCH_NS
        self._telling.begin()
        for _ in range(_PATHS):
            if not weighed or (weighed[0].grown_bytes < enough and not weighed[0].opaque):
                break
            first = weighed.pop(0)
            if first.lead.kind == "graph":
                weighed.insert(0, first)
                first, path = take_innermost(weighed, own, deadline_ns)
            else:
                path = path_to(first.lead, own, deadline_ns)
            is_told = first.lead.kind == "chain" and self._telling.has_told(path)
            # A list, a method and an object in one cycle are three leads to the same.
            is_told = is_told or (first.lead.kind == "cycle" and self._telling.has_cycle())
            if is_told or not can_pile_up(first.lead, path):
                continue
            # Growth that cannot be weighed is given to a holder with a name only. Things of a kind
            # that become more, and that nobody was found to hold, may be garbage that waits.
            if (first.opaque or first.lead.kind == "chain") and path[0].via == UNROOTED:
                continue
            # Two attributes of one object, or two globals, are two holders: each has its statement.
            is_one_of_many = first.lead.kind == "container" and path[-1].kind == "item"
            family = [first, *take_kin(first, weighed, is_item=is_one_of_many)]
            looks = (self._since, self._noted.lengths.step, step)
            self._telling.add(tell(family, path, looks, self.process, self._now()))
        holdings = self._telling.done()
        if any(holding.opaque for holding in holdings):
            self.explained = 1.0  # by what cannot be weighed: no native window tells more
        return holdings

    def _believe(self, weighed: list[Weighed]) -> list[Weighed]:
        return believe_opaque(weighed, origins.alive - self._graphs_alive)


def _measured(heap: Heap) -> Iterator[Measured]:
    yield from measure_arrays(heap.tensors, heap.arrays)
    yield from measure_lists(heap.lists_of_arrays)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
