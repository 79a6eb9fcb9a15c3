"""The schema: the public facts about a table (attributes, their kinds, domains and views); never data.

Everything here is decided before the private table is opened, so every value in a schema may be shown,
stored in a plan, and used in an error message.
"""

from __future__ import annotations

import abc
import enum
import functools
import hashlib
import itertools
import json
import math
import numbers
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, final

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.files import write_whole
from dpframework.facts.typechecks import typechecked

MISSING_LABEL = "missing"
MOST_CODES = 1_000_000
"""Most codes that one attribute may have: counts over a finer grid would be all noise and no memory."""


class View(enum.StrEnum):
    """The side of an attribute in a two-view table."""

    LEFT = "left"
    RIGHT = "right"

    @classmethod
    def parse(cls, text: str) -> View:
        """Return the view of that name.

        Raises
        ------
        InputError
            If there is none.
        """
        try:
            return cls(text)
        except ValueError:
            raise InputError(f"view {text!r} is unknown; accepted are 'left' and 'right'") from None


def _text(value: object, what: str) -> str:
    """Return `value` if it is a text that a UTF-8 file can hold and a reader can see, else raise."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be a text, not {type(value).__name__}")
    if not value.strip():
        raise InputError(f"{what} must not be blank")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} holds characters that UTF-8 cannot write") from None
    return str(value)


def _number(value: object, what: str) -> float:
    """Return `value` as a finite float; -0.0 becomes 0.0, so that equal schemas print alike."""
    # bool is an Integral for Python, but `lower = true` in a file is a slip, not the number 1.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{what} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{what} must be a finite number")
    return number + 0.0


def _count(value: object, what: str) -> int:
    """Return `value` as an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(f"{what} must be a whole number, not {type(value).__name__}")
    if value < 1:
        raise InputError(f"{what} must be at least 1")
    return int(value)


