"""Plans: described, written, read back, drawn; what was changed after it was written is refused."""

from __future__ import annotations

import abc
import copy
import hashlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st
from random_plans import compositions

import dpframework as dpf
from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.privacy_unit import PrivacyUnit, UnitChange
from dpframework.mechanisms import DiscreteLaplace, Exponential, ExponentialInterval, Gaussian, Laplace, PermuteAndFlip
from dpframework.plan import Budget, Node, Repeat, Step, plan_from_json, walk
from dpframework.plan.code_digests import component_digest
from dpframework.plan.node_kind_table import kind_of, label_of
from dpframework.plan.nodes import distinct
from dpframework.plan.plan_node_index import PlanIndex

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"]), dpf.Numeric("age", 0, 10, cuts=[3.5])])


def count(name: str, epsilon: Any = 1, **options: Any) -> Step:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon), **options)


SPLIT = dpf.step("split", dpf.queries.Histogram(SCHEMA["c"]), PermuteAndFlip("0.5"))
TREE = dpf.sequential(
    count("rows", "0.25", threshold=10),
    dpf.either(
        dpf.sequential(count("leaf")),
        dpf.sequential(SPLIT, dpf.parallel(count("child", "0.5"), by=dpf.FromRelease("split"))),
    ),
    dpf.repeat(3, count("again", "0.1", uses=["rows"], assumptions=["mcmc-converged"])),
    dpf.parallel(count("left"), count("right"), by=dpf.Cases([dpf.Below("age", 3.5)]), name="halves"),
    dpf.sequential(count("inner"), name="scope"),
    dpf.post("tidy", ["rows", "scope"]),
)


# --- making ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", " x", "a/b", "a\nb", "é", "-x", None, 3])
def test_names_that_cannot_be_used(name: Any) -> None:
    with pytest.raises(dpf.InputError, match="cannot be used in a plan; letters from A to Z"):
        count(name)
    if name is not None:
        with pytest.raises(dpf.InputError, match="cannot be used in a plan"):
            dpf.sequential(count("n"), name=name)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dpf.step("n", dpf.queries.Count, DiscreteLaplace(1)), "is not a query"),
        (lambda: dpf.step("n", dpf.queries.Count(), DiscreteLaplace), "is not a mechanism"),
        (lambda: dpf.step("n", dpf.queries.Count(), 0.5), "is not a mechanism"),
        (lambda: dpf.sequential(), "needs at least one part"),
        (lambda: dpf.either(), "needs at least one part"),
        (lambda: dpf.parallel(by=SCHEMA["a"]), "needs at least one part"),
        (lambda: dpf.sequential(count("n"), "m"), "takes steps and compositions"),
        (lambda: dpf.repeat(0, count("n")), "positive number of times"),
        (lambda: dpf.repeat(-2, count("n")), "positive number of times"),
        (lambda: dpf.repeat(True, count("n")), "positive number of times"),
        (lambda: dpf.repeat(2, "n"), "takes steps"),
        (lambda: dpf.parallel(count("n"), count("m"), by=SCHEMA["c"]), "2 children for 3 parts"),
        (lambda: dpf.post("p", "abc"), "give a list of names"),
        (lambda: count("n", uses="abc"), "give a list of names"),
        (lambda: dpf.FromRelease("n", attributes="abc"), "'abc' is one text; give a list of names"),
        (lambda: count("n", threshold=-1), "cannot be negative"),
    ],
)
def test_what_is_no_plan_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(dpf.InputError, match=text):
        make()


@attrs.frozen
class Listed(Laplace):
    name = "listed"
    listed: list[Any] = attrs.field(factory=list, kw_only=True)


@attrs.frozen
class ListedMiner(dpf.Miner):
    name = "listed"
    listed: list[Any]

    def plan(self, schema: dpf.Schema) -> Node:
        return count("n")

    def mine(self, table: dpf.PrivateTable) -> Any:
        return table.release("n")


