"""Reports: what was planned, what was found in the plan, and what a run released, for people to read."""

from __future__ import annotations

from dpframework.reports.facts import Ran, StepRow, step_rows
from dpframework.reports.markdown import markdown_report
from dpframework.reports.terminal import terminal_report

__all__ = ["Ran", "StepRow", "markdown_report", "step_rows", "terminal_report"]
