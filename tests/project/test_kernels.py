"""Kernels assign no array to a part of another at once: that alone compiles for as long as all else of a kernel."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = sorted(
    path
    for pattern in ("dpframework/**/*.py", "plugins/*/src/**/*.py")
    for path in ROOT.glob(pattern)
    if "njit" in path.read_text() or "compiled_for" in path.read_text() or path.parent.name == "kernels"
)


def assigned_at_once(source: str) -> list[int]:
    """Return the lines that assign what is no number to a slice."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign)
        and not isinstance(node.value, ast.Constant | ast.UnaryOp | ast.Attribute)
        and any(
            isinstance(part, ast.Slice)
            for target in node.targets
            if isinstance(target, ast.Subscript)
            for part in ast.walk(target.slice)
        )
    ]


def test_kernels_are_found_and_a_copy_at_once_is_seen() -> None:
    assert ROOT / "plugins/trees/src/dpframework_trees/kernels/scores.py" in KERNELS
    assert assigned_at_once("a[:] = 0\na[1:, 2] = -math.inf\na[0] = b[0]\na[:] = b[1]\na[k, :] = b\n") == [4, 5]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_kernel_copies_at_once(path: Path) -> None:
    assert assigned_at_once(path.read_text()) == []
