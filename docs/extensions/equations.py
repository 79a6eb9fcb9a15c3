"""Formulas between dollar signs become MathML while the site is built: browsers draw it, and nothing is fetched."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def mathml(formula: str, display: str) -> str:
    """Return a formula of LaTeX as MathML; it fails for a command that the converter leaves as it is."""
    made = convert(formula, display=display)
    if "\\" in made:
        raise ValueError(f"a formula has a command that latex2mathml does not know: {formula}")
    return made


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="equation">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
