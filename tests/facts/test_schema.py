"""The schema: facts that cannot be wrong, files that read back equal, names that are found."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric, View
from dpframework.facts.canonical_cells import of_text
from dpframework.facts.choice_enum import Choice
from dpframework.facts.control_character_escapes import is_printable
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import And, Equals, Not, Or, fixes
from dpframework.facts.schema import Schema

ADULT = """
rows = 45222
max_rows = 100000
[[attribute]]
name = "age"
kind = "numeric"
lower = 17
upper = 90
bins = 16
view = "left"
[[attribute]]
name = "sex"
kind = "categorical"
values = ["Female", "Male"]
[[attribute]]
name = "hours"
kind = "numeric"
lower = 1
upper = 99
cuts = [25, 40, 65]
missing = true
"""

texts = st.text(min_size=1, max_size=12).filter(
    lambda t: t.strip() and t != "missing" and not any(0xD800 <= ord(c) <= 0xDFFF for c in t)
)
names_of_columns = texts.filter(is_printable)
numbers = st.floats(-1e9, 1e9, allow_nan=False)


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    common = {"view": draw(st.sampled_from([None, "left", "right"])), "missing": draw(st.booleans())}
    match draw(st.integers(0, 3)):
        case 0:
            return Boolean(name, **common)
        case 1:
            return Categorical(name, draw(st.lists(texts, min_size=1, max_size=6, unique_by=of_text)), **common)
        case 2:
            lower = draw(numbers)
            return Numeric(name, lower, lower + draw(st.floats(0.5, 1e6)), bins=draw(st.integers(1, 50)), **common)
        case _:
            edges = sorted(draw(st.lists(numbers, min_size=3, max_size=9, unique_by=lambda x: x + 0.0)))
            return Numeric(name, edges[0], edges[-1], cuts=edges[1:-1], **common)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(names_of_columns, min_size=1, max_size=5, unique=True))
    rows = draw(st.none() | st.integers(1, 10**6))
    bound = draw(st.none() | st.integers(10**6, 10**9))
    return Schema([draw(attributes(name)) for name in names], rows, bound, draw(st.lists(names_of_columns, max_size=3)))


@given(schemas())
def test_a_schema_survives_every_way_of_writing_it(schema: Schema) -> None:
    assert Schema.loads(schema.dumps()) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema
    assert hash(again) == hash(schema)
    assert again.fingerprint == schema.fingerprint == Schema.loads(schema.dumps()).fingerprint


@given(schemas())
def test_labels_and_codes_agree_in_number(schema: Schema) -> None:
    for attribute in schema:
        assert len(set(attribute.labels)) == len(attribute.labels) == attribute.size
        assert attribute.missing_code == (attribute.size - 1 if attribute.missing else None)
        assert (attribute.labels[-1] == "missing") or not attribute.missing


def test_a_file_as_the_design_writes_it() -> None:
    schema = Schema.loads(ADULT)
    assert schema["age"] == Numeric("age", lower=17, upper=90, bins=16, view=View.LEFT)
    assert schema["sex"] == Categorical("sex", ("Female", "Male"))
    assert schema["hours"] == Numeric("hours", 1, 99, cuts=(25, 40, 65), missing=True)
    assert (schema.rows, schema.max_rows, schema.row_bound, schema.inferred) == (45222, 100000, 45222, ())
    assert schema.names == ("age", "sex", "hours")
    assert schema.index("hours") == 2
    assert len(schema) == 3
    assert [a.kind for a in schema] == ["numeric", "categorical", "numeric"]
    assert "sex" in schema
    assert "Sex" not in schema
    assert 3 not in schema
    assert schema.view("left") == schema.view(View.LEFT) == (schema["age"],)


def test_the_written_file_puts_name_and_kind_first() -> None:
    schema = attrs.evolve(Schema.loads(ADULT), inferred=["numeric cuts: quantile"])
    lines = schema.dumps().splitlines()
    assert lines[:3] == ["rows = 45222", "max_rows = 100000", 'inferred = ["numeric cuts: quantile"]']
    assert lines[4:11] == [
        "[[attribute]]", 'name = "age"', 'kind = "numeric"', "lower = 17", "upper = 90", "bins = 16", 'view = "left"'
    ]  # fmt: skip


def test_bins_are_closed_below_and_the_last_one_above() -> None:
    age = Numeric("age", 17, 90, cuts=[25, 65], missing=True)
    assert age.labels == ("[17, 25)", "[25, 65)", "[65, 90]", "missing")
    assert Numeric("x", 0, 1, bins=4).interior_cuts == (0.25, 0.5, 0.75)
    assert Numeric("x", 0, 1, bins=1).labels == ("[0, 1]",)
    assert Numeric("x", 1e6, 1e6 + 4, bins=4).labels[0] == "[1000000, 1000001)"
    assert Numeric("x", 0, 123457, cuts=[0.1]).labels == ("[0, 0.1)", "[0.1, 123457]")
    assert Boolean("b", missing=True).labels == ("false", "true", "missing")


def test_numpy_numbers_are_numbers() -> None:
    attribute = Numeric("x", np.float32(0), np.int64(8), bins=np.int32(4))
    assert attribute == Numeric("x", 0.0, 8.0, bins=4)
    assert type(attribute.lower) is float
    assert type(attribute.bins) is int
    assert math.copysign(1, Numeric("x", -0.0, 1, bins=1).lower) == 1


def test_select_and_replace() -> None:
    schema = Schema.loads(ADULT)
    assert schema.select(["sex", "age"]).names == ("sex", "age")
    assert schema.select(["sex"]).rows == 45222
    replaced = schema.replace(Boolean("sex"))
    assert replaced.names == schema.names
    assert replaced["sex"] == Boolean("sex")
    with pytest.raises(InputError, match="did you mean 'age'"):
        schema.select(["agee"])
    with pytest.raises(InputError, match="did you mean 'sex'"):
        schema.replace(Boolean("sexx"))


def test_the_fingerprint_changes_with_every_fact() -> None:
    schema = Schema.loads(ADULT)
    others = [
        attrs.evolve(schema, rows=None),
        attrs.evolve(schema, inferred=["numeric cuts: quantile"]),
        schema.select(["sex", "age", "hours"]),
        schema.replace(Categorical("sex", ["Male", "Female"])),
        schema.replace(Numeric("age", 17, 90, bins=15, view="left")),
    ]
    assert len({s.fingerprint for s in [schema, *others]}) == 6
    assert len(schema.fingerprint) == 64


def test_the_fingerprint_is_the_hash_of_a_text_that_stays_the_same() -> None:
    """Ledgers and approvals hold it: it may change with the facts, and with nothing else."""
    text = '{"attribute":[{"kind":"boolean","name":"ill"}],"max_rows":9}'
    schema = Schema([Boolean("ill")], max_rows=9)
    assert schema.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_a_domain_is_told_by_its_first_six_values() -> None:
    assert Categorical("c", list("abcdef")).domain_text == "a, b, c, d, e, f"
    assert Categorical("c", list("abcdefg")).domain_text == "a, b, c, d, e, f, and 1 more"
    assert Categorical("c", list("abcdefgh"), missing=True).domain_text == "a, b, c, d, e, f, and 3 more"


def test_a_formula_fixes_a_value_where_one_of_its_joined_tests_does() -> None:
    town, here, ill = Categorical("town", ["A", "B", "C"]), Equals("town", "B"), Equals("ill", "true")
    assert fixes(And([ill, here]), town)
    assert not fixes(Or([ill, here]), town)
    assert not fixes(Or([ill, here]), town, holds=False)  # where neither holds it is one of two other towns
    assert fixes(Or([ill, Not(here)]), town, holds=False)  # where neither holds it is B
    assert not fixes(And([ill, Not(here)]), town, holds=False)
    assert fixes(Not(Or([ill, Not(here)])), town)
    assert fixes(Or([here, ill]), Boolean("ill"), holds=False)
    assert not fixes(And([here, ill]), Boolean("ill"), holds=False)


@pytest.mark.parametrize("values", [1, 2, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_a_negated_test_fixes_the_one_value_that_is_left(values: int, missing: bool) -> None:
    """Where a value is missing, only a test for missing values holds or fails: all cells are tried."""
    attribute = Categorical("c", [f"value {k}" for k in range(values)], missing=missing)
    schema = Schema([attribute])
    rows = dpf.InMemory().load(dpf.Table.from_codes(schema, [range(attribute.size)]))[0]
    for label in attribute.labels:
        for formula in (Equals("c", label), Not(Equals("c", label))):
            for holds, held in ((True, formula.holds(rows)), (False, formula.fails(rows))):
                assert fixes(formula, attribute, holds=holds) == (held.sum() == 1)


class Pace(Choice, what="pace"):
    SLOW = "slow"
    FAST = "fast"


class Size(Choice, what="size"):
    SMALL = "small"
    MIDDLE = "middle"
    LARGE = "large"


def test_an_unknown_choice_is_told_of_both_names_or_of_the_nearest_of_more() -> None:
    assert (Pace.parse("fast"), Size.parse("large")) == (Pace.FAST, Size.LARGE)
    with pytest.raises(InputError, match=r"^pace 'fasd' is unknown; accepted are 'slow' and 'fast'$"):
        Pace.parse("fasd")
    with pytest.raises(InputError, match=r"^size 'lage' is unknown; did you mean 'large'\?$"):
        Size.parse("lage")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Boolean(""), "name must not be blank"),
        (lambda: Boolean(3), "name must be a text, not int"),
        (lambda: Boolean("\ud800"), "UTF-8"),
        (lambda: Boolean("a", view="top"), "view 'top' is unknown; accepted are 'left' and 'right'"),
        (lambda: Boolean("a", missing=1), "attribute 'a': missing must be true or false"),
        (lambda: Categorical("a", []), "attribute 'a': needs at least one value"),
        (lambda: Categorical("a", "abc"), "values must be a list, not str"),
        (lambda: Categorical("a", 3), "values must be a list, not int"),
        (lambda: Categorical("a", [1, 2]), "each of its values must be a text, not int"),
        (lambda: Categorical("a", ["x", " "]), "must not be blank"),
        (lambda: Categorical("a", ["x", "y", "x"]), "value 'x' is listed twice"),
        (lambda: Categorical("a", ["x", "missing"], missing=True), "'missing' is the label of missing values"),
        (lambda: Numeric("a", 0, 0, bins=2), "below upper, and they are 0 and 0; give the range of values"),
        (lambda: Numeric("a", 1, 0, bins=2), "lower must be below upper, and they are 1 and 0; exchange them"),
        (lambda: Numeric("a", math.nan, 0, bins=2), "lower must be a finite number"),
        (lambda: Numeric("a", 0, math.inf, bins=2), "upper must be a finite number"),
        (lambda: Numeric("a", 0, 10**400, bins=2), "upper must be a finite number"),
        (lambda: Numeric("a", -1.7e308, 1.7e308, bins=2), "width upper - lower must be finite"),
        (lambda: Numeric("a", False, 1, bins=2), "lower must be a number, not bool"),
        (lambda: Numeric("a", "0", 1, bins=2), "lower must be a number, not str"),
        (
            lambda: Numeric("a", 0, datetime.date(2023, 7, 2), bins=2),
            'not date; with date_unit = "days" its day is 19540, and with "years" it is 2023.499',
        ),
        (lambda: Numeric("a", 0, 1), "needs either bins"),
        (lambda: Numeric("a", 0, 1, bins=2, cuts=[0.5]), "needs either bins"),
        (lambda: Numeric("a", 0, 1, bins=0), "bins must be at least 1"),
        (lambda: Numeric("a", 0, 1, bins=True), "bins must be a whole number, not bool"),
        (lambda: Numeric("a", 0, 1, bins=2.0), "bins must be a whole number, not float"),
        (lambda: Numeric("a", 0, 1, bins=10**9), "bins must be at most 1000000"),
        (lambda: Numeric("a", 1, 1 + 1e-15, bins=100), "so many bins that some of their ends are the same"),
        (lambda: Numeric("a", 0, 1, cuts=[0.5, 0.5]), "strictly increasing"),
        (lambda: Numeric("a", 0, 1, cuts=[0.7, 0.5]), "strictly increasing"),
        (lambda: Numeric("a", 0, 1, cuts=[0, 0.5]), "strictly between lower and upper"),
        (lambda: Numeric("a", 0, 1, cuts=[0.5, 1]), "strictly between lower and upper"),
        (lambda: Numeric("a", 0, 1, cuts=[0.5, math.nan]), "each of its cuts must be a finite number"),
        (lambda: Numeric("a", 0, 1, cuts=[True]), "each of its cuts must be a number, not bool"),
        (lambda: Schema([]), "at least one attribute"),
        (lambda: Schema(["age"]), "holds attributes, not str"),
        (lambda: Schema(Boolean("a")), "attributes must be a list, not Boolean"),
        (lambda: Schema([Boolean("a"), Boolean("a")]), "attribute 'a' is listed twice"),
        (lambda: Schema([Boolean("a")], rows=0), "rows must be at least 1"),
        (lambda: Schema([Boolean("a")], rows=True), "rows must be a whole number, not bool"),
        (lambda: Schema([Boolean("a")], rows=1.5), "rows must be a whole number, not float"),
        (lambda: Schema([Boolean("a")], max_rows=-1), "max_rows must be at least 1"),
        (lambda: Schema([Boolean("a")], rows=5, max_rows=4), "rows = 5 exceeds max_rows = 4"),
        (lambda: Schema([Boolean("a")], rows=2**31), "rows exceeds 2,147,483,647, the most rows that a table may have"),
        (lambda: Schema([Boolean("a")], max_rows=2**31), "max_rows exceeds 2,147,483,647"),
        (lambda: Schema([Boolean("a")], inferred="all"), "inferred must be a list"),
        (lambda: Schema([Boolean("a")], inferred=[1]), "inferred must be a text"),
        (lambda: Schema([Boolean("age")])["agee"], "'agee' is not in the schema; did you mean 'age'"),
        (lambda: Schema([Boolean("age")]).index("xyz"), "known: age"),
        (lambda: Schema([Boolean("age")]).view("top"), "view 'top' is unknown"),
    ],
)
def test_wrong_facts_get_one_sentence(make, sentence) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "at least one attribute"),
        ("rows = ", "is not TOML"),
        ("row = 3\n" + ADULT, "unknown key 'row'; did you mean 'rows'"),
        ("[[attributes]]\nname = 'a'", "unknown key 'attributes'; did you mean 'attribute'"),
        ("attribute = 3", r"\[\[attribute\]\] heading"),
        ("attribute = [3]", "attribute number 1 must be a table"),
        ("[[attribute]]\nkind = 'boolean'", "attribute number 1: has no name"),
        ("[[attribute]]\nname = 'a'", "attribute 'a': has no kind"),
        ("[[attribute]]\nname = 'a'\nkind = 'bool'", "kind 'bool' is unknown; did you mean 'boolean'"),
        ("[[attribute]]\nname = 'a'\nkind = ['boolean']", "kind .* is unknown"),
        ("[[attribute]]\nname = 3\nkind = 'boolean'", "name must be a text"),
        ("[[attribute]]\nname = 'a'\nkind = 'boolean'\nmising = true", "unknown key 'mising'; did you mean 'missing'"),
        ("[[attribute]]\nname = 'a'\nkind = 'boolean'\nbins = 3", "attribute 'a': unknown key 'bins'"),
        ("[[attribute]]\nname = 'a'\nkind = 'numeric'\nlower = 3\nbins = 2", "a numeric attribute needs 'upper'"),
        ("[[attribute]]\nname = 'a'\nkind = 'categorical'", "a categorical attribute needs 'values'"),
        ("inferred = 3\n" + ADULT, "inferred must be a list"),
        ("rows = 45\n[[attribute]]\nname = 'a'\nkind = 'boolean'\n" * 2, "attribute 'a': unknown key 'rows'"),
    ],
)
def test_wrong_files_get_one_sentence_that_names_the_file(text: str, sentence: str, tmp_path) -> None:
    path = tmp_path / "adult.schema.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        Schema.load(path)
    assert str(caught.value).startswith("adult.schema.toml: ")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        Schema.load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="is a directory"):
        Schema.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(InputError, match="not UTF-8"):
        Schema.load(tmp_path / "latin.toml")


def test_dump_replaces_the_file_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.schema.toml"
    first, second = Schema([Boolean("a")]), Schema([Boolean("b")])
    first.dump(path)
    assert Schema.load(str(path)) == first

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(InputError, match="cannot be written: No space left"):
            second.dump(path)
    assert Schema.load(path) == first
    second.dump(path)
    assert Schema.load(path) == second
    assert [p.name for p in tmp_path.iterdir()] == ["a.schema.toml"]
    with pytest.raises(InputError, match="cannot be written"):
        first.dump(tmp_path / "nowhere" / "a.toml")


def test_a_byte_order_mark_is_no_error(tmp_path) -> None:
    (tmp_path / "s.toml").write_text(ADULT, encoding="utf-8-sig")
    assert Schema.load(tmp_path / "s.toml") == Schema.loads(ADULT)


def test_a_schema_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Schema.loads(ADULT).rows = 3
    with pytest.raises(TypeError):
        Attribute("a")


def test_importing_the_schema_is_light() -> None:
    heavy = ["polars", "narwhals", "pandas", "numba", "sklearn", "scipy", "pyarrow"]
    rooms = "dpframework.facts.schema, dpframework.tables.coded_table"
    code = f"import sys, {rooms}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_attribute_has_at_most_so_many_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpframework.facts.attributes.MOST_CODES", 5)
    makers: list[Callable[[int], Attribute]] = [
        lambda number: Categorical("c", list("abcdef"[:number])),
        lambda number: Numeric("x", 0, 1, bins=number),
        lambda number: Numeric("y", 0, 10, cuts=list(range(1, number))),
    ]
    for make in makers:
        assert make(5).size == 5
        with pytest.raises(InputError, match=r"more than 5 (values|bins)|at most 5"):
            make(6)
