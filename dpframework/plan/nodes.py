"""The nodes of a plan: steps and their compositions.

A plan is described before anything runs. So a step is a template: some inputs of its query, such as a chosen split, are
only known at run time. They must come from earlier releases, and the declared sensitivity must hold for all such
inputs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs

from dpframework.facts.argument_type_checks import require_field_types, require_fields_only, typechecked
from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases, Description
from dpframework.facts.parameter_checks import is_whole_number, names_of
from dpframework.facts.privacy_losses import Amount, decimal_text, exact, exact_or_none
from dpframework.facts.row_partitions import Cut, number_of_parts
from dpframework.mechanisms.base import Mechanism
from dpframework.queries.base import Query, QueryFacts


@final
@attrs.frozen
class FromRelease:
    """Parts that are cut by the output of a step, such as a chosen split or the leaves of a tree.

    Attributes
    ----------
    step
        The name of the step.
    attributes
        The names of the attributes by which the parts may be cut. A run refuses all other attributes. If empty, any
        attribute is accepted, and a report then says that releases from a part may depend on any attribute.
    """

    step: str
    attributes: tuple[str, ...] = attrs.field(default=(), converter=names_of, kw_only=True)

    def __str__(self) -> str:
        """Name the step."""
        return f"the release of '{self.step}'"


#: What the parts of a parallel are made from: public cells, or a release.
Parts: TypeAlias = "Cut | FromRelease"


_FINEST_RATE = 10**9  # the largest denominator of a sample's rate

#: The pattern of the characters that a name in a plan may have.
NAME_CHARACTER = "[A-Za-z0-9 ._=+-]"


def validate_plan_name(instance: Any, attribute: Any, value: str) -> None:
    """Refuse a name that cannot be used in a plan. The signature is that of an attrs validator.

    Raises
    ------
    InputError
        If it has characters other than `NAME_CHARACTER`, or does not begin with a letter or digit.
    """
    if not isinstance(value, str) or not re.fullmatch(f"[A-Za-z0-9]{NAME_CHARACTER}*", value):
        raise InputError(
            f"the name {value!r} cannot be used in a plan; "
            "letters from A to Z, digits, spaces and . _ = + - are accepted, a letter or digit first"
        )


_BESIDE = "../"  # no name in a plan begins like this


def beside(name: str) -> str:
    """Return the name by which a step's `uses` refer to another part of the plan, such as the part of another miner.

    Examples
    --------
    >>> beside("cost-bounds")
    '../cost-bounds'
    """
    return f"{_BESIDE}{name}"


def split_use(use: str) -> tuple[str, bool]:
    """Return the name that a step uses, and whether it refers to another part of the plan (see `beside`)."""
    return use.removeprefix(_BESIDE), use.startswith(_BESIDE)


@attrs.frozen
class Node:
    """A node of a plan: a step, post-processing, or a composition of nodes."""

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below."""
        return ()

    def with_children(self, children: Iterable[Node]) -> Node:
        """Return a copy with other nodes below it."""
        return attrs.evolve(self)


@final
@attrs.frozen
class Step(Node):
    """One planned release, with its query and the mechanism that answers it.

    Attributes
    ----------
    name
        The name of the step, unique within its scope.
    query
        The query that is answered.
    mechanism
        The mechanism that releases the answer, with its privacy parameter.
    uses
        The names of the steps whose releases the step is given at run time. These steps are in the same scope, in a
        scope around it, or in other parts of the study (see `beside`).
    assumptions
        The names of the assumptions that the step's claim needs beyond its theorem.
    threshold
        A number with which the release is compared. If the noise is larger, a check reports it (DP007).
    """

    name: str = attrs.field(validator=validate_plan_name)
    query: Query
    mechanism: Mechanism
    uses: tuple[str, ...] = attrs.field(default=(), converter=names_of, kw_only=True)
    assumptions: tuple[str, ...] = attrs.field(default=(), converter=names_of, kw_only=True)
    threshold: Fraction | None = attrs.field(default=None, converter=exact_or_none, kw_only=True)

    @functools.cached_property
    def facts(self) -> QueryFacts:
        """The query's declared facts. They are read once, so that they cannot differ between two readers."""
        return self.query.facts()


