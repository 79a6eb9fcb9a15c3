"""The commands `miners` and `mechanisms`, which list installed components, and `explain`."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

import attrs
import typer

from dpframework.cli import argument_completion
from dpframework.cli.command_classes import Command
from dpframework.cli.common import Json, console, plain_table, print_json, warn_of_problems, write
from dpframework.facts.errors import InputError, nearest
from dpframework.study.plugin_registry import PluginComponent, registry

_SHOWS = "Show only this component, with its parameters, defaults and documentation."
MinerName = Annotated[
    str | None, typer.Argument(metavar="NAME", autocompletion=argument_completion.miners, help=_SHOWS)
]
MechanismName = Annotated[
    str | None, typer.Argument(metavar="NAME", autocompletion=argument_completion.mechanisms, help=_SHOWS)
]


app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework miners dp-id3")
def miners(name: MinerName = None, as_json: Json = False) -> None:
    """List the installed miners, or show the parameters of one."""
    _show("miner", registry().miners, name, as_json)


@app.command(cls=Command, epilog="Example: dpframework mechanisms laplace")
def mechanisms(name: MechanismName = None, as_json: Json = False) -> None:
    """List the installed mechanisms, or show the parameters of one."""
    _show("mechanism", registry().mechanisms, name, as_json)


def _show(what: str, known: dict[str, PluginComponent], name: str | None, as_json: bool) -> None:
    if not as_json:
        warn_of_problems(of_all=name is None)
    if name is not None:
        if name not in known:
            raise InputError(f"no {what} is named '{name}'; {nearest(name, known)}")
        show_one(name, known[name], as_json)
    elif as_json:
        problems = [str(problem) for problem in registry().checked()]
        print_json({f"{what}s": [_facts(n, b) for n, b in known.items()], "problems": problems})
    elif not known:
        write(f"no {what} is installed")
    else:
        from rich.text import Text

        table = plain_table(what, "plugin", "what it does")
        for key, brought in known.items():
            facts = _facts(key, brought)
            table.add_row(Text(key, style="bold cyan"), Text(facts["plugin"]), Text(facts["summary"]))
        console().print(table)


def _facts(name: str, brought: PluginComponent) -> dict[str, str]:
    return {"name": name, "plugin": brought.plugin, "summary": _doc(brought.component).split("\n")[0]}


def _doc(kind: type[Any]) -> str:
    # Only the class's own docstring is shown. An undocumented class must not show the text of its base.
    return inspect.cleandoc(kind.__doc__) if kind.__doc__ else "(not documented)"


def show_one(name: str, brought: PluginComponent, as_json: bool) -> None:
    """Show the parameters, defaults and documentation of one miner or mechanism."""
    from rich.text import Text

    from dpframework.reports.terminal_line_breaks import fit_prose

    facts, parameters = _facts(name, brought), _parameters(brought.component)
    if as_json:
        print_json({**facts, "documentation": _doc(brought.component), "parameters": parameters})
        return
    out = console()
    out.print(Text.assemble((name, "bold cyan"), f"  (plugin {brought.plugin})"))
    introduction = _SECTION.split(_doc(brought.component), maxsplit=1)[0].strip()
    out.print(Text(fit_prose(introduction, out.width)), soft_wrap=True)
    out.print(Text("\nParameters", style="bold cyan"))
    for parameter in parameters:
        needed = ("required", "bold") if parameter["required"] else (f"default {parameter['default']}", "green")
        out.print(Text.assemble((parameter["name"], "bold"), f": {parameter['type']}, ", needed))
        if parameter["doc"]:
            out.print(Text(fit_prose(parameter["doc"], out.width, "    ")), soft_wrap=True)


def _parameters(kind: type[Any]) -> list[dict[str, Any]]:
    """Return the name, type, default and documentation of each parameter of an attrs class, with inherited ones."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        docs |= _parameter_docs(inspect.cleandoc(vars(base).get("__doc__") or ""))
    found = []
    for field in attrs.fields(kind):
        if not field.init:
            continue
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = default.factory() if not default.takes_self else "depends on the other parameters"
        name = field.alias or field.name
        found.append(
            {
                "name": name,
                "type": getattr(field.type, "__name__", str(field.type)),
                "required": default is attrs.NOTHING,
                "default": None if default is attrs.NOTHING else default if isinstance(default, str) else repr(default),
                "doc": docs.get(name, ""),
            }
        )
    return found


_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def _parameter_docs(doc: str) -> dict[str, str]:
    """Return the text of each parameter in the sections Parameters and Attributes of a numpy docstring."""
    heads = list(_SECTION.finditer(doc))
    found: dict[str, str] = {}
    for k, head in enumerate(heads):
        if head.group(1) not in ("Parameters", "Attributes"):
            continue
        body = doc[head.end() : heads[k + 1].start() if k + 1 < len(heads) else None]
        for entry in re.finditer(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n(?=[ \t]))+)", body, re.MULTILINE):
            names = entry.group(1).split(" : ")[0]
            for name in names.split(","):
                found[name.strip()] = inspect.cleandoc(entry.group(2)).strip()
    return found


@app.command(cls=Command, epilog="Example: dpframework explain DP012")
def explain(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="The code of a check, or the name of an assumption or a mechanism.")
    ],
    as_json: Json = False,
) -> None:
    """Explain a check (DP012), an assumption (mcmc-converged) or a mechanism (k-norm). Needs no network."""
    warn_of_problems()
    from dpframework.checks import ALLOWANCES, ASSUMPTIONS, check_page

    mechanisms = registry().mechanisms
    titles = {check.code: check.title for check in registry().checks}
    name = topic.upper() if topic.upper() in titles else topic
    if name in mechanisms:
        show_one(name, mechanisms[name], as_json)
        return
    allowed = {**ASSUMPTIONS, **{name: (one.what, one.code) for name, one in ALLOWANCES.items()}}
    if name not in titles and name not in allowed:
        raise InputError(
            f"no check, assumption or mechanism is named '{topic}'; {nearest(topic, [*titles, *allowed, *mechanisms])}"
        )
    if name in allowed:
        what, code = allowed[name]
        kind = "an assumption" if name in ASSUMPTIONS else "a name that a study may allow"
        text = f"# {name}: {kind}\n\n{what}\n\n`dpframework explain {code}` explains the check that asks for it.\n"
    else:
        page = check_page(name)
        text = (
            f"# {name}: {titles[name]}\n\nA plugin's check. The plugin's documentation explains it.\n"
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
