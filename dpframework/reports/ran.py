"""What a run did, for a report: read from a file of results as well as from the results themselves."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import read_text
from dpframework.facts.privacy import exact
from dpframework.facts.toml import begun_with
from dpframework.reports.about import About
from dpframework.reports.losses import loss_text
from dpframework.results.matrix import Matrix, matrices_of
from dpframework.study.results import RESULTS, RESULTS_VERSION, Results
from dpframework.study.study_plan import StudyPlan


@final
@attrs.frozen
class Ran:
    """What a run did, as it is kept in a results file.

    Attributes
    ----------
    private
        False for a seeded run or an inferred schema: the results must not be published.
    accounting
        The notion of loss that was charged.
    spent
        What the releases cost together.
    charges
        The path of each release, in order.
    texts
        Each miner's result as text.
    stopped
        Why the run stopped before its end; None if it did not.
    epsilon
        The epsilon of what was spent, exact; None if it is not finite.
    run
        The run's id in a ledger; None if it was not recorded in one.
    head
        The hash of the ledger's last entry about it.
    about
        What the plan does not hold; None in a file that lacks it.
    matrices
        The matrices of each result that has some.
    """

    private: bool
    accounting: str
    spent: str
    charges: tuple[str, ...]
    texts: Mapping[str, str]
    stopped: str | None = None
    epsilon: Fraction | None = None
    run: str | None = None
    head: str | None = None
    about: About | None = None
    matrices: Mapping[str, tuple[Matrix, ...]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, results: Results, *, stopped: str | None = None, about: About | None = None) -> Ran:
        """Return what a run did."""
        return cls(
            results.private,
            results.accounting,
            loss_text(results.spent),
            tuple(charge.path for charge in results.charges),
            {name: str(result) for name, result in results.items()},
            stopped,
            None if results.spent is None else results.spent.epsilon,
            results.run,
            results.head,
            about,
            {name: tuple(found) for name, result in results.items() if (found := matrices_of(result))},
        )

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Ran:
        """Read what `to_dict` wrote, among other keys.

        Raises
        ------
        InputError
            If a key lacks or has another type, or the results are of another version.
        """
        version = form.get("results_version")
        if version != RESULTS_VERSION:
            raise InputError(
                f"results version {version!r} cannot be read; this dpframework reads version {RESULTS_VERSION}"
            )
        kinds = {"private": bool, "accounting": str, "spent_text": str, "charges": list, "texts": dict}
        for key, kind in kinds.items():
            if not isinstance(form.get(key), kind):
                raise InputError(f"these are not results that dpframework wrote: '{key}' lacks or has another type")
        charges, stopped = tuple(map(str, form["charges"])), form.get("stopped")
        reason = None if stopped is None else str(stopped)
        texts = {str(name): str(text) for name, text in form["texts"].items()}
        run, head = (None if form.get(key) is None else str(form[key]) for key in ("run", "head"))
        spent = None if form.get("spent") is None else exact(form["spent"], "'spent'")
        about = None if form.get("about") is None else About.from_dict(form["about"])
        told = form["private"], form["accounting"], form["spent_text"]
        return cls(*told, charges, texts, reason, spent, run, head, about, _matrices(form.get("matrices", {})))

    @classmethod
    def read(cls, source: Path) -> tuple[Ran, str]:
        """Read a results file, or that of a run's folder; return it with the hash of the plan that was run.

        Raises
        ------
        InputError
            If it cannot be read, or is something else: one sentence that names the file.
        """
        source = source / RESULTS if source.is_dir() else source
        with begun_with(f"{source}: "):
            try:
                form = json.loads(read_text(source))
            except (ValueError, RecursionError):
                raise InputError("is not JSON") from None
            if not isinstance(form, dict) or not isinstance(form.get("plan"), str):
                raise InputError("these are not results that dpframework wrote")
            return cls.from_dict(form), form["plan"]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        matrices = {name: [matrix.to_dict() for matrix in some] for name, some in self.matrices.items()}
        return {
            "results_version": RESULTS_VERSION,
            "private": self.private,
            "accounting": self.accounting,
            "spent": None if self.epsilon is None else str(self.epsilon),
            "spent_text": self.spent,
            "charges": list(self.charges),
            "texts": dict(self.texts),
            **({} if self.stopped is None else {"stopped": self.stopped}),
            **({} if self.run is None else {"run": self.run, "head": self.head}),
            **({} if self.about is None else {"about": self.about.to_dict()}),
            **({"matrices": matrices} if matrices else {}),
        }

    def facts(self, plan: StudyPlan) -> list[tuple[str, str]]:
        """Return what was charged, beside what was planned."""
        in_ledger = {"run in the ledger": self.run, "head of the ledger after it": self.head}
        recorded = [(name, value) for name, value in in_ledger.items() if value is not None]
        return [
            *recorded,
            ("releases", str(len(self.charges))),
            ("accounting", self.accounting),
            ("spent", self.spent),
            ("planned at most", loss_text(plan.totals().get(self.accounting))),
        ]

    def headlines(self, plan: StudyPlan) -> list[str]:
        """Return what a reader must know first: that the run stopped early, if it did, and the verdict."""
        stopped = [] if self.stopped is None else [f"STOPPED before its end: {self.stopped}"]
        return [*stopped, self.verdict(plan)]

    def verdict(self, plan: StudyPlan) -> str:
        """Return one sentence: may the results be published or not."""
        if plan.facts.inferred:
            return "NOT PRIVATE: the schema was inferred from private data, which no epsilon covers"
        if not self.private:
            return "NOT PRIVATE: this run was seeded, for experiments only; its results must not be published"
        return "private: drawn from the operating system's cryptographic generator"

    def made(self, plan: StudyPlan) -> dict[str, int]:
        """Return how often each planned step was released, by its path in the plan.

        A run numbers the parts that a template stands for ("parts 3/counts"); the plan writes it once
        ("parts/counts").
        """
        places = {row_path for row_path, _ in plan.placed_steps()}
        templates = {_unnumbered(path): path for path in reversed(list(places))}
        return Counter(path if path in places else templates.get(_unnumbered(path), path) for path in self.charges)


def _matrices(form: Any) -> dict[str, tuple[Matrix, ...]]:
    """Read the matrices of results."""
    if not isinstance(form, Mapping) or not all(isinstance(some, list) for some in form.values()):
        raise InputError("these are not results that dpframework wrote: 'matrices' has another type")
    return {str(name): tuple(map(Matrix.from_dict, some)) for name, some in form.items()}


def _unnumbered(path: str) -> str:
    *scopes, step = path.split("/")
    return "/".join([*(re.sub(r" \d+$", "", scope) for scope in scopes), step])
