"""The part of the engines' suite about people: engines that mix up whose rows are whose fail it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.tables.engine_base import Engine
from dpframework.verify.tables.block_tile_and_crosstab_engines import ByTables, Together
from dpframework.verify.tables.people_in_several_files_conformance import PeopleConformance


class RowsForPeople(ByTables):
    """Bounds nobody's rows."""

    name = "rows-for-people"

    def open(self, files: Any) -> Any:
        return super().open(attrs.evolve(files, unit=PrivacyUnit()))


class KeepsOneMore(ByTables):
    """Keeps one row more of each person than is asked for."""

    name = "keeps-one-more"

    def open(self, files: Any) -> Any:
        return super().open(attrs.evolve(files, unit=attrs.evolve(files.unit, rows=files.unit.rows + 1)))


class CountsKeysByRow(ByTables):
    """Counts a key as often as a person has it."""

    name = "counts-keys-by-row"

    def tally(self, *given: Any, **more: Any) -> Any:
        return {key: 2 * count for key, count in super().tally(*given, **more).items()}


TESTS = [name for name in vars(PeopleConformance) if name.startswith("test_")]


def failing(kind: type[Engine], folder: Path) -> dict[str, str]:
    """The sentences of the tests that fail, by their names."""

    class Suite(PeopleConformance):
        pass

    Suite.engine = kind()
    found = {}
    for name in TESTS:
        (folder / name).mkdir()
        try:
            getattr(Suite(), name)(folder / name)
        except pytest.skip.Exception:
            continue
        except AssertionError as error:
            found[name] = str(error)
    return found


@pytest.mark.parametrize("kind", [ByTables, Together], ids=lambda kind: kind.__name__)
def test_an_engine_that_keeps_people_apart_passes(kind: type[Engine], tmp_path: Path) -> None:
    assert failing(kind, tmp_path) == {}


@pytest.mark.parametrize("kind", [RowsForPeople, KeepsOneMore, CountsKeysByRow], ids=lambda kind: kind.__name__)
def test_an_engine_that_keeps_other_rows_of_people_fails_by_name(kind: type[Engine], tmp_path: Path) -> None:
    found = failing(kind, tmp_path)
    assert found
    assert all(f"engine '{kind.name}'" in text for text in found.values())
