"""Each check on a few lines: what it is for, and what looks like it and is none."""

from __future__ import annotations

import textwrap

import pytest

from leakscope.lint.hit import LIKELY, POSSIBLE
from leakscope.lint.reading import hits_in, load_checks

_TRAINING = """
import torch
from torch import nn
from torch.nn import functional as F

def train(loader):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, total, seen = [], 0.0, torch.zeros(0, 4)
    for x, y in loader:
        out = model(x)
        loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {}
"""


def _rules(text: str) -> list[str]:
    return [hit.rule for hit in hits_in(textwrap.dedent(text), "t.py")]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("losses.append(loss)", "LS101"),
        ("losses.append((loss, 1))", "LS101"),
        ("losses.append({'loss': loss.mean()})", "LS101"),
        ("losses += [out.softmax(1)]", "LS101"),
        ("total += loss", "LS102"),
        ("total = total + loss * len(x)", "LS102"),
        ("total = 0.9 * total + 0.1 * loss", "LS102"),
        ("seen = torch.cat((seen, out.detach()))", "LS503"),
        ("seen = torch.cat([seen, x], dim=0)", "LS503"),
        ("loss.backward(create_graph=True)", "LS105"),
        ("model.register_forward_hook(print)", "LS301"),
    ],
)
def test_a_training_loop_that_keeps(line: str, rule: str) -> None:
    assert _rules(_TRAINING.format(line)) == [rule]


@pytest.mark.parametrize(
    "line",
    [
        "losses.append(loss.item())",
        "losses.append(loss.detach())",
        "losses.append(float(loss))",
        "losses.append((out.argmax(1) == y).sum())",
        "losses.append(loss); losses.clear()",
        "losses.append(loss); del losses[:-10]",
        "total += loss.item()",
        "total += loss.detach()",
        "seen = torch.cat((seen, x))[-100:]",
        "seen = torch.cat((seen[-100:], x))",
        "seen = torch.cat((seen, x)); seen = seen[-100:]",
        "handle = model.register_forward_hook(print); handle.remove()",
        "with torch.no_grad(): losses.append(model(x))",
        "losses = [loss]",
        "sums = [loss]; sums.append(loss)",
    ],
)
def test_a_training_loop_that_keeps_nothing(line: str) -> None:
    assert _rules(_TRAINING.format(line)) == []


def test_losses_that_go_backward_together_are_meant() -> None:
    text = """
        import torch
        def step(model, parts):
            losses, total = [], 0
            for part in parts:
                loss = model(part).mean()
                losses.append(loss)
                total = total + loss
            torch.stack(losses).sum().backward()
            total.backward()
    """
    assert _rules(text) == []


def test_a_forward_pass_collects_its_parts() -> None:
    text = """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(4, 4)
            def forward(self, x, h):
                outs = []
                for t in range(x.shape[1]):
                    h = self.cell(x[:, t], h)
                    outs.append(h)
                return torch.stack(outs), h
    """
    assert _rules(text) == []


def test_a_state_is_detached_or_not() -> None:
    text = """
        import torch
        from torch import nn
        def train(loader):
            model = nn.LSTM(4, 4)
            state = None
            for x in loader:
                out, state = model(x, state)
                out.mean().backward({keep})
                {after}
    """
    kept = _rules(text.format(keep="retain_graph=True", after="pass"))
    assert kept == ["LS104", "LS106"]
    assert _rules(text.format(keep="", after="state = tuple(one.detach() for one in state)")) == []


def test_two_backwards_of_one_graph_need_it_kept() -> None:
    text = """
        def train(real, fake, loader):
            for x in loader:
                real(x).backward(retain_graph=True)
                fake(x).backward()
    """
    assert _rules(text) == []


def test_objects_of_a_dataset_matter_where_workers_are_forked() -> None:
    text = """
        from torch.utils.data import DataLoader, Dataset
        class Rows(Dataset):
            def __init__(self, count):
                self.rows = [{{"id": i, "text": str(i)}} for i in range(count)]
            def __getitem__(self, place):
                return self.rows[place]
        loader = DataLoader(Rows(9), num_workers={})
    """
    assert _rules(text.format(4)) == ["LS201"]
    assert _rules(text.format(0)) == []


def test_a_cache_in_getitem_is_bounded_or_not() -> None:
    text = """
        from torch.utils.data import Dataset
        class Images(Dataset):
            def __init__(self):
                self.cache = {{}}
            def __getitem__(self, place):
                if place not in self.cache:
                    {bound}
                    self.cache[place] = self.load(place)
                return self.cache[place]
    """
    assert _rules(text.format(bound="pass")) == ["LS202"]
    assert _rules(text.format(bound="self.cache.popitem()")) == []


def test_cycle_over_a_loader_and_over_a_few_colours() -> None:
    assert _rules("import itertools\nfor b in itertools.cycle(train_loader): pass") == ["LS205"]
    assert _rules("from itertools import cycle\nstream = cycle(loader)") == ["LS205"]
    assert _rules("import itertools\ncolours = itertools.cycle(['red', 'blue'])") == []


def test_one_hook_for_each_layer_is_no_pile() -> None:
    text = """
        def watch(model):
            for layer in model.layers:
                layer.register_forward_hook(print)
    """
    assert _rules(text) == []


def test_a_hook_that_replaces_keeps_one() -> None:
    text = """
        class Probe:
            def __init__(self, layer):
                self.seen = []
                layer.register_forward_hook(self.look)
            def look(self, module, inputs, output):
                {}
    """
    assert _rules(text.format("self.seen.append(output)")) == ["LS302"]
    assert _rules(text.format("self.seen = [output]")) == []


