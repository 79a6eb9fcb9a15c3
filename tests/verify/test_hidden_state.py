"""What each kind of object holds, how a place is named, and what is put back: kind by kind."""

from __future__ import annotations

import array
import collections
import functools
import os
import random
import sys
import types
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.queries import Count
from dpframework.verify.miners import hidden_state
from dpframework.verify.miners.hidden_state import (
    ENVIRONMENT,
    HiddenState,
    _alike,
    _is_data,
    _modules_behind,
    _modules_of,
    _place,
    _restore,
    _role,
    _slots,
    is_cache,
)
from dpframework.verify.plugin_code_constants import is_foreign_module

GLOBAL: list[int] = []


class Slot:
    __slots__ = ("a", "b")


class Sub(Slot):
    def __init__(self) -> None:
        self.a, self.c = 1, 2


def numbers(first: int = 3, *, second: int = 4) -> int:
    return first + second


def enclosing() -> Any:
    inner = [7]

    def function() -> list[int]:
        return inner

    return function


@functools.cache
def cached(number: int) -> list[int]:
    return [number]


def state(*things: Any) -> HiddenState:
    return HiddenState(things or [SimpleNamespace(name="thing", held=Slot())])


CONTAINERS: list[tuple[Any, Any]] = [
    ([1, 2], lambda one: one.append(3)),
    ({1: 2}, lambda one: one.update({3: 4})),
    ({1, 2}, lambda one: one.add(3)),
    (collections.deque([1]), lambda one: one.append(3)),
    (bytearray(b"ab"), lambda one: one.append(3)),
    (array.array("d", [1.5]), lambda one: one.append(2.5)),
    (np.array([[1, 2], [3, 4]]), lambda one: one.fill(7)),
    (np.array([1, "a"], dtype=object), lambda one: one.fill(7)),
    (random.Random(3), lambda one: one.random()),
    (np.random.default_rng(3), lambda one: one.random()),
    (SimpleNamespace(a=1), lambda one: vars(one).update(b=2)),
    (SimpleNamespace(a=1), lambda one: vars(one).pop("a")),
    (SimpleNamespace(a=1), lambda one: vars(one).update(a=2)),
    (Sub(), lambda one: setattr(one, "c", 5)),
    (Sub(), lambda one: setattr(one, "a", 5)),
    (Sub(), lambda one: setattr(one, "d", 5)),
]


def shown(one: Any) -> Any:
    match one:
        case np.ndarray() | array.array():
            return one.tolist()
        case random.Random():
            return one.getstate()
        case np.random.Generator():
            return one.bit_generator.state
        case Sub():
            return one.a, vars(one)
    return one


@pytest.mark.parametrize(("one", "change"), CONTAINERS, ids=lambda part: type(part).__name__)
def test_what_is_kept_in_a_container_is_seen_and_put_back(one: Any, change: Any) -> None:
    before = repr(shown(one))
    found = state(SimpleNamespace(name="thing", held=[one]))
    assert found.changed_places() == {}
    change(one)
    assert repr(shown(one)) != before
    assert list(found.changed_places()) == ["the object 'thing'"]
    found.put_back()
    assert repr(shown(one)) == before
    assert found.changed_places() == {}


def test_each_object_is_looked_at_once() -> None:
    shared: list[Any] = [1, "a", None]
    shared.append(shared)
    found = state(SimpleNamespace(name="thing", held=[shared, shared, (2.5, shared)]))
    values = [value for _, value, _ in found._known]
    assert sum(value is shared for value in values) == 1
    assert not any(isinstance(value, hidden_state.ATOMS) for value in values)


def test_what_objects_hold() -> None:
    held: Any = state()._contents_of
    for value, parts in (
        ([1, 2], [1, 2]),
        ((1, 2), [1, 2]),
        ({"a": 1}, ["a", 1]),
        (frozenset([4]), [4]),
        (functools.partial(numbers, 1, second=2), [numbers, (1,), {"second": 2}]),
        (types.CellType(5), [5]),
        (types.CellType(), [None]),
        (staticmethod(numbers), [numbers]),
        (property(numbers), [numbers, None]),
        (functools.cached_property(numbers), [numbers]),
        (np.array([1], dtype=np.uint8), [b"\1"]),
        (np.array([[1, "a"]], dtype=object), [1, "a"]),
        (np.array(None, dtype=object), [None]),
        (bytearray(b"a"), [b"a"]),
        (Sub(), [1, 2]),
    ):
        assert [part for _, part in held(value)] == parts
    frozen = np.array([1, 2])
    frozen.flags.writeable = False
    assert held(frozen) is None
    assert held(numbers) is None  # no class of these objects is of its package
    assert held(np) is None
    assert [name for name, _ in held({"a" * 50: 1})] == ["a" * 40] * 2
    assert held(Slot()) == []  # a run may set its slots
    own: Any = state(Given())._contents_of
    assert [part for _, part in own(numbers)] == [(3,), {"second": 4}, {}]
    assert [name for name, _ in own(enclosing())] == [
        "the enclosed variable 'inner'",
        "a default argument",
        "a default argument",
        "an attribute",
    ]
    names = [name for name, _ in own(sys.modules[__name__])]
    assert "GLOBAL" in names
    assert "__name__" not in names


class Given(dpf.Query):
    """Of this module."""

    name = "given"

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.zeros(1)


