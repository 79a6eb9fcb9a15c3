"""What a report opens with: what is read, what it costs by attribute, what epsilon means, how exact it is, in words."""

import csv
import io
import itertools
import json
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PermuteAndFlip
from dpframework.queries import Count, Histogram, Supports
from dpframework.reports import (
    About,
    RunSummary,
    certainty_gains,
    markdown_report,
    releases_csv,
    releases_json,
    result_rows,
)
from dpframework.reports.attribute_losses import losses_by_attribute
from dpframework.reports.epsilon_as_odds import PRIORS, posterior
from dpframework.reports.html import html_report
from dpframework.results.matrix import Matrix
from dpframework.study.plugin_registry import registry

A, B, C = dpf.Boolean("a"), dpf.Boolean("b"), dpf.Categorical("c", ["x", "y", "z"])
SCHEMA = dpf.Schema([A, B, C], max_rows=1000)
ADDED, REPLACED = dpf.Relation.ADD_OR_REMOVE_ONE, dpf.Relation.REPLACE_ONE


def counted(name: str, attribute: dpf.Attribute, epsilon: str = "0.1") -> dpf.Node:
    return dpf.step(name, Histogram(attribute), DiscreteLaplace(epsilon))


def rows(name: str) -> dpf.Node:
    return dpf.step(name, Count(), DiscreteLaplace(1))


def planned(*nodes: dpf.Node, schema: dpf.Schema = SCHEMA, **keys) -> dpf.StudyPlan:
    study = dpf.Study(schema, epsilon=5, **keys)
    for k, node in enumerate(nodes):
        study.add_plan(f"part {k}", node)
    return study.plan()


@attrs.frozen
class Anything(dpf.Query):
    """A query that does not say what it reads."""

    name = "anything"

    def count(self, block, **inputs):
        return np.array([block.rows])


# --- what may be read -------------------------------------------------------------------------------------------------


def test_a_step_reads_what_its_query_names_and_what_its_rows_were_cut_by():
    supports = Supports([dpf.Equals("b", "true"), dpf.Equals("b", "false")])
    chosen = dpf.step("chosen", supports, PermuteAndFlip(1))
    plan = planned(
        dpf.parallel(dpf.parallel(counted("in parts", C), by=B), by=dpf.Cases([dpf.Equals("a", "true")])),
        dpf.sequential(
            chosen,
            dpf.parallel(counted("by any", B), by=dpf.FromRelease("chosen")),
            dpf.parallel(counted("by the named", B), by=dpf.FromRelease("chosen", attributes=("a", "c"))),
            dpf.parallel(counted("by a derived one", B), by=dpf.FromRelease("chosen", attributes=("made of any",))),
            dpf.parallel(counted("by one of both", B), by=dpf.FromRelease("chosen", attributes=("a", "made of any"))),
        ),
        dpf.parallel(counted("by one of no schema", B), by=dpf.Boolean("made of any")),
        dpf.step("all", Count(), DiscreteLaplace(1)),
        dpf.step("any", Anything(), DiscreteLaplace(1)),
        dpf.step("derived", Histogram(dpf.Boolean("made of any")), DiscreteLaplace(1)),
    )
    reads = {placed.name: plan.index.reads[placed.number] for placed in plan.index.steps}
    assert reads == {
        "in parts": ("a", "b", "c"),
        "chosen": ("b",),
        "by any": None,
        "by the named": ("a", "c", "b"),
        "by a derived one": None,
        "by one of both": None,
        "by one of no schema": None,
        "all": (),
        "any": None,
        "derived": None,
    }


def _miners():
    for name, brought in registry().miners.items():
        for label, example in brought.component.examples().items():
            yield pytest.param(example, id=f"{name}, {label}")


@pytest.mark.parametrize("example", [*_miners()])
def test_every_miner_says_what_it_may_read(example):
    study = dpf.Study(example.schema, epsilon=1000, delta=example.delta, relation=_relation(example))
    study.add("it", example.miner)
    for read in study.plan().index.reads:
        assert read is not None
        assert set(read) <= set(example.schema.names)


