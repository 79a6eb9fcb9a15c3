"""The HTML report: complete, escaped, accessible, without a network; looked at in a browser where there is one."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from reported import Twice, forty_rows, studied

import dpframework as dpf
from dpframework.cli import main
from dpframework.mechanisms import DiscreteLaplace, Gaussian
from dpframework.plan import Node, repeat
from dpframework.plan.networkx_export import plan_graph
from dpframework.queries import Histogram
from dpframework.reports import RunSummary, markdown_report, node_tree, step_rows
from dpframework.reports.difference import Mark, difference
from dpframework.reports.html import html_difference, html_report
from dpframework.reports.html_plan_drawing import MOST_OPEN
from dpframework.reports.report_headlines import part_rows, public_facts

ODD = "</script><script>document.title='owned'</script>\"'&amp; אבג olleh 🦔"
SCHEMA = dpf.Schema([dpf.Boolean(ODD), dpf.Numeric("age", 0, 100, bins=4)])


@attrs.frozen
class Hostile(Twice):
    """Tell what no page may hold as it is."""

    told = f"</pre><h1>{ODD}\x00\x1b[31m\ud800"


@pytest.fixture
def study():
    return studied(SCHEMA, Hostile())


@pytest.fixture
def table():
    return forty_rows(SCHEMA)


def deep(depth: int, epsilon: str = "0.01") -> Node:
    """A plan of many nodes, most of them far below."""
    step = dpf.step("count", Histogram(SCHEMA["age"]), DiscreteLaplace(epsilon))
    if depth == 0:
        return step
    used = dpf.step("also", Histogram(SCHEMA["age"]), DiscreteLaplace("1/300"), uses=["count"])
    return dpf.sequential(step, used, dpf.either(used, dpf.sequential(deep(depth - 1, epsilon), name="down")))


@pytest.fixture
def large():
    study = dpf.Study(SCHEMA, epsilon=10)
    for k in range(5):
        study.add_plan(f"tree {k}", deep(8, f"0.0{k + 1}"))  # none like another
    return study.plan()


def several() -> dpf.StudyPlan:
    """A plan with each kind of node, and findings of each severity."""
    study = dpf.Study(SCHEMA, epsilon="0.5", delta="1e-6", allow=["mcmc-converged"])
    each = DiscreteLaplace("1/30")
    study.add("both", Hostile("0.1"))
    study.add_plan("twice", repeat(2, dpf.step("again", Histogram(SCHEMA["age"]), each)))
    study.add_plan("noisy", dpf.step("s", Histogram(SCHEMA["age"]), Gaussian("0.001")))
    study.add_plan("lost", dpf.parallel(dpf.step("p", Histogram(SCHEMA["age"]), each)))
    return study.plan()


# --- a page as its elements -----------------------------------------------------------------------------------------

VOID = {"meta", "link", "br", "wbr", "img", "input", "hr"}


class Element:
    def __init__(self, tag: str, attributes: dict[str, str | None], parent: Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Element | str] = []

    def __getitem__(self, name: str) -> str:
        return self.attributes.get(name) or ""

    def all(self, *tags: str) -> list[Element]:
        inner = [child for child in self.children if isinstance(child, Element)]
        return [e for child in inner for e in ([child] if child.tag in tags or not tags else []) + child.all(*tags)]

    def with_class(self, name: str) -> list[Element]:
        return [element for element in self.all() if name in element["class"].split()]

    def around(self, tag: str) -> Element | None:
        return self.parent if self.parent is None or self.parent.tag == tag else self.parent.around(tag)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def line(self) -> str:
        return " ".join(self.text.split())


class Reader(HTMLParser):
    """Reads a page whose every element is closed, in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.open = Element("", {}, None)
        self.feed(page)
        self.close()
        assert self.open is self.root, f"<{self.open.tag}> is not closed"

    def handle_starttag(self, tag, attributes):
        assert len(dict(attributes)) == len(attributes), f"<{tag}> has an attribute twice"
        element = Element(tag, dict(attributes), self.open)
        self.open.children.append(element)
        if tag not in VOID:
            self.open = element

    def handle_startendtag(self, tag, attributes):
        self.open.children.append(Element(tag, dict(attributes), self.open))

    def handle_endtag(self, tag):
        assert self.open.tag == tag, f"</{tag}> closes <{self.open.tag}>"
        assert self.open.parent is not None
        self.open = self.open.parent

    def handle_data(self, data):
        self.open.children.append(data)


