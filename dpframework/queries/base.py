"""The base class of queries, their declared sensitivities, and the facts that a plan holds about them."""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Generator, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Amount, ByRelation, exact
from dpframework.facts.value_checks import as_texts, as_whole_numbers
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims
from dpframework.queries.query_counts_on_row_blocks import Counting
from dpframework.tables.encoded_row_blocks import Block

if TYPE_CHECKING:
    from dpframework.tables.crosstab_expressions import JointCounts


class Norm(enum.StrEnum):
    """The norm of an answer's change. L2 sensitivities are given squared, so that they stay rational.

    `HISTOGRAMS` is for answers that consist of several histograms, one after another (`QueryFacts.histograms`). It is
    the largest l1 norm of the change of one histogram. A query that declares it also states that each histogram counts
    every row once. So the changes of all histograms have the same sum, which is 0 if a row is replaced.

    `BLOCKS` is for answers that consist of several blocks of numbers, one after another, whose sizes are also in
    `QueryFacts.histograms`. It is the largest l1 norm of the change of one block. Nothing is stated about sums.
    """

    L1 = "l1"
    SQUARED_L2 = "squared-l2"
    LINF = "linf"
    HISTOGRAMS = "histograms"
    BLOCKS = "blocks"


def _size_or_none(value: Amount | None) -> Fraction | None:
    if value is None or (type(value) is Fraction and value.numerator >= 0):  # nearly always the value is exact already
        return value
    return exact(value, "a sensitivity's change, rise or fall")


# A rise or a fall that is left out may be as large as the change.
_AS_LARGE: Any = attrs.Factory(lambda declared: declared.add_or_remove_one, takes_self=True)


@attrs.frozen
class Sensitivity:
    """How far a query's answer can move between neighbours.

    Attributes
    ----------
    norm
        The norm that changes are measured in. For `Norm.SQUARED_L2` all values are squares.
    add_or_remove_one
        The largest change when a row is added or removed. None if there is no bound, so that the number of rows must be
        public.
    replace_one
        The largest change when a row is replaced. None counts a replacement as one removal and one addition.
    rise, fall
        How far adding a row can raise coordinates, and how far it can lower them: the norm of the increases, and the
        norm of the decreases. By default each is `add_or_remove_one`. Removing a row does the reverse. For a replaced
        row no separate rise and fall are declared, since the reverse of a replacement is a replacement.
    source
        The theorem, paper or derivation that the values come from.
    """

    norm: Norm = attrs.field(converter=Norm)
    add_or_remove_one: Fraction | None = attrs.field(converter=_size_or_none)
    replace_one: Fraction | None = attrs.field(default=None, converter=_size_or_none)
    rise: Fraction | None = attrs.field(default=_AS_LARGE, converter=_size_or_none, kw_only=True)
    fall: Fraction | None = attrs.field(default=_AS_LARGE, converter=_size_or_none, kw_only=True)
    source: str = attrs.field(kw_only=True, converter=printable)

    def __attrs_post_init__(self) -> None:
        """Refuse a rise and a fall that contradict the change."""
        added = self.add_or_remove_one
        if added is None:
            if self.rise or self.fall:
                raise InputError("a sensitivity with a rise or a fall needs add_or_remove_one; give the larger of them")
            return
        either = (self.rise, self.fall)
        known = [direction for direction in either if direction is not None]
        if len(known) < 2 or max(known) > added or (self.norm is Norm.LINF and max(known) < added):
            raise InputError(
                f"a sensitivity in the {self.norm} norm declares a change of {added}, a rise of {self.rise} and a fall "
                f"of {self.fall}; in the linf norm the change must be the larger of rise and fall, and in other norms "
                "it must be no smaller than either of them"
            )

    @property
    def monotonic(self) -> bool:
        """Whether an added row moves all coordinates in one direction: it lowers none, or it raises none."""
        return 0 in (self.rise, self.fall)

    @property
    def change(self) -> ByRelation:
        """The change under each relation. Under replace-one it is at most the change by a removal and an addition.

        In the linf norm, a removal moves a coordinate by an amount in [-rise, fall], and an addition by an amount in
        [-fall, rise], so together by at most rise + fall. In any other norm the change at most doubles, by the triangle
        inequality.
        """
        added = self.add_or_remove_one
        if added is None:
            return ByRelation(None, self.replace_one)
        assert self.rise is not None  # the constructor has checked both
        assert self.fall is not None
        both = self.rise + self.fall if self.norm is Norm.LINF else added * (4 if self.norm is Norm.SQUARED_L2 else 2)
        return ByRelation(added, both if self.replace_one is None else min(self.replace_one, both))

    @property
    def spread(self) -> ByRelation:
        """The largest difference between the changes of two coordinates, on which a selection's loss depends.

        Adding a row moves every coordinate by an amount in [-fall, rise], an interval of length rise + fall. Removing
        a row moves every coordinate by an amount in the mirror image of this interval. Let c be the change under
        replace-one. Replacing a row moves every coordinate by an amount in [-c, c], an interval of length 2 c. Since c
        is at most rise + fall, this is never more than the spreads of a removal and an addition together.
        """
        if self.norm is not Norm.LINF:
            raise InputError("a spread is defined for sensitivities in the linf norm")
        replaced = self.change.replace_one
        of_one = None if self.rise is None or self.fall is None else self.rise + self.fall
        return ByRelation(of_one, None if replaced is None else 2 * replaced)


