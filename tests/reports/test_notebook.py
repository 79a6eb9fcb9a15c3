"""What a notebook shows: schema, table, plan, findings and results, escaped, and nothing of the rows."""

import ast
import json
from collections import Counter
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts import Below, Equals
from dpframework.facts.notebook_html import NotebookText, html_table
from dpframework.facts.privacy_losses import ByRelation, readable
from dpframework.redescriptions import Redescription, Redescriptions
from dpframework.results import Frequencies, Noisy
from dpframework.study.notebook_views import cost_bars

ODD = "<script>alert(1)</script> & more"
SCHEMA = dpf.Schema(
    [dpf.Boolean(ODD), dpf.Numeric("size", 0, 9, bins=3), dpf.Categorical("kind", list("abcdefghij"))], max_rows=5000
)
NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/examples").rglob("*.ipynb"))


@pytest.fixture
def study():
    study = dpf.Study(SCHEMA, epsilon=100)
    study.add("kinds", dpf.miner("histogram", attribute="kind", epsilon=2))
    study.add("tree", dpf.miner("dp-id3", target=ODD, attributes=["size"], epsilon=2, max_depth=2))
    study.add("distances", dpf.miner("dp-dilca", attributes=["kind", ODD], target="kind", epsilon=2))
    return study


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    return dpf.Table.from_codes(SCHEMA, np.stack([rng.integers(0, a.size, 1237) for a in SCHEMA]))


class _Balanced(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.sides = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag in ("table", "caption", "thead", "tbody", "tr", "th", "td", "pre", "p", "h4", "meter")
        # no sheet, script or colour, so that each viewer shows it in its own theme
        assert dict(attributes).keys() <= {"style", "scope", "min", "max", "value"}
        assert "color" not in dict(attributes).get("style", "")
        if tag == "th":
            assert dict(attributes)["scope"] in ("col", "row")
        if tag in ("th", "td"):  # VS Code's sheet has `table, th, tr { text-align: left !important }` for outputs
            assert dict(attributes)["style"] in ("text-align: left !important", "text-align: right !important")
            self.sides.append(dict(attributes)["style"].split()[1])
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_numbers_stand_below_their_heads_in_any_viewer():
    table = _Balanced(html_table(["kind", "rows"], [["a", "12"], ["b", "7"]]))
    assert table.sides == ["left", "right"] * 3


def test_everything_shows_itself_and_every_text_is_escaped(study, table):
    plan = study.plan()
    results = study.run(table, seed=1)
    things = [SCHEMA, table, study, plan, plan.check(), *plan.check(), results, *results.values(), results["tree"].tree]
    assert plan.check()
    for thing in things:
        shown = _Balanced(thing._repr_html_())
        assert "".join(shown.texts).strip()
    told = "".join(_Balanced(plan._repr_html_()).texts)
    for path, _ in plan.placed_steps():
        assert path in told
    assert "total epsilon 6" in told
    for _, _step, calibration in plan.calibrated_steps():
        assert f"epsilon {readable(calibration.losses.pure.under(plan.relation))}" in told
        assert calibration.preview.text in told
    assert ODD in told
    told = "".join(_Balanced(results._repr_html_()).texts)
    assert "NOT PRIVATE" in told
    for line in str(results["kinds"]).splitlines()[1:-1]:
        label, count, interval = line.split("  ")[0], *line.split(maxsplit=1)[1].split("  ", 1)
        assert label in told
        assert count in told
        assert interval.strip() in told


def test_budgets_are_bars_and_results_are_tables(study, table):
    plan = study.plan()
    assert '<meter min="0" max="1" value="0.06">6 %</meter>' in plan._repr_html_()
    results = study.run(table, seed=1)
    assert '<meter min="0" max="1" value="0.06">6 %</meter>' in results._repr_html_()
    assert "<pre" not in results["kinds"]._repr_html_()
    assert results["kinds"]._repr_html_().count('scope="row"') == 10  # values
    assert results["distances"]._repr_html_().startswith("<table>")
    shared = dpf.Study(SCHEMA, epsilon=1)
    shared.add("x", dpf.share("0.5", "histogram", attribute="kind"))
    assert "share 0.5" in shared._repr_html_()


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"rows": 5000}, "exactly 5,000 rows"),
        ({"max_rows": 5000, "about_rows": 1200}, "at most 5,000 rows, about 1,200"),
        ({}, "a secret number of rows"),
    ],
)
def test_a_schema_says_what_is_known_of_the_number_of_rows(facts, told):
    shown = _Balanced(dpf.Schema([dpf.Boolean("ill", view="left"), dpf.Boolean("old")], **facts)._repr_html_()).texts
    cells = ["ill", "Boolean", "false, true", "left", "old", "Boolean", "false, true"]
    assert shown == [f"Schema of a table of {told}", "attribute", "kind", "values", "view", *cells]


