"""Made-up tables with two views that are related, of the shapes of the paper's MAMMAL, CMS-2-k, NPAS and MIMIC-III.

Every table has a world of its own, drawn from the seed: which species need what climate, which illnesses cause which
diagnoses and costs. Its cuts are public: they come from what everybody knows of climates and of amounts of money.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dpframework as dpf

SPECIES, MONTHS = 194, 12
DIAGNOSES, COMMON, AMOUNTS, ILLNESSES = 452, 60, 152, 14
PEOPLE, QUESTIONS, TRAITS = 1221, 47, 5
PATIENTS, CODES, LABS = 46_065, 107, 77
SEGMENT = 7200
"""Beneficiaries of a segment of CMS-2: CMS-2-k has k of them."""
TEMPERATURE_CUTS = tuple(range(-15, 33, 3))
RAIN_CUTS = tuple(range(10, 160, 10))
AMOUNT_CUTS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_BLOCK = 1 << 13  # rows: of which chances are held in floating point at a time

Floats = NDArray[np.float64]


def mammal_like(*, seed: int, rows: int = 2576) -> dpf.Table:
    """Return places of Europe: the presence of 194 species, and 48 facts of climate.

    Temperatures (lowest, highest and mean of each month, in degrees) and rain (in mm) follow from latitude, longitude
    and height, which the table does not hold. A species likes one to three of these facts between two limits or on one
    side of one.

    Parameters
    ----------
    seed
        Of the species and the places.
    rows
        How many places.
    """
    rng = np.random.default_rng(seed)
    climate = _climate(rng, rows)
    standard = [(column - column.mean()) / column.std() for column in climate.values()]
    species = [_presence(rng, standard) for _ in range(SPECIES)]
    attributes = [
        *(dpf.Boolean(f"species {k + 1}", view="left") for k in range(SPECIES)),
        *(
            dpf.Numeric(name, 0, 1000, cuts=RAIN_CUTS, view="right")
            if name.startswith("rain")
            else dpf.Numeric(name, -60, 60, cuts=TEMPERATURE_CUTS, view="right")
            for name in climate
        ),
    ]
    return _table(attributes, np.array(species, dtype=np.uint8), climate)


def _climate(rng: np.random.Generator, rows: int) -> dict[str, Floats]:
    """Return the columns of the right view."""
    latitude, inland = rng.uniform(36, 71, rows), rng.random(rows)
    height = rng.gamma(1.2, 260, rows) * (1 + 1.5 * np.exp(-(((latitude - 46) / 2.5) ** 2)))
    wet = np.clip(1 - 0.7 * inland + 0.25 * rng.standard_normal(rows) + 0.0004 * height, 0.05, None)
    southern = 1 / (1 + np.exp((latitude - 43) / 1.5))  # its winters are wet
    winter = np.cos(2 * np.pi * (np.arange(MONTHS) - 0.5) / MONTHS)
    columns = {}
    for kind, above in (("lowest", -4.2), ("highest", 4.6), ("mean", 0.0)):
        for month in range(MONTHS):
            mean = 18 - 0.48 * (latitude - 36) - 0.0062 * height + above * (1 - 0.25 * winter[month])
            degrees = mean - winter[month] * (7 + 6 * inland) + 0.9 * rng.standard_normal(rows)
            columns[f"{kind} {month + 1}"] = np.round(degrees, 1)
    for month in range(MONTHS):
        mean = 62 * wet * (1 + winter[month] * (0.35 * (1 - inland) + 0.8 * southern))
        columns[f"rain {month + 1}"] = np.round(np.clip(mean + 7 * rng.standard_normal(rows), 0, None))
    return columns


def _presence(rng: np.random.Generator, standard: list[Floats]) -> NDArray[np.bool_]:
    """Return where one species lives, given standardised facts of climate."""
    likes = rng.choice(len(standard), rng.integers(1, 4), replace=False)
    comfort = 0.7 * rng.standard_normal(len(standard[0])) + rng.uniform(-1, 0.8) * len(likes)
    for fact in likes:
        if rng.random() < 0.65:
            comfort += 3.2 * rng.choice([-1, 1]) * (standard[fact] - rng.uniform(-1, 1))
        else:
            comfort += 3.0 * (rng.uniform(0.5, 1.3) - np.abs(standard[fact] - rng.uniform(-1, 1)))
    return np.asarray(comfort > 0)


def cms_like(*, seed: int, segments: int = 1) -> dpf.Table:
    """Return beneficiaries of a health insurance: 452 diagnoses, and 152 yearly amounts, most of them often 0.

    Fourteen illnesses, which the table does not hold, cause diagnoses and costs; the first is frailty, which causes
    many. Sixty diagnoses are common, and each amount also follows from two of them.

    Parameters
    ----------
    seed
        Of the illnesses and the beneficiaries.
    segments
        The paper's k: 7,200 beneficiaries each.
    """
    rng = np.random.default_rng(seed)
    rows = SEGMENT * segments
    burden = rng.gamma(0.7, 1, (rows, ILLNESSES))
    burden[:, 0] = rng.gamma(1.6, 0.8, rows)
    diagnoses = _diagnoses(rng, burden)
    amounts = {f"amount {k + 1}": _amount(rng, burden, diagnoses[:COMMON], k) for k in range(AMOUNTS)}
    attributes = [
        *(dpf.Boolean(f"diagnosis {k + 1}", view="left") for k in range(DIAGNOSES)),
        *(dpf.Numeric(name, 0, 100_000, cuts=AMOUNT_CUTS, view="right") for name in amounts),
    ]
    return _table(attributes, diagnoses, amounts)


def npas_like(*, seed: int, rows: int = PEOPLE) -> dpf.Table:
    """Return answers of people: 17 facts of their background, and 47 answers from 1 to 5.

    Five traits, which the table does not hold, shift answers and some of the background. Values of the background that
    are rare are not merged, since the paper does it by looking at the rows.

    Parameters
    ----------
    seed
        Of the traits and the people.
    rows
        How many people.
    """
    rng = np.random.default_rng(seed)
    traits = rng.standard_normal((TRAITS, rows))
    kinds = [*([2] * 6), *([4] * 5), *([6] * 5)]  # numbers of values of the categorical facts
    attributes: list[dpf.Attribute] = [dpf.Numeric("age", 13, 90, cuts=[18, 22, 27, 35, 50], view="left")]
    columns = [np.clip(18 + rng.gamma(1.2, 9, rows) + 3 * traits[0], 13, 89).astype(np.int64)]
    for k, values in enumerate(kinds):
        attributes.append(dpf.Categorical(f"fact {k + 1}", [f"value {v}" for v in range(values)], view="left"))
        leaning = rng.uniform(0, 1.4) * traits[rng.integers(TRAITS)] + rng.standard_normal(rows)
        columns.append(np.digitize(leaning, np.quantile(leaning, rng.dirichlet(np.ones(values)).cumsum()[:-1])))
    for k in range(QUESTIONS):
        attributes.append(dpf.Numeric(f"question {k + 1}", 0, 6, cuts=[1.5, 2.5, 3.5, 4.5], view="right"))
        agrees = rng.choice([-1, 1]) * rng.uniform(0.4, 1.5) * traits[rng.integers(TRAITS)]
        columns.append(1 + np.digitize(agrees + rng.standard_normal(rows), [-1.4, -0.5, 0.5, 1.4]))
    named = {attribute.name: column.astype(np.float64) for attribute, column in zip(attributes, columns, strict=True)}
    codes = [
        np.searchsorted(attribute.interior_cuts, named[attribute.name], side="right")
        if isinstance(attribute, dpf.Numeric)
        else column
        for attribute, column in zip(attributes, columns, strict=True)
    ]
    return dpf.Table.from_codes(dpf.Schema(attributes), np.array(codes))


def mimic_like(*, seed: int, rows: int = PATIENTS) -> dpf.Table:
    """Return patients of a hospital: 107 diagnoses, and 77 tests, each not done, normal or abnormal.

    Illnesses, which the table does not hold, cause diagnoses, have tests done, and make these abnormal.

    Parameters
    ----------
    seed
        Of the illnesses and the patients.
    rows
        How many patients.
    """
    rng = np.random.default_rng(seed)
    ill = rng.random((ILLNESSES, rows)) < rng.uniform(0.05, 0.35, (ILLNESSES, 1))
    attributes: list[dpf.Attribute] = [dpf.Boolean(f"diagnosis {k + 1}", view="left") for k in range(CODES)]
    values = ["not done", "normal", "abnormal"]
    attributes += [dpf.Categorical(f"test {k + 1}", values, view="right") for k in range(LABS)]
    columns = []
    for _ in range(CODES):
        cause = ill[rng.integers(ILLNESSES)]
        columns.append(rng.random(rows) < np.where(cause, rng.uniform(0.3, 0.9), rng.uniform(0.01, 0.08)))
    for _ in range(LABS):
        cause = ill[rng.choice(ILLNESSES, 2, replace=False)].any(axis=0)
        done = rng.random(rows) < np.where(cause, rng.uniform(0.7, 1), rng.uniform(0.2, 0.7))
        abnormal = rng.random(rows) < np.where(cause, rng.uniform(0.4, 0.9), rng.uniform(0.02, 0.2))
        columns.append(np.where(done, 1 + abnormal, 0))
    return dpf.Table.from_codes(dpf.Schema(attributes), np.array(columns, dtype=np.uint8))


def _diagnoses(rng: np.random.Generator, burden: Floats) -> NDArray[np.uint8]:
    """Return the codes of the left view, shape (diagnoses, rows)."""
    base = rng.normal(-4.1, 1.5, DIAGNOSES)
    load = rng.gamma(0.35, 1, (DIAGNOSES, ILLNESSES)) * (rng.random((DIAGNOSES, ILLNESSES)) < 2.2 / ILLNESSES)
    base[:COMMON] = rng.normal(-1.4, 0.9, COMMON)
    load[:COMMON] = rng.gamma(1, 1.1, (COMMON, ILLNESSES)) * (rng.random((COMMON, ILLNESSES)) < 1.6 / ILLNESSES)
    load[:COMMON, 0] += rng.gamma(1.5, 0.5, COMMON)
    codes = np.empty((DIAGNOSES, len(burden)), dtype=np.uint8)
    for start in range(0, len(burden), _BLOCK):
        logit = (base + burden[start : start + _BLOCK] @ load.T).astype(np.float32).T
        codes[:, start : start + _BLOCK] = rng.random(logit.shape, dtype=np.float32) < 1 / (1 + np.exp(-logit))
    return codes


def _amount(rng: np.random.Generator, burden: Floats, common: NDArray[np.uint8], number: int) -> Floats:
    """Return one column of the right view, in steps of 10."""
    load = rng.gamma(0.5, 1, ILLNESSES) * (rng.random(ILLNESSES) < 2 / ILLNESSES)
    load[0] += rng.gamma(1, 0.35)
    need = burden @ load
    for most in (2.0, 1.5):
        need += common[rng.integers(COMMON)] * rng.uniform(0, most)
    usual = np.quantile(need, (0.15, 0.35, 0.55, 0.75)[number % 4])
    nothing = rng.random(len(need)) < 1 / (1 + np.exp(2 * (need - usual)))
    spent = np.exp(4.2 + 0.45 * need + 0.55 * rng.standard_normal(len(need)))
    return np.where(nothing, 0.0, np.clip(np.round(spent, -1), 10, 30_000))


def _table(attributes: list[dpf.Attribute], left: NDArray[np.uint8], right: dict[str, Floats]) -> dpf.Table:
    schema = dpf.Schema(attributes)
    codes = np.empty((len(schema), left.shape[1]), dtype=np.uint8)
    codes[: len(left)] = left
    for row, attribute in enumerate(attributes[len(left) :], start=len(left)):
        assert isinstance(attribute, dpf.Numeric)
        codes[row] = np.searchsorted(attribute.interior_cuts, right[attribute.name], side="right")
    return dpf.Table.from_codes(schema, codes, right)
