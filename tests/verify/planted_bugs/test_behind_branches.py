"""Bugs behind branches on releases that noise on small tables hardly ever reaches, each beside its correct version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from verify.planted_bugs.test_bugs_seen_in_outputs import peek

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian
from dpframework.queries import Count, Histogram
from dpframework.verify import audit
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.behaviour_from_releases_check import Behaviour
from dpframework.verify.miners.runs_steered_to_rare_code import steer
from dpframework.verify.search_time_limit import Patience

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C", "D"]), dpf.Boolean("ill")])
ADD = dpf.Relation.ADD_OR_REMOVE_ONE
FEW = 5
MANY = 3_000


@attrs.frozen
class Branches(dpf.Miner):
    """Counts rows and towns, and does something else behind a branch."""

    name = "branches"
    reached: Callable[[Any, Any], bool]
    noise: dpf.Mechanism
    right: bool = False
    leak: str = "second"

    def plan(self, schema):
        counts, towns = Count(), Histogram(schema["town"])
        steps = [dpf.step("rows", counts, self.noise), dpf.step("towns", towns, self.noise)]
        rounds = [dpf.step(f"round{k}", counts, self.noise) for k in range(4)]
        chosen = dpf.step("chosen", towns, Exponential(self.noise.epsilon if hasattr(self.noise, "epsilon") else 1))
        return dpf.sequential(*steps, dpf.step("second", towns, self.noise), *rounds, chosen)

    def mine(self, table):
        rows, towns = table.release("rows"), table.release("towns")
        if not self.reached(table, (rows, towns)):
            return rows
        private = 7 if self.right else peek(table)
        if self.leak == "result":
            return private
        return table.release("second") if private > FEW else towns


def in_a_loop(table: Any, _: Any) -> bool:
    """Tell whether four counts, one after another, are all large."""
    return all(table.release(f"round{k}") >= 900 * (k + 1) for k in range(4))


BRANCHES: dict[str, Callable[[Any, Any], bool]] = {
    "above": lambda table, made: made[0] > 3_000,
    "above a global": lambda table, made: made[0] > MANY,
    "below": lambda table, made: made[0] < -200,
    "equal": lambda table, made: made[0] == 117,
    "between": lambda table, made: 40_000 < made[0] <= 40_001,
    "in a loop": in_a_loop,
    "on an argmax": lambda table, made: made[0] < -100 and int(np.argmax(made[1])) == 2 and made[1][2] > 500,
    "on one of several": lambda table, made: made[1][3] > 1_000 and made[1][0] < 10,
    "on a selection": lambda table, made: made[0] > 2_000 and table.release("chosen") == "D",
    "on a sum": lambda table, made: made[1].sum() > 100_000,
}


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_bug_behind_a_branch_is_reached(branch):
    """The bug makes another release, or under Gaussian noise returns an exact count."""
    for leak, noise in (("second", DiscreteLaplace(1)), ("result", Gaussian("0.5"))):
        found = []
        for right in (False, True):
            miner = Branches(BRANCHES[branch], noise, right, leak)
            behaviour = Behaviour(Subject(miner, SCHEMA, ADD), np.random.default_rng(0), Patience())
            table = behaviour.table(10)
            for rows, transcript in steer(behaviour.subject, [table], Patience()):
                behaviour.examine(rows, transcript, most=8)
            found.append([one.what for one in behaviour.violations.values()])
        assert found[0], leak
        assert "on a neighbour, the run" in found[0][0]
        assert found[1] == []


def test_an_audit_steers_its_runs():
    found = [
        audit(Branches(BRANCHES["above"], DiscreteLaplace(1), right), SCHEMA, ADD, replays=100)
        for right in (False, True)
    ]
    assert [one.passed for one in found] == [False, True]
