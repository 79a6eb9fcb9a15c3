"""Operators of our own: the mistakes of this field that no operator of cosmic-ray makes.

A name is replaced by that of its opposite, such as `max` by `min`. Or a part of the code is dropped: a check, a
statement, an operand, an element, an argument, or a function around a value. Whoever forgets one of these writes code
that runs, and often code that gives the right answer on every table but the one that matters.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from cosmic_ray.operators.operator import Operator
from parso.python.tree import Name

ROOT = Path(__file__).resolve().parents[2]
SWAPPED = {
    "max": "min",
    "min": "max",
    "sum": "max",
    "maximum": "minimum",
    "minimum": "maximum",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "floor": "ceil",
    "add_or_remove_one": "replace_one",
    "replace_one": "add_or_remove_one",
}
SAYS_LITTLE = {"strict", "timeout"}  # and how a picture looks
SAYS_LITTLE |= {"figsize", "fontsize", "linewidth", "lw", "elinewidth", "markersize", "capsize", "rotation", "zorder"}
SAYS_LITTLE |= {"alpha", "bbox_to_anchor", "frameon", "labelsize", "pad"}
LARGER_OR_SMALLER = {"max", "min", "maximum", "minimum"}
SAME_KIND = {"abs", "ceil", "copy", "deepcopy", "dict", "floor", "list", "round", "sorted", "unique"}
ITERATES = {"for_stmt", "sync_comp_for", "comp_for", "comparison"}


class OwnOperator(Operator):
    """An operator that puts other code in the place of a node.

    The id of a mutant says what becomes of one token: `and->left` is what stands left of an `and`.
    """

    def replacements(self, node) -> Iterator[tuple]:
        """Yield the token that stands for each change of a node, what becomes of it, and the node's new code."""
        raise NotImplementedError

    def change(self, node, index):
        """Return the place of the token that stands for a change, and the change, such as `max->min`."""
        token, becomes, _ = list(self.replacements(node))[index]
        return token.start_pos, f"{token.value}->{becomes}"

    def mutation_positions(self, node):
        yield from ((token.start_pos, token.end_pos) for token, _, _ in self.replacements(node))

    def mutate(self, node, index):
        _, _, code = list(self.replacements(node))[index]
        first = node.get_first_leaf()
        return Name(code, first.start_pos, first.prefix)

    @classmethod
    def examples(cls):
        return ()


class SwapName(OwnOperator):
    """Put the name of the opposite, or of a near relative, in the place of a name."""

    def replacements(self, node):
        if node.type == "name" and node.value in SWAPPED and not _is_keyword(node):
            yield node, SWAPPED[node.value], SWAPPED[node.value]


class DropCheck(OwnOperator):
    """Never raise what a condition guards."""

    def replacements(self, node):
        if node.type != "if_stmt":
            return
        for place, word in enumerate(node.children):
            if word.get_code().strip() in ("if", "elif") and _only_raises(node.children[place + 3]):
                children = [*node.children[: place + 1], " False", *node.children[place + 2 :]]
                yield word, f"{word.value}False", _code(children) + "\n"


class DropStatement(OwnOperator):
    """Leave out a call that is made for what it does, or an addition to a variable."""

    def replacements(self, node):
        if node.parent is None or node.parent.type != "simple_stmt":
            return
        if (call := _call(node)) is not None:
            yield call.children[0], "pass", "pass"
        elif node.type == "expr_stmt" and node.children[1].type == "operator" and node.children[1].value != "=":
            yield node.children[1], "pass", "pass"


class DropOperand(OwnOperator):
    """Leave out a condition of several, or one end of a range."""

    def replacements(self, node):
        if node.type in ("and_test", "or_test"):
            yield from _one_less(node.children)
        elif node.type == "comparison" and len(node.children) == 5:
            _, first, _, second, _ = node.children
            if "operator" in (first.type, second.type):
                yield first, "right", _code(node.children[2:])
                yield second, "left", _code(node.children[:3])


class DropElement(OwnOperator):
    """Leave out an element of a list or a set, or of a tuple whose elements are looked at one by one."""

    def replacements(self, node):
        if node.type not in ("testlist_comp", "dictorsetmaker") or node.parent.parent.type == "subscriptlist":
            return
        is_several = len(node.children) > 2 and all(comma.get_code().strip() == "," for comma in node.children[1::2])
        is_tuple = node.parent.children[0].value == "("
        if is_several and (not is_tuple or node.parent.parent.type in ITERATES):
            yield from _one_less(node.children, "," if is_tuple else "")