def test_a_parameter_that_contains_itself_is_refused_in_a_sentence(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    loop: list[Any] = []
    loop.append(loop)
    plan = plan_of(dpf.step("n", dpf.queries.Count(), Listed(1, listed=loop)), SCHEMA)
    text = "contains itself or is nested too deeply, so the plan cannot be written down; give it a simpler value$"
    with pytest.raises(dpf.InputError, match=f"^step 'n': a parameter of mechanism 'listed' {text}"):
        plan.content()
    with pytest.raises(dpf.InputError, match=f"^a parameter of miner 'listed' {text}"):
        ListedMiner(loop).to_dict()


def test_walks_from_the_top() -> None:
    assert [n.name for n in walk(TREE) if isinstance(n, Step)] == [
        "rows", "leaf", "split", "child", "again", "left", "right", "inner",
    ]  # fmt: skip


def test_a_calibration_belongs_to_its_step(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(TREE, SCHEMA)
    for epsilon in range(1, 200):  # steps that come and go may have the same identity
        calibration = plan.calibration(count("other", epsilon))
        assert calibration is not None
        assert calibration.scale == Fraction(1, epsilon)


# --- JSON -----------------------------------------------------------------------------------------------------------

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 ._=+-]{0,8}", fullmatch=True)
rationals = st.fractions(Fraction(1, 10**6), 100)
kinds = st.sampled_from([DiscreteLaplace, Laplace, Exponential, PermuteAndFlip, ExponentialInterval, Gaussian])
described = st.sampled_from([dpf.Below("age", 3.5), dpf.Not(dpf.Equals("c", "x")), dpf.And([dpf.Equals("a", "true")])])
query = st.one_of(
    st.builds(dpf.queries.Count, st.none() | described),
    st.sampled_from([dpf.queries.Histogram(a) for a in SCHEMA.attributes]),
    st.builds(dpf.queries.Supports, st.lists(described, min_size=1, max_size=3)),
)
leaves = st.one_of(
    st.builds(
        lambda n, q, k, e, u, a, t: dpf.step(n, q, k(e), uses=u, assumptions=a, threshold=t),
        names, query, kinds, rationals, st.lists(names, max_size=2), st.lists(names, max_size=2), st.none() | rationals,
    ),
    st.builds(dpf.post, names, st.lists(names, max_size=2)),
)  # fmt: skip
cuts = st.one_of(
    st.none(),
    st.sampled_from(SCHEMA.attributes),
    st.builds(dpf.FromRelease, names, attributes=st.sampled_from([(), ("a",), ("a", "b")])),
    st.builds(dpf.Cases, st.lists(described, max_size=2)),
    st.lists(described, min_size=1, max_size=2),
)
nodes = compositions(leaves, cuts=cuts, names=names, most_leaves=6, most_times=9)


@given(
    node=nodes, relation=st.sampled_from(list(dpf.Relation)), epsilon=rationals, delta=st.fractions(0, Fraction(1, 2))
)
@settings(max_examples=60)
def test_plans_survive_json(
    plan_of: Callable[..., dpf.StudyPlan], node: Node, relation: Any, epsilon: Fraction, delta: Fraction
) -> None:
    plan = plan_of(node, SCHEMA, relation, epsilon=epsilon, delta=delta, allow=("mcmc-converged",))
    text = plan.to_json()
    again = dpf.StudyPlan.from_json(text)
    assert again == plan
    assert hash(again) == hash(plan)
    assert again.to_json() == text
    assert again.budget == plan.budget
    assert again.facts == plan.facts
    assert [again.calibration(s) and again.calibration(s).losses for s in again.steps()] == [  # type: ignore[union-attr]
        plan.calibration(s) and plan.calibration(s).losses
        for s in plan.steps()  # type: ignore[union-attr]
    ]
    assert dpf.reports.tree(again) == dpf.reports.tree(plan)
    assert dpf.reports.mermaid(again) == dpf.reports.mermaid(plan)


class Rounded(dpf.Query):
    """A query whose answers are off by a known bit."""

    name = "rounded"
    integer = False
    answer_length = 1  # type: ignore[assignment]
    sensitivities = (dpf.Sensitivity("linf", 1, fall=0, source="one row's share"),)
    rounding = Fraction(1, 8)  # type: ignore[assignment]

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise NotImplementedError


FORM = """{
  "schema_version": 3,
  "relation": "add-or-remove-one",
  "schema": {
    "fingerprint": "%s",
    "rows": null,
    "row_bound": null,
    "inferred": []
  },
  "budget": {
    "epsilon": "1000",
    "delta": "0",
    "allow": []
  },
  "miners": {},
  "code": {},
  "root": {
    "kind": "step",
    "name": "best",
    "query": {
      "name": "rounded",
      "text": "rounded",
      "attributes": [],
      "integer": false,
      "answer_length": 1,
      "sensitivities": [
        {
          "norm": "linf",
          "add_or_remove_one": "1",
          "replace_one": null,
          "rise": "1",
          "fall": "0",
          "source": "one row's share"
        }
      ],
      "rounding": "1/8"
    },
    "mechanism": {
      "name": "exponential",
      "epsilon": "1/2"
    },
    "uses": [],
    "assumptions": [],
    "threshold": null,
    "losses": {
"""


def test_the_form_of_a_plan_file_is_that_of_its_version(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    """Approvals and ledgers hold hashes of this form: another form needs another version."""
    plan = plan_of(dpf.step("best", Rounded(), Exponential("0.5")), SCHEMA)
    text = plan.to_json()
    assert text.startswith(FORM % SCHEMA.fingerprint)
    again = dpf.StudyPlan.from_json(text)
    assert next(again.steps()).query.facts() == Rounded().facts()
    assert again.to_json() == text
    assert "rounding" not in plan_of(count("n"), SCHEMA).to_json()  # what is exact does not say so


def test_a_steps_options_are_named() -> None:
    with pytest.raises(TypeError, match="positional"):
        Step("n", dpf.queries.Count(), DiscreteLaplace(1), "1")  # type: ignore[misc]


def written(plan_of: Callable[..., dpf.StudyPlan], **options: Any) -> dict[str, Any]:
    form: dict[str, Any] = json.loads(plan_of(TREE, SCHEMA, **options).to_json())
    return form


def leaves_of(form: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(form, dict):
        return [p for key, value in form.items() for p in leaves_of(value, (*path, key))]
    if isinstance(form, list):
        return [p for k, value in enumerate(form) for p in leaves_of(value, (*path, k))]
    return [path]


@pytest.mark.parametrize("first", [0, 1])
def test_whatever_is_changed_in_a_plan_file_is_refused(plan_of: Callable[..., dpf.StudyPlan], first: int) -> None:
    """Every single value, those that are only shown (a step's losses) included; and never with a traceback."""
    form = written(plan_of)
    paths = leaves_of(form)
    assert len(paths) > 200
    others = ("0.001", 7, None, ["x"], {}, -1, True)  # by turns: two of them at each place, one in each of two tests
    for number, path in enumerate(paths):
        other = others[(2 * number + first) % len(others)]
        changed = copy.deepcopy(form)
        at: Any = changed
        for key in path[:-1]:
            at = at[key]
        if at[path[-1]] == other and type(at[path[-1]]) is type(other):
            continue
        at[path[-1]] = other
        with pytest.raises(dpf.InputError):
            dpf.StudyPlan.from_json(json.dumps(changed))


def test_keys_that_are_dropped_or_added_are_refused(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    form = written(plan_of)
    places = {path[:-1] for path in leaves_of(form)}
    for place in places:
        at: Any = copy.deepcopy(form)
        root = at
        for key in place:
            at = at[key]
        if not isinstance(at, dict):
            continue
        at["note"] = "approved"
        with pytest.raises(dpf.InputError):
            dpf.StudyPlan.from_json(json.dumps(root))
        del at["note"]
        for key in list(at):
            if key != place:
                kept = at.pop(key)
                with pytest.raises(dpf.InputError):
                    dpf.StudyPlan.from_json(json.dumps(root))
                at[key] = kept
        assert dpf.StudyPlan.from_json(json.dumps({k: root[k] for k in form})) is not None


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "3", "{}", '{"schema_version": 1}', '"plan"', "[" * 100_000, "\x00"]
)
def test_what_is_no_plan_file_is_refused(text: str) -> None:
    with pytest.raises(dpf.InputError, match=r"^approved\.json: "):
        dpf.StudyPlan.from_json(text, source="approved.json")


def test_a_changed_plan_says_so(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    form = written(plan_of)
    form["budget"]["epsilon"] = "1001"
    with pytest.raises(dpf.InputError, match="p: the plan's content does not fit its hash; it was changed"):
        dpf.StudyPlan.from_json(json.dumps(form), source="p")
    other = written(plan_of)
    other["schema_version"] = 99
    with pytest.raises(dpf.InputError, match="plan version 99 cannot be read"):
        dpf.StudyPlan.from_json(json.dumps(other))


def rehashed(form: dict[str, Any], plan_of: Callable[..., dpf.StudyPlan]) -> str:
    """Write a lying plan as someone would who knows how hashes are made."""
    import hashlib

    content = {key: value for key, value in form.items() if key != "hash"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    return json.dumps({**content, "hash": digest})


def test_a_plan_cannot_lie_about_losses_with_a_hash_that_fits(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    honest = written(plan_of)
    assert dpf.StudyPlan.from_json(rehashed(honest, plan_of)).hash == honest["hash"]
    cheap = written(plan_of)
    cheap["root"]["parts"][0]["losses"]["epsilon"]["add-or-remove-one"] = "1/1000"
    with pytest.raises(dpf.InputError, match="does not fit"):
        dpf.StudyPlan.from_json(rehashed(cheap, plan_of))
    for times in (0, -5, 1.5, "3"):
        free = written(plan_of)
        free["root"]["parts"][2]["times"] = times
        with pytest.raises(dpf.InputError, match=r"positive number of times|parts\[2\].times must be"):
            dpf.StudyPlan.from_json(rehashed(free, plan_of))
    empty = written(plan_of)
    empty["root"]["parts"] = []
    with pytest.raises(dpf.InputError, match="at least one part"):
        dpf.StudyPlan.from_json(rehashed(empty, plan_of))


def test_an_unknown_mechanism_is_named(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    text = plan_of(count("n"), SCHEMA).to_json()
    with pytest.raises(
        dpf.InputError, match="'discrete-laplace', which no installed plugin provides; did you mean 'laplace'"
    ):
        plan_from_json(text, [Laplace], kind=dpf.StudyPlan)


def test_a_plan_that_was_read_can_be_totalled_but_not_run(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(count("n"), SCHEMA)
    again = dpf.StudyPlan.from_json(plan.to_json())
    assert again.total() == plan.total()
    assert again.check() == plan.check()
    step = next(again.steps())
    with pytest.raises(dpf.InputError, match="cannot be evaluated"):
        step.query.count(dpf.InMemory().load(dpf.Table.from_codes(SCHEMA, [[0], [0], [0]]))[0])


def test_a_plan_of_another_schema_is_refused(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(count("n"), SCHEMA)
    plan.require_schema(SCHEMA)
    with pytest.raises(dpf.InputError, match="made from another schema"):
        plan.require_schema(dpf.Schema(SCHEMA.attributes, rows=10))


def test_assumptions_are_listed_with_their_steps(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    interval = dpf.step("cut", dpf.queries.Count(), ExponentialInterval(1), assumptions=["mcmc-converged"])
    plan = plan_of(dpf.sequential(interval, TREE), SCHEMA, "replace-one")
    assert plan.assumptions == {
        "mcmc-converged": ("cut", "again"),
        "row-count-public": (),
    }


# --- drawings -------------------------------------------------------------------------------------------------------


def test_tree(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    drawn = dpf.reports.tree(plan_of(TREE, SCHEMA, epsilon=10))
    assert drawn.splitlines()[0] == "sequential  [epsilon 3.55]"
    assert "├─ either, by what is released  [epsilon 1.0]" in drawn
    assert "│     └─ parallel over the release of 'split'  [epsilon 0.5]" in drawn
    assert "├─ repeat 3 times  [epsilon 0.3]" in drawn
    assert "├─ parallel over 2 cases  [epsilon 1.0]" in drawn
    assert "└─ tidy: post-processing  [free]" in drawn
    assert drawn.endswith("total: epsilon 3.55 under add-or-remove-one, pure accounting (budget 10.0)")


def test_trees_of_other_notions_of_loss(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    node = dpf.step("n", dpf.queries.Count(), Gaussian("0.005"))
    assert "total: none is valid" in dpf.reports.tree(plan_of(node, SCHEMA))
    drawn = dpf.reports.tree(plan_of(node, SCHEMA, delta="1e-6"))
    assert "[rho 0.005]" in drawn
    assert "delta 1e-06" in drawn


def test_graph(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    graph = plan_of(TREE, SCHEMA).graph()
    assert graph.graph["relation"] == "add-or-remove-one"
    assert len(graph) == len(list(walk(TREE)))
    by_name = {node["name"]: number for number, node in graph.nodes(data=True) if node["name"]}
    assert graph.nodes[by_name["rows"]]["epsilon"] == Fraction(1, 4)
    assert graph.nodes[by_name["rows"]]["mechanism"] == "discrete-laplace"
    uses = {(s, t) for s, t, edge in graph.edges(data=True) if edge["kind"] == "use"}
    parallel = next(t for s, t in uses if s == by_name["split"])
    assert graph.nodes[parallel]["kind"] == "parallel"
    assert {(by_name["rows"], by_name["again"]), (by_name["rows"], by_name["tidy"])} <= uses
    assert (by_name["scope"], by_name["tidy"]) in uses
    import networkx as nx

    parts = nx.DiGraph((s, t) for s, t, edge in graph.edges(data=True) if edge["kind"] == "part")
    assert nx.is_arborescence(parts)
    assert nx.is_directed_acyclic_graph(graph)


def test_mermaid_and_dot(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(TREE, SCHEMA)
    mermaid, dot = dpf.reports.mermaid(plan), dpf.reports.dot(plan)
    assert mermaid.startswith("flowchart TD\n")
    assert 'n1["rows: count of rows, discrete-laplace (epsilon 0.25)"]' in mermaid
    assert mermaid.count("-->") == len(plan.graph()) - 1
    assert "-.->" in mermaid
    assert dot.startswith("digraph plan {")
    assert dot.rstrip().endswith("}")
    assert 'shape=box, label="rows: count of rows, discrete-laplace (epsilon 0.25)"' in dot
    assert "style=dashed" in dot


def test_drawings_escape_what_values_may_hold(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    schema = dpf.Schema([dpf.Categorical("c", ['a"]; x <b>', "back\\slash"])])
    literals = [dpf.Equals("c", value) for value in schema["c"].labels]
    plan = plan_of(
        dpf.sequential(*(dpf.step(f"n{k}", dpf.queries.Count(v), Laplace(1)) for k, v in enumerate(literals))), schema
    )
    for line in dpf.reports.mermaid(plan).splitlines()[1:]:
        assert line.count('"') in (0, 2)
        assert "<" not in line
    for line in dpf.reports.dot(plan).splitlines():
        assert line.replace("\\\\", "").replace('\\"', "").count('"') in (0, 2)


def test_previews_by_path(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    previews = plan_of(TREE, SCHEMA).previews()
    assert set(previews) == {
        "rows", "leaf", "split", "parts/child", "again", "halves 1/left", "halves 2/right", "scope/inner",
    }  # fmt: skip
    assert previews["rows"].expected == pytest.approx(1 / math.sinh(1 / 4))  # 2 q / (1 - q**2), q = exp(-1/4)
    assert isinstance(TREE.children[2], Repeat)


def test_the_standard_library_s_classes_are_told_by_python_s_version_alone() -> None:
    assert component_digest(abc.ABC) == hashlib.sha256().hexdigest()
    assert component_digest(dpf.queries.Count) != component_digest(abc.ABC)


# --- what nodes say of themselves -----------------------------------------------------------------------------------

NESTED = dpf.sequential(
    count("rows"),
    dpf.either(dpf.sequential(count("one"), name="inner"), dpf.repeat(2, count("two", uses=["rows"]))),
    dpf.parallel(count("each"), by=dpf.FromRelease("rows"), name="cells"),
    dpf.parallel(count("left"), dpf.sequential(count("right")), by=SCHEMA["a"]),
    dpf.sample("0.5", dpf.sequential(count("few"), dpf.sample("0.25", count("fewer"), name="again"))),
    dpf.post("end", ["rows", "inner", "rows", "nobody"]),
)


def named(nodes: Any) -> list[str]:
    return [str(getattr(node, "name", None) or type(node).__name__) for node in nodes]


def test_scopes_are_the_rows_that_releases_are_made_from() -> None:
    assert [(path, named(own)) for path, own in dpf.plan.scopes(NESTED)] == [
        (
            "",
            ["Sequential", "rows", "Either", "inner", "Repeat", "two", "cells", "Parallel", "Sample", "end"],
        ),
        ("inner", ["inner", "one"]),
        ("cells", ["each"]),
        ("parts 1", ["left"]),
        ("parts 2", ["Sequential", "right"]),
        ("sample", ["Sequential", "few", "again"]),
        ("sample/again", ["fewer"]),
    ]
    lone = dpf.parallel(count("n"), by=SCHEMA["a"], name="halves")
    assert [(path, named(own)) for path, own in dpf.plan.scopes(lone)] == [("", ["halves"]), ("halves", ["n"])]
    assert named(dpf.plan.within_scope(NESTED)) == named(next(dpf.plan.scopes(NESTED))[1])


def test_uses_lead_from_a_release_to_the_nodes_that_are_given_it() -> None:
    nodes = PlanIndex(NESTED).nodes
    assert [(nodes[source].name, user.name) for user in nodes for source in user.uses] == [
        ("rows", "two"), ("rows", "cells"), ("rows", "end"), ("inner", "end"),
    ]  # fmt: skip
    assert [user.uses for user in PlanIndex(dpf.sequential(count("n", uses=["n"]))).nodes] == [(), ()]
    assert [kind_of(node).uses(node) for node in NESTED.children] == [
        (), (), ("rows",), (), (), ("rows", "inner", "rows", "nobody"),
    ]  # fmt: skip


def test_only_plans_that_draw_a_sample_sample() -> None:
    assert PlanIndex(NESTED).samples
    assert PlanIndex(dpf.repeat(2, dpf.sample("0.5", count("n")))).samples
    assert not PlanIndex(dpf.sequential(count("n"), dpf.parallel(count("m"), by=SCHEMA["a"]))).samples


def test_each_place_of_a_shared_step_is_a_step_of_its_own() -> None:
    shared = count("n")
    node = dpf.sequential(
        shared,
        dpf.either(shared, dpf.repeat(2, shared)),
        dpf.parallel(shared, shared, by=SCHEMA["a"]),
        dpf.sample("0.5", shared),
    )
    made = distinct(node)
    assert made == node
    assert len({id(one) for one in walk(made)}) == len(list(walk(made))) == 11
    assert len({id(one) for one in walk(node)}) == 6


class Gathering(Rounded):
    """A query that gathers something of each row."""

    name = "gathering"
    gathers = True  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("node", "label"),
    [
        (count("n"), "n: count of rows, discrete-laplace"),
        (dpf.step("g", Gathering(), Exponential(1)), "g: gathering, exponential, gathers rows"),
        (dpf.post("p", []), "p: post-processing"),
        (dpf.repeat(3, count("n")), "repeat 3 times"),
        (dpf.sample("0.125", count("n")), "sample at rate 0.125"),
        (dpf.parallel(count("n")), "parallel over undeclared parts"),
        (dpf.parallel(count("n"), by=SCHEMA["c"]), "parallel over the values of c"),
        (dpf.parallel(count("n"), by=dpf.FromRelease("x")), "parallel over the release of 'x'"),
        (dpf.parallel(count("n"), by=[dpf.Equals("a", "true")]), "parallel over 1 descriptions"),
        (dpf.parallel(count("n"), by=dpf.Cases([dpf.Equals("a", "true")])), "parallel over 2 cases"),
        (dpf.parallel(count("n"), by=dpf.Equals("a", "true")), "parallel over 2 cases"),
        (dpf.sequential(count("n")), "sequential"),
        (dpf.sequential(count("n"), name="s"), "s"),
        (dpf.either(count("n")), "either, by what is released"),
    ],
)
def test_a_node_is_labelled_in_a_few_words(node: Node, label: str) -> None:
    assert label_of(node) == label


def test_assumptions_of_a_plan_are_told_once_with_the_steps_that_need_them(
    plan_of: Callable[..., dpf.StudyPlan],
) -> None:
    twice = dpf.sequential(
        count("n", assumptions=["mcmc-converged", "mcmc-converged"]), count("m", assumptions=["mcmc-converged"])
    )
    plan = plan_of(dpf.sequential(twice, twice), SCHEMA)
    assert plan.assumptions == {"mcmc-converged": ("n", "m")}
    inferred = attrs.evolve(plan, facts=attrs.evolve(plan.facts, inferred=("a",)))
    assert inferred.assumptions == {"mcmc-converged": ("n", "m"), "schema-inferred-from-data": ()}
    stopped = attrs.evolve(plan, out_of_domain=OutOfDomain.ERROR)
    assert stopped.assumptions == {"mcmc-converged": ("n", "m"), "data-fits-schema": ()}
    assert plan_of(count("n"), SCHEMA, "replace-one").assumptions == {"row-count-public": ()}
    people = attrs.evolve(plan_of(count("n"), SCHEMA, "replace-one"), unit=PrivacyUnit("person", 2))
    assert people.unit_change == UnitChange(2, resizes=True)
    assert people.assumptions == {}
    counted = attrs.evolve(people, facts=attrs.evolve(people.facts, rows=10))
    assert counted.unit_change == UnitChange(2, resizes=False)
    assert counted.assumptions == {"row-count-public": ()}
    assert plan_of(count("n"), SCHEMA, "replace-one").unit_change == UnitChange(1, resizes=False)


def test_steps_in_parts_are_those_below_a_parallel_and_rows_drawn_one_by_one(
    plan_of: Callable[..., dpf.StudyPlan],
) -> None:
    plan = plan_of(NESTED, SCHEMA)
    own = {step.name: plan.in_parts(step) for step in plan.steps()}
    assert [name for name, parted in own.items() if parted] == ["each", "left", "right"]
    asserted = attrs.evolve(plan, unit=PrivacyUnit(rows=2))
    assert asserted.unit.asserted
    parted = [step.name for step in asserted.steps() if asserted.in_parts(step)]
    assert parted == ["each", "left", "right", "few", "fewer"]


def test_a_budget_has_a_delta_below_1() -> None:
    for delta in (0, "0.999", "1e-6"):
        assert Budget(1, delta).delta == Fraction(str(delta))
    assert Budget(1).delta == 0
    for delta in (1, "1.5"):
        with pytest.raises(dpf.InputError, match=f"^delta is {delta}; it must be below 1, such as 1e-6$"):
            Budget(1, delta)


def test_a_rate_has_nine_digits_at_most() -> None:
    assert dpf.sample("0.000000001", count("n")).rate == Fraction(1, 10**9)
    assert dpf.sample("0.999999999", count("n")).rate == Fraction(999_999_999, 10**9)
    with pytest.raises(dpf.InputError, match="of at most nine digits is needed"):
        dpf.sample(Fraction(1, 10**9 + 1), count("n"))


def test_what_only_some_queries_say_is_written_where_they_say_it(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    def query_of(plan: dpf.StudyPlan) -> dict[str, Any]:
        form: dict[str, Any] = json.loads(plan.to_json())["root"]["query"]
        return form

    plain = query_of(plan_of(count("n"), SCHEMA))
    assert not {"rounding", "histograms", "gathers", "for_rows"} & set(plain)
    gathering = plan_of(dpf.step("g", Gathering(), Exponential(1)), SCHEMA)
    assert query_of(gathering)["gathers"] is True
    assert next(dpf.StudyPlan.from_json(gathering.to_json()).steps()).query.facts().gathers
    marginals = dpf.queries.Marginals([SCHEMA["a"], SCHEMA["c"]])
    several = plan_of(dpf.step("m", marginals, dpf.mechanisms.KNorm(1)), SCHEMA)
    assert query_of(several)["histograms"] == [2, 3]
    assert next(dpf.StudyPlan.from_json(several.to_json()).steps()).query.facts() == marginals.facts()


class AtMostOne(dpf.Query):
    """A query that declares better for several rows of one unit."""

    name = "at-most-one"
    answer_length = 1  # type: ignore[assignment]
    sensitivities = (dpf.Sensitivity("l1", 1, 1, fall=0, source="test"),)

    def for_rows(self, rows: int) -> tuple[dpf.Sensitivity, ...]:
        return self.sensitivities

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise NotImplementedError


def test_what_is_declared_for_several_rows_is_written_for_units_of_several(
    plan_of: Callable[..., dpf.StudyPlan],
) -> None:
    node = dpf.step("n", AtMostOne(), DiscreteLaplace(1))
    one = plan_of(node, SCHEMA)
    assert "for_rows" not in one.to_json()
    two = attrs.evolve(one, unit=PrivacyUnit("person", 2))
    (declared,) = json.loads(two.to_json())["root"]["query"]["for_rows"]
    assert (declared["norm"], declared["add_or_remove_one"], declared["source"]) == ("l1", "1", "test")
    (step,) = two.steps()
    assert two.calibration(step).scale == one.calibration(next(one.steps())).scale == 1  # type: ignore[union-attr]
    parted = attrs.evolve(two, root=dpf.parallel(node, by=SCHEMA["a"]))
    assert parted.calibration(next(parted.steps())).scale == 2  # type: ignore[union-attr]
    fields = {"norm", "add_or_remove_one", "replace_one", "rise", "fall", "source"}
    assert set(declared) == fields


@pytest.mark.parametrize("option", [{}, OutOfDomain.ERROR, PrivacyUnit("person", 2)])
def test_what_a_plan_holds_beside_its_schema_is_named(plan_of: Callable[..., dpf.StudyPlan], option: Any) -> None:
    plan = plan_of(count("n"), SCHEMA)
    with pytest.raises(TypeError, match="positional"):
        dpf.StudyPlan(plan.root, plan.relation, plan.facts, plan.budget, SCHEMA, option)  # type: ignore[misc]
