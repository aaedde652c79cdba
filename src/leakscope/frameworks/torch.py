"""PyTorch: where its steps are, and what its optimizer holds. Never imports torch itself.

Steps come from the global optimizer hook; when nothing trains, from the outermost module call;
in workers, from the fetch of a batch. Modules, loaders and files are heard through taps, which
leave no frame on the program's stack (see observe/tap.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Protocol

from leakscope.model import Gap, Tally
from leakscope.observe.guard import guarded
from leakscope.observe.tap import Tap

_ROOT_CALLS_TO_LEARN_FROM = 48
"""After so many outermost calls the classes that make them are known, and only those are heard:
hearing every module costs 0.5 µs a call, hearing the roots costs it once a step."""

_TALLY_WINDOW = 4
"""Optimizers that step within so many steps of each other are one training loop's (a GAN's two)."""


class Listener(Protocol):
    """What the adapter needs of the agent."""

    steps: dict[str, int]
    kind: str

    def beat(self, source: str) -> None: ...
    def row_before_first_step(self) -> None: ...
    def mark(self, what: str, *, began_ns: int = 0, text: str | None = None) -> None: ...
    def census(self, probe: str, tallies: tuple[Tally, ...]) -> None: ...
    def gap(self, gap: Gap) -> None: ...
    def became(self, kind: str, name: str) -> None: ...


class TorchAdapter:
    """The hooks of one process, armed once torch is in `sys.modules`."""

    def __init__(self, agent: Listener, torch: Any) -> None:
        self._agent = agent
        self._torch = torch
        self._handles: list[Any] = []
        self._taps: list[Tap] = []
        self._module_tap: Tap | None = None
        self._root_calls: dict[type, int] = {}
        self._first_read = sys.maxsize
        self._tallied: dict[int, dict[str, tuple[int, int]]] = {}
        self._tally_until = 0

    def arm(self) -> None:
        """Hook what is there; a torch without one of these places leaves a named gap."""
        for name, hook in (
            ("optimizer steps", self._hook_optimizers),
            ("module calls", self._hook_modules),
            ("data loader", self._hook_loaders),
            ("checkpoints", self._hook_saves),
        ):
            guarded(hook, name, self._agent.gap)()

    def disarm(self) -> None:
        for handle in self._handles:
            handle.remove()
        for tap in self._taps:
            tap.remove()
        self._handles.clear()
        self._taps.clear()

    # ── the optimizer ──

    def _hook_optimizers(self) -> None:
        optimizer = sys.modules["torch.optim.optimizer"]  # torch.optim deletes the name
        before = self._guard(self._before_first_step, "optimizer steps")
        self._before = optimizer.register_optimizer_step_pre_hook(before)
        after = self._guard(self._after_step, "optimizer steps")
        self._handles += [self._before, optimizer.register_optimizer_step_post_hook(after)]

    def _before_first_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._before.remove()
        self._agent.row_before_first_step()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        agent = self._agent
        agent.beat("optimizer")
        step = agent.steps["optimizer"]
        if step & (step - 1) == 0:  # 1, 2, 4, 8 …
            self._tallied.clear()
            self._tally_until = step + _TALLY_WINDOW
        if step < self._tally_until:
            self._tallied[id(optimizer)] = _tally(optimizer)
            if step == self._tally_until - 1:
                agent.census("torch.optimizer", _add_up(self._tallied))
        if step == _ROOT_CALLS_TO_LEARN_FROM and self._module_tap is not None:
            self._narrow_to_roots()

    # ── modules ──

    def _hook_modules(self) -> None:
        module = self._torch.nn.Module
        # Read at the start of every call, and only there (torch 2.1 to 2.13): see
        # `_wrapped_call_impl` in torch/nn/modules/module.py.
        self._call_code: CodeType = module._wrapped_call_impl.__code__
        self._on_call = self._guard(self._module_called, "module calls")
        self._module_tap = self._tap(module, "_compiled_call_impl", on_read=self._on_call)

    def _module_called(self, module: Any) -> None:
        if self._is_nested():
            return
        self._agent.beat("forward")
        if self._module_tap is not None:
            root = type(module)
            calls = self._root_calls[root] = self._root_calls.get(root, 0) + 1
            if calls == _ROOT_CALLS_TO_LEARN_FROM:
                self._narrow_to_roots()

    def _is_nested(self) -> bool:
        """True inside another module's call: such a call is somewhere up the stack."""
        # The tap, its guard, the listener and this method lie above the call being made.
        call = sys._getframe(4)
        if call.f_lasti > self._first_read:
            return True  # a compiled module reads the attribute twice in one call
        self._first_read = call.f_lasti
        frame: FrameType | None = call.f_back
        while frame is not None:
            if frame.f_code is self._call_code:
                return True
            frame = frame.f_back
        return False

    def _narrow_to_roots(self) -> None:
        if self._module_tap is not None:
            self._module_tap.remove()
            self._module_tap = None
            for root in self._root_calls:
                self._tap(root, "_compiled_call_impl", on_read=self._on_call)
            self._root_calls.clear()

    # ── data loaders and their workers ──

    def _hook_loaders(self) -> None:
        data = self._torch.utils.data
        yielded = self._guard(self._batch_yielded, "data loader")
        self._tap(data.dataloader._BaseDataLoaderIter, "_num_yielded", on_set=yielded)
        fetched = self._guard(self._batch_fetched, "data loader workers")
        self._tap(data._utils.fetch._BaseDatasetFetcher, "auto_collation", on_read=fetched)

    def _batch_yielded(self, iterator: Any, count: int) -> None:
        if count:
            self._agent.beat("dataloader")

    def _batch_fetched(self, fetcher: Any) -> None:
        worker = self._torch.utils.data._utils.worker._worker_info
        if worker is not None:
            if self._agent.kind != "worker":
                self._agent.became("worker", f"worker {worker.id}")
            self._agent.beat("fetch")

    # ── checkpoints ──

    def _hook_saves(self) -> None:
        serialization = self._torch.serialization
        touched = self._guard(self._archive_touched, "checkpoints")
        for name in ("_open_zipfile_writer_file", "_open_zipfile_writer_buffer"):
            self._tap(getattr(serialization, name), "file_like", on_read=touched)

    def _archive_touched(self, archive: Any) -> None:
        # Read once when the archive is entered and once when it is closed.
        self._agent.mark("save")

    # ── small things ──

    def _guard(self, event: Callable[..., Any], name: str) -> Callable[..., None]:
        return guarded(event, name, self._agent.gap)

    def _tap(self, owner: type, name: str, **listeners: Any) -> Tap:
        tap = Tap(owner, name, **listeners).install()
        self._taps.append(tap)
        return tap


