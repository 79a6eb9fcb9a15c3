"""The miner of keys: the values of an open attribute that enough rows have.

An open attribute has values that are not listed in the schema, such as towns or products. These values are its keys.

The keys are one release of the query `queries.Keys`. With an epsilon, the mechanism is `mechanisms.PartitionSelection`.
If each unit has one key, no mechanism with the same epsilon and delta shows a key more often. With a rho, the mechanism
is `mechanisms.GaussianThreshold`, for units with several keys. Noisy counts of the keys are part of the release.

With `each`, half of the budget is spent on the keys. The other half is spent on a histogram, a cross table or a mean,
for the rows of each key and for all other rows together. In the plan, one node stands for the releases of all keys. The
noise of these releases does not depend on which keys are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.crosstab_miner import CrosstabMiner
from dpframework.basics.histogram_miner import HistogramMiner
from dpframework.basics.mean_and_variance_miners import MeanMiner
from dpframework.facts.attributes import Boolean
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases, Equals
from dpframework.facts.open_attribute import Open, require_open
from dpframework.facts.privacy_losses import Relation, positive, positive_delta, positive_rho
from dpframework.facts.schema import Schema
from dpframework.mechanisms.gaussian_threshold import GaussianThreshold
from dpframework.mechanisms.integer_answer_change_bounds import unit_changes
from dpframework.mechanisms.partition_selection import PartitionSelection
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import FromRelease, Node, parallel, sequential, step
from dpframework.queries.key_queries import Keys
from dpframework.results.error_bounds import BoundKind, ErrorBound
from dpframework.results.keys import KeyTable, ReleasedKeys
from dpframework.results.results_by_key import ByKey
from dpframework.run.miner_base_and_examples import Example, Miner, Witness
from dpframework.run.private_table import PrivateTable

BY_KEY = "by key"
#: The miners that `each` may name.
EACH: Mapping[str, Callable[..., BasicMiner]] = {
    "histogram": HistogramMiner,
    "crosstab": CrosstabMiner,
    "mean": MeanMiner,
}


def _each(given: Any) -> tuple[str, Any] | None:
    """Return the name of a miner in `EACH` and its attributes. None is returned as None."""
    if given is None:
        return None
    known = (
        given if isinstance(given, Mapping) else dict([given]) if isinstance(given, tuple) and len(given) == 2 else {}
    )
    if len(known) != 1 or next(iter(known)) not in EACH:
        forms = '{ histogram = "NAME" }, { crosstab = ["NAME", "NAME"] } or { mean = "NAME" }'
        raise InputError(f"each is {given!r}; one of {forms} is needed")
    ((kind, names),) = known.items()
    return kind, tuple(names) if isinstance(names, list) else names


_NEW_KEYS = (
    "under replace-one at most 0.83 of the cost can be lost: the cost allows for a row that changes two counts and "
    "also shows a key of its own, but a row with a key of its own changes at most one other count"
)


@final
@attrs.frozen
class KeysMiner(Miner):
    """The values of an open attribute that enough rows have, with the number of rows of each.

    Parameters
    ----------
    attribute
        The name of an open attribute.
    epsilon, rho
        The budget; give one of the two. If each unit has one key, more keys are shown with `epsilon`. If units have
        about four keys or more, more keys are shown with `rho`.
    delta
        The largest probability of showing a key that only one unit has. It is part of the study's delta.
    each
        What to release, with half of the budget, for each key and for all other rows: a miner with its attributes, as
        `{"histogram": "ill"}`, `{"crosstab": ["ill", "sex"]}` or `{"mean": "age"}`. By default nothing.

    Examples
    --------
    >>> KeysMiner("town", epsilon=1, delta="1e-6").delta
    Fraction(1, 1000000)
    """

    name = "keys"
    result = KeyTable
    attribute: str
    epsilon: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive), kw_only=True)
    rho: Fraction | None = attrs.field(default=None, converter=attrs.converters.optional(positive_rho), kw_only=True)
    delta: Fraction = attrs.field(converter=positive_delta, kw_only=True)
    each: tuple[str, Any] | None = attrs.field(default=None, converter=_each, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Refuse two budgets, no budget, and a wrong `each`."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("give one budget beside delta: epsilon, or rho where a unit has several keys")
        _ = self.by_key  # raises an error if `each` has wrong attributes

    @property
    def selector(self) -> PartitionSelection | GaussianThreshold:
        """The mechanism that chooses the keys to show, and adds noise to their counts."""
        share = 1 if self.each is None else 2
        if self.rho is not None:
            return GaussianThreshold(self.rho / share, self.delta)
        assert self.epsilon is not None  # one of the two is given
        return PartitionSelection(self.epsilon / share, self.delta)

    @property
    def by_key(self) -> BasicMiner | None:
        """The miner that `each` names, with half of the budget; None without `each`."""
        if self.each is None:
            return None
        kind, names = self.each
        budget = {
            name: None if own is None else own / 2 for name, own in (("epsilon", self.epsilon), ("rho", self.rho))
        }
        return EACH[kind](names, **budget)

    def plan(self, schema: Schema) -> Node:
        """Plan the release of the keys and, with `each`, one node for the further releases of every key."""
        attribute, by_key = require_open(schema[self.attribute], "the miner 'keys'"), self.by_key
        keys = step("keys", Keys(attribute), self.selector)
        if by_key is None:
            return keys
        cut = FromRelease("keys", attributes=[attribute.name])
        return sequential(keys, parallel(by_key.plan(schema.of_part()), by=cut, name=BY_KEY))

    def values_read(self, schema: Schema) -> Collection[str] | None:
        """Return the names of the attributes whose raw values the miner in `each` reads."""
        return () if self.by_key is None else self.by_key.values_read(schema)

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the error bound of the shown counts. Its bias says how often keys of two sizes are left out."""
        calibration = part.calibration("keys")
        if calibration is None:
            return part.bounds_of_steps()
        visibility = self.selector.cell_visibility(calibration)
        bound = part.rows_bound(
            f"counts of the keys of '{self.attribute}' that are shown", visibility.within, BoundKind.COUNTS
        )
        never = "never" if visibility.sure == 1 else f"in {float(100 - 100 * visibility.sure):g} %"
        left_out = (
            f"a key of {visibility.half} is left out half of the time, one of {visibility.always} or more {never}"
        )
        bounds = [attrs.evolve(bound, steps=("keys",), biases=[left_out])]
        return [*bounds, *part.bounds_of_others(bounds)]

    def mine(self, table: PrivateTable) -> KeyTable:
        """Release the keys and, with `each`, the results for each key and for all other rows."""
        released, calibration = table.release("keys"), table.calibration("keys")
        visibility, changed = (
            self.selector.cell_visibility(calibration),
            unit_changes(calibration.facts, Relation.ADD_OR_REMOVE_ONE),
        )
        numbers = visibility.within, visibility.half, visibility.always, float(visibility.sure)
        found = KeyTable(self.attribute, released, *numbers, "rows" if changed == 1 else "units")
        if self.by_key is None:
            return found
        parts = table.partition(Cases(Equals(self.attribute, key) for key in found.keys), name=BY_KEY)
        # The last part has the rows of all keys that are not shown.
        return attrs.evolve(found, each=ByKey(found.keys, [self.by_key.mine(part) for part in parts]))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples without and with `each`, with a public number of rows, and in zCDP."""
        schema = Schema([Open("town")])
        beside = Schema([Open("town"), Boolean("ill")], rows=6)
        # The replaced row leaves town b, which is not shown. The new row is in town a, which is shown, and is not ill.
        rows = [{"town": town, "ill": ill} for town, ill in (("a", True), ("b", True), ("a", False))]
        moved = Witness([(rows[0], 1), (rows[1], 4)], rows[1], rows[2], {"keys": ReleasedKeys(("a",), (5,))})
        return {
            "keys": Example(schema, cls("town", epsilon=1, delta="0.05")),
            "rows-public": Example(
                beside, cls("town", epsilon=2, delta="0.1", each={"histogram": "ill"}), witnesses=[moved]
            ),
            "zcdp": Example(
                schema, cls("town", rho=Fraction(1, 2), delta="0.05"), EXAMPLE_DELTA + Fraction(1, 10), loose=_NEW_KEYS
            ),
        }
