"""The search for the largest change of an answer between neighbours, to be compared with the declared change."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import UnitChange
from dpframework.facts.schema import Schema
from dpframework.queries import Norm, PiecewiseScores, Query
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.verify.miners.neighbour_pair_search import Search
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.queries.answer_changes import (
    FALL,
    RISE,
    SPREAD,
    answer_problem,
    change_of,
    coordinates_of,
    measure,
)
from dpframework.verify.queries.large_tables import MANY, largest_number, pairs_of_every_kind, pairs_of_many
from dpframework.verify.queries.sensitivity_report import ROUNDING, MeasuredChange, SensitivityReport
from dpframework.verify.queries.simulated_large_tables import (
    MOST,
    change_beyond_rounding,
    counts_only,
    pairs_of_copies,
    pairs_of_sizes,
)
from dpframework.verify.queries.telling_row_search import answer_among, find_telling_rows
from dpframework.verify.queries.texts_to_try import telling_texts
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.block_tile_and_crosstab_engines import CountedTables, Halves, SmallTiles
from dpframework.verify.tables.neighbours import MOST_KINDS, Change, Pair, Rows, Sizes, Universe, changes
from dpframework.verify.tables.small_table_engine import SmallTables

MOST_ROWS = 60  # the most rows that two small tables share
FEWEST = 60  # the fewest pairs of a search
BLOCKS = 7  # the number of rows of a small table that is cut into blocks
TIGHT = 0.999  # a declared change counts as reached if a search finds this share of it
REPEATED = (1, 2, 3, 8, 20)  # how often Hypothesis may repeat a row
DIGIT = 64  # the base of the digits in which Hypothesis draws a larger number
STILL = "answers the same on all"  # the first words of the message that no row changes the answer
MOST_REPEATED = 8  # how many rows Hypothesis draws for a table, each to be repeated


def search_sensitivity(
    query: Query,
    schema: Schema,
    relation: Relation | str,
    *,
    inputs: Mapping[str, Any] | None = None,
    derived: Sequence[tuple[Attribute, Cases]] = (),
    pairs: int = 3_000,
    seed: int = 0,
    seconds: float = math.inf,
    rows: int = 1,
) -> SensitivityReport:
    """Look for the largest change of a query's answer between neighbours.

    The search tries every pair of small tables of a few kinds of rows. Then it tries larger tables, which the library
    Hypothesis steers towards larger changes. From the pair with the largest change, the search climbs to pairs with
    larger changes. It also tries tables of very many equal rows, on which a number of few bits overflows. And it
    compares the answer from one block of rows with that from two blocks.

    If nothing is wrong so far, a plugin's query is searched again on rows that hold numbers from its code, and on rows
    that change the answer most. For a plugin's query that only counts, billions of equal rows are simulated, too.

    Parameters
    ----------
    query
        The query.
    schema
        The schema of the tables. With a small schema the search comes nearer to the worst case.
    relation
        The neighbouring relation.
    inputs
        The inputs of the query at run time.
    derived
        Attributes that the query reads and that a miner derives, each with its cases: the descriptions that define its
        values.
    pairs
        About how many pairs of neighbours to evaluate.
    seed
        The seed of the search.
    seconds
        The processor seconds after which the search ends.
    rows
        The rows of a privacy unit. Above 1, the search tests what the query declares for such a unit
        (`Query.for_rows`).
    """
    relation, patience = Relation.parse(relation), Patience(seconds)
    given = query, schema, relation, dict(inputs or {}), tuple(derived)
    searched = _SensitivitySearch(*given, pairs, seed, patience, rows)
    found = searched.report()
    if not is_foreign(query) or not found.passed or patience.over or not searched.changes:
        return found
    telling = find_telling_rows(query, searched.universe, searched.answer, searched.sizes.least)
    if telling is None:
        return found
    again = _SensitivitySearch(*given, max(pairs // 4, FEWEST), seed, patience, rows, telling).report()
    return found.merged(again)


def search_smallest_tables(
    query: Query,
    schema: Schema,
    relation: Relation,
    *,
    inputs: Mapping[str, Any],
    derived: Sequence[tuple[Attribute, Cases]],
    seconds: float,
) -> SensitivityReport:
    """Look for the largest change on the smallest tables only, for a query much like one that was searched already.

    Parameters
    ----------
    query, schema, relation, inputs, derived, seconds
        See `search_sensitivity`.
    """
    given = query, schema, relation, dict(inputs), tuple(derived)
    return _SensitivitySearch(*given, FEWEST, 0, Patience(seconds)).report_of_smallest()


def declared_changes(query: Query, relation: Relation, rows: int = 1) -> dict[str, Fraction]:
    """Return the changes that a query declares for a unit under a relation, by their names in `MeasuredChange.norm`."""
    declared: dict[str, Fraction] = {}
    for sensitivity in query.facts().sensitivities if rows == 1 else query.for_rows(rows):
        change = sensitivity.change.under(relation)
        if change is not None:
            declared[sensitivity.norm.value] = change
        # The spread is how far two scores can move apart, so a single score has none.
        apart = sensitivity.norm is Norm.LINF and query.answer_length != 1
        if apart and (spread := sensitivity.spread.under(relation)) is not None:
            declared[SPREAD] = spread
        if change is not None and relation is Relation.ADD_OR_REMOVE_ONE:
            for direction, bound in ((RISE, sensitivity.rise), (FALL, sensitivity.fall)):
                if bound is not None and bound < change:
                    declared[sensitivity.norm.value + direction] = bound
    return declared


class _SensitivitySearch:
    """A search for the largest change of one query's answer under one relation, and its findings so far."""

    def __init__(
        self,
        query: Query,
        schema: Schema,
        relation: Relation,
        inputs: dict[str, Any],
        derived: tuple[tuple[Attribute, Cases], ...],
        pairs: int,
        seed: int,
        patience: Patience,
        rows: int = 1,
        universe: Universe | None = None,
    ) -> None:
        self.query, self.relation, self.inputs, self.derived, self.pairs = query, relation, inputs, derived, pairs
        self.universe = universe or Universe(schema, texts=telling_texts([query], schema))
        self.facts = query.facts()
        self.engine = SmallTables(self.universe, rows if self.facts.unlisted or self.facts.places else 1)
        self.sizes = Sizes.of(schema, relation, MOST_ROWS, rows)
        self.most, self.copies = (largest_number(schema, relation, rows, most) for most in (MANY, MOST))
        self.changes = changes(self.universe, relation, UnitChange(rows, rows > 1 and schema.rows is None))
        self.histograms = self.facts.histograms
        self.same_rows = relation is Relation.REPLACE_ONE and (rows == 1 or schema.rows is not None)
        self.patience = patience
        self.search = Search(self.changes, self.universe.kinds, self.sizes, np.random.default_rng(seed), patience)
        self.declared = {norm: float(change) for norm, change in declared_changes(query, relation, rows).items()}
        self.largest: dict[str, tuple[float, Rows, Rows]] = dict.fromkeys(self.declared, (0.0, b"", b""))
        self.wrong: dict[str, str] = {}
        self.answers: dict[Rows, Any] = {}

    def report(self) -> SensitivityReport:
        if not self.declared:
            self.wrong["undeclared"] = f"declares no sensitivity under {self.relation}"
        elif self.changes:
            self.search.worst(self._ratio, self._one_row())
            self.search.exhaustive(self._ratio, self.pairs // 3)
            found = self._steer(self.pairs // 3)
            # Where every declared change has been reached, a climb is not worth its time.
            tight = all(largest >= TIGHT * self.declared[norm] for norm, (largest, *_) in self.largest.items())
            if not self.wrong and not tight:
                self.search.climb(self._ratio, found, self.pairs // 3)
            self.search.worst(self._ratio, self._many())
            if not self.wrong:
                self._cut_into_blocks()
            holds = all(
                found <= self.declared[norm] * (1 + ROUNDING) + ROUNDING for norm, (found, *_) in self.largest.items()
            )
            if not self.wrong and holds and is_foreign(self.query):
                self._turn_many()
                if counts_only(self.query):
                    self._copy_rows()
            if (
                self.relation is Relation.ADD_OR_REMOVE_ONE  # a replaced row leaves the number of rows as it is
                and not self.wrong
                # The project's own queries may give the same answer on all tables, such as a single score of 0.
                and is_foreign(self.query)
                and any(self.declared.values())
                and not any(largest for largest, _, _ in self.largest.values())
            ):
                self.wrong.setdefault("still", f"{STILL} {self.search.tried:,} pairs of tables tried")
        return self._found()

    def report_of_smallest(self) -> SensitivityReport:
        if self.declared and self.changes:
            self.search.worst(self._ratio, self._one_row())
        return self._found()

    def _found(self) -> SensitivityReport:
        describe = self.universe.describe
        measured = tuple(
            MeasuredChange(
                norm, self.declared[norm], largest, tuple(describe(one)), tuple(describe(other)), (one, other)
            )
            for norm, (largest, one, other) in self.largest.items()
        )
        wrong, most = tuple(self.wrong.values()), max(self.most, self.sizes.most)
        return SensitivityReport(self.query.text, self.relation, measured, self.search.tried, wrong, most)

    def answer(self, universe: Universe, rows: Rows) -> Any:
        """Return the coordinates of the answer on a table of given kinds of rows."""
        return answer_among(self.query, self.derived, self.inputs, universe, rows, together=self.engine.together)

    def _one_row(self) -> Iterator[Pair]:
        """Yield the smallest pairs of tables. If they are too many, only those whose units change the answer most."""
        shared = self._resize(b"")
        if len(self.changes) <= max(self.pairs, MOST_KINDS):
            return (Pair(shared, *change) for change in self.changes)
        first = self.changes
        with contextlib.suppress(Exception):  # `_ratio` reports the failure when it measures the pair
            start = self._answer(shared)
            alone = dict.fromkeys((unit for change in first for unit in change), 0.0)
            for unit in itertools.takewhile(lambda _: not self.patience.over, alone):
                alone[unit] = measure(start, self._answer(shared + unit))["l1"]
            first = sorted(first, key=lambda change: sum(map(alone.__getitem__, change)), reverse=True)
        return (Pair(shared, *change) for change in first[: max(self.pairs, MOST_KINDS)])

    def _cut_into_blocks(self) -> None:
        """Compare the answers from one block of rows with those from two blocks and from cross tables."""
        others: dict[str, tuple[SmallTables, str]] = {
            "blocks": (Halves(self.universe), "depends on how the rows are cut into blocks")
        }
        if is_foreign(self.query):  # the project's own queries are tested on several tiles
            others["tiles"] = (SmallTiles(self.universe), "depends on how a block is cut into tiles")
        if self.query.has_tables and is_foreign(self.query):  # the project's own queries are compared in their suite
            problem = "differs when it is counted from the cross tables that it names"
            others["tables"] = (CountedTables(self.universe), problem)
        for number in (BLOCKS, self.sizes.most):
            rows = self._resize(bytes(k % self.universe.kinds for k in range(number)))
            held, engines = self.engine.hold(rows, self.derived), [engine for engine, _ in others.values()]
            try:
                answers = [answer_of(self.query, each, held, self.inputs) for each in (self.engine, *engines)]
                whole, *cut = (coordinates_of(self.query, answer) for answer in answers)
                changes = [change_of(whole, other) for other in cut]
            except Exception as error:
                self.wrong.setdefault("fails", f"fails on a table with {type(error).__name__}: {error}")
                return
            size = 1 if isinstance(whole, PiecewiseScores) else np.abs(whole).max(initial=1.0)
            for (what, (_, how)), change in zip(others.items(), changes, strict=True):
                if np.abs(change).max(initial=0.0) > ROUNDING * float(size):
                    self.wrong.setdefault(what, f"its answer {how}")

    def _turn_many(self) -> None:
        """Compare the answers on very many rows in opposite orders: a query may read the first thousands only."""
        kinds = min(self.universe.kinds, max(self.most, 1))
        rows = b"".join(bytes((kind,)) * (self.most // kinds) for kind in range(kinds))
        if len(rows) <= self.sizes.most or self.engine.together > 1:
            return  # small tables are reversed in other checks, and the rows of a unit must stay together
        try:
            one, other = self._answer(rows), self._answer(rows[::-1])
            size = 1 if isinstance(one, PiecewiseScores) else np.abs(one).max(initial=1.0)
            if np.abs(change_of(one, other)).max(initial=0.0) > ROUNDING * float(size):
                self.wrong.setdefault("order", f"its answer on {len(rows):,} rows depends on their order")
        except Exception as error:
            self.wrong.setdefault("fails", f"fails on a table with {type(error).__name__}: {error}")

    def _copy_rows(self) -> None:
        """Compare changes on simulated tables, such as those of billions of equal rows, with the declared ones."""
        given = self.query, self.universe, self.changes
        try:
            pairs = pairs_of_copies(*given, self.copies, self.inputs, self.derived)
            if self.universe.schema.rows is None:  # else the number of rows is public
                pairs = itertools.chain(pairs, pairs_of_sizes(*given, self.most, self.inputs, self.derived))
            for shared, before, after in pairs:
                change = change_beyond_rounding(before, after, self.facts)
                found = measure(np.zeros_like(change), change, self.histograms, same_rows=self.same_rows)
                for norm, bound in self.declared.items():
                    if found[norm] > bound * (1 + ROUNDING) + ROUNDING:
                        what = (
                            f"on {shared} a unit changes the answer by {found[norm]:.6g} in {norm}, "
                            f"and {bound:.6g} is declared"
                        )
                        self.wrong.setdefault("copies", what)
        except Exception as error:
            self.wrong.setdefault("fails", f"fails on a table of billions with {type(error).__name__}: {error}")

    def _many(self) -> Iterator[Pair]:
        """Yield pairs of tables with very many equal rows; none if a fault was found on smaller tables."""
        if self.wrong:
            return iter(())

        def answer(rows: Rows) -> Any:
            try:
                return self._answer(rows)
            except Exception:  # `_ratio` reports it when it measures a pair near the size where failures begin
                return np.empty(0)

        found = pairs_of_many(self.universe, self.changes, self.most, answer)
        if not is_foreign(self.query):
            return found
        return itertools.chain(found, pairs_of_every_kind(self.universe, self.changes, self.most, answer))

    def _answer(self, rows: Rows) -> Any:
        """Return the coordinates of the answer on a table, which are computed once."""
        if rows not in self.answers:
            if len(self.answers) > 10_000:
                self.answers.clear()
            answer = answer_of(self.query, self.engine, self.engine.hold(rows, self.derived), self.inputs)
            self.answers[rows] = coordinates_of(self.query, answer)
        return self.answers[rows]

    def _ratio(self, one: Rows, other: Rows) -> float:
        """Measure a pair, and return the largest ratio, over all norms, of the answer's change to the declared one."""
        try:
            before, after = self._answer(one), self._answer(other)
        except (Exception, SystemExit) as error:  # a query that ends the process would end the search without a word
            self.wrong.setdefault("fails", f"fails on a table with {type(error).__name__}: {error}")
            return 0.0
        for rows, answer in ((one, before), (other, after)):
            problem = answer_problem(answer, self.facts)
            if problem is not None:
                table = ", ".join(self.universe.describe(rows)) or "no rows"
                self.wrong.setdefault("answer", f"{problem}, on a table of {table}")
                return 0.0
        if np.shape(before) != np.shape(after):
            self.wrong.setdefault("shape", "the length of its answer depends on the rows")
            return 0.0
        changed = measure(before, after, self.histograms, same_rows=self.same_rows)
        for norm, (largest, _, _) in self.largest.items():
            if changed[norm] > largest:
                self.largest[norm] = changed[norm], one, other
        return max(changed[norm] / bound if bound else changed[norm] for norm, bound in self.declared.items())

    def _steer(self, number: int) -> Pair:
        """Let Hypothesis look for larger changes on larger tables, and return the pair with the largest change."""
        from hypothesis import HealthCheck, Phase, given, settings, strategies as st, target

        def below(number: int) -> Any:
            """Draw large numbers as two digits, since above 100 Hypothesis prefers the numbers that occur in code."""
            if number <= DIGIT:
                return st.integers(0, number - 1)
            digits = st.integers(0, (number - 1) // DIGIT), st.integers(0, DIGIT - 1)
            return st.tuples(*digits).map(lambda two: (two[0] * DIGIT + two[1]) % number)

        best: list[tuple[float, Pair]] = [(-1.0, Pair(b"", *self.changes[0]))]
        run = st.tuples(below(self.universe.kinds), st.sampled_from(REPEATED))
        runs = st.lists(run, max_size=MOST_REPEATED)

        @settings(
            max_examples=max(number, 10),
            database=None,
            deadline=None,
            derandomize=True,
            phases=(Phase.generate, Phase.target),
            suppress_health_check=list(HealthCheck),
        )
        @given(runs, below(len(self.changes)).map(self.changes.__getitem__))
        def steer(repeated: list[tuple[int, int]], change: Change) -> None:
            if self.patience.over:
                return
            rows = b"".join(bytes((kind,)) * times for kind, times in repeated)
            pair = Pair(self._resize(rows), *change)
            self.search.tried += 1
            reached = self._ratio(*pair.tables)
            target(reached)
            if reached > best[0][0]:
                best[0] = reached, pair

        if not self.patience.over:
            steer()
        return best[0][1]

    def _resize(self, rows: Rows) -> Rows:
        lacking = self.sizes.least - len(rows)
        return rows[: self.sizes.most] + bytes(max(lacking, 0))
