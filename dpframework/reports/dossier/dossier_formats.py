"""A dossier as a page, in Markdown, for a terminal, as JSON, or as CSV."""

from __future__ import annotations

import json
from typing import assert_never

from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.reports.dossier.dossier_content import Basis, Dossier
from dpframework.reports.formats import MARKDOWN_MARK, PAGE_FILE, ReportFormat
from dpframework.reports.section_blocks import Paragraph, TableBlock
from dpframework.reports.sections import Section

SUBTITLE = "Dossier for a review"
_CAPTION = (
    "The questions follow the pyramid and the hazards of NIST SP 800-226. Each answer says what it rests on: the plan, "
    "a test of the code, the ledger, or the owner's word."
)

#: How files of a dossier are recognized, by their format. Dossiers are written to files in these formats only.
DOSSIER_FILES = {
    ReportFormat.HTML: PAGE_FILE,
    ReportFormat.MARKDOWN: FileKind.of_pattern("a dossier", rf"(?s)^# .*\n\n{MARKDOWN_MARK}\n$"),
    ReportFormat.JSON: FileKind.of_pattern("a dossier", r'^\{\s*"answered": \d'),
}


def dossier_sections(found: Dossier) -> list[Section]:
    """Return the sections of a dossier: open questions, each layer of the pyramid, topics out of scope, and hazards."""
    sections = []
    opened = [one for one in found.items if one.open]
    if opened:
        rows = [(one.item.title, answer.text) for one in opened for answer in one.answers if answer.basis is Basis.OPEN]
        sections.append(Section("open", "What is open", [TableBlock(("topic", "what is missing"), rows)]))
    layers = dict.fromkeys(one.item.layer for one in found.items)
    for number, layer in enumerate(layers, start=1):
        tables = []
        for one in found.items:
            if one.item.layer == layer:
                answers = [(answer.basis.value, answer.text) for answer in one.answers]
                title = f"{one.item.title[0].upper()}{one.item.title[1:]}"
                tables.append(TableBlock(("basis", "answer"), answers, one.item.question, title=title))
        first = [Paragraph(_CAPTION, aside=True)] if number == 1 else []
        sections.append(Section(f"layer-{number}", f"{layer[0].upper()}{layer[1:]}", [*first, *tables]))
    outside = TableBlock(("topic", "why this study does not have it"), found.out_of_scope)
    sections.append(Section("out-of-scope", "Out of scope", [outside]))
    hazards = [(one.text, one.section, one.topic, state) for one, state in found.hazards]
    heads = ("hazard", "section", "answered under", "state")
    caption = "The hazards of NIST SP 800-226 in our words, with the sections of its public draft."
    return [*sections, Section("hazards", "Hazards", [TableBlock(heads, hazards, caption)])]


def dossier_file(form: ReportFormat, found: Dossier, *, title: str) -> str:
    """Return the text of a dossier in a format."""
    headline = found.headline
    match form:
        case ReportFormat.HTML:
            from dpframework.reports.html import html_sections

            return html_sections(dossier_sections(found), [headline], title=title, subtitle=SUBTITLE)
        case ReportFormat.MARKDOWN:
            from dpframework.reports.markdown import markdown_sections

            return markdown_sections(dossier_sections(found), [headline], title=f"{title}: dossier for a review")
        case ReportFormat.TERMINAL:
            from dpframework.reports.terminal_renderer import sections_text

            return sections_text(dossier_sections(found), [headline], title=f"{title}: dossier for a review")
        case ReportFormat.JSON:
            return json.dumps(found.to_dict(), indent=2) + "\n"
        case ReportFormat.CSV:
            from dpframework.facts.output_formats_times_and_csv import csv_text

            rows = [
                (one.item.layer, one.item.title, one.item.question, answer.basis.value, answer.text)
                for one in found.items
                for answer in one.answers
            ]
            return csv_text(("layer", "topic", "question", "basis", "answer"), rows)
        case _:
            assert_never(form)
