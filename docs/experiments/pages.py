"""The tables of these pages, written from the committed results, so that no number is copied by hand.

A table stands under a comment that says what it shows:

    <!-- dp-id3/results/table-adult.csv rows=method,criterion columns=epsilon -->

The path is relative to the page. Other keys: `value` (where a file holds several), `statistic` ("mean", "median" or
"quartiles"), `digits` after the point (3), and any coordinate with the value to keep, as `data=adult`. Write the
comment, then

    python docs/experiments/pages.py docs/experiments/dp-id3.md
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path

MARKED = re.compile(r"^<!-- (?P<path>\S+\.csv)(?P<keys>(?: \w+=(?:\"[^\"\n]*\"|\S+))*) -->\n(?:\n?(?:\|.*\n)+)?", re.M)
_KEY = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')
_LAYOUT = ("rows", "columns", "value", "statistic", "digits")
_BESIDE = {"mean": ("mean_low", "mean_high"), "median": ("median_low", "median_high"), "quartiles": ("q1", "q3")}

Line = Mapping[str, str]


def written(page: Path) -> str:
    """Return the text of a page with its tables as the results say."""
    return MARKED.sub(lambda found: _filled(page, found), page.read_text(encoding="utf-8"))


def _filled(page: Path, found: re.Match[str]) -> str:
    comment = found.group(0).split("\n", 1)[0]
    keys = {name: quoted or bare for name, quoted, bare in _KEY.findall(found.group("keys"))}
    with (page.parent / found.group("path")).open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return f"{comment}\n\n{_table(lines, keys)}\n"


def _table(lines: list[dict[str, str]], keys: Mapping[str, str]) -> str:
    kept = {name: value for name, value in keys.items() if name not in _LAYOUT}
    kept |= {"value": keys["value"]} if "value" in keys else {}
    chosen = [line for line in lines if all(line[name] == value for name, value in kept.items())]
    rows, column = keys["rows"].split(","), keys["columns"]
    headings = list(dict.fromkeys(line[column] for line in chosen))
    names = list(dict.fromkeys(tuple(line[name] for name in rows) for line in chosen))
    cells: dict[tuple[tuple[str, ...], str], str] = {}
    for line in chosen:
        at = tuple(line[name] for name in rows), line[column]
        if at in cells:
            raise ValueError(f"two figures for {at}; name what to keep")
        cells[at] = shown(line, keys.get("statistic", "mean"), int(keys.get("digits", "3")))
    named = "" if column == "value" else f"{column} "
    across = [f"{named}{_number(heading)}" if heading else f"no {column}" for heading in headings]
    table = [[*rows, *across], ["---"] * len(rows) + ["---:"] * len(headings)]
    table += [[*name, *(cells.get((name, heading), "") for heading in headings)] for name in names]
    return "\n".join("| " + " | ".join(line) + " |" for line in table)


def _number(text: str) -> str:
    try:
        return f"{float(text):,.12g}"
    except ValueError:
        return text


def shown(line: Line, statistic: str, digits: int) -> str:
    """Write a statistic with what stands beside it: half of a mean's interval, or both ends.

    Examples
    --------
    >>> shown({"mean": "0.85", "mean_low": "0.8461", "mean_high": "0.8539"}, "mean", 3)
    '0.850 ± 0.004'
    """
    middle = float(line["median" if statistic == "quartiles" else statistic])
    low, high = (float(line[end] or "nan") for end in _BESIDE[statistic])
    if math.isnan(low):
        return f"{middle:.{digits}f}"
    if statistic == "mean":
        return f"{middle:.{digits}f} ± {high - middle:.{digits}f}"
    return f"{middle:.{digits}f} ({low:.{digits}f}, {high:.{digits}f})"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        Path(argument).write_text(written(Path(argument)), encoding="utf-8")
