"""The documentation: a page for each check and hook, and examples that do what the page says.

Fenced blocks are marked by their info string:

- ``python run``: is executed, the blocks of a page one after another in one namespace and an empty folder;
- ``toml file=NAME``: is written to that file, in that folder;
- ``python from=PATH``, ``toml from=PATH``: is quoted from that file of the project;
- ``sh run``: is executed there, with `dpframework` as a command; any failure is one;
- ``python plugin``: is loaded as a plugin, without problems (hook pages);
- ``python faulty-plugin``: is loaded as a plugin, and reported (hook pages);
- ``output``: what the block before it prints, or what is reported of it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import attrs
import pytest
from warm import warm_commands

import dpframework as dpf
from dpframework.checks import BUILT_IN
from dpframework.study import hookspecs
from dpframework.study.plugin_registry import GROUP, Registry

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHECKS = {check.code: check for check in BUILT_IN}
HOOKS = [name for name in vars(hookspecs) if name.startswith("dpframework_")]
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("checks/*.md"), *DOCS.glob("hooks/*.md"), ROOT / "README.md"])
BLOCK = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)  # within a list it is indented


@attrs.frozen
class Block:
    """A fenced block, with the output block that follows it, if any."""

    kind: str
    text: str
    output: str | None
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    found = [
        (m.group(2).strip(), _without_indent(m.group(3), len(m.group(1))), text.count("\n", 0, m.start()) + 1)
        for m in BLOCK.finditer(text)
    ]
    for (kind, code, line), following in itertools.zip_longest(found, found[1:]):
        yield Block(kind, code, following[1] if following and following[0] == "output" else None, line)


def _without_indent(code: str, columns: int) -> str:
    return re.sub(rf"^ {{1,{columns}}}", "", code, flags=re.MULTILINE) if columns else code


@functools.cache
def command() -> str:
    """Return what runs dpframework in a shell; it is kept warm until the tests end, where a process can fork."""
    if not hasattr(os, "fork"):
        return f'"{sys.executable}" -m dpframework'
    begun = contextlib.ExitStack()
    atexit.register(begun.close)
    return shlex.join(begun.enter_context(warm_commands()))


def printed_by(block: Block, page: Path, namespace: dict[str, object]) -> str | None:
    """Execute a block in the current folder and return what it prints; None if it is not of a kind that prints."""
    if block.kind == "python run":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)
        return printed.getvalue()
    if block.kind == "sh run":
        text = f'dpframework() {{ {command()} "$@"; }}\n{block.text}'
        ran = subprocess.run(["bash", "-euc", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert ran.returncode == 0, ran.stdout
        return ran.stdout
    if block.kind.startswith("toml file="):
        Path(block.kind.removeprefix("toml file=")).write_text(block.text)
    return None


def without_hashes(text: str) -> str:
    """Number the hashes of a text: those of plans change with the code that they bind, but equal ones stay equal."""
    numbers: dict[str, int] = {}
    found = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{12})\b")
    return found.sub(lambda m: f"<hash {numbers.setdefault(m.group()[:12], len(numbers))}>", text)


def executed(page: Path) -> dict[str, object]:
    """Run a page's blocks in the current folder and return the namespace of those in Python."""
    module = types.ModuleType("page")
    for block in blocks(page):
        printed = printed_by(block, page, vars(module))
        if printed is not None and block.output is not None:
            assert without_hashes(printed) == without_hashes(block.output)
    return vars(module)


def registered(block: Block, name: str, monkeypatch) -> Registry:
    """Load a block as the plugin of an entry point."""
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(block.text, name, "exec"), vars(module))
    return Registry([EntryPoint("acme", name, GROUP)])


def codes(plan: dpf.StudyPlan) -> set[str]:
    return {finding.code for finding in plan.check()}


