"""What a study publishes, a row a result: by which miner, from which attributes, at what cost, how exactly."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any, final

import attrs

from dpframework.facts.exact_form import exact_form
from dpframework.facts.privacy import Relation
from dpframework.mechanisms.base import Calibration
from dpframework.plan.nodes import Step, walk
from dpframework.plan.plan import PublicFacts
from dpframework.queries.base import Norm
from dpframework.reports.losses import bound_of, loss_text, share_of
from dpframework.reports.reads import Reads, joined, parts_of, reads_of_steps
from dpframework.study.registry import registry
from dpframework.study.study_plan import StudyPlan

#: Parameters that other columns show.
_SHOWN_ELSEWHERE = ("epsilon", "rho", "attributes", "attribute")
_MOST_LISTED = 4  # values of a parameter


@final
@attrs.frozen
class Published:
    """One kind of release of a result.

    Attributes
    ----------
    text
        What is published.
    steps
        How many steps of the plan publish it.
    error
        How far from the truth it is, of 95 % of releases; of the least exact of the steps.
    warning
        Why it says little or nothing, if the plan's public facts tell; else empty.
    """

    text: str
    steps: int
    error: str
    warning: str

    @property
    def line(self) -> str:
        """All of it on one line."""
        steps = f" ({self.steps} steps)" if self.steps > 1 else ""
        return f"{self.text}{steps}: {self.error}" + (f" [{self.warning}]" if self.warning else "")


@final
@attrs.frozen
class ResultRow:
    """What one part of a study publishes.

    Attributes
    ----------
    name
        The part's name, which is its result's.
    miner
        The miner's name; empty for a part that was planned without one.
    parameters
        Those that differ from their defaults, with their values.
    reads
        The attributes that it may read; None if it may be any.
    published
        What comes out.
    loss
        What it costs alone, in words.
    share
        Its part of the whole plan's loss, from 0 to 1; None if that is not known.
    """

    name: str
    miner: str
    parameters: tuple[tuple[str, str], ...]
    reads: Reads
    published: tuple[Published, ...]
    loss: str
    share: float | None

    @property
    def made_by(self) -> str:
        """The miner with its parameters."""
        return self.miner + "".join(f", {name} = {value}" for name, value in self.parameters)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        form = attrs.asdict(self)
        return {**form, "parameters": dict(self.parameters), "reads": None if self.reads is None else list(self.reads)}


def result_rows(plan: StudyPlan) -> list[ResultRow]:
    """Return a row a part of the study."""
    reads = reads_of_steps(plan)
    whole = bound_of(plan.root, plan)
    rows = []
    for name, part in parts_of(plan):
        steps = [node for node in walk(part) if isinstance(node, Step)]
        loss = bound_of(part, plan)
        written = plan.miners.get(name, {})
        rows.append(
            ResultRow(
                name,
                written.get("miner", ""),
                tuple(_parameters(written)),
                joined(*(reads[id(step)] for step in steps)),
                tuple(_published(steps, plan)),
                loss_text(loss),
                share_of(loss, whole),
            )
        )
    return rows


def _parameters(written: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the parameters that are not their defaults; of a miner that is not installed, all of them."""
    defaults = _defaults(written.get("miner", ""))
    for name, value in written.get("parameters", {}).items():
        if name not in _SHOWN_ELSEWHERE and value is not None and (name not in defaults or defaults[name] != value):
            yield name, _value(value)


@functools.cache
def _defaults(miner: str) -> Mapping[str, Any]:
    kind = registry().kind(miner)
    if kind is None:
        return {}
    found = {}
    for field in attrs.fields(kind):
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type] # its stub says that it is a function
            if default.takes_self:
                continue
            default = default.factory()
        found[field.name] = exact_form(default, lambda value: type(value).__name__)
    return found


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        more = [] if len(value) <= _MOST_LISTED else [f"and {len(value) - _MOST_LISTED} more"]
        return ", ".join([*map(_value, value[:_MOST_LISTED]), *more])
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(inner)}" for name, inner in value.items())
    return str(value)


# --- what is published, and how exactly -------------------------------------------------------------------------------


