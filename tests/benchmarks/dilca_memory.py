"""Peak memory and CPU time of one private run of DP-DILCA, in a process of its own, as JSON.

    python tests/benchmarks/dilca_memory.py SCHEMA.toml CODES.npy ENGINE

A run on twenty made-up rows comes first: it loads libraries and kernels.
"""

from __future__ import annotations

import json
import sys
import time

import attrs
import numpy as np
from dpframework_distance import DPDilca
from peers import peak_mib

import dpframework as dpf


def main() -> None:
    """Measure one run."""
    schema, codes = dpf.Schema.load(sys.argv[1]), np.load(sys.argv[2])
    engine = dpf.Threads(2) if sys.argv[3] == "threads" else dpf.InMemory()

    def run(of: dpf.Schema, rows: np.ndarray) -> None:
        study = dpf.Study(of, epsilon=1, relation="replace-one", allow=["schema-inferred-from-data"])
        study.add("distances", DPDilca(1, context="max-dependency"))
        study.run(dpf.Table.from_codes(of, rows), engine=engine)

    small = attrs.evolve(schema, attributes=[dpf.Boolean(f"a{k}") for k in range(5)], rows=20)
    run(small, np.zeros((5, 20), dtype=np.int64))
    before, began = peak_mib(), time.process_time()
    run(schema, codes)
    seconds = time.process_time() - began
    print(json.dumps({"cpu_seconds": round(seconds, 3), "peak_mib_before": before, "peak_mib_after": peak_mib()}))


if __name__ == "__main__":
    main()
