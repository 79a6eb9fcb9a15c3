"""The Dask engine: workers read and count, and nothing of a row comes back."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest
from killing import KillsAWorker

import dpframework as dpf
from dpframework.facts.installed_package_digests import distributions
from dpframework.plan.node_kind_table import label_of
from dpframework.study.study_file import load_study
from dpframework.tables import cluster_worker, dask_engine
from dpframework.tables.cluster_table import ClusterRows, OpenedTable
from dpframework.tables.cluster_worker_answers import AbsentAnswer, FailureAnswer, answer_of
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify import EngineConformance

cloudpickle = pytest.importorskip("cloudpickle", reason="the extra 'dask' is not installed")
distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill", view="left"),
        dpf.Categorical("colour", ["red", "green", "blue"], view="left"),
        dpf.Numeric("age", 0, 100, bins=8, view="right"),
        dpf.Numeric("weight", 0, 200, bins=4, view="right"),
    ],
    rows=2000,
)
JOINT = dpf.queries.JointHistogram(SCHEMA.attributes)
SECRET = "a-cell-that-nobody-may-see"
PERSON = 4_607_182_418_800_017  # the first of some ids


def client_of(engine: dpf.Dask) -> Any:
    """Return the client of an engine that has connected: what its workers hold and log, no engine tells."""
    client = engine._client
    assert client is not None
    return client


def forget_pieces(engine: dpf.Dask) -> None:
    """Make an engine forget its workers, as if each had been started anew: none holds a piece."""
    engine._actors.clear()


@functools.cache
def shared() -> dpf.Dask:
    """A cluster for all tests of this process: it takes seconds to start."""
    made = dpf.Dask(workers=2)
    made._connect()
    return made


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[dpf.Dask]:
    yield shared()
    shared().close()
    shared.cache_clear()


def written(folder: Path, rows: int, files: int = 3) -> Path:
    rng = np.random.default_rng(rows)
    age = rng.normal(50, 20, rows)
    frame = pl.DataFrame(
        {
            "ill": rng.random(rows) < np.clip(age / 100, 0.1, 0.9),
            "colour": [("red", "green", "blue", SECRET)[k] for k in rng.integers(0, 4, rows)],
            "age": age,
            "weight": age + rng.normal(30, 10, rows),
        }
    )
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(np.array_split(np.arange(rows), files)):
        frame[part].write_parquet(folder / f"{k}.parquet")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("dask") / "rows", 2000)


class TestDask(EngineConformance):
    @classmethod
    def build_engine(cls) -> dpf.Engine:
        engine = dpf.Dask()
        engine._client = client_of(shared())  # whose certificates are in memory only
        return engine


def study(*miners: tuple[str, dict[str, Any]], relation: str = "replace-one") -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=10 * len(miners), relation=relation)
    for name, parameters in miners:
        made.add(name, dpf.miner(name, epsilon=1, **parameters))
    return made


MINERS = [
    ("dp-id3", {"target": "ill", "max_depth": 3}),
    ("crosstab", {"attributes": ["colour", "ill"]}),
    ("mean", {"attribute": "age"}),
    ("quantile", {"attribute": "weight"}),
    ("dp-dilca", {"attributes": ["colour", "ill"]}),
    ("dp-tree", {"target": "ill", "max_depth": 2}),
    ("alt-mcmc", {"starts": 1, "max_depth": 1}),
    ("serenade-es", {"pairs": 2}),
]


def releases(results: dpf.Results) -> str:
    return str(results.to_dict())


def test_workers_of_this_machine_keep_memory_for_the_next_array(engine: dpf.Dask) -> None:
    """Dask's own setting, which gives it back each time, costs more time than counting does."""
    assert set(client_of(engine).run(os.environ.get, "MALLOC_TRIM_THRESHOLD_").values()) == {
        os.environ.get("MALLOC_TRIM_THRESHOLD_")
    }


