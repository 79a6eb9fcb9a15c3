"""Calls of plugins' hooks through pluggy. If a plugin fails, the others still work."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable
from types import ModuleType
from typing import Any, final

import pluggy

from dpframework.facts.errors import first_line
from dpframework.study import hookspecs


class _Components(list[Any]):
    """The components that one plugin returned from a hook, with the plugin's name."""

    plugin: str


@final
class HookCalls:
    """All plugins' implementations of hooks. A failure of one plugin is reported, and the others still work.

    Parameters
    ----------
    report
        A function that is called with the name of a failed plugin and the reason.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._manager = pluggy.PluginManager("dpframework")
        self._manager.add_hookspecs(hookspecs)
        # For each component, the plugin that returned it. Keys are ids, since components may be unhashable. The
        # component is stored too, so that no other object can get its id.
        self._plugin_of: dict[int, tuple[Any, str]] = {}

    def marks(self, module: Any) -> list[str]:
        """Return the names of the functions in a plugin's module that are marked as hooks."""
        return [name for name in dir(module) if self._manager.parse_hookimpl_opts(module, name) is not None]

    def register(self, module: ModuleType, plugin: str, marked: Iterable[str]) -> bool:
        """Register a plugin's marked functions, and return whether at least one implements a hook.

        Raises
        ------
        Exception
            If pluggy refuses the plugin. None of its hooks is registered then.
        """
        guarded = ModuleType(plugin)
        for name in marked:
            options: dict[str, Any] = dict(self._manager.parse_hookimpl_opts(module, name) or {})
            guard = self._guard_wrapper if options["wrapper"] or options["hookwrapper"] else self._guard
            setattr(guarded, name, hookspecs.hookimpl(guard(name, plugin, getattr(module, name)), **options))
        try:
            self._manager.register(guarded, plugin)
        except (Exception, SystemExit):
            # pluggy registers hooks one by one, so some were registered before the refused one.
            if self._manager.has_plugin(plugin):
                self._manager.unregister(name=plugin)
            raise
        return bool(self._manager.get_hookcallers(guarded))

    def call(self, hook: str) -> list[tuple[str, Any]]:
        """Call a hook, and return all plugins' components in pluggy's order, each with the name of its plugin."""
        return [
            (components.plugin if isinstance(components, _Components) else self._plugin_of[id(component)][1], component)
            for components in getattr(self._manager.hook, hook)()
            for component in components
        ]

    def _label(self, plugin: str, components: Iterable[Any]) -> _Components:
        """Return components with the name of their plugin, and remember this name for each of them."""
        labelled = _Components(components)
        labelled.plugin = plugin
        for component in labelled:
            self._plugin_of.setdefault(id(component), (component, plugin))
        return labelled

    def _fails(self, hook: str, plugin: str, error: BaseException) -> None:
        reason = first_line(error) or "no reason given"
        self._report(plugin, f"its hook {hook} fails ({type(error).__name__}: {reason})")

    def _guard(self, hook: str, plugin: str, function: Callable[[], Any]) -> Callable[[], list[Any]]:
        @functools.wraps(function)  # pluggy inspects the signature of a hook
        def components() -> list[Any]:
            try:
                return self._label(plugin, function())
            except (Exception, SystemExit) as error:
                self._fails(hook, plugin, error)
                return []

        return components

    def _guard_wrapper(
        self, hook: str, plugin: str, function: Callable[[], Generator[None, Any, Any]]
    ) -> Callable[[], Generator[None, Any, Any]]:
        """Guard a wrapper of a hook, in pluggy's old or new style. If it fails, the hook works without the wrapper."""

        @functools.wraps(function)
        def wrapper() -> Generator[None, Any, Any]:
            inner = function()
            try:
                next(inner)
            except (Exception, SystemExit) as error:
                self._fails(hook, plugin, error)
                return (yield)
            given = yield
            before = given.get_result() if isinstance(given, pluggy.Result) else given
            try:
                inner.send(given)
            except StopIteration as ended:
                # an old-style wrapper returns nothing, and may change the result object that it is given
                result = given.get_result() if isinstance(given, pluggy.Result) else ended.value
                if isinstance(result, list) and all(isinstance(components, list | tuple) for components in result):
                    for components in result:
                        self._label(plugin, components)
                    return result
                self._report(plugin, f"its wrapper of the hook {hook} does not return the lists that it is given")
            except (Exception, SystemExit) as error:
                self._fails(hook, plugin, error)
            else:
                self._report(plugin, f"its wrapper of the hook {hook} yields twice; yield once, and return the result")
                inner.close()
            if isinstance(given, pluggy.Result):
                given.force_result(before)
            return before

        return wrapper
