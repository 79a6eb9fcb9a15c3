"""The solvers z3 and cvc5, limited by work and not by time, so that a busy machine gives the same answers."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

from dpframework.facts.errors import InputError

Z3, CVC5 = "z3", "cvc5"
SOLVERS = {Z3: "z3-solver", CVC5: "cvc5"}  #: The names of the solvers, and their packages.
Z3_WORK, CVC5_WORK = 2_000_000, 100_000  # the usual work per goal, in each solver's own units: a few seconds
EXTRA = "pip install 'dpframework[prove]'"


def has_solvers() -> bool:
    """Tell whether both solvers are installed."""
    return all(importlib.util.find_spec(name) is not None for name in SOLVERS)


def require_solvers() -> None:
    """Check that both solvers are installed.

    Raises
    ------
    InputError
        If a solver is not installed.
    """
    if not has_solvers():
        raise InputError(f"proofs need the solvers z3 and cvc5; install them: {EXTRA}")


def versions() -> dict[str, str]:
    """Return the solvers' versions."""
    from importlib.metadata import version

    return {name: version(package) for name, package in SOLVERS.items()}


def solve(solver: str, text: str, effort: int = 1) -> str:
    """Return a solver's answer: `unsat`, `sat` or `unknown`. If the solver cannot read the text, this is `unknown`.

    Parameters
    ----------
    solver
        The name of the solver.
    text
        The goal, an SMT-LIB text. The answer `unsat` proves the goal.
    effort
        The work that the solver may do, as a multiple of the usual work.
    """
    return _by_z3(text, effort)[0] if solver == Z3 else _by_cvc5(text, effort)


def model(text: str, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the values of some of a goal's constants in an example that fits the goal; None if z3 finds no example.

    An example shows why the goal cannot be proved.
    """
    answer, solver = _by_z3(text, 1)
    if answer != "sat":
        return None
    import z3

    found = solver.model()
    values = {str(known): found[known] for known in found.decls()}
    numbers = {}
    for name in names:
        if (value := values.get(name)) is not None:
            approximate = value.approx(10) if z3.is_algebraic_value(value) else value
            fraction = approximate.as_fraction() if z3.is_rational_value(approximate) else str(approximate)
            numbers[name] = float(fraction)
    return numbers


def _by_z3(text: str, effort: int) -> tuple[str, Any]:
    import z3

    solver = z3.Solver()
    solver.set("rlimit", Z3_WORK * effort)
    try:
        solver.from_string(text)
    except z3.Z3Exception:  # raised if z3 cannot read the text, which may come from a file that was changed
        return "unknown", solver
    return str(solver.check()), solver


def _by_cvc5(text: str, effort: int) -> str:
    cvc5 = _cvc5()
    solver = cvc5.Solver()
    solver.setOption("rlimit-per", str(CVC5_WORK * effort))
    solver.setOption("nl-ext-tplanes", "true")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "goal")
    answer = "unknown"
    try:
        while not (command := parser.nextCommand()).isNull():
            said = command.invoke(solver, parser.getSymbolManager()).strip()
            if command.getCommandName() == "check-sat":
                answer = said
    except RuntimeError:  # raised if cvc5 cannot read the text
        return "unknown"
    return answer


@functools.cache
def _cvc5() -> Any:
    import cvc5

    return cvc5
