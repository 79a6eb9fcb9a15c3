"""Make the README's pictures anew: the demo on a terminal, and the report of its run in a browser.

    python docs/extensions/pictures.py

Needs a pseudo-terminal and a Chromium. The run is private, so its draws differ each time.
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


def main() -> None:
    """Make both."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        command = [sys.executable, "-m", "dpframework", "demo", "--out", "demo"]
        draw_terminal(on_a_terminal(command, folder), "dpframework demo", STATIC / "demo.svg")
        draw_page(folder / "demo" / "report.html", STATIC / "report.png")


if __name__ == "__main__":
    main()
