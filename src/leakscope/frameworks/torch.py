"""PyTorch: where its steps are, and what its optimizer holds. Never imports torch itself.

Steps come from the global optimizer hook; when nothing trains, from the outermost module call;
in workers, from the fetch of a batch. Modules, loaders and files are heard through taps, which
leave no frame on the program's stack (see observe/tap.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from leakscope.frameworks.listener import Listener
from leakscope.model import Tally
from leakscope.observe.devices.door import open_door
from leakscope.observe.guard import guarded
from leakscope.observe.tap import CallTap, CountTap, SetTap, Tap

_ROOT_CALLS_TO_LEARN_FROM = 48
"""After so many outermost calls the classes that make them are known, and only those are heard:
hearing every module costs 0.5 µs a call, hearing the roots costs it once a step."""

_STEPS_BEFORE_REST = 16
_CALLED = "_compiled_call_impl"
_TAP_CODE = Tap.__get__.__code__

_FETCHED = "auto_collation"
"""Read once for every batch that a data set is asked for (torch 2.1 to 2.13)."""

_OPTIMIZERS_TO_MEET = 4
"""Optimizers that step within so many steps of each other are one training loop's (a GAN's two)."""


class TorchAdapter:
    """The hooks of one process, armed once torch is in `sys.modules`."""

    def __init__(self, agent: Listener, torch: Any) -> None:
        self._agent = agent
        self._torch = torch
        self._handles: list[Any] = []
        self._taps: list[Tap] = []
        self._weaker_taps: list[Tap] = []
        self._is_resting = False
        self._nested: WeakSet[type] = WeakSet()
        self._module_tap: Tap | None = None
        # Weak: a class that the program makes and drops must not live on because of us.
        self._root_calls: WeakKeyDictionary[type, int] = WeakKeyDictionary()
        self._first_read = sys.maxsize
        self._tallied: dict[int, Tallies] = {}
        self._tallies_left = 0
        self._next_tally = 1

    def arm(self) -> None:
        """Hook what is there; a torch without one of these places leaves a named gap."""
        for name, hook in (
            ("torch.compile", _hide_from_dynamo),
            ("optimizer steps", self._hook_optimizers),
            ("data loader workers", self._hook_workers),
            ("checkpoints", self._hook_saves),
            ("GPU memory", self._meet_devices),
        ):
            self._guard(hook, name)()
        self._listen()
        self._agent.on_idle = self._guard(self._wake, "module calls")

    def disarm(self) -> None:
        self._agent.on_idle = None  # first, or a collection meanwhile would make us listen again
        for handle in self._handles:
            handle.remove()
        self._stop_listening()
        for tap in self._taps:
            tap.remove()
        self._handles.clear()
        self._taps.clear()

    def _meet_devices(self) -> None:
        door = open_door(self._torch)
        if door is not None:
            self._agent.met_devices(door)

    # ── the optimizer ──

    def _hook_optimizers(self) -> None:
        optimizer = sys.modules["torch.optim.optimizer"]  # torch.optim deletes the name
        take_row = self._guard(self._agent.row_before_first_step, "optimizer steps")
        before = optimizer.register_optimizer_step_pre_hook(_make_first_step_hook(take_row))
        self._on_tally = self._guard(self._take_tally, "optimizer state")
        after = self._make_step_hook(self._guard(self._look_at_step, "optimizer steps"))
        self._handles += [before, optimizer.register_optimizer_step_post_hook(after)]

    def _make_step_hook(self, look: Callable[..., None]) -> Callable[[Any, Any, Any], None]:
        """The hook of every step: counts down, and looks closer at zero."""
        counter = self._agent.counters["optimizer"]

        def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            counter.left -= 1
            if counter.left <= 0:
                look(optimizer)

        return _untraced(after_step)

    def _look_at_step(self, optimizer: Any) -> None:
        counter = self._agent.counters["optimizer"]
        counter.look()
        step = counter.count
        if step >= self._next_tally and not self._tallies_left:
            self._next_tally = 2 * step
            self._tallies_left = _OPTIMIZERS_TO_MEET
            self._tallied.clear()
        if self._tallies_left:
            self._tallies_left -= 1
            self._on_tally(optimizer)
            if self._tallies_left:
                counter.look_at_next()
            elif self._tallied:
                self._agent.census("torch.optimizer", _add_up(self._tallied))
        counts_by_optimizer = self._agent.steps_from in ("auto", "optimizer")
        if counts_by_optimizer and step >= _STEPS_BEFORE_REST and not self._is_resting:
            self._rest()

    def _take_tally(self, optimizer: Any) -> None:
        # The functions of the program's own tensor classes and modes must not run for us.
        with self._torch._C.DisableTorchFunction():
            self._tallied[id(optimizer)] = _tally(optimizer)

    # ── module calls and batches, heard only while nothing trains ──

    def _listen(self) -> None:
        self._stop_listening()
        self._is_resting = False
        for name, hook in (
            ("module calls", self._hook_modules),
            ("data loader", self._hook_loaders),
        ):
            self._guard(hook, name)()

    def _rest(self) -> None:
        """The optimizer counts the steps: hear nothing weaker, for each tap costs some 5 µs a
        step."""
        self._is_resting = True
        self._stop_listening()

    def _wake(self) -> None:
        """No row for a while: training may be over, or another model be at work. Hear all again."""
        if self._module_tap is None:
            self._listen()

    def _stop_listening(self) -> None:
        for tap in self._weaker_taps:
            tap.remove()
        self._weaker_taps.clear()
        self._module_tap = None

    def _hook_modules(self) -> None:
        module = self._torch.nn.Module
        # Read at the start of every call, and only there (torch 2.1 to 2.13): see
        # `_wrapped_call_impl` in torch/nn/modules/module.py.
        self._call_code: CodeType = module._wrapped_call_impl.__code__
        for kind in list(self._root_calls):
            self._root_calls[kind] = 0  # learn anew, and go on hearing those known already
        learn = self._guard(self._learn_from_call, "module calls")
        self._module_tap = self._tap_weaker(module, _CALLED, on_read=learn)

    def _learn_from_call(self, module: Any) -> None:
        """While every module is heard: count the outermost calls, and learn who makes them."""
        kind = type(module)
        if self._is_nested():
            self._nested.add(kind)
            return
        self._agent.beat("forward")
        calls = self._root_calls[kind] = self._root_calls.get(kind, 0) + 1
        if calls >= _ROOT_CALLS_TO_LEARN_FROM and self._module_tap is not None:
            self._module_tap.remove()
            self._module_tap = None
            self._hear_roots()

    def _hear_roots(self) -> None:
        """Hear the classes that make outermost calls. One that was also seen inside another
        module's call needs a look at the stack each time; the others are only counted."""
        check = self._guard(self._count_if_outermost, "module calls")
        counter = self._agent.counters["forward"]
        look = self._guard(counter.look, "module calls")
        for root in list(self._root_calls):
            if root in self._nested:
                self._tap_weaker(root, _CALLED, on_read=check)
            else:
                self._weaker_taps.append(CallTap(root, _CALLED, counter, look).install())

    def _count_if_outermost(self, module: Any) -> None:
        if not self._is_nested():
            self._agent.beat("forward")

    def _is_nested(self) -> bool:
        """True inside another module's call: such a call is somewhere up the stack."""
        call: FrameType | None = sys._getframe(2)
        while call is not None and call.f_code is not _TAP_CODE:
            call = call.f_back
        call = call.f_back if call is not None else None
        if call is None or call.f_code is not self._call_code:
            return True  # somebody looks at the attribute (torch.jit, inspect); nothing is called
        if call.f_lasti > self._first_read:
            return True  # a compiled module reads the attribute twice in one call
        self._first_read = call.f_lasti
        frame = call.f_back
        while frame is not None:
            if frame.f_code is self._call_code:
                return True
            frame = frame.f_back
        return False

    def _hook_loaders(self) -> None:
        iterator = self._torch.utils.data.dataloader._BaseDataLoaderIter
        counter = self._agent.counters["dataloader"]
        look = self._guard(counter.look, "data loader")
        self._weaker_taps.append(SetTap(iterator, "_num_yielded", counter, look).install())

    # ── workers ──

    def _hook_workers(self) -> None:
        fetched = self._guard(self._batch_fetched, "data loader workers")
        self._on_dataset = self._guard(self._agent.met_dataset, "the worker's data set")
        fetcher = self._torch.utils.data._utils.fetch._BaseDatasetFetcher
        self._fetch_tap = Tap(fetcher, _FETCHED, on_read=fetched).install()
        self._taps.append(self._fetch_tap)

    def _batch_fetched(self, fetcher: Any) -> None:
        """Without workers the program itself fetches, and that is no step."""
        worker = self._torch.utils.data._utils.worker._worker_info
        if worker is not None:
            if self._agent.kind != "worker":
                self._agent.became("worker", f"worker {worker.id}")
                self._on_dataset(worker.dataset)
            self._agent.beat("fetch")
            self._only_count_fetches()

    def _only_count_fetches(self) -> None:
        """A worker does nothing else to its end: from here on each costs a subtraction. What is
        asked above took 10 µs of a batch of 3 ms, for it had left the caches."""
        counter = self._agent.counters["fetch"]
        look = self._guard(counter.look, "data loader workers")
        fetcher = self._torch.utils.data._utils.fetch._BaseDatasetFetcher
        self._fetch_tap.remove()
        self._taps.remove(self._fetch_tap)
        self._taps.append(CountTap(fetcher, _FETCHED, counter, look).install())

    # ── checkpoints ──

    def _hook_saves(self) -> None:
        serialization = self._torch.serialization
        touched = self._guard(self._archive_touched, "checkpoints")
        for name in ("_open_zipfile_writer_file", "_open_zipfile_writer_buffer"):
            tap = Tap(getattr(serialization, name), "file_like", on_read=touched)
            self._taps.append(tap.install())

    def _archive_touched(self, archive: Any) -> None:
        # Read once when the archive is entered and once when it is closed.
        self._agent.mark("save")

    # ── small things ──

    def _guard(self, event: Callable[..., Any], name: str) -> Callable[..., None]:
        return guarded(event, name, self._agent.gap)

    def _tap_weaker(self, owner: type, name: str, **listeners: Any) -> Tap:
        tap = Tap(owner, name, **listeners).install()
        self._weaker_taps.append(tap)
        return tap