def _tally(optimizer: Any) -> dict[str, tuple[int, int]]:
    """Count and bytes by role, of one optimizer. Keeps nothing of it."""
    tallies = {"parameter": (0, 0), "gradient": (0, 0), "optimizer state": (0, 0)}

    def add(role: str, tensor: Any) -> None:
        count, size = tallies[role]
        tallies[role] = (count + 1, size + tensor.numel() * tensor.element_size())

    tensor_type = sys.modules["torch"].Tensor
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            add("parameter", parameter)
            if parameter.grad is not None:
                add("gradient", parameter.grad)
            state = optimizer.state.get(parameter) if parameter in optimizer.state else None
            for value in (state or {}).values():
                # type(), not isinstance(): isinstance runs the `__class__` of lazy proxies.
                if issubclass(type(value), tensor_type):
                    add("optimizer state", value)
    return tallies


def _add_up(tallied: dict[int, dict[str, tuple[int, int]]]) -> tuple[Tally, ...]:
    totals: dict[str, tuple[int, int]] = {}
    for tallies in tallied.values():
        for role, (count, size) in tallies.items():
            old_count, old_size = totals.get(role, (0, 0))
            totals[role] = (old_count + count, old_size + size)
    return tuple(Tally("torch.Tensor", role, count, size) for role, (count, size) in totals.items())


_armed: dict[int, TorchAdapter] = {}


def arm(agent: Listener) -> None:
    """Hook torch for this agent, if torch is there and not hooked yet."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "optim") and id(agent) not in _armed:
        _armed[id(agent)] = adapter = TorchAdapter(agent, torch)
        adapter.arm()


def disarm(agent: Listener) -> None:
    adapter = _armed.pop(id(agent), None)
    if adapter is not None:
        adapter.disarm()
