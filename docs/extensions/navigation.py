"""The order of the pages. It stands here, not in the pages, so that they read well as plain Markdown too."""

from typing import Any

from docutils import nodes
from sphinx import addnodes

READERS = {
    "Analyst": [
        "tutorial-analyst",
        "how-to",
        "gallery",
        "basics",
        "budgets",
        "units",
        "classifiers",
        "redescriptions",
        "distances",
        "tables",
        "study-format",
        "engines",
        "cluster",
        "examples/adult/README",
        "examples/mushroom/README",
        "mistakes",
        "compared",
    ],
    "Auditor": [
        "tutorial-auditor",
        "composition",
        "plan-format",
        "checks",
        "soundness",
        "samplers",
        "verify",
        "known-bugs",
        "ledger",
        "dossier",
        "examples/registry/README",
    ],
    "Researcher": [
        "tutorial-researcher",
        "paper-to-plugin",
        "tutorial-criterion",
        "examples/aim/README",
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
    facts results tables formulas queries redescriptions mechanisms plan run accountant checks basics study ledger
    verify reports lab evaluation experiment skeleton trees greedy distance synthetic
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


def _of_titles(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Make the navigation from the titles of pages alone, which it shows.

    Sphinx copies all that the pages of the reference list for each page, and leaves it out then. On pages that show
    source it is the same for each depth, and there are hundreds.
    """
    whole_toctree = context["toctree"]

    def of_titles(**options: Any) -> Any:
        whole, app.env.tocs = app.env.tocs, _titles(app.env.tocs)
        try:
            return whole_toctree(**options)
        finally:
            app.env.tocs = whole

    def once(**options: Any) -> Any:
        key = (page.count("/"), tuple(sorted(options.items())))
        if key not in _MADE:
            _MADE[key] = of_titles(**options)
        return _MADE[key]

    context["toctree"] = once if page.startswith("_modules/") else of_titles


def _titles(contents: dict[str, Any]) -> dict[str, Any]:
    if not _TITLES:
        for page, listed in contents.items():
            title = listed.children[0]
            trees = [tree.copy() for tree in listed.findall(addnodes.toctree)]
            below = [nodes.bullet_list("", *trees)] if trees else []
            _TITLES[page] = nodes.bullet_list("", nodes.list_item("", title.children[0].deepcopy(), *below))
    return _TITLES


_MADE: dict[Any, Any] = {}
_TITLES: dict[str, Any] = {}


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _add)
    app.connect("html-page-context", _of_titles, priority=100)  # before the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
