"""Nothing that is read runs: the source holds no reader of pickles, no import by a name, and one reader of JSON.

Each exception stands in a list with its reason. Whoever adds a call that may run code of a file has to add it there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("dpframework", "docs", *(f"plugins/{one.name}/src" for one in (ROOT / "plugins").iterdir()))
    for path in (ROOT / folder).rglob("*.py")
)

#: Modules that make objects of what they read, or import by a name.
MODULES = {
    *("pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "copyreg"),
    *("yaml", "ruamel", "runpy", "imp", "zipimport", "code", "codeop", "jsonpickle"),
    *("importlib", "importlib.util", "importlib.machinery", "pkgutil", "pydoc"),
}
#: Functions and methods that do, whatever they are called on.
CALLS = {
    *("eval", "exec", "compile", "__import__", "import_module", "exec_module", "load_module"),
    *("read_pickle", "to_pickle", "load_dataset_builder", "run_path", "run_module"),
    *("entry_points", "EntryPoint", "execfile"),
}
#: Options that do.
OPTIONS = {"allow_pickle"}
#: What reads JSON otherwise than `facts.json_reader_and_schema_check`.
JSON = {"json.load", "json.loads", "orjson.loads", "ujson.loads"}

_OTHER_PROCESS = "dpframework/verify/queries/answers_in_other_process.py"
#: What may be there, and why.
ALLOWED = {
    ("dpframework/facts/json_reader_and_schema_check.py", "json.loads"): "the one reader",
    (
        "dpframework/facts/installed_package_digests.py",
        "entry_points",
    ): "plugins: trusted; their names and code's digest",
    ("dpframework/lab/experiment/job_list.py", "entry_points"): "versions of installed plugins",
    ("dpframework/cli/skeleton/__init__.py", "entry_points"): "names that are taken",
    ("dpframework/cli/skeleton/__init__.py", "import importlib.util"): "names that are taken: found, not imported",
    ("dpframework/cli/proof_commands.py", "import importlib"): "a module that the user names on the command line",
    ("dpframework/cli/proof_commands.py", "import_module"): "a module that the user names on the command line",
    ("dpframework/formulas/solvers.py", "import importlib.util"): "whether the solvers are installed",
    ("dpframework/formulas/formula_compiler.py", "compile"): "a kernel from a formula in memory; its file is not read",
    ("dpframework/formulas/formula_compiler.py", "exec"): "a kernel from a formula in memory; its file is not read",
    # Messages between the processes of one run, not files.
    ("dpframework/tables/cluster_table.py", "import cloudpickle"): "messages to workers",
    ("dpframework/tables/cluster_worker.py", "import cloudpickle"): "messages to workers",
    ("dpframework/tables/dask_unpickle_filter.py", "import pickle"): "the base of a reader of three classes",
    ("dpframework/tables/cluster_worker.py", "__import__"): "packages that the client has, on a worker",
    ("dpframework/lab/experiment/runner.py", "import joblib"): "processes; it reads no file",
    ("dpframework/lab/experiment/runner.py", "import importlib.util"): "whether matplotlib is installed",
    # The kit tests that objects survive a copy; what it reads it has just written, in memory.
    ("dpframework/verify/conformance_suites.py", "import pickle"): "a copy in memory",
    ("dpframework/verify/miners/hidden_state.py", "import pickle"): "a copy in memory",
    ("dpframework/verify/tables/leak_conformance.py", "import pickle"): "a copy in memory",
    ("dpframework/verify/accountants/accountant_total_check.py", "import pickle"): "a copy in memory",
    # A process that the kit starts, and what they tell each other: queries of this process, and their answers.
    (_OTHER_PROCESS, "import pickle"): "messages to and from a process of the kit's",
    (_OTHER_PROCESS, "import importlib"): "modules that this process has imported",
    (_OTHER_PROCESS, "import importlib.util"): "modules that this process has imported",
    (_OTHER_PROCESS, "import_module"): "modules that this process has imported",
    (_OTHER_PROCESS, "exec_module"): "modules that this process has imported",
    ("dpframework/lab/run_cost_forecast.py", "import pickle"): "a study of this process, to one that it starts",
    # Names that stand in the source itself.
    ("dpframework/cli/__init__.py", "import importlib"): "its own modules, when first used",
    ("dpframework/cli/__init__.py", "import_module"): "its own modules, when first used",
    ("dpframework/study/built_in_components.py", "EntryPoint"): "its own miners",
    ("dpframework/tables/built_in_engines.py", "EntryPoint"): "its own engine",
    ("plugins/distance/src/dpframework_distance/hooks.py", "EntryPoint"): "its own miners",
    ("plugins/greedy/src/dpframework_greedy/hooks.py", "EntryPoint"): "its own miners",
    ("plugins/tables/src/dpframework_tables/hooks.py", "EntryPoint"): "its own miners",
    ("plugins/trees/src/dpframework_trees/hooks.py", "EntryPoint"): "its own miners",
    ("docs/extensions/gallery.py", "exec"): "lines of the page that stand in this file",
    ("docs/extensions/gallery.py", "eval"): "lines of the page that stand in this file",
    ("docs/extensions/public_names.py", "import importlib"): "the packages that the site documents",
    ("docs/extensions/public_names.py", "import pkgutil"): "the packages that the site documents",
    ("docs/extensions/public_names.py", "import_module"): "the packages that the site documents",
    # An experiment file is a program of its author's, and says so.
    ("dpframework/lab/experiment/user_functions.py", "import importlib"): "code that an experiment names",
    ("dpframework/lab/experiment/user_functions.py", "import importlib.util"): "code that an experiment names",
    ("dpframework/lab/experiment/user_functions.py", "import_module"): "code that an experiment names",
    ("dpframework/lab/experiment/user_functions.py", "exec_module"): "code that an experiment names",
    ("dpframework/lab/evaluation/experiment_measures.py", "import importlib"): "baselines that an experiment names",
    ("dpframework/lab/evaluation/experiment_measures.py", "import_module"): "baselines that an experiment names",
}


def found_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what a source holds that may run what it reads, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for name in names:
                    if name.name in MODULES:
                        yield node.lineno, f"import {name.name}"
            case ast.ImportFrom(module=str(module), names=names, level=0):
                if module in MODULES - {"importlib"}:
                    yield node.lineno, f"import {module}"
                for name in names:
                    if f"{module}.{name.name}" in MODULES | {"importlib.import_module"}:
                        yield node.lineno, f"import {module}.{name.name}"
                    if f"{module}.{name.name}" in JSON:
                        yield node.lineno, f"{module}.{name.name}"
            case ast.Call(func=function, keywords=keywords):
                text = ast.unparse(function)
                if text in JSON:
                    yield node.lineno, text
                elif text.rpartition(".")[2] in CALLS and not text.startswith(("re.", "fastjsonschema.")):
                    yield node.lineno, text.rpartition(".")[2]
                for keyword in keywords:
                    if keyword.arg in OPTIONS:
                        yield node.lineno, keyword.arg


def found(path: Path) -> list[tuple[int, str]]:
    return list(found_in(ast.parse(path.read_text(encoding="utf-8"))))


def test_nothing_in_the_source_runs_what_it_reads() -> None:
    assert len(SOURCES) > 300
    names = {path: path.relative_to(ROOT).as_posix() for path in SOURCES}
    held = {(names[path], what): line for path in SOURCES for line, what in found(path)}
    unknown = {f"{file}:{held[file, what]}: {what}" for file, what in held if (file, what) not in ALLOWED}
    assert not unknown, (
        "read files with dpframework.facts.json_reader_and_schema_check, and look names up in a table of known ones"
    )
    assert not set(ALLOWED) - set(held), "an exception that nothing needs any more"


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.externals, cloudpickle",
        "from importlib import util",
        "from importlib import import_module\nimport_module(name)",
        "importlib.import_module(name)",
        "__import__(name)",
        "eval(text)",
        "builtins.exec(text)",
        "np.load(file, allow_pickle=True)",
        "pandas.read_pickle(path)",
        "json.loads(text)",
        "from json import load",
        "metadata.entry_points(group='x')",
    ],
)
def test_what_runs_what_it_reads_is_found(text: str) -> None:
    assert list(found_in(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["import json\njson.dumps(1)", "re.compile('a')", "from importlib.metadata import version"]
)
def test_other_calls_are_not(text: str) -> None:
    assert not list(found_in(ast.parse(text)))
