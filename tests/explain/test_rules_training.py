"""LS1xx: what the training loop keeps. Each rule takes its case, and not its neighbour's."""

from __future__ import annotations

import pytest
from cases import case, link, rule_of

from leakscope.explain.rule import Case
from leakscope.model import Link

LOOP = """\
    def fit(model, cell, data, losses, total, state, hidden):
        for x in data:
            y, state = cell(x, state)
            out, new = cell(x, hidden)
            hidden = new
            loss = model(x)
            total = total + loss.mean()
            best = torch.maximum(best, loss)
            losses.append(loss)
            loss.backward()
    """


def carried(keeps: str, source: str = LOOP) -> Case:
    name = keeps.partition(" =")[0].rpartition(" ")[2]
    return case(
        link(name, "Tensor [4] float32, grad_fn AddBackward0", scope="fit"),
        kind="graph", item="graph node", source=source, keeps=keeps, nodes=640.0,
    )  # fmt: skip


def test_a_state_that_a_call_takes_and_returns_is_carried() -> None:
    assert rule_of(carried("y, state = cell(x, state)")) == "LS104"


def test_a_state_that_is_renamed_on_the_way_is_carried_too() -> None:
    assert rule_of(carried("hidden = new")) == "LS104"


def test_a_running_sum_is_no_state() -> None:
    assert rule_of(carried("total = total + loss.mean()")) == "LS102"


def test_a_function_of_torch_is_arithmetic() -> None:
    assert rule_of(carried("best = torch.maximum(best, loss)")) == "LS102"


def test_a_graph_without_a_source_is_a_running_sum() -> None:
    grows = link("state", "Tensor [4] float32", scope="fit")
    assert rule_of(case(grows, kind="graph", item="graph node", nodes=640.0)) == "LS102"


MODULE = """\
    class Centered({base}):
        def forward(self, x):
            features = self.body(x)
            self.center = 0.9 * self.center + 0.1 * features.mean(0)
            self.state = self.cell(x, self.state)
            return features
    """


def attribute(name: str, base: str, keeps: str) -> Case:
    return case(
        link("model", "Centered", scope="main"),
        link(f".{name}", "Tensor [4] float32, grad_fn AddBackward0", scope="Centered"),
        kind="graph", item="graph node", source=MODULE.format(base=base), keeps=keeps, nodes=640.0,
    )  # fmt: skip


def test_a_buffer_of_a_module_carries_a_graph() -> None:
    assert rule_of(attribute("center", "nn.Module", "self.center = 0.9")) == "LS108"


def test_an_attribute_of_another_class_is_a_running_sum() -> None:
    assert rule_of(attribute("center", "object", "self.center = 0.9")) == "LS102"


def test_a_state_in_a_module_is_still_a_state() -> None:
    assert rule_of(attribute("state", "nn.Module", "self.state = self.cell")) == "LS104"


def test_losses_with_graphs() -> None:
    losses = link("losses", "list", scope="fit")
    assert rule_of(case(losses, source=LOOP, keeps="losses.append", nodes=900.0)) == "LS101"


RETAINED = LOOP.replace("loss.backward()", "loss.backward(retain_graph=True)")


def test_activations_that_stay_because_of_retain_graph() -> None:
    losses = link("losses", "list", scope="fit")
    made = case(losses, source=RETAINED, keeps="losses.append", nodes=900.0, saved=90_000.0)
    assert rule_of(made) == "LS106"


def test_nodes_alone_do_not_come_from_retain_graph() -> None:
    losses = link("losses", "list", scope="fit")
    assert rule_of(case(losses, source=RETAINED, keeps="losses.append", nodes=900.0)) == "LS101"


def test_retain_graph_that_is_off_retains_nothing() -> None:
    source = RETAINED.replace("retain_graph=True", "retain_graph=False")
    losses = link("losses", "list", scope="fit")
    made = case(losses, source=source, keeps="losses.append", nodes=900.0, saved=90_000.0)
    assert rule_of(made) == "LS101"


GRADIENTS = """\
    def penalty(critic, x, slopes, outs):
        out = critic(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        slopes.append(slope)
        outs.append(out)
        slopes.append([weight.grad for weight in critic.parameters()])
        return slope
    """


