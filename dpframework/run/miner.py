"""The base class of miners, which have parameters, a plan and a run, and the examples on which they are verified."""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, final

import attrs

from dpframework.facts.errors import refuse_loops
from dpframework.facts.hash_json_form import exact_form
from dpframework.facts.logical_descriptions import Description
from dpframework.facts.privacy_losses import Relation, exact, rho_below
from dpframework.facts.schema import Schema
from dpframework.facts.unit import ROW, PrivacyUnit
from dpframework.plan.nodes import Node
from dpframework.plan.planned_part import PlannedPart
from dpframework.results.error_bounds import ErrorBound
from dpframework.results.result import StoredResult

if TYPE_CHECKING:
    from dpframework.plan.run_costs import RunCost
    from dpframework.run.private_table import PrivateTable


def _delta(value: Any) -> Fraction:
    return exact(value, "delta")


def _as_repeats(rows: Iterable[tuple[Mapping[str, Any], int]]) -> tuple[tuple[Mapping[str, Any], int], ...]:
    return tuple((dict(row), int(times)) for row, times in rows)


def _as_mapping(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(outputs))


@final
@attrs.frozen(eq=False)
class Witness:
    """Two neighbouring tables and outputs at which a miner's privacy loss is nearly as large as it claims.

    An audit replays witnesses before its own search. A witness can show how tight a claim is, and that a smaller claim
    would be wrong. It cannot make a claim pass.

    Attributes
    ----------
    shared
        The rows that both tables have. Each is given by the values of its attributes, and how often it occurs.
    one, other
        The further row of the one table, and the further row of the other. Under add-or-remove-one, one of them is
        None.
    outputs
        The outputs of mechanisms, by the paths of their steps within the miner's plan. An output that depends on the
        exact answer is given as a function of the answer and the calibration. For all other steps the worst output that
        the audit finds is taken.
    """

    shared: tuple[tuple[Mapping[str, Any], int], ...] = attrs.field(converter=_as_repeats)
    one: Mapping[str, Any] | None
    other: Mapping[str, Any] | None
    outputs: Mapping[str, Any] = attrs.field(factory=dict, converter=_as_mapping)

    @property
    def relation(self) -> Relation:
        """The relation under which the tables are neighbours."""
        return Relation.ADD_OR_REMOVE_ONE if self.one is None or self.other is None else Relation.REPLACE_ONE


def _witnesses(given: Iterable[Witness]) -> tuple[Witness, ...]:
    return tuple(given)


@final
@attrs.frozen
class Example:
    """A miner on a small schema, for the verification kit to audit.

    Attributes
    ----------
    schema
        A few attributes with a few values each, so that small tables come near the worst case.
    miner
        The miner with its parameters.
    delta
        The delta at which the miner's claim is tested. Set it above 0 for a claim in zCDP or PLD. A pure claim, if any,
        is tested as well.
    witnesses
        Tables and outputs that come near the worst case, if a search among small tables does not.
    loose
        The reason why no run can lose all that is claimed, such as an upper bound with its derivation. Verdicts show
        it.
    unit
        The privacy unit for which the claim is tested if no other is asked for. Give a person with several rows if the
        miner's parameters or claim depend on such units.
    """

    schema: Schema
    miner: Miner
    delta: Fraction = attrs.field(default=Fraction(0), converter=_delta)
    witnesses: tuple[Witness, ...] = attrs.field(default=(), converter=_witnesses)
    loose: str = ""
    unit: PrivacyUnit = ROW

    def for_units(self, rows: int) -> Example:
        """Return the example for units of several rows, with the schema's numbers of rows multiplied by `rows`.

        Noise grows by the same factor, so a table of the old size would show little.

        Examples
        --------
        >>> import dpframework as dpf
        >>> shown = dpf.miner("dp-tree", target="grade", epsilon=1).examples()["exact"]
        >>> shown.schema.max_rows, shown.for_units(4).schema.max_rows, float(shown.delta)
        (40, 160, 0.0)
        """
        numbers = {name: getattr(self.schema, name) for name in ("rows", "max_rows")}
        schema = attrs.evolve(self.schema, **{name: number and number * rows for name, number in numbers.items()})
        return attrs.evolve(self, schema=schema)

    def unit_for(self, unit: PrivacyUnit) -> PrivacyUnit:
        """Return the unit for which the claim is tested if `unit` is asked for.

        If one row is asked for, the claim is tested for the example's own unit. A unit that only asserts its number of
        rows has no ids. An example that groups rows by unit needs ids, so it then keeps its own unit, with the asserted
        number of rows.
        """
        if unit.is_row:
            return self.unit
        return attrs.evolve(self.unit, rows=unit.rows) if unit.asserted and self.unit.groups_rows else unit


