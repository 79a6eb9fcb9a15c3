"""What the reference shows of the code.

- A class or function has one place: the package that lists it in `__all__`, else its own module. The names at the top
  of `dpframework` are those of its rooms, so they are no place of their own.
- A package is followed by its modules, so that a page names the package only; a package in it is named by itself.
- A class says which public classes it builds on: a private base is not named, its own public bases are.
- A type that is an alias leads to where the alias is explained.
- The docstring of an attribute or property is a sentence: a colon in it does not mark a type.
- The value of a constant is shown if it is short.
- Attributes described together (`one, other`) are described one by one, as napoleon does with parameters.
- A type that ends in an underscore, such as `np.bool_`, is a type: docutils would take it for a link.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable
from typing import Any, Generic

from docutils import nodes
from sphinx.addnodes import desc_annotation, pending_xref
from sphinx.domains.python import PyObject

ALIASES = {
    "Amount": "dpframework.facts.Amount",
    "Parts": "dpframework.plan.nodes.Parts",
    "Cut": "dpframework.facts.row_partitions.Cut",
    "Split": "dpframework_trees.splits.Split",
    "TreeNode": "dpframework_trees.tree_nodes.TreeNode",
}
LONGEST_VALUE = 80
AUTOMODULE = re.compile(r"^\.\. automodule:: ([\w.]+)\n(?:(?!```).*\n)*```\n", re.MULTILINE)  # to the end of its block
TOGETHER = re.compile(r"^:ivar (\w+(?:, \w+)+):(.*\n?(?: +.*\n?)*)", re.MULTILINE)


def listed_by_a_package_above(module: str, name: str, thing: Any) -> bool:
    """Say whether a package that holds the module lists the same thing under the same name."""
    package = module.rpartition(".")[0]
    while package not in ("", "dpframework"):
        listed = sys.modules[package]
        if name in getattr(listed, "__all__", ()) and getattr(listed, name) is thing:
            return True
        package = package.rpartition(".")[0]
    return False


def _skip(app: Any, kind: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    module = app.env.current_document.autodoc_module
    # a value is known in its own module only
    movable = kind == "module" and module and (inspect.isclass(thing) or inspect.isroutine(thing))
    return True if movable and listed_by_a_package_above(module, name, thing) else None


def _follow_with_modules(app: Any, page: str, source: list[str]) -> None:
    if page.startswith("reference/"):
        source[0] = AUTOMODULE.sub(_and_modules, source[0])


def _and_modules(block: re.Match[str]) -> str:
    name = block.group(1)
    package = importlib.import_module(name)
    # a module called as something that its package lists cannot have a place beside it: all it has must be listed
    taken = getattr(package, "__all__", ())
    modules = [found.name for found in pkgutil.iter_modules(getattr(package, "__path__", ())) if not found.ispkg]
    below = sorted(module for module in modules if not module.startswith("_") and module not in taken)
    sections = [f"\n### {name}.{module}\n\n```{{eval-rst}}\n.. automodule:: {name}.{module}\n```\n" for module in below]
    return block.group() + "".join(sections)


def _say_bases(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    bases = [f":py:class:`~{base.__module__}.{base.__qualname__}`" for base in _public(getattr(thing, "__bases__", ()))]
    if kind in ("class", "exception") and bases:
        end = lines.index("") if "" in lines else len(lines)
        lines[end:end] = ["", f"Bases: {', '.join(bases)}"]  # below the sentence that lists show


def _public(bases: Iterable[type]) -> list[type]:
    shown: list[type] = []
    for base in bases:
        found = _public(base.__bases__) if base.__name__.startswith("_") else [base]
        shown += [each for each in found if each not in (*shown, object, Generic)]
    return shown


def _lead_to_alias(app: Any, env: Any, node: pending_xref, content: nodes.TextElement) -> Any:
    target = ALIASES.get(node.get("reftarget", "").rpartition(".")[2])
    if node.get("refdomain") != "py" or target is None:
        return None
    python = env.get_domain("py")
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)


def _keep_sentence(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if kind in ("attribute", "data", "property") and lines:
        lines[:0] = ["..", ""]  # an empty comment: napoleon looks for a type in the first line only


def _part_attributes(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = TOGETHER.sub(_one_by_one, "\n".join(lines)).split("\n")


def _escape_types(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [re.sub(r"_\b", r"\\_", line) if line.startswith(":vartype ") else line for line in lines]


def _one_by_one(together: re.Match[str]) -> str:
    described = together.group(2).rstrip("\n") + "\n"
    return "".join(f":ivar {name}:{described}" for name in together.group(1).split(", "))


def _drop_long_values(app: Any, page: nodes.document) -> None:
    for shown in list(page.findall(desc_annotation)):
        if shown.astext().startswith(" = ") and len(shown.astext()) > LONGEST_VALUE:
            shown.parent.remove(shown)


def setup(app: Any) -> dict[str, bool]:
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Fields"
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _say_bases, priority=700)
    app.connect("source-read", _follow_with_modules)
    app.connect("autodoc-process-docstring", _keep_sentence, priority=400)  # before napoleon's 500
    app.connect("autodoc-process-docstring", _part_attributes, priority=600)  # after it
    app.connect("autodoc-process-docstring", _escape_types, priority=600)
    app.connect("doctree-read", _drop_long_values)
    app.connect("missing-reference", _lead_to_alias)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
