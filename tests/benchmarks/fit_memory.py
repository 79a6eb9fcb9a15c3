"""Peak memory of one DP-ID3 fit, in a process of its own: before it and after it, as JSON in MiB.

    python tests/benchmarks/fit_memory.py WARM.pkl FIT.pkl

Both files hold a pickled `benchmark_tasks.Fit`. The first is made before measuring: it loads libraries and kernels.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

from peers import peak_mib


def main() -> None:
    """Measure one fit."""
    warm, fit = (Path(name) for name in sys.argv[1:])
    pickle.loads(warm.read_bytes())()
    with fit.open("rb") as file:
        prepared = pickle.load(file)
    before = peak_mib()
    prepared()
    print(json.dumps({"peak_mib_before": before, "peak_mib_after": peak_mib()}))


if __name__ == "__main__":
    main()
