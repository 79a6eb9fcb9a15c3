"""Nothing tells of keys that were not released: no order, size, dictionary, error, report, fingerprint or seed.

A private run shows the key of one row with a probability of 1e-12 here, so that no test fails by chance.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts.open_attribute import Open
from dpframework.mechanisms import PartitionSelection
from dpframework.mechanisms.randomness import SeededRandomness, SystemRandomness
from dpframework.queries import KeyCounts, Keys
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.tables.column_encoding import encode_column
from dpframework.tables.open_attribute_keys import KeyBook

SECRET = "ullapool-where-one-person-lives"
SCHEMA = dpf.Schema([Open("town"), dpf.Boolean("ill")])
COMMON = ["rome"] * 400 + ["oslo"] * 300


def table(towns: list[str | None]) -> dpf.Table:
    return dpf.table_from_columns({"town": towns, "ill": [k % 2 for k in range(len(towns))]}, SCHEMA)


def study(*, beside: bool = False) -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=2, delta="1e-11")
    made.add("towns", dpf.miner("keys", attribute="town", epsilon=1, delta="1e-12"))
    if beside:
        made.add("rows", dpf.miner("count", where={"equals": ["ill", "true"]}, epsilon=1))
    return made


def written(results: dpf.Results) -> str:
    return "".join((str(results), repr(results), str(results.to_dict()), *map(str, results.values())))


def test_the_key_of_one_row_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    found = study().run(table([*COMMON, SECRET]))
    assert found["towns"].keys == ("oslo", "rome")
    assert SECRET not in written(found)
    assert SECRET.encode() not in pickle.dumps(found.to_dict())
    assert SECRET not in caplog.text


def test_no_file_of_a_run_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.dump(tmp_path / "s.toml")
    rows = "".join(f"{town},1\n" for town in (*COMMON, SECRET))
    (tmp_path / "t.csv").write_text(f"town,ill\n{rows}")
    (tmp_path / "study.toml").write_text(
        'data = { path = "t.csv", schema = "s.toml" }\n'
        'privacy = { epsilon = 1, delta = "1e-11", relation = "add-or-remove-one" }\n'
        'step = [{ name = "towns", miner = "keys", epsilon = 1, params = { attribute = "town", delta = "1e-12" } }]\n'
    )
    code, said = main(["run", "study.toml", "--out", "out"]), capfd.readouterr()
    assert code == 0, said
    read = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert {"results.json", "plan.json", "report.html"} <= set(read)
    assert "rome" in read["results.json"]
    assert not [name for name, text in read.items() if SECRET in text]
    assert SECRET not in said.out + said.err


def test_the_order_of_rows_makes_no_difference() -> None:
    rng = np.random.default_rng(0)
    towns = [*COMMON, *("bergen" for _ in range(60)), SECRET]
    expected = study(beside=True).run(table(towns), seed=3).to_dict()["results"]["towns"]
    for _ in range(3):
        mixed = [towns[k] for k in rng.permutation(len(towns))]
        assert study(beside=True).run(table(mixed), seed=3).to_dict()["results"]["towns"] == expected
    assert expected["keys"] == sorted(expected["keys"])


@pytest.mark.parametrize("more", [0, 1, 500])
def test_a_seeded_run_draws_the_same_elsewhere(more: int) -> None:
    """The number of draws for keys depends on the rows; the noise of what is released next must not."""
    rows = table([*COMMON, *(f"k{k}" for k in range(more))])
    ill = sum(k % 2 for k in range(len(COMMON) + more))
    both = dpf.Study(SCHEMA, epsilon=3, delta="1e-11")
    both.add("towns", dpf.miner("keys", attribute="town", epsilon=1, delta="1e-12"))
    both.add("again", dpf.miner("keys", attribute="town", epsilon=1, delta="1e-12"))
    both.add("rows", dpf.miner("count", where={"equals": ["ill", "true"]}, epsilon=1))
    results = both.run(rows, seed=8)
    noise = results["rows"].value - ill
    alone = dpf.Study(SCHEMA, epsilon=1)
    alone.add("rows", dpf.miner("count", where={"equals": ["ill", "true"]}, epsilon=1))
    assert noise == alone.run(rows, seed=8)["rows"].value - ill
    first, second = (results[name].to_dict()["counts"] for name in ("towns", "again"))
    assert first != second  # each has noise of its own


def test_a_source_for_keys_is_never_the_one_for_others() -> None:
    source = SeededRandomness(1)
    drawn = [tuple(made.words(4).tolist()) for made in (source.apart(), source.apart(), source)]
    assert len(set(drawn)) == 3
    assert SeededRandomness(1).apart().words(4).tolist() == list(drawn[0])
    private = SystemRandomness()
    assert private.apart() is private


def holders() -> Iterator[tuple[str, Any]]:
    rows = table([*COMMON, SECRET])
    engine = dpf.InMemory()
    loaded = engine.load(rows)
    yield "table", rows
    yield "blocks", list(loaded)
    yield "keys of a block", loaded[0].keys("town")
    yield "book", loaded[0].keys("town").book
    yield "answer", answer_of(Keys("town"), engine, loaded, {})
    yield "column", encode_column(SCHEMA["town"], [SECRET])
    yield "empty book", KeyBook([SECRET])


@pytest.mark.parametrize(("name", "held"), list(holders()), ids=lambda one: one if isinstance(one, str) else "")
def test_no_object_on_the_private_side_shows_a_key_or_how_many(name: str, held: Any) -> None:
    for shown in (repr(held), str(held), f"{held}", getattr(held, "_repr_html_", str)()):
        assert SECRET not in shown
        assert "rome" not in shown
        assert "3" not in shown


def test_plans_and_fingerprints_are_the_same_for_all_tables() -> None:
    one, other = study(), study()
    one.run(table(COMMON), seed=1)
    other.run(table([*COMMON, *(f"k{k}" for k in range(999))]), seed=1)
    assert one.plan().to_json() == other.plan().to_json()
    assert one.plan().hash == other.plan().hash
    assert pickle.dumps(one.plan()) == pickle.dumps(other.plan())


def test_the_ledger_and_its_journal_keep_what_was_released_only(tmp_path: Path) -> None:
    ledger = dpf.Ledger.create(tmp_path / "towns.ledger")
    ledger.open("towns", epsilon=5, delta="1e-9")
    made = study()
    ledger.approve("towns", made.plan(), by="board")
    found = made.run(table([*COMMON, SECRET]), ledger=ledger.run("towns", study="towns", by="analyst"))
    assert found["towns"].keys == ("oslo", "rome")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept


def test_what_fails_in_a_private_run_names_no_key() -> None:
    @attrs.frozen
    class Fails(PartitionSelection):  # type: ignore[misc]
        name = "fails"

        def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
            raise ValueError(f"no such key: {answer.keys}")

    made = dpf.Study(SCHEMA, epsilon=1, delta="1e-11")
    made.add_plan("towns", dpf.step("keys", Keys("town"), Fails(1, "1e-12")))
    with pytest.raises(dpf.InputError) as failed:
        made.run(table([*COMMON, SECRET]))
    chain = [failed.value, failed.value.__cause__, failed.value.__context__]
    assert SECRET not in " ".join(map(str, chain))
    assert "failed with ValueError" in str(failed.value)


def test_an_answer_that_a_mechanism_does_not_know_shows_nothing() -> None:
    answer = KeyCounts.of({SECRET: 1})
    step = dpf.step("x", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))
    plan = dpf.Study(SCHEMA, epsilon=1)
    plan.add_plan("x", step)
    calibration = plan.plan().calibration(step)
    assert calibration is not None
    with pytest.raises(dpf.InputError) as refused:
        calibration.on_lattice(answer)
    assert SECRET not in str(refused.value)


def test_an_inferred_schema_holds_no_key() -> None:
    schema = dpf.infer_schema(pl.DataFrame({"town": [SECRET, "x"], "ill": [0, 1]}), open_columns=["town"])
    assert SECRET not in schema.dumps()
    assert schema["town"] == Open("town")


def test_a_copied_table_is_as_closed() -> None:
    rows = copy.deepcopy(table([*COMMON, SECRET]))
    assert SECRET not in repr(rows)
    with pytest.raises(ValueError, match="read-only"):
        rows.keys["town"].codes[0] = 5
