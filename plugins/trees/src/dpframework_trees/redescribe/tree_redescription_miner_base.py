"""The base class of redescription miners whose trees have a start, with the starts, the tests and the results."""

from __future__ import annotations

import abc
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Self, final

import attrs
import numpy as np

from dpframework.facts import (
    Attribute,
    Boolean,
    Cases,
    Categorical,
    InputError,
    Literal,
    Numeric,
    Schema,
    View,
    is_whole_number,
    list_of_names,
    named_once,
    nearest,
    one_of,
    positive,
    whole_number,
)
from dpframework.mechanisms import PermuteAndFlip
from dpframework.plan import Node, PlannedPart, step
from dpframework.redescriptions import Redescription, Redescriptions, distinct
from dpframework.results import ErrorBound, bound_of_supports
from dpframework.run import Miner, PrivateTable
from dpframework_trees.complete_tree import CompleteTree
from dpframework_trees.queries import Associations
from dpframework_trees.redescribe.view_tests import candidates_of_sides, sides_of
from dpframework_trees.redescription_extraction import Constraints, extract
from dpframework_trees.splits import Candidates, names_in
from dpframework_trees.tree_estimates import noise_variance

SENSITIVITIES = ("tight", "published")
STARTING_TEST = "starting test"
ROWS_OF_TWO_STARTS = 750  # the rows times epsilon from which on there are two starts (see `TreeRedescriptions.number`)
SOME_ROWS = 2_500  # the number of rows that is assumed if the schema has no bound on it
OTHER = {View.LEFT: View.RIGHT, View.RIGHT: View.LEFT}


def _starts(value: int | Iterable[str] | None) -> int | tuple[str, ...] | None:
    if value is None:
        return None
    many = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if is_whole_number(value):
        return value
    if not many or not all(isinstance(name, str) for name in many):
        raise InputError(f"starts is {value!r}; give a positive number of tests, or a list of attribute names")
    named_once("starts", many)
    return many


def _constraints(value: Constraints | Mapping[str, float]) -> Constraints:
    if isinstance(value, Constraints):
        return value
    known = [a.name for a in attrs.fields(Constraints)]
    for name in value:
        if name not in known:
            raise InputError(f"constraint {name!r} is unknown; {nearest(str(name), known)}")
    return Constraints(**value)


@final
@attrs.frozen
class Start:
    """A start of trees: an attribute that is named or drawn, or a selected test, whose two outcomes are the classes.

    Attributes
    ----------
    position
        The position of this start among all starts, from 0.
    view
        The view that the attribute or test is on.
    target
        The attribute whose values are the classes of the first tree.
    selected
        Whether the start is a test that is selected privately.
    """

    position: int
    view: View
    target: Attribute
    selected: bool

    @property
    def scope(self) -> str:
        """The name of the start's scope in the plan."""
        return f"start {self.position + 1}"


