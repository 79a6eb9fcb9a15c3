"""The difference of two plans: complete, symmetric, empty for equal plans, and told in words that name the change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st
from people import SCHEMA_FILE, tree_plan
from random_plans import compositions

import dpframework as dpf
from dpframework.cli import main
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace, PermuteAndFlip
from dpframework.plan import Node, Step, walk
from dpframework.reports import text_plan_drawings
from dpframework.reports.difference import Mark, MergedNode
from dpframework.reports.difference.plan_changes import Difference, Topic, difference
from dpframework.reports.difference.whole_plan_changes import total_headline

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"]), dpf.Numeric("age", 0, 10, cuts=[3.5])])
SLOW = settings(max_examples=60)
Planner = Callable[..., dpf.StudyPlan]


def count(name: str, epsilon: Any = 1, **options: Any) -> Step:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon), **options)


# --- any two plans --------------------------------------------------------------------------------------------------

# Few names and few amounts, so that two random plans have much in common.
names = st.sampled_from("pqrst")
leaves = st.one_of(
    st.builds(
        lambda n, q, k, e, u, t: dpf.step(n, q, k(e), uses=u, threshold=t),
        names,
        st.sampled_from([dpf.queries.Count(), dpf.queries.Histogram(SCHEMA["c"]), dpf.queries.Histogram(SCHEMA["a"])]),
        st.sampled_from([DiscreteLaplace, Laplace, Exponential, PermuteAndFlip, Gaussian]),
        st.sampled_from(["0.25", "0.5"]),
        st.lists(names, max_size=1),
        st.sampled_from([None, 10]),
    ),
    st.builds(dpf.post, names, st.lists(names, max_size=1)),
)
cuts = st.sampled_from(
    [
        None,
        SCHEMA["c"],
        SCHEMA["a"],
        dpf.FromRelease("p"),
        dpf.FromRelease("p", attributes=["a"]),
        dpf.Cases([dpf.Below("age", 3.5)]),
    ]
)
nodes = compositions(leaves, cuts=cuts, names=names, most_leaves=7, most_times=3)
relations = st.sampled_from(list(dpf.Relation))


@st.composite
def edited(draw: st.DrawFn, node: Node) -> Node:
    """Return a plan that differs from another one here and there: the pairs that people compare."""
    change = draw(st.sampled_from(["keep"] * 4 + ["replace", "wrap", "group", "flatten", "drop", "add", "reverse"]))
    parts = [draw(edited(child)) for child in node.children]
    match node:
        case dpf.plan.Repeat():
            node = attrs.evolve(node, part=parts[0])
        case _ if parts:
            node = attrs.evolve(node, parts=tuple(parts))
    several = isinstance(node, dpf.plan.Sequential | dpf.plan.Either)
    match change:
        case "replace":
            return draw(nodes)
        case "wrap":
            return dpf.repeat(2, node)
        case "group" if several and len(parts) > 1:
            group = draw(st.sampled_from([dpf.either, dpf.sequential, lambda *p: dpf.sequential(*p, name="p")]))
            return attrs.evolve(node, parts=(group(*parts[:2]), *parts[2:]))
        case "flatten" if several:
            return attrs.evolve(node, parts=(*parts[0].children, *parts[1:]) if parts[0].children else tuple(parts))
        case "drop" if several and len(parts) > 1:
            return attrs.evolve(node, parts=tuple(parts[1:]))
        case "add" if several:
            return attrs.evolve(node, parts=(draw(leaves), *parts))
        case "reverse" if several:
            return attrs.evolve(node, parts=tuple(reversed(parts)))
    return node


scopes = st.lists(nodes, min_size=2, max_size=4).map(lambda parts: dpf.sequential(*parts))
pairs = st.one_of(
    st.tuples(nodes, nodes),
    st.tuples(scopes, scopes),
    scopes.flatmap(lambda node: st.tuples(st.just(node), edited(node))),
    scopes.flatmap(lambda node: st.tuples(edited(node), edited(node))),
)


def places(root: MergedNode, side: str) -> dict[int, int | None]:
    """Return, by its number, what each node of one plan lies below, according to the merged tree."""
    found: dict[int, int | None] = {}

    def visit(node: MergedNode, above: int | None) -> None:
        own = getattr(node, side)
        if own is not None:
            assert own.number not in found
            found[own.number] = above
        for child in node.children:
            visit(child, above if own is None else own.number)

    visit(root, None)
    return found


def composition(plan: dpf.StudyPlan) -> dict[int, int | None]:
    numbers = {id(node): number for number, node in enumerate(walk(plan.root))}
    below = {numbers[id(child)]: numbers[id(node)] for node in walk(plan.root) for child in node.children}
    return {0: None, **below}


@given(pair=pairs, relation=relations)
@SLOW
def test_each_node_of_both_plans_is_in_the_merged_tree_once_and_at_its_place(
    plan_of: Planner, pair: tuple[Node, Node], relation: Any
) -> None:
    before, after = (plan_of(node, SCHEMA, relation, delta="1e-6") for node in pair)
    found = difference(before, after)
    assert places(found.root, "before") == composition(before)
    assert places(found.root, "after") == composition(after)
    for node in found.nodes():
        assert (node.mark is Mark.ADDED) == (node.before is None)
        assert (node.mark is Mark.REMOVED) == (node.after is None)
        marks = {inner.mark for inner in node.walk()}  # one plan's composition takes in the other's nodes to share them
        assert not {Mark.ADDED, Mark.REMOVED} <= marks or marks & {Mark.SAME, Mark.CHANGED}


@given(pair=pairs)
@SLOW
def test_exchanging_the_plans_exchanges_added_and_removed(plan_of: Planner, pair: tuple[Node, Node]) -> None:
    before, after = (plan_of(node, SCHEMA) for node in pair)

    def seen(found: Difference) -> set[tuple[Any, Any, Mark]]:
        return {(n.before and n.before.number, n.after and n.after.number, n.mark) for n in found.nodes()}

    other = {Mark.ADDED: Mark.REMOVED, Mark.REMOVED: Mark.ADDED}
    forth, back = difference(before, after), difference(after, before)
    assert seen(forth) == {(a, b, other.get(mark, mark)) for b, a, mark in seen(back)}
    assert len([c for c in forth.changes if c.topic is Topic.STEPS]) == len(
        [c for c in back.changes if c.topic is Topic.STEPS]
    )


@given(node=nodes, relation=relations)
@SLOW
def test_a_plan_does_not_differ_from_itself(plan_of: Planner, node: Node, relation: Any) -> None:
    plan = plan_of(node, SCHEMA, relation, delta="1e-6")
    found = difference(plan, dpf.StudyPlan.from_json(plan.to_json()))
    assert found.changes == ()
    assert {n.mark for n in found.nodes()} == {Mark.SAME}
    assert found.to_dict()["same"] is True


@given(pair=pairs, relations=st.tuples(relations, relations))
@SLOW
def test_changes_are_told_if_and_only_if_the_plans_differ(
    plan_of: Planner, pair: tuple[Node, Node], relations: tuple[Any, Any]
) -> None:
    before, after = (plan_of(node, SCHEMA, relation) for node, relation in zip(pair, relations, strict=True))
    found = difference(before, after)
    assert (not found.changes) == (before.hash == after.hash)
    for change in found.changes:
        assert "\n" not in change.text
        for old, new in re.findall(r"epsilon from (\S+) to (\S+)", change.text):
            assert old != new
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_arrows_of_uses_are_in_the_order_of_the_releases_that_are_used(plan_of: Planner) -> None:
    plan = plan_of(dpf.sequential(count("a"), count("b"), dpf.post("c", ["b"]), dpf.post("d", ["a"])), SCHEMA)
    dashed = [line.split()[:3] for line in text_plan_drawings.dot(plan).splitlines() if "style=dashed" in line]
    dotted = [line.split() for line in text_plan_drawings.mermaid(plan).splitlines() if "-.->" in line]
    assert dashed == [["n1", "->", "n4"], ["n2", "->", "n3"]]
    assert dotted == [["n1", "-.->", "n4"], ["n2", "-.->", "n3"]]


@given(pair=pairs)
@SLOW
def test_drawings_hold_every_node_with_its_mark_in_words_or_signs(plan_of: Planner, pair: tuple[Node, Node]) -> None:
    found = difference(*(plan_of(node, SCHEMA) for node in pair))
    every = list(found.nodes())
    lines = text_plan_drawings.difference_tree(found).split("\n\n")[0].splitlines()
    assert [line[0] for line in lines] == [text_plan_drawings.SIGNS[node.mark] for node in every]
    mermaid, dot = (
        text_plan_drawings.difference_mermaid(found).splitlines(),
        text_plan_drawings.difference_dot(found).splitlines(),
    )
    for number, node in enumerate(every):
        for drawn in (mermaid, dot):
            (line,) = [text for text in drawn if re.match(rf"    n{number}[ \[(](?!-)", text) and "->" not in text]
            worded = re.search(r'"(\w+): ', line)
            assert node.mark is Mark.SAME or (worded is not None and worded.group(1) == node.mark)
            assert line.replace('\\"', "").count('"') % 2 == 0
    parts = [text for text in mermaid if "-->" in text]
    assert len(parts) == len(every) - 1


# --- single changes, and what is said of them -----------------------------------------------------------------------

BASE = dpf.sequential(
    dpf.sequential(
        count("rows", "0.25", threshold=10),
        dpf.parallel(count("parts of c", "0.5"), by=SCHEMA["c"], name="cells"),
        dpf.repeat(3, count("again", "0.1", uses=["rows"])),
        name="study",
    ),
    dpf.sequential(count("other", "0.2"), name="second"),
)
FIRST = BASE.parts[0]
ROWS, CELLS, AGAIN = FIRST.children


def with_parts(*parts: Node) -> Node:
    return dpf.sequential(dpf.sequential(*parts, name="study"), BASE.parts[1])


ROWS_OF_A = dpf.step("rows", dpf.queries.Histogram(SCHEMA["a"]), DiscreteLaplace("0.25"), threshold=10)
SINGLE = {
    "epsilon": (
        with_parts(count("rows", "0.5", threshold=10), CELLS, AGAIN),
        ["'study/rows': epsilon from 0.25 to 0.5"],
    ),
    "threshold": (with_parts(count("rows", "0.25"), CELLS, AGAIN), ["'study/rows': threshold from 10 to none"]),
    "assumption": (
        with_parts(attrs.evolve(ROWS, assumptions=["mcmc-converged"]), CELLS, AGAIN),
        ["'mcmc-converged' is new, needed by 'rows'", "'study/rows': assumptions from none to mcmc-converged"],
    ),
    "uses": (
        with_parts(ROWS, CELLS, dpf.repeat(3, count("again", "0.1", uses=["rows", "cells"]))),
        ["'study/again': uses from rows to rows, cells"],
    ),
    "mechanism": (
        with_parts(dpf.step("rows", dpf.queries.Count(), Laplace("0.25"), threshold=10), CELLS, AGAIN),
        ["'study/rows': mechanism from discrete-laplace to laplace"],
    ),
    "query": (
        with_parts(ROWS_OF_A, CELLS, AGAIN),
        [
            "'study/rows': query from count of rows to histogram of a; largest length of the answer from 1 to 2; "
            "sensitivity under replace-one (l1, squared-l2) from 1 to 2"
        ],
    ),
    "repeat": (
        with_parts(ROWS, CELLS, attrs.evolve(AGAIN, times=5)),
        ["in 'study': repeat 5 times: times from 3 to 5"],
    ),
    "cut": (
        with_parts(ROWS, attrs.evolve(CELLS, by=SCHEMA["a"]), AGAIN),
        ["'cells' (parallel over the values of a): parts from by the values of c to by the values of a"],
    ),
    "values": (
        with_parts(ROWS, attrs.evolve(CELLS, by=dpf.Categorical("c", ["x", "z"])), AGAIN),
        ["'cells' (parallel over the values of c): the values of c: values from x, y, z to x, z"],
    ),
    "kind": (
        with_parts(ROWS, dpf.sequential(*CELLS.parts, name="cells"), AGAIN),
        ["in 'study': parallel over the values of c became cells"],
    ),
    "wrap": (
        with_parts(dpf.repeat(2, ROWS), CELLS, AGAIN),
        ["in 'study': added repeat 2 times, around 'rows'"],
    ),
    "unwrap": (
        with_parts(ROWS, CELLS, *AGAIN.children),
        ["in 'study': removed repeat 3 times, around 'again'"],
    ),
    "order": (with_parts(CELLS, ROWS, AGAIN), ["'study': its parts are in another order"]),
    "added": (
        with_parts(ROWS, CELLS, AGAIN, count("new", "0.3")),
        ["'study/new' added: count of rows, discrete-laplace, epsilon 0.3"],
    ),
    "removed": (
        with_parts(ROWS, AGAIN),
        ["removed 'cells' (parallel over the values of c), with 1 step", "'study/cells/parts of c' removed: "],
    ),
    "renamed": (
        with_parts(count("size", "0.25", threshold=10), CELLS, dpf.repeat(3, count("again", "0.1", uses=["rows"]))),
        ["'study/size': name from rows to size"],
    ),
    "renamed and changed": (
        with_parts(
            dpf.step("size", dpf.queries.Count(), Laplace("0.5")),
            CELLS,
            dpf.repeat(3, count("again", "0.1", uses=["rows"])),
        ),
        [
            "'study/size': name from rows to size; threshold from 10 to none; "
            "mechanism from discrete-laplace to laplace; epsilon from 0.25 to 0.5"
        ],
    ),
    "miner": (
        dpf.sequential(*BASE.parts, dpf.sequential(count("third", "0.1"), name="more")),
        ["added 'more', with 1 step", "'more/third' added"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_change_is_told_alone(plan_of: Planner, name: str) -> None:
    after, texts = SINGLE[name]
    found = difference(plan_of(BASE, SCHEMA), plan_of(after, SCHEMA))
    told = [
        c.text for c in found.changes if c.topic in (Topic.ASSUMPTIONS, Topic.BUDGET, Topic.COMPOSITION, Topic.STEPS)
    ]
    for text in texts:
        assert [t for t in told if text in t], told
    assert len(told) <= len(texts)  # a sentence may hold two of the texts
    touched = [node for node in found.nodes() if node.changed or node.mark in (Mark.ADDED, Mark.REMOVED)]
    assert 0 < len(touched) <= 2, [node.side.label for node in touched]


def test_deep_plans_are_compared_too(plan_of: Planner) -> None:
    """Each level may be one that the other plan lacks: what was tried once must not be tried again."""

    def nested(depth: int) -> Node:
        if depth == 0:
            return count("n", "0.5")
        return dpf.either(count("stop", "0.5"), dpf.sequential(count("go", "0.25"), dpf.repeat(1, nested(depth - 1))))

    found = difference(plan_of(nested(12), SCHEMA), plan_of(nested(30), SCHEMA))
    steps = [node for node in found.nodes() if node.side.kind == "step"]
    assert [node.mark for node in steps].count(Mark.ADDED) == 36
    assert [node.mark for node in steps].count(Mark.SAME) == 25


def test_amounts_that_read_alike_are_told_exactly(plan_of: Planner) -> None:
    near = [dpf.sequential(count("n", epsilon)) for epsilon in ("1/3", "33333/99998")]
    found = difference(*(plan_of(node, SCHEMA) for node in near))
    assert "total: epsilon from 1/3 to 33333/99998 in pure accounting" in map(str, found.changes)
    assert "epsilon 33333/99998, was 1/3" in text_plan_drawings.difference_tree(found)


@pytest.mark.parametrize(
    ("options", "topic", "text"),
    [
        ({"epsilon": 5}, Topic.BUDGET, "epsilon from 1000 to 5"),
        ({"delta": "1e-6"}, Topic.BUDGET, "delta from 0 to 0.000001"),
        ({"allow": ("mcmc-converged",)}, Topic.BUDGET, "now allows 'mcmc-converged'"),
        ({"relation": "replace-one"}, Topic.RELATION, "from add-or-remove-one to replace-one: "),
        ({"relation": "replace-one"}, Topic.ASSUMPTIONS, "'row-count-public' is new, needed by the whole plan"),
    ],
)
def test_what_concerns_the_whole_plan(plan_of: Planner, options: dict[str, Any], topic: Topic, text: str) -> None:
    found = difference(plan_of(BASE, SCHEMA), plan_of(BASE, SCHEMA, **options))
    assert [change for change in found.changes if change.topic is topic and change.text.startswith(text)]
    told = [change for change in found.changes if change.topic in (Topic.STEPS, Topic.COMPOSITION)]
    # In parts a replaced row may count twice, so that noise is doubled there and the step alone costs less.
    assert [str(change) for change in told] == (
        ["steps: 'study/cells/parts of c': loss in epsilon from 0.5 to 0.25"] if "relation" in options else []
    )


def test_schemas_are_compared_by_attribute(plan_of: Planner) -> None:
    other = dpf.Schema(
        [dpf.Categorical("c", ["x", "y", "z"]), dpf.Numeric("age", 0, 10, cuts=[4.5]), dpf.Boolean("new")], rows=10
    )
    node = dpf.sequential(count("n"))
    told = [str(c) for c in difference(plan_of(node, SCHEMA), plan_of(node, other)).changes if c.topic is Topic.SCHEMA]
    assert told == [
        f"schema: fingerprint from {SCHEMA.fingerprint[:12]} to {other.fingerprint[:12]}",
        "schema: public row count from none to 10",
        "schema: public bound of the row count from none to 10",
        "schema: attribute 'a' removed",
        "schema: attribute 'new' added",
        "schema: attribute 'age': cuts from 3.5 to 4.5",
    ]


# --- what an auditor must know first --------------------------------------------------------------------------------

HEADLINES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "stays": ({}, {}, "the total stays at epsilon 1, under add-or-remove-one", "the checks accept both plans"),
    "rises": ({}, {"node": count("n", 2)}, "the total rises from epsilon 1 to epsilon 2", "the checks accept both"),
    "falls": ({"node": count("n", 2)}, {}, "the total falls from epsilon 2 to epsilon 1", "the checks accept both"),
    "refused": ({}, {"epsilon": "0.5"}, "stays", "newly refused: DP001 error: the plan's total epsilon is 1.0"),
    "accepted": ({"epsilon": "0.5"}, {}, "stays", "no longer refused: DP001 refused the plan before"),
    "both refused": (
        {"epsilon": "0.5"},
        {"epsilon": "0.5", "node": count("n", assumptions=["mcmc-converged"])},
        "stays",
        "the checks refuse both plans, the plan after because of DP001, DP005; new: DP005",
    ),
    "relation": ({}, {"relation": "replace-one"}, "claims about different neighbours", "the checks accept both plans"),
    "delta": (
        {"node": dpf.step("n", dpf.queries.Count(), Gaussian("0.01")), "delta": "1e-6"},
        {"node": dpf.step("n", dpf.queries.Count(), Gaussian("0.01")), "delta": "1e-5"},
        "claims with different deltas",
        "the checks accept both plans",
    ),
    "no total": (
        {},
        {"node": dpf.step("n", dpf.queries.Count(), Gaussian("0.01"))},
        "the plan had a valid total and now has none: it was epsilon 1",
        "newly refused: DP010 error",
    ),
}


@pytest.mark.parametrize("name", HEADLINES)
def test_headlines(plan_of: Planner, name: str) -> None:
    old, new, total, checks = HEADLINES[name]
    before, after = ({"node": count("n"), "schema": SCHEMA, **options} for options in (old, new))
    found = difference(plan_of(**before), plan_of(**after))
    assert total in found.headlines[0]
    assert found.headlines[1].startswith(checks)


# --- the command line -----------------------------------------------------------------------------------------------

STUDY_FILE = """
[data]
path = "nowhere.csv"
schema = "people.schema.toml"