def read(page: str) -> Element:
    return Reader(page).root


def by_id(root: Element) -> dict[str, Element]:
    return {element["id"]: element for element in root.all() if element["id"]}


@pytest.fixture(params=["plan", "refused", "run", "stopped", "large", "difference", "no difference"])
def page(request, study, table, large):
    """Every kind of page."""
    match request.param:
        case "plan":
            return html_report(study.plan(), title=ODD)
        case "refused":
            return html_report(several(), title=ODD)
        case "run":
            return html_report(study.plan(), study.run(table), title=ODD)
        case "stopped":
            return html_report(study.plan(), attrs.evolve(study.run(table, seed=1), stopped=ODD), title=ODD)
        case "large":
            return html_report(large)
        case "difference":
            return html_difference(difference(study.plan(), several()), before=ODD, after=ODD)
    return html_difference(difference(study.plan(), study.plan()))


def test_the_page_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(page):
    root = read(page)
    assert page.startswith("<!doctype html>\n")
    (whole,) = root.all("html")
    assert whole["lang"] == "en"
    ids = [element["id"] for element in root.all() if element["id"]]
    assert [name for name, times in Counter(ids).items() if times > 1] == []
    for element in root.all():
        for name in ("aria-labelledby", "aria-describedby"):
            assert element[name] in ("", *ids)
        if element.tag in ("a", "use"):
            assert element["href"].removeprefix("#") in ids
    assert page.encode("utf-8").decode("utf-8") == page


def test_headings_come_in_order_and_landmarks_are_there(page):
    root = read(page)
    levels = [int(element.tag[1]) for element in root.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for tag in ("header", "main", "footer"):
        assert len(root.all(tag)) == 1
    skip = next(element for element in root.all("a"))
    assert skip["href"] == f"#{root.all('main')[0]['id']}"
    for section in root.all("section"):
        assert by_id(root)[section["aria-labelledby"]].tag == "h2"


def test_tables_have_captions_and_scopes_and_pictures_are_not_read_out(page):
    root = read(page)
    for table in root.all("table"):
        assert table.all("caption")[0].line
        assert {th["scope"] for th in table.all("th")} <= {"col", "row", "rowgroup"}
        width = len(table.all("thead")[0].all("th"))
        for row in table.all("tr"):
            cells = row.all("th", "td")
            assert sum(int(cell["colspan"] or 1) for cell in cells) == width
    assert all(svg["aria-hidden"] == "true" for svg in root.all("svg"))
    assert all(button["type"] == "button" and button.line for button in root.all("button"))


def test_nothing_is_fetched(page):
    root = read(page)
    for element in root.all():
        assert not {"src", "srcset", "style", "action", "background"} & set(element.attributes)
        assert not any(name.startswith("on") for name in element.attributes)
        assert element["href"].startswith("#") or element["href"] in ("", "data:,")
    assert [element["rel"] for element in root.all("link")] == ["icon"]
    (styles,), (script,) = root.all("style"), root.all("script")
    assert not re.search(r"url\(|@import|@font-face|https?:", styles.text)
    namespace = "http://www.w3.org/2000/svg"
    assert not re.search(r"fetch|XMLHttp|WebSocket|EventSource|sendBeacon|import\s*\(|https?:|eval|innerHTML",
                         script.text.replace(namespace, ""))  # fmt: skip
    policy = next(meta["content"] for meta in root.all("meta") if meta["http-equiv"] == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; ")
    for kind, text in (("style", styles.text), ("script", script.text)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert re.search(rf"{kind}-src '([^']*)'", policy)[1] == f"sha256-{digest}"
        assert text.isascii()  # references, by which other encodings than UTF-8 are written, do not work there


def test_texts_of_users_stay_texts(page):
    root = read(page)
    assert len(root.all("script")) == 1
    assert len(root.all("h1")) == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff]", page)


def test_odd_names_are_shown_as_they_are(study, table):
    root = read(html_report(study.plan(), study.run(table), title=ODD))
    assert root.all("h1")[0].text == ODD
    assert ODD in by_id(root)["step-1"].text
    assert ODD in by_id(root)["node-2"].text
    assert ODD in root.all("pre")[0].text


def test_names_that_change_the_direction_are_isolated(study, table):
    root = read(html_report(study.plan(), study.run(table), title=ODD))
    block = {"bdi", "td", "th", "h1", "title", "p", "pre", "dd", "li"}
    for element in root.all():
        if any(isinstance(child, str) and "אבג" in child for child in element.children):
            assert element.tag in block


# --- what it says ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [lambda study, large: study.plan(), lambda study, large: several(),
                                  lambda study, large: large], ids=["small", "several", "large"])  # fmt: skip
