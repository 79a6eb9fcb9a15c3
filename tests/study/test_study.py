"""Studies: plan, check, run; what is refused is refused before anything is read."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from noisy_mode import NoisyMode

import dpframework as dpf
from dpframework.accountant import PureAccountant
from dpframework.facts.errors import DPFrameworkError, PlanRefused
from dpframework.facts.privacy_unit import ROWS_ASSERTED
from dpframework.study.table_opener import NotOpened, _unread

SECRET = "4242424242"
SCHEMA = dpf.Schema(
    [dpf.Categorical("education", ["basic", "higher"]), dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=4)],
    rows=60,
)
RNG = np.random.default_rng(3)
TABLE = dpf.Table.from_codes(SCHEMA, np.array([[0] * 40 + [1] * 20, RNG.integers(0, 2, 60), RNG.integers(0, 4, 60)]))
RELATIONS = ["add-or-remove-one", "replace-one"]


@attrs.frozen
class Mystery(dpf.Miner):
    """Does what it is told, when it is told."""

    name = "mystery"
    node: Any = None
    do: Any = lambda table: None

    def plan(self, schema: dpf.Schema) -> Any:
        return self.node

    def mine(self, table: dpf.PrivateTable) -> Any:
        return self.do(table)


def count(epsilon: Any = 1, **options: Any) -> dpf.Node:
    return dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(epsilon), **options)


def never() -> dpf.Table:
    raise AssertionError("the table was read")


def test_noisy_mode_as_the_design_writes_it() -> None:
    study = dpf.Study(SCHEMA, epsilon=1000, relation="add-or-remove-one")
    study.add("mode", NoisyMode("education", epsilon=1000))
    plan = study.plan()
    assert str(plan.total()) == "PrivacyLoss(epsilon=1000.0)"
    assert [finding.code for finding in plan.check()] == ["DP018", "DP026", "DP027"]  # the schema publishes its rows
    results = study.run(TABLE)
    assert results["mode"] == "basic"
    assert results.private
    assert results.spent == plan.total()


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_shape_of_the_design_s_example(tmp_path: Any, relation: str) -> None:
    SCHEMA.dump(tmp_path / "people.schema.toml")
    schema = dpf.Schema.load(tmp_path / "people.schema.toml")
    study = dpf.Study(schema, epsilon=1.0, relation=relation)
    study.add("ill-tree", dpf.miner("dp-id3", target="ill", max_depth=2, epsilon=0.6))
    study.add("edu", dpf.miner("dp-id3", target="education", max_depth=1, epsilon=0.4))
    plan = study.plan()
    assert plan.total() == dpf.PrivacyLoss(epsilon=1)
    assert [finding for finding in plan.check() if finding.severity is dpf.Severity.ERROR] == []
    lines = ["education,ill,age", *(f"{'basic' if k % 3 else 'higher'},{k % 2},{k}" for k in range(60))]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    results = study.run(lambda: dpf.read_table(tmp_path / "people.csv", schema), seed=1)
    assert set(results) == {"ill-tree", "edu"}
    assert results.spent is not None
    assert (results.spent.epsilon or 0) <= 1
    assert hasattr(results["ill-tree"], "tree")


def test_several_miners_share_one_table_and_one_budget() -> None:
    study = dpf.Study(SCHEMA, epsilon="0.3")
    study.add("first", NoisyMode("education", 0.1))
    study.add("second", NoisyMode("age", 0.2))
    plan = study.plan()
    assert plan.total() == dpf.PrivacyLoss(epsilon="0.3")
    results = study.run(TABLE, seed=4)
    assert [charge.path for charge in results.charges] == ["first/mode", "second/mode"]
    assert results.spent == dpf.PrivacyLoss(epsilon="0.3")
    assert dict(results) == {"first": results["first"], "second": results["second"]}
    assert len(results) == 2
    written = json.loads(results.to_json())
    assert written["results"] == dict(results)
    assert (written["spent"], written["releases"], written["private"]) == ("3/10", 2, False)
    assert written["plan"] == plan.hash


def test_one_miner_cannot_spend_the_step_of_another() -> None:
    study = dpf.Study(SCHEMA, epsilon=10)
    study.add("thief", Mystery(count(1), lambda table: [table.release("n"), table.release("n")]))
    study.add("victim", NoisyMode("ill", 1))
    with pytest.raises(dpf.ReleaseRefused, match="'n' in 'thief' was made before"):
        study.run(TABLE, seed=0)
    for reach in ("mode", "victim/mode"):
        other = dpf.Study(SCHEMA, epsilon=10)
        other.add("victim", NoisyMode("ill", 1))
        other.add("thief", Mystery(count(1), lambda table, reach=reach: table.release(reach)))
        with pytest.raises(dpf.ReleaseRefused, match="not in the plan"):
            other.run(TABLE, seed=0)


# --- refused before reading -----------------------------------------------------------------------------------------


def test_an_over_budget_study_reads_nothing() -> None:
    study = dpf.Study(SCHEMA, epsilon=0.5)
    study.add("mode", NoisyMode("education", 0.6))
    with pytest.raises(PlanRefused, match=r"DP001 error: the plan's total epsilon is 0\.6"):
        study.run(never)


def test_an_inferred_schema_reads_nothing_until_it_is_allowed() -> None:
    inferred = dpf.Schema(SCHEMA.attributes, inferred=["values of education"])
    study = dpf.Study(inferred, epsilon=1)
    study.add("mode", NoisyMode("education", 1))
    with pytest.raises(PlanRefused, match="DP006 error"):
        study.run(never)
    allowed = dpf.Study(inferred, epsilon=1, allow=["schema-inferred-from-data"])
    allowed.add("mode", NoisyMode("education", 1))
    results = allowed.run(dpf.Table.from_codes(inferred, TABLE.codes))
    assert not results.private  # no claim covers what the schema has shown
    assert "schema-inferred-from-data" in results.plan.assumptions


def test_a_shared_budget_that_is_spent_reads_nothing() -> None:
    shared = PureAccountant("add-or-remove-one", epsilon=1)
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("mode", NoisyMode("education", 0.75))
    assert study.run(TABLE, seed=1, accountant=shared).spent == dpf.PrivacyLoss(epsilon=0.75)
    with pytest.raises(PlanRefused, match=r"the total is 1\.5, and the budget is 1\.0"):
        study.run(never, accountant=shared)
    assert shared.spent == dpf.PrivacyLoss(epsilon=0.75)


def test_a_study_without_a_valid_total_reads_nothing() -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    gaussian = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.Gaussian("0.01"))
    study.add("m", Mystery(gaussian))
    with pytest.raises(PlanRefused, match="DP010"):
        study.run(never)


def test_a_wrong_seed_reads_nothing() -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("mode", NoisyMode("education", 1))
    with pytest.raises(dpf.InputError, match="seed is -1"):
        study.run(never, seed=-1)


def test_a_table_that_cannot_be_read_spends_nothing() -> None:
    shared = PureAccountant("add-or-remove-one", epsilon=1)
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("mode", NoisyMode("education", 1))

    def missing() -> dpf.Table:
        return dpf.read_table("people.csv", SCHEMA)  # there is no such file

    other = dpf.Schema([dpf.Boolean("ill")])
    for table, text in (
        (missing, "people.csv: there is no such file"),
        (lambda: 3, "not on int"),
        (dpf.Table.from_codes(other, [[0]]), "another schema"),
    ):
        with pytest.raises(dpf.InputError, match=text):
            study.run(table, accountant=shared)
    assert shared.spent == dpf.PrivacyLoss(epsilon=0)


# --- making a study -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": -1}, "epsilon is -1.0"),
        ({"epsilon": "nan"}, "epsilon is 'nan'"),
        ({"epsilon": 1, "delta": 1}, "delta is 1"),
        ({"epsilon": 1, "delta": -1}, "delta is -1"),
        ({"epsilon": 1, "relation": "bounded"}, "relation 'bounded' is unknown"),
        ({"epsilon": 1, "allow": "mcmc-converged"}, "give a list"),
    ],
)
def test_budgets_that_cannot_be_used(options: Any, text: str) -> None:
    with pytest.raises(dpf.InputError, match=text):
        dpf.Study(SCHEMA, **options)


def test_what_cannot_be_added() -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    with pytest.raises(dpf.InputError, match="the study has no step"):
        study.plan()
    study.add("mode", NoisyMode("education", 0.5))
    for name, miner, text in (
        ("mode", NoisyMode("ill", 0.1), "'mode' is in the study twice"),
        ("x", NoisyMode, "is not a miner"),
        ("x", "dp-id3", "is not a miner"),
        (
            "x",
            NoisyMode("eduction", 0.1),
            "step 'x': attribute 'eduction' is not in the schema; did you mean 'education'",
        ),
        ("x", NoisyMode("ill", 0), "step 'x': epsilon is 0"),
        ("x", Mystery("nothing"), "'mystery' planned str, not a plan"),
        ("a/b", NoisyMode("ill", 0.1), "cannot be used in a plan"),
    ):
        with pytest.raises(dpf.InputError, match=text):
            study.add(name, miner)  # type: ignore[arg-type]
    assert study.plan().total() == dpf.PrivacyLoss(epsilon=0.5)


# --- runs -----------------------------------------------------------------------------------------------------------


def test_seeded_runs_repeat_and_are_not_private() -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("n", Mystery(count(1), lambda table: table.release("n")))
    one, two = (study.run(TABLE, seed=9) for _ in range(2))
    assert one["n"] == two["n"]
    assert not one.private
    assert study.run(TABLE).private


def test_engines_and_observers_are_passed_on() -> None:
    class Witness(dpf.Observer):
        def __init__(self) -> None:
            self.told: list[str] = []

        def charged(self, charge: Any) -> None:
            self.told.append(f"charged {charge.path}")

        def released(self, release: dpf.Release) -> None:
            self.told.append(f"released {release.charge.path}")

    witness = Witness()
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("one", NoisyMode("education", 1))
    memory = study.run(TABLE, seed=2, observers=[witness])
    threads = study.run(TABLE, seed=2, engine=dpf.Threads(7))
    assert witness.told == ["charged one/mode", "released one/mode"]
    assert dict(memory) == dict(threads)


def test_with_delta_the_cheapest_accounting_is_charged() -> None:
    many = dpf.repeat(300, count("0.01"))
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-6")
    study.add("many", Mystery(many, lambda table: [table.release("n") for _ in range(300)]))
    plan = study.plan()
    assert plan.totals()["pure"] == dpf.PrivacyLoss(epsilon=3)
    assert (plan.total().epsilon or 9) < 1
    results = study.run(TABLE, seed=0)
    assert results.accounting == next(iter(plan.totals()))
    assert results.spent == plan.total()
    assert len(results.charges) == 300


def test_what_is_not_released_is_not_spent() -> None:
    study = dpf.Study(SCHEMA, epsilon=3)
    study.add("some", Mystery(dpf.repeat(3, count(1)), lambda table: table.release("n")))
    results = study.run(TABLE, seed=0)
    assert results.plan.total() == dpf.PrivacyLoss(epsilon=3)
    assert results.spent == dpf.PrivacyLoss(epsilon=1)


class Secretive(dpf.Query):
    """Fails with a private value in its mouth."""

    name = "secretive"
    sensitivities = (dpf.Sensitivity("l1", 1, source="none"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise ValueError(f"the row {SECRET} is bad")


@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Threads(2)])
def test_a_private_run_fails_without_a_private_value(engine: dpf.Engine) -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    node = dpf.step("s", Secretive(), dpf.mechanisms.DiscreteLaplace(1))
    study.add("m", Mystery(node, lambda table: table.release("s")))
    with pytest.raises(DPFrameworkError, match="step 'm/s': the query 'secretive' failed with ValueError") as failed:
        study.run(TABLE, engine=engine)
    import traceback

    assert SECRET not in "".join(traceback.format_exception(failed.value))


def test_results_are_written_as_json() -> None:
    class Pair:
        def to_dict(self) -> dict[str, int]:
            return {"a": 1}

    found = {
        "array": np.arange(3),
        "pair": Pair(),
        "nested": [(1, np.float64(0.5)), {2: None}],
        "other": {1}.__class__,
    }
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("m", Mystery(count(1), lambda table: found))
    written = json.loads(study.run(TABLE, seed=0).to_json())["results"]["m"]
    assert written == {
        "array": [0, 1, 2],
        "pair": {"a": 1},
        "nested": [[1, 0.5], {"2": None}],
        "other": "<class 'set'>",
    }


@attrs.frozen
class FailsAfter(dpf.Miner):
    """Releases, then fails as a faulty plugin would."""

    name = "fails-after"
    error: type[BaseException]
    epsilon: float = 0.25

    def plan(self, schema):
        return dpf.step("count", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(self.epsilon))

    def mine(self, table):
        table.release("count")
        raise self.error(SECRET)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_was_found_before_a_miner_fails_is_kept_with_what_was_spent(error):
    study = dpf.Study(SCHEMA, epsilon=1, relation="replace-one")
    study.add("mode", NoisyMode("ill", 0.5))
    study.add("bad", FailsAfter(error))
    with pytest.raises(dpf.RunStopped, match="step 'bad'") as caught:
        study.run(TABLE)
    assert SECRET not in str(caught.value)
    assert caught.value.interrupted == (error is KeyboardInterrupt)
    assert list(caught.value.results) == ["mode"]
    assert caught.value.results.spent.epsilon == Fraction(3, 4)
    assert [charge.path for charge in caught.value.results.charges] == ["mode/mode", "bad/count"]


def test_a_plan_tells_and_from_or_in_a_miner_s_parameters():
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("tall")])
    parts = [dpf.Equals("ill", "true"), dpf.Equals("tall", "true")]
    written = []
    for kind, word in ((dpf.And, "and"), (dpf.Or, "or")):
        study = dpf.Study(schema, epsilon=1)
        study.add("both", dpf.miner("count", where=kind(parts), epsilon=1))
        (miner,) = study.plan().content()["miners"].values()
        written.append(miner["parameters"]["where"])
        assert list(written[-1]) == [word]
    assert written[0]["and"] == written[1]["or"]


def test_the_hash_binds_miners_and_their_parameters():
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("tall")])
    plans = []
    for pruning in (True, False):
        study = dpf.Study(schema, epsilon=1)
        study.add("tree", dpf.miner("dp-id3", target="ill", pruning=pruning, epsilon=1))
        plans.append(study.plan())
    assert plans[0].hash != plans[1].hash
    assert plans[0].content()["root"] == plans[1].content()["root"]
    assert dpf.StudyPlan.from_json(plans[0].to_json()) == plans[0]


@pytest.mark.parametrize("bounds", [False, True])
def test_files_that_are_read_for_another_unit_are_refused_whoever_bounds_the_rows(bounds: bool) -> None:
    class Engine(dpf.InMemory):
        name = "other"
        reads_files = True
        bounds_units = bounds

    schema = dpf.Schema([dpf.Boolean("ill")])
    plan: Any = dpf.describe(schema, epsilon=1, unit="person", rows_per_unit=2).plan()
    study = dpf.describe(schema, epsilon=1, unit="person", rows_per_unit=2)
    assert _unread(plan, dpf.TableFiles("rows.csv", schema, unit=study.unit), Engine(), None, None).unit == study.unit
    with pytest.raises(NotOpened, match=r"the study protects .*person"):
        _unread(plan, dpf.TableFiles("rows.csv", schema), Engine(), None, None)


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("tables", [False, True])
def test_an_engine_is_given_what_it_reads_and_who_reads_nothing_is_given_files(files: bool, tables: bool) -> None:
    """Rows of files are loaded for an engine that reads neither."""

    class Engine(dpf.InMemory):
        name = "other"
        reads_files = files
        reads_tables = tables

    schema = dpf.Schema([dpf.Boolean("ill")])
    assert Engine().reads_itself == (files or tables)
    plan: Any = dpf.describe(schema, epsilon=1).plan()
    ways = {"dpf.TableFiles(path, schema)": files or not tables, "dpf.DatabaseTable(name, schema)": tables}
    accepted = " or ".join(way for way, can in ways.items() if can)
    for given, reads, what in (
        (dpf.TableFiles("rows.csv", schema), files or not tables, "files"),
        (dpf.DatabaseTable("rows", schema), tables, "tables of a database"),
    ):
        if reads:
            assert _unread(plan, given, Engine(), None, None).schema == schema
        else:
            with pytest.raises(NotOpened) as caught:
                _unread(plan, given, Engine(), None, None)
            assert str(caught.value).startswith(f"engine 'other' cannot read {what}; give the study {accepted}")


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("bounds", [False, True])
def test_an_engine_that_reads_rows_itself_bounds_each_unit(files: bool, tables: bool, bounds: bool) -> None:
    """Or nothing would bound a person's rows. An engine that reads nothing is given a table, which is bounded."""

    class Engine(dpf.InMemory):
        name = "other"
        reads_files = files
        reads_tables = tables
        bounds_units = bounds

    rows = dpf.Schema([dpf.Boolean("ill")])
    people = attrs.evolve(rows, derive=[dpf.derive("ever", "any(ill)", per="unit")])
    assert dpf.describe(rows, epsilon=1, rows_per_unit=2, allow=[ROWS_ASSERTED]).prepare(Engine()).plan.unit.id is None
    for schema in (rows, people):
        study = dpf.describe(schema, epsilon=1, unit="person")
        if bounds or not (files or tables):
            assert study.prepare(Engine()).plan.unit.id == "person"
            continue
        with pytest.raises(dpf.InputError) as caught:
            study.prepare(Engine())
        assert str(caught.value) == (
            "engine 'other' reads its rows itself, without a bound on the rows of one 'person'; use another engine"
        )


