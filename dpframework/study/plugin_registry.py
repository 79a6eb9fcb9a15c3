"""The registry of plugins, found by entry points and hooks. A broken plugin is reported, and the others still work."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from fractions import Fraction
from importlib.metadata import EntryPoint
from typing import Any, final

import attrs

from dpframework import accountant
from dpframework.accountant import Accountant
from dpframework.checks import Check
from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.errors import InputError, first_line, nearest
from dpframework.facts.installed_package_digests import plugin_points
from dpframework.facts.privacy_losses import Amount
from dpframework.mechanisms import Mechanism
from dpframework.run.miner_base_and_examples import Miner
from dpframework.run.observers import Observer, observer_fault
from dpframework.study import built_in_components, hookspecs
from dpframework.study.miner_from_parameters import Share, build_miner
from dpframework.study.plugin_hook_calls import HookCalls
from dpframework.tables.engine_base import Engine

GROUP = "dpframework"
#: The name under which the core is listed as a plugin.
CORE = "dpframework"
_HOOKS = [name for name in vars(hookspecs) if name.startswith("dpframework_")]


@attrs.frozen
class Problem:
    """The reason why a plugin, or one of its components, is left out.

    Attributes
    ----------
    plugin
        The name of the plugin.
    reason
        The reason, as a phrase that follows the plugin's name.
    """

    plugin: str
    reason: str

    def __str__(self) -> str:
        return f"plugin '{self.plugin}': {self.reason}"


@attrs.frozen
class PluginComponent:
    """A component of a plugin, such as a miner.

    Attributes
    ----------
    plugin
        The name of the plugin.
    component
        The component, usually a class. A plugin may give an entry point instead. It is imported when the component is
        first needed. If the import fails, an `InputError` gives the reason.
    """

    plugin: str
    _given: Any = attrs.field(alias="component")
    _base: Any = attrs.field(default=object, alias="base")

    @property
    def component(self) -> Any:
        """The component itself."""
        component, fault = self._imported
        if fault is not None:
            raise InputError(f"plugin '{self.plugin}': {fault}")
        return component

    @property
    def fault(self) -> str | None:
        """The reason why the component cannot be used; None if it can."""
        return self._imported[1]

    @property
    def _imported(self) -> tuple[Any, str | None]:
        return _import(self._given, self._base) if isinstance(self._given, EntryPoint) else (self._given, None)


@final
class Registry:
    """The installed miners, mechanisms, accountants, engines, checks and observers, with their plugins.

    Parameters
    ----------
    found
        Entry points of the group `dpframework`. By default all installed ones.

    Attributes
    ----------
    problems
        The problems found so far. Miners and mechanisms that were not used yet may have further ones (see `checked`).
    """

    def __init__(self, found: Iterable[EntryPoint] | None = None) -> None:
        self.problems: list[Problem] = []
        self._hooks = HookCalls(self._report)
        self._hooks.register(built_in_components, CORE, self._hooks.marks(built_in_components))
        seen: dict[str, EntryPoint] = {}
        loaded: list[tuple[str, Any]] = []
        for point in plugin_points() if found is None else found:
            if point.name in seen:
                if point.value != seen[point.name].value:
                    self._report(
                        point.name,
                        f"two distributions use this name ({_origin(seen[point.name])} and {_origin(point)}); "
                        "the first one is kept",
                    )
                continue
            seen[point.name] = point
            try:
                loaded.append((point.name, point.load()))
            except (Exception, SystemExit) as error:  # a plugin may fail in any way; the others must still work
                self._report(point.name, f"cannot be imported ({type(error).__name__}: {_reason(error)})")
        # If two components have the same name, the first one is kept. pluggy calls the last registered plugin first, so
        # plugins are registered in reverse order.
        for plugin, module in reversed(loaded):
            try:
                # pluggy ignores a marked function that has the name of no hook. So misspelt names are reported here.
                marked = self._hooks.marks(module)
                unknown = set(marked).difference(_HOOKS)
                misspelt = [(name, nearest(name, _HOOKS)) for name in sorted(unknown)] if unknown else []
                implements = self._hooks.register(module, plugin, marked)
            except (Exception, SystemExit) as error:
                self._report(plugin, f"cannot be registered ({type(error).__name__}: {_reason(error)})")
                continue
            for name, close in misspelt:
                self._report(plugin, f"the hook '{name}' is unknown; {close}")
            if not misspelt and not implements:
                self._report(
                    plugin, "implements no hook, so it brings nothing; decorate its functions with @dpf.hookimpl"
                )
        self.miners: dict[str, PluginComponent] = self._classes("dpframework_miners", Miner)
        self.accountants: dict[str, PluginComponent] = self._classes("dpframework_accountants", Accountant)
        self.engines: dict[str, PluginComponent] = self._classes("dpframework_engines", Engine)
        self.checks: list[Check] = self._all_checks()
        self.observers: list[Observer] = self._all_observers()

    @functools.cached_property
    def mechanisms(self) -> dict[str, PluginComponent]:
        """The mechanisms by name. They are collected at first use, since few commands need them."""
        return self._classes("dpframework_mechanisms", Mechanism)

    def checked(self) -> list[Problem]:
        """Import all miners and mechanisms, remove those that cannot be used, and return all problems."""
        for known in (self.miners, self.mechanisms):
            for name, fault in [(name, brought.fault) for name, brought in known.items()]:
                if fault is not None:
                    self._report(known.pop(name).plugin, fault)
        return self.problems

    def accountants_at(self, delta: Fraction) -> tuple[type[Accountant[Any]], ...]:
        """Return the accountants that may total a plan with this delta. Built-in ones come first, and so win a tie."""
        others = (brought.component for brought in self.accountants.values() if brought.plugin != CORE)
        return (*accountant.built_in_at(delta), *others)

    def _call_hook(self, hook: str) -> list[tuple[str, Any]]:
        """Call a hook. The core's components come first, so that no plugin can take their names or win a tie."""
        core: list[tuple[str, Any]] = []
        others: list[tuple[str, Any]] = []
        for brought in self._hooks.call(hook):
            (core if brought[0] == CORE else others).append(brought)
        return core + others

    def _classes(self, hook: str, base: type[Any]) -> dict[str, PluginComponent]:
        known: dict[str, PluginComponent] = {}
        for plugin, kind in self._call_hook(hook):
            later = isinstance(kind, EntryPoint)
            fault = None if later or plugin == CORE else _fault(kind, base)
            if fault is not None:
                self._report(plugin, fault)
            elif kind.name in known:
                self._report(plugin, f"'{kind.name}' is already brought by '{known[kind.name].plugin}', which is kept")
            else:
                known[kind.name] = PluginComponent(plugin, kind, base)
        return dict(sorted(known.items()))

    def _objects(self, hook: str, base: type[Any]) -> list[Any]:
        brought = []
        for plugin, thing in self._call_hook(hook):
            if isinstance(thing, base):
                brought.append(thing)
            else:
                self._report(plugin, _misfit(hook, thing, base))
        return brought

    def _all_checks(self) -> list[Check]:
        """Return the checks of the core and of plugins. A plugin that wraps the hook cannot remove the core's."""
        brought = self._objects("dpframework_checks", Check)
        hidden = [check for check in built_in_components.dpframework_checks() if check not in brought]
        if hidden:
            codes = ", ".join(check.code for check in hidden)
            self._report(CORE, f"a wrapper of the hook dpframework_checks removes {codes}, which dpframework keeps")
        return hidden + brought

    def _all_observers(self) -> list[Observer]:
        """Return the observers of plugins that can record what they are told. The others are reported."""
        observers = []
        for plugin, observer in self._call_hook("dpframework_observers"):
            if not isinstance(observer, Observer):
                self._report(plugin, _misfit("dpframework_observers", observer, Observer))
            elif (fault := observer_fault(observer)) is not None:
                self._report(plugin, fault)
            else:
                observers.append(observer)
        return observers

    def _report(self, plugin: str, reason: str) -> None:
        self.problems.append(Problem(plugin, reason))

    def miner(self, name: str, /, **parameters: Any) -> Miner:
        """Return a miner by its name, with these parameters.

        Raises
        ------
        InputError
            If no miner has that name, or if a parameter is unknown, missing or refused.
        """
        return build_miner(self._kind(name), parameters)

    def share(self, share: Amount, kind: str | type[Miner], /, **parameters: Any) -> Share:
        """Return a miner with a share of its study's budget in place of an epsilon, for `Study.add`.

        Raises
        ------
        InputError
            If the share is not above 0 and at most 1, if no miner has that name, or if the parameters also set a
            budget.
        """
        return Share(share, self._kind(kind) if isinstance(kind, str) else kind, parameters)

    def kind(self, name: str) -> type[Miner] | None:
        """Return the class of a miner, or None if it is not installed or cannot be imported."""
        brought = self.miners.get(name)
        return None if brought is None or brought.fault is not None else brought.component

    def _kind(self, name: str) -> type[Miner]:
        if name not in self.miners:
            number = len(self.checked())
            problems = "1 plugin problem" if number == 1 else f"{number} plugin problems"
            broken = f" ({problems}: see 'dpframework miners')" if number else ""
            raise InputError(f"no miner is named '{name}'; {nearest(name, self.miners)}{broken}")
        kind: type[Miner] = self.miners[name].component
        return kind


