"""The findings of a comparison of a mechanism's claims with its losses."""

from __future__ import annotations

import math
from typing import Any, final

import attrs

from dpframework.verify.miners.audit_report import reach

DELTA = "delta"  # the first word of the kind of a claim about an event
TOLERANCE = 1e-3  # how far a sum on a grid may be off, as a share of the claim


@final
@attrs.frozen
class LossClaim:
    """One claim of a mechanism, and the largest value that was found.

    Attributes
    ----------
    where
        The query and the relation, in words.
    kind
        What is claimed, in words.
    claimed
        The claimed value: an epsilon, a Renyi divergence, or a delta.
    found
        The largest value of the claimed quantity that was found.
    slack
        How much more than the claim may be found, since values are rounded.
    """

    where: str
    kind: str
    claimed: float
    found: float
    slack: float

    @property
    def holds(self) -> bool:
        """Whether no more than claimed was found, up to `slack` and a tolerance."""
        return self.found <= self.claimed * (1 + TOLERANCE) + self.slack

    def __str__(self) -> str:
        """Write both values, and whether the claim holds."""
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return f"{self.where}: {self.kind}: {self.claimed:.6g} is claimed, {self.found:.6g} found: {verdict}"


@final
@attrs.frozen
class LossReport:
    """The comparison of one mechanism's losses with its claims.

    Attributes
    ----------
    mechanism
        The name of the mechanism.
    claims
        One entry for each query, relation and claim.
    wrong
        Other problems that were found, such as an event that no accountant knows.
    pairs
        How many pairs of answers were compared.
    cut_short
        Whether the comparison ended early, since its time was up.
    """

    mechanism: str
    claims: tuple[LossClaim, ...]
    wrong: tuple[str, ...]
    pairs: int
    cut_short: bool = False

    @property
    def passed(self) -> bool:
        """Whether every claim holds, and no other problem was found."""
        return not self.wrong and all(claim.holds for claim in self.claims)

    @property
    def tightness(self) -> float:
        """The smallest share of its claims that a mechanism's losses reach, over all queries and relations.

        For one query and relation, the claims in epsilon, in rho and in an exact delta are looked at, and the largest
        of their shares counts. An exact delta is a delta that releases have of their own. Claims about the event do not
        count. NaN if no other claims were compared.
        """
        largest: dict[str, float] = {}
        for claim in self.claims:
            if not claim.kind.startswith(DELTA):
                largest[claim.where] = max(largest.get(claim.where, 0.0), claim.found / claim.claimed)
        return min(largest.values(), default=math.nan)

    @property
    def verdict(self) -> str:
        """A sentence that says whether every claim held, and which share of its claims the losses reached."""
        return f"every claim held; {reach(self.tightness)}" if self.passed else "A CLAIM DOES NOT HOLD"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        claims = [{**attrs.asdict(one), "holds": one.holds} for one in self.claims]
        return {
            "mechanism": self.mechanism,
            "claims": [{**one, "found": one["found"] if math.isfinite(one["found"]) else None} for one in claims],
            "wrong": list(self.wrong),
            "pairs": self.pairs,
            "cut_short": self.cut_short,
            "tightness": self.tightness if math.isfinite(self.tightness) else None,
            "verdict": self.verdict,
            "passed": self.passed,
        }

    def __str__(self) -> str:
        """Write the verdict and the problems."""
        if self.passed:
            return f"{self.mechanism}: {self.verdict} ({self.pairs} pairs of answers)"
        wrong = [str(claim) for claim in self.claims if not claim.holds]
        return "\n".join(f"{self.mechanism}: {what}" for what in (*self.wrong, *wrong))
