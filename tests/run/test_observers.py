"""Observers see every release and change none."""

import functools
import threading
from types import MappingProxyType

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.run.gate import Gate
from dpframework.run.read_only_release_copies import read_only

SCHEMA = dpf.Schema([dpf.Categorical("order", ["pizza", "salad", "pie"]), dpf.Boolean("ill")])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 0, 1, 2, 2], [0, 1, 0, 1, 1]])


@attrs.frozen
class Point:
    """A value with an array."""

    name: str
    place: np.ndarray


class Weighted(dpf.Query):
    """Counts with weights; its candidates and inputs hold what can be changed."""

    name = "weighted"
    sensitivities = (dpf.Sensitivity("linf", 1, source="a test"), dpf.Sensitivity("l1", 1, source="a test"))
    answer_length = 3

    def __init__(self):
        self.weights = np.ones(3, dtype=np.int64)
        self.points = [Point(name, np.arange(2.0)) for name in "abc"]

    def candidates(self, **_):
        return self.points

    def count(self, block, factor):
        return np.bincount(block.codes("order"), minlength=3) * self.weights * factor[0]


def ways_to_write(told):
    """Yield every attempt to write on what an observer is told."""
    if isinstance(told, np.ndarray):
        for reached in (told, told.base, told.view(), told[:1], told.T):
            yield lambda reached=reached: reached.__setitem__(..., 0)
        yield lambda: told.setflags(write=True)
    elif isinstance(told, list):
        yield lambda: told.__setitem__(slice(None), [0])
    elif isinstance(told, dict):
        for part in list(told.values()):
            yield from ways_to_write(part)
        yield told.clear
    elif attrs.has(type(told)) or isinstance(told, Weighted):
        for name, own in {**vars(told)}.items() if hasattr(told, "__dict__") else fields_of(told):
            yield from ways_to_write(own)
            yield lambda name=name: setattr(told, name, None)


def fields_of(value):
    return [(field.name, getattr(value, field.name)) for field in attrs.fields(type(value))]


class Vandal(dpf.Observer):
    """Writes on all that it is told, and on what it was told before."""

    def __init__(self):
        self.told, self.refused, self.written = [], 0, 0

    def charged(self, charge):
        self.vandalise(charge)

    def released(self, release):
        self.vandalise(release)

    def vandalise(self, news):
        self.told.append(news)
        for news in self.told:
            for write in ways_to_write(news):
                try:
                    write()
                    self.written += 1
                except (ValueError, TypeError, AttributeError):
                    self.refused += 1


class Diary(dpf.Observer):
    def __init__(self):
        self.releases = []

    def released(self, release):
        self.releases.append(release)


def test_an_observer_changes_nothing_for_the_miner_or_for_other_observers(opened):
    noise = dpf.mechanisms.DiscreteLaplace(1)
    node = dpf.sequential(
        dpf.step("counts", Weighted(), noise),
        dpf.step("best", Weighted(), dpf.mechanisms.PermuteAndFlip(10**6)),
        dpf.step("more", Weighted(), noise),
    )
    found = []
    for observers in ((), (Vandal(), Diary(), Vandal())):
        table, run = opened(node, TABLE, observers=observers)
        factor = [1]
        found.append([table.release(name, factor=factor) for name in ("counts", "best", "more")])
        assert factor == [1]
        assert [charge.path for charge in run.charges] == ["counts", "best", "more"]
    alone, watched = found
    assert np.array_equal(alone[0], watched[0])
    assert np.array_equal(alone[2], watched[2])
    assert (watched[1].name, watched[1].place.tolist()) == (alone[1].name, [0, 1])
    vandal, diary, _ = observers
    assert vandal.refused > 10
    assert vandal.written > 10
    assert np.array_equal(diary.releases[0].output, alone[0])
    assert diary.releases[1].value.place.tolist() == [0, 1]
    for release in diary.releases:
        assert release.charge.step.query.weights.tolist() == [1, 1, 1]
        assert [point.name for point in release.charge.step.query.points] == ["a", "b", "c"]
    watched[0][...] = 7  # the miner's own
    assert np.array_equal(diary.releases[0].output, alone[0])


