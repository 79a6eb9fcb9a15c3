r"""The rules at the edge, exactly at their limits: what a text shows, and what JSON, TOML, paths and owners may be."""

from __future__ import annotations

import os
import re
from pathlib import Path
from stat import S_IFREG
from types import SimpleNamespace

import pytest

import dpframework as dpf
from dpframework.facts import control_character_escapes as shown, output_overwrite_rule
from dpframework.facts.errors import NotOpened
from dpframework.facts.input_limits import MOST_KEY_PARTS, MOST_NESTED, MOST_NESTED_JSON, MOST_TOML_BYTES
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.output_overwrite_rule import IN_OWN_FOLDER, FileKind, require_output
from dpframework.facts.path_containment import inner_path, require_inside, require_relative
from dpframework.facts.toml import (
    expand,
    parse_toml,
    refuse_unknown,
    require_table,
    require_text,
    resolve_path,
    toml_lines,
)
from dpframework.study.owner_allowed_data_places import VARIABLE, owner_places


def test_a_number_of_a_character_is_written_as_python_writes_it() -> None:
    for code in (0, 8, 9, 10, 11, 12, 13, 14, 0x7F, 0xFF, 0x100, 0xFFFF, 0x10000, 0x10FFFF):
        found = re.match(".", chr(code), re.DOTALL)
        assert found is not None
        assert shown._number(found) == chr(code).encode("unicode_escape").decode()
    everything = "".join(map(chr, range(0x110000)))
    escaped = "".join(
        c if shown.is_printable(c) else c.encode("unicode_escape").decode() for c in map(chr, range(0x300))
    )
    assert shown.printable(everything[:0x300]) == escaped
    assert shown.printable_lines(everything[:0x300]) == escaped.replace(r"\n", "\n")
    assert shown.is_printable(shown.printable(everything))
    assert shown.printable(shown.printable(everything)) == shown.printable(everything)


def test_json_is_read_to_its_depth_and_the_first_key_that_comes_again_is_named() -> None:
    deepest = MOST_NESTED_JSON + 1  # the outer one, and so many within it
    assert parsed_json("[" * deepest + "]" * deepest) != []
    with pytest.raises(dpf.InputError, match="is nested deeper"):
        parsed_json("[" * (deepest + 1) + "]" * (deepest + 1))
    assert parsed_json('{"a": 1, "b": {"a": 2}, "c": -1.5e300}') == {"a": 1, "b": {"a": 2}, "c": -1.5e300}
    for text, says in (
        ('{"a": 1, "b": 1, "c": 1, "b": 1, "a": 1}', "^names the key 'b' twice in one object$"),
        ('{"a": 1, "a": 1}', "^names the key 'a' twice in one object$"),
        ("[1e309]", "^has the number 1e309, which is too large$"),
        ("[-1e309]", "^has the number -1e309, which is too large$"),
        ("NaN", "^holds NaN, which is not JSON$"),
        ("[", "^is not JSON$"),
        ("[" + "9" * 5000 + "]", "^has a huge number$"),
    ):
        with pytest.raises(dpf.InputError, match=says):
            parsed_json(text)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a\x07", "cannot be printed"),
        ("a://b", "names no host"),
        ("a$b", "no variable expands"),
        ("~a", "no variable expands"),
        ("/a", "absolute path"),
        ("\\a", "absolute path"),  # of one system only
        ("C:a", "absolute path"),  # a drive and no root
        ("a/../b", r"leaves its folder through '\.\.'"),
        ("a\\..\\b", r"leaves its folder through '\.\.'"),
    ],
)
def test_a_path_that_may_lead_out_on_any_system_is_refused(path: str, says: str) -> None:
    with pytest.raises(dpf.InputError, match=f"^here is .*{says}"):
        require_relative(path, "here")


def test_a_path_that_leads_nowhere_out_is_its_folder_s(tmp_path: Path) -> None:
    for path in ("a", "a/b.csv", "..a/b..", "a~", "é"):
        assert inner_path(path, tmp_path, "here") == tmp_path / path
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "out").symlink_to(tmp_path / "elsewhere")
    require_inside(tmp_path / "in" / "new", tmp_path / "in")
    with pytest.raises(NotOpened, match="leaves the folder"):
        require_inside(tmp_path / "in" / "out", tmp_path / "in")


def test_toml_is_read_to_its_limits() -> None:
    def key(parts: int) -> str:
        return ".".join(["a"] * parts) + " = 1\n"

    assert parse_toml("#" * MOST_TOML_BYTES) == {}
    with pytest.raises(dpf.InputError, match=f"^is larger than the {MOST_TOML_BYTES / 2**20:g} MiB"):
        parse_toml("#" * (MOST_TOML_BYTES + 1))
    many = MOST_KEY_PARTS + 1  # and so MOST_KEY_PARTS dots
    for text in (key(many), f"x = 1\n{key(many)}", f'"b" = "c" # d\n{key(many)}y = 2\n'):
        with pytest.raises(dpf.InputError, match=f"^has a key of more than {MOST_KEY_PARTS} parts"):
            parse_toml(text)
    dots = "." * (2 * MOST_KEY_PARTS)
    assert parse_toml(f'x = "{dots}" # {dots}\n') == {"x": dots}
    assert parse_toml("x = " + "[" * MOST_NESTED + "]" * MOST_NESTED) != {}
    with pytest.raises(dpf.InputError, match="nested deeper"):
        parse_toml("x = " + "[" * (MOST_NESTED + 1) + "]" * (MOST_NESTED + 1))


