"""The demo. It plans, checks and runs trees on the synthetic clinic, and compares them with planted relations."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from dpframework.checks import Finding
from dpframework.facts.errors import PlanRefused
from dpframework.facts.schema import Schema
from dpframework.facts.toml import read_toml
from dpframework.lab.clinic import LABS, PLANTED, PlantedRelation, clinic_schema, clinic_table
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.run.observers import Observer
from dpframework.study.plugin_registry import registry
from dpframework.study.results import Results
from dpframework.study.study import Study
from dpframework.study.study_file import add_miner
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.tables.coded_table import Table
from dpframework.tables.in_process_engines import Threads

FRESH_SEED = 1879  # the seed of the new patients on whom trees are compared with the truth


@functools.cache
def _study_form() -> dict[str, Any]:
    """Return the contents of the demo's study file, which is next to this module."""
    return read_toml(Path(__file__).with_suffix(".toml"), "the demo's study")


def budget() -> str:
    """Return the demo's total epsilon."""
    return str(_study_form()["privacy"]["epsilon"])


def _targets() -> dict[str, str]:
    """Return the attribute that each step of the study predicts."""
    return {step["name"]: step["params"]["target"] for step in _study_form()["step"]}


def demo_study(schema: Schema, *, one_too_many: bool = False) -> Study:
    """Return the demo's study. With `one_too_many`, it has one more tree than its budget covers."""
    described = _study_form()
    study = Study(schema, epsilon=budget(), allow=["one-row-per-person"])  # Each patient has one row in the clinic.
    for step in described["step"] + (described["one_too_many"] if one_too_many else []):
        parameters = {"epsilon": step["epsilon"], "attributes": LABS, **step["params"]}
        add_miner(study, step["name"], step["miner"], parameters, registry())
    return study


@final
@attrs.frozen
class Comparison:
    """A comparison of one tree with the truth on new patients. It is possible because the clinic is synthetic.

    Attributes
    ----------
    step
        The tree's name in the study.
    planted
        The relation that the generator planted.
    accuracy, majority
        The share of patients whose diagnosis the tree predicts correctly, and the same share if the more common answer
        were predicted for all patients.
    found, missed
        The attributes of the planted relation that the tree tests, and those that it does not test.
    overlap
        The Jaccard index of two sets of patients: those for whom the tree predicts the diagnosis, and those for whom
        the right side of the planted relation holds.
    rules
        The tree's rules that predict the diagnosis.
    """

    step: str
    planted: PlantedRelation
    accuracy: float
    majority: float
    found: tuple[str, ...]
    missed: tuple[str, ...]
    overlap: float
    rules: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        form = attrs.asdict(self, filter=attrs.filters.exclude("planted"))
        return {
            **form,
            "planted": str(self.planted),
            "found": list(self.found),
            "missed": list(self.missed),
            "rules": list(self.rules),
        }


@final
@attrs.frozen
class Demo:
    """The plans, results and comparisons of a demo.

    Attributes
    ----------
    refused
        The reason why the study with one tree too many was refused, as the error gives it.
    opened_when_refused
        Whether that study's table was opened, which must not happen.
    plan
        The plan of the study that fits.
    findings
        The findings of the checks about that plan.
    results
        The results of the run of that plan.
    comparisons
        The comparison of each tree with the truth.
    seconds
        The wall-clock seconds of the run.
    """

    refused: str
    opened_when_refused: bool
    plan: StudyPlan
    findings: tuple[Finding, ...]
    results: Results
    comparisons: tuple[Comparison, ...]
    seconds: float

    def target(self, step: str) -> str:
        """Return the diagnosis that a tree predicts."""
        return _targets()[step]


def run_demo(
    *,
    seed: int | None = None,
    patients: int = 20_000,
    progress: Callable[[], AbstractContextManager[Observer]] | None = None,
) -> Demo:
    """Try a study above its budget, which is refused. Then run one within its budget, and compare trees with the truth.

    Parameters
    ----------
    seed
        The seed of the run's noise. It is for experiments only, since a run with a seed is not private. The clinic's
        patients are the same with any seed.
    patients
        The number of patients of the clinic.
    progress
        A function that returns a context manager with an observer, such as one that shows the progress of the run. None
        for no observer.
    """
    schema = attrs.evolve(clinic_schema(), about_rows=patients)
    opened: list[bool] = []

    def read() -> Table:
        opened.append(True)
        return clinic_table(patients)

    refused = "it was not refused"
    try:
        demo_study(schema, one_too_many=True).run(read)
    except PlanRefused as error:
        refused = str(error)
    opened_when_refused = bool(opened)
    study = demo_study(schema)
    plan = study.plan()
    found = plan.check()
    start = time.perf_counter()
    if progress is None:
        results = study.run(read, seed=seed, engine=Threads())
    else:
        with progress() as observer:
            results = study.run(read, seed=seed, engine=Threads(), observers=[observer])
    seconds = time.perf_counter() - start
    fresh = clinic_table(patients, seed=FRESH_SEED)
    return Demo(refused, opened_when_refused, plan, tuple(found), results, comparisons(results, fresh), seconds)


def comparisons(results: Results, fresh: Table) -> tuple[Comparison, ...]:
    """Compare each tree of the demo with its planted relation, on patients from whom the trees were not mined."""
    columns = columns_of(fresh)
    compared = []
    for name, target in _targets().items():
        result, planted = results[name], next(p for p in PLANTED if p.left.literals()[0].attribute == target)
        truth, expected = columns.codes(target) == 1, planted.right.holds(columns)
        said = np.asarray(result.tree.predict(fresh)) == "true"
        tested = {literal.attribute for rule in result.rules() for literal in rule.description.literals()}
        wanted = tuple(dict.fromkeys(literal.attribute for literal in planted.right.literals()))
        compared.append(
            Comparison(
                name,
                planted,
                accuracy=float((said == truth).mean()),
                majority=float(max(truth.mean(), 1 - truth.mean())),
                found=tuple(a for a in wanted if a in tested),
                missed=tuple(a for a in wanted if a not in tested),
                overlap=float((said & expected).sum() / max((said | expected).sum(), 1)),
                rules=tuple(str(rule) for rule in result.rules() if rule.label == "true"),
            )
        )
    return tuple(compared)