def _relation(example) -> dpf.Relation:
    return REPLACED if example.schema.rows is not None else ADDED


SOME = dpf.Schema([dpf.Numeric("size", 0, 8, cuts=[2, 4, 6], view="left"), dpf.Boolean("ripe", view="left"),
                   dpf.Boolean("sold", view="left"), dpf.Categorical("grade", ["good", "bad"], view="right")],
                  max_rows=400)  # fmt: skip
READING_FEW = [
    dpf.miner("dp-id3", target="grade", epsilon=2, max_depth=2, attributes=["size"]),
    dpf.miner("dp-id3", target="grade", epsilon=2, max_depth=2, attributes=["size"], selection="noisy-counts"),
    dpf.miner("dp-id3", target="grade", epsilon=2, max_depth=2, attributes=["size"], numeric="density"),
    dpf.miner("dp-tree", target="grade", epsilon=2, max_depth=1, attributes=["size", "sold"]),
    dpf.miner("dp-additive", target="grade", epsilon=2, attributes=["size"]),
    dpf.miner("dp-dilca", epsilon=2, attributes=["size", "sold", "grade"]),
    dpf.miner("crosstab", epsilon=2, attributes=["sold", "grade"]),
]


@pytest.mark.parametrize("miner", READING_FEW, ids=lambda miner: miner.name)
def test_what_a_miner_does_not_say_it_reads_does_not_matter(miner):
    """The same seed gives the same result, whatever stands in the other attributes."""
    study = dpf.Study(SOME, epsilon=2, allow=["real-arithmetic"])
    study.add("it", miner)
    (row,) = result_rows(study.plan())
    others = [k for k, name in enumerate(SOME.names) if name not in row.reads]
    assert others
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, a.size, 200) for a in SOME])
    changed = codes.copy()
    changed[others] = rng.permuted(codes[others], axis=1)
    results = [str(study.run(dpf.Table.from_codes(SOME, some), seed=3)["it"]) for some in (codes, changed)]
    assert results[0] == results[1]


# --- loss by attribute ------------------------------------------------------------------------------------------------


def test_the_loss_of_an_attribute_is_that_of_the_steps_that_read_it_composed_as_planned():
    plan = planned(
        counted("alone", A, "1/2"),
        dpf.parallel(counted("parts", C, "1/4"), counted("more", C, "1/8"), by=B),
        dpf.repeat(3, counted("again", C, "1/16")),
    )
    found = {row.attributes: (row.loss.epsilon, row.parts, row.steps) for row in losses_by_attribute(plan)}
    assert found == {
        ("a",): (Fraction(1, 2), ("part 0",), 1),
        ("b",): (Fraction(1, 4), ("part 1",), 2),
        ("c",): (Fraction(7, 16), ("part 1", "part 2"), 3),
    }


def test_attributes_that_nothing_reads_and_releases_that_may_read_any_are_told():
    rows = {row.attributes: row for row in losses_by_attribute(planned(counted("alone", A)))}
    assert rows["b", "c"].steps == 0
    assert rows["b", "c"].loss.epsilon == 0
    chosen = dpf.step("chosen", Supports([dpf.Equals("b", "true"), dpf.Equals("b", "false")]), PermuteAndFlip(1))
    parts = dpf.parallel(counted("in any parts", B, "0.3"), by=dpf.FromRelease("chosen"))
    plan = planned(counted("alone", A), dpf.sequential(chosen, parts))
    assert {row.attributes: row.steps for row in losses_by_attribute(plan)} == {("a",): 2, ("b",): 2, ("c",): 1}
    read_back = dpf.StudyPlan.from_json(plan.to_json())
    told = {row.attributes: (row.steps, row.parts, row.loss.epsilon) for row in losses_by_attribute(read_back)}
    assert told == {
        ("a",): (2, ("part 0", "part 1"), Fraction("0.4")),
        ("b",): (2, ("part 1",), Fraction("1.3")),
        (): (1, ("part 1",), Fraction("0.3")),
    }