def certificates(folder: Path, security: Any) -> dict[str, str]:
    """Write the certificates of a cluster as the files that an engine takes."""
    folder.mkdir()
    texts = {"ca": security.tls_ca_file, "certificate": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: str(folder / name) for name in texts}


def test_a_scheduler_elsewhere_is_reached_by_its_authority_s_certificates_only(
    engine: dpf.Dask, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That also holds for the cluster that an engine starts: another user of the machine cannot speak to it."""
    from distributed.security import Security

    address, made, files = client_of(engine).scheduler.address, study(*MINERS[:3]), TableFiles(place, SCHEMA)
    assert address.startswith("tls://127.0.0.1:")
    expected = made.run(files, seed=5)
    with dpf.Dask(address, **certificates(tmp_path / "own", client_of(engine).security)) as far:
        found = made.run(files, seed=5, engine=far)
        assert found.plan.engine == address
        people, _ = STUDIES["three rows"]
        of_people = TableFiles(visits(tmp_path / "visits"), VISITS, unit=people.unit, key=b"of this test")
        results = [people.run(rows, seed=5, **more) for rows, more in ((of_people, {"engine": far}), (of_people, {}))]
        assert str(results[0]["table"]) == str(results[1]["table"])
    assert [str(found[name]) for name in found] == [str(expected[name]) for name in expected]
    monkeypatch.setattr("dpframework.tables.dask_client.PATIENCE", 2.0)
    strange = certificates(tmp_path / "strange", Security.temporary())
    without = {"address": address.replace("tls", "tcp"), "trust_network": True}
    for given in ({"address": address, **strange}, without):
        with pytest.raises(
            dpf.InputError, match=r"no Dask scheduler can be reached at .*: (OSError|.*Error); check that"
        ):
            dpf.Dask(**given)._connect()


def test_a_study_has_the_results_that_it_has_in_memory(engine: dpf.Dask, place: Path) -> None:
    made, files = study(*MINERS), TableFiles(place, SCHEMA)
    expected = made.run(files, seed=5)
    found = made.run(lambda: files, seed=5, engine=engine)
    assert [str(found[name]) for name, _ in MINERS] == [str(expected[name]) for name, _ in MINERS]
    assert found.spent == expected.spent


def test_derived_columns_are_those_of_memory(engine: dpf.Dask, place: Path) -> None:
    derive = [
        dpf.derive("bmi", "weight / (age + 1)", bins=8, view="left"),
        dpf.derive("group", "colour + text(bmi > 2 and not ill)"),
        dpf.derive("warm", "colour", lookup={"red": True}),
    ]
    schema = attrs.evolve(SCHEMA, derive=derive)
    made = dpf.Study(schema, epsilon=20, relation="replace-one")
    made.add("tables", dpf.miner("crosstab", attributes=["bmi", "group", "warm"], epsilon=9))
    made.add("mean", dpf.miner("mean", attribute="bmi", epsilon=9))
    files = dpf.TableFiles(place, schema)
    found, expected = made.run(files, engine=engine, seed=3), made.run(files.read(), seed=3)
    assert [found[name].to_dict() for name in found] == [expected[name].to_dict() for name in expected]


VISITS = dpf.Schema(
    [dpf.Boolean("ill"), dpf.Categorical("ward", ["x", "y"], missing=True), dpf.Numeric("cost", 0, 100, bins=8)]
)
PEOPLE = dpf.Schema(
    VISITS.attributes,
    derive=[
        dpf.derive("ever", "any(ill)", per="unit"),
        dpf.derive("began", "first(ward)", per="unit"),
        dpf.derive("total", "sum(cost)", per="unit", lower=0, upper=3000, bins=8),
        dpf.derive("ended", "last(cost)", per="unit", lower=0, upper=100, bins=4),
    ],
)
MONTH: dict[str, Any] = {"unit": "person", "period": "month", "date": "day"}


def visits(folder: Path, rows: int = 900) -> Path:
    """Write visits of 60 people. Their ids are whole numbers in one file, floats in another, and texts in the last."""
    rng = np.random.default_rng(rows)
    folder.mkdir()
    for file, kind in enumerate((pl.Int64, pl.Float64, pl.String)):
        number = rows // 3
        whose = pl.Series(np.where(rng.random(number) < 0.3, PERSON, PERSON + rng.integers(0, 60, number)))
        columns = {
            "person": whose.cast(pl.Int64).cast(kind).set(pl.Series(rng.random(number) < 0.05), None),
            "day": [f"2026-0{1 + k}-11" for k in rng.integers(0, 3, number).tolist()],
            "ill": rng.random(number) < 0.4,
            "ward": rng.choice(["x", "y", SECRET], number),
            "cost": rng.uniform(0, 100, number),
            "town": rng.choice(["Ulm", "Bonn"], number),
        }
        pl.DataFrame(columns).write_parquet(folder / f"{file}.parquet")
    return folder


def of_people(schema: dpf.Schema, **privacy: Any) -> dpf.Study:
    made = dpf.Study(schema, epsilon=9, **privacy)
    names = schema.names
    made.add("table", dpf.miner("crosstab", attributes=list(names[:2]), epsilon=3))
    made.add("mean", dpf.miner("mean", attribute=names[2], epsilon=3))
    made.add("tree", dpf.miner("dp-tree", target=names[0], max_depth=2, epsilon=3))
    return made


STUDIES = {
    "a row of each person": (of_people(VISITS, unit="person"), ""),
    "three rows": (of_people(VISITS, unit="person", rows_per_unit=3), ""),
    "two rows in a month": (of_people(VISITS, rows_per_unit=2, **MONTH), "2026-02"),
    "columns of people": (of_people(PEOPLE, unit="person"), ""),
    "columns of people in a month": (of_people(PEOPLE, **MONTH), "2026-03"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_people_has_the_results_that_it_has_in_memory(name: str, engine: dpf.Dask, tmp_path: Path) -> None:
    """By the same key, also where a worker is lost meanwhile, and ids are of another type in each file."""
    made, month = STUDIES[name]
    unit = made.unit.during(month) if month else made.unit
    files = TableFiles(visits(tmp_path / "visits"), made.schema, unit=unit, key=b"of this test")
    expected, observer = made.run(files.read(), seed=5), KillsAWorker(engine, at=2)
    found = made.run(files, seed=5, engine=engine, observers=[observer])
    assert [str(found[name]) for name in found] == [str(expected[name]) for name in expected]
    assert len(observer.charges) > 2
    assert found.spent == expected.spent


def test_keys_of_people_have_the_results_that_they_have_in_memory(engine: dpf.Dask, tmp_path: Path) -> None:
    schema = dpf.Schema([dpf.Open("town"), VISITS["ill"]])
    made = dpf.Study(schema, epsilon=1, delta="1e-6", unit="person", rows_per_unit=3)
    made.add("keys", dpf.miner("keys", attribute="town", epsilon=1, delta="1e-6"))
    files = TableFiles(visits(tmp_path / "visits"), schema, unit=made.unit, key=b"of this test")
    found, expected = made.run(files, seed=5, engine=engine)["keys"], made.run(files.read(), seed=5)["keys"]
    assert str(found) == str(expected)
    assert "Ulm" in str(expected)


def test_joined_views_have_the_results_that_they_have_in_memory(engine: dpf.Dask, tmp_path: Path) -> None:
    """From a study file, whose rows are joined by the unit's ids."""
    rng = np.random.default_rng(3)
    ids = pl.Series("person", rng.permutation(3000)[:2000])
    whole = pl.read_parquet(written(tmp_path / "whole", 2000) / "*.parquet").with_columns(ids)
    for side, names in (("left", ("ill", "colour")), ("right", ("age", "weight"))):
        (tmp_path / side).mkdir()
        for k, own in enumerate(np.array_split(rng.permutation(2000)[:1800], 3)):
            whole[own].select("person", *names).write_parquet(tmp_path / side / f"{k}.parquet")
    (tmp_path / "schema.toml").write_text(dpf.Schema(SCHEMA.attributes).dumps())
    (tmp_path / "study.toml").write_text(
        """
        data = { left = "left", right = "right", id = "person", schema = "schema.toml" }
        privacy = { epsilon = 9, unit = "person" }
        step = [
            { name = "table", miner = "crosstab", epsilon = 3, params = { attributes = ["ill", "age"] } },
            { name = "mean", miner = "mean", epsilon = 3, params = { attribute = "weight" } },
        ]
        """
    )
    file = load_study(tmp_path / "study.toml")
    files: Any = file.table_files()
    expected, found = file.study.run(file.read(), seed=5), file.study.run(files, seed=5, engine=engine)
    assert [str(found[name]) for name in found] == [str(expected[name]) for name in expected]
    with pytest.raises(dpf.InputError, match="matched by their positions, which only one process can do; name the"):
        engine.open(attrs.evolve(files, id=None, unit=dpf.PrivacyUnit()))


def test_a_worker_that_is_killed_changes_no_release_and_no_charge(engine: dpf.Dask, place: Path) -> None:
    made, files = study(*MINERS[:1]), TableFiles(place, SCHEMA)
    expected, observer = made.run(files, seed=5), KillsAWorker(engine, at=4)
    found = made.run(files, seed=5, engine=engine, observers=[observer])
    assert str(found["dp-id3"]) == str(expected["dp-id3"])
    assert len(observer.charges) > 4
    assert [charge.path for charge in found.charges] == [charge.path for charge in expected.charges]


def test_files_that_change_are_not_read_again_for_a_lost_worker(engine: dpf.Dask, tmp_path: Path) -> None:
    folder = written(tmp_path / "rows", 200, files=2)
    rows = engine.open(TableFiles(folder, dpf.Schema(SCHEMA.attributes)))
    for k in range(2):
        pl.read_parquet(folder / f"{k}.parquet").reverse().write_parquet(folder / f"{k}.parquet")
    forget_pieces(engine)
    with pytest.raises(dpf.InputError, match=r"\d.parquet: changed while the study ran"):
        engine.number(rows)
    engine.drop(rows)


def test_keys_that_nobody_lists_come_back_with_their_counts(engine: dpf.Dask, tmp_path: Path) -> None:
    """Also those of parts, and where each worker was started anew; and a run is the one that it is in memory."""
    folder, schema = written(tmp_path / "rows", 500), dpf.Schema([dpf.Open("colour"), SCHEMA["ill"]])
    files, keys = TableFiles(folder, schema), dpf.queries.Keys("colour")
    rows, memory = engine.open(files), dpf.InMemory()
    expected = keys.evaluate(memory, memory.load(files.read()))
    assert expected.keys == (SECRET, "blue", "green", "red")
    assert (keys.evaluate(engine, rows).keys, keys.evaluate(engine, rows).counts.sum()) == (expected.keys, 500)
    parts = engine.split(rows, SCHEMA["ill"])
    forget_pieces(engine)
    found = [keys.evaluate(engine, part).at(expected.keys) for part in parts]
    assert np.array_equal(np.sum(found, axis=0), expected.counts)
    engine.drop(rows)
    made = dpf.Study(schema, epsilon=1, delta="1e-6")
    made.add("keys", dpf.miner("keys", attribute="colour", each={"histogram": "ill"}, epsilon=1, delta="1e-6"))
    assert str(made.run(files, seed=5, engine=engine)["keys"]) == str(made.run(files, seed=5)["keys"])


def test_an_answer_by_key_is_checked_field_by_field() -> None:
    import msgpack

    from dpframework.tables.cluster_worker_answers import TallyAnswer, pack_answer

    found = answer_of(pack_answer(TallyAnswer({"red": 3})))
    assert isinstance(found, TallyAnswer)
    assert found.counts == {"red": 3}
    assert "red" not in repr(found)
    for wrong in ([["red", 3], ["red", 4]], [["red", True]], [[3, 3]], [["red"]], {"red": 3}):
        with pytest.raises(dpf.InputError, match="answer is not in dpframework's format"):
            answer_of(msgpack.packb({"tallied": wrong}))


def test_a_sample_is_the_same_where_its_rows_are_read_again(engine: dpf.Dask, place: Path) -> None:
    """And so are parts of it; when neither is used any more, nothing is kept of it."""
    rows, generator = engine.open(TableFiles(place, SCHEMA)), np.random.default_rng(0)
    sample = engine.sample(rows, lambda number: generator.random(number) < 0.3)
    part = engine.split(sample, SCHEMA["ill"])[1]
    before = [JOINT.evaluate(engine, one).tolist() for one in (sample, part)]
    assert 400 < np.sum(before[0]) < 800
    forget_pieces(engine)
    assert [JOINT.evaluate(engine, one).tolist() for one in (part, sample)] == before[::-1]
    del sample
    gc.collect()
    engine.number(rows)
    assert JOINT.evaluate(engine, part).tolist() == before[1]
    del part
    gc.collect()
    engine.number(rows)
    assert not rows.table.masks
    engine.drop(rows)


def test_a_study_with_a_sample_has_the_results_that_it_has_in_memory(engine: dpf.Dask, place: Path) -> None:
    schema = dpf.Schema(SCHEMA.attributes)
    made, files = dpf.Study(schema, epsilon=1), TableFiles(place, schema)
    count = dpf.step("rows", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))
    made.add_plan("some", dpf.sample("1/4", count, name="quarter"))
    expected, found = (made.run(files, seed=3, **more)["some"]["quarter"] for more in ({}, {"engine": engine}))
    assert found == expected
    assert 300 < found < 700


