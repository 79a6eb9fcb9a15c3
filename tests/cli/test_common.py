"""What all commands share: streams and their width, options and their readers, and how parameters are listed."""

from __future__ import annotations

import enum
import functools
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import typer
from rich.console import Console

import dpframework as dpf
from dpframework.cli import common, list_and_explain_components
from dpframework.cli.command_classes import Command, _read_simply
from dpframework.cli.common import console, on_terminal, plain_table, show_lines
from dpframework.study.plugin_registry import PluginComponent
from dpframework.study.study_file import EngineChoice


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make each test's consoles anew, for streams that are no terminal unless it says so."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    console.cache_clear()
    yield
    console.cache_clear()


@pytest.mark.parametrize("stderr", [False, True])
def test_a_pipe_is_120_wide_and_gets_no_colours(stderr: bool, capsys: pytest.CaptureFixture[str]) -> None:
    found = console(stderr=stderr)
    assert (found.width, found.is_terminal, found.stderr) == (120, False, stderr)
    assert console(stderr=stderr) is found
    assert not on_terminal(stderr=stderr)
    found.print("[bold]12[/] :snake: True 'x'")  # as it is: no markup, no emoji
    assert capsys.readouterr()[stderr] == "[bold]12[/] :snake: True 'x'\n"


@pytest.mark.parametrize("stderr", [False, True])
def test_a_terminal_is_as_wide_as_it_says_and_numbers_are_not_coloured(
    stderr: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    assert on_terminal(stderr=stderr)
    found = console(stderr=stderr)
    assert (found.width, found.is_terminal) == (50, True)
    found.print("12 True 'x'")
    assert capsys.readouterr()[stderr] == "12 True 'x'\n"


@pytest.mark.parametrize(("name", "value"), [("FORCE_COLOR", ""), ("TTY_COMPATIBLE", "0")])
def test_a_stream_that_is_said_to_be_no_terminal_is_none(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert not on_terminal()


def test_an_engine_that_is_named_goes_before_the_study_files() -> None:
    file: Any = SimpleNamespace(engine=EngineChoice("mapped"), source="study.toml")
    assert [type(common.engine_of(file, name)) for name in (None, "mapped", "threads")] == [
        *(dpf.Mapped, dpf.Mapped, dpf.Threads)
    ]
    file.engine = EngineChoice("nowhere")
    with pytest.raises(dpf.InputError, match=r"^study\.toml: .*'nowhere'"):
        common.engine_of(file, None)
    with pytest.raises(dpf.InputError, match=r"^[^:]*'anywhere'"):
        common.engine_of(file, "anywhere")


def test_a_stream_that_is_closed_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not on_terminal()
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(common, "console", lambda *, stderr: SimpleNamespace(is_terminal=stderr))
    assert on_terminal(stderr=True)


def test_a_table_has_no_lines_and_two_blanks_between_columns() -> None:
    table = plain_table("a", "head")
    table.add_row("one", "1")
    table.add_row("three", "2")
    stream = io.StringIO()
    Console(file=stream, width=40).print(table)
    assert stream.getvalue() == "a      head\none    1   \nthree  2   \n"


def test_lines_that_were_made_to_fit_are_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines("a word " * 40 + "end")
    assert capsys.readouterr().out == "a word " * 40 + "end\n"


def test_a_sentence_is_one_line_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    common.say("two\n  words \x1b[2J")
    assert capsys.readouterr() == ("", "two words \\x1b[2J\n")
    monkeypatch.setattr(sys, "stderr", None)
    common.say("nobody hears")
    assert capsys.readouterr().out == ""

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    common.say("nobody reads")


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8", "caf\u00e9"), ("UTF8", "caf\u00e9"), ("ascii", "caf&#233;"), (None, "caf\u00e9")]
)
def test_a_page_is_written_in_the_encoding_of_the_stream(
    encoding: str | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stream(io.StringIO):
        pass

    stream = Stream()
    monkeypatch.setattr(Stream, "encoding", encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    common.print_page("caf\u00e9")
    assert stream.getvalue() == shown


def test_text_is_written_as_it_is_with_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    common.write()
    common.write("a\tb\x07", end="|")
    assert capsys.readouterr().out == "\na\\tb\\x07|"


def test_problems_so_far_or_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    known = SimpleNamespace(problems=["one"], checked=lambda: ["one", "two"])
    monkeypatch.setattr(common, "registry", lambda: known)
    common.warn_of_problems()
    assert capsys.readouterr().err == "warning: one\n"
    common.warn_of_problems(of_all=True)
    assert capsys.readouterr().err == "warning: one\nwarning: two\n"


class Word(enum.StrEnum):
    ONE = "one"
    TWO = "two"


def test_readers_of_options() -> None:
    assert [common.whole_number(text) for text in ("-3", "0", 7)] == [-3, 0, 7]
    assert [common._seed(text) for text in ("0", "12")] == [0, 12]
    assert common.one_of(Word)("two") is Word.TWO
    assert common.read_path("~/a") == Path.home() / "a"
    assert common.ledger_and_data_set(Path("l"), "d") == (Path("l"), "d")
    for read, text, words in (
        (common.whole_number, "1.5", "'1.5' is not a whole number"),
        (common._seed, "-1", "-1 is negative; a seed is a whole number from 0 on"),
        (common.one_of(Word), "three", "'three' is unknown; accepted are one, two"),
        (common.read_path, " ", "a name is expected, not an empty text"),
        (common.read_path, "-", "standard input and output cannot be opened again"),
    ):
        with pytest.raises(typer.BadParameter, match=words):
            read(text)
    for ledger, data_set in ((None, "d"), (Path("l"), None), (None, None)):
        with pytest.raises(
            dpf.InputError,
            match="and --data-set names a data set in that file; give both",
        ):
            common.ledger_and_data_set(ledger, data_set)


def fails(context: Any, value: Any) -> Any:
    raise LookupError("typer reads it")


def parameter(**changes: Any) -> Any:
    """What the reader of a command asks of a parameter."""
    usual = {"multiple": False, "nargs": 1, "required": False, "is_flag": False, "callback": None, "parser": None}
    given = usual | {"annotation": Path, "process_value": fails} | changes
    info = SimpleNamespace(parser=given["parser"])
    described = SimpleNamespace(parameter_info=info, annotation=given["annotation"])
    return SimpleNamespace(type_descriptor=described, **given)


@pytest.mark.parametrize(
    ("changes", "given", "read"),
    [
        ({"annotation": str}, "7", "7"),
        ({"annotation": str, "parser": int}, "7", 7),
        ({"parser": int}, "7", 7),
        ({"parser": int, "callback": lambda context, parameter, value: value + 1}, "7", 8),
        ({"is_flag": True}, "yes", True),
        ({"is_flag": True, "parser": int}, "7", 7),
        *((about, None, None) for about in ({}, {"annotation": str}, {"parser": int}, {"is_flag": True})),
        ({"multiple": True}, None, ()),
        ({"nargs": -1}, None, ()),
        ({"nargs": 2}, None, None),
        ({}, "7", LookupError),  # by whatever typer has for it
        ({"annotation": str, "required": True}, None, LookupError),
        *(
            ({"annotation": str, "parser": int} | about, "7", LookupError)
            for about in ({"multiple": True}, {"nargs": 2})
        ),
        ({"is_flag": True, "nargs": -1}, "7", LookupError),
    ],
)
def test_a_parameter_is_read_by_our_parser_or_by_typer(changes: dict[str, Any], given: Any, read: Any) -> None:
    one = parameter(**changes)
    _read_simply(one)
    if read is LookupError:
        with pytest.raises(LookupError):
            one.process_value(None, given)
    else:
        found = one.process_value(None, given)
        assert (found, type(found)) == (read, type(read))
    before = one.process_value
    _read_simply(one)  # as for a second call of the command
    assert one.process_value is before


def test_flags_alone_are_shown_without_a_type_and_read_as_truths() -> None:
    def command(name: str, size: int = 3, fast: bool = False) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command(cls=Command)(command)
    made = typer.main.get_command(app)
    shown = {one.name: one for one in made.get_params(typer.Context(made))}
    assert {name: one.metavar for name, one in shown.items()} == {"name": None, "size": None, "fast": "", "help": ""}
    assert all(isinstance(shown[name].process_value, functools.partial) for name in ("name", "size", "fast"))
    argument = parameter()
    del argument.is_flag  # which it has none of
    _read_simply(argument)
    with pytest.raises(LookupError):
        argument.process_value(None, "7")


def test_a_parameter_of_an_older_typer_is_left_alone() -> None:
    for older in (SimpleNamespace(process_value=fails), SimpleNamespace(process_value=fails, type_descriptor=None)):
        _read_simply(older)
        assert older.process_value is fails


@attrs.frozen
class Base:
    """Above.

    Attributes
    ----------
    above, other
        Of the base.
    """

    above: int
    other: str = "usual"


@attrs.frozen
class Below(Base):
    """Below, in a line.

    More of it.

    Parameters
    ----------
    one : int
        A number, whose text
        takes two lines.

        And a paragraph.
    hidden
        Nobody gives it.
    many, same
        Two at once.

    Raises
    ------
    other
        Of these.

    Notes
    -----
    Nothing more.
    """

    _one: int = 3
    many: list[int] = attrs.Factory(list)
    same: dict[str, int] = attrs.Factory(lambda self: {}, takes_self=True)
    hidden: int = attrs.field(default=0, init=False)
    plain = None


def test_parameters_are_listed_with_types_defaults_and_texts() -> None:
    found = list_and_explain_components._parameters(Below)
    keys = ("name", "required", "default", "doc")
    assert [tuple(one[key] for key in keys) for one in found] == [
        ("above", True, None, "Of the base."),
        ("other", False, "usual", "Of the base."),
        ("one", False, "3", "A number, whose text\ntakes two lines.\n\nAnd a paragraph."),
        ("many", False, "[]", "Two at once."),
        ("same", False, "depends on the other parameters", "Two at once."),
    ]
    assert [one["type"] for one in found] == ["int", "str", "int", "list[int]", "dict[str, int]"]
    assert list_and_explain_components._parameter_docs("Raises\n------\nnone\n    Of these.") == {}
    doc = "Raises\n------\nnone\n    Of these.\n\nAttributes\n----------\none\n    The first."
    assert list_and_explain_components._parameter_docs(doc) == {"one": "The first."}


def test_a_word_that_is_longer_than_a_line_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    @attrs.frozen
    class Linked:
        long: int

    address = "https://" + "a" * 150
    Linked.__doc__ = f"See {address}.\n\nParameters\n----------\nlong\n    At {address}.\n"
    list_and_explain_components.show_one("linked", PluginComponent("ours", Linked), as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        *("linked  (plugin ours)", "See", f"{address}.", "", "Parameters", "long: int, required", "    At"),
        f"    {address}.",
    ]


@pytest.mark.parametrize(("as_json", "of_all"), [(False, True), (True, None)])
def test_a_list_names_what_is_there_and_problems(
    as_json: bool, of_all: bool | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[bool] = []
    brought = SimpleNamespace(plugin="ours", component=Below)
    monkeypatch.setattr(list_and_explain_components, "warn_of_problems", lambda of_all: told.append(of_all))
    monkeypatch.setattr(list_and_explain_components, "registry", lambda: SimpleNamespace(checked=lambda: ["a problem"]))
    known: Any = {"below": brought}
    list_and_explain_components._show("miner", known, None, as_json)
    out = capsys.readouterr().out
    assert told == ([] if of_all is None else [of_all])
    assert "Below, in a line." in out
    assert "More of it." not in out
    assert ("a problem" in out) == as_json
    list_and_explain_components._show("miner", {}, None, as_json)
    assert ("no miner is installed" in capsys.readouterr().out) == (not as_json)
    list_and_explain_components._show("miner", known, "below", as_json)
    out = capsys.readouterr().out
    assert ("default 3" in out) == (not as_json)
    if not as_json:  # the introduction alone, then each parameter with its text
        assert out.startswith(
            "below  (plugin ours)\nBelow, in a line.\n\nMore of it.\n\nParameters\nabove: int, required\n"
        )
        assert "one: int, default 3\n    A number, whose text takes two lines.\n" in out
        assert "Of these." not in out
    assert told == ([] if of_all is None else [True, True, False])
    with pytest.raises(dpf.InputError, match="no miner is named 'blow'; did you mean 'below'"):
        list_and_explain_components._show("miner", known, "blow", as_json)