def test_a_part_ends_before_the_next_one(plan_of):
    plan = plan_of(dpf.sequential(counted("one", A), counted("two", B), counted("three", C)), SCHEMA)
    assert {row.attributes: row.parts for row in losses_by_attribute(plan)} == {
        ("a",): ("one",),
        ("b",): ("two",),
        ("c",): ("three",),
    }


def test_without_a_pure_epsilon_the_smallest_total_counts():
    plan = planned(dpf.step("s", Histogram(A), Gaussian("0.01")), delta="1e-6")
    (read, _) = losses_by_attribute(plan)
    assert read.loss == plan.totals()["zcdp"]
    assert read.share == 1


# --- what epsilon means -----------------------------------------------------------------------------------------------


def test_half_sure_becomes_at_most_71_percent_at_epsilon_0_9():
    (one,) = certainty_gains(dpf.PrivacyLoss("0.9"), REPLACED, ROW)
    assert one.share_texts == ("2.5 %", "21.5 %", "71.1 %")


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.1, 0.9, 3.0])
def test_nobody_becomes_surer_and_somebody_becomes_as_sure(prior, epsilon):
    """Of all mechanisms of two outputs on {absent, value a, value b} that neighbours bound, the worst attains it."""
    absent, known = certainty_gains(dpf.PrivacyLoss(epsilon), ADDED, ROW)
    grid = [0.5, *(k / 40 for k in range(1, 40)), *(math.exp(k * epsilon) / 40 for k in (-2, -1, 0, 1, 2))]
    grid += [1 / (1 + math.exp(k * epsilon)) for k in (-2, -1, 1, 2)]
    least, most = math.exp(-epsilon) - 1e-12, math.exp(epsilon) + 1e-12

    def bounded(p, q):
        return all(least <= x / y <= most for x, y in ((p, q), (1 - p, 1 - q)))

    there, value = [prior], [prior]
    for without, with_a, with_b in itertools.product([p for p in grid if p < 1], repeat=3):
        if bounded(with_a, without) and bounded(with_b, without):
            there.append(prior * with_a / (prior * with_a + (1 - prior) * without))
            value.append(prior * with_a / (prior * with_a + (1 - prior) * with_b))
    for bound, found in ((absent, max(there)), (known, max(value))):
        assert found <= bound.shares[PRIORS.index(prior)] + 1e-9
    assert max(there) == pytest.approx(absent.shares[PRIORS.index(prior)])
    assert max(value) == pytest.approx(known.shares[PRIORS.index(prior)], rel=0.35)


def test_with_a_delta_the_odds_exceed_the_bound_with_a_probability_that_is_told():
    epsilon, delta = 1.0, 1e-3
    (one,) = certainty_gains(dpf.PrivacyLoss(epsilon, delta=delta), REPLACED, ROW)
    assert math.log(one.odds) == pytest.approx(epsilon + 0.1)
    # all of delta on one output whose ratio is just above the bound: the likeliest that it is passed
    ratio = one.odds * (1 + 1e-9)
    likely = delta / (1 - math.exp(epsilon) / ratio)
    assert likely <= one.fails
    assert likely == pytest.approx(one.fails, rel=0.06)


def test_a_value_of_somebody_in_the_table_takes_two_steps_where_their_presence_takes_one():
    there, value = certainty_gains(dpf.PrivacyLoss(1, delta="1e-6"), ADDED, PrivacyUnit("patient", 3))
    assert math.log(value.odds) == pytest.approx(2.1)
    assert value.fails == pytest.approx(there.fails * (1 + math.e))
    assert "one patient" in there.claim
    assert posterior(0.5, 1e9) == 1
    assert certainty_gains(None, ADDED, ROW) == []


# --- errors in words --------------------------------------------------------------------------------------------------


def kinds(node: dpf.Node, **schema) -> list[tuple[str, str]]:
    of = attrs.evolve(SCHEMA, **{"max_rows": None, **schema})
    (row,) = result_rows(planned(node, schema=of))
    return [(bound.text, bound.warning) for bound in row.published]


