"""The base class of queries, and the ways to declare a sensitivity."""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Generator, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.printable import printable
from dpframework.facts.privacy import Amount, ByRelation, exact
from dpframework.facts.value_checks import as_texts
from dpframework.formulas.claims import ScoreClaims
from dpframework.queries.counting import Counting
from dpframework.tables.blocks import Block

if TYPE_CHECKING:
    from dpframework.tables.joint_counts import JointCounts


class Norm(enum.StrEnum):
    """The norm of an answer's change. L2 sensitivities are given squared, so that they stay rational.

    `HISTOGRAMS` is for answers that are several histograms, one after another (`QueryFacts.histograms`): the largest l1
    norm of the change of one. Who declares it says, too, that each of them counts every row once, so that a change has
    the same sum in all, and the sum 0 if a row is replaced.

    `BLOCKS` is for answers that are several blocks of numbers, one after another, whose sizes stand in
    `QueryFacts.histograms` too: the largest l1 norm of the change of one, of any sums.
    """

    L1 = "l1"
    SQUARED_L2 = "squared-l2"
    LINF = "linf"
    HISTOGRAMS = "histograms"
    BLOCKS = "blocks"


def _size_or_none(value: Amount | None) -> Fraction | None:
    if value is None or (type(value) is Fraction and value.numerator >= 0):  # nearly always: exact already
        return value
    return exact(value, "a sensitivity's change, rise or fall")


@attrs.frozen
class Sensitivity:
    """How far a query's answer can move between neighbours.

    Attributes
    ----------
    norm
        What a change is measured in (for `Norm.SQUARED_L2` all values are squares).
    add_or_remove_one
        The largest change when a row is added or removed; None if there is no bound (a public row count is needed).
    replace_one
        The largest change when a row is replaced; None counts one removal and one addition.
    rise, fall
        How far adding a row can raise coordinates, and how far it can lower them: the norm of the increases, and that
        of the decreases. What is left out may be as large as `add_or_remove_one`. Removing a row does the reverse, and
        replacing one can do either: a replacement's reverse is a replacement.
    source
        The theorem, paper or derivation that the values come from.
    """

    norm: Norm = attrs.field(converter=Norm)
    add_or_remove_one: Fraction | None = attrs.field(converter=_size_or_none)
    replace_one: Fraction | None = attrs.field(default=None, converter=_size_or_none)
    rise: Fraction | None = attrs.field(converter=_size_or_none, kw_only=True)
    fall: Fraction | None = attrs.field(converter=_size_or_none, kw_only=True)
    source: str = attrs.field(kw_only=True, converter=printable)

    @rise.default
    def _rise(self) -> Fraction | None:
        return self.add_or_remove_one

    @fall.default
    def _fall(self) -> Fraction | None:
        return self.add_or_remove_one

    def __attrs_post_init__(self) -> None:
        """Refuse a rise and a fall that contradict the change."""
        added = self.add_or_remove_one
        if added is None:
            if self.rise or self.fall:
                raise InputError("a sensitivity with a rise or a fall needs add_or_remove_one, the larger of them")
            return
        either = (self.rise, self.fall)
        known = [direction for direction in either if direction is not None]
        if len(known) < 2 or max(known) > added or (self.norm is Norm.LINF and max(known) < added):
            raise InputError(
                f"a sensitivity in the {self.norm} norm declares a change of {added}, a rise of {self.rise} and a fall "
                f"of {self.fall}; the change is the larger of the two in the linf norm, and at least that in the others"
            )

    @property
    def monotonic(self) -> bool:
        """Whether a row that is added never lowers a coordinate, or never raises one."""
        return 0 in (self.rise, self.fall)

    @property
    def change(self) -> ByRelation:
        """The change under each relation, with replace-one bounded by a removal and an addition.

        In the linf norm these move a coordinate by something in [-rise, fall] and in [-fall, rise], together by
        rise + fall at most. In any other norm the change at most doubles, by the triangle inequality.
        """
        added = self.add_or_remove_one
        if added is None:
            return ByRelation(None, self.replace_one)
        assert self.rise is not None  # the constructor has seen to both
        assert self.fall is not None
        both = self.rise + self.fall if self.norm is Norm.LINF else added * (4 if self.norm is Norm.SQUARED_L2 else 2)
        return ByRelation(added, both if self.replace_one is None else min(self.replace_one, both))

    @property
    def spread(self) -> ByRelation:
        """The largest difference between the changes of two coordinates, on which a selection's loss depends.

        Adding a row moves every coordinate by something in [-fall, rise], an interval of length rise + fall; removing
        one, by something in its mirror image. Replacing one moves them by something in [-c, c] with c the change under
        replace-one, an interval of length 2 c: and c is at most rise + fall, so that is never more than a removal's and
        an addition's together.
        """
        if self.norm is not Norm.LINF:
            raise InputError("a spread is defined for sensitivities in the linf norm")
        replaced = self.change.replace_one
        of_one = None if self.rise is None or self.fall is None else self.rise + self.fall
        return ByRelation(of_one, None if replaced is None else 2 * replaced)


