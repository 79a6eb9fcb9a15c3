"""Type checks of arguments and fields. A value of a wrong type is refused in one sentence, before it is used.

This module itself checks annotations that name plain classes. It also accepts paths that fit, and lists of plain
classes that fit. Typeguard checks all else: functions, mappings, and paths and lists that do not seem to fit. Typeguard
is loaded only when it is needed, since loading it takes half as long as loading numpy.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ParamSpec, TypeAlias, TypeVar

import attrs

from dpframework.facts.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")
#: Wider classes that are accepted. For a float, any real number is accepted, since a study's epsilon is a fraction. For
#: a fraction, any rational number is accepted, such as a whole number.
_NUMBERS: Mapping[Any, type] = {float: numbers.Real, Fraction: numbers.Rational}
#: Generic types for which typeguard checks only the class of a value, and not what the value holds.
_BY_CLASS = (os.PathLike, Iterable)
_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: A name, its annotation, and the classes whose instances fit it without a further check.
_Hint: TypeAlias = "tuple[str, Any, tuple[type, ...]]"


def typechecked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that, before it begins, it refuses arguments that are not of the annotated types.

    The message names the argument, its type and the type that is needed. The message shows no value, since a value may
    come from a row.

    Raises
    ------
    InputError
        Raised by the decorated function, if an argument is not of its annotated type.

    Examples
    --------
    >>> @typechecked
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> double("two")
    Traceback (most recent call last):
    ...
    dpframework.facts.errors.InputError: double: number is a str; int is needed
    """
    where = function.__qualname__.removesuffix(".__init__")

    @functools.cache
    def read() -> tuple[inspect.Signature, list[str], set[str], list[_Hint]]:
        # Read at the first call, since an annotation may name a class that is defined further down in its module.
        signature = inspect.signature(function)
        written = {name: p.annotation for name, p in signature.parameters.items() if p.annotation is not p.empty}
        names = inspect.unwrap(function).__globals__  # where the annotations were written
        # The return type is not read: only type checkers may know it.
        found = typing.get_type_hints(types.SimpleNamespace(__annotations__=written), names)
        by_position = [n for n, parameter in signature.parameters.items() if parameter.kind in _BY_POSITION]
        hints = []
        for name in signature.parameters:
            classes = _classes(found[name])[0] if name in found else (object,)
            if object not in classes:  # `object` takes anything
                hints.append((name, found[name], classes))
        several = {name for name, *_ in hints if signature.parameters[name].kind in _SEVERAL}
        return signature, by_position, several, hints

    @functools.wraps(function)
    def boundary(*args: P.args, **kwargs: P.kwargs) -> R:
        signature, by_position, several, hints = read()
        if several or len(args) > len(by_position):
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                # The call fails in Python's own words about missing or unknown arguments.
                return function(*args, **kwargs)
        else:  # as `bind`, in a tenth of its time; the function itself finds missing, unknown and repeated arguments
            given = {**dict(zip(by_position, args, strict=False)), **kwargs}
        for name, hint, plain in hints:
            if name not in given or (name not in several and isinstance(given[name], plain)):
                continue
            values = given[name] if name in several else (given[name],)
            for value in values.values() if isinstance(values, dict) else values:
                _require(value, hint, f"{where}: {name}")
        return function(*args, **kwargs)

    return boundary


def require_field_types(instance: Any, where: str) -> None:
    """Refuse an instance with a field that is not of its annotated type.

    Parameters
    ----------
    instance
        The instance of an attrs class. An annotation is ignored if it uses a name that the class's module lacks.
    where
        The first words of the message.

    Raises
    ------
    InputError
        If a field has another type. The message names the field and shows no value.
    """
    for name, hint, plain in _field_hints(instance.__class__):
        value = getattr(instance, name, None)
        if not isinstance(value, plain):
            _require(value, hint, f"{where}: {name.lstrip('_')}")


