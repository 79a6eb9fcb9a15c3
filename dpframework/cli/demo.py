"""The command `demo`, which shows the whole way from a plan to results on a synthetic clinic."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpframework.cli.command_classes import Command
from dpframework.cli.common import Json, NewFolder, Seed, console, plain_table, print_json, write
from dpframework.cli.progress import progress
from dpframework.facts.files import stage_folder
from dpframework.facts.phrases import count_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from dpframework.lab.demo import Demo


app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework demo --out demo-results")
def demo(seed: Seed = None, out: Annotated[Path | None, NewFolder] = None, as_json: Json = False) -> None:
    """Mine a synthetic clinic of 20,000 patients: plan (at first too much), check, run, and compare with the truth."""
    from dpframework.cli.run import FILES, REPORT, write_outputs
    from dpframework.lab.demo import run_demo

    if out is None:
        done = run_demo(seed=seed, progress=progress)
    else:
        with stage_folder(out, FILES) as folder:
            done = run_demo(seed=seed, progress=progress)
            write_outputs(folder, done.results, title="demo: a synthetic clinic")
    if as_json:
        print_json(
            {
                **done.results.to_dict(),
                "refused": done.refused,
                "findings": [finding.to_dict() for finding in done.findings],
                "comparisons": [comparison.to_dict() for comparison in done.comparisons],
            }
        )
        return
    for part in _story(done):
        console().print(part, soft_wrap=not console().is_terminal, crop=False)
    if out is not None:
        write(f"\nwrote {', '.join(str(out / name) for name in FILES)}")
    if console().is_terminal:
        import webbrowser

        place = Path(tempfile.mkdtemp(prefix="dpframework-demo-")) if out is None else out
        if out is None:
            write_outputs(place, done.results, title="demo: a synthetic clinic")
        page = (place / REPORT).resolve()
        write(f"\nthe report, for a browser: {page.as_uri()}")
        if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(page.as_uri())


def _story(done: Demo) -> Iterator[RenderableType]:
    from rich.text import Text

    from dpframework.lab.demo import budget
    from dpframework.reports.plan_and_node_losses import loss_text
    from dpframework.reports.run_summary import RunSummary
    from dpframework.reports.terminal_line_breaks import FittedText
    from dpframework.reports.terminal_renderer import findings_text, heading, headlines_text

    yield Text("A synthetic clinic: 20,000 patients, 24 diagnoses, 16 laboratory values", style="bold")
    yield Text(f"Question: which laboratory values go with four of the diagnoses, for a total epsilon of {budget()}?")

    yield heading("1. Plan too much, and be refused")
    yield Text(f"A study with a fifth tree: {done.refused}", style="red")
    yield Text("The patients' table was not opened." if not done.opened_when_refused else "The table WAS opened.")

    yield heading("2. Plan within the budget")
    yield FittedText(lambda width: _outline(done, width))

    yield heading("3. Check")
    yield findings_text(done.findings)

    yield heading("4. Run")
    releases = count_text(len(done.results.charges), "release")
    yield Text(f"{releases} in {done.seconds:.1f} s, {loss_text(done.results.spent)} spent")
    yield headlines_text(RunSummary.of(done.results), done.plan)
    for name, result in done.results.items():
        yield Text(f"\n{done.target(name)}, from laboratory values", style="bold")
        yield FittedText(functools.partial(_colour_tree, str(result)))

    yield heading("5. Against the truth")
    yield Text(
        "This evaluation, on patients that no tree has seen, is not private. It is possible because the clinic is "
        "synthetic.",
        style="dim",
    )
    table = plain_table("tree", "planted relation", "the tree tests")
    for head in ("overlap", "accuracy", "majority class"):
        table.add_column(head, justify="right")
    for c in done.comparisons:
        tests = Text(", ".join(c.found) or "neither", style="green" if c.found else "red")
        shares = (f"{share:.1%}" for share in (c.overlap, c.accuracy, c.majority))
        table.add_row(Text(c.step, style="bold"), Text(str(c.planted.right)), tests, *shares)
    yield table


def _outline(done: Demo, width: int | None) -> Text:
    """Return the plan's tree with its last part in full.

    The other parts are like it, so only their first lines are shown.
    """
    from rich.text import Text

    from dpframework.reports.terminal_renderer import plan_tree

    whole = plan_tree(done.plan, width)
    kept: list[Text] = []
    for line in whole.split("\n", allow_blank=True):
        folded = line.plain.startswith("│")  # a line below any part but the last
        if not folded:
            kept.append(line)
        elif not kept[-1].plain.startswith("│"):
            kept.append(Text("│  └─ ...", style="dim"))
    return Text("\n", no_wrap=True, overflow="ignore").join(kept)


def _colour_tree(tree: str, width: int | None) -> Text:
    """Return a drawn decision tree in colours: branches and false leaves are dim, true leaves are green."""
    from rich.text import Text

    from dpframework.reports.terminal_line_breaks import fit_tree

    text = Text(fit_tree(tree, width))
    text.highlight_regex(r"[├└│]─?", "dim")
    text.highlight_regex(r"true \(.*\)", "bold green")
    text.highlight_regex(r"false \(.*\)", "dim")
    return text
