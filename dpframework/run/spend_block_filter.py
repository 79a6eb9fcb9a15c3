"""A block during a run: the miner chooses its releases and their parameters, within caps on their total cost.

A block has one or more *kinds* of release. A kind is a planned step whose privacy parameter is open until the run.
`BlockScope` is the privacy filter: it refuses a release that would take the sum of the charges above a cap.
`SpendBlock` is what the miner sees of the block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NoReturn, final

from dpframework.facts.errors import InputError, ReleaseRefused, nearest
from dpframework.facts.privacy_losses import Relation, decimal_text, positive
from dpframework.mechanisms.base import Calibration
from dpframework.mechanisms.release_losses import Losses
from dpframework.plan.nodes import Step
from dpframework.plan.spend_block_node import AMOUNTS, Amounts, amount_of, most_of
from dpframework.plan.spend_block_requests import request_step, request_text
from dpframework.run.gate import Gate
from dpframework.run.node_states import SpendState
from dpframework.run.run_scopes_and_charges import Charge, ChargedRelease, Scope
from dpframework.tables.engine_base import Rows


class BlockScope:
    """The privacy filter of one block. The block's releases are charged to it."""

    def __init__(self, scope: Scope, state: SpendState) -> None:
        self._run, self._state = scope.run, state
        self._path = f"{scope.path}/{state.node.name}".lstrip("/")
        plan = self._run.plan
        self._in_parts = plan.in_parts(state.node)
        self._limits = state.node.limits(plan.relation, in_parts=self._in_parts)
        self._kinds = {step.name: step for step in state.node.parts}
        self._bounds = dict(zip(self._kinds, state.node.bounds, strict=True))
        self._requests: dict[tuple[str, tuple[tuple[str, Fraction], ...]], tuple[Step, Calibration]] = {}

    @property
    def caps(self) -> Amounts:
        """The largest amounts that the block's releases may cost together."""
        return self._state.node.caps

    def charge(self, kind: str, amounts: Mapping[str, Any]) -> Charge:
        """Charge a release of a kind, and return the charge. A refusal changes nothing.

        Raises
        ------
        ReleaseRefused
            As in `request`. Also if the block is closed, if the planned number of releases of this kind was made, or if
            the release would take a sum above its cap.
        """
        with self._run.lock:
            self._run.require_process()
            step, calibration = self.request(kind, amounts)
            path = f"{self._path}/{kind}{request_text(step)}"
            why = self._why_not(kind, calibration.losses)
            if why is not None:
                raise ReleaseRefused(f"step '{path}' {why}")
            self._add(kind, calibration.losses)
            charge = Charge(path, step, calibration, self._kinds[kind])
            self._run.charges.append(charge)
            return charge

    def fits(self, kind: str, amounts: Mapping[str, Any]) -> bool:
        """Tell whether `charge` would accept a release now. The answer is public, as it follows from earlier charges.

        Raises
        ------
        ReleaseRefused
            As in `request`.
        """
        with self._run.lock:
            _, calibration = self.request(kind, amounts)
            return self._why_not(kind, calibration.losses) is None

    def request(self, kind: str, amounts: Mapping[str, Any]) -> tuple[Step, Calibration]:
        """Return the step of a kind with the given parameters, and its noise, whatever was charged before.

        Raises
        ------
        ReleaseRefused
            If there is no such kind, if a parameter is missing, unknown or out of its bounds, or if the release has no
            valid claim or needs noise that does not fit 64-bit integers.
        """
        step = self._kinds.get(kind)
        if step is None:
            raise ReleaseRefused(f"block '{self._path}' has no kind '{kind}'; {nearest(kind, self._kinds)}")
        where = f"step '{self._path}/{step.name}'"
        needed = [name for name in AMOUNTS if hasattr(step.mechanism, name)]
        if set(amounts) != set(needed):
            given = ", ".join(amounts) or "nothing"
            raise ReleaseRefused(f"{where} is given {given}; it needs {' and '.join(needed)}")
        chosen = {name: positive(amounts[name], name) for name in needed}
        amount = amount_of(type(step.mechanism))
        value, least, most = chosen[amount], self._bounds[step.name].least, most_of(step)
        if value > most or (least is not None and value < least):
            within = f"at most {decimal_text(most)}" + ("" if least is None else f" and at least {decimal_text(least)}")
            raise ReleaseRefused(f"{where}: {amount} is {decimal_text(value)}; {within} is planned")
        key = kind, tuple(chosen.items())
        if key not in self._requests:
            asked = request_step(step, chosen)
            try:
                calibration = self._run.plan.calibrate(asked, in_parts=self._in_parts)
            except InputError as error:  # raised if the noise is too large for 64-bit integers
                raise ReleaseRefused(f"step '{self._path}/{kind}': {error}") from None
            if calibration is None:
                raise ReleaseRefused(f"step '{self._path}/{kind}' has no valid claim under {self._run.plan.relation}")
            self._requests[key] = asked, calibration
        return self._requests[key]

    def _why_not(self, kind: str, losses: Losses) -> str | None:
        """Return the reason why a release with these losses cannot be made now, or None if it can."""
        if self._state.closed:
            return f"belongs to block '{self._path}', which was closed"
        times = self._bounds[kind].times
        if times is not None and self._state.times[kind] >= times:
            return f"was released {times} times, which is the most that the plan holds"
        for (name, relation), cost in _amounts(losses, self._limits):
            cap = getattr(self._limits, name).under(relation)
            if cost is None or self._state.sums.get((name, relation), Fraction(0)) + cost > cap:
                return f"would take block '{self._path}' above its caps ({self.caps}); {self.left} is left"
        return None

    def _add(self, kind: str, losses: Losses) -> None:
        for key, cost in _amounts(losses, self._limits):
            assert cost is not None  # `_why_not` was called before
            self._state.sums[key] = self._state.sums.get(key, Fraction(0)) + cost
        self._state.times[kind] += 1

    @property
    def spent(self) -> Amounts:
        """The sum of the charges in each amount that has a cap.

        Under replace-one, if the block is released from parts of the table, a row may move between parts. Such a move
        costs twice the add-or-remove-one sum. The larger of this and the replace-one sum is returned.
        """

        def most(name: str) -> Fraction:
            limit = getattr(self._limits, name)
            full = limit.under(self._run.plan.relation)
            sums = (
                (self._state.sums.get((name, relation), Fraction(0)), limit.under(relation)) for relation in Relation
            )
            return max((full * used / cap for used, cap in sums if cap), default=Fraction(0))

        with self._run.lock:
            caps = self.caps
            return Amounts(
                None if caps.epsilon is None else most("pure"),
                None if caps.rho is None else most("zcdp"),
                most("delta") if caps.delta else Fraction(0),
            )

    @property
    def left(self) -> Amounts:
        """The caps minus the charges."""
        caps, spent = self.caps, self.spent
        return Amounts(
            None if caps.epsilon is None or spent.epsilon is None else caps.epsilon - spent.epsilon,
            None if caps.rho is None or spent.rho is None else caps.rho - spent.rho,
            caps.delta - spent.delta,
        )

    def close(self) -> None:
        """Allow no more releases."""
        with self._run.lock:
            self._state.closed = True