def _misfit(hook: str, thing: Any, base: type[Any]) -> str:
    """Return the report on a hook that brings an object of another class than `base`."""
    return f"its hook {hook} brings {type(thing).__name__}, not {base.__name__}"


def _fault(kind: Any, base: type[Any]) -> str | None:
    """Return the reason why an object cannot be a component with this base class; None if it can."""
    what = getattr(kind, "__name__", None) or type(kind).__name__
    name = getattr(kind, "name", None)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        return f"'{what}' is not a subclass of {base.__name__}"
    if not isinstance(name, str) or not name:
        return f"'{what}' has no name; set name = \"...\" in the class"
    if inspect.isabstract(kind):
        return f"'{what}' does not define {', '.join(sorted(getattr(kind, '__abstractmethods__', ())))}"
    if base is Miner and "__attrs_attrs__" not in vars(kind):
        return f"'{what}' is not an attrs class; decorate it with @attrs.frozen"
    return None


@functools.cache
def _import(point: EntryPoint, base: Any) -> tuple[Any, str | None]:
    """Return the class that an entry point names. The second value is the reason why it cannot be used, or None."""
    try:
        kind = point.load()
    except (Exception, SystemExit) as error:  # a plugin may fail in any way; the others must still work
        return None, f"'{point.name}' cannot be imported ({type(error).__name__}: {_reason(error)})"
    fault = _fault(kind, base)
    if fault is None and kind.name != point.name:
        fault = f"'{point.value}' has the name '{kind.name}', but is listed as '{point.name}'; list it by its name"
    return kind, fault