def _sensitivities(declared: Iterable[Sensitivity]) -> tuple[Sensitivity, ...]:
    return tuple(declared)


def _sizes(given: Iterable[int]) -> tuple[int, ...]:
    return tuple(given)


def _formulas(given: Iterable[ScoreClaims]) -> tuple[ScoreClaims, ...]:
    """Return formulas without the code that scores by them, which is no fact."""
    return tuple(attrs.evolve(one, scorer=None) for one in given)


@attrs.frozen
class QueryFacts:
    """The facts that a plan holds about a query, enough to check and account but not to evaluate.

    Attributes
    ----------
    name
        The kind of query.
    text
        What it asks, for a reader.
    attributes
        The attributes that it may read; empty if that may be any.
    integer
        Whether its answers are integers.
    answer_length
        The largest length of its answer (number of cells or candidates), None if unknown.
    sensitivities
        What it declares; empty if undeclared, which the checks refuse.
    rounding
        How far evaluation in floating point may put a coordinate of its answer from the true one; 0 if it is exact.
    histograms
        The sizes of the histograms of all rows, or of the blocks, that its answer is made of; empty if it is of
        neither.
    gathers
        Whether it gathers something of each row, where other queries add up counts.
    formulas
        The formulas that it scores by, with their claims.
    unlisted
        Whether it answers with counts of keys that nobody lists (see `queries.Keys`).
    places, no_attributes
        Whether it reads the place of each row among those of its unit, and whether it reads no attribute (see `Query`).
    """

    name: str = attrs.field(converter=printable)
    text: str = attrs.field(converter=printable)
    attributes: tuple[str, ...] = attrs.field(converter=as_texts)
    integer: bool
    answer_length: int | None
    sensitivities: tuple[Sensitivity, ...] = attrs.field(converter=_sensitivities)
    rounding: Fraction = attrs.field(default=Fraction(0), converter=Fraction)
    histograms: tuple[int, ...] = attrs.field(default=(), converter=_sizes)
    gathers: bool = False
    formulas: tuple[ScoreClaims, ...] = attrs.field(default=(), converter=_formulas)
    unlisted: bool = False
    places: bool = False
    no_attributes: bool = False

    def sensitivity(self, norm: Norm) -> Sensitivity | None:
        """Return the declared sensitivity in `norm`, else one in a norm that bounds it, else None.

        The l1 norm of a change bounds its other norms. (The root of a squared l2 sensitivity need not be rational:
        a query that knows only that one declares its linf sensitivity itself.)
        """
        for candidate in dict.fromkeys((norm, Norm.L1)):
            for declared in self.sensitivities:
                if declared.norm is candidate:
                    return declared if candidate is norm else _from_l1(declared, norm)
        return None


def _from_l1(declared: Sensitivity, norm: Norm) -> Sensitivity:
    """Return the sensitivities that follow from one in the l1 norm, since every other norm of a change is smaller."""
    power = 2 if norm is Norm.SQUARED_L2 else 1

    def raise_bound(bound: Fraction | None) -> Fraction | None:
        return None if bound is None else bound**power

    either = [direction for direction in (declared.rise, declared.fall) if direction is not None]
    largest = max(either, default=None) if norm is Norm.LINF else None
    return attrs.evolve(
        declared,
        norm=norm,
        add_or_remove_one=raise_bound(declared.add_or_remove_one) if largest is None else largest,
        replace_one=raise_bound(declared.replace_one),
        rise=raise_bound(declared.rise),
        fall=raise_bound(declared.fall),
    )


