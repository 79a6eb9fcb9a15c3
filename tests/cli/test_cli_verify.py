"""`dpframework verify`: what it tests, what it prints, and its exit codes."""

import json
import re

import attrs
import pytest
from exact_rows import held

import dpframework as dpf
from dpframework.cli import main, verify as cli_verify
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Histogram
from dpframework.run.miner_base_and_examples import Example
from dpframework.study.plugin_registry import PluginComponent, registry
from dpframework.verify import LossReport, SamplerReport, Verification

SCHEMA = dpf.Schema([dpf.Boolean("ill")])


@attrs.frozen
class TellsAll(dpf.Miner):
    """Release a histogram, and something else."""

    name = "tells-all"

    def plan(self, schema):
        return dpf.step("ill", Histogram(schema["ill"]), DiscreteLaplace(1))

    def mine(self, table):
        return str(table.release("ill")) + repr(held(table)[1].rows)

    @classmethod
    def examples(cls):
        return {"one": Example(SCHEMA, cls())}


@attrs.frozen
class Unexampled(TellsAll):
    """The same, without examples."""

    name = "unexampled"

    @classmethod
    def examples(cls):
        return {}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    for kind in (TellsAll, Unexampled):
        monkeypatch.setitem(registry().miners, kind.name, PluginComponent("planted", kind))


FEW = ["--replays", "200", "--runs", "0"]


