"""The conformance suite of engines, which must all give the same counts.

Subclass it in a test module, and return an engine::

    class TestMine(EngineConformance):
        @classmethod
        def build_engine(cls):
            return Mine()

Every result is compared with the result from one block of rows in memory. Every failure is a sentence that says how the
engine differs.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import DPFrameworkError, InputError, NotOpened
from dpframework.facts.schema import Schema
from dpframework.queries import Counting, Histogram, JointHistogram, Query
from dpframework.tables.crosstab_expressions import Crosstab, JointCounts, UnitPlaces
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.engine_base import Engine, Rows
from dpframework.tables.in_process_engines import InMemory
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify.tables.engine_tables import (
    ALL,
    CASES,
    CUTS,
    GROUP,
    JOINT,
    PEOPLE,
    PERSON,
    SCHEMA,
    Heavy,
    all_counts,
    difference,
    histograms,
    miscount,
    odd_counts,
    read_in_each_way,
    write,
    write_odd,
)
from dpframework.verify.tables.leak_conformance import LeakConformance
from dpframework.verify.tables.repeated_count_conformance import RepeatedCountConformance
from dpframework.verify.tables.whole_unit_sample_check import assert_units_sampled

Masks: TypeAlias = Callable[[int], NDArray[np.bool_]]
ODD_ROWS = 4_000  # the rows of a table with labels and numbers that databases confuse
FEW_ROWS = 300  # the rows of such a table that is read by other rules
LARGE = (70_000, 12_000, 1_001)  # the rows of large files, the first with more rows than 16 bits can count
COMMON = 0.95  # the share of the rows of large files that are put into one ward
SHORT = (40, 1, 30)  # the rows of short files, in which every person has more rows than a unit may keep


class _Narrow(Query):
    """Counts rows in an integer type that may overflow."""

    name = "narrow"

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return the number of rows, in eight bits."""
        return np.array([block.rows]).astype(np.int8)


