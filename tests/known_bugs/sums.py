"""Sensitivities that published programs declare too small: sums, means, variances, medians, scores."""

from __future__ import annotations

import attrs
import numpy as np

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian, Laplace, PermuteAndFlip
from dpframework.queries import CandidateScores, Norm, Query, Sensitivity
from known_bugs.catalogue import AGE, ILL, REPLACE, SCHEMA, TOWN, KnownBug, Number, Tool, asked

FIVE = dpf.Schema([TOWN, ILL, AGE], rows=5)
FAR = dpf.Schema([dpf.Numeric("age", 2**50, 2**50 + 1, cuts=[2**50 + 0.25, 2**50 + 0.5])], rows=32)
GAPS = dpf.Schema([TOWN, dpf.Numeric("age", -1, 8, cuts=[4], missing=True)])
IBM = "https://github.com/IBM/differential-privacy-library/issues/"
OPENDP = "https://github.com/opendp/opendp/issues/"
BEYOND = "DOES NOT HOLD"


@attrs.frozen
class SquaresByLowerBound(Number):
    """Bounds a square by the lower bound of the ages, twice, where the upper one is meant, too."""

    name = "squares-by-lower-bound"
    declared = (1, 64)

    def answer(self, counts, **inputs):
        return counts[2:]


@attrs.frozen
class TwoSumsOfOneBudget(Query):
    """Two centres, of which each is given the change of one."""

    name = "two-sums-of-one-budget"
    answer_length = 2
    right: bool = True

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.L1, 2 if self.right else 1, source="planted"),)

    def count(self, block, **inputs):
        return np.array([int(block.codes("ill").sum()), block.rows])


@attrs.frozen
class ClipsAndForgets(Number):
    """Clips the ages to at most 4, and adds up those that were not clipped."""

    name = "clips-and-forgets"
    declared = (4, 4)

    def count(self, block, **inputs):
        ages = block.values("age")
        clipped = np.clip(ages, -1, 4)
        return np.array([clipped.sum() if self.right else ages.sum()])


@attrs.frozen
class MeanOfThisTable(Number):
    """Bounds a mean by the width over the number of rows of the table at hand, here 10."""

    name = "mean-of-this-table"
    declared = (0.9, 9)  # a mean of no rows is put to -1

    def answer(self, counts, **inputs):
        return np.array([counts[1] / counts[0] if counts[0] else -1.0])


@attrs.frozen
class HalvedAndTruncated(Query):
    """Halves the width of whole numbers, rounds down, and doubles again."""

    name = "halved-and-truncated"
    integer = False
    answer_length = 1
    right: bool = True

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.L1, None, 9 if self.right else 9 // 2 * 2, source="planted"),)

    def count(self, block, **inputs):
        return np.array([block.values("age").sum()])


@attrs.frozen
class RoundedMean(Number):
    """Adds up squared differences to a mean that is rounded itself."""

    name = "rounded-mean"
    declared = (1, 1)
    of_replaced = True

    def counting(self, engine, rows, **inputs):
        yield self.count  # asked for, and not used
        ages = np.concatenate(engine.map(rows, _ages))
        if not self.right:
            return np.array([np.square(ages - ages.mean()).sum()])
        offsets = ages - 2.0**50  # exact
        return np.array([np.square(offsets).sum() - offsets.sum() ** 2 / len(offsets)])


def _ages(block):
    return block.values("age")


@attrs.frozen
class CountsAsShares(Query):
    """Declares for counts what holds for shares of 5 rows."""

    name = "counts-as-shares"
    integer = False
    answer_length = 3
    right: bool = True

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.L1, None, 2 if self.right else 0.4, source="planted"),)

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3).astype(float)


@attrs.frozen
class ErrorAgainstPublic(CandidateScores):
    """Scores two models by how much further than a public one each is from the data; both distances move."""

    name = "error-against-public"
    right: bool = True

    @property
    def answer_length(self):
        return 2

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.LINF, 2 if self.right else 1, source="planted"),)

    def candidates(self, **inputs):
        return ("A", "B")

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3)

    def answer(self, counts, **inputs):
        public = np.abs(counts - np.array([0, 0, 5])).sum()
        models = (np.array([5, 0, 0]), np.array([0, 5, 0]))
        return np.array([np.abs(counts - model).sum() - public for model in models])


@attrs.frozen
class GaussianOfOneNorm(Query):
    """Declares for a clipped number that is replaced what holds for one that is added: C rather than 2 C."""

    name = "gaussian-of-one-norm"
    integer = False
    answer_length = 1
    right: bool = True

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.SQUARED_L2, 1, 4 if self.right else 1, source="planted"),)

    def count(self, block, **inputs):
        return np.array([np.clip(block.values("age"), -1, 1).sum()])


@attrs.frozen
class VarianceByTheOtherDivisor(Number):
    """Divides by n - 1, and declares what holds for n."""

    name = "variance-by-the-other-divisor"
    declared = (81 * 4 / 25, 81 / 5)  # of n = 5 rows: (U - L)^2 (n - 1) / n^2, and (U - L)^2 / n
    of_replaced = True

    def answer(self, counts, **inputs):
        rows, total, squares = counts
        return np.array([(squares - total**2 / rows) / (rows - 1)])