@attrs.frozen
class TreeRedescriptions(Miner):
    """The base class of `AltExpM`, `AltMCMC` and `MCMCTreePair`.

    Parameters
    ----------
    epsilon
        The budget.
    starts
        The starts of the trees: names of attributes, or a number of tests. Tests are selected for their association
        with the other view, by turns from the left view and from the right. By default two tests if the budget is
        large enough for them, else one (see `number`).
    max_depth
        The number of levels of every tree.
    constraints
        The conditions that a redescription must fulfil on its noisy counts: `min_jaccard`, the least Jaccard index;
        `min_support`, the least number of rows that both sides hold for; `max_support`, the largest share of all rows
        that both sides hold for; `max_p_value`, the largest p-value.
    sensitivity
        "tight", or "published" for the paper's scores and their sensitivities.
    drawn
        A public seed. If it is given with a number of starts, that number of attributes of both sides is drawn as
        starts, as in the paper, and no test is selected. This reads no rows and costs nothing.
    left, right
        Names of the attributes of each side; by default those of the schema's views. No attribute may be on both.
    """

    result = Redescriptions
    epsilon: Fraction = attrs.field(converter=positive)
    starts: int | tuple[str, ...] | None = attrs.field(default=None, converter=_starts)
    max_depth: int = attrs.field(default=2, validator=whole_number(most=6))
    constraints: Constraints = attrs.field(factory=Constraints, converter=_constraints)
    sensitivity: str = attrs.field(default="tight", validator=one_of(SENSITIVITIES))
    drawn: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(whole_number(least=0)), kw_only=True
    )
    left: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names, kw_only=True)
    right: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names, kw_only=True)

    @classmethod
    def published(cls, epsilon: Any, starts: Iterable[str], **changes: Any) -> Self:
        """Return the miner with the settings of Mihelčić and Miettinen 2023 (Table 6), but for the parameters given.

        Parameters
        ----------
        epsilon
            The budget.
        starts
            The attributes that trees start from, drawn without looking at the rows.
        **changes
            Parameters of the miner that differ from the paper's.
        """
        paper = {"max_depth": 4, "sensitivity": "published", **cls.settings_of_paper(changes)}
        return cls(epsilon=epsilon, starts=starts, **{**paper, **changes})

    @classmethod
    @abc.abstractmethod
    def settings_of_paper(cls, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the paper that only this miner has. `changes` are settings that differ from them."""

    @property
    def derived_names(self) -> tuple[str, ...]:
        """The names of the attributes that the miner derives."""
        return (STARTING_TEST,)

    def number(self, schema: Schema) -> int:
        """Return the number of starts.

        By default there are two if epsilon times the schema's bound on the rows is at least 750. Then the noise on a
        cell of their tables stays within about 2 % of the rows, with 95 % probability. Without a bound, 2,500 rows are
        assumed. Else there is one start.
        """
        if self.starts is None:
            return 2 if self.epsilon * (schema.row_bound or SOME_ROWS) >= ROWS_OF_TWO_STARTS else 1
        return self.starts if isinstance(self.starts, int) else len(self.starts)

    def sides(self, schema: Schema) -> dict[View, tuple[Attribute, ...]]:
        """Return the attributes of each side (see `sides_of`)."""
        return sides_of(schema, self.left, self.right)

    def named_starts(self, schema: Schema) -> tuple[str, ...] | None:
        """Return the attributes that trees start from, named or drawn, or None if tests are to be selected.

        Raises
        ------
        InputError
            If more attributes are to be drawn than there are with two or more values.
        """
        if self.drawn is None or isinstance(self.starts, tuple):
            return self.starts if isinstance(self.starts, tuple) else None
        known = [attribute.name for side in self.sides(schema).values() for attribute in side if attribute.size > 1]
        if self.number(schema) > len(known):
            raise InputError(f"{self.number(schema)} starts are to be drawn from {len(known)} attributes; draw fewer")
        return tuple(random.Random(self.drawn).sample(known, self.number(schema)))

    def starts_on(self, schema: Schema) -> list[Start]:
        """Return the starts of the miner's trees on a schema, in order.

        Raises
        ------
        InputError
            If the sides are refused (see `sides_of`), if a starting attribute has a single value or is on neither side,
            or if an attribute has a name that the miner gives to a derived one.
        """
        view_of = {attribute.name: view for view, side in self.sides(schema).items() for attribute in side}
        for name in self.derived_names:
            if name in schema:
                raise InputError(f"attribute '{name}' has the name of an attribute that the miner derives; rename it")
        names = self.named_starts(schema)
        if names is None:
            sides = Categorical(STARTING_TEST, ["holds", "does not hold"])
            return [Start(k, (View.LEFT, View.RIGHT)[k % 2], sides, selected=True) for k in range(self.number(schema))]
        found = []
        for k, name in enumerate(names):
            attribute = schema[name]
            if attribute.size < 2:
                raise InputError(f"the starting attribute '{name}' has one value only; choose another")
            if name not in view_of:
                raise InputError(
                    f"the starting attribute '{name}' is on neither side; name it in left or right, or choose another"
                )
            found.append(Start(k, view_of[name], attribute, selected=False))
        return found

    def selection(self, tests: Mapping[View, Candidates], start: Start, epsilon: Fraction) -> list[Node]:
        """Plan the selection of a starting test, or nothing if the start is an attribute."""
        if not start.selected:
            return []
        scores = Associations(tests[start.view], tests[OTHER[start.view]])
        return [step("start", scores, PermuteAndFlip(epsilon))]

    def select_start(self, table: PrivateTable, tests: Candidates, start: Start, taken: list[Literal]) -> PrivateTable:
        """Release a starting test that differs from those taken, and return the table with its outcome as the class.

        If the start is an attribute, the table is returned as it is.
        """
        if not start.selected:
            return table
        left = tests.without_tests(taken)
        chosen = left[0] if len(left) == 1 else table.release("start", candidates=left)
        assert isinstance(chosen, Literal)
        taken.append(chosen)
        return table.derive(start.target, Cases([chosen]))

    def read(self, tests: Mapping[View, Candidates], schema: Schema) -> tuple[str, ...]:
        """Return the names of the attributes that tests or starts may read."""
        return tuple(dict.fromkeys((*names_in(*tests.values()), *(self.named_starts(schema) or ()))))

    def tests(self, schema: Schema) -> dict[View, Candidates]:
        """Return the binary tests of each view.

        Raises
        ------
        InputError
            If a view has no tests, or the sides are refused (see `sides_of`).
        """
        tests = candidates_of_sides(schema, self.sides(schema))
        for view, some in tests.items():
            if not len(some):
                raise InputError(
                    f"no attribute of the {view} view has two values or a cut; nothing can be tested there"
                )
        return tests

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return no attribute, since only codes are read."""
        return ()

    def error_bounds(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return the errors of supports, which are sums of cells of a table of leaves, and of the choices of trees."""
        paths = [one.path for one in part.steps if one.path.rpartition("/")[2].startswith("leaves")]
        cells = (2**self.max_depth - 1) ** 2  # A side holds in at most all leaves but one.
        supports = bound_of_supports(part.sum_bound("", paths, cells), cells)
        return [supports, *part.bounds_of_others([supports])]

    def mine(self, table: PrivateTable) -> Redescriptions:
        """Release trees and tables, one start after another. The rest is post-processing."""
        found: list[Redescription] = []
        looked_at = 0
        taken: list[Literal] = []
        tests = self.tests(table.schema)
        for start in self.starts_on(table.schema):
            with_classes = self.select_start(table.scope(start.scope), tests[start.view], start, taken)
            for redescriptions, number in self.mine_from(with_classes, tests, start):
                found += redescriptions
                looked_at += number
        return Redescriptions(distinct(found), looked_at)

    def mine_from(
        self, table: PrivateTable, tests: Mapping[View, Candidates], start: Start
    ) -> list[tuple[list[Redescription], int]]:
        """Return, for each pair of trees of one start, its redescriptions and how many candidates were looked at."""
        raise NotImplementedError

    def extract(self, table: PrivateTable, name: str, trees: dict[View, CompleteTree]) -> tuple[Any, int]:
        """Release the table of both trees' leaves. Return redescriptions, and how many candidates were looked at."""
        counts = np.asarray(table.release(name, left=trees[View.LEFT], right=trees[View.RIGHT]))
        return extract(trees, counts, noise_variance(table.calibration(name)), self.constraints)


EXAMPLE_SCHEMA = Schema(
    [
        Boolean("wolf", view=View.LEFT),
        Boolean("moose", view=View.LEFT),
        Numeric("rain", 0, 8, cuts=[3, 5], view=View.RIGHT),
        Categorical("zone", ["north", "middle", "south"], view=View.RIGHT),
    ]
)
