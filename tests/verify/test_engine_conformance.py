"""The conformance suite of engines: planted bugs are caught, each in a sentence that names it."""

from __future__ import annotations

import contextlib
import inspect
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.tables.coded_table import places_in_order
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.in_process_engines import BlockEngine, BlockRows
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify import EngineConformance
from dpframework.verify.tables.engine_tables import SCHEMA


class Planted(BlockEngine):
    """All rows in two blocks, one after another: what the planted engines are but for one bug."""

    name = "planted"

    def __init__(self) -> None:
        super().__init__(blocks=2)

    def map(self, rows: Sequence[Block], function: Callable[[Block], Any]) -> list[Any]:
        return [function(block) for block in rows]


class ReusesItsSample(Planted):
    """The sample that was drawn first, again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: dict[int, Any] = {}

    def sample(self, rows: Any, drawn: Any) -> Any:
        fresh = super().sample(rows, drawn)
        return self.samples.setdefault(id(rows), (rows, fresh))[1]


class DropsARow(Planted):
    """The last row of blocks of more than a thousand is lost."""

    def map(self, rows: Any, function: Any) -> list[Any]:
        return [function(block.at(block.index[:-1]) if block.rows > 1000 else block) for block in rows]


class DropsMissing(Planted):
    """As GROUP BY in a database may do: no group for NULL."""

    def counts(self, rows: Any, functions: Any) -> Any:
        missing = SCHEMA["age"].missing_code
        return super().counts([block.at(block.index[block.codes("age") != missing]) for block in rows], functions)


class FloatSums(Planted):
    """Counts added up in floating point."""

    def counts(self, rows: Any, functions: Any) -> Any:
        own = [[function(block).astype(float) for block in rows] for function in functions]
        return [np.rint(np.sum(blocks, axis=0)).astype(np.int64) for blocks in own]


class MergesParts(Planted):
    """The rows of the last part lie in the one before."""

    def split(self, rows: Any, by: Any) -> Any:
        *parts, one, last = super().split(rows, by)
        merged = BlockRows(a.at(np.sort(np.concatenate([a.index, b.index]))) for a, b in zip(one, last, strict=True))
        return [*parts, merged, BlockRows(block.at(block.index[:0]) for block in last)]


class LosesOrder(Planted):
    """Rows come back from a sort in another order, as from a database without ORDER BY."""

    def load(self, table: Any) -> Any:
        return BlockRows(block.at(block.index[::-1].copy()) for block in super().load(table))


class BlocksOutOfOrder(Planted):
    """The results of blocks in the order in which they end."""

    def map(self, rows: Any, function: Any) -> list[Any]:
        return super().map(rows, function)[::-1]


class BoundsPerFile(Planted):
    """The rows of a unit bounded in each file by itself."""

    def open(self, files: TableFiles) -> Any:
        if files.unit.id is None:
            return super().open(files)
        alone = [attrs.evolve(files, path=place) for place in sorted(Path(files.path[0]).iterdir())]
        return BlockRows(block for one in alone for block in super(BoundsPerFile, self).open(one))


class FirstInEachBlock(Planted):
    """The places of a unit's rows begin anew in each block."""

    def load(self, table: Any) -> Any:
        blocks = super().load(table)
        return BlockRows(
            block if block.unit_codes is None else attrs.evolve(block, unit_places=places_in_order(block.unit_codes))
            for block in blocks
        )


class TakesTheOthers(Planted):
    """The rows that were not drawn."""

    def sample(self, rows: Any, drawn: Any) -> Any:
        return super().sample(rows, lambda number: ~drawn(number))


class SampleMovesRows(Planted):
    """A sample that takes its rows away: what is left is its complement."""

    def sample(self, rows: Any, drawn: Any) -> Any:
        masks: list[Any] = []

        def kept(number: int) -> Any:
            masks.append(drawn(number))
            return masks[-1]

        sample = super().sample(rows, kept)
        rows[:] = [block.at(block.index[~mask]) for block, mask in zip(rows, masks, strict=True)]
        return sample


