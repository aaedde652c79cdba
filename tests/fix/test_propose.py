"""What may be changed and what may not: small programs with an arrow at the keeping statement."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suspects import ARROW, TENSORS, Case, patched, text_of

from leakscope.fix.edits import After, CannotEditError, Decorate, Edit, Import, Span, Wrap
from leakscope.fix.rewrite import rewrite

CHANGED = [
    Case("a running sum", "local total in train", """
        def train(model, batches):
            total = 0.0
            for x in batches:
                loss = model(x).mean()
                loss.backward()
                total += loss  # <-
            print(f"mean {total / 3:.3f}")
    """, ("total += loss.detach()",), kind="graph", type="Tensor"),
    Case("a sum on the right", "local total in train", """
        def train(model, batches):
            total = 0.0
            for x in batches:
                total = model(x).mean() + total  # <-
            return float(total)
    """, ("total = model(x).mean().detach() + total",), kind="graph", type="Tensor"),
    Case("an attribute", "attribute sum of Meter", """
        class Meter:
            def __init__(self):
                self.sum, self.count = 0.0, 0
            def update(self, loss):
                self.sum += loss  # <-
                self.count += 1
            @property
            def mean(self):
                return self.sum / self.count
        def train(model, meter, batches):
            for x in batches:
                loss = model(x).mean()
                meter.update(loss)
            print(meter.mean)
    """, ("self.sum += loss.detach()",), kind="graph", type="Tensor"),
    Case("an expression gets parentheses", "local total in train", """
        def train(model, batches):
            total = 0.0
            for x in batches:
                total += model(x).mean() / len(x)  # <-
            print(total.item())
    """, ("total += (model(x).mean() / len(x)).detach()",), kind="graph", type="Tensor"),
    Case("a moving average", "attribute shadow of Teacher", """
        class Teacher:
            def update(self, student):
                for name, weight in student.named_parameters():
                    self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * weight  # <-
            def predict(self, x):
                with torch.no_grad():
                    return functional_call(self.net, self.shadow, (x,))
        def train(teacher, student, x):
            loss = student(x).mean() + teacher.predict(x).mean()
            loss.backward()
    """, ("self.shadow[name] = (0.9 * self.shadow[name] + 0.1 * weight).detach()",),
         kind="graph", type="Tensor"),
    Case("a buffer in place", "attribute centre of Norm", """
        class Norm(nn.Module):
            def forward(self, x):
                self.centre.mul_(0.9).add_(x.mean(0), alpha=0.1)  # <-
                return x - self.centre.detach()
    """, ("self.centre.mul_(0.9).add_(x.mean(0).detach(), alpha=0.1)",),
         kind="graph", type="Tensor"),
    Case("a state that is carried", "local state in listen", """
        def listen(model, windows):
            state = None
            for window in windows:
                out, state = model(window, state)  # <-
                print(out.mean().item())
    """, ("state = tuple(part.detach() for part in state)",), kind="graph", type="tuple"),
    Case("a state that is one tensor", "local state in listen", """
        def listen(cell, windows):
            state = torch.zeros(1, 8)
            for window in windows:
                state = cell(window, state)  # <-
            print(state.norm().item())
    """, ("state = cell(window, state).detach()",), kind="graph", type="Tensor"),
    Case("a list of losses", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                loss = model(x).mean()
                loss.backward()
                losses.append(loss)  # <-
            print(sum(losses) / len(losses))
    """, ("losses.append(loss.detach())",)),
    Case("a dict", "attribute outputs of Log", """
        class Log:
            def add(self, step, out):
                self.outputs[step] = out  # <-
    """, ("self.outputs[step] = out.detach()",), type="dict"),
    Case("a tuple: the tensor in it", "attribute rows of Log", """
        class Log:
            def add(self, step, loss):
                self.rows.append((step, f"{step}", loss))  # <-
                loss.backward()
        def main(log, model):
            for step in range(10):
                log.add(step, model(step))
    """, ("self.rows.append((step, f\"{step}\", loss.detach()))",),
         item="tuple", below=(("[x]", "tuple"), ("[x]", "Tensor"))),
    Case("a hook", "closure kept of watch.<locals>.hook", """
        def watch(layer):
            kept = []
            def hook(module, inputs, output):
                kept.append(output)  # <-
            layer.register_forward_hook(hook)
    """, ("kept.append(output.detach())",)),
    Case("a list in a dict", "attribute by_name of Log", """
        class Log:
            def add(self, name, out):
                self.by_name.setdefault(name, []).append(out)  # <-
    """, ("self.by_name.setdefault(name, []).append(out.detach())",),
         type="dict", kind="container in dict"),
    Case("the line wraps", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x)  # <-
                              .mean())  # kept for later
            print(losses)
    """, (".mean().detach())  # kept for later",)),
    Case("a view", "attribute examples of Gallery", """
        class Gallery:
            def show(self, batch):
                self.examples.append(batch[0])  # <-
    """, ("self.examples.append(batch[0].clone())",), parts=TENSORS,
         item="Tensor [4, 8] float32", below=(("[x]", "Tensor [4, 8] float32"), ("._base", "T"))),
    Case("an array in a dataclass", "attribute tracks of Tracker", """
        @dataclass
        class Found:
            number: int
            crop: np.ndarray
        class Tracker:
            def update(self, number, frame):
                crop = frame[2:4]
                self.tracks.append(Found(number, crop))  # <-
    """, ("self.tracks.append(Found(number, crop.copy()))",), parts={"arrays": 9000.0},
         item="Found", below=(("[x]", "Found"), (".crop", "ndarray"), (".base", "ndarray"))),
    Case("an error", "attribute broken of Report", """
        class Report:
            def check(self, number):
                try:
                    parse(number)
                except ValueError as error:
                    self.broken[number] = error  # <-
    """, ("self.broken[number] = error.with_traceback(None)",), type="dict",
         parts={"python": 9000.0}, item="ValueError",
         below=(("[x]", "ValueError"), (".__traceback__", "traceback"))),
    Case("only the end is read", "local losses in train", """
        WINDOW = 5
        def train(batches):
            history = losses = []
            losses = []
            for x in batches:
                losses.append(x.detach())  # <-
                if len(losses) >= 3:
                    print(losses[-1], sum(losses[-WINDOW - 1:]))
    """, ("del losses[:-6]",), parts=TENSORS, item="Tensor [9] float32"),
    Case("the end, by a parameter", "attribute rows of Log", """
        class Log:
            def __init__(self):
                self.rows = []
            def add(self, row):
                self.rows.append(row.detach())  # <-
            def mean(self, last=4):
                return sum(self.rows[-last:]) / last
        def main(log):
            print(log.mean(), log.mean(last=20))
    """, ("del self.rows[:-20]",), parts=TENSORS, item="Tensor [9] float32"),
    Case("of an object of the library's", "attribute masks of local", """
        import threading
        scratch = threading.local()
        def begin():
            scratch.masks = []
        def blend(mask):
            scratch.masks.append(mask)  # <-
            return np.mean(scratch.masks[-4:], axis=0)
    """, ("del scratch.masks[:-4]",), parts={"arrays": 9000.0}, item="ndarray [9] float32"),
    Case("an array of which the end is read", "local bank in train", """
        def train(batches):
            bank = torch.zeros(0, 8)
            for keys in batches:
                bank = torch.cat((bank, keys))  # <-
                print(bank[-256:].sum().item())
    """, ("bank = bank[-256:].clone()",), kind="array", type="Tensor [9000, 8] float32",
         parts=TENSORS),
]  # fmt: skip

CHANGED += [
    Case("two of one statement", "local h in listen", """
        def listen(cell, windows):
            h, c = torch.zeros(1, 8), torch.zeros(1, 8)
            for window in windows:
                h, c = cell(window, (h, c))  # <-
            print(h.norm().item())
    """, ("h = h.detach()",), kind="graph", type="Tensor"),
    Case("a function that only collects", "attribute pages of Index", """
        import torch
        class Index:
            def fill(self, model, texts):
                for text in texts:
                    page = make_page(model(text), text)
                    self.pages.append(page)  # <-
    """, ("@torch.no_grad()",), item="Page", maker=5,
         below=(("[x]", "Page"), (".vector", "Tensor"))),
]  # fmt: skip

CACHES = [
    Case("a cache", "cache prior", """
        import functools
        @functools.cache  # <-
        def prior(height, width):
            return torch.ones(height, width)
    """, ("@functools.lru_cache(maxsize=128)",), type="_lru_cache_wrapper", parts=TENSORS),
    Case("a cache by its name", "cache prior", """
        from functools import cache
        @cache  # <-
        def prior(height, width):
            return torch.ones(height, width)
    """, ("from functools import lru_cache", "@lru_cache(maxsize=128)"),
         type="_lru_cache_wrapper", parts=TENSORS),
    Case("without a size", "cache prior", """
        from functools import lru_cache
        @lru_cache(maxsize=None)  # <-
        def prior(height, width):
            return torch.ones(height, width)
    """, ("@lru_cache(maxsize=128)",), type="_lru_cache_wrapper", parts=TENSORS),
    Case("cycle", "local batches in main", """
        import itertools
        def main():
            loader = DataLoader(data, 32)
            batches = itertools.cycle(loader)  # <-
    """, ("batches = itertools.chain.from_iterable(itertools.repeat(loader))",),
         type="cycle", parts=TENSORS),
    Case("cycle by its name", "local batches in main", """
        from itertools import cycle
        def main():
            batches = cycle(DataLoader(data, 32))  # <-
    """, ("from itertools import chain", "from itertools import repeat",
          "batches = chain.from_iterable(repeat(DataLoader(data, 32)))"),
         type="cycle", parts=TENSORS),
]  # fmt: skip

LEFT_ALONE = [
    Case("the sum is trained on", "local total in train", """
        def train(model, batches):
            total = 0.0
            for x in batches:
                total += model(x).mean()  # <-
            total.backward()
    """, kind="graph", type="Tensor"),
    Case("through a variable", "local total in train", """
        def train(model, batches):
            total = 0.0
            for x in batches:
                total += model(x).mean()  # <-
            mean = total / len(batches)
            mean.backward()
    """, kind="graph", type="Tensor"),
    Case("through a function", "local total in train", """
        def learn(loss):
            loss.backward()
        def train(model, batches):
            total = 0.0
            for x in batches:
                total += model(x).mean()  # <-
            learn(total)
    """, kind="graph", type="Tensor"),
    Case("through a result", "local total in forward_all", """
        def forward_all(model, batches):
            total = 0.0
            for x in batches:
                total = total + model(x).mean()  # <-
            return total
        def train(model, batches):
            forward_all(model, batches).backward()
    """, kind="graph", type="Tensor"),
    Case("a framework gets the result", "local total in training_step", """
        class Net(LightningModule):
            def training_step(self, batch):
                total = 0.0
                for x in batch:
                    total += self.net(x).mean()  # <-
                return total
    """, kind="graph", type="Tensor", ),
    Case("stacked, then trained on", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x).mean())  # <-
            loss = torch.stack(losses).mean()
            accelerator.backward(loss)
    """),
    Case("gradients of it are asked for", "local losses in train", """
        def train(model, batches, weights):
            losses = []
            for x in batches:
                losses.append(model(x).mean())  # <-
            grads = torch.autograd.grad(sum(losses), weights)
    """),
    Case("an attribute of another class", "attribute losses of Log", """
        class Log:
            def add(self, loss):
                self.losses.append(loss)  # <-
        class Trainer:
            def step(self):
                loss = sum(self.log.losses)
                loss.backward()
    """),
    Case("a state that is trained through", "local hidden in train", """
        def train(model, chunks):
            hidden = torch.zeros(8)
            for chunk in chunks:
                logits, hidden = model(chunk, hidden)  # <-
                loss = logits.mean()
                loss.backward(retain_graph=True)
    """, kind="graph", type="Tensor"),
    Case("the graph is retained on purpose", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x).backward(retain_graph=True))  # <-
    """),
    Case("already without its graph", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x).mean().detach())  # <-
            print(losses)
    """),
    Case("a number", "local total in train", """
        def train(model, batches):
            total = 0.0
            for x in batches:
                total += model(x).mean().item()  # <-
            print(total)
    """, kind="graph", type="Tensor"),
    Case("at times a number", "attribute sum of Meter", """
        class Meter:
            def update(self, value):
                self.sum += value  # <-
        def train(meter, model, x):
            meter.update(model(x).mean())
            meter.update(0.5)
    """, kind="graph", type="Tensor"),
    Case("a number to begin with", "local total in train", """
        def train(model, batches):
            total = 0.0
            for x in batches:
                penalty = 0.0
                if x.any():
                    penalty = model(x).mean()
                total += penalty  # <-
            print(total)
    """, kind="graph", type="Tensor"),
    Case("a dict of tensors as a whole", "attribute adapted of Maml", """
        class Maml:
            def step(self, task):
                weights = self.adapt(task)
                self.adapted[task] = weights  # <-
    """, type="dict", item="dict", below=(("[x]", "dict"), ("['w']", "Tensor"))),
    Case("which of two is not clear", "attribute rows of Log", """
        class Log:
            def add(self, one, two):
                self.rows.append((one, two))  # <-
    """, item="tuple", below=(("[x]", "tuple"), ("[x]", "Tensor"))),
    Case("the error is raised later", "attribute broken of Report", """
        class Report:
            def check(self, number):
                try:
                    parse(number)
                except ValueError as error:
                    self.broken.append(error)  # <-
            def finish(self):
                raise ExceptionGroup("some failed", self.broken)
    """, parts={"python": 9000.0}, item="ValueError",
         below=(("[x]", "ValueError"), (".__traceback__", "traceback"))),
    Case("the error is raised on", "attribute broken of Report", """
        class Report:
            def check(self, number):
                try:
                    parse(number)
                except ValueError as error:
                    self.broken.append(error)  # <-
                    raise
    """, parts={"python": 9000.0}, item="ValueError",
         below=(("[x]", "ValueError"), (".__traceback__", "traceback"))),
    Case("the whole view", "attribute kept of Log", """
        class Log:
            def add(self, x):
                self.kept.append(x.numpy())  # <-
    """, parts={"arrays": 1100.0}, item="ndarray [16, 16] float32", bytes_each=1100.0,
         below=(("[x]", "ndarray [16, 16] float32"), (".base", "Tensor [16, 16] float32"))),
    Case("the base is written to later", "attribute kept of Log", """
        class Log:
            def add(self, wave):
                self.kept.append(wave[:16])  # <-
                wave *= 2
    """, parts={"arrays": 9000.0}, item="ndarray [16] float32",
         below=(("[x]", "ndarray [16] float32"), (".base", "ndarray [9000] float32"))),
    Case("a cache on a method", "cache anchors of Encoder", """
        import functools
        class Encoder:
            @functools.cache  # <-
            def anchors(self, size):
                return torch.ones(size)
    """, type="_lru_cache_wrapper", parts=TENSORS),
    Case("a cache of things there is one of", "cache connection", """
        import functools
        @functools.cache  # <-
        def connection(name):
            return Connection(name)
    """, type="_lru_cache_wrapper", parts=TENSORS),
    Case("a cache of drawn numbers", "cache noise", """
        import functools
        @functools.cache  # <-
        def noise(size):
            return torch.randn(size)
    """, type="_lru_cache_wrapper", parts=TENSORS),
    Case("a generator cannot begin anew", "local batches in main", """
        import itertools
        def read():
            yield 1
        def main():
            batches = itertools.cycle(read())  # <-
    """, type="cycle", parts=TENSORS),
    Case("all of the list is read", "local rows in main", """
        def main(batches):
            rows = []
            for x in batches:
                rows.append(x.detach())  # <-
            print(torch.stack(rows).mean())
    """, parts=TENSORS, item="Tensor [9] float32"),
    Case("the list is counted", "local rows in main", """
        def main(batches):
            rows = []
            for x in batches:
                rows.append(x.detach())  # <-
                print(len(rows), rows[-1])
    """, parts=TENSORS, item="Tensor [9] float32"),
    Case("the first is read too", "local rows in main", """
        def main(batches):
            rows = []
            for x in batches:
                rows.append(x.detach())  # <-
            print(rows[-1] - rows[0])
    """, parts=TENSORS, item="Tensor [9] float32"),
    Case("the list is handed on", "local rows in main", """
        def main(batches):
            rows = []
            for x in batches:
                rows.append(x.detach())  # <-
                print(rows[-1])
            save(rows)
    """, parts=TENSORS, item="Tensor [9] float32"),
    Case("none of the end may be all", "attribute rows of Log", """
        class Log:
            def __init__(self):
                self.rows = []
            def add(self, row):
                self.rows.append(row.detach())  # <-
            def mean(self, last=0):
                return sum(self.rows[-last:])
        def main(log):
            print(log.mean(4))
    """, parts=TENSORS, item="Tensor [9] float32"),
    Case("somebody else's list", "local rows in main", """
        def main(rows, batches):
            for x in batches:
                rows.append(x.detach())  # <-
                print(rows[-1])
    """, parts=TENSORS, item="Tensor [9] float32"),
    Case("along another dimension", "local bank in train", """
        def train(batches):
            bank = torch.zeros(8, 0)
            for keys in batches:
                bank = torch.cat((bank, keys), dim=1)  # <-
                print(bank[-256:].sum().item())
    """, kind="array", type="Tensor [8, 9000] float32", parts=TENSORS),
    Case("None at times", "attribute outputs of Log", """
        class Log:
            def add(self, step, out=None):
                self.outputs[step] = out  # <-
    """, type="dict"),
    Case("the program asks what it is", "attribute outputs of Log", """
        class Log:
            def add(self, step, out):
                if torch.is_tensor(out):
                    print(out.shape)
                self.outputs[step] = out  # <-
    """, type="dict"),
    Case("a function that also trains", "attribute pages of Index", """
        import torch
        class Index:
            def fill(self, model, texts):
                for text in texts:
                    page = make_page(model(text), text)
                    self.pages.append(page)  # <-
                    self.optimizer.step()
    """, item="Page", maker=5, below=(("[x]", "Page"), (".vector", "Tensor"))),
    Case("a function of the program's own trains", "local total in train", """
        def write(loss):
            loss.backward()
        def train(model, batches):
            total = 0.0
            for x in batches:
                total += model(x).mean()  # <-
            write(total)
    """, kind="graph", type="Tensor"),
    Case("the object is saved as a whole", "attribute rows of Log", """
        class Log:
            def __init__(self):
                self.rows = []
            def add(self, row):
                self.rows.append(row.detach())  # <-
                print(self.rows[-1])
        def main(log):
            torch.save(log, "log.pt")
    """, parts=TENSORS, item="Tensor [9] float32"),
    Case("a cache over a function that draws", "cache noise", """
        import functools
        def draw(size):
            return torch.randn(size)
        @functools.cache  # <-
        def noise(size):
            return draw(size) * 2
    """, type="_lru_cache_wrapper", parts=TENSORS),
    Case("a function is mapped over it", "local losses in train", """
        def learn(loss):
            loss.backward()
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x))  # <-
            list(map(learn, losses))
    """),
    Case("a lambda is mapped over it", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x))  # <-
            list(map(lambda loss: loss.backward(), losses))
    """),
    Case("it is bounded", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x))  # <-
            print(losses)
    """, bound="a deque with maxlen=100"),
    Case("nothing in Python holds it", "local losses in train", """
        def train(model, batches):
            losses = []
            for x in batches:
                losses.append(model(x))  # <-
            print(losses)
    """, kind="gradient cycle"),
]  # fmt: skip


