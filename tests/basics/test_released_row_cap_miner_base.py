"""Numbers of rows of each unit that an earlier step of the same study released: answers, claims and planted bugs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.basics import HistogramMiner, MeanMiner
from dpframework.basics.released_row_cap_miner_base import RowsMiner
from dpframework.basics.row_cap_selection_miner import RowsPerUnitMiner
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.plan.nodes import beside
from dpframework.queries import (
    AtReleasedBounds,
    AtReleasedRows,
    BoundDistances,
    Count,
    GroupMoments,
    JointHistogram,
    Keys,
    QuantileScores,
    Query,
    RowsPerUnitScores,
    numbers_of_rows,
)
from dpframework.queries.base import Norm
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.results import RowsPerUnit
from dpframework.run.miner_chain import MinerChain
from dpframework.verify import audit, search_sensitivity
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.transcript import record
from dpframework.verify.tables.neighbours import Universe
from dpframework.verify.tables.small_table_engine import SmallTables, with_units

ADD, REPLACE = Relation
MOST = 12  # rows of a person
MUCH = 10**6  # an epsilon that leaves nearly no noise
COST, ILL = dpf.Numeric("cost", -2, 6, bins=4), dpf.Boolean("ill")
SCHEMA = dpf.Schema([COST, ILL, dpf.Categorical("town", ["A", "B", "C"])])
RNG = np.random.default_rng(3)
SIZES = np.minimum(1 + RNG.geometric(0.4, 500), MOST)
PEOPLE = pl.DataFrame(
    {
        "person": np.repeat(np.arange(500), SIZES),
        "cost": RNG.normal(2, 2, SIZES.sum()),
        "ill": RNG.random(SIZES.sum()) < 0.3,
        "town": RNG.choice(["A", "B", "C"], SIZES.sum()),
    }
).sample(fraction=1, shuffle=True, seed=2)
STEPS: dict[str, dict[str, Any]] = {
    "count": {"where": {"equals": ["ill", "true"]}},
    "histogram": {"attribute": "town"},
    "crosstab": {"attributes": ["ill", "town"]},
    "marginals": {"of": ["ill", ["ill", "town"]]},
    "sum": {"attribute": "cost", "by": "ill"},
    "mean": {"attribute": "cost"},
    "variance": {"attribute": "cost"},
    "quantile": {"attribute": "cost", "quantile": "0.7"},
    "median": {"attribute": "cost"},
    "ratio": {"of": {"equals": ["ill", "true"]}, "by": "town"},
    "top-k": {"attribute": "town", "k": 2, "by": "ill"},
}


def study_of(*names: str, schema: dpf.Schema = SCHEMA, rows: int = MOST, epsilon: Any = MUCH, **more: Any) -> dpf.Study:
    study = dpf.Study(schema, epsilon=10**9, unit="person", rows_per_unit=rows, **more)
    study.add("most", dpf.miner("rows-per-unit", outside="0.1", epsilon=epsilon))
    for name in names:
        study.add(name, dpf.miner(name, **STEPS[name], rows_per_unit="most", epsilon=epsilon))
    return study


def table_of(study: dpf.Study, schema: dpf.Schema = SCHEMA) -> dpf.Table:
    return dpf.table_from_frame(PEOPLE, schema, unit=study.unit, key=b"key")


# Answers.


@pytest.mark.parametrize("relation", Relation)
def test_every_everyday_step_answers_of_the_first_rows_of_each_person(relation: Relation) -> None:
    """It is the answer that the same step gives on a table of these rows alone."""
    rows = None if relation is ADD else PEOPLE.height
    schema = attrs.evolve(SCHEMA, rows=rows)
    study = study_of(*STEPS, schema=schema, relation=relation)
    table = table_of(study, schema)
    found = study.run(table, seed=1)
    most = found["most"].rows
    assert most == next(k for k in numbers_of_rows(MOST) if np.mean(k < SIZES) <= 0.1) < MOST
    assert table.unit_places is not None
    kept = table.unit_places.array < most
    few = dpf.Table(
        SCHEMA, [column[kept] for column in table.columns], {name: own[kept] for name, own in table.values.items()}
    )
    assert few.rows == np.minimum(SIZES, most).sum()
    plain = dpf.Study(SCHEMA, epsilon=10**9)
    for name, parameters in STEPS.items():
        plain.add(name, dpf.miner(name, **parameters, epsilon=MUCH))
    exact = plain.run(few, seed=1)
    for name in STEPS:
        one, other = (json.dumps(result[name].to_dict()) for result in (found, exact))
        assert numbers(one) == pytest.approx(numbers(other), rel=0.01, abs=0.02), name


def numbers(text: str) -> list[float]:
    """Return the numbers of a result but for those that say how large the noise is."""
    found: list[float] = []

    def collect(form: Any) -> None:
        if isinstance(form, dict):
            for name, own in form.items():
                if name not in ("variance", "parts", "rows_variance"):
                    collect(own)
        elif isinstance(form, list):
            for own in form:
                collect(own)
        elif isinstance(form, float | int):
            found.append(float(form))

    collect(json.loads(text))
    return found


def test_the_noise_is_that_of_the_number_that_was_released_and_the_total_is_not() -> None:
    study = study_of("count", "mean", epsilon="0.5")
    assert study.plan().total() == dpf.PrivacyLoss(Fraction(3, 2))
    widths = {}
    for outside in ("0.9", "0.1"):
        study = dpf.Study(SCHEMA, epsilon=10**9, unit="person", rows_per_unit=MOST)
        study.add("most", dpf.miner("rows-per-unit", outside=outside, epsilon=MUCH))
        study.add("count", dpf.miner("count", rows_per_unit="most", epsilon="0.5"))
        found = study.run(table_of(study), seed=1)
        widths[found["most"].rows] = found["count"].high - found["count"].low
    whole = dpf.Study(SCHEMA, epsilon=1, unit="person", rows_per_unit=MOST)
    whole.add("count", dpf.miner("count", epsilon="0.5"))
    found = whole.run(table_of(whole), seed=1)["count"]
    for most, width in widths.items():
        narrower = (found.high - found.low) / (MOST // most)
        assert narrower <= width <= 1.3 * narrower  # besides half a row on either side
    assert len(widths) == 2


def test_intervals_hold_the_exact_numbers_as_often_as_they_say() -> None:
    study = study_of("count", "sum", rows=7, epsilon="0.4")
    table, held = table_of(study), np.zeros(3)
    assert table.unit_places is not None
    first = table.unit_places.array
    for seed in range(300):
        found = study.run(table, seed=seed)
        kept = first < found["most"].rows
        ill, cost = table.columns[1][kept] == 1, table.values["cost"][kept]
        low, high = found["count"].low, found["count"].high
        held[0] += low <= ill.sum() <= high
        for k, one in enumerate(found["sum"].results):
            held[k + 1] += one.low <= cost[ill == bool(k)].sum() <= one.high
    assert (held / 300 > 0.92).all(), held


@pytest.mark.parametrize("period", [None, "month"])
def test_engines_read_the_same_first_rows(period: str | None, tmp_path: Any) -> None:
    dated = PEOPLE.with_columns(
        pl.Series("day", [f"2026-0{month}-11" for month in RNG.integers(1, 4, PEOPLE.height)]).str.to_date()
    )
    dated.write_parquet(tmp_path / "people.parquet")
    more = {} if period is None else {"period": period, "date": "day"}
    study = study_of("count", "crosstab", "sum", "mean", "quantile", "marginals", rows=5, epsilon=1, **more)
    study = study if period else study_of("count", "crosstab", "mean", "quantile", "marginals", rows=5, epsilon=1)
    unit = study.unit if period is None else study.unit.during("2026-02")
    files = dpf.TableFiles(tmp_path / "people.parquet", SCHEMA, unit=unit, key=b"key")
    engines = [dpf.InMemory(), dpf.Threads(3), dpf.Mapped(), dpf.DuckDB()]
    found = [[str(one) for one in study.run(files, seed=4, engine=engine).values()] for engine in engines]
    assert found[1:] == found[:1] * 3


def test_an_engine_that_does_not_tell_units_apart_is_refused() -> None:
    class Elsewhere(dpf.InMemory.__mro__[1]):  # type: ignore[misc]
        name = "elsewhere"
        places_rows = False

        def __init__(self) -> None:
            super().__init__(1)

        def map(self, rows: Any, function: Any) -> list[Any]:
            return [function(block) for block in rows]

    with pytest.raises(dpf.InputError, match="'elsewhere' does not know the position of each row in its unit"):
        study_of("count").plan(Elsewhere())


def test_a_table_without_the_places_of_its_rows_is_not_read_as_if_each_were_the_first() -> None:
    universe = Universe(SCHEMA)
    table = universe.table(bytes(range(6)))
    rows = dpf.InMemory().load(table)
    with pytest.raises(dpf.InputError, match="the places of rows within their units are not known"):
        answer_of(AtReleasedRows(Count(), 3), dpf.InMemory(), rows, {"rows_per_unit": 1})
    study = study_of("count", rows=3)
    with pytest.raises(dpf.InputError, match="does not say which unit each row belongs to"):
        study.run(attrs.evolve(table, unit=study.unit), seed=1)
    assert study.run(attrs.evolve(table, unit=study.unit).with_units([0, 0, 0, 1, 1, 2]), seed=1)["most"].rows == 3


def test_places_follow_from_the_unit_alone_and_are_any_rows_of_it() -> None:
    def places(frame: pl.DataFrame, key: bytes = b"key") -> dict[Any, list[Any]]:
        table = dpf.table_from_frame(frame, SCHEMA, unit=PrivacyUnit("person", MOST), key=key)
        assert table.unit_places is not None
        own = zip(frame["person"].to_list(), table.values["cost"], table.unit_places.array, strict=True)
        found: dict[Any, list[Any]] = {}
        for person, cost, place in own:
            found.setdefault(person, []).append((cost, int(place)))
        return found

    whole = places(PEOPLE)
    assert all(sorted(place for _, place in own) == list(range(len(own))) for own in whole.values())
    without = places(PEOPLE.filter(pl.col("person") % 7 != 3))
    assert without == {person: own for person, own in whole.items() if person % 7 != 3}
    turned = places(PEOPLE.sort("person", maintain_order=True))
    assert turned == whole
    assert places(PEOPLE, b"other") != whole
    first = [sorted(own, key=lambda one: one[1])[0] == own[0] for own in whole.values() if len(own) == 2]
    assert 0.35 < np.mean(first) < 0.65  # the first row of a unit is in neither place more often


# What is declared, by brute force: people with any number of rows, whose neighbours differ by one of them.


QUERIES: dict[str, tuple[Query, dpf.Schema]] = {
    "count": (Count(), dpf.Schema([ILL])),
    "histogram": (JointHistogram([ILL]), dpf.Schema([ILL])),
    "distances": (AtReleasedBounds(BoundDistances(COST)), dpf.Schema([dpf.Numeric("cost", -2, 6, bins=1)])),
    "moments": (GroupMoments(COST, degree=2), dpf.Schema([dpf.Numeric("cost", -2, 6, bins=1)])),
    "quantile": (QuantileScores(COST, quantile="0.3"), dpf.Schema([dpf.Numeric("cost", -2, 6, bins=1)])),
}


def people_of(kinds: int, most: int) -> list[bytes]:
    """Return all rows that one person may have, in all orders, and no rows."""
    return [bytes(one) for size in range(most + 1) for one in itertools.product(range(kinds), repeat=size)]


def neighbours(kinds: int, most: int, relation: Relation) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield pairs of tables of people that differ by one person: all of one person, and some beside others."""
    people = people_of(kinds, most)
    rng = np.random.default_rng(1)
    others: list[list[bytes]] = [[], *([people[k] for k in rng.integers(0, len(people), 3)] for _ in range(3))]
    for shared in others:
        for one in people:
            if relation is ADD:
                yield shared, [*shared, one]
            else:
                yield from (([*shared, one], [*shared, other]) for other in people)


