"""The rows that the paper measured: those of Adult's training part without a missing cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dpframework as dpf
from dpframework.facts.toml import resolve_path
from dpframework.lab.evaluation import select_rows


def complete(*, path: str, schema: str, first: int, seed: int) -> dpf.Table:
    """Return, of the first rows of a file, those without a missing cell.

    Parameters
    ----------
    path, schema
        Of the file and its public facts, relative to this folder; `$NAME` works.
    first
        How many rows are looked at.
    seed
        Not used: nothing is drawn.
    """
    folder = Path(__file__).parent
    table = dpf.read_table(resolve_path(path, folder), dpf.Schema.load(resolve_path(schema, folder)))
    missing = [attribute.missing_code for attribute in table.schema]
    whole = np.all(
        [codes != code for codes, code in zip(table.codes, missing, strict=True) if code is not None], axis=0
    )
    return select_rows(table, whole & (np.arange(table.codes.shape[1]) < first))
