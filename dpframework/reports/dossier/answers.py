"""A dossier: the questions of a review board, each with its answers and their basis.

The questions are the topics of the pyramid of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy
Guarantees": a guarantee rests on the algorithms below it, and these on the handling of the rows. `hazards` says which
question answers which of its hazards. The questions, in words of our own, were compared with its public draft
(December 2023). Of the W3C note "Considerations for Reviewing Differential Privacy Systems" (draft of 2026) only the
abstract was read, which names the trade-off between privacy, utility and the number of trusted parties.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from dpframework.facts.value_checks import as_texts
from dpframework.reports.dossier.hazards import HAZARDS, Hazard
from dpframework.reports.dossier.statements import Statements
from dpframework.study.study_plan import StudyPlan

if TYPE_CHECKING:
    from dpframework.study.results import Results


class Basis(enum.StrEnum):
    """The basis of an answer, such as a check or a person's statement."""

    PLAN = "from the plan"
    LEDGER = "from the ledger"
    TESTED = "tested"
    STATED = "stated by the owner"
    OPEN = "open"


@final
@attrs.frozen
class Answer:
    """One answer, with its basis."""

    basis: Basis
    text: str


@final
@attrs.frozen
class LedgerState:
    """The entries of a ledger about the study's data set.

    Attributes
    ----------
    sentences
        The cap, what is spent and left, and what the claim of all runs means.
    outside
        What was released otherwise, and what it does to the claim, a sentence each.
    looks
        The sentences about looks at the rows.
    """

    sentences: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    outside: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    looks: tuple[str, ...] = attrs.field(default=(), converter=as_texts)


@final
@attrs.frozen(eq=False)
class DossierSubject:
    """The subject of a dossier.

    Attributes
    ----------
    plan
        The plan.
    statements
        The owner's.
    ledger
        The ledger's state; None if no ledger was named.
    results
        The results of a run; None before one.
    """

    plan: StudyPlan
    statements: Statements
    ledger: LedgerState | None = None
    results: Results | None = None


#: Yields the answers to an item.
Answers: TypeAlias = Callable[[DossierSubject], Iterator[Answer]]


@final
@attrs.frozen
class Item:
    """One question of a dossier.

    Attributes
    ----------
    layer
        The layer of the pyramid that it belongs to.
    title
        Its topic.
    question
        The question.
    answers
        Its answers.
    """

    layer: str
    title: str
    question: str
    answers: Answers


@final
@attrs.frozen
class AnsweredItem:
    """A question with its answers. It is open if one of them is."""

    item: Item
    answers: tuple[Answer, ...]

    @property
    def open(self) -> bool:
        """Whether something that it asks was not answered."""
        return any(answer.basis is Basis.OPEN for answer in self.answers)


@final
@attrs.frozen
class Dossier:
    """All questions in scope with their answers, and those out of scope with the reason.

    Attributes
    ----------
    items
        In the order of the pyramid, from the top.
    out_of_scope
        A topic and the reason, each.
    """

    items: tuple[AnsweredItem, ...]
    out_of_scope: tuple[tuple[str, str], ...]

    @property
    def hazards(self) -> tuple[tuple[Hazard, str], ...]:
        """Each hazard of NIST SP 800-226 with its state: "answered", "open" or "out of scope"."""
        opened = {one.item.title: "open" if one.open else "answered" for one in self.items}
        return tuple((one, opened[one.topic] if one.in_scope else "out of scope") for one in HAZARDS)

    @property
    def answered(self) -> int:
        """How many questions are answered whole."""
        return sum(not one.open for one in self.items)

    @property
    def headline(self) -> str:
        """How many questions are answered, and which are open."""
        opened = [one.item.title for one in self.items if one.open]
        whole = f"{self.answered} of {len(self.items)} questions answered"
        return f"OPEN: {whole}; still open: {', '.join(opened)}" if opened else whole

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-safe form."""
        return {
            "answered": self.answered,
            "items": [
                {
                    "layer": one.item.layer,
                    "title": one.item.title,
                    "question": one.item.question,
                    "open": one.open,
                    "answers": [{"basis": answer.basis.value, "text": answer.text} for answer in one.answers],
                }
                for one in self.items
            ],
            "out_of_scope": [{"title": title, "reason": reason} for title, reason in self.out_of_scope],
            "hazards": [
                {"section": one.section, "hazard": one.text, "topic": one.topic, "state": state}
                for one, state in self.hazards
            ],
        }


def dossier(
    plan: StudyPlan,
    statements: Statements | None = None,
    *,
    ledger: LedgerState | None = None,
    results: Results | None = None,
) -> Dossier:
    """Return the dossier of a study.

    Parameters
    ----------
    plan
        The plan; with records of verification, what they say is in it (see `StudyPlan.with_verified`).
    statements
        The owner's statements; by default all are open.
    ledger
        What a ledger says of the data set.
    results
        The results of a run.
    """
    from dpframework.reports.dossier.items import ITEMS, OUT_OF_SCOPE

    subject = DossierSubject(plan, statements or Statements(), ledger, results)
    return Dossier(tuple(AnsweredItem(item, tuple(item.answers(subject))) for item in ITEMS), OUT_OF_SCOPE)
