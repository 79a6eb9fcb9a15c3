"""Comparison of what a mechanism claims to lose with the losses that its log-density shows.

An accountant relies on two claims of a mechanism: its `losses`, in epsilon and rho, and its `dp_event`, the event that
the library dp-accounting composes. Here these claims are compared with the log-densities of outputs, given two answers
that are as far apart as the query's sensitivity allows. Discrete outputs are listed, except for their far tails. If
there are too many, only the points of a grid are listed. Outputs that cannot be listed are drawn.

Every sum is over some of the outputs, and its terms are not negative. So the sum is at most the true divergence, and a
claim below the sum is wrong. Only a sum over a coarse grid is an approximation, and is compared with a tolerance.

In the formulas, p and q are the probabilities of one output given the two answers. An exact delta is a delta that a
mechanism's releases have of their own, besides their epsilon or rho.

- Epsilon is compared with the largest difference of two log-densities. With an exact delta, an output may be impossible
  given one of the answers, so that the difference is infinite. So the probability beyond epsilon is compared with the
  exact delta instead. It is the sum of max(0, p - exp(epsilon) q) over outputs.
- Rho is compared with Renyi divergences of several orders a, each at most rho a (Bun and Steinke 2016, Definition 1.1).
  With an exact delta, rho is converted to an epsilon at each of several further deltas. The probability beyond that
  epsilon is compared with the sum of the two deltas.
- For the event, accounting by privacy loss distributions (PLD) reports an epsilon at each of several deltas. Each delta
  is compared with the probability beyond its epsilon.

A release that fails has no density. So it is also tested that releases are possible, for these answers and for answers
10^8 times as large.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.accountant import PLDAccountant, zcdp_to_epsilon
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import UnitChange
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import PiecewiseScores, QueryFacts
from dpframework.verify.mechanisms.loss_curve import LossCurve
from dpframework.verify.mechanisms.loss_report import DELTA, TOLERANCE, LossClaim, LossReport
from dpframework.verify.mechanisms.losses_on_unusual_answers import (
    AMOUNTS,
    DELTA_AMOUNTS,
    mechanism_variants,
    takes_other_lengths,
    weigh_other_answers,
)
from dpframework.verify.mechanisms.losses_on_unusual_scores import densities
from dpframework.verify.mechanisms.neighbour_answers import (
    THIN,
    WIDTH,
    Answers,
    answers_of,
    draw_outputs,
    list_outputs,
    unit_answers,
)
from dpframework.verify.mechanisms.output_keys import puts_out_numbers
from dpframework.verify.mechanisms.release_failure_check import MechanismFailedError, refusal, stated_density
from dpframework.verify.mechanisms.sampler_statistics import renyi_at_least
from dpframework.verify.miners.neighbour_pair_search import last_before
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.search_time_limit import Patience

ORDERS = (1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0)  # the orders of the Renyi divergences
DELTAS = tuple(Fraction(text) for text in ("0.3", "0.1", "0.03", "0.01", "0.001", "0.00001"))
PAIR = 0.2  # the share of the remaining time that drawing the outputs of one pair of answers may take
TRIED = 16  # for this many pairs of answers of a query, it is tested that releases are possible
MANY = 10**8  # the factor by which an answer is enlarged, as if very many rows gave it
UNIT = 3  # the rows of a privacy unit
FARTHEST = 2**40  # an output this many steps of the outputs' lattice away from an answer should still be possible
MOST_BOUNDS = 10_000  # more than the number of bounds on Renyi divergences that are computed for one mechanism
SLACK = {"epsilon": 1e-6, "rho": 1e-4, "delta": 1e-9}  # how far values may be off, since they are rounded
# On a coarse grid in the plane, a sum of max(0, p - exp(epsilon) q) may be off by this share of delta: it has a kink.
KINK = 0.08
ROUNDED = 1e-13  # how far a sum of thousands of rounded probabilities may be off


def check_losses(
    mechanism: Mechanism,
    *,
    given: Sequence[Answers] | None = None,
    relations: Sequence[Relation] = tuple(Relation),
    seconds: float = math.inf,
) -> LossReport:
    """Compare a mechanism's epsilon, rho and event with its own log-density on answers of neighbouring tables.

    Parameters
    ----------
    mechanism
        The mechanism.
    given
        Facts of queries, each with pairs of answers on neighbouring tables. By default, both are made up for the kind
        of answers that the mechanism takes.
    relations
        The neighbouring relations.
    seconds
        The processor seconds that the comparison may take. For each query and relation, one pair of answers is compared
        in any case.

    Raises
    ------
    InputError
        If the mechanism serves none of the queries.
    """
    checked = _LossComparison(mechanism, Patience(seconds))
    served, queries = 0, answers_of(mechanism) if given is None else given
    for asked in queries:
        for relation in relations:
            served += checked.compare_all(asked, relation)
            checked.compare_variants(asked, relation)
    for integer in (True, False):
        # The query with the longest answer stands for all queries of whole numbers, or of real ones.
        alike = [asked.facts for asked in queries if asked.facts.integer is integer]
        if alike:
            checked.compare_others(max(alike, key=lambda facts: facts.answer_length or 0), relations)
    if not served:
        raise InputError(f"mechanism '{mechanism.name}' serves none of the queries; give answers of its own kind")
    wrong = tuple(dict.fromkeys(checked.wrong))
    return LossReport(mechanism.name, tuple(checked.claims), wrong, checked.pairs, checked.cut_short)


class _LossComparison:
    """The comparison of one mechanism's claims with its losses, and the findings so far."""

    def __init__(self, mechanism: Mechanism, patience: Patience) -> None:
        self.mechanism, self.patience, self.cut_short = mechanism, patience, False
        self.claims: list[LossClaim] = []
        self.wrong: list[str] = []
        self.pairs = 0
        self._randomness = SeededRandomness(0)

    def compare_all(self, asked: Answers, relation: Relation) -> bool:
        """Compare the claims for rows, and for a unit of several rows if the mechanism has code of its own for units.

        Return whether the mechanism claims anything for the query. A log-density that fails is a finding.
        """
        calibration = self.mechanism.calibrate(asked.facts, relation)
        try:
            if calibration is not None:
                self.compare(asked, calibration, relation)
            of_unit = unit_answers(asked, UNIT)
            # A mechanism's claim for a unit follows from its claim for rows, unless the mechanism has an event of its
            # own for units, or calibrates by code of its own.
            kind = type(self.mechanism)
            calibrates = kind.calibrate is not Mechanism.calibrate
            own = calibrates or kind.unit_event is not Mechanism.unit_event
            if of_unit is not None and own and not self.patience.over:
                by_unit = self.mechanism.calibrate(asked.facts, relation, by=UnitChange(UNIT))
                if by_unit is not None:
                    known = len(self.claims)
                    compare = self.compare if calibrates else self.compare_event
                    compare(of_unit, by_unit, relation)
                    if calibrates:  # the bound for a unit may be loose, so only claims that do not hold are kept
                        self.claims[known:] = [claim for claim in self.claims[known:] if not claim.holds]
        except MechanismFailedError as error:
            self.wrong.append(f"{asked.facts.text}, {relation}: {error}")
        return calibration is not None

    def compare_variants(self, asked: Answers, relation: Relation) -> None:
        """Compare the claims of the mechanism with other parameters of its own, or with more or less to spend.

        Only a plugin's mechanism is given more or less to spend. This is for answers that `compare_others` does not
        make up, such as counts by key. Claims that hold are left out.
        """
        amounts = (AMOUNTS[::3], DELTA_AMOUNTS[-1:]) if is_foreign(self.mechanism) else ((), ())
        for how, other, _ in mechanism_variants(self.mechanism, *amounts):
            if self.patience.over:
                return
            with contextlib.suppress(InputError):  # the mechanism refuses such facts, and so claims nothing for them
                calibration = other.calibrate(asked.facts, relation)
                pairs = asked.pairs(other, calibration, relation) if calibration else ()
                first = next((one for one, _ in pairs), None)
                if first is None or (isinstance(first, np.ndarray) and takes_other_lengths(other, asked.facts)):
                    continue
                facts = attrs.evolve(asked.facts, text=f"{asked.facts.text}, {how}")
                alike = _LossComparison(other, self.patience)
                alike.compare_all(attrs.evolve(asked, facts=facts), relation)
                self.claims += [claim for claim in alike.claims if not claim.holds]
                self.wrong += alike.wrong

    def compare(self, asked: Answers, calibration: Calibration, relation: Relation) -> None:
        """Compare every claim about one query under one relation with the largest loss over its pairs of answers."""
        where = f"{asked.facts.text}, {relation}"
        curves = self._curves(asked, calibration, relation)
        exact = calibration.losses.delta.under(relation)
        if exact is None:
            return
        if exact:
            self.claims += self._beside_delta(where, curves, calibration, relation, exact)
            return
        pure = calibration.losses.pure.under(relation)
        if pure is not None:
            found = max((curve.epsilon for curve in curves), default=0.0)
            found = max(found, self._beyond_edges(asked, calibration, relation))
            self.claims.append(LossClaim(where, "epsilon", float(pure), found, SLACK["epsilon"]))
        rho = calibration.losses.zcdp.under(relation)
        if rho is not None:
            divergences = [(a, max((curve.renyi(a) for curve in curves), default=0.0)) for a in ORDERS]
            a, found = max(divergences, key=lambda one: one[1] / one[0])
            kind = f"rho times the order {a:g} of a Renyi divergence"
            self.claims.append(LossClaim(where, kind, a * float(rho), found, SLACK["rho"]))
        self.claims += self._event(where, curves, calibration, relation, Fraction(0))

    def compare_others(self, facts: QueryFacts, relations: Sequence[Relation]) -> None:
        """Compare the claims on answers of other lengths, with other numbers, or at another epsilon or rho."""
        for relation in relations:
            try:
                self.claims += self._refute_elsewhere(facts, relation)
            except MechanismFailedError as error:
                self.wrong.append(f"{facts.text}, {relation}: {error}")

    def _refute_elsewhere(self, facts: QueryFacts, relation: Relation) -> Iterator[LossClaim]:
        """Yield the first claim that does not hold on other answers (see `compare_others`).

        Claims that hold are left out, since too few outputs are tried to say how near the losses come to them.
        """
        for weighed in weigh_other_answers(self.mechanism, facts, relation, lambda: not self.patience.over):
            losses, where = weighed.calibration.losses, f"{facts.text}, {weighed.what}, {relation}"
            exact = losses.delta.under(relation)
            if exact is None:
                continue
            pairs = (*weighed.pairs, *weighed.whole)
            if any(np.isnan(logs).any() for logs in (*itertools.chain(*pairs), *weighed.losses)):
                self.wrong.append(f"{where}: a log-density is not a number")
                continue
            claims = []
            whole, rough = ([LossCurve(*pair, coarse) for pair in weighed.whole] for coarse in (False, True))
            pure, rho = losses.pure.under(relation), losses.zcdp.under(relation)
            if exact:
                slack = _slack_beside_delta(exact, weighed.in_cells)
                claims += [] if pure is None else [_claim_beside_delta(where, pure, exact, whole, slack)]
                rho = None
            elif pure is not None:
                found = max((LossCurve(*pair, False).epsilon for pair in pairs), default=0.0)
                claims.append(LossClaim(where, "epsilon", float(pure), found, SLACK["epsilon"]))
            if rho is not None:
                for order in ORDERS:
                    found = max((curve.renyi(order) for curve in whole), default=0.0)
                    if weighed.losses:
                        found = max(found, renyi_at_least(weighed.losses, order, MOST_BOUNDS))
                    kind = f"rho times the order {order:g} of a Renyi divergence"
                    claims.append(LossClaim(where, kind, order * float(rho), found, SLACK["rho"]))
            if weighed.with_event:
                claims += self._event(where, rough, weighed.calibration, relation, exact)
            refuted = [claim for claim in claims if not claim.holds]
            if refuted:
                yield refuted[0]
                return

    def compare_event(self, asked: Answers, calibration: Calibration, relation: Relation) -> None:
        """Compare the event alone, as PLD accounting uses it, with the largest loss over the pairs of answers."""
        curves = self._curves(asked, calibration, relation)
        exact = calibration.losses.delta.under(relation)
        if exact is not None:
            self.claims += self._event(f"{asked.facts.text}, {relation}", curves, calibration, relation, exact)

    def _curves(self, asked: Answers, calibration: Calibration, relation: Relation) -> list[LossCurve]:
        """Return, for each pair of answers, the log-probabilities of some outputs given either answer.

        Also count the pairs, try releases, and note the releases that fail.
        """
        curves, known = list[LossCurve](), dict[Any, Any]()
        for k, (one, other) in enumerate(asked.pairs(self.mechanism, calibration, relation)):
            if k and self.patience.over:
                self.cut_short = True
                break
            if k < TRIED:
                answers = [one, other]
                if isinstance(one, PiecewiseScores):  # an answer as large as if very many rows gave it
                    answers.append(attrs.evolve(one, scores=one.scores * MANY))
                elif isinstance(one, np.ndarray | int | float):
                    answers.append(one * MANY)
                for answer in answers:
                    found = refusal(self.mechanism, answer, calibration, self._randomness)
                    if found is not None:
                        self.wrong.append(f"{asked.facts.text}, {relation}: a release {found}")
            time = self.patience.part(PAIR)
            for listing in (list_outputs, draw_outputs):
                outputs, log_size = listing(self.mechanism, calibration, one, other, time, known)
                here, there = densities(self.mechanism, one, other, outputs, calibration)
                if not np.isneginf([here, there]).all():
                    break  # else outputs lie beside the grid, such as on a sphere, and are drawn
            here, there = here + log_size, there + log_size
            if np.isnan(here).any() or np.isnan(there).any():
                self.wrong.append(f"{asked.facts.text}, {relation}: a log-density is not a number")
                continue
            coarse = not np.ndim(log_size) and bool(log_size) and log_size != THIN
            curves.append(LossCurve(here, there, coarse))
        self.pairs += len(curves)
        return curves

    def _beside_delta(
        self, where: str, curves: list[LossCurve], calibration: Calibration, relation: Relation, exact: Fraction
    ) -> Iterator[LossClaim]:
        """Yield the claims of a release with an exact delta. Each claim bounds the probability beyond an epsilon."""
        coarse = _on_coarse_grids(calibration, curves)
        slack = KINK * float(exact) if coarse else SLACK["delta"]
        pure, rho = (amount.under(relation) for amount in (calibration.losses.pure, calibration.losses.zcdp))
        if pure is not None:
            yield _claim_beside_delta(where, pure, exact, curves, _slack_beside_delta(exact, coarse))
        if rho is not None:
            converted = [(delta, zcdp_to_epsilon(rho, delta)) for delta in DELTAS]
            claims = [
                LossClaim(
                    where,
                    f"exact delta plus {float(delta):g} beyond the epsilon {float(epsilon):.6g} of its rho",
                    float(exact + delta),
                    _delta_beyond(epsilon, curves),
                    slack,
                )
                for delta, epsilon in converted
            ]
            yield max(claims, key=lambda one: one.found / one.claimed)
        yield from self._event(where, curves, calibration, relation, exact)

    def _event(
        self, where: str, curves: list[LossCurve], calibration: Calibration, relation: Relation, exact: Fraction
    ) -> Iterator[LossClaim]:
        """Yield PLD accounting's claim at the delta that the losses exceed most, or come nearest to."""
        compared = []
        for delta in DELTAS:
            accountant = PLDAccountant(relation, delta=delta)
            try:
                loss = accountant.loss_with_exact_delta(accountant.amount(calibration), exact)
            except Exception as error:
                self.wrong.append(f"{where}: PLD accounting of its event fails with {type(error).__name__}: {error}")
                return
            if loss is None or loss.epsilon is None:
                continue
            found = _delta_beyond(loss.epsilon, curves)
            kind = f"{DELTA} beyond the epsilon {float(loss.epsilon):.6g} of its event"
            slack = KINK * float(delta) if _on_coarse_grids(calibration, curves) else SLACK["delta"]
            compared.append(LossClaim(where, kind, float(delta), found, slack))
        if compared:
            yield max(compared, key=lambda one: one.found / one.claimed)

    def _beyond_edges(self, asked: Answers, calibration: Calibration, relation: Relation) -> float:
        """Return infinity if the last possible output of one answer is impossible for its neighbour, else 0.

        This is so if noise is cut off around the answer.
        """
        for one, other in itertools.islice(asked.pairs(self.mechanism, calibration, relation), TRIED):
            if np.size(one) not in WIDTH or not puts_out_numbers(self.mechanism, one, calibration):
                break
            for answer, neighbour in ((one, other), (other, one)):
                for k in range(answer.size):
                    for output in _edges(self.mechanism, answer, k, calibration):
                        if stated_density(self.mechanism, neighbour, output, calibration) == -math.inf:
                            return math.inf
        return 0.0


