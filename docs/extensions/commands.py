"""The page of commands, with what each says of itself when asked for help: this command writes it anew.

python docs/extensions/commands.py
"""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpframework.cli import command as program

# A command remembers how its option of help was first spelled, which depends on who asked.
HELP = "| `-h, --help` | Show this message and exit. |"


def described(command: Any, path: str = "dpframework", parent: Any = None) -> Iterator[str]:
    """Yield the Markdown of a command, and of those below it."""
    context = command.context_class(command, info_name=path.split()[-1], parent=parent, **command.context_settings)
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield f"## {path}\n\n{_wrap(command.help)}\n\n```sh\n{usage}\n```\n"
    records = [one.get_help_record(context) for one in command.get_params(context) if one.name != "help"]
    yield "| argument or option | meaning |\n|---|---|"
    yield from (f"| `{_cell(_bare(name))}` | {_cell(meaning)} |" for name, meaning in filter(None, records))
    yield HELP
    if command.epilog:
        yield f"\nExample:\n\n```sh\n{command.epilog.removeprefix('Example: ')}\n```\n"
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from described(below, f"{path} {name}", context)


def _wrap(text: str) -> str:
    """Break each paragraph of a help text, which has one line for each."""
    return "\n\n".join(textwrap.fill(line, 120, break_on_hyphens=False) for line in text.split("\n\n"))


def _bare(name: str) -> str:
    """Drop the type that typer puts behind an argument."""
    return re.sub(r" <\w+>$", "", name)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "\\[")


PAGE = Path(__file__).parents[1] / "commands.md"


def page() -> str:
    """Return the page: what stands by hand before the first command, and the commands."""
    before = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    return before.rstrip("\n") + "\n\n" + "\n".join(described(program())).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
