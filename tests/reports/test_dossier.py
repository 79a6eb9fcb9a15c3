"""The dossier and the registry's entry: every question is asked, and no answer claims more than it rests on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dpframework as dpf
from dpframework.cli import dossier_registry_entry_and_owner_statements, main
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PartitionSelection
from dpframework.plan import VerificationRecords, VerifiedCode
from dpframework.reports.dossier import Basis, Statements, dossier, registry_entry, registry_text, statements_template
from dpframework.reports.dossier.dossier_content import LedgerState
from dpframework.reports.dossier.nist_hazards import HAZARDS
from dpframework.reports.dossier.owner_statements import TOPICS
from dpframework.reports.dossier.review_board_questions import ITEMS, OUT_OF_SCOPE

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=5)], about_rows=2000)
SAID = {f"{topic}.{key}": f"the {key} of {topic}" for topic, keys in TOPICS.items() for key in keys}
SAID |= {
    "product.type": "Summary statistics",
    "product.sector": "Healthcare",
    "product.publication_date": "2026-12-01",
    "product.releases": "One release",
    "product.data_source": "Dynamic",
}
LEDGER = LedgerState(["capped at 2"], ["table 3 (exact): no epsilon"], [])


def plan_of(**options: Any) -> dpf.StudyPlan:
    study = dpf.Study(SCHEMA, **{"epsilon": 1, **options})
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon="0.5"))
    study.add("age", dpf.miner("mean", attribute="age", epsilon="0.5"))
    return study.plan()


def bases(found: Any, title: str) -> list[Basis]:
    (one,) = [one for one in found.items if one.item.title == title]
    return [answer.basis for answer in one.answers]


def texts(found: Any, title: str) -> str:
    (one,) = [one for one in found.items if one.item.title == title]
    return " ".join(answer.text for answer in one.answers)


def test_there_are_twenty_questions_and_they_answer_all_hazards_in_scope() -> None:
    titles, outside = {item.title for item in ITEMS}, {title for title, _ in OUT_OF_SCOPE}
    assert len(ITEMS) == len(titles) == 20
    assert len(HAZARDS) == len({one.text for one in HAZARDS}) == 24
    assert sum(one.in_scope for one in HAZARDS) == 20
    for one in HAZARDS:
        assert one.topic in (titles if one.in_scope else outside)
    sections = [tuple(map(int, one.section.split("."))) for one in HAZARDS]
    assert sections == sorted(sections)


def test_a_hazard_is_answered_where_its_question_is() -> None:
    states = {one.text: state for one, state in dossier(plan_of()).hazards}
    assert states["a large epsilon may protect nobody"] == "answered"
    assert states["the rows are stolen"] == "open"
    assert states["strangers send queries at any time"] == "out of scope"
    stated = dossier(plan_of(allow=["one-row-per-person"]), Statements(SAID), ledger=LEDGER)
    assert {state for one, state in stated.hazards if one.topic != "correctness"} == {"answered", "out of scope"}


def test_a_study_of_four_miners_is_answered_whole_and_each_answer_says_what_it_rests_on() -> None:
    """Twenty of twenty: from the plan, the ledger, tests of exactly this code, and the owner's statements."""
    study = dpf.Study(SCHEMA, epsilon=1, allow=["one-row-per-person"])
    for name, miner, parameters in (
        ("ill", "histogram", {"attribute": "ill"}),
        ("mean", "mean", {"attribute": "age"}),
        ("median", "quantile", {"attribute": "age"}),
        ("tree", "dp-id3", {"target": "ill", "max_depth": 1}),
    ):
        study.add(name, dpf.miner(miner, epsilon="0.25", **parameters))
    plan = study.plan()
    records = [
        VerifiedCode(one, tuple(plan.code["packages"]), plan.relation, "yearly", ("all",), passed=True, tightness=1.0)
        for one in plan.code["components"]
        if one["kind"] in ("miner", "mechanism")
    ]
    found = dossier(plan.with_verified(VerificationRecords(tuple(records))), Statements(SAID), ledger=LEDGER)
    assert found.headline == "20 of 20 questions answered"
    assert {state for _, state in found.hazards} == {"answered", "out of scope"}
    rests = {one.item.title: {answer.basis for answer in one.answers} for one in found.items}
    assert rests["epsilon"] == rests["variant and delta"] == rests["utility"] == {Basis.PLAN}
    assert rests["correctness"] == {Basis.PLAN, Basis.TESTED}
    assert rests["security and access"] == rests["data collection"] == {Basis.STATED}
    assert rests["composition"] == {Basis.PLAN, Basis.LEDGER}
    assert set().union(*rests.values()) == {Basis.PLAN, Basis.LEDGER, Basis.TESTED, Basis.STATED}