def test_errors_have_a_scale_in_rows():
    node = dpf.step("s", Histogram(C), DiscreteLaplace("0.1"))
    assert kinds(node, rows=2000) == [("each within ±30 rows, 1.5 % of the 2,000 rows", "")]
    assert kinds(node, about_rows=2000) == [("each within ±30 rows, 1.5 % of about 2,000 rows", "")]
    assert kinds(node, about_rows=2000, max_rows=10**6) == kinds(node, about_rows=2000)
    for unknown in ({}, {"max_rows": 1000}):  # a bound is no size: noise would look as small as the bound is large
        assert kinds(node, **unknown) == [("each within ±30 rows, 1 % of a table of 3,000", "")]
        plan = planned(node, schema=attrs.evolve(SCHEMA, **{"max_rows": None, **unknown}))
        for text in (markdown_report(plan).replace("\\", ""), html_report(plan)):
            assert "The number of rows is not known" in text
            assert "--rows N" in text
        assert "Errors are stated for about 500 rows." in markdown_report(plan.with_rows(500))
        assert plan.with_rows(500).hash == plan.hash


def test_useless_and_weak_steps_are_told():
    node = dpf.step("s", Histogram(C), DiscreteLaplace("0.1"))
    for few in ({"max_rows": 80}, {"about_rows": 80}, {"about_rows": 80, "max_rows": 10**6}):
        assert kinds(node, **few)[0][1] == "weak: the noise is larger than the average of the 3 counts"
    assert kinds(node, max_rows=30)[0][1] == "useless: the noise is larger than the whole table"
    chosen = dpf.step("s", Supports([dpf.Equals("a", "true"), dpf.Equals("b", "true")]), PermuteAndFlip("0.1"))
    ((error, warning),) = kinds(chosen, max_rows=90)
    assert error.startswith("worse than the best by at most ")
    assert warning.startswith("weak: the choice may be worse than the best by a quarter")
    page = html_report(planned(node, schema=attrs.evolve(SCHEMA, max_rows=30)))
    assert "useless: the noise is larger than the whole table" in page


def test_a_real_answer_is_told_in_what_rows_can_add():
    study = dpf.Study(dpf.Schema([dpf.Numeric("age", 0, 100, bins=4)], max_rows=1000), epsilon=5)
    study.add("it", dpf.miner("sum", attribute="age", epsilon=1))
    (row,) = result_rows(study.plan())
    assert any("rows can add" in kind.text for kind in row.published)


# --- pages and lists --------------------------------------------------------------------------------------------------


@pytest.fixture
def plan():
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add("table", dpf.miner("crosstab", attributes=["a", "c"], epsilon="1/2"))
    study.add("tree", dpf.miner("dp-id3", target="c", epsilon=1, max_depth=2))
    return study.plan()


def test_a_report_opens_with_results_then_meaning_then_whom_it_protects(plan):
    about = About(data=["people.csv"], time="2026-01-02 03:04 UTC", approvals=["approved by R on D (1 of 1 runs left)"])
    page = html_report(plan, about=about).partition("</style>")[2]
    for text in (page, markdown_report(plan, about=about).replace("\\", "")):
        order = [text.index(part) for part in (
            "Checks passed; approved by R", "What is published", "max_depth", "What somebody could learn",
            "Who is protected", "people.csv", "2026-01-02 03:04 UTC", "Findings")]  # fmt: skip
        assert order == sorted(order)
        assert "Loss by attribute" in text
    assert "Checks passed; no approval is shown" in html_report(plan)  # nobody asked a ledger
    assert "Checks passed; not yet approved" in html_report(plan, about=About(approvals=[]))


