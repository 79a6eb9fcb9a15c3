"""How outputs are chosen that lose most on two tables, and how the games of a search go on and end."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.queries import Count, Histogram, PiecewiseScores
from dpframework.verify.miners import loss_search, worst_transcript_search
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.loss_search import LossSearch
from dpframework.verify.miners.neighbour_pair_search import WorstPair
from dpframework.verify.miners.worst_transcript_search import (
    _beyond,
    _cross,
    _positions,
    composite,
    worst_transcript,
)
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Pair

ADD, _ = Relation
SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
OVER = Patience(-1)


@attrs.frozen
class Two(dpf.Miner):
    """A count and the towns."""

    name = "two"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        noise, towns = DiscreteLaplace(1), Histogram(schema["town"])
        steps = [dpf.step("rows", Count(), noise), dpf.step("towns", towns, noise)]
        return dpf.sequential(*steps, dpf.step("chosen", towns, Exponential(1)))

    def mine(self, table: Any) -> Any:
        return table.release("rows"), table.release("towns"), table.release("chosen")


def test_numbers_that_lie_beyond_an_answer() -> None:
    facts = Count().facts()
    calibration = DiscreteLaplace(1).calibrate(facts, ADD)
    assert calibration is not None
    assert [int(point) for point in _beyond(calibration, np.array(5), np.array(3))] == [5, 7, 21]
    assert [int(point) for point in _beyond(calibration, np.array(3), np.array(5))] == [3, 1, -13]
    real: Any = SimpleNamespace(facts=attrs.evolve(facts, integer=False), unit=Fraction(1, 4))
    assert [float(point) for point in _beyond(real, np.array(0.3), np.array(0.0))] == [0.25, 0.5, 2.75]


def test_positions_and_kinds_of_outputs_that_are_tried() -> None:
    rng = np.random.default_rng(0)
    assert [*_positions(np.zeros(12), np.ones(12), rng)] == list(range(12))
    one = np.arange(40.0) * 10
    other = one + np.arange(40.0)[::-1]
    found = [*_positions(one, other, rng)]
    assert found[:6] == [39, 38, 37, 36, 35, 34]  # whose scores fall most
    assert len(found) == 12
    assert set(found[6:]) <= set(range(40))
    assert composite(np.array([1, 2]))
    assert composite(np.array([1, 2], dtype=np.uint8))
    for output in (np.array([1]), np.array([1.0, 2]), [1, 2], 3):
        assert not composite(output)
    for answer, is_one in (
        (np.zeros(2), True),
        (np.int64(3), True),
        (3, True),
        (0.5, True),
        ("a", False),
        ([1], False),
    ):
        assert isinstance(answer, worst_transcript_search.NUMBERS) is is_one
    scores = [PiecewiseScores(np.array(breaks), np.zeros(len(breaks) - 1)) for breaks in ([0.0, 4], [0.0, 2, 4])]
    mechanism: Any = SimpleNamespace(selects=True)
    assert [*worst_transcript_search.outputs(mechanism, mechanism, *scores, rng)] == [1, 3]
    assert [*worst_transcript_search.outputs(mechanism, mechanism, np.zeros(3), np.zeros(3), rng)] == [0, 1, 2]


def test_outputs_are_drawn_around_both_answers_with_wider_noise() -> None:
    drawn: list[tuple[Any, float]] = []

    def release(answer: Any, calibration: Any, _: Any) -> Any:
        drawn.append((answer, float(calibration.scale)))
        return answer

    calibration = DiscreteLaplace(1).calibrate(Count().facts(), ADD)
    mechanism: Any = SimpleNamespace(selects=False, release=release, assumptions=())
    rng = np.random.default_rng(0)
    assert calibration is not None
    scale = float(calibration.scale)
    found = [*worst_transcript_search.outputs(mechanism, calibration, np.array(5), np.array(3), rng)]
    assert [int(one) for one in found] == [5, 7, 21, 3, 5, 3, 5]
    assert [(int(answer), wide) for answer, wide in drawn] == [
        (answer, scale * times) for answer, times in ((5, 1), (3, 1), (5, 3), (3, 10), (5, 100))
    ]  # the first to see whether numbers are put out
    drawn.clear()
    assert [*worst_transcript_search.outputs(mechanism, calibration, "one", "other", rng)] == ["other", "one"] * 8
    assert [wide / scale for _, wide in drawn] == [1, 3, 10, 100] * 4


def test_parts_of_outputs_are_crossed_into_the_worst_one() -> None:
    weights = np.array([8, 4, 2, 1])

    def lost(output: Any) -> float:
        return float(output @ weights)

    tried = [(lost(np.array(one)), np.array(one)) for one in ([0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [0] * 3 + [1])]
    tried.append((0.0, np.array([9, 9])))  # of another length: left out
    found = [one for seed in range(20) for one in _cross(tried, lost, np.random.default_rng(seed))]
    assert 20 * 16 < len(found) < 20 * 32
    assert max(loss for loss, _ in found) == 15
    assert all(loss == lost(output) for loss, output in found)
    assert [output.tolist() for _, output in tried][1] == [1, 0, 1, 0]  # what was tried stays
    rows = [(float(one.sum()), one) for one in (np.eye(3, dtype=int), np.ones((3, 3), dtype=int) * 2)]
    whole = _cross(rows, lambda output: float(-output.sum()), np.random.default_rng(0))
    assert all(output.shape == (3, 3) for _, output in whole)
    changed = {int((output != 2).sum()) for _, output in whole}
    assert changed == {0, 1, 3}  # a whole row of it, by turns


@pytest.mark.parametrize(
    ("answers", "outputs", "is_crossed"),
    [
        (("one", "other"), [np.array([1, 0]), np.array([0, 1])], True),
        (("one", "other"), ["a", "b"], False),
        ((np.zeros(2), np.ones(2)), [np.array([1, 0]), np.array([0, 1])], False),
    ],
)
def test_outputs_of_whole_numbers_are_crossed_unless_numbers_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[Any, Any], outputs: list[Any], is_crossed: bool
) -> None:
    monkeypatch.setattr(worst_transcript_search, "core_loss", lambda charge, plan: 10.0)
    monkeypatch.setattr(worst_transcript_search, "outputs", lambda *_: iter(outputs))

    def density(answer: Any, output: Any, _: Any) -> float:
        return float(np.sum(output)) if is_crossed and answer is answers[0] else 0.0

    charge: Any = SimpleNamespace(
        path="audited/x", calibration=SimpleNamespace(mechanism=SimpleNamespace(log_density=density))
    )
    gate: Any = SimpleNamespace(given={}, plan=None, tried=[0], rng=np.random.default_rng(0))
    found = worst_transcript_search._WorstGate._worst(gate, charge, *answers)
    assert gate.tried[0] == len(outputs) + worst_transcript_search.CROSSED * is_crossed
    assert not is_crossed or found.tolist() == [1, 1]


def test_outputs_that_lose_nearly_most_within_the_core_are_put_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worst_transcript_search, "core_loss", lambda charge, plan: 1.0)

    def put_out(**losses: float) -> set[str]:
        monkeypatch.setattr(worst_transcript_search, "outputs", lambda *_: iter(losses))
        mechanism = SimpleNamespace(log_density=lambda answer, output, _: losses[output] if answer == "one" else 0.0)
        charge: Any = SimpleNamespace(path="audited/x", calibration=SimpleNamespace(mechanism=mechanism))
        found = set()
        for seed in range(30):
            gate: Any = SimpleNamespace(given={}, plan=None, tried=[0], rng=np.random.default_rng(seed))
            found.add(worst_transcript_search._WorstGate._worst(gate, charge, "one", "other"))
            assert gate.tried == [len(losses)]
        return found

    assert put_out(a=0.5, b=1 + 0.5e-9, c=1.5, d=1 + 1.5e-9) == {"b"}  # the others are beside the core
    assert put_out(a=1.0, b=0.985, c=0.975) == {"a", "b"}
    assert put_out(a=-1.0, b=-1.01, c=-float("inf")) == {"a"}
    assert put_out(a=0.0, b=0.0, c=-0.1) == {"a", "b"}


def test_outputs_that_are_given_are_put_out() -> None:
    subject = Subject(Two(), SCHEMA, ADD)
    one, other = bytes([0] * 9 + [2] * 4), bytes([0] * 9 + [2] * 5)
    given = {"rows": 77, "chosen": lambda answer, calibration: int(np.argmin(answer))}
    transcript, tried = worst_transcript(subject, one, other, np.random.default_rng(0), given)
    rows, towns, chosen = transcript.releases
    assert (rows.output, chosen.output) == (77, 2)
    assert towns.output[1] <= 4  # on the far side of the other answer
    assert tried == 7
    assert transcript.outcome.error is None
    assert transcript.outcome.result[2] == "C"


class Play:
    """A search on small tables, of which each part can be replaced."""

    def __init__(self, pairs: Any = (), patience: Any = None) -> None:
        self.told: list[str] = []
        subject = Subject(Two(), SCHEMA, ADD, patience=patience or Patience())
        self.search: Any = LossSearch(subject, Fraction(2), 2.1, 9, np.random.default_rng(0), self.told.append)
        self.games: list[tuple[Pair, int]] = []
        self.search._weigh_draws = lambda *_: (WorstPair(Pair(b"drawn", b"", b""), 0.5), "drawn")
        self.search._search.random_pair = lambda: Pair(b"random", b"", b"")
        losses = iter(pairs)

        def game(start: Pair, most: int) -> Any:
            self.games.append((start, most))
            self.search._chosen += 10
            loss = next(losses)
            return WorstPair(Pair(b"game %d" % len(self.games), b"", b""), loss), f"transcript {len(self.games)}"

        self.search._game = game

    def worst(self, pairs: int, reached: float = 0.0) -> tuple[float, str]:
        found, transcript = self.search.worst([], [], pairs, reached)
        return found.loss, transcript

    @property
    def starts(self) -> list[bytes]:
        return [start.shared for start, _ in self.games]


def test_games_are_played_until_the_claim_is_reached() -> None:
    play = Play([0.25, 1.0, 0.75, 1.5, 1.25, 1.0])
    assert play.worst(60) == (1.5, "transcript 4")
    assert play.starts == [b"random", b"drawn", b"random", b"game 2", b"random", b"game 4"]
    assert play.search.tried == 60
    assert play.told[:3] == [
        "25% of the claim reached on 0 of 60 pairs of tables",
        "25% of the claim reached on 10 of 60 pairs of tables",
        "50% of the claim reached on 20 of 60 pairs of tables",
    ]
    assert [transcript for _, transcript in play.search.ends] == [f"transcript {k}" for k in range(1, 7)]
    assert Play([0.25] * 20).worst(200)[0] == 0.5
    many = Play([0.25] * 20)
    many.worst(200)
    assert len(many.search.ends) == 12
    for losses, games in (([1.94] * 9, 4), ([1.93] * 9, 9), ([0.1] * 4 + [1.94] * 5, 5), ([2.1] * 9, 4)):
        play = Play(losses)
        play.worst(90)
        assert len(play.games) == games, losses
    play = Play([0.1] * 9)
    play.worst(90, reached=1.96)
    assert len(play.games) == 4
    assert play.told[0].startswith("98%")
    play = Play([0.1, 2.2, 0.1])
    assert play.worst(90) == (2.2, "transcript 2")
    assert len(play.games) == 2  # the claim is refuted
    assert Play(patience=OVER).worst(90) == (0.5, "drawn")


def test_a_game_goes_on_as_long_as_the_loss_grows() -> None:
    def game(chosen: list[float], climbed: list[float], **given: Any) -> tuple[float, str, int]:
        play = Play(**given)
        own, moves = iter(chosen), iter(climbed)
        asked: list[Pair] = []

        def choose(pair: Pair) -> Any:
            asked.append(pair)
            return WorstPair(pair, next(own)), SimpleNamespace(events=(), name=f"chosen {len(asked)}")

        play.search._choose_outputs_for = choose
        play.search._search.climb = lambda loss, pair, number, *, enough: (
            WorstPair(Pair(pair.shared + b"+", b"", b""), next(moves)) if (number, enough) == (40, 1.94) else None
        )
        found, transcript = LossSearch._game(play.search, Pair(b"start", b"", b""), 100)
        return found.loss, transcript.name, len(asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_search, "Weigher", lambda *_: SimpleNamespace(loss=None))
        assert game([0.5, 0.25, 0.25], [0.5, 0.5]) == (0.5, "chosen 1", 3)  # twice without success
        assert game([0.5, 1.0, 0.75, 0.75], [0.75, 1.0, 1.0]) == (1.0, "chosen 2", 4)
        assert game([0.5, 0.25, 0.75, 0.7, 0.7], [0.5, 0.5, 0.75, 0.75]) == (0.75, "chosen 3", 5)
        assert game([0.5, 0.25, 0.25, 0.25], [0.75, 0.75, 0.75]) == (0.75, "chosen 1", 4)
        assert game([1.94], []) == (1.94, "chosen 1", 1)
        assert game([0.5, 1.95], [0.5]) == (1.95, "chosen 2", 2)
        assert game([0.5], [], patience=OVER) == (0.5, "chosen 1", 1)
        assert game([1.0, 1.0 + 1.5e-6, 1.0, 1.0], [1.0] * 3) == (1.0 + 1.5e-6, "chosen 2", 4)
        assert game([1.0, 1.0 + 0.5e-6, 1.0], [1.0] * 2) == (1.0 + 0.5e-6, "chosen 2", 3)


def test_outputs_are_chosen_on_either_table() -> None:
    subject = Subject(Two(), SCHEMA, ADD)
    one: Any = LossSearch(subject, Fraction(3), 3.1, 9, np.random.default_rng(0), lambda what: None)
    found, transcript = one._choose_outputs_for(Pair(b"\0" * 20, b"", b"\2"))
    assert found.pair == Pair(b"\0" * 20, b"", b"\2")
    assert 2 - 1e-9 <= found.loss <= 3 + 1e-9  # both counts beyond the answers
    assert one._chosen == 2 * ((7 + 7 + 3) // 3)
    assert len(transcript.releases) == 3
    assert one.tried == one._chosen


def test_drawn_transcripts_are_weighed_on_shares_of_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.0, "s": 0.0}
    calls: list[Any] = []

    def weigh(what: str) -> Any:
        def asked(loss: str, *given: Any, **named: Any) -> WorstPair:
            number = [one for one in given if not isinstance(one, list)]
            calls.append((what, loss, *number, *named.values()))
            return WorstPair(Pair(loss.encode(), b"", b""), losses[loss])

        return asked

    monkeypatch.setattr(loss_search, "Weigher", lambda _, transcript: SimpleNamespace(loss=transcript.name))
    monkeypatch.setattr(loss_search, "pairs_of_many", lambda universe, changes, most: ["many", most])
    subject = Subject(Two(), SCHEMA, ADD)

    def drawn(steered: list[Any], pairs: int) -> Any:
        calls.clear()
        one: Any = LossSearch(subject, Fraction(2), 2.1, 9, np.random.default_rng(0), lambda what: None)
        for what in ("at_random", "exhaustive", "worst", "climb"):
            setattr(one._search, what, weigh(what))
        transcripts = [
            SimpleNamespace(name=name, events=[0] * size) for name, size in zip("abcd", (1, 2, 5, 3), strict=True)
        ]
        found, transcript = one._weigh_draws(transcripts, steered, pairs)
        return found.loss, transcript.name, one.exhaustive

    assert drawn([SimpleNamespace(name="s")], 960) == (0.3, "b", 1)
    assert calls == [
        *(("at_random", name, 15) for name in "abcd"),
        *(("exhaustive", name, 20) for name in "abc"),
        ("worst", "c"),
        ("at_random", "s", 16),
        ("climb", "b", Pair(b"b", b"", b""), 40, 1.94),
    ]
    assert drawn([], 4_800) == (0.3, "b", 2)
    assert calls[0] == ("at_random", "a", 75)
    assert drawn([], 64)[2] == -1
    assert calls[0] == ("at_random", "a", 2)
    losses |= {"s": 0.9}
    assert drawn([SimpleNamespace(name="s")], 960)[:2] == (0.9, "s")
    losses |= dict.fromkeys(losses, 0.0)
    assert drawn([], 960)[:2] == (0.0, "a")
    assert "climb" not in {call[0] for call in calls}