@pytest.mark.parametrize("keeps", ["slopes.append(slope)", "slopes.append([weight.grad"])
def test_gradients_with_graphs_of_their_own(keeps: str) -> None:
    slopes = link("slopes", "list", scope="penalty")
    assert rule_of(case(slopes, source=GRADIENTS, keeps=keeps, nodes=6000.0)) == "LS107"


def test_a_gradient_on_the_way_to_what_is_kept() -> None:
    models = link("models", "list", scope="fit")
    below = (link("[x]", "Net"), link(".grad", "Tensor [4] float32", scope="Parameter"))
    assert rule_of(case(models, below=below, item="Net", nodes=6000.0)) == "LS107"


def test_an_output_beside_a_gradient_is_no_gradient() -> None:
    outs = link("outs", "list", scope="penalty")
    assert rule_of(case(outs, source=GRADIENTS, keeps="outs.append", nodes=6000.0)) == "LS101"


def test_gradients_without_graphs_are_tensors_like_others() -> None:
    slopes = link("slopes", "list", scope="penalty")
    made = case(slopes, source=GRADIENTS, keeps="slopes.append(slope)", tensors=6000.0)
    assert rule_of(made) == "LS501"


LIBRARY = "/env/lib/python3.11/site-packages/torchmetrics/classification/auroc.py"
OWN_METRIC = """\
    class Curve:
        def update(self, scores):
            self.scores.append(scores)

        def compute(self):
            return sum(self.scores)

        def {third}(self):
            self.scores = []
    """


@pytest.mark.parametrize(
    ("file", "expected"), [(LIBRARY, "LS103"), ("/home/me/evaluate/train.py", "LS501")]
)
def test_a_metric_of_a_library(file: str, expected: str) -> None:
    preds = link(".preds", "list", scope="MulticlassAUROC", file=file)
    made = case(link("auroc", "MulticlassAUROC", scope="fit"), preds, tensors=5000.0)
    assert rule_of(made) == expected


@pytest.mark.parametrize(("third", "expected"), [("reset", "LS103"), ("summary", "LS501")])
def test_a_metric_of_the_program_can_be_reset(third: str, expected: str) -> None:
    made = case(
        link(".scores", "list", scope="Curve"),
        source=OWN_METRIC.format(third=third), keeps="self.scores.append", tensors=5000.0,
    )  # fmt: skip
    assert rule_of(made) == expected


SNAPSHOTS = """\
    def keep(model, snapshots, weights, losses):
        snapshots.append(copy.deepcopy(model.state_dict()))
        state = model.state_dict()
        weights.append(state)
        losses.append(model(x).detach())
    """


def test_whole_models() -> None:
    tried = link("tried", "list", scope="search")
    below = (link("[x]", "dict"), link("['model']", "Net"), link("[x]", "Parameter [8, 8] float32"))
    assert rule_of(case(tried, below=below, item="dict", tensors=5000.0)) == "LS109"


def test_a_sequential_of_torch_is_no_model_of_keras() -> None:
    """Both have a class of that name."""
    tried = link("tried", "list", scope="search")
    below = (
        link("[x]", "Sequential"),
        link("._modules", "dict"),
        link("['0']", "Linear"),
        link("._parameters", "dict"),
        link("['weight']", "Parameter [8, 8] float32"),
    )
    made = case(tried, below=below, item="Sequential", tensors=5000.0)
    assert rule_of(made) == "LS109"


def test_a_model_that_a_cache_keeps_with_its_arguments_is_the_caches() -> None:
    """The fix is to bound the cache, or to keep `self` out of it."""
    cache = Link("lru_cache of Net.anchors", "lru_cache", "cache", "anchors")
    below = (link("[x]", "Net"), link("['weight']", "Parameter [8, 8] float32"))
    grows = Link("[x]", "dict", "item")
    made = case(cache, grows, below=below, item="Tensor [256, 2] float32", tensors=5000.0)
    assert rule_of(made) == "LS502"


@pytest.mark.parametrize("keeps", ["snapshots.append", "weights.append"])
def test_states_of_models(keeps: str) -> None:
    grows = link(keeps.partition(".")[0], "list", scope="keep")
    made = case(grows, item="OrderedDict", source=SNAPSHOTS, keeps=keeps, tensors=5000.0)
    assert rule_of(made) == "LS109"


def test_a_detached_output_is_no_model() -> None:
    grows = link("losses", "list", scope="keep")
    made = case(grows, source=SNAPSHOTS, keeps="losses.append", tensors=5000.0)
    assert rule_of(made) == "LS501"
