"""The operation of expressions that looks cells up in a public table."""

from __future__ import annotations

import math

import numpy as np

from dpframework.facts.canonical_cells import of_text
from dpframework.facts.errors import InputError
from dpframework.facts.expression_operand_domains import Labels, Numbers, Operand, Truths, as_labels, labels_of
from dpframework.facts.public_tables import PublicTable


def look_up(part: Operand, table: PublicTable) -> Operand:
    """Return an operand that has a public table's entry for each cell of a part, missing where the table has none.

    The new domain is public: it holds the entries of all values in the part's public domain.

    Raises
    ------
    InputError
        If the cells may be numbers that are not whole or not in a small range, or if the table has no entry for any
        cell.
    """
    if isinstance(part.domain, Numbers) and not part.domain.whole:
        raise InputError("looks up a number that may not be whole; write floor(...) or cut(...) around it")
    keys = as_labels(part)
    assert isinstance(keys.domain, Labels)
    entries = {of_text(key): value for key, value in table.pairs}
    values = [entries.get(of_text(label)) for label in keys.domain.values]
    known = [value for value in values if value is not None]
    if not known:
        raise InputError(
            f"finds none of the cells' values, such as '{keys.domain.values[0]}', in its public table; "
            "compare how both are written"
        )
    missing = keys.domain.missing or len(known) < len(values)
    if isinstance(known[0], bool):
        codes = np.array([*(-1 if value is None else int(value) for value in values), -1], dtype=np.int32)
        return Operand(Truths(missing), lambda rows: codes[keys.cells(rows)])
    if isinstance(known[0], float):
        numbers = np.array([*(math.nan if value is None else value for value in values), math.nan])
        ends = [float(value) for value in known]
        whole = all(end.is_integer() for end in ends)
        return Operand(Numbers.between(ends, whole=whole, missing=missing), lambda rows: numbers[keys.cells(rows)])
    labels, places = labels_of([str(value) for value in known])
    found = iter(places.tolist())
    moved = np.array([*(-1 if value is None else next(found) for value in values), -1], dtype=np.int32)
    return Operand(Labels(labels, missing), lambda rows: moved[keys.cells(rows)])
