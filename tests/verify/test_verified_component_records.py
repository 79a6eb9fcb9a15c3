"""What was verified is remembered with its code: what a file holds, what checks say of it, what a ledger asks for."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

import attrs
import pytest
from exact_rows import held

import dpframework as dpf
from dpframework.cli import main
from dpframework.mechanisms import DiscreteLaplace, PermuteAndFlip
from dpframework.plan import VerificationRecords, VerifiedCode, code_verdicts
from dpframework.plan.verification_records_file import CodeVerdict
from dpframework.queries import Histogram
from dpframework.run.miner_base_and_examples import Example
from dpframework.study.plugin_registry import PluginComponent, registry
from dpframework.verify import Verification, verify_examples
from dpframework.verify.verified_component_records import code_records

SCHEMA = dpf.Schema([dpf.Boolean("ill")])
ADD, REPLACE = dpf.Relation


@attrs.frozen
class Ill(dpf.Miner):
    """Release how many are ill."""

    name = "ill"
    epsilon: float = 1
    factor: float = 1

    def plan(self, schema):
        return dpf.step("ill", Histogram(schema["ill"]), DiscreteLaplace(self.epsilon))

    def mine(self, table):
        return table.release("ill") * self.factor

    @classmethod
    def examples(cls):
        return {"one": Example(SCHEMA, cls()), "half": Example(SCHEMA, cls(0.5))}


def plan_of(miner: dpf.Miner | None = None, **options) -> dpf.StudyPlan:
    study = dpf.Study(SCHEMA, epsilon=1, **options)
    study.add("ill", miner or Ill())
    return study.plan()


@pytest.fixture(scope="module")
def found() -> Verification:
    return verify_examples("ill", Ill.examples(), relations=[ADD], replays=200, runs=0)


@pytest.fixture(scope="module")
def records(found) -> tuple[VerifiedCode, ...]:
    return tuple(code_records(found, Ill.examples()))


def told(plan: dpf.StudyPlan, *records: VerifiedCode) -> list[tuple[str, str]]:
    found = plan.with_verified(VerificationRecords(records)).check()
    return [(one.severity.value, one.message) for one in found if one.code == "DP022"]


def with_code(plan: dpf.StudyPlan, part: str, name: str, **changed: str) -> dpf.StudyPlan:
    """The plan of a study whose code is another."""
    key = "name" if part == "components" else "package"
    parts = [{**one, **changed} if one[key] == name else one for one in plan.code[part]]
    return attrs.evolve(plan, code={**plan.code, part: parts})


def test_a_record_says_what_was_found_of_each_miner_and_mechanism(records):
    assert [(one.component["kind"], one.component["name"]) for one in records] == [
        ("mechanism", "discrete-laplace"),
        ("miner", "ill"),
    ]
    for one in records:
        assert one.passed
        assert one.tightness == pytest.approx(1, abs=0.01)
        assert (one.relation, one.subject, one.examples) == (ADD, "ill", ("one", "half"))
        assert one.component in plan_of().code["components"]


def test_this_very_code_is_told_to_be_verified(records):
    found = told(plan_of(), *records)
    assert [severity for severity, _ in found] == ["info", "info"]
    assert found[1][1].startswith("miner 'ill': verified on ")
    assert "under add-or-remove-one (ill), the search reached 100 % of the claim" in found[1][1]
    assert told(plan_of()) != []
    assert [one for one in plan_of().check() if one.code == "DP022"] == []


@pytest.mark.parametrize(
    ("part", "name", "changed", "says"),
    [
        ("components", "ill", {"digest": "0" * 64}, "miner 'ill': not verified: the code of miner 'ill'"),
        ("components", "ill", {"class": "other:Ill"}, "miner 'ill': not verified: miner 'ill' is now other:Ill since "),
        (
            "packages",
            "dpframework",
            {"digest": "0" * 64},
            "not verified: the code of package 'dpframework' has changed",
        ),
        ("packages", "dpframework", {"version": "9"}, "not verified: package 'dpframework' has version 9, not "),
    ],
)
def test_other_code_is_told_not_to_be_verified(records, part, name, changed, says):
    plan = with_code(plan_of(), part, name, **changed)
    found = [message for severity, message in told(plan, *records) if severity == "warning"]
    assert len(found) == (2 if part == "packages" else 1)
    assert says in found[-1]
    assert records[1].time in found[-1]


def test_another_relation_another_mechanism_and_a_failure_are_told(records):
    assert "no record under replace-one" in told(plan_of(relation="replace-one"), *records)[0][1]
    failed = attrs.evolve(records[1], passed=False, time="2000-01-01T00:00:00Z", subject="study.toml")
    found = told(plan_of(), *records, failed)
    assert [severity for severity, _ in found] == ["error", "info"]
    assert found[0][1].endswith("A CLAIM DOES NOT HOLD")
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("s", dpf.step("s", Histogram(SCHEMA["ill"]), PermuteAndFlip(1)))
    assert told(study.plan(), *records) == [("warning", "mechanism 'permute-and-flip': not verified: no record of it")]


def test_of_two_that_passed_the_tighter_one_is_told(records):
    loose = attrs.evolve(records[1], tightness=None, time="2999-01-01T00:00:00Z", subject="study.toml")
    assert "reached 100 %" in told(plan_of(), *records, loose)[1][1]


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_file_reads_back_and_a_later_record_replaces_an_older_one(tmp_path, records):
    file = tmp_path / "verified.json"
    VerificationRecords().record(file, records)
    known = VerificationRecords.load(file)
    assert known.records == tuple(sorted(records, key=lambda one: one.key))
    later = attrs.evolve(records[1], tightness=0.5)
    known.record(file, [later, attrs.evolve(later, relation=REPLACE)])
    assert [one.tightness for one in VerificationRecords.load(file).records] == [pytest.approx(1, abs=0.01), 0.5, 0.5]
    assert VerificationRecords.load(file).digest != known.digest


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[" * 5000, "is nested deeper"),
        ("[]", "is not a file that 'dpframework verify --record' writes"),
        ('{"verified_version": 2}', "has version 2; this dpframework reads version 1"),
        ('{"verified_version": 1}', "must contain"),
        ('{"verified_version": 1, "records": [{"passed": 1}]}', "records"),
    ],
)
def test_another_file_is_refused_in_one_sentence(tmp_path, text, says):
    file = tmp_path / "verified.json"
    file.write_text(text)
    with pytest.raises(dpf.InputError, match=says) as caught:
        VerificationRecords.load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_a_tightness_that_no_float_can_hold_is_refused(tmp_path, records):
    file = tmp_path / "verified.json"
    VerificationRecords().record(file, records)
    form = json.loads(file.read_text())
    form["records"][0]["tightness"] = 10**400
    file.write_text(json.dumps(form))
    with pytest.raises(dpf.InputError, match="tightness"):
        VerificationRecords.load(file)


# --- a ledger -------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path) -> dpf.Ledger:
    ledger = dpf.Ledger.create(tmp_path / "l")
    ledger.open("people", epsilon=2, verified="0.9")
    return ledger


def test_a_ledger_that_asks_for_it_approves_verified_code_only(ledger, records):
    loose = [attrs.evolve(one, tightness=0.89) for one in records]
    failed = [attrs.evolve(one, passed=False) for one in records]
    for known, says in (
        ((), "all code of a plan must have been verified.*miner 'ill': not verified: no record of it"),
        (loose, "at a tightness of 0.9 or more: .*reached 89 %"),
        (failed, "A CLAIM DOES NOT HOLD"),
        (records[1:], "mechanism 'discrete-laplace': not verified"),
    ):
        with pytest.raises(dpf.PlanRefused, match=says):
            ledger.approve("people", plan_of().with_verified(VerificationRecords(tuple(known))), by="b")
    with pytest.raises(dpf.PlanRefused, match="all code of a plan must have been verified"):
        ledger.approve("people", plan_of(), by="b")
    assert ledger.data_set("people").approvals == []
    ledger.approve("people", plan_of().with_verified(VerificationRecords(records, "ab" * 32)), by="b")
    assert ledger.data_set("people").approvals[0].verified == "ab" * 32
    assert ledger.data_set("people").verified == Fraction(9, 10)
    ledger.verify()


def test_a_tightness_is_a_share(ledger):
    for value in ("1.1", "-1", "much"):
        with pytest.raises(dpf.InputError, match="the tightness is "):
            ledger.open("others", epsilon=1, verified=value)


def test_the_commands_go_together(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(registry().miners, "ill", PluginComponent("planted", Ill))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ill.schema.toml").write_text('[[attribute]]\nname = "ill"\nkind = "boolean"\n')
    study = '[data]\npath = "x.csv"\nschema = "ill.schema.toml"\n[privacy]\nepsilon = 1\n'
    (tmp_path / "study.toml").write_text(study + '[[step]]\nname = "n"\nminer = "ill"\nepsilon = 1\n')
    few = ["--replays", "200", "--runs", "0", "--record", "verified.json"]
    assert main(["verify", "study.toml", "--relation", "add-or-remove-one", *few]) == 0
    assert main(["verify", "permute-and-flip", *few]) == 0
    held = json.loads((tmp_path / "verified.json").read_text())["records"]
    assert [(one["component"]["name"], one["relation"], one["subject"]) for one in held] == [
        ("discrete-laplace", "add-or-remove-one", "study.toml"),
        ("permute-and-flip", "add-or-remove-one", "permute-and-flip"),
        ("permute-and-flip", "replace-one", "permute-and-flip"),
        ("ill", "add-or-remove-one", "study.toml"),
    ]
    capsys.readouterr()
    assert main(["check", "study.toml", "--verified", "verified.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["code"], one["severity"]) for one in found] == [*[("DP022", "info")] * 2, ("DP027", "info")]
    assert main(["ledger", "open", "l", "--data-set", "p", "--epsilon", "1", "--verified", "0.9"]) == 0
    approve = ["ledger", "approve", "l", "study.toml", "--data-set", "p", "--by", "me"]
    assert main(approve) == 1
    assert main([*approve, "--verified", "verified.json"]) == 0
    assert main(["ledger", "verify", "l"]) == 0
    for bad in ("none.json", "study.toml"):
        assert main([*approve, "--verified", bad]) == 2


def test_what_did_not_hold_reaches_nothing(records):
    failed = [
        one
        for one in code_verdicts(plan_of(), VerificationRecords((attrs.evolve(records[1], passed=False),)))
        if one.record
    ]
    assert [one.reaches(0.5) for one in failed] == [False]


def test_a_claim_that_did_not_hold_is_remembered_as_such():
    @attrs.frozen
    class Prints(Ill):
        name = "prints"

        def mine(self, table):
            return repr(held(table)[1].rows)

    examples = {"one": Example(SCHEMA, Prints())}
    found = verify_examples("prints", examples, relations=[ADD], replays=200, runs=0)
    assert not found.passed
    assert {one.passed for one in code_records(found, examples)} == {False}


def test_of_a_miner_of_which_nothing_was_shown_there_is_no_record(found):
    """A search that found no loss at all, of one example of two, is not remembered as a verification."""
    examples = Ill.examples()
    first, second = found.audits
    for nothing in (0.0, 1e-7):  # of a claim: what is rounded to none is none
        unseen = attrs.evolve(second, report=attrs.evolve(second.report, worst=nothing, cut_short=True))
        cut = attrs.evolve(found, audits=(first, unseen))
        assert cut.passed
        assert [one.component["name"] for one in code_records(cut, examples)] == ["discrete-laplace"]
    alone = attrs.evolve(found, audits=(unseen,), samplers=(), losses=())
    assert list(code_records(alone, examples)) == []  # no mechanism was tried
    wrong = attrs.evolve(alone, samplers=(attrs.evolve(found.samplers[0], wrong=("it is wrong",)),))
    assert [one.passed for one in code_records(wrong, examples)] == [False, False]
    sampled = attrs.evolve(found, losses=())
    assert [one.tightness for one in code_records(sampled, examples)] == [None, pytest.approx(1, abs=0.01)]


def test_a_claim_of_nothing_hides_no_search_that_found_nothing(found):
    """Of a claim of 0 no loss can be found: its tightness is no number, whichever example comes first."""
    examples = Ill.examples()
    first, second = found.audits
    nothing = attrs.evolve(first, report=attrs.evolve(first.report, claim=0.0, worst=0.0))
    half = attrs.evolve(second, report=attrs.evolve(second.report, worst=second.report.claim / 2))
    for audits in ((nothing, half), (half, nothing)):
        kept = list(code_records(attrs.evolve(found, audits=audits), examples))
        assert kept[-1].tightness == 0.5


def test_a_record_that_shows_nothing_counts_as_none():
    shown, nothing = record("2024-01-01T00:00:00Z", 0.001), record("2025-01-01T00:00:00Z", 0.0)
    assert not shown.showed_nothing
    assert nothing.showed_nothing
    assert of_miner(shown, nothing).record is of_miner(nothing, shown).record is shown
    alone = of_miner(nothing, attrs.evolve(nothing, time="2023-01-01T00:00:00Z"))
    assert not alone.passed
    assert not alone.reaches(0.0)
    assert str(alone) == (
        "miner 'ill': not verified: the search on 2025-01-01T00:00:00Z found no loss at all, so it showed nothing"
    )
    failed = attrs.evolve(nothing, passed=False)
    assert of_miner(nothing, failed).record is failed
    assert told(plan_of(), nothing)[1] == ("warning", str(attrs.evolve(alone, reason=of_miner(nothing).reason)))


def test_every_judgement_is_of_a_miner_or_mechanism(records):
    assert [one.what for one in code_verdicts(plan_of(), VerificationRecords(records))] == [
        "mechanism 'discrete-laplace'",
        "miner 'ill'",
    ]


def record(time: str, tightness: float | None = 0.9, passed: bool = True, **changed: str) -> VerifiedCode:
    component = {**next(one for one in plan_of().code["components"] if one["kind"] == "miner"), **changed}
    packages = tuple(plan_of().code["packages"])
    return VerifiedCode(component, packages, ADD, "ill", ("one",), passed, tightness, time)


def of_miner(*records: VerifiedCode) -> CodeVerdict:
    return next(one for one in code_verdicts(plan_of(), VerificationRecords(records)) if one.what == "miner 'ill'")


def test_of_records_the_tightest_is_shown_and_of_equal_ones_the_last():
    old, new, none = record("2024-01-01T00:00:00Z"), record("2025-01-01T00:00:00Z"), record("2026-01-01", None)
    assert of_miner(old, new, none).record is of_miner(new, none, old).record is new
    assert of_miner(none, attrs.evolve(old, tightness=0.95), new).record.time == old.time
    failed = attrs.evolve(old, passed=False, tightness=0.1)
    assert of_miner(new, failed, none).record is failed
    assert not of_miner(new, failed).passed
    assert str(of_miner(new, failed)) == (
        "miner 'ill': verified on 2024-01-01T00:00:00Z under add-or-remove-one (ill), the search reached 10 % of the "
        "claim: A CLAIM DOES NOT HOLD"
    )
    assert str(of_miner(none)) == "miner 'ill': verified on 2026-01-01 under add-or-remove-one (ill)"


def test_a_tightness_is_reached_by_what_passed_and_was_searched():
    known = of_miner(record("2024-01-01T00:00:00Z"))
    assert known.reaches(0.9)
    assert not known.reaches(0.91)
    unsearched = of_miner(record("2024-01-01T00:00:00Z", None))
    assert unsearched.passed
    assert unsearched.reaches(0.0)
    assert not unsearched.reaches(0.01)
    assert not of_miner().reaches(0.0)
    assert not of_miner().passed


def test_what_has_changed_is_told_since_the_last_record():
    old, new = record("2024-01-01", digest="0" * 64), record("2025-01-01", digest="1" * 64)
    for records in ((old, new), (new, old)):
        found = of_miner(*records)
        assert found.record is None
        assert found.reason == f"the code of miner 'ill' ({__name__}) has changed since 2025-01-01"
    assert str(of_miner()) == "miner 'ill': not verified: no record of it"
    other = attrs.evolve(record("2024-01-01"), relation=REPLACE)
    assert of_miner(other).reason == "no record under add-or-remove-one"
    assert of_miner(record("2024-01-01", kind="mechanism")).reason == "no record of it"
    assert of_miner(record("2024-01-01", name="other")).reason == "no record of it"


def test_a_record_is_written_and_read_as_it_is(tmp_path):
    one = record("2024-01-01T00:00:00Z")
    assert VerifiedCode.from_dict(one.to_dict()) == one
    assert one.key == ("miner", "ill", "add-or-remove-one", "ill")
    file = tmp_path / "verified.json"
    VerificationRecords((one,)).record(file, [])
    assert json.loads(file.read_text()) == {"verified_version": 1, "records": [one.to_dict()]}
    assert file.read_text().startswith('{\n  "verified_version": 1,\n')
    known = VerificationRecords.load(file)
    assert known == VerificationRecords((one,), hashlib.sha256(file.read_bytes()).hexdigest())
    assert VerificationRecords() == VerificationRecords((), "")
