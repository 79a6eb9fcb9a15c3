"""The base class of miners, and the class of the examples on which miners are verified."""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, final

import attrs

from dpframework.facts.errors import refuse_loops
from dpframework.facts.hash_json_form import exact_form
from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.facts.privacy_losses import Relation, exact, rho_below
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node
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
    """Two neighbouring tables, with outputs at which a miner's privacy loss nearly reaches its claim.

    An audit replays witnesses before its own search. A witness can show that a claim is tight, so that a smaller claim
    would be wrong. It cannot make a wrong claim pass.

    Attributes
    ----------
    shared
        The rows that are in both tables. Each is given as the values of its attributes and the number of times it
        occurs.
    one, other
        The additional row of each table. Under add-or-remove-one, one of the two is None.
    outputs
        The outputs of mechanisms, by the paths of the steps in the miner's plan. An output may also be a function of
        the exact answer and the calibration. For steps that are left out, the audit takes the worst output that it
        finds.
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
    """A miner with a small schema, on which the verification kit audits the miner.

    Attributes
    ----------
    schema
        A few attributes with a few values each. On such a schema small tables come near the worst case.
    miner
        The miner with its parameters.
    delta
        The delta at which the miner's claim is tested. A claim in zCDP or PLD needs a delta above 0. A pure claim, if
        the miner has one, is tested as well.
    witnesses
        Tables and outputs near the worst case, for miners whose worst case a search among small tables does not find.
    loose
        If no run can reach the claimed loss, the reason why. It may be a smaller upper bound with its derivation. The
        verdict of the audit shows this reason.
    unit
        The privacy unit for which the claim is tested by default. Give a person with several rows if the miner's
        parameters or claim depend on such units.
    """

    schema: Schema
    miner: Miner
    delta: Fraction = attrs.field(default=Fraction(0), converter=_delta)
    witnesses: tuple[Witness, ...] = attrs.field(default=(), converter=_witnesses)
    loose: str = ""
    unit: PrivacyUnit = ROW

    def for_units(self, rows: int) -> Example:
        """Return the example for units of several rows, with the schema's numbers of rows multiplied by `rows`.

        Noise grows by the same factor. On a table of the old size it would hide nearly everything.

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
        """Return the unit for which the claim is tested, given the unit that the caller requests.

        If the caller requests one row, the example's own unit is used. A requested unit without ids only asserts its
        number of rows. If the example's own unit groups rows by ids, then the example's unit is used, with the asserted
        number of rows.
        """
        if unit.is_row:
            return self.unit
        return attrs.evolve(self.unit, rows=unit.rows) if unit.asserted and self.unit.groups_rows else unit


