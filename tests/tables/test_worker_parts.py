"""What travels between processes that read, piece by piece: answers, messages, settings, and numbers by hash."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from collections import Counter
from types import SimpleNamespace
from typing import Any

import msgpack
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.errors import DoesNotFit, NotOpened
from dpframework.tables import dask_client, dask_unpickle_filter as plain
from dpframework.tables.cluster_worker_answers import (
    MISMATCH,
    AbsentAnswer,
    FailureAnswer,
    ReadAnswer,
    ShuffleAnswer,
    TallyAnswer,
    UnreachableAnswer,
    answer_of,
    pack_answer,
    require_answer,
)
from dpframework.tables.column_encoding import Unfit
from dpframework.tables.dask_client import Connection, _local_settings
from dpframework.tables.shuffle_by_id_hash import (
    IdFinding,
    Shuffle,
    ShuffleFindings,
    SpreadPiece,
    findings_of,
    frames_of,
    numbers_by_hash,
    pack,
    pack_frames,
    require_all_fit,
    unpack,
)
from dpframework.tables.table_builder import RowFindings
from dpframework.tables.unread_table_files import TableFiles

WAYS = list(Unfit)
FINDINGS = ShuffleFindings(frozenset({(IdFinding.TWICE, 1), (IdFinding.UNFIT, 0)}), frozenset({("a", WAYS[0])}))
ANSWERS: list[Any] = [
    AbsentAnswer(),
    UnreachableAnswer(),
    ShuffleAnswer(FINDINGS),
    ShuffleAnswer(ShuffleFindings()),
    FailureAnswer("KeyError"),
    FailureAnswer("InputError", dpf.InputError("one sentence")),
    FailureAnswer("NotOpened", NotOpened("no file")),
    FailureAnswer("DoesNotFit", DoesNotFit("too many", kind="max_rows")),
    ReadAnswer(RowFindings(7, (frozenset(), frozenset(WAYS[:2]))), b"digest"),
    TallyAnswer({"b": 2, "a": 1}),
    0,
    7,
    {"numpy": "2", "python": "3"},
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_is_read_as_it_was_packed(answer: Any) -> None:
    found = answer_of(pack_answer(answer))
    if isinstance(answer, FailureAnswer):
        assert (found.kind, type(found.error), str(found.error)) == (answer.kind, type(answer.error), str(answer.error))
        assert getattr(found.error, "kind", "") == getattr(answer.error, "kind", "")
    elif isinstance(answer, TallyAnswer):
        assert list(found.counts.items()) == list(answer.counts.items())
        assert "a" not in repr(found).removeprefix("TallyAnswer(rows are private)")
    else:
        assert found == answer
        assert type(found) is type(answer)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (0, 0, 5)])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64", "uint16"])
def test_counts_travel_with_their_shape_and_type(shape: tuple[int, ...], dtype: str) -> None:
    counts = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    turned = counts.T
    found = answer_of(pack_answer([counts, turned]))
    assert [one.tolist() for one in found] == [counts.tolist(), turned.tolist()]
    assert [(one.dtype, one.shape) for one in found] == [(counts.dtype, shape), (counts.dtype, shape[::-1])]
    assert all(one.flags.writeable for one in found)


def counts_form(name: Any = "int64", shape: Any = (1,), content: Any = bytes(8)) -> dict[str, Any]:
    return {"counts": [(name, shape, content)]}


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"absent": True, "unreached": True},
        {"number": True},
        {"number": 1.0},
        {"number": "1"},
        counts_form("float64"),
        counts_form("object"),
        counts_form("int128"),
        counts_form(shape=(2,)),
        counts_form(shape=(-1, -1)),
        counts_form(shape=(True,)),
        counts_form(content="x" * 8),
        counts_form(content=bytes(7)),
        {"failed": 3, "error": None},
        {"failed": "E", "error": ["InputError", "text"]},
        {"failed": "E", "error": ["KeyError", "text", ""]},
        {"failed": "E", "error": ["InputError", 3, ""]},
        {"rows": 1.0, "unfit": [], "digest": b""},
        {"rows": 1, "unfit": [["NONE"]], "digest": b""},
        {"rows": 1, "unfit": {}, "digest": b""},
        {"rows": 1, "unfit": [], "digest": "text"},
        {"ids": [["TWICE", True]], "unfit": []},
        {"ids": [["NONE", 0]], "unfit": []},
        {"ids": [], "unfit": [[1, WAYS[0].name]]},
        {"versions": {"numpy": 2}},
        {"tallied": [["a", "1"]]},
        [1],
        "text",
    ],
    ids=repr,
)
def test_what_no_worker_writes_is_refused_in_one_sentence(form: Any) -> None:
    with pytest.raises(dpf.InputError, match="answer is not in dpframework's format; check that all workers"):
        answer_of(msgpack.packb(form))
    for content in (None, "text", bytearray(pack_answer(1)), b"\xc1"):
        with pytest.raises(dpf.InputError, match="answer is not in dpframework's format"):
            answer_of(content)


def test_an_answer_of_another_kind_or_of_a_failure_is_an_error() -> None:
    assert require_answer(7, int, "then") == 7
    with pytest.raises(dpf.InputError, match=MISMATCH.partition(";")[0]):
        require_answer(7, list, "then")
    with pytest.raises(DoesNotFit, match="too many"):
        require_answer(ANSWERS[7], int, "then")
    with pytest.raises(dpf.InputError, match="a worker failed with KeyError while it read; run with engine 'memory'"):
        require_answer(FailureAnswer("KeyError"), int, "while it read")
    failed = FailureAnswer("KeyError")
    assert require_answer(failed, FailureAnswer, "then") is failed


# Messages and settings


def test_a_cluster_sends_a_few_classes_only() -> None:
    def read(value: Any) -> Any:
        return plain._Unpickler(io.BytesIO(pickle.dumps(value))).load()

    assert read({"a": [1, 2.0, b"x", None]}) == {"a": [1, 2.0, b"x", None]}
    assert read(bytes) is bytes
    for value in (os.system, Counter, SimpleNamespace(), int):
        with pytest.raises(pickle.UnpicklingError, match="that a cluster has no reason to send"):
            read(value)
    assert not plain._plain_only.get()

    def fails() -> None:
        with plain.plain_messages():
            assert plain._plain_only.get()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not plain._plain_only.get()
    assert plain.client_class()._default_event_handlers == {}
    assert plain.client_class() is plain.client_class()


FILES = {"ca": "/a", "certificate": "/b", "key": "/c"}
TLS, TCP = "tls://10.0.0.1:8786", "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"workers": 1},
        {"address": TLS, **FILES},
        {"address": TCP, "trust_network": True},
        {"address": TLS, **FILES, "key": "~/c"},
        {"address": TLS, **FILES, "trust_network": True},
    ],
    ids=repr,
)
def test_ways_to_reach_a_cluster(given: dict[str, Any]) -> None:
    found = Connection(**given)
    assert "/c" not in repr(found)
    local = found.address is None
    assert isinstance(found.speaking(), contextlib.nullcontext) == local


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"address": "10.0.0.1"}, "the address of a scheduler is a text such as"),
        ({"address": 3}, "the address of a scheduler is a text such as"),
        ({"workers": 0}, "needs a positive number of workers, not 0"),
        ({"workers": True}, "needs a positive number of workers"),
        ({"address": TLS, "workers": 2}, "has its own workers"),
        ({"address": TLS, **FILES, "ca": "a"}, "absolute paths of files, and one is 'a'"),
        ({"address": TLS, **FILES, "key": 3}, "absolute paths of files, and one is 3"),
        ({"trust_network": 1}, "trust_network is true or false, not 1"),
        ({"trust_network": True}, "makes its own certificates"),
        ({"ca": "/a"}, "makes its own certificates"),
        ({"address": TLS}, "needs ca, certificate and key"),
        ({"address": TLS, "ca": "/a", "key": "/c"}, "needs ca, certificate and key"),
        ({"address": TCP}, "is not encrypted"),
        ({"address": TCP, **FILES}, "is not encrypted"),
        ({"address": TCP, "trust_network": True, "ca": "/a"}, "is not encrypted"),
    ],
    ids=repr,
)
def test_ways_that_do_not_fit_together(given: dict[str, Any], words: str) -> None:
    with pytest.raises(dpf.InputError, match=words):
        Connection(**given)


def test_certificates_are_asked_for_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed.security.Security", lambda **options: options)
    assert Connection(TCP, trust_network=True)._security() == {"require_encryption": False}
    own = Connection(TLS, ca="/a", certificate="/b", key="~/c")._security()
    assert own == {
        "tls_ca_file": "/a",
        "tls_client_cert": "/b",
        "tls_client_key": os.path.expanduser("~/c"),
        "require_encryption": True,
    }


class Opened:
    """A cluster or a client that is not started, and tells how it was asked for."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.given, self.options, self.closed = given, options, False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("workers", "of_machine", "expected"), [(2, 5, 2), (None, 5, 5), (None, None, 1)])