def change(query: Query, schema: dpf.Schema, tables: Sequence[list[bytes]], inputs: dict[str, Any]) -> np.ndarray:
    engine = SmallTables(Universe(schema))
    one, other = (
        np.ravel(answer_of(query, engine, with_units(b"".join(units), units, ()), inputs)).astype(float)
        for units in tables
    )
    return other - one


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", QUERIES)
def test_no_person_moves_an_answer_further_than_declared_whatever_is_released(name: str, relation: Relation) -> None:
    inner, schema = QUERIES[name]
    most, kinds = 3, min(Universe(schema).kinds, 2)
    query = AtReleasedRows(inner, most)
    declared = {one.norm: one for one in query.for_rows(most)}
    reached = dict.fromkeys(declared, 0.0)
    for released in (None, 1, 2, 3):
        inputs = {} if released is None else {"rows_per_unit": released}
        for tables in neighbours(kinds, most, relation):
            moved = np.abs(change(query, schema, tables, inputs))
            sizes = {Norm.L1: moved.sum(), Norm.SQUARED_L2: (moved**2).sum(), Norm.LINF: moved.max()}
            for norm, one in declared.items():
                # where the number of rows is secret a person may have more rows than another: as a removal, an addition
                bound = (
                    one.change.add_or_remove_one
                    if relation is ADD
                    else max(one.change.add_or_remove_one or 0, one.change.replace_one or 0)
                )
                assert sizes[norm] <= float(bound or 0) * (1 + 1e-6) + 1e-6
                reached[norm] = max(reached[norm], float(sizes[norm]) / float(bound or 1))
    assert min(reached.values()) > 0.4, reached
    assert max(reached.values()) > 0.66, reached


