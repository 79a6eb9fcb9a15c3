"""The order of the pages. It stands here, not in the pages, so that they read well as plain Markdown too."""

from typing import Any

READERS = {
    "Analyst": [
        "tutorial-analyst",
        "basics",
        "budgets",
        "units",
        "classifiers",
        "redescriptions",
        "distances",
        "study-format",
        "cluster",
        "examples/adult/README",
        "examples/mushroom/README",
        "compared",
    ],
    "Auditor": [
        "tutorial-auditor",
        "composition",
        "plan-format",
        "checks",
        "soundness",
        "verify",
        "known-bugs",
        "ledger",
        "dossier",
        "examples/registry/README",
    ],
    "Researcher": [
        "tutorial-researcher",
        "proofs",
        "evaluation",
        "experiment-format",
        "experiments/index",
        "examples/dpframework-example/README",
        "hooks",
    ],
    "Contributor": ["contributing", "architecture", "security", "changelog"],
    "Reference": ["commands", "reference/index"],
}
ROOMS = """
    facts results tables formulas queries mechanisms plan run accountant checks basics study ledger verify reports lab
    evaluation experiment skeleton trees greedy distance
"""
BELOW = {
    "checks": ["checks/*"],
    "experiments/index": ["*"],
    "hooks": ["hooks/*"],
    "soundness": ["soundness/*"],
    "reference/index": ROOMS.split(),
}


def _toctree(pages: list[str], *options: str) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", ":glob:", *options, "", *pages, "```", ""])


def _add(app: Any, page: str, source: list[str]) -> None:
    if page == "index":
        for reader, pages in READERS.items():
            source[0] += _toctree(pages, f":caption: {reader}")
    if page in BELOW:
        source[0] += _toctree(BELOW[page])


def _of_source_pages(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Make the navigation of pages that show source once a depth: it is the same on all, and there are hundreds."""
    if not page.startswith("_modules/"):
        return
    toctree = context["toctree"]

    def once(**options: Any) -> Any:
        key = (page.count("/"), tuple(sorted(options.items())))
        if key not in _MADE:
            _MADE[key] = toctree(**options)
        return _MADE[key]

    context["toctree"] = once


_MADE: dict[Any, Any] = {}


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _add)
    app.connect("html-page-context", _of_source_pages, priority=100)  # before the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