@pytest.mark.parametrize("case", [*CHANGED, *CACHES], ids=lambda case: str(case.what))
def test_safe_changes_are_made(case: Case) -> None:
    """Breaks when a change is not proposed, or touches a line that it does not concern."""
    before, after = text_of(case), patched(case)
    assert after is not None
    compile(after, "train.py", "exec")
    old, new = before.splitlines(), after.splitlines()
    added = [line.strip() for line in new if line not in old]
    assert tuple(added) == case.added
    kept = [line for line in new if line in old]
    assert kept == [line for line in old if line in new]


@pytest.mark.parametrize("case", LEFT_ALONE, ids=lambda case: str(case.what))
def test_what_is_not_certain_stays(case: Case) -> None:
    """Breaks when a change is proposed that may break the program or change what it computes."""
    ast.parse(text_of(case))
    assert patched(case) is None


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_comments_and_line_ends_stay(end: str) -> None:
    """Breaks when a rewritten file loses its comments, blank lines, tabs or line ends."""
    text = f"# été{end}{end}if 1:{end}\tx = [1]  # one{end}\tx.append( 'é' )   # two{end}"
    assert rewrite(text, ()) == text
    below = After(Span(5, 1, 5, 16), "del x[:-3]")
    assert rewrite(text, (below,)) == f"{text}\tdel x[:-3]{end}"


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("if x: y.append(z)\n", After(Span(1, 6, 1, 17), "del y[:-3]")),
        ("y.append(z); go()\n", After(Span(1, 0, 1, 11), "del y[:-3]")),
        ("y = (\n", Wrap(Span(1, 4, 1, 5), ".detach()")),
        ("y = x\n", Wrap(Span(1, 9, 1, 12), ".detach()")),
        ("y = x\n", Decorate(Span(1, 0, 1, 5), "torch.no_grad()")),
        ("return x\n", Wrap(Span(1, 7, 1, 8), ".detach()")),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(text: str, edit: Edit) -> None:
    """Breaks when a half-made change, or one that does not compile, is handed out."""
    with pytest.raises(CannotEditError):
        rewrite(text, (edit,))


