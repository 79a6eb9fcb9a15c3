"""Which mutants of a module there are: one token changed or one part left out, where that could cost privacy.

The operators are cosmic-ray's, less those that repeat one another (a sum is replaced by a difference, not by nine
other things), and those of `own_operators`, since the mistakes of this field are often a `max` for a `sum`, or a check
that nobody has written. Left out is what nobody would notice or everybody would: annotations, the texts of errors,
imports, decorators, the `*` among parameters, `strict=True`, which only says that two sequences are as long as each
other, fixed seeds, times to wait, the look of a picture, and the definitions that a target leaves out, with the reason
why any other would do as well. So are two forms that mean the same when changed: the -1 of a `reshape`, for which numpy
takes any negative number, and `<` for `<=` between a share and a float that is drawn uniformly, which is never the
share to the last bit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatch
from pathlib import Path

import attrs
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.boolean_replacer import AddNot
from cosmic_ray.operators.keyword_replacer import KeywordReplacementOperator
from cosmic_ray.operators.number_replacer import OFFSETS, NumberReplacer
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.zero_iteration_for_loop import ZeroIterationForLoop
from cosmic_ray.plugins import get_operator, operator_names
from mutant_ids import MutantIds
from own_operators import OWN, SAYS_LITTLE, OwnOperator

CHOSEN = re.compile(
    r"core/("
    r"ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_FloorDiv|Pow_Mul|RShift_LShift"
    r"|LShift_RShift|BitAnd_BitOr|BitOr_BitAnd|BitXor_BitOr)"
    r"|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Is_IsNot|IsNot_Is)"
    r"|ReplaceUnaryOperator_Delete_(USub|Not|Invert)"
    r"|AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceAndWithOr|ReplaceOrWithAnd"
    r"|ReplaceBreakWithContinue|ReplaceContinueWithBreak|NumberReplacer|ZeroIterationForLoop)"
)

ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**"}
BITS = {"RShift": ">>", "LShift": "<<", "BitAnd": "&", "BitOr": "|", "BitXor": "^"}
COMPARISONS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "isnot"}
SIGNS = ARITHMETIC | BITS | COMPARISONS | {"USub": "-", "Invert": "~", "Not": "not"}

FREE = {"default_rng", "SeededRandomness", "Random", "sleep"}  # whatever fixed number these are given does as well
LEFT_OUT = {"raise_stmt", "import_from", "import_name", "decorator", "fstring", "assert_stmt"}


@attrs.frozen
class Mutant:
    """One change of one module.

    Attributes
    ----------
    module
        The path of the module.
    operator, occurrence
        The operator's name, and which of its places is changed.
    line
        Where that is.
    id
        What a list of mutants that may live calls it.
    """

    module: str
    operator: str
    occurrence: int
    line: int
    id: str

    def code(self, source: str) -> str:
        """Return the module's source with this change."""
        mutated = mutate_code(source, OPERATORS[self.operator], self.occurrence)
        assert mutated is not None, self
        return mutated

    def lines(self, source: str) -> tuple[str, str]:
        """Return the line that changes, before and after."""
        pairs = zip(source.splitlines(), self.code(source).splitlines(), strict=False)
        return next(((old.strip(), new.strip()) for old, new in pairs if old != new), ("", ""))


@attrs.frozen
class LeftOut:
    """Definitions of which no mutants are made: any other would do as well.

    Attributes
    ----------
    modules
        A pattern of paths.
    names
        Of functions, or of constants of a module.
    reason
        Why it cannot matter.
    """

    modules: str
    names: list[str]
    reason: str


OPERATORS: dict[str, Operator] = {name: get_operator(name)() for name in operator_names() if CHOSEN.fullmatch(name)}
OPERATORS |= {f"ours/{operator.__name__}": operator() for operator in OWN}


