"""The exact loss of small plans, computed from the probabilities of all outputs on two neighbouring tables.

No rule of composition is used: the plan is walked step by step with the probabilities of each output on both tables.
Where earlier releases choose between branches, the branch with the largest loss is taken. So the result is the most
that an attacker can learn: the largest log-ratio, a Renyi divergence, or the delta at an epsilon. Tables have the
attributes of `SCHEMA`.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Boolean, Categorical
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.row_partitions import Cut, number_of_parts
from dpframework.facts.schema import Schema
from dpframework.mechanisms import Calibration
from dpframework.plan.nodes import Either, FromRelease, Node, Parallel, Post, Repeat, Sample, Sequential, Step
from dpframework.plan.plan import Plan
from dpframework.queries import Query
from dpframework.tables.coded_table import Table
from dpframework.tables.encoded_row_blocks import cells_of
from dpframework.tables.in_process_engines import InMemory

SCHEMA = Schema([Boolean("a"), Categorical("c", ["x", "y", "z"])])
KINDS = tuple(itertools.product(range(2), range(3)))  # all kinds of rows, as codes of the two attributes
SOME_KINDS = (KINDS[0], KINDS[1], KINDS[3], KINDS[5])  # kinds that together have all values of both attributes
# How far a noisy output may lie from the exact answers, or from 0 on samples. Outputs farther away are left out.
FURTHEST = 60
LARGEST_LOSS = 700  # the largest loss whose exponential fits a double
RAREST = 1e-14  # outputs with a lower probability are left out

#: The codes of each row, followed by the name of its unit if rows name their units.
Rows: TypeAlias = tuple[tuple[Any, ...], ...]
#: The probability of each output on the first table and on the second. Outputs with the same ratio of these two may be
#: merged: their probabilities are added up.
Atoms: TypeAlias = tuple[tuple[float, float], ...]
#: A function f of the two probabilities p and q of an output. If f is added up over outputs, f(c p, c q) = c f(p, q),
#: so outputs with equal ratios may be merged. If the largest value is taken, f depends on the ratio p / q alone.
Functional: TypeAlias = Callable[[float, float], float]

#: For each plan, the probabilities of all outputs of its steps and samples, by the id of the node and the rows of both
#: tables. The node is kept beside them, so that no other node gets its id.
_KNOWN: weakref.WeakKeyDictionary[Plan, dict[Any, tuple[Node, Atoms]]] = weakref.WeakKeyDictionary()


@final
@attrs.frozen
class NodeOnRows:
    """A node that is still to be released, with its rows on both tables."""

    node: Node
    before: Rows
    after: Rows


@final
@attrs.frozen(eq=False)
class Oracle:
    """A measure of how far the releases of a plan tell two tables apart.

    Attributes
    ----------
    plan
        The plan.
    functional
        The measure for one output, given its probabilities on both tables.
    over_outputs
        Combines the measures of all outputs: `sum` or `max`.
    """

    plan: Plan
    functional: Functional
    over_outputs: Callable[[Iterable[float]], float] = sum

    def value(self, parts: tuple[NodeOnRows, ...], p: float = 1.0, q: float = 1.0) -> float:
        """Return the measure over all outputs of the nodes in `parts`, at the worst choice of branches.

        The numbers p and q are the probabilities of the outputs that were released before, on the first table and on
        the second.
        """
        parts = tuple(_one_by_one(parts))
        if not parts:
            return self.functional(p, q)
        part, rest = parts[0], parts[1:]
        node, before, after = part.node, part.before, part.after
        match node:
            case Step() | Repeat(part=Step()):
                atoms = self._outputs(part)
                while rest and _is_one_step(rest[0].node):
                    atoms, rest = _together(atoms, self._outputs(rest[0])), rest[1:]
                return self._over(atoms, rest, p, q)
            case Either():
                return max(self.value((NodeOnRows(n, before, after), *rest), p, q) for n in node.parts)
            case Parallel():
                return max(self.value((*split, *rest), p, q) for split in _splits(node, before, after))
            case Sample():
                return self._over(self._sample(node, before, after), rest, p, q)
        raise AssertionError(node)

    def _over(self, atoms: Atoms, rest: tuple[NodeOnRows, ...], p: float, q: float) -> float:
        """Return the measure over the outputs `atoms`, each followed by `rest`. Impossible outputs are left out."""
        return self.over_outputs(self.value(rest, p * a, q * b) for a, b in atoms if p * a or q * b)

    def _outputs(self, part: NodeOnRows) -> Atoms:
        """Return the probabilities of the outputs of a step or its repeat. Outputs with equal ratios are merged."""
        if isinstance(part.node, Repeat):
            return _power(self._outputs(NodeOnRows(part.node.part, part.before, part.after)), part.node.times)
        return self._remembered(part, self._step_outputs)

    def _remembered(self, part: NodeOnRows, outputs: Callable[[NodeOnRows], Atoms]) -> Atoms:
        """Return the outputs of a step or a sample, which are computed once for a plan and two tables."""
        known = _KNOWN.setdefault(self.plan, {})
        if (key := (id(part.node), part.before, part.after)) not in known:
            known[key] = part.node, outputs(part)
        return known[key][1]

    def _step_outputs(self, part: NodeOnRows) -> Atoms:
        assert isinstance(part.node, Step)
        calibration = self.plan.calibration(part.node)
        assert calibration is not None
        one, other = (np.atleast_1d(_answer(part.node.query, rows)) for rows in (part.before, part.after))
        if part.node.mechanism.selects:
            return _choice_probabilities(calibration, tuple(one.tolist()), tuple(other.tolist()))
        changed = (_noisy(calibration, x, y) for x, y in zip(one.tolist(), other.tolist(), strict=True) if x != y)
        return functools.reduce(_together, changed, ((1.0, 1.0),))  # noise is independent for each number

    def _sample(self, node: Sample, before: Rows, after: Rows) -> Atoms:
        """Return the probabilities of a sample's outputs on both tables. Outputs with equal ratios are merged."""
        return self._remembered(NodeOnRows(node, before, after), self._sample_outputs)

    def _sample_outputs(self, part: NodeOnRows) -> Atoms:
        one, other = (_joint(part.node, self.plan, rows) for rows in (part.before, part.after))
        least, most = np.minimum(one, other), np.maximum(one, other)
        # If a release has a delta of its own, an output may be impossible on one of the tables.
        likely = (least > RAREST) | ((least == 0) & (most > RAREST))
        with np.errstate(divide="ignore"):
            ratios = np.log(one[likely]) - np.log(other[likely])
        pairs = np.unique(np.round(ratios, 9), return_inverse=True)[1]
        p, q = (np.bincount(pairs, weights=side[likely]).tolist() for side in (one, other))
        return tuple(zip(p, q, strict=True))


