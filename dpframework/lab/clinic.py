"""A synthetic clinic with planted relations between diagnoses (left view) and laboratory values (right view).

No row is of a real person. Age and sex change how likely an illness is, some illnesses lead to others, and most
illnesses shift some laboratory values. Then some diagnoses go unrecorded and a few are recorded wrongly, as in real
records. The numbers are plausible, but not fitted to data. They resemble the prevalences in an outpatient clinic of
internal medicine, and the reference ranges of adults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric, View
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import And, Below, Description, Equals, Not, Or
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.facts.schema import Schema
from dpframework.tables.coded_table import Table

if TYPE_CHECKING:
    import polars as pl

Floats: TypeAlias = "NDArray[np.float64]"
Flags: TypeAlias = "NDArray[np.bool_]"

MOST_PATIENTS = 1_000_000
MOST_VISITS = 9  # the most visits of a patient
UNRECORDED = 0.04
"""The share of patients with an illness whose record lacks the diagnosis."""
WRONGLY_RECORDED = 0.002
"""The share of patients without an illness whose record has the diagnosis."""

_AGE_BANDS = ("18 to 39", "40 to 54", "55 to 69", "70 and over")
_AGE_STARTS = (40, 55, 70)


@attrs.frozen
class _Illness:
    """An illness, with its share among men aged fifty, and the log-odds that age, sex and other illnesses add.

    Attributes
    ----------
    name
        The name of the diagnosis.
    share
        The share of men aged fifty who have the illness, among those who have none of its causes.
    decade, female
        The log-odds that are added for each decade of age above 50, and for women.
    causes
        The log-odds that are added for each illness named here that the patient has.
    """

    name: str
    share: float
    decade: float = 0.0
    female: float = 0.0
    causes: Mapping[str, float] = attrs.field(factory=dict)


_ILLNESSES = (
    _Illness("obesity", 0.26, 0.03, 0.1),
    _Illness("alcohol dependence", 0.05, -0.05, -0.8),
    _Illness("type 2 diabetes", 0.065, 0.35, -0.2, {"obesity": 1.3}),
    _Illness("hypertension", 0.20, 0.55, -0.1, {"obesity": 0.8, "type 2 diabetes": 0.9}),
    _Illness("hyperlipidaemia", 0.16, 0.25, -0.1, {"obesity": 0.5, "type 2 diabetes": 0.5}),
    _Illness("fatty liver", 0.05, 0.05, -0.2, {"obesity": 1.4, "type 2 diabetes": 0.9, "alcohol dependence": 1.0}),
    _Illness("cirrhosis", 0.008, 0.2, -0.3, {"alcohol dependence": 2.6, "fatty liver": 1.2}),
    _Illness("chronic kidney disease", 0.03, 0.45, 0.1, {"type 2 diabetes": 1.2, "hypertension": 1.0}),
    _Illness(
        "ischaemic heart disease",
        0.05,
        0.55,
        -0.6,
        {"hyperlipidaemia": 0.9, "type 2 diabetes": 0.7, "hypertension": 0.6},
    ),
    _Illness("atrial fibrillation", 0.015, 0.65, -0.3, {"hypertension": 0.6}),
    _Illness(
        "heart failure",
        0.01,
        0.5,
        -0.2,
        {"ischaemic heart disease": 1.7, "hypertension": 0.8, "atrial fibrillation": 1.1},
    ),
    _Illness("stroke", 0.01, 0.5, -0.1, {"atrial fibrillation": 1.1, "hypertension": 0.7}),
    _Illness("peripheral artery disease", 0.015, 0.5, -0.4, {"type 2 diabetes": 1.1, "hyperlipidaemia": 0.5}),
    _Illness("COPD", 0.05, 0.35, -0.2),
    _Illness("asthma", 0.08, -0.1, 0.3),
    _Illness("pneumonia", 0.03, 0.2, -0.1, {"COPD": 1.2, "heart failure": 0.5}),
    _Illness("iron deficiency anaemia", 0.025, 0.05, 1.1, {"chronic kidney disease": 0.6}),
    _Illness("hypothyroidism", 0.025, 0.15, 1.4),
    _Illness("hyperthyroidism", 0.008, 0.05, 1.1),
    _Illness("gout", 0.025, 0.25, -1.0, {"chronic kidney disease": 1.1, "obesity": 0.6}),
    _Illness("rheumatoid arthritis", 0.012, 0.15, 0.9),
    _Illness("osteoporosis", 0.012, 0.7, 1.6, {"rheumatoid arthritis": 0.8}),
    _Illness("depression", 0.10, -0.05, 0.6, {"stroke": 0.6, "alcohol dependence": 0.7}),
    _Illness("anxiety disorder", 0.09, -0.1, 0.6, {"depression": 1.2, "hyperthyroidism": 0.6}),
)


@attrs.frozen
class _Lab:
    """A laboratory value, with its public range, its public cut points (`cuts`), and its distribution.

    The distribution is normal, with mean `centre` (or `female`, for women, if it is given) and standard deviation
    `spread`. An illness that `shifts` names moves a patient's mean by roughly the number given there. With `skewed`,
    the logarithm of the value is normal. Then `centre` is the median of the value, `spread` is the standard deviation
    of the logarithm, and shifts are factors. Two laboratory values are exceptions: eGFR also falls with age, and
    creatinine is computed from eGFR.
    """

    name: str
    lower: float
    upper: float
    cuts: tuple[float, ...]
    decimals: int
    centre: float
    spread: float
    shifts: Mapping[str, float]
    skewed: bool = False
    female: float | None = None


_LABS = (
    _Lab("HbA1c", 3.5, 16, (5, 5.7, 6.1, 6.5, 7, 8, 9.5), 1, 5.35, 0.33, {"type 2 diabetes": 2.1, "obesity": 0.1}),
    _Lab(
        "glucose", 40, 600, (70, 85, 100, 112, 126, 150, 180, 250), 0, 91, 0.10,
        {"type 2 diabetes": 1.68, "obesity": 1.03}, skewed=True,
    ),
    _Lab("creatinine", 0.3, 15, (0.7, 0.9, 1.1, 1.3, 1.6, 2, 3), 2, 0, 0, {}),  # computed from eGFR
    _Lab("eGFR", 3, 150, (15, 30, 45, 60, 75, 90, 105), 0, 96, 11, {"chronic kidney disease": -46}),
    _Lab(
        "haemoglobin", 4, 22, (8, 10, 11, 12, 13, 14, 15, 16), 1, 15.0, 0.85,
        {"iron deficiency anaemia": -4.2, "chronic kidney disease": -1.0, "rheumatoid arthritis": -0.4}, female=13.7,
    ),
    _Lab(
        "ferritin", 1, 5000, (15, 30, 50, 100, 200, 300, 500, 1000), 0, 115, 0.50,
        {"iron deficiency anaemia": 0.10, "fatty liver": 1.6, "pneumonia": 2.0, "cirrhosis": 1.8}, skewed=True,
    ),
    _Lab(
        "TSH", 0.005, 150, (0.1, 0.4, 1, 2, 3, 4.5, 7, 10, 20), 3, 1.7, 0.36,
        {"hypothyroidism": 5.6, "hyperthyroidism": 0.035}, skewed=True,
    ),
    _Lab(
        "BNP", 2, 5000, (20, 35, 50, 75, 100, 200, 400, 900), 0, 24, 0.55,
        {"heart failure": 15, "atrial fibrillation": 1.7, "chronic kidney disease": 1.4}, skewed=True,
    ),
    _Lab(
        "LDL cholesterol", 20, 400, (70, 100, 115, 130, 145, 160, 190), 0, 112, 0.17,
        {"hyperlipidaemia": 1.62, "hyperthyroidism": 0.85, "hypothyroidism": 1.1}, skewed=True,
    ),
    _Lab(
        "ALT", 3, 2000, (15, 25, 35, 45, 55, 80, 150), 0, 22, 0.34,
        {"fatty liver": 3.4, "cirrhosis": 1.5, "alcohol dependence": 1.3}, skewed=True,
    ),
    _Lab(
        "CRP", 0.1, 500, (1, 3, 5, 10, 20, 40, 100), 1, 1.8, 0.75,
        {"pneumonia": 40, "rheumatoid arthritis": 6, "obesity": 1.6, "COPD": 1.3}, skewed=True,
    ),
    _Lab("potassium", 2, 8, (3.2, 3.5, 4, 4.5, 5, 5.5), 1, 4.2, 0.32, {"chronic kidney disease": 0.55}),
    _Lab("sodium", 110, 165, (128, 132, 135, 138, 141, 145), 0, 140, 2.2, {"heart failure": -3.5, "cirrhosis": -4}),
    _Lab(
        "platelets", 5, 1000, (50, 100, 150, 200, 250, 300, 400), 0, 250, 45,
        {"cirrhosis": -145, "rheumatoid arthritis": 50},
    ),
    _Lab(
        "white cells", 0.5, 60, (3, 4, 5.5, 7, 9, 11, 14, 20), 1, 6.6, 0.19,
        {"pneumonia": 2.3, "COPD": 1.12}, skewed=True,
    ),
    _Lab("albumin", 1, 6, (2.5, 3, 3.5, 4, 4.5), 1, 4.35, 0.25, {"cirrhosis": -1.15, "pneumonia": -0.4}),
)  # fmt: skip

DIAGNOSES = tuple(illness.name for illness in _ILLNESSES)
"""The names of the Boolean attributes of the left view."""
LABS = tuple(lab.name for lab in _LABS)
"""The names of the numeric attributes of the right view."""


@attrs.frozen
class PlantedRelation:
    """A relation between both views that the clinic has by construction.

    Attributes
    ----------
    left, right
        One description of each view. The two hold for mostly the same patients.
    """

    left: Description
    right: Description

    def __str__(self) -> str:
        return f"{self.left}  <->  {self.right}"


def _ill(name: str) -> Description:
    return Equals(name, "true")


def _at_least(name: str, threshold: float) -> Description:
    return Not(Below(name, threshold))


PLANTED = (
    PlantedRelation(_ill("type 2 diabetes"), Or([_at_least("HbA1c", 6.5), _at_least("glucose", 126)])),
    PlantedRelation(_ill("chronic kidney disease"), Below("eGFR", 60)),
    PlantedRelation(_ill("iron deficiency anaemia"), And([Below("haemoglobin", 12), Below("ferritin", 30)])),
    PlantedRelation(_ill("hypothyroidism"), _at_least("TSH", 4.5)),
    PlantedRelation(_ill("hyperthyroidism"), Below("TSH", 0.4)),
    PlantedRelation(_ill("heart failure"), _at_least("BNP", 100)),
    PlantedRelation(_ill("hyperlipidaemia"), _at_least("LDL cholesterol", 145)),
    PlantedRelation(_ill("fatty liver"), _at_least("ALT", 45)),
    PlantedRelation(_ill("pneumonia"), And([_at_least("CRP", 20), _at_least("white cells", 9)])),
    PlantedRelation(_ill("cirrhosis"), And([Below("platelets", 200), Below("albumin", 3.5)])),
)
"""The relations that a good miner finds. Illnesses that lead to others add weaker relations."""


def clinic_schema() -> Schema:
    """Return the clinic's public schema, with clinical ranges and cut points chosen without looking at patients.

    Examples
    --------
    >>> schema = clinic_schema()
    >>> len(schema.view("left")), len(schema.view("right"))
    (26, 16)
    """
    left: list[Attribute] = [
        Categorical("sex", ["female", "male"], view=View.LEFT),
        Categorical("age", _AGE_BANDS, view=View.LEFT),
        *(Boolean(name, view=View.LEFT) for name in DIAGNOSES),
    ]
    right = [Numeric(lab.name, lab.lower, lab.upper, cuts=lab.cuts, view=View.RIGHT) for lab in _LABS]
    return Schema([*left, *right], max_rows=MOST_PATIENTS)


def clinic_table(patients: int = 20_000, *, seed: int = 2010) -> Table:
    """Return a table of synthetic patients.

    Parameters
    ----------
    patients
        The number of patients, from 1 to a million.
    seed
        The seed of all draws. Equal seeds give equal tables.

    Raises
    ------
    InputError
        If a number is out of range.
    """
    generator, female, age, ill = _people(patients, seed)
    values = _labs(age, female, ill, generator)
    schema = clinic_schema()
    codes = [(~female).astype(np.int64), np.searchsorted(_AGE_STARTS, age, side="right")]
    codes += [_record_diagnosis(ill[name], generator).astype(np.int64) for name in DIAGNOSES]
    codes += [np.searchsorted(lab.cuts, values[lab.name], side="right") for lab in _LABS]
    return Table.from_codes(schema, np.stack(codes), values)


def clinic_visits(patients: int = 2_000, *, seed: int = 2010) -> pl.DataFrame:
    """Return a frame of the visits of synthetic patients, in random order.

    Each patient has 1 to 9 visits, and patients with more illnesses have more visits. The column "patient_id" names the
    patient, and the other columns are those of `clinic_schema`. A patient has the same diagnoses at all visits, and new
    laboratory values at each visit. Parameters and errors are the same as for `clinic_table`.

    Examples
    --------
    >>> sorted(clinic_visits(300)["patient_id"].value_counts()["count"].unique())
    [1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    import polars as pl

    generator, female, age, ill = _people(patients, seed)
    recorded = {name: _record_diagnosis(ill[name], generator) for name in DIAGNOSES}
    more = generator.poisson(0.6 + 0.7 * sum(held.astype(float) for held in ill.values()), patients)
    whose = np.repeat(np.arange(patients), 1 + np.minimum(more, MOST_VISITS - 1))
    generator.shuffle(whose)
    values = _labs(age[whose], female[whose], {name: held[whose] for name, held in ill.items()}, generator)
    bands = np.array(_AGE_BANDS)[np.searchsorted(_AGE_STARTS, age, side="right")]
    return pl.DataFrame(
        {
            "patient_id": [f"P{k:06}" for k in whose],
            "sex": np.where(female, "female", "male")[whose],
            "age": bands[whose],
            **{name: held[whose] for name, held in recorded.items()},
            **values,
        }
    )


def _people(patients: int, seed: int) -> tuple[np.random.Generator, Flags, Floats, dict[str, Flags]]:
    """Return the sex, age and illnesses of each patient, and the generator after these draws."""
    if not is_whole_number(patients, most=MOST_PATIENTS):
        raise InputError(f"patients must be a whole number from 1 to {MOST_PATIENTS}, not {patients!r}")
    if not is_whole_number(seed, 0):
        raise InputError(f"seed is {seed!r}; a non-negative integer is needed")
    generator = np.random.default_rng(seed)
    female = generator.random(patients) < 0.52
    age = np.clip(generator.normal(57, 17, patients), 18, 100)
    ill: dict[str, Flags] = {}  # filled in the order of _ILLNESSES, where the causes of an illness come before it
    for illness in _ILLNESSES:
        odds = np.log(illness.share / (1 - illness.share)) + illness.decade * (age - 50) / 10 + illness.female * female
        for cause, more in illness.causes.items():
            odds = odds + more * ill[cause]
        ill[illness.name] = generator.random(len(age)) < 1 / (1 + np.exp(-odds))
    # A thyroid is not both underactive and overactive.
    ill["hyperthyroidism"] &= ~ill["hypothyroidism"]
    return generator, female, age, ill


def _record_diagnosis(ill: Flags, generator: np.random.Generator) -> Flags:
    draws = generator.random(len(ill))
    return np.where(ill, draws >= UNRECORDED, draws < WRONGLY_RECORDED)


def _labs(age: Floats, female: Flags, ill: Mapping[str, Flags], generator: np.random.Generator) -> dict[str, Floats]:
    values = {}
    for lab in _LABS:
        if lab.name == "creatinine":
            continue
        centre = np.where(female, lab.centre if lab.female is None else lab.female, lab.centre)
        middle = np.log(centre) if lab.skewed else centre
        for name, shift in lab.shifts.items():
            size = np.log(shift) if lab.skewed else shift
            # Severity differs between patients.
            middle = middle + ill[name] * size * generator.normal(1, 0.18, len(female))
        drawn = middle + generator.normal(0, lab.spread, len(female))
        values[lab.name] = np.exp(drawn) if lab.skewed else drawn
    values["eGFR"] -= 0.35 * (age - 50)
    # The CKD-EPI 2021 equation computes eGFR from creatinine, age and sex. Here it is solved for creatinine.
    usual = np.where(female, 0.7, 0.9)
    below = np.where(female, -0.241, -0.302)
    ratio = np.clip(values["eGFR"], 3, 150) / (142 * 0.9938**age * np.where(female, 1.012, 1.0))
    values["creatinine"] = np.asarray(usual * np.where(ratio < 1, ratio ** (-1 / 1.2), ratio ** (1 / below)))
    return {lab.name: np.clip(np.round(values[lab.name], lab.decimals), lab.lower, lab.upper) for lab in _LABS}