def test_a_tutorial_prints_no_hash_that_its_reader_does_not_get():
    """The hash of a plan changes with the code that it binds: a reader is told how to keep it, and not which it is."""
    for page in DOCS.glob("tutorial-*.md"):
        for block in blocks(page):
            assert block.output is None or without_hashes(block.output) == block.output, f"{page.name}:{block.line}"


def test_every_check_has_its_page_and_every_page_its_check():
    assert sorted(page.stem for page in (DOCS / "checks").glob("*.md")) == sorted(CHECKS)


def test_every_hook_has_its_page_and_every_page_its_hook():
    assert sorted(page.stem for page in (DOCS / "hooks").glob("*.md")) == sorted(HOOKS)


def test_the_list_of_checks_has_each_with_its_title():
    index = (DOCS / "checks.md").read_text(encoding="utf-8")
    assert re.findall(r"\| \[(\w+)\]\(checks/\1\.md\) \| ([^|]+) \|", index) == [
        (code, CHECKS[code].title) for code in sorted(CHECKS)
    ]


@pytest.mark.parametrize("code", CHECKS)
def test_check_page_has_the_code_title_and_parts(code):
    page = (DOCS / "checks" / f"{code}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {code}: {CHECKS[code].title}\n")
    for part in ("**Severity:**", "**What it finds.**", "**Why it matters.**", "**How to fix it.**"):
        assert part in page


@pytest.mark.parametrize("code", CHECKS)
def test_check_page_shows_a_plan_that_triggers_it_and_one_that_does_not(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = executed(DOCS / "checks" / f"{code}.md")
    assert code in codes(page["plan"])
    assert not {finding.code for finding in page["fixed"].refusals()}
    assert code not in codes(page["fixed"])
    severity = next(finding.severity for finding in page["plan"].check() if finding.code == code)
    words = {"error": "error", "warning": "warning", "info": "information"}
    assert f"**Severity:** {words[severity]}" in (DOCS / "checks" / f"{code}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_has_a_one_line_docstring_and_a_page_with_its_parts(hook):
    doc = inspect.getdoc(getattr(hookspecs, hook))
    assert doc
    assert "\n" not in doc
    page = (DOCS / "hooks" / f"{hook}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# Hook `{hook}`\n")
    for part in ("**Returns**", "**Called**", "**If it misbehaves**"):
        assert part in page


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_page_shows_a_plugin_that_works(hook, monkeypatch):
    (working,) = [block for block in blocks(DOCS / "hooks" / f"{hook}.md") if block.kind == "python plugin"]
    registry = registered(working, "acme_plugin", monkeypatch)
    assert registry.checked() == []
    kind = hook.removeprefix("dpframework_")
    brought = getattr(registry, kind)
    if isinstance(brought, dict):
        assert "acme" in {thing.plugin for thing in brought.values()}
    else:
        assert len(brought) > len(getattr(Registry([]), kind))


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_page_says_what_is_reported(hook, monkeypatch):
    faulty = [block for block in blocks(DOCS / "hooks" / f"{hook}.md") if block.kind == "python faulty-plugin"]
    assert faulty
    for k, block in enumerate(faulty):
        problems = registered(block, f"faulty_plugin_{k}", monkeypatch).checked()
        assert "".join(f"{problem}\n" for problem in problems) == block.output


def test_every_check_says_in_one_line_what_it_finds():
    for check in BUILT_IN:
        assert check.title
        assert "\n" not in check.title


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    executed(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_quotations_of_the_page_stand_in_their_files(page):
    for block in blocks(page):
        if block.kind.startswith(("python from=", "toml from=")):
            source = (ROOT / block.kind.partition("from=")[2]).read_text(encoding="utf-8")
            assert block.text in source, f"{page}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_page_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in (*re.findall(r"\]\(([^)#\s]+)", text), *re.findall(r'<img src="([^"]+)"', text)):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_the_page_names_exist(page):
    for path, name in re.findall(r"`((?:tests|plugins)/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8")):
        assert re.search(rf"^(def|class) {name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
            f"{path}::{name}"
        )