@final
@attrs.frozen
class Post(Node):
    """Post-processing, which costs nothing, with the names of the releases that it uses."""

    name: str = attrs.field(validator=validate_plan_name)
    uses: tuple[str, ...] = attrs.field(converter=names_of)


@attrs.frozen
class _Composition(Node):
    """A composition of several nodes."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """The parts."""
        return self.parts

    def with_children(self, children: Iterable[Node]) -> Node:
        """Return a copy with other parts."""
        return attrs.evolve(self, parts=tuple(children))


@attrs.frozen
class _OnePart(Node):
    """A composition of one node, which is released several times or from a sample."""

    part: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The part, as the only child."""
        return (self.part,)

    def with_children(self, children: Iterable[Node]) -> Node:
        """Return a copy with another part."""
        (part,) = children
        return attrs.evolve(self, part=part)


@final
@attrs.frozen
class Sequential(_Composition):
    """Parts that are released from the same rows, one after another. If it has a name, it opens a scope."""

    name: str | None = attrs.field(default=None, validator=attrs.validators.optional(validate_plan_name))


@final
@attrs.frozen
class Parallel(_Composition):
    """Releases from disjoint parts of the rows.

    Attributes
    ----------
    parts
        Either one node that is used for every part, or one node for each part.
    by
        How the parts are made: by an attribute's values, by cases, by disjoint descriptions, or from a release. None is
        refused by check DP003, since such parts are not known to be disjoint.
    name
        A name, needed if one scope has several partitions.
    """

    by: Parts | None
    name: str | None = attrs.field(default=None, validator=attrs.validators.optional(validate_plan_name))

    @property
    def number(self) -> int | None:
        """The number of parts, or None if it is known only at run time."""
        return None if self.by is None or isinstance(self.by, FromRelease) else number_of_parts(self.by)


@final
@attrs.frozen
class Either(_Composition):
    """One of several branches, chosen by earlier releases."""


@final
@attrs.frozen
class Repeat(_OnePart):
    """The same part several times on the same rows."""

    times: int


@final
@attrs.frozen
class Sample(_OnePart):
    """A part that is released from a random sample of the privacy units.

    Each unit is in the sample with probability `rate`, with all its rows. (If no ids tell to whom rows belong, each row
    is drawn by itself.) The sample is drawn with private randomness, once for all releases below this node. It is
    itself never released. The part is a scope of its own.

    Attributes
    ----------
    part
        The node that is released from the sample.
    rate
        The probability with which a unit is in the sample, above 0 and below 1.
    name
        A name, needed if one scope has several samples.
    """

    rate: Fraction
    name: str | None = attrs.field(default=None, validator=attrs.validators.optional(validate_plan_name))


def step(
    name: str,
    query: Query,
    mechanism: Mechanism,
    *,
    uses: Iterable[str] = (),
    assumptions: Iterable[str] = (),
    threshold: Any = None,
) -> Step:
    """Plan one release (see `Step`).

    Raises
    ------
    InputError
        If the name cannot be used, if the query, the mechanism or one of their fields has a wrong type, or if the
        mechanism keeps something outside of its fields.

    Examples
    --------
    >>> from dpframework.mechanisms import DiscreteLaplace
    >>> from dpframework.queries import Count
    >>> step("rows", Count(), DiscreteLaplace(0.5)).name
    'rows'
    """
    require_query(query, f"step '{name}'")
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"step '{name}': {mechanism!r} is not a mechanism; pass an instance, such as Laplace(epsilon)")
    require_field_types(mechanism, f"step '{name}': {mechanism.name}")
    require_fields_only(mechanism, f"step '{name}': mechanism '{mechanism.name}'")
    return Step(name, query, mechanism, uses=uses, assumptions=assumptions, threshold=threshold)


