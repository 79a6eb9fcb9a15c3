"""Tables on which choices of contexts lose nearly all that they claim.

A context's score moves by its whole declared sensitivity in one case: nearly all rows agree on the context, and the row
that is added or removed has their values there and no other value of theirs. Two contexts that share no attribute can
both move so far, each with a row of its own. The chosen candidate must be far from the likeliest one, which is then
nearly all of the normaliser. A few old rows of another town keep it far: town and age tell about each other, while
illness and smoking tell about neither, since all rows agree on them.

The added row has the common town and age, and lowers (town, age): it is ill and smokes. The replaced row was neither
ill nor a smoker, and lowered (ill, smokes) by a town and an age of its own. Attributes that are chosen one after
another to tell the town lose in the same way: illness, then smoking, where age is likeliest.

**Choices for all targets** lose nearly all on one table, too, if there are many rows. A row that agrees with n others
on a context, and with none of these on the target, lowers the context's score by about log2(n) + 1.44, out of log2(N) +
1.44 for all N rows. So a quarter of the rows is nearly as good as all of them. One quarter agrees with the added row on
two of four attributes, and serves the other two as targets. Another quarter does so the other way round. Two more
quarters agree in this way with the removed row, in other pairs. Some rows with values of their own keep the chosen
candidates far from the likeliest ones.

If two attributes are chosen *one after another*, both must fall, and the one that rises must be neither. Four
attributes are too few for that. There are eight, in four pairs. The added row agrees with one quarter on the first two
pairs, and with another on the last two. The removed row agrees on the first and third, and on the second and fourth. So
for a target in the first pair, the third pair falls and the second rises.

**Tables that a search found** have no derivation. On these tables the search found the largest loss.

**Entropies** are 0 if all rows are alike. A row with a town of its own raises the entropies of all pairs with the town.
For all targets, a row with an illness and smoking of its own raises nearly all pairs, and so does a row with a town and
age of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpframework.facts import Boolean, Categorical, Numeric
from dpframework.queries import entropy_change
from dpframework.run import Witness
from dpframework_distance.sensitivities import published_entropy_change

ATTRIBUTES = (
    Boolean("ill"),
    Categorical("town", ["A", "B", "C"]),
    Boolean("smokes"),
    Numeric("age", 0, 90, cuts=[40, 60]),
)
ALIKE = tuple(Categorical(name, [str(k) for k in range(10)]) for name in ("north", "east", "south", "west"))
EIGHT = tuple(Categorical(f"{name} {k}", [str(k) for k in range(8)]) for name in "abcd" for k in (1, 2))
APART = 6  # the number of rows of each kind that keep chosen candidates far from the likeliest
MANY, FEW = 400, 30  # numbers of rows; FEW is the public one, small enough for the suite's other tests
FEWEST, BOUND = 7, 12  # the number of rows, and the bound on it, of tables whose worst case a search finds
CROWD = 1_000  # so many rows that a quarter of them is nearly as good as all


def of_common_contexts(rows: int = MANY) -> tuple[Witness, Witness]:
    """Return one witness for each relation, for contexts of two of the attributes."""
    return _both_relations("A", {"common context": 1}, rows)  # (ill, smokes)


def of_attributes() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for two attributes that tell most of the town, one after another."""
    return _both_relations("C", {"context of town": 0}, MANY)  # the first candidate each time


def of_all_targets(context_size: int, path: str) -> tuple[Witness, Witness]:
    """Return one witness for each relation, for a context of one or two attributes for each of `ALIKE`.

    `path` is the path of a target's choice, with a placeholder for the target's name.
    """
    quarter = (CROWD - 1 - 8 * APART) // 4
    quarters = [(0, 0, 2, 2), (3, 3, 0, 0), (1, 4, 4, 1), (5, 1, 1, 5)]
    shared = [(_values(*row), quarter) for row in quarters]
    for u, v in itertools.product((0, 1), repeat=2):
        shared.append((_values(6 + u, 6 + u, 6 + v, 6 + v), APART))
        if context_size == 2:
            shared.append((_values(8 + u, 8 + v, 8 + u, 8 + v), APART))
    falls: tuple[tuple[str, ...], ...] = (("south", "west"), ("south", "west"), ("north", "east"), ("north", "east"))
    if context_size == 1:
        falls = (("west",), ("south",), ("east",), ("north",))
    chosen = {}
    for attribute, context in zip(ALIKE, falls, strict=True):
        others = [other.name for other in ALIKE if other is not attribute]
        chosen[path.format(attribute.name)] = list(itertools.combinations(others, context_size)).index(context)
    before, after = _values(1, 1, 1, 1), _values(0, 0, 0, 0)
    return Witness(shared, None, after, chosen), Witness(shared, before, after, chosen)


