"""A worker of a Dask cluster is killed in the middle of each miner: the releases and the charges stay the same.

    python tests/benchmarks/killed_workers.py
    python tests/benchmarks/killed_workers.py count dp-id3    # some miners

Each built-in miner is run on the tables of its examples, in memory, and on two workers, one of which is killed before
the release in the middle. Examples with a query that gathers rows, or with samples, are listed as refused.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import dpframework as dpf
from dpframework.facts.attributes import Numeric
from dpframework.run import Example
from dpframework.study.plugin_registry import registry

sys.path.insert(0, str(Path(__file__).parents[1]))
from killing import KillsAWorker

ROWS = 60


def study_of(example: Example) -> dpf.Study | None:
    """Return a study of an example, under a relation that it claims something under."""
    for relation in ("replace-one", "add-or-remove-one"):
        study = dpf.Study(example.schema, epsilon=10**9, relation=relation, delta=example.delta)
        study.add("example", example.miner)
        plan = study.plan()
        allowed = dpf.Study(
            example.schema, epsilon=10**9, relation=relation, delta=example.delta, allow=plan.assumptions
        )
        allowed.add("example", example.miner)
        if not allowed.plan().refusals():
            return allowed
    return None


def write(folder: Path, schema: dpf.Schema) -> dpf.TableFiles:
    """Write random rows of a schema into two files."""
    rng = np.random.default_rng(0)
    rows = schema.rows or min(ROWS, schema.max_rows or ROWS)
    columns = {
        a.name: rng.uniform(a.lower, a.upper, rows)
        if isinstance(a, Numeric)
        else np.array(a.labels)[rng.integers(0, a.size, rows)]
        for a in schema
    }
    frame = pl.DataFrame(columns)
    for k, part in enumerate(np.array_split(np.arange(rows), 2)):
        frame[part].write_parquet(folder / f"{k}.parquet")
    return dpf.TableFiles(folder, schema)


def main() -> None:
    """Print a line an example."""
    wrong = 0
    with dpf.Dask(workers=2) as engine:
        for name, brought in registry().miners.items():
            for kind, example in brought.component.examples().items() if name in (sys.argv[1:] or [name]) else ():
                wrong += not tried(engine, f"{name} ({kind})", example)
    raise SystemExit(wrong)


def tried(engine: dpf.Dask, name: str, example: Example) -> bool:
    """Run one example, and tell whether all is as it should be."""
    study = study_of(example)
    if study is None:
        print(f"{name:<32}  no claim without more rows")
        return True
    try:
        study.plan(engine)
    except dpf.InputError as error:
        print(f"{name:<32}  refused: {error}")
        return True
    with tempfile.TemporaryDirectory() as temporary:
        files = write(Path(temporary), example.schema)
        expected = study.run(files, seed=3)
        if engine._client is not None:
            engine._client.wait_for_workers(2)  # the one that was killed before
        observer = KillsAWorker(engine, -(-len(expected.charges) // 2))
        found = study.run(files, seed=3, engine=engine, observers=[observer])
    same = str(found["example"]) == str(expected["example"])
    once = observer.charges == [charge.path for charge in expected.charges]
    print(f"{name:<32}  {len(observer.charges):>4} releases, killed before {observer.at}: ", end="")
    print(f"{'the same' if same else 'OTHER'} releases, {'each charged once' if once else 'OTHER CHARGES'}", flush=True)
    return same and once


if __name__ == "__main__":
    main()