class Capped(Planted):
    """Counts in 16 bits that do not wrap, but end."""

    def counts(self, rows: Any, functions: Any) -> Any:
        return [np.minimum(one, 2**16 - 1) for one in super().counts(rows, functions)]


class FirstGroups(Planted):
    """Counts of the first thousand groups, as a driver may fetch them."""

    def counts(self, rows: Any, functions: Any) -> Any:
        found = super().counts(rows, functions)
        for one in found:
            one.ravel()[np.flatnonzero(one)[1000:]] = 0
        return found


class CountsByName(Planted):
    """Counts that are kept by the rows, if several functions are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def counts(self, rows: Any, functions: Any) -> Any:
        names = [(id(rows), "many" if len(functions) > 1 else repr(one)) for one in functions]
        fresh = super().counts(rows, functions)
        return [self.known.setdefault(name, (rows, one))[1] for name, one in zip(names, fresh, strict=True)]


class OneCache(Planted):
    """One cache for all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: dict[Any, Any] = {}

    def cache_of(self, rows: Any) -> Any:
        return self.cache


class WrongSurroundings(Planted):
    """The cache of the rows themselves in place of the whole's."""

    def related_caches(self, rows: Any) -> Any:
        around = super().related_caches(rows)
        return None if around is None else (self.cache_of(rows), around[1])


class EmptySurroundings(Planted):
    """A new cache in place of the whole's."""

    def related_caches(self, rows: Any) -> Any:
        around = super().related_caches(rows)
        return None if around is None else ({}, around[1])


class CountsTwice(Planted):
    """Blocks that overlap by a row."""

    def load(self, table: Any) -> Any:
        first, second = super().load(table)
        length = first.rows
        return BlockRows([first, first.at(first.index[length - 1 :]), second])


class AcceptsNarrow(Planted):
    """Sums in whatever type the counts have."""

    def counts(self, rows: Any, functions: Any) -> Any:
        return [np.add.reduce([function(block) for block in rows]) for function in functions]


class FirstForAll(Planted):
    """The counts of the first rows for all that are asked about together."""

    def counts_of(self, asked: Any) -> Any:
        rows = asked[0][0]
        return [self.counts(rows, functions) for _, functions in asked]


class DropsAll(Planted):
    """Dropping one table drops all."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Any] = []

    def load(self, table: Any) -> Any:
        self.all.append(super().load(table))
        return self.all[-1]

    def drop(self, rows: Any) -> None:
        for one in self.all:
            one[:] = [block.at(block.index[:0]) for block in one]


class SamplesRowsOfUnits(Planted):
    """Rows drawn one by one where whole units are asked for."""

    def sample_units(self, rows: Any, drawn: Any) -> Any:
        return self.sample(rows, drawn)


class LoadsFirstBlock(Planted):
    """Files are read well; of a table that is loaded the last row is lost."""

    def open(self, files: TableFiles) -> Any:
        return super().load(files.read())

    def load(self, table: Any) -> Any:
        return BlockRows(block.at(block.index[:-1]) for block in super().load(table))


class ForgetsAfterAFailure(Planted):
    """A failure ends what there was."""

    def map(self, rows: Any, function: Any) -> list[Any]:
        try:
            return super().map(rows, function)
        except Exception:
            rows[:] = [block.at(block.index[:0]) for block in rows]
            raise


@attrs.frozen
class Complement(dpf.Description):
    """Holds wherever another description does not, for missing cells too."""

    part: dpf.Description

    @classmethod
    def of(cls, description: dpf.Description) -> dpf.Description:
        match description:
            case dpf.Not(part):
                return cls(cls.of(part))
            case dpf.And(parts) | dpf.Or(parts):
                return type(description)([cls.of(part) for part in parts])
        return description

    def holds(self, columns: Any) -> Any:
        return ~self.part.holds(columns)

    def literals(self) -> Any:
        return self.part.literals()

    def to_dict(self) -> dict[str, Any]:
        return {}


class NegatesMissing(Planted):
    """A negation holds for missing cells: it is the complement."""

    def split(self, rows: Any, by: Any) -> Any:
        return super().split(rows, dpf.Cases(map(Complement.of, by.descriptions)) if isinstance(by, dpf.Cases) else by)


class DerivesOnce(Planted):
    """A derived attribute is kept for a table by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def derive(self, rows: Any, attribute: Any, cases: Any) -> Any:
        first = self.known.setdefault((id(rows), attribute.name), (rows, cases))[1]
        return super().derive(rows, attribute, first)


