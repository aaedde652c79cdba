"""Every noun that crosses a hop. Imports msgspec and nothing of ours.

The records (left of the wall writes them, right of the wall reads them) and the
report (what the reading half says) are the same kind of thing: frozen structs
that the garbage collector does not track, so that the observer stays out of
what it counts. A value that could not be read is absent, and its reason is in
`gaps`: never 0, never -1.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

FORMAT_VERSION = 1
"""Version of the recording. Readers accept every version up to their own."""

REPORT_SCHEMA = 1
"""Version of `report.json`; see docs/report-schema.json."""


class _Noun(msgspec.Struct, frozen=True, gc=False):
    """A frozen struct outside the collector's view."""


class _Written(_Noun, frozen=True, gc=False, omit_defaults=True):
    """Part of a recording, where what is not said takes no space."""


# ── what is recorded ─────────────────────────────────────────────────────────


class Machine(_Noun, frozen=True):
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


class Run(_Noun, frozen=True):
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


class Moment(_Written, frozen=True):
    wall_ns: int
    mono_ns: int
    step: int | None = None
    phase: str | None = None


class ProcessStart(_Written, frozen=True, tag="process"):
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


class Pulses(_Written, frozen=True, tag="pulses"):
    """A block of steps: one column per counter, one row per step, delta-coded.

    `columns[name][0]` is a value, each later entry the difference to the last
    value that was read; null stands for a counter not read at that step.
    """

    process: str
    source: str
    """Where the rows come from: optimizer, forward, dataloader, fetch, api, time."""
    columns: dict[str, list[int | None]]
    spent_ns: int = 0
    """What taking and writing the rows up to this block cost the program."""


class Sample(_Written, frozen=True, tag="sample"):
    """Values read at one moment by one probe."""

    at: Moment
    process: str
    probe: str
    values: dict[str, int]
    gaps: dict[str, str] = {}


class Mark(_Written, frozen=True, tag="mark"):
    """Something that happened: a save, an evaluation, a full collection."""

    at: Moment
    process: str
    what: str
    duration_ns: int = 0
    values: dict[str, int] = {}
    text: str | None = None
    source: str = ""
    """Whose steps the moment's number counts, where that matters."""


LOOKS = ("look", "look done")
"""Marks at the end of a look: with the counters from before it, and without."""


class Tally(_Written, frozen=True):
    kind: str
    role: str
    count: int
    bytes: int


class Census(_Written, frozen=True, tag="census"):
    at: Moment
    process: str
    probe: str
    tallies: tuple[Tally, ...]


class Gap(_Written, frozen=True, tag="gap"):
    """Something that could not be observed, and why."""

    what: str
    why: str
    process: str | None = None


class Frame(_Written, frozen=True):
    """One line of a stack."""

    file: str
    line: int
    function: str = ""


class Link(_Written, frozen=True):
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


class SiteTally(_Written, frozen=True):
    """A place that made things which are still alive, innermost frame first."""

    frames: tuple[Frame, ...]
    count: int
    bytes: int = 0


class Holding(_Written, frozen=True, tag="holding"):
    """Something that keeps more with every step, as one look found it."""

    at: Moment
    process: str
    kind: str
    """container, graph, array, chain, cycle, gradient cycle, shared-pages or native."""
    path: tuple[Link, ...]
    """From a root to the thing that grows, and on to what it keeps."""
    grows_at: int
    """Index in `path` of the thing that grows."""
    item: str
    """Type of one of the things kept."""
    counts: tuple[tuple[int, int], ...]
    """(step, how many were kept), look by look."""
    bytes_each: float = 0.0
    """What one more of them keeps alive that nothing else does."""
    shared_bytes: float = 0.0
    """What they keep alive together with others."""
    parts: dict[str, float] = {}
    """`bytes_each` by kind: tensors, shared memory (of tensors), saved (for backward), nodes (of
    graphs), arrays, python."""
    holders: int = 1
    """So many things of this description grow; `counts` is their sum."""
    bound: str = ""
    """Why it cannot grow for ever, where that can be read: `a deque with maxlen=1000`."""
    sites: tuple[SiteTally, ...] = ()


class Window(_Written, frozen=True, tag="window"):
    """Native allocations of a few steps that outlived them."""

    at: Moment
    process: str
    tool: str
    steps: int
    sites: tuple[SiteTally, ...]


class Source(_Written, frozen=True, tag="source"):
    """The text of a file of the program, as it was when the program ran."""

    process: str
    file: str
    text: str


class ProcessEnd(_Written, frozen=True, tag="end"):
    at: Moment
    process: str
    exit_code: int | None = None
    signal: int | None = None
    values: dict[str, int] = {}
    """peak_rss_bytes, cpu_ns, oom_kills …: what is known once it is over."""


Record = (
    ProcessStart | Pulses | Sample | Mark | Census | Holding | Window | Source | Gap | ProcessEnd
)


# ── what is said ─────────────────────────────────────────────────────────────


class Outcome(StrEnum):
    LEAK = "leak"
    GROWING = "growing"
    STEADY = "steady"
    UNKNOWN = "unknown"


class Shape(StrEnum):
    LINEAR = "linear"
    STAIRCASE = "staircase"
    WARM_UP = "warm-up"
    STEP = "step"
    PERIODIC = "periodic"
    SAW_TOOTH = "saw-tooth"
    HIGH_WATER = "high-water"
    FILLING = "filling"
    FRAGMENTATION = "fragmentation"
    COPY_ON_WRITE = "copy-on-write"
    FLAT = "flat"
    UNCLEAR = "unclear"


