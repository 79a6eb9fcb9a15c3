"""The findings of an audit: violations with the tables that show them, the largest loss found, and a verdict."""

from __future__ import annotations

import math
from typing import Any, final

import attrs

from dpframework.facts.privacy_losses import Relation
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.delta_tail_test import TailReport
from dpframework.verify.miners.transcript import Transcript
from dpframework.verify.tables.neighbours import Rows

# The tightness of a search is the largest loss that it found, divided by the claimed loss.
MIN_TIGHTNESS = 0.8  # a search below this tightness says little
NEAR = 0.9  # a search of at least this tightness came near its claim
NOTHING_LOST = "no loss is allowed, and none was found"  # the verdict on a claim of 0
NOTHING_SHOWN = "nothing was shown: the time ended before the search found any loss; give it more time"


def reach(tightness: float) -> str:
    """Say how near a search came to a claim, and which mistakes it cannot see because of that.

    Examples
    --------
    >>> reach(0.5)
    'the search reached 50 % of the claim. It could miss a mistake that does not double the loss'
    >>> reach(0.3)
    'the search reached 30 % of the claim. It could miss a mistake that does not make the loss 3.4 times as large'
    """
    if not tightness > 0:
        return "the search found no loss at all. It could miss any mistake in the loss"
    if tightness >= 0.999:
        return "the search reached 100 % of the claim. It would see any larger loss where it looked"
    # Rounded up, since a search that reaches .3 of a claim may miss a mistake that makes the loss three times as large.
    missed = math.ceil(10 / tightness) / 10
    words: dict[float, str] = {2: "double the loss", 3: "triple the loss"}
    grown = words.get(missed, f"make the loss {missed:g} times as large")
    return (
        f"the search reached {math.floor(100 * tightness)} % of the claim. "
        f"It could miss a mistake that does not {grown}"
    )


@final
@attrs.frozen
class Violation:
    """A problem or the largest loss, with the two smallest neighbouring tables found that show it.

    Attributes
    ----------
    what
        What was found, in one sentence.
    one, other
        The two neighbouring tables, row by row; they are made up.
    events
        What the run on the first table made public, one text for each event.
    tables
        The two tables again, as bytes: the kind of each row (see `Universe`).
    """

    what: str
    one: tuple[str, ...]
    other: tuple[str, ...]
    events: tuple[str, ...]
    tables: tuple[Rows, Rows] = attrs.field(repr=False)

    @classmethod
    def on(cls, subject: Subject, what: str, one: Rows, other: Rows, transcript: Transcript | None = None) -> Violation:
        """Describe a violation on two tables that are made of the subject's kinds of rows."""
        describe = subject.universe.describe
        events = () if transcript is None else tuple(map(str, transcript.events))
        return cls(what, tuple(describe(one)), tuple(describe(other)), events, (one, other))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {"what": self.what, "one": list(self.one), "other": list(self.other), "events": list(self.events)}

    def __str__(self) -> str:
        """Write the sentence, the tables and the transcript."""
        lines = [self.what]
        shown = [("one table", self.one), ("its neighbour", self.other)]
        for title, rows in [*shown, ("transcript", self.events)] if self.events else shown:
            lines.append(f"  {title}:")
            lines += [f"    {row}" for row in rows] or ["    (no rows)"]
        return "\n".join(lines)


@final
@attrs.frozen
class AuditReport:
    """The findings of a replay audit.

    Attributes
    ----------
    miner
        The miner's name.
    relation
        The neighbouring relation.
    claim
        The plan's pure epsilon, or its epsilon at `delta` if it has no pure claim.
    delta
        The delta of that claim. If the claim is a pure epsilon, this is the delta that some releases of the plan spend
        in addition to it. It is mostly 0.
    worst
        The largest realised loss found: the log-ratio of the probabilities of a run's outputs on two neighbouring
        tables. Without a pure claim, the epsilon that the runs need (see `Tail.needed`).
    replays
        How often a transcript (the record of a run) was replayed on a table, or the log-densities of its outputs were
        computed there.
    reruns
        How many of these replays ran the miner again.
    exhaustive
        The number of shared rows up to which all pairs of tables were tried. The tables are made of a few kinds of
        rows. -1 if even the smallest tables have too many pairs, or if no pure claim was tested.
    most_rows
        The number of equal rows in the largest tables that were tried.
    seconds
        How many seconds the audit took.
    violations
        What was found wrong; empty if nothing was.
    worst_pair
        The tables with the largest loss found, and the transcript that has this loss. Without a pure claim, the tables
        of the tail test. None if anything was found wrong, or if no loss was found.
    tail
        The tail test, which estimates the deltas at some epsilons that the plan claims. None if only a pure claim was
        tested.
    cut_short
        Whether the audit ended because its time was over.
    """

    miner: str
    relation: Relation
    claim: float
    delta: float
    worst: float
    replays: int
    reruns: int
    exhaustive: int
    most_rows: int
    seconds: float
    violations: tuple[Violation, ...]
    worst_pair: Violation | None
    tail: TailReport | None = None
    cut_short: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.violations

    @property
    def tightness(self) -> float:
        """The largest loss found, divided by the claim; NaN for a claim of 0."""
        return self.worst / self.claim if self.claim else math.nan

    @property
    def showed_nothing(self) -> bool:
        """Whether the audit's time ended before any loss was found, so that nothing is known about a claim above 0."""
        return self.passed and self.cut_short and self.claim > 0 and not self.worst

    @property
    def verdict(self) -> str:
        """Whether the claim held, and how near the search came to it, in one sentence."""
        if self.showed_nothing:
            return NOTHING_SHOWN
        if not self.passed:
            return "THE CLAIM DOES NOT HOLD"
        return f"the claim held; {reach(self.tightness) if self.claim else NOTHING_LOST}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        nested = ("violations", "worst_pair", "tail")
        return {
            **{k: v for k, v in attrs.asdict(self, recurse=False).items() if k not in nested},
            "relation": self.relation.value,
            "worst": self.worst if math.isfinite(self.worst) else None,
            "tightness": self.tightness if math.isfinite(self.tightness) else None,
            "passed": self.passed,
            "verdict": self.verdict,
            "violations": [violation.to_dict() for violation in self.violations],
            "worst_pair": None if self.worst_pair is None else self.worst_pair.to_dict(),
            "tail": None if self.tail is None else self.tail.to_dict(),
        }