def test_every_node_is_drawn_where_it_is_in_the_plan_with_what_it_uses(study, large, made):
    plan = made(study, large)
    items = {name: item for name, item in by_id(read(html_report(plan))).items() if name.startswith("node-")}
    graph = plan_graph(plan)
    assert list(items) == [f"node-{number}" for number in graph]
    parts = {(s, t) for s, t, edge in graph.edges(data=True) if edge["kind"] == "part"}
    uses = {(s, t) for s, t, edge in graph.edges(data=True) if edge["kind"] == "use"}
    number = {name: int(name.removeprefix("node-")) for name in items}
    above = {name: item.around("li") for name, item in items.items()}
    assert {(number[parent["id"]], number[name]) for name, parent in above.items() if parent is not None} == parts
    assert {(number[used], number[name]) for name, item in items.items() for used in item["data-uses"].split()} == uses
    for row in node_tree(plan).walk():
        box = items[f"node-{row.number}"].with_class("box")[0]
        assert f"kind-{row.kind}" in box["class"]
        assert [loss.line for loss in box.with_class("loss")] == row.loss.split(", ")
        assert all(word in box.line for word in re.findall(r"\w+", row.label))
        assert row.times in box.line
        for used in row.uses if row.kind != "parallel" else ():
            assert f"uses {graph.nodes[used]['name']}" in box.line or graph.nodes[used]["name"] in box.line


@pytest.mark.parametrize("made", [lambda study, large: study.plan(), lambda study, large: several(),
                                  lambda study, large: large], ids=["small", "several", "large"])  # fmt: skip
def test_every_step_is_in_the_table_with_each_fact(study, large, made):
    plan = made(study, large)
    root = read(html_report(plan))
    (table,) = [table for table in root.all("table") if "steps" in table["class"].split()]
    sources = {div["id"]: div.all("dd")[0] for dl in root.with_class("sources") for div in dl.all("div")}
    nodes = {node.step.path: node for node in node_tree(plan).walk() if node.step is not None}
    rows = [row for row in table.all("tr") if row["id"]]
    assert len(rows) == len(step_rows(plan)) == len(list(plan.steps()))
    shown = {}
    for row in rows:
        group = row.parent.with_class("group")[0].line
        shown[f"{group}/{row.all('th')[0].all('a')[0].line}"] = row
    for fact in step_rows(plan):
        row = shown[fact.path]
        assert row.all("a")[0]["href"] == f"#node-{nodes[fact.path].number}"
        for text in (fact.query, fact.mechanism, fact.sensitivity, fact.loss, fact.expected):
            assert " ".join(text.split()) in row.line
        if fact.assumptions != "—":
            assert fact.assumptions in row.line
        assert ("monotonic" in row.line) == (fact.monotonic == "yes")
        source = sources[row.with_class("source")[0]["href"].removeprefix("#")]
        assert fact.source in source.line
        assert f"#{row['id']}" in [a["href"] for a in source.all("a")]


