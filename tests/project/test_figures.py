"""Every table of figures on a page says what makes it, and agrees with it where that is committed.

The tables of docs/experiments are written from committed CSV files: tests/lab/test_experiment_pages.py compares them.
What a block of code prints is compared by tests/project/test_docs.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import dpframework as dpf

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("soundness/*.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
]
FIGURE = re.compile(r"[-~<]?\.?\d[^a-z]*( [a-zA-Z]+)?")
FEWEST = 6  # a table of words may hold a number or two: defaults, exit codes
SHARE = 0.6
SOURCE = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|toml|csv)\b|tests/benchmarks/README\.md|docs/classifiers\.md")
NUMBER = re.compile(r"(?<![\w.])\.?\d[\d,]*(?:\.\d+)?")

# Tables of a page that are rounded from, or repeated of, those of another committed page.
BENCHMARKS = "tests/benchmarks/README.md"
REPEATED = [
    ("README.md", "## What it is", "docs/classifiers.md"),
    ("docs/redescriptions.md", "## Forests of matched tests", BENCHMARKS),
    ("plugins/greedy/README.md", "## Time and memory", BENCHMARKS),
    ("plugins/trees/README.md", "### Why the defaults", BENCHMARKS),
]


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield each heading with what stands below it, up to the next one; blocks of code are left out."""
    text = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for part in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        yield part.split("\n", 1)[0], part


def tables(part: str) -> Iterator[list[list[str]]]:
    """Yield the rows of each table, without its head."""
    for table in re.findall(r"(?:^\|.*\n)+", part + "\n", flags=re.MULTILINE):
        yield [[cell.strip(" *`") for cell in line.strip().strip("|").split("|")] for line in table.splitlines()[2:]]


def of_figures(rows: list[list[str]]) -> bool:
    """Tell whether a table holds figures rather than words; its first column names the rows."""
    cells = [cell for row in rows for cell in row[1:] if cell]
    figures = sum(FIGURE.fullmatch(cell) is not None for cell in cells)
    return figures >= FEWEST and figures > SHARE * len(cells)


def unexplained(text: str, page: Path) -> list[str]:
    """Return the headings below which a table of figures does not say what makes it, in files that are there."""
    missing = []
    for heading, part in sections(text):
        if any(map(of_figures, tables(part))):
            named = SOURCE.findall(part)
            if not any((folder / name).exists() for name in named for folder in (ROOT, page.parent)):
                missing.append(heading)
    return missing


def numbers(rows: list[list[str]]) -> list[Decimal]:
    return [Decimal(found.replace(",", "")) for row in rows for cell in row[1:] for found in NUMBER.findall(cell)]


def strangers(shown: list[Decimal], source: str) -> list[Decimal]:
    """Return the numbers of a table that are no number of its source, however that is rounded."""
    known = {Decimal(found.replace(",", "")) for found in NUMBER.findall(source)}

    def rounded(one: Decimal) -> bool:
        unit = Decimal(1).scaleb(int(one.as_tuple().exponent))
        return any(2 * abs(one - other) <= unit for other in known)

    return [one for one in shown if not rounded(one)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_table_of_figures_names_what_makes_it(page):
    assert unexplained(page.read_text(encoding="utf-8"), page) == []


@pytest.mark.parametrize(("page", "heading", "source"), REPEATED)
def test_a_table_that_is_repeated_agrees_with_the_committed_one(page, heading, source):
    found = [
        rows
        for head, part in sections((ROOT / page).read_text(encoding="utf-8"))
        if head == heading
        for rows in tables(part)
        if of_figures(rows)
    ]
    assert found
    text = (ROOT / source).read_text(encoding="utf-8")
    assert [strangers(numbers(rows), text) for rows in found] == [[] for _ in found]


def test_a_table_without_a_source_or_with_another_number_is_found():
    table = "| | a | b |\n|---|---|---|\n| x | .93 | 1,000 |\n| y | **.5** | 3 s |\n| z | 4 % | ~5 / .2 |\n"
    words = "| | a | b |\n|---|---|---|\n| x | one | 1 |\n"
    page = ROOT / "README.md"
    for source in ("", "`tests/benchmarks/nothing.py` makes it.\n"):
        assert unexplained(f"# Page\n\n{words}\n## Figures\n\n{table}{source}\n## After\n", page) == ["## Figures"]
    assert unexplained(f"## Figures\n\n{table}\nRun `python tests/benchmarks/weight.py`.\n", page) == []
    assert unexplained(f"## Figures\n\n```output\n{table}```\n", page) == []
    (rows,) = tables(table)
    assert strangers(numbers(rows), ".9312 (.0013), 1,000, .5, 3.1, 4, 5, .2") == []
    assert strangers(numbers(rows), ".94, 1,000, .4, 3.1, 4, 5, .2") == [Decimal(".93"), Decimal(".5")]


def test_the_variances_of_tables_whose_rows_are_counted_are_those_of_the_page():
    """Of a count and of a margin, with noise that adds up to 0; docs/basics.md shows them."""
    part = dict(sections((ROOT / "docs/basics.md").read_text(encoding="utf-8")))["## If the number of rows is public"]
    (shown,) = tables(part)
    for levels, _, count, _, margin in shown:
        sizes = [int(size) for size in levels.split(" x ")]
        schema = dpf.Schema([dpf.Categorical(f"a{k}", list(map(str, range(n)))) for k, n in enumerate(sizes)], rows=9)
        study = dpf.Study(schema, epsilon=1, relation="replace-one")
        study.add("table", dpf.miner("crosstab", attributes=schema.names, epsilon=1))
        found = study.run(dpf.Table.from_codes(schema, np.zeros((len(sizes), 9), int)), seed=0)["table"]
        assert (f"{found.variance:.3g}", f"{found.margin('a0').variance:.1f}") == (count, margin)