def test_workers_forget_parts_that_nobody_has_a_handle_of(engine: dpf.Dask, place: Path) -> None:
    """With the next count; as often as there are any."""
    rows = engine.open(TableFiles(place, SCHEMA))
    for _ in range(2):
        parts = engine.split(rows, SCHEMA["ill"])
        gone = {part.number for part in parts}
        engine.number(parts[0])
        assert not gone & set(rows.table.dropped)
        del parts
        gc.collect()
        assert gone <= set(rows.table.dropped)
        engine.number(rows)
        assert not rows.table.dropped
    engine.drop(rows)


def test_what_rows_were_made_of_is_not_kept_when_a_worker_is_lost(engine: dpf.Dask, place: Path) -> None:
    """Their makings, of which nobody has a handle, are made once more, and forgotten once more."""
    rows = engine.open(TableFiles(place, SCHEMA))
    half = engine.split(rows, SCHEMA["ill"])[0]
    parts = engine.split(half, SCHEMA["colour"])[1:]
    before = [engine.number(part) for part in parts]
    del half
    gc.collect()
    engine.number(rows)
    forget_pieces(engine)
    assert [engine.number(part) for part in parts] == before
    kept = {rows.number, *(part.number for part in parts)}
    assert all(held == kept for held in held_on_workers(engine, rows))
    engine.drop(rows)