def test_a_report_opens_with_who_is_protected_what_it_costs_and_what_it_rests_on():
    study = dpf.Study(SCHEMA, epsilon=2, unit="patient_id", rows_per_unit=3)
    study.add("table", dpf.miner("crosstab", attributes=["a", "c"], epsilon="1/2"))
    opening = markdown_report(study.plan()).replace("\\", "").partition("## What is published")[0]
    assert "This plan protects each patient_id: their values, and whether they are in the table." in opening
    assert "Each patient_id counts with at most 3 rows. It costs epsilon 0.5; epsilon 2.0 is allowed." in opening
    assert "It assumes that the table has at most 1,000 rows, as the owner states." in opening
    free = dpf.Study(dpf.Schema([A, B]), epsilon=1, delta="1e-6", relation="replace-one", allow=["one-row-per-person"])
    free.add_plan("n", counted("n", A, "0.1"))
    opening = markdown_report(free.plan()).replace("\\", "").partition("## What is published")[0]
    assert "This plan protects each person: their values, but not that they are in the table." in opening
    assert "Nobody has a second row, as the owner states. It costs epsilon ~0.1, delta 1e-06; epsilon 1.0," in opening
    assert "It assumes that the number of rows may be known." in opening
    alone = markdown_report(planned(counted("n", A), schema=dpf.Schema([A, B]))).partition("## What is published")[0]
    assert "protects each row: its values, and whether it is in the table. Each row counts alone" in alone
    assert "It assumes nothing but correct code." in alone


def test_a_run_says_who_ran_it_what_for_and_who_approved_it(plan):
    run = RunSummary(True, "pure", "epsilon 1.0", (), {})
    about = About(approvals=["approved by R on D"], ran="run by C. Diaz: yearly report")
    for text in (html_report(plan, run, about=about), markdown_report(plan, run, about=about).replace("\\", "")):
        assert "run by C. Diaz: yearly report; approved by R on D" in text
    assert "approved by" not in markdown_report(plan, run)


def test_results_come_before_the_plan(plan):
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add("table", dpf.miner("crosstab", attributes=["a", "c"], epsilon="1/2"))
    results = study.run(dpf.Table.from_codes(SCHEMA, np.zeros((3, 50), dtype=np.int64)))
    page, text = html_report(results.plan, results), markdown_report(results.plan, results)
    assert page.index('id="result-1"') < page.index("Graph of the plan")
    assert text.index("### Result: table") < text.index("## Plan")


def test_the_list_of_releases_has_every_step_in_both_formats(plan):
    rows = list(csv.DictReader(io.StringIO(releases_csv(plan))))
    listed = json.loads(releases_json(plan))["releases"]
    paths = [path for path, _ in plan.placed_steps()]
    assert [row["path"] for row in rows] == [row["path"] for row in listed] == paths
    assert rows[0]["reads"] == "a; c"
    assert listed[0]["reads"] == ["a", "c"]
    assert {row["result"]: row["miner"] for row in rows} == {"table": "crosstab", "tree": "dp-id3"}
    formula = dpf.Schema([dpf.Boolean("=1+1")])
    study = dpf.Study(formula, epsilon=1)
    study.add_plan("one", counted("s", formula["=1+1"]))
    assert next(csv.DictReader(io.StringIO(releases_csv(study.plan()))))["reads"] == "'=1+1"


def test_a_page_of_a_thousand_steps_or_parts_stays_small():
    part = [dpf.step(f"count {k}", Histogram(A), DiscreteLaplace("1/1000")) for k in range(100)]
    page = html_report(planned(*(dpf.sequential(*part) for _ in range(10))))
    assert len(page.encode()) < 2_000_000
    assert 'id="step-1000"' in page
    page = html_report(planned(*(counted("count", A, "1/1000") for _ in range(1000))))
    assert len(page.encode()) < 2_000_000
    assert 'id="node-2000"' in page


def test_of_many_results_the_first_are_in_the_first_table_and_all_among_the_steps():
    page = html_report(planned(*(counted("count", A, f"1/{1000 + k}") for k in range(120))))
    assert "And 20 more results" in page
    assert page.count('<bdi class="name">part 99</bdi>') == page.count('<bdi class="name">part 100</bdi>') + 1
    assert 'id="step-120"' in page


