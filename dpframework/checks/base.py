"""The class of checks, which examine a plan, and the class of their findings, which an auditor reads."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.accountant import AccountedPlan
from dpframework.facts.control_character_escapes import printable
from dpframework.facts.errors import DPFrameworkError, InputError, first_line
from dpframework.facts.notebook_html import html_line, html_table
from dpframework.facts.phrases import count_text
from dpframework.plan.plan import Plan
from dpframework.results.result import Drawable, axes_or_new

if TYPE_CHECKING:
    import polars as pl


class Severity(enum.StrEnum):
    """The severity of a finding. An error refuses the plan. Warnings and information do not."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


_COLOURS = {Severity.ERROR: "#b45f06", Severity.WARNING: "#bf9000", Severity.INFO: "#0b5394"}


@final
@attrs.frozen
class Finding:
    """A finding of a check about a plan.

    Attributes
    ----------
    code
        The check's code, such as DP001. The page docs/checks/CODE.md explains each built-in check.
    severity
        Whether the finding is an error, which refuses the plan, a warning, or information.
    message
        A sentence that says what was found, where, and what to do.
    """

    code: str
    severity: Severity = attrs.field(converter=Severity)
    message: str = attrs.field(converter=printable)

    def __str__(self) -> str:
        """Write the finding on one line."""
        return f"{self.code} {self.severity}: {self.message}"

    def _repr_html_(self) -> str:
        """Return the finding for a notebook."""
        return Findings([self])._repr_html_()

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-safe form."""
        return {"code": self.code, "severity": self.severity.value, "message": self.message}


@final
class Findings(list[Finding], Drawable):
    """A list of findings, which a notebook shows as one table.

    The plot shows how many findings each check has, with errors first, then warnings, then information.
    """

    def _repr_html_(self) -> str:
        if not self:
            return html_line("no findings")
        rows = [(finding.code, finding.severity.value, finding.message) for finding in self]
        return html_table(("code", "severity", "finding"), rows)

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with the columns `code`, `severity` and `finding`."""
        import polars as pl

        rows = [(finding.code, finding.severity.value, finding.message) for finding in self]
        return pl.DataFrame(rows, schema=dict.fromkeys(("code", "severity", "finding"), pl.String), orient="row")

    def _plot(self, ax: Any | None) -> Any:
        order = list(Severity)
        kinds = sorted({(order.index(finding.severity), finding.code) for finding in self})
        numbers = [sum((order.index(f.severity), f.code) == kind for f in self) for kind in kinds]
        axes = axes_or_new(ax, figsize=(6, 1 + 0.25 * len(kinds)))
        axes.barh(range(len(kinds)), numbers, color=[_COLOURS[order[k]] for k, _ in kinds])
        axes.set_yticks(range(len(kinds)), [f"{code} {order[k].value}" for k, code in kinds])
        axes.invert_yaxis()
        axes.set(xlabel="findings", title=count_text(len(self), "finding"))
        return axes


@final
@attrs.frozen
class Check:
    """A named rule over plans. `examine` yields (severity, message) for each finding."""

    code: str
    title: str
    examine: Callable[[AccountedPlan], Iterable[tuple[Severity, str]]]

    def __attrs_post_init__(self) -> None:
        if not re.fullmatch(r"[A-Z]{2,10}[0-9]{3}", self.code):
            raise InputError(
                f"the check code {self.code!r} cannot be used; write two to ten capitals and three digits, such as "
                "DP001"
            )

    def findings(self, plan: AccountedPlan) -> Iterator[Finding]:
        """Yield the check's findings about a plan.

        Raises
        ------
        InputError
            If `examine` fails, or yields anything but pairs of a severity and a text. What cannot be read may be a
            finding that refuses the plan, so the plan is neither checked nor run.
        """
        what = f"check {self.code} ({self.title})"
        try:
            for found in self.examine(plan):
                if not isinstance(found, tuple | list) or len(found) != 2 or not isinstance(found[1], str):
                    raise InputError(
                        f"{what} yields {type(found).__name__}, not a pair of a severity and a text; write: yield "
                        'dpf.Severity.ERROR, "what is wrong, and what to do"'
                    )
                if found[0] not in list(Severity):
                    raise InputError(
                        f"{what} yields the severity {found[0]!r}; accepted: {', '.join(map(repr, map(str, Severity)))}"
                    )
                yield Finding(self.code, *found)
        except DPFrameworkError:
            raise
        except Exception as error:
            raise InputError(f"{what} failed with {type(error).__name__}: {first_line(error)}") from error


def unless_allowed(plan: Plan, name: str, what: str, remedy: str) -> tuple[Severity, str]:
    """Return a warning with its remedy, or information if the study allows the risk `name`."""
    if name in plan.budget.allow:
        return Severity.INFO, f"{what}; the study allows '{name}'"
    return Severity.WARNING, f"{what}; {remedy}, or allow '{name}'"
