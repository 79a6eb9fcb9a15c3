"""Formulas as MathML, for reports."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from dpframework.formulas.count_formula import Formula, Operation
from dpframework.formulas.score_structures import Adds, Parts, Shape

#: The operations that need brackets: after the sign of a sum (`_IN_SUM`), as a factor (`_IN_PRODUCT`), and as the base
#: of a power (`_IN_POWER`).
_IN_SUM = frozenset({Operation.ADD})
_IN_PRODUCT = _IN_SUM | {Operation.SUM, Operation.LARGEST}
_IN_POWER = _IN_PRODUCT | {Operation.MULTIPLY, Operation.DIVIDE, Operation.X_LOG_X}


def mathml(formula: Formula) -> str:
    """Return a formula as a MathML element, with fractions and powers set as on paper.

    Examples
    --------
    >>> from dpframework.formulas import cells
    >>> both, apart = cells("both", "apart")
    >>> mathml(both / (both + apart))
    '<math><mfrac><mi>both</mi><mrow><mi>both</mi><mo>+</mo><mi>apart</mi></mrow></mfrac></math>'
    """
    return f"<math>{_element(formula)}</math>"


def shape_mathml(shape: Shape) -> str:
    """Return a score as a MathML element: a sum over parts or rows, or its formula alone."""
    match shape:
        case Parts():
            inner = _row("<munder><mo>&#x2211;</mo><mtext>parts</mtext></munder>", _bracket(shape.body, _IN_SUM))
        case Adds():
            entries = [part for entry in shape.entries for part in ("<mo>,</mo>", _element(entry))][1:]
            inner = _row("<munder><mo>&#x2211;</mo><mtext>rows</mtext></munder>", "<mo>(</mo>", *entries, "<mo>)</mo>")
        case _:
            inner = _element(shape.body)
    return f"<math>{inner}</math>"


def _element(formula: Formula) -> str:
    parts = [_element(part) for part in formula.parts]
    match formula.operation:
        case Operation.CONSTANT:
            return f"<mn>{formula.value}</mn>"
        case Operation.DIVIDE:
            return f"<mfrac>{parts[0]}{parts[1]}</mfrac>"
        case Operation.ADD:
            return _row(parts[0], "<mo>+</mo>", parts[1])
        case Operation.MULTIPLY if formula.parts[0] == formula.parts[1]:
            return f"<msup>{_bracket(formula.parts[0], _IN_POWER)}<mn>2</mn></msup>"
        case Operation.MULTIPLY:
            one, other = (_bracket(part, _IN_PRODUCT) for part in formula.parts)
            return _row(one, "<mo>&#x2062;</mo>", other)
        case Operation.ROOT:
            return f"<mroot>{parts[0]}<mn>{formula.value}</mn></mroot>"
        case Operation.X_LOG_X:
            held = _bracket(formula.parts[0], _IN_PRODUCT)
            return _row(held, "<msub><mi>log</mi><mn>2</mn></msub>", held)
        case Operation.AT_LEAST:
            return _row("<mo>[</mo>", parts[0], "<mo>&#x2265;</mo>", parts[1], "<mo>]</mo>")
        case Operation.LEAST | Operation.MOST:
            inside = _row("<mo>(</mo>", parts[0], "<mo>,</mo>", parts[1], "<mo>)</mo>")
            return _row(f"<mi>{formula.operation}</mi>", inside)
        case Operation.SUM | Operation.LARGEST:
            sign = "<mo>&#x2211;</mo>" if formula.operation is Operation.SUM else "<mi>max</mi>"
            return _row(f"<munder>{sign}<mtext>classes</mtext></munder>", _bracket(formula.parts[0], _IN_SUM))
        case _:
            return f"<mi>{escape(str(formula))}</mi>"


def _row(*elements: str) -> str:
    return f"<mrow>{''.join(elements)}</mrow>"


def _bracket(formula: Formula, loose: Collection[Operation]) -> str:
    """Return a formula's element, in brackets if its operation is one of `loose`."""
    element = _element(formula)
    return _row("<mo>(</mo>", element, "<mo>)</mo>") if formula.operation in loose else element