class Query(abc.ABC):
    """A deterministic function of the private rows that declares its sensitivity.

    Most queries count: override `tables`, which names the cross tables that are counted, or `count`, which is summed
    over blocks of rows, or both; and, where the answer is a function of those counts, `answer`. An engine that counts
    cross tables only, as a database does, runs the queries that define `tables`. `evaluate` is for the few queries that
    need more than counts.

    Whatever `count` and `answer` are given at run time as keyword inputs must be public, and the declared
    sensitivity must hold for every such input.
    """

    name: ClassVar[str]
    integer: ClassVar[bool] = True
    #: Whether it reads the place of each row among those of its unit, which ids tell (`Block.places_in_units`).
    places: ClassVar[bool] = False
    #: Whether it reads no attribute. All are hidden from it.
    no_attributes: ClassVar[bool] = False

    @property
    def gathers(self) -> bool:
        """Whether it gathers something of each row (by `Engine.map`), where other queries add up counts.

        Its memory grows with the rows then, and engines that let counts out only do not run it.
        """
        return False

    @property
    def unlisted(self) -> bool:
        """Whether it answers with counts of keys that nobody lists, which only some mechanisms may release."""
        return False

    @property
    def text(self) -> str:
        """A description of the query in a few words."""
        return self.name

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it may read. Others are hidden from it (see `answers`). Empty if it may read any."""
        return ()

    @property
    def answer_length(self) -> int | None:
        """The largest length of its answer, None if unknown before the run."""
        return None

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The declared sensitivities, one for each norm. A plan without one is refused (DP004)."""
        return ()

    @property
    def rounding(self) -> Fraction:
        """The largest error of a coordinate from floating point, which selections pay for.

        Mechanisms allow a few steps of their lattice, 2**-20 of the sensitivity, in any case. Declare this where the
        error grows with the rows, as that of a sum of real numbers does.
        """
        return Fraction(0)

    @property
    def histograms(self) -> tuple[int, ...]:
        """The sizes of the histograms of all rows that its answer is made of, if it is (see `Norm.HISTOGRAMS`)."""
        return ()

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The formulas that it scores by, with the claims about each, which `dpframework prove` proves."""
        return ()

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Declare how far a privacy unit of several rows moves the answer, where that is less than by each row alone.

        By default nothing: then each row counts by itself, and all of them the sum. What is declared here bounds the
        change by up to `rows` rows that are added or removed together, and, under replace-one, by up to so many that
        leave while up to so many come. It holds where the whole table is asked; in parts of it, each row counts alone.
        """
        return ()

    def facts(self) -> QueryFacts:
        """Return the facts that a plan holds about this query."""
        return QueryFacts(
            self.name,
            self.text,
            self.attributes,
            self.integer,
            self.answer_length,
            self.sensitivities,
            self.rounding,
            self.histograms,
            self.gathers,
            self.scored_formulas,
            self.unlisted,
            self.places,
            self.no_attributes,
        )

    @property
    def tabled(self) -> bool:
        """Whether the counts follow from cross tables, which `tables` names. By default, if that is defined."""
        return type(self).tables is not Query.tables

    def tables(self, **inputs: Any) -> JointCounts | None:
        """Return the cross tables that the counts follow from, as public expressions. By default None.

        `JointCounts.assemble` of their counts must equal `count`, for any rows and inputs.
        """
        return None

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return counts over one block of rows. The counts of all blocks are added up.

        By default those of `tables`; override it where a kernel is faster.

        Raises
        ------
        InputError
            If the query defines neither.
        """
        tables = self.tables(**inputs)
        if tables is None:
            raise InputError(f"the query '{self.name}' defines neither `count` nor `tables`; define one of them")
        return tables.count(block)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the answer, from counts over all rows."""
        return counts

    def candidates(self, **inputs: Any) -> Sequence[Any]:
        """Return the candidates of a selection, in the order of the answer's coordinates.

        A selection releases one of these; without any it releases a position.
        """
        return () if self.answer_length is None else range(self.answer_length)

    def coordinates(self, answer: Any) -> NDArray[Any]:
        """Return an answer as the numbers whose change the sensitivity bounds, for verification.

        By default the answer itself. A query whose answer stands for more numbers than can be listed returns some of
        them, the same ones whatever the answer.
        """
        return np.asarray(answer)

    def counting(
        self, engine: Any, rows: Any, **inputs: Any
    ) -> Generator[Callable[[Block], NDArray[Any]], NDArray[Any], Any]:
        """Yield the counts to be made on `rows`, and return the exact answer (private side only).

        Each function that is yielded is summed over all blocks, and the sum is sent back. By default `count` is, as
        `Counting`, and `answer` of it returned. The counts of several queries may then be made in one call of the
        engine.
        """
        counts = yield Counting(self, inputs)
        return self.answer(counts, **inputs)

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        """Return the exact answer on `rows` (private side only), by default from counts that the engine sums."""
        counting = self.counting(engine, rows, **inputs)
        try:
            function = next(counting)
            while True:
                function = counting.send(engine.sum(rows, function))
        except StopIteration as ended:
            return ended.value
