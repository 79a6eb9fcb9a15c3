"""The first files of a plugin, which `dpframework new` writes and the tutorial explains."""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import re
import string
import sys
from importlib.metadata import distributions, entry_points
from importlib.resources import files
from pathlib import Path
from typing import final

import attrs

from dpframework.facts.errors import InputError
from dpframework.study.plugin_registry import GROUP, registry

LONGEST = 40  # the most characters of a name, so that no line of the files becomes too long
_PREFIX = "dpframework-"
_FOLDERS = frozenset({"src", "tests", "example"})  # the folders of every plugin; its package needs another name
_USED = frozenset(
    {*dir(builtins), "Mapping", "Example", "MinerConformance", "TestConformance"}
)  # names that Python has, and that the modules of every plugin use
_ROWS = "colour\n" + "green\n" * 300 + "red\n" * 20


@final
@attrs.frozen
class Names:
    """The names of a plugin and its parts.

    Attributes
    ----------
    distribution
        The plugin's name for pip, which is also the name of its folder.
    package
        The name of the package that Python imports.
    miner
        The name of the miner in study files, which is also dpframework's name of the plugin.
    class_name
        The name of the miner's class.
    """

    distribution: str
    package: str
    miner: str
    class_name: str

    @classmethod
    def of(cls, distribution: str) -> Names:
        """Derive all names from the name of the distribution.

        Raises
        ------
        InputError
            If this name cannot name a distribution, is too long, or gives a name that Python cannot use.

        Examples
        --------
        >>> Names.of("dpframework-noisy-mode")
        Names(distribution='dpframework-noisy-mode', package='dpframework_noisy_mode', miner='noisy-mode',
              class_name='NoisyMode')
        """
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", distribution):
            raise InputError(
                f"{distribution!r} cannot name a plugin; letters, digits and, between these, - _ . are accepted"
            )
        if len(distribution) > LONGEST:
            raise InputError(f"the name '{distribution}' is longer than {LONGEST} characters; give a shorter one")
        dashed = re.sub(r"[-_.]+", "-", distribution).lower()
        package, miner = dashed.replace("-", "_"), dashed.removeprefix(_PREFIX)
        class_name = "".join(part.capitalize() for part in miner.split("-"))
        for name in (package, class_name):
            if not name.isidentifier():
                raise InputError(f"the name '{distribution}' gives '{name}', which begins with a digit; use a letter")
        if keyword.iskeyword(package):
            raise InputError(f"the name '{distribution}' is a keyword of Python; give another one")
        if class_name in _USED:
            class_name += "Miner"
        return cls(distribution, package, miner, class_name)

    def require_free(self) -> None:
        """Refuse names that an installed package, plugin or miner has, or a folder of every plugin.

        Raises
        ------
        InputError
            If the package would hide another package, or has the name of a folder in every plugin. Also if another
            plugin or miner has the same name.
        """
        if self.package in sys.stdlib_module_names:
            raise InputError(f"the name '{self.distribution}' would hide Python's own module '{self.package}'")
        if self.package in _FOLDERS:
            raise InputError(f"every plugin has a folder named '{self.distribution}'; give another name")
        known = {re.sub(r"[-_.]+", "_", found.name).lower() for found in distributions() if found.name}
        try:
            found = importlib.util.find_spec(self.package)
            importable = found is not None and found.origin is not None  # a folder without code has no origin
        except (ImportError, ValueError):  # a loaded module may have no specification
            importable = True
        if importable or self.package in known:
            raise InputError(
                f"the name '{self.distribution}' would hide the installed package '{self.package}'; give another one"
            )
        if self.miner in registry().miners:
            raise InputError(f"a miner named '{self.miner}' is installed already; give another name")
        if self.miner in entry_points(group=GROUP).names:
            raise InputError(f"a plugin named '{self.miner}' is installed already; give another name")


def skeleton(names: Names) -> dict[str, str]:
    """Return the text of each file of a new plugin, by its path."""
    module = names.miner.replace("-", "_")
    values = {**attrs.asdict(names), "module": module}
    return {
        "pyproject.toml": _fill_template("pyproject.toml", values),
        "README.md": _fill_template("README.md", values),
        f"src/{names.package}/__init__.py": _fill_template("miner.py", values),
        f"src/{names.package}/py.typed": "",
        f"tests/test_{module}.py": _fill_template("test_miner.py", values),
        "example/study.toml": _fill_template("study.toml", values),
        "example/colours.schema.toml": _fill_template("colours.schema.toml", values),
        "example/colours.csv": _ROWS,
    }


def _fill_template(template: str, values: dict[str, str]) -> str:
    # Templates are kept as .txt, so that no tool mistakes them for code.
    text = (files(__name__) / "files" / f"{template}.txt").read_text(encoding="utf-8")
    return string.Template(text).substitute(values)


def write_skeleton(names: Names, folder: Path) -> None:
    """Write the files of a new plugin into an empty folder."""
    for path, text in skeleton(names).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
