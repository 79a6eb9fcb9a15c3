"""Section 4.3 of the paper: redescriptions that are read aloud, with what they report and what is true. Not private.

    python readings.py                 # prints the two tables
    python readings.py --out FOLDER    # writes them into a folder, which is made
    python readings.py --commit        # writes them into results/ and onto the page

As in the paper, both algorithms run five times (`--runs`) at epsilon 1 and distribution d3, and one redescription of
all these runs is chosen. The paper does not say by what, so there are four ways: the highest reported index of all, and
of those with a star; the lowest reported p-value, of equal ones the highest reported index; and the highest true index,
for which one needs the rows. It reads DPFRAMEWORK_DATA/species_climate_SA/.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

import dpframework as dpf
from dpframework.lab.clinic import clinic_table
from dpframework.lab.evaluation.exact_redescription_quality import exact_counts
from dpframework.lab.experiment.user_functions import Code
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.shorter_description_text import sentence

FOLDER = Path(__file__).parent
TREES = FOLDER.parent / "tree-redescriptions"
EPSILON, RUNS, SEED = 1, 5, 2022
SETTINGS = ("as published", "bounded", "default")
#: A redescription of a run, with whether it has a star, and with its exact counts.
Found = tuple[Redescription, bool, Redescription]
#: By what one is chosen: the largest wins, and None cannot be chosen.
WAYS: Mapping[str, Callable[[Found], tuple[float, ...] | None]] = {
    "reported index": lambda one: (one[0].jaccard,),
    "reported index, with a star": lambda one: (one[0].jaccard,) if one[1] else None,
    "reported p-value": lambda one: None if one[0].p_value is None else (-one[0].p_value, one[0].jaccard),
    "true index, not private": lambda one: (one[2].jaccard,),
}


def tables() -> dict[str, Callable[[int], dpf.Table]]:
    """Return what makes the table of a run, by the names of methods.toml."""
    species = Path(os.environ["DPFRAMEWORK_DATA"]) / "species_climate_SA"
    views = (species / "left_species.csv", species / "right_climate.csv")

    def real(seed: int) -> dpf.Table:
        return dpf.read_two_views(*views, dpf.Schema.load(TREES / "species.schema.toml"), id="id")

    mammals = Code("generators.py:mammal_like", TREES).load()
    return {
        "mammal-like": lambda seed: mammals(seed=seed, rows=2575),
        "species": real,
        "clinic": lambda seed: clinic_table(seed=seed),
    }


def found_in_runs(make: Callable[[int], dpf.Table], values: Mapping[str, int], settings: str, runs: int) -> list[Found]:
    """Return what both algorithms find in some runs, each on a table that is drawn anew if it is made up."""
    file = tomllib.loads((FOLDER / "methods.toml").read_text(encoding="utf-8"))
    given = {one["name"]: one for one in file["method"]}
    every: list[Found] = []
    for run in range(runs):
        table = make(SEED + run)
        for kind in ("ES", "CS"):
            method = given[f"{kind} {settings}"]
            params: dict[str, Any] = {k: values.get(str(v).strip("{}"), v) for k, v in method["params"].items()}
            study = dpf.Study(table.schema, epsilon=EPSILON)
            study.add("found", dpf.miner(method["miner"], epsilon=EPSILON, **{"budget": "d3", **params}))
            found = study.run(table, seed=SEED + run)["found"]
            every += zip(found, found.starred, exact_counts(found, table), strict=True)
    return every


def chosen(every: Sequence[Found], way: str) -> Found | None:
    """Return the redescription that is chosen in some way, the first of equal ones, or None.

    Examples
    --------
    >>> chosen([], "reported index") is None
    True
    """
    ranked = [(worth, -k) for k, one in enumerate(every) if (worth := WAYS[way](one)) is not None]
    return every[-max(ranked)[1]] if ranked else None


def readings(runs: int) -> dict[str, pl.DataFrame]:
    """Return the redescription of each table and settings with its text, and the numbers of each way to choose."""
    file = tomllib.loads((FOLDER / "methods.toml").read_text(encoding="utf-8"))
    values = {data["name"]: data["values"] for data in file["data"]}
    texts, numbers = [], []
    for data, make in tables().items():
        for settings in SETTINGS:
            every = found_in_runs(make, values[data], settings, runs)
            at, line = {"data": data, "settings": settings}, {"found": str(len(every))}
            for way in WAYS:
                one = chosen(every, way)
                line[way] = "none" if one is None else _numbers(one)
            numbers.append(at | line)
            one = chosen(every, next(iter(WAYS)))
            if one is not None:
                counts = dict(zip(("reported", "true", "true p"), _numbers(one).split(" / "), strict=True))
                texts.append(at | counts | {"redescription": f"{sentence(one[0].left)} ~ {sentence(one[0].right)}"})
    return {"readings": pl.DataFrame(texts), "readings-ways": pl.DataFrame(numbers)}


def _numbers(one: Found) -> str:
    reported, _, exact = one
    return f"{reported.jaccard:.3f} / {exact.jaccard:.3f} / {exact.p_value:.0e}"


def main(arguments: list[str] | None = None) -> None:
    """Compute the tables, then write them."""
    given = Code("table_files.py:asked_runs", FOLDER.parent).load()(__doc__, RUNS, "species_climate_SA/", arguments)
    found = readings(given.runs)
    Code("table_files.py:write_tables", FOLDER.parent).load()(found, {}, given.out, given.commit, FOLDER)


if __name__ == "__main__":
    main()
