"""The answers of a cluster's workers, sent as plain data that the study's process never unpickles.

An answer is a msgpack map whose fields are checked. The fields hold numbers, texts, bytes and arrays of integers.
Anything else is refused. So a worker can lie about its counts, but cannot run code in the process that adds the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import DoesNotFit, InputError, NotOpened
from dpframework.facts.hidden_fields import hide_fields
from dpframework.tables.column_encoding import Unfit
from dpframework.tables.shuffle_by_id_hash import IdFinding, ShuffleFindings
from dpframework.tables.table_builder import RowFindings

MISMATCH = "a worker's answer does not match the request; check that all workers run dpframework in this version"
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_ERRORS = {kind.__name__: kind for kind in (InputError, NotOpened, DoesNotFit)}


@attrs.frozen
class ReadAnswer:
    """A worker's answer about a piece (a part of a table) that it has read.

    Attributes
    ----------
    found
        The number of the piece's rows, and the ways in which some cells do not fit.
    digest
        The digest of the piece's codes, values and keys, under a secret key that the study's process drew. A piece that
        is read again must have the same digest.
    """

    found: RowFindings
    digest: bytes = attrs.field(repr=False)


@attrs.frozen
class FailureAnswer:
    """A worker's answer about a failure.

    Attributes
    ----------
    kind
        The name of the error's class. For a class of another library it is "an error of its own", since the name of
        such a class may show a cell.
    error
        An error that shows nothing of the rows, or None.
    """

    kind: str
    error: InputError | None = None


@attrs.frozen
class AbsentAnswer:
    """A worker's answer that it does not hold a piece or a sample, for example after a restart."""


@attrs.frozen
class ShuffleAnswer:
    """A worker's findings about a piece that it has spread, or a bucket that it has gathered (see `Shuffle`)."""

    found: ShuffleFindings


@attrs.frozen
class UnreachableAnswer:
    """A worker's answer that it cannot get the messages that it needs from another worker."""


@attrs.frozen(repr=False, field_transformer=hide_fields)
class TallyAnswer:
    """A worker's answer with a count for each text."""

    counts: Mapping[str, int]

    def __repr__(self) -> str:
        """Show no text and no count."""
        return "TallyAnswer(rows are private)"


#: An answer of a worker. Besides the classes above: arrays of counts, versions by name, or the number that names the
#: sample or table of the request.
Answer: TypeAlias = (
    ReadAnswer
    | FailureAnswer
    | AbsentAnswer
    | ShuffleAnswer
    | UnreachableAnswer
    | TallyAnswer
    | list[NDArray[Any]]
    | Mapping[str, str]
    | int
)


def pack_answer(answer: Answer) -> bytes:
    """Return an answer as bytes that `answer_of` reads."""
    import msgpack

    match answer:
        case AbsentAnswer():
            form: dict[str, Any] = {"absent": True}
        case UnreachableAnswer():
            form = {"unreached": True}
        case ShuffleAnswer():
            of_ids = sorted((one.name, side) for one, side in answer.found.ids)
            form = {"ids": of_ids, "unfit": sorted((name, way.name) for name, way in answer.found.unfit)}
        case FailureAnswer():
            form = {"failed": answer.kind, "error": None}
            if (error := answer.error) is not None:
                known = next(name for name, kind in reversed(_ERRORS.items()) if isinstance(error, kind))
                form["error"] = known, str(error), error.kind if isinstance(error, DoesNotFit) else ""
        case ReadAnswer():
            unfit = [sorted(way.name for way in ways) for ways in answer.found.unfit]
            form = {"rows": answer.found.rows, "unfit": unfit, "digest": answer.digest}
        case TallyAnswer():
            form = {"tallied": list(answer.counts.items())}
        case int():
            form = {"number": answer}
        case list():
            form = {"counts": [(one.dtype.name, one.shape, np.ascontiguousarray(one).tobytes()) for one in answer]}
        case _:
            form = {"versions": dict(answer)}
    return bytes(msgpack.packb(form))