@pytest.mark.parametrize(
    ("decorator", "certainty"),
    [("@functools.cache", LIKELY), ("@lru_cache(maxsize=None)", LIKELY), ("@lru_cache", POSSIBLE)],
)
def test_a_cache_on_a_method_keeps_self(decorator: str, certainty: str) -> None:
    text = f"class A:\n    {decorator}\n    def f(self, x): return x\n"
    assert [(hit.rule, hit.certainty) for hit in hits_in(text, "t.py")] == [("LS502", certainty)]


@pytest.mark.parametrize("decorators", ["@lru_cache(maxsize=4)", "@staticmethod\n    @cache"])
def test_a_cache_that_is_small_or_knows_no_self(decorators: str) -> None:
    assert _rules(f"class A:\n    {decorators}\n    def f(self, x): return x\n") == []


def test_exceptions_are_kept_or_their_texts() -> None:
    text = """
        class Job:
            def __init__(self):
                self.failed = []
            def run(self, part):
                try:
                    part()
                except ValueError as error:
                    self.failed.append({})
    """
    assert _rules(text.format("(part, error)")) == ["LS504"]
    assert _rules(text.format("(part, str(error))")) == []


def test_attempts_told_together_are_meant() -> None:
    text = """
        def connect(hosts):
            errors = []
            for host in hosts:
                try:
                    return host.open()
                except OSError as error:
                    errors.append(error)
            raise ExceptionGroup("no host", errors)
    """
    assert _rules(text) == []


def test_handlers_pile_up_where_a_function_is_called_again() -> None:
    text = """
        import logging
        log = logging.getLogger("x")
        def set_up(path):
            {guard}log.addHandler(logging.FileHandler(path))
        def main():
            for epoch in range(9):
                set_up("log.txt")
    """
    assert _rules(text.format(guard="")) == ["LS507"]
    assert _rules(text.format(guard="if not log.handlers: ")) == []


def test_a_queue_nobody_reads() -> None:
    text = "import queue\nq = queue.Queue()\nfor x in range(9):\n    q.put(x)\n"
    assert _rules(text) == ["LS508"]
    assert _rules(text + "print(q.get())\n") == []
    assert _rules(text + "read(q)\n") == []


def test_gradients_in_an_evaluation() -> None:
    text = """
        import torch
        {mark}
        def evaluate(model, loader):
            model.eval()
            total = 0
            for x, y in loader:
                total += (model(x).argmax(1) == y).sum().item()
            return total
    """
    assert _rules(text.format(mark="")) == ["LS701"]
    assert _rules(text.format(mark="@torch.no_grad()")) == []


def test_a_caller_may_turn_gradients_off() -> None:
    text = """
        import torch
        def evaluate(model, loader):
            for x in loader:
                model(x)
        def main(model, loader):
            with torch.inference_mode():
                evaluate(model, loader)
    """
    assert _rules(text) == []


def test_a_line_may_be_exempt() -> None:
    line = "losses.append(loss)  # leakscope: ignore"
    assert _rules(_TRAINING.format(line)) == []
    assert _rules(_TRAINING.format(f"{line}[LS101,LS205]")) == []
    assert _rules(_TRAINING.format(f"{line}[LS205]")) == ["LS101"]


def test_every_check_has_its_words() -> None:
    checks, gaps = load_checks()
    assert gaps == ()
    assert len({check.code for check in checks}) == len(checks) >= 18
    for check in checks:
        assert check.summary
        assert check.suggestion
        assert not check.suggestion.endswith(".")


def test_checks_are_called_as_the_rules_of_their_numbers() -> None:
    from leakscope.explain.catalogue import load_catalogue

    rules = {page.code: page.name for page in load_catalogue().pages}
    names = {check.code: check.name for check in load_checks()[0]}
    shared = rules.keys() & names.keys()
    assert len(shared) >= 9
    assert {code: names[code] for code in shared} == {code: rules[code] for code in shared}


def test_a_finalizer_holds_its_owner_or_a_number_of_it() -> None:
    text = """
        import weakref
        class Buffer:
            def __init__(self):
                weakref.finalize(self, {})
            def close(self): ...
            @staticmethod
            def free(address): ...
    """
    assert _rules(text.format("self.close")) == ["LS513"]
    assert _rules(text.format("lambda: print(self)")) == ["LS513"]
    assert _rules(text.format("self.free, self.address()")) == []


def test_a_hook_on_what_a_forward_pass_is_given_goes_with_it() -> None:
    text = """
        class Net:
            def forward(self, x):
                {}.register_hook(print)
    """
    assert _rules(text.format("x")) == []
    assert _rules(text.format("self.weight")) == ["LS301"]


def test_a_hook_may_collect_within_one_call() -> None:
    text = """
        def hook(module, inputs):
            found = []
            for one in inputs:
                found.append(one)
            return found
        layer.register_forward_pre_hook(hook)
    """
    assert _rules(text) == []


def test_a_buffer_that_carries_its_past() -> None:
    text = """
        import torch
        from torch import nn
        class Centered(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4)
                self.register_buffer("center", torch.zeros(4))
            def forward(self, x):
                out = self.body(x)
                self.center = 0.9 * self.center + 0.1 * out{}.mean(0)
                return out - self.center
    """
    assert _rules(text.format("")) == ["LS108"]
    assert _rules(text.format(".detach()")) == []
