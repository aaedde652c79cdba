"""Reports for tests: a steady run to start from, and one of each kind a user can meet."""

from __future__ import annotations

from typing import Any

import msgspec

from leakscope.model import (
    REPORT_SCHEMA,
    Cost,
    Ending,
    Finding,
    Fix,
    Forecast,
    Gap,
    Machine,
    Outcome,
    Peak,
    ProcessSummary,
    Rate,
    Report,
    SeriesKey,
    Shape,
    Site,
    TraceLine,
    Verdict,
)

KIB, MIB, GIB = 1024, 1024**2, 1024**3

MACHINE = Machine(
    host="gpu-07",
    system="Linux 6.8.0 x86_64",
    python="3.11.9",
    cpu_count=16,
    ram_bytes=64 * GIB,
    libc="glibc 2.39",
    allocator="glibc malloc",
    allocator_settings={"MALLOC_ARENA_MAX": "2"},
    limit_bytes=24 * GIB,
    limit_from="cgroup limit",
    packages={"torch": "2.13.0+cpu"},
)

MAIN = "4711-889123"


def rate(value: float, spread: float = 0.06) -> Rate:
    return Rate(value, value - abs(value) * spread, value + abs(value) * spread)


def verdict(
    metric: str = "heap.in_use_bytes",
    outcome: Outcome = Outcome.STEADY,
    shape: Shape = Shape.FLAT,
    *,
    per_step: Rate | None = None,
    visible: float = 1.2 * KIB,
    process: str = MAIN,
    device: str | None = None,
    unit: str = "bytes",
    because: str = "the level after warm-up does not move",
) -> Verdict:
    return Verdict(
        series=SeriesKey(metric, process, device),
        outcome=outcome,
        shape=shape,
        because=because,
        bytes_per_step=per_step or Rate(0.0, -210.0, 240.0),
        smallest_visible_bytes_per_step=visible,
        unit=unit,
        from_step=40,
        to_step=412,
    )


def process(name: str = "main", pid: int = 4711, key: str = MAIN, **changes: Any) -> ProcessSummary:
    summary = ProcessSummary(
        process=key,
        kind=name.split()[0],
        name=name,
        pid=pid,
        parent_pid=4700,
        command="python train.py --epochs 3",
        steps=412,
        first_rss_bytes=812 * MIB,
        last_rss_bytes=1100 * MIB,
        peak_rss_bytes=1301 * MIB,
        last_uss_bytes=904 * MIB,
        exit_code=0,
    )
    return msgspec.structs.replace(summary, **changes)


def steady(**changes: Any) -> Report:
    """A single process that finished and did not grow."""
    report = Report(
        schema=REPORT_SCHEMA,
        run="20261115-082113-4711",
        command=("python", "train.py", "--epochs", "3"),
        verdict=Outcome.STEADY,
        because="memory in use stays within 18 KiB of 702 MiB from step 40 to step 412",
        steps=412,
        steps_from="optimizer",
        step_seconds=0.45,
        seconds=187.4,
        verdicts=(
            verdict(),
            verdict("process.rss_bytes", shape=Shape.WARM_UP, visible=41.0 * KIB),
        ),
        findings=(),
        unexplained={},
        blind_spots=(Gap("gpu", "this machine has no GPU"),),
        forecast=None,
        peak=Peak(
            total_bytes=1301 * MIB,
            at_step=212,
            parts={
                "parameters": 240 * MIB,
                "gradients": 240 * MIB,
                "optimizer state": 480 * MIB,
                "transient, within a step": 61 * MIB,
                "freed, held by the allocator": 280 * MIB,
            },
            says="1.3 GiB at the highest point, 61 MiB of it only within a step",
        ),
        notes=("RSS rose by 480 MiB at step 1, when the optimizer made its state, and stayed",),
        processes=(process(),),
        ending=Ending(exit_code=0, signal=None, says="finished with exit code 0"),
        machine=MACHINE,
        cost=Cost(
            agent_seconds=0.81,
            agent_share=0.0043,
            supervisor_cpu_seconds=1.4,
            recording_bytes=round(1.2 * MIB),
        ),
        started_wall_ns=1_794_730_873_000_000_000,
        leakscope="0.1.0",
    )
    return msgspec.structs.replace(report, **changes)