def test_findings_are_a_table_a_dataframe_and_a_picture(study):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    found = study.plan().check()
    rows = [(finding.code, finding.severity.value, finding.message) for finding in found]
    assert len({code for code, _, _ in rows}) > 1
    assert _Balanced(found._repr_html_()).texts == ["code", "severity", "finding", *(t for row in rows for t in row)]
    assert _Balanced(found[0]._repr_html_()).texts == ["code", "severity", "finding", *rows[0]]
    assert _Balanced(type(found)()._repr_html_()).texts == ["no findings"]
    assert found.to_frame().rows() == rows
    assert found.to_frame().columns == ["code", "severity", "finding"]
    axes = found.plot()
    kinds = [f"{code} {severity}" for code, severity, _ in rows]
    drawn = dict(zip([label.get_text() for label in axes.get_yticklabels()], axes.patches, strict=True))
    assert {kind: bar.get_width() for kind, bar in drawn.items()} == Counter(kinds)
    assert axes.get_title() == f"{len(rows)} findings"
    assert type(found)(found[:1]).plot().get_title() == "1 finding"
    pyplot.close("all")


def test_losses_are_drawn_as_bars(study, table):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    plan, results = study.plan(), study.run(table, seed=1)
    for thing, losses in (
        (study, [float(c.losses.pure.under(plan.relation)) for _, _, c in plan.calibrated_steps()]),
        (plan, [float(c.losses.pure.under(plan.relation)) for _, _, c in plan.calibrated_steps()]),
        (results, results.to_frame()["epsilon"].to_list()),
    ):
        axes = thing.plot()
        assert [bar.get_width() for bar in axes.patches] == losses[:30]
        assert axes.get_xlabel() == "epsilon of each release"
    pyplot.close("all")


def test_where_a_release_has_no_epsilon_its_rho_is_drawn_and_nothing_where_it_has_none():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    def release(epsilon, rho):
        return SimpleNamespace(losses=SimpleNamespace(pure=ByRelation(epsilon, None), zcdp=ByRelation(rho, None)))

    relation = dpf.Relation.ADD_OR_REMOVE_ONE
    pure = [("a", release(Fraction(1, 2), Fraction(1, 8))), ("b", release(Fraction(2), None))]
    for releases, kind, amounts in (
        (pure, "epsilon", [0.5, 2]),
        ([*pure, ("c", release(None, Fraction(3)))], "rho", [0.125, 0, 3]),
        ([("a", release(Fraction(1), None))] * 31, "epsilon", [1] * 30),
    ):
        axes = cost_bars(releases, relation, "Losses")
        assert [bar.get_width() for bar in axes.patches] == amounts
        assert [label.get_text() for label in axes.get_yticklabels()] == [path for path, _ in releases][:30]
        assert (axes.get_xlabel(), axes.get_title()) == (f"{kind} of each release", "Losses")
        assert axes.yaxis_inverted()
    pyplot.close("all")


def test_a_study_shows_each_step_with_its_miner_its_budget_and_what_else_it_was_given():
    study = dpf.Study(SCHEMA, epsilon=3, delta="1e-6", unit="id")
    study.add("kinds", dpf.miner("histogram", attribute="kind", epsilon="0.5"))
    study.add("shared", dpf.share("0.25", "count"))
    study.add_plan("own", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1)))
    told, *cells = _Balanced(study._repr_html_()).texts
    assert told.startswith(
        "A study with a budget of epsilon 3.0, delta 0.000001, under add-or-remove-one, protecting one id"
    )
    rows = [tuple(cells[k : k + 4]) for k in range(0, len(cells), 4)]
    assert rows[0] == ("step", "miner", "budget", "parameters")
    assert cells[4:] == [
        "kinds",
        "histogram",
        "epsilon 1/2",
        'attribute = "kind"',
        "shared",
        "count",
        "share 0.25",
        "own",
    ]
    assert ", delta" not in dpf.Study(SCHEMA, epsilon=3)._repr_html_()


