"""What the first run of each miner on a machine costs, where nothing is compiled yet, in CPU seconds.

    python tests/benchmarks/compile_time.py
    python tests/benchmarks/compile_time.py --only dp-tree alt-mcmc

Prints, each from a new process, the first run, the same run again, and how many kernels numba compiled. Importing
the libraries is not counted. Runs are seeded, of 600 rows and ten attributes (see `kernel_time.py`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

MINERS: dict[str, tuple[str, dict[str, Any]]] = {
    "dp-id3": ("dp-id3", {"target": "b0"}),
    "dp-tree, exact, depth 3": ("dp-tree", {"target": "b0", "sampler": "exact", "max_depth": 3}),
    "dp-tree, mcmc, depth 5": ("dp-tree", {"target": "b0", "sampler": "mcmc", "max_depth": 5}),
    "dp-classifier": ("dp-classifier", {"target": "b0"}),
    "dp-additive": ("dp-additive", {"target": "b0"}),
    "alt-expm": ("alt-expm", {}),
    "alt-mcmc": ("alt-mcmc", {}),
    "alt-mcmc, walks": ("alt-mcmc", {"sampler": "mcmc"}),
    "mcmc-tree-pair": ("mcmc-tree-pair", {"sampler": "mcmc"}),
    "matched-trees": ("matched-trees", {}),
    "serenade-es": ("serenade-es", {}),
    "serenade-es, logistic": ("serenade-es", {"score": "logistic", "min_support": 100}),
    "dp-dilca": ("dp-dilca", {}),
    "dp-dilca, mean-su": ("dp-dilca", {"context": "mean-su"}),
    "dp-dilca, max-relevance": ("dp-dilca", {"context": "max-relevance"}),
    "dp-dilca, max-dependency": ("dp-dilca", {"context": "max-dependency"}),
}


def measure(name: str) -> None:
    """Run a miner twice, and print what that took."""
    import kernel_time
    from numba.core import event

    import dpframework as dpf

    compiled = event.RecordingListener()
    event.register("numba:compile", compiled)
    table = kernel_time.made(600, 1)
    kind, parameters = MINERS[name]
    seconds = []
    for _ in range(2):
        miner = dpf.miner(kind, epsilon=1, **parameters)
        study = dpf.Study(table.schema, epsilon=1, allow=["mcmc-converged", "real-arithmetic"])
        study.add("mined", miner)
        began = time.process_time()
        study.run(table, seed=1)
        seconds.append(time.process_time() - began)
    kernels = sum(one.is_start for _, one in compiled.buffer)
    print(f"{name:<26} {seconds[0]:>6.2f} {seconds[1]:>6.2f} {kernels:>8}", flush=True)


def main() -> None:
    """Read the command line, and measure each miner in a process that finds nothing compiled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="what is measured: beginnings of names")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        measure(asked.one)
        return
    print(f"{'miner':<26} {'first':>6} {'again':>6} {'compiled':>8}", flush=True)
    for name in MINERS:
        if name.startswith(tuple(asked.only)):
            with tempfile.TemporaryDirectory() as empty:
                environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
                subprocess.run([sys.executable, __file__, "--one", name], env=environment, check=True)


if __name__ == "__main__":
    main()
