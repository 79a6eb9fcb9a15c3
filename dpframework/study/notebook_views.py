"""The notebook view of a study, and the bar chart of its releases' losses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dpframework.facts.notebook_html import html_line, html_table
from dpframework.facts.privacy_losses import Relation, decimal_text
from dpframework.results.result import axes_or_new

if TYPE_CHECKING:
    from dpframework.mechanisms.base import Calibration
    from dpframework.run.miner_base_and_examples import Miner
    from dpframework.study.miner_from_parameters import Share
    from dpframework.study.study import Study

_BUDGETS = ("epsilon", "rho", "delta")
_MOST_BARS = 30


def study_html(study: Study, names: Iterable[str], miners: Mapping[str, Miner], shares: Mapping[str, Share]) -> str:
    """Return HTML with a study's budget, steps, miners and parameters.

    The study is not planned for this, since planning may take long.

    Parameters
    ----------
    study
        The study.
    names, miners, shares
        The names of the steps, the miner of each step, and the shares of those steps that have one.
    """
    rows = []
    for name in names:
        miner, share = miners.get(name), shares.get(name)
        form = {} if miner is None else miner.to_dict()["parameters"]
        given = {key: value for key, value in form.items() if value is not None and value != []}
        if share is None:
            budget = ", ".join(f"{key} {given[key]}" for key in _BUDGETS if key in given)
        else:
            budget = f"share {decimal_text(share.share)}"
        more = "; ".join(f"{key} = {json.dumps(value)}" for key, value in given.items() if key not in _BUDGETS)
        rows.append((name, "" if miner is None else miner.name, budget, more))
    told = f"A study with a budget of epsilon {decimal_text(study.budget.epsilon)}"
    told += f", delta {decimal_text(study.budget.delta)}" if study.budget.delta else ""
    told += f", under {study.relation}, protecting {study.unit}"
    return html_line(told) + html_table(("step", "miner", "budget", "parameters"), rows)


def as_float(amount: Any) -> float | None:
    """Return an exact amount as a float, and None as None."""
    return None if amount is None else float(amount)


def cost_bars(
    releases: Iterable[tuple[str, Calibration]], relation: Relation, title: str, ax: Any | None = None
) -> Any:
    """Draw a bar for the loss of each release, and return the axes.

    Parameters
    ----------
    releases
        The path of each release with its calibration. If all releases have an epsilon, the bars show epsilons.
        Otherwise they show rhos, and 0 for a release without a rho. The first 30 releases are drawn.
    relation
        The neighbouring relation of the losses.
    title
        The title above the bars.
    ax
        The axes to draw on; None for new ones.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    losses = [(path, calibration.losses) for path, calibration in releases]
    epsilons = [own.pure.under(relation) for _, own in losses]
    kind, amounts = "epsilon", epsilons
    if None in epsilons:
        kind, amounts = "rho", [own.zcdp.under(relation) for _, own in losses]
    bars = amounts[:_MOST_BARS]
    axes = axes_or_new(ax, figsize=(6, 1 + 0.25 * len(bars)))
    axes.barh(range(len(bars)), [as_float(amount) or 0.0 for amount in bars], color="#0b5394")
    axes.set_yticks(range(len(bars)), [path for path, _ in losses[:_MOST_BARS]])
    axes.invert_yaxis()
    axes.set(xlabel=f"{kind} of each release", title=title)
    return axes