@pytest.mark.parametrize("outside", ["0.05", "1/3", "0.5", "0.8"])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 6])
def test_a_person_moves_the_scores_of_numbers_of_rows_as_one_person(most: int, outside: str) -> None:
    query, schema = RowsPerUnitScores(most, outside), dpf.Schema([ILL])
    (declared,) = query.for_rows(most)
    share = Fraction(outside)
    assert (declared.add_or_remove_one, declared.replace_one) == (max(share, 1 - share), 1)
    sizes = [b"\0" * size for size in range(most + 1)]
    reached = {ADD: 0.0, REPLACE: 0.0}
    for shared in itertools.combinations_with_replacement(sizes[1:], 3):
        for one, other in itertools.product(sizes, repeat=2):
            relation = ADD if not one else REPLACE
            moved = np.abs(change(query, schema, ([*shared, one], [*shared, other]), {})).max()
            assert moved <= float(declared.change.under(relation) or 0) + 1e-12
            reached[relation] = max(reached[relation], moved)
    if most > 1:
        assert reached[ADD] == pytest.approx(float(max(share, 1 - share)))
        assert reached[REPLACE] > 0.9 * float(max(share, 1 - share))


@pytest.mark.parametrize("sizes", [[1] * 9, [5] * 20, [1, 1, 1, 12], list(range(1, 13)), [2] * 19 + [12]])
def test_the_best_number_of_rows_is_the_smallest_that_is_enough(sizes: list[int]) -> None:
    query, units = RowsPerUnitScores(MOST, "0.05"), [b"\0" * size for size in sizes]
    engine = SmallTables(Universe(dpf.Schema([ILL])))
    scores = answer_of(query, engine, with_units(b"".join(units), units, ()), {})
    enough = [k for k in query.candidates() if sum(size > k for size in sizes) <= 0.05 * len(sizes)]
    assert query.candidates()[int(np.argmax(scores))] == enough[0]
    assert scores.max() == 0