def test_what_was_charged_before_a_refusal_is_made_and_told(opened):
    """Else a step would be paid for and never released, and whoever observes the run would not hear of it."""
    counts, noise, diary = dpf.queries.Histogram(SCHEMA["order"]), dpf.mechanisms.DiscreteLaplace, Diary()
    node = dpf.sequential(
        dpf.step("once", counts, noise(1)), dpf.spend("block", dpf.kind("measure", counts, noise), epsilon=1)
    )
    table, run = opened(node, TABLE, observers=(diary,))
    with pytest.raises(dpf.ReleaseRefused, match="was made before"):
        dpf.PrivateTable.release_many([(table, "once", {})] * 2)
    with pytest.raises(dpf.ReleaseRefused, match="above its caps"):
        table.spend("block").release_many([("measure", {"epsilon": "0.6"})] * 2)
    assert [release.charge.path for release in diary.releases] == [charge.path for charge in run.charges]
    assert len(run.charges) == 2


def test_observers_of_any_iterable_are_told_of_each_release():
    """Else those of a generator would be told of the first one alone."""
    gate = Gate(dpf.InMemory(), SeededRandomness(0), iter([diary := Diary()]))
    assert gate.observers == (diary,)


def test_a_read_only_value_is_equal_and_shares_nothing_that_can_be_changed():
    array = np.arange(6).reshape(2, 3)
    for value in (
        array.T[::2],
        np.array([], dtype=np.float64),
        {"a": [array, {1, 2}], "b": (array, 1)},
        MappingProxyType({"a": array}),
        np.array([[1], "x"], dtype=object),
        bytearray(b"x"),
        Point("a", array),
    ):
        fixed = read_only(value)
        assert fixed is not value
        assert repr(fixed) == repr(value)
    fixed = read_only(array)
    assert type(fixed.base) is bytes
    assert read_only(fixed) is fixed  # which a further observer may have
    assert read_only({"a": [array]})["a"][0].base is not array
    for value in (1, "x", (1, ("y", None)), frozenset([1]), SCHEMA["order"], dpf.queries.Count(), 0.5, np.float64(1)):
        assert read_only(value) is value


@attrs.frozen
class Arrays:
    """A value with an array in every field, one of them within a list."""

    first: np.ndarray
    second: list
    third: np.ndarray


def test_no_field_of_a_read_only_value_is_the_one_that_the_run_holds():
    arrays = [np.arange(3.0) + k for k in range(3)]
    given = Arrays(arrays[0], [arrays[1]], arrays[2])
    fixed = read_only(given)
    for held, own in zip(arrays, (fixed.first, *fixed.second, fixed.third), strict=True):
        assert own.tolist() == held.tolist()
        assert not own.flags.writeable
        assert not np.shares_memory(own, held)
    fixed.second.clear()
    assert given.second[0] is arrays[1]


def test_an_observer_that_raises_is_named_and_stops_the_run():
    class Fails(dpf.Observer):
        def __init__(self, event, error):
            setattr(self, event, self.fail)
            self.error = error

        def fail(self, _):
            if self.error is not None:  # once
                error, self.error = self.error, None
                raise error

    class Deaf(dpf.Miner):
        """A miner that ignores what fails."""

        name = "deaf"

        def plan(self, schema):
            return dpf.sequential(*(dpf.step(n, dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)) for n in "ab"))

        def mine(self, table):
            for name in "ab":
                try:
                    got.append(table.release(name))
                except Exception:
                    continue

    got = []
    for event in ("charged", "released"):
        for error, says in (
            (OSError("x"), "OSError;"),
            (dpf.InputError("the disk is full"), "InputError: the disk is"),
        ):
            for seed in (None, 1):
                study = dpf.Study(SCHEMA, epsilon=2)
                study.add("m", Deaf())
                with pytest.raises(dpf.RunStopped, match=rf"^step 'm/a': observer 'Fails' of .* {says}") as told:
                    study.run(TABLE, seed=seed, observers=[Fails(event, error)])
                assert told.value.results.charges[0].path == "m/a"
                assert got == []
                assert told.value.__cause__ is (None if seed is None else error)


