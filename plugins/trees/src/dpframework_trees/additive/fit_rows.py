"""Queries that answer with the rows of a fit."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, InputError, Numeric
from dpframework.queries import Norm, Query, Sensitivity
from dpframework.tables import Block
from dpframework_trees.additive.design import Design, Reals
from dpframework_trees.additive.fitting import Loss, Rows
from dpframework_trees.additive.noise_and_ridge import NoiseAndRidge
from dpframework_trees.additive.perturbation import FITS

PROBED = 32  # the number of linear functions by which `coordinates` describes a gradient
FAR = 12.0  # the intercept's coefficient, with either sign, at two of the three points where `coordinates` is taken


@attrs.frozen
class LogisticRows(Query):
    """The rows of a logistic fit. The effect of one row is measured by its gradient, in the norm of the noise.

    The design is given at run time, and a tree if the design has leaves. Both follow from releases and public facts.

    Attributes
    ----------
    target
        The class attribute.
    given
        The names of the attributes that predict it.
    """

    name = FITS[0]
    integer = False
    target: Attribute
    given: tuple[str, ...]

    @property
    def gathers(self) -> bool:
        """Whether the query gathers rows: it does, with two bytes for each row and attribute."""
        return True

    @property
    def text(self) -> str:
        """Name the class."""
        return f"additive logistic model of {self.target.name} on {len(self.given)} attributes"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that are read."""
        return (*self.given, self.target.name)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """1 in the linf norm.

        A row's gradient has an l1 norm of at most 1 in each block. (With several classes it is at most 2, and halved.)
        The noise's norm is the largest l1 norm of a block in each group, averaged over groups with weights that add up
        to 1. So a row's gradient has a norm of at most 1. Each number of `coordinates` is a linear function of the
        gradient with norm 1, so a row moves it by at most 1.
        """
        source = "a row has one cell of each attribute, with entries in [-1, 1], and probabilities off by at most 1"
        return (Sensitivity(Norm.LINF, 1, source=source),)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.uint16]:
        """Return the cells of a block's rows, shape (rows, attributes + 2), with the outcomes in the last column."""
        design: Design = inputs["design"]
        found = np.empty((block.rows, len(design.sizes) + 2), dtype=np.uint16)
        for j, name in enumerate(self.given):
            of_codes = np.array(design.bins[j], dtype=np.uint16) + np.uint16(design.first_cells[j])
            found[:, j] = of_codes[block.codes(name)]
        if design.leaves:
            found[:, -3] = inputs["tree"].leaf_codes(block) + design.first_cells[len(self.given)]
        found[:, -2] = design.first_cells[-1]
        found[:, -1] = self.outcomes(block, design)
        return found

    def outcomes(self, block: Block, design: Design) -> NDArray[Any]:
        """Return the class of each row of a block, shape (rows,)."""
        return block.codes(self.target.name)

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Rows:
        """Return the rows of all blocks, one after another."""
        found = np.concatenate(engine.map(rows, functools.partial(self.count, **inputs)))
        return Rows(np.ascontiguousarray(found[:, :-1]), np.ascontiguousarray(found[:, -1]), inputs["design"])

    def coordinates(self, answer: Rows) -> Reals:
        """Return random linear functions of the rows' gradient, each of norm 1, at three points, shape (values,).

        At each point all coefficients are 0, apart from the intercept's coefficient of the last output, which is 0,
        `FAR` or -`FAR`.
        """
        design, found = answer.design, []
        tuned, probes = NoiseAndRidge(design, Fraction(1)), _probes(design)
        for size in (0.0, FAR, -FAR):
            start = np.zeros((design.columns, design.outputs))
            start[-1, -1] = size
            found.append(probes @ Loss(answer, tuned, start).residuals(start).ravel())
        return np.concatenate(found)


@final
@attrs.frozen
class NumberRows(LogisticRows):
    """The rows of a fit to a numeric target. Rows without a number are left out.

    A number is clamped to the schema's bounds. The outcome is its relative position between these, from 0 to 1, rounded
    to a multiple of 1 / `Design.whole`.
    """

    name = FITS[1]

    @property
    def text(self) -> str:
        """Name the target."""
        return f"additive model of the number {self.target.name} on {len(self.given)} attributes"

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """1, since a row's gradient has an l1 norm of at most 1 in each block, as for two classes.

        The gradient of a row without a number is 0.
        """
        source = "a row has one cell of each attribute, with entries in [-1, 1], and a prediction in its target's range"
        return (Sensitivity(Norm.LINF, 1, source=source),)

    def count(self, block: Block, **inputs: Any) -> NDArray[np.uint16]:
        """Return the cells of a block's rows that have a number, with their outcomes in the last column."""
        return super().count(block, **inputs)[~np.isnan(block.values(self.target.name))]

    def outcomes(self, block: Block, design: Design) -> NDArray[Any]:
        """Return each row's outcome in units of 1 / `Design.whole`, shape (rows,); 0 without a number."""
        found = relative_positions(numeric_target(self.target), block.values(self.target.name))
        return np.asarray(np.rint(np.nan_to_num(found) * design.whole))


def numeric_target(target: Attribute) -> Numeric:
    """Return a target as a numeric attribute.

    Raises
    ------
    InputError
        If the target is not numeric.
    """
    if not isinstance(target, Numeric):
        raise InputError(f"target '{target.name}' is {target.kind}; a numeric one is needed, or choose dp-additive")
    return target


def relative_positions(target: Numeric, values: Reals) -> Reals:
    """Return the relative positions of numbers between a target's bounds, from 0 to 1; NaN for missing numbers.

    Examples
    --------
    >>> relative_positions(Numeric("age", 0, 80, bins=1), np.array([20.0, 90.0]))
    array([0.25, 1.  ])
    """
    return np.asarray(np.clip((values - target.lower) / (target.upper - target.lower), 0, 1))


@functools.lru_cache(maxsize=16)
def _probes(design: Design) -> Reals:
    """Return random linear functions whose largest value on the norm's unit ball is 1, shape (probes, coefficients)."""
    rng = np.random.default_rng(0)
    found = np.zeros((PROBED, design.columns, design.outputs))
    for probe in found:
        for share, group in zip(design.shares, design.groups, strict=True):
            j = group[int(rng.integers(len(group)))]
            part = probe[design.starts[j] : design.starts[j] + design.widths[j]]
            part[:] = float(share) / design.swing * rng.choice((-1.0, 1.0), part.shape)
    return found.reshape(PROBED, -1)
