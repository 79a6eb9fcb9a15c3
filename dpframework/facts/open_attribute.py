"""Open attributes, whose values nobody lists beforehand. A key is the normalised value of a cell of such an attribute.

A cell's key follows from the cell alone, by the rules in the schema. Which keys occur is private. No plan and no error
shows it, and a result shows it only if a release of keys was planned.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NoReturn, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.canonical_cells import label_of, of_text
from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.value_checks import require_list

#: The label of the rows that have none of the released keys. A cell with this text has no key.
OTHER: Final = "other"

_SPACES: Final = re.compile(r"\s+")


#: The functions that normalise texts, by their names in a schema.
RULES: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "nfc": functools.partial(unicodedata.normalize, "NFC"),
        "spaces": functools.partial(_SPACES.sub, " "),
        "casefold": str.casefold,
    }
)


def _as_rules(rules: Iterable[str]) -> tuple[str, ...]:
    return require_list(rules, "normalise")


@final
@attrs.frozen(slots=False)
class Open(Attribute):
    """An attribute whose values nobody lists, such as towns, products or search terms.

    A row without a value has no key, and neither has a row with the text "other". The key of any other cell is a text:

    - equal numbers or truths have the same key in any spelling, also as texts, such as 3, 3.0 and "3" (see
      `dpframework.facts.canonical_cells`); the space around a text does not count;
    - then the rules in `normalise` are applied in turn;
    - then every invisible character is written out, such as a line break as a backslash and an n.

    Attributes
    ----------
    normalise
        The rules that turn different spellings into one key: "nfc" (a letter and its accent are one character),
        "spaces" (any space within a text is one blank), "casefold" (case does not count).

    Examples
    --------
    >>> town = Open("town", ["nfc", "spaces", "casefold"])
    >>> town.key_of("  New   York"), town.key_of("NEW YORK"), town.key_of("7.0"), town.key_of(" ")
    ('new york', 'new york', '7', None)
    >>> town.size
    Traceback (most recent call last):
    ...
    dpframework.facts.errors.InputError: attribute 'town' is open, so that nobody lists its values, and a list of values
    is needed here; release its keys (queries.Keys, miner 'keys'), leave it out, or declare it categorical with a public
    list of values
    """

    kind: ClassVar[str] = "open"

    normalise: tuple[str, ...] = attrs.field(default=("nfc", "spaces"), converter=_as_rules)

    def _check(self) -> None:
        for k, rule in enumerate(self.normalise):
            if not isinstance(rule, str) or rule not in RULES:
                raise InputError(f"normalise holds {rule!r}; {nearest(str(rule), RULES)}")
            if rule in self.normalise[:k]:
                raise InputError(f"normalise holds '{rule}' twice")
        if self.missing:
            raise InputError("a row without a value never has a key; leave missing out")

    def key_of(self, text: str) -> str | None:
        """Return the key of a cell that holds a text, or a number written as text. None if the cell has no key."""
        form = of_text(text)
        if form is None:
            return None
        if isinstance(form, float):
            return label_of(form)
        for rule in self.normalise:
            form = RULES[rule](form)
        key = printable(form.strip())
        return None if key in ("", OTHER) else key

    def refuse(self) -> NoReturn:
        """Refuse this attribute where a list of values is needed.

        Raises
        ------
        InputError
            Always. The message says what can be done instead.
        """
        raise InputError(
            f"attribute '{self.name}' is open, so that nobody lists its values, and a list of values is needed here; "
            "release its keys (queries.Keys, miner 'keys'), leave it out, or declare it categorical with a public list "
            "of values"
        )

    def _domain_labels(self) -> tuple[str, ...]:
        self.refuse()

    def _domain_facts(self) -> dict[str, Any]:
        return {"normalise": list(self.normalise)}

    @property
    def size(self) -> int:
        """Refuse, since nobody knows the number of values.

        Raises
        ------
        InputError
            Always.
        """
        self.refuse()

    @property
    def domain_text(self) -> str:
        """The rules that turn values into keys."""
        return f"values that nobody lists ({', '.join(self.normalise) or 'as they are'})"


def require_open(attribute: Attribute, what: str) -> Open:
    """Return an attribute, or refuse it if it is not open.

    Raises
    ------
    InputError
        If it is not open. The message says that `what` needs an open attribute, such as "the query 'keys'".
    """
    if not isinstance(attribute, Open):
        raise InputError(
            f"attribute '{attribute.name}' is {attribute.kind}, and {what} needs an open one, whose values nobody "
            "lists; count its values as they are listed (miner 'histogram')"
        )
    return attribute
