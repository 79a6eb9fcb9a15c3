"""What a study found, with what was charged for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.files import write_whole
from dpframework.facts.privacy import PrivacyLoss, readable
from dpframework.facts.shown import html_line, html_text
from dpframework.results.json_safe import to_json_safe
from dpframework.run.scope import Charge
from dpframework.study.study_plan import StudyPlan
from dpframework.version import __version__

#: The name of a results file in a run's folder.
RESULTS = "results.json"

#: The version of the JSON form of results.
RESULTS_VERSION = 1


@final
@attrs.frozen(eq=False)
class Results(Mapping[str, Any]):
    """What a study found: one result a miner, by its name in the study, with what was charged.

    Attributes
    ----------
    plan
        The plan that was run.
    private
        Whether the plan's claim covers the results: False if the run was seeded, which is for experiments only, or
        if the schema was inferred from the data.
    accounting
        The notion of loss that the run was charged in.
    charges
        The releases made, in order.
    spent
        What they cost together.
    run
        The run's id in a ledger; None if it was not recorded in one.
    head
        The hash of the ledger's last entry about the run: a ledger without it was put back, or is another one.
    """

    found: Mapping[str, Any]
    plan: StudyPlan
    private: bool
    accounting: str
    charges: tuple[Charge, ...]
    spent: PrivacyLoss | None
    run: str | None = None
    head: str | None = None

    def __getitem__(self, name: str) -> Any:
        """Return one miner's result."""
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self.found)

    def __len__(self) -> int:
        """Return the number of miners."""
        return len(self.found)

    def _repr_html_(self) -> str:
        """Return each result as a notebook shows it, with what was spent."""
        spent = None if self.spent is None else self.spent.epsilon
        cost = "no finite epsilon" if spent is None else f"epsilon {readable(spent)}"
        verdict = "private" if self.private else "NOT PRIVATE: for experiments only"
        shown = [html_line(f"{len(self.charges)} releases, {cost} spent ({self.accounting} accounting); {verdict}")]
        for name, result in self.found.items():
            own = getattr(result, "_repr_html_", None)
            shown += [html_line(name, "h4"), html_text(str(result)) if own is None else own()]
        return "".join(shown)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results as JSON, all or nothing.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        write_whole(Path(path), self.to_json())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        total = self.plan.total()
        return {
            "results_version": RESULTS_VERSION,
            "dpframework": __version__,
            "private": self.private,
            "plan": self.plan.hash,
            **({} if self.run is None else {"run": self.run, "head": self.head}),
            "relation": self.plan.relation.value,
            "accounting": self.accounting,
            "budget": str(self.plan.budget.epsilon),
            "planned": None if total.epsilon is None else str(total.epsilon),
            "delta": str(total.delta),
            "spent": None if self.spent is None or self.spent.epsilon is None else str(self.spent.epsilon),
            "releases": len(self.charges),
            "results": {name: to_json_safe(result) for name, result in self.found.items()},
        }

    def to_json(self) -> str:
        """Write the results as JSON."""
        return json.dumps(self.to_dict(), indent=2) + "\n"