def test_what_is_written_as_toml_is_read_again_and_shows_every_character() -> None:
    form = {"a": True, "b": False, "c": [1, "x", [2.5]], "d": 'é\x7f\u200b\U000e0001\U0001f600"\\\n\t'}
    lines = toml_lines(form)
    assert parse_toml(lines) == form
    assert lines.splitlines()[:3] == ["a = true", "b = false", 'c = [1, "x", [2.5]]']
    assert lines.splitlines()[3] == r'd = "é\u007f\u200b\U000e0001😀\"\\\n\t"'
    for code, written in ((0xFFF0, r"\ufff0"), (0xFFFF, r"\uffff"), (0x13430, r"\U00013430"), (0xE0FFF, r"\U000e0fff")):
        assert toml_lines({"a": chr(code)}) == f'a = "{written}"\n'


def test_variables_are_replaced_or_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPF_SOME", "x")
    monkeypatch.delenv("DPF_NONE", raising=False)
    assert expand("a $DPF_SOME ${DPF_SOME} 5$") == "a x x 5$"
    for text in ("$DPF_NONE", "a${DPF_NONE}b"):
        with pytest.raises(dpf.InputError, match=r"^a text uses the environment variable DPF_NONE, which is not set$"):
            expand(text)
    assert resolve_path("$DPF_SOME/y", tmp_path) == tmp_path / "x" / "y"
    assert resolve_path("~/y", tmp_path) == Path.home() / "y"
    with pytest.raises(dpf.InputError, match="NUL"):
        resolve_path("a\0", tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="files have no owners here")
def test_the_owner_s_file_is_the_owner_s_or_root_s_and_only_they_write_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "places.toml"
    file.write_text("[data]\n")
    monkeypatch.setenv(VARIABLE, str(file))
    monkeypatch.setattr(os, "getuid", lambda: 5)
    real = Path.stat

    def allowed(user: int, mode: int) -> bool:
        found = SimpleNamespace(st_uid=user, st_mode=S_IFREG | mode, st_size=7)

        def stat(self: Path, **given: bool) -> object:
            return found if self == file else real(self, **given)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "stat", stat)
            try:
                return owner_places().source == file
            except dpf.InputError as error:
                return "others can write this file" not in str(error)

    assert [user for user in range(8) if allowed(user, 0o644)] == [0, 5]
    assert [bit for bit in range(9) if not allowed(5, 1 << bit)] == [1, 4]  # others and the group may write


def test_what_may_be_replaced_is_of_its_kind_and_of_its_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(output_overwrite_rule, "MOST_JSON_BYTES", 8)
    kind, file = FileKind.of_beginning("a list", "ab"), tmp_path / "out"

    def refused(found: bytes | None, given: FileKind | None = kind) -> str:
        file.unlink(missing_ok=True)
        if found is not None:
            file.write_bytes(found)
        try:
            require_output(file, given)
        except dpf.InputError as error:
            return str(error).removeprefix(f"{file}: ")
        return ""

    assert refused(None) == refused(None, None) == refused(b"ab") == refused(b"ab345678") == ""
    assert refused(b"b") == refused(b"") == refused(b"ab3456789")
    assert refused(b"b").startswith("exists already, and is not a list that dpframework wrote, so it is not replaced;")
    assert refused(b"ab", None).startswith("exists already, and is never replaced")
    assert refused(b"0123456789", IN_OWN_FOLDER) == ""
    assert IN_OWN_FOLDER.holds(b"")
    assert FileKind.of_pattern("a line", r"^\{x}").holds(b"{x} y")
    assert not FileKind.of_pattern("a line", r"^\{x}").holds(b"\n{x} y")
    asked: list[int] = []
    monkeypatch.setattr(os, "access", lambda path, mode: bool(asked.append(mode)))
    assert refused(None).startswith("cannot be written: its folder takes no new files")
    assert asked == [os.W_OK | os.X_OK]
    for path, says in ((tmp_path / "none" / "x", "its folder does not exist"), (tmp_path, "it is a folder")):
        with pytest.raises(dpf.InputError, match=says):
            require_output(path, kind)
    with pytest.raises(dpf.InputError, match=r"cannot be written: it is no path$"):
        require_output(Path("a\0b"), kind)
    with pytest.raises(dpf.InputError, match=r"cannot be written: Not a directory$"):
        require_output(Path(__file__) / "x", kind)
    file.symlink_to(tmp_path / "none")
    with pytest.raises(dpf.InputError, match="is a symbolic link"):
        require_output(file, IN_OWN_FOLDER)


def test_keys_of_toml_are_there_and_of_their_type() -> None:
    form = {"table": {"a": 1}, "text": " x ", "blank": " ", "number": 1}
    assert require_table(form, "table") == {"a": 1}
    assert require_text(form, "text", "here: ") == " x "
    for key, says in (("none", r"^has no \[none\] table$"), ("text", r"written as \[text\], not a text$")):
        with pytest.raises(dpf.InputError, match=says):
            require_table(form, key)
    for key, says in (
        ("none", "has no 'none'$"),
        ("number", "number must be a text, not a number$"),
        ("blank", "blank must not be blank$"),
    ):
        with pytest.raises(dpf.InputError, match=f"^here: {says}"):
            require_text(form, key, "here: ")
    refuse_unknown(form, form, "an unknown key")
    with pytest.raises(dpf.InputError, match=r"^an unknown key 'text'; "):
        refuse_unknown(form, ("table", "blank", "number"), "an unknown key")