def _items(value: object, what: str) -> tuple[Any, ...]:
    """Return a list-like as a tuple; a text is refused, since its letters are never what was meant."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{what} must be a list, not {type(value).__name__}")
    return tuple(value)


def _as_view(value: View | str | None) -> View | None:
    return None if value is None else View.parse(value)


def _as_values(values: Iterable[str]) -> tuple[str, ...]:
    return _items(values, "values")


def _as_cuts(cuts: Iterable[float]) -> tuple[float, ...]:
    return _items(cuts, "cuts")


def _as_attributes(attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    return _items(attributes, "attributes")


def _as_inferred(inferred: Iterable[str]) -> tuple[str, ...]:
    return _items(inferred, "inferred")


def _plain(number: float) -> int | float:
    """Return a whole float as an int, so that files read `lower = 17` as people write it."""
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


# Not slotted: the cached properties need an instance dictionary.
@attrs.frozen(slots=False)
class Attribute(abc.ABC):
    """A column's public facts: its name, kind, domain and view.

    Every value of the domain has a code, 0 to `size` - 1; where missing values are allowed, the last code is
    theirs.

    Attributes
    ----------
    name
        The column's name, not blank.
    view
        The side in a two-view table, or None; `"left"` and `"right"` are accepted.
    missing
        Whether a value may be missing.

    Raises
    ------
    InputError
        If a fact is of the wrong type or out of range.
    """

    kind: ClassVar[str]

    name: str
    view: View | None = attrs.field(default=None, converter=_as_view, kw_only=True)
    missing: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Check every fact, and say in the error which attribute is wrong."""
        _text(self.name, "an attribute's name")
        if not isinstance(self.missing, bool):
            raise InputError(f"attribute '{self.name}': missing must be true or false")
        try:
            self._check()
        except InputError as error:
            raise InputError(f"attribute '{self.name}': {error}") from None

    @abc.abstractmethod
    def _check(self) -> None:
        """Validate and normalise the facts of this kind; an error need not name the attribute."""

    def _set(self, field: str, value: object) -> None:
        # Normalising while constructing is the one moment when a frozen instance may be written.
        object.__setattr__(self, field, value)

    @abc.abstractmethod
    def _domain_labels(self) -> tuple[str, ...]:
        """Return one text per code, missing's left out."""

    @abc.abstractmethod
    def _domain_facts(self) -> dict[str, Any]:
        """Return the JSON-safe facts of this kind only."""

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """One readable, distinct text per code; missing's is "missing"."""
        return self._domain_labels() + ((MISSING_LABEL,) if self.missing else ())

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of codes, missing's included."""

    @property
    def missing_code(self) -> int | None:
        """The code of a missing value, the last one, or None where none is allowed."""
        return self.size - 1 if self.missing else None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts in a JSON-safe form, defaults left out, in the order of a schema file.

        Examples
        --------
        >>> Boolean("smokes", view="left").to_dict()
        {'name': 'smokes', 'kind': 'boolean', 'view': 'left'}
        """
        form: dict[str, Any] = {"name": self.name, "kind": self.kind, **self._domain_facts()}
        if self.missing:
            form["missing"] = True
        if self.view is not None:
            form["view"] = self.view.value
        return form


@final
@attrs.frozen(slots=False)
class Boolean(Attribute):
    """An attribute that is false (code 0) or true (code 1).

    Examples
    --------
    >>> Boolean("smokes", missing=True).labels
    ('false', 'true', 'missing')
    """

    kind: ClassVar[str] = "boolean"

    def _check(self) -> None:
        """Accept: a Boolean has no facts of its own."""

    def _domain_labels(self) -> tuple[str, ...]:
        return ("false", "true")

    def _domain_facts(self) -> dict[str, Any]:
        return {}

    @property
    def size(self) -> int:
        """2, or 3 with missing."""
        return 2 + self.missing


@final
@attrs.frozen(slots=False)
class Categorical(Attribute):
    """An attribute with a public list of values; a value's code is its position.

    Attributes
    ----------
    values
        At least one text, none blank, none twice.

    Examples
    --------
    >>> Categorical("sex", ["Female", "Male"], missing=True).labels
    ('Female', 'Male', 'missing')
    """

    kind: ClassVar[str] = "categorical"

    values: tuple[str, ...] = attrs.field(converter=_as_values)

    def _check(self) -> None:
        for value in self.values:
            _text(value, "each of its values")
        if not self.values:
            raise InputError("needs at least one value")
        if len(self.values) > MOST_CODES:
            raise InputError(f"has more than {MOST_CODES} values")
        if len(set(self.values)) < len(self.values):
            twice = next(v for k, v in enumerate(self.values) if v in self.values[:k])
            raise InputError(f"value {twice!r} is listed twice")
        if self.missing and MISSING_LABEL in self.values:
            raise InputError(f"value {MISSING_LABEL!r} is the label of missing values; rename the value")

    def _domain_labels(self) -> tuple[str, ...]:
        return self.values

    def _domain_facts(self) -> dict[str, Any]:
        return {"values": list(self.values)}

    @property
    def size(self) -> int:
        """The number of values, and one more with missing."""
        return len(self.values) + self.missing


@final
@attrs.frozen(slots=False)
class Numeric(Attribute):
    """An attribute with public bounds and public cut points.

    The code of x is the number of cut points at or below x: bins are [c_{k-1}, c_k), the last one closed at
    `upper`.

    Attributes
    ----------
    lower, upper
        Finite bounds of the range, both included, lower < upper.
    bins
        Number of bins of equal width, at least 1; or
    cuts
        the cut points themselves, strictly increasing, strictly between the bounds. Give one of the two.

    Examples
    --------
    >>> age = Numeric("age", 17, 90, cuts=[25, 65])
    >>> age.labels
    ('[17, 25)', '[25, 65)', '[65, 90]')
    >>> Numeric("share", lower=0, upper=1, bins=4).interior_cuts
    (0.25, 0.5, 0.75)
    """

    kind: ClassVar[str] = "numeric"

    lower: float
    upper: float
    bins: int | None = None
    cuts: tuple[float, ...] = attrs.field(default=(), converter=_as_cuts)

    def _check(self) -> None:
        self._set("lower", _number(self.lower, "lower"))
        self._set("upper", _number(self.upper, "upper"))
        if not self.lower < self.upper:
            raise InputError("lower must be below upper")
        if not math.isfinite(self.upper - self.lower):
            raise InputError("the width upper - lower must be finite")
        self._set("cuts", tuple(_number(cut, "each of its cuts") for cut in self.cuts))
        if (self.bins is None) == (not self.cuts):
            raise InputError("needs either bins (equal width) or cuts (a list of cut points), not both")
        if self.bins is not None:
            self._set("bins", _count(self.bins, "bins"))
            if self.bins > MOST_CODES:
                raise InputError(f"bins must be at most {MOST_CODES}")
            if not _increasing((self.lower, *self.interior_cuts, self.upper)):
                raise InputError("has more bins than floating-point numbers tell apart in its range")
            return
        if len(self.cuts) >= MOST_CODES:
            raise InputError(f"has more than {MOST_CODES} bins")
        if not _increasing(self.cuts):
            raise InputError("cuts must be strictly increasing")
        if not (self.lower < self.cuts[0] and self.cuts[-1] < self.upper):
            raise InputError("cuts must lie strictly between lower and upper")

    @functools.cached_property
    def interior_cuts(self) -> tuple[float, ...]:
        """The cut points strictly between the bounds, increasing, whether given or from `bins`."""
        if self.bins is None:
            return self.cuts
        width = (self.upper - self.lower) / self.bins
        return tuple(self.lower + width * k for k in range(1, self.bins))

    def _domain_labels(self) -> tuple[str, ...]:
        edges = (self.lower, *self.interior_cuts, self.upper)
        # %g reads best; narrow bins far from zero need more digits for their labels to differ.
        for digits in range(6, 18):
            texts = [f"{edge:.{digits}g}" for edge in edges]
            if len(set(texts)) == len(texts):
                break
        inner = [f"[{a}, {b})" for a, b in itertools.pairwise(texts[:-1])]
        return (*inner, f"[{texts[-2]}, {texts[-1]}]")

    def _domain_facts(self) -> dict[str, Any]:
        grid = {"bins": self.bins} if self.bins is not None else {"cuts": [_plain(cut) for cut in self.cuts]}
        return {"lower": _plain(self.lower), "upper": _plain(self.upper), **grid}

    @property
    def size(self) -> int:
        """The number of bins, and one more with missing."""
        return (len(self.cuts) + 1 if self.bins is None else self.bins) + self.missing


def _increasing(numbers_: tuple[float, ...]) -> bool:
    return all(a < b for a, b in itertools.pairwise(numbers_))


_KINDS: dict[str, type[Attribute]] = {kind.kind: kind for kind in (Boolean, Categorical, Numeric)}
_SCHEMA_KEYS = ("rows", "max_rows", "inferred", "attribute")


def _refuse_unknown(form: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    known = tuple(known)
    for key in form:
        if key not in known:
            raise InputError(f"{where}unknown key {key!r}; {nearest(str(key), known)}")


def attribute_from_dict(form: object, position: int) -> Attribute:
    """Read what `Attribute.to_dict` wrote; `position`, from 1, names an attribute that has no name."""
    if not isinstance(form, Mapping):
        raise InputError(f"attribute number {position} must be a table of facts, written as [[attribute]]")
    name = form.get("name")
    where = f"attribute '{name}': " if isinstance(name, str) else f"attribute number {position}: "
    if "name" not in form:
        raise InputError(f"{where}has no name")
    if "kind" not in form:
        raise InputError(f"{where}has no kind; accepted are {', '.join(map(repr, _KINDS))}")
    kind = form["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"{where}kind {kind!r} is unknown; {nearest(str(kind), _KINDS)}")
    fields = attrs.fields(_KINDS[kind])
    _refuse_unknown(form, ["kind", *(field.name for field in fields)], where)
    for field in fields:
        if field.default is attrs.NOTHING and field.name not in form:
            raise InputError(f"{where}a {kind} attribute needs '{field.name}'")
    return _KINDS[kind](**{key: value for key, value in form.items() if key != "kind"})


@final
@attrs.frozen(slots=False)
class Schema:
    """The public facts about a table: its attributes, in column order, and what is public about its size.

    Attributes
    ----------
    attributes
        At least one attribute; names differ.
    rows
        The public exact number of rows, or None where it is secret.
    max_rows
        A public upper bound on the number of rows, or None.
    inferred
        What was taken from private data to make this schema, one text each; empty if it was written by hand.

    Raises
    ------
    InputError
        If a name occurs twice, there is no attribute, a count is below 1, or `rows` exceeds `max_rows`.

    Examples
    --------
    >>> schema = Schema([Boolean("smokes"), Numeric("age", 17, 90, bins=4)], max_rows=1000)
    >>> schema.names, schema.index("age"), schema["age"].size, schema.row_bound
    (('smokes', 'age'), 1, 4, 1000)
    >>> Schema.loads(schema.dumps()) == schema
    True
    """

    attributes: tuple[Attribute, ...] = attrs.field(converter=_as_attributes)
    rows: int | None = None
    max_rows: int | None = None
    inferred: tuple[str, ...] = attrs.field(default=(), converter=_as_inferred)

    def __attrs_post_init__(self) -> None:
        """Check the facts as a whole."""
        if not self.attributes:
            raise InputError("a schema needs at least one attribute")
        for attribute in self.attributes:
            if not isinstance(attribute, Attribute):
                raise InputError(f"a schema holds attributes, not {type(attribute).__name__}")
        if len(self._positions) < len(self.attributes):
            names = self.names
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            raise InputError(f"attribute '{twice}' is listed twice; names must differ")
        for field in ("rows", "max_rows"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, _count(getattr(self, field), field))
        if self.rows is not None and self.max_rows is not None and self.rows > self.max_rows:
            raise InputError(f"rows = {self.rows} exceeds max_rows = {self.max_rows}")
        for text in self.inferred:
            _text(text, "each text in inferred")

    @functools.cached_property
    def _positions(self) -> dict[str, int]:
        return {attribute.name: k for k, attribute in enumerate(self.attributes)}

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in column order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def row_bound(self) -> int | None:
        """The public row count if there is one, else the public upper bound, else None."""
        return self.rows if self.rows is not None else self.max_rows

    @functools.cached_property
    def fingerprint(self) -> str:
        """The SHA-256, in hex, of the schema's facts: equal schemas have equal fingerprints on every machine.

        What was inferred from data is part of the facts: a schema cannot lose that mark and pass for the
        same.
        """
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def index(self, name: str) -> int:
        """Return the position of the attribute of that name.

        Raises
        ------
        InputError
            If there is none; names the nearest one.
        """
        if name not in self:
            raise InputError(f"attribute {name!r} is not in the schema; {nearest(str(name), self.names)}")
        return self._positions[name]

    def __getitem__(self, name: str) -> Attribute:
        """Return the attribute of that name; raise as `index` does."""
        return self.attributes[self.index(name)]

    def __contains__(self, name: object) -> bool:
        """Tell whether an attribute has that name."""
        return isinstance(name, str) and name in self._positions

    def __iter__(self) -> Iterator[Attribute]:
        """Go through the attributes in column order."""
        return iter(self.attributes)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self.attributes)

    def view(self, view: View | str) -> tuple[Attribute, ...]:
        """Return the attributes of one view, in column order.

        Examples
        --------
        >>> schema = Schema([Boolean("a", view="left"), Boolean("b", view="right")])
        >>> [attribute.name for attribute in schema.view("right")]
        ['b']
        """
        side = View.parse(view)
        return tuple(attribute for attribute in self.attributes if attribute.view is side)

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of these attributes only, in the order of `names`.

        Raises
        ------
        InputError
            If a name is unknown or occurs twice, or there is none.
        """
        return attrs.evolve(self, attributes=[self[name] for name in _items(names, "names")])

    def replace(self, *attributes: Attribute) -> Schema:
        """Return the schema with the attributes of the same names replaced, each in its place.

        Raises
        ------
        InputError
            If a name is unknown.

        Examples
        --------
        >>> Schema([Boolean("a"), Boolean("b")]).replace(Boolean("b", missing=True))["b"].missing
        True
        """
        replaced = list(self.attributes)
        for attribute in attributes:
            replaced[self.index(attribute.name)] = attribute
        return attrs.evolve(self, attributes=replaced)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema in a JSON-safe form, with the keys and the order of a schema file."""
        form: dict[str, Any] = {}
        if self.rows is not None:
            form["rows"] = self.rows
        if self.max_rows is not None:
            form["max_rows"] = self.max_rows
        if self.inferred:
            form["inferred"] = list(self.inferred)
        form["attribute"] = [attribute.to_dict() for attribute in self.attributes]
        return form

    @classmethod
    @typechecked
    def from_dict(cls, form: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            If a key is unknown (with the nearest known one) or lacks, or a fact is wrong.
        """
        _refuse_unknown(form, _SCHEMA_KEYS, "")
        entries = form.get("attribute", [])
        if not isinstance(entries, list | tuple):
            raise InputError("each attribute must be written under its own [[attribute]] heading")
        return cls(
            attributes=tuple(attribute_from_dict(entry, k) for k, entry in enumerate(entries, start=1)),
            rows=form.get("rows"),
            max_rows=form.get("max_rows"),
            inferred=form.get("inferred", ()),
        )

    @classmethod
    @typechecked
    def loads(cls, text: str, source: str = "schema") -> Schema:
        '''Read a schema from the text of a TOML file.

        Parameters
        ----------
        text
            TOML: top-level `rows`, `max_rows`, `inferred`, and one `[[attribute]]` table each.
        source
            What errors call the text; usually the file's name.

        Raises
        ------
        InputError
            If the text is not TOML or does not describe a schema.

        Examples
        --------
        >>> text = """
        ... [[attribute]]
        ... name = "sex"
        ... kind = "categorical"
        ... values = ["Female", "Male"]
        ... """
        >>> Schema.loads(text).names
        ('sex',)
        '''
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{source}: not a TOML file: {error}") from None
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    @classmethod
    @typechecked
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a TOML file in UTF-8.

        Raises
        ------
        InputError
            If the file is missing, cannot be read, or does not describe a schema; names the file.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file; a schema file in TOML is expected") from None
        except IsADirectoryError:
            raise InputError(f"{path}: is a directory; a schema file in TOML is expected") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"{path}: is not UTF-8 text; a schema file in TOML is expected") from None
        return cls.loads(text, source=path.name)

    def dumps(self) -> str:
        """Return the schema as the text of a TOML file, which `loads` reads back as an equal schema.

        Examples
        --------
        >>> print(Schema([Numeric("age", 17, 90, bins=16)], max_rows=500).dumps(), end="")
        max_rows = 500
        <BLANKLINE>
        [[attribute]]
        name = "age"
        kind = "numeric"
        lower = 17
        upper = 90
        bins = 16
        """
        form = self.to_dict()
        entries = form.pop("attribute")
        blocks = [_toml_lines(form)] if form else []
        blocks += ["[[attribute]]\n" + _toml_lines(entry) for entry in entries]
        return "\n".join(blocks)

    @typechecked
    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a TOML file, whole or not at all.

        Raises
        ------
        InputError
            If the file cannot be written; an older file of that name is then untouched.
        """
        write_whole(Path(path), self.dumps())


def _toml_lines(form: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in form.items())


def _toml_value(value: object) -> str:
    """Write one fact in TOML, lists on one line as people write them; tomli_w would break them."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # A JSON string is a TOML string, but for DEL, which TOML wants escaped.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            return "[" + ", ".join(map(_toml_value, value)) + "]"
        case _:
            return repr(value)
