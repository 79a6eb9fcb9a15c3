"""The tables of a ledger: what stands in each cell of caps, approvals, runs, groups, periods and releases outside."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework import ledger as ledgers
from dpframework.cli import ledger_tables as tables
from dpframework.facts.privacy_losses import ByRelation, PrivacyLoss, Relation
from dpframework.ledger.approvals import Binding
from dpframework.ledger.outside_releases import OutsideKind

BINDING = Binding("salt", "digest")
MONTHLY = dpf.PrivacyUnit("owner", 2, period="month", date="day")


def data_set(**changes: Any) -> Any:
    """What tables ask of a data set."""
    usual = {
        "name": "adult",
        "unit": dpf.PrivacyUnit(),
        "epsilon": Fraction(3),
        "delta": Fraction(0),
        "reserve": Fraction(0),
        "history": None,
        "relation": Relation.ADD_OR_REMOVE_ONE,
        "spent": PrivacyLoss("0.5"),
        "left": Fraction(5, 2),
        "runs": {},
        "approvals": [],
        "periods": {},
        "outside": [],
    }
    return SimpleNamespace(**(usual | changes))


def run(**changes: Any) -> Any:
    usual = {
        "subject": SimpleNamespace(study="s", result_names=["a", "b"], by="ann", purpose="p", period=""),
        "amount": ByRelation(Fraction(1, 3), None),
        "resumed": 0,
        "redrawn": 0,
        "approval": SimpleNamespace(by="eve"),
        "time": "now",
        "charges": [1, 2],
        "end": "finished",
        "charged": True,
        "id": "r1",
        "plan": "0123456789abcdef",
    }
    return SimpleNamespace(**(usual | changes))


def printed(table: Any) -> list[list[str]]:
    """The cells of a table, row by row, without its heads."""
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "epsilon 3.0 under add-or-remove-one"),
        ({"delta": Fraction(1, 10**6)}, "epsilon 3.0 at delta 1e-06 under add-or-remove-one"),
        (
            {"delta": Fraction(1, 10**6), "reserve": Fraction(1, 10**7)},
            "epsilon 3.0 at delta 1e-06, of which 1e-07 is held back under add-or-remove-one",
        ),
        (
            {"unit": MONTHLY, "history": Fraction(9)},
            "epsilon 3.0 per month and 9.0 over a person's whole history under add-or-remove-one, "
            f"protecting {MONTHLY}",
        ),
        (
            {"unit": dpf.PrivacyUnit("owner"), "relation": Relation.REPLACE_ONE},
            "epsilon 3.0 under replace-one, protecting one owner, by one row",
        ),
    ],
)
def test_a_cap_in_words(changes: dict[str, Any], text: str) -> None:
    assert tables.cap_text(data_set(**changes)) == text
    row = printed(tables.cap_table([data_set(**changes, runs={1: run(), 2: run()})]))
    assert row == [["adult", text, "0.5", "2.5", "2"]]


def test_what_is_spent_without_a_finite_total_is_nothing() -> None:
    assert tables.text_of_loss(data_set(spent=PrivacyLoss())) == "0.0"
    assert tables.text_of_loss(data_set(spent=PrivacyLoss("1/3"))) == "~0.3333"


def test_an_approval_is_of_any_data_or_one_and_may_be_revoked() -> None:
    holds = ledgers.Approval("0123456789abcdef", "eve", "now", 3, "n", used=1)
    revoked = attrs.evolve(holds, revoked="bob", data=BINDING, signature="s", signed_by="eve")
    assert printed(tables.approval_table(data_set(approvals=[holds, revoked]))) == [
        ["0123456789ab", "now", "eve", "3", "2", "any", "unsigned", "n"],
        ["0123456789ab", "now", "eve", "3", "revoked by bob", "one", "signed by eve", "n"],
    ]


def test_a_run_says_what_it_cost_and_how_it_ended() -> None:
    unnamed = SimpleNamespace(study="", result_names=[], by="", purpose="", period="2026-03")
    rows = tables.run_rows(
        data_set(
            runs={
                1: run(),
                2: run(
                    subject=unnamed, amount=ByRelation(None, Fraction(1)), end=None, resumed=1, redrawn=2, charges=[]
                ),
            }
        )
    )
    assert rows == [
        ("s", "a, b", "ann", "p", "eve", "now", "~0.3333", "2", "finished", "r1", "0123456789ab"),
        (
            *("-", "-", "-", "-", "eve", "now", "", "0"),
            "unfinished, resumed 1x, drawn again 2x, of 2026-03",
            *("r1", "0123456789ab"),
        ),
    ]
    assert printed(tables.run_table(data_set(runs={1: run()}))) == [list(rows[0][:-1])]
    assert tables.run_rows(data_set(runs={1: run(end=None, charged=False)}))[0][8] == "began to read"
    assert [column.header for column in tables.run_table(data_set()).columns] == list(tables.RUNS[:-1])


def test_groups_of_runs_and_of_periods() -> None:
    def budget(epsilon: Any) -> Any:
        return SimpleNamespace(loss=lambda: None if epsilon is None else PrivacyLoss(epsilon))

    periods = {"2026-04": budget("0.5"), "2026-03": budget(None), "2026-05": budget(4), "2026-06": budget(3)}
    assert tables.period_rows(data_set(periods=periods)) == [
        ("2026-03", "no finite total", ""),
        ("2026-04", "0.5", "2.5"),
        ("2026-05", "4.0", "0.0"),
        ("2026-06", "3.0", "0.0"),
    ]
    shown = tables.cells_table(tables.PERIODS, tables.period_rows(data_set(periods=periods)))
    assert printed(shown)[1] == ["2026-04", "0.5", "2.5"]
    assert len(printed(shown)) == 4


def outside(kind: OutsideKind, covered: bool = False, attributes: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(
        what="w", kind=kind, attributes=attributes, by="eve", time="2026-03-09T14:05:59Z", effect="e", covered=covered
    )


def test_releases_outside_are_listed_and_counted_by_their_kind() -> None:
    exact, look = OutsideKind.EXACT, OutsideKind.LOOK
    found = data_set(outside=[outside(exact, attributes=("a", "b")), outside(look)])
    assert tables.outside_rows(found) == [
        ("w", exact.value, "a, b", "eve", "2026-03-09 14:05 UTC", "e"),
        ("w", look.value, "any", "eve", "2026-03-09 14:05 UTC", "e"),
    ]
    assert len(printed(tables.cells_table(tables.OUTSIDE, tables.outside_rows(found)))) == 2
    for made, words in (
        ([], ""),
        ([outside(exact, covered=True)], ""),
        ([outside(exact)], "no claim covers 1 exact release outside this ledger"),
        ([outside(look)] * 2, "no claim covers 2 looks outside this ledger"),
        (
            [outside(exact), outside(look), outside(exact), outside(look, covered=True)],
            "no claim covers 2 exact releases and 1 look outside this ledger",
        ),
    ):
        assert tables.claim_sentence(data_set(outside=made)) == words
