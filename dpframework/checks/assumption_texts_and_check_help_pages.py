"""The known assumptions, and the help pages that explain the findings of each check and the remedies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import final

import attrs

from dpframework.checks.claim_and_assumption_checks import INFERRED
from dpframework.facts.privacy_unit import ROWS_ASSERTED
from dpframework.plan.plan import DATA_FITS_SCHEMA, ROWS_FROM_QUERY

#: For each assumption that a plan may have: what must hold, and the code of the check that reports it.
ASSUMPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mcmc-converged": (
            "A Markov chain has converged to its target distribution. This cannot be checked.",
            "DP005",
        ),
        "real-arithmetic": (
            "Noise drawn in floating point is as private as noise in real numbers. Nothing built in needs this.",
            "DP005",
        ),
        INFERRED: (
            "Bounds, cuts and values of the schema were taken from the private data, which no epsilon covers.",
            "DP006",
        ),
        DATA_FITS_SCHEMA: (
            "Every value lies in its attribute's public domain. A run ends at the first value outside, which "
            "reveals that there is such a value.",
            "DP021",
        ),
        ROWS_ASSERTED: (
            "Nobody has more rows than the study says. No column of ids enforces this: it is the owner's word.",
            "DP005",
        ),
        ROWS_FROM_QUERY: (
            "Each row that the query in [read] returns follows from one unit's own rows, and a unit has no more rows "
            "in the result than the study says.",
            "DP005",
        ),
        "row-count-public": (
            "The number of rows is public: replace-one compares tables of the same size. This needs no allowance.",
            "DP018",
        ),
    }
)

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SECTION = re.compile(r"^\*\*([^*]+)\.\*\*\s*", re.MULTILINE)


@final
@attrs.frozen
class CheckPage:
    """The documentation page of a check.

    Attributes
    ----------
    code
        The check's code.
    text
        The page in Markdown, without links.
    """

    code: str
    text: str

    def section(self, name: str) -> str:
        """Return the paragraph under a bold title, such as "Why it matters", as plain text; "" if there is none."""
        for found in _SECTION.finditer(self.text):
            if found[1] == name:
                return " ".join(self.text[found.end() :].split("\n\n")[0].split()).replace("`", "").replace("*", "")
        return ""


def check_page(code: str) -> CheckPage | None:
    """Return the page about a built-in check, or None for a plugin's check.

    Examples
    --------
    >>> check_page("DP012").section("What it finds")
    "More than a thousandth of the study's epsilon is not planned."
    """
    place = resources.files("dpframework.checks") / "pages" / f"{code}.md"
    if not re.fullmatch(r"DP\d{3}", code) or not place.is_file():
        return None
    text = _LINK.sub(r"\1", place.read_text(encoding="utf-8"))
    return CheckPage(code, re.sub(r"(?m)^```(\w+) .*$", r"```\1", text))
