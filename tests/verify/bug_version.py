"""The flag of planted bugs that says whether a bug is left out, and the two tests of a bug that step checks name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.step_sensitivity_and_mechanism_checks import StepChecks
from dpframework.verify.search_time_limit import Patience

#: By name, the function that makes a miner with or without a bug, its schema, the relation unless it is
#: add-or-remove-one, and words of the problem that names the bug.
PlantedSteps = Mapping[str, tuple[Any, ...]]


class Version:
    """Whether a bug is left out: no flag, which verification would turn to make the bug."""

    def __init__(self, right: Any) -> None:
        self.right = bool(right)

    def __bool__(self) -> bool:
        return self.right

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.right is other.right

    def __hash__(self) -> int:
        return hash(self.right)


def problems(miner: dpf.Miner, schema: dpf.Schema, relation: Relation = Relation.ADD_OR_REMOVE_ONE) -> list[str]:
    """Return the problems of a miner's steps."""
    checks = StepChecks(100, 0, [], foreign=True)
    checks.check(Subject(miner, schema, relation), Patience())
    return checks.problems()


def require_named(planted: PlantedSteps, bug: str, record_property: Callable[[str, object], None]) -> None:
    """Fail unless a problem of the miner with the bug names the bug."""
    make, schema, *relation, named = planted[bug]
    found = problems(make(Version(False)), schema, *relation)
    record_property("planted bug", (bug, bool(found)))
    assert any(named in what for what in found), found


def require_no_problem(planted: PlantedSteps, bug: str, record_property: Callable[[str, object], None]) -> None:
    """Fail if the miner without the bug has a problem."""
    make, schema, *relation, _ = planted[bug]
    found = problems(make(Version(True)), schema, *relation)
    record_property("correct version", (bug, not found))
    assert found == []
