"""DP-DILCA as a scikit-learn transformer whose output's Euclidean distance is the learned metric."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpframework.facts import GROUPS, Categorical, InputError, PrivacyUnit, Relation, Schema, unit_of_groups
from dpframework.study import Study
from dpframework.tables import Table, kept_rows, silenced, table_from_columns, table_from_frame
from dpframework_distance.metric import CategoricalMetric
from dpframework_distance.miner import DPDilca
from dpframework_distance.value_distances import LearnedDistances


class ValueEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Embed categorical rows, so that their Euclidean distance is a learned metric.

    The distances may be given, as a study has learned them. Then fitting costs nothing. Otherwise they are learned by
    fitting, at the cost of epsilon, and the costs of all fits on the same people add up.

    Parameters
    ----------
    distances
        Distances that were learned before; None to learn them by `fit`.
    schema
        The public facts about the columns, which learning needs.
    epsilon
        The epsilon of a fit.
    relation
        "replace-one", where the schema's `rows` must be the number of rows of the fit, or "add-or-remove-one".
    context, context_size
        See `DPDilca`.
    blend
        Whether distances are blended with overlap (see `CategoricalMetric`).
    rows_per_unit
        The most rows that a fit uses of each group in `groups`. Without `groups` it must be 1.
    random_state
        For experiments only: a seed makes the fit reproducible, and not private.

    Attributes
    ----------
    distances_
        The learned distances.
    metric_
        The `CategoricalMetric` of these distances.
    n_features_in_
        The number of columns of the fit.
    """

    def __init__(
        self,
        distances: LearnedDistances | None = None,
        *,
        schema: Schema | None = None,
        epsilon: Any = 1.0,
        relation: str = "add-or-remove-one",
        context: str = "max-dependency",
        context_size: int = 3,
        blend: bool = False,
        rows_per_unit: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.distances = distances
        self.schema = schema
        self.epsilon = epsilon
        self.relation = relation
        self.context = context
        self.context_size = context_size
        self.blend = blend
        self.rows_per_unit = rows_per_unit
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Say that rows are categorical."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> ValueEmbedding:  # noqa: N803
        """Take the distances that were given, or learn them from the rows.

        Parameters
        ----------
        X
            Rows: a `Table`, a dataframe or a mapping of columns with the schema's names, or an array of codes, whose
            shape is public. A cell outside its attribute's domain does not stop a fit that learns distances. If it did,
            that would tell something about the cell's row. A number is moved to the nearest bound. Anything else, and a
            code that the attribute does not have, becomes missing, or the first value if the attribute may not be
            missing.
        y
            Ignored.
        groups
            The group of each row, shape (rows,). The fit then protects each group with all of its rows, of which at
            most `rows_per_unit` are used. A `Table` already has its unit, and takes no groups.

        Raises
        ------
        InputError
            If neither distances nor a schema is given, or the rows do not fit the schema.
        """
        learned = self.distances
        if learned is None:
            if self.schema is None:
                raise InputError("give distances that were learned, or a schema to learn them by")
            table = self._table(self.schema, X, groups)
            whom: dict[str, Any] = {"unit": table.unit.id, "rows_per_unit": table.unit.rows}
            study = Study(self.schema, epsilon=self.epsilon, relation=Relation.parse(self.relation), **whom)
            study.add("embedding", DPDilca(self.epsilon, context=self.context, context_size=self.context_size))
            learned = study.run(table, seed=self.random_state)["embedding"]
        self.distances_: LearnedDistances = learned
        self.metric_ = CategoricalMetric(self.distances_, blend=self.blend)
        if self.distances is not None:
            self.metric_.encode(X)  # rows that do not fit are refused here, not by `transform` only
        self.n_features_in_ = len(self.metric_.attributes)
        return self

    @silenced(streams=True)
    def _table(self, schema: Schema, rows: Any, groups: Any) -> Table:
        """Return the rows of a fit as a table, bounded by their groups."""
        if isinstance(rows, Table):
            if groups is not None or PrivacyUnit(rows=self.rows_per_unit).asserted:
                raise InputError("the table already has its unit; give neither groups nor rows_per_unit with it")
            return rows
        unit = unit_of_groups(groups, self.rows_per_unit)
        key = secrets.token_bytes() if self.random_state is None else str(self.random_state).encode()
        if isinstance(rows, np.ndarray | list | tuple):
            codes = _codes_in_domain(schema, rows)
            if groups is None:
                return Table.from_codes(schema, codes)
            if len(groups) != codes.shape[1]:
                raise InputError(
                    f"X has {codes.shape[1]} rows and groups has {len(groups)}; give one group for each row"
                )
            kept = kept_rows(groups, unit, source="groups", key=key).to_numpy()
            return Table.from_codes(schema, codes[:, kept], unit=unit)
        if groups is None:
            return (table_from_columns if isinstance(rows, dict) else table_from_frame)(rows, schema)
        columns = {name: rows[name] for name in schema.names} | {GROUPS: groups}
        return table_from_columns(columns, schema, unit=unit, key=key, source="X and groups")

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return rows as points, shape (rows, dimensions).

        Raises
        ------
        InputError
            If the rows lack an attribute or hold a value outside its domain.
        """
        check_is_fitted(self)
        return self.metric_.embed(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the coordinates, each the name of an attribute and a number."""
        check_is_fitted(self)
        sized = zip(self.metric_.attributes, self.metric_.points, strict=True)
        return np.array([f"{name}_{k}" for name, points in sized for k in range(points.shape[1])], dtype=object)


def _codes_in_domain(schema: Schema, rows: Any) -> NDArray[np.unsignedinteger]:
    """Return codes as an array with one row per attribute. Cells are read one by one, as a run reads those of a table.

    Raises
    ------
    InputError
        If there is not one column per attribute.
    """
    given = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=object)  # no cell decides another's type
    given = given if len(given) else np.empty((0, len(schema)), dtype=object)  # without rows there is no shape
    if given.ndim != 2 or given.shape[1] != len(schema):
        raise InputError(f"codes must be whole numbers of shape (rows, {len(schema)}), one column per attribute")
    coded = Schema(
        Categorical(own.name, values=[str(k) for k in range(own.size - own.missing)], missing=own.missing)
        for own in schema
    )
    return table_from_columns(dict(zip(schema.names, given.T, strict=True)), coded, source="X").codes
