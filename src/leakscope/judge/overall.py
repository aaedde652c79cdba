"""The accounts of all processes in, the verdict on the run out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leakscope import text
from leakscope.engines import Engine, here
from leakscope.judge.account import Account, account_for
from leakscope.judge.crowd import Crowd, crowd_of, find_crowds, parent_in
from leakscope.judge.device_account import account_for_device
from leakscope.judge.series import PINNED, RunSeries
from leakscope.judge.start_up import judged_after_start
from leakscope.model import Outcome, Rate, Series, SeriesKey, Shape, Verdict

TREE_METRIC = "tree.growth_bytes"
ALL = "all"

_DAY_S = 86_400.0
_SHARE_A_DAY = 0.25
_SMALLEST = 64.0
_LARGEST = 1024.0
"""Growth matters if it would take a quarter of the memory limit in a day (jobs die after hours to
days, not months), but never below 64 bytes and always from 1 KiB a step on: a list of losses kept
as floats grows by 32 bytes a step, and is what people mean to do."""

_SMALLEST_BY_CLOCK = float(1 << 20)
"""Bytes in all. By the clock a step is 10 ms of whatever the program does, starting up included:
a few hundred KiB in a run are its warm-up, or the agent's own."""

_FEWEST_STEPS = 8
_SEVERITY = (Outcome.STEADY, Outcome.UNKNOWN, Outcome.GROWING, Outcome.LEAK)


class Overall(NamedTuple):
    outcome: Outcome
    because: str
    verdicts: tuple[Verdict, ...]
    accounts: tuple[Account, ...]
    crowds: tuple[Crowd, ...] = ()
    """Accounts of children that pile up are among the others; here is what they consist of."""

    def growing(self) -> tuple[Account, ...]:
        return tuple(one for one in self.accounts if one.verdict.outcome in _SEVERITY[2:])


class Charge(NamedTuple):
    """One process to be judged: all that it takes, so that it can be done anywhere."""

    process: str
    series: dict[str, Series]
    smallest_that_matters: float
    is_child: bool


def judge_process(charge: Charge) -> Account | None:
    return account_for(
        charge.process,
        charge.series,
        charge.smallest_that_matters,
        is_child=charge.is_child,
    )


def judge_run(
    run: RunSeries, limit_bytes: int | None, names: dict[str, str], engine: Engine = here
) -> Overall:
    """Judge every process, then say one thing about all of them."""
    smallest = smallest_that_matters(run.axis.step_seconds, limit_bytes)
    if run.axis.tick_s is not None:
        smallest = max(smallest, _SMALLEST_BY_CLOCK / max(run.axis.last_step, 1))
    by_process: dict[str, dict[str, Series]] = {}
    for (metric, process), series in run.series.items():
        by_process.setdefault(process, {})[metric] = series
    charges = [
        Charge(
            process,
            series,
            smallest,
            not _has_kind(run, process, "main"),
        )
        for process, series in by_process.items()
        if not _has_kind(run, process, "helper")
    ]
    accounts = [one for one in engine(judge_process, charges) if one is not None]
    accounts += _accounts_on_devices(run, [charge.process for charge in charges], smallest)
    crowds = find_crowds(run)
    overall = conclude(run, [*accounts, *(crowd.account for crowd in crowds)], names)
    return overall._replace(crowds=crowds)


def _accounts_on_devices(
    run: RunSeries, processes: Sequence[str], smallest: float
) -> list[Account]:
    found = (
        account_for_device(process, device, series, smallest)
        for process in processes
        for device, series in run.devices_of(process).items()
    )
    return [one for one in found if one is not None]


def conclude(run: RunSeries, accounts: Sequence[Account], names: dict[str, str]) -> Overall:
    """One answer for the run from those for its processes."""
    if not accounts:
        because = (
            "No step was seen and nothing could be sampled; run longer, or call leakscope.step()."
        )
        return Overall(Outcome.UNKNOWN, because, (), ())
    verdicts = [verdict for account in accounts for verdict in account.verdicts]
    if run.axis.tick_s is None and run.axis.last_step < _FEWEST_STEPS:
        steps = text.plural(run.axis.last_step, "step")
        because = f"Only {steps} were made, too few to tell growth from warm-up; run at least 60."
        return Overall(Outcome.UNKNOWN, because, tuple(verdicts), ())
    if run.axis.tick_s is not None:
        accounts = judged_after_start(run, accounts)
        verdicts = [verdict for account in accounts for verdict in account.verdicts]
    growing = [one for one in accounts if one.verdict.outcome in _SEVERITY[2:]]
    # A device is smaller than the host and nothing is swapped there: it is told of first.
    leading = [one for one in growing if one.device is not None] or growing
    also = _also(growing, leading)
    is_several = len({account.process for account in accounts}) > 1
    if len(leading) > 1 or (leading and is_several):
        tree = _sum(leading, names)
        because = tree.because + also
        return Overall(tree.outcome, because, (tree, *verdicts), tuple(accounts))
    if leading:
        lead = leading[0].verdict
        ordered = (lead, *(one for one in verdicts if one is not lead))
        return Overall(lead.outcome, lead.because + also, ordered, tuple(accounts))
    lead = _least_sure(run, accounts).verdict
    if lead.outcome is Outcome.STEADY and (rise := run.rise_after_last_step()) > 0:
        because = (
            f"Memory was steady over the steps counted at the {run.axis.source}, but rose by "
            f"{text.size(rise)} after the last of them, where none were counted: judge that part "
            "with --steps-from forward, or call leakscope.step() in it."
        )
        return Overall(Outcome.UNKNOWN, because, tuple(verdicts), tuple(accounts))
    return Overall(lead.outcome, lead.because, tuple(verdicts), tuple(accounts))


