"""Synthetic rows by the mechanisms of `mbi`, for `compare_tables.py`: in an environment of their own.

    git clone https://github.com/ryan112358/private-pgm
    python -m venv peer && peer/bin/pip install jax optax chex pandas scipy networkx matplotlib
    peer/bin/python synthetic_rows_of_mbi.py private-pgm mst ROWS.npz OUT.npz EPSILON DELTA SEED

`ROWS.npz` holds `codes`, shape (rows, attributes), and `sizes`; `OUT.npz` gets `codes`, the CPU seconds and the peak
memory in MiB of this process.
"""

import itertools
import resource
import sys
from pathlib import Path

import numpy as np


def main(repository: str, mechanism: str, given: str, out: str, epsilon: str, delta: str, seed: str) -> None:
    """Run one mechanism, "mst" or "aim" with all triples as its workload."""
    sys.path[:0] = [str(Path(repository) / "src"), str(Path(repository) / "mechanisms")]
    import pandas as pd
    from mbi import Dataset, Domain

    with np.load(given) as held:
        codes, sizes = held["codes"], held["sizes"]
    names = [f"a{k}" for k in range(len(sizes))]
    data = Dataset(pd.DataFrame(codes, columns=names), Domain(names, sizes.tolist()))
    np.random.seed(int(seed))
    if mechanism == "mst":
        from mst import MST

        rows = MST(data, float(epsilon), float(delta))
    else:
        from aim import AIM

        workload = [(one, 1.0) for one in itertools.combinations(names, 3)]
        _, rows = AIM(float(epsilon), float(delta), prng=np.random).run(data, workload)
    used = resource.getrusage(resource.RUSAGE_SELF)
    np.savez(
        out, codes=rows.df[names].to_numpy(dtype=np.int64), cpu=used.ru_utime + used.ru_stime, mib=used.ru_maxrss / 1024
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
