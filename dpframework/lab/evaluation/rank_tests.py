"""Rank tests of measured figures. They tell whether differences between results are more than chance.

Use Mann and Whitney's U test for two samples. Use Friedman's test for several methods on several data sets, with
Nemenyi's test of each pair of methods (Demšar, "Statistical comparisons of classifiers over multiple data sets", 2006).
Use Page's test for a trend that was expected beforehand (Page 1963). All tests are computed by scipy. Figures measured
on rows are not private, and neither are tests of such figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import require_known, require_level
from dpframework.facts.phrases import count_text
from dpframework.lab.evaluation.trial_record import NOT_PRIVATE

Floats = NDArray[np.float64]


def _figures(values: Any, dimensions: int, what: str) -> Floats:
    figures = np.asarray(values, dtype=np.float64)
    if figures.ndim != dimensions or not figures.size:
        raise InputError(f"{what} must have {count_text(dimensions, 'dimension')} and not be empty")
    if not bool(np.isfinite(figures).all()):
        raise InputError(f"{what} must be finite; leave out runs, data sets or methods without a figure")
    return figures


def _p_text(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-99 else "<1e-99"


@final
@attrs.frozen
class MannWhitney:
    """Mann and Whitney's test that two samples come from one distribution. Not private.

    Attributes
    ----------
    u
        The number of pairs in which the first sample's figure is larger; ties count half.
    p_value
        The two-sided p-value.
    effect
        U as a share of all pairs, in [0, 1] (common-language effect size). It is 0.5 if neither sample tends to be
        larger.
    sizes
        The sizes of the two samples.
    """

    u: float
    p_value: float
    effect: float
    sizes: tuple[int, int]

    def __str__(self) -> str:
        return (
            f"Mann-Whitney: U = {self.u:g} (sizes {self.sizes[0]} and {self.sizes[1]}), p = {_p_text(self.p_value)}; "
            f"the first is larger in {self.effect:.0%} of pairs\n{NOT_PRIVATE}"
        )


def mann_whitney(one: ArrayLike, other: ArrayLike) -> MannWhitney:
    """Test whether two samples of figures differ.

    The p-value is exact for small samples without ties. Otherwise it comes from the normal approximation with a
    correction for ties (scipy's rule).

    Parameters
    ----------
    one, other
        The figures of independent runs, shape (runs,).

    Raises
    ------
    InputError
        If a sample is empty, or a figure is not finite.

    Examples
    --------
    >>> print(mann_whitney([19, 22, 16, 29, 24], [20, 11, 17, 12]))
    Mann-Whitney: U = 17 (sizes 5 and 4), p = 0.11; the first is larger in 85% of pairs
    Not private: measured on the rows themselves.
    """
    from scipy.stats import mannwhitneyu

    first, second = _figures(one, 1, "the first sample"), _figures(other, 1, "the second sample")
    found = mannwhitneyu(first, second)
    sizes = len(first), len(second)
    return MannWhitney(float(found.statistic), float(found.pvalue), float(found.statistic) / math.prod(sizes), sizes)


@final
@attrs.frozen(eq=False)
class Friedman:
    """Friedman's test that several methods do equally well, with Nemenyi's test of each pair. Not private.

    Attributes
    ----------
    names
        The names of the methods, in the order of `ranks`.
    ranks
        The mean ranks of the methods over data sets, 1 for the best, shape (methods,). Ties share a rank.
    data_sets
        The number of data sets.
    statistic, p_value
        Friedman's chi-squared statistic with a correction for ties, and its p-value.
    f_statistic, f_p_value
        Iman and Davenport's F statistic, which is less conservative, and its p-value.
    pair_p_values
        Nemenyi's p-value of each pair of methods, shape (methods, methods), 1 on the diagonal.
    """

    names: tuple[str, ...]
    ranks: Floats
    data_sets: int
    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    pair_p_values: Floats

    def critical_difference(self, alpha: float = 0.05) -> float:
        """Return the least difference of mean ranks that is significant at level `alpha` in Nemenyi's test.

        Raises
        ------
        InputError
            If the level is not between 0 and 1.
        """
        from scipy.stats import studentized_range

        require_level(alpha, "a significance level")
        methods = len(self.names)
        return (
            float(studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2) * _rank_sd(methods, self.data_sets)
        )

    def differ(self, one: str, other: str, alpha: float = 0.05) -> bool:
        """Tell whether two methods differ at a significance level in Nemenyi's test.

        Raises
        ------
        InputError
            If a name is not among the methods, or if the level is not between 0 and 1.
        """
        require_level(alpha, "a significance level")
        for name in (one, other):
            require_known(name, self.names, "method")
        return bool(self.pair_p_values[self.names.index(one), self.names.index(other)] <= alpha)

    def __str__(self) -> str:
        """Write the result of the test, then one line for each method, the best one first."""
        lines = [
            f"Friedman: chi-squared = {self.statistic:.2f}, p = {_p_text(self.p_value)}; "
            f"Iman-Davenport: F = {self.f_statistic:.2f}, p = {_p_text(self.f_p_value)} ({self.data_sets} data sets)"
        ]
        order = np.argsort(self.ranks, kind="stable")
        width = max(map(len, self.names))
        lines += [f"{self.names[k]:<{width}}  mean rank {self.ranks[k]:.2f}" for k in order]
        lines.append(
            f"Nemenyi: mean ranks differ if they are at least {self.critical_difference():.2f} apart (level 0.05)"
        )
        return "\n".join([*lines, NOT_PRIVATE])

    def __repr__(self) -> str:
        return f"<Friedman test of {len(self.names)} methods, p = {_p_text(self.p_value)}: not private>"


def _rank_sd(methods: int, data_sets: int) -> float:
    """Return the standard deviation of the difference of two mean ranks if all methods do equally well."""
    return math.sqrt(methods * (methods + 1) / (6 * data_sets))


def friedman(values: ArrayLike, names: Sequence[str] | None = None, *, larger_is_better: bool = True) -> Friedman:
    """Test whether several methods differ over several data sets, and which of them do.

    Parameters
    ----------
    values
        One figure for each data set and method, shape (data sets, methods), with at least two data sets and three
        methods.
    names
        The names of the methods; by default numbers from 1.
    larger_is_better
        Whether rank 1 is the largest figure.

    Raises
    ------
    InputError
        If there are too few data sets or methods, if the number of names is wrong, if a figure is not finite, or if all
        methods tie on every data set.

    Examples
    --------
    >>> accuracy = [[0.8, 0.7, 0.6], [0.9, 0.85, 0.8], [0.7, 0.6, 0.65], [0.95, 0.9, 0.8]]
    >>> print(friedman(accuracy, ["exact", "private", "random"]))
    Friedman: chi-squared = 6.50, p = 0.039; Iman-Davenport: F = 13.00, p = 0.0066 (4 data sets)
    exact    mean rank 1.00
    private  mean rank 2.25
    random   mean rank 2.75
    Nemenyi: mean ranks differ if they are at least 1.66 apart (level 0.05)
    Not private: measured on the rows themselves.
    """
    from scipy.stats import chi2, f, rankdata, studentized_range

    figures = _figures(values, 2, "figures of data sets and methods")
    data_sets, methods = figures.shape
    if data_sets < 2 or methods < 3:
        raise InputError(f"Friedman's test needs two data sets and three methods, not {data_sets} and {methods}")
    labels = tuple(names) if names is not None else tuple(str(k + 1) for k in range(methods))
    if len(labels) != methods:
        raise InputError(f"{len(labels)} names do not fit {methods} methods")
    ranked = rankdata(-figures if larger_is_better else figures, axis=1)
    ranks = ranked.mean(axis=0)
    middle = (methods + 1) / 2
    # Without ties, the variance of a rank is methods (methods + 1) / 12.
    spread = float(((ranked - middle) ** 2).sum()) / (data_sets * (methods - 1))
    if spread == 0:
        raise InputError("all methods tie on every data set; there is nothing to test")
    statistic = data_sets * float(((ranks - middle) ** 2).sum()) / spread
    rest = data_sets * (methods - 1) - statistic
    f_statistic = (data_sets - 1) * statistic / rest if rest > 1e-9 else math.inf
    apart = np.abs(ranks[:, None] - ranks) / _rank_sd(methods, data_sets)
    return Friedman(
        labels,
        ranks,
        data_sets,
        statistic,
        float(chi2.sf(statistic, methods - 1)),
        f_statistic,
        float(f.sf(f_statistic, methods - 1, (methods - 1) * (data_sets - 1))),
        np.asarray(studentized_range.sf(apart * math.sqrt(2), methods, np.inf)),
    )


@final
@attrs.frozen
class PageTrend:
    """Page's test that figures grow along an order of conditions that was fixed beforehand. Not private.

    Attributes
    ----------
    statistic
        Page's L.
    p_value
        The one-sided p-value: the probability of at least this much growth by chance.
    shape
        The numbers of subjects and of ordered conditions.
    """

    statistic: float
    p_value: float
    shape: tuple[int, int]

    def __str__(self) -> str:
        subjects, conditions = self.shape
        return (
            f"Page's trend: L = {self.statistic:g}, p = {_p_text(self.p_value)} "
            f"({subjects} subjects, {conditions} conditions)\n{NOT_PRIVATE}"
        )


def page_trend(values: ArrayLike) -> PageTrend:
    """Test whether figures grow with a condition, such as epsilon.

    The p-value is exact for few subjects and conditions. Otherwise it comes from the normal approximation (scipy's
    rule).

    Parameters
    ----------
    values
        One figure for each subject (such as a data set or an attribute) and condition, shape (subjects, conditions),
        with at least two subjects and three conditions. Conditions are in the order in which growth is expected.

    Raises
    ------
    InputError
        If there are too few subjects or conditions, or if a figure is not finite.

    Examples
    --------
    >>> print(page_trend([[3, 4, 3], [2, 2, 4], [3, 3, 5], [1, 3, 2], [2, 3, 2], [2, 4, 5], [1, 2, 4]]))
    Page's trend: L = 92, p = 0.021 (7 subjects, 3 conditions)
    Not private: measured on the rows themselves.
    """
    from scipy.stats import page_trend_test

    figures = _figures(values, 2, "figures of subjects and conditions")
    subjects, conditions = figures.shape
    if subjects < 2 or conditions < 3:
        raise InputError(f"Page's test needs two subjects and three conditions, not {subjects} and {conditions}")
    found = page_trend_test(figures)
    return PageTrend(float(found.statistic), float(found.pvalue), (subjects, conditions))