def _is_one_step(node: Node) -> bool:
    """Tell whether a node is a step, or repeats one."""
    return isinstance(node.part if isinstance(node, Repeat) else node, Step)


def _one_by_one(parts: Iterable[NodeOnRows]) -> Iterator[NodeOnRows]:
    """Yield what is released one after another, without nodes whose rows are the same on both tables."""
    for part in parts:
        node, before, after = part.node, part.before, part.after
        if before == after or isinstance(node, Post):
            continue
        if isinstance(node, Sequential):
            yield from _one_by_one(NodeOnRows(n, before, after) for n in node.parts)
        elif isinstance(node, Repeat) and not _is_one_step(node):
            yield from _one_by_one([NodeOnRows(node.part, before, after)] * node.times)
        else:
            yield part


def _splits(node: Parallel, before: Rows, after: Rows) -> Iterator[tuple[NodeOnRows, ...]]:
    """Yield the parts of each partition that a `parallel` node may stand for.

    If a release chooses the attribute, there is a partition by each attribute of `SCHEMA`. Otherwise there is only one.
    """
    for by in SCHEMA if isinstance(node.by, FromRelease) else [node.by]:
        assert by is not None
        children = node.parts * number_of_parts(by) if len(node.parts) == 1 else node.parts
        yield tuple(map(NodeOnRows, children, _parts(by, before), _parts(by, after)))


@functools.lru_cache(maxsize=1 << 14)
def _parts(by: Cut, rows: Rows) -> list[Rows]:
    """Return the rows of each part of a cut."""
    cells = cells_of(by, InMemory().load(_table(rows))[0]).tolist()
    return [tuple(row for row, cell in zip(rows, cells, strict=True) if cell == k) for k in range(number_of_parts(by))]