def mutants(root: Path, module: str, left_out: Collection[LeftOut] = ()) -> Iterator[Mutant]:
    """Yield the mutants of a module, whose path is relative to the root."""
    unmade = {name for few in left_out if fnmatch(module, few.modules) for name in few.names}
    ids = MutantIds.read(root / module)
    nodes = list(ast_nodes(get_ast(ids.source)))
    for name, operator in OPERATORS.items():
        occurrence = 0
        for node in nodes:
            for index, (place, _) in enumerate(operator.mutation_positions(node)):
                if not _left_out(node, unmade) and not _is_too_large(node):
                    changed, change = _change(operator, node, index, place)
                    yield Mutant(module, name, occurrence, place[0], ids.id_of(changed, change))
                occurrence += 1


def _change(operator: Operator, node, index: int, place: tuple[int, int]) -> tuple[tuple[int, int], str]:
    """Return the place of the token that an operator changes, and the change, such as `1->2`."""
    if isinstance(operator, OwnOperator):
        return operator.change(node, index)
    if isinstance(operator, NumberReplacer):
        return place, f"{node.value}->{ast.literal_eval(node.value) + OFFSETS[index]}"
    if isinstance(operator, KeywordReplacementOperator):
        return place, f"{operator.from_keyword}->{operator.to_keyword}"
    if isinstance(operator, AddNot | ZeroIterationForLoop):  # the word before a condition, or before a loop's values
        word = node.get_leaf_for_position(place).get_previous_leaf()
        return word.start_pos, f"{word.value}->{word.value}{'not' if isinstance(operator, AddNot) else '[]'}"
    old, new = type(operator).__name__.split("_")[1:]
    return place, f"{SIGNS[new]}->" if old == "Delete" else f"{SIGNS[old]}->{SIGNS[new]}"


def _is_too_large(node) -> bool:
    """Tell whether a number is the same to the last bit with 1 added or subtracted."""
    return node.type == "number" and (value := ast.literal_eval(node.value)) + 1 == value


def _left_out(node, unmade: set[str]) -> bool:
    if node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING":
        return True
    if node.type == "comparison" and _draws_uniformly(node.children[0]):
        return True
    child, parent = node, node.parent
    while parent is not None:
        if parent.type in LEFT_OUT or _annotates(child, parent) or _says_little(child, parent):
            return True
        if unmade.intersection(_defined(parent)) or _is_of_reshape(child, parent):
            return True
        child, parent = parent, parent.parent
    return False


def _defined(node) -> list[str]:
    """Return the names that a node defines: a function, or constants of the module."""
    if node.type == "funcdef":
        return [node.name.value]
    if node.type == "expr_stmt" and node.parent.parent.type == "file_input":
        return [name.value for name in node.get_defined_names()]
    return []


def _annotates(node, parent) -> bool:
    place = {"annassign": 1, "tfpdef": 2}.get(parent.type)
    if place is not None:
        return parent.children[place] is node
    return parent.type == "funcdef" and parent.annotation is node


def _says_little(node, parent) -> bool:
    if parent.type == "parameters":
        return node.get_code().strip(" ,\n") == "*"
    if parent.type == "argument":
        return parent.children[0].get_code().strip() in SAYS_LITTLE
    return node.type == "number" and parent.type == "trailer" and _called(parent) in FREE


def _draws_uniformly(node) -> bool:
    """Tell whether it is a call such as `generator.random(rows)`."""
    last = node.children[-1] if node.type in ("power", "atom_expr") else None
    return last is not None and last.type == "trailer" and _called(last) == "random"


def _called(trailer) -> str:
    """Return the name of what the brackets of a call stand behind."""
    called = trailer.get_previous_sibling()
    return called.get_code().strip(" .")


def _is_of_reshape(node, parent) -> bool:
    """Tell whether a number is the -1 in `reshape(-1, 3)`, `reshape((-1, 3))` or `np.reshape(array, (-1, 3))`."""
    if node.type != "number" or parent.type != "factor":
        return False
    around = parent.parent
    while around is not None and around.type in ("testlist_comp", "atom", "arglist"):
        around = around.parent
    return around is not None and around.type == "trailer" and _called(around) == "reshape"
