"""What a hostile worker or scheduler sends is read as plain data: it runs nothing in the client, which adds noise."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.errors import DoesNotFit, NotOpened
from dpframework.tables.cluster_worker_answers import (
    AbsentAnswer,
    FailureAnswer,
    ReadAnswer,
    ShuffleAnswer,
    UnreachableAnswer,
    answer_of,
    pack_answer,
)
from dpframework.tables.column_encoding import Unfit
from dpframework.tables.shuffle_by_id_hash import IdFinding, ShuffleFindings
from dpframework.tables.table_builder import RowFindings

msgpack = pytest.importorskip("msgpack", reason="the extra 'dask' is not installed")

ARRAYS = [np.arange(6, dtype=np.int64).reshape(2, 3), np.array(7, dtype=np.uint8), np.zeros((0, 2), dtype=np.int32)]


class Touches:
    """Write a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return (Path.touch, (self.file,))


@pytest.mark.parametrize(
    "answer",
    [
        AbsentAnswer(),
        UnreachableAnswer(),
        ShuffleAnswer(ShuffleFindings(frozenset({(IdFinding.TWICE, 1)}), frozenset({("age", Unfit.BEYOND)}))),
        FailureAnswer("ValueError"),
        FailureAnswer("InputError", dpf.InputError("t.csv: is empty")),
        FailureAnswer("NotOpened", NotOpened("t.csv: there is no such file")),
        FailureAnswer("DoesNotFit", DoesNotFit("too many rows", kind="max_rows")),
        ReadAnswer(RowFindings(7, (frozenset({Unfit.BEYOND, Unfit.MISSING}), frozenset())), b"digest"),
        {"python": "3.13"},
        12,
        [],
    ],
    ids=lambda answer: type(answer).__name__,  # a set in an answer has no order to be named by
)
def test_an_answer_is_read_as_it_was_written(answer: Any) -> None:
    found = answer_of(pack_answer(answer))
    if isinstance(answer, FailureAnswer) and answer.error is not None:
        assert isinstance(found, FailureAnswer)
        assert type(found.error) is type(answer.error)
        assert str(found.error) == str(answer.error)
        assert getattr(found.error, "kind", "") == getattr(answer.error, "kind", "")
    else:
        assert found == answer


def test_arrays_are_read_as_they_were_written() -> None:
    found = answer_of(pack_answer(ARRAYS))
    assert isinstance(found, list)
    for one, other in zip(ARRAYS, found, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert (one == other).all()
        assert other.flags.writeable


def hostile(file: Path) -> list[Any]:
    """Return answers that no worker of ours gives; the first ones write the file if anybody unpickles them."""
    bomb = pickle.dumps(Touches(file))
    forms: list[Any] = [
        {"counts": [["object", [1], bomb]]},
        {"counts": [["float64", [1], bytes(8)]]},
        {"counts": [["int64", [2], bytes(8)]]},
        {"counts": [["int64", [-1, -1], bytes(8)]]},
        {"counts": [["int64", [1 << 62, 4], b""]]},
        {"counts": [["int64", [True], bytes(8)]]},
        {"counts": bomb},
        {"ids": [["TWICE", True]], "unfit": []},
        {"ids": [["NOBODY", 0]], "unfit": []},
        {"ids": [], "unfit": [[7, "BEYOND"]]},
        {"ids": bomb, "unfit": []},
        {"rows": "7", "unfit": [], "digest": b""},
        {"rows": 7, "unfit": [["__class__"]], "digest": b""},
        {"failed": "x", "error": ["SystemExit", "x", ""]},
        {"failed": "x", "error": ["InputError", 3, ""]},
        {"versions": {"python": bomb}},
        {"number": 1.5},
        {"number": True},
        {"number": 1, "counts": []},
        [],
        3,
        None,
    ]
    return [bomb, Touches(file), "text", None, *map(msgpack.packb, forms), b"", b"\xc1", b"\x81" * 100_000]


def test_what_no_worker_writes_is_refused_and_never_unpickled(tmp_path: Path) -> None:
    file = tmp_path / "written by an attacker"
    pickle.loads(pickle.dumps(Touches(file)))
    assert file.exists()  # whoever unpickles it runs it
    file.unlink()
    for content in hostile(file):
        with pytest.raises(dpf.InputError, match="a worker's answer is not in dpframework's format"):
            answer_of(content)
    assert not file.exists()


def fake_scheduler(file: Path) -> tuple[str, Any]:
    """Listen as a Dask scheduler that answers each message with a pickle; return its address, and what ends it."""
    import asyncio
    import threading

    from distributed.comm import listen
    from distributed.protocol import to_serialize
    from distributed.protocol.serialize import ToPickle

    loop, started, address = asyncio.new_event_loop(), threading.Event(), ""

    async def answer(comm: Any) -> None:
        for number in range(1000):
            await comm.read()
            bomb = ToPickle(Touches(file)) if number % 2 == 0 else to_serialize(Touches(file))
            await comm.write({"status": "OK", "type": "Scheduler", "workers": bomb})

    async def begin() -> Any:
        nonlocal address
        listener = await listen("tcp://127.0.0.1:0", answer)
        address = listener.contact_address
        started.set()
        return listener

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(begin(), loop)
    assert started.wait(10)
    return address, lambda: loop.call_soon_threadsafe(loop.stop)


@pytest.mark.filterwarnings("ignore")
def test_a_hostile_scheduler_runs_nothing_in_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    pytest.importorskip("cryptography", reason="the extra 'dask' is not installed")
    file = tmp_path / "written by an attacker"
    address, end = fake_scheduler(file)
    monkeypatch.setattr("dpframework.tables.dask_client.PATIENCE", 2.0)
    try:
        with pytest.raises(dpf.InputError, match="no Dask scheduler can be reached at"):
            dpf.Dask(address, trust_network=True)._connect()
        assert not file.exists()
        with contextlib.suppress(Exception):  # of whatever class
            distributed.Client(address, timeout=2)
        assert file.exists()  # a client of Dask's own runs it
    finally:
        end()
