"""Templates that were compiled before: used if nothing changed that they depend on, and done without if damaged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from dpframework.reports.compiled_page_templates import CompiledTemplates


def rendered(folder: Path, source: str, *, compiles: list[str]) -> str:
    """Return a template as a process of its own would show it, which notes what it compiles."""

    class Noting(Environment):
        def _generate(self, source, name, filename, defer_init=False):
            compiles.append(str(name))
            return super()._generate(source, name, filename, defer_init)

    cache = CompiledTemplates()
    cache.folder = folder
    return Noting(loader=DictLoader({"page": source}), bytecode_cache=cache).get_template("page").render(name="x")


def test_a_template_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # which PYTHONDONTWRITEBYTECODE sets
    compiles: list[str] = []
    folder = tmp_path / "compiled"
    for source in ("A {{ name }}", "A {{ name }}", "B {{ name }}", "B {{ name }}", "A {{ name }}"):
        assert rendered(folder, source, compiles=compiles) == source.replace("{{ name }}", "x")
    assert compiles == ["page"] * 3
    (kept,) = folder.iterdir()  # older ones are replaced, and no part is left
    for damaged in (b"", b"j2", kept.read_bytes()[:-9], b"j2" + bytes(99)):
        kept.write_bytes(damaged)
        assert rendered(folder, "A {{ name }}", compiles=compiles) == "A x"
    assert compiles == ["page"] * 7


def test_nothing_is_kept_where_nothing_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiles: list[str] = []
    (tmp_path / "file").write_text("")
    assert rendered(tmp_path / "file", "A {{ name }}", compiles=compiles) == "A x"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(tmp_path / "none", "A {{ name }}", compiles=compiles) == "A x"
    assert not (tmp_path / "none").exists()
    assert compiles == ["page"] * 2
