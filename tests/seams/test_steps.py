"""Steps are counted exactly, whatever the loop looks like, and nothing is left in torch."""

from __future__ import annotations

import copy
import gc
import inspect
import io
import pickle
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leakscope
from leakscope.agent.current import running_agent
from leakscope.model import SEVERAL_STEP
from leakscope.record.reader import Recording
from running import steps_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

pytestmark = pytest.mark.torch


def _traces_in_torch() -> dict[str, Any]:
    """Every place of torch the adapter touches, as it is now."""
    data = torch.utils.data
    optimizer = inspect.getmodule(torch.optim.Optimizer)
    serialization = torch.serialization
    return {
        "module": dict(nn.Module.__dict__),
        "sequential": dict(nn.Sequential.__dict__),
        "linear": dict(nn.Linear.__dict__),
        "iterator": dict(data.dataloader._BaseDataLoaderIter.__dict__),
        "fetcher": dict(data._utils.fetch._BaseDatasetFetcher.__dict__),
        "archive": dict(serialization._open_zipfile_writer_file.__dict__),
        "buffer": dict(serialization._open_zipfile_writer_buffer.__dict__),
        "before": dict(optimizer._global_optimizer_pre_hooks),  # type: ignore[union-attr]
        "after": dict(optimizer._global_optimizer_post_hooks),  # type: ignore[union-attr]
        "collector": list(gc.callbacks),
    }


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Recording]:
    """Run a loop under `leakscope.watch()`, see that torch is as before, give the recording."""
    monkeypatch.delenv("LEAKSCOPE_RUN_DIR", raising=False)
    before = _traces_in_torch()

    def run(loop: Callable[[], object]) -> Recording:
        with leakscope.watch(tmp_path / "rec"):
            loop()
        assert _traces_in_torch() == before
        assert running_agent() is None
        recording = leakscope.load(tmp_path / "rec")
        assert recording.gaps == []
        return recording

    return run


def _ended(recording: Recording) -> tuple[str | None, int | None]:
    """The source of the steps and their number, as the last mark says."""
    (end,) = (mark for mark in recording.marks if mark.what == "end")
    return end.text, end.at.step


def _process(recording: Recording) -> str:
    (process,) = recording.followed
    return process


def _train(model: Any, optimizer: Any, steps: int, micro: int = 1) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(micro):
            model(torch.ones(2, 3)).sum().backward()
        optimizer.step()