def _joint(node: Node, plan: Plan, rows: Rows) -> NDArray[np.float64]:
    """Return the probability of each list of outputs of a node. For a sample, average over all samples of the rows."""
    match node:
        case Step():
            calibration = plan.calibration(node)
            assert calibration is not None
            answer = np.atleast_1d(_answer(node.query, rows))
            return _chances(calibration, answer.tobytes(), answer.dtype)
        case Post():
            return np.ones(1)
        case Sequential():
            return functools.reduce(_outer, (_joint(part, plan, rows) for part in node.parts))
        case Repeat():
            return functools.reduce(_outer, [_joint(node.part, plan, rows)] * node.times)
        case Parallel():
            (parts,) = _splits(node, rows, rows)
            return functools.reduce(_outer, (_joint(part.node, plan, part.before) for part in parts))
        case Sample():
            rate, found = float(node.rate), np.zeros(1)
            whose = [row[2:] or k for k, row in enumerate(rows)]  # a row that names no unit is a unit of its own
            units = tuple(dict.fromkeys(whose))
            for kept in itertools.product((True, False), repeat=len(units)):
                own = {unit for unit, drawn in zip(units, kept, strict=True) if drawn}
                drawn = tuple(row for row, unit in zip(rows, whose, strict=True) if unit in own)
                chance = math.prod(rate if unit in own else 1 - rate for unit in units)
                found = found + chance * _joint(node.part, plan, drawn)
            return found
    raise AssertionError(node)


