"""Goals that come with a foreign certificate: no command of them reaches a solver, and no text ends in a failure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proving import needs_solvers
from scored_formulas import GINI, JACCARD, NORM

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation, exact
from dpframework.formulas import Argument, Claim, audit, prove
from dpframework.formulas.formula_and_claim_json import read_formula
from dpframework.formulas.smt_goal_evaluator import value_in
from dpframework.formulas.solvers import SOLVERS, solve

pytestmark = needs_solvers

COMMANDS = [
    '(set-option :regular-output-channel "planted")',
    '(set-option :diagnostic-output-channel "planted")',
    "(set-option :regular-output-channel planted)",
    '(set-option :trace_file_name "planted")',
    '(include "planted")',
    "(include planted)",
    "(get-model)",
    "(check-sat)",
    "(reset)",
    "(exit)",
    "(declare-const x ReaL)",
    "(assert (unknown))",
    "(",
]
TRUE = [(GINI, "fall"), (JACCARD, "replaced"), (NORM, "rise")]


def goals_of(form: Any) -> Iterator[tuple[list[Any], int]]:
    """Yield each place of a goal's text: a list, and where it is in it."""
    for inner in form.values() if isinstance(form, dict) else form if isinstance(form, list) else ():
        yield from goals_of(inner)
    for k, inner in enumerate(form if isinstance(form, list) else ()):
        if isinstance(inner, str) and "(set-logic" in inner:
            yield form, k


@pytest.fixture(scope="module")
def arguments() -> list[dict[str, Any]]:
    made = []
    for shape, change in TRUE:
        (proof,) = prove(shape, [Claim(change, 2)])
        assert proof.argument is not None
        made.append(proof.argument.to_dict())
    return made


def test_a_command_within_any_goal_is_seen_and_not_obeyed(
    arguments: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = itertools.cycle(COMMANDS)
    for true in arguments:
        for number in range(len(list(goals_of(true)))):
            form, command = json.loads(json.dumps(true)), next(commands)
            held, k = list(goals_of(form))[number]
            held[k] = held[k].replace("(check-sat)", f"{command}\n(check-sat)")
            assert list(audit(Argument.from_dict(form))), (number, command)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "text", ["(declare-const x ReaL)\n(check-sat)", "(assert (x))", "(", "x" * 50, "(a)(check-sat)"]
)
def test_a_text_that_a_solver_cannot_read_is_not_proved(solver: str, text: str) -> None:
    assert solve(solver, f"(set-logic QF_NRA)\n{text}") != "unsat"


@pytest.mark.parametrize("text", ["1e999999999", "-1E+9999", "1e-99999999", "1_0e99_99"])
def test_a_number_that_would_take_gigabytes_is_refused(text: str) -> None:
    for form in (["constant", text, []], ["public", ["a", "0", text], []]):
        with pytest.raises(InputError, match="is no formula"):
            read_formula(form)
    with pytest.raises(InputError, match="has no number for"):
        value_in(text, {})
    with pytest.raises(InputError, match="write a finite number"):
        exact(text)
    with pytest.raises(ValueError, match="not a number that people write"):
        ByRelation.from_dict({"add-or-remove-one": text, "replace-one": None})
