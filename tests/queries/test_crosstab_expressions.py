"""Queries that name the cross tables that they count: the tables give their counts, for every additive query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.facts import Below, Boolean, Cases, Categorical, Equals, Not, Numeric
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.queries.row_set_intersections import RowSets, in_common
from dpframework.study.plugin_registry import registry
from dpframework.tables.crosstab_engine_base import GroupingEngine, SelectedRows, select_lineage, whole_tables
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, WholeSteps, as_cases, joint_counts_of
from dpframework.tables.in_process_engines import BlockEngine, InMemory
from dpframework.verify import EngineConformance, QueryConformance

EXAMPLES = {
    f"{name}, {label}": example
    for name, brought in sorted(registry().miners.items())
    for label, example in brought.component.examples().items()
}
#: What is no function of cross tables of few cells: rows, keys that nobody lists, residuals of a model.
UNTABLED = {"logistic-rows", "threshold-scores", "residual-counts", "keys", "tree-scores", "tree-pair-scores"} | {
    "number-rows",
    "group-moments",  # with degree 2
    "at-released-bounds",  # of these
    "at-released-rows",  # of these
}


class Compared(BlockEngine):
    """An engine of several blocks in memory, which compares counts of each block with those of its tables."""

    name = "compared"
    compared: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        super().__init__(blocks=3)

    def map(self, rows: Any, function: Callable[..., Any]) -> list[Any]:
        return [function(block) for block in rows]

    def counts(self, rows: Any, functions: Sequence[Callable[..., Any]]) -> list[NDArray[Any]]:
        found = super().counts(rows, functions)
        for function, counted in zip(functions, found, strict=True):
            query = getattr(getattr(function, "function", function), "query", None)
            joint = joint_counts_of(function)
            if joint is None:
                continue
            name = "subsets" if query is None else query.name
            self.compared[name] = self.compared.get(name, 0) + 1
            for block in rows:
                shown = block.showing(joint.shown) if joint.shown else block
                one, other = function(block), joint.count(shown)
                assert one.shape == other.shape, name
                assert np.array_equal(one, other), name
            summed = [sum(own) for own in zip(*([t.count(b) for t in joint.tables] for b in rows), strict=True)]
            assert np.array_equal(joint.assemble(summed), counted), name
        return found


class Grouping(GroupingEngine):
    """The smallest engine that counts cross tables."""

    name = "grouping"
    places_rows = True

    def load(self, table: dpf.Table) -> SelectedRows:
        return SelectedRows(InMemory().load(table), table.schema)

    def tables(self, rows: SelectedRows, tables: Sequence[Crosstab]) -> list[NDArray[np.int64]]:
        blocks = [select_lineage(block, rows.lineage) for block in rows.table]
        return [np.asarray(sum(table.count(block) for block in blocks)) for table in tables]


class TestGrouping(EngineConformance):
    @classmethod
    def build_engine(cls) -> dpf.Engine:
        return Grouping()


def table_of(schema: dpf.Schema, rows: int, seed: int = 0) -> dpf.Table:
    generator = np.random.default_rng(seed)
    listed = [1 if isinstance(a, dpf.Open) else a.size for a in schema]
    codes = np.array([generator.integers(0, size, rows) for size in listed])
    keys = {a.name: [None] * rows for a in schema if isinstance(a, dpf.Open)}
    return dpf.Table.from_codes(schema, codes, keys=keys)


def study_of(example: Any) -> dpf.Study:
    relation = "replace-one" if example.schema.rows is not None else "add-or-remove-one"
    allow = ["mcmc-converged", "real-arithmetic"]
    study = dpf.Study(example.schema, epsilon=10**6, relation=relation, delta=example.delta, allow=allow)
    study.add("own", example.miner)
    return study


def test_tables_give_the_counts_of_every_additive_query_of_every_miner() -> None:
    """Block by block, and added up; and every miner of such queries runs where nothing else is counted, alike."""
    Compared.compared.clear()
    untabled: set[str] = set()
    ran = 0
    for label, example in EXAMPLES.items():
        study = study_of(example)
        queries = [step.query for step in study.plan().steps()]
        untabled |= {query.name for query in queries if not query.has_tables}
        if any(query.unlisted or query.gathers for query in queries):
            continue
        table = table_of(example.schema, example.schema.rows or example.schema.max_rows or 60)
        expected = study.run(table, seed=3, engine=Compared()).to_dict()
        if all(query.has_tables for query in queries):
            found = study.run(table, seed=3, engine=Grouping()).to_dict()
            for own in (found, expected):  # a plan binds the engine's code
                own["plan"] = own["about"]["time"] = None
            assert found == expected, label
            ran += 1
    assert untabled == UNTABLED
    assert ran > 90
    named = {"subsets", "split-scores", "match-scores", "tree-pair-scores", "tree-scores", "extension-scores"}
    assert named <= set(Compared.compared)
    assert len(Compared.compared) > 24


FINE = dpf.Schema(
    [Numeric("age", 0, 90, cuts=[30, 60], missing=True), Boolean("ill"), Categorical("town", list("abc"))]
)
AGES = [3.0, 29.9, 30.0, 44.999, 45.0, 60.0, 90.0, float("nan"), 12.5, 0.0]


def aged() -> dpf.Table:
    ages = np.array(AGES)
    codes = np.where(np.isnan(ages), 3, np.searchsorted([30, 60], ages, side="right"))
    generator = np.random.default_rng(1)
    return dpf.Table.from_codes(
        FINE, [codes, generator.integers(0, 2, len(ages)), generator.integers(0, 3, len(ages))], {"age": ages}
    )


OTHER_BINS = Numeric("age", 0, 90, cuts=[45], missing=True)
NO_BIN = Numeric("age", 0, 90, bins=1, missing=True)


@pytest.mark.parametrize(
    "query",
    [
        dpf.queries.JointHistogram([OTHER_BINS, FINE["ill"]]),
        dpf.queries.JointHistogram([NO_BIN]),
        dpf.queries.Supports([Equals("town", "b"), Below("age", 44.999), Below("age", 30)]),
        dpf.queries.BoundedSum(FINE["age"], 10, 50, centre=20),
        dpf.queries.BoundDistances(FINE["age"]),
        dpf.queries.QuantileScores(FINE["age"], 10, 50.5),
        dpf.queries.Count(),
        dpf.queries.BoundedSum(FINE["age"], 10, 50, where=Equals("ill", "true")),
        dpf.queries.BoundDistances(FINE["age"], where=Equals("ill", "true")),
        dpf.queries.QuantileScores(FINE["age"], 10, 50.5, where=Below("age", 44.999)),
        dpf.queries.GroupCounts([OTHER_BINS], where=Equals("ill", "true"), of=Below("age", 44.999)),
        dpf.queries.GroupCounts([FINE["town"]], of=Below("age", 44.999)),
        dpf.queries.GroupSums(FINE["age"], 10, 50, by=[FINE["town"]], where=Equals("ill", "true")),
        dpf.queries.GroupMoments(FINE["age"], by=[FINE["town"], FINE["ill"]]),
        dpf.queries.GroupMoments(FINE["age"], by=[FINE["town"]], where=Equals("ill", "true")),
    ],
    ids=lambda query: query.name,
)
def test_tables_of_raw_values_give_the_counts_that_the_kernels_give(query: dpf.Query) -> None:
    table = aged()
    for block in (*InMemory().load(table), *Compared().load(table)):
        counts, joint = query.count(block), query.tables()
        assert joint is not None
        assert np.array_equal(joint.count(block), counts)
        columns = [[as_cases(one, FINE) for one in own.columns] for own in joint.tables]
        same = [Crosstab(own, old.summed) for own, old in zip(columns, joint.tables, strict=True)]
        assert np.array_equal(joint.assemble([one.count(block) for one in same]), counts)
    found = answer_of(query, Grouping(), Grouping().load(table), {})
    assert np.array_equal(found, answer_of(query, InMemory(), InMemory().load(table), {}))


def test_a_sum_by_a_column_adds_up_each_cell() -> None:
    steps = WholeSteps("age", 0, 90, 0, 0.5)
    (block,) = InMemory().load(aged())
    sums, counts = Crosstab([FINE["ill"]], steps).count(block), Crosstab([FINE["ill"]]).count(block)
    ill, ages = block.codes("ill"), block.values("age")
    expected = [int(np.rint(np.nan_to_num(ages[ill == k]) * 2).sum()) for k in (0, 1)]
    assert sums.tolist() == expected
    assert counts.sum() == len(AGES)


class Noting(Grouping):
    """It notes which tables it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Crosstab, ...]] = []

    def tables(self, rows: SelectedRows, tables: Sequence[Crosstab]) -> list[NDArray[np.int64]]:
        self.asked.append(tuple(tables))
        return super().tables(rows, tables)


