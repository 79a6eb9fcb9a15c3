"""Synthetic rows by `synthetic-table`, for `compare_tables.py`: in a process that does nothing else.

    python synthetic_rows_of_ours.py METHOD SCHEMA.toml ROWS.npz OUT.npz EPSILON DELTA SEED

METHOD is one of the miner's with "-pure" (an epsilon, delta 0) or "-zcdp" (the `rho` in ROWS.npz). ROWS.npz holds
`codes`, shape (rows, attributes), and `rho`. OUT.npz gets `codes`, what the model has, the CPU seconds and the peak
memory in MiB of this process.
"""

from __future__ import annotations

import resource
import sys
from fractions import Fraction
from typing import Any

import numpy as np
from peers import peak_mib

import dpframework as dpf


def main(method: str, schema_file: str, given: str, out: str, epsilon: str, delta: str, seed: str) -> None:
    """Run one method."""
    with np.load(given) as held:
        codes, rho = held["codes"], Fraction(float(held["rho"]))
    schema = dpf.Schema(list(dpf.Schema.load(schema_file)), about_rows=len(codes))
    table = dpf.Table.from_codes(schema, codes.T)
    name, _, kind = method.partition("-")
    budget: dict[str, Any] = {"epsilon": epsilon} if kind == "pure" else {"rho": rho}
    study = dpf.Study(schema, epsilon=epsilon, delta=0 if kind == "pure" else delta)
    study.add("rows", dpf.miner("synthetic-table", method=name, **budget))
    found = study.run(table, seed=int(seed))["rows"]
    rows, mib, used = found.codes, peak_mib(), resource.getrusage(resource.RUSAGE_SELF)
    said = {"made": found.method, "cells": found.model.tree.cells, "measured": len(found.measured)}
    np.savez(out, codes=rows, cpu=used.ru_utime + used.ru_stime, mib=mib, **said)


if __name__ == "__main__":
    main(*sys.argv[1:])