def test_a_plan_tells_the_errors_that_its_miners_know():
    """Of the rows and not of the step, whose query counts them: as the miner says it."""
    study = dpf.Study(dpf.Schema([dpf.Boolean("ill")]), epsilon=1)
    study.add("n", dpf.miner("count", epsilon=1))
    plan = study.plan()
    assert [bound.what for bound in plan.error_bounds()["n"]] == ["number of rows"]
    assert attrs.evolve(plan, schema=None).error_bounds()["n"][0].what != "number of rows"


def test_plans_and_results_print_what_they_hold_in_words():
    study = dpf.Study(dpf.Schema([dpf.Boolean("ill")], max_rows=9), epsilon=2)
    study.add("sick", dpf.miner("histogram", attribute="ill", epsilon=1))
    study.add("all", dpf.miner("count", epsilon="0.5"))
    assert str(study.plan()).splitlines() == [
        "sick/counts: histogram of ill, discrete-laplace  [epsilon 1.0]",
        "all/count: count of rows, discrete-laplace  [epsilon 0.5]",
        "total epsilon 1.5 of 2.0 under add-or-remove-one, protecting one row",
    ]
    with_delta = dpf.Study(study.schema, epsilon=2, delta="1e-6")
    with_delta.add("keys", dpf.miner("histogram", attribute="ill", rho="0.01"))
    assert str(with_delta.plan()).endswith(", delta 1e-06 of 2.0 under add-or-remove-one, protecting one row")
    results = study.run(dpf.table_from_columns({"ill": [True] * 9}, study.schema), seed=1)
    shown = str(results).split("\n\n")
    assert shown[:2] == [f"sick\n{results['sick']}", f"all\n{results['all']}"]
    assert shown[2] == "2 releases, epsilon 1.5 spent (pure accounting); NOT PRIVATE: for experiments only"
    stopped = str(attrs.evolve(results, stopped="ReleaseRefused: enough"))
    assert stopped.startswith("STOPPED before its end: ReleaseRefused: enough\n\nsick\n")