def test_a_delta_says_whether_it_may_fail_altogether_and_what_it_is_converted_from() -> None:
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-7")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.015")))
    text = texts(dossier(study.plan()), "variant and delta")
    assert "The zcdp total is converted from rho 0.015" in text
    assert "No release has a delta of its own" in text
    own = dpf.Study(SCHEMA, epsilon=1, delta="1e-7")
    own.add_plan("n", dpf.step("n", dpf.queries.Count(), PartitionSelection("0.5", "1e-7")))
    text = texts(dossier(own.plan()), "variant and delta")
    assert "Releases have a delta of 1e-07 of their own" in text
    assert "converted" not in text


def test_what_happens_to_values_outside_the_schema_is_as_the_study_says() -> None:
    for policy, told in (("clamp", "are clamped, or"), ("missing", "bounds are made"), ("error", "ends the run")):
        assert told in texts(dossier(plan_of(out_of_domain=policy)), "bounds and domains")


def test_keys_that_no_list_names_are_told() -> None:
    study = dpf.Study(dpf.Schema([dpf.Open("town")]), epsilon=1, delta="1e-6")
    study.add("towns", dpf.miner("keys", attribute="town", epsilon=1, delta="1e-6"))
    text = texts(dossier(study.plan()), "bounds and domains")
    assert "No list names the keys that 'towns" in text
    assert "All other groups and candidates are listed" in text
    assert "No list names" not in texts(dossier(plan_of()), "bounds and domains")


def test_a_plan_with_a_delta_of_its_own_is_not_called_zero_concentrated() -> None:
    """With that probability it shows all of somebody: no rho bounds it, and none converts to a smaller delta."""
    study = dpf.Study(SCHEMA, epsilon=3, delta="1e-6")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.015")))
    assert registry_entry(study.plan(), Statements(SAID))["deployment"]["dp_variant"]["variant_name"] == (
        "Zero-concentrated DP"
    )
    study.add_plan("own", dpf.step("n", dpf.queries.Count(), PartitionSelection("0.5", "1e-7")))
    plan = study.plan()
    entry = registry_entry(plan, Statements(SAID))["deployment"]
    assert entry["dp_variant"]["variant_name"] == "Approximate DP"
    assert entry["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6
    assert "rho" not in str(entry["privacy_loss"])
    assert "rho" not in texts(dossier(plan), "variant and delta")


def test_a_rho_is_told_with_the_epsilon_that_follows_from_it() -> None:
    """Another accounting may give a smaller one of the same plan: that does not follow from its rho."""
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-6")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.015")))
    plan = study.plan()
    totals = plan.totals()
    assert totals["pld"].epsilon < totals["zcdp"].epsilon
    told = registry_entry(plan, Statements(SAID))["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert told == f"rho 0.015, from which {totals['zcdp'].text} follows; by pld accounting, {totals['pld'].text}"


def test_findings_about_a_large_epsilon_and_a_large_delta_stand_with_what_they_are_about() -> None:
    for options, titles in (
        ({"delta": "1e-7"}, set()),
        ({"delta": "0.01", "epsilon": 20}, {"epsilon", "variant and delta"}),
    ):
        study = dpf.Study(SCHEMA, **{"epsilon": 1, **options})
        study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("3" if titles else "0.01")))
        plan = study.plan()
        findings = {one.code: f"{one}." for one in plan.check()}
        found = dossier(plan)
        for title, code in (("epsilon", "DP026"), ("variant and delta", "DP011")):
            assert (code in findings) == (title in titles)
            assert (findings.get(code, "?") in texts(found, title)) == (title in titles)


def test_code_of_others_is_named() -> None:
    assert "are dpframework 0" in texts(dossier(plan_of()), "correctness")

    class Own(dpf.queries.Count):  # type: ignore[misc] # final, for all but this
        name = "of-somebody"

    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", dpf.step("n", Own(), DiscreteLaplace("0.5")))
    says = "The code of of-somebody is not dpframework's own, so only a verification vouches for it."
    assert says in texts(dossier(study.plan()), "correctness")


def test_a_question_that_nobody_answered_is_open() -> None:
    found = dossier(plan_of())
    opened = {one.item.title for one in found.items if one.open}
    assert opened == {
        *("unit of privacy", "other releases", "correctness", "bias and small groups", "bounds and domains"),
        *("choices made by looking", "side channels", "trust and actors", "security and access", "data collection"),
        "justification",
    }
    assert found.answered == 9
    assert found.headline.startswith("OPEN: 9 of 20 questions answered; still open: unit of privacy, other releases")


