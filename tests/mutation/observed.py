"""Which tests run which line, and how long each takes: what decides the tests that a mutant is shown to.

Measured once on the code without a mutant, by coverage's dynamic contexts. A mutant is then shown only to the tests
that run its line, the quick ones first. What numba compiles nobody sees running: it is shown to all tests.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
import re
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import attrs
import pytest
from coverage import CoverageData
from mutants import Mutant

LONGEST = 120.0  # seconds of tests that one mutant is shown to; what comes later would hardly kill it
OVERHEAD = 0.02  # seconds of a test beside its own
UNNAMED = 0.02  # how near a test is that names nothing: it may fail, too
LISTED = "tests/project/test_signatures.py"  # compares parameters, defaults and constants with lists
PATIENCE = 30.0  # seconds, with pytest's start, that tests may take beyond several times their own


@attrs.frozen
class Observed:
    """The tests of each line of each module, as pytest's node ids, and the seconds of each test."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    @classmethod
    def measure(cls, modules: list[str], tests: list[str]) -> Observed:
        """Run tests in the current folder, once, and see which lines each runs."""
        Path(".coveragerc").write_text("[run]\nbranch = false\n[report]\n", encoding="utf-8")
        options = ["-q", "--no-header", "-p", "no:cacheprovider", "-n", "0", "-m", ""]  # slow tests, too
        options += ["--dist=no"]  # else no test has a context
        options += ["--cov-context=test", "--cov-report="]
        folders = sorted({str(Path(module).parent) for module in modules})
        timed = Timed()
        pytest.main([*options, *(f"--cov={folder}" for folder in folders), *tests], plugins=[timed])
        if timed.failed:
            print(f"left out, since they fail without a mutant: {', '.join(sorted(timed.failed))}")
        data = CoverageData(".coverage")
        data.read()
        measured = {str(Path(name).relative_to(Path.cwd())): name for name in data.measured_files()}
        lines = {
            module: {
                line: sorted(
                    {context.removesuffix("|run") for context in contexts if context.endswith("|run")} - timed.failed
                )
                for line, contexts in data.contexts_by_lineno(measured[module]).items()
            }
            for module in modules
            if module in measured
        }
        if not any(tests for known in lines.values() for tests in known.values()):
            raise RuntimeError("coverage told no test from another: no line is known to be run by any")
        return cls(lines, {test: time for test, time in timed.seconds.items() if test not in timed.failed})

    def of(self, modules: list[str]) -> Observed:
        """Return what is known of some of the modules."""
        return Observed({module: self.tests[module] for module in modules if module in self.tests}, self.seconds)

    def tests_of(self, module: str, line: int) -> list[str]:
        """Return the tests that run the statement of a line, the quickest first.

        What runs when the module is imported, such as a constant, is run by every test of the module.
        """
        known = {} if is_compiled(module) else self.tests.get(module, {})
        first, last = _statement(Path(module).read_text(encoding="utf-8"), line)
        within = {test for number in range(first, last + 1) for test in known.get(number, [])}
        return self._shortest(sorted(within or {t for tests in known.values() for t in tests} or self.seconds))

    def limit(self, tests: list[str]) -> float:
        """Return the seconds that tests may take: several times what they took, and the start of pytest."""
        return PATIENCE + 3 * sum(self.seconds.get(test, 1.0) for test in tests)

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


@attrs.frozen
class Near:
    """How near tests are to a mutant, by the names of the definitions that enclose its line, and that of its module.

    Words of the innermost definition count, too, a tenth as much: tests of commands name no function, but what it says.
    A word counts the more, the fewer files of tests have it.
    """

    words: dict[str, float]

    @classmethod
    def to(cls, mutant: Mutant) -> Near:
        """Return it for a mutant."""
        module = Path(mutant.module)
        source = module.read_text(encoding="utf-8")
        named = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.ClassDef))
        around = [node for node in named if node.lineno <= mutant.line <= (node.end_lineno or 0)]
        inside = "\n".join(source.splitlines()[around[-1].lineno - 1 : around[-1].end_lineno]) if around else ""
        words = dict.fromkeys((*_words(inside), *module.stem.split("_")), 0.1)
        words |= dict.fromkeys((*(node.name for node in around), module.stem), 1.0)
        return cls({word: weight / _files_with(word) for word, weight in words.items() if _files_with(word)})

    def of(self, text: str) -> float:
        """Return how near a text is, from 0 on."""
        return sum(self.words.get(word, 0.0) for word in _words(text))


