"""A ledger as a page: its sentences, and which tables and columns stand on it for one data set and for several."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework import ledger as ledgers
from dpframework.cli import ledger_formats as pages
from dpframework.facts.privacy_losses import PrivacyLoss
from dpframework.ledger.outside_releases import OutsideKind

from .test_ledger_tables import BINDING, MONTHLY, data_set, outside, run

RECORDS: Any = SimpleNamespace(authority="whoever can write decides", head="7 abc")
NOW = "2026-03-09T14:05:59Z"


def shown(**changes: Any) -> Any:
    """What pages ask of a data set beyond what tables ask."""
    usual = {"cap": Fraction(3), "grouped": {by: [] for by in ledgers.GroupBy}, "would_buy": ["2 studies", "one"]}
    return data_set(**(usual | changes))


@pytest.fixture
def laid_out(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `html_tables` is given for a page of some data sets."""
    given: list[Any] = []

    def keep(sections: Any, sentences: Any, **titles: Any) -> str:
        given.append(({title: (heads, rows) for title, _, heads, rows in sections}, sentences, titles))
        return "page"

    monkeypatch.setattr("dpframework.reports.html.html_tables", keep)
    monkeypatch.setattr(ledgers, "remainder", lambda one: one.would_buy)
    monkeypatch.setattr(ledgers, "group_runs", lambda one, by: one.grouped[by])

    def lay_out(*some: Any) -> Any:
        assert pages._page(RECORDS, some, "l") == "page"
        return given.pop()

    return lay_out


def approval(**changes: Any) -> Any:
    return attrs.evolve(ledgers.Approval("0123456789abcdef", "eve", NOW, 3, "n", used=1, signature="s"), **changes)


def test_the_name_of_one_data_set_stands_in_the_first_table_alone(laid_out: Any) -> None:
    one = shown(
        runs={
            1: run(time=NOW),
            2: run(
                time=NOW, id="r2", subject=SimpleNamespace(study="t", result_names=[], by="", purpose="", period="")
            ),
        },
        approvals=[approval(), approval(revoked="bob", data=BINDING)],
        outside=[outside(OutsideKind.EXACT)],
        unit=MONTHLY,
        periods={"2026-03": SimpleNamespace(loss=lambda: PrivacyLoss("0.5"))},
    )
    few, _, titles = laid_out(one)
    many, _, _ = laid_out(one, one)
    assert titles == {"title": "l", "subtitle": "A ledger"}
    names = ["Data sets", "Runs", "Periods", "Spent by person", "Spent by month", "Spent by attribute", "Approvals"]
    assert list(few) == list(many) == [*names, "Released outside this ledger"]
    cap = ("adult", str(MONTHLY), "epsilon 3.0 under add-or-remove-one", "0.5", "2.5", "2")
    assert few["Data sets"] == (("data set", "protects", "cap", "spent", "left", "runs"), [cap])
    assert many["Data sets"] == (few["Data sets"][0], [cap, cap])
    for name in names[1:]:
        heads, rows = many[name]
        assert heads[0] == "data set"
        assert {row[0] for row in rows} <= {"adult"}
        assert few[name] == (heads[1:], [row[1:] for row in rows[: len(rows) // 2]])
        assert all(len(row) == len(heads) for row in rows)
    assert few["Approvals"][1] == [
        ("0123456789ab", "2026-03-09 14:05 UTC", "eve", "3", "2", "any", "signed, not verified", "n"),
        ("0123456789ab", "2026-03-09 14:05 UTC", "eve", "3", "revoked by bob", "one", "signed, not verified", "n"),
    ]
    at, ended, plan = "2026-03-09 14:05 UTC", "finished, 2 releases", "of plan 0123456789ab"
    assert few["Runs"][1] == [
        ("s: a, b", "ann: p", "eve", at, "~0.3333", ended, f"r1 {plan}"),
        ("t: -", "-", "eve", at, "~0.3333", ended, f"r2 {plan}"),
    ]
    assert few["Periods"][1] == [("2026-03", "0.5", "2.5")]


def test_periods_are_shown_if_there_are_any(laid_out: Any) -> None:
    assert "Periods" not in laid_out(shown())[0]


def test_groups_are_shown_with_their_people_but_where_they_are_people(laid_out: Any) -> None:
    group = SimpleNamespace(name="g", charged="1", runs=2, results=["a", "b"], people=["ann", "bob"], purposes=[])
    found = laid_out(shown(grouped={by: [group] for by in ledgers.GroupBy}))[0]
    assert found["Spent by person"] == (
        ("person", "charged", "runs", "results", "purposes"),
        [("g", "1", "2", "a, b", "-")],
    )
    for by in ("month", "attribute"):
        heads = (by, "charged", "runs", "results", "by", "purposes")
        assert found[f"Spent by {by}"] == (heads, [("g", "1", "2", "a, b", "ann, bob", "-")])


def test_sentences_tell_what_is_spent_and_left_and_what_can_be_learned(laid_out: Any) -> None:
    someone = "that one person, who has one row, is in the table can rise to at most"
    spent = ["After all releases charged so far: a guess of 50 % " + someone + " 62.3 %."]
    capped = ["If the whole cap is spent: a guess of 50 % " + someone + " 95.3 %."]
    said = laid_out(shown(runs={1: run(time=NOW)}))[1]
    first = "'adult' has spent epsilon 0.5 in 1 run, and 2.5 is left. This is enough for 2 studies; or one."
    last = ["Whoever can write decides.", "Head: 7 abc."]
    assert said == [first, *spent, *capped, *last]
    exhausted = shown(left=Fraction(0), outside=[outside(OutsideKind.LOOK)])
    said = laid_out(exhausted, shown())[1]
    assert said[0] == "'adult' has spent epsilon 0.5 in 0 runs, and 0.0 is left. No plan fits any more."
    assert said[1:4] == [*spent, *capped, "No claim covers 1 look outside this ledger."]
    assert said[4].endswith("This is enough for 2 studies; or one.")
    assert said[5:] == [*spent, *capped, *last]


def test_each_format_is_that_of_the_files_name(laid_out: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(pages, "ledger_form", lambda records, some: {"data_sets": len(some)})
    some = [shown(runs={1: run()}), shown(name="b", runs={1: run(), 2: run()})]
    assert pages.ledger_text(RECORDS, some, Path("a.htm")) == "page"
    assert pages.ledger_text(RECORDS, some, Path("a.json")) == '{\n  "data_sets": 2\n}\n'
    head, *rows = pages.ledger_text(RECORDS, some, Path("a.csv")).splitlines()
    assert head.split(",")[:2] == ["data set", "study"]
    assert [row.split(",")[0] for row in rows] == ["adult", "b", "b"]
    with pytest.raises(dpf.InputError):
        pages.ledger_text(RECORDS, some, Path("a.pdf"))