def test_a_page_says_whether_it_is_on_a_plan_or_on_a_run(study, table):
    for ran, what in ((None, "plan"), (study.run(table, seed=1), "run")):
        page = html_report(study.plan(), ran, title="Wards")
        assert f"<title>Wards: report on a {what}</title>" in page
        assert f'<p class="subtitle">Report on a {what}</p>' in page


def test_it_says_what_the_other_reports_say(study, table):
    results = study.run(table)
    plan, ran = results.plan, RunSummary.of(results)
    text, markdown = read(html_report(plan, ran)).text, markdown_report(plan, ran).replace("\\", "")
    told = [*public_facts(plan), *((name, loss) for name, losses in part_rows(plan) for loss in losses.values())]
    for name, value in [*told, ("spent", ran.spent), *((f.code, f.message) for f in plan.check())]:
        assert name in text
        assert value in text
        assert name in markdown
        assert value in markdown
    for headline in ran.headlines(plan):
        assert headline in text


def test_rounded_losses_are_given_exactly_too(study):
    study.add_plan("third", dpf.step("s", Histogram(SCHEMA["age"]), DiscreteLaplace("1/7")))
    row = by_id(read(html_report(study.plan())))["step-3"]
    assert "epsilon ~0.1429 = 1/7" in row.line


def test_parts_and_totals_stand_under_each_accounting():
    plan = several()
    table = next(t for t in read(html_report(plan)).all("table") if "budget is epsilon 0.5" in t.all("caption")[0].line)
    heads, *rows = [[cell.line for cell in row.all("th", "td")] for row in table.all("tr")]
    assert heads == ["part", "pure", "zcdp", "rdp", "pld"]
    assert [row[0] for row in rows] == ["both", "twice", "noisy", "lost", "the whole plan"]
    assert rows[1][1] == "epsilon ~0.06667"
    assert rows[2][1] == "no finite epsilon"
    assert rows[-1][2].startswith("epsilon ")
    assert rows[-1][2].endswith("delta 1e-06")


def test_verdicts_and_severities_are_words(study, table):
    refused = read(html_report(several()))
    (headline,) = refused.with_class("headline")
    assert headline.line == "REFUSED: the plan cannot be run; see DP003 among the findings"
    assert "bad" in headline["class"]
    heads = [head.line for head in refused.with_class("finding-head")]
    assert "error DP003 parallel parts not disjoint" in heads
    accepted = read(html_report(study.plan()))
    assert [h.line for h in accepted.with_class("headline")] == ["Checks passed; no approval is shown"]
    ran = attrs.evolve(study.run(table, seed=3), stopped="step 'both': a <b> failed")
    lines = [h.line for h in read(html_report(study.plan(), ran)).with_class("headline")]
    assert lines[0] == "STOPPED before its end: step 'both': a <b> failed"
    assert lines[1].startswith("NOT PRIVATE: this run was seeded")


