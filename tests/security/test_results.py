"""Results that somebody changed: each is refused in one sentence, or is a result that can be shown like any other."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpframework as dpf
from dpframework.cli import main

MINERS = {
    "tree": ("dp-id3", {"target": "ill", "max_depth": 2}),
    "exact tree": ("dp-tree", {"target": "city", "max_depth": 1}),
    "histogram": ("histogram", {"attribute": "city"}),
    "crosstab": ("crosstab", {"attributes": ["city", "ill"]}),
    "count": ("count", {}),
    "quantile": ("quantile", {"attribute": "age", "quantile": "0.5"}),
    "additive": ("dp-additive", {"target": "ill"}),
    "regression": ("dp-additive-regression", {"target": "age"}),
    "classifier": ("dp-classifier", {"target": "ill"}),
    "distances": ("dp-dilca", {"context_size": 1}),
    "serenade": ("serenade-cs", {"min_support": 5}),
    "matched": ("matched-trees", {}),
    "synthetic": ("synthetic-table", {"rounds": 2, "method": "rounds"}),
}
VALUES = [None, "x", "", -1, 0, 1.5, True, [], {}, [1], {"a": 1}, 1e300, 10**30, "é\n", [[None]], "delete"]
CHANGES = 60  # of each result: those that crash are many, so few are enough to meet some


@pytest.fixture(scope="module")
def results():
    """Results of every class that a built-in miner has."""
    attributes = [
        dpf.Boolean("ill", view="left"),
        dpf.Numeric("age", 0, 100, cuts=[18, 65], view="left"),
        dpf.Categorical("city", ["a", "b", "c"], missing=True, view="right"),
        dpf.Numeric("pay", 0, 10, bins=4, view="right"),
    ]
    schema = dpf.Schema(attributes, max_rows=500)
    study = dpf.Study(schema, epsilon=200)
    for name, (miner, parameters) in MINERS.items():
        study.add(name, dpf.miner(miner, **parameters, epsilon=10))
    ages = [k * 37 % 100 for k in range(200)]
    columns = {
        "ill": [age > 50 for age in ages],
        "age": ages,
        "city": ["abc"[age % 3] for age in ages],
        "pay": [age / 10 for age in ages],
    }
    return study.run(dpf.tables.table_from_columns(columns, schema), seed=1)


def places(form: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a form."""
    items = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(form: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a form with another value at one place, or without it."""
    form = copy.deepcopy(form)
    inner = form
    for key in path[:-1]:
        inner = inner[key]
    if value == "delete":
        del inner[path[-1]]
    else:
        inner[path[-1]] = copy.deepcopy(value)
    return form


@pytest.mark.parametrize("name", MINERS)
def test_what_is_read_can_be_written_and_read_again(results, name):
    form = json.loads(results.to_json())["results"][name]
    again = type(results[name]).from_dict(form)
    assert json.loads(again.to_json()) == form
    assert str(again) == str(results[name])


@pytest.mark.parametrize("name", MINERS)
def test_a_changed_result_is_refused_or_can_be_shown(results, name):
    form = json.loads(results.to_json())["results"][name]
    draw = random.Random(1)
    all_places = list(places(form))
    refused = 0
    for _ in range(CHANGES):
        try:
            found = type(results[name]).from_dict(changed(form, draw.choice(all_places), draw.choice(VALUES)))
        except dpf.InputError:
            refused += 1
            continue
        for show in (str, lambda one: one.to_json(), lambda one: one._repr_html_()):
            show(found)
    assert refused


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("exact tree", ("tree", "root", "probabilities"), [[None]]),
        ("exact tree", ("tree", "root", "probabilities"), []),
        ("histogram", ("attributes", 0, "name"), None),
        ("crosstab", ("attributes", 0, "name"), []),
        ("additive", ("intercept",), None),
        ("additive", ("terms", 0, "values"), []),
        ("additive", ("terms", 0, "attribute", "values", 0), "delete"),
        ("classifier", ("model", "terms", 0, "values"), [1]),
        ("distances", ("distances", 0, "context"), [1]),
    ],
)
def test_changes_that_crashed(results, tmp_path, capsys, name, path, value):
    """Each was met by `str`, `to_json` or `matrices` of the result, long after it was read."""
    out = tmp_path / "out"
    results.save(out)
    form = json.loads(Path(out, "results.json").read_text())
    if name == "additive" and path[:1] == ("terms",) and "attribute" in path:
        path = ("terms", _with_labels(form["results"][name]["terms"]), *path[2:])
    form["results"][name] = changed(form["results"][name], path, value)
    Path(out, "results.json").write_text(json.dumps(form))
    assert main(["report", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert f"result '{name}': " in said
    assert said.count("\n") == 1
    assert "bug" not in said


@pytest.mark.parametrize("number", [0.0, 1e0, "0", True])
def test_the_number_of_a_step_is_a_whole_one(results, tmp_path, capsys, number):
    """JSON Schema takes 0.0 for an integer; Python takes no such index."""
    out = tmp_path / "out"
    results.save(out)
    form = json.loads(Path(out, "results.json").read_text())
    form["steps"][0] = number
    Path(out, "results.json").write_text(json.dumps(form))
    assert main(["report", str(out)]) == 2
    assert "field steps[0] must be integer" in capsys.readouterr().err


def _with_labels(terms: list[Any]) -> int:
    return next(k for k, term in enumerate(terms) if "values" in term["attribute"])
