"""What is recorded: left of the wall writes these, right of the wall reads them."""

from __future__ import annotations

from leakscope.model.noun import Noun, Written

FORMAT_VERSION = 1
"""Version of the recording. Readers accept every version up to their own."""


class Machine(Noun, frozen=True):
    """Where the run happened, as far as it could be read."""

    host: str
    system: str
    python: str
    cpu_count: int
    ram_bytes: int | None = None
    libc: str | None = None
    allocator: str | None = None
    allocator_settings: dict[str, str] = {}
    limit_bytes: int | None = None
    """The smallest memory limit that applies: a cgroup's, or the machine's RAM."""
    limit_from: str | None = None
    packages: dict[str, str] = {}
    accelerators: tuple[str, ...] = ()
    builds: dict[str, str] = {}
    """By package: installer, platform and a fingerprint of its files."""
    libraries: dict[str, str] = {}
    """Allocator, BLAS, OpenMP and driver libraries that were loaded, by path."""
    facts: dict[str, str] = {}
    """What the kernel, the system and Python say: `vm.overcommit_memory`, `huge_pages.enabled`."""


class Run(Noun, frozen=True):
    """The header of a recording: one per run, in `run.json`."""

    id: str
    format: int
    leakscope: str
    started_wall_ns: int
    started_mono_ns: int
    command: tuple[str, ...]
    directory: str
    """Working directory of the program; paths in a report are relative to it."""
    machine: Machine
    settings: dict[str, str] = {}
    hosts: dict[str, Machine] = {}
    """The machines of a merged recording, by the name its processes have them by."""


class Moment(Written, frozen=True):
    wall_ns: int
    mono_ns: int
    step: int | None = None
    phase: str | None = None


class ProcessStart(Written, frozen=True, tag="process"):
    """First record of a process's own file, or the supervisor's first sight of it."""

    process: str
    """`pid-startticks`: a name that survives the reuse of process ids."""
    pid: int
    parent_pid: int
    at: Moment
    kind: str = "process"
    """main, worker, child, helper or process: what the process is for, in one word."""
    name: str | None = None
    command: tuple[str, ...] = ()
    python: str | None = None
    """Version of the interpreter, if the agent itself wrote this record."""
    environment: dict[str, str] = {}
    """RANK, LOCAL_RANK, WORLD_SIZE … where they are set."""
    host: str = ""
    """Where it ran, if that is not the machine of the header: in merged recordings."""


class Pulses(Written, frozen=True, tag="pulses"):
    """A block of steps: one column per counter, one row per step, delta-coded.

    `columns[name][0]` is a value, each later entry the difference to the last
    value that was read; null stands for a counter not read at that step.
    """

    process: str
    source: str
    """Where the rows come from: optimizer, batch, call, forward, dataloader, fetch, api, time."""
    columns: dict[str, list[int | None]]
    spent_ns: int = 0
    """What taking and writing the rows up to this block cost the program."""


class Sample(Written, frozen=True, tag="sample"):
    """Values read at one moment by one probe."""

    at: Moment
    process: str
    probe: str
    values: dict[str, int]
    gaps: dict[str, str] = {}


class Mark(Written, frozen=True, tag="mark"):
    """Something that happened: a save, an evaluation, a full collection."""

    at: Moment
    process: str
    what: str
    duration_ns: int = 0
    values: dict[str, int] = {}
    text: str | None = None
    source: str = ""
    """Whose steps the moment's number counts, where that matters."""


DEVICE_TOOL = "device"
"""Tool of the windows that were recorded by the allocator of a device."""

BACKWARD = "<backward>"
"""File of the one frame of what the backward pass has made: it runs without Python."""

DRIVER_GAP = "device memory by the driver"
"""A gap that only matters to a program which uses a device."""

LOOKS = ("look", "look done")
"""Marks at the end of a look: with the counters from before it, and without."""

IMPORTING = "importing"
"""Mark at the end of a stretch in which a program without steps loaded modules."""

WHOLE = "storage"
"""Of a link: to all of the memory of which a tensor shows a small part."""

SEVERAL_STEP = "steps in several threads"
"""Mark: from here on a step is no longer what the program does between two of them."""

REMEDY = "remedy"
"""Mark at the end of a run: what was tried (`text`), and every counter `before` and `after`."""


class Tally(Written, frozen=True):
    kind: str
    role: str
    count: int
    bytes: int


class Census(Written, frozen=True, tag="census"):
    at: Moment
    process: str
    probe: str
    tallies: tuple[Tally, ...]


class Gap(Written, frozen=True, tag="gap"):
    """Something that could not be observed, and why."""

    what: str
    why: str
    process: str | None = None


class Frame(Written, frozen=True):
    """One line of a stack."""

    file: str
    line: int
    function: str = ""


class Link(Written, frozen=True):
    """One object on a path, and how the one above reaches it."""

    via: str
    """As a reader would say it: `.losses`, `[x]`, `local trainer in main()`, `module train`."""
    type: str
    kind: str = ""
    """module, global, class, attribute, item, local, closure, default, bound, partial, generator,
    traceback, cache, thread, base, graph, saved, gradient, native, garbage, payload (what is kept,
    below the thing that grows): how it is held."""
    name: str = ""
    """The name alone, as the source has it; empty where it has none."""
    file: str = ""
    """Where the scope of the name is written: the file of the module, function or class."""
    scope: str = ""
    """Qualified name of that function or class; empty for a module's globals."""
    line: int = 0


