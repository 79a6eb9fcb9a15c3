"""The public numbers of rows that a schema may state."""

from __future__ import annotations

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import positive_count

#: The most rows of any table. Rows are numbered, and the rows of a block are counted, in 32 bits.
MOST_ROWS = 2**31 - 1


def check_counts(rows: int | None, max_rows: int | None, about_rows: int | None) -> dict[str, int]:
    """Return the counts that a schema states, by name.

    Raises
    ------
    InputError
        If a count is not a positive whole number or is above `MOST_ROWS`, or two counts contradict each other.
    """
    given = {"rows": rows, "max_rows": max_rows, "about_rows": about_rows}
    found = {name: positive_count(count, name) for name, count in given.items() if count is not None}
    for name, count in found.items():
        if count > MOST_ROWS:
            raise InputError(f"{name} exceeds {MOST_ROWS:,}, the most rows that a table may have; give fewer")
    if rows is not None and max_rows is not None and rows > max_rows:
        raise InputError(f"rows = {rows} exceeds max_rows = {max_rows}")
    if about_rows is not None and rows is not None:
        raise InputError("about_rows is given beside rows, which is exact; give one of the two")
    if about_rows is not None and max_rows is not None and about_rows > max_rows:
        raise InputError(f"about_rows = {about_rows} exceeds max_rows = {max_rows}")
    return found
