r"""Names and labels that would steer a terminal, hide or forge lines, or become markup: in every format.

A label may hold any character. Each format is made twice, of hostile labels and of plain ones: it must have as many
lines, and hold no character that is not seen.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework import cli
from dpframework.cli import main
from dpframework.cli.escaping_console import Screen
from dpframework.facts.control_character_escapes import is_printable, printable, printable_lines
from dpframework.facts.output_formats_times_and_csv import csv_text
from dpframework.plan import Budget, PublicFacts
from dpframework.reports import text_plan_drawings
from dpframework.reports.formats import ReportFormat
from dpframework.reports.html import html_difference
from dpframework.reports.markdown import cell
from dpframework.reports.report_files_and_release_list import lay_out

HOSTILE = (
    "a\x1b[2K\x1b[1Ahidden",
    "b\rtotal: epsilon 0.01",
    "c\n└─ forged: count  [epsilon 0.001]",
    "d\u202edetrever\u2066",
    "e\u200bzero\ufeffwidth\u2060",
    "f\x9b31mC1\x85next\x00",
    "g [red]bold[/red] [link=http://evil]x[/link]",
    "h | pipe | `code` | <script>alert(1)</script> | [x](http://evil) ![y](http://evil) &#x202e;",
    "i www.evil.com a@evil.com https://evil.com",
    '=cmd|" /C calc"!A0',
    '%%{init: {"theme": "dark"}}%% "] --> x["` #quot; \\n',
    "$\\frac{1}{$ \\undefined $x$",
    "\U000e0041tag\u2028line\u2029paragraph\ud7ff",
    "]]></svg><img src=x onerror=alert(1)>{{ 7*7 }}",
)
PLAIN = tuple(f"label {k}" for k in range(len(HOSTILE)))
NAMES = [name for name in HOSTILE if not is_printable(name)]
RICH = re.compile(r"\x1b\[[0-9;]*m")


def study_of(labels: tuple[str, ...]) -> tuple[dpf.Study, dpf.Schema]:
    """Return a study whose steps, queries, results and matrices show labels."""
    schema = dpf.Schema([dpf.Categorical("city", labels), dpf.Categorical("town", labels[:3]), dpf.Boolean("ill")])
    study = dpf.Study(schema, epsilon=8, allow=())
    study.add("cities", dpf.miner("histogram", attribute="city", epsilon=2))
    study.add("both", dpf.miner("crosstab", attributes=["city", "town"], epsilon=2))
    study.add("tree", dpf.miner("dp-id3", target="town", attributes=["city"], max_depth=1, epsilon=2))
    study.add("far", dpf.miner("dp-dilca", epsilon=2))
    return study, schema


def made_of(labels: tuple[str, ...]) -> tuple[dpf.StudyPlan, dpf.Results]:
    study, schema = study_of(labels)
    rows = 40 * len(labels)
    columns = {
        "city": [labels[k % len(labels)] for k in range(rows)],
        "town": [labels[k % 3] for k in range(rows)],
        "ill": [k % 2 == 0 for k in range(rows)],
    }
    table = dpf.tables.table_from_columns(columns, schema)
    return study.plan(), study.run(table, seed=1)


@pytest.fixture(scope="module")
def hostile():
    return made_of(HOSTILE)


@pytest.fixture(scope="module")
def plain():
    return made_of(PLAIN)


def cut_by_labels(labels: tuple[str, ...]) -> dpf.StudyPlan:
    """Return a plan whose parts are named by labels."""
    schema = dpf.Schema([dpf.Categorical("city", labels)])
    half = dpf.mechanisms.DiscreteLaplace("1/2")
    parts = [dpf.step("rows", dpf.queries.Count(), half) for _ in labels]
    equal = [dpf.facts.Equals("city", label) for label in schema["city"].labels]
    node = dpf.parallel(*parts, by=equal)
    return dpf.StudyPlan(node, dpf.Relation.ADD_OR_REMOVE_ONE, PublicFacts.of(schema), Budget(9), schema)


def formats(plan: dpf.StudyPlan, results: dpf.Results, parted: dpf.StudyPlan) -> dict[str, str]:
    """Return every text that the project shows of a study."""
    found = {f"report {form}": lay_out(form, plan, results, title="study") for form in ReportFormat}
    for name, one in (("study", plan), ("parts", parted)):
        for draw in (
            text_plan_drawings.tree,
            text_plan_drawings.mermaid,
            text_plan_drawings.dot,
        ):
            found[f"{draw.__name__} {name}"] = draw(one)
        found[f"notebook {name}"] = one._repr_html_()
    found["difference"] = html_difference(dpf.reports.difference.difference(plan, plan, ()))
    found["schema"] = plan.schema._repr_html_()
    found["results"] = results._repr_html_()
    found["json"] = results.to_json() + plan.to_json()
    for name, result in results.items():
        found[f"result {name}"] = str(result)
    found["csv"] = "".join(table.to_csv() for table in results["far"].learned.values())
    return found


def test_no_format_holds_what_is_not_seen_or_has_other_lines(hostile, plain):
    shown, expected = formats(*hostile, cut_by_labels(HOSTILE)), formats(*plain, cut_by_labels(PLAIN))
    assert shown.keys() == expected.keys()
    for name, text in shown.items():
        assert text == printable_lines(text), name
        if name != "json":
            assert len(text.splitlines()) == len(expected[name].splitlines()), name


def tags(page: str) -> list[str]:
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            found.append(f"{tag} {sorted(name for name, _ in attributes)}")

    Reader().feed(page)
    return found


def test_no_label_becomes_markup_in_html(hostile, plain):
    shown, expected = formats(*hostile, cut_by_labels(HOSTILE)), formats(*plain, cut_by_labels(PLAIN))
    for name in shown:
        if shown[name].lstrip().startswith("<"):
            assert sorted(tags(shown[name])) == sorted(tags(expected[name])), name


@given(st.text(max_size=60) | st.sampled_from(HOSTILE))
@settings(max_examples=200)
def test_no_text_becomes_markup_in_a_cell_of_markdown(text):
    from markdown_it import MarkdownIt

    read = MarkdownIt("gfm-like", {"html": True}) if _has_links() else MarkdownIt("commonmark").enable("table")
    tokens = read.parse(f"| a | b |\n| --- | --- |\n| {cell(text)} | x |\n\n# {cell(text)}\n\n{cell(text)} end\n")
    (row,) = [t for t in tokens if t.type == "tbody_open"] and [
        [t for t in tokens[k:] if t.type == "inline"][:2] for k, t in enumerate(tokens) if t.type == "tbody_open"
    ]
    assert row[1].content == "x"
    inline = [child.type for token in tokens for child in token.children or () if token.type == "inline"]
    assert set(inline) <= {"text", "text_special"}, inline
    assert not [token.type for token in tokens if token.type.startswith(("html", "code", "fence"))]


def test_a_bare_address_is_no_link():
    """Some readers of Markdown make links of these without any markup."""
    assert cell("www.a.org b@a.org https://a.org &#x202e;") == r"www\.a.org b\@a.org https\://a.org \&\#x202e;"


def _has_links() -> bool:
    try:
        import linkify_it  # noqa: F401
    except ImportError:
        return False
    return True


@given(st.text(max_size=30) | st.sampled_from(HOSTILE))
def test_no_text_becomes_a_formula_in_csv(text):
    (header, row) = csv.reader(io.StringIO(csv_text([text], [[text]])))
    for found in (*header, *row):
        assert not re.match(r"\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", found)
        assert is_printable(found)


@given(st.text(max_size=40) | st.sampled_from(HOSTILE))
def test_no_text_ends_a_label_of_mermaid_or_dot(text):
    schema = dpf.Schema([dpf.Boolean("ill")])
    query = dpf.queries.PlanFileQuery(dpf.queries.QueryFacts("count", text, (), True, 1, ()))
    plan = dpf.StudyPlan(
        dpf.step("rows", query, dpf.mechanisms.DiscreteLaplace(1)),
        dpf.Relation.ADD_OR_REMOVE_ONE,
        PublicFacts.of(schema),
        Budget(9),
        schema,
    )
    drawn = text_plan_drawings.mermaid(plan)
    assert len(drawn.splitlines()) == 2
    assert re.fullmatch(r'flowchart TD\n    n0\["[^"`<>%{}\\]*"\]\n', drawn), drawn
    assert re.fullmatch(
        r'digraph plan \{\n.*\n    n0 \[shape=box, label="(?:[^"\\]|\\["\\])*"\];\n\}\n',
        text_plan_drawings.dot(plan),
    )
    assert len(text_plan_drawings.tree(plan).splitlines()) == 3


@given(st.text(max_size=40) | st.sampled_from(HOSTILE))
def test_a_terminal_shows_texts_and_obeys_none(text):
    screen = Screen(file=io.StringIO(), force_terminal=True, width=500, color_system="truecolor")
    screen.print(text, style="bold")
    shown = RICH.sub("", screen.file.getvalue())
    assert printable_lines(shown) == shown
    kept = re.sub("[\x07\x08\t\x0b\x0c\r]", "", text)  # rich drops these itself, and tabs are spaces
    assert "".join(shown.split()) == "".join(printable_lines(kept).split())


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_not_seen_as_it_is_is_refused(name):
    makers = (
        lambda: dpf.Boolean(name),
        lambda: dpf.Schema([dpf.Boolean("a")], inferred=[name]),
        lambda: dpf.PrivacyUnit(name, 2),
        lambda: dpf.sequential(dpf.step("a", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)), name=name),
        lambda: study_of(PLAIN)[0].add(name, dpf.miner("histogram", attribute="city", epsilon="1/9")),
        lambda: dpf.Boolean("a", view=name),
    )
    for make in makers:
        with pytest.raises(dpf.InputError) as refused:
            make()
        assert is_printable(str(refused.value))


def test_two_labels_that_read_alike_are_refused():
    with pytest.raises(dpf.InputError, match="read alike"):
        dpf.Categorical("x", ["a\nb", "a\\nb"])


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5))
def test_a_schema_is_written_in_characters_that_are_seen_and_read_again(labels):
    try:
        schema = dpf.Schema([dpf.Categorical("x", labels)])
    except dpf.InputError:
        return
    text = schema.dumps()
    assert printable_lines(text) == text
    assert dpf.Schema.loads(text) == schema
    assert all(map(is_printable, schema["x"].labels))
    assert len(set(schema["x"].labels)) == len(labels)


STUDY = """
[data]
path = "people.csv"
schema = "people.schema.toml"
[privacy]
epsilon = 1
[[step]]
name = "cities"
miner = "histogram"
epsilon = 1
params = { attribute = "city" }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study of an attribute with hostile labels."""
    monkeypatch.chdir(tmp_path)
    dpf.Schema([dpf.Categorical("city", HOSTILE)]).dump("people.schema.toml")
    Path("study.toml").write_text(STUDY)
    with Path("people.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["city"], *([label] for label in HOSTILE * 30)])
    return tmp_path


def test_commands_show_labels_and_obey_none(folder, capsys):
    commands = [
        ["schema", "show", "people.schema.toml"],
        ["schema", "infer", "people.csv"],
        ["schema", "check", "people.csv", "people.schema.toml"],
        ["run", "study.toml", "--seed", "1", "--out", "out"],
        ["plan", "study.toml"],
        ["check", "study.toml"],
        *(["report", "out", "--format", form] for form in ("terminal", "md", "html", "csv", "json")),
    ]
    for command in commands:
        assert main(command) in (0, 1), command
        said = capsys.readouterr()
        for text in (said.out, said.err):
            assert printable_lines(text) == text, command
    for path in Path("out").iterdir():
        text = path.read_text(encoding="utf-8")
        assert printable_lines(text) == text


@pytest.mark.parametrize(
    "place", ["name = ", "miner = ", "attribute = ", "[[step]]\n", "epsilon = ", "path = ", "schema = "]
)
@pytest.mark.parametrize("text", HOSTILE[:7])
def test_an_error_that_quotes_a_study_is_one_line_and_obeyed_by_none(folder, capsys, place, text):
    quoted = json.dumps(text)
    put = f"{place}{quoted}\n" if "=" in place else f"{place}{quoted} = 1\n"
    Path("study.toml").write_text(re.sub(rf"{re.escape(place)}(\"\w+[.\w]*\"|1)?\n?", lambda found: put, STUDY))
    for command in (["check", "study.toml"], ["plan", "study.toml"], ["run", "study.toml", "--out", "out"]):
        main(command)
        said = capsys.readouterr()
        assert printable_lines(said.err) == said.err
        assert printable_lines(said.out) == said.out
        assert len([line for line in said.err.split("\n") if line]) <= 1, said.err


def test_names_in_a_ledger_steer_no_terminal(folder, capsys):
    """Who would steer a terminal gives no approval."""
    on = ["--data-set", HOSTILE[6]]
    assert main(["ledger", "open", "people.ledger", *on, "--epsilon", "9"]) == 0
    for who in ("me", "you", *HOSTILE):
        command = ["ledger", "approve", "people.ledger", "study.toml", *on, "--by", who, "--note", who]
        assert main(command) == (0 if is_printable(who) else 2)
        said = capsys.readouterr()
        assert printable_lines(said.out + said.err) == said.out + said.err
        if not is_printable(who):
            continue
        assert main(["ledger", "show", "people.ledger", *on]) == 0
        assert main(["report", "study.toml", "--ledger", "people.ledger", *on]) == 0
        said = capsys.readouterr()
        assert printable_lines(said.out + said.err) == said.out + said.err
    for ending in ("html", "csv", "json"):
        assert main(["ledger", "show", "people.ledger", "--out", f"ledger.{ending}"]) == 0
        text = Path(f"ledger.{ending}").read_text(encoding="utf-8")
        assert printable_lines(text) == text


def test_pictures_show_labels_and_read_no_formula(hostile):
    pytest.importorskip("matplotlib").use("agg")
    _, results = hostile
    for name in ("cities", "both"):
        picture = io.BytesIO()
        results[name].plot().figure.savefig(picture, format="svg")
        text = picture.getvalue().decode()
        assert "<script>" not in text
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b-\u200f]", text)


def test_commands_write_by_the_functions_that_escape():
    """The next command cannot forget it: only one module prints, and only one makes consoles."""
    for source in Path(cli.__file__).parent.rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        names = [called.id for called in calls if isinstance(called, ast.Name)]
        if source.name != "common.py":
            allowed = 1 if source == Path(cli.__file__) else 0  # its own version
            assert names.count("print") <= allowed, source
        assert "Console" not in names, source


def test_printable_is_done_once():
    for text in HOSTILE:
        assert printable(printable(text)) == printable(text)