def require_query(query: object, where: str) -> None:
    """Refuse a value that is not a query, and a query that has a field of the wrong type.

    Raises
    ------
    InputError
        If the value is not a query, or a field has a wrong type. The message begins with `where`.
    """
    if not isinstance(query, Query):
        raise InputError(f"{where}: {query!r} is not a query; pass an instance of a dpframework.queries.Query class")
    require_field_types(query, f"{where}: {query.name}")


def sequential(*parts: Node, name: str | None = None) -> Sequential:
    """Compose releases from the same rows. A `name` opens a scope, which a miner enters by `table.scope(name)`."""
    return Sequential(_nodes("sequential", parts), name)


@typechecked
def parallel(
    *parts: Node,
    by: Attribute | Cases | Description | Iterable[Description] | FromRelease | None = None,
    name: str | None = None,
) -> Parallel:
    """Compose releases from disjoint parts. Give one node that is used for every part, or one node for each part.

    One description makes two parts: the rows for which it holds, and the rest (see `PrivateTable.partition`).

    Raises
    ------
    InputError
        If several nodes are given, but not one for each part.
    """
    by = Cases([by]) if isinstance(by, Description) else by
    made_by: Parts | None = by if by is None or isinstance(by, Attribute | Cases | FromRelease) else tuple(by)
    node = Parallel(_nodes("parallel", parts), made_by, name)
    if len(parts) > 1 and node.number is not None and node.number != len(parts):
        raise InputError(
            f"parallel has {len(parts)} children for {node.number} parts; give one for all, or one for each part"
        )
    return node


def either(*parts: Node) -> Either:
    """Plan several branches, of which one runs. The miner chooses the branch according to earlier releases."""
    return Either(_nodes("either", parts))


def repeat(times: int, part: Node) -> Repeat:
    """Plan the same part `times` times on the same rows.

    Raises
    ------
    InputError
        If `times` is not a positive integer.
    """
    if not is_whole_number(times):
        raise InputError(f"repeat takes a positive number of times, not {times!r}")
    (repeated,) = _nodes("repeat", (part,))
    return Repeat(repeated, times)


def sample(rate: Amount, part: Node, *, name: str | None = None) -> Sample:
    """Plan releases from a random sample. In a run, `table.sampled(name)` draws the sample.

    With probability `rate`, and independently of all others, a privacy unit is in the sample with all its rows. Under
    add-or-remove-one such releases cost less than releases from all rows (see `accountant.composition.sample`). Under
    replace-one they have no claim.

    Raises
    ------
    InputError
        If the rate is not above 0 and below 1, or the denominator of its reduced fraction is above 10**9.

    Examples
    --------
    >>> from dpframework.mechanisms import DiscreteLaplace
    >>> from dpframework.queries import Count
    >>> sample(0.1, step("rows", Count(), DiscreteLaplace(1))).rate
    Fraction(1, 10)
    """
    chance = exact(rate, "rate")
    if not 0 < chance < 1 or chance.denominator > _FINEST_RATE:
        raise InputError(f"rate is {decimal_text(chance)}; a number between 0 and 1 of at most nine digits is needed")
    (sampled,) = _nodes("sample", (part,))
    return Sample(sampled, chance, name)


@typechecked
def post(name: str, uses: Iterable[str]) -> Post:
    """Mark post-processing of the named steps, which costs nothing."""
    return Post(name, uses)


def _nodes(kind: str, parts: tuple[Node, ...]) -> tuple[Node, ...]:
    if not parts:
        raise InputError(f"{kind} needs at least one part")
    for part in parts:
        if not isinstance(part, Node):
            raise InputError(f"{kind} takes steps and compositions of steps, not {part!r}")
    return parts


def distinct(node: Node) -> Node:
    """Return a copy in which every node is a different object: a step object that occurs twice becomes two steps."""
    return node.with_children(distinct(child) for child in node.children)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, each before its parts, left to right."""
    yield node
    for child in node.children:
        yield from walk(child)