def _outer(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.outer(one, other).ravel()


@functools.lru_cache(maxsize=1 << 14)
def _chances(calibration: Calibration, answer: bytes, dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Return the probability of each output, given an answer. It is cached, since many samples have the same answer."""
    mechanism = calibration.mechanism  # for a unit of several rows, this differs from the mechanism of the step
    held = np.frombuffer(answer, dtype)
    listed = range(len(held)) if mechanism.selects else range(-FURTHEST, FURTHEST + 1)
    outputs = [np.array(k) if mechanism.selects else np.array([k]) for k in listed]
    return np.exp([mechanism.log_density(held, k, calibration) for k in outputs])


def _table(rows: Rows) -> Table:
    return Table.from_codes(SCHEMA, np.array([row[:2] for row in rows], dtype=np.int64).reshape(len(rows), 2).T)


@functools.lru_cache(maxsize=1 << 14)
def _answer(query: Query, rows: Rows) -> Any:
    """Return a query's exact answer."""
    engine = InMemory()
    return query.evaluate(engine, engine.load(_table(rows)))


@functools.lru_cache(maxsize=1 << 14)
def _together(one: Atoms, other: Atoms) -> Atoms:
    """Return the probabilities of pairs of outputs that are drawn independently of each other."""
    return _merge((a * c, b * d) for (a, b), (c, d) in itertools.product(one, other))


def _power(atoms: Atoms, times: int) -> Atoms:
    """Return the probabilities of lists of outputs that are drawn `times` times, by repeated squaring."""
    if times == 1:
        return atoms
    half = _power(atoms, times // 2)
    return _together(_together(half, half), atoms) if times % 2 else _together(half, half)


@functools.lru_cache(maxsize=1 << 14)
def _choice_probabilities(calibration: Calibration, one: tuple[int, ...], other: tuple[int, ...]) -> Atoms:
    """Return the probability on each table that each candidate is chosen, given the scores on both tables."""
    return _merge(_densities(calibration, [(np.array(one), np.array(other), k) for k in range(len(one))]))


@functools.lru_cache(maxsize=1 << 14)
def _noisy(calibration: Calibration, x: int, y: int) -> Atoms:
    """Return the probabilities of the noisy values of a number, which is x on one table and y on the other."""
    reach = range(min(x, y) - FURTHEST, max(x, y) + FURTHEST + 1)
    return _merge(_densities(calibration, [(np.array([x]), np.array([y]), np.array([k])) for k in reach]))


def _densities(calibration: Calibration, outputs: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[float, float]]:
    """Yield the probabilities of each output given both answers, except for outputs that are very rare on both."""
    density = calibration.mechanism.log_density
    for x, y, k in outputs:
        p, q = math.exp(density(x, k, calibration)), math.exp(density(y, k, calibration))
        if max(p, q) > RAREST:
            yield p, q


def _log_ratio(p: float, q: float) -> float:
    """Return the logarithm of p / q, infinite if one of the two is 0."""
    return math.log(p / q) if p and q else math.copysign(math.inf, p - q)


def _merge(atoms: Iterable[tuple[float, float]]) -> Atoms:
    """Add up the probabilities of outputs with equal ratios, since these tell an attacker the same."""
    sums: dict[float, tuple[float, float]] = {}
    for p, q in atoms:
        ratio = round(_log_ratio(p, q), 9)
        known = sums.get(ratio, (0.0, 0.0))
        sums[ratio] = known[0] + p, known[1] + q
    return tuple(sums.values())


def neighbours(relation: Relation) -> Iterator[tuple[Rows, Rows]]:
    """Yield all pairs of tables that differ by one row and share at most one row, each pair in both orders."""
    for rest in ((), *((kind,) for kind in KINDS)):
        if relation is Relation.ADD_OR_REMOVE_ONE:
            for kind in KINDS:
                yield (*rest, kind), rest
                yield rest, (*rest, kind)
        else:
            for one, other in itertools.permutations(KINDS, 2):
                yield (*rest, one), (*rest, other)


def unit_neighbours(
    relation: Relation, rows: int, *, resizes: bool = True, named: bool = False
) -> Iterator[tuple[Rows, Rows]]:
    """Yield pairs of tables that differ by one unit of up to `rows` rows and share at most one row, in both orders.

    Parameters
    ----------
    relation
        The neighbouring relation.
    rows
        The most rows of the unit.
    resizes
        Whether replacing a unit by another may change the number of rows.
    named
        Whether each row names its unit, which samples of whole units need.
    """
    groups: list[Rows] = [g for n in range(1, rows + 1) for g in itertools.combinations_with_replacement(SOME_KINDS, n)]
    if named:
        groups = [tuple((*row, "one's") for row in group) for group in groups]
    for rest in ((), ((*KINDS[1], "another's") if named else KINDS[1],)):
        if relation is Relation.ADD_OR_REMOVE_ONE:
            for group in groups:
                yield (*rest, *group), rest
                yield rest, (*rest, *group)
        else:
            for one, other in itertools.permutations([(), *groups] if resizes else groups, 2):
                if resizes or len(one) == len(other):
                    yield (*rest, *one), (*rest, *other)


def pairs_of(plan: Plan, *, few: bool = False) -> list[tuple[Rows, Rows]]:
    """Return neighbours under a plan's relation that differ by one of its units.

    With `few`, pairs in which both tables have several rows are left out. Only rows of `SOME_KINDS` are changed with
    `few`, or if a unit has several rows.
    """
    unit = plan.unit
    if unit.rows == 1 and not few:
        return list(neighbours(plan.relation))
    named = unit.groups_rows and plan.index.samples
    pairs = unit_neighbours(plan.relation, unit.rows, resizes=plan.unit_change.resizes, named=named)
    return [pair for pair in pairs if not few or min(map(len, pair)) <= 1]


def worst(oracle: Oracle, pairs: Iterable[tuple[Rows, Rows]] | None = None) -> float:
    """Return the largest measure over pairs of neighbours, by default over all that `pairs_of` returns."""
    root = oracle.plan.root
    return max(oracle.value((NodeOnRows(root, *pair),)) for pair in (pairs_of(oracle.plan) if pairs is None else pairs))


def largest_ratio(plan: Plan, pairs: Iterable[tuple[Rows, Rows]] | None = None) -> float:
    """Return the pure epsilon: the largest log-ratio of the two probabilities of an output, over the pairs."""
    return worst(Oracle(plan, _log_ratio, max), pairs)


def renyi(plan: Plan, order: float, pairs: Iterable[tuple[Rows, Rows]] | None = None) -> float:
    """Return the largest Renyi divergence of an order over the pairs."""

    def moment_of(p: float, q: float) -> float:
        if not (p and q):
            return math.inf if p else 0.0
        return math.exp(order * math.log(p) + (1 - order) * math.log(q))

    moment = worst(Oracle(plan, moment_of), pairs)
    return math.log(moment) / (order - 1)


def delta_at(plan: Plan, epsilon: float, pairs: Iterable[tuple[Rows, Rows]] | None = None) -> float:
    """Return the smallest delta for which (epsilon, delta) holds on all pairs."""
    factor = math.exp(epsilon) if epsilon < LARGEST_LOSS else math.inf
    return worst(Oracle(plan, lambda p, q: max(p - factor * q, 0.0) if q else p), pairs)