@attrs.frozen
class Miner(abc.ABC):
    """A differentially private miner, one attrs class with its parameters as fields.

    A subclass sets `name`, documents itself in its docstring's first line, and defines `plan` and `mine`. By
    convention its budget is a parameter `epsilon`.

    Examples
    --------
    >>> import dpframework as dpf
    >>> @attrs.frozen
    ... class NoisyMode(dpf.Miner):
    ...     "Release the most common value of one attribute."
    ...     name = "noisy-mode"
    ...     attribute: str
    ...     epsilon: float
    ...     def plan(self, schema):
    ...         counts = dpf.queries.Histogram(schema[self.attribute])
    ...         return dpf.step("mode", counts, dpf.mechanisms.PermuteAndFlip(self.epsilon))
    ...     def mine(self, table):
    ...         return table.release("mode")
    """

    name: ClassVar[str]

    #: The class of the results of `mine`, if saved results are read back as objects of it; None for plain values.
    result: ClassVar[type[StoredResult] | None] = None

    @abc.abstractmethod
    def plan(self, schema: Schema) -> Node:
        """Return every release that `mine` may make, from the schema and the parameters alone."""

    @abc.abstractmethod
    def mine(self, table: PrivateTable) -> Any:
        """Make the releases and return the result.

        A result is written to JSON by its `to_dict` method, if it has one, and shown by `str`.
        """

    def for_study(self, unit: PrivacyUnit, relation: Relation) -> Miner:
        """Return the miner as a study runs it.

        A study calls this for each of its miners, and plans and runs the miner that is returned. Noise grows with the
        rows of a unit, and depends on the relation. So override this in a miner that chooses parameters by its noise.
        By default the miner itself is returned.

        Parameters
        ----------
        unit
            The unit that the study protects.
        relation
            The study's neighbouring relation.
        """
        return self

    @property
    def sources(self) -> Sequence[str]:
        """The names of earlier steps of the study whose results the miner is given, as `PrivateTable.given`.

        By default there are none. If the miner plans a release whose query is given such a result, the release names
        the result in `uses`, as `nodes.beside(name)`. The declared sensitivity of the query must hold for every result
        that the earlier step may release.
        """
        return ()

    def misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return why the miner cannot use the result of one of these steps, or None. By default it can use them all.

        Parameters
        ----------
        sources
            The miners of these steps, by name.
        """
        return None

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return how far each kind of number that `mine` returns may be from the exact one, in its own unit.

        The bounds hold for 95 % of releases, whatever the rows are, and follow from public facts alone: the noise that
        is planned, the schema, and about how many rows there are. A plan, its checks and reports show them, and
        `Study.epsilon_for` inverts them.

        By default they are the bounds of the steps: by how many rows a count may be off, and by how many rows a
        selection may be worse than the best. Override this in a miner whose result is another function of its releases,
        such as a mean.

        Parameters
        ----------
        part
            The miner's part of the study's plan, with its noise and the public facts about the number of rows.
        """
        return part.bounds_of_steps()

    def run_cost(self, part: PlannedPart) -> RunCost | None:
        """Return the most time and memory that `mine` takes, as far as public facts tell. By default None, for unknown.

        Plans show it. Override this in a miner that counts many tables or computes much from them, and let `plan`
        refuse what nobody could run.

        Parameters
        ----------
        part
            See `error_bounds`.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the parameters in a JSON-safe form. A plan holds them, so that its hash binds them."""
        with refuse_loops(f"a parameter of miner '{self.name}'"):
            parameters = {a.name: _as_json(getattr(self, a.name)) for a in attrs.fields(type(self)) if a.init}
        return {"miner": self.name, "parameters": parameters}

    def values_read(self, schema: Schema) -> Collection[str] | None:
        """Return the numeric attributes whose raw values are read, or None if any may be.

        Raw values are read by sums, by quantiles, and by tests at thresholds that are no public cut. Queries that count
        codes read none. A run keeps in memory only those values that one of its miners may read. By default the result
        is None. Override this in a miner that reads no values, or few. A miner that leaves out an attribute is stopped
        at its first release that reads the values of that attribute.
        """
        return None

    @classmethod
    def ways_to_spend(cls, epsilon: Fraction, delta: Fraction) -> tuple[Mapping[str, Any], ...]:
        """Return the ways to spend an epsilon: for each way, the parameters that the miner is then given.

        A study calls this for a miner that has a share of the budget. It compares the first two ways, and takes the one
        with which the study's miners have the least noise. The parameters need not be exact, since the study asks
        again with other epsilons until its total is the budget.

        By default there is one way for a parameter `epsilon`, and in a study with a delta one for a parameter `rho`, if
        the miner has these parameters. Override this in a miner whose budget has another name, or that needs to know
        epsilon and delta.

        Parameters
        ----------
        epsilon
            The epsilon that the miner alone may cost.
        delta
            The delta of the study. With 0 only pure losses are possible.
        """
        parameters = {a.alias for a in attrs.fields(cls) if a.init}
        ways: list[Mapping[str, Any]] = [{"epsilon": epsilon}] if "epsilon" in parameters else []
        if delta and "rho" in parameters:
            ways.append({"rho": rho_below(epsilon, delta)})
        return tuple(ways)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return small studies to verify this miner on, by name, one for each variant with its own privacy argument.

        By default there are none; `dpframework verify` then needs a study file.
        """
        return {}


def _as_json(value: Any) -> Any:
    """Return a parameter in a JSON-safe form: attrs values by their contents, other objects by their type.

    A description is written with its kind, since an "and" and an "or" may have the same contents.
    """
    return exact_form(value, _object)


def _object(value: Any) -> Any:
    if isinstance(value, Description):
        return value.to_dict()
    if attrs.has(type(value)):
        return {a.name: _as_json(getattr(value, a.name)) for a in attrs.fields(type(value))}
    return type(value).__name__
