"""The miner of many marginals at once. They agree with each other, and the plan states their errors.

The marginal of a set of attributes is its contingency table. The miner releases residuals (`queries.Residuals`): the
residual of a set is the part of its marginal that does not follow from the marginals of its subsets. Every marginal is
a sum of residuals, and summing is post-processing. The noise is distributed over the residuals to minimize one of two
errors: the weighted sum of the variances of all cells (`marginals_workload_noise_and_errors`), or the largest variance
of a cell (`marginals_minimax_noise`). In zCDP the noise is Gaussian. In pure epsilon it is Laplace noise or noise in
the shape of blocks (`mechanisms.BlockNorm`), whichever has the smaller predicted error. You can also ask for Laplace
noise.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.marginals_minimax_noise import for_largest, least_largest
from dpframework.basics.marginals_workload_noise_and_errors import (
    ResidualGroup,
    Set,
    Workload,
    all_sets,
    cell_variance,
    marginal_of,
    sum_variance,
)
from dpframework.basics.released_row_cap_miner_base import RowsMiner
from dpframework.facts.attributes import MOST_CODES, Attribute, Boolean, Categorical, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import Open
from dpframework.facts.parameter_checks import is_whole_number, list_of_names, named_once, one_of
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration, Mechanism
from dpframework.mechanisms.block_knorm import BlockNorm, block_variances
from dpframework.mechanisms.gaussian import Gaussian
from dpframework.mechanisms.laplace import DiscreteLaplace
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.plan.nodes import Node, sequential, step
from dpframework.plan.run_costs import RunCost
from dpframework.queries.base import Norm
from dpframework.queries.residual_changes import subsets
from dpframework.results.error_bounds import UNCLIPPED, BoundKind, ErrorBound
from dpframework.results.marginal_tables import MarginalTable, MarginalTables
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.run.miner_base_and_examples import Example, Witness
from dpframework.run.private_table import PrivateTable

MOST_CELLS = 1 << 27  # the largest number of cells of all marginals together
_OF_CELL, _OF_TABLE = 32, 8_192  # bytes for each cell and for each table, for exact and released counts together
_START, _COUNT, _TABLE = 1.0, 3e-9, 1e-4  # CPU seconds of a run: once, for each row of each table, and for each table
#: Up to this number of marginals, each has an error bound. If there are more, there is one bound for each number of
#: attributes.
_LISTED = 12
_NOISE = ("least-error", "laplace")
_OBJECTIVES = ("mean", "largest")


def _sets_of_names(value: Iterable[str | Iterable[str]] | None) -> tuple[tuple[str, ...], ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        raise InputError(f"of is {value!r}; give a list of marginals, each a name or a list of names")
    return tuple((one,) if isinstance(one, str) else list_of_names(one) or () for one in value)


def _numbers(value: Iterable[float] | None) -> tuple[float, ...] | None:
    if value is None:
        return None
    found = tuple(value)
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one < math.inf for one in found):
        raise InputError(f"weights is {value!r}; positive numbers are needed, one for each marginal of 'of'")
    return found


@final
@attrs.frozen
class MarginalsMiner(RowsMiner):
    """Many marginals at once. They agree with each other, and the plan states the error of each.

    Parameters
    ----------
    of
        The marginals, each given as a name or a list of names. By default all marginals of 1 to `order` attributes.
    order
        The largest number of attributes of a marginal if `of` is not given. By default 2.
    attributes
        The attributes of the marginals if `of` is not given. By default all except open attributes. Numeric attributes
        have the bins of the schema.
    weights
        The weight of each marginal's error, in the order of `of`. By default all weights are equal.
    objective
        What is made as small as possible: "mean" for the weighted sum of the variances of all cells, "largest" for the
        largest weighted variance of a cell.
    noise
        The noise in pure epsilon. "least-error" uses, for each group of residuals, Laplace noise or noise in the shape
        of blocks, whichever has the smaller predicted error. "laplace" uses Laplace noise for all.
    ranges
        Whether ranges of numeric attributes will be used, and not only single bins. The noise is then chosen for a
        small mean error over all ranges of bins, and the plan also states the error of the worst range.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> MarginalsMiner(of=["sex", ["sex", "income"]], epsilon=1).of
    (('sex',), ('sex', 'income'))
    """

    name = "marginals"
    result = MarginalTables
    of: tuple[tuple[str, ...], ...] | None = attrs.field(default=None, converter=_sets_of_names)
    order: int | None = None
    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)
    weights: tuple[float, ...] | None = attrs.field(default=None, converter=_numbers)
    noise: str = attrs.field(default="least-error", validator=one_of(_NOISE))
    ranges: bool = attrs.field(default=False, validator=attrs.validators.instance_of(bool))
    objective: str = attrs.field(default="mean", validator=one_of(_OBJECTIVES))

    def __attrs_post_init__(self) -> None:
        """Refuse parameters that exclude each other, duplicate names, and missing marginals or weights."""
        BasicMiner.__attrs_post_init__(self)
        if self.of is not None and (self.order is not None or self.attributes is not None):
            raise InputError("give the marginals as 'of', or as 'order' and 'attributes', not both")
        if self.order is not None and not is_whole_number(self.order):
            raise InputError(f"order is {self.order!r}; a positive whole number is needed")
        if self.ranges and self.objective == "largest":
            raise InputError("objective 'largest' is about single cells; leave out ranges, or take objective 'mean'")
        if self.weights is not None and (self.of is None or len(self.weights) != len(self.of)):
            raise InputError("weights need 'of', with one weight for each marginal")
        for one in self.of or ():
            named_once("a marginal", one)
            if not one:
                raise InputError("a marginal needs at least one attribute")
        if self.of is not None and len(set(map(frozenset, self.of))) < max(len(self.of), 1):
            raise InputError("of is empty or names a marginal twice; name each marginal once")
        if self.attributes is not None and not self.attributes:
            raise InputError("attributes is empty; name at least one, or leave it out to take all")
        named_once("attributes", self.attributes or ())

    def wanted(self, schema: Schema) -> list[tuple[Attribute, ...]]:
        """Return the attributes of each wanted marginal."""
        if self.of is not None:
            return [tuple(schema[name] for name in one) for one in self.of]
        names = self.attributes or [a.name for a in schema if not isinstance(a, Open)]
        among = [schema[name] for name in names]
        return [tuple(among[k] for k in one) for one in all_sets(len(among), min(self.order or 2, len(among)))]

    def workload(self, schema: Schema) -> Workload:
        """Return the workload: the wanted marginals with their weights.

        Attributes with a single value are left out, since they do not divide the rows.

        Raises
        ------
        InputError
            If one marginal or all marginals together have too many cells, if there are too many marginals, if an
            attribute is open, or if no attribute has two values.
        """
        wanted = self.wanted(schema)
        used = {a.name: a for one in wanted for a in one}
        for name, a in used.items():
            if isinstance(a, Open):
                raise InputError(f"attribute '{name}' is open: its values are not listed; release its keys first")
        of = tuple(a for a in schema if a.name in used and a.size > 1)
        if not of:
            raise InputError("no attribute has two values or more; there is nothing to count")
        place = {a.name: k for k, a in enumerate(of)}
        found: dict[Set, float] = {}
        for one, weight in zip(wanted, self.weights or [1.0] * len(wanted), strict=True):
            cells = math.prod(a.size for a in one)
            if cells > MOST_CODES:
                raise InputError(
                    f"the marginal of {', '.join(a.name for a in one)} has {cells:,} cells, more than {MOST_CODES:,}"
                )
            key = tuple(sorted(place[a.name] for a in one if a.name in place))
            found[key] = found.get(key, 0.0) + weight
        together = sum(math.prod(of[a].size for a in one) for one in found)
        if together > MOST_CELLS:
            raise InputError(
                f"the {len(found):,} marginals have {together:,} cells together, more than {MOST_CELLS:,}; take fewer "
                "marginals, a lower order, or fewer values"
            )
        ordered = frozenset(k for k, a in enumerate(of) if self.ranges and isinstance(a, Numeric))
        return Workload(of, found, rows_known=schema.rows is not None, ordered=ordered)

    def groups(self, schema: Schema) -> dict[str, ResidualGroup]:
        """Return the residuals of each release, by the name of its step."""
        workload, largest = self.workload(schema), self.objective == "largest"
        if self.rho is not None:
            groups = [(for_largest(workload, gaussian=True) if largest else workload).gaussian()]
        elif largest:
            groups = least_largest(workload, in_blocks=self.noise == "least-error")
        else:
            groups = workload.least_error() if self.noise == "least-error" else workload.laplace()
        if len(groups) == 1:
            return {"residuals": groups[0]}
        return {f"residuals {k + 1} of {len(groups)}": group for k, group in enumerate(groups)}

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one release for each group of residuals."""
        steps = []
        for name, group in self.groups(schema).items():
            mechanism: Mechanism
            if self.rho is not None:
                mechanism = Gaussian(self.rho)
            else:
                own = self._epsilon * group.share
                mechanism = BlockNorm(own) if group.query.norm is Norm.BLOCKS else DiscreteLaplace(own)
            steps.append(step(name, group.query, mechanism))
        return steps[0] if len(steps) == 1 else sequential(*steps)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return no names, since only codes are counted."""
        return ()

    def variances(self, schema: Schema, calibrations: Mapping[str, Calibration]) -> dict[tuple[str, ...], float]:
        """Return the variance of a cell of each wanted marginal, and of each marginal of a subset of its attributes.

        The keys of the result are the names of the attributes of each marginal.

        Parameters
        ----------
        schema
            The schema of the table.
        calibrations
            The noise of each step of `plan`, by the step's name.
        """
        workload = self.workload(schema)
        known = _residual_variances(self.groups(schema), calibrations)
        found = {}
        for one in sorted({*workload.released(), *workload.wanted} - {()}, key=lambda one: (len(one), one)):
            found[tuple(workload.of[a].name for a in one)] = cell_variance(one, workload.sizes, known)
        return found

    def bound_errors(self, part: PlannedPart) -> Sequence[ErrorBound]:
        """Return an error bound, in rows, for each marginal or, if many, the worst for each number of attributes.

        With `ranges`, the last bound is that of the range with the largest error.
        """
        if part.schema is None or any(one.calibration is None for one in part.steps):
            return part.bounds_of_steps()
        calibrations = {one.path: one.calibration for one in part.steps if one.calibration is not None}
        variances = self.variances(part.schema, calibrations)
        errors = _describe_errors(variances)
        if self.ranges:
            errors.append(self._worst_range(part.schema, calibrations))
        steps = tuple(calibrations)
        found = []
        for names, variance, note in errors:
            bound = part.rows_bound(f"marginal{names}", Noisy.margin_of(variance), BoundKind.COUNTS)
            found.append(attrs.evolve(bound, steps=steps, biases=[UNCLIPPED], note=note))
        return found

    def run_cost(self, part: PlannedPart) -> RunCost | None:
        """Return bounds on time and memory, from the numbers of tables and cells; None with `rows_per_unit`."""
        if part.schema is None or self.rows_per_unit is not None:
            return None
        workload = self.workload(part.schema)
        sets = {*workload.released(), *workload.wanted} - {()}
        cells = sum(math.prod(workload.sizes[a] for a in one) for one in sets)
        rows = part.size.largest
        seconds = None if rows is None else _START + (_COUNT * rows + _TABLE) * len(sets)
        memory = float(_OF_CELL * cells + _OF_TABLE * len(sets))
        return RunCost(f"{len(sets):,} tables of {cells:,} cells are counted", seconds, memory)

    def _worst_range(self, schema: Schema, calibrations: Mapping[str, Calibration]) -> tuple[str, float, str]:
        """Return the range with the largest variance, in the form in which `_describe_errors` returns each error."""
        workload = self.workload(schema)
        known, worst = _residual_variances(self.groups(schema), calibrations), (0.0, "")
        for one in workload.wanted:
            # A range's variance depends only on its length along each attribute, so all lengths are computed at once.
            options = [np.arange(1, workload.sizes[a] + 1 if a in workload.ordered else 2) for a in one]
            variances = sum_variance(dict(zip(one, np.ix_(*options), strict=True)), workload.sizes, known)
            lengths = np.unravel_index(int(np.argmax(variances)), np.shape(variances))
            text = " by ".join(
                workload.of[a].name + (f" ({k + 1} of {workload.sizes[a]} bins)" if a in workload.ordered else "")
                for a, k in zip(one, lengths, strict=True)
            )
            worst = max(worst, (float(np.max(variances)), text))
        return "s, the worst range", worst[0], worst[1]

    def mine_rows(self, table: PrivateTable) -> MarginalTables:
        """Release the residuals, and add them up to marginals."""
        schema, workload, groups = table.schema, self.workload(table.schema), self.groups(table.schema)
        residuals: dict[Set, Any] = {}
        calibrations = {}
        for name, group in groups.items():
            residuals |= zip(group.query.sets, group.query.residuals(table.release(name)), strict=True)
            calibrations[name] = table.calibration(name)
        known, rows, sizes = _residual_variances(groups, calibrations), float(schema.rows or 0), workload.sizes
        tables = []
        for one in sorted({*residuals, *workload.wanted} - {()}, key=lambda one: (len(one), one)):
            names, labels = [workload.of[a].name for a in one], [workload.of[a].labels for a in one]
            counts = marginal_of(one, sizes, residuals, rows)
            parts = [
                ([workload.of[a].name for a in part], known[part]) for part in subsets(one) if known.get(part, 0.0) > 0
            ]
            tables.append(MarginalTable(names, labels, counts, cell_variance(one, sizes, known), parts))
        total = Noisy(float(np.asarray(residuals[()])), known[()]) if () in residuals else Noisy(rows, 0)
        return MarginalTables(tables, total)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with each kind of noise, with a public number of rows, and with released rows per unit."""
        from dpframework.basics.row_cap_selection_miner import released_rows_example

        schema = Schema([Boolean("ill"), Categorical("town", ["A", "B", "C"]), Boolean("old")])
        wide = Schema([Boolean("ill", missing=True), Numeric("age", 0, 90, cuts=[20, 40, 60])])
        counted = attrs.evolve(schema, rows=6)
        # The residuals change most if town and `old` of the replaced row change, and `ill` does not.
        most = Witness([(_row("A"), 5)], _row("A"), _row("C", old=True))
        return {
            "blocks": Example(schema, cls(epsilon=1)),
            "laplace": Example(wide, cls(epsilon=1, noise="laplace")),
            "largest": Example(wide, cls(epsilon=1, noise="laplace", objective="largest")),
            "rows-public": Example(counted, cls(of=[["ill", "old"], "town"], epsilon=1)),
            "released-rows": released_rows_example(schema, cls(of=["ill", "town"], rows_per_unit="most", epsilon=1)),
            "zcdp": Example(
                schema, cls(of=[["ill", "town"], "old"], weights=[2, 1], rho=Fraction(1, 8)), EXAMPLE_DELTA
            ),
            "zcdp-rows-public": Example(counted, cls(rho=Fraction(1, 8)), EXAMPLE_DELTA, witnesses=[most]),
        }


