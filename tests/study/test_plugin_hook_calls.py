"""Calls of hooks: each plugin's components come with its name, and one that fails does not stop the others."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dpframework.study.hookspecs import hookimpl
from dpframework.study.plugin_hook_calls import HookCalls

HOOK = "dpframework_miners"


def plugin(name: str, function: Any, **options: Any) -> ModuleType:
    module = ModuleType(name)
    setattr(module, HOOK, hookimpl(function, **options))
    return module


class Calls:
    """Hooks of some plugins, and what was reported of these."""

    def __init__(self, *plugins: ModuleType) -> None:
        self.told: list[tuple[str, str]] = []
        self.hooks = HookCalls(lambda name, why: self.told.append((name, why)))
        for one in plugins:
            assert self.hooks.register(one, one.__name__, self.hooks.marks(one))

    def found(self) -> list[tuple[str, Any]]:
        return sorted(self.hooks.call(HOOK))


def fails() -> Any:
    raise ValueError("first line\nsecond line")


def leaves() -> Any:
    raise SystemExit(3)


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=4))
def test_each_component_comes_with_the_plugin_that_brought_it(brought: list[list[int]]) -> None:
    calls = Calls(*(plugin(f"p{k}", lambda own=own: own) for k, own in enumerate(brought)))
    assert calls.found() == sorted((f"p{k}", one) for k, own in enumerate(brought) for one in own)
    assert calls.told == []


@pytest.mark.parametrize(("function", "kind"), [(fails, "ValueError: first line"), (leaves, "SystemExit: 3")])
@pytest.mark.parametrize("wrapper", [False, True])
def test_a_plugin_that_fails_is_reported_by_name_and_the_others_are_heard(
    function: Any, kind: str, wrapper: bool
) -> None:
    def around() -> Any:
        function()
        return (yield)

    bad = plugin("bad", around, wrapper=True) if wrapper else plugin("bad", function)
    calls = Calls(plugin("good", lambda: [1]), bad, plugin("better", lambda: [2]))
    assert calls.found() == [("better", 2), ("good", 1)]
    assert calls.told == [("bad", f"its hook {HOOK} fails ({kind})")]


def test_what_a_wrapper_hands_on_takes_the_place_of_what_it_was_given() -> None:
    def doubled() -> Any:
        given_lists = yield
        return [[one * 2 for one in some] for some in given_lists]

    assert [one for _, one in Calls(plugin("good", lambda: [1, 2]), plugin("w", doubled, wrapper=True)).found()] == [
        2,
        4,
    ]


@pytest.mark.parametrize("answer", [None, [1]])
def test_a_wrapper_that_returns_no_lists_changes_nothing(answer: Any) -> None:
    def other() -> Any:
        yield
        return answer

    calls = Calls(plugin("good", lambda: [1]), plugin("w", other, wrapper=True))
    assert calls.found() == [("good", 1)]
    assert ["does not return the lists" in why for name, why in calls.told if name == "w"] == [True]


def test_only_functions_that_are_marked_are_hooks() -> None:
    module = plugin("p", lambda: [1])
    module.dpframework_queries = lambda: [2]  # type: ignore[attr-defined]
    assert HookCalls(print).marks(module) == [HOOK]


def test_a_plugin_that_pluggy_refuses_brings_nothing() -> None:
    calls = Calls(plugin("good", lambda: [1]))
    bad = plugin("bad", lambda parameter: [2])
    with pytest.raises(Exception, match="parameter"):
        calls.hooks.register(bad, "bad", calls.hooks.marks(bad))
    assert calls.found() == [("good", 1)]