@attrs.frozen
class Named:
    """A function of blocks that is the counts of these tables, one after another."""

    tables: tuple[Crosstab, ...]

    def __call__(self, block: Any) -> NDArray[Any]:
        return self.joint_counts().count(block)

    def joint_counts(self) -> JointCounts:
        return JointCounts(self.tables, lambda counts: np.concatenate([one.ravel() for one in counts]))


def test_a_margin_of_another_table_is_added_up_and_not_counted() -> None:
    schema = dpf.Schema([Categorical("a", ["p", "q", "r"]), Boolean("b"), Numeric("c", 0, 40, bins=4)])
    a, b, c = schema
    old, steps = Cases([Below("c", 20)]), WholeSteps("c", 0, 40, 0, 10)
    three, pair, diagonal, sums = Crosstab([a, b, c]), Crosstab([b, old]), Crosstab([b, b]), Crosstab([b], steps)
    margins = Crosstab([c, a]), Crosstab([b, a]), Crosstab([b]), Crosstab(), Crosstab([old]), Crosstab([c])
    table, engine = table_of(schema, 200), Noting()
    rows = engine.load(table)
    given = Named((*margins, three, pair, diagonal, sums, Crosstab((), steps)))
    (found,) = engine.counts(rows, [given])
    assert found.tolist() == given(rows.table[0]).tolist()
    assert [set(own) for own in engine.asked] == [{three, pair, diagonal, sums}]
    assert whole_tables([Crosstab([b, b]), Crosstab([b, c])])[Crosstab([b, b])] == diagonal
    small, large = Crosstab([b, a]), Crosstab([b, c])
    assert whole_tables([large, small, Crosstab([b])])[Crosstab([b])] == small


