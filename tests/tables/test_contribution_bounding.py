"""How many rows of each privacy unit a table keeps, and which: on the way in, whatever holds the table."""

from __future__ import annotations

import collections
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.facts import DoesNotFit
from dpframework.study.study_file import load_study
from dpframework.tables import contribution_bounding, unit_row_choice_kernels
from dpframework.tables.contribution_bounding import kept_rows, unit_codes
from dpframework.tables.schema_fit import check_fit

SCHEMA = dpf.Schema([dpf.Categorical("row", [f"r{k}" for k in range(40)])])
KEY = bytes(range(32))
FOUR = dpf.PrivacyUnit("person", 4)

People = list[tuple[Any, str]]


def visits(seed: int = 0, people: int = 8) -> People:
    """Return rows of people with 1 to 9 rows each, shuffled; each row's value occurs once."""
    random = np.random.default_rng(seed)
    whose = np.repeat(np.arange(people), random.integers(1, 10, people))[:40]
    random.shuffle(whose)
    return [(f"p{person}", f"r{k}") for k, person in enumerate(whose)]


def kept(rows: People, unit: dpf.PrivacyUnit = FOUR, key: bytes = KEY, **how: Any) -> list[str]:
    """Return the values of the rows that a table keeps, in its order."""
    frame = pl.DataFrame({"person": [who for who, _ in rows], "row": [value for _, value in rows]}, strict=False)
    table = dpf.table_from_frame(frame, SCHEMA, unit=unit, key=key, **how)
    return [SCHEMA["row"].labels[code] for code in table.codes[0]]


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_each_unit_keeps_as_many_of_its_rows_as_it_may(k: int, seed: int) -> None:
    rows = visits(seed)
    whose = {value: who for who, value in rows}
    found = kept(rows, dpf.PrivacyUnit("person", k))
    counts = collections.Counter(whose[value] for value in found)
    assert counts == {who: min(n, k) for who, n in collections.Counter(whose.values()).items()}
    assert found == [value for _, value in rows if value in found], "in the order of the table"


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_one_unit_more_adds_its_rows_and_changes_no_other(k: int, seed: int) -> None:
    """Wherever the unit's rows lie in the table, and whatever the table is held by."""
    rows, unit = visits(seed), dpf.PrivacyUnit("person", k)
    whose = {value: who for who, value in rows}
    whole = kept(rows, unit)
    for gone in sorted(set(whose.values())):
        without = kept([row for row in rows if row[0] != gone], unit)
        assert without == [value for value in whole if whose[value] != gone]
        assert len(whole) - len(without) <= k


def test_no_other_unit_is_counted_and_no_place_in_the_table() -> None:
    """Rows of others between a unit's own, and their ids, change nothing of what the unit keeps."""
    rows = visits(3)
    whose = {value: who for who, value in rows}
    own = {who: [v for v in kept(rows) if whose[v] == who] for who in set(whose.values())}
    by_unit = sorted(rows, key=lambda row: row[0])  # stable: each unit's rows stay in their order
    assert {who: [v for v in kept(by_unit) if whose[v] == who] for who in own} == own
    renamed = [(who if who == "p0" else f"x{who}", value) for who, value in rows]
    assert [v for v in kept(renamed) if whose[v] == "p0"] == own["p0"]


def test_the_key_chooses_and_each_reading_draws_its_own() -> None:
    rows = [("p", f"r{k}") for k in range(9)]
    assert kept(rows) == kept(rows)
    assert kept(rows, key=b"another") != kept(rows)
    frame = pl.DataFrame({"person": ["p"] * 9, "row": [f"r{k}" for k in range(9)]})
    tables = [dpf.table_from_frame(frame, SCHEMA, unit=FOUR) for _ in range(10)]
    assert len({table.codes.tobytes() for table in tables}) > 1, "1 in 126**9 at most that they are equal"
    assert len({table.key for table in tables}) == 10
    assert {len(table.key or b"") for table in tables} == {32}  # 256 bits, of which nobody guesses any


def test_units_are_numbered_from_0_on_in_the_order_of_their_ids() -> None:
    found = unit_codes(pl.Series(["b", "c", "a", "b"]))
    assert (found.dtype, found.tolist()) == (np.dtype(np.uint32), [1, 2, 0, 1])
    assert unit_codes(pl.Series(["10", "9", "-1", "10"])).tolist() == [1, 2, 0, 1]  # as texts
    assert unit_codes(pl.Series(["10", "9", "09", "10"])).tolist() == [1, 2, 0, 1]  # no numbers all
    assert unit_codes(pl.Series([], dtype=pl.String)).tolist() == []