def smallest_that_matters(step_seconds: float | None, limit_bytes: int | None) -> float:
    """Bytes per step below which growth is not worth a word in the verdict."""
    if step_seconds is None or limit_bytes is None:
        return _LARGEST
    a_step = _SHARE_A_DAY * limit_bytes * step_seconds / _DAY_S
    return min(max(a_step, _SMALLEST), _LARGEST)


def _also(growing: Sequence[Account], told: Sequence[Account]) -> str:
    """The host's memory, where a device's is what is told of."""
    rest = [one.verdict.bytes_per_step.value for one in growing if one not in told]
    return f" Host memory grows by {text.size(sum(rest))} per step too." if rest else ""


def _least_sure(run: RunSeries, accounts: Sequence[Account]) -> Account:
    """Of the leading process: its host account, or that of a device, which goes first unless only
    the host's is undecided."""
    lead = _leading(run, accounts)
    same = [one for one in accounts if one.process == lead.process]
    on_device = [one for one in same if one.device is not None and one.device != PINNED]
    ordered = [*on_device, lead]
    undecided = [one for one in ordered if one.verdict.outcome is Outcome.UNKNOWN]
    return (undecided or ordered)[0]


def _leading(run: RunSeries, accounts: Sequence[Account]) -> Account:
    """The process the run is about: it counts the steps, or it is the main one."""
    accounts = [one for one in accounts if one.device is None] or accounts
    for account in accounts:
        if account.process == run.axis.process:
            return account
    starts = run.recording.starts
    for account in accounts:
        start = starts.get(account.process)
        if start is not None and start.kind == "main":
            return account
    return accounts[0]


def _has_kind(run: RunSeries, process: str, kind: str) -> bool:
    start = run.recording.starts.get(process)
    return start is not None and start.kind == kind


def _name(account: Account, names: dict[str, str]) -> str:
    parent = parent_in(account.process)
    if parent in names:
        return crowd_of(names[parent])
    name = names.get(account.process, account.process)
    return f"{name} on {account.device}" if account.device else name


def _of_what(growing: Sequence[Account]) -> str:
    processes = len({account.process for account in growing})
    if processes == len(growing):
        return f"{processes} processes"
    return f"{text.plural(processes, 'process', 'processes')} on {len(growing)} devices"


def _sum(growing: Sequence[Account], names: dict[str, str]) -> Verdict:
    """The growth of several processes, as the machine feels it."""
    rates = [account.verdict.bytes_per_step for account in growing]
    total = Rate(
        sum(rate.value for rate in rates),
        sum(rate.low for rate in rates),
        sum(rate.high for rate in rates),
    )
    outcome = max((account.verdict.outcome for account in growing), key=_SEVERITY.index)
    largest = max(growing, key=lambda account: account.verdict.bytes_per_step.value)
    who = ", ".join(_name(account, names) for account in growing[:4])
    if len(growing) > 4:
        who += f" and {len(growing) - 4} more"
    if len(growing) == 1:
        because = f"{who}: {largest.verdict.because}"
    else:
        because = (
            f"{_of_what(growing)} grow by {text.size(total.value)} per step together "
            f"({who}). {largest.verdict.because}"
        )
    shapes = {account.verdict.shape for account in growing}
    return Verdict(
        series=SeriesKey(TREE_METRIC, ALL),
        outcome=outcome,
        shape=shapes.pop() if len(shapes) == 1 else Shape.LINEAR,
        because=because,
        bytes_per_step=total,
        smallest_visible_bytes_per_step=sum(
            account.verdict.smallest_visible_bytes_per_step for account in growing
        ),
        from_step=min(account.verdict.from_step for account in growing),
        to_step=max(account.verdict.to_step for account in growing),
        grown_bytes=sum(account.verdict.grown_bytes for account in growing),
    )
