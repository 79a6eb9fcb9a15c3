"""A dossier: the questions of a review board, each with its answers and their basis.

The questions are the topics of the pyramid of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy
Guarantees". In this pyramid, a guarantee rests on the algorithms below it, and the algorithms rest on the handling of
the rows. The module `nist_hazards` says which question answers each hazard of that publication. We worded the questions
ourselves and compared them with its public draft (December 2023). A second source is the W3C note "Considerations for
Reviewing Differential Privacy Systems" (draft of 2026), of which we read only the abstract. The abstract names the
trade-off between privacy, utility and the number of trusted parties.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from dpframework.facts.value_checks import as_texts
from dpframework.reports.dossier.nist_hazards import HAZARDS, Hazard
from dpframework.reports.dossier.owner_statements import Statements
from dpframework.study.study_plan_totals_and_findings import StudyPlan

if TYPE_CHECKING:
    from dpframework.study.results import Results


class Basis(enum.StrEnum):
    """The basis of an answer, such as the plan or the owner's statement."""

    PLAN = "from the plan"
    LEDGER = "from the ledger"
    TESTED = "tested"
    STATED = "stated by the owner"
    OPEN = "open"


@final
@attrs.frozen
class Answer:
    """One answer to a question, with its basis."""

    basis: Basis
    text: str


@final
@attrs.frozen
class LedgerState:
    """The entries of a ledger about the study's data set.

    Attributes
    ----------
    sentences
        Sentences on the cap, on what is spent, and on what the claim of all runs means.
    outside
        One sentence for each release outside the ledger, saying how it changes the claim.
    looks
        The sentences of `outside` that are about looks. A look is recorded if somebody looked at the rows before they
        chose questions or bounds.
    """

    sentences: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    outside: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    looks: tuple[str, ...] = attrs.field(default=(), converter=as_texts)


@final
@attrs.frozen(eq=False)
class DossierSubject:
    """The study that a dossier is about.

    Attributes
    ----------
    plan
        The plan of the study.
    statements
        The owner's statements.
    ledger
        The entries of the ledger about the study's data set; None if no ledger was named.
    results
        The results of a run; None before a run.
    """

    plan: StudyPlan
    statements: Statements
    ledger: LedgerState | None = None
    results: Results | None = None


#: A function that yields the answers to one question about a study.
Answers: TypeAlias = Callable[[DossierSubject], Iterator[Answer]]


@final
@attrs.frozen
class Item:
    """One question of a dossier.

    Attributes
    ----------
    layer
        The layer of the pyramid that the question belongs to.
    title
        The topic of the question.
    question
        The question itself.
    answers
        The function that yields the answers.
    """

    layer: str
    title: str
    question: str
    answers: Answers


@final
@attrs.frozen
class AnsweredItem:
    """A question with its answers. The question is open if one of its answers is open."""

    item: Item
    answers: tuple[Answer, ...]

    @property
    def open(self) -> bool:
        """Whether a part of the question has no answer."""
        return any(answer.basis is Basis.OPEN for answer in self.answers)


@final
@attrs.frozen
class Dossier:
    """All questions in scope with their answers, and the topics out of scope with the reasons.

    Attributes
    ----------
    items
        The answered questions, in the order of the pyramid from the top.
    out_of_scope
        Pairs of a topic and the reason why it is out of scope.
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
        """The number of questions without an open answer."""
        return sum(not one.open for one in self.items)

    @property
    def headline(self) -> str:
        """A sentence on how many questions are answered, and which are open."""
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
        The plan. If it has records of verification, the dossier quotes them (see `StudyPlan.with_verified`).
    statements
        The owner's statements; by default nothing is stated.
    ledger
        The ledger's entries about the study's data set, if there is a ledger.
    results
        The results of a run, if there was a run.
    """
    from dpframework.reports.dossier.review_board_questions import ITEMS, OUT_OF_SCOPE

    subject = DossierSubject(plan, statements or Statements(), ledger, results)
    return Dossier(tuple(AnsweredItem(item, tuple(item.answers(subject))) for item in ITEMS), OUT_OF_SCOPE)