class SeriesKey(_Noun, frozen=True):
    metric: str
    """Dotted, unit last: `heap.in_use_bytes`, `process.rss_bytes`."""
    process: str
    device: str | None = None


class Series(_Noun, frozen=True):
    """One counter over the steps of a run."""

    key: SeriesKey
    unit: str
    steps: tuple[float, ...]
    """Strictly increasing. Whole numbers where the process itself steps; fractions
    where a sample fell between two steps of the run."""
    values: tuple[float, ...]
    floors: tuple[int, ...] = ()
    """Indices of the values taken right after a full garbage collection."""
    is_exact: bool = False
    """True for counters that an allocator keeps itself; False for RSS and its kin."""
    resolution: float = 0.0
    """Smallest change the counter can show (a page for RSS)."""


class Rate(_Noun, frozen=True):
    value: float
    low: float
    high: float


class Verdict(_Noun, frozen=True):
    series: SeriesKey
    outcome: Outcome
    shape: Shape
    because: str
    """One sentence with the numbers in it. A verdict without a reason cannot be built."""
    bytes_per_step: Rate
    """In the series' own unit per step; bytes for every memory series."""
    smallest_visible_bytes_per_step: float
    unit: str = "bytes"
    from_step: float = 0.0
    to_step: float = 0.0
    steps_at: tuple[float, ...] = ()
    """Where single jumps happened, or the period's phase; for drawing and matching."""
    period_steps: float | None = None
    grown_bytes: float = 0.0
    """Last level minus first level over the judged part."""
    size_bytes: float = 0.0
    """Size of the one-time rise, the spike or the saw-tooth, where the shape has one."""


class Site(_Noun, frozen=True):
    file: str
    line: int
    function: str | None = None
    source: str | None = None


class Fix(_Noun, frozen=True):
    text: str
    diff: str | None = None


class TraceLine(_Noun, frozen=True):
    """One line of the path from a root to what is kept, as it is shown."""

    via: str
    what: str
    note: str = ""
    is_suspect: bool = False


class Finding(_Noun, frozen=True):
    rule: str
    name: str
    blame: str
    certainty: float
    says: str
    bytes_per_step: float
    share: float
    count_per_step: float | None = None
    site: Site | None = None
    keeper: Site | None = None
    holder: tuple[str, ...] = ()
    fix: Fix | None = None
    fingerprint: str = ""
    processes: tuple[str, ...] = ()
    trace: tuple[TraceLine, ...] = ()
    known: str = ""
    """A section of docs/known.md, where a library is known to keep this."""


class Harmless(_Noun, frozen=True):
    """Something that looks like a leak and is none, with the figures of this run."""

    rule: str
    name: str
    says: str


class Forecast(_Noun, frozen=True):
    """When the limit is reached if growth goes on as judged."""

    limit_bytes: int
    limit_from: str
    now_bytes: int
    bytes_per_step: Rate
    """Growth of the memory the kernel counts: live bytes and what the allocator holds."""
    steps_left: Rate
    seconds_left: Rate | None
    at_step: int
    says: str


class Peak(_Noun, frozen=True):
    """The highest point of the run and what it was made of."""

    total_bytes: int
    at_step: int | None
    parts: dict[str, int]
    """Parts that add up to the total: parameters, gradients, optimizer state, other
    live bytes, held free by the allocator, transient within a step, code and the rest."""
    says: str


class ProcessSummary(_Noun, frozen=True):
    process: str
    kind: str
    name: str
    pid: int
    parent_pid: int
    command: str
    steps: int | None
    first_rss_bytes: int | None
    last_rss_bytes: int | None
    peak_rss_bytes: int | None
    last_uss_bytes: int | None = None
    last_shared_bytes: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    is_followed: bool = True
    """False: seen from outside only (python -I, another language …)."""


class Ending(_Noun, frozen=True):
    """How the program ended."""

    exit_code: int | None
    signal: int | None
    says: str


class Cost(_Noun, frozen=True):
    """What watching cost, as far as it measures itself during the run: taking and writing rows,
    and the supervisor. Counting steps (below 1 µs each) is in bench/cost.py only."""

    agent_seconds: float
    agent_share: float
    """Of the program's own wall time, all processes' agents together."""
    supervisor_cpu_seconds: float
    recording_bytes: int
    longest_pause_seconds: float = 0.0
    """The longest the program was made to wait at once: a closer look at its heap."""


class Report(_Noun, frozen=True):
    schema: int
    run: str
    command: tuple[str, ...]
    verdict: Outcome
    because: str
    steps: int
    steps_from: str
    step_seconds: float | None
    seconds: float
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    unexplained: dict[str, float]
    """Growth per step that no finding accounts for, by `metric process`."""
    blind_spots: tuple[Gap, ...]
    forecast: Forecast | None
    peak: Peak | None
    notes: tuple[str, ...]
    """Full sentences about what was seen beside the verdict: saves, steps up, swapping."""
    processes: tuple[ProcessSummary, ...]
    ending: Ending
    machine: Machine
    cost: Cost
    started_wall_ns: int = 0
    leakscope: str = ""
    harmless: tuple[Harmless, ...] = ()
    """What looks like a leak in this run and is none: rules LS001 to LS099."""
