"""The folder of a run, read again: its plan, and its results as the classes that their miners name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import read_text
from dpframework.facts.formats import require_form
from dpframework.facts.privacy import PrivacyLoss, exact
from dpframework.facts.schema import Schema
from dpframework.facts.toml import begun_with
from dpframework.results.kept import Kept
from dpframework.results.matrix import Matrix
from dpframework.run.scope import Charge
from dpframework.study.registry import registry
from dpframework.study.results import PLAN, RESULTS, RESULTS_VERSION, Results, Told
from dpframework.study.study_plan import StudyPlan

_NUMBER = re.compile(r" \d+$")


def read_record(source: Path) -> Mapping[str, Any]:
    """Read a file of results, or that of a run's folder, as the JSON that `Results.to_dict` returned.

    Raises
    ------
    InputError
        If it cannot be read, or is something else: one sentence that names the file.
    """
    if source.is_dir():
        if not (source / RESULTS).exists():
            raise InputError(f"{source}: is not the folder of a run; there is no {RESULTS} in it")
        source = source / RESULTS
    with begun_with(f"{source}: "):
        try:
            form = json.loads(read_text(source))
        except (ValueError, RecursionError) as error:
            raise error if isinstance(error, InputError) else InputError("is not JSON") from None
        if not isinstance(form, dict) or "results_version" not in form:
            raise InputError("these are not results that dpframework wrote")
        if form["results_version"] != RESULTS_VERSION:
            raise InputError(
                f"results version {form['results_version']!r} cannot be read; "
                f"this dpframework reads version {RESULTS_VERSION}"
            )
        with begun_with("these are not results that dpframework wrote: "):
            require_form(form, "dpframework.study", "results.schema.json")
        return form


def loaded(folder: Path) -> Results:
    """Read the folder of a run (see `Results.load`)."""
    form = read_record(folder)
    plan = StudyPlan.from_json(read_text(folder / PLAN), source=str(folder / PLAN))
    if form["plan"] != plan.hash:
        raise InputError(f"{folder}: {RESULTS} is of another plan than {PLAN}; run the study again")
    with begun_with(f"{folder / RESULTS}: "):
        return _results(form, plan)


def _results(form: Mapping[str, Any], plan: StudyPlan) -> Results:
    about, matrices = form["about"], form["matrices"]
    if about["schema"] is not None:
        schema = Schema.from_dict(about["schema"])
        plan.require_schema(schema)
        plan = attrs.evolve(plan, schema=schema)
    told = {
        name: Told(form["texts"].get(name, ""), tuple(map(Matrix.from_dict, matrices.get(name, ()))))
        for name in form["results"]
    }
    return Results(
        {name: _result(name, of_one, plan) for name, of_one in form["results"].items()},
        plan,
        form["private"],
        form["accounting"],
        _charges(form["charges"], plan),
        _spent(form),
        form.get("run"),
        form.get("head"),
        form.get("stopped"),
        about["data"],
        about["time"],
        about["version"],
        told,
    )


def _result(name: str, form: Any, plan: StudyPlan) -> Any:
    """Return one result as its miner's class of results; as it stands, without one."""
    registered = registry().miners.get(plan.miners.get(name, {}).get("miner", ""))
    kind: type[Kept] | None = None if registered is None else registered.component.result
    with begun_with(f"result '{name}': "):
        return form if kind is None else kind.from_dict(form)


def _spent(form: Mapping[str, Any]) -> PrivacyLoss | None:
    """Return what was spent; None where no total is known."""
    if form["spent_delta"] is None:
        return None
    epsilon: Fraction | None = None if form["spent"] is None else exact(form["spent"], "'spent'")
    return PrivacyLoss(epsilon, delta=exact(form["spent_delta"], "'spent_delta'"))


def _charges(paths: Iterable[str], plan: StudyPlan) -> tuple[Charge, ...]:
    """Return the releases that were made, with the steps that the plan holds at their places."""
    place = places(plan)
    steps = {path: (step, calibration) for path, step, calibration in reversed(list(plan.calibrated_steps()))}
    charges = []
    for path in paths:
        if place(path) not in steps:
            raise InputError(f"a release '{path}' was charged, which the plan does not hold")
        charges.append(Charge(path, *steps[place(path)]))
    return tuple(charges)


def places(plan: StudyPlan) -> Callable[[str], str]:
    """Return what finds the place in the plan of a release that was made.

    A run numbers the parts that a template stands for ("parts 3/counts"); the plan writes it once ("parts/counts").
    """
    root: dict[str, Any] = {}
    for path, _ in plan.placed_steps():
        inner = root
        for scope in path.split("/"):
            inner = inner.setdefault(scope, {})

    def found(inner: dict[str, Any], scopes: tuple[str, ...]) -> str | None:
        if not scopes:
            return ""
        for scope in (scopes[0], _NUMBER.sub("", scopes[0])):
            rest = found(inner[scope], scopes[1:]) if scope in inner else None
            if rest is not None:
                return f"{scope}/{rest}"
        return None

    def place(path: str) -> str:
        planned = found(root, tuple(path.split("/")))
        return path if planned is None else planned.removesuffix("/")

    return place
