"""The table of steps: all facts of each, with a column only for what the plan has."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan.claim_standing import Standing
from dpframework.reports.section_blocks import Paragraph, TableBlock
from dpframework.reports.step_row import StepRow, step_rows
from dpframework.reports.step_table import StepTable

SCHEMA = dpf.Schema([dpf.Boolean("a")])
STANDINGS = st.lists(st.sampled_from(list(Standing)), max_size=5)


def rows(*standings: str, assumptions: tuple[str, ...] = ()) -> list[StepRow]:
    study = dpf.Study(SCHEMA, epsilon=9, allow=assumptions)
    for k in range(max(len(standings), 1)):
        node = dpf.step("n", dpf.queries.Count(), DiscreteLaplace(1), assumptions=assumptions)
        study.add_plan(f"s{k}", node)
    found = zip(step_rows(study.plan()), standings, strict=False)
    return [attrs.evolve(row, standing=f"{standing} by somebody") for row, standing in found]


def table(in_order: list[StepRow], *, ran: bool = False, **options: Any) -> StepTable:
    return StepTable((), (), tuple((row, 2) for row in in_order), ran, "add-or-remove-one", "", **options)


@given(STANDINGS)
def test_sensitivities_are_counted_by_their_standing(standings: list[Standing]) -> None:
    text = table(rows(*standings), has_records=True).standing_sentence
    for kind in Standing:
        number = standings.count(kind)
        assert (f"{number} {kind}" in text) == (number > 0)
    assert (text == "") == (not standings)
    assert "as declared" in table(rows(*standings)).standing_sentence


def test_a_column_is_there_only_where_something_stands_in_it() -> None:
    plain = rows(Standing.DECLARED)
    assert table(plain).heads[-1] == "expected error"
    assert table(plain, ran=True).heads == (*table(plain).heads, "released")
    assuming = table(rows(Standing.DECLARED, assumptions=("mcmc-converged",)))
    assert assuming.has_assumptions
    assert set(assuming.heads) - set(table(plain).heads) == {"assumes"}


@given(STANDINGS, st.booleans())
def test_all_facts_of_each_step_are_in_the_plain_table(standings: list[Standing], ran: bool) -> None:
    in_order = rows(*standings)
    first, *others = table(in_order, ran=ran).plain()
    assert isinstance(first, TableBlock)
    facts = [list(row.to_dict().values()) + ["2"] * ran for row in in_order]
    assert [list(row) for row in first.rows] == facts
    assert len(first.heads) == 10 + ran
    assert [type(one) for one in others] == [Paragraph] * ran


def test_the_parts_that_are_charged_follow_from_the_relation() -> None:
    """Under replace-one a row may move from one part to another, and the losses of both count."""
    for relation, charged in (("add-or-remove-one", "only the most expensive one"), ("replace-one", "two of them may")):
        text = attrs.evolve(table(rows(Standing.DECLARED), ran=True), relation=relation).plain()[-1]
        assert isinstance(text, Paragraph)
        assert charged in text.text