class DropKeyword(OwnOperator):
    """Leave out an argument that is given by name, so that its default is taken."""

    def replacements(self, node):
        if node.type != "trailer" or node.children[0].value != "(" or len(node.children) == 2:
            return
        arguments = _arguments(node)
        required = _required().get(_called(node), set())
        for place, argument in enumerate(arguments):
            if _is_named(argument) and argument.children[0].value not in required | SAYS_LITTLE:
                left = [other.get_code().strip() for other in (*arguments[:place], *arguments[place + 1 :])]
                yield argument.children[1], "", f"({', '.join(left)})"


class KeepOne(OwnOperator):
    """Take one of two numbers, whichever is larger or smaller."""

    def replacements(self, node):
        call = _call(node)
        if call is None or len(call.children) == 2 or _called(call) not in LARGER_OR_SMALLER:
            return
        arguments = _arguments(call)
        if len(arguments) == 2 and not any(argument.type == "argument" for argument in arguments):
            for argument, which in zip(arguments, ("first", "second"), strict=True):
                yield call.get_previous_leaf(), which, f"({argument.get_code().strip()})"


class ReturnArgument(OwnOperator):
    """Return what a function is given instead of what it makes of it, where that is of the same kind."""

    def replacements(self, node):
        call = _call(node)
        if call is None or node.parent.type != "return_stmt" or len(call.children) == 2:
            return
        arguments = _arguments(call)
        if len(arguments) == 1 and arguments[0].type != "argument" and _keeps_kind(call):
            yield node.parent.children[0], "argument", f"({arguments[0].get_code().strip()})"


OWN = [SwapName, DropCheck, DropStatement, DropOperand, DropElement, DropKeyword, KeepOne, ReturnArgument]


def _code(children) -> str:
    return "".join(child if isinstance(child, str) else child.get_code() for child in children).strip()


def _one_less(children, end: str = "") -> Iterator[tuple]:
    """Yield code without one of several parts; what separates it from the part before, or after, stands for it."""
    if len(children) > 1:
        yield children[1], "right", _code(children[2:]) + (end if len(children) in (3, 4) else "")
    for place in range(2, len(children), 2):
        left = [*children[: place - 1], *children[place + 1 :]]
        yield children[place - 1], "left", _code(left) + (end if len(left) == 1 else "")


def _only_raises(suite) -> bool:
    statements = [child for child in suite.children if child.type != "newline"]
    return len(statements) == 1 and statements[0].children[0].type == "raise_stmt"


def _call(node):
    """Return the brackets of a call that a node is, or none."""
    last = node.children[-1] if node.type in ("power", "atom_expr") else None
    return last if last is not None and last.type == "trailer" and last.children[0].value == "(" else None


def _called(trailer) -> str:
    """Return the name of what the brackets of a call stand behind."""
    return trailer.get_previous_leaf().value


def _arguments(trailer) -> list:
    inside = trailer.children[1]
    given = inside.children if inside.type == "arglist" else [inside]
    return [argument for argument in given if argument.get_code().strip() != ","]


def _is_named(argument) -> bool:
    return argument.type == "argument" and argument.children[1].get_code().strip() == "="


def _is_keyword(name) -> bool:
    """Tell whether a name is that of an argument, a parameter or a function being defined."""
    following = name.get_next_leaf()
    return name.is_definition() or (following is not None and following.value == "=" and name.parent.type == "argument")


def _keeps_kind(call) -> bool:
    """Tell whether a function returns what it is given, or something of the same kind: by its name or annotations."""
    name = _called(call)
    functions = [function for function in call.get_root_node().iter_funcdefs() if function.name.value == name]
    if not functions or call.get_previous_sibling().type == "trailer":
        return name in SAME_KIND
    parameters, returned = functions[0].get_params(), functions[0].annotation
    return bool(parameters) and returned is not None and _text(parameters[0].annotation) == _text(returned)


def _text(annotation) -> str | None:
    return None if annotation is None else annotation.get_code().strip()


def required_in(files: Iterable[Path]) -> dict[str, set[str]]:
    """Return the arguments without a default of each function and class of some modules, by its name."""
    required: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                taken = [*node.args.posonlyargs, *node.args.args]
                required[node.name] |= {each.arg for each in taken[: len(taken) - len(node.args.defaults)]}
                named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                required[node.name] |= {each.arg for each, default in named if default is None}
            elif isinstance(node, ast.ClassDef):
                fields = (each for each in node.body if isinstance(each, ast.AnnAssign) and each.value is None)
                required[node.name] |= {each.target.id for each in fields if isinstance(each.target, ast.Name)}
    return required


@cache
def _required() -> dict[str, set[str]]:
    return required_in((*ROOT.glob("dpframework/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")))