def test_functions_and_caches_are_seen_and_put_back() -> None:
    inner = enclosing()
    found = state(SimpleNamespace(name="thing", held=[inner, cached], query=Given()), Given())
    inner().append(8)
    cached(3)
    numbers.__defaults__ = (9,)
    GLOBAL.append(1)
    try:
        kept = found.changed_places()
        assert "the cache of 'cached'" in kept
        assert any("the enclosed variable 'inner'" in place for place in kept)
        assert any("the global 'numbers'" in place for place in kept)
        assert any("the global 'GLOBAL'" in place for place in kept)
    finally:
        found.put_back()
    assert (inner(), cached.cache_info().currsize, GLOBAL) == ([7], 0, [])
    assert numbers() == 7


def test_attributes_and_variables_are_named_by_their_own_names() -> None:
    found = state(Given())
    Given.kept = 3  # type: ignore[attr-defined]
    os.environ["HELD_BY_A_TEST"] = "1"
    try:
        places = list(found.changed_places())
        assert "the attribute 'kept' of class 'Given'" in places
        assert any("HELD_BY_A_TEST" in place and place.endswith(ENVIRONMENT) for place in places)
    finally:
        found.put_back()
        os.environ.pop("HELD_BY_A_TEST", None)
    assert not hasattr(Given, "kept")


def test_digests_depend_on_what_is_held_and_not_on_where_it_is() -> None:
    digest: Any = state()._digest
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    again: list[Any] = [1]
    again.append(again)
    values = [
        [1, 2],
        [2, 1],
        [[1], 2],
        (1, 2),
        {1: 2},
        "1",
        1,
        1.0,
        True,
        {"a": [1]},
        np.array([1]),
        np.array([2]),
        cyclic,
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest({"b", "a", "c"}) == digest({"c", "b", "a"})
    assert digest(cyclic) == digest(again)
    assert digest([1, [2]]) == digest([1, [2]])
    assert len(digest(1)) == 32


def test_places_are_named_as_far_as_a_reader_knows_names() -> None:
    module = types.ModuleType("m")
    assert _place("module 'm'", module, "g") == "the global 'g' of module 'm'"
    assert _place("class 'C'", Slot, "x") == "the attribute 'x' of class 'C'"
    assert _place("p", numbers, "a default argument") == "a default argument of 'numbers'"
    assert _place("p", numbers, "") == "p"
    assert _place(ENVIRONMENT, {}, "HOME") == f"the variable HOME of {ENVIRONMENT}"
    assert _place("p", {}, "a") == "p"
    assert (is_cache("the cache of 'f'"), is_cache("a default argument of 'f'")) == (True, False)
    assert [_role(thing) for thing in (Count(), DiscreteLaplace(1), Slot())] == ["query", "mechanism", "object"]
    for name, foreign in (
        ("dpframework.verify", False),
        ("os.path", False),
        ("dpframework_trees", True),
        ("a.os", True),
    ):
        assert is_foreign_module(name) is foreign


def test_values_that_hold_the_same_objects_are_alike() -> None:
    one = [1]
    for left, right, alike in (
        ([], [], True),
        ([("a", one)], [("a", one)], True),
        ([("a", one)], [("a", [1])], False),
        ([("a", one)], [("b", one)], False),
        ([("a", one)], [("a", one), ("a", one)], False),
        ([("a", 10**9)], [("a", 10**8 * 10)], True),
        ([("a", 1)], [("a", 1.0)], False),
        ([("a", True)], [("a", 1)], False),
        ([("a", "x" * 3)], [("a", "xxx")], True),
        ([("a", 1), ("b", 2)], [("a", 1), ("b", 3)], False),
    ):
        assert _alike(left, right) is alike


def test_slots_are_those_that_no_subclass_hides() -> None:
    @attrs.define
    class Fields:
        x: int
        y: int

    class Hides(Slot):
        a = property(lambda self: 3)

    assert (_slots(Slot), _slots(Sub), _slots(Hides)) == (["a", "b"], ["a", "b"], ["b"])
    assert {"x", "y"} <= {*_slots(Fields)}
    assert _slots(int) == []


def test_modules_are_those_that_a_class_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {name: types.ModuleType(name) for name in ("held_a", "held_a.b", "held_a.c", "held_a.d", "other_d")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    kind = type("Kind", (), {"__module__": "held_a"})
    modules["held_a"].b = modules["held_a.b"]  # type: ignore[attr-defined]
    modules["held_a.b"].c = SimpleNamespace(__module__="held_a.c")  # type: ignore[attr-defined]
    modules["held_a.c"].d = modules["other_d"]  # type: ignore[attr-defined]
    assert {module.__name__ for module in _modules_of([kind], {"held_a"})} == {"held_a", "held_a.b", "held_a.c"}
    assert _modules_of([kind], {"other"}) == []

    def imports() -> None:
        import json.decoder  # noqa: F401

        def inner() -> None:
            import colorsys  # noqa: F401

    class Holds:
        method = imports

    for held in (imports, Holds):
        assert {"json.decoder", "colorsys"} <= {*_modules_behind(held)}
    assert list(_modules_behind(modules["other_d"])) == ["other_d"]
    assert "builtins" in _modules_behind(3)


def test_what_cannot_be_put_back_stays() -> None:
    value = (1, 2)
    _restore(value, [("", 3)])
    _restore(3, [])
    assert value == (1, 2)
    assert hidden_state.MOST_VISITED == 20_000


@pytest.mark.parametrize("name", ["memory", "_memory", "__memory", "memory__", "__memory__", "__attrs_memory"])
def test_a_name_that_python_or_attrs_did_not_give_may_hold_something(name: str) -> None:
    assert _is_data(name)
    assert not _is_data("__attrs_attrs__")
    assert not _is_data("__module__")
