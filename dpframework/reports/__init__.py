"""Reports: what was planned, what was found in the plan, and what a run released, for people to read.

Pages for a browser are in `dpframework.reports.html`, which who does not write one need not import.
"""

from __future__ import annotations

from dpframework.reports.facts import NodeRow, Ran, StepRow, node_tree, step_rows
from dpframework.reports.markdown import markdown_report
from dpframework.reports.terminal import terminal_report

__all__ = [
    "NodeRow",
    "Ran",
    "StepRow",
    "markdown_report",
    "node_tree",
    "step_rows",
    "terminal_report",
]