def test_every_class_of_results_has_a_dataframe_a_picture_and_a_table():
    from dpframework.study.plugin_registry import registry

    kinds = {found.component.result for found in registry().miners.values()} - {None}
    assert len(kinds) > 12
    for kind in kinds:
        assert callable(getattr(kind, "to_frame", None)), kind
        assert callable(getattr(kind, "plot", None)), kind
        assert kind._repr_html_ is not NotebookText._repr_html_, kind


def test_a_tree_is_a_table_of_its_tests_and_a_dataframe_of_its_rules(study, table):
    results = study.run(table, seed=1)
    result, rules = results["tree"], results["tree"].rules()
    frame = results.to_frame("tree")
    assert frame["rule"].to_list() == [str(rule.description) for rule in rules]
    assert frame["class"].to_list() == [rule.label for rule in rules]
    assert frame["rows"].to_list() == [rule.rows for rule in rules]
    labels = result.tree.target.labels
    assert np.allclose(sum(frame[f"rows of {label}"] for label in labels), frame["rows"])
    page = result._repr_html_()
    assert "<pre" not in page
    assert page.count('scope="row"') >= len(rules) > 1
    texts = _Balanced(page).texts
    for rule in rules:
        assert f"{rule.rows:.0f}" in texts
        assert f"{100 * rule.probability:.0f} %" in texts
    assert len(results.to_frame("distances")) == 100
    with pytest.raises(dpf.InputError, match="which is no table; install the plugin"):
        attrs.evolve(results, found={"x": [1]}).to_frame("x")


def test_redescriptions_are_a_table_and_a_dataframe():
    left, right = Equals(ODD, "true"), Below("size", 3)
    items = [Redescription(left, right, both=Noisy(400, 50), apart=Noisy(k, 50)) for k in (100, 300)]
    found = Redescriptions(items, candidates=9)
    page = found._repr_html_()
    assert "<pre" not in page
    assert page.count('scope="row"') == 2
    texts = _Balanced(page).texts
    assert f"{items[0].jaccard:.2f} [0.78, 0.83]" in texts
    assert "9 candidates were looked at" in "".join(texts)
    frame = found.to_frame()
    assert frame["jaccard"].to_list() == [item.jaccard for item in found]
    assert frame["left_support"].to_list() == [None, None]
    assert frame["trusted"].to_list() == list(found.starred)
    assert "No redescriptions" in Redescriptions([], candidates=3)._repr_html_()
    assert Redescriptions([]).to_frame().shape == (0, len(frame.columns))


def test_findings_are_drawn_as_one_bar_a_check(study):
    pytest.importorskip("matplotlib").use("Agg")
    findings = study.plan().check()
    axes = findings.plot()
    assert sum(bar.get_width() for bar in axes.patches) == len(findings)
    assert {text.get_text().split()[0] for text in axes.get_yticklabels()} == {f.code for f in findings}
    assert findings.to_frame()["code"].to_list() == [finding.code for finding in findings]


def test_a_table_shows_its_schema_and_nothing_of_its_rows(table):
    shown = table._repr_html_()
    assert "1237" not in shown
    assert "1,237" not in shown
    assert shown == dpf.Table.from_codes(SCHEMA, table.codes[:, :7])._repr_html_()


def test_results_with_a_picture_have_one_word_for_it(study, table):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    results = study.run(table, seed=1)
    assert isinstance(results["kinds"], Frequencies)
    for drawn in (results["kinds"], results["tree"], results["tree"].tree, results["distances"]["kind"]):
        axes = drawn.plot()
        assert axes.plot is not None
        _, own = pyplot.subplots()
        assert drawn.plot(own) is own
        pyplot.close("all")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_holds(notebook, tmp_path, monkeypatch):
    """Each cell runs in order; one whose last line is a value has something to show."""
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    form = json.loads(notebook.read_text())
    assert form["nbformat"] == 4
    names: dict[str, object] = {}
    shown = 0
    for cell in form["cells"]:
        assert cell.get("outputs", []) == []  # outputs are for those who run it
        if cell["cell_type"] != "code":
            continue
        lines = ast.parse("".join(cell["source"]))
        last = lines.body.pop() if isinstance(lines.body[-1], ast.Expr) else None
        exec(compile(lines, notebook.name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)
            shown += value is not None
    assert shown >= 4


def test_there_is_a_notebook():
    assert NOTEBOOKS