def test_a_cluster_here_shows_certificates_and_listens_to_this_machine_alone(
    workers: int | None, of_machine: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed.LocalCluster", Opened)
    monkeypatch.setattr("distributed.Client", Opened)
    monkeypatch.setattr("distributed.security.Security.temporary", lambda: "certificates")
    monkeypatch.setattr(os, "cpu_count", lambda: of_machine)
    with contextlib.ExitStack() as ending:
        client = Connection(workers=workers).open(ending)
        (cluster,) = client.given
        assert (client.closed, cluster.closed) == (False, False)
    assert (client.closed, cluster.closed) == (True, True)
    assert client.options == {"direct_to_workers": True}
    assert cluster.given == ()
    assert cluster.options == {
        "n_workers": expected,
        "threads_per_worker": 1,
        "scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        "security": "certificates",
        "host": "127.0.0.1",
    }


def test_a_foreign_cluster_is_waited_for_as_long_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_client, "client_class", lambda: Opened)
    monkeypatch.setattr("distributed.security.Security", lambda **options: options)
    with contextlib.ExitStack() as ending:
        client = Connection(TCP, trust_network=True).open(ending)
        assert not client.closed
    assert client.closed
    assert client.given == (TCP,)
    assert client.options == {"timeout": 120.0, "security": {"require_encryption": False}}


