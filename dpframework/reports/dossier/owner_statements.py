"""The owner's statements: facts that no plan can know, written once for all studies.

The file is in TOML and has a table for each topic. Under `[study.NAME]` it may give statements for one study, which
replace the general ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.facts.toml import kind_of, prefix_errors, read_toml, refuse_unknown, toml_lines

#: The statements that an owner may make: for each topic its keys, and for each key the question that it answers.
TOPICS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "product": {
            "name": "What is the published product called?",
            "description": "What is it, in a sentence or two?",
            "intended_use": "What is it for?",
            "type": "Is it Summary statistics, a Machine learning model, a Dataset, Synthetic data or SQL queries?",
            "region": "Which region does it describe, or whose law applies?",
            "sector": "Which sector: Technology, Healthcare, Education, Government, Energy or Finance?",
            "publication_date": "When is it first published (YYYY-MM-DD)?",
            "releases": "Is it published once, or many times, and what is planned for these data later?",
            "data_source": "Are the data Static, or Dynamic since new rows come over time?",
            "sources": "Where can people read more?",
        },
        "owner": {
            "organisation": "Who publishes it?",
            "authors": "Who filled this in?",
        },
        "trust": {
            "actors": "Who takes part, who sees what, and why is each trusted with it?",
        },
        "security": {
            "access": "Who can reach the rows, the ledger and the machine, and who grants that?",
            "measures": "How are the rows protected in storage and in transit?",
            "timing": "Who can see how long runs take, or what else a run leaves on the machine?",
        },
        "collection": {
            "how": "How were the rows collected, on what legal ground, and were people told?",
            "retention": "How long are rows kept, and what is not collected at all?",
        },
        "choices": {
            "bounds": "Where do bounds, cuts and values of the schema come from?",
            "looks": "Was anything chosen by looking at the rows: questions, budgets, parameters?",
        },
        "justification": {
            "epsilon": "Why is this epsilon right, and who decided it?",
            "harm": "What would it mean for a person if the protection failed, and for a group if numbers are off?",
            "process": "How were the other choices made and checked?",
        },
    }
)

#: How files of statements are recognized: by the first line of `statements_template`.
STATEMENTS_FILE = FileKind.of_pattern("an owner's statements", r"^# The owner's statements\b")

_HEAD = """# The owner's statements for all studies. Leave empty what nobody can answer yet. A dossier shows it as open.
# For one study only, write the same tables below [study.NAME], such as [study.yearly.product].
"""


@final
@attrs.frozen
class Statements:
    """An owner's statements about a study.

    Attributes
    ----------
    answers
        The statements by "topic.key", without those that are left open.
    source
        The name of the file that the statements were read from; empty if there is no file.
    """

    answers: Mapping[str, str] = attrs.field(factory=dict)
    source: str = ""

    @classmethod
    def load(cls, path: str | os.PathLike[str], study: str = "") -> Statements:
        """Read the general statements and those for one study from a file.

        Raises
        ------
        InputError
            If the file cannot be read, or has an unknown topic or key, or a value that is no text. For an unknown name
            the message suggests the nearest known one.
        """
        source = Path(path)
        form = read_toml(source, "an owner's statements")
        with prefix_errors(f"{source}: "):
            refuse_unknown(form, (*TOPICS, "study"), "unknown table")
            studies = form.pop("study", {})
            if not isinstance(studies, Mapping):
                raise InputError("study must be a table with one table for each study, such as [study.yearly.product]")
            said = dict(_texts(form))
            own = {
                name: dict(_texts(_table(one, f"[study.{name}]"), f"study.{name}.")) for name, one in studies.items()
            }
        return cls({**said, **own.get(study, {})}, str(source))

    def __getitem__(self, name: str) -> str:
        """Return the statement of a "topic.key", or an empty text if it is open."""
        return self.answers.get(name, "")


def _texts(form: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    refuse_unknown(form, TOPICS, f"[{where.rstrip('.')}] unknown table" if where else "unknown table")
    for topic, keys in form.items():
        place = f"[{where}{topic}] "
        refuse_unknown(_table(keys, place.strip()), TOPICS[topic], f"{place}unknown key")
        for key, text in keys.items():
            if not isinstance(text, str):
                raise InputError(f"{place}{key} must be a text, not {kind_of(text)}")
            if text.strip():
                yield f"{topic}.{key}", " ".join(text.split())


def _table(form: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(form, Mapping):
        raise InputError(f"{place} must be a table, not {kind_of(form)}")
    return form


def statements_template() -> str:
    """Return the text of a statements file in which everything is open, with the question above each key.

    Examples
    --------
    >>> "[trust]" in statements_template()
    True
    """
    blocks = [_HEAD]
    for topic, keys in TOPICS.items():
        lines = "".join(f"# {question}\n{toml_lines({key: ''})}" for key, question in keys.items())
        blocks.append(f"[{topic}]\n{lines}")
    return "\n".join(blocks)
