"""Natural mistakes, each made, and the sentence compared with the page that lists it (`docs/mistakes.md`)."""

import functools
import re

import pytest
from mistakes import GROUPS, PAGE, Mistake, page, said_of

ENTRY = re.compile(r"^([A-Z`][^\n]*\.)\n\n```text\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
CASES = [(group, one) for group, mistakes in GROUPS.items() for one in mistakes]


@functools.cache
def _listed() -> dict[tuple[str, str], str]:
    """Return the sentences of the page, whose lines are wrapped."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {
        (section.partition("\n")[0], what): " ".join(text.split("\n"))
        for section in sections
        for what, text in ENTRY.findall(section)
    }


@pytest.mark.parametrize(("group", "mistake"), CASES, ids=[f"{group}: {one.what}" for group, one in CASES])
def test_a_mistake_gets_the_sentence_that_the_page_lists(group: str, mistake: Mistake) -> None:
    assert said_of(mistake) == _listed()[group, mistake.what]


#: Sentences that are an instruction as a whole, or a line of a list below which the remedy stands.
WHOLE = {"A step has one bracket.", "The parameters are a list.", "`allow` is one text.", "A miner has no epsilon.",
         "Numbers are beyond the bounds."}  # fmt: skip


def test_every_sentence_says_what_to_do_after_what_is_wrong() -> None:
    assert {what for (_, what), sentence in _listed().items() if "; " not in sentence} == WHOLE


def test_the_page_lists_each_mistake_once() -> None:
    assert len({(group, one.what) for group, one in CASES}) == len(CASES) >= 60
    assert page(_listed()) == PAGE.read_text(encoding="utf-8")
