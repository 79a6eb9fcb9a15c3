"""Open attributes and the keys that are released of them: reading, engines, claims and the everyday miner."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.column_read_options import ColumnOptions
from dpframework.mechanisms import BUILT_IN, DiscreteLaplace, Gaussian, PartitionSelection, PermuteAndFlip
from dpframework.queries import KeyCounts, Keys
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.results import KeyTable, ReleasedKeys
from dpframework.run.private_table import PrivateTable
from dpframework.verify import MinerConformance, QueryConformance, audit, check_reading

ADD, REPLACE = dpf.Relation
TOWN = dpf.Open("town")
SCHEMA = dpf.Schema([TOWN, dpf.Boolean("ill")])


def keys_of(table: dpf.Table, engine: dpf.Engine | None = None) -> dict[str, int]:
    used = engine or dpf.InMemory()
    answer = answer_of(Keys("town"), used, used.load(table), {})
    return dict(zip(answer.keys, answer.counts.tolist(), strict=True))


def towns(*given: Any, attribute: dpf.Open = TOWN) -> dict[str, int]:
    """The keys of a column of one attribute."""
    return keys_of(dpf.table_from_columns({"town": list(given)}, dpf.Schema([attribute])))


# The attribute


def test_a_schema_with_an_open_attribute_is_written_and_read(tmp_path: Path) -> None:
    schema = dpf.Schema([dpf.Open("town", ["casefold"], view="left"), dpf.Open("word", [])])
    schema.dump(tmp_path / "s.toml")
    assert dpf.Schema.load(tmp_path / "s.toml") == schema
    assert schema.dumps().startswith('[[attribute]]\nname = "town"\nkind = "open"\nnormalise = ["casefold"]\nview')
    assert schema.fingerprint != dpf.Schema([dpf.Open("town", view="left"), dpf.Open("word", [])]).fingerprint
    assert "values that nobody lists (casefold)" in schema._repr_html_()


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"normalise": ["nfk"]}, "normalise holds 'nfk'; did you mean 'nfc'"),
        ({"normalise": ["nfc", "nfc"]}, "normalise holds 'nfc' twice"),
        ({"normalise": "nfc"}, "normalise must be a list"),
        ({"normalise": [3]}, "normalise holds 3"),
        ({"missing": True}, "a row without a value never has a key; leave missing out"),
        ({"values": ["a"]}, "unknown key 'values'"),
    ],
)
def test_what_an_open_attribute_refuses(facts: dict[str, Any], says: str) -> None:
    with pytest.raises(dpf.InputError, match=says):
        dpf.Schema.from_dict({"attribute": [{"name": "town", "kind": "open", **facts}]})


def test_a_key_follows_from_the_cell_alone() -> None:
    assert towns(" Rome ", "Rome", "rome", None, "", " ", "other") == {"Rome": 2, "rome": 1}
    assert towns("New \t York", "New York", "cafe\u0301", "caf\xe9") == {"New York": 2, "caf\xe9": 2}
    assert towns(3, 3.0, "3", "3.0", True, "true", 1, 2.5, float("nan")) == {"3": 4, "1": 3, "2.5": 1}
    assert towns("a\nb", "a\x1b[2Kb", attribute=dpf.Open("town", [])) == {r"a\nb": 1, r"a\x1b[2Kb": 1}
    assert towns("STRASSE", "stra\xdfe", attribute=dpf.Open("town", ["casefold"])) == {"strasse": 2}
    assert towns(datetime.date(2020, 1, 1), [1], b"x", "x") == {"x": 1}
    assert towns(1e300, "1e300") == {str(int(1e300)): 2}


def test_a_key_is_its_own_key() -> None:
    attribute = dpf.Open("town", ["nfc", "spaces", "casefold"])
    for text in ("a\nb", " X  y ", "1e3", "TRUE", "\u1e9e", "o\u0308ther", "inf", "-0.0"):
        key = attribute.key_of(text)
        assert key is not None
        assert attribute.key_of(key) == key


def test_a_row_more_changes_no_other_row() -> None:
    for rules in (("nfc", "spaces", "casefold"), ()):
        report = check_reading(dpf.Schema([dpf.Open("town", rules)]), tables=40)
        assert report.passed, str(report)


def test_a_file_that_does_not_fit_is_refused_only_where_the_owner_says_so() -> None:
    columns = {"town": ["Rome", datetime.date(2020, 1, 1)]}
    with pytest.raises(dpf.InputError, match="holds values that are neither texts nor numbers") as refused:
        dpf.table_from_columns(columns, dpf.Schema([TOWN]), out_of_domain="error")
    assert "2020" not in str(refused.value)
    missing = dpf.table_from_columns({"town": [None, "x"]}, dpf.Schema([TOWN]), out_of_domain="error")
    assert keys_of(missing) == {"x": 1}


def test_a_table_of_codes_takes_its_keys_beside_them() -> None:
    table = dpf.Table.from_codes(SCHEMA, [[0, 0, 0], [1, 0, 1]], keys={"town": ["b", None, " b"]})
    assert keys_of(table) == {"b": 2}
    assert keys_of(__import__("copy").deepcopy(table)) == {"b": 2}
    for codes, keys, says in (
        ([[1], [0]], {"town": ["b"]}, "codes of 'town' must be from 0 to 0"),
        ([[0], [0]], {}, "one list for each open attribute"),
        ([[0], [0]], {"town": ["a", "b"]}, "one text, or None, per row"),
    ):
        with pytest.raises(dpf.InputError, match=says):
            dpf.Table.from_codes(SCHEMA, codes, keys=keys)


def test_an_inferred_schema_takes_nothing_from_an_open_column() -> None:
    frame = pl.DataFrame({"town": ["a", "b"], "age": [1, 2]})
    schema = dpf.infer_schema(frame, open_columns=["town"], max_categories=1)
    assert schema["town"] == TOWN
    assert "categorical values: observed" not in schema.inferred
    prices = pl.DataFrame({"town": ["1,5 EUR", "2,5 EUR", "3,5 EUR"] * 20, "ill": [0, 1, 0] * 20})
    assert dpf.infer_schema(prices).read.of_column("town") != ColumnOptions()
    assert dpf.infer_schema(prices, open_columns=["town"]).read.of_column("town") == ColumnOptions()
    with pytest.raises(dpf.InputError, match="declare it open with open_columns"):
        dpf.infer_schema(frame, max_categories=1)
    with pytest.raises(dpf.InputError, match="column to declare open: there is no 'twon'"):
        dpf.infer_schema(frame, open_columns=["twon"])
    with pytest.raises(dpf.InputError, match="declared categorical and open"):
        dpf.infer_schema(frame, open_columns=["town"], categorical=["town"])


# Where a list of values is needed


def planned(study: dpf.Study, name: str, **parameters: Any) -> dpf.StudyPlan:
    study.add("it", dpf.miner(name, **parameters))
    return study.plan()


MINERS: dict[str, dict[str, Any]] = {
    "histogram": {"attribute": "town", "epsilon": 1},
    "crosstab": {"attributes": ["ill", "town"], "epsilon": 1},
    "dp-id3": {"target": "ill", "epsilon": 1},
    "dp-tree": {"target": "town", "epsilon": 1},
    "dp-additive": {"target": "ill", "epsilon": 1},
    "dp-dilca": {"epsilon": 1},
}


@pytest.mark.parametrize("name", MINERS)
def test_a_list_of_values_is_refused_in_a_sentence_with_a_remedy(name: str) -> None:
    study = dpf.Study(dpf.Schema([TOWN, dpf.Boolean("ill"), dpf.Boolean("old")]), epsilon=1)
    with pytest.raises(dpf.InputError) as refused:
        planned(study, name, **MINERS[name])
    assert "attribute 'town' is open, so that nobody lists its values" in str(refused.value)
    assert "release its keys (queries.Keys, miner 'keys'), leave it out, or declare it" in str(refused.value)


def test_keys_of_listed_values_are_refused() -> None:
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-6")
    with pytest.raises(dpf.InputError, match="attribute 'ill' is boolean, and the miner 'keys' needs an open one"):
        planned(study, "keys", attribute="ill", epsilon=1, delta="1e-6")
    with pytest.raises(dpf.InputError, match="needs an open one"):
        Keys(dpf.Boolean("ill"))


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(1), Gaussian("0.1"), PermuteAndFlip(1)])
def test_a_mechanism_that_may_show_what_has_no_rows_is_refused(mechanism: Any) -> None:
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-6")
    study.add_plan("it", dpf.step("keys", Keys("town"), mechanism))
    findings = " ".join(map(str, study.plan().check()))
    assert "nobody lists the keys; use partition-selection" in findings
    with pytest.raises(dpf.PlanRefused):
        study.run(dpf.Table.from_codes(SCHEMA, [[0], [0]], keys={"town": ["b"]}), seed=1)


def test_no_query_reads_the_numbers_of_keys() -> None:
    @attrs.frozen
    class Reads(dpf.Query):
        name = "reads"
        answer_length = 1
        sensitivities = dpf.queries.histogram_sensitivities(1)

        def count(self, block: dpf.Block, **inputs: Any) -> Any:
            return np.array([int(block.codes("town").sum())])

    table = dpf.Table.from_codes(SCHEMA, [[0, 0], [0, 0]], keys={"town": ["b", "a"]})
    engine = dpf.InMemory()
    assert not table.columns[0].any()
    with pytest.raises(dpf.InputError, match="'town' is open"):
        answer_of(Reads(), engine, engine.load(table), {})
    (block,) = engine.load(table)
    with pytest.raises(dpf.InputError, match="only an open attribute has keys"):
        block.keys("ill")
    with pytest.raises(dpf.InputError, match="which it does not declare"):
        block.showing(["ill"]).keys("town").codes  # noqa: B018


# Engines


class Blocks(dpf.tables.in_process_engines.BlockEngine):
    """Rows in three blocks."""

    name = "three"

    def __init__(self) -> None:
        super().__init__(blocks=3)

    def map(self, rows: Any, function: Callable[[dpf.Block], Any]) -> list[Any]:
        return [function(block) for block in rows]


def test_every_engine_counts_the_same_keys(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    column = [f"t{k}" for k in rng.geometric(0.1, 5000).tolist()]
    expected = Counter(column)
    frame = pl.DataFrame({"town": column, "ill": rng.integers(0, 2, 5000)})
    frame.write_csv(tmp_path / "t.csv")
    memory = dpf.table_from_frame(frame, SCHEMA)
    mapped = dpf.read_table(tmp_path / "t.csv", SCHEMA, mapped=True)
    engines = (dpf.InMemory(), Blocks(), dpf.Threads(2), dpf.Mapped())
    for engine, table in zip(engines, (memory, memory, memory, mapped), strict=True):
        assert keys_of(table, engine) == expected
        parts = engine.split(engine.load(table), SCHEMA["ill"])
        counts = [answer_of(Keys("town"), engine, part, {}) for part in parts]
        together = Counter(itertools.chain(*(dict(zip(c.keys, c.counts.tolist(), strict=True)) for c in counts)))
        assert set(together) == set(expected)
        assert sum(int(c.counts.sum()) for c in counts) == 5000


def test_an_engine_that_lets_listed_counts_out_only_is_refused_before_anything_is_read() -> None:
    class Sums(Blocks):
        name = "sums"
        gathers = False

        def load(self, table: dpf.Table) -> Any:
            raise AssertionError("rows are read")

    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-6")
    study.add("towns", dpf.miner("keys", attribute="town", epsilon=1, delta="1e-6"))
    with pytest.raises(dpf.InputError, match="asks for keys that are not listed; use another engine"):
        study.run(dpf.Table.from_codes(SCHEMA, [[0], [0]], keys={"town": ["b"]}), seed=1, engine=Sums())


# The release


class TestKeysMiner(MinerConformance):
    miner = dpf.basics.KeysMiner
    replays = 500
    min_tightness = 0.9


class TestKeysQuery(QueryConformance):
    pairs = 400
    queries: ClassVar = {"keys": (Keys("town"), SCHEMA, {})}


def outputs(calibration: Any, answer: KeyCounts, highest: int) -> dict[Any, float]:
    """The exact distribution of a release over two keys."""
    found = {}
    for a, b in itertools.product(range(highest + 1), repeat=2):
        shown = [(key, count) for key, count in (("a", a), ("b", b)) if count]
        output = ReleasedKeys([key for key, _ in shown], [count for _, count in shown])
        found[output] = float(np.exp(calibration.mechanism.log_density(answer, output, calibration)))
    assert sum(found.values()) == pytest.approx(1)
    return found


@pytest.mark.parametrize("relation", list(dpf.Relation))
@pytest.mark.parametrize(("epsilon", "delta"), [("2", "0.05"), ("1", "0.2")])
def test_no_pair_of_tables_loses_more_than_the_plan_says(
    relation: dpf.Relation, epsilon: str, delta: str, plan_of: Callable[..., dpf.StudyPlan]
) -> None:
    step = dpf.step("keys", Keys("town"), PartitionSelection(epsilon, delta))
    plan = plan_of(step, dpf.Schema([TOWN]), relation, epsilon=epsilon, delta=delta)
    calibration = plan.calibration(step)
    assert calibration is not None
    assert plan.total() == dpf.PrivacyLoss(Fraction(epsilon), delta=Fraction(delta))
    reach = PartitionSelection.cell_visibility(calibration).always
    answers = {
        (a, b): outputs(calibration, KeyCounts.of({"a": a, "b": b}), 2 * reach + 2)
        for a, b in itertools.product(range(reach + 2), repeat=2)
    }
    steps = [(1, 0), (0, 1)] if relation is ADD else [(1, 0), (0, 1), (1, -1)]  # of nobody's key, too
    worst = 0.0
    for (a, b), (up, down) in itertools.product(answers, steps):
        if (a + up, b + down) in answers:
            one, other = answers[a, b], answers[a + up, b + down]
            for p, q in ((one, other), (other, one)):
                worst = max(worst, sum(max(p[o] - float(np.exp(float(epsilon))) * q[o], 0) for o in p))
    assert 0.85 * float(delta) <= worst <= float(delta) + 1e-12


def test_a_run_gives_sorted_keys_and_a_frame(tmp_path: Path) -> None:
    table = dpf.table_from_columns({"town": ["Rome"] * 300 + ["Oslo"] * 90 + ["x"], "ill": [0] * 391}, SCHEMA)
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-6")
    study.add("towns", dpf.miner("keys", attribute="town", epsilon=1, delta="1e-6"))
    results = study.run(table, seed=4)
    found = results["towns"]
    assert isinstance(found, KeyTable)
    assert found.keys == ("Oslo", "Rome")
    assert found["Rome"] == pytest.approx(300, abs=28)
    assert found.to_frame().columns == ["town", "count", "low", "high"]
    assert KeyTable.from_dict(found.to_dict()) == found
    assert results.spent == dpf.PrivacyLoss(1, delta="1e-6")
    with pytest.raises(dpf.InputError, match="key 'x' was not released"):
        found["x"]
    bound = study.plan().previews()["towns/keys"]
    assert bound.text.startswith("keys of 14 rows are shown half of the time, keys of 28 or more always")


def test_a_plan_file_keeps_that_its_query_lists_nothing(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    from dpframework.plan.plan_reader import plan_from_json

    step = dpf.step("keys", Keys("town"), PartitionSelection(1, "1e-6"))
    plan = plan_of(step, SCHEMA, epsilon=1, delta="1e-6")
    again = plan_from_json(plan.to_json(), BUILT_IN, kind=dpf.StudyPlan)
    assert [one.facts.unlisted for one in again.steps()] == [True]
    assert again.hash == plan.hash
    listed = plan_of(dpf.step("ill", dpf.queries.Histogram(SCHEMA["ill"]), DiscreteLaplace(1)), SCHEMA)
    assert "unlisted" not in listed.to_json()


@attrs.frozen
class ByTown(dpf.Miner):
    """How many are ill, and the mean age, in each town that enough people live in and in all others."""

    name = "by-town"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        ill = dpf.step("ill", dpf.queries.Histogram(schema["ill"]), DiscreteLaplace(1))
        ages = dpf.step("ages", dpf.queries.BoundDistances(schema["age"]), dpf.mechanisms.Laplace(1))
        towns = dpf.FromRelease("keys", attributes=["town"])
        keys = dpf.step("keys", Keys("town"), PartitionSelection(1, "0.05"))
        return dpf.sequential(keys, dpf.parallel(dpf.sequential(ill, ages), by=towns))

    def mine(self, table: PrivateTable) -> Any:
        keys = list(table.release("keys"))
        parts = table.partition(dpf.Cases(dpf.Equals("town", key) for key in keys))
        return {
            key: (part.release("ill").tolist(), part.release("ages").tolist())
            for key, part in zip([*keys, "other"], parts, strict=True)
        }


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_parts_by_released_keys_and_other_are_templates(relation: dpf.Relation) -> None:
    """Noise in each part is planned before a key is known, and no run tells which others there are."""
    schema = dpf.Schema([TOWN, dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=2)])
    study = dpf.Study(schema, epsilon=10, delta="0.05", relation=relation)
    study.add("by town", ByTown())
    losses = [calibration.scale for _, _, calibration in study.plan().calibrated_steps()]
    assert [losses[1], round(losses[2])] == [1 if relation is ADD else 2] * 2  # means are rounded to a lattice
    columns = {"town": ["b"] * 80 + ["a"] * 90 + ["x", None], "ill": [1] * 80 + [0] * 92, "age": [30] * 172}
    found = study.run(dpf.table_from_columns(columns, schema), seed=1)["by town"]
    assert list(found)[:2] == ["a", "b"]
    assert list(found)[-1] == "other"
    assert found["b"][0] == pytest.approx([0, 80], abs=45)  # fails with a probability below 1e-9
    assert audit(ByTown(), dpf.Schema([TOWN, dpf.Boolean("ill"), schema["age"]]), relation, replays=100).passed


def test_a_description_tests_for_a_key() -> None:
    table = dpf.Table.from_codes(SCHEMA, [[0] * 5, [0, 1, 0, 1, 1]], keys={"town": ["b", "a", None, "b", "c"]})
    (block,) = dpf.InMemory().load(table)
    equals = dpf.Equals("town", " b ")
    assert equals.holds(block).tolist() == [True, False, False, True, False]
    assert dpf.Not(equals).holds(block).tolist() == [False, True, False, False, True]
    for absent in ("zz", "other", ""):
        assert not dpf.Equals("town", absent).holds(block).any()
    assert dpf.Cases([dpf.Equals("town", "c"), equals]).cells(block).tolist() == [1, 2, 2, 1, 0]
    twice = [dpf.Equals("town", key) for key in ("zz", "b", "", "b", "c")]
    assert dpf.Cases(twice).cells(block).tolist() == [1, 5, 5, 1, 4]
    assert dpf.Cases([*twice, dpf.Equals("ill", "true")]).cells(block).tolist() == [1, 5, 6, 1, 4]
    table = dpf.Table.from_codes(SCHEMA, [[0] * 500, [0] * 500], keys={"town": ["b"] * 300 + ["a"] * 200})
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("b", dpf.miner("count", where={"equals": ["town", "b"]}, epsilon=1))
    assert study.run(table, seed=0)["b"].value == pytest.approx(300, abs=40)


def test_a_miner_passes_the_keys_on() -> None:
    @attrs.frozen
    class Busy(dpf.Miner):
        """Release the keys of a column, in scopes."""

        name = "busy"

        def plan(self, schema: dpf.Schema) -> dpf.Node:
            return dpf.parallel(dpf.step("keys", Keys("town"), PartitionSelection(1, "0.01")), by=schema["ill"])

        def mine(self, table: PrivateTable) -> Any:
            return [dict(part.release("keys")) for part in table.partition("ill")]

    for relation in dpf.Relation:
        report = audit(Busy(), SCHEMA, relation, replays=100)
        assert report.passed, str(report)
