"""The gallery: a page of pictures with the lines that draw them. This command draws all of them, and writes the page.

python docs/extensions/gallery.py
"""

import textwrap
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
PAGE, PICTURES = DOCS / "gallery.md", DOCS / "static" / "gallery"

SETUP = """
import numpy as np
import polars as pl

import dpframework as dpf

schema = dpf.Schema(
    [
        dpf.Numeric("age", 0, 100, bins=10),
        dpf.Numeric("cost", 0, 500, bins=50),
        dpf.Categorical("diagnosis", ["asthma", "copd", "none"]),
        dpf.Boolean("smokes"),
    ]
)
draw = np.random.default_rng(1)
age, smokes = draw.integers(20, 90, 5000), draw.random(5000) < 0.3
ill = draw.random(5000) < 0.1 + 0.004 * (age - 20) + 0.2 * smokes
visits = pl.DataFrame(
    {
        "age": age,
        "cost": (draw.gamma(3, 30, 5000) * (1 + ill)).round(2),
        "diagnosis": np.where(ill, draw.choice(["asthma", "copd"], 5000, p=[0.6, 0.4]), "none"),
        "smokes": smokes,
    }
)
table = dpf.table_from_frame(visits, schema)


def answer(miner, **parameters):
    study = dpf.Study(schema, epsilon=1)
    study.add("result", dpf.miner(miner, epsilon=1, **parameters))
    return study.run(table, seed=1)["result"]
"""

#: Of each picture: its file, what it shows, and the lines that draw it, the last of which is the picture.
GALLERY = (
    ("histogram", "A histogram, each bar with its 95 % interval", 'answer("histogram", attribute="age").plot()'),
    ("crosstab", "A cross table", 'answer("crosstab", attributes=["diagnosis", "smokes"]).plot()'),
    ("groups", "A mean for each group", 'answer("mean", attribute="cost", by=["diagnosis"]).plot()'),
    ("quantile", "A quantile", 'answer("quantile", attribute="cost", quantile=0.9).plot()'),
    ("grid", "Where rows lie, in cells that are small where many are",
     'answer("adaptive-grid", attributes=["age", "cost"]).plot()'),
    ("tree", "A decision tree", 'answer("dp-id3", target="diagnosis", max_depth=2).plot()'),
    ("additive", "An additive model: one function an attribute",
     'answer("dp-additive", target="smokes", attributes=["age", "diagnosis"]).plot()'),
    ("distances", "Distances between values that are learned from other attributes",
     'answer("dp-dilca", target="diagnosis", attributes=["diagnosis", "smokes"]).plot()'),
    ("plan", "What each release of a plan costs",
     "plan = dpf.describe(schema, epsilon=1).plan()\nplan.plot()"),
    ("findings", "What checks find",
     "study = dpf.Study(schema, epsilon=1)\nstudy.add(\"visits\", dpf.miner(\"count\", epsilon=2))\n"
     "study.plan().check().plot()"),
)  # fmt: skip


def page() -> str:
    """Return the page."""
    intro = (
        "Every result, plan, study and list of findings has `plot()`, which returns matplotlib's axes (`pip install "
        "'dpframework[plot]'`). The pictures use these made-up visits. `python docs/extensions/gallery.py` draws all "
        "of them, and writes this page. Pairs of bars for redescriptions stand on [the first "
        "page](index.md#what-comes-out)."
    )
    parts = ["# Gallery", "\n".join(textwrap.wrap(intro, 118)), f"```python\n{SETUP.strip()}\n```"]
    for name, what, lines in GALLERY:
        parts.append(f"## {what}\n\n```python\n{lines}\n```\n\n![{what}](static/gallery/{name}.png)")
    return "\n\n".join(parts) + "\n"


def draw_all() -> None:
    """Draw the pictures."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {}
    exec(SETUP, names)
    PICTURES.mkdir(exist_ok=True)
    for name, _, lines in GALLERY:
        *before, last = lines.split("\n")
        exec("\n".join(before), names)
        axes = eval(last, names)
        axes.figure.savefig(PICTURES / f"{name}.png", dpi=70, bbox_inches="tight", metadata={"Software": None})


if __name__ == "__main__":
    draw_all()
    PAGE.write_text(page(), encoding="utf-8")
