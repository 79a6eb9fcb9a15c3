"""Reading shows no cell: no warning, log or print of a library, by file descriptor or the C library's buffers."""

import ctypes
import logging
import os
import select
import sys
import warnings
from decimal import Decimal
from functools import partial

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from dpframework_distance import ValueEmbedding
from dpframework_trees import DPID3Classifier

import dpframework as dpf
from dpframework.cli.progress import progress
from dpframework.tables import NewRows, check_fit, kept_rows
from dpframework.tables.cluster_worker import ClusterWorker
from dpframework.tables.output_suppression import silenced
from dpframework.tables.reading_progress import tell_share

SECRET = "4242424242"
SCHEMA = dpf.Schema([dpf.Numeric("age", 0, 100, bins=2), dpf.Boolean("ill")])
AGES, ILL = [17, 42, 63], ["yes", "no", "yes"]
LIBC = ctypes.CDLL(None)
FULLY, NOT = 0, 2  # buffered, as C numbers it


def tell() -> None:
    """Tell a cell in all ways that libraries have."""
    warnings.warn(SECRET, stacklevel=1)
    logging.getLogger("a.library").critical(SECRET)
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        stream.write(SECRET)
    LIBC.puts(SECRET.encode())
    for descriptor in (1, 2):
        os.write(descriptor, SECRET.encode())


class Loud(Decimal):
    """A cell that tells itself when it is read."""

    told = 0

    def __float__(self):
        Loud.told += 1
        tell()
        return 17.0


class LoudColumn:
    """A column that tells a cell when it becomes an array."""

    def __init__(self, cells):
        self.cells = cells

    def __len__(self):
        return len(self.cells)

    def __array__(self, dtype=None, copy=None):
        Loud.told += 1
        tell()
        return np.array(self.cells, dtype=dtype)


def loud_library(monkeypatch):
    """Have the libraries that read tables tell a cell."""

    def telling(function):
        def called(*args, **kwargs):
            Loud.told += 1
            tell()
            return function(*args, **kwargs)

        return called

    for owner, name in [(pl, "read_csv"), (pl, "scan_parquet"), (pl.LazyFrame, "collect"), (pl.Series, "cast")]:
        monkeypatch.setattr(owner, name, telling(getattr(owner, name)))


def ways_to_read(folder):
    """Return functions that read a table in which a library tells cells, by name."""
    cells = {"age": [Loud(age) for age in AGES], "ill": ILL}
    frame = pl.DataFrame({"age": list(map(str, AGES)), "ill": ILL, "id": ["a", "b", "c"]})
    places = {"csv": folder / "t.csv", "parquet": folder / "t.parquet", "url": (folder / "t.parquet").as_uri()}
    frame.write_csv(places["csv"])
    frame.write_parquet(places["parquet"])
    views = dpf.Schema([dpf.Numeric("age", 0, 100, bins=2, view="left"), dpf.Boolean("ill", view="right")])
    sides = [folder / "left.csv", folder / "right.csv"]
    for side, name in zip(sides, SCHEMA.names, strict=True):
        frame.select("id", name).write_csv(side)
    files, unit = dpf.TableFiles(places["csv"], SCHEMA), dpf.PrivacyUnit("id", 2)
    piece = cloudpickle.dumps((files.pieces(1)[0], b"key", ()))
    frames = {
        "polars": frame,
        "lazy": frame.lazy(),
        "objects": pl.DataFrame({**cells, "age": pl.Series(cells["age"], dtype=pl.Object)}),
        "pandas": pd.DataFrame(cells),
        "pyarrow": pa.table({"age": list(map(str, AGES)), "ill": ILL}),
    }
    X, y, groups = LoudColumn([[age] for age in AGES]), LoudColumn(ILL), LoudColumn([1, 2, 3])
    ids = frame["id"].cast(pl.Categorical)
    codes = [LoudColumn(row) for row in ([0, 1], [0, 1], [1, 0])]
    classes = dpf.Categorical("ill", list(map(str, range(30))))
    options = {"epsilon": 1, "schema": SCHEMA}
    return {
        **{f"read {name}": partial(dpf.read_table, place, SCHEMA) for name, place in places.items()},
        **{f"people of {name}": partial(dpf.read_table, place, SCHEMA, unit=unit) for name, place in places.items()},
        **{f"frame of {name}": partial(dpf.table_from_frame, one, SCHEMA) for name, one in frames.items()},
        "files": files.read,
        "worker": partial(ClusterWorker().read, 0, 0, piece),
        "piece": files.pieces(1)[0].read,
        "views": partial(dpf.read_two_views, *sides, views, id="id"),
        "lists": partial(dpf.table_from_columns, cells, SCHEMA),
        "arrays": partial(dpf.table_from_columns, {n: np.array(c, dtype=object) for n, c in cells.items()}, SCHEMA),
        "codes": partial(dpf.Table.from_codes, SCHEMA, [[0, 1, 1], [0, 1, 0]]),
        "array of codes": partial(dpf.Table.from_codes, SCHEMA, LoudColumn([[0, 1], [0, 1]])),
        "ids": partial(kept_rows, ids, unit, source="ids", key=b"key"),
        "infer": partial(dpf.infer_schema, frames["pandas"]),
        "infer csv": partial(dpf.infer_schema, places["csv"]),
        "infer views": partial(dpf.infer_two_view_schema, *sides, id="id"),
        "check": partial(check_fit, frames["pandas"], SCHEMA),
        "check views": partial(check_fit, sides[0], views, right=sides[1], id="id"),
        "predict": partial(NewRows.read, cells, SCHEMA),
        "classifier": partial(DPID3Classifier(**options, target="ill").fit, X, y, groups),
        "many classes": partial(
            DPID3Classifier(1, schema=SCHEMA.replace(classes), target="ill").fit,
            LoudColumn([[17]] * 30),
            np.arange(30.0),  # of which scikit-learn warns
        ),
        "embedding": partial(ValueEmbedding(**options, context_size=1).fit, cells, groups=[1, 2, 3]),
        "embedding of codes": partial(ValueEmbedding(**options, context_size=1).fit, codes, groups=ids),
    }