@functools.cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w{3,}", text))


def likely_first(tests: list[str], mutant: Mutant) -> list[str]:
    """Return files of tests, first those that are nearest to a mutant, and of these those that import its module.

    To those of a target come the files that are about its module, as its room's tests are and those that import it, and
    name it. A folder is doctests: of its modules the mutant's own comes first. Before all of them comes the list of
    parameters, defaults and constants, if it is one of those that changes.
    """
    module, near = Path(mutant.module), Near.to(mutant)
    imports = _importing(module)

    def nearness(test: str) -> float:
        file = Path(test.partition("::")[0])
        return near.of(text := _text(file)) + bool(imports.search(text)) if file.is_file() else -1.0

    listed = {test.partition("::")[0] for test in tests}
    more = [test for test in about(module) if test not in listed and nearness(test) > 0]
    files = sorted([*tests, *more], key=nearness, reverse=True)
    if module.parent.as_posix() in tests:
        files.insert(0, mutant.module)
    if LISTED in files and not _is_in_body(mutant):
        files.remove(LISTED)
        files.insert(0, LISTED)
    return files


def _is_in_body(mutant: Mutant) -> bool:
    """Tell whether a mutant changes what a function does, and not its head, a field or a constant."""
    tree = ast.parse(Path(mutant.module).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return any(node.body[0].lineno <= mutant.line <= (node.end_lineno or 0) for node in functions)


def about(module: Path) -> list[str]:
    """Return the files of tests of a module's room, and those that import it, without the audits of whole miners."""
    plugin = Path(*module.parts[:2]) / "tests" if module.parts[0] == "plugins" else None
    folder, imports = plugin or Path("tests", module.parts[1]), _importing(module)
    found = [file for file in _test_files() if file.parent == folder or imports.search(_text(file))]
    return [file.as_posix() for file in found if file.name != "test_conformance.py"]


def _importing(module: Path) -> re.Pattern[str]:
    dotted = ".".join(module.with_suffix("").parts[3 if module.parts[0] == "plugins" else 0 :])
    return re.compile(rf"(from|import) {re.escape(dotted)}\b")


@functools.cache
def _test_files() -> list[Path]:
    folders = [Path("tests"), *sorted(Path("plugins").glob("*/tests"))]
    return [file for folder in folders for file in sorted(folder.rglob("test_*.py"))]


def _files_with(word: str) -> int:
    return _numbers()[word]


@functools.cache
def _numbers() -> Counter[str]:
    return Counter(word for file in _test_files() for word in _words(_text(file)))


@functools.cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


class NearestFirst:
    """What pytest runs first: quick tests, and those whose code names what is changed, which may take longer.

    That is the order in which the test that fails comes soonest, if tests are as likely to fail as they are near. What
    nobody has timed yet takes a second, and ten if it is slow.
    """

    def __init__(self, near: Near, seconds: dict[str, float]) -> None:
        self.near = near
        self.seconds = seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        met: Counter[str] = Counter()
        keys = {}
        for item in items:
            test = item.nodeid.partition("[")[0]
            known = self.seconds.get(item.nodeid, 10.0 if item.get_closest_marker("slow") else 1.0)
            # another case of a test tells less that is new
            keys[item] = (known + OVERHEAD) * (1 + met[test]) ** 0.5 / (UNNAMED + self.near.of(_code(item)))
            met[test] += 1
        items.sort(key=keys.__getitem__)


def _code(item: pytest.Item) -> str:
    try:
        return inspect.getsource(getattr(item, "function", None) or object)
    except (OSError, TypeError):  # a doctest, for one
        return item.name


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


class Timed:
    """What pytest tells of each test: the seconds of the processor that it takes, and whether it fails.

    The one that is running stands in a file, for whoever sees tests end before their time, and the seconds of each that
    is over in another.
    """

    def __init__(self, running: Path = Path(os.devnull), over: Path = Path(os.devnull)) -> None:
        self.running = running
        self.over = over
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.running.write_text(item.nodeid, encoding="utf-8")
        start = sum(os.times()[:4])
        result = yield
        self.seconds[item.nodeid] = sum(os.times()[:4]) - start
        with self.over.open("a", encoding="utf-8") as file:
            file.write(json.dumps([item.nodeid, self.seconds[item.nodeid]]) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
