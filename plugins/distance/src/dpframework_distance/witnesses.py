"""Tables on which choices of contexts lose nearly all that they claim.

A context's score moves by all that is declared if nearly all rows agree on the context, and the row that comes or goes
agrees with them there and on nothing else. Two contexts that share no attribute do so each with a row of its own.
What is chosen must also be far from what is likeliest, which is then nearly all of the normaliser. A few rows that are
old and of another town keep it far: town and age tell each other, illness and smoking tell neither, since all rows
agree on them.

A row that is added is of the common town and age, and lowers (town, age): it is ill and smokes. One that is replaced
was neither, and lowered (ill, smokes), by a town and an age of its own. Attributes that are chosen one after another to
tell the town lose so too: illness, then smoking, where age is likeliest.

**Choices for all targets** do not all lose most on one table. Such a row has a target's value to itself, and agrees
with nearly all rows on the target's context. So the target is in no context of another target that loses as much, and
of two targets that are in each other's contexts one loses less.
"""

from __future__ import annotations

from typing import Any

from dpframework.facts import Boolean, Categorical, Numeric
from dpframework.run import Witness

ATTRIBUTES = (
    Boolean("ill"),
    Categorical("town", ["A", "B", "C"]),
    Boolean("smokes"),
    Numeric("age", 0, 90, cuts=[40, 60]),
)
MANY, FEW = 400, 30  # rows: a public number is small enough for the suite's other tests


def of_common_contexts(rows: int = MANY) -> tuple[Witness, Witness]:
    """Return one for each relation, for contexts of two of the attributes."""
    return _both_relations("A", {"common context": 1}, rows)  # (ill, smokes)


def of_attributes() -> tuple[Witness, Witness]:
    """Return one for each relation, for two attributes that tell most of the town, one after another."""
    return _both_relations("C", {"context of town": 0}, MANY)  # the first each time


def _both_relations(town: str, chosen: dict[str, int], rows: int) -> tuple[Witness, Witness]:
    """Return a witness for each relation, on tables of so many rows: a row of a town comes."""
    apart = rows // 6
    shared = [(_row("A", 20), rows - 1 - apart), (_row("B", 50), apart)]
    after, before = _row(town, 20, ill=True, smokes=True), _row("C", 80)
    return Witness(shared, None, after, chosen), Witness(shared, before, after, chosen)


def _row(town: str, age: float, *, ill: bool = False, smokes: bool = False) -> dict[str, Any]:
    return {"ill": ill, "town": town, "smokes": smokes, "age": age}
