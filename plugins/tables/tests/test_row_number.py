"""The number of rows: by released ones, and by the one that is said where noise is as large as the table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dpframework_tables.row_number import number_of_rows
from scipy.integrate import quad

import dpframework as dpf
from dpframework.results import Noisy


def test_the_number_is_public_or_the_mean_of_released_ones_weighted_by_their_noise():
    totals = [Noisy(12, 6.0), Noisy(30, 4.0)]
    mean = (12 / 6 + 30 / 4) / (1 / 6 + 1 / 4)
    assert number_of_rows(totals, None, None, None) == pytest.approx(mean)
    assert number_of_rows(totals, None, 22, None) == 22
    assert number_of_rows(totals, None, 23, None) == pytest.approx(mean)
    exact = [Noisy(one.value, 0.0) for one in totals]
    assert number_of_rows([*exact, *totals], None, None, None) == pytest.approx(21)
    assert number_of_rows([Noisy(-6, 1.0)], None, 5, None) == 1
    for rows, number in ((0, 1), (1, 1), (2, 2), (10**6, 10**6)):
        assert number_of_rows(totals, rows, 5, 3) == number


@pytest.mark.parametrize("seen", [-300.0, 0.0, 90.0, 500.0, 4000.0])
@pytest.mark.parametrize("about", [1, 40, 800, 100_000])
def test_with_a_number_that_is_said_it_is_the_mean_of_the_posterior(seen, about):
    def likely(rows: float) -> float:
        prior = 1 / (rows * (1 + math.log2(rows / about) ** 2))
        return prior * math.exp(-(((rows - seen) / 250) ** 2) / 2)

    end = max(seen, 0) + 12 * 250
    start = max(seen - 12 * 250, 1)
    near = [point for point in (about, seen) if start < point < end]
    weight, total = (
        quad(one, start, end, points=near, limit=500)[0] for one in (likely, lambda rows: rows * likely(rows))
    )
    found = number_of_rows([Noisy(seen, 250.0**2)], None, None, about)
    assert found == pytest.approx(total / weight, rel=0.02)
    assert number_of_rows([Noisy(seen, 250.0**2)], None, 3, about) == min(found, 3)


@pytest.mark.parametrize("about", [1, 700, 70_000, 2**53])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 10.0])
def test_exact_releases_decide_alone_whatever_is_said(about, noise):
    assert number_of_rows([Noisy(7000, noise**2)], None, None, about) == pytest.approx(7000, abs=0.1)


def test_a_release_far_below_0_is_one_row():
    assert number_of_rows([Noisy(-5000, 100.0)], None, None, 400) == 1


def test_a_table_of_few_rows_is_not_released_as_a_single_row():
    """Of 400 rows and a noise of about 400, a released number is below 1 one time in six."""
    attributes = [dpf.Categorical(f"a{k}", ["0", "1", "2"]) for k in range(8)]
    said, silent = (dpf.Schema(attributes, about_rows=about) for about in (400, None))
    codes = np.random.default_rng(3).integers(0, 3, (8, 400))
    numbers = {}
    for schema in (said, silent):
        study = dpf.Study(schema, epsilon="0.03", delta="1e-9")
        study.add("rows", dpf.miner("synthetic-table", rho="0.0000052", method="independent"))
        table = dpf.Table.from_codes(schema, codes)
        numbers[schema.about_rows] = [study.run(table, seed=seed)["rows"].total for seed in range(30)]
    assert min(numbers[None]) == 1
    assert min(numbers[400]) > 30
    assert np.abs(np.log(np.array(numbers[400]) / 400)).mean() < np.abs(np.log(np.array(numbers[None]) / 400)).mean()