def test_a_claim_that_holds_is_told_and_exits_0(capsys):
    assert main(["verify", "dp-id3", "--example", "max", "--relation", "replace-one", *FEW, "--runs", "100"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"every claim held; the search reached \d+ % of the claim. It could miss a mistake ", printed)
    assert "discrete-laplace: draws what it states" in printed
    assert "max score of each split for grade" in printed


def test_a_claim_that_does_not_hold_is_shown_on_two_small_tables_and_exits_1(capsys):
    assert main(["verify", "tells-all", *FEW]) == 1
    printed = capsys.readouterr().out
    assert "A CLAIM DOES NOT HOLD" in printed
    assert "the run's result differs with the same releases" in printed
    assert "its neighbour:" in printed


def test_json_holds_the_same(capsys):
    assert main(["verify", "tells-all", *FEW, "--json"]) == 1
    form = json.loads(capsys.readouterr().out)
    assert form["passed"] is False
    assert form["verdict"] == "A CLAIM DOES NOT HOLD"
    assert {one["relation"] for one in form["audits"]} == {"add-or-remove-one", "replace-one"}
    assert all(one["audit"]["violations"] for one in form["audits"])


def test_a_mechanism_is_sampled(capsys):
    assert main(["verify", "discrete-laplace"]) == 0
    printed = capsys.readouterr().out
    assert "draws what it states" in printed
    assert "every claim held; the search reached 100 % of the claim" in printed


def test_the_miners_of_a_study_are_verified_without_its_data(tmp_path, capsys):
    (tmp_path / "people.schema.toml").write_text(
        '[[attribute]]\nname = "ill"\nkind = "boolean"\n[[attribute]]\nname = "old"\nkind = "boolean"\n'
    )
    (tmp_path / "study.toml").write_text(
        '[data]\npath = "missing.csv"\nschema = "people.schema.toml"\n[privacy]\nepsilon = 1\n'
        '[[step]]\nname = "tree"\nminer = "dp-id3"\nepsilon = 1\nparams = { target = "ill", max_depth = 1 }\n'
    )
    assert main(["verify", str(tmp_path / "study.toml"), *FEW]) == 0
    assert "tree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dp-id33"], "no miner, mechanism or accountant is named 'dp-id33'; did you mean 'dp-id3'?"),
        (["dp-id3", "--example", "maxx"], "'dp-id3' has no example 'maxx'; did you mean 'max'?"),
        (["unexampled"], "has no examples to verify it on"),
        (["dp-id3", "--replays", "5"], "--replays is 5"),
        (["dp-id3", "--runs", "5"], "--runs is 5"),
        (["dp-id3", "--relation", "swap"], "'swap' is unknown; accepted are add-or-remove-one, replace-one"),
        (["nowhere.toml"], "there is no such file"),
        (["plan.json"], "plan.json: a plan has no schema, which the made-up tables need; give the study file (.toml)"),
        (["laplace", "--example", "max"], "--example has no effect on a mechanism; leave it out"),
        (["laplace", "--rows-per-unit", "1"], "--rows-per-unit has no effect on a mechanism; leave it out"),
        (["pure", "--relation", "replace-one"], "--relation has no effect on an accountant; leave it out"),
        (["pure", "--record", "x.json"], "--record has no effect on an accountant; leave it out"),
        (["nowhere.toml", "--rows-per-unit", "2"], "--rows-per-unit has no effect on a study file; leave it out"),
    ],
)
def test_bad_input_is_one_sentence_and_exits_2(arguments, sentence, capsys):
    assert main(["verify", *arguments]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_a_mechanism_is_compared_in_the_time_and_under_the_relation_asked_for(tmp_path, monkeypatch):
    asked = []

    def check_losses(mechanism, **given):
        asked.append(given)
        return LossReport(mechanism.name, (), (), 1, cut_short=True)

    monkeypatch.setattr("dpframework.verify.check_losses", check_losses)
    monkeypatch.setattr("dpframework.verify.check_sampler", lambda mechanism: SamplerReport(mechanism.name, (), (), 1))
    file = tmp_path / "verified.json"
    only = ("--relation", "replace-one", "--seconds", "7", "--record", str(file))
    assert main(["verify", "laplace", *only]) == 0
    assert asked == [{"relations": (dpf.Relation.REPLACE_ONE,), "seconds": 7}]
    assert {one["relation"] for one in json.loads(file.read_text())["records"]} == {"replace-one"}


def test_no_share_of_an_accountants_claims_is_told(capsys):
    assert main(["verify", "pure"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "every claim held"


def test_a_miners_examples_grow_with_the_unit_and_a_studys_stay(tmp_path, monkeypatch):
    asked = []

    def verify_examples(subject, examples, **given):
        asked.append((examples, given["relations"], given["unit"]))
        return Verification(subject, (), (), ())

    monkeypatch.setattr("dpframework.verify.verify_examples", verify_examples)
    several = dpf.PrivacyUnit(rows=4)
    cli_verify._verify_examples("dp-tree", None, None, {}, several)
    cli_verify._verify_examples("dp-tree", "exact", dpf.Relation.REPLACE_ONE, {}, several)
    (tmp_path / "s.schema.toml").write_text('max_rows = 50\n[[attribute]]\nname = "ill"\nkind = "boolean"\n')
    (tmp_path / "s.toml").write_text(
        '[data]\npath = "s.csv"\nschema = "s.schema.toml"\n[privacy]\nepsilon = 1\nunit = "who"\nrows_per_unit = 3\n'
        '[[step]]\nname = "n"\nminer = "count"\nepsilon = 1\n'
    )
    cli_verify._verify_examples(str(tmp_path / "s.toml"), None, None, {}, dpf.PrivacyUnit())
    own = registry().miners["dp-tree"].component.examples()
    (every, both, unit), (one, relation, _), (of_study, of_its_own, whom) = asked
    assert {name: shown.schema.max_rows for name, shown in every.items()} == {
        name: shown.schema.max_rows and 4 * shown.schema.max_rows for name, shown in own.items()
    }
    assert (both, unit) == (tuple(dpf.Relation), several)
    assert (list(one), relation) == (["exact"], (dpf.Relation.REPLACE_ONE,))
    assert [shown.schema.max_rows for shown in of_study.values()] == [50]
    assert (of_its_own, whom) == ((dpf.Relation.ADD_OR_REMOVE_ONE,), dpf.PrivacyUnit("who", 3))


@pytest.mark.parametrize(("relation", "few"), [("replace-one", 31), ("add-or-remove-one", 30)])
def test_a_study_with_a_large_public_number_of_rows_is_tested_with_a_smaller_one(tmp_path, capsys, relation, few):
    """It was refused, and the only remedy was a schema that the study does not have."""
    schema = tmp_path / "s.schema.toml"
    schema.write_text(dpf.Schema(SCHEMA.attributes, rows=20_000).dumps())
    study = tmp_path / "s.toml"
    study.write_text(
        f'''data = {{ path = "s.csv", schema = "s.schema.toml" }}
        privacy = {{ epsilon = 1, relation = "{relation}" }}
        step = [{{ name = "ill", miner = "histogram", epsilon = 1, params = {{ attribute = "ill" }} }}]'''
    )
    assert main(["verify", str(study), *FEW]) == 0
    printed = capsys.readouterr()
    assert f"tested with rows = {few} instead of the schema's 20,000" in printed.err
    assert "every claim held" in printed.out
    schema.write_text(dpf.Schema(SCHEMA.attributes, rows=20).dumps())
    assert main(["verify", str(study), *FEW]) == 0
    assert "instead of" not in capsys.readouterr().err