def _make_first_step_hook(take_row: Callable[[], None]) -> Callable[[Any, Any, Any], None]:
    """Takes the row before the first step, and stays: torch goes through its hooks while it calls
    them, and one that removes itself breaks the program if there is another behind it."""
    is_first = True

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            take_row()

    return _untraced(before_step)


def _hide_from_dynamo() -> None:
    """Keep torch.compile out of our functions: it would compile them as if they were the program's,
    and warn about them on its stderr. Sets a flag of the code objects; imports no dynamo."""
    for function in (guarded(print, "", print), Tap.__get__, Tap.__set__, Tap.__delete__):
        _skip_frames(function)
    _skip_frames(CallTap.__get__)


def _skip_frames(function: Any) -> None:
    dynamo = sys.modules["torch._C._dynamo.eval_frame"]
    skip = dynamo._FrameAction.SKIP
    dynamo.set_code_exec_strategy(function.__code__, dynamo._FrameExecStrategy(skip, skip))


def _untraced(hook: Callable[..., None]) -> Callable[..., None]:
    """What `torch.compiler.disable` does, without importing it: a compiled optimizer step calls
    the hook instead of compiling it."""
    hook.__dict__["_torchdynamo_disable"] = True
    with suppress(AttributeError, KeyError):  # an older torch: said by `_hide_from_dynamo`
        _skip_frames(hook)
    return hook


