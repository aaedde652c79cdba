"""What is said: the report and everything it is made of."""

from __future__ import annotations

from enum import StrEnum

from leakscope.model.noun import Noun
from leakscope.model.recorded import Gap, Machine

REPORT_SCHEMA = 1
"""Version of `report.json`; see docs/report-schema.json."""


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


class SeriesKey(Noun, frozen=True):
    metric: str
    """Dotted, unit last: `heap.in_use_bytes`, `process.rss_bytes`."""
    process: str
    device: str | None = None


class Series(Noun, frozen=True):
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
    has_blocks: bool = False
    """Python's own small objects are counted in it."""


class Rate(Noun, frozen=True):
    value: float
    low: float
    high: float


class Verdict(Noun, frozen=True):
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


class Site(Noun, frozen=True):
    file: str
    line: int
    function: str | None = None
    source: str | None = None


class Fix(Noun, frozen=True):
    text: str
    diff: str | None = None


class TraceLine(Noun, frozen=True):
    """One line of the path from a root to what is kept, as it is shown."""

    via: str
    what: str
    note: str = ""
    is_suspect: bool = False


class Finding(Noun, frozen=True):
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


class Harmless(Noun, frozen=True):
    """Something that looks like a leak and is none, with the figures of this run."""

    rule: str
    name: str
    says: str


class Forecast(Noun, frozen=True):
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


class Peak(Noun, frozen=True):
    """The highest point of the run and what it was made of."""

    total_bytes: int
    at_step: int | None
    parts: dict[str, int]
    """Parts that add up to the total: parameters, gradients, optimizer state, other
    live bytes, held free by the allocator, transient within a step, code and the rest."""
    says: str


class DeviceLevels(Noun, frozen=True):
    """The memory of one device that one process has, level by level."""

    device: str
    name: str
    process: str
    total_bytes: int | None
    driver_bytes: int | None
    """Of this process, as the driver counts it; None where it does not tell."""
    reserved_bytes: int
    allocated_bytes: int
    others_bytes: int | None
    """Of processes outside the run, on the same device."""
    parts: dict[str, int]
    """What lies between the levels and below them; adds up to the driver's bytes, or where those
    are not known to the reserved ones."""
    at_step: int | None
    says: str


class Occupied(Noun, frozen=True):
    """What was in memory and had one role, one holder and one line."""

    role: str
    what: str
    holder: str
    count: int
    bytes: int
    site: Site | None = None
    is_compiled: bool = False
    """It was made within a compiled region; the line is the one that calls it."""
    retained_bytes: int | None = None
    """So much of it would go with the holder; the rest is held by others too."""


class HeapContents(Noun, frozen=True):
    """What a heap snapshot of one process shows, the largest holders first."""

    process: str
    at_step: int | None
    objects: int
    bytes: int
    """Of everything that the snapshot accounts for in the host's memory."""
    contents: tuple[Occupied, ...]


class FullMoment(Noun, frozen=True):
    """What was in memory when it ran out, or was about to."""

    where: str
    why: str
    process: str
    at_step: int | None
    says: str
    contents: tuple[Occupied, ...]
    """The largest first."""
    matched_share: float | None = None
    """Of the bytes in use on a device: for so much of them a tensor was found."""
    spent_seconds: float = 0.0


class ProcessSummary(Noun, frozen=True):
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
    last_pss_bytes: int | None = None
    """Proportional: of a page that n processes share, each has one nth."""
    last_swap_bytes: int | None = None
    last_shared_memory_bytes: int | None = None
    """Its part of /dev/shm and of other memory shared on purpose."""
    last_file_bytes: int | None = None
    """Its part of mapped files: page cache that the kernel takes back."""
    copied_bytes: int | None = None
    """Pages shared since the fork that became its own while it ran (copy-on-write)."""
    allocated_bytes: int | None = None
    """The rest of what its private memory grew by while it ran: memory it asked for."""
    started_by: str = ""
    """fork, spawn, forkserver or exec, as its command line and its parent's tell."""
    ended_early: bool = False
    """It was over before the program was."""
    host: str = ""
    rank: int | None = None
    restart: int | None = None


class Rank(Noun, frozen=True):
    """One rank of a job, in one of its starts."""

    rank: int
    restart: int
    host: str
    process: str
    """Its name among the processes."""
    steps: int | None
    outcome: Outcome
    bytes_per_step: Rate
    last_rss_bytes: int | None
    peak_rss_bytes: int | None
    fingerprints: tuple[str, ...] = ()
    """Findings in it and in what it started."""
    deviates: bool = False
    """It grows, and clearly faster than the other ranks."""


class BandPoint(Noun, frozen=True):
    """How the ranks lie at one stretch of the run: quantiles over ranks, in bytes."""

    step: float
    low: float
    """A tenth of the ranks is below."""
    median: float
    high: float
    """A tenth of the ranks is above."""
    largest: float
    largest_rank: int


class Job(Noun, frozen=True):
    """The ranks of one job beside each other."""

    says: str
    ranks: tuple[Rank, ...]
    deviating: tuple[int, ...] = ()
    common_fingerprints: tuple[str, ...] = ()
    """Findings that every rank has."""
    band_metric: str = ""
    band: tuple[BandPoint, ...] = ()


class Ending(Noun, frozen=True):
    """How the program ended."""

    exit_code: int | None
    signal: int | None
    says: str


class Cost(Noun, frozen=True):
    """What watching cost, as far as it measures itself during the run: taking and writing rows,
    and the supervisor. Counting steps (below 1 µs each) is in bench/cost.py only."""

    agent_seconds: float
    agent_share: float
    """Of the program's own wall time, all processes' agents together."""
    supervisor_cpu_seconds: float
    recording_bytes: int
    longest_pause_seconds: float = 0.0
    """The longest the program was made to wait at once: a closer look at its heap."""


class Report(Noun, frozen=True):
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
    job: Job | None = None
    """Where the run had ranks."""
    devices: tuple[DeviceLevels, ...] = ()
    black_boxes: tuple[FullMoment, ...] = ()
    """What was in memory when it ran out or was about to, the worst first."""
