"""Descriptions in fewer words say the same: no "= true", two cuts as one interval, the rest as `str` writes it."""

from __future__ import annotations

import pytest

from dpframework.facts import And, Below, Description, Equals, Not, Or
from dpframework.redescriptions.shorter_description_text import sentence

ILL, OLD, TOWN = Equals("ill", "true"), Equals("old", "true"), Equals("town", "Split")
FROM_2, BELOW_2, BELOW_5 = Not(Below("x", 2)), Below("x", 2), Below("x", 5)
WRITTEN: list[tuple[Description, str]] = [
    (ILL, "ill"),
    (Not(ILL), "not ill"),
    (Equals("ill", "false"), "ill = false"),
    (Not(TOWN), "town != Split"),
    (Or([Not(ILL), OLD]), "old or not ill"),  # "not ill or old" might be the negation of both
    (And([Not(ILL), TOWN, Not(OLD)]), "town = Split and not ill and not old"),
    (Not(And([ILL, FROM_2])), "not (ill and x >= 2)"),
    (And([FROM_2, BELOW_5]), "2 <= x < 5"),
    (And([BELOW_5, ILL, FROM_2]), "2 <= x < 5 and ill"),
    (Or([And([FROM_2, BELOW_5]), ILL]), "2 <= x < 5 or ill"),
    (Or([And([FROM_2, BELOW_5, ILL]), OLD]), "(2 <= x < 5 and ill) or old"),
    (And([Or([BELOW_2, Not(BELOW_5)]), ILL]), "(x < 2 or x >= 5) and ill"),  # no interval
    (And([Not(BELOW_5), BELOW_2]), "x >= 5 and x < 2"),  # nothing is between them
    (And([FROM_2, BELOW_2]), "x >= 2 and x < 2"),
    (And([FROM_2, Below("y", 5)]), "x >= 2 and y < 5"),
    (And([FROM_2, BELOW_5, Below("x", 4)]), "x >= 2 and x < 5 and x < 4"),
    (And([]), "always"),
    (Or([]), "never"),
    (Equals("a\nb", "true"), "a\\nb"),
]


@pytest.mark.parametrize(("description", "text"), WRITTEN, ids=[text for _, text in WRITTEN])
def test_a_sentence(description: Description, text: str) -> None:
    assert sentence(description) == text