def test_every_choice_of_rows_is_about_as_likely() -> None:
    """Of five rows two are kept: 10 choices, 1000 keys, each within 6.5 deviations (probability below 2e-8)."""
    unit = dpf.PrivacyUnit("person", 2)
    found = collections.Counter(tuple(kept_rows(["p"] * 5, unit, key=str(k).encode())) for k in range(1000))
    assert set(found) == set(itertools.combinations(range(5), 2))
    assert all(abs(n - 100) < 6.5 * (1000 * 0.1 * 0.9) ** 0.5 for n in found.values())


def test_units_do_not_all_keep_the_rows_of_the_same_places() -> None:
    """Of each of 30 units' five rows one is kept: not the same one of all."""
    schema = dpf.Schema([dpf.Categorical("row", [f"r{k}" for k in range(5)])])
    frame = pl.DataFrame({"person": [f"p{k // 5}" for k in range(150)], "row": [f"r{k % 5}" for k in range(150)]})
    table = dpf.table_from_frame(frame, schema, unit=dpf.PrivacyUnit("person"), key=KEY)
    assert set(table.codes[0].tolist()) == set(range(5))


@pytest.mark.parametrize("missing", [None, "", "  "])
def test_a_row_without_an_id_is_left_out_and_stops_no_run(missing: str | None) -> None:
    rows = [("a", "r0"), (missing, "r1"), ("a", "r2"), (missing, "r3")]
    assert kept(rows) == ["r0", "r2"]
    with pytest.raises(DoesNotFit) as caught:
        kept(rows, out_of_domain="error")
    assert str(caught.value) == "frame: the id column 'person' has missing values; each row needs an id"
    assert kept([(missing, "r1")]) == []


def test_ids_are_read_by_their_canonical_form(tmp_path: Path) -> None:
    """However a file holds them: 7, 7.0 and " 7 " are one person."""
    frame = pl.DataFrame({"person": [7, 7, 8], "row": ["r0", "r1", "r2"]})
    frame.write_parquet(tmp_path / "ints.parquet")
    frame.with_columns(pl.col("person").cast(pl.Float64)).write_parquet(tmp_path / "floats.parquet")
    (tmp_path / "texts.csv").write_text("person,row\n7,r0\n 7.0 ,r1\n8,r2\n")
    unit = dpf.PrivacyUnit("person")
    tables = [
        dpf.read_table(tmp_path / name, SCHEMA, unit=unit, key=KEY)
        for name in ("ints.parquet", "floats.parquet", "texts.csv")
    ]
    held = {"person": frame["person"], "row": frame["row"]}
    tables.append(dpf.tables.table_from_columns(held, SCHEMA, unit=unit, key=KEY))
    assert len({table.codes.tobytes() for table in tables}) == 1
    assert tables[0].codes.shape[1] == 2
    assert all(table.unit == unit for table in tables)


def test_the_ids_are_gone_once_the_rows_are_bounded() -> None:
    table = dpf.table_from_frame(pl.DataFrame({"person": ["a"], "row": ["r0"]}), SCHEMA, unit=FOUR)
    assert table.schema.names == ("row",)


def test_numbers_keep_their_own_values() -> None:
    schema = dpf.Schema([dpf.Numeric("age", 0, 100, bins=4, missing=True)])
    frame = pl.DataFrame({"person": ["a", "b", "b", None, "c"], "age": [1.5, 20.0, 30.0, 40.0, None]})
    table = dpf.table_from_frame(frame, schema, unit=dpf.PrivacyUnit("person", 2))
    assert table.values["age"].tolist()[:3] == [1.5, 20.0, 30.0]
    assert np.isnan(table.values["age"][3])


def test_the_public_row_count_is_of_the_rows_that_are_kept() -> None:
    frame = pl.DataFrame({"person": ["a", "a", "b"], "row": ["r0", "r1", "r2"]})
    public = dpf.Schema(SCHEMA.attributes, rows=2)
    assert dpf.table_from_frame(frame, public, unit=dpf.PrivacyUnit("person")).codes.shape[1] == 2
    with pytest.raises(DoesNotFit):
        dpf.table_from_frame(frame, public, unit=dpf.PrivacyUnit("person", 2))


def test_an_unknown_id_column_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("person,row\na,r0\n")
    with pytest.raises(dpf.InputError) as caught:
        dpf.read_table(path, SCHEMA, unit=dpf.PrivacyUnit("patient", 2))
    assert str(caught.value) == (
        "visits.csv: has no column 'patient'; the study's unit names it, so correct the unit, or the name in the table"
    )
    with pytest.raises(
        dpf.InputError, match=r"table: has no column 'patient'; give one for each attribute .*, and the ids"
    ):
        dpf.tables.table_from_columns({"row": ["r0"]}, SCHEMA, unit=dpf.PrivacyUnit("patient", 2))
    with pytest.raises(dpf.InputError, match="unit 'row' is an attribute of the schema"):
        dpf.read_table(path, SCHEMA, unit=dpf.PrivacyUnit("row"))