class _Telling(Query):
    """Fails on every block, with an error that quotes cells."""

    name = "telling"

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Raise an error that quotes cells."""
        raise ValueError(f"saw {block.values('age')[:3]}")


class _Places(Query):
    """Counts rows by their places within their units."""

    name = "places"
    places = True

    def tables(self, **inputs: Any) -> JointCounts:
        """Return the number of rows in each place."""
        return JointCounts([Crosstab([UnitPlaces(range(1, PERSON.rows))])], lambda counts: counts[0])


def _cells(block: Block) -> list[list[int]]:
    """Return the codes of each attribute in a block, in the order of the rows."""
    return [block.codes(attribute.name).tolist() for attribute in SCHEMA]


class EngineConformance(RepeatedCountConformance, LeakConformance):
    """The tests that every engine must pass. All tests of the class use one engine, which is closed after them."""

    @classmethod
    @abc.abstractmethod
    def build_engine(cls) -> Engine:
        """Return the engine that is tested."""

    @classmethod
    def setup_class(cls) -> None:
        """Make the engine."""
        cls.engine = cls.build_engine()

    @classmethod
    def teardown_class(cls) -> None:
        """Close the engine."""
        cls.engine.close()

    def _require_same(self, found: Any, expected: Any, what: str) -> None:
        if found != expected:
            self._require(False, f"{what}: {miscount(found, expected)}")

    def _open_both(self, files: TableFiles) -> tuple[Rows, Rows]:
        """Return handles of a table's rows on the engine and in memory."""
        return self._open(files), InMemory().open(files)

    @pytest.mark.parametrize("sizes", [(40,), (7, 0, 90), (0,)], ids=["a file", "three files", "no rows"])
    def test_counts_are_those_of_one_block_in_memory(self, sizes: tuple[int, ...], tmp_path: Path) -> None:
        """Counts agree for all rows, parts, parts of parts, and derived attributes."""
        rows, expected = self._open_both(write(tmp_path, sizes))
        told = self.engine.number(rows)
        self._require(told == sum(sizes), f"number says {told} rows, and there are {sum(sizes)}")
        problem = difference(all_counts(self.engine, rows), all_counts(InMemory(), expected))
        self._require(problem is None, str(problem))
        self.engine.drop(rows)

    def test_large_blocks_lose_no_row_and_counts_have_no_end(self, tmp_path: Path) -> None:
        """Counts agree for large files, in which one value has over 2^16 rows and thousands of cells have a row."""
        rows, expected = self._open_both(write(tmp_path, LARGE, common=COMMON))
        self._require_same(histograms(self.engine, rows)[1], histograms(InMemory(), expected)[1], "large blocks")
        found, cells = ALL.evaluate(self.engine, rows).tolist(), ALL.evaluate(InMemory(), expected).tolist()
        self._require_same(found, cells, "a cross table of thousands of cells")
        parts = zip(self.engine.split(rows, CASES), InMemory().split(expected, CASES), strict=True)
        for k, (part, right) in enumerate(parts):
            counts = JOINT.evaluate(self.engine, part).tolist()
            self._require_same(counts, JOINT.evaluate(InMemory(), right).tolist(), f"part {k + 1} of large blocks")
        self.engine.drop(rows)

    def test_sums_are_exact_whole_numbers(self, tmp_path: Path) -> None:
        """Sums have 64 bits, and are not added up in floating point."""
        rows = self._open(write(tmp_path, (7, 5, 3)))
        for found in (Heavy().evaluate(self.engine, rows), self.engine.sum(rows, Counting(Heavy()))):
            exact = found.dtype == np.int64 and found.tolist() == [15 * (2**53 + 1)]
            self._require(exact, "sums are rounded, as if they were added up in floating point")
        self.engine.drop(rows)

    def test_labels_and_numbers_that_databases_confuse(self, tmp_path: Path) -> None:
        """Counts and sums agree for labels or columns that differ in case, null cells, and sums that floats round."""
        rows, expected = self._open_both(write_odd(tmp_path, ODD_ROWS))
        problem = difference(odd_counts(self.engine, rows), odd_counts(InMemory(), expected))
        self._require(problem is None, str(problem))
        self.engine.drop(rows)

    def test_cells_are_read_by_the_rules_of_the_table(self, tmp_path: Path) -> None:
        """The engine obeys a table's null texts, its policy for values out of domain, and its derived columns."""
        for how, files in read_in_each_way(write_odd(tmp_path, FEW_ROWS)).items():
            rows, expected = self._open_both(files)
            found = odd_counts(self.engine, rows, files.schema)
            problem = difference(found, odd_counts(InMemory(), expected, files.schema))
            self._require(problem is None, f"{how}: {problem}")
            self.engine.drop(rows)

    def test_many_functions_are_counted_in_one_call(self, tmp_path: Path) -> None:
        """Each function gets the same counts as if counted alone, in 64 bits, for all rows and for several parts."""
        rows = self._open(write(tmp_path, (30, 12)))
        functions = [Counting(Histogram(attribute)) for attribute in SCHEMA]
        for part in (rows, self.engine.split(rows, SCHEMA["wide"])[0]):
            together = self.engine.counts(part, functions)
            same = [one.tolist() for one in together] == histograms(self.engine, part)
            self._require(same, "functions that are counted in one call do not have the counts that they have alone")
            self._require({one.dtype for one in together} == {np.dtype(np.int64)}, "counts do not have 64 bits")
        parts = [rows, *self.engine.split(rows, SCHEMA["wide"])[:3]]
        asked = [(part, functions[k:]) for k, part in enumerate(parts)]
        expected = [[one.tolist() for one in self.engine.counts(*own)] for own in asked]
        found = [[one.tolist() for one in own] for own in self.engine.counts_of(asked)]
        self._require(found == expected, "counts_of returns other counts for several sets of rows than counts does")
        self.engine.drop(rows)

    def _compare_samples(self, rows: Rows, expected: Rows, masks: Masks, what: str) -> Rows:
        """Sample rows, and compare the sample with the same sample in memory. Return the handle of the engine's sample.

        `masks` is a function of a number of rows. It returns whether each of these rows is drawn, shape (rows,).
        """
        before, there, samples = JOINT.evaluate(self.engine, rows).tolist(), self.engine.number(rows), []
        for engine, own in ((InMemory(), expected), (self.engine, rows)):
            asked: list[int] = []

            def draw(number: int, asked: list[int] = asked) -> NDArray[np.bool_]:
                start = sum(asked)
                asked.append(number)
                return masks(start + number)[start:]

            samples.append(engine.sample(own, draw))
            self._require(sum(asked) == there, f"{what} is drawn for {sum(asked)} rows of {there}")
        same = JOINT.evaluate(self.engine, rows).tolist() == before
        self._require(same, f"{what} changed the rows that it was drawn from")
        right, found = (histograms(engine, own) for engine, own in zip((InMemory(), self.engine), samples, strict=True))
        self._require(found == right, f"{what} is not of the rows that were drawn, in their order")
        return samples[1]

    def test_a_sample_is_of_the_rows_that_are_drawn_anew_each_time(self, tmp_path: Path) -> None:
        """Several samples of the same rows each follow their own draws, in the order of the rows."""
        if type(self.engine).sample is Engine.sample:
            pytest.skip("the engine draws no samples; plans that have one are refused")
        rows, expected = self._open_both(write(tmp_path, (40, 0, 25)))
        generator = np.random.default_rng(1)
        once = generator.random(self.engine.number(rows)) < 0.6
        first = self._compare_samples(rows, expected, lambda n: once[:n], "a sample")
        counts = JOINT.evaluate(self.engine, first).tolist()
        self._compare_samples(
            rows, expected, lambda n: ~once[:n], "a second sample of the same rows (as if the first were reused)"
        )
        self._compare_samples(rows, expected, lambda n: np.zeros(n, dtype=np.bool_), "a sample of no row")
        self._compare_samples(rows, expected, lambda n: np.arange(n) % 3 == 0, "a sample of every third row")
        same = JOINT.evaluate(self.engine, first).tolist() == counts
        self._require(same, "a sample changes when another is drawn")
        self.engine.drop(rows)

    def test_samples_of_parts_and_parts_of_samples(self, tmp_path: Path) -> None:
        """Samples of parts and of samples are as in memory, and so are their parts and derived attributes.

        Parts can still be counted after the handle of their sample is deleted.
        """
        if type(self.engine).sample is Engine.sample:
            pytest.skip("the engine draws no samples; plans that have one are refused")
        files, found = write(tmp_path, (40, 0, 25)), []
        for engine in (InMemory(), self.engine):
            generator = np.random.default_rng(1)

            def draw(rows: int, generator: np.random.Generator = generator) -> NDArray[np.bool_]:
                return generator.random(rows) < 0.6

            rows = self._open(files) if engine is self.engine else engine.open(files)
            first, second = engine.sample(rows, draw), engine.sample(engine.split(rows, SCHEMA["ill"])[0], draw)
            parts = engine.split(engine.sample(first, draw), CASES)
            derived = engine.derive(second, GROUP, CASES)
            counts = [JOINT.evaluate(engine, one).tolist() for one in (first, second, first, *parts)]
            counts.append(JointHistogram([GROUP]).evaluate(engine, derived).tolist())
            del first
            found.append(counts + [JOINT.evaluate(engine, part).tolist() for part in parts])
            engine.drop(rows)
        in_memory, here = found
        self._require(here == in_memory, "samples of parts or of samples, or their parts, are not those in memory")

    def test_samples_take_whole_units(self) -> None:
        """Either all rows of a unit are in a sample or none (see `assert_units_sampled`)."""
        if type(self.engine).sample_units is Engine.sample_units:
            pytest.skip("the engine draws no samples of units; plans that have one are refused")
        # An engine that reads files itself gets one table only, since each table must first be written into a file.
        tables = {"tables": 1} if self.engine.reads_itself else {}
        assert_units_sampled(self.engine, source=self.source, **tables)

    def test_units_keep_no_more_rows_than_they_may(self, tmp_path: Path) -> None:
        """The rows of one person lie in several files and blocks. The bound is for all of these rows together."""
        self._skip_without_units()
        rows = self._open(write(tmp_path, SHORT, unit=PERSON))
        most, kept = PEOPLE * PERSON.rows, self.engine.number(rows)
        why = "rows are bounded in each block or file" if kept > most else "rows within the bound are left out"
        self._require(kept == most, f"{PEOPLE} people keep {kept} rows of {most}: {why}")
        self.engine.drop(rows)

    def test_each_unit_has_a_row_in_each_place(self, tmp_path: Path) -> None:
        """Rows of one person have different places, from the first on, though they lie in several files and blocks."""
        if not self.engine.places_rows:
            pytest.skip("the engine does not tell which row of its unit each row is; plans that ask are refused")
        rows = self._open(write(tmp_path, SHORT, unit=PERSON))
        for what, some in (("places", [rows]), ("places of parts", self.engine.split(rows, CASES))):
            found = np.sum([_Places().evaluate(self.engine, one) for one in some], axis=0).tolist()
            self._require(
                found == [PEOPLE] * PERSON.rows,
                f"{what}: the places hold {found} rows, and each should hold {PEOPLE}, one for each person",
            )
        self.engine.drop(rows)

    def test_a_table_that_is_loaded_counts_as_its_files_do(self, tmp_path: Path) -> None:
        """A table from memory gives the same counts, on an engine that does not read files itself."""
        files = write(tmp_path, (40, 3))
        expected = all_counts(InMemory(), InMemory().open(files))
        if not self.engine.reads_itself:
            rows = self.engine.load(files.read(mapped=self.engine.mapped))
            problem = difference(all_counts(self.engine, rows), expected)
            self._require(problem is None, f"a loaded table, {problem}")
            self.engine.drop(rows)
        address = self.engine.address
        self._require(address is None or isinstance(address, str), "its address is neither None nor a text")

    def test_rows_are_gathered_in_their_order(self, tmp_path: Path) -> None:
        """An engine that gathers rows gives all rows of a table, and all rows of a part, in their order."""
        if not self.engine.gathers:
            pytest.skip("the engine gathers no rows")
        rows, expected = self._open_both(write(tmp_path, (40, 9)))
        pairs = {"all rows": (rows, expected)}
        for name, cut in CUTS.items():
            pairs[f"a part by {name}"] = (self.engine.split(rows, cut)[0], InMemory().split(expected, cut)[0])
        for what, (own, right) in pairs.items():
            found, there = (
                np.hstack(engine.map(held, _cells)) for engine, held in ((self.engine, own), (InMemory(), right))
            )
            self._require(np.array_equal(found, there), f"{what}: map does not give the rows in their order")
        self.engine.drop(rows)

    def test_what_is_kept_of_rows_is_kept_for_them_alone(self, tmp_path: Path) -> None:
        """Each handle has a cache of its own, and a part also knows the caches of its whole and of the other parts."""
        rows, other = (self._open(write(tmp_path / name, (20,))) for name in "ab")
        parts = self.engine.split(rows, SCHEMA["ward"])
        for k, own in enumerate((rows, other, *parts)):
            cache = self.engine.cache_of(own)
            self._require("mark" not in cache, "counts that are kept for some rows are given for others")
            cache["mark"] = k
        for k, part in enumerate(parts):
            around = self.engine.related_caches(part)
            if around is not None:
                marks = around[0].get("mark"), {one.get("mark") for one in around[1]}, len(around[1])
                right = 0, {j + 2 for j in range(len(parts)) if j != k}, len(parts) - 1
                self._require(marks == right, "related_caches does not give the whole, and the other parts")
        for part in self.engine.split(rows, CUTS["descriptions"]):
            self._require(
                self.engine.related_caches(part) is None, "related_caches is given where parts leave rows out"
            )
        again = self.engine.split(rows, SCHEMA["ward"])
        found = [[*map(sum, histograms(self.engine, part))] for part in again]
        wards = histograms(self.engine, rows)[1]
        self._require(found == [[ward] * 4 for ward in wards], "parts do not add up to their whole")
        for own in (rows, other):
            self.engine.drop(own)

    def test_rows_of_two_tables_are_kept_apart_and_one_can_be_dropped(self, tmp_path: Path) -> None:
        """After one table is dropped, the other gives the same counts as before."""
        first, second = (self._open(write(tmp_path / name, sizes)) for name, sizes in (("a", (5, 6)), ("b", (20,))))
        parts = self.engine.split(second, SCHEMA["ill"])
        before = [JOINT.evaluate(self.engine, part).tolist() for part in parts]
        self.engine.drop(first)
        same = [JOINT.evaluate(self.engine, part).tolist() for part in parts] == before
        self._require(same, "dropping one table changes another")
        del parts
        self._require(self.engine.number(second) == 20, "dropping one table changes another")
        self.engine.drop(second)

    def test_a_table_is_read_anew_each_time(self, tmp_path: Path) -> None:
        """If the same files hold other rows now, these are counted, so a row that was removed is in no later run."""
        kept = "rows are kept from an earlier table of the same place"
        # The last two tables have the same number of rows, and different rows.
        for what, sizes in (("a table", (40, 3)), (kept, (25, 7)), (kept, (7, 25))):
            rows, expected = self._open_both(write(tmp_path / "same", sizes))
            problem = difference(all_counts(self.engine, rows), all_counts(InMemory(), expected))
            self._require(problem is None, f"{what}: {problem}")
            self.engine.drop(rows)

    def test_counts_that_could_wrap_round_are_refused(self, tmp_path: Path) -> None:
        """Counts in 8 bits are refused (see `count_width.in_64_bits`), and the rows can still be counted afterwards."""
        rows = self._open(write(tmp_path, (9,)))
        with contextlib.suppress(InputError):
            _Narrow().evaluate(self.engine, rows)
            self._require(False, "counts in 8 bits, which may wrap round, are accepted")
        self._require(self.engine.number(rows) == 9, "after a refusal the rows are not there any more")
        self.engine.drop(rows)

    def test_a_failure_does_not_end_the_engine(self, tmp_path: Path) -> None:
        """A query that fails stops its run, and the engine still serves the next one."""
        rows = self._open(write(tmp_path, (9, 4)))
        with pytest.raises((ValueError, DPFrameworkError)) as caught:
            _Telling().evaluate(self.engine, rows)
        if not self.engine.gathers:  # the rows are in another process or place, and must stay there
            self._require("saw" not in str(caught.value), "an error quotes a row")
        self._require(self.engine.number(rows) == 13, "after a failure the rows are not there any more")
        self.engine.drop(rows)

    def test_files_that_do_not_fit_are_refused_as_in_memory(self, tmp_path: Path) -> None:
        """Files that are refused in memory are refused by the engine, in the same words."""
        write(tmp_path, (9, 4))
        files = TableFiles(tmp_path, SCHEMA, out_of_domain=OutOfDomain.ERROR)
        few = TableFiles(tmp_path, Schema(SCHEMA.attributes, rows=12))
        none = TableFiles(tmp_path / "none.parquet", SCHEMA)
        for refused in (files, few, none):
            in_memory, here = self._refusal(InMemory(), refused), self._refusal(self.engine, self.source(refused))
            self._require(here is not None, f"files are opened that are refused in memory: {in_memory}")
            if refused is none and not self.engine.reads_files and self.engine.reads_tables:
                self._require(here is not None and here[0] is NotOpened, f"a table that is not there: {here}")
                continue
            self._require(here == in_memory, f"files are refused in other words than in memory: {here}, {in_memory}")
        assert in_memory is not None
        assert in_memory[0] is NotOpened

    def _refusal(self, engine: Engine, files: Any) -> tuple[type[Exception], str] | None:
        try:
            engine.open(files)
        except InputError as error:
            return type(error), str(error)
        return None
