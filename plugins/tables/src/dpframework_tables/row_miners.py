"""Miners that are run on synthetic rows. This is post-processing, which costs nothing and needs no noise.

A miner without a budget gets an epsilon so large that its noise is far below one row. Its run is seeded from the public
seed of the rows, so its findings follow from the rows and this seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from dpframework.facts import InputError, Schema
from dpframework.run import Miner
from dpframework.study import Study, miner

if TYPE_CHECKING:
    from dpframework.tables import Table

#: The epsilon of a miner on synthetic rows: a count is exact, except with a probability below e**-10**5.
EPSILON = 10**6
_ALLOWED = ("large-epsilon", "mcmc-converged", "real-arithmetic", "one-row-per-person")

Forms: TypeAlias = "dict[str, dict[str, Any]]"


def mined_forms(given: Mapping[str, Miner | Mapping[str, Any]] | None) -> Forms:
    """Return the name and the parameters of each miner, JSON-safe, as `Miner.to_dict` writes them.

    Parameters
    ----------
    given
        By the names of their findings: miners, forms of miners, or mappings of "miner" and its parameters as in a study
        file. A mapping without epsilon or rho gets an epsilon that makes noise vanish (`EPSILON`).

    Raises
    ------
    InputError
        If something else is given, or no miner has this name or takes these parameters.
    """
    found = {}
    for name, one in (given or {}).items():
        if isinstance(one, Miner):
            found[name] = one.to_dict()
            continue
        if not isinstance(one, Mapping) or not isinstance(one.get("miner"), str):
            raise InputError(f"miners.{name} is {one!r}; give a miner's name as 'miner', and its parameters beside it")
        inner = one.get("parameters")
        parameters = dict(inner) if isinstance(inner, Mapping) else {k: v for k, v in one.items() if k != "miner"}
        form = {"miner": one["miner"], "parameters": {k: v for k, v in parameters.items() if v is not None}}
        found[name] = miner_of(name, form).to_dict()
    return found


def miner_of(name: str, form: Mapping[str, Any]) -> Miner:
    """Return a miner from its form.

    Raises
    ------
    InputError
        If the miner is not installed, or refuses its parameters.
    """
    parameters = {alias: value for alias, value in form["parameters"].items() if value is not None}
    if not {"epsilon", "rho"} & set(parameters):
        parameters["epsilon"] = EPSILON
    try:
        return miner(form["miner"], **parameters)
    except InputError as error:
        raise InputError(f"miners.{name}: {error}") from None


def study_on(schema: Schema, rows: int, name: str, form: Mapping[str, Any]) -> Study:
    """Return the study of one miner on synthetic rows.

    Parameters
    ----------
    schema
        The schema of the rows.
    rows
        The number of rows.
    name
        The name of the finding.
    form
        The form of the miner: its name and its parameters.

    Raises
    ------
    InputError
        If the miner refuses the schema.
    """
    counted = attrs.evolve(schema, rows=rows, about_rows=None, max_rows=None)
    study = Study(counted, epsilon=10 * EPSILON, delta="1e-6", relation="replace-one", allow=_ALLOWED)
    try:
        study.add(name, miner_of(name, form))
    except InputError as error:
        raise InputError(f"miners.{name}: {error}") from None
    return study


def mine(table: Table, name: str, form: Mapping[str, Any], seed: int) -> Any:
    """Return the result of a miner on synthetic rows.

    Parameters
    ----------
    table
        The synthetic rows.
    name
        The name of the finding.
    form
        The form of the miner: its name and its parameters.
    seed
        The public seed of the run.
    """
    assert table.schema.rows is not None  # `SyntheticRows.to_table` sets it
    return study_on(table.schema, table.schema.rows, name, form).run(table, seed=seed)[name]
