"""A drawn plan on a page: equal parts are shown once, and what is large begins folded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs
import pytest

import dpframework as dpf
from dpframework.plan.node_kind_table import KINDS
from dpframework.plan.nodes import Sequential, Step
from dpframework.reports.difference import difference
from dpframework.reports.difference.merged_plan_node import Mark
from dpframework.reports.epsilon_as_odds import CertaintyGain
from dpframework.reports.html_plan_drawing import _fold_if_large, difference_on_page, merge_equal, plan_on_page
from dpframework.reports.plan_drawing_data import NodeDrawing
from dpframework.reports.plan_tree_with_losses import node_tree
from dpframework.reports.planned_result_rows import (
    ResultRow,
    bias_rows,
    bound_line,
    error_lines,
    group_rows,
    merge,
)
from dpframework.reports.section_blocks import LearnedShares, Paragraph, TableBlock
from dpframework.results.error_bounds import BoundKind, ErrorBound, TableSize

SCHEMA = dpf.Schema([dpf.Boolean("ill")], about_rows=1_000)


def tree(*widths: int) -> NodeDrawing:
    """A tree whose nodes of each level have so many children."""
    numbers = itertools.count()

    def node(left: tuple[int, ...]) -> NodeDrawing:
        number = next(numbers)
        children = tuple(node(left[1:]) for _ in range(left[0])) if left else ()
        kind = KINDS[Sequential if children else Step]
        return NodeDrawing(number, kind, f"node {number}", "", children=children)

    return node(widths)


def shown(node: NodeDrawing) -> Iterator[NodeDrawing]:
    yield node
    if not node.folded:
        for child in node.children:
            yield from shown(child)


@pytest.mark.parametrize(
    ("widths", "seen"),
    [
        ((59,), 60),  # of 60 nodes all
        ((60,), 61),  # the level below the root is always seen
        ((2, 28), 59),  # 1 + 2 + 56
        ((2, 29), 3),  # 61 nodes
        ((1, 58, 2), 60),  # 1 + 1 + 58 are just as many
        ((2, 4, 6), 11),  # 1 + 2 + 8 + 48 are 59
        ((2, 4, 7), 11),
        ((3, 3, 3, 3), 40),
        ((100, 2), 101),
    ],
)
def test_a_drawing_of_more_than_60_nodes_begins_with_the_levels_that_fit(widths: tuple[int, ...], seen: int) -> None:
    root = tree(*widths)
    drawn = _fold_if_large(root)
    whole = sum(1 for _ in root.walk())
    assert (drawn == root) == (whole <= 60 or len(widths) == 1)
    if whole > 60:
        assert sum(1 for _ in shown(drawn)) == seen
    assert [node.number for node in drawn.walk()] == [node.number for node in root.walk()]
    assert not any(node.folded for node in drawn.walk() if not node.children)


def test_equal_neighbours_are_shown_once_with_the_names_of_the_others() -> None:
    step = KINDS[Step]

    def of(*names: str, loss: str = "1") -> NodeDrawing:
        parts = [
            NodeDrawing(2 * k + 1, KINDS[Sequential], name, loss, children=(NodeDrawing(2 * k + 2, step, "s", loss),))
            for k, name in enumerate(names)
        ]
        return NodeDrawing(0, KINDS[Sequential], "plan", "", children=tuple(parts))

    (one,) = merge_equal(of("a", "b", "c")).children
    assert (one.number, one.alike, one.repeated) == (1, (3, 5), True)
    assert one.notes[0].startswith("one of 3 equal parts, shown once")
    assert [(inner.number, inner.alike) for inner in one.children] == [(2, (4, 6))]
    assert merge_equal(of("a")).children == of("a").children
    several = NodeDrawing(
        0, KINDS[Sequential], "plan", "", children=(*of("a", "b").children, *of("x", loss="2").children)
    )
    assert [node.repeated for node in merge_equal(several).children] == [True, False]


def plan_of(number: int, epsilon: str = "0.01", *, three: bool = False) -> dpf.StudyPlan:
    study = dpf.Study(SCHEMA, epsilon=1)
    if three:
        steps = [dpf.step(name, dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace("0.01")) for name in "abc"]
        study.add_plan("three", dpf.sequential(*steps))
    for k in range(number):
        study.add(f"m{k}", dpf.miner("histogram", attribute="ill", epsilon=epsilon if k else "0.01"))
    return study.plan()


def test_a_large_difference_begins_with_unchanged_parts_folded() -> None:
    small = difference_on_page(difference(plan_of(3), plan_of(3, "0.02")))
    assert not any(node.folded for node in small.walk())
    full = difference_on_page(difference(plan_of(27, three=True), plan_of(27, "0.02", three=True)))
    assert sum(1 for _ in full.walk()) == 60
    assert not any(node.folded for node in full.walk())
    large = difference_on_page(difference(plan_of(32), plan_of(32, "0.02")))
    folded = [node for node in large.walk() if node.folded]
    assert sum(1 for _ in large.walk()) > 60
    assert folded
    assert all(node.children for node in folded)
    below = [inner for node in folded for child in node.children for inner in child.walk()]
    assert all(inner.mark is Mark.SAME for inner in below)
    assert not large.folded


def test_a_node_of_a_difference_says_what_it_was_called_and_what_differs() -> None:
    before, after = dpf.Study(SCHEMA, epsilon=1), dpf.Study(SCHEMA, epsilon=1)
    for study, name in ((before, "old"), (after, "new")):
        study.add(name, dpf.miner("histogram", attribute="ill", epsilon="0.1"))
        study.add("same", dpf.miner("count", epsilon="0.1"))
    drawn = difference_on_page(difference(before.plan(), after.plan()))
    assert {node.head: node.notes for node in drawn.walk() if node.notes} == {"new": ("was old", "differs in name")}


def test_what_is_released_several_times_is_drawn_as_repeated() -> None:
    step = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace("0.1"))
    for node, several in ((dpf.repeat(2, step), True), (dpf.sequential(step), False)):
        study = dpf.Study(SCHEMA, epsilon=1)
        study.add_plan("m", node)
        plan = study.plan()
        *around, drawn = plan_on_page(plan, node_tree(plan), None, {}).walk()
        assert drawn.repeated is several
        assert not any(node.repeated for node in around)


def test_a_node_says_what_its_step_assumes_and_how_often_it_was_released() -> None:
    assuming = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace("0.1"), assumptions=["mcmc-converged"])
    study = dpf.Study(SCHEMA, epsilon=1, allow=["mcmc-converged"])
    study.add_plan(
        "m", dpf.sequential(assuming, dpf.step("r", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(0.2)))
    )
    plan = study.plan()
    nodes = [node for node in plan_on_page(plan, node_tree(plan), None, {}).walk() if node.step is not None]
    assert [[note for note in node.notes if note.startswith("assumes")] for node in nodes] == [
        ["assumes mcmc-converged"],
        [],
    ]
    assert [node.step for node in nodes] == [1, 2]
    assert {node.released for node in nodes} == {""}  # nothing was run
    first, second = (path for path, _ in plan.placed_steps())
    ran = plan_on_page(plan, node_tree(plan), object(), {second: 3})  # type: ignore[arg-type]
    told = {node.head: node.released for node in ran.walk() if node.released}
    assert list(told.values())[-2:] == ["not released", "released 3 times"]
    assert set(list(told.values())[:-2]) == {"3 releases"}
    once = plan_on_page(plan, node_tree(plan), object(), {first: 1})  # type: ignore[arg-type]
    assert "released once" in {node.released for node in once.walk()}
    assert "1 release" in {node.released for node in once.walk()}


def test_what_somebody_can_learn_is_a_table_with_a_column_for_a_delta_alone() -> None:
    assert LearnedShares((), "one row").plain() == (
        Paragraph("No claim is valid, so nothing bounds what somebody can learn."),
    )
    one = CertaintyGain("that somebody is ill", 2.718, (0.0267, 0.232, 0.7311))
    heads = ("guess", "odds grow by", "1 % sure before", "10 % sure before", "50 % sure before")
    (plain,) = LearnedShares((one,), "one row").plain()
    assert isinstance(plain, TableBlock)
    assert tuple(plain.heads) == heads
    assert [tuple(row) for row in plain.rows] == [("that somebody is ill", "2.72 times", "2.7 %", "23.2 %", "73.2 %")]
    (failing,) = LearnedShares((attrs.evolve(one, fails=1.1e-5),), "one row").plain()
    assert isinstance(failing, TableBlock)
    assert tuple(failing.heads) == (*heads, "except with a probability of")
    assert tuple(failing.rows[0])[-1] == "1.1e-05"


def row(name: str = "r", **changes: object) -> ResultRow:
    usual = ResultRow(name, "mean", (("by", "town"),), ("age",), (ErrorBound("mean", 2.0, "years"),), "epsilon 1", 0.5)
    return attrs.evolve(usual, **changes)  # type: ignore[arg-type]


def test_a_row_says_who_made_a_result_and_what_it_costs() -> None:
    assert row().cost == "epsilon 1, 50 % of the total"
    assert row(alike=("s", "t")).cost == "epsilon 1 each, 50 % of the total each"
    assert row(share=None).cost == "epsilon 1"
    assert row(share=1 / 3).cost == "epsilon 1, 33.3 % of the total"
    assert row().made_by == "mean, by = town"
    assert row(alike=("a", "b", "c")).names == "r, a, b, c"
    assert row(alike=("a", "b", "c", "d", "e")).names == "r, a, b, c, and 2 more"
    assert row().to_dict()["reads"] == ["age"]
    assert row(reads=None).to_dict()["reads"] is None


def test_parts_that_differ_in_their_names_alone_are_one_row() -> None:
    other = row("s", published=(ErrorBound("mean", 2.0, "years", steps=["x"]),))
    rows = merge([row(published=(ErrorBound("mean", 2.0, "years", steps=["y"]),)), other, row("t", loss="epsilon 2")])
    assert [(one.name, one.alike) for one in rows] == [("r", ("s",)), ("t", ())]
    assert len(merge([row(), row("s", published=(ErrorBound("mean", 2.0, "years", steps=["x", "y"]),))])) == 2


def test_biases_and_groups_are_told_once_with_the_names_of_results() -> None:
    biased = (ErrorBound("a", 1.0, biases=["clipped"]), ErrorBound("b", 1.0, biases=["clipped", "rounded"]))
    assert bias_rows([row(alike=("s",), published=biased), row("t", published=biased[:1]), row("u")]) == [
        ("r, s, t", "clipped"),
        ("r, s", "rounded"),
    ]
    many = [row(f"r{k}", published=(ErrorBound("a", 1.0, biases=[f"bias {k}"]),)) for k in range(41)]
    assert len(bias_rows(many)) == 40
    size = TableSize(1_000)
    counts = [
        ErrorBound(f"counts of {name}", 10.0, "rows", BoundKind.COUNTS, size, 1_000.0, "1,000 rows", 500.0, "half")
        for name in "ab"
    ]
    (one,) = group_rows([row(published=(counts[0],)), row("n")])
    assert one[0] == "r"
    assert one[1] == counts[0].by_group
    assert [name for name, _ in group_rows([row(published=tuple(counts))])] == ["r: counts of a", "r: counts of b"]


def test_errors_of_a_plan_are_forty_lines_at_most() -> None:
    lines = error_lines(plan_of(45))
    assert len(lines) == 41
    assert lines[0].startswith("accuracy, in 95 % of releases: Errors are stated for about 1,000 rows")
    assert lines[1].startswith("  m0: ")
    assert bound_line(ErrorBound("mean", 2.0, "years")) == "mean: within ±2 years"