def test_all_is_answered_by_plan_statements_ledger_and_verification() -> None:
    plan = plan_of(allow=["one-row-per-person"])
    stated = dossier(plan, Statements(SAID), ledger=LEDGER)
    assert {one.item.title for one in stated.items if one.open} == {"correctness"}
    assert bases(stated, "security and access") == [Basis.STATED, Basis.STATED]
    assert set(bases(stated, "epsilon")) == {Basis.PLAN}
    assert bases(stated, "unit of privacy") == [Basis.PLAN, Basis.STATED]
    assert bases(stated, "composition") == [Basis.PLAN, Basis.LEDGER]
    assert bases(stated, "other releases") == [Basis.STATED]


@pytest.mark.parametrize("name", sorted(SAID))
def test_each_statement_has_its_place(name: str) -> None:
    """Without one of the statements, a question is open again, or the registry's entry lacks what it says."""
    plan = plan_of(allow=["one-row-per-person"])
    less = Statements({key: text for key, text in SAID.items() if key != name})
    opened = {one.item.title for one in dossier(plan, less, ledger=LEDGER).items if one.open} - {"correctness"}
    assert opened or entry_or_error(plan, less) != entry_or_error(plan, Statements(SAID))


def entry_or_error(plan: dpf.StudyPlan, statements: Statements) -> Any:
    try:
        return registry_entry(plan, statements)
    except dpf.InputError as error:
        return str(error)


def test_a_ledger_that_holds_nothing_else_answers_what_else_was_released() -> None:
    found = dossier(plan_of(), ledger=LedgerState())
    assert bases(found, "other releases") == [Basis.LEDGER]


def test_what_was_found_wrong_is_not_called_tested(tmp_path: Path) -> None:
    found = dossier(plan_of().with_verified(VerificationRecords()))
    assert Basis.TESTED not in bases(found, "correctness")
    assert Basis.OPEN in bases(found, "correctness")


def test_the_template_is_read_back_with_all_open(tmp_path: Path) -> None:
    file = tmp_path / "owner.toml"
    file.write_text(statements_template())
    assert dict(Statements.load(file).answers) == {}
    assert all(question in file.read_text() for keys in TOPICS.values() for question in keys.values())


def test_a_study_has_statements_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "owner.toml"
    file.write_text('[owner]\norganisation = "H"\n[study.yearly.owner]\norganisation = "K"\n[study.other.trust]\n')
    assert Statements.load(file, "yearly")["owner.organisation"] == "K"
    assert Statements.load(file, "other")["owner.organisation"] == "H"
    assert Statements.load(file)["owner.authors"] == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[owners]\n", "unknown table 'owners'"),
        ("[studies]\n", "unknown table 'studies'; did you mean 'study'"),
        ('[owner]\norganization = "H"\n', "unknown key 'organization'"),
        ("[owner]\norganisation = 3\n", "organisation must be a text"),
        ("owner = 3\n", "must be a table"),
        ("study = 3\n", "study must be a table"),
        ('[study.yearly.owner]\nname = "H"\n', r"\[study.yearly.owner\] unknown key"),
        ("[study.yearly.own]\n", "unknown table 'own'"),
        ("not toml", "is not TOML"),
    ],
)
def test_a_wrong_statement_is_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "owner.toml"
    file.write_text(text)
    with pytest.raises(dpf.InputError, match=f"^{file}: .*{why}"):
        Statements.load(file)


