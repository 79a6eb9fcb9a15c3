"""The command `explain`, about a check, an assumption or a mechanism."""

from __future__ import annotations

from typing import Annotated

import typer

from dpframework.cli.common import Json, console, print_json, warn_of_problems, write
from dpframework.cli.listing import show_one
from dpframework.cli.parameters import Command
from dpframework.facts.errors import InputError, nearest
from dpframework.study.registry import registry


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog="Example: dpframework explain DP012")(explain)


def explain(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A check's code, an assumption, or a mechanism.")],
    as_json: Json = False,
) -> None:
    """Explain a check (DP012), an assumption (mcmc-converged) or a mechanism (k-norm). Needs no network."""
    warn_of_problems()
    from dpframework.checks import ALLOWED_NOISE, ASSUMPTIONS, check_page

    mechanisms = registry().mechanisms
    titles = {check.code: check.title for check in registry().checks}
    name = topic.upper() if topic.upper() in titles else topic
    if name in mechanisms:
        show_one(name, mechanisms[name], as_json)
        return
    allowed = {**ASSUMPTIONS, **ALLOWED_NOISE}
    if name not in titles and name not in allowed:
        raise InputError(f"nothing is known of '{topic}'; {nearest(topic, [*titles, *allowed, *mechanisms])}")
    if name in allowed:
        what, code = allowed[name]
        kind = "an assumption" if name in ASSUMPTIONS else "noise that a study may allow"
        text = f"# {name}: {kind}\n\n{what}\n\n`dpframework explain {code}` explains the check that asks for it.\n"
    else:
        page = check_page(name)
        text = (
            f"# {name}: {titles[name]}\n\nA plugin's check; its documentation says more.\n"
            if page is None
            else page.text
        )
    if as_json:
        print_json({"topic": name, "text": text})
    elif console().is_terminal:
        from rich.markdown import Markdown

        console().print(Markdown(text))
    else:
        write(text, end="")
