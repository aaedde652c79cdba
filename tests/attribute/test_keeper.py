"""The statement that keeps: small programs with an arrow at the line that must come first."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.attribute.keeper import find_keepers, has_capacity_guard
from leakscope.model import Frame, Link, Site, SiteTally

ARROW = "# <-"


class Case(NamedTuple):
    what: str
    kind: str
    name: str
    scope: str
    source: str
    grows: str = "container"
    file: str = "train.py"
    stack: tuple[tuple[int, str], ...] = ()
    """(line, function) of one site, innermost first."""


def link(case: Case) -> Link:
    return Link(f".{case.name}", "list", case.kind, case.name, case.file, case.scope)


def keepers(case: Case, **others: str) -> tuple[Site, ...]:
    sources = {"train.py": dedent(case.source).strip("\n"), **others}
    frames = tuple(Frame("train.py", line, function) for line, function in case.stack)
    sites = (SiteTally(frames, 1, 64),) if frames else ()
    return find_keepers(sources, link(case), grows=case.grows, sites=sites)


def arrow(source: str) -> int:
    lines = dedent(source).strip("\n").split("\n")
    return next(number for number, line in enumerate(lines, 1) if ARROW in line)


CASES = [
    Case("append", "attribute", "history", "Log", """
        class Log:
            def __init__(self):
                self.history = []
            def add(self, x):
                self.history.append(x)  # <-
    """),
    Case("chain of setdefault", "attribute", "history", "Log", """
        class Log:
            def __init__(self):
                self.history = {}
            def add(self, tag, x):
                self.history.setdefault(tag, []).append(x)  # <-
    """),
    Case("list in a dict", "attribute", "buckets", "Log", """
        class Log:
            def __init__(self):
                self.buckets = {}
            def add(self, k, x):
                self.buckets[k].append(x)  # <-
    """),
    Case("attribute of an item", "attribute", "meters", "Log", """
        class Log:
            def __init__(self):
                self.meters = {}
            def add(self, name, x):
                self.meters[name].values.append(x)  # <-
    """),
    Case("item", "attribute", "cache", "Data", """
        class Data:
            def __init__(self):
                self.cache = {}
            def __getitem__(self, i):
                if i in self.cache:
                    return self.cache[i]
                self.cache[i] = load(i)  # <-
                return self.cache[i]
    """),
    Case("fixed key is no growth", "attribute", "state", "Trainer", """
        class Trainer:
            def __init__(self):
                self.state = {}
            def step(self, i, out):
                self.state["step"] = i
                self.state["last"] = out
                self.state[i] = out  # <-
    """),
    Case("augmented item", "global", "COUNTS", "", """
        COUNTS = {}
        def count(word):
            COUNTS[word] += 1  # <-
    """),
    Case("augmented list", "local", "rows", "main", """
        def main():
            rows = []
            while True:
                rows += [read()]  # <-
    """),
    Case("sum of lists", "local", "rows", "main", """
        def main():
            rows = []
            for x in source():
                rows = rows + [x]  # <-
    """),
    Case("starred list", "local", "rows", "main", """
        def main():
            rows = []
            for x in source():
                rows = [*rows, x]  # <-
    """),
    Case("starred dict", "global", "SEEN", "", """
        SEEN = {}
        def add(k, v):
            global SEEN
            SEEN = {**SEEN, k: v}  # <-
    """),
    Case("cat", "attribute", "bank", "Queue", """
        class Queue:
            def __init__(self):
                self.bank = torch.zeros(0, 8)
            def push(self, x):
                self.bank = torch.cat([self.bank, x])  # <-
    """),
    Case("cut back, then grown", "attribute", "bank", "Queue", """
        class Queue:
            def __init__(self):
                self.bank = []
            def trim(self):
                self.bank = self.bank[-100:]
                self.bank = [x for x in self.bank if x]
            def push(self, x):
                self.bank = self.bank + [x]  # <-
    """),
    Case("union in place", "attribute", "seen", "Filter", """
        class Filter:
            seen = set()
            def add(self, words):
                self.seen |= words  # <-
    """),
    Case("heap", "local", "heap", "search", """
        import heapq
        def search(start):
            heap = [start]
            while heap:
                node = heapq.heappop(heap)
                for child in node:
                    heapq.heappush(heap, child)  # <-
    """),
    Case("insort", "global", "scores", "", """
        from bisect import insort
        scores = []
        def note(x):
            insort(scores, x)  # <-
    """),
    Case("unbound method", "global", "scores", "", """
        scores = []
        def note(x):
            list.append(scores, x)  # <-
    """),
    Case("setattr", "attribute", "graph", "Net", """
        class Net:
            def __init__(self):
                self.graph = None
            def step(self, x):
                setattr(self, "graph", build(x))  # <-
    """),
    Case("getattr", "attribute", "rows", "Net", """
        class Net:
            def __init__(self):
                self.rows = []
            def step(self, x):
                getattr(self, "rows").append(x)  # <-
    """),
    Case("alias", "attribute", "history", "Log", """
        class Log:
            def __init__(self):
                self.history = []
            def add(self, xs):
                log = self.history
                for x in xs:
                    log.append(x)  # <-
    """),
    Case("alias given away again", "attribute", "history", "Log", """
        class Log:
            def __init__(self):
                self.history = []
            def add(self, x):
                log = self.history
                log.append(x)  # <-
                log = []
                log.append(x)
    """),
    Case("bound method", "local", "rows", "main", """
        def main():
            rows = []
            keep = rows.append
            for x in source():
                keep(x)  # <-
    """),
    Case("bound method handed over", "local", "acts", "main", """
        def main(model):
            acts = []
            model.register_forward_hook(acts.append)  # <-
            for x in source():
                model(x)
    """),
    Case("loop variable", "attribute", "buckets", "Log", """
        class Log:
            def __init__(self):
                self.buckets = {}
            def add(self, x):
                for bucket in self.buckets.values():
                    bucket.append(x)  # <-
    """),
    Case("name given to the attribute", "attribute", "rows", "Log", """
        class Log:
            def run(self):
                rows = []
                self.rows = rows
                for x in source():
                    rows.append(x)  # <-
    """),
    Case("handed to a function", "local", "losses", "main", """
        def collect(into, x):
            into.append(x)  # <-
        def main():
            losses = []
            for x in source():
                collect(losses, x)
    """),
    Case("handed to a method by keyword", "local", "losses", "main", """
        class Sink:
            def take(self, x, *, into):
                into.append(x)  # <-
        def main():
            losses = []
            for x in source():
                Sink().take(x, into=losses)
    """),
    Case("handed to a constructor", "local", "losses", "main", """
        class Trainer:
            def __init__(self, sink):
                self.sink = sink
            def step(self, x):
                self.sink.append(x)  # <-
        def main():
            losses = []
            trainer = Trainer(losses)
            for x in source():
                trainer.step(x)
    """),
    Case("handed to a thread", "local", "results", "main", """
        def work(out, x):
            out.append(x)  # <-
        def main(pool):
            results = []
            for x in source():
                pool.submit(work, results, x)
    """),
    Case("filled by the caller", "attribute", "log", "Trainer", """
        class Trainer:
            def __init__(self, log):
                self.log = log
        def main():
            rows = []
            trainer = Trainer(rows)
            for x in source():
                rows.append(x)  # <-
    """),
    Case("lambda in a hook", "local", "acts", "watch", """
        def watch(model):
            acts = []
            model.register_forward_hook(lambda m, i, o: acts.append(o))  # <-
            return acts
    """),
    Case("closure of the outer function", "closure", "acts", "watch.<locals>.hook", """
        def watch(model):
            acts = []
            def hook(m, i, o):
                acts.append(o)  # <-
            model.register_forward_hook(hook)
    """),
    Case("closure named by its owner", "closure", "acts", "watch", """
        def watch(model):
            acts = []
            def hook(m, i, o):
                acts.append(o)  # <-
            model.register_forward_hook(hook)
    """),
    Case("nonlocal", "local", "total", "main", """
        def main():
            total = 0
            def add(loss):
                nonlocal total
                total = total + loss  # <-
            total = 0
    """, "graph"),
    Case("global from a function", "global", "losses", "", """
        losses = []
        def fit(losses):
            losses.append(1)
        def step(x):
            global losses
            losses += [x]  # <-
    """),
    Case("same local elsewhere", "local", "losses", "fit", """
        def evaluate():
            losses = []
            for x in source():
                losses.append(x)
        def fit():
            losses = []
            for x in source():
                losses.append(x)  # <-
    """),
    Case("inner function has its own", "local", "losses", "fit", """
        def fit():
            losses = []
            def other():
                losses = []
                losses.append(0)
            for x in source():
                losses.extend(x)  # <-
    """),
    Case("comprehension has its own", "local", "rows", "fit", """
        def fit():
            rows = []
            [rows.append(1) for rows in source()]
            [rows.append(x) for x in source()]  # <-
    """),
    Case("class body is no scope", "global", "rows", "", """
        rows = []
        class Log:
            rows = []
            def add(self, x):
                rows.append(x)  # <-
    """),
    Case("mutable default", "default", "seen", "dedup", """
        def dedup(x, seen=set()):
            if x in seen:
                return False
            seen.add(x)  # <-
    """),
    Case("other class of the same attribute", "attribute", "rows", "B", """
        class A:
            def add(self, x):
                self.rows.append(x)
        class B:
            def __init__(self):
                self.rows = []
            def add(self, x):
                self.rows.append(x)  # <-
    """),
    Case("object of another class", "attribute", "rows", "B", """
        class A:
            def __init__(self):
                self.rows = []
        class B:
            def __init__(self):
                self.rows = []
        def main():
            a, b = A(), B()
            a = A()
            for x in source():
                a.rows.append(x)
            b = B()
            for x in source():
                b.rows.append(x)  # <-
    """),
    Case("base class", "attribute", "rows", "Loud", """
        class Log:
            def __init__(self):
                self.rows = []
            def add(self, x):
                self.rows.append(x)  # <-
        class Loud(Log):
            def shout(self):
                return len(self.rows)
    """),
    Case("subclass before a stranger", "attribute", "rows", "Log", """
        def main(thing):
            thing.rows.append(1)
        class Log:
            def __init__(self):
                self.rows = []
        class Loud(Log):
            def add(self, x):
                self.rows.append(x)  # <-
    """),
    Case("set from outside", "attribute", "activations", "Linear", """
        def capture(layer, inputs, output):
            layer.activations.append(inputs[0])  # <-
        def prepare(model):
            for layer in model.modules():
                layer.activations = []
    """, file="/env/lib/torch/nn/linear.py"),
    Case("private name", "attribute", "_Log__rows", "Log", """
        class Log:
            def __init__(self):
                self.__rows = []
            def add(self, x):
                self.__rows.append(x)  # <-
    """),
    Case("through a property", "attribute", "_rows", "Log", """
        class Log:
            def __init__(self):
                self._rows = []
            @property
            def rows(self):
                return self._rows
        def main():
            log = Log()
            for x in source():
                log.rows.append(x)  # <-
    """),
    Case("class attribute by its class", "class", "instances", "Episode", """
        class Episode:
            instances = []
            def __init__(self):
                Episode.instances.append(self)  # <-
    """),
    Case("class attribute by type(self)", "class", "instances", "Episode", """
        class Episode:
            instances: list = []
            def __init__(self):
                type(self).instances.append(self)  # <-
    """),
    Case("class that is a dict", "local", "cache", "main", """
        class Cache(dict):
            def remember(self, k, v):
                self[k] = v  # <-
        def main():
            cache = Cache()
            for x in source():
                cache.remember(x, x)
    """),
    Case("loop before setup", "attribute", "layers", "Net", """
        class Net:
            def __init__(self, n):
                self.layers = []
                self.layers.append(first())
            def forward(self, x):
                self.layers.append(x)  # <-
    """),
    Case("removing is not storing", "attribute", "queue", "Pool", """
        class Pool:
            def __init__(self):
                self.queue = deque()
            def get(self):
                x = self.queue.popleft()
                del self.queue[0]
                self.queue.remove(x)
                self.queue.clear()
                return x
            def give(self, x):
                self.queue.appendleft(x)  # <-
    """),
    Case("only created", "attribute", "rows", "Log", """
        class Log:
            def __init__(self):
                self.rows = []  # <-
    """),
    Case("filled by a library", "local", "rows", "main", """
        import lib
        def main():
            rows = []
            for x in source():
                print(rows)
                lib.fill(rows, x)  # <-
    """),
    Case("hooks in a library's dict", "attribute", "_forward_hooks", "Module", """
        def main(model):
            model.register_forward_pre_hook(print)
            for x in source():
                model.register_forward_hook(lambda m, i, o: None)  # <-
    """, file="/env/lib/torch/nn/module.py"),
    Case("camel case of a library", "attribute", "handlers", "Logger", """
        def main(logger):
            for x in source():
                logger.addHandler(make(x))  # <-
    """, file="/usr/lib/python3.11/logging/__init__.py"),
    Case("library state, by the stack", "attribute", "preds", "AUROC", """
        def main(metric):
            for x in source():
                y = model(x)
                metric.update(y)  # <-
    """, file="/env/lib/torchmetrics/auroc.py", stack=((4, "main"),)),
    Case("by the line of the stack", "attribute", "rows", "Log", """
        class Log:
            def __init__(self):
                self.rows = []
            def train(self, x):
                self.rows.append(make(x))
            def test(self, x):
                self.rows.append(make(x))  # <-
    """, stack=((7, "test"),)),
    Case("by the function of the stack", "attribute", "rows", "Log", """
        class Log:
            def __init__(self):
                self.rows = []
            def train(self, x):
                for one in x:
                    self.rows.append(one)
            def test(self, x):
                y = make(x)
                self.rows.append(y)  # <-
    """, stack=((8, "Log.test"), (12, "main"))),
    Case("by who the stack calls", "attribute", "rows", "Log", """
        class Log:
            def __init__(self):
                self.rows = []
            def note(self, x):
                self.rows.append(x)
            def keep(self, x):
                self.rows.append(x)  # <-
        def main():
            log = Log()
            x = make()
            log.keep(x)
        def other():
            Log().note(1)
    """, stack=((10, "main"),)),
    Case("graph: sum of itself", "attribute", "sum", "Meter", """
        class Meter:
            def __init__(self):
                self.sum = 0.0
            def reset(self, start):
                self.sum = start
            def update(self, val, n):
                self.sum = self.sum + val * n  # <-
    """, "graph"),
    Case("graph: augmented", "local", "total", "main", """
        def main():
            total = 0
            for x in source():
                loss = model(x)
                total += loss  # <-
            total = total / 10
    """, "graph"),
    Case("graph: state of a cell", "local", "hidden", "main", """
        def main():
            hidden = None
            for x in source():
                out, hidden = cell(x, hidden)  # <-
    """, "graph"),
    Case("graph: cut state is no growth", "attribute", "h", "Net", """
        class Net:
            def __init__(self):
                self.h = None
            def cut(self):
                self.h = self.h.detach()
            def step(self, x):
                h = self.cell(x, self.h)
                self.h = h  # <-
    """, "graph"),
    Case("graph: by key", "attribute", "totals", "Log", """
        class Log:
            def __init__(self):
                self.totals = {}
            def add(self, name, loss):
                self.totals[name] = self.totals.get(name, 0) + loss  # <-
    """, "graph"),
    Case("graph: in place", "attribute", "ema", "Log", """
        class Log:
            def __init__(self, start):
                self.ema = start
            def add(self, loss):
                self.ema.mul_(0.9).add_(loss)  # <-
    """, "graph"),
    Case("graph: any assignment", "attribute", "last", "Log", """
        class Log:
            def __init__(self):
                self.last = None
            def add(self, loss):
                self.last = loss  # <-
    """, "graph"),
    Case("opaque: cycle", "local", "stream", "train", """
        import itertools
        def train(loader):
            stream = None
            stream = iter(loader)
            stream = itertools.cycle(loader)  # <-
            for _ in range(9):
                next(stream)
    """, "opaque"),
    Case("opaque: made by the caller", "local", "stream", "train", """
        from itertools import cycle
        def train(stream):
            for _ in range(9):
                next(stream)
        def main(loader):
            train(cycle(loader))  # <-
    """, "opaque"),
    Case("cycle: bound method", "attribute", "hooks", "Result", """
        class Result:
            def __init__(self, loss):
                self.hooks = []
                self.hooks = [self.describe]  # <-
            def describe(self):
                return 1
    """, "cycle"),
    Case("cycle: closure", "attribute", "callback", "Result", """
        class Result:
            callback = None
            def __init__(self, loss):
                self.callback = loss
                self.callback = lambda: self.loss  # <-
    """, "cycle"),
    Case("cycle: set by the parent", "attribute", "parent", "Node", """
        class Node:
            def __init__(self):
                self.parent = None
        class Tree:
            def add(self, node):
                node.parent = self  # <-
    """, "cycle"),
    Case("preloaded: comprehension", "attribute", "records", "Data", """
        class Data:
            def __init__(self, n):
                self.records = None
                self.records = [  # <-
                    {"path": str(i)}
                    for i in range(n)
                ]
            def __getitem__(self, i):
                rec = self.records[i]
                return rec
    """, "preloaded"),
    Case("preloaded: loop", "attribute", "records", "Data", """
        class Data:
            def __init__(self, n):
                self.records = []
                for i in range(n):
                    self.records.append({"path": str(i)})  # <-
    """, "preloaded"),
    Case("cache: decorator", "cache", "anchors", "Detector", """
        import functools
        class Other:
            @functools.cache
            def anchors(self):
                return 0
        class Detector:
            @torch.no_grad()
            @functools.lru_cache(maxsize=None)  # <-
            def anchors(self, h, w):
                return grid(h, w)
    """, "cache"),
    Case("cache: wrapped by hand", "cache", "embed", "", """
        from functools import lru_cache
        def _embed(x):
            return x
        embed = lru_cache(None)(_embed)  # <-
    """, "cache"),
    Case("queue", "attribute", "jobs", "Server", """
        import queue
        class Server:
            def __init__(self):
                self.jobs = queue.Queue()
            async def handle(self, x):
                await self.jobs.put(x)  # <-
    """),
    Case("statement of several lines", "local", "rows", "main", """
        def main():
            rows = []
            for x in source():
                rows.append(  # <-
                    make(
                        x
                    )
                )
    """),
    Case("walrus", "local", "rows", "main", """
        def main():
            rows = []
            while (rows := rows + [read()]):  # <-
                pass
    """),
    Case("what the stack's line assigned", "local", "log", "main", """
        def main():
            log = {"acc": [], "loss": []}
            for x in source():
                loss = criterion(x)
                log["step"].append(x)
                log["value"].append(loss.item())
                log["loss"].append(loss)  # <-
    """, stack=((4, "main"),)),
    Case("numbers after things", "attribute", "log", "Trainer", """
        class Trainer:
            def __init__(self):
                self.log = []
            def step(self, loss, out):
                self.log.append(float(loss))
                self.log.append(out)  # <-
    """),
    Case("enumerated", "attribute", "meters", "Log", """
        class Log:
            def __init__(self):
                self.meters = [[], []]
            def add(self, xs):
                for i, meter in enumerate(self.meters):
                    meter.append(xs[i])  # <-
    """),
    Case("arguments of a thread", "local", "results", "main", """
        from threading import Thread
        def work(out):
            while True:
                out.append(make())  # <-
        def main():
            results = []
            Thread(target=work, args=(results,)).start()
    """),
    Case("thread that never ends", "local", "snapshot", "write", """
        def write(snapshot):
            wait()
        def save(model):
            snapshot = dict(model)
            Thread(target=write, args=(snapshot,)).start()  # <-
    """),
    Case("first parameter of a static method", "attribute", "rows", "B", """
        class B:
            def __init__(self):
                self.rows = []
            @staticmethod
            def note(a: A):
                a.rows.append(1)
            def add(self, x):
                self.rows.append(x)  # <-
        class A:
            pass
    """),
    Case("annotated parameter", "attribute", "rows", "Store", """
        from dataclasses import dataclass, field
        class Other:
            rows: list
        @dataclass
        class Store:
            rows: list = field(default_factory=list)
        def other(store: Other, x):
            store.rows.append(x)
        def add(store: Store, x):
            store.rows.append(x)  # <-
    """),
    Case("a library's shorter name", "attribute", "_backward_hooks", "Tensor", """
        def main(weight):
            weight.add_module("x", 1)
            for x in source():
                weight.register_hook(lambda g: g)  # <-
    """, file="/env/lib/torch/_tensor.py"),
    Case("finalizers", "attribute", "_registry", "finalize", """
        class Space:
            def __init__(self):
                weakref.finalize(self, self.close)  # <-
    """, file="/usr/lib/python3.11/weakref.py"),
    Case("groups of an optimizer", "attribute", "state", "AdamW", """
        class Learner:
            def begin_task(self):
                self.optimizer.add_param_group({"params": self.head.parameters()})  # <-
            def step(self, loss):
                loss.backward()
                self.optimizer.step()
    """, file="/env/lib/torch/optim/optimizer.py", stack=((6, "Learner.step"),)),
    Case("gradient with its graph", "attribute", "grad", "Parameter", """
        def step(loss, other):
            other.backward()
            loss.backward(create_graph=True)  # <-
    """, "cycle", file="/env/lib/torch/nn/parameter.py"),
    Case("made here, handed to a library", "attribute", "buffer", "MemoryHandler", """
        def main(log):
            for x in source():
                print(x)
                gradient = x.T @ x
                print(gradient)
                log.debug("step %s", gradient)  # <-
    """, file="/usr/lib/python3.11/logging/handlers.py", stack=((4, "main"),)),
    Case("slot of a class in a function", "attribute", "rows", "main.<locals>.Log", """
        class Log:
            def add(self, x):
                self.rows.append(x)
        def main():
            class Log:
                def add(self, x):
                    self.rows.append(x)  # <-
    """),
    Case("registry of subclasses", "class", "known", "Plugin", """
        class Plugin:
            known = {}
            def __init_subclass__(cls):
                cls.known[cls.__name__] = cls  # <-
    """),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_the_statement_that_keeps_comes_first(case: Case) -> None:
    found = keepers(case)
    assert found, "nothing was found"
    assert found[0].line == arrow(case.source), found
    assert (found[0].source or "").endswith(ARROW)


def test_a_site_is_told_as_a_reader_would_say_it() -> None:
    (case,) = [case for case in CASES if case.what == "closure of the outer function"]
    assert keepers(case)[0] == Site(
        "train.py", 4, "watch.<locals>.hook", f"acts.append(o)  {ARROW}"
    )
    (case,) = [case for case in CASES if case.what == "cache: decorator"]
    assert keepers(case)[0].function == "Detector.anchors"


def test_a_statement_of_the_module_has_no_function() -> None:
    case = Case("", "global", "rows", "", "rows = []\nfor x in y:\n    rows.append(x)")
    assert keepers(case)[0] == Site("train.py", 3, None, "rows.append(x)")


@pytest.mark.parametrize(
    "use",
    [
        "from state import SEEN\n\ndef add(x):\n    SEEN.append(x)",
        "from pkg.state import SEEN as seen\n\ndef add(x):\n    seen.append(x)",
        "import state\n\ndef add(x):\n    state.SEEN.append(x)",
        "from pkg import state as s\n\ndef add(x):\n    s.SEEN.append(x)",
        "import pkg.state\n\ndef add(x):\n    pkg.state.SEEN.append(x)",
    ],
)
def test_a_global_may_be_filled_from_another_file(use: str) -> None:
    sources = {"/app/pkg/state.py": "SEEN = []\n", "/app/train.py": use}
    case = Case("", "global", "SEEN", "", "", file="/app/pkg/state.py")
    found = find_keepers(sources, link(case), grows="container", sites=())
    assert (found[0].file, found[0].line) == ("/app/train.py", 4)


@pytest.mark.parametrize(
    "use",
    [
        "SEEN = []\ndef add(x):\n    SEEN.append(x)",
        "from other import SEEN\ndef add(x):\n    SEEN.append(x)",
        "def add(SEEN, x):\n    SEEN.append(x)",
    ],
)
def test_a_name_of_another_file_is_another_name(use: str) -> None:
    sources = {"/app/state.py": "SEEN = []\n", "/app/train.py": use}
    case = Case("", "global", "SEEN", "", "", file="/app/state.py")
    found = find_keepers(sources, link(case), grows="container", sites=())
    assert [site.file for site in found] == ["/app/state.py"]


def test_a_function_in_another_file_is_followed() -> None:
    source = "from tools import collect\ndef main():\n    rows = []\n    collect(rows, 1)"
    case = Case("", "local", "rows", "main", source)
    found = keepers(case, **{"tools.py": "def collect(into, x):\n    into.append(x)"})
    assert found[0] == Site("tools.py", 2, "collect", "into.append(x)")


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("/home/me/app/train.py", "app/train.py"),
        ("train.py", "/home/me/app/train.py"),
        ("/home/me/app/train.py", "/mnt/other/train.py"),
    ],
)
def test_how_much_of_a_path_was_recorded_does_not_matter(recorded: str, said: str) -> None:
    case = Case("", "global", "ROWS", "", "", file=said)
    sources = {recorded: "ROWS = []\ndef add(x):\n    ROWS.append(x)"}
    assert find_keepers(sources, link(case), grows="container", sites=())[0].line == 3


def test_functions_of_one_name_are_told_apart_by_their_line() -> None:
    source = "if A:\n    def f():\n        r = []\n        r.append(1)\nelse:\n"
    source += "    def f():\n        r = []\n        r.append(2)"
    one = Link("local r", "list", "local", "r", "t.py", "f", 6)
    found = find_keepers({"t.py": source}, one, grows="container", sites=())
    assert found[0].line == 8


@pytest.mark.parametrize(
    "source",
    [
        "def main(:\n    rows.append(1)",
        "rows = []\n\x00rows.append(1)",
        "\udc80",
        "",
        "x = " + "(" * 300 + ")" * 300,
        "def main():\n    other.append(1)",
    ],
)
def test_a_source_that_says_nothing_has_no_keeper(source: str) -> None:
    for kind, scope in [("local", "main"), ("attribute", "Log"), ("cache", ""), ("global", "")]:
        one = Link("rows", "list", kind, "rows", "train.py", scope)
        for grows in ("container", "graph", "cache", "something else"):
            assert find_keepers({"train.py": source}, one, grows=grows, sites=()) == ()


def test_a_librarys_name_is_not_the_users() -> None:
    source = """
        class Recorder:
            def __init__(self):
                self.buffer = []
            def add(self, x):
                self.buffer.append(x)
        def main():
            snapshot = []
            snapshot.append(1)
    """
    foreign = "/usr/lib/python3.11/logging/handlers.py"
    assert keepers(Case("", "attribute", "buffer", "MemoryHandler", source, file=foreign)) == ()
    assert keepers(Case("", "local", "snapshot", "main", source, file=foreign)) == ()
    derived = source.replace("Recorder", "Recorder(MemoryHandler)")
    found = keepers(Case("", "attribute", "buffer", "MemoryHandler", derived, file=foreign))
    assert found[0].line == 5


def test_a_bad_file_does_not_hide_a_good_one() -> None:
    case = Case("", "global", "rows", "", "rows = []\ndef f(x):\n    rows.append(x)")
    assert keepers(case, **{"broken.py": "def ("})[0].line == 3


def test_very_deep_expressions_are_read() -> None:
    source = "rows = []\ndef f(x):\n    y = " + " + ".join(["x"] * 900) + "\n    rows.append(y)"
    assert keepers(Case("", "global", "rows", "", source))[0].line == 4


def test_line_ends_that_python_does_not_know_do_not_count() -> None:
    source = "rows = []  # a\x0cb\u2028c\r\ndef f(x):\r\n    rows.append(x)"
    assert find_keepers(
        {"train.py": source},
        Link("rows", "list", "global", "rows", "train.py"),
        grows="container",
        sites=(),
    )[0] == Site("train.py", 3, "f", "rows.append(x)")


def test_without_a_name_there_is_nothing_to_find() -> None:
    nameless = Link("[x]", "list", "item", "", "train.py")
    assert find_keepers({"train.py": "x.append(1)"}, nameless, grows="container", sites=()) == ()


_ANY = st.text(max_size=12) | st.sampled_from(
    ["rows", "main", "Log", "main.<locals>.hook", "<module>", "main.<locals>.<listcomp>", "."]
)


@settings(max_examples=150, deadline=None)
@given(
    source=st.sampled_from([case.source for case in CASES]),
    kind=st.sampled_from(
        ["attribute", "global", "local", "closure", "class", "cache", "item", "?"]
    ),
    name=_ANY | st.sampled_from([case.name for case in CASES]),
    scope=_ANY | st.sampled_from([case.scope for case in CASES]),
    grows=st.sampled_from(["container", "graph", "opaque", "cycle", "preloaded", "cache", "x"]),
    frames=st.lists(st.tuples(st.integers(-5, 60), _ANY), max_size=3),
)
def test_no_link_breaks_it(
    source: str, kind: str, name: str, scope: str, grows: str, frames: list[tuple[int, str]]
) -> None:
    case = Case("", kind, name, scope, source, grows, stack=tuple(frames))
    lines = dedent(source).strip("\n").split("\n")
    for site in keepers(case):
        assert site.source == lines[site.line - 1].strip()


_BOUNDED = [
    "if len(self.rows) > 10:\n            self.rows.pop(0)",
    "while len(self.rows) >= self.n:\n            self.rows.popitem(last=False)",
    "if self.used > self.capacity:\n            del self.rows[0]",
    "self.rows = self.rows[-100:]",
    "del self.rows[:-100]",
    "self.rows[:] = self.rows[-100:]",
    "self.rows = deque(maxlen=50)",
    "self.rows = deque([], n)",
    "self.rows = LRUCache(maxsize=128)",
]
_UNBOUNDED = [
    "if x in self.rows:\n            self.rows.pop(x)",
    "self.rows.pop()",
    "self.rows = deque(maxlen=None)",
    "self.rows = Queue(0)",
    "if len(self.rows) > 10:\n            print(self.rows)",
    "if len(self.rows) > 10:\n            self.other.pop()",
]


@pytest.mark.parametrize("body", [*_BOUNDED, *_UNBOUNDED])
def test_a_holder_that_is_cut_back_has_a_guard(body: str) -> None:
    source = f"class Log:\n    def add(self, x, n):\n        self.rows.append(x)\n        {body}"
    case = Case("", "attribute", "rows", "Log", "")
    guard = has_capacity_guard({"train.py": source}, link(case))
    assert (guard is not None) is (body in _BOUNDED)
    if guard is not None:
        assert guard.source == body.split("\n")[-1].strip()


@pytest.mark.parametrize(
    ("decorator", "is_bounded"),
    [("lru_cache", True), ("lru_cache()", True), ("lru_cache(maxsize=9)", True), ("cache", False),
     ("lru_cache(None)", False), ("functools.lru_cache(maxsize=None)", False)],
)  # fmt: skip
def test_a_cache_is_bounded_unless_it_says_otherwise(decorator: str, is_bounded: bool) -> None:
    case = Case("", "cache", "f", "", "")
    guard = has_capacity_guard({"train.py": f"@{decorator}\ndef f(x):\n    pass"}, link(case))
    assert (guard is not None) is is_bounded