def held_on_workers(engine: dpf.Dask, rows: Any) -> list[set[int]]:
    """Return the numbers of the rows that the present workers keep, piece by piece."""

    def numbers(table: int, dask_worker: Any) -> list[set[int]]:
        latest = list(dask_worker.state.actors.values())[-1:]  # a worker that was started meanwhile has none
        return [set(held) for one in latest for (of, _), held in one._pieces.items() if of == table]

    found = [held for one in client_of(engine).run(numbers, rows.table.number).values() for held in one]
    assert found
    return found


def quoting() -> dpf.Query:
    """Return a query that prints what it sees, and raises it; its class is no module's, so that its code travels."""

    class Quoting(dpf.Query):
        name = "quoting"

        def count(self, block: Any, **inputs: Any) -> Any:
            print(f"quoted {block.values('age')}")
            raise ValueError(f"quoted {block.values('age')}")

    return Quoting()


@contextlib.contextmanager
def traffic(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Keep all that this process receives and sends: it is the client's and the scheduler's."""
    import distributed.comm.tcp as tcp

    frames: list[bytes] = []
    read, to = tcp.from_frames, tcp.to_frames

    async def received(given: Any, *args: Any, **more: Any) -> Any:
        frames.extend(bytes(frame) for frame in given)
        return await read(given, *args, **more)

    async def sent(*args: Any, **more: Any) -> Any:
        made = await to(*args, **more)
        frames.extend(bytes(frame) for frame in made)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(tcp, "from_frames", received)
        patched.setattr(tcp, "to_frames", sent)
        yield frames


def test_no_row_value_or_code_travels(engine: dpf.Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cell's text, no value's bytes or digits, no run of codes; and answers do not grow with the rows."""
    schema = dpf.Schema(SCHEMA.attributes)
    sizes, answers, waited = [], [], dpf.Dask._wait_for

    def counted(*given: Any) -> bytes | None:
        answer = waited(*given)
        answers.append(len(answer or b""))
        return answer

    monkeypatch.setattr(dpf.Dask, "_wait_for", counted)
    for rows in (200, 4000):
        files = TableFiles(written(tmp_path / str(rows), rows), schema)
        made = dpf.Study(schema, epsilon=9)
        for name, parameters in MINERS[:4]:
            made.add(name, dpf.miner(name, epsilon=1, **parameters))
        with traffic(monkeypatch) as frames:
            made.run(files, seed=1, engine=engine)
            with pytest.raises(dpf.InputError, match="a worker failed with ValueError while it counted"):
                quoting().evaluate(engine, engine.open(files))
        everything = b"\0".join(frames)
        assert b"actor_execute" in everything  # what is looked at is what travels
        assert b"Quoting" in everything
        table = files.read()
        assert SECRET.encode() not in everything
        for column in table.values.values():
            for value in column[(column > 0) & (column < 100)][:50]:  # bounds are public
                assert value.tobytes() not in everything
                assert repr(float(value)).encode() not in everything
        for codes in table.codes:
            assert codes[:24].tobytes() not in everything
            assert codes.astype(np.int64)[:24].tobytes() not in everything
        sizes.append(max(answers))
        answers.clear()
    assert 100 < sizes[1] <= sizes[0] + 64
    logs = str(client_of(engine).get_worker_logs())
    assert "quoted" not in logs
    assert SECRET not in logs


@pytest.mark.parametrize("name", ["three rows", "columns of people"])
def test_no_id_passes_through_the_client_the_scheduler_or_a_folder(
    name: str, engine: dpf.Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers exchange ids among themselves. This process is the client and the scheduler."""
    made, secret = STUDIES[name][0], "somebody-nobody-may-know"
    folder = visits(tmp_path / "visits")
    for place in folder.iterdir():
        ids = pl.format("{}-{}", pl.lit(secret), pl.col("person").cast(pl.String))
        pl.read_parquet(place).with_columns(ids.alias("person")).write_parquet(place)
    files = TableFiles(folder, made.schema, unit=made.unit, key=b"of this test")

    def counted() -> int:
        from dpframework.tables import shuffle_on_workers

        return len(getattr(shuffle_on_workers, "seen", ()))

    def watched(secret: str) -> None:
        from dpframework.tables import shuffle_on_workers

        usual, seen = shuffle_on_workers.take, []

        def taken(*given: Any) -> Any:
            found = usual(*given)
            seen.extend(one for one in found.values() if secret.encode() in one)
            return found

        shuffle_on_workers.take, shuffle_on_workers.seen = taken, seen  # type: ignore[attr-defined]

    def files_here(dask_worker: Any) -> bytes:
        return b"".join(
            Path(folder, name).read_bytes()
            for folder, _, names in os.walk(dask_worker.local_directory)
            for name in names
        )

    client_of(engine).run(watched, secret)
    with traffic(monkeypatch) as frames:
        made.run(files, seed=1, engine=engine)
        everything = b"\0".join(frames)
    assert sum(client_of(engine).run(counted).values()) >= 2  # what is looked for does travel, between workers
    assert b"actor_execute" in everything
    for text in (secret, SECRET):
        assert text.encode() not in everything
        assert text not in str(client_of(engine).get_worker_logs())
        assert text not in str(client_of(engine).scheduler_info())
        assert all(text.encode() not in found for found in client_of(engine).run(files_here).values())


def test_a_worker_prints_and_tells_nothing_of_a_failure(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    worker, (piece, *_) = cluster_worker.ClusterWorker(), TableFiles(place, SCHEMA).pieces(1)
    read = answer_of(worker.read(1, 0, cloudpickle.dumps((piece, b"key", set()))))
    assert read.found.rows == 667
    asked = (cluster_worker.CountRequest(1, (), (quoting().count,)),), ()
    assert answer_of(worker.counts(1, [0], cloudpickle.dumps(asked))) == FailureAnswer("ValueError")
    assert answer_of(worker.counts(1, [1], cloudpickle.dumps(asked))) == AbsentAnswer()
    assert answer_of(worker.counts(1, [0], b"no pickle")) == FailureAnswer("an error of its own")
    worker.drop(1)
    assert answer_of(worker.counts(1, [0], cloudpickle.dumps(asked))) == AbsentAnswer()
    assert "".join(capfd.readouterr()) == ""


def test_a_failure_in_a_private_run_tells_its_kind_only(engine: dpf.Dask, place: Path) -> None:
    made = study(*MINERS[:1])
    with pytest.raises(dpf.InputError) as caught:
        made.run(TableFiles(place / "none.parquet", SCHEMA), engine=engine)
    assert "there is no such file" in str(caught.value)


GATHERING = [
    ("dp-id3", {"target": "ill", "numeric": "density"}),
    ("dp-tree", {"target": "ill", "sampler": "mcmc", "max_depth": 1}),
    ("dp-additive", {"target": "ill"}),
]


@pytest.mark.parametrize(("miner", "parameters"), GATHERING, ids=[name for name, _ in GATHERING])
def test_what_gathers_rows_is_refused_by_the_plan(miner: str, parameters: dict[str, Any]) -> None:
    """By an engine that gives out counts only, and by every engine for very many rows; the plan says what does."""
    made = study((miner, parameters))
    plan = made.plan()
    for one in (plan, dpf.StudyPlan.from_json(plan.to_json())):
        told = {step.name: label_of(step).endswith(", gathers rows") for _, step in one.placed_steps()}
        assert told == {step.name: step.query.gathers for _, step in plan.placed_steps()}
        assert True in told.values()
    with pytest.raises(dpf.InputError, match=r"gives out counts only, and step .* gathers data of each row"):
        made.plan(dpf.Dask())
    for rows, refused in ((10**8, False), (10**8 + 1, True)):
        large = dpf.Study(attrs.evolve(SCHEMA, rows=rows), epsilon=10, relation="replace-one", allow=["mcmc-converged"])
        large.add("one", dpf.miner(miner, epsilon=1, **parameters))
        with pytest.raises(dpf.InputError, match="more than the 100,000,000 rows") if refused else nullcontext():
            large.plan()


def test_samples_of_units_and_tables_are_refused() -> None:
    sampled = dpf.Study(SCHEMA, epsilon=1, unit="name", rows_per_unit=2)
    count = dpf.step("rows", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))
    sampled.add_plan("some", dpf.sample("1/4", count, name="quarter"))
    with pytest.raises(dpf.InputError, match="engine 'dask' draws no samples of units, and the plan has one"):
        sampled.plan(dpf.Dask())
    with pytest.raises(dpf.InputError, match=r"engine 'dask' reads files itself; give the study dpf.TableFiles"):
        study(*MINERS[:1]).run(dpf.Table.from_codes(SCHEMA, np.zeros((4, 3), int)), engine=dpf.Dask())
    with pytest.raises(dpf.InputError, match="rows do not travel"):
        dpf.Dask().load(dpf.Table.from_codes(SCHEMA, np.zeros((4, 3), int)))
    with pytest.raises(dpf.InputError, match="adds up counts and gathers no rows"):
        dpf.Dask().map(None, len)


def test_workers_of_other_code_are_refused_before_a_file_is_read(
    engine: dpf.Dask, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = cluster_worker.versions(sorted(distributions()))
    assert len(ours["the code of dpframework"]) >= 32  # a digest; each package is told so
    monkeypatch.setattr(dask_engine, "versions", lambda packages: {**ours, "polars": "0.1"})
    forget_pieces(engine)
    with pytest.raises(dpf.InputError, match=r"runs other code: polars \(.*, here 0.1\); install the same"):
        engine.open(TableFiles(place, SCHEMA))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"address": "10.0.0.1"}, "the address of a scheduler"),
        ({"workers": 0}, "a positive number of workers"),
        ({"address": "tcp://10.0.0.1:1", "workers": 2}, "give an address or workers, not both"),
        ({"address": "tcp://10.0.0.1:1"}, "is not encrypted, and anybody on the network can take part in it"),
        ({"address": "tls://10.0.0.1:1"}, "needs ca, certificate and key"),
        ({"address": "tls://10.0.0.1:1", "trust_network": True}, "needs ca, certificate and key"),
        ({"address": "tls://10.0.0.1:1", "ca": "ca.pem"}, "absolute paths of files, and one is 'ca.pem'"),
        ({"address": "tcp://10.0.0.1:1", "trust_network": True, "ca": "/ca.pem"}, "is not encrypted"),
        ({"address": "tcp://10.0.0.1:1", "trust_network": "false"}, "trust_network is true or false, not 'false'"),
        ({"trust_network": True}, "makes its own certificates"),
    ],
)
def test_a_wrong_cluster_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(dpf.InputError, match=why):
        dpf.Dask(**given)


def test_what_is_kept_of_samples_goes_with_each_of_them() -> None:
    """Of all that have been dropped since, not of the first alone."""
    table = OpenedTable(1, [], b"", masks={2: {}, 3: {}, 4: {}}, told={2: {0}, 3: {0}, 4: {0}}, dropped=[2, 3])
    assert sorted(table.take_dropped()) == [2, 3]
    assert (table.masks, table.told, table.dropped) == ({4: {}}, {4: {0}}, [])


def test_what_is_kept_around_parts_is_told_only_where_each_row_is_in_one() -> None:
    """Else the whole, less the other parts, is not the last one: some rows are in none."""
    ill = dpf.Boolean("ill")
    whole = ClusterRows(OpenedTable(1, [], b""), 1)
    for cut in (ill, dpf.Cases([dpf.Equals("ill", "true")])):
        one, other = whole.derive(cut, (2, 3), None)
        assert one.around is not None
        above, others = one.around.of_others()
        assert above is whole.cache
        assert [kept is other.cache for kept in others] == [True]
    (part,) = whole.derive((dpf.Equals("ill", "true"),), (4,), None)
    assert part.around is None
    (derived,) = whole.derive(dpf.Cases([dpf.Equals("ill", "true")]), (5,), dpf.Boolean("told"))
    assert derived.around is None


def test_workers_add_up_integers_only() -> None:
    """Sums of floats would depend on how rows lie on workers."""
    assert cluster_worker._integers(np.array([1, 2])).tolist() == [1, 2]
    with pytest.raises(dpf.InputError, match="counts must be integers"):
        cluster_worker._integers(np.array([1.0, 2.0]))