def answer_of(content: object) -> Answer:
    """Read the output of `pack_answer`.

    Raises
    ------
    InputError
        If `content` is anything else.
    """
    import msgpack

    try:
        form = msgpack.unpackb(_require_type(bytes, content))
        return _READERS[frozenset(form)](form)
    except Exception:  # the error's text comes from the sender, and is not shown
        pass
    raise InputError(
        "a worker's answer is not in dpframework's format; check that all workers run dpframework in this version"
    )


def require_answer(answer: Answer, kind: type, when: str) -> Any:
    """Return an answer if it is of the expected class.

    Raises
    ------
    InputError
        If the answer is of another class. If the answer reports a failure, the error that the worker sent is raised. If
        the worker sent none, the new error names the kind of the failure.
    """
    if isinstance(answer, kind):
        return answer
    if not isinstance(answer, FailureAnswer):
        raise InputError(MISMATCH)
    if answer.error is not None:
        raise answer.error
    raise InputError(f"a worker failed with {answer.kind} {when}; run with engine 'memory' to see where")


def _require_type(kind: type, value: Any) -> Any:
    """Return a value if it is of exactly this class. A boolean is no number here."""
    if type(value) is not kind:
        raise TypeError
    return value


def _read_failure(form: Mapping[str, Any]) -> FailureAnswer:
    if form["error"] is None:
        return FailureAnswer(_require_type(str, form["failed"]))
    name, text, broken = (_require_type(str, part) for part in form["error"])
    kind = _ERRORS[name]
    error = DoesNotFit(text, kind=broken) if kind is DoesNotFit else kind(text)
    return FailureAnswer(_require_type(str, form["failed"]), error)


def _read(form: Mapping[str, Any]) -> ReadAnswer:
    unfit = tuple(frozenset(Unfit[name] for name in ways) for ways in _require_type(list, form["unfit"]))
    return ReadAnswer(RowFindings(_require_type(int, form["rows"]), unfit), _require_type(bytes, form["digest"]))


def _read_shuffle(form: Mapping[str, Any]) -> ShuffleAnswer:
    of_ids = frozenset((IdFinding[name], _require_type(int, side)) for name, side in form["ids"])
    unfit = frozenset((_require_type(str, name), Unfit[way]) for name, way in form["unfit"])
    return ShuffleAnswer(ShuffleFindings(of_ids, unfit))


def _array(form: Any) -> NDArray[Any]:
    name, shape, content = form
    shape = tuple(_require_type(int, length) for length in shape)
    if name not in _INTEGERS or min(shape, default=0) < 0:
        raise ValueError
    array = np.frombuffer(_require_type(bytes, content), dtype=name)
    if len(array) != math.prod(shape):
        raise ValueError
    return array.reshape(shape).copy()  # a copy that is writable


def _read_tally(form: Mapping[str, Any]) -> TallyAnswer:
    pairs = [(_require_type(str, text), _require_type(int, count)) for text, count in form["tallied"]]
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return TallyAnswer(dict(pairs))


_READERS: dict[frozenset[str], Callable[[Any], Answer]] = {
    frozenset(("absent",)): lambda form: AbsentAnswer(),
    frozenset(("unreached",)): lambda form: UnreachableAnswer(),
    frozenset(("ids", "unfit")): _read_shuffle,
    frozenset(("failed", "error")): _read_failure,
    frozenset(("rows", "unfit", "digest")): _read,
    frozenset(("number",)): lambda form: int(_require_type(int, form["number"])),
    frozenset(("counts",)): lambda form: [_array(one) for one in _require_type(list, form["counts"])],
    frozenset(("versions",)): lambda form: {
        _require_type(str, k): _require_type(str, text) for k, text in form["versions"].items()
    },
    frozenset(("tallied",)): _read_tally,
}