def test_several_edits_of_one_statement() -> None:
    """Breaks when two findings of one statement lose one of their changes."""
    text = "h, c = cell(x)\nprint(h)\n"
    whole = Span(1, 0, 1, 14)
    edits = (
        After(whole, "h = h.detach()"),
        Wrap(Span(1, 12, 1, 13), ".clone()"),
        After(whole, "c = c.detach()"),
    )
    wanted = "h, c = cell(x.clone())\nh = h.detach()\nc = c.detach()\nprint(h)\n"
    assert rewrite(text, edits) == wanted


def test_imports_are_added_once_and_in_their_place() -> None:
    """Breaks when an import lands above the docstring, or twice."""
    text = '"""Says what."""\n\nimport os\n\nprint(os.name)\n'
    wanted = text.replace("import os\n", "import os\nfrom functools import lru_cache\n")
    assert rewrite(text, (Import("functools", "lru_cache"),)) == wanted
    assert rewrite(wanted, (Import("functools", "lru_cache"),)) == wanted


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(CHANGED), st.text("abé \t#'\"\\", max_size=12), st.integers(0, 3))
def test_surroundings_never_matter(case: Case, comment: str, lines: int) -> None:
    """Breaks when comments, blank lines or letters beyond ASCII move an edit."""
    before = f"# {comment}\n" + "\n" * lines
    source = before + dedent(case.source).lstrip("\n")
    maker = case.maker + lines + 1 if case.maker else 0
    after = patched(case._replace(source=source, maker=maker))
    plain = patched(case)
    assert plain is not None
    assert after == before + plain


def test_arrow_is_not_part_of_the_program() -> None:
    assert all(ARROW.strip() not in text_of(case) for case in (*CHANGED, *LEFT_ALONE))