def require_fields_only(instance: Any, where: str) -> None:
    """Refuse an instance with an attribute that is no field of its class, since a plan's hash would not cover it.

    Parameters
    ----------
    instance
        The instance of an attrs class. The values of cached properties are accepted.
    where
        The first words of the message.

    Raises
    ------
    InputError
        If there is such an attribute. The message names it.
    """
    kind = type(instance)
    fields = {field.name for field in attrs.fields(kind)}
    for name in getattr(instance, "__dict__", ()):
        if name not in fields and not isinstance(inspect.getattr_static(kind, name, None), functools.cached_property):
            raise InputError(
                f"{where} keeps {name!r} outside of its fields, so no plan file and no hash would hold it; decorate "
                f"the class {kind.__name__} with @attrs.frozen, and declare this field"
            )


def require_argument_types(kind: type, arguments: Mapping[str, Any], where: str) -> None:
    """Refuse arguments of an attrs class that are not of the types that it takes.

    Parameters
    ----------
    kind
        The class. A field with a converter takes the type that its converter takes.
    arguments
        The arguments by name, as the class is called with them.
    where
        The first words of the message.

    Raises
    ------
    InputError
        If an argument has another type. The message names the argument and shows no value.
    """
    for name, hint, plain in _argument_hints(kind):
        if name in arguments and not isinstance(arguments[name], plain):
            _require(arguments[name], hint, f"{where}: {name}")


@functools.cache
def _field_hints(kind: type) -> tuple[_Hint, ...]:
    """Return the name of each field, its annotation, and the classes that fit it without a further check."""
    fields = attrs.fields(kind) if attrs.has(kind) else ()
    found: dict[str, Any] = {}
    for field in fields:
        owners = [base for base in kind.__mro__ if field.name in inspect.get_annotations(base)]
        if owners:
            # A class that was made in a notebook may have no module.
            module = sys.modules.get(owners[0].__module__)
            names = {**({} if module is None else vars(module)), owners[0].__name__: owners[0]}
            found.update(_read_hint(field.name, field.type, names))
    return tuple([(name, hint, _classes(hint)[0]) for name, hint in found.items()])


@functools.cache
def _argument_hints(kind: type) -> tuple[_Hint, ...]:
    """Return the name of each argument, its annotation, and the classes that fit it without a further check.

    A field with a converter takes the type that its converter takes.
    """
    own, found = {name: hint for name, hint, _ in _field_hints(kind)}, dict[str, Any]()
    for field in attrs.fields(kind) if attrs.has(kind) else ():
        name = field.alias or field.name
        if field.converter is None:
            found.update({name: own[field.name]} if field.name in own else {})
        elif inspect.isfunction(field.converter):
            taken = next(iter(inspect.signature(field.converter).parameters.values()))
            found.update(_read_hint(name, taken.annotation, field.converter.__globals__))
    return tuple([(name, hint, _classes(hint)[0]) for name, hint in found.items()])


