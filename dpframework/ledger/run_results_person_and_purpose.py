"""The subject of a run, as the ledger records it: the study, its results, who ran it and for what purpose."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import PureAccountant
from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import as_texts, printable_name, read_ratio
from dpframework.plan.error_bounds_by_result import parts_of
from dpframework.plan.plan import Plan
from dpframework.plan.plan_node_index import Reads


def one_line(value: str, what: str) -> str:
    """Return a text if it is one line of visible characters, so that lists can show it on one line.

    Raises
    ------
    InputError
        If the text is empty, has several lines, or has an invisible character. The message calls the text `what`.
    """
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InputError(f"{what} is {value!r}; a text of one line is needed")
    return printable_name(value, what)


def require_unlike(name: str, known: Iterable[str]) -> None:
    """Refuse a name that differs from a known name only in spaces, or in how Unicode writes a letter.

    Raises
    ------
    InputError
        If there is such a name. The message says which.
    """
    for other in known:
        if _as_read(other) == _as_read(name):
            raise InputError(f"'{name}' reads like '{other}', which is another name; give one that nobody confuses")


def _as_read(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).split())


@final
@attrs.frozen
class RecordedResult:
    """One result of a run.

    Attributes
    ----------
    name
        The name of the result in the study.
    miner
        The name of the miner, or "add_plan" for releases that were planned without a miner. Empty if the plan does not
        say.
    attributes
        The attributes on which its releases may depend; None if they may depend on any.
    epsilon
        The pure epsilon of its releases; None if they have no finite pure epsilon.
    """

    name: str
    miner: str = ""
    attributes: Reads = attrs.field(default=None, converter=attrs.converters.optional(as_texts))
    epsilon: Fraction | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "name": self.name,
            "miner": self.miner,
            "attributes": None if self.attributes is None else list(self.attributes),
            "epsilon": None if self.epsilon is None else str(self.epsilon),
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> RecordedResult:
        """Read the output of `to_dict`."""
        epsilon = form["epsilon"]
        return cls(form["name"], form["miner"], form["attributes"], None if epsilon is None else read_ratio(epsilon))


def recorded_results(plan: Plan) -> tuple[RecordedResult, ...]:
    """Return the results of a plan, as a run records them."""
    accountant = PureAccountant(plan.relation)
    return tuple(
        RecordedResult(
            name,
            plan.miners.get(name, {}).get("miner", ""),
            plan.index.reads[part.number],
            accountant.amount_of(part.node, plan).under(plan.relation),
        )
        for name, part in parts_of(plan)
    )


@final
@attrs.frozen
class RunSubject:
    """What a run was about.

    Attributes
    ----------
    study
        The study's name; empty if it was not given.
    by
        The name that the person who ran it gave; empty if it was not given.
    purpose
        The purpose of the run; empty if it was not given.
    results
        The results of the run; None for a run by an older version of dpframework, which did not record them.
    period
        The period whose rows the run read; empty if the privacy unit has no periods.
    """

    study: str = ""
    by: str = ""
    purpose: str = ""
    results: tuple[RecordedResult, ...] | None = None
    period: str = ""

    @property
    def sentence(self) -> str:
        """A phrase with the name and the purpose that were given."""
        who = f"run by {self.by}" if self.by else "nobody said who ran it"
        return f"{who}: {self.purpose}" if self.purpose else who

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the recorded results."""
        return tuple(result.name for result in self.results or ())

    @property
    def attributes(self) -> Reads:
        """The attributes on which the run's results may depend; None if this is any attribute, or unknown."""
        if self.results is None or any(result.attributes is None for result in self.results):
            return None
        return tuple(dict.fromkeys(name for result in self.results for name in result.attributes or ()))

    def entry(self, plan: Plan) -> dict[str, Any]:
        """Return the part of a run's entry about its subject."""
        texts = {"study": self.study, "by": self.by, "purpose": self.purpose, "period": self.period}
        said = {key: text for key, text in texts.items() if text}
        return {**said, "results": [result.to_dict() for result in recorded_results(plan)]}

    @classmethod
    def of_entry(cls, content: Mapping[str, Any]) -> RunSubject:
        """Read the part of an entry that `entry` wrote."""
        results = content.get("results")
        return cls(
            content.get("study", ""),
            content.get("by", ""),
            content.get("purpose", ""),
            None if results is None else tuple(map(RecordedResult.from_dict, results)),
            content.get("period", ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        results = None if self.results is None else [result.to_dict() for result in self.results]
        period = {"period": self.period} if self.period else {}
        return {"study": self.study, "by": self.by, "purpose": self.purpose, "results": results, **period}
