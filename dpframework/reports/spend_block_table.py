"""The table of a plan's spend blocks, with their caps and, after a run, the sums of their charges.

A spend block caps the loss of releases that a miner chooses only during the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

import attrs

from dpframework.facts.privacy_losses import readable
from dpframework.plan.nodes import Step
from dpframework.plan.spend_block_node import Amounts, Spend
from dpframework.plan.spend_block_requests import request_step, split_request
from dpframework.reports.section_blocks import TableBlock
from dpframework.study.plan_steps_of_releases import path_finder
from dpframework.study.study_plan_totals_and_findings import StudyPlan


@final
@attrs.frozen
class BlockSums:
    """The number and the cost of the releases that a run made from one spend block, under the plan's relation.

    Attributes
    ----------
    releases
        The number of releases.
    spent
        The sum of their costs, for each amount that the block caps: epsilon, rho or delta.
    """

    releases: int
    spent: Amounts


def sums_of_blocks(plan: StudyPlan, charges: Iterable[str]) -> dict[str, dict[str, BlockSums]]:
    """Return, for each spend block, the sums of what a run charged to it.

    Parameters
    ----------
    plan
        The plan.
    charges
        The path of each release.

    Returns
    -------
    dict
        The sums of each block, first by the block's path in the plan, then by its path in the run. These paths differ
        under a partition that is planned once for all its parts: the path in the run has the number of the part.
        The repetitions of a block within a `repeat` have one path, and so one sum.
    """
    place, steps = path_finder(plan), {placed.path: placed for placed in plan.index.steps if placed.block is not None}
    found: dict[str, dict[str, BlockSums]] = {}
    for path in charges:
        kind, amounts = split_request(path)
        placed = steps.get(place(path)) if amounts else None
        if placed is None or placed.block is None:
            continue
        own, made = found.setdefault(placed.scope, {}), kind.rpartition("/")[0]
        step = placed.node
        assert isinstance(step, Step)
        noise = plan.calibrate(request_step(step, amounts), in_parts=plan.in_parts(step))
        assert noise is not None  # a request that no noise fits is refused, and not charged
        losses = {"epsilon": noise.losses.pure, "rho": noise.losses.zcdp, "delta": noise.losses.delta}
        before = own.get(made, BlockSums(0, Amounts()))
        sums = {
            name: (getattr(before.spent, name) or 0) + (losses[name].under(plan.relation) or 0)
            for name, cap in attrs.asdict(placed.block.caps).items()
            if cap is not None
        }
        own[made] = BlockSums(before.releases + 1, Amounts(**sums))
    return found


def block_table(plan: StudyPlan, charges: Iterable[str] | None) -> TableBlock | None:
    """Return the table of a plan's spend blocks, or None if it has none.

    Parameters
    ----------
    plan
        The plan.
    charges
        The path of each release of a run; None before a run.
    """
    made = None if charges is None else sums_of_blocks(plan, charges)
    rows = []
    for placed in plan.index.nodes:
        block = placed.node
        if not isinstance(block, Spend):
            continue
        kinds = "; ".join(f"{step.name}, {placed.kind.times(block, k)}" for k, step in enumerate(block.parts))
        row = [placed.path, _amounts_text(block.caps), kinds]
        if made is not None:
            row.append(_sums_text(made.get(placed.path, {})))
        rows.append(row)
    if not rows:
        return None
    heads = ("block", "caps", "possible releases", *(() if made is None else ("releases made",)))
    caption = (
        "A spend block caps the loss of releases that its miner chooses during the run. A release that would take a "
        "sum above its cap is refused before anything is drawn. Every total counts the caps in full, even if the run "
        "spends less."
    )
    return TableBlock(heads, rows, caption)


def _sums_text(made: Mapping[str, BlockSums]) -> str:
    """Say how much was charged to a block. If a partition repeats the block, take the part with the largest charge."""
    if not made:
        return "nothing"
    most = max(made.values(), key=lambda one: [value or 0 for value in attrs.astuple(one.spent)])
    text = f"{most.releases} {'release' if most.releases == 1 else 'releases'}, {_amounts_text(most.spent)}"
    return text if len(made) == 1 else f"{text}, the largest of {len(made)} parts"


def _amounts_text(amounts: Amounts) -> str:
    counted = {"epsilon": amounts.epsilon, "rho": amounts.rho, "delta": amounts.delta or None}
    return ", ".join(f"{name} {readable(value)}" for name, value in counted.items() if value is not None)
