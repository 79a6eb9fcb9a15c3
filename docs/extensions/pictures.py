"""Make the pictures of the README and of the first page anew.

    python docs/extensions/pictures.py [results]

They are the demo on a terminal, the report of its run in a browser, and what four miners find in the synthetic clinic.
With `results` only the last are made. The first two need a pseudo-terminal and a Chromium. The runs are private, so
their draws differ each time.
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

import dpframework as dpf
from dpframework.lab.clinic import LABS, clinic_schema, clinic_table

STATIC = Path(__file__).resolve().parents[1] / "static"
WIDTH = 110  # characters
BROWSERS = "chromium", "chromium-browser", "google-chrome"


def on_a_terminal(command: list[str], folder: Path) -> str:
    """Return what a command writes to a terminal, colours included, without its progress."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.PIPE) as running:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 1 << 16):
                written += part
        except OSError:  # Linux's way to say that the other end is closed
            os.close(ours)
        complaint = running.communicate()[1].decode()
    if running.returncode:
        raise SystemExit(complaint)
    return written.decode().replace("\r\n", "\n")


def draw_terminal(written: str, title: str, file: Path) -> None:
    """Draw what a terminal shows as SVG."""
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(written))
        console.save_svg(str(file), title=title)


def draw_page(page: Path, file: Path) -> None:
    """Draw the first screen of a page as PNG."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"needs one of {', '.join(BROWSERS)}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,1100"]
    subprocess.run([browser, *options, f"--screenshot={file}", page.as_uri()], check=True, capture_output=True)


def draw_results() -> None:
    """Draw what miners find in the clinic: redescriptions, the functions of an additive model, and distances."""
    import matplotlib as mpl

    mpl.use("Agg")
    schema = clinic_schema()
    study = dpf.Study(schema, epsilon=3)
    starts = ["type 2 diabetes", "chronic kidney disease"]
    study.add("redescriptions", dpf.miner("alt-mcmc", epsilon=1, starts=starts))
    study.add("functions", dpf.miner("dp-additive", target="type 2 diabetes", attributes=["age", *LABS], epsilon=1))
    study.add("distances", dpf.miner("dp-dilca", target="HbA1c", epsilon=1))
    found = study.run(clinic_table())
    drawn = {
        "redescriptions": found["redescriptions"].plot(),
        "supports": found["redescriptions"].plot_supports(),
        "functions": found["functions"].plot(),
        "distances": found["distances"]["HbA1c"].plot(),
    }
    for name, axes in drawn.items():
        axes.figure.savefig(STATIC / f"{name}.png", dpi=80, metadata={"Software": None})


def main() -> None:
    """Make all, or the results alone."""
    draw_results()
    if sys.argv[1:] == ["results"]:
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        command = [sys.executable, "-m", "dpframework", "demo", "--out", "demo"]
        draw_terminal(on_a_terminal(command, folder), "dpframework demo", STATIC / "demo.svg")
        draw_page(folder / "demo" / "report.html", STATIC / "report.png")


if __name__ == "__main__":
    main()