def _amounts(losses: Losses, limits: Losses) -> Iterator[tuple[tuple[str, Relation], Fraction | None]]:
    """Yield what a release costs in each amount that has a limit: epsilon, rho or delta, under each relation.

    The cost is None if the release has no claim in that amount.
    """
    for name in ("pure", "zcdp", "delta"):
        for relation in Relation:
            if getattr(limits, name).under(relation) is not None:
                yield (name, relation), getattr(losses, name).under(relation)


@final
class SpendBlock:
    """A block of the plan, opened by `PrivateTable.spend`. The miner chooses its releases during the run.

    The miner chooses the kinds, the parameters, the inputs and the number of releases, from the schema and from earlier
    releases. If a release would take a sum above its cap, the run refuses the release before it draws anything.
    """

    __slots__ = ("_gate", "_rows", "_scope")

    def __init__(self, rows: Rows, scope: BlockScope, gate: Gate) -> None:
        self._rows, self._scope, self._gate = rows, scope, gate

    def release(self, kind: str, **given: Any) -> Any:
        """Make a release, and return its numbers or the selected candidate.

        Parameters
        ----------
        kind
            The name of a kind of the block.
        given
            The mechanism's `epsilon` or `rho` (and `delta`, if it has one), and the query's public inputs.

        Raises
        ------
        ReleaseRefused
            If the block is closed or has no such kind, if a parameter is missing, unknown or out of its bounds, if the
            planned number of releases of this kind was made, or if a sum would go above its cap. Nothing is spent then.
            The error is also raised if the run's ledger refuses the release. In that case the release counts as made.
        """
        (released,) = self.release_many([(kind, given)])
        return released

    def release_many(self, asked: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """Make several releases in one call, and return them in order (see `PrivateTable.release_many`).

        Raises
        ------
        ReleaseRefused
            If one release is refused. If the block refuses it, the releases before it were made. If the ledger refuses
            it, the releases before it are charged. Only a run with a journal has also made them.
        """
        charged: list[ChargedRelease] = []
        try:
            for kind, given in asked:
                amounts = {name: value for name, value in given.items() if name in AMOUNTS}
                inputs = {name: value for name, value in given.items() if name not in AMOUNTS}
                charged.append(ChargedRelease(self._scope.charge(kind, amounts), self._rows, inputs))
        except ReleaseRefused:
            # The releases before the refused one are already charged, so they are made.
            if charged:
                self._gate.release_many(charged)
            raise
        return self._gate.release_many(charged) if charged else []

    def fits(self, kind: str, **amounts: Any) -> bool:
        """Tell whether `release` would accept a kind with these parameters now. The answer is public.

        Raises
        ------
        ReleaseRefused
            If there is no such kind, if a parameter is missing, unknown or out of its bounds, or if the release has no
            valid claim.
        """
        return self._scope.fits(kind, amounts)

    def calibration(self, kind: str, **amounts: Any) -> Calibration:
        """Return the noise and losses that a release of a kind would have, which are public.

        Raises
        ------
        ReleaseRefused
            As in `fits`.
        """
        return self._scope.request(kind, amounts)[1]

    @property
    def caps(self) -> Amounts:
        """The largest amounts that all releases of the block may cost together."""
        return self._scope.caps

    @property
    def spent(self) -> Amounts:
        """The sums of the charges so far. A sum of rho is not converted to epsilon; only the cap is."""
        return self._scope.spent

    @property
    def left(self) -> Amounts:
        """The caps minus the charges so far."""
        return self._scope.left

    def close(self) -> None:
        """Allow no more releases. What is left of the caps stays unspent."""
        self._scope.close()

    def __repr__(self) -> str:
        """Show the caps and what is left of them."""
        return f"SpendBlock(caps='{self.caps}', left='{self.left}')"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, since rows would leave the private side.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError("a block cannot be pickled or copied; keep the releases, not the block")