def growing(**changes: Any) -> Report:
    """Grows in a straight line towards a limit; nothing says yet who keeps it."""
    per_step = rate(3.1 * MIB)
    report = steady(
        verdict=Outcome.GROWING,
        because="memory in use grows 3.1 MiB/step (2.9 to 3.3) in a straight line "
        "from step 40 to step 412",
        verdicts=(
            verdict(outcome=Outcome.GROWING, shape=Shape.LINEAR, per_step=per_step),
            verdict(
                "process.rss_bytes",
                Outcome.GROWING,
                Shape.LINEAR,
                per_step=rate(3.4 * MIB, 0.2),
                visible=210 * KIB,
            ),
            verdict(
                "python.blocks_count",
                Outcome.STEADY,
                per_step=Rate(0.1, -0.4, 0.6),
                visible=2.0,
                unit="blocks",
            ),
        ),
        unexplained={f"heap.in_use_bytes {MAIN}": 3.1 * MIB},
        forecast=Forecast(
            limit_bytes=24 * GIB,
            limit_from="cgroup limit",
            now_bytes=2 * GIB,
            bytes_per_step=rate(3.4 * MIB, 0.2),
            steps_left=Rate(40_600.0, 38_000.0, 44_500.0),
            seconds_left=Rate(18_600.0, 17_400.0, 20_400.0),
            at_step=41_012,
            says="",
        ),
        notes=("a save at steps 100, 200, 300 and 400 raised RSS by 310 MiB for 0.8 s",),
    )
    return msgspec.structs.replace(report, **changes)


def unknown(**changes: Any) -> Report:
    """Too short to say anything."""
    report = steady(
        verdict=Outcome.UNKNOWN,
        because="only 12 steps after warm-up; run at least 60",
        steps=52,
        seconds=23.0,
        verdicts=(
            verdict(
                outcome=Outcome.UNKNOWN,
                shape=Shape.UNCLEAR,
                per_step=Rate(9.0 * KIB, -80.0 * KIB, 98.0 * KIB),
                visible=240.0 * KIB,
            ),
            verdict(
                "process.rss_bytes",
                Outcome.UNKNOWN,
                Shape.UNCLEAR,
                per_step=Rate(float("nan"), float("-inf"), float("inf")),
                visible=float("inf"),
            ),
        ),
        peak=None,
        notes=(),
    )
    return msgspec.structs.replace(report, **changes)


def killed(**changes: Any) -> Report:
    """Grew into its limit; the kernel ended it."""
    report = growing(
        ending=Ending(
            exit_code=None,
            signal=9,
            says="killed by signal 9 at step 412; memory was at 99 % of the cgroup limit",
        ),
        forecast=None,
        processes=(process(exit_code=None, signal=9),),
    )
    return msgspec.structs.replace(report, **changes)


def many_processes(**changes: Any) -> Report:
    """A training process, two data loader workers and a program in another language."""
    workers = [f"{4720 + n}-88930{n}" for n in range(2)]
    report = growing(
        because="memory in use grows 412 KiB/step in each of 2 worker processes",
        verdicts=(
            verdict(),
            *(
                verdict(
                    "process.uss_bytes",
                    Outcome.GROWING,
                    Shape.COPY_ON_WRITE,
                    per_step=rate((412 + 3 * n) * KIB),
                    visible=16.0 * KIB,
                    process=key,
                )
                for n, key in enumerate(workers)
            ),
        ),
        processes=(
            process(),
            *(
                process(
                    f"worker {n}",
                    4720 + n,
                    key,
                    steps=206,
                    last_shared_bytes=410 * MIB,
                    last_pss_bytes=1040 * MIB,
                    copied_bytes=620 * MIB,
                    allocated_bytes=14 * MIB,
                )
                for n, key in enumerate(workers)
            ),
            process(
                "ffmpeg",
                4733,
                "4733-889555",
                steps=None,
                last_uss_bytes=None,
                is_followed=False,
                exit_code=None,
                signal=15,
            ),
        ),
        blind_spots=(
            Gap("gpu", "this machine has no GPU"),
            Gap("heap in use", "the allocator is jemalloc", workers[0]),
            Gap("heap in use", "the allocator is jemalloc", workers[1]),
            Gap("inside the process", "it is not a Python program", "4733-889555"),
        ),
        unexplained={},
        peak=None,
    )
    return msgspec.structs.replace(report, **changes)


