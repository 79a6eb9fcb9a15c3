"""Texts of open attributes on which a plugin's query may be wrong. Nobody lists the values of such attributes.

The keys of made-up tables are single letters. A query that divides texts into words, looks for given words in them or
counts their letters is right on those. So a plugin's query that may read an open attribute is also tried on texts that
hold all words of its code, on texts of many words or of very many letters, and on numbers. Code that shortens texts to
a number of bytes cuts one of these within a letter. Some texts become longer if their case is folded.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpframework.facts.open_attribute import Open
from dpframework.facts.schema import Schema
from dpframework.queries import Query
from dpframework.verify.plugin_code_constants import is_foreign, texts_of

MOST_WORDS = 50  # the most texts of the code that are joined into one text
MOST_ALONE = 3  # how many of them are also tried alone
LETTERS = 300  # how long a word is
#: Letters that are longer in lower case or without ligatures, of 2, 2 and 3 bytes.
LONGER = "\u00df\u0130\ufb01" * LETTERS
NUMBERS = ("-7", "57.25", "1000000000", "nan", "\u00b2")  # `int` does not read the last one, which is a digit
USUAL = ("b " * LETTERS + "a c", "x" * LETTERS, *NUMBERS, "\u00c9\u00df\u0130 \ufb01 ?!", LONGER, f"x{LONGER}")


def telling_texts(queries: Iterable[Query], schema: Schema) -> tuple[str, ...]:
    """Return texts for the open attributes of a schema, as a cell holds them; none if no plugin's query may read one.

    Parameters
    ----------
    queries
        The queries that are asked.
    schema
        The schema of the tables.
    """
    unlisted = {own.name for own in schema if isinstance(own, Open)}
    if not unlisted:
        return ()
    asked = [one for one in queries if is_foreign(one) and (not one.attributes or unlisted & set(one.attributes))]
    if not asked:
        return ()
    words = [text for text in texts_of(asked) if text not in schema.names][:MOST_WORDS]
    together = " ".join(sorted(words))
    texts = (*sorted(words)[:MOST_ALONE], together, f"{together} {together}", together.upper(), *USUAL)
    return tuple(dict.fromkeys(text for text in texts if text.strip()))