[privacy]
epsilon = 1.0

[[step]]
name = "ill-tree"
miner = "dp-id3"
epsilon = {epsilon}
params = {{ target = "ill", max_depth = 1 }}
"""


@pytest.fixture
def studies(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "people.schema.toml").write_text(SCHEMA_FILE)
    for name, epsilon in (("old", "0.5"), ("new", "1.5")):
        (tmp_path / f"{name}.toml").write_text(STUDY_FILE.format(epsilon=epsilon))
    return tmp_path / "old.toml", tmp_path / "new.toml"


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


def test_two_studies(capsys: pytest.CaptureFixture[str], studies: tuple[Path, Path]) -> None:
    code, out, err = ran(capsys, "plan", studies[0], "--diff", studies[1])
    assert (code, err) == (0, "")
    assert re.match(rf"before: {studies[0]} \(plan [0-9a-f]{{12}}\)\nafter:  {studies[1]} \(", out)
    assert "\nthe total rises from epsilon 0.5 to epsilon 1.5, under add-or-remove-one\nnewly refused: DP001" in out
    assert "\nsteps: 'ill-tree/classes': epsilon from 0.5 to 1.5\n" in out
    assert "\n~ └─ ill-tree  [epsilon 1.5, was 0.5]\n" in out
    assert out.endswith("pure accounting (budget 1.0)\n")


def test_a_study_and_the_plan_that_was_written_of_it(
    capsys: pytest.CaptureFixture[str], studies: tuple[Path, Path], tmp_path: Path
) -> None:
    written = tmp_path / "plan.json"
    written.write_text(ran(capsys, "plan", studies[0], "--json")[1])
    code, out, _ = ran(capsys, "plan", written, "--diff", studies[0])
    assert code == 0
    assert out.endswith("the checks accept both plans\nno difference\n")
    code, out, _ = ran(capsys, "plan", written, "--diff", studies[1], "--json")
    form = json.loads(out)
    assert code == 0
    assert form["before"] == json.loads(written.read_text())["hash"]
    assert form["same"] is False
    assert {"topic": "total", "text": "epsilon from 0.5 to 1.5 in pure accounting"} in form["changes"]
    assert form["root"]["mark"] == "changed"
    assert (form["root"]["before"]["loss"], form["root"]["after"]["loss"]) == ({"epsilon": "1/2"}, {"epsilon": "3/2"})


@pytest.mark.parametrize(
    ("form", "start"),
    [("mermaid", "flowchart TD"), ("dot", "digraph difference {"), ("html", "<!doctype"), ("json", "{")],
)
def test_formats(capsys: pytest.CaptureFixture[str], studies: tuple[Path, Path], form: str, start: str) -> None:
    code, out, _ = ran(capsys, "plan", studies[0], "--diff", studies[1], "--format", form)
    assert code == 0
    assert out.startswith(start)
    assert "changed" in out


@pytest.mark.parametrize("content", [None, "{}", "not a study"])
def test_what_cannot_be_read_is_said_in_one_sentence(
    capsys: pytest.CaptureFixture[str], studies: tuple[Path, Path], tmp_path: Path, content: str | None
) -> None:
    other = tmp_path / ("other.json" if content == "{}" else "other.toml")
    if content is not None:
        other.write_text(content)
    code, out, err = ran(capsys, "plan", studies[0], "--diff", other)
    assert (code, out) == (2, "")
    assert str(other) in err
    assert err.count("\n") == 1


def test_another_parameter_of_a_miner_is_a_change_even_if_every_claim_is_the_same():
    plans = [tree_plan("tall"), tree_plan("hiv")]
    texts = [str(change) for change in difference(*plans).changes]
    assert any("attributes" in text and "tall" in text and "hiv" in text for text in texts)


@pytest.mark.parametrize(
    ("before", "after", "headline"),
    [
        (None, None, "neither plan has a valid total"),
        (None, 2, "the plan had no valid total and now has epsilon 2"),
        (1, None, "the plan had a valid total and now has none: it was epsilon 1"),
        (1, 1, "the total stays at epsilon 1, under add-or-remove-one"),
    ],
)
def test_a_headline_says_which_total_there_is(before: int | None, after: int | None, headline: str) -> None:
    def plan(epsilon: int | None) -> Any:
        total = None if epsilon is None else dpf.PrivacyLoss(epsilon)
        return SimpleNamespace(smallest_total=lambda: total, unit=None, relation=dpf.Relation.ADD_OR_REMOVE_ONE)

    assert total_headline(plan(before), plan(after)) == headline
