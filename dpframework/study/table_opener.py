"""Open a study's table after the checks. If opening fails because of the rows, the ledger records the failure."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

import attrs

from dpframework.facts.calendar_periods import Period
from dpframework.facts.errors import (
    KINDS,
    DoesNotFit,
    DPFrameworkError,
    InputError,
    NotOpened,
    QueryStopped,
    bare_request,
    is_failure,
    raised_here,
)
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.mechanisms.randomness import Randomness
from dpframework.run.run_recorder_interface import Recorder
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.study.table_or_table_source import Given
from dpframework.study.table_place import require_read_for
from dpframework.tables.coded_table import Table
from dpframework.tables.engine_base import Engine, Rows
from dpframework.tables.output_suppression import silenced
from dpframework.tables.table_builder import require_public_counts
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles


def open_table(
    plan: StudyPlan,
    given: Given,
    engine: Engine,
    randomness: Randomness,
    ledger: Recorder | None,
    values: Collection[str] | None,
) -> tuple[Table | Rows, Period | None]:
    """Return a run's table, or the engine's handle of the rows if it reads them itself, and the period of the rows.

    First the ledger records that the table will be read, unless it is in memory. If reading fails because of the rows,
    the ledger records the kind of failure, and a private run quotes no row. `NotOpened` errors use up no approval.

    Parameters
    ----------
    plan, given, engine, randomness, ledger
        The plan, the data, the engine, the randomness and the recorder (or None) of the run.
    values
        The attributes whose raw values are kept; None for all.
    """
    if ledger is not None and not isinstance(given, Table):
        ledger.read()
    try:
        with _silence(randomness):
            loaded = given() if callable(given) else given
        if isinstance(loaded, TableFiles | DatabaseTable):
            loaded = _unread(plan, loaded, engine, ledger, values)
            if engine.reads_itself:
                with _silence(randomness):  # cells that leave a database are encoded here
                    opened: Any = loaded
                    return engine.open(opened), loaded.unit.span
            assert isinstance(loaded, TableFiles)
            loaded = loaded.read(mapped=engine.mapped)
        elif engine.reads_itself:
            what = "tables" if engine.reads_tables else "files"
            raise NotOpened(f"engine '{engine.name}' reads {what} itself; give the study {_source_for(engine)}")
        if isinstance(loaded, Table) and loaded.schema.fingerprint == plan.facts.fingerprint:
            require_public_counts(loaded.schema, loaded.rows, "the table")
    except NotOpened:
        raise
    except BaseException as error:
        if ledger is not None and is_failure(error):
            ledger.refused(_known_kind(error) or "table cannot be read")
        if not randomness.private:
            raise
        ended = InputError(_failure_text(error)) if is_failure(error) else bare_request(error)
    else:
        if not isinstance(loaded, Table):
            raise InputError(
                f"a study runs on a table (see dpf.read_table), files (dpf.TableFiles) or dpf.DatabaseTable, not on "
                f"{type(loaded).__name__}"
            )
        plan.require_schema(loaded.schema)
        require_read_for(plan.unit, loaded.unit, loaded.key, ledger)
        own = group_rows(loaded, plan.unit, placed=plan.reads_places) if plan.reads_units else loaded.with_units(None)
        return own.with_values(values), loaded.unit.span
    raise ended  # outside of the `except` block, so that Python does not attach the original error


def group_rows(table: Table, unit: PrivacyUnit, *, placed: bool = False) -> Table:
    """Return a table that knows each row's unit, for sampling whole units or counting each unit once per key.

    With `placed`, the table also knows the position of each row among the rows of its unit. If each row is a unit, the
    position is always the first.

    Raises
    ------
    InputError
        If units may have several rows, and the table was read without their ids.
    """
    if table.unit_codes is not None or not (unit.groups_rows or placed):
        return table
    if unit.groups_rows and table.unit.rows > 1:
        raise InputError(
            "the plan samples whole units, reads some of their rows or counts their keys, and the table does not say "
            f"which unit each row belongs to; read it with its {unit.id}, or give Table.with_units"
        )
    return table.with_units(range(table.rows))


def _unread(
    plan: StudyPlan,
    given: TableFiles | DatabaseTable,
    engine: Engine,
    ledger: Recorder | None,
    values: Collection[str] | None,
) -> TableFiles | DatabaseTable:
    """Return files or a table in a database, with all settings that the plan and the engine need to open them.

    Raises
    ------
    NotOpened
        If their schema or unit is not the plan's, or the engine cannot open them.
    """
    try:
        plan.require_schema(given.schema)
        if engine.bounds_units:
            key = ledger.key if given.key is None and ledger is not None else given.key
            given = attrs.evolve(given, key=key)
            require_read_for(plan.unit, given.unit, key, ledger)
    except InputError as error:
        raise NotOpened(str(error)) from None
    if (given.unit.id, given.unit.period) != (plan.unit.id, plan.unit.period):
        raise NotOpened(f"the study protects {plan.unit}, and its files are read for {given.unit}")
    reads_files = engine.reads_files or not engine.reads_tables
    if isinstance(given, DatabaseTable) and not engine.reads_tables:
        raise NotOpened(
            f"engine '{engine.name}' cannot read tables of a database; give the study {_source_for(engine)}, or choose "
            "engine 'duckdb' or 'postgres'"
        )
    if isinstance(given, TableFiles) and not reads_files:
        raise NotOpened(f"engine '{engine.name}' cannot read files; give the study {_source_for(engine)}")
    require_joined(engine, given)
    return attrs.evolve(given, values=values, ordered=plan.index.samples, placed=plan.reads_places)


def require_joined(engine: Engine, given: TableFiles | DatabaseTable) -> None:
    """Refuse files of two views if the engine reads files itself and cannot join two views.

    Raises
    ------
    NotOpened
        If the engine cannot join the views.
    """
    views = isinstance(given, TableFiles) and given.right is not None
    if views and engine.reads_files and not engine.joins_views:
        raise NotOpened(
            f"engine '{engine.name}' cannot join the files of two views; join them into one file, or use another engine"
        )


def _source_for(engine: Engine) -> str:
    """Return code, as text, that makes the data for an engine that reads data itself."""
    files = "dpf.TableFiles(path, schema)" if engine.reads_files or not engine.reads_tables else ""
    table = "dpf.DatabaseTable(name, schema)" if engine.reads_tables else ""
    return " or ".join(filter(None, (files, table)))


def _silence(randomness: Randomness) -> contextlib.AbstractContextManager[None]:
    return silenced(streams=True) if randomness.private else contextlib.nullcontext()


def _known_kind(error: BaseException) -> str | None:
    """Return the kind of an error about rows or a query; None if it is not in `KINDS`. A plugin may give any text."""
    kind = error.kind if isinstance(error, DoesNotFit | QueryStopped) else None
    return kind if kind in KINDS else None


def _failure_text(error: BaseException) -> str:
    """Return the message of a private run about a table that could not be read.

    It shows the text of an error that dpframework's own code raised. The text of a plugin's error may quote rows.
    """
    kind, known = _known_kind(error), raised_here(error)
    if isinstance(error, DoesNotFit) and kind is not None:
        return (
            f"the table breaks what its owner asserts: {kind}; 'dpframework schema check' tells the owner more, and "
            "another run needs an approval of its own"
        )
    if isinstance(error, QueryStopped) and kind is not None and not known:
        return f"reading the table failed: {kind}"
    if isinstance(error, InputError) and known:
        return str(error)  # its text is about the whole file, or about names in the schema
    name = type(error).__name__ if type(error).__module__.partition(".")[0] in ("builtins", "dpframework") else None
    more = "; its text is not shown, since it may quote rows" if isinstance(error, DPFrameworkError) else ""
    return f"reading the table failed with {name or 'an error of its own'}{more}"
