"""Results in a folder: what is read again is what was written, and what is something else is refused."""

import json
import math
import typing
from fractions import Fraction

import attrs
import numpy as np
import pytest
from dpframework_trees.default_classifier_miner import ChosenModel
from dpframework_trees.tree_choice import ChosenTree

import dpframework as dpf
from dpframework.reports import write_report
from dpframework.results import Estimate, Frequencies, Noisy, StoredResult
from dpframework.study.plan_steps_of_releases import path_finder
from dpframework.study.plugin_registry import registry
from dpframework.study.results import Results

SCHEMA = dpf.Schema(
    [
        dpf.Numeric("age", 0, 90, cuts=[30, 60]),
        dpf.Categorical("kind", list("abc")),
        dpf.Boolean("ill", view="left"),
        dpf.Boolean("well", view="right"),
    ],
    max_rows=5000,
)


@attrs.frozen
class Sevens(dpf.Miner):
    """Release a count, and say it in words: no class reads that again."""

    name = "sevens"
    epsilon: float = 1

    def plan(self, schema):
        return dpf.step("count", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(self.epsilon))

    def mine(self, table):
        return {"count": Noisy(table.release("count"), 2.0), "words": ("seven", 7, float("nan"))}


@pytest.fixture(scope="module")
def results():
    study = dpf.Study(SCHEMA, epsilon=100)
    study.add("n", dpf.miner("count", epsilon=1))
    study.add("kinds", dpf.miner("crosstab", attributes=["kind", "ill"], epsilon=1))
    study.add("median", dpf.miner("quantile", attribute="age", epsilon=1))
    study.add("tree", dpf.miner("dp-id3", target="kind", max_depth=2, epsilon=2))
    study.add("far", dpf.miner("dp-dilca", attributes=["kind", "ill"], epsilon=2))
    study.add("sevens", Sevens())
    study.add_plan("own", dpf.step("counts", dpf.queries.Histogram(SCHEMA["kind"]), dpf.mechanisms.DiscreteLaplace(1)))
    rng = np.random.default_rng(1)
    return study.run(dpf.Table.from_codes(SCHEMA, np.stack([rng.integers(0, a.size, 900) for a in SCHEMA])), seed=1)


@pytest.fixture
def folder(results, tmp_path):
    results.save(tmp_path / "out")
    return tmp_path / "out"


def test_what_is_read_again_is_what_was_written(results, folder):
    again = Results.load(folder)
    assert again.to_json() == results.to_json() == (folder / "results.json").read_text()
    assert again.plan.hash == results.plan.hash
    for one, other in zip(again.charges, results.charges, strict=True):
        assert (one.path, one.calibration.losses) == (other.path, other.calibration.losses)
    assert (again.spent, again.time) == (results.spent, results.time)
    for name in ("n", "kinds", "median", "tree", "far"):
        assert type(again[name]) is type(results[name])
        assert again[name].to_dict() == results[name].to_dict()
    assert type(again["n"]) is Estimate
    for chosen in (ChosenTree(2, results["tree"].tree), ChosenModel("sampled-2", results["tree"].tree)):
        assert type(chosen).from_dict(json.loads(chosen.to_json())).to_dict() == chosen.to_dict()
        assert str(results["tree"]) in str(chosen)
    assert again["kinds"].to_frame().equals(results["kinds"].to_frame())
    assert again["sevens"]["words"] == ["seven", 7, None]
    assert again["own"] == results["own"].tolist()


@pytest.mark.parametrize("suffix", ["html", "md", "csv", "json"])
def test_its_report_is_written_again(results, folder, tmp_path, suffix):
    for found, name in ((results, "one"), (Results.load(folder), "two")):
        write_report(found, tmp_path / f"{name}.{suffix}", title="t")
    one, two = (tmp_path / f"{name}.{suffix}" for name in ("one", "two"))
    assert one.read_text() == two.read_text()
    assert len(one.read_text()) > 500
    write_report(results.plan, tmp_path / f"plan.{suffix}")
    assert (tmp_path / f"plan.{suffix}").read_text() not in ("", one.read_text())


def test_a_report_whose_name_says_no_format_is_refused(results, tmp_path):
    with pytest.raises(dpf.InputError, match=r"end it in \.html"):
        write_report(results, tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())


def test_the_releases_are_a_frame(results):
    frame = results.to_frame()
    assert frame["release"].to_list() == [charge.path for charge in results.charges]
    assert frame.row(0, named=True)["epsilon"] == 1
    assert frame.row(0, named=True)["query"] == "count of rows"
    assert frame["expected"].null_count() == 0
    assert set(frame["result"]) == set(results)
    assert attrs.evolve(results, charges=()).to_frame().columns == frame.columns


def test_what_was_planned_and_spent_is_written(results):
    form = results.to_dict()
    assert Fraction(form["planned"]) == results.plan.total().epsilon
    assert Fraction(form["spent"]) == results.spent.epsilon
    assert Fraction(form["spent_delta"]) == results.spent.delta
    assert form["budget"] == str(results.plan.budget.epsilon)
    for spent, delta in ((None, None), (dpf.PrivacyLoss(epsilon=None, delta="1e-6"), "1/1000000")):
        form = attrs.evolve(results, spent=spent).to_dict()
        assert (form["spent"], form["spent_delta"]) == (None, delta)


