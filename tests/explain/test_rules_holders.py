"""Rules that know who holds: each with cases of its own, and with such as only look like it."""

from __future__ import annotations

import pytest

from leakscope.explain.rule import Case
from make_case import case, link, rule_of

_LIB = "/usr/lib/python3.11"
_TORCH = "/site-packages/torch"
_LIST = ("local kept in fit()", "list")
_CLOSURE = (("closure batch", "Tensor [64, 64] float32"),)

OWN: dict[str, tuple[str, Case]] = {
    "a module's hooks": (
        "LS301",
        case("local model in fit()", "Net", "._forward_hooks", "OrderedDict", item="method"),
    ),
    "hooks with closures": (
        "LS301",
        case(
            "local model in fit()",
            "Net",
            "._backward_hooks",
            "OrderedDict",
            item="function",
            below=_CLOSURE,
        ),
    ),
    "an optimizer's hooks": (
        "LS301",
        case("local adam in fit()", "Adam", "._optimizer_step_post_hooks", "OrderedDict"),
    ),
    "a tensor's hooks": (
        "LS301",
        case(
            ".weight",
            "Parameter [300, 400] float32",
            "(inside)",
            "OrderedDict",
            item="function",
            below=_CLOSURE,
        ),
    ),
    "a list that a hook fills": (
        "LS302",
        case(*_LIST, kept_by="captured.append(output)", is_kept_in_hook=True),
    ),
    "a list that a hook fills with graphs": (
        "LS302",
        case(*_LIST, parts={"tensors": 10.0, "saved": 90.0}, is_kept_in_hook=True),
    ),
    "code of torch.fx": (
        "LS303",
        case(
            link("module torch.fx.graph_module", "module", file=f"{_TORCH}/fx/graph_module.py"),
            link("._loader", "_EvalCacheLoader", file=f"{_TORCH}/fx/graph_module.py"),
            link(".eval_cache", "dict", file=f"{_TORCH}/fx/graph_module.py"),
            item="str",
        ),
    ),
    "instances in __init__": (
        "LS304",
        case("class Episode", "class", ".instances", "list", kept_by="Episode.all.append(self)"),
    ),
    "instances by name": (
        "LS304",
        case("module zoo", "module", ".TABLE", "dict", kept_by="TABLE[self.name] = self"),
    ),
    "callbacks": (
        "LS304",
        case(*_LIST, item="method", below=((".__self__", "Report"),)),
    ),
    "profilers": (
        "LS305",
        case(*_LIST, item="profile", below=((".profiler", "profile"), ("[x]", "FunctionEvent"))),
    ),
    "snapshots of tracemalloc": (
        "LS305",
        case(*_LIST, item="Snapshot", below=((".traces", "_Traces"),)),
    ),
    "records in a handler of one's own": (
        "LS507",
        case(*_LIST, item="LogRecord", below=((".args", "tuple"),)),
    ),
    "records that logging has made": (
        "LS507",
        case(*_LIST, item="LogRecord", frames=(f"{_LIB}/logging/__init__.py",)),
    ),
    "handlers of a logger": (
        "LS507",
        case(
            link("logger train", "Logger"),
            link(".handlers", "list", file=f"{_LIB}/logging/__init__.py", scope="Logger"),
            item="StreamHandler",
        ),
    ),
    "a queue": (
        "LS508",
        case(
            "local pending in fit()",
            "Queue",
            link(".queue", "deque", file=f"{_LIB}/queue.py", scope="Queue"),
            item="tuple",
        ),
    ),
    "a simple queue": (
        "LS508",
        case("local pending in fit()", "SimpleQueue", "[x]", "list", item="tuple"),
    ),
    "work that an executor has not begun": (
        "LS508",
        case(
            "local pool in main()",
            "ProcessPoolExecutor",
            link("._pending_work_items", "dict", file=f"{_LIB}/concurrent/futures/process.py"),
            item="_WorkItem",
        ),
    ),
    "futures with their results": (
        "LS508",
        case(*_LIST, item="Future", below=(("._result", "Tensor [9] uint8"),)),
    ),
    "a list of one thread": (
        "LS510",
        case("module pool", "module", ".scratch", "_local", ".masks (of one thread)", "list"),
    ),
    "a list of one thread with views": (
        "LS510",
        case(
            ".scratch",
            "_local",
            ".masks (of one thread)",
            "list",
            item="ndarray [8, 8] float32",
            below=((".base", "ndarray"),),
        ),
    ),
    "the table of threads": (
        "LS511",
        case(
            link("module threading", "module", file=f"{_LIB}/threading.py"),
            link("._active", "dict", file=f"{_LIB}/threading.py"),
            item="Thread",
        ),
    ),
    "a list of threads": ("LS511", case(*_LIST, item="Thread", below=(("._args", "tuple"),))),
    "what threads were given": (
        "LS511",
        case(*_LIST, kept_by="threading.Thread(target=write, args=(snapshot,)).start()"),
    ),
    "tasks": ("LS512", case(*_LIST, item="Task", frames=(f"{_LIB}/asyncio/events.py",))),
    "tasks, by the line that starts them": (
        "LS512",
        case(*_LIST, item="Task", kept_by="tasks.append(asyncio.create_task(handle()))"),
    ),
    "a finalizer": (
        "LS513",
        case(
            link("class finalize", "class", file=f"{_LIB}/weakref.py"),
            link("._registry", "dict", file=f"{_LIB}/weakref.py"),
            item="_Info",
            kept_by="weakref.finalize(self, self.release)",
        ),
    ),
    "values of weak keys": (
        "LS513",
        case("module notes", "module", ".notes", "WeakKeyDictionary", ".data", "dict", item="Note"),
    ),
    "iterators of loaders": ("LS204", case(*_LIST, item="_SingleProcessDataLoaderIter")),
    "iterators of loaders, deeper": (
        "LS204",
        case(*_LIST, item="tuple", below=(("[x]", "_MultiProcessingDataLoaderIter"),)),
    ),
}

