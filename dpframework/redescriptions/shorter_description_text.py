"""Descriptions in fewer words, for tables of redescriptions. They omit "= true" and write two cuts as one interval."""

from __future__ import annotations

from collections.abc import Sequence

from dpframework.facts.control_character_escapes import printable
from dpframework.facts.logical_descriptions_of_rows import And, Below, Description, Equals, Not, Or, threshold_text


def sentence(description: Description) -> str:
    """Write a description as `str` does, but in fewer words.

    The bare name of an attribute says that its value is true. The name with "not" before it says that the value is
    known and is not true. Two cuts of one attribute in a conjunction become one interval.

    Examples
    --------
    >>> ill, warm = Equals("ill", "true"), [Not(Below("degrees", 10)), Below("degrees", 25)]
    >>> print(sentence(And([ill, *warm])))
    ill and 10 <= degrees < 25
    >>> print(sentence(Or([Not(ill), And([warm[0], Equals("town", "Split")])])))
    (degrees >= 10 and town = Split) or not ill
    """
    match description:
        case Equals(attribute, "true"):
            return printable(attribute)
        case Not(Equals(attribute, "true")):
            return printable(f"not {attribute}")
        case Not(And() | Or() | Not() as part):
            return f"not ({sentence(part)})"
        case And() | Or():
            return _join(description)
    return str(description)


def _join(description: And | Or) -> str:
    """Write the parts joined by "and" or by "or", with brackets around parts that are joined by the other word."""

    def is_not_true(part: Description) -> bool:
        return isinstance(part, Not) and isinstance(part.part, Equals) and part.part.value == "true"

    intervals = _intervals(description.parts) if isinstance(description, And) else {}
    texts = []
    # A part that is written as "not ..." comes last, since "not" would seem to apply to any part after it.
    for part in sorted(description.parts, key=is_not_true):
        if part in intervals:
            texts += [intervals[part]] * bool(intervals[part])
        else:
            # Two cuts of one attribute are written as one interval, which needs no brackets.
            interval = isinstance(part, And) and len(part.parts) == 2 and bool(_intervals(part.parts))
            joined = isinstance(part, And | Or) and part.word != description.word
            text = sentence(part)
            texts.append(f"({text})" if joined and not interval else text)
    return f" {description.word} ".join(texts) or str(description)


def _intervals(parts: Sequence[Description]) -> dict[Description, str]:
    """Return texts for pairs of parts that are the lower and the upper cut of one attribute.

    The text of the first part of a pair is the interval, and the text of the second part is empty.
    """
    cuts: dict[str, list[Description]] = {}
    for part in parts:
        test = part.part if isinstance(part, Not) else part
        if isinstance(test, Below):
            cuts.setdefault(test.attribute, []).append(part)
    found = dict[Description, str]()
    for pair in cuts.values():
        low = [one.part for one in pair if isinstance(one, Not) and isinstance(one.part, Below)]
        high = [one for one in pair if isinstance(one, Below)]
        match low, high:
            case [start], [end] if start.threshold < end.threshold:
                text = f"{threshold_text(start.threshold)} <= {start.attribute} < {threshold_text(end.threshold)}"
                found |= {pair[0]: text, pair[1]: ""}
    return found