def test_two_descriptions_are_told_by_one_column_of_a_table() -> None:
    """They may share rows, and a missing value is in neither; a third one has a column of its own."""
    schema = dpf.Schema([Boolean("a", missing=True), Categorical("b", ["p", "q", "r"]), Numeric("c", 0, 40, bins=4)])
    _, b, c = schema
    within = [None, Equals("a", "true"), Below("c", 20), Not(Equals("a", "true"))]
    joint = in_common([RowSets.codes(b), RowSets.everyone(b.size)], [RowSets.codes(c)], (b.size + 1, c.size), within)
    assert len(joint.tables) == 3 * 2
    block = InMemory().load(table_of(schema, 300))[0]
    codes = np.stack([block.codes("b"), block.codes("c")])
    for one, counted in zip(within, joint.count(block), strict=True):
        held = np.ones(300, dtype=bool) if one is None else one.holds(block)
        pairs = np.zeros((b.size, c.size), dtype=np.int64)
        np.add.at(pairs, tuple(codes[:, held]), 1)
        assert counted.tolist() == [*pairs.tolist(), pairs.sum(axis=0).tolist()]


def test_counts_for_one_handle_are_for_no_other() -> None:
    engine = Grouping()
    rows = engine.load(table_of(dpf.Schema([Boolean("a"), Boolean("b")]), 30))
    engine.cache_of(rows)["mark"] = 1
    assert engine.cache_of(rows) == {"mark": 1}
    derived = engine.derive(rows, Boolean("d"), Cases([Equals("a", "true")]))
    assert [engine.cache_of(one) for one in (*engine.split(rows, rows.schema["a"]), derived)] == [{}] * 3


class Lazy(dpf.Query):
    """Defines tables and no count."""

    name = "lazy"
    attributes = ("ill",)
    read = "ill"

    def tables(self, **inputs: Any) -> Any:
        return dpf.tables.JointCounts([Crosstab([FINE[self.read]])], lambda counts: counts[0])


class Hidden(Lazy):
    read = "town"


