"""What is changed, what must notice it, and what need not be noticed: a file a target, in the folder `targets`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import attrs
from mutants import LeftOut, Mutant, mutants
from survivors import ROOT, Survivor

HERE = Path(__file__).resolve().parent
OF_ALL = [  # tests that look at every module: parameters and defaults, claims, fields that are shown, and help texts
    "tests/project/test_signatures.py",
    "tests/plan/test_claim_standing.py",
    "tests/security/test_shown_fields.py",
    "tests/project/test_page_facts.py",
]


@attrs.frozen
class Target:
    """Modules that privacy rests on.

    Attributes
    ----------
    modules
        Patterns of paths.
    tests
        Where the tests are that must notice a change: files, folders, or tests of files. Those of all modules come to
        them, and the modules' own examples.
    left_out
        Definitions that are not changed, since any other would do as well.
    survivors
        Mutants that live, and may.
    """

    name: str
    modules: list[str]
    tests: list[str]
    left_out: list[LeftOut]
    survivors: list[Survivor]

    @classmethod
    def read(cls, file: Path) -> Target:
        """Read what a file says."""
        said = tomllib.loads(file.read_text(encoding="utf-8"))
        left_out = [LeftOut(**entry) for entry in said.get("left_out", [])]
        survivors = [Survivor(**each) for each in said.get("survivor", [])]
        target = cls(file.stem, said["modules"], [*said["tests"], *OF_ALL], left_out, survivors)
        listed = {*target.tests, *(path for path in target.paths() if str(Path(path).parent) in target.tests)}
        examples = [path for path in target.paths() if path not in listed and ">>>" in (ROOT / path).read_text()]
        return attrs.evolve(target, tests=[*target.tests, *examples])

    def only(self, names: list[str]) -> Target:
        """Return it with those of its modules alone that are named, or all if it is named itself or nothing is."""
        if not names or self.name in names:
            return self
        return attrs.evolve(self, modules=[path for path in self.paths() if path in names])

    def paths(self) -> list[str]:
        """Return the paths of all its modules."""
        return sorted({path.relative_to(ROOT).as_posix() for glob in self.modules for path in ROOT.glob(glob)})

    def mutants(self) -> list[Mutant]:
        """Return the mutants of all its modules."""
        return [mutant for path in self.paths() for mutant in mutants(ROOT, path, self.left_out)]


def targets() -> list[Target]:
    """Return all targets."""
    return [Target.read(file) for file in sorted((HERE / "targets").glob("*.toml"))]
