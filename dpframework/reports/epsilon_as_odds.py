"""The meaning of an epsilon for one person, as the odds of a claim about them.

**Derivation.** Let H be a claim. Suppose that the probability of each output where H holds is at most exp(epsilon)
times its probability where H does not hold. By Bayes' rule the odds of H after an output are the odds before,
multiplied by the ratio of these two probabilities. So the odds grow at most by the factor exp(epsilon), whatever the
output and whatever else is known. The two cases, in which H holds and in which it does not, must be neighbours:

- under add-or-remove-one, the cases "their rows are in the table" and "their rows are not" are neighbours, so the
  ratio is bounded by the loss. The cases "their rows are in the table with this value" and "with that value" are two
  steps apart, a removal and an addition, so epsilon counts twice. The same holds for any two of several values, and for
  mixtures of such cases.
- under replace-one, tables where the row has this or that value are neighbours. Whether somebody is in the table is not
  hidden, so the claim is about their values.

With a delta, the ratio may be larger with some probability. Let P be the probability of outputs where H holds, and Q
their probability where H does not hold. Let L be the logarithm of the ratio P/Q for an output that is drawn from P. For
the set of outputs with L > epsilon, the definition of differential privacy says that

    delta >= P[L > epsilon] - exp(epsilon) Q[L > epsilon] = E[max(0, 1 - exp(epsilon - L))].

If L > epsilon + t for some t > 0, the term in the expectation is at least 1 - exp(-t). So for t = 1/10, L exceeds
epsilon + t with a probability of at most delta / (1 - exp(-1/10)) < 11 delta.

Two steps, a removal and an addition, together have the loss (2 epsilon, (1 + exp(epsilon)) delta). Let R be the
probability of outputs for the table between the two steps. The definition, applied twice to a set S of outputs, says:

    P[S] <= exp(epsilon) R[S] + delta <= exp(epsilon) (exp(epsilon) Q[S] + delta) + delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import attrs

from dpframework.facts.privacy_losses import PrivacyLoss, Relation
from dpframework.facts.privacy_unit import PrivacyUnit

#: How sure somebody may be of a claim before they see the results: examples for a report, as probabilities.
PRIORS = (0.01, 0.1, 0.5)
SLACK = 0.1  # the number t of the derivation above, which is added to the logarithm of the odds if there is a delta
TIMES_DELTA = 11  # an upper bound on 1 / (1 - exp(-SLACK))


@final
@attrs.frozen
class CertaintyGain:
    """How sure somebody can become of one kind of claim.

    Attributes
    ----------
    claim
        The claim, worded as the end of a sentence.
    odds
        The largest factor by which the odds of the claim can grow; infinite if it is too large for a float.
    shares
        For each of `PRIORS`, how sure somebody can become at most, as a probability.
    fails
        The largest probability with which these bounds fail; 0 without a delta.
    """

    claim: str
    odds: float
    shares: tuple[float, ...]
    fails: float = 0.0

    @property
    def odds_text(self) -> str:
        """The factor by which the odds grow, rounded up to three digits."""
        if self.odds >= 1e6:
            return "over a million"
        power = 10.0 ** (2 - math.floor(math.log10(self.odds)))
        return f"{math.ceil(round(self.odds * power, 6)) / power:,.10g}"

    @property
    def share_texts(self) -> tuple[str, ...]:
        """The `shares` as percentages, rounded up."""
        return tuple(share_text(share) for share in self.shares)


def posterior(prior: float, log_odds: float) -> float:
    """Return the probability of a claim after its odds grew by the factor exp(log_odds), from the probability `prior`.

    Examples
    --------
    >>> round(posterior(0.5, 0.9), 3)
    0.711
    """
    return 1.0 if log_odds > 700 else prior * math.exp(log_odds) / (1 - prior + prior * math.exp(log_odds))


def share_text(share: float) -> str:
    """Write a share as a percentage, rounded up to a tenth.

    Examples
    --------
    >>> share_text(0.7109), share_text(0.01), share_text(0.99951)
    ('71.1 %', '1 %', 'nearly 100 %')
    """
    percent = math.ceil(round(1000 * share, 6)) / 10
    return "nearly 100 %" if percent >= 100 else f"{percent:g} %"


def certainty_gains(loss: PrivacyLoss | None, relation: Relation, unit: PrivacyUnit) -> list[CertaintyGain]:
    """Return how sure somebody can become of facts about one unit. The list is empty without a finite epsilon."""
    if loss is None or loss.epsilon is None:
        return []
    epsilon, delta = float(loss.epsilon), float(loss.delta)
    who = "one person" if unit.is_row else f"one {unit.id}" if unit.id is not None else "one unit"
    who += "" if unit.period is None else f" in one {unit.period}"
    claims: list[tuple[str, float, float]] = []
    if relation is Relation.ADD_OR_REMOVE_ONE:
        member = f"{who}, who has one row," if unit.is_row else who
        claims.append((f"that {member} is in the table", epsilon, delta))
        # two steps, as the derivation above says
        epsilon, delta = 2 * epsilon, delta * (1 + math.exp(min(epsilon, 700)))
    claims.append((f"something about {who}, who is known to be in the table", epsilon, delta))
    found = []
    for claim, log_odds, fails in claims:
        exponent = log_odds + (SLACK if fails else 0.0)
        odds = math.exp(exponent) if exponent < 700 else math.inf
        shares = tuple([posterior(prior, exponent) for prior in PRIORS])
        found.append(CertaintyGain(claim, odds, shares, min(TIMES_DELTA * fails, 1.0)))
    return found


def certainty_sentence(some: Sequence[CertaintyGain]) -> str:
    """Say in one sentence how far the results can raise the probability of the first claim, if it was one half before.

    Examples
    --------
    >>> from dpframework.facts.privacy_unit import ROW
    >>> certainty_sentence(certainty_gains(PrivacyLoss("0.9"), Relation.REPLACE_ONE, ROW))
    'a guess of 50 % at something about one person, who is known to be in the table, can rise to at most 71.1 %'
    """
    if not some:
        return "no claim is valid, so nothing bounds what somebody can learn"
    first = some[0]
    fails = f", except with a probability of {first.fails:.2g}" if first.fails else ""
    joint, pause = ("", "") if first.claim.startswith("that") else ("at ", ",")
    return f"a guess of 50 % {joint}{first.claim}{pause} can rise to at most {first.share_texts[-1]}{fails}"