def test_the_owner_is_told_which_rows_are_nobodys() -> None:
    frame = pl.DataFrame({"person": ["a", None, "b"], "row": ["r0", "r1", "r2"]})
    assert [str(m) for m in check_fit(frame, SCHEMA, unit=FOUR)] == ["person: no id (such rows are left out) in 1 row"]
    assert [str(m) for m in check_fit(frame, SCHEMA, unit=dpf.PrivacyUnit("patient"))] == [
        "patient: no such column in frame, which must name each row's unit; known: person, row"
    ]
    public = dpf.Schema(SCHEMA.attributes, rows=3)
    told = [str(m) for m in check_fit(frame, public, unit=FOUR)]
    assert told[1] == "the table: rows = 3 in the schema, but the number of rows is 2"


TWO_VIEWS = dpf.Schema([dpf.Boolean("l", view="left"), dpf.Boolean("r", view="right")])


def test_two_views_have_the_ids_that_join_them(tmp_path: Path) -> None:
    left, right = tmp_path / "left.csv", tmp_path / "right.csv"
    left.write_text("person,l\na,1\nb,0\nb,1\nc,1\n")
    right.write_text("person,r\na,1\nb,0\nc,0\n")
    table = dpf.read_two_views(left, right, TWO_VIEWS, id="person", unit=FOUR)
    assert table.unit == FOUR
    assert table.codes.tolist() == [[1, 1], [1, 0]]
    for joined, by in ((None, "position"), ("other", "'other'")):
        with pytest.raises(dpf.InputError) as caught:
            dpf.read_two_views(left, right, TWO_VIEWS, id=joined, unit=FOUR)
        assert str(caught.value) == (
            f"the rows of two views are joined by {by}, so one joined row may belong to two units of 'person'; join "
            "them by 'person', or protect one row"
        )


def noisy_count(**protected: Any) -> dpf.Study:
    study = dpf.Study(SCHEMA, epsilon=1000, **protected)
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1000)))
    return study


def test_a_study_runs_on_a_table_that_was_read_for_its_unit() -> None:
    frame = pl.DataFrame({"person": ["a"] * 9 + ["b"], "row": [f"r{k}" for k in range(10)]})
    study = noisy_count(unit="person", rows_per_unit=4)
    assert study.run(dpf.table_from_frame(frame, SCHEMA, unit=study.unit))["n"] == 5
    assert study.run(dpf.table_from_frame(frame, SCHEMA, unit=dpf.PrivacyUnit("person", 2)))["n"] == 3
    for unit in (dpf.PrivacyUnit(), dpf.PrivacyUnit("person", 5)):
        with pytest.raises(dpf.InputError, match=r"the study protects one person, .* and the table was read for one"):
            study.run(dpf.table_from_frame(frame, SCHEMA, unit=unit))
    with pytest.raises(dpf.InputError, match=r"the table was read for one person.*; read it with unit=study\.unit$"):
        noisy_count().run(dpf.table_from_frame(frame, SCHEMA, unit=FOUR))
    asserted = noisy_count(rows_per_unit=4, allow=["rows-per-unit-asserted"])
    assert asserted.run(dpf.table_from_frame(frame, SCHEMA))["n"] == 10


def test_a_run_that_may_be_resumed_goes_on_with_the_same_rows(tmp_path: Path) -> None:
    frame = pl.DataFrame({"person": ["a"] * 9, "row": [f"r{k}" for k in range(9)]})
    study = noisy_count(unit="person", rows_per_unit=4)
    ledger = dpf.Ledger.create(tmp_path / "l.ledger")
    ledger.open("visits", epsilon=5000, unit="person", rows_per_unit=4)
    ledger.approve("visits", study.plan(), by="me", runs=3)
    run = ledger.run("visits", journal=tmp_path / "journal")
    with pytest.raises(dpf.InputError, match="this run may be resumed, and then goes on with the same rows"):
        study.run(dpf.table_from_frame(frame, SCHEMA, unit=study.unit), ledger=run)
    run = ledger.run("visits", journal=tmp_path / "journal2")
    assert study.run(lambda: dpf.table_from_frame(frame, SCHEMA, unit=study.unit, key=run.key), ledger=run)["n"] == 4
    again = ledger.run("visits", journal=tmp_path / "journal2")
    seen = []

    def read() -> dpf.Table:
        seen.append(again.key)
        return dpf.table_from_frame(frame, SCHEMA, unit=study.unit, key=again.key)

    assert study.run(read, ledger=again)["n"] == 4
    assert seen == [run.key]


