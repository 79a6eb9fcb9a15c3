"""Run the example notebook, export it, and take pictures of it in a browser, in a light and in a dark theme.

    python docs/extensions/notebook_pictures.py

It needs nbconvert, ipykernel, Pillow and a Chromium. The runs are private, so their draws differ each time.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
NOTEBOOK = DOCS / "examples" / "notebook" / "first-study.ipynb"
BROWSERS = "chromium", "chromium-browser", "google-chrome"
WIDTH, HEIGHT = 1000, 2300  # pixels


def trimmed(picture: Path) -> None:
    """Cut off what is below the page."""
    from PIL import Image, ImageChops

    image = Image.open(picture).convert("RGB")
    below = Image.new("RGB", image.size, image.getpixel((1, image.height - 1)))
    _, _, _, bottom = ImageChops.difference(image, below).getbbox() or (0, 0, 0, image.height)
    image.crop((0, 0, image.width, min(image.height, bottom + 20))).quantize(64).save(picture, optimize=True)


def main() -> None:
    """Write `static/notebook-light.png` and `static/notebook-dark.png`."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as folder:
        convert = [sys.executable, "-m", "nbconvert", f"--output-dir={folder}"]
        own = shutil.copy(NOTEBOOK, folder)  # it writes a report and results beside itself
        subprocess.run([*convert, "--to=notebook", "--execute", "--output=run", own], check=True)
        for theme in ("light", "dark"):
            export = ["--to=html", f"--HTMLExporter.theme={theme}", f"--output={theme}", f"{folder}/run.ipynb"]
            subprocess.run([*convert, *export], check=True)
            picture = DOCS / "static" / f"notebook-{theme}.png"
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=9000"]
            page = [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", f"{folder}/{theme}.html"]
            subprocess.run([browser, *options, *page], check=True, timeout=120)
            trimmed(picture)


if __name__ == "__main__":
    main()