class SiteTally(Written, frozen=True):
    """A place that made things which are still alive, innermost frame first."""

    frames: tuple[Frame, ...]
    count: int
    bytes: int = 0


class Holding(Written, frozen=True, tag="holding"):
    """Something that keeps more with every step, as heap snapshots show it."""

    at: Moment
    process: str
    kind: str
    """A `HoldingKind`."""
    path: tuple[Link, ...]
    """From a root to the thing that grows, and on to what it keeps."""
    grows_at: int
    """Index in `path` of the thing that grows."""
    item: str
    """Type of one of the things kept."""
    counts: tuple[tuple[int, int], ...]
    """(step, how many were kept), look by look."""
    bytes_each: float = 0.0
    """What one more of them keeps alive."""
    sizes: tuple[tuple[int, int], ...] = ()
    """(step, bytes of all that is kept there), snapshot by snapshot."""
    shared_bytes: float = 0.0
    """What they keep alive together with others."""
    parts: dict[str, float] = {}
    """`bytes_each` by kind: tensors, shared memory (of tensors), saved (for backward), nodes (of
    graphs), arrays, python."""
    blocks_each: float = 0.0
    """How many of Python's blocks one more of them keeps."""
    in_blocks: float = 0.0
    """Of `bytes_each`, what lies in those and is not malloc's."""
    on_device: dict[str, float] = {}
    """Of `bytes_each`, what lies in the memory of devices, by their names (`cuda:0`)."""
    holders: int = 1
    """So many things of this description grow; `counts` is their sum."""
    bound: str = ""
    """Why it cannot grow for ever, where that can be read: `a deque with maxlen=1000`."""
    sites: tuple[SiteTally, ...] = ()
    also: tuple[tuple[Link, ...], ...] = ()
    """Of a graph: other paths that lead to a tensor with a graph, which may be the same one."""
    opaque: dict[str, float] = {}
    """What one more of them keeps whose memory nobody can tell (traced graphs, compiled functions):
    how many of each kind. `bytes_each` is without it."""

    @property
    def count_per_step(self) -> float:
        """How many more with each step, from the first count to the last."""
        (since, before), (until, after) = self.counts[0], self.counts[-1]
        return (after - before) / (until - since) if until > since else 0.0


class Snapshot(Written, frozen=True, tag="snapshot"):
    """The header of a heap snapshot; the snapshot itself is a file of its own."""

    at: Moment
    process: str
    number: int
    """The first of a process is 1."""
    why: str
    """growth, account (what is in memory of a program that does not grow), nearly full, or out of
    memory."""
    source: str
    """Whose steps the moment's number counts."""
    file: str
    """Below the folder of the recording; empty if it could not be written."""
    objects: int
    edges: int
    visible_bytes: int
    """All bytes that the snapshot accounts for, in the host's memory."""
    values: dict[str, int] = {}
    """The counters just before it."""
    spent_ns: int = 0
    is_traced: bool = False
    """A tracing window ended at it: new objects have their allocation sites."""
    skipped: tuple[str, ...] = ()
    """Frameworks that could not be asked at that moment."""


class Window(Written, frozen=True, tag="window"):
    """Native allocations of a few steps that outlived them."""

    at: Moment
    process: str
    tool: str
    steps: int
    sites: tuple[SiteTally, ...]


class Occupant(Written, frozen=True):
    """What is in memory at one moment and has one role, one holder and one site."""

    role: str
    """parameter, gradient, buffer, optimizer state, saved for backward, tensor, array, object,
    graph pool, or none: no tensor was found for it."""
    what: str
    """One of them: `Tensor [64, 512] float32`."""
    holder: str
    """Who keeps it, from a root on where that was searched, or in a few words."""
    count: int
    bytes: int
    frames: tuple[Frame, ...] = ()


class BlackBox(Written, frozen=True, tag="black box"):
    """What is in memory just before it runs out."""

    at: Moment
    process: str
    where: str
    """`host`, or the device: `cuda:0`."""
    why: str
    """out of memory, or nearly full."""
    values: dict[str, int]
    """limit_bytes, used_bytes, allocated_bytes, reserved_bytes, wanted_bytes … as far as known."""
    occupants: tuple[Occupant, ...] = ()
    """The largest first."""
    matched_bytes: int = 0
    """Of the bytes in use, those for which a tensor was found."""
    spent_ns: int = 0
    snapshot: str = ""
    """File of the heap snapshot that was taken then; `occupants` are read from it."""


class Source(Written, frozen=True, tag="source"):
    """The text of a file of the program, as it was when the program ran."""

    process: str
    file: str
    text: str


class Loaded(Written, frozen=True, tag="loaded"):
    """What a process had loaded, as its memory map showed from outside; the last one counts."""

    at: Moment
    process: str
    libraries: dict[str, str] = {}
    packages: dict[str, str] = {}
    builds: dict[str, str] = {}
    settings: dict[str, str] = {}
    """Environment variables that bear on memory, as the process was started with."""


class ProcessEnd(Written, frozen=True, tag="end"):
    at: Moment
    process: str
    exit_code: int | None = None
    signal: int | None = None
    values: dict[str, int] = {}
    """peak_rss_bytes, cpu_ns, oom_kills …: what is known once it is over."""


Record = (
    ProcessStart
    | Pulses
    | Sample
    | Mark
    | Census
    | Holding
    | Snapshot
    | Window
    | BlackBox
    | Source
    | Gap
    | Loaded
    | ProcessEnd
)
