"""Natural mistakes in files, commands and Python, with the page that lists what is said of each.

`python tests/mistakes.py` writes the page, `docs/mistakes.md`, anew. Look at what changed before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import polars as pl

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts.errors import DPFrameworkError

PAGE = Path(__file__).parents[1] / "docs" / "mistakes.md"

SCHEMA = """
[[attribute]]
name = "age"
kind = "numeric"
lower = 18
upper = 90
bins = 8
[[attribute]]
name = "sex"
kind = "categorical"
values = ["f", "m"]
[[attribute]]
name = "ill"
kind = "boolean"
"""
STUDY = """
[data]
path = "visits.csv"
schema = "visits.schema.toml"
[privacy]
epsilon = 1
[[step]]
name = "ages"
miner = "histogram"
epsilon = 0.5
params = { attribute = "age" }
"""
ROWS = "pid,age,sex,ill\n" + "".join(f"{i // 2},{18 + i % 70},{'fm'[i % 2]},{i % 3 == 0}\n" for i in range(400))
FRAME = pl.DataFrame({"age": [20, 70], "sex": ["f", "m"], "ill": [True, False]})
RUN = "run study.toml --out out"
INFERRED = 'inferred = ["bounds: observed"]\n[[attribute]]\nname = "age"'
FILES = {"visits.csv": ROWS, "visits.schema.toml": SCHEMA, "study.toml": STUDY}


@attrs.frozen
class Mistake:
    """A mistake: what somebody did, with the changes to the files, and the command or the code that meets it."""

    what: str
    changes: Mapping[str, tuple[str, str] | str] = attrs.field(factory=dict)
    command: str = ""
    code: Callable[[], object] | None = None

    def sentence(self) -> str:
        """Make the mistake in the working folder, and return what is said."""
        for name, text in FILES.items():
            Path(name).write_text(text)
        for name, change in self.changes.items():
            if isinstance(change, str):
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_text(change)
            else:
                text = Path(name).read_text()
                assert change[0] in text, (self.what, change)
                Path(name).write_text(text.replace(change[0], change[1]))
        if self.code is not None:
            try:
                self.code()
            except (DPFrameworkError, KeyError) as error:
                return str(error.args[0])
            return "nothing is said"
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(self.command.split(" "))
        assert code in (1, 2), (self.what, code)
        said = [line for line in err.getvalue().splitlines() if not line.startswith("NOT private")]
        return (said or out.getvalue().splitlines())[0]


def study(what: str, old: str, new: str, command: str = "check study.toml") -> Mistake:
    """Return a mistake in the study file."""
    return Mistake(what, {"study.toml": (old, new)}, command)


def schema(what: str, old: str, new: str, command: str = "check study.toml") -> Mistake:
    """Return a mistake in the schema file."""
    return Mistake(what, {"visits.schema.toml": (old, new)}, command)


def data(what: str, text: str, command: str = RUN) -> Mistake:
    """Return a mistake in the data file."""
    return Mistake(what, {"visits.csv": text}, command)


def python(what: str, code: Callable[[], object]) -> Mistake:
    """Return a mistake in Python."""
    return Mistake(what, code=code)


UNTYPED: Any = dpf  # wrong types are among the mistakes


def _schema() -> dpf.Schema:
    return dpf.Schema([dpf.Numeric("age", 18, 90, bins=8), dpf.Categorical("sex", ["f", "m"]), dpf.Boolean("ill")])


def _study() -> Any:
    return dpf.Study(_schema(), epsilon=1)


def _added(then: str = "", **attributes: object) -> Any:
    made = _study()
    for name in (*attributes, *([then] if then else [])):
        made.add(name, dpf.miner("histogram", attribute={"ages": "age", "sexes": "sex"}[name], epsilon=1))
    return made


def _shares() -> None:
    made = _study()
    for name in ("age", "sex"):
        made.add(name, dpf.share(0.7, "histogram", attribute=name))


def _other_table() -> None:
    other = dpf.Schema([dpf.Boolean("ill")])
    _added(ages=1).run(dpf.table_from_frame(FRAME, other))


TREE = 'miner = "histogram"\nepsilon = 0.5\nparams = { attribute = "age" }'


def _step(miner: str, params: str) -> str:
    return f'miner = "{miner}"\nepsilon = 0.5\nparams = {{ {params} }}'


_LATER = 'attribute = "age", bins = ["ages"]'


def _before(step: str) -> str:
    return f"[[step]]\n{step}\n[[step]]"


_SHARES = "".join(
    f'[[step]]\nname = "{name}"\nminer = "histogram"\nshare = 0.7\nparams = {{ attribute = "age" }}\n' for name in "ab"
)
STUDIES = (
    study("The study has no epsilon.", "epsilon = 1\n", ""),
    study("Epsilon is 0.", "epsilon = 1\n", "epsilon = 0\n"),
    study("Epsilon has a decimal comma.", "epsilon = 1\n", "epsilon = 0,5\n"),
    study("Epsilon is a percentage.", "epsilon = 1\n", 'epsilon = "50 %"\n'),
    study("Delta is 1.", "epsilon = 1\n", "epsilon = 1\ndelta = 1\n"),
    study("The relation is misspelt.", "epsilon = 1\n", 'epsilon = 1\nrelation = "replaceone"\n'),
    study("A key is misspelt.", "epsilon = 1\n", "epsilom = 1\n"),
    study("A key is written twice.", "epsilon = 1\n", "epsilon = 1\nepsilon = 2\n"),
    study("A text has no quotes.", '"ages"', "ages"),
    study("A step has one bracket.", "[[step]]", "[step]"),
    study("Two steps have one name.", "[[step]]", _before('name = "ages"\nminer = "count"\nepsilon = 0.1')),
    study("A step names no miner.", 'miner = "histogram"\n', ""),
    study("The miner is misspelt.", '"histogram"', '"histgram"'),
    study("A parameter is misspelt.", "attribute =", "atribute ="),
    study("A parameter lacks.", 'attribute = "age"', ""),
    study("The attribute is not in the schema.", '"age"', '"agee"'),
    study("The parameters are a list.", '{ attribute = "age" }', '["age"]'),
    study("A list of attributes is one text.", TREE, _step("crosstab", 'attributes = "age"')),
    study("A mean is asked of labels.", TREE, _step("mean", 'attribute = "sex"')),
    study("A condition is a text.", TREE, _step("mean", 'attribute = "age", where = "sex = f"')),
    study("A criterion is misspelt.", TREE, _step("dp-id3", 'target = "ill", criterion = "ginni"')),
    study("A tree is too deep.", TREE, _step("dp-id3", 'target = "ill", max_depth = 60')),
    study("A step has neither an epsilon nor a share.", "epsilon = 0.5\n", ""),
    study("A step has both.", "epsilon = 0.5", "epsilon = 0.5\nshare = 0.5"),
    study("The epsilon is among the parameters.", 'attribute = "age"', 'attribute = "age", epsilon = 0.5'),
    study("A share is a percentage.", "epsilon = 0.5", "share = 50"),
    study("Shares add up to more than 1.", "[[step]]", f"{_SHARES}[[step]]"),
    study("Shares and epsilons are over the budget.", "[[step]]", _before('name = "n"\nminer = "count"\nshare = 0.7')),
    study("Epsilons are over the budget.", "epsilon = 0.5", "epsilon = 1.5"),
    study("A step in zCDP, and no delta.", "epsilon = 0.5\nparams = { ", "params = { rho = 0.1, "),
    study("A name in `allow` is unknown.", "epsilon = 1\n", 'epsilon = 1\nallow = ["mcmc"]\n'),
    study("`allow` is one text.", "epsilon = 1\n", 'epsilon = 1\nallow = "mcmc-converged"\n'),
    study("The unit is an attribute.", "epsilon = 1\n", 'epsilon = 1\nunit = "age"\n'),
    study("The unit is not in the file.", "epsilon = 1\n", 'epsilon = 1\nunit = "pidd"\n', RUN),
    study("A unit has 0 rows.", "epsilon = 1\n", 'epsilon = 1\nunit = "pid"\nrows_per_unit = 0\n'),
    study("A unit has several rows, and no column.", "epsilon = 1\n", "epsilon = 1\nrows_per_unit = 3\n"),
    study("A period has no date.", "epsilon = 1\n", 'epsilon = 1\nunit = "pid"\nperiod = "month"\n'),
    study("A separator has two characters.", "[privacy]", '[read]\nseparator = ";;"\n[privacy]'),
    study("The schema is not there.", "visits.schema.toml", "visit.schema.toml"),
)
SCHEMAS = (
    schema("A kind is misspelt.", '"numeric"', '"number"'),
    schema("The bounds are the wrong way round.", "lower = 18\nupper = 90", "lower = 90\nupper = 18"),
    schema("A bound lacks.", "upper = 90\n", ""),
    schema("A cut is outside the bounds.", "bins = 8", "cuts = [10, 40]"),
    schema("There are 0 bins.", "bins = 8", "bins = 0"),
    schema("A value is listed twice.", '["f", "m"]', '["f", "m", "f"]'),
    schema("Two attributes have one name.", '"sex"', '"age"'),
    schema("Labels have bins.", 'values = ["f", "m"]', "bins = 2"),
    schema("The schema was inferred from the data.", '[[attribute]]\nname = "age"', INFERRED),
)
_HEAD = "[privacy]\n"


def _read(what: str, options: str) -> Mistake:
    return study(what, _HEAD, f"[read{options}\n{_HEAD}")


def _derive(what: str, value: str, more: str = "", privacy: str = "") -> Mistake:
    column = f'[[derive]]\nname = "x"\nvalue = "{value}"\n{more}\n'
    return study(what, _HEAD, f"{column}{_HEAD}{privacy}")


_PEOPLE = 'per = "unit"'
_TOWNS = {"towns.csv": "code,state\nf,Bavaria\nm,Hesse\n"}


def _lookup(what: str, more: str) -> Mistake:
    column = f'[[derive]]\nname = "x"\nvalue = "sex"\n{more}\n'
    return Mistake(what, {**_TOWNS, "study.toml": (_HEAD, column + _HEAD)}, "check study.toml")


READING = (
    _read("The separator is a word.", ']\nseparator = "semicolon"'),
    _read("An option of reading has its name in another program.", ']\ndelimiter = ";"'),
    _read("A date format is written as in a spreadsheet.", '.columns.age]\ndate = "DD.MM.YYYY"'),
    _read("A null text is a number.", "]\nnull = -99"),
    _read("Labels are the wrong way round.", '.columns.sex]\nlabels = { female = "f" }'),
    _derive("A comparison has one sign.", "age = 30"),
    _derive("A condition is written as in C.", "ill && age > 30"),
    _derive("A condition is written as in SQL.", "case when ill then 1 else 0 end"),
    _derive("A label is misspelt in an expression.", "sex == 'w'"),
    _derive("A logarithm is taken.", "log(age)"),
    _derive("Nobody knows the bounds of a derived column.", "1 / (age - 50)"),
    _derive("A column of people lacks its key.", "any(ill)"),
    _derive("A column of people lacks the unit.", "any(ill)", _PEOPLE),
    _derive("A mean of each person is taken.", "mean(age)", _PEOPLE, 'unit = "pid"\n'),
    _derive("A count of each person has no upper bound.", "count()", _PEOPLE, 'unit = "pid"\n'),
    _derive("A step asks for an attribute of rows in a table of people.", "any(ill)", _PEOPLE, 'unit = "pid"\n'),
    _lookup("The public table is not there.", 'table = "town.csv"\ncolumn = "state"'),
    _lookup("The column of a public table is not named.", 'table = "towns.csv"'),
    _lookup("The private table is looked up in.", 'table = "visits.csv"\ncolumn = "age"'),
)
QUESTIONS = (
    study("Groups are of an attribute that is not there.", TREE, _step("mean", 'attribute = "age", by = "gender"')),
    study("A parameter has its name in another program.", TREE, _step("mean", 'attribute = "age", group_by = "sex"')),
    study("A description is a text.", TREE, _step("count", "where = \"sex = 'f'\"")),
    study("A description has an unknown test.", TREE, _step("count", 'where = { above = ["age", 30] }')),
    study("A description has an unknown label.", TREE, _step("count", 'where = { equals = ["sex", "w"] }')),
    study("A mean is taken of labels.", TREE, _step("mean", 'attribute = "sex"')),
    study("The median is asked for as 50.", TREE, _step("quantile", 'attribute = "age", quantile = 50')),
    study("Bounds are of a step that is not there.", TREE, _step("mean", 'attribute = "age", bounds = "found"')),
    study(
        "Bounds are of a step that finds none.",
        'miner = "histogram"\nepsilon = 0.5',
        'miner = "histogram"\nepsilon = 0.5\nparams = { attribute = "age", bins = 4 }\n[[step]]\nname = "mean"\n'
        'miner = "mean"\nepsilon = 0.1\nparams = { attribute = "age", bounds = "ages" }\n[[step]]\nname = "more"\n'
        'miner = "histogram"\nepsilon = 0.1',
    ),
    study("Bins are of a step that comes later.", "[[step]]", _before('name = "first"\n' + _step("histogram", _LATER))),
    study(
        "A step keeps a number of rows, which is the study's.",
        TREE,
        _step("mean", 'attribute = "age", rows_per_unit = 4'),
    ),
    study(
        "Rows of a person are of a step that finds none.",
        TREE,
        f'{TREE}\n[[step]]\nname = "mean"\n' + _step("mean", 'attribute = "age", rows_per_unit = "ages"'),
    ),
    study(
        "Rows of a person are chosen, and nothing tells people apart.",
        'epsilon = 1\n[[step]]\nname = "ages"\nminer = "histogram"\nepsilon = 0.5\nparams = { attribute = "age" }',
        'epsilon = 1\nrows_per_unit = 4\n[[step]]\nname = "most"\nminer = "rows-per-unit"\nepsilon = 0.5',
    ),
    study(
        "A median of each group is of a released number of rows.",
        'epsilon = 1\n[[step]]\nname = "ages"\nminer = "histogram"\nepsilon = 0.5\nparams = { attribute = "age" }',
        'epsilon = 1\nunit = "pid"\nrows_per_unit = 4\n[[step]]\nname = "most"\nminer = "rows-per-unit"\n'
        'epsilon = 0.5\n[[step]]\nname = "median"\n'
        + _step("median", 'attribute = "age", by = "sex", rows_per_unit = "most"'),
    ),
    study("No value is asked for.", TREE, _step("top-k", 'attribute = "sex", k = 0')),
    study("A share of nothing is asked for.", TREE, _step("ratio", 'by = "sex"')),
    study("A parameter stands beside the miner.", TREE, 'miner = "histogram"\nepsilon = 0.5\nattribute = "age"'),
)
DATA = (
    study("The data is not there.", "visits.csv", "visit.csv", RUN),
    study("The data lies outside the study's folder.", "visits.csv", "../visits.csv", RUN),
    data("An attribute is not in the file.", ROWS.replace("sex", "gender")),
    data("A column is there twice.", ROWS.replace("pid", "age")),
    data("The file is empty.", ""),
    data("The separator is another one.", ROWS.replace(",", ";")),
    data("A line has a field too many.", ROWS.replace("0,18,f,True", "0,18,f,True,9")),
    data("Numbers are beyond the bounds.", ROWS.replace(",20,", ",200,"), "schema check visits.csv visits.schema.toml"),
    data("A column holds free text.", "note\n" + "".join(f"note {k}\n" for k in range(200)), "schema infer visits.csv"),
    Mistake("The file is of another kind.", {"visits.sav": "x"}, "schema infer visits.sav"),
)
COMMANDS = (
    Mistake("The command is misspelt.", command="chek study.toml"),
    Mistake("An option is misspelt.", command="run study.toml --output out"),
    Mistake("No study is named.", command="check"),
    Mistake("The schema is given as a study.", command="check visits.schema.toml"),
    Mistake("The data is given as a study.", command="check visits.csv"),
    Mistake("The folder for results holds something.", {"old/notes.txt": "x"}, "run study.toml --out old"),
    Mistake("The report is of no run.", command="report ."),
    Mistake("A seed is negative.", command="run study.toml --out out --seed -1"),
    Mistake("A ledger has no data set.", command="run study.toml --out out --ledger people.ledger"),
    Mistake("A check is unknown.", command="explain DP999"),
    Mistake("A step is misspelt.", command="epsilon study.toml agse --within 5"),
    Mistake("An error is a word.", command="epsilon study.toml ages --within five"),
    Mistake("The unit is misspelt.", command="schema check visits.csv visits.schema.toml --unit pidd"),
    Mistake("A schema would be replaced.", command="schema infer visits.csv --out visits.schema.toml"),
    Mistake("A column to leave out is misspelt.", command="schema infer visits.csv --exclude pidd"),
)
PYTHON = (
    python("The schema is a path.", lambda: UNTYPED.Study("visits.schema.toml", epsilon=1)),
    python("The miner is a text.", lambda: _study().add("ages", "histogram")),
    python("A miner has no epsilon.", lambda: dpf.miner("histogram", attribute="age")),
    python("A bound is a text.", lambda: UNTYPED.Numeric("age", "18", 90)),
    python("An attribute is misspelt.", lambda: _schema()["agee"]),
    python("Two steps have one name.", lambda: _added(ages=1, then="ages")),
    python("Shares add up to more than 1.", _shares),
    python("A study has no step.", lambda: _study().plan()),
    python("The study is run on a path.", lambda: _study().run("visits.csv")),
    python("A dataframe is read as a file.", lambda: UNTYPED.read_table(FRAME, _schema())),
    python("A dataframe lacks a column.", lambda: dpf.table_from_frame(FRAME.drop("ill"), _schema())),
    python("The table has another schema.", _other_table),
    python("The budget is exceeded.", lambda: _added(ages=1, sexes=1).checked_plan()),
    python("A picture is asked for by a name.", lambda: _added(ages=1).plan().plot("ages")),
    python("The schema is a dictionary.", lambda: UNTYPED.Study({"age": "numeric"}, epsilon=1)),
    python("Labels are one text.", lambda: UNTYPED.Categorical("sex", "fm")),
    python("A derived column is a function.", lambda: UNTYPED.derive("old", lambda row: row["age"] > 60)),
    python("A description is a function.", lambda: UNTYPED.miner("count", where=lambda row: True, epsilon=1)),
    python("A result is misspelt.", lambda: _added(ages=1).run(dpf.table_from_frame(FRAME, _schema()))["agse"]),
)
GROUPS: Mapping[str, tuple[Mistake, ...]] = {
    "Study files": STUDIES,
    "Schema files": SCHEMAS,
    "Reading and deriving": READING,
    "Questions": QUESTIONS,
    "Data files": DATA,
    "Commands": COMMANDS,
    "Python": PYTHON,
}


def page(sentences: Mapping[tuple[str, str], str]) -> str:
    """Return the page, from the sentence of each mistake by its group and what it is."""
    number = sum(map(len, GROUPS.values()))
    lines = [
        "# Error messages",
        "",
        f"Here are {number} mistakes that are easily made, and what dpframework says of each. A sentence names the",
        "file, step or attribute, what was found there, and what you can do. Nothing is written, no budget is spent.",
        "",
        "A test makes every mistake, and compares. `python tests/mistakes.py` writes this page.",
    ]
    for group, mistakes in GROUPS.items():
        lines += ["", f"## {group}"]
        for one in mistakes:
            told = textwrap.wrap(sentences[group, one.what], 116, break_on_hyphens=False)
            lines += ["", one.what, "", "```text", *told, "```"]
    return "\n".join(lines) + "\n"


def said_of(mistake: Mistake) -> str:
    """Make a mistake in an empty folder, and return what is said."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return mistake.sentence()


if __name__ == "__main__":
    found = {(group, one.what): said_of(one) for group, some in GROUPS.items() for one in some}
    PAGE.write_text(page(found), encoding="utf-8")