class FewParts(Planted):
    """After eight splits, the whole table is split again."""

    def split(self, rows: Any, by: Any) -> Any:
        depth, whole = getattr(rows, "depth", 0) + 1, getattr(rows, "whole", rows)
        parts = super().split(rows if depth <= 8 else whole, by)
        for part in parts:
            vars(part).update(depth=depth, whole=whole)
        return parts


class DerivesByPosition(Planted):
    """A derived attribute is read from the first rows of the block, whichever its rows are."""

    def derive(self, rows: Any, attribute: Any, cases: Any) -> Any:
        def derived(block: Block) -> Block:
            there = block.at(np.arange(block.rows, dtype=np.int32)).with_derived(attribute, cases)
            column = np.zeros(block.length, dtype=np.uint32)
            column[block.index] = there.codes(attribute.name)
            right = block.with_derived(attribute, cases)
            return attrs.evolve(right, derived={**right.derived, attribute.name: column})

        return BlockRows(map(derived, rows))


class ReadsAnything(Planted):
    """Cells out of the domain are clamped, though the study says that they are errors."""

    def open(self, files: TableFiles) -> Any:
        return super().open(attrs.evolve(files, out_of_domain="clamp"))


class ReadsByTypes(Planted):
    """The schema's null texts are taken for a matter of CSV files."""

    def open(self, files: TableFiles) -> Any:
        return super().open(attrs.evolve(files, schema=attrs.evolve(files.schema, read=None)))


class KnowsTwoPolicies(Planted):
    """What is no error is clamped."""

    def open(self, files: TableFiles) -> Any:
        policy = "clamp" if files.out_of_domain == "missing" else files.out_of_domain
        return super().open(attrs.evolve(files, out_of_domain=policy))


class Shows(Planted):
    """A handle that says how many rows it holds."""

    def load(self, table: Any) -> Any:
        rows = super().load(table)
        kind = type("Shown", (BlockRows,), {"__repr__": lambda self: f"{sum(block.rows for block in self)} rows"})
        return kind(rows)


class SendsItsRows(Planted):
    """The rows lie elsewhere, and go there with each handle."""

    gathers = False

    def load(self, table: Any) -> Any:
        rows: Any = super().load(table)
        rows.lineage = tuple(np.array(column) for column in table.columns)
        return rows


class TellsItsBlocks(Planted):
    """Reports say how many blocks were counted, and there is one more for each hundred rows."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = 0

    def load(self, table: Any) -> Any:
        self.blocks = -(-table.rows // 100)
        return super().load(table)

    def counting_summary(self) -> str | None:
        return f"blocks: {self.blocks}"


class KnowsTables(Planted):
    """A table with a schema and a number of rows as before is not loaded again."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def load(self, table: Any) -> Any:
        key = table.schema.fingerprint, table.rows
        if key not in self.known:
            self.known[key] = super().load(table)
        return self.known[key]


