"""What a miner is: parameters, a plan, and a run."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from fractions import Fraction
from numbers import Number
from typing import Any, ClassVar, final

import attrs

from dpframework.facts.privacy import exact
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Node
from dpframework.run.private_table import PrivateTable


def _delta(value: Any) -> Fraction:
    return exact(value, "delta")


@final
@attrs.frozen
class Example:
    """A miner on a small schema: what the verification kit audits it on.

    Attributes
    ----------
    schema
        A few attributes with a few values each: small tables then come near the worst case.
    miner
        The miner with its parameters.
    delta
        At which its claim is tested: above 0 for a claim in zCDP or PLD, beside its pure claim if it has one.
    """

    schema: Schema
    miner: Miner
    delta: Fraction = attrs.field(default=Fraction(0), converter=_delta)


@attrs.frozen
class Miner(abc.ABC):
    """A differentially private miner: one class, an attrs class with its parameters as fields.

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

    @abc.abstractmethod
    def plan(self, schema: Schema) -> Node:
        """Return every release that `mine` may make, from the schema and the parameters alone."""

    @abc.abstractmethod
    def mine(self, table: PrivateTable) -> Any:
        """Make the releases and return the result.

        A result is written to JSON by its `to_dict` method, if it has one, and shown by `str`.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters, JSON-safe: what a plan holds of the miner, so that its hash binds them."""
        parameters = {a.name: _written(getattr(self, a.name)) for a in attrs.fields(type(self)) if a.init}
        return {"miner": self.name, "parameters": parameters}

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return small studies to verify this miner on, by name: one a variant whose privacy has a reason of its own.

        By default there are none; `dpframework verify` then needs a study file.
        """
        return {}


def _written(value: Any) -> Any:
    """Return a parameter JSON-safe: numbers exactly, values by what they hold, what is no value by its type."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _written(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_written(part) for part in value]
    if attrs.has(type(value)):
        return {a.name: _written(getattr(value, a.name)) for a in attrs.fields(type(value))}
    return str(value) if isinstance(value, Number) else type(value).__name__