def test_an_entry_has_the_plans_figures_and_the_registrys_form() -> None:
    entry = registry_entry(plan_of(), Statements(SAID), ledger=LEDGER)
    assert (entry["tier"], entry["status"], entry["url_slug"]) == (
        3,
        "Draft",
        "the-name-of-product-the-organisation-of-owner-2026",
    )
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert entry["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert "table 3 (exact)" in entry["deployment"]["dp_variant"]["unprotected_quantities"]
    assert entry["deployment"]["deployment_model"]["release_type"] == "One release"


def test_an_entry_of_noise_without_a_pure_epsilon_names_its_rho() -> None:
    study = dpf.Study(SCHEMA, epsilon=1, delta="1e-7")
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), Gaussian("0.015")))
    entry = registry_entry(study.plan(), Statements(SAID))
    assert entry["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"rho": 0.015}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[prodct]\n", "owner.toml: unknown table 'prodct'; did you mean 'product'?"),
        ("[product]\nnam = 'x'\n", "owner.toml: [product] unknown key 'nam'; did you mean 'name'?"),
        ("[product]\nname = 3\n", "owner.toml: [product] name must be a text, not a number"),
        ("product = 3\n", "owner.toml: [product] must be a table, not a number"),
        (
            "study = 3\n",
            "owner.toml: study must be a table with one table for each study, such as [study.yearly.product]",
        ),
        ("[study]\nyearly = 3\n", "owner.toml: [study.yearly] must be a table, not a number"),
        ("[study.yearly.prodct]\n", "owner.toml: [study.yearly] unknown table 'prodct'; did you mean 'product'?"),
        (
            "[study.yearly.product]\nnam = 'x'\n",
            "owner.toml: [study.yearly.product] unknown key 'nam'; did you mean 'name'?",
        ),
    ],
)
def test_statements_that_nobody_asks_for_are_named(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("owner.toml").write_text(text)
    with pytest.raises(dpf.InputError) as error:
        Statements.load("owner.toml")
    assert str(error.value) == why


def test_a_statement_about_one_study_goes_before_the_same_about_all(tmp_path: Path) -> None:
    file = tmp_path / "owner.toml"
    file.write_text("[product]\nname = ' a  b '\ntype = ''\n[study.yearly.product]\nname = 'c'\n")
    assert Statements.load(file).answers == Statements.load(file, "monthly").answers == {"product.name": "a b"}
    assert Statements.load(file, "yearly").answers == {"product.name": "c"}


def test_an_open_statement_of_the_third_tier_lowers_the_tier() -> None:
    less = {key: text for key, text in SAID.items() if key != "trust.actors"}
    entry = registry_entry(plan_of(), Statements(less))
    assert entry["tier"] == 2
    assert "actors" not in entry["deployment"]["deployment_model"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"product.name": ""}, "product.name"),
        ({"product.type": "Statistics"}, "data_product_type"),
        ({"product.sector": "Health"}, "data_product_sector"),
        ({"product.data_source": "Growing"}, "data_source_type"),
        ({"product.publication_date": "May 2026"}, "publication_date"),
        ({"product.publication_date": "2026-02-30"}, "is no date"),
    ],
)
def test_a_statement_that_the_registry_does_not_take_is_one_sentence(change: dict[str, str], why: str) -> None:
    with pytest.raises(dpf.InputError, match=why):
        registry_entry(plan_of(), Statements({**SAID, **change}))


def test_the_entrys_yaml_is_read_back_as_it_was() -> None:
    yaml = pytest.importorskip("yaml")
    said = {**SAID, "trust.actors": 'says "no": - # {x} \\ yes\u2028', "security.access": "1.0"}
    entry = registry_entry(plan_of(), Statements(said))
    assert yaml.safe_load(registry_text(entry)) == entry
    lines = (
        "two\nlines",
        "  first\nindented",
        "\nno first line",
        "last line\n",
        "odd\u2028line\nand another",
        "a\n\nb\tc",
    )
    for text in lines:
        changed = {**entry, "text": text}
        assert yaml.safe_load(registry_text(changed)) == changed, text


@pytest.fixture
def study_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SCHEMA.dump("p.schema.toml")
    text = '[data]\npath = "p.csv"\nschema = "p.schema.toml"\n[privacy]\nepsilon = 1\n[[step]]\nname = "ill"\n'
    Path("yearly.toml").write_text(text + 'miner = "histogram"\nepsilon = 1\nparams = { attribute = "ill" }\n')
    assert main(["statements", "owner.toml"]) == 0
    return tmp_path


def test_the_commands_write_a_dossier_in_every_format(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, begins in (("d.html", "<!doctype html>"), ("d.md", "# yearly: dossier"), ("d.json", '{\n  "answered"')):
        for _ in range(2):  # the second one replaces the first
            assert main(["report", "yearly.toml", "--dossier", "--out", name, "--owner", "owner.toml"]) == 0
        assert Path(name).read_text().startswith(begins)
        assert "out of scope" in Path(name).read_text().lower().replace("_", " ")
    capsys.readouterr()
    assert main(["report", "yearly.toml", "--dossier", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answered"] == 9
    assert main(["report", "yearly.toml", "--dossier"]) == 0
    assert "What is open" in capsys.readouterr().out


def test_a_dossier_that_is_a_page_is_printed_in_any_encoding(
    study_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages: list[str] = []
    monkeypatch.setattr(dossier_registry_entry_and_owner_statements, "print_page", pages.append)
    for form in ("html", "md", "terminal"):
        assert main(["report", "yearly.toml", "--dossier", "--format", form]) == 0
    assert [page[:15] for page in pages] == ["<!doctype html>"]
    assert capsys.readouterr().out.startswith("# yearly: dossier for a review\n")


def test_the_commands_refuse_what_cannot_be_written(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "yearly.toml", "--dossier", "--out", "d.csv"]) == 2
    assert main(["report", "yearly.toml", "--owner", "owner.toml"]) == 2
    assert main(["report", "yearly.toml", "--registry"]) == 2
    assert main(["report", "yearly.toml", "--registry", "--owner", "owner.toml"]) == 2
    assert main(["statements", "owner.toml"]) == 2
    assert main(["report", "yearly.toml", "--dossier", "--ledger", "l"]) == 2
    assert "exists and is not replaced" in capsys.readouterr().err