def test_workers_here_keep_their_memory_and_are_waited_for() -> None:
    found = _local_settings({"MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"})
    assert found["distributed.nanny.pre-spawn-environ"] == {"OMP_NUM_THREADS": "1"}
    assert found["distributed.deploy.lost-worker-timeout"] == "1 hour"
    assert dask_client.PATIENCE == 120


# What a shuffle finds and sends


class Plain(Shuffle[None]):
    spread = gather = settle = None  # type: ignore[assignment]


def shuffle(policy: str) -> Shuffle[None]:
    how = TableFiles("t.csv", dpf.Schema([dpf.Boolean("a")]), out_of_domain=policy, unit=dpf.PrivacyUnit("who", 2))
    return Plain(how, ("t.csv",), 3, b"secret")


def test_a_strict_policy_refuses_what_was_found_of_ids_unfit_first() -> None:
    found = {one: ShuffleFindings(frozenset({(one, 0)})) for one in IdFinding}
    strict, loose = shuffle("error"), shuffle("clamp")
    assert (strict.strict, loose.strict, strict.id) == (True, False, "who")
    loose.require(found[IdFinding.UNFIT])
    for one in (IdFinding.TWICE, IdFinding.MATCHED):
        strict.require(found[one])
    says = {}
    for one in (IdFinding.UNFIT, IdFinding.MISSING):
        with pytest.raises(DoesNotFit, match=r"^t\.csv: the id column 'who'") as refused:
            strict.require(found[one])
        says[one] = str(refused.value)
    with pytest.raises(DoesNotFit) as both:
        strict.require(found[IdFinding.MISSING] | found[IdFinding.UNFIT])
    assert str(both.value) == says[IdFinding.UNFIT] != says[IdFinding.MISSING]
    strict.require(ShuffleFindings(frozenset({(IdFinding.UNFIT, 1)})))  # of another view
    assert repr(strict) == "Plain(t.csv)"
    assert repr(SpreadPiece([b"x"], "state")) == "SpreadPiece(rows are private)"


def test_findings_are_of_a_side_and_refuse_by_attribute() -> None:
    for unfit in (False, True):
        for missing in (False, True):
            ids: Any = SimpleNamespace(any_unfit=unfit, any_missing=missing)
            expected = {(IdFinding.UNFIT, 1)} if unfit else set()
            expected |= {(IdFinding.MISSING, 1)} if missing else set()
            assert findings_of(ids, 1) == expected
    ids = SimpleNamespace(any_unfit=True, any_missing=False)
    assert findings_of(ids) == {(IdFinding.UNFIT, 0)}
    schema = dpf.Schema([dpf.Boolean("a"), dpf.Boolean("b")])
    require_all_fit(schema, ShuffleFindings(unfit=frozenset({("c", WAYS[0])})), "t")
    with pytest.raises(DoesNotFit, match=r"^t: attribute 'b'"):
        require_all_fit(schema, ShuffleFindings(unfit=frozenset({("b", WAYS[0])})), "t")
    with pytest.raises(DoesNotFit, match=r"^t: attribute 'a'"):
        require_all_fit(schema, ShuffleFindings(unfit=frozenset({("b", WAYS[0]), ("a", WAYS[0])})), "t")


def test_messages_are_unpacked_as_they_were_packed() -> None:
    for parts in ([], [b""], [b"a"], [b"ann", b"", b"bob" * 100], [bytes(range(256))] * 3):
        message = pack(parts)
        assert unpack(message) == parts
        assert len(message) == 8 + 8 * len(parts) + sum(map(len, parts))
    frames = [pl.DataFrame({"a": [1, None]}), pl.DataFrame({"b": pl.Series([], dtype=pl.String)})]
    assert [one.to_dict(as_series=False) for one in frames_of(pack_frames(*frames))] == [{"a": [1, None]}, {"b": []}]
    assert [one.dtypes for one in frames_of(pack_frames(*frames))] == [one.dtypes for one in frames]


def test_a_number_by_hash_follows_from_the_id_the_key_and_the_use() -> None:
    ids = pl.Series([f"id {k}" for k in range(2_000)])
    found = numbers_by_hash(ids, b"key", 5, b"bucket")
    assert found.dtype == np.intp
    assert numbers_by_hash(ids.reverse(), b"key", 5, b"bucket").tolist() == found.tolist()[::-1]
    counts = np.bincount(found, minlength=5)
    assert counts.min() > 320
    assert len(counts) == 5
    for key, use in ((b"other", b"bucket"), (b"key", b"order")):
        same = (numbers_by_hash(ids, key, 5, use) == found).mean()
        assert 0.1 < same < 0.3
    assert set(numbers_by_hash(ids, b"key", 1, b"bucket").tolist()) == {0}