def of_all_in_turn() -> tuple[Witness, Witness]:
    """Return one witness for each relation, for two attributes chosen one after another for each of `EIGHT`."""
    quarter = (CROWD - 1 - 16 * 4) // 4
    quarters = [(0, 0, 2, 2), (3, 3, 0, 0), (1, 4, 1, 4), (5, 1, 5, 1)]
    shared = [(_pairs((value, value) for value in row), quarter) for row in quarters]
    # each attribute has the value of one attribute in the pair beside its own
    shared += [(_pairs([own[:2], own[:2], own[2:], own[2:]]), 4) for own in itertools.product((6, 7), repeat=4)]
    chosen = {}
    for k, attribute in enumerate(EIGHT):
        others = [other.name for other in EIGHT if other is not attribute]
        first = (k // 2 + 2) % 4 * 2
        # the second is chosen among those that are left, where it has the position that the first had
        chosen[f"context of {attribute.name}"] = others.index(EIGHT[first].name)
    before, after = _pairs([(1, 1)] * 4), _pairs([(0, 0)] * 4)
    return Witness(shared, None, after, chosen), Witness(shared, before, after, chosen)


def of_entropies(rows: int, *, all_pairs: bool) -> tuple[Witness, Witness]:
    """Return one witness for each relation, for the entropies of the pairs with the town, or of all pairs."""
    shared = [(_row("A", 50, ill=True), rows - 1)]
    lonely, other = _row("C", 50, ill=True), _row("A", 50, ill=True, smokes=True)
    if all_pairs:
        lonely, other = _row("C", 20, ill=True), _row("A", 50, smokes=True)
    return Witness(shared, None, lonely), Witness(shared, other, lonely)


def of_searches() -> dict[str, tuple[Witness, ...]]:
    """Return the tables on which long searches found the largest losses of examples, by the examples' names."""
    return {
        "tree": (
            _witness(
                "B 50 smokes, B 50, C 50 ill smokes, 2 C 20 ill smokes, B 20 ill smokes", "B 20", "A 20 ill smokes"
            ),
            _witness("A 50 ill, B 20 ill, B 50 ill, C 50 smokes, C 50, B 20, B 50 smokes", "", "C 50 ill smokes"),
        ),
        "baseline": (_witness("3 C 20, 3 B 20 ill smokes", "B 50 smokes", "C 20 ill"),),
        "max-relevance": (_witness("6 C 50 ill smokes", "A 20 smokes", "B 50 ill"),),
        "add-or-remove": (_witness("8 C 50, 2 C 20 smokes, A 20 smokes", "B 50 smokes", "A 50 ill"),),
    }


def published_ceiling(context: str, share: Fraction, rows: int) -> str:
    """Return why the published bounds on a choice's scores cannot be reached, or "" for scores of entropies.

    `share` is the choices' share of the budget.
    """
    if context == "mean-su":  # the bound on one entropy is nearly attained
        return ""
    reached = 1 - float(share) * (1 - entropy_change(rows) / published_entropy_change(rows) / 2)
    return (
        f"at most {reached:.3f} of the cost can be lost, since choices have {float(share):g} of the budget, and "
        "their bound adds the changes of two entropies, although these cannot change in opposite directions"
    )


def _pairs(values: Iterable[tuple[int, ...]]) -> dict[str, Any]:
    return {a.name: str(value) for a, value in zip(EIGHT, itertools.chain.from_iterable(values), strict=True)}


def _values(*values: int) -> dict[str, Any]:
    return {attribute.name: str(value) for attribute, value in zip(ALIKE, values, strict=True)}


def _both_relations(town: str, chosen: dict[str, int], rows: int) -> tuple[Witness, Witness]:
    """Return a witness for each relation, where a row of the given town is added or takes another's place."""
    apart = rows // 6
    shared = [(_row("A", 20), rows - 1 - apart), (_row("B", 50), apart)]
    after, before = _row(town, 20, ill=True, smokes=True), _row("C", 80)
    return Witness(shared, None, after, chosen), Witness(shared, before, after, chosen)


def _row(town: str, age: float, *, ill: bool = False, smokes: bool = False) -> dict[str, Any]:
    return {"ill": ill, "town": town, "smokes": smokes, "age": age}


def _witness(shared: str, one: str, other: str) -> Witness:
    """Return a witness from texts of rows, each with a number of rows, a town, an age and the true attributes."""
    rows = []
    for text in shared.split(", "):
        number, _, row = text.partition(" ") if text[0].isdigit() else ("1", "", text)
        rows.append((_of_text(row), int(number)))
    return Witness(rows, _of_text(one) if one else None, _of_text(other))


def _of_text(text: str) -> dict[str, Any]:
    town, age, *more = text.split()
    return _row(town, float(age), ill="ill" in more, smokes="smokes" in more)