def _rounding(given: Amount) -> Fraction:
    return exact(given, "a query's rounding")


def _formulas(given: Iterable[ScoreClaims]) -> tuple[ScoreClaims, ...]:
    """Return the formulas without the functions that compute their scores, since facts hold no code."""
    return tuple(attrs.evolve(one, scorer=None) for one in given)


@attrs.frozen
class QueryFacts:
    """The facts that a plan holds about a query, enough to check and account but not to evaluate.

    Attributes
    ----------
    name
        The kind of query.
    text
        A description of the query for readers.
    attributes
        The attributes that the query may read. Empty if it may read any.
    integer
        Whether the answers are integers.
    answer_length
        The largest length of the answer (the number of cells or candidates). None if unknown.
    sensitivities
        The declared sensitivities. Empty if there are none, which the checks refuse.
    rounding
        The largest error of a coordinate of the answer from floating point, 0 if evaluation is exact.
    histograms
        The sizes of the histograms or blocks that make up the answer (see `Norm`). Empty if there are none.
    gathers
        Whether the query gathers something from each row, while other queries add up counts.
    formulas
        The formulas that the query scores by, with their claims.
    unlisted
        Whether the answer consists of counts of keys: values that no public list names (see `queries.Keys`).
    places
        Whether the query reads the place of each row within its unit: first, second, ... (see `Query`).
    no_attributes
        Whether the query reads no attribute (see `Query`).
    """

    name: str = attrs.field(converter=printable)
    text: str = attrs.field(converter=printable)
    attributes: tuple[str, ...] = attrs.field(converter=as_texts)
    integer: bool
    answer_length: int | None
    sensitivities: tuple[Sensitivity, ...] = attrs.field(converter=tuple[Sensitivity, ...])
    rounding: Fraction = attrs.field(default=Fraction(0), converter=_rounding)
    histograms: tuple[int, ...] = attrs.field(default=(), converter=as_whole_numbers)
    gathers: bool = False
    formulas: tuple[ScoreClaims, ...] = attrs.field(default=(), converter=_formulas)
    unlisted: bool = False
    places: bool = False
    no_attributes: bool = False

    def sensitivity(self, norm: Norm) -> Sensitivity | None:
        """Return the declared sensitivity in `norm`, else one derived from the l1 norm, else None.

        The l1 norm of a change bounds its other norms. Nothing is derived from a squared l2 sensitivity, since its root
        need not be rational. A query that declares only a squared l2 sensitivity should declare its linf sensitivity
        too.
        """
        for declared in self.sensitivities:
            if declared.norm is norm:
                return declared
        l1 = next((declared for declared in self.sensitivities if declared.norm is Norm.L1), None)
        if l1 is None:
            return None
        power = 2 if norm is Norm.SQUARED_L2 else 1
        added, replaced, rise, fall = (
            None if bound is None else bound**power
            for bound in (l1.add_or_remove_one, l1.replace_one, l1.rise, l1.fall)
        )
        if norm is Norm.LINF:
            added = max((direction for direction in (rise, fall) if direction is not None), default=added)
        return attrs.evolve(l1, norm=norm, add_or_remove_one=added, replace_one=replaced, rise=rise, fall=fall)