def test_no_way_to_read_a_table_shows_a_cell(tmp_path, monkeypatch, capfd, caplog):
    ways = ways_to_read(tmp_path)
    loud_library(monkeypatch)
    silent = {"codes"}  # nothing is left to a library
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for name, read in ways.items():
            before = Loud.told
            read()
            assert (Loud.told > before) == (name not in silent), name
            sys.stdout.flush()
            LIBC.fflush(None)
            assert SECRET not in "".join(capfd.readouterr()), name
            assert SECRET not in caplog.text, name
            assert not warned, name


def test_a_private_run_reads_in_silence_and_a_seeded_one_shows_all(capfd):
    def read():
        tell()
        return dpf.table_from_columns({"age": AGES, "ill": ILL}, SCHEMA)

    class Loader(dpf.InMemory):
        """An engine that reads the files itself, as a plugin's may."""

        reads_files = True

        def open(self, files):
            return self.load(read())

    for seed, shown in ((None, False), (1, True)):
        for engine, given in ((dpf.InMemory(), read), (Loader(), dpf.TableFiles("t.csv", SCHEMA))):
            study = dpf.Study(SCHEMA, epsilon=1)
            study.add("n", dpf.miner("count", epsilon=1))
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                study.run(given, seed=seed, engine=engine)
            LIBC.fflush(None)
            assert (SECRET in "".join(capfd.readouterr())) == shown
            assert (SECRET in str([one.message for one in warned])) == shown


def test_what_was_said_before_and_after_is_shown(capfd, monkeypatch):
    held = open(1, "w", closefd=False)  # noqa: SIM115 - with a buffer, as a library may hold it
    monkeypatch.setattr(sys, "stdout", held)
    stdout, buffer = ctypes.c_void_p.in_dll(LIBC, "stdout"), ctypes.create_string_buffer(4096)
    LIBC.setvbuf(stdout, buffer, FULLY, ctypes.c_size_t(len(buffer)))
    first, second = silenced(streams=True), silenced(streams=True)
    LIBC.puts(b"before")
    for entered in (first, second):
        entered.__enter__()
        held.write(SECRET)
        tell()
    first.__exit__(None, None, None)
    tell()  # the second one has not ended
    assert sys.stderr.name == os.devnull
    second.__exit__(None, None, None)
    held.flush()
    LIBC.puts(b"after")
    LIBC.fflush(None)
    LIBC.setvbuf(stdout, None, NOT, ctypes.c_size_t(0))
    os.write(2, b"error")
    assert logging.root.manager.disable == 0
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("before\nafter\n", "error")


def test_only_reading_drops_what_is_written(capfd):
    """A run's own warnings are dropped, and its output is not."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with silenced():
            warnings.warn("dropped", stacklevel=1)
            print("shown")
    assert capfd.readouterr().out == "shown\n"
    assert warned == []


def test_a_progress_bar_goes_on_while_reading_is_silent(monkeypatch):
    terminal, end = os.openpty()
    with os.fdopen(end, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows no bar
        with progress(), silenced(streams=True):
            tell_share(0.25)
            shown = b""
            while b"file 1 of 1, 25 %" not in shown:
                assert select.select([terminal], [], [], 120)[0], shown
                shown += os.read(terminal, 4096)
    os.close(terminal)


def test_a_terminal_that_cannot_move_its_cursor_shows_no_bar(monkeypatch):
    terminal, end = os.openpty()
    with os.fdopen(end, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "dumb")
        with progress():
            tell_share(0.25)
        stream.flush()
        assert not select.select([terminal], [], [], 0)[0]
    os.close(terminal)
