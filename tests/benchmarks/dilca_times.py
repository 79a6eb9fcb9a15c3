"""CPU seconds of the distances of all attributes, ours and the authors' program, in one process, on the same codes.

    python tests/benchmarks/dilca_times.py --authors FOLDER

FOLDER is a copy of the authors' program (github.com/elenabattaglia/dpdilca), which is no part of this project; without
it, only ours is timed. One thread; ours with its plan, its checks and all its releases, the least of three runs. The
authors' draws are seeded floating-point noise, as ours are with a seed. Without one they are exact, from a
cryptographic generator.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from compare_dp_dilca import CLASSES, REPOSITORY, Data
from dpframework_distance import DPDilca

import dpframework as dpf

METHODS = {"max-relevance": "E", "mean-su": "L", "max-dependency": "E_tensor"}  # names in the authors' program
REPEATS = 3


def seconds(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the least CPU seconds of some runs."""
    found = []
    for _ in range(repeats):
        before = time.process_time()
        run()
        found.append(time.process_time() - before)
    return min(found)


def ours(table: dpf.Table, context: str, seed: int | None) -> None:
    """Plan, check and run one study."""
    study = dpf.Study(table.schema, epsilon=1, relation="replace-one", allow=["schema-inferred-from-data"])
    study.add("distances", DPDilca(1, context=context))
    study.run(table, seed=seed, engine=dpf.InMemory())


def theirs(table: dpf.Table, method: str) -> float:
    """Time one run of the authors' program."""
    from algorithms.dilca_dp_final import Dilca_DP  # type: ignore[import-not-found]

    rows = pd.DataFrame(np.asarray(table.codes).T.astype(np.int64))
    model = Dilca_DP(eps=1, h=0.3, dp_method=method, k=3, dp=True, preprocessing=False)
    return seconds(lambda: model.fit_dp(rows), 1)


def main() -> None:
    """Print a line for each data set and way to choose contexts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(os.environ.get("DPFRAMEWORK_DATA", REPOSITORY.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--sets", nargs="+", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--contexts", nargs="+", default=list(METHODS)[:2], choices=list(METHODS))
    parser.add_argument("--authors", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.authors:
        sys.path.insert(0, str(args.authors))
    for name in args.sets:
        table = Data(args.data, name).table
        for context in args.contexts:
            line = f"{name} {context}"
            for label, seed in (("seeded", 0), ("private", None)):
                ours(table, context, seed)  # which compiles, and loads libraries
                line += f", {label} {seconds(functools.partial(ours, table, context, seed)):.3f}"
            if args.authors:
                line += f", the authors' program {theirs(table, METHODS[context]):.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
