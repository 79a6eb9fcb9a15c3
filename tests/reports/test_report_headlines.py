"""What a report says of a plan before numbers: where data is, who approved it, whom it protects, what it assumes."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.reports import report_headlines
from dpframework.reports.report_headlines import About

ILL = dpf.Boolean("ill", view="left")
AGE = dpf.Numeric("age", 0, 100, bins=4)


def plan(**changes: Any) -> Any:
    usual = {"data": (), "engine": None, "verified": None}
    return SimpleNamespace(**(usual | changes))


def facts(plan: Any, **changes: Any) -> list[tuple[str, str]]:
    return report_headlines.verdict_facts(plan, About(time="now", version="1.2", **changes))


UNVERIFIED = ("verification", "not shown; give a file of 'verify --record' with --verified")
UNAPPROVED = ("approval", "not shown; name a ledger with --ledger and --data-set")
MADE = [("date", "now"), ("dpframework", "1.2")]


def test_what_is_not_known_is_said_to_be_not_shown() -> None:
    assert facts(plan()) == [("data", "not named in the plan"), *MADE, UNVERIFIED, UNAPPROVED]


@pytest.mark.parametrize(
    ("named", "given", "text"),
    [((), ("b", "c"), "b, c"), (("a",), (), "a"), (("a",), ("b", "c"), "a"), ((), (), "not named in the plan")],
)
def test_the_plan_says_where_data_is_before_anything_else(named: Any, given: Any, text: str) -> None:
    assert facts(plan(data=named), data=given)[0] == ("data", text)


def test_each_fact_that_is_known_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpframework.plan.verification_records_file.code_verdicts", lambda plan, verified: verified)
    known = {"approvals": (["A", "B"], ("A", "B")), "counting_summary": ("DuckDB", "DuckDB"), "ran": ("by C", "by C")}
    for some in itertools.chain.from_iterable(itertools.combinations(known, k) for k in range(4)):
        found = facts(
            plan(engine="tcp://a", verified=["one", "two"]), ledger_facts=["h", "i"], **{n: known[n][0] for n in some}
        )
        assert found == [
            ("data", "not named in the plan"),
            ("engine", "counts are evaluated at tcp://a"),
            *([("counted by", "DuckDB")] if "counting_summary" in some else []),
            *MADE,
            ("verification", "one"),
            ("verification", "two"),
            *([("approval", "A"), ("approval", "B")] if "approvals" in some else [UNAPPROVED]),
            *([("run", "by C")] if "ran" in some else []),
            ("ledger", "h"),
            ("ledger", "i"),
        ]
    assert facts(plan(), approvals=[])[-1] == ("approval", "nobody has approved this plan")


def test_attributes_have_a_row_each_with_their_kind_view_and_domain() -> None:
    rows = report_headlines.attribute_rows(dpf.Schema([ILL, AGE]))
    assert rows == [("ill", "boolean, left view", ILL.domain_text), ("age", "numeric", AGE.domain_text)]


def test_an_approval_is_told_if_no_error_was_found() -> None:
    def finding(code: str, severity: str) -> Any:
        return SimpleNamespace(code=code, severity=dpf.checks.Severity(severity))

    def told(found: list[Any], approvals: Any) -> str:
        return report_headlines.describe_approval(plan(check=lambda: found), About(approvals=approvals))

    errors = [
        finding("DP002", "error"),
        finding("DP026", "warning"),
        finding("DP001", "error"),
        finding("DP002", "error"),
    ]
    for approvals in (None, [], ["A"]):
        assert told(errors, approvals) == "REFUSED: the plan cannot be run; see DP002, DP001 among the findings"
    for approvals, text in (
        (None, "no approval is shown"),
        ([], "not yet approved"),
        (["approved by A", "approved by B"], "approved by B"),
    ):
        assert told([], approvals) == told(errors[1:2], approvals) == f"Checks passed; {text}"


def brief(relation: str = "add-or-remove-one", schema: Any = None, **more: Any) -> str:
    study = dpf.Study(dpf.Schema([ILL]) if schema is None else schema, epsilon=2, relation=relation, **more)
    study.add_plan("n", dpf.step("s", dpf.queries.Histogram(ILL), DiscreteLaplace(1)))
    return report_headlines.brief(study.plan())


def test_a_plan_in_brief() -> None:
    row, one = dpf.PrivacyUnit(), dpf.PrivacyUnit("owner", 2)
    cost, correct = "It costs epsilon 1.0; epsilon 2.0 is allowed.", "It assumes nothing but correct code."
    for text, start in (
        (brief(), f"{row.who}: its values, and whether it is in the table. {row.share} {cost} {correct}"),
        (brief("replace-one"), f"{row.who}: its values, but not that it is in the table. "),
        (
            brief(unit="owner", rows_per_unit=2),
            f"{one.who}: their values, and whether they are in the table. {one.share} {cost}",
        ),
        (
            brief(allow=["one-row-per-person"]),
            "each person: their values, and whether they are in the table. Nobody has a second row, as the owner",
        ),
    ):
        assert text.startswith(f"This plan protects {start}")
    for schema, most in ((dpf.Schema([ILL], rows=1500), ""), (dpf.Schema([ILL], max_rows=1500), "at most ")):
        text = brief(schema=schema)
        assert f"It assumes that the table has {most}1,500 rows, as the owner states." in text
        assert correct not in text