def _row(town: str, *, old: bool = False) -> dict[str, Any]:
    return {"ill": False, "town": town, "old": old}


def _residual_variances(
    groups: Mapping[str, ResidualGroup], calibrations: Mapping[str, Calibration]
) -> dict[Set, float]:
    """Return, for each residual, the variance of the noise of one of its numbers."""
    known: dict[Set, float] = {}
    for name, group in groups.items():
        calibration = calibrations[name]
        in_blocks = isinstance(calibration.mechanism, BlockNorm)
        each = block_variances(calibration) if in_blocks else [calibration.variance] * len(group.query.sets)
        known |= zip(group.query.sets, group.query.cell_variances(each), strict=True)
    return known


def _describe_errors(variances: Mapping[tuple[str, ...], float]) -> list[tuple[str, float, str]]:
    """Return, for each error bound, the end of its name, the largest variance of a cell, and a note.

    There is one bound for each marginal or, if there are many marginals, one for each number of attributes.
    """
    if len(variances) <= _LISTED:
        return [(f" of {' by '.join(names)}", variance, "") for names, variance in variances.items()]
    found = []
    for order in sorted({len(names) for names in variances}):
        own = {names: variance for names, variance in variances.items() if len(names) == order}
        worst = max(own, key=lambda names: own[names])
        mean = Noisy.margin_of(sum(own.values()) / len(own))
        what = f"s of {order} attribute{'s' if order > 1 else ''} ({len(own):,})"
        found.append((what, own[worst], f"the worst, {' by '.join(worst)}; ±{mean:.3g} for a cell of mean variance"))
    return found