@attrs.frozen
class Miner(abc.ABC):
    """The base class of differentially private miners. A miner is an attrs class whose fields are its parameters.

    A subclass sets `name`, and defines `plan` and `mine`. The first line of its docstring is its description in lists.
    By convention a parameter `epsilon` is its budget.

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

    #: The class of the results of `mine`, which is also used to read saved results. None for plain values.
    result: ClassVar[type[StoredResult] | None] = None

    @abc.abstractmethod
    def plan(self, schema: Schema) -> Node:
        """Return every release that `mine` may make. It may depend on the schema and the parameters only."""

    @abc.abstractmethod
    def mine(self, table: PrivateTable) -> Any:
        """Make the releases and return the result.

        If the result has a method `to_dict`, this method gives its JSON form. `str` gives the text that is shown.
        """

    def for_study(self, unit: PrivacyUnit, relation: Relation) -> Miner:
        """Return the miner as a study runs it.

        A study calls this method for each of its miners, and plans and runs the miner that it returns. By default this
        is the miner itself. Override it in a miner whose best parameters depend on its noise, since noise depends on
        the number of rows of a unit and on the relation.

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
        """The names of earlier steps of the study whose results the miner gets in `PrivateTable.given`.

        By default there are none. If a query of the miner is given such a result, its planned step must name the result
        in `uses`, as `nodes.beside(name)`. The query's declared sensitivity must hold for every result that the earlier
        step may release.
        """
        return ()

    def misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return the reason why the miner cannot use the result of one of its sources; None if it can use them all.

        Parameters
        ----------
        sources
            The miners of the steps that `self.sources` names, by the steps' names.
        """
        return None

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return bounds on the errors of the numbers that `mine` returns, each in the number's own unit.

        Each bound holds with probability 95 % on any table. It follows from public facts only: the planned noise, the
        schema and the approximate number of rows. Plans, checks and reports show the bounds, and `Study.epsilon_for`
        finds the epsilon at which a bound reaches a wanted value.

        By default the bounds are those of the steps: by how many rows a count may be off, and by how many rows a
        selected candidate may be worse than the best. Override this method in a miner whose result is computed from its
        releases, such as a mean.

        Parameters
        ----------
        part
            The miner's part of the study's plan, with its noise and the public facts about the number of rows.
        """
        return part.bounds_of_steps()

    def run_cost(self, part: PlannedPart) -> RunCost | None:
        """Return bounds on the time and memory of `mine` that follow from public facts; by default None, for unknown.

        Plans show these bounds. Override this method in a miner that counts many contingency tables or computes much
        from them. `plan` should refuse parameters with which the miner is too large for any machine.

        Parameters
        ----------
        part
            See `error_bounds`.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the parameters in a JSON-safe form. Plans include this form in their hash."""
        with refuse_loops(f"a parameter of miner '{self.name}'"):
            parameters = {a.name: parameter_form(getattr(self, a.name)) for a in attrs.fields(type(self)) if a.init}
        return {"miner": self.name, "parameters": parameters}

    def values_read(self, schema: Schema) -> Collection[str] | None:
        """Return the names of the numeric attributes whose raw values the miner reads; None if it may read any.

        Sums, quantiles, and tests at thresholds that are not public cuts read raw values. Queries that count codes do
        not. A run keeps only those raw values in memory that one of its miners may read. By default the result is None,
        so all are kept. Override this method in a miner that reads raw values of few or no attributes. If the list
        omits an attribute, the first release that reads its raw values fails.
        """
        return None

    @classmethod
    def ways_to_spend(cls, epsilon: Fraction, delta: Fraction) -> tuple[Mapping[str, Any], ...]:
        """Return the possible ways to spend an epsilon, each as the parameters that the miner gets.

        A study calls this for a miner that has a share of the budget. It compares the first two ways, and takes the one
        that gives the study's miners the least noise. The parameters may be approximate: the study calls this again
        with other epsilons until its total equals the budget.

        By default there is one way if the miner has a parameter `epsilon`, and another if it has a parameter `rho` and
        the study has a delta. Override this in a miner whose budget has another name, or that needs to know epsilon and
        delta.

        Parameters
        ----------
        epsilon
            The epsilon that the miner may cost.
        delta
            The delta of the study. If it is 0, only pure losses are possible.
        """
        parameters = {a.alias for a in attrs.fields(cls) if a.init}
        ways: list[Mapping[str, Any]] = [{"epsilon": epsilon}] if "epsilon" in parameters else []
        if delta and "rho" in parameters:
            ways.append({"rho": rho_below(epsilon, delta)})
        return tuple(ways)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return the examples on which to verify this miner, by name: one for each variant with its own privacy proof.

        By default there are none. Then `dpframework verify` needs a study file.
        """
        return {}


def parameter_form(value: Any) -> Any:
    """Return a parameter in a JSON-safe form.

    The form of an object of attrs or of a dataclass is its fields. The form of an array is its numbers, the form of a
    member of an enumeration is its name, and the form of any other object is the name of its type.

    The form of a description also has its kind, since an "and" and an "or" may have the same contents.
    """
    return exact_form(value, _object)


def _object(value: Any) -> Any:
    if isinstance(value, Description):
        return value.to_dict()
    if attrs.has(type(value)):
        return {a.name: parameter_form(getattr(value, a.name)) for a in attrs.fields(type(value))}
    if dataclasses.is_dataclass(type(value)):
        return {own.name: parameter_form(getattr(value, own.name)) for own in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.name
    return parameter_form(value.tolist()) if hasattr(value, "tolist") else type(value).__name__
