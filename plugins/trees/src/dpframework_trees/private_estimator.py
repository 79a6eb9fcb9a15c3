"""The base class of this plugin's estimators, with scikit-learn's conventions."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dpframework.accountant import Accountant
from dpframework.facts import GROUPS, Attribute, InputError, PrivacyUnit, Relation, Schema, unit_of_groups
from dpframework.run import Miner
from dpframework.study import Study
from dpframework.tables import NewRows, silenced, table_from_columns
from dpframework_trees.estimator_clones import EstimatorFamily
from dpframework_trees.estimator_inputs import InputColumns, Outcomes, keep_cells

#: Makes an `__init__` as scikit-learn wants it, which keeps every parameter as it was given, under its name. The repr
#: stays scikit-learn's, and an estimator is equal only to itself.
sklearn_estimator = attrs.define(slots=False, eq=False, repr=False)
STEP = "model"


@sklearn_estimator
class PrivateEstimator(BaseEstimator, abc.ABC):  # type: ignore[misc]
    """The base of this plugin's estimators, which follow scikit-learn and also take a schema and a budget.

    Each `fit` spends `epsilon`. The budgets of fits on the same people add up, so give these fits one `accountant`,
    which clones share.

    Parameters
    ----------
    epsilon, delta
        The budget of one fit. These models have pure epsilon. A delta only lowers the total of several steps or fits.
    schema
        Public facts about the columns of X, by name (by position, if X is an array), and about y. Without a schema, one
        is inferred from the data. That is not private, and a `PrivacyWarning` says so.
    target
        The schema's name for y. Needed only if X lacks more than one attribute of the schema.
    out_of_domain
        What to do with values outside the schema's domains, at fit and at prediction. "clamp" moves numbers to the
        nearest bound and makes other values missing; "missing" makes all of them missing; "error" refuses them. If the
        schema does not allow missing values, a prediction ignores missing cells (but not their rows), and warns of
        their number.
    relation
        The neighbouring relation of the claim.
    rows_per_unit
        The most rows of each of the `groups` that a fit uses. Without `groups` it must be 1.
    accountant
        A budget shared by several fits, such as `dpf.PureAccountant("add-or-remove-one", epsilon=2)`. A fit beyond it
        is refused. With None, each fit is charged on its own.
    random_state
        For experiments only, since it makes the fit reproducible and not private. None draws cryptographic randomness.

    Attributes
    ----------
    model_
        The released model. It predicts, prints and draws itself at no cost in privacy.
    plan_
        The plan of the fit.
    private_
        Whether the fit is covered by its claim. This needs a public schema, no random_state, and parameters that were
        not chosen by exact scores. So a fit after predictions of another clone, as in scikit-learn's searches, is not
        covered; `PrivateTreeSearch` is a search that is. The claim is about the table that `fit` is given. It does not
        cover a transformer that learnt from the private rows before, such as a scaler in a pipeline. With public cuts
        you need no scaling.
    schema_
        The schema of the columns and y.
    """

    miner: ClassVar[type[Miner]]

    epsilon: Any = 1.0
    delta: Any = attrs.field(default=0, kw_only=True)
    schema: Schema | None = attrs.field(default=None, kw_only=True)
    target: str | None = attrs.field(default=None, kw_only=True)
    out_of_domain: str = attrs.field(default="clamp", kw_only=True)
    relation: str = attrs.field(default=Relation.ADD_OR_REMOVE_ONE.value, kw_only=True)
    rows_per_unit: int = attrs.field(default=1, kw_only=True)
    accountant: Accountant[Any] | None = attrs.field(default=None, kw_only=True)
    random_state: int | np.random.RandomState | None = attrs.field(default=None, kw_only=True)

    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit the model, which spends epsilon.

        Parameters
        ----------
        X
            Dataframe or array, shape (rows, columns), of numbers, Booleans and texts, with missing values where the
            schema allows them. The number of columns is public. In a list, every row must have this number of cells.
        y
            The outcome, shape (rows,).
        groups
            The group, such as the person, that each row belongs to, shape (rows,). The fit then protects a group with
            all of its rows, and uses at most `rows_per_unit` of them. Rows without a group are left out. By default
            a single row is protected.

        Raises
        ------
        InputError
            If the data does not fit the schema, or a parameter cannot be used.
        PlanRefused
            If the fit costs more than what is left of the accountant's budget.
        """
        if self.accountant is not None:
            self.accountant.require_process()  # Before the rows are read, since reading them may hang in a fork.
        chosen = self._family.may_choose_by_scores(self)
        with silenced(streams=True):
            columns = self._columns(X, reset=True)
        outcomes = Outcomes.of(y)
        if len(outcomes) != len(columns[0]):
            raise InputError(f"X has {len(columns[0])} rows and y has {len(outcomes)}; give the same number of both")
        given = InputColumns(self.schema, self.target, self._names, hasattr(self, "feature_names_in_"))
        unit, ids = self._unit(groups, len(outcomes))
        schema, target = self._describe_columns(given, columns, outcomes)
        names = [name for name in schema.names if name != target]
        by_name = {**dict(zip(names, columns, strict=True)), target: self._column(schema[target], outcomes), **ids}
        seed = self._seed()
        key = None if seed is None else seed.to_bytes(4)
        table = table_from_columns(
            by_name, schema, out_of_domain=self.out_of_domain, unit=unit, key=key, source="X and y"
        )
        whom: dict[str, Any] = {"unit": unit.id, "rows_per_unit": unit.rows}
        inferred = ["schema-inferred-from-data"] if schema.inferred else []  # The user has been warned of this.
        study = Study(
            schema,
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,
            allow=[*inferred, *self._list_assumptions()],
            **whom,
        )
        study.add(STEP, self._miner(target))
        results = study.run(table, seed=seed, accountant=self.accountant)
        self._family.note_fit(self, alone=self.accountant is None and seed is None)
        self._keep(results[STEP])
        self.plan_ = results.plan
        self.private_ = results.private and not chosen
        self.schema_ = schema
        return self

    @silenced(streams=True)
    def _unit(self, groups: Any, rows: int) -> tuple[PrivacyUnit, dict[str, Any]]:
        """Return the unit that a fit protects, and the column of the units' ids if there are groups."""
        unit = unit_of_groups(groups, self.rows_per_unit)
        if groups is None:
            return unit, {}
        ids = keep_cells(groups)
        if len(ids) != rows:
            raise InputError(f"y has {rows} rows and groups has {len(ids)}; give the same number of both")
        return unit, {GROUPS: ids}

    def _keep(self, result: Any) -> None:
        """Store the results of a fit."""
        self.model_ = result

    def plot(self, ax: Any | None = None) -> Any:
        """Draw the model, and return the matplotlib axes."""
        check_is_fitted(self)
        return self.model_.plot(ax)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much each column of X matters in the released model, shape (columns,), with sum 1.

        In a tree, it is by how much the splits on the column lower the Gini impurity of the noisy counts. In an
        additive model, it is the largest difference that the column can make to a score. If no column matters, all are
        0.
        """
        check_is_fitted(self)
        known = self.model_.importances()
        found = np.array([known.get(name, 0.0) for name in self.schema_.names if name != self._target])
        return np.asarray(found / found.sum()) if found.any() else found

    def _rows(self, X: Any) -> NewRows:
        """Return the rows of X, encoded by the schema without y."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        features = self.schema_.select([name for name in self.schema_.names if name != self._target])
        given = dict(zip(features.names, columns, strict=True))
        return NewRows.read(given, features, out_of_domain=self.out_of_domain, source="X")

    @property
    def _target(self) -> str:
        return str(self.model_.target.name)

    def _columns(self, X: Any, *, reset: bool) -> list[Any]:
        """Return the columns of a dataframe or array, after scikit-learn's checks of shape and names."""
        if hasattr(X, "columns") and hasattr(X, "shape"):
            import narwhals as nw

            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = nw.from_native(X, eager_only=True)
            if frame.shape[1] == 0 or frame.shape[0] < self._fewest_rows(reset=reset):
                raise InputError(
                    f"X is empty: {frame.shape[0]} sample(s), {frame.shape[1]} feature(s); a minimum of 1 is required."
                )
            self._names = [str(name) for name in frame.columns]
            return list(frame.iter_columns())
        given = np.array(X, dtype=object) if isinstance(X, list | tuple) else X  # Each cell keeps its own type.
        # An empty list does not show the number of columns.
        if self.schema is not None and isinstance(X, list | tuple) and not X:
            given = np.empty((0, len(self.schema) - 1), dtype=object)
        finite: Any = "allow-nan" if self.schema is None else False  # With a schema, later code checks all cells.
        fewest = self._fewest_rows(reset=reset)
        array = validate_data(self, given, reset=reset, dtype=None, ensure_all_finite=finite, ensure_min_samples=fewest)
        if reset:
            self._names = [f"x{k}" for k in range(array.shape[1])]
        return [array[:, k] for k in range(array.shape[1])]

    def _fewest_rows(self, *, reset: bool) -> int:
        """Return the least number of rows that is accepted.

        A fit with a schema accepts a table without rows. If it refused, that would reveal that no row is left.
        """
        return 0 if reset and self.schema is not None else 1

    @abc.abstractmethod
    def _describe_columns(self, given: InputColumns, columns: list[Any], outcomes: Outcomes) -> tuple[Schema, str]:
        """Return a schema of the columns and y, and the schema's name for y."""

    @abc.abstractmethod
    def _column(self, target: Attribute, outcomes: Outcomes) -> Any:
        """Return y as a column of the table, with values as the schema writes them."""

    def _miner(self, target: str) -> Miner:
        """Return the miner of a fit, with the subclass's parameters. `target` is the schema's name for y."""
        own = [a.name for a in attrs.fields(type(self)) if not a.inherited]
        return self.miner(target=target, epsilon=self.epsilon, **{name: getattr(self, name) for name in own})  # type: ignore[call-arg]

    def _list_assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the chosen parameters, by default none. Choosing them accepts these assumptions."""
        return ()

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**31))

    @property
    def _family(self) -> EstimatorFamily:
        """The record that this estimator shares with its clones."""
        family: EstimatorFamily = self.__dict__.setdefault("_clones", EstimatorFamily())
        return family

    def __sklearn_clone__(self) -> Self:
        """Return a clone, which belongs to the same family."""
        family = self._family
        twin: Self = super().__sklearn_clone__()
        twin.__dict__["_clones"] = family
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle, and note the pickling, since another process may predict with the copy."""
        self._family.note_pickling(fitted=hasattr(self, "plan_"))
        state: dict[str, Any] = super().__getstate__()
        return state

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, which say that missing values, texts and categories are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = self.random_state is None
        return tags
