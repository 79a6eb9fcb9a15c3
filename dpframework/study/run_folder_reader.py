"""Read the folder of a run: the plan, and each result as an object of its miner's result class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import read_text
from dpframework.facts.json_reader_and_schema_check import parsed_json, require_form
from dpframework.facts.privacy_losses import PrivacyLoss, exact
from dpframework.facts.schema import Schema
from dpframework.facts.toml import prefix_errors
from dpframework.plan.nodes import Step
from dpframework.plan.spend_block_requests import request_step, split_request
from dpframework.results.matrix import Matrix
from dpframework.results.result import StoredResult
from dpframework.run.run_scopes_and_charges import Charge
from dpframework.study.plan_steps_of_releases import path_finder
from dpframework.study.plugin_registry import registry
from dpframework.study.results import PLAN, RESULTS, RESULTS_VERSION, Results, ResultTexts
from dpframework.study.study_plan_totals_and_findings import StudyPlan


def read_record(source: Path) -> Mapping[str, Any]:
    """Return the content of a file of results, or of a run's folder, in the form of `Results.to_dict`.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a file of results. The message names the file.
    """
    if source.is_dir():
        if not (source / RESULTS).exists():
            raise InputError(
                f"{source}: is not the folder of a run; there is no {RESULTS} in it; give the folder that --out named"
            )
        source = source / RESULTS
    with prefix_errors(f"{source}: "):
        form = parsed_json(read_text(source))
        if not isinstance(form, dict) or "results_version" not in form:
            raise InputError("these are not results that dpframework wrote")
        if form["results_version"] != RESULTS_VERSION:
            raise InputError(
                f"results version {form['results_version']!r} cannot be read; "
                f"this dpframework reads version {RESULTS_VERSION}"
            )
        with prefix_errors("these are not results that dpframework wrote: "):
            require_form(form, "dpframework.study", "results.schema.json")
        return form


def load_results(folder: Path) -> Results:
    """Read the folder of a run (see `Results.load`)."""
    form = read_record(folder)
    plan = StudyPlan.from_json(read_text(folder / PLAN), source=str(folder / PLAN))
    if form["plan"] != plan.hash:
        raise InputError(
            f"{folder}: {RESULTS} is of another plan ({form['plan'][:12]}) than {PLAN} ({plan.hash[:12]}); copy the "
            f"{PLAN} of that run beside {RESULTS}"
        )
    with prefix_errors(f"{folder / RESULTS}: "):
        about, matrices = form["about"], form["matrices"]
        if about["schema"] is not None:
            schema = Schema.from_dict(about["schema"])
            plan.require_schema(schema)
            plan = attrs.evolve(plan, schema=schema)
        told = {
            name: ResultTexts(form["texts"].get(name, ""), tuple(map(Matrix.from_dict, matrices.get(name, ()))))
            for name in form["results"]
        }
        # A release is stored as its path and the number of its step. Older files have the paths alone.
        place = path_finder(plan)
        placed = list(plan.placed_steps())
        first = {path: number for number, (path, _) in reversed(list(enumerate(placed)))}
        paths = form["charges"]
        numbers = form.get("steps", [first.get(place(path), -1) for path in paths])
        charges = []
        for k, path in enumerate(paths):
            number = numbers[k] if k < len(numbers) else -1
            step = placed[number][1] if 0 <= number < len(placed) and placed[number][0] == place(path) else None
            charge = None if step is None else _charge(path, step, plan)
            if charge is None:
                raise InputError(f"a release '{path}' was charged, but the plan does not hold it")
            charges.append(charge)
        spent = None  # None if there was no valid total
        if form["spent_delta"] is not None:
            epsilon = None if form["spent"] is None else exact(form["spent"], "'spent'")
            spent = PrivacyLoss(epsilon, delta=exact(form["spent_delta"], "'spent_delta'"))
        return Results(
            {name: _result(name, of_one, plan) for name, of_one in form["results"].items()},
            plan,
            form["private"],
            form["accounting"],
            tuple(charges),
            spent,
            form.get("run"),
            form.get("head"),
            form.get("stopped"),
            about["data"],
            about["time"],
            about["version"],
            told,
            form.get("public_seed"),
            form.get("period"),
            form.get("samplers"),
            form.get("counted"),
        )


def _charge(path: str, step: Step, plan: StudyPlan) -> Charge | None:
    """Return the charge of a release. None if its path does not fit its step, or the step has no valid claim.

    The path of a release in a block ends with the parameters that the miner chose.
    """
    block, (_, amounts) = plan.index.place(step).block, split_request(path)
    if bool(amounts) != (block is not None):
        return None
    if block is None:
        calibration, kind = plan.calibration(step), None
    else:
        kind = step
        step = request_step(kind, amounts)
        calibration = plan.calibrate(step, in_parts=plan.in_parts(kind))
    return None if calibration is None else Charge(path, step, calibration, kind)


def _result(name: str, form: Any, plan: StudyPlan) -> Any:
    """Return one result as an object of its miner's result class, or as plain JSON if there is no such class."""
    miner = registry().kind(plan.miners.get(name, {}).get("miner", ""))
    kind: type[StoredResult] | None = None if miner is None else miner.result
    with prefix_errors(f"result '{name}': "):
        return form if kind is None else kind.kind_of(form).from_dict(form)
