"""AIM, the adaptive and iterative mechanism for synthetic data (McKenna, Mullins, Sheldon and Miklau 2022), as a block.

Each round selects the cross table of two attributes that the model so far describes worst, measures it, and fits the
model again. How much a round costs, and how many there are, follows from what was released: where a measurement has
changed the model by less than its noise, the next one is twice as precise. So no list of releases could stand in a
plan. Here the plan holds a cap on rho, and the kinds of release.

As in the paper, a tenth of the budget selects and the rest measures, and a score is the l1 distance to the model's
table less what noise alone makes of it. Other than there, the model is a joint table of all attributes, fitted by
proportional fitting: for tables of up to some 10,000 cells.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.queries import CandidateScores, Histogram, JointHistogram, Norm, Sensitivity

SELECTS = Fraction(1, 10)  # of the budget
ROUNDS = 4  # for each attribute, if noise were never reduced; the paper has 16
FITS = 20  # passes of the fit


def _exact(amount: float) -> Fraction:
    return Fraction(math.floor(amount * 10**9), 10**9)


@attrs.frozen
class Misfits(CandidateScores):
    """By how many rows the cross table of each two attributes is off a model's, less the error of noise alone."""

    name = "misfits"
    shape: tuple[tuple[str, int], ...]
    integer = True

    @property
    def pairs(self) -> list[tuple[tuple[str, int], tuple[str, int]]]:
        """The names and sizes of each two attributes."""
        return list(itertools.combinations(self.shape, 2))

    @property
    def answer_length(self) -> int:
        """One score for each two."""
        return len(self.pairs)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """A row changes one cell of each table by 1, and so its distance from any table by 1 at most."""
        return (Sensitivity(Norm.LINF, 1, 2, source="a row is in one cell of each table"),)

    def candidates(self, **inputs: Any) -> list[str]:
        """Return the names of the releases that measure them."""
        return [f"{a}-{b}" for (a, _), (b, _) in self.pairs]

    def count(self, block: Any, **inputs: Any) -> NDArray[Any]:
        """Return all cross tables, one behind the other."""
        codes = [block.codes(a).astype(np.int64) * m + block.codes(b) for (a, _), (b, m) in self.pairs]
        sizes = [n * m for (_, n), (_, m) in self.pairs]
        return np.concatenate([np.bincount(own, minlength=size) for own, size in zip(codes, sizes, strict=True)])

    def answer(self, counts: NDArray[Any], *, model: Any, noise: int, **inputs: Any) -> NDArray[Any]:
        """Return the scores beside a model's tables, whole numbers in the same order, and the error of a noisy cell."""
        sizes = [n * m for (_, n), (_, m) in self.pairs]
        cuts = np.cumsum(sizes)[:-1]
        off = np.split(np.abs(counts - np.array(model, dtype=np.int64)), cuts)
        return np.array([own.sum() - noise * size for own, size in zip(off, sizes, strict=True)])


@attrs.frozen
class AIM(dpf.Miner):
    """A joint table of all attributes, from cross tables that are chosen as the model grows."""

    name = "aim"
    rho: Fraction = attrs.field(converter=Fraction)

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        """Return one block of three kinds of release."""
        gaussian = dpf.mechanisms.Gaussian
        shape = tuple((attribute.name, attribute.size) for attribute in schema)
        singles = [dpf.kind(a.name, Histogram(a), gaussian, times=1) for a in schema]
        tables = [dpf.kind(f"{a.name}-{b.name}", JointHistogram([a, b]), gaussian)
                  for a, b in itertools.combinations(schema, 2)]  # fmt: skip
        chosen = dpf.kind("choose", Misfits(shape), dpf.mechanisms.Exponential)
        return dpf.spend("rounds", chosen, *singles, *tables, rho=self.rho)

    def mine(self, table: dpf.PrivateTable) -> NDArray[np.float64]:
        """Return the model, the expected number of rows in each cell, shape (sizes of the attributes)."""
        names, shape = table.schema.names, tuple(attribute.size for attribute in table.schema)
        block, known = table.spend("rounds"), _Known(names, shape)
        each = self.rho / (ROUNDS * len(shape))
        for name in names:
            known.add((name,), block.release(name, rho=each * (1 - SELECTS)), each * (1 - SELECTS))
        while (left := block.left.rho) > 0:
            each = left if left < 2 * each else each
            measured = each * (1 - SELECTS)
            pairs = list(itertools.combinations(names, 2))
            model = [round(cell) for pair in pairs for cell in known.table(pair).ravel()]
            noise = round(math.sqrt(1 / (math.pi * measured)))  # sigma * sqrt(2 / pi), where rho is 1 / (2 sigma**2)
            epsilon = _exact(math.sqrt(8 * each * SELECTS))
            name = block.release("choose", epsilon=epsilon, model=tuple(model), noise=noise)
            pair = pairs[[f"{a}-{b}" for a, b in pairs].index(name)]
            before = known.table(pair)
            rho = block.left.rho if each == left else measured
            known.add(pair, block.release(name, rho=rho), rho)
            if np.abs(known.table(pair) - before).sum() <= noise * before.size:
                each = 4 * each  # noise of half the deviation
        return known.model


class _Known:
    """What was measured, and the model that fits it."""

    def __init__(self, names: tuple[str, ...], shape: tuple[int, ...]) -> None:
        self.names, self.tables = names, dict[tuple[str, ...], tuple[NDArray[np.float64], Fraction]]()
        self.model = np.ones(shape)

    def table(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the model's table over some attributes."""
        return self.model.sum(axis=tuple(k for k, name in enumerate(self.names) if name not in names))

    def add(self, names: tuple[str, ...], counts: Any, rho: Fraction) -> None:
        """Add a measurement to those of the same table, each with the weight of its rho, and fit all."""
        old, weight = self.tables.get(names, (np.zeros(1), Fraction(0)))
        both = (np.asarray(counts) * float(rho) + old * float(weight)) / float(rho + weight)
        self.tables[names] = both, rho + weight
        total = np.mean([max(float(own.sum()), 1.0) for own, _ in self.tables.values()])
        for _ in range(FITS):
            for one, (own, _) in self.tables.items():
                wanted = np.clip(own, 0.1, None)
                ratio = wanted / wanted.sum() * total / np.maximum(self.table(one), 1e-12)
                self.model = self.model * ratio.reshape([n if name in one else 1 for n, name in
                                                         zip(self.model.shape, self.names, strict=True)])  # fmt: skip


if __name__ == "__main__":
    SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old"), dpf.Categorical("town", ["A", "B", "C"])])
    study = dpf.Study(SCHEMA, epsilon=2, delta="1e-6")
    study.add("model", AIM("0.05"))
    print(study.plan().total())