def _reason(error: BaseException) -> str:
    return first_line(error) or "no reason given"


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


@functools.cache
def registry() -> Registry:
    """Return the registry of installed components. It is built once."""
    return Registry()


@typechecked
def miner(name: str, /, **parameters: Any) -> Miner:
    """Return an installed miner by its name, with these parameters (see `Registry.miner`)."""
    return registry().miner(name, **parameters)


def share(share: Amount, miner: str | type[Miner], /, **parameters: Any) -> Share:
    """Return a miner with a share of its study's budget in place of an epsilon, for `Study.add`.

    Parameters
    ----------
    share
        The share, above 0 and at most 1. If the shares of a study add up to less than 1, the rest of the budget is not
        spent.
    miner
        The name of an installed miner, or a miner class.
    parameters
        The parameters of the miner, without those of its budget.

    Raises
    ------
    InputError
        If the share is not above 0 and at most 1, if no miner has that name, or if the parameters also set a budget.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("smokes")])
    >>> study = dpf.Study(schema, epsilon=2)
    >>> study.add("ill", dpf.share(0.75, "histogram", attribute="ill"))
    >>> study.add("smokes", dpf.share(0.25, "histogram", attribute="smokes"))
    >>> [str(miner.epsilon) for miner in study.miners.values()]
    ['3/2', '1/2']
    """
    return registry().share(share, miner, **parameters)
