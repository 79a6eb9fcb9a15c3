"""The tables of an experiment, which are read from files or generated, and divided into folds."""

from __future__ import annotations

import abc
import functools
from typing import final

import attrs
import numpy as np

from dpframework.facts.errors import InputError, first_line
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.lab.evaluation.readable_rows_and_folds import fold_positions, select_rows
from dpframework.lab.experiment.user_functions import Code
from dpframework.study.table_opener import group_rows
from dpframework.study.table_place import Data
from dpframework.tables.coded_table import Table

KEPT = 4  # the most tables that a process keeps; an experiment's cells on one table are computed one after another


@attrs.frozen
class TableSource(abc.ABC):
    """The source of a table. Equal sources give the same rows."""

    @abc.abstractmethod
    def read(self) -> tuple[Table, Table | None]:
        """Return the rows to use, and the rows that the source itself holds out, or None if it holds none out."""


@final
@attrs.frozen
class FileTable(TableSource):
    """A table in a file.

    Attributes
    ----------
    data, schema
        The location of the file, and its schema.
    digest
        The digest of the file's bytes. A changed file has another digest, so it is another source and is read again.
    unit, key
        The privacy unit that the file is read for, and the key that chooses the rows of each unit. The key is None if
        no column identifies units.
    """

    data: Data
    schema: Schema
    digest: str
    unit: PrivacyUnit = ROW
    key: bytes | None = attrs.field(default=None, repr=False)

    def read(self) -> tuple[Table, None]:
        """Read the rows. The errors are those of `Data.read`."""
        return self.data.read(self.schema, self.unit, self.key), None


@final
@attrs.frozen
class GeneratedTable(TableSource):
    """A table that a function makes.

    Attributes
    ----------
    generator
        The function.
    digest
        The digest of the function's source.
    params
        The function's parameters as JSON, so that equal sources compare as equal.
    seed
        The seed that the function is given.
    """

    generator: Code
    digest: str
    params: str
    seed: int

    def read(self) -> tuple[Table, Table | None]:
        """Call the generator, which returns the rows, or a pair of rows to use and rows held out.

        Raises
        ------
        InputError
            If the generator fails, or returns anything else.
        """
        try:
            made = self.generator.load()(seed=self.seed, **parsed_json(self.params))
        except InputError as error:
            raise InputError(f"generator '{self.generator}': {error}") from None
        except Exception as error:
            raise InputError(f"generator '{self.generator}': {type(error).__name__}: {first_line(error)}") from error
        match made:
            case Table():
                return made, None
            case (Table() as table, Table() as held_out):
                return table, held_out
        found = type(made).__name__
        raise InputError(f"generator '{self.generator}': returned {found}, not a dpf.Table or two of them")


@functools.lru_cache(maxsize=KEPT)
def rows_of(source: TableSource) -> tuple[Table, Table | None]:
    """Return the two results of `source.read`, which are cached for the next cell."""
    return source.read()


@final
@attrs.frozen
class Fold:
    """One fold of a cross-validation. It consists of rows, or of whole units if a unit may have several rows.

    Attributes
    ----------
    folds
        The number of folds.
    fold
        The number of the fold that is held out, from 1.
    seed
        The seed of the permutation of the rows or units. All folds and methods of a repetition have the same seed.
    """

    folds: int
    fold: int
    seed: int

    def training_rows(self, rows: int) -> int:
        """Return the number of training rows. The first folds may be one row larger than the last.

        Examples
        --------
        >>> [Fold(3, fold, seed=0).training_rows(10) for fold in (1, 2, 3)]
        [6, 7, 7]
        """
        return rows - rows // self.folds - (self.fold <= rows % self.folds)

    def schema(self, schema: Schema) -> Schema:
        """Return the schema of the training rows. A public row count becomes their number. For evaluation only."""
        return schema if schema.rows is None else attrs.evolve(schema, rows=self.training_rows(schema.rows))

    def apply(self, table: Table) -> tuple[Table, Table]:
        """Return the training rows and the held-out rows, each in the table's order.

        Raises
        ------
        InputError
            If there are fewer rows, or units, than folds.
        """
        by_unit = table.unit.groups_rows
        of_rows = group_rows(table, table.unit).unit_codes if by_unit else np.arange(table.rows)
        known, units = np.unique(np.asarray(of_rows), return_inverse=True)
        number, what = len(known), "units" if by_unit else "rows"
        if number < self.folds:
            raise InputError(f"the table has fewer {what} than the {self.folds} folds")
        held_out = np.isin(units, fold_positions(number, self.folds, self.seed)[self.fold - 1])
        return select_rows(table, ~held_out), select_rows(table, held_out)
