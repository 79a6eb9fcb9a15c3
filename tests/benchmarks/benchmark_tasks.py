"""A classification task of a real data set, in each form that a tree is fitted on: table, array, dataframe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from dpframework_trees import DPID3, DPID3Classifier, DPTree
from numpy.typing import NDArray

import dpframework as dpf

REPOSITORY = Path(__file__).resolve().parents[2]
TARGETS = {"adult": "income", "mushroom": "class"}
FORMS = ("table", "array", "frame")


def default_data() -> Path:
    """Return the folder of real data sets: $DPFRAMEWORK_DATA, or the shared one beside the repository."""
    return Path(os.environ.get("DPFRAMEWORK_DATA", REPOSITORY.parent / "shared" / "data"))


@attrs.frozen(eq=False)
class Task:
    """A table, and the class to predict.

    Attributes
    ----------
    name
        The data set, a key of `TARGETS`.
    table
        Its rows on the public grid of `docs/examples`.
    source
        The file that they come from.
    times
        How often the rows are repeated.
    """

    name: str
    table: dpf.Table
    source: Path
    times: int

    @classmethod
    def read(cls, data: Path, name: str, *, times: int = 1) -> Task:
        """Read a data set, and repeat its rows."""
        schema = dpf.Schema.load(REPOSITORY / "docs" / "examples" / name / f"{name}.schema.toml")
        source = data / name / f"{name}.csv"
        table = dpf.read_table(source, schema)
        if times > 1:
            more = attrs.evolve(schema, max_rows=None if schema.max_rows is None else schema.max_rows * times)
            values = {column: np.tile(raw, times) for column, raw in table.values.items()}
            table = dpf.Table.from_codes(more, np.tile(table.codes, times), values)
        return cls(name, table, source, times)

    @property
    def target(self) -> str:
        """The class attribute's name."""
        return TARGETS[self.name]

    @property
    def schema(self) -> dpf.Schema:
        """The table's schema."""
        return self.table.schema

    @property
    def features(self) -> list[str]:
        """The other attributes' names."""
        return [name for name in self.schema.names if name != self.target]

    @property
    def y(self) -> NDArray[np.int64]:
        """The class codes, shape (rows,)."""
        return self.table.codes[self.schema.index(self.target)].astype(np.int64)

    def subset(self, rows: NDArray[np.int64]) -> dpf.Table:
        """Return some rows, already encoded."""
        values = {column: raw[rows] for column, raw in self.table.values.items()}
        return dpf.Table.from_codes(self.schema, self.table.codes[:, rows], values)

    def array(self) -> NDArray[np.float64]:
        """Return the features, shape (rows, features): numbers as they are, other values as ordinal codes."""
        columns = [self.table.values.get(name, self.table.codes[self.schema.index(name)]) for name in self.features]
        return np.column_stack(columns).astype(np.float64)

    def array_schema(self) -> dpf.Schema:
        """Return the public facts about `array`, then about `y`."""
        attributes = [self.schema[name] for name in (*self.features, self.target)]
        coded = [
            a if isinstance(a, dpf.Numeric) else dpf.Categorical(a.name, values=[str(code) for code in range(a.size)])
            for a in attributes
        ]
        return attrs.evolve(self.schema, attributes=coded)

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the public bounds of `array`, lower and upper, shape (features,) each."""
        attributes = [self.schema[name] for name in self.features]
        pairs = [(a.lower, a.upper) if isinstance(a, dpf.Numeric) else (0, a.size - 1) for a in attributes]
        lower, upper = np.array(pairs, dtype=np.float64).T
        return lower, upper

    def frame(self) -> tuple[Any, Any]:
        """Return features and class as in the file: a pandas dataframe of numbers and texts, and a series."""
        import pandas as pd

        frame = pd.read_csv(self.source, keep_default_na=False, na_values=[""])
        frame = pd.concat([frame] * self.times, ignore_index=True)
        return frame[self.features], frame[self.target]

    def save(self, path: Path, **more: NDArray[Any]) -> None:
        """Write what `peers.py` reads."""
        lower, upper = self.bounds()
        classes = np.arange(self.schema[self.target].size)
        np.savez(path, X=self.array(), y=self.y, lower=lower, upper=upper, classes=classes, **more)


def fit_table(table: dpf.Table, miner: DPID3 | DPTree, *, seed: int | None) -> Any:
    """Plan, check and run a study of one tree, and return the tree."""
    study = dpf.Study(table.schema, epsilon=miner.epsilon, allow=["mcmc-converged"])
    study.add("tree", miner)
    return study.run(table, seed=seed)["tree"].tree


@attrs.frozen(eq=False)
class Fit:
    """A fit of the default tree at epsilon 1, prepared, to be made by calling it: again and again, and pickled.

    Attributes
    ----------
    rows
        A table, or features X.
    classes
        The class attribute's name, or y.
    schema
        The public facts about them.
    seed
        None for private randomness.
    """

    rows: Any
    classes: Any
    schema: dpf.Schema
    seed: int | None

    @classmethod
    def of(cls, task: Task, form: str, *, seed: int | None) -> Fit:
        """Prepare a fit on one of `FORMS`."""
        if form == "table":
            return cls(task.table, task.target, task.schema, seed)
        if form == "array":
            return cls(task.array(), task.y, task.array_schema(), seed)
        return cls(*task.frame(), task.schema, seed)

    def __call__(self) -> Any:
        """Make the fit, and return the tree."""
        if isinstance(self.rows, dpf.Table):
            return fit_table(self.rows, DPID3(target=self.classes, epsilon=1), seed=self.seed)
        model = DPID3Classifier(epsilon=1.0, schema=self.schema, random_state=self.seed)
        return model.fit(self.rows, self.classes).tree_
