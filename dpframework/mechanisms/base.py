"""The base classes of mechanisms, the calibration of their noise for a query, and the preview of their error."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import ByRelation, Relation, deviation_above, float_above, positive
from dpframework.facts.privacy_unit import ONE_ROW, UnitChange
from dpframework.mechanisms.lattice_rounding import AT_ONCE, LatticePoints, Scores, round_to
from dpframework.mechanisms.noise_laws import NoiseLaw
from dpframework.mechanisms.randomness import Randomness
from dpframework.mechanisms.release_losses import Losses, divide, double_at_most, either_way, half_square, times
from dpframework.queries.base import Norm, QueryFacts
from dpframework.tables.count_width import in_64_bits

LATTICE_BITS = 20  # real answers are rounded to multiples of a step (a lattice) of at most 2**-20 of their sensitivity
LARGEST_INTEGER = 1 << 62  # the largest absolute value in an integer answer; larger ones are clamped
LARGEST_SCALE = 1 << 52  # the largest scale of noise, in lattice steps; 2**10 such scales fit into 64-bit integers


@attrs.frozen
class Preview:
    """The error that is expected of a release, known before the run.

    Attributes
    ----------
    expected
        The expected error of one number, or of the chosen candidate's score: not less than its true mean.
    within
        A bound on that error that holds with 95 % probability.
    text
        The preview in words.
    """

    expected: float
    within: float
    text: str

    @classmethod
    def of_noise(cls, expected: float, within: float) -> Preview:
        """Return the preview of noise that is added to each number."""
        return cls(expected, within, f"each number within ±{within:.3g} (95 %), ±{expected:.3g} on average")


@attrs.frozen
class Calibration:
    """A mechanism with its noise fixed for one query under one neighbouring relation.

    Attributes
    ----------
    mechanism
        The mechanism. For a unit of several rows, the mechanism for one row (see `Mechanism.for_rows`).
    facts
        The query's declared facts. Their sensitivities are for one row, whatever the privacy unit is.
    scale
        The exact scale of the noise, in units of the answer. For Gaussian noise it is the variance, in squared units.
    unit
        The step of the lattice to which answers are rounded, in units of the answer: 1 for integer queries.
    losses
        The losses of the release at this scale under each relation, where neighbours differ by one privacy unit.
    by
        The largest change that one privacy unit makes to the rows.
    same_rows
        Whether neighbours have the same number of rows in the queried table, so that noise need not hide that number.
    """

    mechanism: Mechanism
    facts: QueryFacts
    scale: Fraction
    unit: Fraction
    losses: Losses
    by: UnitChange = ONE_ROW
    same_rows: bool = False

    @functools.cached_property
    def lattice_scale(self) -> float:
        """The noise's scale in lattice steps, rounded up. For Gaussian noise, use `lattice_deviation` instead."""
        return float_above(self.scale / self.unit)

    @functools.cached_property
    def lattice_deviation(self) -> float:
        """The standard deviation of Gaussian noise in lattice steps, rounded up."""
        return deviation_above(self.scale, self.unit)

    @property
    def variance(self) -> float:
        """The variance of the noise of each number released (see `Mechanism.variance`)."""
        return self.mechanism.variance(self)

    @property
    def noise_law(self) -> NoiseLaw:
        """The distribution of the noise of each real number released (see `Mechanism.noise_law`)."""
        return self.mechanism.noise_law(self)

    @property
    def preview(self) -> Preview:
        """How far a release will probably be from the exact answer (see `Mechanism.preview`)."""
        return self.mechanism.preview(self)

    def divided(self, number: int, facts: QueryFacts) -> Calibration:
        """Return the calibration that describes a release after its numbers were divided by a whole number.

        Parameters
        ----------
        number
            The whole number, 1 or more.
        facts
            The facts of the query that the quotient answers.
        """
        power = 2 if self.mechanism.norm is Norm.SQUARED_L2 else 1
        scale, unit = self.scale / number**power, self.unit / number
        return attrs.evolve(self, facts=facts, scale=scale, unit=unit, same_rows=False)

    def on_lattice(self, answer: Any) -> NDArray[np.int64]:
        """Return a real or integer answer as whole numbers of lattice steps, in the shape of the answer.

        Numbers beyond `LARGEST_INTEGER`, or `LARGEST_REAL` steps, are clamped. This moves no two answers further apart.

        Raises
        ------
        InputError
            If the answer is not numeric, not finite or not as declared (integer, length), or if sums in its type may
            overflow or be rounded (see `count_width.in_64_bits`). The message shows no value.
        """
        array = self._usable(answer)
        if not self.facts.integer:
            return round_to(array, float(self.unit))
        return np.asarray(np.minimum(np.maximum(array, -LARGEST_INTEGER), LARGEST_INTEGER))

    def scores(self, answer: Any) -> Scores:
        """Return an answer as a flat sequence of lattice points. `on_lattice` says which answers are refused.

        Long real answers are rounded only when they are read, which saves memory.
        """
        if self.facts.integer or np.size(answer) <= AT_ONCE:
            return self.on_lattice(answer).ravel()
        return LatticePoints(self._usable(answer).reshape(-1), float(self.unit))

    def _usable(self, answer: Any) -> NDArray[Any]:
        """Return an answer in 64 bits. Refuse an answer that contradicts what its query declares."""
        array = np.asarray(answer)
        if array.dtype != np.int64:
            array = self._numbers(array)
        length = self.facts.answer_length
        if length is not None and array.size > length:
            raise self._unusable(f"answered with more than the {length} numbers of its declared answer_length")
        return array

    def _numbers(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an answer that is not of type int64 as int64 or as 64-bit floats."""
        if array.dtype.kind not in "iufb":
            raise self._unusable(f"answered with {array.dtype}; numbers are needed")
        if array.dtype.kind == "b":  # `in_64_bits` refuses booleans, but as an answer each is just 0 or 1
            return array.astype(np.int64)
        array = in_64_bits(array)
        if array.dtype.kind == "f":
            if self.facts.integer:
                raise self._unusable("declares integer answers but answered with floats")
            if not bool(np.isfinite(array).all()):
                raise self._unusable("answered with NaN or infinity; answers must be finite on every table")
        if array.dtype.kind == "u":
            return np.asarray(np.minimum(array, np.uint64(LARGEST_INTEGER)).astype(np.int64))
        return array

    def _unusable(self, why: str) -> InputError:
        return InputError(f"the query '{self.facts.text}' {why}")


@attrs.frozen
class Mechanism(abc.ABC):
    """Turns a query's answer into a release at a privacy loss.

    A mechanism is a public value: it holds its privacy parameter and nothing of the data. `calibrate` returns a
    `Calibration`, the noise for a query under the study's relation. Methods that draw or describe a release need it.
    """

    name: ClassVar[str]
    norm: ClassVar[Norm]
    selects: ClassVar[bool] = False  # whether an output is the position of one of the query's candidates
    chooses: ClassVar[bool] = False  # whether the preview bounds how far the output's score is below the best score
    in_score_order: ClassVar[bool] = True  # for selections: whether a higher score has an equal or higher probability
    needs_length: ClassVar[bool] = True  # whether the noise on a real-valued answer depends on the answer's length
    #: Whether the mechanism may release keys (values that nobody listed). It then never releases a key without rows.
    shows_keys: ClassVar[bool] = False
    #: What the privacy claim assumes besides the declared sensitivity, such as `randomness.REAL_ARITHMETIC`.
    assumptions: ClassVar[tuple[str, ...]] = ()
    #: The attrs classes and enumerations that an output is made of, besides numbers, texts, arrays and collections of
    #: these. A resumed run reads its outputs from a file, and creates objects of the listed classes only.
    outputs: ClassVar[tuple[type[Any], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a class that defines `release` alone a `release_many` that calls it, in place of the parent's."""
        super().__init_subclass__(**options)
        if "release" in vars(cls) and "release_many" not in vars(cls):
            cls.release_many = Mechanism.release_many  # type: ignore[method-assign]

    def misfit(self, facts: QueryFacts) -> str | None:
        """Return why the mechanism cannot release the answer of a query with these facts, or None if it can."""
        if facts.sensitivity(self.norm) is None:
            return f"needs a sensitivity in the {self.norm} norm, which the query does not declare"
        if facts.unlisted and not self.shows_keys:
            return (
                "releases a number for each cell of a list, and nobody lists the keys; use partition-selection, or "
                "gaussian-threshold if a unit has several keys"
            )
        if not facts.integer and facts.answer_length is None and self.needs_length:
            return "needs to know the length of a real-valued answer beforehand (Query.answer_length)"
        return None

    def for_rows(self, rows: int) -> Mechanism | None:
        """Return the same mechanism with more noise, so that `rows` rows together lose what one row loses now.

        A pure epsilon is divided by `rows`, and a rho by the square of `rows` (see `facts.privacy_unit`). By default
        the result is None, since nothing is known about other parameters.
        """
        return None

    def calibrate(
        self, facts: QueryFacts, relation: Relation, *, in_parts: bool = False, by: UnitChange = ONE_ROW
    ) -> Calibration | None:
        """Return the calibration for a query under a relation, or None if the mechanism makes no claim under it.

        Parameters
        ----------
        facts
            The query's declared facts.
        relation
            The study's neighbouring relation.
        in_parts
            Whether the query runs on disjoint parts of a table. A replaced row may then leave one part and enter
            another, which costs twice the add-or-remove loss. Noise is chosen so that this, too, costs at most the
            mechanism's parameter.
        by
            The largest change that one privacy unit makes to the rows; by default a unit is a row.

        Raises
        ------
        InputError
            If the noise would be too large for 64-bit integers.
        """
        of_a_row = self if by.rows == 1 else self.for_rows(by.rows)
        if of_a_row is None or self.misfit(facts) is not None:
            return None
        unit = of_a_row.lattice_unit(facts)
        change = of_a_row.change(facts)
        if by.resizes:
            change = either_way(change)
        bound = change.under(relation)
        if in_parts and relation is Relation.REPLACE_ONE:
            bound = (
                None if bound is None or change.add_or_remove_one is None else max(bound, 2 * change.add_or_remove_one)
            )
        if bound is None or bound <= 0:
            return None
        scale = of_a_row.scale(bound)
        if scale > (LARGEST_SCALE * unit) ** self._power:
            raise InputError(
                f"{self.name} on {facts.text}: the noise would be too large for 64-bit integers; "
                "raise its privacy parameter"
            )
        losses = of_a_row.losses(change, scale)
        same_rows = relation is Relation.REPLACE_ONE and not in_parts and not by.resizes
        return Calibration(of_a_row, facts, scale, unit, losses.of_rows(by.rows), by, same_rows)

    def lattice_unit(self, facts: QueryFacts) -> Fraction:
        """Return the lattice step for a query: 1 for integer answers, else a power of two far below the sensitivity."""
        declared = facts.sensitivity(self.norm)
        if facts.integer or declared is None:
            return Fraction(1)
        known = [c for c in (declared.change.add_or_remove_one, declared.change.replace_one) if c]
        if not known:
            return Fraction(1)
        power = self._power
        unit = Fraction(2) ** (math.floor(math.log2(min(known)) / power) - LATTICE_BITS)
        return unit if (unit * 2**LATTICE_BITS) ** power <= min(known) else unit / 2  # the logarithm may be rounded up

    def change(self, facts: QueryFacts) -> ByRelation:
        """Return the change of an answer between neighbours, under each relation. The loss is computed from it.

        By default this is the declared change in the mechanism's norm, enlarged by `padding` to allow for rounding. A
        mechanism whose loss depends on another number, such as the spread of scores, overrides this method.
        """
        declared = facts.sensitivity(self.norm)
        assert declared is not None  # `misfit` refuses other queries
        return times(declared.change, padding(facts) ** self._power)

    @property
    def _power(self) -> int:
        """The power of a length that the norm measures: 2 for the squared l2 norm, else 1."""
        return 2 if self.norm is Norm.SQUARED_L2 else 1

    @abc.abstractmethod
    def scale(self, change: Fraction) -> Fraction:
        """Return the scale of noise at which this change of an answer costs exactly the mechanism's parameter."""

    @abc.abstractmethod
    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return the losses of a release with noise of this scale, for an answer that changes this much."""

    @abc.abstractmethod
    def release(self, answer: Any, calibration: Calibration, randomness: Randomness) -> Any:
        """Draw an output for an exact answer."""

    def release_many(self, answers: Sequence[Any], calibration: Calibration, randomness: Randomness) -> list[Any]:
        """Draw an independent output for each of several exact answers, by default one after another.

        Outputs that are drawn in one call must have the same joint distribution as outputs that are drawn one by one. A
        class with its own `release` does not inherit `release_many` from another mechanism. It draws one output after
        another, or defines its own `release_many`.
        """
        return [self.release(answer, calibration, randomness) for answer in answers]

    @abc.abstractmethod
    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        """Return the log-probability (or log-density) of an output given an exact answer, -inf if impossible."""

    @abc.abstractmethod
    def preview(self, calibration: Calibration) -> Preview:
        """Predict the error of a release."""

    def variance(self, calibration: Calibration) -> float:
        """Return the variance of the noise that is added to each number of an answer, as a mean over all numbers.

        Raises
        ------
        InputError
            If the mechanism adds no noise to numbers, such as a selection.
        """
        raise InputError(f"{self.name} adds no noise to numbers, so that its releases have no variance")

    def noise_law(self, calibration: Calibration) -> NoiseLaw:
        """Return the distribution of the noise that is added to each real number, independent of the others.

        Raises
        ------
        InputError
            If the mechanism does not define the distribution of its noise.
        """
        raise InputError(f"{self.name} does not say how its noise is distributed; define Mechanism.noise_law")

    def dp_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return dp-accounting's event for accounting by privacy loss distributions (PLD), or None.

        With None, accounting assumes the worst mechanism of the same pure epsilon or, if the mechanism has no pure
        epsilon, of the same rho. For units of several rows, `unit_event` is called instead. For a release with a delta
        of its own, return the event of its core, which leaves out outputs of probability delta (see `release_losses`).
        """
        return None

    def unit_event(self, calibration: Calibration, relation: Relation) -> Any | None:
        """Return the event of a unit of several rows, `calibration.by.rows`. None means the same as in `dp_event`.

        Under add-or-remove-one, the event must dominate the change by any smaller number of rows, too. It must also
        hold for a unit whose rows spread over several parts. If the numbers of rows in these parts add up to k, the
        event of k rows must dominate the composed events of the parts (see `docs/composition.md`). Under replace-one,
        return an event only for a monotonic query, where added rows move all coordinates the same way.
        """
        return None


def padding(facts: QueryFacts) -> Fraction:
    """Return the factor by which a real-valued sensitivity grows on the lattice.

    Rounding adds at most one lattice step per coordinate, and one more step is allowed for evaluation in floating
    point. In every norm, a change grows by at most the sum of these steps. A step is at most 2**-20 of the sensitivity.
    """
    if facts.integer:
        return Fraction(1)
    assert facts.answer_length is not None  # `misfit` refuses other queries
    return 1 + Fraction(2 * facts.answer_length, 2**LATTICE_BITS)


@attrs.frozen
class PureMechanism(Mechanism):
    """A mechanism whose parameter is its pure epsilon under the study's relation."""

    epsilon: Fraction = attrs.field(converter=positive)

    def for_rows(self, rows: int) -> Mechanism:
        """Return the same mechanism with epsilon divided by the number of rows, since the losses of rows add up."""
        return attrs.evolve(self, epsilon=self.epsilon / rows)

    def scale(self, change: Fraction) -> Fraction:
        """Return change / epsilon."""
        return change / self.epsilon

    def losses(self, change: ByRelation, scale: Fraction) -> Losses:
        """Return change / scale as pure epsilon, for a replacement at most doubled, and half its square as rho."""
        pure = double_at_most(divide(change, scale))
        return Losses(pure, half_square(pure))