def test_a_caps_unit_is_that_of_its_plans(tmp_path: Path) -> None:
    ledger = dpf.Ledger.create(tmp_path / "l.ledger")
    ledger.open("visits", epsilon=5000, unit="person", rows_per_unit=4)
    with pytest.raises(dpf.PlanRefused) as caught:
        ledger.approve("visits", noisy_count().plan(), by="me")
    assert str(caught.value) == (
        "the plan protects one row, the cap of data set 'visits' protects one person, by at most 4 of its rows"
    )
    assert ledger.records().data_set("visits").to_dict()["unit"] == {"id": "person", "rows": 4}


STUDY = """
[data]
{data}
schema = "schema.toml"
[privacy]
epsilon = 1000
{privacy}
[[step]]
name = "rows"
miner = "count"
epsilon = 1000
"""


def study_file(folder: Path, privacy: str, data: str = 'path = "visits.csv"', schema: dpf.Schema = SCHEMA) -> Path:
    schema.dump(folder / "schema.toml")
    path = folder / "study.toml"
    path.write_text(STUDY.format(data=data, privacy=privacy))
    return path


def test_a_study_file_names_the_unit(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("person,row\n" + "".join(f"p{k % 2},r{k}\n" for k in range(20)) + ",r1\n")
    file = load_study(study_file(tmp_path, 'unit = "person"\nrows_per_unit = 4'))
    assert file.study.unit == FOUR
    assert round(float(file.study.run(file.read)["rows"].value)) == 8
    one, other = file.read(KEY), file.read(KEY)
    assert one.codes.tobytes() == other.codes.tobytes()


@pytest.mark.parametrize(
    ("privacy", "data", "sentence"),
    [
        (
            'unit = "person"\nrows_per_unit = 0',
            None,
            "rows_per_unit is 0; write how many rows of one unit are kept, from 1 to 1000000",
        ),
        ("unit = 3", None, "unit is 3; give the name of the column whose values name units"),
        (
            'unit = "l"',
            None,
            "unit 'l' is an attribute of the schema; ids are read only to find the rows of a unit, so take it out of "
            "the schema",
        ),
        (
            'unit = "person"',
            'left = "no.csv"\nright = "no.csv"\nid = "other"',
            "the rows of two views are joined by 'other', so one joined row may belong to two units of 'person'; join "
            "them by 'person', or protect one row",
        ),
    ],
)
def test_a_unit_that_a_study_file_cannot_have_is_one_sentence(
    tmp_path: Path, privacy: str, data: str | None, sentence: str
) -> None:
    """Nothing is read: there is no data file."""
    path = study_file(tmp_path, privacy, data or 'path = "no.csv"', TWO_VIEWS)
    with pytest.raises(dpf.InputError) as caught:
        load_study(path)
    assert str(caught.value) == f"{path}: [privacy] {sentence}"


@given(
    keys=st.lists(st.integers(0, 9), max_size=40),
    people=st.integers(1, 4),
    most=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_rows_of_the_smallest_keys_are_chosen_by_a_sort_and_without_one(
    keys: list[int], people: int, most: int, seed: int
) -> None:
    whose = np.random.default_rng(seed).integers(0, people, len(keys))
    found = unit_row_choice_kernels.smallest_of_each(np.array(keys, dtype=np.uint64), whose, most)
    for person in range(people):
        rows = sorted((key, row) for row, key in enumerate(keys) if whose[row] == person)
        assert np.flatnonzero(found & (whose == person)).tolist() == sorted(row for _, row in rows[:most])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_places_are_found_when_they_are_read_and_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    asked: list[int] = []
    hashed = contribution_bounding.order_by_hash

    def counted(*given: Any) -> Any:
        asked.append(1)
        return hashed(*given)

    monkeypatch.setattr(contribution_bounding, "order_by_hash", counted)
    schema, unit = dpf.Schema([dpf.Boolean("ill")]), dpf.PrivacyUnit("person", most)
    people = ["a", "b", "a", "c", "a", "b", None, "a"]
    table = dpf.table_from_frame(pl.DataFrame({"person": people, "ill": [True] * 8}), schema, unit=unit, key=b"key")
    study = dpf.Study(schema, epsilon=1, unit="person", rows_per_unit=most)
    study.add("ill", dpf.miner("histogram", epsilon=1, attribute="ill"))
    study.run(table, seed=1)
    assert not asked
    if most == 1:
        assert table.unit_places is None
        return
    assert table.unit_places is not None
    part, again = table.unit_places[1:4], pickle.loads(pickle.dumps(table))
    assert len(asked) == 1
    places = table.unit_places.array
    assert part.array.tolist() == places[1:4].tolist()
    assert again.unit_places.array.tolist() == places.tolist()
    assert len(asked) == 1
    assert not places.flags.writeable
    kept = [one for one in people if one is not None] if most == 5 else None
    if kept is not None:
        assert [sorted(p for p, who in zip(places.tolist(), kept, strict=True) if who == one) for one in "abc"] == [
            [0, 1, 2, 3],
            [0, 1],
            [0],
        ]