class Twice(nn.Module):  # type: ignore[misc, name-defined]
    """Calls a module that calls modules, and one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 3)))

    def forward(self, x: Any) -> Any:
        return self.inner(self.inner(x))


def test_optimizer_steps_are_exact(watch: Callable[..., Recording]) -> None:
    """Breaks when a step is lost, counted twice, or the level before the first one is missing."""
    model = nn.Linear(3, 1)
    recording = watch(lambda: _train(model, torch.optim.Adam(model.parameters()), 137))
    assert _ended(recording) == ("optimizer", 137)
    steps = steps_of(recording, _process(recording), "optimizer")
    assert steps[:2] == [0, 1]
    assert steps == sorted(set(steps))
    assert steps[-1] <= 137


def test_micro_batches_are_no_steps(watch: Callable[..., Recording]) -> None:
    """Breaks when gradient accumulation counts forward passes instead of optimizer steps."""
    model = nn.Linear(3, 1)
    recording = watch(lambda: _train(model, torch.optim.SGD(model.parameters(), 0.1), 30, 8))
    assert _ended(recording) == ("optimizer", 30)
    assert recording.sources(_process(recording)) == ("forward", "optimizer")
    assert steps_of(recording, _process(recording), "forward")[-1] <= 8  # before the first step


def test_two_optimizers_count_both(watch: Callable[..., Recording]) -> None:
    """Breaks when one optimizer of a GAN is not heard, or is tallied without the other."""
    one, two = nn.Linear(3, 1), nn.Linear(3, 2)
    first, second = torch.optim.Adam(one.parameters()), torch.optim.Adam(two.parameters())

    def loop() -> None:
        for _ in range(20):
            _train(one, first, 1)
            _train(two, second, 1)

    recording = watch(loop)
    assert _ended(recording) == ("optimizer", 40)
    roles = {tally.role: tally.count for tally in recording.censuses[-1].tallies}
    # Per parameter of Adam: step, exp_avg, exp_avg_sq.
    assert roles == {"parameter": 4, "gradient": 4, "optimizer state": 12}


def test_evaluation_between_training_is_no_step(watch: Callable[..., Recording]) -> None:
    """Breaks when evaluation phases break up the numbering of training steps."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loop() -> None:
        for _ in range(4):
            _train(model, optimizer, 20)
            with torch.no_grad():
                for _ in range(40):
                    model(torch.ones(1, 3))

    recording = watch(loop)
    assert _ended(recording) == ("optimizer", 80)
    assert max(steps_of(recording, _process(recording), "forward")) <= 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(3, 3),
        lambda: nn.Sequential(nn.Sequential(nn.Linear(3, 3)), nn.ReLU()),
        Twice,
        lambda: torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.ReLU())),
    ],
    ids=["flat", "nested", "twice", "scripted"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inference_counts_outermost_calls(
    make: Callable[[], Any], watch: Callable[..., Recording]
) -> None:
    """Breaks when inner modules count, or when steps stop once the root classes are known."""
    model = make()

    def loop() -> None:
        with torch.no_grad():
            for _ in range(130):
                model(torch.ones(1, 3))

    assert _ended(watch(loop)) == ("forward", 130)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_looking_at_a_module_is_not_calling_it(watch: Callable[..., Recording]) -> None:
    """Breaks when reading the tapped attribute counts, or makes later calls look nested."""
    model = Twice()

    def loop() -> None:
        inspect.getmembers(model)
        assert model._compiled_call_impl is None
        copy.deepcopy(model)
        pickle.loads(pickle.dumps(model))
        torch.jit.script(nn.Sequential(nn.Linear(3, 3)))
        for _ in range(20):
            model(torch.ones(1, 3))

    assert _ended(watch(loop)) == ("forward", 20)


def test_second_model_is_heard_after_the_first(
    watch: Callable[..., Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when the classes learnt from one model make the next one's calls inaudible."""

    class Other(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x + 1

    first, second = Twice(), Other()

    def loop() -> None:
        for _ in range(60):
            first(torch.ones(1, 3))
        monkeypatch.setattr(leakscope.agent.agent, "_IDLE_NS", 0)
        time.sleep(0.3)  # until the next row is long due
        gc.collect()
        for _ in range(70):
            second(torch.ones(1, 3))
        for _ in range(5):
            first(torch.ones(1, 3))

    assert _ended(watch(loop)) == ("forward", 135)


def test_threads_of_inference_all_count(watch: Callable[..., Recording]) -> None:
    """Breaks when a call in a thread is lost, or is taken for one inside another thread's."""
    model = Twice()

    def serve() -> None:
        for _ in range(50):
            model(torch.ones(1, 3))

    def loop() -> None:
        threads = [threading.Thread(target=serve) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert _ended(watch(loop)) == ("forward", 200)


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_of_several_threads_are_told(watch: Callable[..., Recording], threads: int) -> None:
    """Breaks when a rule takes what two threads need at a time for the need of one step; or when
    a program is said to step in several threads that steps in one, and not the main one."""
    model = Twice()

    def serve() -> None:
        for _ in range(40):
            model(torch.ones(1, 3))
            time.sleep(1e-3)

    def loop() -> None:
        made = [threading.Thread(target=serve) for _ in range(threads)]
        for thread in made:
            thread.start()
        for thread in made:
            thread.join()

    marks = [mark.what for mark in watch(loop).marks]
    assert marks.count(SEVERAL_STEP) == threads - 1


def test_loop_over_a_loader_counts_batches(watch: Callable[..., Recording]) -> None:
    """Breaks when a program that only loads data has no steps."""
    loader = torch.utils.data.DataLoader(list(range(90)), batch_size=2)

    def loop() -> None:
        for _ in range(3):
            assert sum(1 for _ in loader) == 45

    assert _ended(watch(loop)) == ("dataloader", 135)


def test_own_step_overrides_every_other(watch: Callable[..., Recording]) -> None:
    """Breaks when `leakscope.step()` is one source among others instead of the last word."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loop() -> None:
        for _ in range(15):
            _train(model, optimizer, 3, 2)
            leakscope.step()

    recording = watch(loop)
    assert _ended(recording) == ("api", 15)
    assert steps_of(recording, _process(recording), "api")[0] == 1
    # Before the first `step()` the optimizer counted; since then it has no row.
    assert max(steps_of(recording, _process(recording), "optimizer")) <= 3


def test_saves_are_marked_when_opened_and_closed(
    tmp_path: Path, watch: Callable[..., Recording]
) -> None:
    """Breaks when checkpoints are not seen, or a failing one raises something else for us."""
    model = nn.Linear(3, 1)

    def loop() -> None:
        torch.save(model.state_dict(), tmp_path / "x.pt")
        torch.save(model.state_dict(), io.BytesIO())
        with pytest.raises(AttributeError, match="write"):
            torch.save({}, object())
        with pytest.raises(Exception, match="pickle"):
            torch.save(threading.Lock(), tmp_path / "y.pt")

    recording = watch(loop)
    saves = [mark for mark in recording.marks if mark.what == "save"]
    assert len(saves) == 6
    assert all(mark.values["rss_bytes"] > 0 for mark in saves)


def test_nothing_of_the_program_is_kept_alive(watch: Callable[..., Recording]) -> None:
    """Breaks when the observer holds a model, an optimizer, a loader or a class of the program."""
    alive: list[weakref.ref[Any]] = []

    def live_and_die(calls: int) -> None:
        class Local(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(3, 3)

            def forward(self, x: Any) -> Any:
                return self.linear(x)

        model = Local()
        optimizer = torch.optim.Adam(model.parameters())
        iterator = iter(torch.utils.data.DataLoader([1, 2, 3]))
        list(iterator)
        for _ in range(calls):
            model(torch.ones(1, 3))
        _train(model, optimizer, 2)
        alive.extend(map(weakref.ref, (Local, model, optimizer, iterator)))

    def loop() -> None:
        live_and_die(1)  # while every class is heard
        live_and_die(60)  # its class becomes a known root
        gc.collect()
        assert [reference() for reference in alive] == [None] * 8

    watch(loop)


def test_class_that_travels_by_value_takes_no_tap_along(watch: Callable[..., Recording]) -> None:
    """Breaks when cloudpickle (ray, joblib) meets a tap in a class of `__main__`."""

    def loop() -> None:
        model = Twice()
        for _ in range(60):
            model(torch.ones(1, 3))
        content = {name: value for name, value in vars(Twice).items() if not callable(value)}
        assert "_compiled_call_impl" in content  # the class is a known root by now
        assert pickle.loads(pickle.dumps(content["_compiled_call_impl"])) is None

    watch(loop)


def test_tensor_classes_of_the_program_do_not_run_for_us(watch: Callable[..., Recording]) -> None:
    """Breaks when looking at an optimizer runs `__torch_function__` of a parameter's class."""
    heard: list[str] = []

    class Loud(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    def steps() -> list[str]:
        heard.clear()
        parameter = torch.ones(2).as_subclass(Loud).requires_grad_()
        parameter.grad = torch.ones(2)
        optimizer = torch.optim.SGD([parameter], 0.1, foreach=False)
        for _ in range(6):
            optimizer.step()
        return list(heard)

    plain = steps()
    found: list[list[str]] = []
    recording = watch(lambda: found.append(steps()))
    assert found == [plain]
    assert {tally.role for tally in recording.censuses[-1].tallies} >= {"parameter", "gradient"}


def test_watching_again_and_again_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when every `watch()` registers one more thing with the interpreter or with torch."""
    monkeypatch.delenv("LEAKSCOPE_RUN_DIR", raising=False)
    before = _traces_in_torch()
    agents: list[weakref.ref[Any]] = []
    model = nn.Linear(3, 1)
    for number in range(5):
        with leakscope.watch(tmp_path / str(number)) as watching:
            model(torch.ones(1, 3))
            agents.append(weakref.ref(watching._agent))
            with leakscope.watch(tmp_path / "ignored") as inner:
                assert inner.directory == watching.directory
            model(torch.ones(1, 3))
        assert _ended(leakscope.load(watching.directory)) == ("forward", 2)
    assert _traces_in_torch() == before
    gc.collect()
    assert sum(agent() is not None for agent in agents) <= 1


def test_hooks_of_the_program_behind_ours_still_run(watch: Callable[..., Recording]) -> None:
    """Breaks when a hook of ours leaves torch's list while torch goes through it."""
    called = []

    def loop() -> None:
        optimizer = inspect.getmodule(torch.optim.Optimizer)
        hooks = [
            optimizer.register_optimizer_step_pre_hook(  # type: ignore[union-attr]
                lambda *_: called.append("before")
            ),
            optimizer.register_optimizer_step_post_hook(  # type: ignore[union-attr]
                lambda *_: called.append("after")
            ),
        ]
        model = nn.Linear(3, 1)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            model(torch.ones(2, 3)).sum().backward()
            sgd.step()
        for hook in hooks:
            hook.remove()

    watch(loop)
    assert called == ["before", "after"] * 5


def test_a_collection_while_arming_does_not_arm_twice(watch: Callable[..., Recording]) -> None:
    """Breaks when the collector's callback arms in the middle of arming."""
    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        watch(lambda: None)
    finally:
        gc.set_threshold(*old)
