"""Is a statement part of a hook? Small programs, with an arrow at the statement."""

from __future__ import annotations

from textwrap import dedent

import pytest

from leakscope.attribute.hooks import is_in_hook
from leakscope.attribute.places import place
from leakscope.model import Frame

ARROW = "# <-"

IN_HOOKS = {
    "a function": """
        def hook(module, inputs, output):
            kept.append(output)  # <-

        layer.register_forward_hook(hook)
    """,
    "a method": """
        class Probe:
            def attach(self, layer):
                layer.register_full_backward_hook(self.remember)

            def remember(self, module, grad_input, grad_output):
                self.kept.append(grad_output)  # <-
    """,
    "a function of a factory": """
        def save_as(name):
            def hook(module, inputs, output):
                kept[name].append(output)  # <-
            return hook

        layer.register_forward_hook(save_as("first"))
    """,
    "a lambda": """
        layer.register_forward_hook(lambda module, inputs, output: kept.append(output))  # <-
    """,
    "an object that is called": """
        class Probe:
            def __call__(self, grad):
                self.kept.append(grad)  # <-

        weight.register_hook(Probe())
    """,
    "a partial": """
        def hook(name, module, inputs, output):
            kept.append(output)  # <-

        layer.register_forward_pre_hook(hook=partial(hook, "first"), with_kwargs=True)
    """,
}

ELSEWHERE = {
    "nothing is registered": """
        def hook(module, inputs, output):
            kept.append(output)  # <-
    """,
    "another function is": """
        def hook(module, inputs, output):
            latest["it"] = output

        def fit():
            layer.register_forward_hook(hook)
            kept.append(output)  # <-
    """,
    "another method of the object that is called": """
        class Probe:
            def __call__(self, grad):
                self.latest = grad

            def collect(self, grad):
                self.kept.append(grad)  # <-

        weight.register_hook(Probe())
    """,
    "a registration of something else": """
        def model(batch):
            kept.append(batch)  # <-

        registry.register(model)
    """,
}


def _is_in_hook(text: str) -> bool:
    source = dedent(text).strip("\n")
    line = next(n for n, one in enumerate(source.splitlines(), 1) if ARROW in one)
    sources = {"train.py": source}
    return is_in_hook(sources, place(sources, Frame("train.py", line)))


@pytest.mark.parametrize("name", IN_HOOKS)
def test_inside(name: str) -> None:
    assert _is_in_hook(IN_HOOKS[name])


@pytest.mark.parametrize("name", ELSEWHERE)
def test_elsewhere(name: str) -> None:
    assert not _is_in_hook(ELSEWHERE[name])
