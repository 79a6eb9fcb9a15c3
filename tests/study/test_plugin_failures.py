"""What plugins fail with while they see rows: in a private run their texts are not shown, since they may quote rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.errors import DoesNotFit, NotOpened, QueryStopped, raised_here
from dpframework.tables.in_process_engines import BlockEngine

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
CELL = "row 17: town 'Ulm'"


class Failing(BlockEngine):
    """An engine that fails when it opens files, counts, or sums up what it counted."""

    name = "failing"
    reads_files = True

    def __init__(self, *, opens: Any = None, counts: Any = None, sums_up: Any = None) -> None:
        super().__init__(blocks=1)
        self.errors = opens, counts, sums_up

    def _fail(self, what: int) -> None:
        error = self.errors[what]
        if error is not None:
            raise error

    def open(self, files: Any) -> Any:
        self._fail(0)
        return self.load(files.read())

    def counts(self, rows: Any, functions: Any) -> Any:
        self._fail(1)
        return super().counts(rows, functions)

    def counting_summary(self) -> str | None:
        print(CELL)
        self._fail(2)
        return "counted by nobody"


def study() -> dpf.Study:
    found = dpf.Study(SCHEMA, epsilon=1)
    found.add_plan("n", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)))
    return found


@pytest.fixture
def files(tmp_path: Path) -> dpf.TableFiles:
    pl.DataFrame({"ill": [True, False] * 9}).write_parquet(tmp_path / "0.parquet")
    return dpf.TableFiles(str(tmp_path), SCHEMA)


NOT_SHOWN = "its text is not shown, since it may quote rows"
OPENING: list[tuple[BaseException, str, str]] = [
    (dpf.InputError(CELL), f"reading the table failed with InputError; {NOT_SHOWN}", "table cannot be read"),
    (DoesNotFit(CELL, kind="rows"), "the table breaks what its owner asserts: rows; 'dpframework schema", "rows"),
    (
        DoesNotFit(CELL, kind=CELL),
        f"reading the table failed with DoesNotFit; {NOT_SHOWN}",
        "table cannot be read",
    ),
    (QueryStopped(CELL, kind="query timed out"), "reading the table failed: query timed out", "query timed out"),
    (
        QueryStopped(CELL, kind=CELL),
        f"reading the table failed with QueryStopped; {NOT_SHOWN}",
        "table cannot be read",
    ),
    (dpf.RunStopped(CELL), f"reading the table failed with RunStopped; {NOT_SHOWN}", "table cannot be read"),
    (ValueError(CELL), "reading the table failed with ValueError", "table cannot be read"),
]


@pytest.mark.parametrize(("error", "says", "kind"), OPENING, ids=lambda value: type(value).__name__)
def test_an_engine_that_cannot_open_a_table_quotes_no_row(
    error: BaseException, says: str, kind: str, files: dpf.TableFiles, ledger: dpf.Ledger
) -> None:
    """Neither the run nor the ledger does. A seeded run shows the error as it is."""
    with pytest.raises(dpf.InputError, match=f"^{says}") as told:
        study().run(files, engine=Failing(opens=error))
    assert "Ulm" not in str(told.value)
    assert told.value.__cause__ is told.value.__context__ is None
    with pytest.raises(type(error), match=CELL):
        study().run(files, engine=Failing(opens=error), seed=1)
    engine = Failing(opens=error)
    ledger.approve("people", study().plan(engine), by="ann")
    with pytest.raises(dpf.InputError):
        study().run(files, engine=engine, ledger=ledger.run("people"))
    (run,) = ledger.data_set("people").runs.values()
    assert run.end == f"refused: {kind}"


def test_a_function_that_reads_a_table_quotes_no_row_either() -> None:
    def read() -> dpf.Table:
        raise dpf.InputError(CELL)

    with pytest.raises(dpf.InputError, match=r"^reading the table failed with InputError; its text is not shown"):
        study().run(read)


def test_the_texts_of_errors_of_our_own_are_shown() -> None:
    """They are about the whole file."""
    with pytest.raises(dpf.InputError, match=r"none\.csv"):
        study().run(lambda: dpf.read_table("none.csv", SCHEMA))


def test_an_engine_that_cannot_connect_says_why(files: dpf.TableFiles) -> None:
    """No row was seen."""
    with pytest.raises(NotOpened, match=r"^the warehouse is closed"):
        study().run(files, engine=Failing(opens=NotOpened("the warehouse is closed")))


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (QueryStopped(CELL, kind="query cancelled"), "was not answered: query cancelled$"),
        (QueryStopped(CELL, kind=CELL), "failed with QueryStopped; to see where"),
        (dpf.InputError(CELL), "failed with InputError; to see where"),
    ],
)
def test_an_engine_that_cannot_count_quotes_no_row(error: Exception, says: str, files: dpf.TableFiles) -> None:
    with pytest.raises(dpf.InputError, match=says) as told:
        study().run(files, engine=Failing(counts=error))
    assert "Ulm" not in str(told.value)
    with pytest.raises(type(error), match=CELL):
        study().run(files, engine=Failing(counts=error), seed=1)


class UlmInterrupt(KeyboardInterrupt):
    """A request to end the process, in a class whose name is a cell."""


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (SystemExit(CELL), SystemExit(1)),
        (SystemExit((CELL, 37)), SystemExit(1)),
        (SystemExit(37), SystemExit(1)),
        (SystemExit(0), SystemExit(1)),
        (SystemExit(143), SystemExit(143)),
        (KeyboardInterrupt(CELL), KeyboardInterrupt()),
        (UlmInterrupt(), KeyboardInterrupt()),
        (GeneratorExit(CELL), GeneratorExit()),
        (type("Ulm", (BaseException,), {})(CELL), SystemExit(1)),
    ],
)
def test_an_engine_that_ends_the_process_tells_nothing_else(
    asked: BaseException, shown: BaseException, files: dpf.TableFiles
) -> None:
    """Python would print a text, and the shell the exit code."""
    for place in ("opens", "counts"):
        if place == "counts" and isinstance(asked, KeyboardInterrupt):
            shown = dpf.RunStopped("step 'n': interrupted")  # the results of earlier steps are kept
        else:
            with pytest.raises(type(asked)) as open_run:
                study().run(files, engine=Failing(**{place: asked}), seed=1)
            assert open_run.value is asked
        with pytest.raises(type(shown)) as ended:
            study().run(files, engine=Failing(**{place: asked}))
        assert (type(ended.value), ended.value.args) == (type(shown), shown.args)
        assert (ended.value.__context__, ended.value.__cause__) == (None, None)


def test_an_engine_without_a_summary_loses_no_result(files: dpf.TableFiles, capsys: pytest.CaptureFixture[str]) -> None:
    found = study().run(files, engine=Failing(sums_up=ValueError(CELL)))
    assert list(found) == ["n"]
    assert str(found.counting_summary).startswith("its summary is missing: engine 'failing' failed with ValueError;")
    assert study().run(files, engine=Failing()).counting_summary == "counted by nobody"
    assert "Ulm" not in "".join(capsys.readouterr())


def test_an_error_is_our_own_if_our_code_raises_it() -> None:
    with pytest.raises(dpf.InputError) as ours:
        dpf.Schema([])
    assert raised_here(ours.value)
    theirs = dpf.InputError(CELL)
    assert not raised_here(theirs)
    with pytest.raises(dpf.InputError):
        raise theirs
    assert not raised_here(theirs)


@attrs.frozen
class Boundless(dpf.Miner):
    """A miner whose bounds have a bug."""

    name = "boundless"

    def plan(self, schema: dpf.Schema) -> Any:
        return dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))

    def mine(self, table: Any) -> Any:
        return table.release("n")

    def error_bounds(self, part: Any) -> Any:
        return part.bounds["n"]


def test_a_miner_that_cannot_state_its_error_is_named_and_not_the_check_that_asks() -> None:
    found = dpf.Study(SCHEMA, epsilon=1)
    found.add("m", Boundless())
    says = r"^result 'm': miner 'boundless' fails to state its error bounds or costs \(AttributeError: "
    with pytest.raises(dpf.InputError, match=says):
        found.plan().check()


def test_a_cell_that_a_plugin_hands_to_our_own_code_is_not_shown(files: dpf.TableFiles) -> None:
    class Careless(Failing):
        def open(self, files: Any) -> Any:
            dpf.Numeric("age", 17, 17)  # as an engine may call it with the smallest and the largest cell
            return super().open(files)

    with pytest.raises(dpf.InputError, match="InputError; its text is not shown") as shown:
        study().run(files, engine=Careless())
    assert "17" not in str(shown.value)
    with pytest.raises(dpf.InputError, match="17 and 17"):
        study().run(files, engine=Careless(), seed=1)  # of a table that is not private
