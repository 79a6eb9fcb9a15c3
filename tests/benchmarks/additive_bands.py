"""How far noise moves the functions of dp-additive, beside the two bands that a model shows.

    python tests/benchmarks/additive_bands.py

Two standard deviations over twelve seeded fits of the same rows (their number is public, replace-one): of the middle
one of all values of all attributes, and in brackets of the largest tenth. `beyond` is the largest ratio of what a value
really moves to its wide band: above 1 the band would be wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmark_tasks import default_data
from classifier_tasks import read_task

import dpframework as dpf


def deviations(data: Path, name: str, epsilon: str, seeds: range) -> np.ndarray:
    """Return, for each value, the standard deviations that a model states, that fits have, and that rows could leave.

    Shape (3, values); of attributes whose bins are the same in all fits.
    """
    table, target = read_task(data, name)
    schema = dpf.Schema(table.schema.attributes, rows=table.codes.shape[1])
    table = dpf.Table.from_codes(schema, table.codes, table.values)
    study = dpf.Study(schema, epsilon=epsilon, relation="replace-one")
    study.add("model", dpf.miner("dp-additive", target=target, epsilon=epsilon))
    models = [study.run(table, seed=seed)["model"] for seed in seeds]
    found = []
    for k, term in enumerate(models[0].terms):
        terms = [model.terms[k] for model in models]
        if any(other.bins != term.bins for other in terms):
            continue
        real = np.array([other.values for other in terms]).std(axis=0, ddof=1).mean(axis=1)
        stated, most = ([getattr(other, kind) for other in terms] for kind in ("deviations", "most_deviations"))
        found.append(np.array([np.mean(stated, axis=0), real, np.mean(most, axis=0)]))
    return np.concatenate(found, axis=1)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--tasks", nargs="+", default=["adult", "mushroom", "nursery-urgent", "nltcs"])
    parser.add_argument("--seeds", type=int, default=12)
    given = parser.parse_args()
    for name in given.tasks:
        for epsilon in ("0.1", "1"):
            found = deviations(given.data, name, epsilon, range(given.seeds))
            middle, large = np.quantile(2 * found, [0.5, 0.9], axis=1)
            shown = " | ".join(f"{one:.2f} ({other:.2f})" for one, other in zip(middle, large, strict=True))
            print(f"{name}, {epsilon} | {shown} | beyond {(found[1] / found[2]).max():.2f}", flush=True)


if __name__ == "__main__":
    main()
