"""Released values that are read back: plain ones, and objects of the classes that mechanisms declare; no others."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.input_limits import MOST_NESTED_JSON as MOST_DEEP
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.ledger.release_codec import from_json, to_json


class Colour(enum.Enum):
    RED = 1


@attrs.frozen
class Leaf:
    count: int


@attrs.frozen
class Planted(Leaf):
    """A subclass of a declared class is another class."""


PLACE = f"{Leaf.__module__}:{Leaf.__qualname__}"


def test_a_module_that_a_file_names_is_not_imported(tmp_path: Path) -> None:
    """In a process of its own: what was imported before is imported again by nobody."""
    (tmp_path / "planted.py").write_text("open('ran', 'w').close()\nimport enum\nclass Fly(enum.Enum):\n    UP = 1\n")
    script = """
        import sys
        sys.path.insert(0, ".")
        from dpframework.facts.errors import InputError
        from dpframework.ledger.release_codec import from_json
        for name in ("planted", "antigravity", "os.path", "dpframework.lab.demo"):
            before = set(sys.modules)
            for form in ({"enum": f"{name}:Fly", "name": "UP"}, {"attrs": f"{name}:Fly", "fields": {}}):
                try:
                    from_json(form)
                except InputError:
                    assert set(sys.modules) == before
                else:
                    raise AssertionError(name)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "place",
    [PLACE, "dpframework.tables.unread_table_files:TableFiles", "dpframework.ledger.release_journal:Owner"],
)
def test_a_class_that_is_imported_and_was_not_declared_is_not_made(place: str) -> None:
    with pytest.raises(dpf.InputError, match="which no mechanism of the plan outputs"):
        from_json({"attrs": place, "fields": {}}, (Colour,))


def test_an_object_of_a_subclass_is_not_written_as_one_of_its_base() -> None:
    assert from_json(to_json(Leaf(3), (Leaf,)), (Leaf,)) == Leaf(3)
    with pytest.raises(dpf.InputError, match="type Planted cannot be kept for resuming"):
        to_json(Planted(3), (Leaf,))
    with pytest.raises(dpf.InputError, match="no mechanism of the plan"):
        from_json(to_json(Planted(3), (Planted,)), (Leaf,))


@pytest.mark.parametrize(
    "form",
    [
        {"enum": f"{Colour.__module__}:Colour", "name": "BLUE"},
        {"attrs": PLACE, "fields": {"count": [1], "more": [2]}},
        {"attrs": PLACE, "fields": {"count": 1}},
        {"attrs": PLACE, "fields": [1]},
        {"attrs": [PLACE], "fields": {}},
        {"enum": PLACE, "name": "count"},
        {"fraction": "1e999999999"},
        {"fraction": "1/0"},
        {"fraction": "9" * 5000},
        {"float": "0x1p99999"},
        {"float": 7},
        {"array": "", "dtype": "O", "shape": [1]},
        {"array": "AAAA", "dtype": "<i4,<i4", "shape": [1]},
        {"array": "AAAAAAAAAAA=", "dtype": "<i8", "shape": [10**9]},
        {"array": "AAAAAAAAAAA=", "dtype": "<i8", "shape": [-1]},
        {"array": "AAAAAAAAAAA=", "dtype": "<i8", "shape": [True]},
        {"array": "not base64", "dtype": "<i8", "shape": None},
        {"set": [[1]]},
        {"dict": [1]},
        {"tuple": "ab"},
        {"unknown": 1},
    ],
)
def test_a_form_that_nobody_wrote_is_refused_in_a_sentence(form: object) -> None:
    with pytest.raises(dpf.InputError) as caught:
        from_json(form, (Leaf, Colour))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("O", [1]),
        ("<i4,<i4", [1]),
        ("<i8", [-1]),
        ("<i8", [True]),
        ("<i8", [1, -1]),
        ("<i8", [1.0]),
        ("<i8", ["1"]),
        ("i8", None),
    ],
)
def test_an_array_is_of_numbers_and_of_lengths(dtype: str, shape: object) -> None:
    with pytest.raises(dpf.InputError, match="holds an array of a type or shape that this dpframework does not know"):
        from_json({"array": "AAAAAAAAAAA=", "dtype": dtype, "shape": shape})
    with pytest.raises(dpf.InputError, match="holds an array whose length does not fit its shape"):
        from_json({"array": "AAAAAAAAAAA=", "dtype": "<i8", "shape": [2]})


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0), (1, 3)])
def test_an_array_of_any_lengths_is_read_back(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    back = from_json(to_json(array))
    assert (back.shape, back.dtype, back.tolist()) == (shape, array.dtype, array.tolist())


@pytest.mark.parametrize(
    "text",
    [
        "[" * (MOST_DEEP + 2) + "]" * (MOST_DEEP + 2),
        '{"a":' * (MOST_DEEP + 2) + "1" + "}" * (MOST_DEEP + 2),
        "[" * 10**6,
        "9" * 10**5,
        "1e999",
        "NaN",
        "-Infinity",
        '{"a": 1, "a": 2}',
        "{",
        "",
    ],
    ids=lambda text: text[:12],
)
def test_text_that_is_no_plain_json_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(dpf.InputError) as caught:
        parsed_json(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_json_is_read_as_python_reads_it() -> None:
    text = json.dumps({"a": [1, 2.5, None, True, {"b": "\u20ac"}], "deep": [[[[]]]], "large": 10**400})
    assert parsed_json(text) == json.loads(text)
    deep = "[" * MOST_DEEP + "]" * MOST_DEEP
    assert parsed_json(deep) == json.loads(deep)


def test_plain_values_come_back() -> None:
    value = (1, 0.1, Fraction(1, 3), {"a": {2, 3}}, frozenset({"x"}), np.arange(6).reshape(2, 3), np.float32(0.5))
    read = from_json(parsed_json(json.dumps(to_json(value))))
    assert repr(read) == repr(value)
