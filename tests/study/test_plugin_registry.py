"""The registry: what is broken is reported by name, and the rest works."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework import accountant, checks, mechanisms
from dpframework.study.plugin_registry import GROUP, Registry, miner, registry
from dpframework.tables import built_in_engines as engines


@attrs.frozen
class Good(dpf.Miner):
    """Count the rows."""

    name = "good"
    epsilon: float
    rounds: int = 1

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(self.epsilon))

    def mine(self, table: dpf.PrivateTable) -> Any:
        return table.release("n")


@attrs.frozen
class Same(Good):
    """Count the rows, under a name that is taken."""


@attrs.frozen
class Other(Good):
    """Count the rows again."""

    name = "other"


class Plain(Good):
    """Not an attrs class of its own."""

    name = "plain"
    extra: int


@attrs.frozen
class Nameless(dpf.Miner):
    """No name."""

    def plan(self, schema: dpf.Schema) -> Any:
        return None

    def mine(self, table: dpf.PrivateTable) -> Any:
        return None


@attrs.frozen
class Unfinished(dpf.Miner):
    """Abstract."""

    name = "unfinished"

    def plan(self, schema: dpf.Schema) -> Any:
        return None


@pytest.fixture
def plugin() -> Iterator[Callable[..., EntryPoint]]:
    """Return a function that puts a module in sys.modules and returns its entry point."""
    made: list[str] = []

    def make(name: str, *, module: str | None = None, **contents: Any) -> EntryPoint:
        made.append(module or f"fake_{name.replace('-', '_')}")
        new = ModuleType(made[-1])
        for key, value in contents.items():
            setattr(new, key, value)
        sys.modules[made[-1]] = new
        return EntryPoint(name, made[-1], GROUP)

    yield make
    for name in made:
        sys.modules.pop(name, None)


def bringing(hook: str, *things: Any) -> dict[str, Any]:
    def brings() -> list[Any]:
        return list(things)

    brings.__name__ = hook
    return {hook: dpf.hookimpl(brings)}


@pytest.fixture
def good(plugin: Callable[..., EntryPoint]) -> EntryPoint:
    return plugin("good-plugin", **bringing("dpframework_miners", Good))


def problems(found: Registry) -> list[str]:
    return [str(problem) for problem in found.checked()]


def brought(found: Registry) -> list[str]:
    """Name the miners of plugins: those of the core are always there."""
    return [name for name, one in found.miners.items() if one.plugin != "dpframework"]


def test_the_core_brings_everyday_miners_and_a_plugin_cannot_take_their_names(
    plugin: Callable[..., EntryPoint],
) -> None:
    taken = attrs.make_class("Taken", [], bases=(Other,), class_body={"name": "histogram"})
    found = Registry([plugin("p", **bringing("dpframework_miners", taken))])
    assert list(found.miners) == [
        "adaptive-grid",
        "count",
        "crosstab",
        "histogram",
        "keys",
        "marginals",
        "mean",
        "median",
        "private-bounds",
        "quantile",
        "ratio",
        "rows-per-unit",
        "sum",
        "top-k",
        "variance",
    ]
    assert found.miners["histogram"].component is not taken
    assert problems(found) == [
        "plugin 'p': 'histogram' is already brought by 'dpframework', which is kept",
    ]


def test_a_plugin_brings_miners(good: EntryPoint) -> None:
    found = Registry([good])
    assert problems(found) == []
    assert brought(found) == ["good"]
    assert found.miners["good"].plugin == "good-plugin"
    assert found.miner("good", epsilon=0.5) == Good(0.5)


class Flip(dpf.mechanisms.PureMechanism):
    """A mechanism that does nothing."""

    name = "flip"
    norm = dpf.queries.base.Norm.L1 if hasattr(dpf.queries, "base") else "l1"  # type: ignore[assignment]

    change = release = log_density = preview = lambda self, *args: None  # type: ignore[assignment]


class Tight(dpf.accountant.pure.AdditiveAccountant):
    """An accountant of another name."""

    name = "tight"

    amount = loss = lambda self, amount: None  # type: ignore[assignment]


class SecondPure(Tight):
    """An accountant whose name is taken."""

    name = "pure"


class Unnamed(Tight):
    """An accountant without a name."""

    name = ""


class Far(dpf.Engine):
    """An engine of another name."""

    name = "far"

    load = map = split = derive = lambda self, *args: None  # type: ignore[assignment]


class Misspelt(dpf.Observer):
    """Would record each charge, if a run called it."""

    def on_charge(self, charge: Any) -> None:
        raise AssertionError


class Later(dpf.Observer):
    """Sends each charge to a ledger elsewhere, at some time."""

    async def charged(self, charge: Any) -> None:  # type: ignore[override]
        raise AssertionError


CHECK = dpf.Check("XY001", "a check", lambda plan: [])
OBSERVER = dpf.Observer()


@pytest.mark.parametrize(
    ("hook", "thing", "listed"),
    [
        ("dpframework_miners", Good, lambda r: r.miners["good"].component is Good),
        ("dpframework_mechanisms", Flip, lambda r: r.mechanisms["flip"].component is Flip),
        ("dpframework_accountants", Tight, lambda r: r.accountants["tight"].component is Tight),
        ("dpframework_engines", Far, lambda r: r.engines["far"].component is Far),
        ("dpframework_checks", CHECK, lambda r: r.checks[-1] is CHECK),
        ("dpframework_observers", OBSERVER, lambda r: r.observers == [OBSERVER]),
    ],
)
def test_each_hook(
    plugin: Callable[..., EntryPoint], hook: str, thing: Any, listed: Callable[[Registry], bool]
) -> None:
    found = Registry([plugin("p", **bringing(hook, thing))])
    assert problems(found) == []
    assert listed(found)
    assert [b.name for b in mechanisms.BUILT_IN if b.name not in found.mechanisms] == []
    assert [b.name for b in accountant.BUILT_IN if b.name not in found.accountants] == []
    assert [b.name for b in engines.BUILT_IN if b.name not in found.engines] == []
    assert found.checks[: len(checks.BUILT_IN)] == list(checks.BUILT_IN)


def exits() -> Any:
    raise SystemExit("goodbye")


def fails() -> Any:
    raise RuntimeError("no disk\nwith a second line")


def generates() -> Iterator[Any]:
    yield Other
    raise KeyError("late")


def wants(argument: Any) -> list[Any]:
    return []


def hook(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    def called(*args: Any) -> Any:
        return function(*args)

    if function is wants:
        called = lambda argument: []  # noqa: E731
    called.__name__ = name
    return {name: dpf.hookimpl(called)}


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "misspelt hook": (
        bringing("dpframework_miner", Other),
        "the hook 'dpframework_miner' is unknown; did you mean 'dpframework_miners'",
    ),
    "hook that raises": (hook("dpframework_miners", fails), r"hook dpframework_miners fails \(RuntimeError: no disk\)"),
    "hook that exits": (hook("dpframework_miners", exits), r"fails \(SystemExit: goodbye\)"),
    "hook that raises late": (hook("dpframework_miners", generates), "fails .KeyError"),
    "hook that brings nothing": (hook("dpframework_miners", lambda: None), "fails .TypeError"),
    "hook that wants more": (hook("dpframework_miners", wants), "cannot be registered"),
    "no class": (bringing("dpframework_miners", Good(1.0)), "is not a subclass of Miner"),
    "no miner": (bringing("dpframework_miners", dict), "'dict' is not a subclass of Miner"),
    "not attrs": (bringing("dpframework_miners", Plain), "'Plain' is not an attrs class; decorate it with @attrs"),
    "without a name": (bringing("dpframework_miners", Nameless), "'Nameless' has no name; set name"),
    "abstract": (bringing("dpframework_miners", Unfinished), "'Unfinished' does not define mine"),
    "taken name": (bringing("dpframework_miners", Same), "'good' is already brought by 'good-plugin', which is kept"),
    "taken mechanism": (
        bringing("dpframework_mechanisms", attrs.make_class("Mine", [], bases=(Flip,), class_body={"name": "laplace"})),
        "'laplace' is already brought by 'dpframework'",
    ),
    "taken accountant": (bringing("dpframework_accountants", SecondPure), "'pure' is already brought by 'dpframework'"),
    "nameless accountant": (bringing("dpframework_accountants", Unnamed), "'Unnamed' has no name; set name"),
    "check that is none": (bringing("dpframework_checks", len), "brings builtin_function_or_method, not Check"),
    "observer that is a class": (bringing("dpframework_observers", dpf.Observer), "brings type, not Observer"),
    "observer that hears nothing": (
        bringing("dpframework_observers", Misspelt()),
        "observer 'Misspelt' overrides neither 'charged' nor 'released'",
    ),
    "observer that ends later": (bringing("dpframework_observers", Later()), "'charged' of observer 'Later' is async"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_by_name_and_the_rest_works(
    plugin: Callable[..., EntryPoint], good: EntryPoint, fault: str
) -> None:
    contents, text = FAULTS[fault]
    last = plugin(
        "last",
        **bringing("dpframework_miners", attrs.make_class("Last", [], bases=(Other,), class_body={"name": "last"})),
    )
    found = Registry([good, plugin("faulty", **contents), last])
    assert len(found.checked()) == 1, problems(found)
    assert found.checked()[0].plugin == "faulty"
    assert re.search(text, problems(found)[0]), problems(found)
    assert brought(found) == ["good", "last"]
    assert found.miners["good"].component is Good


def test_what_else_a_faulty_plugin_brings_still_works(plugin: Callable[..., EntryPoint]) -> None:
    found = Registry(
        [plugin("p", **bringing("dpframework_miners", Nameless, Good, Unfinished), **bringing("dpframework_miner"))]
    )
    assert brought(found) == ["good"]
    assert len(found.checked()) == 3


def test_a_plugin_that_cannot_be_registered_brings_nothing(plugin: Callable[..., EntryPoint], good: EntryPoint) -> None:
    """Half of a plugin would be a surprise: pluggy keeps the hooks before the bad one."""
    contents = {**bringing("dpframework_checks", CHECK), **hook("dpframework_miners", wants)}
    found = Registry([plugin("half", **contents), good])
    assert [p.plugin for p in found.checked()] == ["half"]
    assert CHECK not in found.checks
    assert brought(found) == ["good"]


def later(name: str, value: str) -> dict[str, Any]:
    return bringing("dpframework_miners", EntryPoint(name, value, GROUP))


def test_a_miner_that_an_entry_point_names_is_imported_when_it_is_used(
    tmp_path: Any, monkeypatch: Any, plugin: Any
) -> None:
    text = "from test_of_registry import Good\nGood = Good\n"
    (tmp_path / "good_later.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "test_of_registry", sys.modules[__name__])
    found = Registry([plugin("p", **later("good", "good_later:Good"))])
    assert brought(found) == ["good"]
    assert "good_later" not in sys.modules
    assert found.miner("good", epsilon=0.5) == Good(0.5)
    assert found.kind("good") is Good
    monkeypatch.delitem(sys.modules, "good_later")
    assert problems(found) == []


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("lost", "module_that_is_not_there:Good", "'lost' cannot be imported (ModuleNotFoundError: No module named"),
        ("lost", "attrs:Good", "'lost' cannot be imported (AttributeError: "),
        ("odd", "builtins:dict", "'dict' is not a subclass of Miner"),
        ("odd", "{here}:Plain", "'Plain' is not an attrs class; decorate it with @attrs.frozen"),
        ("odd", "{here}:Good", "'{here}:Good' has the name 'good', but is listed as 'odd'; list it by its name"),
        ("histogram", "{here}:Good", "'histogram' is already brought by 'dpframework', which is kept"),
    ],
)
def test_an_entry_point_of_no_miner(
    plugin: Any, monkeypatch: Any, good: Any, name: str, value: str, reason: str
) -> None:
    monkeypatch.setitem(sys.modules, "test_of_registry", sys.modules[__name__])
    value, reason = (text.format(here="test_of_registry") for text in (value, reason))
    found = Registry([plugin("p", **later(name, value)), good])
    assert found.miner("good", epsilon=0.5) == Good(0.5)
    if name != "histogram":
        assert found.problems == []
        assert found.kind(name) is None
        with pytest.raises(dpf.InputError, match=f"^plugin 'p': {re.escape(reason)}"):
            found.miner(name, epsilon=1)
    (problem,) = problems(found)
    assert problem.startswith(f"plugin 'p': {reason}")
    assert brought(found) == ["good"]


def test_mechanisms_are_collected_when_they_are_asked_for(plugin: Callable[..., EntryPoint]) -> None:
    found = Registry([plugin("p", **hook("dpframework_mechanisms", fails))])
    assert found.problems == []
    assert "laplace" in found.mechanisms
    assert [str(problem) for problem in found.problems] == problems(found)
    assert len(found.checked()) == 1


BROKEN = {
    "import": (
        "raise ImportError('no module named numpyy')",
        "cannot be imported .ImportError: no module named numpyy",
    ),
    "exit": ("import sys; sys.exit(3)", "cannot be imported .SystemExit: 3"),
    "syntax": ("def", "cannot be imported .SyntaxError"),
    "silent": ("raise ValueError", "cannot be imported .ValueError: no reason given"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_plugin_that_cannot_be_imported(tmp_path: Any, monkeypatch: Any, good: EntryPoint, fault: str) -> None:
    text, reason = BROKEN[fault]
    (tmp_path / f"broken_{fault}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Registry([EntryPoint("broken", f"broken_{fault}", GROUP), good])
    assert re.search(f"^plugin 'broken': {reason}", problems(found)[0])
    assert brought(found) == ["good"]
    missing = Registry([EntryPoint("gone", "module_that_is_not_there", GROUP), good])
    assert "ModuleNotFoundError" in problems(missing)[0]


class Prickly:
    """An entry point may be any object, also one that cannot be looked at."""

    @property
    def dpframework_miners(self) -> Any:
        raise RuntimeError("do not touch")


def test_an_object_that_cannot_be_inspected(plugin: Callable[..., EntryPoint], good: EntryPoint) -> None:
    plugin("prickly", thing=Prickly())
    found = Registry([EntryPoint("prickly", "fake_prickly:thing", GROUP), good])
    assert [p.plugin for p in found.checked()] == ["prickly"]
    assert brought(found) == ["good"]


def test_two_distributions_with_one_name(plugin: Callable[..., EntryPoint], good: EntryPoint) -> None:
    twin = plugin("good-plugin", module="fake_twin", **bringing("dpframework_miners", Other))
    found = Registry([good, twin])
    assert problems(found) == [
        "plugin 'good-plugin': two distributions use this name (fake_good_plugin and fake_twin); the first one is kept"
    ]
    assert brought(found) == ["good"]
    assert Registry([good, good]).checked() == []  # the same one, seen twice


def test_one_module_under_two_names(good: EntryPoint) -> None:
    found = Registry([good, EntryPoint("again", good.value, GROUP)])
    assert [p.plugin for p in found.checked()] == ["again"]
    assert brought(found) == ["good"]


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        ("god", {"epsilon": 1}, "no miner is named 'god'; did you mean 'good'"),
        ("good", {"epsilom": 1}, "miner 'good' has no parameter 'epsilom'; did you mean 'epsilon'"),
        ("good", {}, "miner 'good' needs the parameter 'epsilon'; `dpframework miners good` explains its parameters$"),
    ],
)
def test_parameters_are_checked_by_name(good: EntryPoint, name: str, parameters: Any, text: str) -> None:
    with pytest.raises(dpf.InputError, match=text):
        Registry([good]).miner(name, **parameters)


def test_parameters_that_a_miner_refuses(plugin: Callable[..., EntryPoint]) -> None:
    @attrs.frozen
    class Picky(Good):
        """Refuses."""

        name = "picky"
        depth: int = attrs.field(default=1, validator=attrs.validators.ge(1))
        share: float = attrs.field(default=0.5, converter=dpf.facts.exact)

    found = Registry([plugin("p", **bringing("dpframework_miners", Picky))])
    with pytest.raises(dpf.InputError, match="miner 'picky' refuses its parameters: 'depth' must be >= 1"):
        found.miner("picky", epsilon=1, depth=0)
    with pytest.raises(dpf.InputError, match="miner 'picky': epsilon is -1"):
        found.miner("picky", epsilon=1, share=-1)


def test_problems_are_mentioned_where_a_miner_lacks(plugin: Callable[..., EntryPoint]) -> None:
    found = Registry([plugin("p", **hook("dpframework_miners", fails))])
    with pytest.raises(dpf.InputError, match="1 plugin problem"):
        found.miner("good")


def test_the_installed_registry_has_the_trees() -> None:
    assert registry() is registry()
    assert registry().checked() == []
    assert "dp-id3" in registry().miners
    with pytest.raises(dpf.InputError, match="did you mean 'dp-id3'"):
        miner("dp-id4")


# --- hooks as pluggy calls them --------------------------------------------------------------------------------------


def wrapping(wrapper: Any, /, **options: Any) -> dict[str, Any]:
    wrapper.__name__ = "dpframework_miners"
    return {"dpframework_miners": dpf.hookimpl(**({"wrapper": True} | options))(wrapper)}


def test_a_wrapper_may_hide_and_add_components(plugin: Callable[..., EntryPoint], good: EntryPoint) -> None:
    def without_sums() -> Any:
        lists = yield
        return [[kind for kind in kinds if kind.name != "sum"] for kinds in lists] + [[Other]]

    found = Registry([good, plugin("policy", **wrapping(without_sums))])
    assert problems(found) == []
    assert {name: one.plugin for name, one in found.miners.items() if name in ("count", "good", "other", "sum")} == {
        "count": "dpframework",
        "good": "good-plugin",
        "other": "policy",
    }


def test_a_wrapper_cannot_take_the_checks_of_the_core_away(plugin: Callable[..., EntryPoint]) -> None:
    def dpframework_checks() -> Any:
        given = yield
        return [[check for check in one if check.code != "DP005"] for one in given]

    found = Registry([plugin("policy", dpframework_checks=dpf.hookimpl(wrapper=True)(dpframework_checks))])
    assert {check.code for check in found.checks} == {check.code for check in Registry([]).checks}
    assert [str(problem) for problem in found.problems] == [
        "plugin 'dpframework': a wrapper of the hook dpframework_checks removes DP005, which dpframework keeps"
    ]


def test_a_wrapper_of_the_old_kind_works_too(plugin: Callable[..., EntryPoint], good: EntryPoint) -> None:
    def only_counts() -> Any:
        outcome = yield
        outcome.force_result([[kind for kind in kinds if kind.name == "count"] for kinds in outcome.get_result()])

    options = {"wrapper": False, "hookwrapper": True}
    found = Registry([good, plugin("policy", **wrapping(only_counts, **options))])
    assert list(found.miners) == ["count"]
    assert problems(found) == []


def fails_before() -> Any:
    raise ValueError("too early")
    yield


def fails_after() -> Any:
    yield
    raise ValueError("too late")


def returns_nothing() -> Any:
    yield


def returns_something_besides() -> Any:
    found = yield
    return [*found, 5]


def yields_twice() -> Any:
    yield
    yield


def spoils_in_place() -> Any:
    outcome = yield
    outcome.force_result(5)


@pytest.mark.parametrize(
    ("wrapper", "options", "said"),
    [
        (fails_before, {}, "its hook dpframework_miners fails (ValueError: too early)"),
        (fails_after, {}, "its hook dpframework_miners fails (ValueError: too late)"),
        (returns_nothing, {}, "its wrapper of the hook dpframework_miners does not return the lists that it is given"),
        (
            returns_something_besides,
            {},
            "its wrapper of the hook dpframework_miners does not return the lists that it is given",
        ),
        (
            yields_twice,
            {},
            "its wrapper of the hook dpframework_miners yields twice; yield once, and return the result",
        ),
        (
            spoils_in_place,
            {"wrapper": False, "hookwrapper": True},
            "its wrapper of the hook dpframework_miners does not return the lists that it is given",
        ),
    ],
)
def test_a_wrapper_that_fails_is_named_and_changes_nothing(
    plugin: Callable[..., EntryPoint], good: EntryPoint, wrapper: Any, options: dict[str, Any], said: str
) -> None:
    found = Registry([good, plugin("policy", **wrapping(wrapper, **options))])
    assert problems(found) == [f"plugin 'policy': {said}"]
    assert brought(found) == ["good"]
    assert "sum" in found.miners


def test_who_asks_to_be_called_first_keeps_a_name_but_none_of_the_core(plugin: Callable[..., EntryPoint]) -> None:
    first = plugin("first", **bringing("dpframework_miners", Good))
    hurried = {"dpframework_miners": dpf.hookimpl(tryfirst=True)(lambda: [Same, Taken])}
    found = Registry([first, plugin("hurried", **hurried)])
    assert found.miners["good"].component is Same
    assert problems(found) == [
        "plugin 'hurried': 'sum' is already brought by 'dpframework', which is kept",
        "plugin 'first': 'good' is already brought by 'hurried', which is kept",
    ]


@attrs.frozen
class Taken(Good):
    """Count the rows, under a name of the core."""

    name = "sum"


def test_the_core_is_brought_through_the_hooks_that_plugins_use() -> None:
    from dpframework.study import built_in_components, hookspecs

    for hook in vars(hookspecs):
        if hook.startswith("dpframework_"):
            assert isinstance(getattr(built_in_components, hook)(), list)
    found = Registry([])
    assert [kind.name for kind in found.accountants_at(Fraction(1, 100))] == ["pure", "zcdp", "rdp", "pld"]
    assert [kind.name for kind in found.accountants_at(Fraction(0))] == ["pure"]
    assert found.checks == built_in_components.dpframework_checks()
    assert set(found.engines) == {kind.name for kind in built_in_components.dpframework_engines()}
    assert set(found.mechanisms) == {kind.name for kind in built_in_components.dpframework_mechanisms()}