NEAR: dict[str, tuple[str, Case]] = {
    "an attribute called hooks": (
        "LS301",
        case("local self in fit()", "Trainer", ".hooks", "list", item="function"),
    ),
    "an ordered dict of one's own": (
        "LS301",
        case("local cache in fit()", "OrderedDict", item="Tensor [4] float32"),
    ),
    "a list that no hook fills": ("LS302", case(*_LIST, kept_by="captured.append(output)")),
    "a traced module of one's own": (
        "LS303",
        case(
            "local traced in fit()",
            "GraphModule",
            link(".seen", "list", file=f"{_TORCH}/fx/graph_module.py", scope="GraphModule"),
        ),
    ),
    "what self has, not self": (
        "LS304",
        case("class Log", "class", ".rows", "list", kept_by="Log.rows.append(self.loss)"),
    ),
    "an argument called self_loss": (
        "LS304",
        case("class Log", "class", ".rows", "list", kept_by="rows.append(self_loss)"),
    ),
    "what is computed from self": (
        "LS304",
        case("class Log", "class", ".rows", "list", kept_by="rows.append(model.loss(self))"),
    ),
    "the first line of several": (
        "LS304",
        case("class Log", "class", ".rows", "list", kept_by="rows.append("),
    ),
    "a class of one's own called Profile": ("LS305", case(*_LIST, item="Profile")),
    "a class of one's own called Snapshot": ("LS305", case(*_LIST, item="Snapshot")),
    "a class of one's own called LogRecord": ("LS507", case(*_LIST, item="LogRecord")),
    "a class of one's own called Thread": ("LS511", case(*_LIST, item="Thread")),
    "a class of one's own called Task": ("LS512", case(*_LIST, item="Task")),
    "the same, made in an event loop": (
        "LS512",
        case(
            *_LIST,
            item="Task",
            below=((".batch", "Tensor [9] float32"),),
            frames=(f"{_LIB}/asyncio/events.py",),
        ),
    ),
    "text of one's own": ("LS507", case(*_LIST, item="str", kept_by="log.append(line)")),
    "a deque of one's own": ("LS508", case("local queue in fit()", "deque", item="tuple")),
    "a future without a result": ("LS508", case(*_LIST, item="Future")),
    "an attribute called local": ("LS510", case(".local", "dict", item="Tensor [4] float32")),
    "a call with a thread's name": (
        "LS511",
        case(*_LIST, kept_by="rows.append(current_thread().name)"),
    ),
    "a class of one's own called Tasks": ("LS512", case(*_LIST, item="TaskResult")),
    "a queue of asyncio": (
        "LS512",
        case(
            "local inbox in serve()",
            "Queue",
            link("._queue", "deque", file=f"{_LIB}/asyncio/queues.py", scope="Queue"),
        ),
    ),
    "a registry of one's own": ("LS513", case("class Model", "class", "._registry", "dict")),
    "loaders, not iterators": ("LS204", case(*_LIST, item="DataLoader")),
}


@pytest.mark.parametrize("name", OWN)
def test_a_rule_speaks_about_its_own(name: str) -> None:
    code, one = OWN[name]
    assert rule_of(one) == code


@pytest.mark.parametrize("name", NEAR)
def test_a_rule_is_silent_about_what_only_looks_like_it(name: str) -> None:
    code, one = NEAR[name]
    assert rule_of(one) != code