def test_after_a_run_the_charges_stand_beside_the_plan(study, table):
    results = study.run(table)
    root = read(html_report(results.plan, results))
    ids = by_id(root)
    assert [ids[f"step-{k}"].all("td")[-1].line for k in (1, 2)] == ["1", "2"]
    assert [note.line for note in root.with_class("released")] == [
        "3 releases", "3 releases", "3 releases", "released once", "2 releases", "released 2 times",
    ]  # fmt: skip
    charges = root.with_class("charges")[0].all("li")
    assert [li.line for li in charges] == ["both/outer", "both/parts 1/inner", "both/parts 2/inner"]
    table_of_charges = next(t for t in root.all("table") if "What was planned" in t.all("caption")[0].line)
    rows = [[cell.line for cell in row.all("th", "td")] for row in table_of_charges.all("tr")[1:]]
    assert rows[0][0] == "both"
    assert rows[0][2] == "3"
    assert rows[-1] == ["the whole plan", rows[0][1], "3", RunSummary.of(results).spent]
    (pre,) = root.all("pre")
    assert pre.text.startswith(f"</pre><h1>{ODD}")
    assert r"\x00\x1b[31m\ud800" in pre.text
    assert [gauge.line.split()[0] for gauge in root.with_class("gauge")] == ["budget", "planned", "spent"]


def test_equal_parts_are_shown_once_and_links_to_each_lead_there():
    study = dpf.Study(SCHEMA, epsilon=10)
    for k in range(9):
        study.add_plan(f"tree {k}", deep(2))
    plan = study.plan()
    root = read(html_report(plan))
    graph = root.with_class("graph")[0]
    parts = sum(1 for _ in node_tree(plan).walk()) - 1
    assert len(graph.with_class("box")) == 1 + parts // 9
    assert "one of 9 equal parts, shown once: also tree 1, tree 2, tree 3, tree 4, ..." in graph.line
    items = by_id(graph)
    assert sorted(items) == sorted(f"node-{number}" for number in range(1 + parts))
    first = items["node-1"]
    for k, tree in enumerate(node_tree(plan).children):
        for inner, shown in zip(tree.walk(), node_tree(plan).children[0].walk(), strict=True):
            item = items[f"node-{inner.number}"]
            assert (item if k == 0 else item.around("li")) is items[f"node-{shown.number}"]
    assert "repeated" in first.with_class("box")[0]["class"]
    assert {used for item in graph.all("li") for used in item["data-uses"].split()} <= {
        li["id"] for li in graph.all("li")
    }


def test_parts_that_use_other_releases_are_not_equal():
    """The second one uses the first, and the third one the second, by one name."""
    count = DiscreteLaplace("0.01")
    steps = [dpf.step("x", Histogram(SCHEMA["age"]), count)]
    steps += [dpf.step(name, Histogram(SCHEMA["age"]), count, uses=[used]) for name, used in (("y", "x"), ("z", "y"))]
    study = dpf.Study(SCHEMA, epsilon=10)
    study.add_plan("chain", dpf.sequential(*steps))
    graph = read(html_report(study.plan())).with_class("graph")[0]
    assert "shown once" not in graph.line
    assert len([li for li in graph.all("li") if li["data-uses"]]) == 2


def test_before_a_run_nothing_is_said_of_one(study):
    root = read(html_report(study.plan()))
    assert {"run", "results"}.isdisjoint(by_id(root))
    assert "released" not in [th.line for th in root.all("th")]


def test_a_large_graph_begins_folded_and_a_small_one_does_not(study, large):
    assert not any("data-folded" in d.attributes for d in read(html_report(study.plan())).all("details"))
    root = read(html_report(large))
    details = root.with_class("tree")[0].all("details")
    assert all("open" in d.attributes for d in details)  # it is the script that folds: without it all is there
    folded = [d for d in details if "data-folded" in d.attributes]
    hidden = {id(box) for d in folded for box in d.all("ul")[0].with_class("box")}
    shown = len(root.with_class("box")) - len(hidden)
    assert 6 <= shown <= MOST_OPEN < len(root.with_class("box"))


def test_the_run_and_the_head_of_its_ledger_are_named(study, table):
    ran = attrs.evolve(RunSummary.of(study.run(table)), run="run-7", head="f00")
    for text in (read(html_report(study.plan(), ran)).text, markdown_report(study.plan(), ran).replace("\\", "")):
        assert "Recorded in a ledger as run run-7; the ledger's head after it is f00." in " ".join(text.split())


