"""Which tests run which line, and how long each takes: what decides the tests that a mutant is shown to.

Measured once on the code without a mutant, by coverage's dynamic contexts. A mutant is then shown only to the tests
that run its line, the quick ones first. What numba compiles nobody sees running: it is shown to all tests.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import attrs
from coverage import CoverageData

LONGEST = 240.0  # seconds of tests that one mutant is shown to; what comes later would hardly kill it


@attrs.frozen
class Observed:
    """The tests of each line of each module, as pytest's node ids, and the seconds of each test."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    @classmethod
    def measure(cls, modules: list[str], tests: list[str], jobs: int) -> Observed:
        """Run tests in the current folder, once, and see which lines each runs."""
        folder = Path(".observed")
        folder.mkdir(exist_ok=True)
        (folder / "coveragerc").write_text("[run]\nbranch = false\n[report]\n", encoding="utf-8")
        junit = folder / "seconds.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-n", str(jobs)]
        command += [f"--cov={folder_of}" for folder_of in sorted({str(Path(module).parent) for module in modules})]
        command += ["--cov-context=test", f"--cov-config={folder}/coveragerc", "--cov-report=", f"--junitxml={junit}"]
        subprocess.run([*command, "-o", "junit_family=xunit1", *tests], stdout=sys.stderr)
        seconds, failed = _seconds(junit)
        if failed:
            print(f"left out, since they fail without a mutant: {', '.join(sorted(failed))}", file=sys.stderr)
        data = CoverageData(".coverage")
        data.read()
        measured = {str(Path(name).relative_to(Path.cwd())): name for name in data.measured_files()}
        lines = {
            module: {
                line: sorted(
                    {context.removesuffix("|run") for context in contexts if context.endswith("|run")} - failed
                )
                for line, contexts in data.contexts_by_lineno(measured[module]).items()
            }
            for module in modules
            if module in measured
        }
        return cls(lines, {test: time for test, time in seconds.items() if test not in failed})

    def tests_of(self, module: str, line: int) -> list[str]:
        """Return the tests that run the statement of a line, the quickest first.

        What runs when the module is imported, such as a constant, is run by every test of the module.
        """
        known = {} if is_compiled(module) else self.tests.get(module, {})
        first, last = _statement(Path(module).read_text(encoding="utf-8"), line)
        within = {test for number in range(first, last + 1) for test in known.get(number, [])}
        return self._shortest(sorted(within or {t for tests in known.values() for t in tests} or self.seconds))

    def limit(self, tests: list[str]) -> float:
        """Return the seconds that tests may take: several times what they took, and the start of Python."""
        return 60 + 4 * sum(self.seconds.get(test, 1.0) for test in tests)

    def _shortest(self, tests: list[str]) -> list[str]:
        total, kept = 0.0, []
        for test in sorted(tests, key=lambda test: self.seconds.get(test, 1.0)):
            total += self.seconds.get(test, 1.0)
            if total > LONGEST and kept:
                break
            kept.append(test)
        return kept

    def write(self, path: Path) -> None:
        """Keep it for the next run."""
        path.write_text(json.dumps(attrs.asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Observed:
        """Read what `write` has written."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        tests = {module: {int(line): ids for line, ids in lines.items()} for module, lines in kept["tests"].items()}
        return cls(tests, kept["seconds"])


def is_compiled(module: str) -> bool:
    """Tell whether numba compiles a module."""
    return "kernels" in Path(module).with_suffix("").parts


def _statement(source: str, line: int) -> tuple[int, int]:
    """Return the first and the last line of the innermost statement at a line, or of the head of a block."""
    found = (line, line)
    for node in ast.walk(ast.parse(source)):  # from the outside in
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if node.lineno <= line <= max(end, node.lineno):
                found = (node.lineno, max(end, node.lineno))
    return found


def _seconds(junit: Path) -> tuple[dict[str, float], set[str]]:
    """Return the seconds of each test that passed, and those that failed."""
    seconds: dict[str, float] = {}
    failed: set[str] = set()
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        file, classname = case.get("file", ""), case.get("classname", "")
        inside = classname.removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
        name = "::".join([file, *([inside.replace(".", "::")] if inside else []), case.get("name", "")])
        seconds[name] = float(case.get("time", 0))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
    return seconds, failed
