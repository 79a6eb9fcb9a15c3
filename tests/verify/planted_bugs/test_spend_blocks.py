"""Planted bugs in blocks and in miners that spend them: verification catches each, and passes the right version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
from exact_rows import look_at

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian
from dpframework.mechanisms.release_losses import Losses
from dpframework.plan import Node
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.spend_block_filter import BlockScope
from dpframework.verify import AuditReport, MinerConformance, audit

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")], rows=5)
SECRET = attrs.evolve(SCHEMA, rows=None)
TOWNS = dpf.queries.Histogram(SCHEMA["town"])
REPLAYS, CORRECT = 600, 300


def peek(table: dpf.PrivateTable) -> int:
    """Return the exact number of ill people, past the gate: what a buggy miner gets hold of somehow."""
    return sum(look_at(table, lambda block: int(block.codes("ill").sum())))


@attrs.frozen
class Rounds(dpf.Miner):
    """Choose a town and count all, until a count is large or nothing is left."""

    name = "rounds-of-a-test"
    right: bool = True
    parts: bool = False

    def plan(self, schema: dpf.Schema) -> Node:
        kinds = dpf.kind("choose", TOWNS, Exponential), dpf.kind("count", TOWNS, DiscreteLaplace)
        block = dpf.spend("rounds", *kinds, epsilon=1)
        return dpf.parallel(block, by=schema["ill"]) if self.parts else block

    def mine(self, table: dpf.PrivateTable) -> list[Any]:
        rows = table.partition("ill") if self.parts else [table]
        return [made for part in rows for made in self.rounds(part, part.spend("rounds"))]

    def rounds(self, table: dpf.PrivateTable, block: dpf.run.SpendBlock) -> list[Any]:
        made: list[Any] = [block.release("choose", epsilon="0.1")]
        epsilon = self.first(table)
        while block.fits("count", epsilon=epsilon) and self.goes_on(table, made):
            made.append(block.release("count", epsilon=epsilon))
            epsilon = "0.4" if max(made[-1]) > 3 else "0.3"
        return made

    def first(self, table: dpf.PrivateTable) -> str:
        return "0.2"

    def goes_on(self, table: dpf.PrivateTable, made: list[Any]) -> bool:
        return len(made) < 2 or max(made[-1]) < 10


class AsksByTrueCount(Rounds):
    """Choose the first parameter by a true count."""

    def first(self, table: dpf.PrivateTable) -> str:
        return "0.2" if self.right or peek(table) < 2 else "0.3"


class StopsByTrueCount(Rounds):
    """Stop by a true count."""

    def goes_on(self, table: dpf.PrivateTable, made: list[Any]) -> bool:
        return (self.right or peek(table) < 2) and super().goes_on(table, made)


class AsksForMore(Rounds):
    """Ask for a kind of release that the plan does not hold."""

    def rounds(self, table: dpf.PrivateTable, block: dpf.run.SpendBlock) -> list[Any]:
        made = super().rounds(table, block)
        return made if self.right else [*made, block.release("counts", epsilon="0.1")]


class GoesOnUntilRefused(Rounds):
    """Ask until the block refuses: what the filter lets pass is spent."""

    def rounds(self, table: dpf.PrivateTable, block: dpf.run.SpendBlock) -> list[Any]:
        made = []
        for _ in range(8):
            try:
                made.append(block.release("count", epsilon="0.3"))
            except dpf.ReleaseRefused:
                break
        return made


def after_the_draw(why_not: Any, scope: BlockScope, kind: str, losses: Losses) -> str | None:
    """Compare what was spent before with the cap, and not what would be spent after."""
    free = attrs.evolve(losses, pure=losses.pure.map(lambda epsilon: epsilon / 10**9))
    return why_not(scope, kind, free)


def for_one_row(why_not: Any, scope: BlockScope, kind: str, losses: Losses) -> str | None:
    """Count half of what a release costs."""
    return why_not(scope, kind, attrs.evolve(losses, pure=losses.pure.map(lambda epsilon: epsilon / 2)))


def charged_half(self: BlockScope, kind: str, losses: Losses, add: Any = BlockScope._add) -> None:
    """Add half of what a release costs to the sums."""
    add(self, kind, attrs.evolve(losses, pure=losses.pure.map(lambda epsilon: epsilon / 2)))


def forgotten(self: BlockScope, kind: str, losses: Losses) -> None:
    """Add nothing to the sums."""
    self._state.times[kind] += 1


WHY_NOT = BlockScope._why_not
FILTERS: dict[str, Mapping[str, Any]] = {
    "a filter after the draw": {"_why_not": lambda *given: after_the_draw(WHY_NOT, *given)},
    "half of the sums": {"_add": charged_half},
    "no sums": {"_add": forgotten},
}
MINERS: dict[str, Callable[..., Rounds]] = {
    "a parameter by a true count": AsksByTrueCount,
    "a stop by a true count": StopsByTrueCount,
    "a menu that grows": AsksForMore,
}


def audited(miner: dpf.Miner, relation: dpf.Relation, replays: int) -> AuditReport:
    schema = SECRET if relation is dpf.Relation.ADD_OR_REMOVE_ONE else SCHEMA
    return audit(miner, schema, relation, replays=replays)


@pytest.mark.parametrize(("bug", "parts"), [(bug, False) for bug in FILTERS] + [("no sums", True)])
def test_a_planted_bug_of_the_filter_is_caught(
    bug: str, parts: bool, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    for name, wrong in FILTERS[bug].items():
        monkeypatch.setattr(BlockScope, name, wrong)
    found = audited(GoesOnUntilRefused(parts=parts), dpf.Relation.ADD_OR_REMOVE_ONE, REPLAYS)
    record_property("planted bug", (f"{bug}{', in parts' * parts}", bool(found.violations)))
    assert any("loses" in violation.what for violation in found.violations)


@pytest.mark.parametrize("bug", MINERS)
def test_a_planted_bug_of_a_miner_is_caught(bug: str, record_property: Any) -> None:
    found = audited(MINERS[bug](right=False), dpf.Relation.ADD_OR_REMOVE_ONE, REPLAYS)
    record_property("planted bug", (bug, bool(found.violations)))
    assert found.violations


@pytest.mark.parametrize("relation", dpf.Relation)
@pytest.mark.parametrize("miner", [Rounds(), GoesOnUntilRefused(parts=True)])
def test_the_right_version_passes_and_comes_near_its_claim(
    miner: Rounds, relation: dpf.Relation, record_property: Any
) -> None:
    found = audited(miner, relation, CORRECT)
    record_property("correct version", (f"{type(miner).__name__}, {relation}", not found.violations))
    assert not found.violations
    assert found.claim == 1
    assert found.worst >= (0.85 if relation is dpf.Relation.ADD_OR_REMOVE_ONE else 0.5)


class RhoRounds(Rounds):
    """The same under Gaussian noise."""

    def plan(self, schema: dpf.Schema) -> Node:
        return dpf.spend("rounds", dpf.kind("choose", TOWNS, Exponential), dpf.kind("count", TOWNS, Gaussian), rho=1)

    def rounds(self, table: dpf.PrivateTable, block: dpf.run.SpendBlock) -> list[Any]:
        made: list[Any] = [block.release("choose", epsilon=1)]
        while block.fits("count", rho="0.25") and len(made) < 2:
            made.append(block.release("count", rho="0.25"))
        return made


def test_a_block_of_rho_is_audited_at_a_delta() -> None:
    found = audit(RhoRounds(), SECRET, dpf.Relation.ADD_OR_REMOVE_ONE, delta="1e-6", replays=200)
    assert not found.violations
    assert found.tail is not None


class PureRounds(Rounds):
    """With an example, for the suite."""

    @classmethod
    def examples(cls) -> dict[str, Example]:
        return {"parts": Example(SECRET, cls(parts=True))}


class TestPureRounds(MinerConformance):
    miner = PureRounds
    replays = 300
    min_tightness = 0.6  # few replays