def _claim_beside_delta(
    where: str, pure: Fraction, exact: Fraction, curves: Iterable[LossCurve], slack: float
) -> LossClaim:
    """Return the claim of an exact delta beside a pure epsilon."""
    kind = f"exact delta beyond epsilon {float(pure):.6g}"
    return LossClaim(where, kind, float(exact), _delta_beyond(pure, curves), slack)


def _slack_beside_delta(exact: Fraction, coarse: bool) -> float:
    """Return how far the probability beyond an epsilon may be off. It is a sum of terms that are rounded."""
    return KINK * float(exact) if coarse else max(min(SLACK["delta"], float(exact) * TOLERANCE), ROUNDED)


def _delta_beyond(epsilon: Fraction, curves: Iterable[LossCurve]) -> float:
    """Return the largest delta at an epsilon among some pairs of answers."""
    return max((curve.delta(float(epsilon)) for curve in curves), default=0.0)


def _on_coarse_grids(calibration: Calibration, curves: Iterable[LossCurve]) -> bool:
    """Tell whether sums over listed outputs only approximate an integral, or a sum over more outputs."""
    return not calibration.facts.integer or any(curve.coarse for curve in curves)


def _edges(mechanism: Mechanism, answer: NDArray[Any], k: int, calibration: Calibration) -> Iterator[NDArray[Any]]:
    """Yield the last possible output on either side of an answer in one coordinate, if outputs end there."""
    unit = float(calibration.unit)

    def output(steps: int) -> NDArray[Any]:
        moved = np.where(np.arange(answer.size) == k, steps * unit, 0.0).reshape(answer.shape)
        return (answer + moved).astype(np.int64 if calibration.unit == 1 else np.float64)

    for sign in (1, -1):

        def impossible(steps: int, sign: int = sign) -> bool:
            return stated_density(mechanism, answer, output(sign * steps), calibration) == -math.inf

        if not impossible(0) and impossible(FARTHEST):
            yield output(sign * last_before(impossible, FARTHEST))