def test_a_run_that_stopped_says_so_when_it_is_read(results, tmp_path):
    attrs.evolve(results, stopped="the user interrupted", run="run-7", head="f00").save(tmp_path / "out")
    again = Results.load(tmp_path / "out")
    assert (again.stopped, again.run, again.head) == ("the user interrupted", "run-7", "f00")
    shown = again._repr_html_()
    assert shown.index("STOPPED before its end: the user interrupted") < shown.index("releases, epsilon")


def test_a_folder_that_holds_something_is_refused(results, folder):
    before = (folder / "results.json").read_bytes()
    with pytest.raises(dpf.InputError, match="earlier run"):
        results.save(folder)
    assert (folder / "results.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"plan": "0" * 64}, "of another plan"),
        ({"spent": "much"}, "'spent' is"),
        ({"charges": 3}, "field charges must be array"),
        ({"charges": ["tree/nothing"]}, "but the plan does not hold it"),
        ({"steps": [0]}, "but the plan does not hold it"),
        ({"charges": ["kinds/counts"], "steps": []}, "but the plan does not hold it"),
        ({"steps": ["n"]}, "field steps"),
        ({"texts": {"n": 1}}, "field texts.n must be string"),
        ({"matrices": {"x": 1}}, "field matrices.x must be array"),
        (
            {"matrices": {"n": [{"title": "t", "rows": ["a"], "columns": [], "values": [[1]]}]}},
            "this is not a matrix",
        ),
        (
            {"matrices": {"n": [{"title": "t", "rows": ["a"], "columns": ["b"], "values": [[math.nan]]}]}},
            "holds NaN, which is not JSON",
        ),
        ({"about": {"data": "x", "time": "t"}}, "field about must contain"),
        ({"about": {"schema": None, "data": [1], "time": "t", "version": "1"}}, "field about.data"),
        ({"results": {"n": {"value": 1}}}, "result 'n': this is not an estimate"),
        ({"results": {"tree": [[]]}}, "result 'tree': this is not a tree"),
        ({"results": {"far": {"schema": {}}}}, "result 'far': "),
        (
            {"results": {"far": {"schema": "none"}}},
            "result 'far': Schema.from_dict: form is a str; Mapping[str, Any] is needed",
        ),
        ({"results_version": 7}, "results version 7"),
        ({"results_version": None}, "results version None"),
    ],
    ids=str,
)
def test_what_is_not_of_a_run_is_refused_in_a_sentence(folder, change, says):
    path = folder / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(dpf.InputError) as caught:
        Results.load(folder)
    assert says in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_schema_of_another_plan_is_refused(folder):
    path = folder / "results.json"
    form = json.loads(path.read_text())
    form["about"]["schema"] = attrs.evolve(SCHEMA, max_rows=7).to_dict()
    path.write_text(json.dumps(form))
    with pytest.raises(dpf.InputError, match="another schema"):
        Results.load(folder)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(dpf.InputError, match="not the folder of a run"):
        Results.load(tmp_path)
    with pytest.raises(dpf.InputError, match="there is no such file"):
        Results.load(tmp_path / "none")


def test_a_part_of_a_template_is_found_in_the_plan():
    study = dpf.Study(SCHEMA, epsilon=9)
    inner = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))
    study.add_plan("kinds", dpf.parallel(inner, by=SCHEMA["kind"], name="of 2"))
    ((path, _),) = study.plan().placed_steps()
    place = path_finder(study.plan())
    assert [place(f"kinds/of 2 {k}/n") for k in (1, 2)] == [path, path]
    assert place("kinds/of 3 1/n") == "kinds/of 3 1/n"

    study.add_plan("kinds 3", dpf.parallel(inner, by=SCHEMA["kind"], name="halves"))
    assert path_finder(study.plan())("kinds 3/halves 2/n") == "kinds 3/halves/n"


@attrs.frozen
class SecondBranch(dpf.Miner):
    """Count in the parts of the second branch: a partition needs no name, so both branches have the same path."""

    name = "second-branch"
    epsilon: float = 4

    def plan(self, schema):
        def counts(by, epsilon):
            count = dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(epsilon))
            return dpf.parallel(count, by=schema[by])

        return dpf.either(counts("kind", 4), counts("ill", 3))

    def mine(self, table):
        return [int(part.release("n")) for part in table.partition(table.schema["ill"])]


def test_a_release_is_read_back_as_of_its_branch(tmp_path):
    study = dpf.Study(SCHEMA, epsilon=4)
    study.add("one", SecondBranch())
    results = study.run(dpf.Table.from_codes(SCHEMA, np.zeros((4, 9), int)), seed=1)
    results.save(tmp_path / "out")
    again = Results.load(tmp_path / "out")
    for found in (results, again):
        assert [charge.path for charge in found.charges] == ["one/parts 1/n", "one/parts 2/n"]
        assert [charge.calibration.losses.pure.add_or_remove_one for charge in found.charges] == [3, 3]
    assert again.to_json() == results.to_json()


def test_results_without_numbers_of_steps_are_read(folder):
    form = json.loads((folder / "results.json").read_text())
    del form["steps"]
    (folder / "results.json").write_text(json.dumps(form))
    assert Results.load(folder).to_dict()["charges"] == form["charges"]


def test_a_miner_names_what_it_returns():
    for name, registered in registry().miners.items():
        mines = getattr(
            registered.component, "mine_rows", registered.component.mine
        )  # of as many rows as were released
        returned = typing.get_type_hints(mines)["return"]
        kinds = typing.get_args(returned) or (returned,)  # `kind_of` tells which of several was saved
        assert registered.component.result is kinds[0], name
        assert all(issubclass(kind, StoredResult) for kind in kinds), name
    assert registry().miners["histogram"].component.result is Frequencies
