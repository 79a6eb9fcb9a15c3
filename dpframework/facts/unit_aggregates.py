"""Columns that are computed per unit: the meaning of an aggregate such as `any(ill)`, and its public domain.

An aggregate is a function of the rows of one unit, in their order: `any`, `all`, `count`, `sum`, `min`, `max`, `first`,
`last` or `mode`, of an expression that is computed in each row. The table then has one row for each unit.

**What a person changes.** Let f be the aggregates of all columns, as a function of the rows of one person. Releases are
made from the list of f(rows of p), for each person p who has a row. So

- adding a person, with any number of rows, adds one row to this table. Removing a person removes one row, and replacing
  a person replaces one row. No other row changes, since each row is computed from the rows of one person, and the
  domains of the results of f are public. So the two tables are neighbours that differ in one row, and all sensitivities
  for one row hold. No bound k on the rows of a person is needed, and no loss is multiplied by k. All this would also
  hold with a bound, since the person's own rows decide which k of them are kept. But a bound would change counts and
  sums for no gain, so none is applied;
- adding or removing a row of the file changes f(rows of p) for one p. Then one row of this table is replaced. If p has
  no other row, one row of this table is added or removed instead. Replacing a row of the file may move it from one
  person to another, which changes two rows of this table. Under add-or-remove-one, replacing a row of this table counts
  as removing one row and adding one row. So a claim about one *row* of the file would cost up to two rows of this
  table, and up to four for a replaced row. Therefore such columns are only for studies that protect the people whom the
  ids name.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Mapping, Sequence

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.expression_operands_and_domains import Domain, Labels, Numbers, Operand, Truths, as_number
from dpframework.facts.expression_parser import expression, names_in, syntax_of

#: The aggregates of an expression over the rows of one unit, and the most arguments of each.
AGGREGATES = {"any": 1, "all": 1, "count": 1, "sum": 1, "min": 1, "max": 1, "first": 2, "last": 2, "mode": 1}
#: The key under which the cells of an aggregate are passed, in place of the name of an attribute.
AGGREGATED = ""
MOST_SUMMED = 1e290  # the largest bound of summed numbers, since 2^31 of them then have a finite sum


@attrs.frozen
class Aggregate:
    """An aggregate of the rows of one unit.

    Attributes
    ----------
    name
        The name of the aggregate, such as "any".
    arguments
        The expressions that it reads in each row: none, one or two. A second expression orders the rows.
    """

    name: str
    arguments: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns that it reads, each once."""
        return tuple(dict.fromkeys(name for text in self.arguments for name in names_in(text)))


@functools.lru_cache(maxsize=4096)
def aggregate(text: str) -> Aggregate:
    """Read an aggregate from a text.

    Raises
    ------
    InputError
        If the text is not an aggregate.

    Examples
    --------
    >>> aggregate("any(cost > 100 and not ill)")
    Aggregate(name='any', arguments=('cost > 100 and (not ill)',))
    >>> aggregate("count()").inputs, aggregate("first(diagnosis, day)").inputs
    ((), ('diagnosis', 'day'))
    """
    call = syntax_of(text)
    try:
        arguments = tuple(map(ast.unparse, call.args)) if isinstance(call, ast.Call) else ()
    except (ValueError, RecursionError, MemoryError):
        call, arguments = None, ()
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise InputError(
            f"'{text}' is no aggregate of a unit's rows; write one such as any(ill) or sum(cost), and use its "
            "column in a derived column after it"
        )
    name = call.func.id
    if name not in AGGREGATES:
        quotient = (
            "make columns of sum(x) and count(), and divide them in a third"
            if name in ("mean", "avg", "average")
            else ""
        )
        raise InputError(
            f"calls '{name}', which is no aggregate of a unit's rows; {quotient or nearest(name, AGGREGATES)}"
        )
    least = 0 if name == "count" else 1
    if call.keywords or not least <= len(arguments) <= AGGREGATES[name]:
        most = {0: "nothing or a test", 1: "one expression"}[least]
        most = "an expression, and perhaps a number that orders the rows" if AGGREGATES[name] == 2 else most
        raise InputError(f"{name}() takes {most}, such as {_EXAMPLES[name]}")
    return Aggregate(name, arguments)


_EXAMPLES = {
    "any": "any(ill)", "all": "all(ill)", "count": "count() or count(ill)", "sum": "sum(cost)", "min": "min(cost)",
    "max": "max(cost)", "first": "first(diagnosis, day)", "last": "last(diagnosis, day)", "mode": "mode(diagnosis)",
}  # fmt: skip


def row_parts(found: Aggregate, domains: Mapping[str, Domain]) -> list[Operand]:
    """Return the operands that an aggregate reads in each row.

    Raises
    ------
    InputError
        If the aggregate does not take values of the kind that an expression has.
    """
    parts = [expression(text, domains) for text in found.arguments]
    if not parts:
        return parts
    match found.name, parts[0].domain:
        case "any" | "all" | "count", Numbers() | Labels():
            raise InputError(f"{found.name}() takes a truth, such as {found.name}(cost > 100)")
        case "sum" | "min" | "max", _:
            parts[0] = as_number(parts[0])
        case "mode", Numbers():
            raise InputError("mode() takes labels or truths; write text(...) or cut(...) around the number")
    if len(parts) == 2 and not isinstance(parts[1].domain, Numbers):
        raise InputError(f"{found.name}() orders rows by a number, such as a date that is read as days")
    return parts


def aggregate_parts(found: Aggregate, parts: Sequence[Operand]) -> Operand:
    """Return an aggregate of some operands, with its public domain. Its cells, one per unit, have the key `AGGREGATED`.

    Raises
    ------
    InputError
        If the aggregate is a sum of numbers without bounds.
    """
    first = parts[0].domain if parts else None
    missing = any(part.domain.missing for part in parts)
    domain: Domain = Truths(missing)
    if found.name == "count":
        domain = Numbers(0.0 if parts else 1.0, math.inf, whole=True)
    elif isinstance(first, Labels):
        domain = Labels(first.values, missing)
    elif isinstance(first, Numbers) and found.name != "sum":
        domain = Numbers(first.low, first.high, first.whole, missing)
    elif isinstance(first, Numbers):
        if not -MOST_SUMMED <= first.low <= first.high <= MOST_SUMMED:
            raise InputError(
                "sums numbers without bounds; derive them in each row as a column with bounds, and sum that"
            )
        low, high = first.low if first.low >= 0 else -math.inf, first.high if first.high <= 0 else math.inf
        domain = Numbers(low, high, first.whole, missing)
    return Operand(domain, lambda rows: rows[AGGREGATED])