Tallies = dict[tuple[str, str], tuple[int, int]]
"""Count and bytes by place (the host's tensors, or the name of a device) and role."""

_IN_HOST = "torch.Tensor"


def _tally(optimizer: Any) -> Tallies:
    """What one optimizer has. Keeps nothing of it."""
    tallies: Tallies = {}

    def add(role: str, tensor: Any) -> None:
        where = _IN_HOST if tensor.is_cpu else str(tensor.device)
        count, size = tallies.get((where, role), (0, 0))
        size += tensor.numel() * tensor.element_size()
        tallies[where, role] = (count + 1, size)

    tensor_type = sys.modules["torch"].Tensor
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            add("parameter", parameter)
            # Asking a tensor inside a graph for its gradient makes torch warn.
            if parameter.is_leaf and parameter.grad is not None:
                add("gradient", parameter.grad)
            state = optimizer.state.get(parameter) if parameter in optimizer.state else None
            for value in (state or {}).values():
                # type(), not isinstance(): isinstance runs the `__class__` of lazy proxies.
                if issubclass(type(value), tensor_type):
                    add("optimizer state", value)
    return tallies


def _add_up(tallied: dict[int, Tallies]) -> tuple[Tally, ...]:
    totals: Tallies = {}
    for tallies in tallied.values():
        for key, (count, size) in tallies.items():
            old_count, old_size = totals.get(key, (0, 0))
            totals[key] = (old_count + count, old_size + size)
    return tuple(Tally(*key, count, size) for key, (count, size) in totals.items())


def meet(agent: Listener, *, is_loaded: bool = False) -> TorchAdapter | None:
    """The hooks of torch for this agent; None while torch is not there, or not all there yet.

    `is_loaded` is the word of a caller who knows that its import has just been done: Python
    itself marks it so a moment later.
    """
    torch = sys.modules.get("torch")
    is_loading = getattr(getattr(torch, "__spec__", None), "_initializing", False)
    if torch is None or (is_loading and not is_loaded) or not hasattr(torch, "optim"):
        return None
    return TorchAdapter(agent, torch)
