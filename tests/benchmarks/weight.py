"""What dpframework's dependencies weigh: the megabytes of each distribution that a plain install brings.

    python tests/benchmarks/weight.py

Compiled Python (.pyc) is left out. Sizes differ by platform and version; the README has those of Linux.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required(name: str, extra: str = "") -> Iterator[str]:
    """Yield what a distribution requires of others on this machine, without its extras."""
    for text in importlib.metadata.distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield canonicalize_name(requirement.name)


def megabytes(name: str) -> float:
    """Return the size of a distribution's files."""
    files = importlib.metadata.distribution(name).files or ()
    paths = (file.locate() for file in files if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def main() -> None:
    """Print each, the heaviest first, and all together."""
    known, left = set[str](), {*required("dpframework")}
    while left:
        name = left.pop()
        known.add(name)
        left |= {*required(name)} - known
    weights = sorted(((megabytes(name), name) for name in known), reverse=True)
    for size, name in weights:
        print(f"{size:8.1f} MB  {name} {importlib.metadata.version(name)}")
    print(f"{sum(size for size, _ in weights):8.1f} MB  in {len(weights)} distributions")


if __name__ == "__main__":
    main()