# --- the difference of two plans ------------------------------------------------------------------------------------


def test_a_difference_is_drawn_with_marks_in_words(study):
    found = difference(study.plan(), several())
    root = read(html_difference(found, before="old.toml", after="new.toml"))
    assert root.all("h1")[0].line == "From old.toml to new.toml"
    nodes = list(found.nodes())
    boxes = root.with_class("box")
    assert [re.search(r"mark-(\w+)", box["class"])[1] for box in boxes] == [node.mark for node in nodes]
    words = [mark.line for box in boxes for mark in box.with_class("mark")]
    signs = {Mark.ADDED: "+ added", Mark.REMOVED: "− removed", Mark.CHANGED: "~ changed"}  # noqa: RUF001
    assert words == [signs[node.mark] for node in nodes if node.mark is not Mark.SAME]
    assert {Mark.ADDED, Mark.CHANGED, Mark.SAME} <= {node.mark for node in nodes}
    text = [dd.line for dd in root.with_class("topics")[0].all("dd")]
    assert text == [" ".join(change.text.split()) for change in found.changes]
    assert [h.line for h in root.with_class("headline")] == list(found.headlines)
    both = next(box for box in boxes if box.line.startswith("~ changed outer"))
    assert both.with_class("loss")[0].line == "epsilon 0.1"
    assert both.with_class("was")[0].line == "was epsilon 0.5"


def test_no_difference_says_so(study):
    root = read(html_difference(difference(study.plan(), study.plan())))
    assert "No difference." in root.text
    assert not root.with_class("mark")


# --- colours --------------------------------------------------------------------------------------------------------


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        digits = colour.removeprefix("#")
        digits = digits if len(digits) == 6 else "".join(d * 2 for d in digits)
        parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrasts_meet_wcag_aa_in_light_and_dark(study):
    styles = read(html_report(study.plan())).all("style")[0].text
    schemes = re.findall(r":root \{(.*?)\}", styles, re.DOTALL)
    assert len(schemes) == 3  # light, dark, paper
    colours: dict[str, str] = {}
    for scheme in schemes:
        colours = {**colours, **dict(re.findall(r"--([\w-]+): (#\w+);", scheme))}
        panels = ("paper", "panel", "good-panel", "bad-panel", "warn-panel")
        pairs = [(text, panel) for text in ("ink", "soft", "link") for panel in panels]
        pairs += [("good", "good-panel"), ("bad", "bad-panel"), ("bad", "panel"), ("warn", "panel"),
                  ("warn", "warn-panel")]  # fmt: skip
        for text, panel in pairs:
            assert _contrast(colours[text], colours[panel]) >= 4.5, (text, panel)
        for line in ("edge", "bar"):
            assert _contrast(colours[line], colours["paper"]) >= 3, line


# --- the command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    (tmp_path / "people.schema.toml").write_text('[[attribute]]\nname = "ill"\nkind = "boolean"\n'
                                                 '[[attribute]]\nname = "größe"\nkind = "boolean"\n')  # fmt: skip
    path = tmp_path / "study.toml"
    path.write_text('[data]\npath = "none.csv"\nschema = "people.schema.toml"\n[privacy]\nepsilon = 1\n[[step]]\n'
                    'name = "tree"\nminer = "dp-id3"\nepsilon = 1\nparams = { target = "größe" }\n')  # fmt: skip
    return path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def test_the_name_of_the_file_says_the_format(capsys, file, tmp_path):
    starts = [("a.html", "<!doctype html>"), ("a.HTM", "<!doctype html>"), ("a.md", "# study\n")]
    for name, start in starts:
        assert run(capsys, "report", file, "--out", tmp_path / name) == (0, f"wrote {tmp_path / name}\n", "")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    code, out, err = run(capsys, "report", file, "--out", tmp_path / "a.pdf")
    assert (code, out) == (2, "")
    assert err.endswith(
        "a.pdf: its name does not say in which format to write it; end it in .html, .htm, .md, .csv or .json\n"
    )
    for form, start in [("html", "<!doctype"), ("md", "# study"), ("terminal", "study\n")]:
        assert run(capsys, "report", file, "--out", tmp_path / f"{form}.txt", "--format", form)[0] == 0
        assert (tmp_path / f"{form}.txt").read_text(encoding="utf-8").startswith(start)