class Query(abc.ABC):
    """A deterministic function of the private rows that declares its sensitivity.

    Most queries count. They override `tables`, which names the cross tables to count, or `count`, which is summed over
    blocks of rows, or both. If the answer is a function of those counts, they also override `answer`. An engine that
    counts cross tables only, such as a database, runs only queries that define `tables`. `evaluate` is for the few
    queries that need more than counts.

    All keyword inputs that `count` and `answer` get at run time must be public. The declared sensitivity must hold for
    every such input.
    """

    name: ClassVar[str]
    integer: ClassVar[bool] = True
    #: Whether the query reads the place of each row within its unit: first, second, ... (see `Block.places_in_units`).
    #: The units must be known by their ids.
    places: ClassVar[bool] = False
    #: Whether the query reads no attribute, so that all are hidden from it.
    no_attributes: ClassVar[bool] = False

    @property
    def gathers(self) -> bool:
        """Whether the query gathers something from each row (by `Engine.map`), while other queries add up counts.

        The memory that it needs then grows with the rows, and engines that return only counts do not run it.
        """
        return False

    @property
    def unlisted(self) -> bool:
        """Whether the answer is counts of keys (values that nobody listed), which only some mechanisms may release."""
        return False

    @property
    def text(self) -> str:
        """A description of the query in a few words."""
        return self.name

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the query may read; empty if it may read any.

        Others are hidden (see `exact_answers_hiding_undeclared_columns`).
        """
        return ()

    @property
    def answer_length(self) -> int | None:
        """The largest length of the answer, None if unknown before the run."""
        return None

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The declared sensitivities, one for each norm. A plan is refused if a query declares none (DP004)."""
        return ()

    @property
    def rounding(self) -> Fraction:
        """The largest error of a coordinate of the answer from floating point. Selections are charged for it.

        Every mechanism tolerates an error of a few steps of its lattice, each 2**-20 of the sensitivity. Declare an
        error that may be larger. For example, the error of a sum of real numbers grows with the number of rows.
        """
        return Fraction(0)

    @property
    def histograms(self) -> tuple[int, ...]:
        """The sizes of the histograms (or blocks) that make up the answer. Empty if it has none (see `Norm`)."""
        return ()

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """The formulas that the query scores by, each with claims, which `dpframework prove` proves."""
        return ()

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Declare how far a privacy unit of several rows moves the answer, if that is less than the sum over its rows.

        By default nothing is declared, and the unit is charged the sum over its rows. A sensitivity declared here
        bounds the change when up to `rows` rows are added or removed together. Under replace-one, it bounds the change
        when up to `rows` rows are removed and up to `rows` are added. It is used only for releases from the whole
        table. In parts of the table, each row is charged alone.
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
    def has_tables(self) -> bool:
        """Whether the counts follow from the cross tables of `tables`. True if `tables` is overridden."""
        return type(self).tables is not Query.tables

    def tables(self, **inputs: Any) -> JointCounts | None:
        """Return the cross tables from which the counts follow, as public expressions. By default None.

        For any rows and inputs, `JointCounts.assemble` of the tables' counts must equal `count`.
        """
        return None

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return counts over one block of rows. The counts of all blocks are added up.

        By default these are the counts of `tables`. Override this method if a compiled kernel is faster.

        Raises
        ------
        InputError
            If the query defines neither this method nor `tables`.
        """
        tables = self.tables(**inputs)
        if tables is None:
            raise InputError(f"the query '{self.name}' defines neither `count` nor `tables`; define one of them")
        return tables.count(block)

    def answer(self, counts: NDArray[Any], **inputs: Any) -> Any:
        """Return the answer, given the counts over all rows. By default the counts themselves."""
        return counts

    def candidates(self, **inputs: Any) -> Sequence[Any]:
        """Return the candidates of a selection, in the order of the answer's coordinates.

        A selection releases one of the candidates. By default these are positions, or none if their number is unknown.
        """
        return () if self.answer_length is None else range(self.answer_length)

    def coordinates(self, answer: Any) -> NDArray[Any]:
        """Return the numbers whose change the sensitivity bounds, for verification.

        By default this is the answer itself. A query whose answer stands for more numbers than can be listed returns
        some of them, or sums of them, chosen without regard to the answer.
        """
        return np.asarray(answer)

    def counting(
        self, engine: Any, rows: Any, **inputs: Any
    ) -> Generator[Callable[[Block], NDArray[Any]], NDArray[Any], Any]:
        """Yield functions that count on `rows`, and return the exact answer (private side only).

        Each yielded function is summed over all blocks, and the sum is sent back. By default the only function is
        `count`, as a `Counting`, and `answer` of its sum is returned. Since queries yield functions instead of calling
        the engine, one call of the engine can count for several queries.
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