def test_equal_results_are_told_once_with_their_names_and_the_cost_of_each():
    nodes = [counted("count", A), counted("count", B), counted("count", A), counted("count", A), counted("n", A, "0.2")]
    plan = planned(*nodes)
    page, text = html_report(plan), markdown_report(plan).replace("\\", "")
    opening = text[text.index("## What is published") : text.index("## What somebody")]
    assert "| part 0, part 2, part 3 | planned without a miner | a |" in opening
    assert "epsilon 0.1 each, 16.7 % of the total each |" in opening
    assert opening.count("histogram of a: ") == 2
    assert "| part 4 | planned without a miner | a |" in opening
    assert "class Histogram" not in opening + page
    shown = page[page.index("What is published") : page.index("What somebody")]
    assert "and 2 more like it: <bdi>part 2</bdi>, <bdi>part 3</bdi>" in shown
    assert shown.count('class="loss">epsilon 0.1 each<') == 1
    assert shown.count('class="loss">epsilon 0.1<') == 1


def test_the_relative_errors_of_several_kinds_of_counts_say_which(plan):
    opening = markdown_report(plan.with_rows(500)).replace("\\", "").partition("## What somebody")[0]
    for name in ("table", "tree: class counts of leaves", "tree: class counts of nodes above leaves"):
        assert f"\n| {name} | " in opening


def test_matrices_are_heat_maps():
    study = dpf.Study(SCHEMA, epsilon=200)
    study.add("table", dpf.miner("crosstab", attributes=["a", "c"], epsilon=100))
    study.add("distances", dpf.miner("dp-dilca", target="c", attributes=["a", "c"], epsilon=100))
    rng = np.random.default_rng(1)
    results = study.run(dpf.Table.from_codes(SCHEMA, np.stack([rng.integers(0, a.size, 500) for a in SCHEMA])), seed=1)
    ran = RunSummary.of(results)
    assert [(m.rows, m.columns) for m in ran.matrices["table"]] == [(A.labels, C.labels)]
    (found,) = ran.matrices["distances"]
    assert found.values[0][0] == 0
    assert max(level for row in found.levels for level in row) == 9
    page = html_report(results.plan, ran)
    assert page.count('<table class="heat">') == 2
    assert page.count('<div class="scroll mapped"') == 2  # on paper, the text is left out

    labels = [str(k) for k in range(31)]
    large = Matrix("large", labels, labels, np.ones((31, 31)))
    ran = attrs.evolve(ran, matrices={**ran.matrices, "table": (*ran.matrices["table"], large)})
    page = html_report(results.plan, ran)
    assert page.count('<table class="heat">') == 2
    assert page.count('<div class="scroll mapped"') == 1  # since the text alone shows the large one


def test_a_schema_of_another_plan_is_not_shown(plan):
    read_back = dpf.StudyPlan.from_json(plan.to_json())
    assert 'id="schema"' not in html_report(read_back)
    assert 'id="schema"' in html_report(read_back, about=About(SCHEMA))
    with pytest.raises(dpf.InputError, match="another schema"):
        html_report(read_back, about=About(SOME))


def test_a_default_that_a_converter_changes_is_no_parameter_to_list():
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("rows", dpf.miner("synthetic-table", epsilon=1))
    (row,) = result_rows(study.plan())
    assert dict(row.parameters).get("miners") is None


@pytest.mark.parametrize("per_unit", [False, True])
def test_rows_that_the_unit_leaves_out_are_named_beside_the_noise(per_unit):
    derive = [dpf.derive("a_once", "any(a)", per="unit")] if per_unit else []
    study = dpf.Study(dpf.Schema([A], derive=derive), epsilon=1, unit="id", rows_per_unit=1 if per_unit else 3)
    study.add("n", dpf.miner("count", epsilon=1))
    more = "" if per_unit else ", and so are rows of one id beyond 3"
    assert f"| all results | rows without 'id' are left out{more} |" in markdown_report(study.plan())