def test_an_observer_that_writes_on_a_release_is_named_and_changes_none():
    class Zeroes(dpf.Observer):
        def released(self, release):
            told.append(release)
            release.output[...] = 0

    told = []
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", dpf.step("n", dpf.queries.Histogram(SCHEMA["order"]), dpf.mechanisms.DiscreteLaplace(1)))
    unseen = study.run(TABLE, seed=1)["n"]
    with pytest.raises(dpf.RunStopped, match=r"^step 'n/n': observer 'Zeroes' of .* failed with ValueError;"):
        study.run(TABLE, seed=1, observers=[Zeroes()])
    assert told[0].output.tolist() == unseen.tolist() != [0, 0, 0]


def test_what_cannot_be_copied_is_not_handed_out(opened):
    class Locked(Weighted):
        def candidates(self, **_):
            return [threading.Lock()] * 3

    node = dpf.step("best", Locked(), dpf.mechanisms.PermuteAndFlip(1))
    table, _ = opened(node, TABLE, observers=(Diary(),))
    with pytest.raises(dpf.RunStopped, match=r"^step 'best': a copy for observers failed with TypeError"):
        table.release("best", factor=[1])
    table, _ = opened(node, TABLE, observers=(dpf.Observer(),))  # nobody listens
    table.release("best", factor=[1])


class Misspelt(dpf.Observer):
    def on_charge(self, charge):
        raise AssertionError


class Async(dpf.Observer):
    async def charged(self, charge):
        raise AssertionError


class AsyncYields(dpf.Observer):
    async def released(self, release):
        yield release


class Yields(dpf.Observer):
    def charged(self, charge):
        yield charge


class TwoArguments(dpf.Observer):
    def charged(self, path, loss):
        raise AssertionError


class Record(dpf.Observer):
    charged = "the path"


class Duck:
    def charged(self, charge):
        raise AssertionError


@pytest.mark.parametrize(
    ("observer", "says"),
    [
        (Misspelt(), "observer 'Misspelt' overrides neither 'charged' nor 'released', so a run would tell it nothing"),
        (Async(), "'charged' of observer 'Async' is async, so a run would not wait for it"),
        (AsyncYields(), "'released' of observer 'AsyncYields' is async, so a run would not wait for it"),
        (Yields(), "'charged' of observer 'Yields' has a yield, so a call of it does nothing"),
        (TwoArguments(), "'charged' of observer 'TwoArguments' must take one argument, the charge"),
        (Record(), "'charged' of observer 'Record' is str, not a method"),
        (Duck(), "'Duck' is not a subclass of Observer"),
        (Diary, "the class 'Diary' is no observer; give an object of it"),
    ],
)
def test_an_observer_that_could_record_nothing_is_refused_before_a_charge(observer, says):
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)))
    with pytest.raises(dpf.InputError, match=f"^{says}") as refused:
        study.run(TABLE, seed=1, observers=[observer])
    assert refused.value.results is None  # no run has begun


def test_an_observer_may_be_of_any_callable():
    """A partial method, a static method, or a method that is given to one object only."""
    told = []

    class Static(dpf.Observer):
        @staticmethod
        def charged(charge):
            told.append(charge.path)
            return told

    class Partial(dpf.Observer):
        def note(self, event, charge):
            told.append(f"{event} {charge.path}")

        charged = functools.partialmethod(note, "charged")

    own = dpf.Observer()
    own.charged = lambda charge: told.append(f"own {charge.path}")
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)))
    study.run(TABLE, seed=1, observers=[Static(), Partial(), own, dpf.Observer()])
    assert told == ["n/n", "charged n/n", "own n/n"]


@pytest.mark.parametrize("kind", [Async, Yields])
def test_a_wrapper_does_not_hide_that_an_observer_records_later(kind):
    class Wrapped(dpf.Observer):
        def __init__(self):
            self.inner = kind()

        def charged(self, charge):
            return self.inner.charged(charge)

    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("n", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)))
    with pytest.raises(dpf.RunStopped, match=r"observer 'Wrapped' of .* failed with InputError: it returned before it"):
        study.run(TABLE, seed=1, observers=[Wrapped()])