@pytest.mark.parametrize("most", [1, 2, 7, 40, 97, 1000])
def test_each_weight_has_the_largest_number_of_rows_that_it_may_have(most: int) -> None:
    numbers = numbers_of_rows(most)
    weights = [most // k for k in numbers]
    assert (numbers[0], numbers[-1]) == (1, most)
    assert sorted({most // k for k in range(1, most + 1)}) == weights[::-1]
    assert all(most // (k + 1) < most // k for k in numbers[:-1])
    assert all(k * (most // k) <= most for k in range(1, most + 1))


def test_a_weight_does_not_wrap_round() -> None:
    @attrs.frozen
    class Huge(Query):
        name = "huge"

        def count(self, block: Any, **inputs: Any) -> Any:
            return np.array([0])

        def answer(self, counts: Any, **inputs: Any) -> Any:
            return np.array([1 << 62, -(1 << 62), 5])

    query = AtReleasedRows(Huge(), 1000)
    assert query.answer(np.array([0]), rows_per_unit=1).tolist()[2] == 5000
    assert np.abs(query.answer(np.array([0]), rows_per_unit=1)[:2]).min() > 1 << 61
    assert query.answer(np.array([0]), rows_per_unit=1)[0] > 0 > query.answer(np.array([0]), rows_per_unit=1)[1]


def test_queries_that_do_more_than_count_rows_are_refused() -> None:
    for query in (Keys("town"), AtReleasedRows(Count(), 3), RowsPerUnitScores(3, "0.1")):
        with pytest.raises(dpf.InputError, match=f"the query '{query.name}' does more than count rows"):
            AtReleasedRows(query, 5)
    for rows in (0, 4, 1.5, True):
        with pytest.raises(dpf.InputError, match="give a whole number from 1 to 3"):
            AtReleasedRows(Count(), 3).weight(rows)  # type: ignore[arg-type]


def test_the_kit_searches_what_is_declared_for_units() -> None:
    query = AtReleasedRows(JointHistogram([ILL]), 3)
    for relation, released in itertools.product(Relation, (1, 2, 3)):
        found = search_sensitivity(
            query, dpf.Schema([ILL]), relation, inputs={"rows_per_unit": released}, pairs=300, rows=3
        )
        assert found.passed, str(found)
        assert found.ratio == pytest.approx(1 if released != 2 else 2 / 3)


# Replays, and planted bugs.

PERSON = PrivacyUnit("person", 3)


def verdict(miner: dpf.Miner, relation: Relation = ADD, schema: dpf.Schema | None = None, **more: Any) -> Any:
    return audit(miner, schema or dpf.Schema([ILL]), relation, replays=600, unit=PERSON, **more)


def in_one_plan(then: dpf.Miner, first: dpf.Miner | None = None) -> MinerChain:
    return MinerChain({"most": first or RowsPerUnitMiner(outside="1/3", epsilon=1), "then": then})


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", ["crosstab", "variance", "median", "ratio", "top-k"])
def test_both_steps_pass_the_audit_as_one_plan(name: str, relation: Relation) -> None:
    schema = dpf.Schema([dpf.Numeric("cost", -2, 6, bins=2), ILL, dpf.Categorical("town", ["A", "B", "C"])])
    miner = in_one_plan(dpf.miner(name, **STEPS[name], rows_per_unit="most", epsilon=1))
    report = verdict(miner, relation, schema)
    assert report.passed, str(report)
    assert report.tightness > 0.3


def test_audited_runs_release_every_number_of_rows() -> None:
    miner = in_one_plan(HistogramMiner("ill", rows_per_unit="most", epsilon=1))
    subject = Subject(miner, dpf.Schema([ILL]), ADD, unit=PERSON)
    seen = {
        record(subject, bytes([0, 1, 1, 0, 0]), seed, flattening=3).releases[-1].inputs["rows_per_unit"]
        for seed in range(20)
    }
    assert seen == {1, 3}


@attrs.frozen
class ReadsAll(AtReleasedRows.__mro__[1]):  # type: ignore[misc]
    """Charged for the released number of rows, and reads all that the study keeps."""

    name = "reads-all"
    most: int
    places = True
    sensitivities = ()

    @property
    def answer_length(self) -> int:
        return 1

    def for_rows(self, rows: int) -> Any:
        return AtReleasedRows(Count(), self.most).for_rows(rows)

    def facts(self) -> Any:
        return attrs.evolve(AtReleasedRows(Count(), self.most).facts(), name=self.name, text=self.name)

    def count(self, block: Any, *, rows_per_unit: int) -> Any:
        return np.array([block.rows])

    def answer(self, counts: Any, *, rows_per_unit: int) -> Any:
        return counts * (self.most // rows_per_unit)


class RoundsUp(ReadsAll):
    """Gives a row the weight that is rounded up: what all branches cost is no longer the same."""

    def count(self, block: Any, *, rows_per_unit: int) -> Any:
        return np.array([block.first_of_units(rows_per_unit).rows])

    def answer(self, counts: Any, *, rows_per_unit: int) -> Any:
        return counts * (self.most // rows_per_unit + 1)


class ByPosition(ReadsAll):
    """Reads every second row of the table, or all: a person's rows, too, where they stand so."""

    def count(self, block: Any, *, rows_per_unit: int) -> Any:
        return np.array([int((np.arange(block.rows) % (2 if rows_per_unit == 1 else 1) == 0).sum())])


@attrs.frozen
class Planted(dpf.Miner):
    """Releases a planted query of as many rows as were released."""

    name = "planted"
    query: Any
    epsilon: Fraction = Fraction(1)
    sources: ClassVar = ("most",)

    def plan(self, schema: dpf.Schema) -> Any:
        return dpf.step("own", self.query, dpf.mechanisms.DiscreteLaplace(self.epsilon), uses=[beside("most")])

    def mine(self, table: Any) -> Any:
        return table.release("own", rows_per_unit=table.given["most"].rows)


@pytest.mark.parametrize("planted", [ReadsAll, RoundsUp])
def test_a_query_that_weighs_more_rows_than_it_may_is_found(planted: Any) -> None:
    assert verdict(in_one_plan(Planted(AtReleasedRows(Count(), 3)))).passed
    report = verdict(in_one_plan(Planted(planted(3))))
    assert not report.passed
    assert "loses" in str(report)
    found = search_sensitivity(planted(3), dpf.Schema([ILL]), ADD, inputs={"rows_per_unit": 1}, pairs=300, rows=3)
    assert not found.passed


@attrs.frozen
class ByRow(Query):
    """The scores of numbers of rows, in which each row counts, and not each person."""

    name = "by-row"
    integer = False
    most: int = 3
    places = True

    def facts(self) -> Any:
        return attrs.evolve(RowsPerUnitScores(self.most, "1/3").facts(), name=self.name, text=self.name)

    def for_rows(self, rows: int) -> Any:
        return RowsPerUnitScores(self.most, "1/3").for_rows(rows)

    def candidates(self, **inputs: Any) -> Any:
        return numbers_of_rows(self.most)

    def count(self, block: Any, **inputs: Any) -> Any:
        beyond = [int((block.places_in_units() >= k).sum()) for k in (0, *self.candidates()[:-1])]
        return np.array(beyond)

    def answer(self, counts: Any, **inputs: Any) -> Any:
        return RowsPerUnitScores(self.most, "1/3").answer(counts)


class FromTheRows(ByRow):
    """The scores of the numbers of rows that people have: which these are depends on the rows."""

    def candidates(self, **inputs: Any) -> Any:
        return (1, 2)

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        largest = max(map(int, engine.map(rows, lambda block: block.places_in_units().max(initial=0) + 1)), default=1)
        return np.array([-1.0, 0.0] if largest > 1 else [0.0, -1.0]) * 50


@attrs.frozen
class Chooses(dpf.Miner):
    """Releases a number of rows by planted scores."""

    name = "chooses"
    query: Any
    result = RowsPerUnit

    def plan(self, schema: dpf.Schema) -> Any:
        return dpf.step("rows", self.query, dpf.mechanisms.PermuteAndFlip(1))

    def mine(self, table: Any) -> Any:
        return RowsPerUnit("person", int(table.release("rows")), 3, "1/3", 0)


def test_a_number_that_is_chosen_by_rows_and_not_by_people_is_found() -> None:
    then = MeanMiner("cost", rows_per_unit="most", epsilon=1)
    schema = dpf.Schema([dpf.Numeric("cost", -2, 6, bins=1)])
    assert verdict(in_one_plan(then, Chooses(RowsPerUnitScores(3, "1/3"))), schema=schema).passed
    found = search_sensitivity(ByRow(), dpf.Schema([ILL]), ADD, pairs=300, rows=3)
    assert not found.passed
    assert not verdict(in_one_plan(then, Chooses(FromTheRows())), schema=schema).passed


@attrs.frozen
class CandidatesOfRows(dpf.Miner):
    """Plans as many numbers of rows as people have, which it finds out by looking."""

    name = "candidates-of-rows"
    seen: ClassVar[list[int]] = []

    def plan(self, schema: dpf.Schema) -> Any:
        @attrs.frozen
        class Own(ByRow):
            name = "own-candidates"

            def candidates(self, **inputs: Any) -> Any:
                return (1, max(CandidatesOfRows.seen[-1:], default=3))

            def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
                CandidatesOfRows.seen.append(engine.number(rows))
                return np.zeros(2)

        return dpf.step("rows", Own(), dpf.mechanisms.PermuteAndFlip(1))

    def mine(self, table: Any) -> Any:
        return int(table.release("rows"))


def test_candidates_that_follow_from_the_rows_are_found() -> None:
    report = verdict(CandidatesOfRows())
    assert not report.passed
    assert "candidates" in str(report)


def test_rows_that_are_told_by_their_position_are_found() -> None:
    report = verdict(in_one_plan(Planted(ByPosition(3))))
    assert not report.passed


# Plans and studies.


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**6)])
@pytest.mark.parametrize("relation", Relation)
def test_totals_are_those_of_the_same_steps_for_all_rows(relation: Relation, delta: Any) -> None:
    budget = {"rho": Fraction(1, 8)} if delta else {"epsilon": Fraction(1, 2)}
    totals = []
    for rows in ("most", None):
        study = dpf.Study(SCHEMA, epsilon=100, delta=delta, relation=relation, unit="person", rows_per_unit=MOST)
        study.add("most", dpf.miner("rows-per-unit", **budget))
        study.add("town", dpf.miner("histogram", attribute="town", rows_per_unit=rows, **budget))
        plan = study.plan()
        accountant = dpf.ZCDPAccountant(relation, delta=delta) if delta else dpf.PureAccountant(relation)
        totals.append(accountant.total(plan))
        assert not plan.refusals()
    assert totals[0] == totals[1]
    assert delta or totals[0] == dpf.PrivacyLoss(1)


@pytest.mark.parametrize("relation", Relation)
def test_samples_of_people_are_read_by_their_first_rows(relation: Relation) -> None:
    count = dpf.step("count", AtReleasedRows(Count(), 3), dpf.mechanisms.DiscreteLaplace(1))
    study = dpf.Study(SCHEMA, epsilon=2, relation=relation, unit="person", rows_per_unit=3)
    study.add_plan("sampled", dpf.sample("0.5", count))
    if relation is REPLACE:
        assert study.plan().refusals()
        return
    assert study.plan().total().epsilon < Fraction(63, 100)  # type: ignore[union-attr, operator]
    assert isinstance(study.run(table_of(study), seed=1)["sampled"], dict)


def test_rows_that_spread_over_parts_count_one_by_one() -> None:
    """Their noise is for each row by itself, as many times as a person has rows: more than for the whole table."""
    count = dpf.step("count", AtReleasedRows(Count(), 3), dpf.mechanisms.DiscreteLaplace(1))
    scales = []
    for node in (count, dpf.parallel(count, by=SCHEMA["ill"], name="parts")):
        study = dpf.Study(SCHEMA, epsilon=2, unit="person", rows_per_unit=3)
        study.add_plan("own", node)
        plan = study.plan()
        scales += [plan.calibration(step).scale for step in plan.steps()]  # type: ignore[union-attr]
        assert plan.total() == dpf.PrivacyLoss(1)
    assert scales == [3, 9]


def test_a_plan_shows_the_released_number_and_reads_back() -> None:
    plan = study_of("mean", "histogram", epsilon=1).plan()
    (mean,) = [step for step in plan.steps() if step.name == "distances"]
    assert "in the released number of rows of each unit, of at most 12" in mean.facts.text
    assert mean.uses == (beside("most"),)
    assert plan.reads_places
    again = dpf.StudyPlan.from_json(plan.to_json())
    assert (again.hash, again.total(), again.reads_places) == (plan.hash, plan.total(), True)
    notes = [bound.note for bounds in plan.error_bounds().values() for bound in bounds if bound.unit != "units"]
    assert len(notes) == 2
    assert all("smaller in proportion" in note for note in notes)


def test_a_plan_without_a_released_number_keeps_its_form() -> None:
    study = dpf.Study(SCHEMA, epsilon=1, unit="person", rows_per_unit=MOST)
    study.add("town", dpf.miner("histogram", attribute="town", epsilon=1))
    text = study.plan().to_json()
    assert "rows_per_unit" not in text
    assert "places" not in text
    assert not study.plan().reads_places


def test_shares_of_a_budget_are_found_with_a_released_number_of_rows() -> None:
    study = dpf.Study(SCHEMA, epsilon=1, unit="person", rows_per_unit=MOST)
    study.add("most", dpf.share("0.2", "rows-per-unit"))
    study.add("mean", dpf.share("0.8", "mean", attribute="cost", rows_per_unit="most"))
    assert study.plan().total() == dpf.PrivacyLoss(1)
    assert study.run(table_of(study), seed=1)["mean"].what == "mean of cost"


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"rows_per_unit": "many"}, "step 'then' uses the result of step 'many', and no earlier step has that name"),
        ({"rows_per_unit": "ill"}, "rows_per_unit names step 'ill', of miner 'histogram'; name a step of miner"),
        ({"rows_per_unit": "most", "by": "ill", "miner": "median"}, "each group is released by itself: the rows of a"),
        ({"rows_per_unit": 3}, "rows_per_unit is 3; name an earlier step of miner 'rows-per-unit'"),
    ],
)
def test_mistakes_are_said(parameters: dict[str, Any], sentence: str) -> None:
    study = study_of(epsilon=1)
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
    asked = {"miner": "mean", "attribute": "cost", "epsilon": 1} | parameters
    with pytest.raises(dpf.InputError, match=sentence):
        study.add("then", dpf.miner(asked.pop("miner"), **asked))


def test_a_unit_that_is_asserted_is_refused() -> None:
    study = dpf.Study(SCHEMA, epsilon=1, rows_per_unit=4, allow=["rows-per-unit-asserted"])
    with pytest.raises(dpf.InputError, match="nothing says which unit a row belongs to; name the column of ids"):
        study.add("most", dpf.miner("rows-per-unit", epsilon=1))


def test_a_miner_outside_of_a_study_is_planned_for_units_of_one_row() -> None:
    """Its claim holds in a study of any unit: of each no more than one row may be asked."""
    mean = MeanMiner("cost", rows_per_unit="most", epsilon=1).plan(SCHEMA)
    assert isinstance(mean, dpf.plan.Step)
    assert isinstance(mean.query, AtReleasedRows)
    assert mean.query.most == 1
    found = search_sensitivity(
        AtReleasedRows(Count(), 1), dpf.Schema([ILL]), ADD, inputs={"rows_per_unit": 1}, pairs=300, rows=3
    )
    assert found.passed
    assert found.ratio == pytest.approx(1)
    with pytest.raises(dpf.InputError, match="give a whole number from 1 to 1"):
        mean.query.tables(rows_per_unit=2)


def test_of_one_row_a_person_there_is_nothing_to_choose() -> None:
    study = study_of("count", rows=1, epsilon=1)
    found = study.run(table_of(study), seed=1)
    assert (found["most"].rows, found["most"].units) == (1, 0)
    plain = dpf.Study(SCHEMA, epsilon=10)
    plain.add("most", dpf.miner("rows-per-unit", epsilon=1))
    assert plain.run(dpf.table_from_frame(PEOPLE, SCHEMA), seed=1)["most"].rows == 1


def test_every_everyday_miner_but_those_of_blocks_may_read_a_released_number_of_rows() -> None:
    from dpframework.study.plugin_registry import registry

    may = {name for name, one in registry().miners.items() if issubclass(one.component, RowsMiner)}
    assert may == set(STEPS)


def test_the_result_is_kept_as_json() -> None:
    found = RowsPerUnit("person", 5, 12, "1/20", 3.2)
    assert RowsPerUnit.from_dict(json.loads(found.to_json())) == found
    assert found.to_frame().row(0) == ("person", 5, 12, 0.05, 3.2)
    for rows in (0, 13):
        with pytest.raises(dpf.InputError, match="a whole number from 1 to 12 is needed"):
            attrs.evolve(found, rows=rows)
    assert found.plot().get_xlabel() == "rows"


class Nearer(dpf.Query):
    """A query whose answer moves less when a row is replaced than when it is added or removed."""

    name = "nearer"
    answer_length = 1
    sensitivities = tuple(dpf.Sensitivity(norm, 2, 1, source="a test") for norm in ("l1", "squared-l2", "linf"))

    def count(self, block: Any, **inputs: Any) -> Any:
        return np.zeros(1, dtype=np.int64)


def test_a_row_that_leaves_the_places_that_are_read_counts_as_removed_under_replace_one() -> None:
    """A replaced row may enter a place beyond them: then the answer moves as if it was removed."""
    found = {
        str(one.norm): (one.add_or_remove_one, one.replace_one) for one in AtReleasedRows(Nearer(), 3).sensitivities
    }
    assert found
    assert found == {
        norm: (2 * factor,) * 2 for norm, factor in (("l1", 3), ("squared-l2", 9), ("linf", 3)) if norm in found
    }