def leaking_workers(**changes: Any) -> Report:
    """The workers leak, the main process does not."""
    report = many_processes(
        verdict=Outcome.LEAK,
        because="memory in use grows 412 KiB/step in each of 2 worker processes",
        findings=(WORKERS_FINDING,),
        unexplained={"process.uss_bytes worker 0": 7.0 * KIB, "process.uss_bytes worker 1": 0.0},
    )
    return msgspec.structs.replace(report, **changes)


FINDING = Finding(
    rule="LS101",
    name="loss-kept-with-graph",
    blame="your-code",
    certainty=0.97,
    says="list `losses` keeps one live autograd graph more each step",
    bytes_per_step=3.1 * MIB,
    share=0.98,
    count_per_step=1.0,
    site=Site("train.py", 57, "training_step", "loss = criterion(model(x), y)"),
    keeper=Site("train.py", 58, "training_step", "losses.append(loss)"),
    holder=(
        "module train",
        ".losses list, 412 items, +1.0/step",
        "[x] Tensor [] float32, grad_fn MeanBackward0",
        "38 saved tensors, +3.1 MiB/step",
    ),
    fix=Fix(
        "losses.append(loss.detach())",
        "--- train.py\n+++ train.py\n@@ -58 +58 @@\n-losses.append(loss)\n"
        "+losses.append(loss.detach())\n",
    ),
    fingerprint="3f9c1e07",
    processes=(MAIN,),
    trace=(
        TraceLine("module train", "", "needed (a module)"),
        TraceLine(".losses", "list, 412 items, +1.0/step", "GROWING", is_suspect=True),
        TraceLine("[x]", "Tensor [] float32, grad_fn MeanBackward0"),
        TraceLine("", "38 saved tensors", "+3.1 MiB/step"),
    ),
)

WORKERS_FINDING = Finding(
    rule="LS201",
    name="cache-in-workers",
    blame="your-code",
    certainty=0.9,
    says="dict `cache` of the data set keeps 4.1 arrays more per step in each worker",
    bytes_per_step=820.0 * KIB,
    share=0.99,
    count_per_step=8.2,
    site=Site(
        "data/crops.py",
        30,
        "Scans.__getitem__",
        "crop = self.load(i)[top:top + self.size, left:left + self.size].copy()",
    ),
    keeper=Site("data/crops.py", 31, "Scans.__getitem__", "self.cache[key] = crop"),
    holder=("local fetcher in _worker_loop() _MapDatasetFetcher", ".dataset Scans", ".cache dict"),
    fix=Fix("keep the decoded scans only, not each crop of them"),
    fingerprint="0c55aa10",
    processes=("4720-889300", "4721-889301"),
    trace=(
        TraceLine("thread MainThread", "", "needed (it is running)"),
        TraceLine(
            "local fetcher in _worker_loop()", "_MapDatasetFetcher", "in torch/utils/data/worker.py"
        ),
        TraceLine(".dataset", "Scans"),
        TraceLine(".cache", "dict, 3,381 items", "+8.2 per step", is_suspect=True),
        TraceLine("[x]", "numpy.ndarray (64, 64) float32, base of nothing else"),
    ),
)


def leaking(**changes: Any) -> Report:
    """Everything a report can have."""
    report = growing(
        verdict=Outcome.LEAK,
        because="the list `losses` keeps 3.1 MiB/step more, and nothing drops it",
        verdicts=(
            verdict(outcome=Outcome.LEAK, shape=Shape.LINEAR, per_step=rate(3.1 * MIB)),
            verdict(
                "torch.cuda.allocated_bytes",
                Outcome.STEADY,
                Shape.SAW_TOOTH,
                visible=512.0,
                device="cuda:0",
            ),
        ),
        findings=(
            FINDING,
            Finding(
                rule="LS051",
                name="allocator-holds-freed-pages",
                blame="allocator",
                certainty=0.8,
                says="glibc keeps freed pages between small blocks that live on",
                bytes_per_step=60.0 * KIB,
                share=0.019,
            ),
        ),
        unexplained={f"heap.in_use_bytes {MAIN}": 3.2 * KIB},
    )
    return msgspec.structs.replace(report, **changes)


CASES = {
    "steady": steady,
    "growing": growing,
    "unknown": unknown,
    "killed": killed,
    "many-processes": many_processes,
    "leaking": leaking,
    "leaking-workers": leaking_workers,
}
