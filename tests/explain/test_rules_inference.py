"""LS7xx: runs that only run a model. None of these rules speaks where something trains."""

from __future__ import annotations

import pytest
from cases import case, link, rule_of

SERVE = """\
    def serve(model, requests, results):
        for x in requests:
            results.append(model(x))
            self.sessions[x.user] = x
    """
TRAIN = SERVE + "        results[-1].sum().backward()\n"

RESULTS = link("results", "list", scope="serve")
TABLE = link(".sessions", "dict", scope="Server")


def test_graphs_of_results_that_nobody_trains_with() -> None:
    made = case(RESULTS, steps_from="forward", source=SERVE, nodes=900.0, saved=90_000.0)
    assert rule_of(made) == "LS701"


@pytest.mark.parametrize(
    ("steps_from", "source"), [("optimizer", SERVE), ("forward", TRAIN), ("time", SERVE)]
)
def test_graphs_in_a_run_that_may_train(steps_from: str, source: str) -> None:
    made = case(RESULTS, steps_from=steps_from, source=source, nodes=900.0, saved=90_000.0)
    assert rule_of(made) == "LS101"


def test_results_without_graphs() -> None:
    assert rule_of(case(RESULTS, steps_from="forward", source=SERVE, tensors=4096.0)) == "LS702"


@pytest.mark.parametrize(("steps_from", "source"), [("optimizer", SERVE), ("forward", TRAIN)])
def test_results_in_a_run_that_trains(steps_from: str, source: str) -> None:
    assert rule_of(case(RESULTS, steps_from=steps_from, source=source, tensors=4096.0)) == "LS501"


def test_texts_are_no_results_of_a_model() -> None:
    assert (
        rule_of(case(RESULTS, item="str", steps_from="forward", source=SERVE, python=80.0))
        == "LS501"
    )


def test_a_deque_is_a_window_that_lacks_its_bound() -> None:
    recent = link("recent", "deque", scope="serve")
    assert rule_of(case(recent, steps_from="forward", source=SERVE, tensors=4096.0)) == "LS501"


@pytest.mark.parametrize("item", ["Session", "dict", "list"])
def test_a_table_of_sessions(item: str) -> None:
    made = case(
        TABLE, item=item, steps_from="forward", source=SERVE, keeps="self.sessions[", python=900.0
    )
    assert rule_of(made) == "LS703"


def test_a_table_that_no_statement_of_the_program_fills() -> None:
    made = case(TABLE, item="Session", steps_from="forward", source=SERVE, python=900.0)
    assert rule_of(made) == "LS501"


def test_without_the_text_of_the_program_nobody_knows_whether_it_trains() -> None:
    made = case(RESULTS, steps_from="forward", nodes=900.0, saved=90_000.0)
    assert rule_of(made) == "LS101"


@pytest.mark.parametrize("item", ["Tensor [4] float32", "tuple"])
def test_values_by_key_are_no_sessions(item: str) -> None:
    assert (
        rule_of(case(TABLE, item=item, steps_from="forward", source=SERVE, tensors=4096.0))
        == "LS702"
    )


def test_texts_by_key_are_no_sessions() -> None:
    assert (
        rule_of(case(TABLE, item="str", steps_from="forward", source=SERVE, python=90.0)) == "LS501"
    )


def test_a_list_of_objects_is_no_table() -> None:
    made = case(
        RESULTS, item="Session", steps_from="forward", source=SERVE, keeps="results.append",
        python=900.0,
    )  # fmt: skip
    assert rule_of(made) == "LS501"


def test_a_table_in_a_run_that_trains() -> None:
    made = case(TABLE, item="Session", source=SERVE, keeps="self.sessions[", python=900.0)
    assert rule_of(made) == "LS501"