class Neither(dpf.Query):
    name = "neither"


def test_a_query_may_define_tables_only() -> None:
    assert Lazy().has_tables
    assert not Neither().has_tables
    for engine in (InMemory(), Grouping()):
        assert answer_of(Lazy(), engine, engine.load(aged()), {}).sum() == len(AGES)
    with pytest.raises(dpf.InputError, match=r"the query 'neither' defines neither `count` nor `tables`"):
        answer_of(Neither(), InMemory(), InMemory().load(aged()), {})
    with pytest.raises(dpf.InputError, match=r"engine 'grouping' counts cross tables only"):
        answer_of(Neither(), Grouping(), Grouping().load(aged()), {})


@pytest.mark.parametrize("engine", [InMemory(), Grouping()], ids=lambda engine: engine.name)
def test_tables_of_what_is_not_declared_are_refused(engine: dpf.Engine) -> None:
    """A derived attribute is as declared as those that it is made of."""
    rows = engine.load(aged())
    with pytest.raises(dpf.InputError, match=r"the query reads attribute 'town', which it does not declare"):
        answer_of(Hidden(), engine, rows, {})
    old = Boolean("old")
    derived = engine.derive(rows, old, Cases([Equals("ill", "true")]))

    class OfDerived(Lazy):
        def tables(self, **inputs: Any) -> Any:
            return dpf.tables.JointCounts([Crosstab([old])], lambda counts: counts[0])

    assert answer_of(OfDerived(), engine, derived, {}).sum() == len(AGES)


def test_what_follows_from_no_table_is_refused_before_anything_is_read() -> None:
    def read() -> Any:
        raise AssertionError

    class Asks(dpf.Miner):
        name = "asks"

        def plan(self, schema: dpf.Schema) -> Any:
            return dpf.step("own", Untabled(), dpf.mechanisms.DiscreteLaplace(1))

        def mine(self, table: Any) -> Any:
            return table.release("own")

    class Untabled(dpf.Query):
        name = "untabled"
        sensitivities = dpf.queries.Count().sensitivities

        def count(self, block: dpf.Block, **inputs: Any) -> Any:
            return np.array([block.rows], dtype=np.int64)

    study = dpf.Study(FINE, epsilon=1)
    study.add("own", Asks())
    with pytest.raises(dpf.InputError, match=r"counts cross tables only, and no cross table answers step 'own'"):
        study.run(read, seed=1, engine=Grouping())


class Short(Grouping):
    """Counts that have another shape, or are rounded."""

    def tables(self, rows: SelectedRows, tables: Sequence[Crosstab]) -> list[Any]:
        return [counts[1:] for counts in super().tables(rows, tables)]


class Floats(Grouping):
    def tables(self, rows: SelectedRows, tables: Sequence[Crosstab]) -> list[Any]:
        return [counts.astype(float) for counts in super().tables(rows, tables)]


@pytest.mark.parametrize("kind", [Short, Floats])
def test_an_engine_that_counts_no_whole_table_is_told_so(kind: type[Grouping]) -> None:
    engine = kind()
    with pytest.raises(dpf.InputError, match="must count a table in the table's shape, in int64"):
        answer_of(dpf.queries.Histogram(FINE["town"]), engine, engine.load(aged()), {})


class Wrong(dpf.queries.CellCounts):
    """Names the table of another attribute than it counts."""

    name = "wrong"
    answer_length = 2

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.bincount(block.codes("ill"), minlength=2)

    def tables(self, **inputs: Any) -> Any:
        return dpf.tables.JointCounts([Crosstab([FINE["town"]])], lambda counts: counts[0][:2])


def test_the_kit_compares_tables_with_counts() -> None:
    suite = QueryConformance()
    for query in (dpf.queries.Histogram(FINE["ill"]), Lazy(), dpf.queries.BoundedSum(FINE["age"])):
        suite.test_its_tables_give_what_it_counts((query, FINE, {}))
    with pytest.raises(AssertionError, match="wrong answers differently if counted from its tables"):
        suite.test_its_tables_give_what_it_counts((Wrong(), FINE, {}))
    with pytest.raises(pytest.skip.Exception, match="names no cross tables"):
        suite.test_its_tables_give_what_it_counts((Neither(), FINE, {}))