def test_plans_and_differences_as_pages(capsys, file, tmp_path):
    code, out, _ = run(capsys, "plan", file, "--format", "html")
    assert (code, out) == (0, run(capsys, "report", file, "--format", "html")[1])
    assert "größe" in out
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace("epsilon = 1\nparams", "epsilon = 0.5\nparams"))
    code, out, _ = run(capsys, "plan", file, "--diff", other, "--format", "html")
    assert code == 0
    assert read(out).all("h1")[0].line == f"From {file} to {other}"
    assert "~ changed" in read(out).text


def test_a_stream_that_is_not_utf_8_gets_references(file):
    command = [sys.executable, "-m", "dpframework", "plan", str(file), "--format", "html"]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert done.stdout.isascii()
    assert "größe" in read(done.stdout.decode("ascii")).text


# --- in a browser ---------------------------------------------------------------------------------------------------

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser to look at the page with: none of {', '.join(NAMES)} is installed")
    return found


@pytest.fixture
def browse(chromium, tmp_path):
    """Return what opens a page file and returns its document, after its scripts, and what it says on the console."""

    def opened(path: Path, *flags: str) -> tuple[str, list[str]]:
        quiet = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
        command = [chromium, *quiet.split(), "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
                   "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"]  # fmt: skip
        environment = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run([*command, *(flags or ("--virtual-time-budget=5000", "--dump-dom")), path.as_uri()],
                              capture_output=True, text=True, timeout=120, check=True, env=environment)  # fmt: skip
        return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    return opened


@pytest.fixture
def ask(browse, tmp_path):
    """Return what shows a page in a frame of some width, and evaluates a script there: `view` is its window."""

    def asked(page: str, script: str, *, width: int = 1280) -> Any:
        around = f"""<!doctype html><title>frame</title><body>
            <iframe width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>
            <script>onload = async () => {{
                const view = document.querySelector("iframe").contentWindow, page = view.document;
                const boxes = () => [...page.querySelectorAll(".box")].filter((b) => b.checkVisibility()).length;
                const later = (time = 100) => new Promise((done) => setTimeout(done, time));
                const out = await (async () => {{ {script} }})();
                document.body.dataset.out = JSON.stringify(out);
            }};</script>"""
        (tmp_path / "frame.html").write_text(around, encoding="utf-8")
        shown, console = browse(tmp_path / "frame.html")
        assert console == []
        return json.loads(read_attribute(shown, "data-out"))

    return asked


def read_attribute(shown: str, name: str) -> str:
    return html.unescape(re.search(rf'{name}="([^"]*)"', shown)[1])


def test_the_script_runs_and_the_console_stays_silent(browse, tmp_path, study, table, large):
    pages = {
        "run": html_report(study.plan(), study.run(table), title=ODD),
        "large": html_report(large),
        "difference": html_difference(difference(study.plan(), several()), before=ODD),
    }
    for name, page in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(page, encoding="utf-8")
        shown, console = browse(path)
        assert 'data-script="ran"' in shown
        assert console == []
        assert "<title>owned</title>" not in shown
    assert int(read_attribute(browse(tmp_path / "large.html")[0], "data-arcs")) > 0


