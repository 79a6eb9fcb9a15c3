"""The exact answers of queries, each computed only from the attributes that the query declares.

Only code on the private side of a run, which may read the rows, calls these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import Any, final

import attrs
from numpy.typing import NDArray

from dpframework.queries.base import Query
from dpframework.tables.crosstab_expressions import JointCounts, joint_counts_of
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.engine_base import Engine, Rows


@final
@attrs.frozen
class _HidingFunction:
    """A function of blocks of rows that sees only what a query declares. It can be sent to another process.

    The function sees the attributes in `names`, or all if `names` is None. If `places` is true, it also sees whether a
    row is the first, the second, ... row of its unit. It never sees which unit a row belongs to.
    """

    function: Callable[[Block], Any]
    names: frozenset[str] | None
    places: bool

    def __call__(self, block: Block) -> Any:
        shown = block if self.names is None else block.showing(self.names)
        return self.function(shown.without_units(places=self.places))

    def joint_counts(self) -> JointCounts | None:
        found = joint_counts_of(self.function)
        return found if found is None or self.names is None else attrs.evolve(found, shown=self.names)


@final
@attrs.frozen
class _EngineOfQuery:
    """An engine as a query sees it. Functions that it runs see what the query declares, and no more."""

    _engine: Engine
    _names: frozenset[str] | None
    _places: bool

    def map(self, rows: Rows, function: Callable[[Block], Any]) -> list[Any]:
        """See `Engine.map`."""
        return self._engine.map(rows, _HidingFunction(function, self._names, self._places))

    def counts(self, rows: Rows, functions: Sequence[Callable[[Block], NDArray[Any]]]) -> list[NDArray[Any]]:
        """See `Engine.counts`."""
        hiding = [_HidingFunction(function, self._names, self._places) for function in functions]
        return self._engine.counts(rows, hiding)

    def sum(self, rows: Rows, count: Callable[[Block], NDArray[Any]]) -> NDArray[Any]:
        """See `Engine.sum`."""
        (found,) = self.counts(rows, [count])
        return found

    def tally(self, rows: Rows, function: Callable[[Block], Mapping[str, int]]) -> dict[str, int]:
        """See `Engine.tally`."""
        return self._engine.tally(rows, _HidingFunction(function, self._names, self._places))

    def number(self, rows: Rows) -> int:
        """See `Engine.number`."""
        return self._engine.number(rows)

    def cache_of(self, rows: Rows) -> dict[Hashable, Any]:
        """See `Engine.cache_of`."""
        return self._engine.cache_of(rows)

    def related_caches(self, rows: Rows) -> tuple[dict[Hashable, Any], list[dict[Hashable, Any]]] | None:
        """See `Engine.related_caches`."""
        return self._engine.related_caches(rows)


def engine_of(query: Query, engine: Engine) -> Any:
    """Return an engine that shows a query only the attributes that it declares.

    If the query declares no attributes, it sees all of them, or none if its `no_attributes` is true. If its `places` is
    true, it also sees whether a row is the first, the second, ... row of its unit. A table knows the units of its rows
    if any step of the plan needs them, but the queries of other steps must not see them. Such a query declares how far
    one row changes the answer, and a number that depends on whole units may change by more.
    """
    return _EngineOfQuery(engine, _names_of(query), query.places)


def function_of(query: Query, function: Callable[[Block], Any]) -> Callable[[Block], Any]:
    """Return a function of blocks that sees only what a query declares, as in `engine_of`."""
    return _HidingFunction(function, _names_of(query), query.places)


def _names_of(query: Query) -> frozenset[str] | None:
    """Return the attributes that a query may read; None for all of them."""
    names = frozenset(query.attributes)
    return names if names or query.no_attributes else None


def answer_of(query: Query, engine: Engine, rows: Rows, inputs: Mapping[str, Any]) -> Any:
    """Return the exact answer of a query, computed from the attributes that it declares.

    A plan says which attributes each release may read. A report adds up what the releases from each attribute cost. So
    a query must not be able to read any other attribute.

    Raises
    ------
    InputError
        If the query reads an attribute that it does not declare, or fails with this error itself.
    """
    (answer,) = answers_of(engine, [(query, rows, inputs)])
    return answer


def answers_of(engine: Engine, queries: Sequence[tuple[Query, Rows, Mapping[str, Any]]]) -> list[Any]:
    """Return the exact answers of several queries, each the same as from `answer_of`.

    If each call of the engine sends a message, one call counts for all queries, except for queries that override
    `evaluate`. Such queries, and all queries of other engines, are evaluated one after another.

    Parameters
    ----------
    engine
        The engine that holds the rows.
    queries
        Queries, each with its rows and its public inputs.
    """
    answers: dict[int, Any] = {}
    counting: dict[int, Generator[Callable[[Block], NDArray[Any]], NDArray[Any], Any]] = {}
    for k, (query, rows, inputs) in enumerate(queries):
        if engine.sends_messages and type(query).evaluate is Query.evaluate:
            counting[k] = query.counting(engine_of(query, engine), rows, **inputs)
        else:
            answers[k] = query.evaluate(engine_of(query, engine), rows, **inputs)
    # A generator is started by sending None. Each round then sends every query its counts, and makes one call for all
    # counts that the queries request next.
    sent: dict[int, Any] = dict.fromkeys(counting)
    while sent:
        functions = {}
        for k, counts in sent.items():
            try:
                functions[k] = function_of(queries[k][0], counting[k].send(counts))
            except StopIteration as ended:
                answers[k] = ended.value
        found = (
            engine.counts_of([(queries[k][1], [function]) for k, function in functions.items()]) if functions else []
        )
        sent = {k: counts for k, (counts,) in zip(functions, found, strict=True)}
    return [answers[k] for k in range(len(queries))]