@attrs.frozen
class MedianAsMean(Query):
    """Declares for a median of 5 rows what holds for their mean."""

    name = "median-as-mean"
    integer = False
    answer_length = 1
    right: bool = True

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.L1, None, 9 if self.right else 9 / 5, source="planted"),)

    def count(self, block, **inputs):
        return np.zeros(1)

    def counting(self, engine, rows, **inputs):
        yield self.count
        ages = np.concatenate(engine.map(rows, _ages))
        return np.array([np.median(ages)])


@attrs.frozen
class BoundsFromData(Query):
    """Adds up ages that are scaled to the smallest and the largest of this table."""

    name = "bounds-from-data"
    integer = False
    answer_length = 1
    right: bool = True
    sensitivities = (Sensitivity(Norm.L1, 1, source="planted"),)

    def count(self, block, **inputs):
        return np.zeros(1)

    def counting(self, engine, rows, **inputs):
        yield self.count
        ages = np.concatenate(engine.map(rows, _ages))
        if not len(ages):
            return np.zeros(1)
        low, high = (-1, 8) if self.right else (ages.min(), ages.max())
        return np.array([((ages - low) / max(high - low, 1)).sum()])


@attrs.frozen
class ClippedWithMissing(Number):
    """Clips, and takes for granted that what is missing is clipped, too."""

    name = "clipped-with-missing"
    declared = (8, 8)

    def answer(self, counts, **inputs):
        return counts[1:2]

    def ages(self, ages):
        clipped = np.clip(ages, -1, 8)
        return clipped[~np.isnan(clipped)] if self.right else clipped


@attrs.frozen
class DomainByMaximum(Query):
    """Counts as many towns as the last one that occurs."""

    name = "domain-by-maximum"
    right: bool = True

    @property
    def answer_length(self):
        return 3

    @property
    def sensitivities(self):
        return dpf.queries.histogram_sensitivities(3)

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3)

    def answer(self, counts, **inputs):
        return counts if self.right else counts[: np.flatnonzero(counts).max(initial=0) + 1]


def _bug(name, had, reference, make, *, noise=None, schema=SCHEMA, tool=Tool.SENSITIVITY, says=BEYOND, **more):
    return KnownBug(name, had, reference, tool, says, asked(make, noise or Laplace(1), schema), **more)


BUGS = [
    _bug(
        "a square bounded by the lower bound twice",
        "IBM diffprivlib, `LinearRegression`",
        IBM + "105",
        SquaresByLowerBound,
    ),
    _bug(
        "the centres of x and y on one share of the budget",
        "IBM diffprivlib, `LinearRegression.fit`",
        IBM + "104",
        TwoSumsOfOneBudget,
        noise=DiscreteLaplace(1),
    ),
    _bug(
        "clipped rows, and a covariance of those that are not",
        "SmartNoise SDK, `dp_covariance.py`",
        "https://github.com/opendp/smartnoise-sdk/issues/622",
        ClipsAndForgets,
    ),
    _bug(
        "a mean bounded by the number of rows at hand",
        "SmartNoise Core, white paper on means",
        "https://github.com/opendp/smartnoise-core/issues/355",
        MeanOfThisTable,
    ),
    _bug(
        "half a width, rounded down",
        "OpenDP, `make_sized_bounded_sum` of integers",
        OPENDP + "314",
        HalvedAndTruncated,
        relation=REPLACE,
        schema=FIVE,
    ),
    _bug(
        "a rounded mean in a sum of squares",
        "OpenDP, `make_sum_of_squared_deviations`",
        OPENDP + "2923",
        RoundedMean,
        relation=REPLACE,
        schema=FAR,
    ),
    _bug(
        "counts with the sensitivity of shares",
        "DataSynthesizer 0.1.4, PrivBayes",
        "https://github.com/DataResponsibly/DataSynthesizer/issues/34",
        CountsAsShares,
        relation=REPLACE,
        schema=FIVE,
    ),
    _bug(
        "a score of two errors, bounded by one",
        "private-PGM `mbi`, JAM",
        "https://github.com/ryan112358/mbi/issues/65",
        ErrorAgainstPublic,
        noise=PermuteAndFlip(1),
    ),
    _bug(
        "C where a replaced row moves by 2 C",
        "Google dp-accounting, RDP of Gaussian events",
        "https://github.com/google/differential-privacy/pull/464",
        GaussianOfOneNorm,
        noise=Gaussian("0.5"),
        relation=REPLACE,
    ),
    _bug(
        "a variance by n - 1 with the bound of n",
        "sample and population variance mixed up (`ddof`)",
        "no thread known to us",
        VarianceByTheOtherDivisor,
        relation=REPLACE,
        schema=FIVE,
    ),
    _bug(
        "a median with the bound of a mean",
        "a local sensitivity for a global one",
        "Nissim, Raskhodnikova and Smith 2007, STOC",
        MedianAsMean,
        relation=REPLACE,
        schema=FIVE,
    ),
    _bug(
        "bounds from the data",
        "google/dpsynth, numerical derivation",
        "https://github.com/google/dpsynth/issues/34",
        BoundsFromData,
    ),
    _bug(
        "a missing value passes the clipping",
        "SmartNoise Synth, dpmm, Synthcity, Opacus, diffprivlib",
        "arXiv:2602.17454, section 4.3.9",
        ClippedWithMissing,
        schema=GAPS,
        says="its answer holds nan",
    ),
    _bug(
        "a domain up to the largest value seen",
        "SAS dpmm, `mechanism.py`",
        "https://github.com/sassoftware/dpmm/issues/18",
        DomainByMaximum,
        noise=DiscreteLaplace(1),
        says="the length of its answer depends on the rows",
    ),
]