def test_the_console_tells_of_what_a_page_must_not_do(browse, tmp_path, study):
    page = html_report(study.plan())
    path = tmp_path / "bad.html"
    for planted in ("<img src='http://127.0.0.1:9/x.png'>", "<script>owned = 1</script>"):
        path.write_text(page.replace("<footer>", planted + "<footer>"), encoding="utf-8")
        shown, console = browse(path)
        assert any("Content Security Policy" in line for line in console)
        assert 'data-script="ran"' in shown


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_does_not_scroll_sideways(ask, study, table, large, width):
    long = dpf.Schema([dpf.Boolean("a" * 300), dpf.Numeric("age", 0, 100, bins=4)])
    wordy = dpf.Study(long, epsilon=1.5, allow=["mcmc-converged"])
    wordy.add("both", Hostile())
    plan = wordy.plan()
    for page in (html_report(study.plan(), study.run(table)), html_report(large), html_report(plan, title="b" * 300),
                 html_difference(difference(plan, several()), before="c" * 200)):  # fmt: skip
        script = """for (const d of page.querySelectorAll("details")) d.open = true;
                    await later(); return page.documentElement.scrollWidth"""
        assert ask(page, script, width=width) <= width


def test_folding_by_button_link_and_paper(ask, large):
    nodes = len(list(node_tree(large).walk()))
    script = """
        const out = {start: boxes()};
        page.querySelector("[data-fold=none]").click(); out.unfolded = boxes();
        page.querySelector("[data-fold=all]").click(); out.folded = boxes();
        view.dispatchEvent(new Event("beforeprint")); out.paper = boxes();
        view.dispatchEvent(new Event("afterprint")); out.after = boxes();
        const summaries = [...page.querySelectorAll(".tree summary")];
        summaries[1].focus(); out.focused = page.activeElement === summaries[1];
        out.outline = view.getComputedStyle(summaries[1]).outlineStyle;
        const last = [...page.querySelectorAll(".tree li")].pop();
        out.hidden = !last.checkVisibility();
        view.location.hash = last.id; await later(); out.revealed = last.checkVisibility();
        return out;
    """
    out = ask(html_report(large), script)
    assert 6 <= out["start"] <= MOST_OPEN
    assert (out["unfolded"], out["paper"]) == (nodes, nodes)
    assert out["folded"] == out["after"] == 6
    assert out["focused"]
    assert out["hidden"]
    assert out["revealed"]


def test_arrows_lead_to_what_uses_a_release_and_light_up_with_it(ask, study):
    script = """
        const arcs = () => page.querySelectorAll(".arcs > path").length;
        const out = {drawn: arcs()};
        const link = page.querySelector(".kind-step .to-step");
        link.focus(); await later();
        out.related = [...page.querySelectorAll(".box.related .name")].map((n) => n.textContent);
  page.querySelector("[data-fold=all]").click(); await later();
        out.folded = arcs();
        return out;
    """
    study.add_plan("other", deep(1))
    out = ask(html_report(study.plan()), script)
    plan = study.plan()
    uses = sum(len(row.uses) for row in node_tree(plan).walk())
    assert out["drawn"] == uses
    assert out["related"] == ["outer", "sum"]
    assert out["folded"] == 0


def test_without_its_script_everything_is_there(browse, tmp_path, large):
    path = tmp_path / "page.html"
    path.write_text(re.sub(r"<script>.*</script>", "", html_report(large), flags=re.DOTALL), encoding="utf-8")
    shown, _ = browse(path)
    explained = shown.count('<details class="explained"')
    assert shown.count("<details open") == shown.count("<details") - explained > 0
    assert re.search(r'<p class="tools" hidden', shown)


def test_paper_shows_every_step(browse, tmp_path, large):
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext to read the printed page with")
    path, pdf = tmp_path / "page.html", tmp_path / "page.pdf"
    path.write_text(html_report(large), encoding="utf-8")
    browse(path, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    text = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], capture_output=True, text=True, check=True).stdout
    printed = {int(number) for number in re.findall(r"step\s+(\d+)", text)}
    assert printed >= set(range(1, len(step_rows(large)) + 1))
