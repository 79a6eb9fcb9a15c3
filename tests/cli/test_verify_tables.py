"""What `dpframework verify` prints of each finding: a row for each claim, and a line for what else was found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from dpframework.cli import verify
from dpframework.facts.privacy_losses import Relation
from dpframework.verify.miners.audit_report import NEAR

ADD, REPLACE = Relation
KINDS = ("audits", "sensitivities", "left_out", "samplers", "losses", "accountants")


class Said(SimpleNamespace):
    """A finding that says its name."""

    def __str__(self) -> str:
        return str(self.text)


def report(**changes: Any) -> Any:
    usual = {"claim": 1.0, "worst": 0.98765, "delta": 0.0, "tightness": NEAR, "replays": 12_345, "seconds": 10.0}
    return SimpleNamespace(**(usual | {"showed_nothing": False, "verdict": "the verdict"} | changes))


def audited(**changes: Any) -> Any:
    usual = {"example": "one", "relation": ADD, "report": report(), "passed": True, "claimed": True, "tail": None}
    return SimpleNamespace(**(usual | {"loose": "", "told_apart": None} | changes))


def finding(problems: tuple[str, ...] = (), **changes: Any) -> Any:
    usual = dict.fromkeys(KINDS, ()) | {"bounding": None, "derivation": None, "verdict": "in short"}
    return SimpleNamespace(problems=lambda: iter(problems), **(usual | changes))


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(verify, "console", lambda: Console(width=200))

    def lines(found: Any) -> list[list[str]]:
        verify._show(found)
        rows = [line for line in capsys.readouterr().out.splitlines() if not set(line) <= set("┏┓┡┩└┘━─┳┴╇ ")]
        return [[cell.strip() for cell in row.strip("┃│").replace("┃", "│").split("│")] for row in rows]

    return lines


HEADS = ["example", "relation", "claim", "largest loss", "tightness", "replays", "per second", "verdict"]
NUMBERS = ["1", "0.98765", f"{NEAR:.4f}", "12,345", "1,234"]


@pytest.mark.parametrize(
    ("one", "row"),
    [
        (audited(), [*NUMBERS, "holds"]),
        (audited(passed=False), [*NUMBERS, "DOES NOT HOLD"]),
        (audited(claimed=False), [*NUMBERS, ""]),
        (audited(report=report(delta=1e-6)), ["1 at delta 1e-06", *NUMBERS[1:], "holds"]),
        (audited(report=report(showed_nothing=True), passed=False), [*NUMBERS, "nothing shown"]),
        (audited(report=None), ["", "no claim", "", "", "", "holds"]),
        (audited(report=None, passed=False), ["", "no claim", "", "", "", "DOES NOT HOLD"]),
        (audited(report=None, claimed=False), ["", "no claim", "", "", "", ""]),
    ],
)
def test_an_audit_is_a_row(one: Any, row: list[str], printed: Any) -> None:
    for relation in Relation:
        one.relation = relation
        assert printed(finding(audits=(one,))) == [HEADS, ["one", relation.value, *row], ["in short"]]


def test_a_query_is_a_row_with_its_changes_by_norm(printed: Any) -> None:
    changes = [
        SimpleNamespace(norm=norm, largest=2 / 3, declared=declared) for norm, declared in (("l1", 2), ("l2", 1))
    ]
    some = [
        SimpleNamespace(query=query, relation=REPLACE, measured=changes[:k], passed=passed)
        for query, k, passed in (("sum", 2, True), ("mean", 1, False))
    ]
    assert printed(finding(sensitivities=some)) == [
        ["query", "relation", "largest change found / declared", "verdict"],
        ["sum", "replace-one", "l1 0.66667 / 2, l2 0.66667 / 1", "holds"],
        ["mean", "replace-one", "l1 0.66667 / 2", "DOES NOT HOLD"],
        ["in short"],
    ]


def test_what_was_left_out_comes_before_lines_and_the_verdict_last(printed: Any) -> None:
    long = "word " * 50 + "end"  # is one line, as a program may read it
    found = finding((f"a problem {long}",), left_out=("b", long), losses=[Said(text=f"d {long}", passed=True)])
    left = [[f"left out for lack of time: {name}"] for name in ("b", long)]
    assert printed(found) == [*left, [f"d {long}"], [f"a problem {long}"], ["in short"]]


def test_lines_tell_what_passed_in_its_order_and_then_all_problems() -> None:
    def said(name: str) -> dict[str, Any]:
        return {
            **{kind: [Said(text=f"{kind} {ok}", passed=ok) for ok in (True, False)] for kind in KINDS[3:]},
            **{kind: Said(text=kind, passed=name == kind) for kind in ("bounding", "derivation")},
        }

    last = ["losses True", "accountants True", "p", "q"]
    for name, own in (("bounding", ["bounding"]), ("derivation", ["derivation"]), ("", [])):
        assert list(verify._lines(finding(("p", "q"), **said(name)))) == ["samplers True", *own, *last]


@pytest.mark.parametrize("passed", [False, True])
def test_lines_of_an_audit_tell_of_loose_claims_tails_and_tables_that_were_told_apart(passed: bool) -> None:
    where = f"one, {ADD}: "
    apart = [Said(text="apart", epsilon=epsilon) for epsilon in (0.0, 0.5)]
    for changes, lines in (
        ({}, []),
        ({"report": report(tightness=NEAR - 1e-9)}, ["the verdict"]),
        ({"report": report(tightness=0.1), "loose": "so it is"}, ["the verdict; this claim is loose: so it is"]),
        ({"loose": "so it is"}, []),
        ({"report": None}, []),
        ({"tail": Said(text="tail")}, ["tail"]),
        ({"told_apart": apart[0]}, []),
        ({"told_apart": apart[1], "tail": Said(text="tail")}, ["tail", "apart"]),
    ):
        found = list(verify._lines(finding(audits=[audited(passed=passed, **changes)])))
        assert found == ([where + line for line in lines] if passed else [])
