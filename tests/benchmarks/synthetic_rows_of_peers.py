"""Synthetic rows by `mbi` and by OpenDP, for `compare_tables.py`: in an environment of their own.

    git clone https://github.com/ryan112358/private-pgm
    python -m venv peers
    peers/bin/pip install 'opendp[mbi,polars]' networkx scipy 'pandas<3' jax==0.7.0 jaxlib==0.7.0 chex==0.1.90 \\
        matplotlib
    peers/bin/python synthetic_rows_of_peers.py private-pgm mbi-mst ROWS.npz OUT.npz EPSILON DELTA SEED LIMIT
    peers/bin/python synthetic_rows_of_peers.py private-pgm check

- `mbi-mst` and `mbi-aim` are the programs in `private-pgm/mechanisms`, with the package of that repository; with a
  later jax or pandas it fails. `opendp-mst` and `opendp-aim` are `opendp.extras.mbi`.
- All parameters are their defaults; AIM's workload is all marginals of three attributes. A number after `aim`, as in
  `mbi-aim-1`, is the most MB of its model, by default 80.
- AIM compares every candidate with the model in each round, and `mbi` compiles a program for each of these. Here numpy
  computes the same numbers: on 9 attributes that takes a fifth of the time, so runs end that would not.
- jax has one thread, which takes less processor time and memory than several.
- OpenDP's rows are drawn with `method="sample"`. With the default, "round", mbi 1.1.0 orders rows so that an attribute
  depends on those that its model says it is independent of, given others: Adult is off by .295 instead of its model's.
- OpenDP adds a missing value to each attribute; rows in which it draws one get the attribute's first value. Its noise
  has no seed.
  Its MST refuses its own split of the budget by one rounding error, so parts are made smaller by 1e-12.

`ROWS.npz` holds `codes`, shape (rows, attributes), `sizes`, and the `rho` that the epsilon and the delta allow.
`OUT.npz` gets `codes`, the CPU seconds and the peak memory in MiB of this process, which the system ends after LIMIT
CPU seconds. `check` says which packages are there.
"""

from __future__ import annotations

import itertools
import os
import resource
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from peers import peak_mib

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")


def project(model, attributes):
    """Return a marginal of a model, as its `project` does, by eliminating the other attributes one by one in numpy."""
    from mbi import Factor

    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    if model.marginals.supports(names):
        return model.marginals.project(names)
    if getattr(project, "model", None) is not model:
        project.model = model
        project.tables = [(one.domain.attrs, np.asarray(one.values)) for one in model.potentials.arrays.values()]
    sizes = {name: model.domain.size((name,)) for name in model.domain}
    tables, left = list(project.tables), [name for name in model.domain if name not in names]
    while left:
        scopes = {name: set().union(*(of for of, _ in tables if name in of)) for name in left}
        name = min(left, key=lambda name: np.prod([sizes[one] for one in scopes[name]]))
        left.remove(name)
        scope = (*(one for one in model.domain if one in scopes[name] and one != name), name)
        if len(scope) > 1:
            table = _added([one for one in tables if name in one[0]], scope, sizes)
            top = table.max(axis=-1)
            tables = [one for one in tables if name not in one[0]]
            tables.append((scope[:-1], np.log(np.exp(table - top[..., np.newaxis]).sum(axis=-1)) + top))
        else:
            tables = [one for one in tables if name not in one[0]]
    table = _added(tables, names, sizes)
    shares = np.exp(table - table.max())
    return Factor(model.domain.project(names), shares * (float(model.total) / shares.sum()))


def _added(tables, scope, sizes):
    """Return the sum of logarithms of some tables, in the shape of a scope that holds their attributes."""
    found = np.zeros([sizes[name] for name in scope])
    for of, table in tables:
        axes = [of.index(name) for name in scope if name in of]
        found += np.transpose(table, axes).reshape([sizes[name] if name in of else 1 for name in scope])
    return found


def rows_of_mbi(mechanism: str, codes, sizes, epsilon: float, delta: float):
    """Return the rows of a program of `private-pgm`."""
    import pandas as pd
    from mbi import Dataset, Domain

    names = [f"a{k}" for k in range(len(sizes))]
    data = Dataset(pd.DataFrame(codes, columns=names), Domain(names, sizes.tolist()))
    kind, _, megabytes = mechanism.partition("-")
    if kind == "mst":
        from mst import MST

        rows = MST(data, epsilon, delta)
    else:
        from aim import AIM

        workload = [(one, 1.0) for one in itertools.combinations(names, 3)]
        _, rows = AIM(epsilon, delta, prng=np.random, max_model_size=float(megabytes or 80)).run(data, workload)
    return rows.df[names].to_numpy(dtype=np.int64)


def rows_of_opendp(mechanism: str, codes, sizes, rho: float):
    """Return the rows of `opendp.extras.mbi`."""
    import opendp.extras.mbi
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names = [f"a{k}" for k in range(len(sizes))]
    data = pl.LazyFrame({name: codes[:, k] for k, name in enumerate(names)})
    keys = {name: list(range(size)) for name, size in zip(names, sizes.tolist(), strict=True)}
    kind, _, megabytes = mechanism.partition("-")
    algorithm = dp.mbi.MST() if kind == "mst" else dp.mbi.AIM(max_size=float(megabytes or 80))
    for module in (opendp.extras.mbi._mst, opendp.extras.mbi._aim, opendp.extras.mbi._table):
        module.prior = lambda amount: amount * (1 - 1e-12)  # one float below is refused: sums of parts round up
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(rho=rho)
    context = dp.Context.compositor(data=data, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1)
    table = context.query().select(*names).contingency_table(keys=keys, algorithm=algorithm).release()
    return table.synthesize(method="sample")[names].fill_null(0).to_numpy().astype(np.int64)


def main(repository: str, method: str, *rest: str) -> None:
    """Run one mechanism, or say which packages are there."""
    peer, _, mechanism = method.partition("-")
    if peer != "opendp":
        sys.path[:0] = [str(Path(repository) / "src"), str(Path(repository) / "mechanisms")]
    if method == "check":
        import aim  # noqa: F401
        import mst  # noqa: F401
        import opendp.extras.mbi  # noqa: F401

        print(", ".join(f"{name} {version(name)}" for name in ("opendp", "mbi", "jax", "numpy")))
        return
    given, out, epsilon, delta, seed, limit = rest
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    with np.load(given) as held:
        codes, sizes, rho = held["codes"], held["sizes"], float(held["rho"])
    from mbi import MarkovRandomField

    MarkovRandomField.project = project
    np.random.seed(int(seed))
    if peer == "opendp":
        rows = rows_of_opendp(mechanism, codes, sizes, rho)
    else:
        rows = rows_of_mbi(mechanism, codes, sizes, float(epsilon), float(delta))
    used = resource.getrusage(resource.RUSAGE_SELF)
    np.savez(out, codes=rows, cpu=used.ru_utime + used.ru_stime, mib=peak_mib())


if __name__ == "__main__":
    main(*sys.argv[1:])
