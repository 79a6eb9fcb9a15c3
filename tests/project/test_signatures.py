"""What callers and plans rely on: listed defaults (tests/signatures.py), listed constants, and names of their own."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import constants
import pytest
import signatures

import dpframework
import dpframework as dpf


def require_listed(told: ModuleType, remedy: str) -> list[str]:
    """Fail where what a module tells is not its committed list, and return it."""
    listed, found = told.PAGE.read_text(encoding="utf-8").splitlines(), list(told.lines())
    gone, new = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    assert (gone, new) == ([], []), f"if you mean it: {remedy}"
    assert found == listed
    return found


def test_public_parameters_and_defaults_are_those_of_the_list() -> None:
    require_listed(signatures, "python tests/signatures.py, and say so in docs/changelog.md")


def test_the_list_has_defaults_of_functions_of_values_and_of_methods() -> None:
    text = signatures.PAGE.read_text(encoding="utf-8")
    assert (
        "\ndpframework.verify.tables.contribution_bounding_checks.check_bounding"
        "(schema, unit, *, readers=None, tables=9, seed=0)\n" in text
    )
    assert ": repr=False" in text


def test_public_constants_are_those_of_the_list() -> None:
    """Limits, tolerances and versions, which a test of a study would not miss by a little."""
    found = require_listed(constants, "python tests/constants.py")
    assert "dpframework.facts.input_limits.MOST_COLUMNS = 131072" in found


@pytest.mark.parametrize("kind", [dpf.Query, dpf.Mechanism, dpf.Miner, dpf.Accountant], ids=lambda kind: kind.__name__)
def test_each_query_mechanism_miner_and_accountant_has_a_name_of_its_own(kind: type) -> None:
    """Plans and ledgers tell code apart by it."""
    named: dict[str, list[str]] = {}
    for package in (dpframework, *map(importlib.import_module, signatures.PLUGINS)):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for one in vars(importlib.import_module(found.name)).values():
                if (
                    inspect.isclass(one)
                    and issubclass(one, kind)
                    and one.__module__ == found.name
                    and "name" in vars(one)
                ):
                    named.setdefault(str(one.name), []).append(f"{one.__module__}.{one.__qualname__}")
    assert len(named) > 3
    assert {name: classes for name, classes in named.items() if len(classes) > 1} == {}