class KeepsTables(Planted):
    """A table that was read before, by its place, is not read again."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def open(self, files: TableFiles) -> Any:
        place = (files.path, files.schema.fingerprint, files.unit, files.out_of_domain)
        if place not in self.known:
            self.known[place] = super().open(files)
        return self.known[place]


class PrintsItsCounts(Planted):
    """A line that somebody needed once."""

    def counts(self, rows: Any, functions: Any) -> Any:
        found = super().counts(rows, functions)
        print("counted", *(counts.sum() for counts in found))
        return found


class LogsItsTables(Planted):
    def load(self, table: Any) -> Any:
        logging.getLogger("engine").info("loaded %s rows", table.rows)
        return super().load(table)


class LeavesATrace(Planted):
    """A file that says what was counted, for the next time that it is slow."""

    trace: ClassVar[str] = ""

    def counts(self, rows: Any, functions: Any) -> Any:
        found = super().counts(rows, functions)
        with open(self.trace, "a", encoding="utf-8") as file:
            file.write(f"{found}\n")
        return found


PLANTED: dict[type[Planted], str] = {
    PrintsItsCounts: "what it prints or logs follows from the rows, as in .'counted 901'",
    LogsItsTables: "what it prints or logs follows from the rows, as in .'loaded 901 rows'",
    LeavesATrace: "after it is closed, a file is left that it wrote: .*trace.txt",
    ReusesItsSample: "a second sample of the same rows .*as if the first were reused",
    DropsARow: r"large blocks: 82,9\d\d rows are counted of 83,001: rows are lost",
    DropsMissing: "rows with a missing cell are lost",
    FloatSums: "sums are rounded, as if they were added up in floating point",
    MergesParts: r"part \d by \D+: (\d+ rows are counted of \d+: rows are counted twice|.* merged)",
    LosesOrder: "map does not give the rows in their order",
    BlocksOutOfOrder: "map does not give the rows in their order",
    BoundsPerFile: "9 people keep .* rows of 18: rows are bounded in each block or file",
    FirstInEachBlock: r"places: the places hold \[1\d, \d\] rows, and each should hold 9, one for each person",
    TakesTheOthers: "a sample is not of the rows that were drawn",
    SampleMovesRows: "a sample changed the rows that it was drawn from",
    Capped: r"a count of \d\d,\d\d\d stops at 65,535: counts are capped",
    FirstGroups: r"a cross table of thousands of cells: \d\d,\d\d\d rows are counted of 83,001: rows are lost",
    CountsByName: "functions that are counted in one call do not have the counts that they have alone",
    OneCache: "counts that are kept for some rows are given for others",
    WrongSurroundings: "related_caches does not give the whole, and the other parts",
    EmptySurroundings: "related_caches does not give the whole, and the other parts",
    CountsTwice: "number says 41 rows, and there are 40",
    AcceptsNarrow: "counts in 8 bits, which may wrap round, are accepted",
    FirstForAll: "counts_of returns other counts for several sets of rows than counts does",
    DropsAll: "dropping one table changes another",
    SamplesRowsOfUnits: "a sample holds some rows of a person, and not the others|one draw for each person",
    LoadsFirstBlock: r"a loaded table, all rows: \d+ rows are counted of 43: rows are lost",
    ForgetsAfterAFailure: "after a failure the rows are not there any more",
    NegatesMissing: "part 1 by cases of negations: .* rows are counted twice",
    DerivesOnce: "rows with an attribute of the same name, derived by other cases: as many rows as expected",
    FewParts: r"the part that is left after many splits: \d+ rows are counted of \d+: rows are counted twice",
    DerivesByPosition: r"part \d with a derived attribute: as many rows as expected, but in other cells",
    ReadsAnything: "files are opened that are refused in memory",
    ReadsByTypes: "two texts stand for a missing cell: labels: as many rows as expected, but in other cells",
    KnowsTwoPolicies: "numbers outside of their bounds are missing: labels and costs: as many rows as expected",
    Shows: "a handle shows the number of its rows",
    SendsItsRows: "a handle pickles with its rows",
    KeepsTables: "rows are kept from an earlier table of the same place: all rows: 43 rows are counted of 32",
    KnowsTables: "rows are kept from an earlier table of the same place: all rows: as many rows as expected, but",
    TellsItsBlocks: "the text of `counting_summary`, for reports, follows from the rows: 'blocks: 1' and 'blocks: 10'",
}


def failures(kind: type[dpf.Engine], folder: Path) -> Iterator[str]:
    """Run the suite on an engine, and yield the sentence of each test that fails."""
    suite = type("TestOne", (EngineConformance,), {"build_engine": classmethod(lambda cls: kind())})
    suite.setup_class()
    for name, test in inspect.getmembers(suite, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        for k, tried in enumerate(marks[0].args[1] if marks else [None]):
            place = folder / f"{name}-{k}"
            place.mkdir()
            given = {"tmp_path": place, **({marks[0].args[0]: tried} if marks else {})}
            wanted = {key: value for key, value in given.items() if key in inspect.signature(test).parameters}
            try:
                test(suite(), **wanted)
            except pytest.skip.Exception:
                continue
            except Exception as failure:
                yield str(failure)
    suite.teardown_class()


@pytest.mark.parametrize("planted", PLANTED, ids=lambda kind: kind.__name__)
def test_the_suite_names_what_is_planted(
    planted: type[Planted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LeavesATrace, "trace", str(tmp_path / "trace.txt"))
    found = []
    for sentence in failures(planted, tmp_path):
        found.append(sentence)
        if re.search(PLANTED[planted], sentence):
            return
    pytest.fail("\n".join(found) or "the suite passes it")


def test_what_the_planted_engines_are_made_from_passes(tmp_path: Path) -> None:
    assert list(failures(Planted, tmp_path)) == []


def test_whose_a_row_is_goes_round_the_files(tmp_path: Path) -> None:
    """Else a bound for each file would be the bound for all."""
    from dpframework.verify.tables.engine_tables import PERSON, write

    files = write(tmp_path, (40, 1, 30), unit=PERSON)
    ids = [pl.read_parquet(place)["person"].n_unique() for place in sorted(Path(files.path[0]).iterdir())]
    assert ids == [9, 1, 9]


class CountsKeysItself(Planted):
    """Counts keys where its rows lie."""

    gathers = False

    def tally(self, *given: Any) -> Any:
        return super().tally(*given)


@pytest.mark.parametrize(
    ("kind", "changes", "tried"),
    [
        (Planted, {"gathers": True, "groups": False}, True),
        (Planted, {"gathers": True, "groups": True}, False),
        (Planted, {"gathers": False, "groups": False}, False),
        (CountsKeysItself, {"gathers": False, "groups": False}, True),
        (CountsKeysItself, {"gathers": False, "groups": True}, False),
    ],
)
def test_keys_of_people_are_tried_on_engines_that_count_keys(
    kind: type[Planted], changes: dict[str, bool], tried: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Suite(EngineConformance):
        __test__ = False
        engine = kind()

        @classmethod
        def build_engine(cls) -> dpf.Engine:
            return kind()

        def _require_people(self, what: str, files: TableFiles, *, sampled: bool = True) -> None:
            assert not sampled
            asked.append(what)

    for name, value in changes.items():
        monkeypatch.setattr(kind, name, value)
    with contextlib.suppress(pytest.skip.Exception):
        Suite().test_a_person_counts_once_for_each_key(tmp_path)
    assert asked == ["keys of people"] * tried


@pytest.mark.parametrize("mapped", [False, True])
def test_a_table_is_loaded_as_runs_give_it_to_the_engine(
    mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mapped into memory from files, for an engine that takes it so."""
    read, asked = TableFiles.read, []

    def noted(self: TableFiles, *, mapped: bool = False) -> dpf.Table:
        asked.append(mapped)
        return read(self, mapped=mapped)

    monkeypatch.setattr(TableFiles, "read", noted)
    kind = type("Mapped", (Planted,), {"mapped": mapped})
    suite = type("TestOne", (EngineConformance,), {"build_engine": classmethod(lambda cls: kind())})
    suite.setup_class()
    suite().test_a_table_that_is_loaded_counts_as_its_files_do(tmp_path)
    suite.teardown_class()
    assert asked == [False, mapped]
