"""Shorten descriptions by leaving out implied parts and joining tests on one attribute.

A description may come from a path through a tree, or from a union of paths, in which one test can imply another:
`LDL < 145 or LDL < 160` means `LDL < 160`. The short form holds for the same rows, on every table of the schema.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import cast, final

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.logical_descriptions_of_rows import And, Below, Description, Equals, Literal, Not, Or
from dpframework.facts.schema import Schema


def shorten(description: Description, schema: Schema) -> Description:
    """Return a description that holds for the same rows, without parts that the rest implies.

    A description that holds everywhere becomes `And(())`, and one that holds nowhere becomes `Or(())`.

    Raises
    ------
    InputError
        If the schema has no such attribute or value.

    Examples
    --------
    >>> from dpframework.facts.attributes import Categorical
    >>> schema = Schema([Numeric("LDL", 0, 300, bins=30), Categorical("diet", ["meat", "fish", "plants"])])
    >>> print(shorten(Or([Below("LDL", 145), Below("LDL", 160)]), schema))
    LDL < 160
    >>> print(shorten(And([Not(Below("LDL", 100)), Not(Below("LDL", 130)), Below("LDL", 160)]), schema))
    LDL >= 130 and LDL < 160
    >>> print(shorten(And([Not(Equals("diet", "meat")), Not(Equals("diet", "fish"))]), schema))
    diet = plants
    >>> print(shorten(Or([Below("LDL", 160), And([Equals("diet", "fish"), Not(Below("LDL", 160))])]), schema))
    LDL < 160 or diet = fish
    """
    return Shortener(schema, description.literals()).shorten(description)


def otherwise(test: Literal, attribute: Attribute) -> Description:
    """Return the description of all rows for which a test does not hold, including missing values.

    Examples
    --------
    >>> print(otherwise(Below("age", 30), Numeric("age", 0, 90, cuts=[30], missing=True)))
    age >= 30 or age = missing
    """
    if attribute.missing_code is None:
        return Not(test)
    missing = Equals(test.attribute, attribute.labels[attribute.missing_code])
    return Not(test) if test == missing else Or([Not(test), missing])


@final
class Shortener:
    """Shortens many descriptions over the same literals (see `shorten`).

    The literals cut the domain of each attribute into cells. A literal holds for all values in a cell or for none of
    them. A set of cells is an integer with one bit for each cell.

    Parameters
    ----------
    schema
        The schema of the tables that the descriptions are for.
    literals
        All literals that occur in these descriptions.

    Raises
    ------
    InputError
        If the schema has no such attribute or value.
    """

    def __init__(self, schema: Schema, literals: Iterable[Literal]) -> None:
        self._cells: dict[Literal, int] = {}  # for each literal, the cells in which it holds
        self._all: dict[str, int] = {}  # for each attribute, all cells
        self._missing: dict[str, int] = {}  # for each attribute, the cell of missing values, or 0 if none is allowed
        # For each attribute, the tests for single values, each of which may replace several other tests.
        self._values: dict[str, list[Description]] = {}
        of_attribute: dict[str, list[Literal]] = {}
        for literal in dict.fromkeys(literals):
            of_attribute.setdefault(literal.attribute, []).append(literal)
        for name, tests in of_attribute.items():
            attribute = schema[name]
            codes = {test: test.code(schema) for test in tests if isinstance(test, Equals)}
            thresholds = {test: test.threshold for test in tests if isinstance(test, Below) and test.numeric(schema)}
            if isinstance(attribute, Numeric):
                self._cut(attribute, thresholds, codes)
            else:
                self._list(attribute, codes)

    def _cut(self, attribute: Numeric, tests: Mapping[Below, float], codes: Mapping[Equals, int]) -> None:
        """Make one cell for each interval between thresholds, and a last one for missing values."""
        cuts = attribute.interior_cuts
        bins = {test: (code - 1, code) for test, code in codes.items() if code != attribute.missing_code}
        ends = {cuts[k] for both in bins.values() for k in both if 0 <= k < len(cuts)}
        thresholds = sorted({*tests.values(), *ends})
        # The set of all cells except that of missing values.
        known = (1 << len(thresholds) + 1) - 1

        def below(threshold: float) -> int:
            return int((1 << bisect_left(thresholds, threshold) + 1) - 1)

        self._all[attribute.name] = 2 * known + 1 if attribute.missing else known
        self._missing[attribute.name] = known + 1 if attribute.missing else 0
        self._values[attribute.name] = []
        for test, threshold in tests.items():
            self._cells[test] = below(threshold)
        for other in codes:
            if other in bins:
                first, last = bins[other]
                up_to = below(cuts[last]) if last < len(cuts) else known
                self._cells[other] = up_to & ~below(cuts[first]) if first >= 0 else up_to
            else:
                self._cells[other] = known + 1

    def _list(self, attribute: Attribute, codes: Mapping[Equals, int]) -> None:
        """Make one cell for each tested value, and one for all other values. Missing values have a cell of their own.

        If just one value is in the cell of the other values, a test for this value is added.
        """
        tests = list(codes)
        if attribute.missing_code is not None and attribute.missing_code not in codes.values():
            tests.append(Equals(attribute.name, attribute.labels[attribute.missing_code]))
            codes = {**codes, tests[-1]: attribute.missing_code}
        others = attribute.size - len(codes)
        if others == 1:
            (last,) = set(range(attribute.size)) - set(codes.values())
            tests.append(Equals(attribute.name, attribute.labels[last]))
        self._cells.update((test, 1 << k) for k, test in enumerate(tests))
        self._all[attribute.name] = (1 << len(tests) + (others > 1)) - 1
        self._values[attribute.name] = [side for test in tests for side in (test, Not(test))]
        of_missing = [self._cells[test] for test, code in codes.items() if code == attribute.missing_code]
        self._missing[attribute.name] = sum(of_missing)

    def shorten(self, description: Description) -> Description:
        """Return a description that holds for the same rows, without parts that the rest implies."""
        short = self._shorten_within(self._all, description)
        if isinstance(short, Description):
            return short
        return And(()) if short else Or(())

    def contradicts(self, path: Iterable[tuple[Literal, bool]]) -> bool:
        """Tell whether tests cannot have these outcomes together, so that no row reaches the end of the path."""
        left = dict(self._all)
        for test, holds in path:
            left[test.attribute] &= self._cells[test] if holds else ~self._cells[test]
        return not all(left.values())

    def _shorten_within(self, possible: Mapping[str, int], description: Description) -> Description | bool:
        """Shorten a description for rows in possible cells. Return a bool if it holds for all or for none of them."""
        test = _test(description)
        if test is None:
            kind, parts = _join(description)
            return self._shorten_joined(possible, kind, parts)
        cells = possible[test.attribute]
        left = cells & self._cells_where(description, test)
        return description if left not in (0, cells) else left == cells

    def _shorten_joined(
        self, possible: Mapping[str, int], kind: type[And | Or], parts: Iterable[Description]
    ) -> Description | bool:
        """Shorten a joined description.

        The tests among the parts leave some rows open: in a conjunction the rows that pass all tests, in a disjunction
        the rows that pass none. The other parts need to be right for these rows only.
        """
        pending, settled = list(parts), False
        while not settled:
            flat, pending, settled = list(_flat(kind, pending)), [], True
            left = dict(possible)
            for part in flat:
                test = _test(part)
                if test is not None:
                    left[test.attribute] &= self._open(kind, part, test)
                    if not left[test.attribute]:
                        return kind is Or
            for part in flat:
                short = part if _test(part) else self._shorten_within(left, part)
                if not isinstance(short, bool):
                    pending.append(short)
                    # A part that became a test, or has the same joining word, leaves fewer rows to the other parts.
                    # The other parts are then shortened once more.
                    settled &= short is part or type(short) is OTHER_WORD[kind]
                elif short is (kind is Or):
                    return short
        kept: dict[Description, None] = {}
        tested: set[str] = set()
        for part in pending:
            test = _test(part)
            if test is None:
                kept[part] = None
            elif test.attribute not in tested:
                tested.add(test.attribute)
                tests = [(p, t) for p in pending if (t := _test(p)) and t.attribute == test.attribute]
                kept |= dict.fromkeys(self._fewest(kind, tests, possible[test.attribute]))
        if not kept:
            return kind is And
        return kind(kept) if len(kept) > 1 else next(iter(kept))

    def _fewest(
        self, kind: type[And | Or], tests: list[tuple[Description, Literal]], possible: int
    ) -> list[Description]:
        """Return few tests on one attribute that together leave the same cells open as the given tests."""
        opened = {part: possible & self._open(kind, part, test) for part, test in tests}

        def all_open(parts: Iterable[Description]) -> int:
            cells = possible
            for part in parts:
                cells &= opened[part]
            return cells

        wanted = all_open(opened)
        if wanted == possible:
            return []
        if len(opened) == 1:
            return list(opened)
        # A single test may be enough: one of the given tests, or a test for a single value.
        for one in [*opened, *self._values[tests[0][1].attribute]]:
            test = _test(one)
            if test and possible & self._open(kind, one, test) == wanted:
                return [one]
        kept = list(opened)
        for part in opened:
            rest = [p for p in kept if p is not part]
            if all_open(rest) == wanted:
                kept = rest
        return kept

    def _cells_where(self, part: Description, test: Literal) -> int:
        """Return the cells in which a part holds. The part is this test or its negation."""
        cells = self._cells[test]
        if part is test:
            return cells
        missing = self._missing[test.attribute]
        # A negated test does not hold for missing values, so their cell is removed, too. Only the test for missing
        # values is an exception: its negation holds for all other values.
        return self._all[test.attribute] & ~cells & (-1 if cells == missing else ~missing)

    def _open(self, kind: type[And | Or], part: Description, test: Literal) -> int:
        """Return the cells that a part leaves to the other parts.

        In a conjunction these are the cells where the part holds, in a disjunction those where it does not.
        """
        held = self._cells_where(part, test)
        return held if kind is And else self._all[test.attribute] ^ held


#: For each of the two words that join descriptions, the other word.
OTHER_WORD: dict[type[And | Or], type[And | Or]] = {And: Or, Or: And}


def _test(description: Description) -> Literal | None:
    """Return the literal of a description that is a literal or a negated literal, else None."""
    inner = description.part if type(description) is Not else description
    # Compared by type, since `isinstance` with an abstract class would take most of the time.
    return None if type(inner) in (And, Or, Not) else cast(Literal, inner)


def _join(description: Description) -> tuple[type[And | Or], Iterable[Description]]:
    """Return the joining word and the parts of a description that is no test. A negation moves down to the parts."""
    if isinstance(description, And | Or):
        return type(description), description.parts
    assert isinstance(description, Not)
    inner = description.part
    if isinstance(inner, Not):
        return And, [inner.part]
    assert isinstance(inner, And | Or)
    return OTHER_WORD[type(inner)], [Not(part) for part in inner.parts]


def _flat(kind: type[And | Or], parts: Iterable[Description]) -> Iterator[Description]:
    """Yield the parts. Instead of a part that is joined by the same word, yield its own parts."""
    for part in parts:
        if _test(part):
            yield part
        else:
            joined, inner = _join(part)
            if joined is kind:
                yield from _flat(kind, inner)
            else:
                yield part
