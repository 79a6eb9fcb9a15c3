"""The table of kinds: each kind that it holds is drawn, written, totalled, compared and explained everywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.facts.json_reader_and_schema_check import require_form
from dpframework.mechanisms import DiscreteLaplace
from dpframework.plan import Node
from dpframework.plan.node_kind_table import KINDS, NodeKind, kind_of, read_node
from dpframework.reports import dot, markdown_report, mermaid, tree
from dpframework.reports.difference import difference
from dpframework.reports.formats import ReportFormat
from dpframework.reports.html import html_difference, html_report
from dpframework.reports.report_files_and_release_list import lay_out
from dpframework.reports.text_plan_drawings import difference_tree
from dpframework.run.node_states import SequentialState, state_of

SCHEMA = dpf.Schema([dpf.Boolean("a")])
#: Shares no code with totals, which are tested against it.
ORACLES = {"verify/accountants/exact_loss_oracle.py"}
PLANS = ["add-or-remove-one", "replace-one"]


def count(name: str, epsilon: Any = "0.5", **options: Any) -> Node:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon), **options)


EVERY_KIND = dpf.sequential(
    count("one"),
    dpf.parallel(count("two"), by=SCHEMA["a"]),
    dpf.either(count("three"), count("four")),
    dpf.repeat(2, count("five")),
    dpf.sample("0.5", count("six")),
    dpf.spend("seven", dpf.kind("eight", dpf.queries.Count(), DiscreteLaplace), epsilon=1),
    dpf.post("end", ["one"]),
)


@pytest.mark.parametrize("relation", PLANS)
def test_a_page_shows_the_rule_and_the_sign_of_each_kind(plan_of: Callable[..., dpf.StudyPlan], relation: str) -> None:
    plan = plan_of(EVERY_KIND, SCHEMA, relation)
    assert {placed.kind.name for placed in plan.index.nodes} == {kind.name for kind in KINDS.values()}
    page = html_report(plan)
    rules = page[page.index('<dl class="rules">') :]
    rules = rules[: rules.index("</dl>")]
    for kind in KINDS.values():
        assert f'id="i-{kind.name}" viewBox="0 0 16 16">{kind.icon}</symbol>' in page
        assert re.search(rf'href="#i-{kind.name}"/></svg> {kind.name}</dt>', rules)
        assert kind.rule[plan.relation].replace("'", "&#39;") in rules
    used = set(re.findall(r'href="#(i-[a-z]+)"', page))
    assert used <= set(re.findall(r'<symbol id="(i-[a-z]+)"', page))


def test_kinds_differ_in_names_signs_and_rules() -> None:
    for facts in ("name", "icon"):
        assert len({getattr(kind, facts) for kind in KINDS.values()}) == len(KINDS)
    for relation in dpf.Relation:
        assert len({kind.rule[relation] for kind in KINDS.values()}) == len(KINDS)


def test_every_class_of_node_has_a_kind_and_a_state() -> None:
    here = {**vars(dpf.plan.nodes), **vars(dpf.plan.spend_block_node)}.values()
    public = {cls for cls in here if isinstance(cls, type) and issubclass(cls, Node)}
    classes = {cls for cls in public if cls is not Node and not cls.__name__.startswith("_")}
    assert classes == set(KINDS)
    assert all(state_of.dispatch(cls) is not state_of.dispatch(Node) for cls in classes)
    with pytest.raises(dpf.InputError, match="a plan holds no Node"):
        kind_of(Node())


def test_four_files_name_every_kind_and_no_other_file_lists_them() -> None:
    core = Path(dpf.__file__).parent
    names = {kind.__name__ for kind in KINDS}
    listed = set()
    for file in core.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        used = {getattr(node, "id", getattr(node, "name", None)) for node in nodes}
        if len(used & names) > len(names) / 2 + 1:
            listed.add(file.relative_to(core).as_posix())
    # how to release a kind without a miner is in the last; the spending kind is defined in a file of its own
    assert listed - ORACLES == {
        "plan/nodes.py",
        "plan/node_kind_table.py",
        "run/node_states.py",
        "study/plan_runner_without_miner.py",
    }


def test_the_schema_of_plan_files_defines_each_kind_without_a_form_of_its_own() -> None:
    for kind in KINDS.values():
        assert kind.form is None
        require_form_of(kind.name)


def require_form_of(name: str) -> None:
    with pytest.raises(dpf.InputError, match="must contain"):
        require_form({"kind": name}, "dpframework.plan", "plan.schema.json", "node")


# --- a kind of our own ------------------------------------------------------------------------------------------------


@attrs.frozen
class Twice(Node):
    """A part that is released two times, from the same rows."""

    part: Node
    reason: str

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.part,)

    def with_children(self, children: Any) -> Node:
        (part,) = children
        return attrs.evolve(self, part=part)


TWICE = NodeKind(
    name="twice",
    label=lambda node: f"twice, since {node.reason}",
    rule="the same two times: its loss doubles",
    icon='<path d="M1 1h2"/>',
    compose=lambda node, parts, losses, plan: losses.repeat(parts[0], 2),
    write=lambda node, parts, noise, rows: {"reason": node.reason, "part": parts[0]},
    read=lambda form, parts, mechanisms: Twice(parts[0], form["reason"]),
    facts=lambda node: {"reason": node.reason},
    times=lambda node, position: "two times",
    form={"required": ["kind", "reason", "part"], "properties": {"reason": {"type": "string"}}},
)


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Node]:
    """Register the kind, in this one place, for one test."""
    monkeypatch.setitem(KINDS, Twice, TWICE)
    state_of.register(Twice, SequentialState)
    return lambda reason: dpf.sequential(count("one"), Twice(count("two"), reason), name="all")


def test_a_new_kind_appears_everywhere(twice: Callable[[str], Node], plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(twice("it matters"), SCHEMA, epsilon=2)
    assert plan.total().epsilon == 1.5
    again = dpf.StudyPlan.from_json(plan.to_json())
    assert again.hash == plan.hash
    assert again.total() == plan.total()
    label = "twice, since it matters"
    for text in (tree(plan), mermaid(plan), dot(plan), markdown_report(plan), html_report(plan)):
        assert label in text
    assert label in lay_out(ReportFormat.TERMINAL, plan, title="it")
    assert label in [text for _, text in plan.graph().nodes(data="label")]
    assert TWICE.rule[plan.relation] in html_report(plan)
    assert TWICE.icon in html_report(plan)
    found = difference(plan, plan_of(twice("nobody asked"), SCHEMA, epsilon=2))
    assert "reason from it matters to nobody asked" in str(found.changes)
    assert "twice, since nobody asked (was twice, since it matters)" in difference_tree(found)
    assert "nobody asked" in html_difference(found)
    assert found.to_dict()["root"]["children"][1]["after"]["kind"] == "twice"


def test_a_new_kind_is_released(twice: Callable[[str], Node], opened: Callable[..., Any]) -> None:
    table, run = opened(twice("it matters"), dpf.Table.from_codes(SCHEMA, [[0, 1]]))
    table.release("one")
    table.release("two")
    assert run.spent is not None


def test_a_form_of_an_unknown_kind_is_refused_by_its_name() -> None:
    """A file's schema refuses it first; what is read without a schema is read by the same function."""
    with pytest.raises(dpf.InputError, match=r"^a plan has no part of kind 'parallell'$"):
        read_node({"kind": "parallell", "parts": []}, {})
