"""The results of a study, with the charges of its run. They can be saved to a folder and loaded again."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.files import stage_folder, write_whole
from dpframework.facts.notebook_html import html_budget, html_line, html_text
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import NO_EPSILON, PrivacyLoss, readable
from dpframework.facts.value_checks import as_texts
from dpframework.results.json_safe import json_text, to_json_safe
from dpframework.results.matrix import Matrix, matrices_of
from dpframework.results.result import Drawable
from dpframework.run.run_scopes_and_charges import Charge
from dpframework.study.notebook_views import as_float, cost_bars
from dpframework.study.plan_steps_of_releases import step_numbers
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.version import __version__

if TYPE_CHECKING:
    import polars as pl

#: The name of the plan's file in a run's folder.
PLAN = "plan.json"

#: The name of the results' file in a run's folder.
RESULTS = "results.json"

#: The version of the JSON form of results.
RESULTS_VERSION = 1


def now() -> str:
    """Return the present time, in UTC, as results and reports write it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


@final
@attrs.frozen
class ResultTexts:
    """One result as text and matrices, read from a file of results."""

    text: str
    matrices: tuple[Matrix, ...] = ()


@final
@attrs.frozen(eq=False)
class Results(Mapping[str, Any], Drawable):
    """The results of a run, by the names of the study's steps, with the charges of the run.

    `plot` draws the loss of each release that was made.

    Attributes
    ----------
    plan
        The plan that was run.
    private
        Whether the plan's claim covers the results. False if the run was seeded, since seeds are for experiments, or if
        the schema was inferred from the data.
    accounting
        The notion of loss in which the run was charged, such as "zcdp".
    charges
        The releases that were made, in order.
    spent
        The total cost of these releases; None without a valid total.
    run
        The run's id in a ledger; None if it was not recorded in one.
    head
        The hash of the ledger's last entry about the run. A ledger that does not have this entry is an older copy, or a
        different ledger.
    stopped
        The reason why the run stopped early; None if it did not.
    data
        The data files, as the study file names them; empty for a study that was made in Python.
    time
        The time at which the run ended.
    version
        The version of dpframework that made the results.
    public_seed
        The seed of the miners' public draws, in hexadecimal; None if there were none.
    period
        The name of the period whose rows were read, such as 2026-03; None for a study without periods.
    samplers
        The samplers that drew noise and choices, "arrays" or "opendp"; None if the run was seeded.
    counting_summary
        A sentence about the database that evaluated the counts and the work that it did; None if this process counted.
    """

    found: Mapping[str, Any]
    plan: StudyPlan
    private: bool
    accounting: str
    charges: tuple[Charge, ...]
    spent: PrivacyLoss | None
    run: str | None = None
    head: str | None = None
    stopped: str | None = None
    data: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    time: str = attrs.field(factory=now)
    version: str = __version__
    _told: Mapping[str, ResultTexts] = attrs.field(factory=dict, repr=False)
    public_seed: str | None = None
    period: str | None = None
    samplers: str | None = None
    counting_summary: str | None = None

    def __getitem__(self, name: str) -> Any:
        if name not in self.found:
            raise KeyError(f"no result is named '{name}'; {nearest(str(name), self.found)}")
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def text(self, name: str) -> str:
        """Return one result as text, as it was printed after the run."""
        return self._told[name].text if name in self._told else str(self.found[name])

    def matrices(self, name: str) -> Sequence[Matrix]:
        """Return the matrices of one result, which a report shows as heat maps."""
        return self._told[name].matrices if name in self._told else matrices_of(self.found[name])

    def to_frame(self, name: str | None = None) -> pl.DataFrame:
        """Return one result as a polars dataframe, or the list of all releases with their losses.

        In the frame of releases, `expected` is the expected error in words, as in reports. An epsilon, rho or delta is
        null if the release has no claim in this notion.

        Parameters
        ----------
        name
            The name of a result (its class documents the columns); None for the releases.

        Raises
        ------
        KeyError
            If no result has that name.
        InputError
            If the result has no dataframe, for example because its miner's plugin was missing when results were loaded.
        """
        import polars as pl

        if name is not None:
            result = self[name]
            if not hasattr(result, "to_frame"):
                raise InputError(
                    f"result '{name}' is a {type(result).__name__}, which is no table; install the plugin of its "
                    f"miner, or use results['{name}'] as it is"
                )
            found: pl.DataFrame = result.to_frame()
            return found
        rows = [
            {
                "release": charge.path,
                "result": charge.path.partition("/")[0],
                "query": charge.step.facts.text,
                "mechanism": charge.step.mechanism.name,
                "epsilon": as_float(charge.calibration.losses.pure.under(self.plan.relation)),
                "rho": as_float(charge.calibration.losses.zcdp.under(self.plan.relation)),
                "delta": as_float(charge.calibration.losses.delta.under(self.plan.relation)),
                "expected": charge.calibration.preview.text,
            }
            for charge in self.charges
        ]
        texts, numbers = ("release", "result", "query", "mechanism"), ("epsilon", "rho", "delta")
        kinds = {**dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Float64), "expected": pl.String}
        return pl.DataFrame(rows, schema=kinds)

    def _plot(self, ax: Any | None) -> Any:
        releases = ((charge.path, charge.calibration) for charge in self.charges)
        spent = NO_EPSILON if self.spent is None else self.spent.text
        title = f"{spent} spent of a budget of {readable(self.plan.budget.epsilon)}"
        return cost_bars(releases, self.plan.relation, title, ax)

    def __str__(self) -> str:
        """Write each result below its name, and then what was spent."""
        shown = [f"{name}\n{self.text(name)}" for name in self.found]
        stopped = [] if self.stopped is None else [f"STOPPED before its end: {self.stopped}"]
        return "\n\n".join([*stopped, *shown, self._cost])

    @property
    def _cost(self) -> str:
        """The number of releases, what they cost, and whether they are private, as a sentence."""
        cost = NO_EPSILON if self.spent is None else self.spent.text
        verdict = "private" if self.private else "NOT PRIVATE: for experiments only"
        return f"{count_text(len(self.charges), 'release')}, {cost} spent ({self.accounting} accounting); {verdict}"

    def _repr_html_(self) -> str:
        """Return HTML with the spent budget and all results, for a notebook."""
        spent = None if self.spent is None else self.spent.epsilon
        shown = [html_budget(spent, self.plan.budget.epsilon, self._cost)]
        if self.stopped is not None:
            shown.insert(0, html_line(f"STOPPED before its end: {self.stopped}"))
        for name, result in self.found.items():
            own = getattr(result, "_repr_html_", None)
            shown += [html_line(name, "h4"), html_text(self.text(name)) if own is None else own()]
        return "".join(shown)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `results.json` and `plan.json` into a new folder: both files or none. `load` reads the folder.

        Raises
        ------
        InputError
            If the folder is not empty, or cannot be written.
        """
        out = Path(folder)
        with stage_folder(out, (PLAN, RESULTS)) as stage:
            write_whole(stage / PLAN, self.plan.to_json(), called=out / PLAN)
            write_whole(stage / RESULTS, self.to_json(), called=out / RESULTS)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Results:
        """Read the folder of a run, as written by `save` or the command `dpframework run`.

        Each result is read as an object of the class that its miner declares as `result`. If the miner declares none or
        is not installed, the result is plain JSON: lists, numbers and texts. Reports show results as they did after the
        run.

        Raises
        ------
        InputError
            If a file is missing, is not a file of results, or belongs to another plan. The message names the file.
        """
        from dpframework.study.run_folder_reader import load_results

        return load_results(Path(folder))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        total = self.plan.total()
        schema, spent = self.plan.schema, self.spent
        matrices = {name: [matrix.to_dict() for matrix in self.matrices(name)] for name in self.found}
        return {
            "results_version": RESULTS_VERSION,
            "dpframework": self.version,
            "private": self.private,
            "plan": self.plan.hash,
            **({} if self.run is None else {"run": self.run, "head": self.head}),
            "relation": self.plan.relation.value,
            "accounting": self.accounting,
            "budget": str(self.plan.budget.epsilon),
            "planned": None if total.epsilon is None else str(total.epsilon),
            "delta": str(total.delta),
            "spent": None if spent is None or spent.epsilon is None else str(spent.epsilon),
            "spent_delta": None if spent is None else str(spent.delta),
            "spent_text": NO_EPSILON if spent is None else spent.text,
            "releases": len(self.charges),
            **({} if self.public_seed is None else {"public_seed": self.public_seed}),
            **({} if self.period is None else {"period": self.period}),
            **({} if self.samplers is None else {"samplers": self.samplers}),
            **({} if self.counting_summary is None else {"counted": self.counting_summary}),
            **({} if self.stopped is None else {"stopped": self.stopped}),
            "about": {
                "schema": None if schema is None else schema.to_dict(),
                "data": list(self.data),
                "time": self.time,
                "version": self.version,
            },
            "results": {name: to_json_safe(result) for name, result in self.found.items()},
            "charges": [charge.path for charge in self.charges],
            "steps": step_numbers(self.plan, self.charges),
            "texts": {name: self.text(name) for name in self.found},
            "matrices": {name: some for name, some in matrices.items() if some},
        }

    def to_json(self) -> str:
        """Return the results as JSON."""
        return json_text(self.to_dict()) + "\n"