def _read_hint(name: str, annotation: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping from a name to its annotation as a type; empty if only a type checker can read it."""
    try:
        return typing.get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), names)
    except (NameError, AttributeError, TypeError, SyntaxError):
        return {}


def _require(value: Any, hint: Any, what: str) -> None:
    # A list is accepted in place of a tuple, since files cannot write tuples.
    if _fits(value, hint) or (isinstance(value, list) and _fits(tuple(value), hint)):
        return
    name = type(value).__name__
    found = f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
    if value is None:
        found = "None"
    elif isinstance(value, type):
        found = f"the class {value.__name__}"
    raise InputError(f"{what} is {found}; {_hint_text(hint)} is needed{_remedy(value, hint)}")


def _remedy(value: Any, hint: Any) -> str:
    """Say how to make an argument of the right type from the given value, if there is a way."""
    needed = _hint_text(hint)
    if isinstance(value, str | os.PathLike) and needed == "Schema":
        return "; dpf.Schema.load(path) reads one"
    if isinstance(value, str | os.PathLike) and needed.startswith("Table,"):
        return "; dpf.read_table(path, schema) reads one"
    if type(value).__name__ in ("DataFrame", "LazyFrame") and needed.startswith("Table,"):
        return "; dpf.table_from_frame(frame, schema) makes one"
    if type(value).__name__ in ("DataFrame", "LazyFrame") and "PathLike[str]" in needed:
        return "; dpf.table_from_frame(frame, schema) takes a dataframe"
    if needed == "Schema":
        return "; dpf.Schema([dpf.Numeric(...), ...]) makes one"
    if callable(value) and needed == "str":
        return "; write it as a text"
    if needed.startswith("Description,"):
        return '; such as { equals = ["sex", "f"] }'
    return ""


def _fits(value: Any, hint: Any) -> bool:
    (plain, all_of_it), cache = _rule(hint)
    if all_of_it:
        if isinstance(value, plain):
            return True
        # A single number or text of numpy is accepted in place of a number or text of Python.
        of_numpy = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
        return of_numpy and isinstance(value.item(), plain)
    # Only the first value of a sequence is compared, as typeguard does.
    for origin, classes in _shapes(hint):
        begins = type(value) in (list, tuple) and (not value or isinstance(value[0], classes))
        if isinstance(value, origin) and (begins or not classes):
            return True
    kinds = None
    if cache is not None and type(value) in (tuple, list):
        kinds = type(value), (type(value[0]) if value else None)
        if kinds in cache:
            return cache[kinds]
    from typeguard import TypeCheckError, check_type

    try:
        check_type(value, hint)
        fits = True
    except TypeCheckError:
        fits = False
    if cache is not None and kinds is not None:
        cache[kinds] = fits
    return fits


@functools.cache
def _rule(hint: Any) -> tuple[tuple[tuple[type, ...], bool], dict[Any, bool] | None]:
    """Return the classes of an annotation (see `_classes`), and a cache of the answers that typeguard gave about it.

    Only an annotation of sequences of plain classes has a cache. Whether a value fits it depends only on the class of
    the value and the class of its first item. For any other annotation, the cache is None.
    """
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    return _classes(hint), {} if _is_sequence(origin, parts) and _classes(parts[0])[1] else None


@functools.cache
def _shapes(hint: Any) -> list[tuple[type, tuple[type, ...]]]:
    """Return the container classes that fit an annotation, each with the classes that its first value must have.

    An empty tuple stands for any first value. Sequences of numbers are left out, since typeguard has its own rules for
    these.
    """
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    shapes: list[tuple[type, tuple[type, ...]]] = []
    for part in typing.get_args(hint) if union else (hint,):
        origin, parts = typing.get_origin(part), typing.get_args(part)
        if origin in _BY_CLASS:
            shapes.append((origin, ()))
        elif _is_sequence(origin, parts):
            classes, all_of_it = _classes(parts[0])
            if all_of_it and not {*classes} & {*_NUMBERS.values()}:
                shapes.append((origin, classes))
    return shapes


def _is_sequence(origin: Any, parts: tuple[Any, ...]) -> bool:
    return origin in (list, Sequence) or (origin is tuple and parts[1:] == (Ellipsis,))


@functools.cache
def _classes(hint: Any) -> tuple[tuple[type, ...], bool]:
    """Return the classes that an annotation names, alone or in a union, and whether they are the whole annotation."""
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    classes: list[type] = []
    complete = True
    for part in typing.get_args(hint) if union else (hint,):
        if part is Any or isinstance(part, TypeVar):
            classes.append(object)
        elif part is None:
            classes.append(types.NoneType)
        elif part in _NUMBERS:
            classes.append(_NUMBERS[part])
        elif isinstance(part, type) and typing.get_origin(part) is None and not getattr(part, "_is_protocol", False):
            classes.append(part)
        else:
            complete = False
    return tuple(classes), complete


def _hint_text(hint: Any) -> str:
    """Return an annotation as people write it, without the modules of its names."""
    if hint in (None, types.NoneType):
        return "None"
    if hint is Ellipsis:
        return "..."
    if isinstance(hint, list):
        return f"[{', '.join(_hint_text(part) for part in hint)}]"
    parts = typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        *first, last = (_hint_text(part) for part in parts)
        return f"{', '.join(first)} or {last}"
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, parts))
    name = str(getattr(hint, "__name__", hint))
    return f"{name}[{', '.join(_hint_text(part) for part in parts)}]" if parts else name