def _published(steps: Iterable[Step], plan: StudyPlan) -> Iterable[Published]:
    """Yield each kind of release, with the error of its least exact step."""
    kinds: dict[tuple[str, bool], list[Step]] = {}
    for step in steps:
        kinds.setdefault((step.query.facts().text, step.mechanism.selects), []).append(step)
    for (text, selects), alike in kinds.items():
        calibrated = [found for found in map(plan.calibration, alike) if found is not None]
        worst = max(calibrated, key=lambda found: found.preview.within, default=None)
        what = text
        if selects:
            length = max((step.query.facts().answer_length or 0 for step in alike), default=0)
            what = f"the best of {_count(length)} by {text}" if length else f"the best by {text}"
        if worst is None:
            yield Published(what, len(alike), "no valid claim", "")
        else:
            yield Published(what, len(alike), *error_of(worst, plan.facts, plan.relation))


def error_of(calibration: Calibration, public: PublicFacts, relation: Relation) -> tuple[str, str]:
    """Return how far a release is from the truth, with a scale, and why it says little, if it does.

    The scale is rows: the error of a count is one of rows; any other error is as large as that many rows could make the
    answer change. Their share is of the rows that the schema allows; where it says nothing of them, of a table that is
    large enough for the error to be 1 %.
    """
    within, selects = calibration.preview.within, calibration.mechanism.selects
    counts = calibration.facts.integer and not selects
    rows = within if counts else _rows_worth(calibration, within, relation)
    if rows is None or not math.isfinite(rows):
        return calibration.preview.text, ""
    share = f", {_share_of(rows, public)}"
    if counts:
        return f"each within ±{_count(rows)} rows{share}", _warning(rows, calibration, public)
    if selects:
        return f"worse than the best by at most {_count(rows)} rows{share}", _warning(rows, calibration, public)
    return (
        f"each within ±{within:.4g}, as much as {_count(rows)} rows can add{share}",
        _warning(rows, calibration, public),
    )


def _rows_worth(calibration: Calibration, within: float, relation: Relation) -> float | None:
    """Return how many rows can move the answer by so much."""
    declared = calibration.facts.sensitivity(calibration.mechanism.norm)
    if declared is None:
        return None
    change = declared.change.add_or_remove_one or declared.change.under(relation)
    if not change:
        return None
    size = math.sqrt(change) if declared.norm is Norm.SQUARED_L2 else float(change)
    return within / size


def _share_of(rows: float, public: PublicFacts) -> str:
    if public.row_bound is None:
        return f"1 % of a table of {_count(100 * rows)}"
    return f"{_percent(rows / public.row_bound)} of the {public.row_bound:,}" + (
        "" if public.rows is not None else " allowed"
    )


def _warning(rows: float, calibration: Calibration, public: PublicFacts) -> str:
    """Return why a release says little: only if even the largest table that the schema allows does not help."""
    most = public.row_bound
    if most is None:
        return ""
    if rows >= most:
        return "useless: the noise is larger than the whole table"
    cells = calibration.facts.answer_length or 1
    if calibration.mechanism.selects and rows >= most / 4:
        return "weak: the choice may be worse than the best by a quarter of the table"
    if calibration.facts.integer and not calibration.mechanism.selects and cells > 1 and rows >= most / cells:
        return f"weak: the noise is larger than the average of the {_count(cells)} counts"
    return ""


def _count(number: float) -> str:
    """Write a number of rows, rounded up to three digits.

    Examples
    --------
    >>> _count(1317.2), _count(4.1), _count(54.2)
    ('1,320', '5', '55')
    """
    whole = math.ceil(number - 1e-9)
    if whole < 1000:
        return str(whole)
    unit = 10 ** (len(str(whole)) - 3)
    rounded = -(-whole // unit) * unit
    return f"{rounded:,}" if rounded < 10**12 else f"{float(rounded):.3g}"


def _percent(share: float) -> str:
    """Write a share as a percentage with two digits.

    Examples
    --------
    >>> _percent(0.0291), _percent(0.00002), _percent(1.3)
    ('2.9 %', 'under 0.01 %', '130 %')
    """
    if share < 1e-4:
        return "under 0.01 %"
    percent = 100 * share
    return f"{percent:,.0f} %" if percent >= 10 else f"{percent:.2g} %"
