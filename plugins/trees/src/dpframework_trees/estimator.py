"""Trees as scikit-learn classifiers."""

from __future__ import annotations

import abc
import warnings
from typing import Any, Self, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dpframework.accountant import Accountant
from dpframework.facts import Attribute, Categorical, InputError, Relation, Schema, nearest
from dpframework.run import Miner
from dpframework.study import Study
from dpframework.tables import infer_schema, table_from_columns
from dpframework_trees.dptree import DPTree
from dpframework_trees.id3 import DPID3
from dpframework_trees.sampling import ExactTrees, MarkovChainTrees

CLASS = "class"


class PrivacyWarning(UserWarning):
    """A fit whose result is not covered by its claim of differential privacy."""


class TreeClassifier(ClassifierMixin, BaseEstimator, abc.ABC):  # type: ignore[misc]
    """What the estimators of this plugin share: scikit-learn's conventions, schemas, and budgets."""

    epsilon: Any
    schema: Schema | None
    target: str | None
    out_of_domain: str
    relation: str
    accountant: Accountant[Any] | None
    random_state: int | np.random.RandomState | None

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit a tree.

        Parameters
        ----------
        X
            Dataframe or array, shape (rows, columns); numbers, Booleans and texts, missing where the schema allows.
        y
            Classes, shape (rows,).

        Raises
        ------
        InputError
            If the data does not fit the schema, or a parameter cannot be used.
        PlanRefused
            If the fit does not fit what is left of the accountant's budget.
        """
        columns = self._columns(X, reset=True)
        classes = self._classes(y)
        if len(classes) != len(columns[0]):
            raise InputError(f"X has {len(columns[0])} rows and y has {len(classes)}; they must have as many")
        schema, target = self._schema(columns, classes)
        names = [name for name in schema.names if name != target]
        by_name = {**dict(zip(names, columns, strict=True)), target: _texts(classes)}
        table = table_from_columns(by_name, schema, out_of_domain=self.out_of_domain, source="X and y")
        self.classes_, self._order = _ordered_classes(schema[target], classes.dtype)
        study = Study(schema, epsilon=self.epsilon, relation=self.relation, allow=self._allowed(schema))
        study.add("tree", self._miner(target))
        results = study.run(table, seed=self._seed(), accountant=self.accountant)
        self.tree_ = results["tree"].tree
        self.plan_ = results.plan
        self.private_ = results.private
        self.schema_ = schema
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities, shape (rows, classes), in the order of `classes_`."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        features = self.schema_.select([name for name in self.schema_.names if name != self._target])
        table = table_from_columns(
            dict(zip(features.names, columns, strict=True)),
            attrs.evolve(features, rows=None, max_rows=None),
            out_of_domain=self.out_of_domain,
            source="X",
        )
        return np.asarray(self.tree_.predict_proba(table)[:, self._order])

    @property
    def _target(self) -> str:
        return str(self.tree_.target.name)

    def _columns(self, X: Any, *, reset: bool) -> list[Any]:
        """Return the columns of a dataframe or array, after scikit-learn's checks of shape and names."""
        if hasattr(X, "columns") and hasattr(X, "shape"):
            import narwhals as nw

            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = nw.from_native(X, eager_only=True)
            if 0 in frame.shape:
                raise InputError(
                    f"X is empty: {frame.shape[0]} sample(s), {frame.shape[1]} feature(s); a minimum of 1 is required."
                )
            self._names = [str(name) for name in frame.columns]
            return list(frame.iter_columns())
        array = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        if reset:
            self._names = [f"x{k}" for k in range(array.shape[1])]
        return [array[:, k] for k in range(array.shape[1])]

    def _classes(self, y: Any) -> NDArray[Any]:
        if y is None:
            raise InputError("requires y to be passed, but the target y is None")
        classes = np.asarray(column_or_1d(y, warn=True))
        if classes.dtype.kind in "fc":  # only these may be continuous; sorting texts to find out is slow
            check_classification_targets(classes)
        return classes

    def _schema(self, columns: list[Any], classes: NDArray[Any]) -> tuple[Schema, str]:
        """Return a schema of the columns, in their order, and the class, and the class's name."""
        if self.schema is None:
            warnings.warn(
                "no schema was given: one is inferred from the data, so this fit is not private; "
                "write a public schema and pass it as schema=",
                PrivacyWarning,
                stacklevel=3,
            )
            import polars as pl

            frame = pl.DataFrame({name: _plain(column) for name, column in zip(self._names, columns, strict=True)})
            inferred = infer_schema(frame)
            name = _free_name(CLASS, inferred.names)
            return _with_class(inferred, name, classes), name
        if self.schema.inferred:
            warnings.warn(
                "the schema was inferred from data, so this fit is not private; write a public schema",
                PrivacyWarning,
                stacklevel=3,
            )
        features, target = self._described(self.schema)
        if target is not None:
            return self.schema.select([*features, target]), target
        warnings.warn(
            "the schema has no attribute for the class: its values are read off y, so this fit is not private",
            PrivacyWarning,
            stacklevel=3,
        )
        name = _free_name(CLASS, self.schema.names)
        return _with_class(self.schema.select(features), name, classes), name

    def _described(self, known: Schema) -> tuple[list[str], str | None]:
        """Return the schema's names of X's columns, in their order, and of the class, if it has that."""
        if hasattr(self, "feature_names_in_"):
            features = self._names
        else:
            features = [name for name in known.names if name != self.target][: len(self._names)]
        if len(features) < len(self._names):
            raise InputError(
                f"the schema describes {len(features)} columns, X has {len(self._names)}; describe them all"
            )
        for name in features:
            if name not in known:
                raise InputError(f"column '{name}' of X is not in the schema; {nearest(name, known.names)}")
        others = [name for name in known.names if name not in features]
        if self.target is not None and self.target not in others:
            raise InputError(f"target '{self.target}' must be an attribute of the schema, and no column of X")
        if self.target is None and len(others) > 1:
            shown = ", ".join(map(repr, others[:4]))
            raise InputError(
                f"the schema has more attributes than X has columns ({shown}); say by target= which is the class"
            )
        return features, self.target or next(iter(others), None)

    @abc.abstractmethod
    def _miner(self, target: str) -> Miner:
        """Return the miner of a fit, for a class of that name."""

    @abc.abstractmethod
    def _assumed(self) -> tuple[str, ...]:
        """Return the assumptions that a choice of parameters makes, and that it therefore allows."""

    def _allowed(self, schema: Schema) -> list[str]:
        inferred = ["schema-inferred-from-data"] if schema.inferred else []  # of which there was a warning
        return [*inferred, *self._assumed()]

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        return int(check_random_state(self.random_state).randint(2**31))

    def __sklearn_tags__(self) -> Any:
        """Accept missing values, texts and categories."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = self.random_state is None
        return tags


@final
class DPID3Classifier(TreeClassifier):
    """DP-ID3 decision tree classifier (see `dpframework_trees.DPID3` for the algorithm and its parameters).

    Each `fit` spends `epsilon`. Fits on the same people add up: give them one `accountant`, which clones share.

    Parameters
    ----------
    epsilon
        The budget of one fit.
    max_depth, criterion, selection, splits, numeric, stopping, budget, pruning
        As for the miner.
    schema
        Public facts about the columns of X, by name (by position, if X is an array), and about the class. Without a
        schema one is inferred from the data, which is not private: a `PrivacyWarning` says so.
    target
        The schema's name of the class; needed only if the schema has more attributes besides.
    out_of_domain
        What to do with values outside the schema's domains, at fit and at prediction: "clamp" moves numbers to the
        nearest bound and refuses unknown texts; "missing" makes them missing, where the schema allows that; "error".
    relation
        The neighbouring relation of the claim.
    accountant
        A budget shared by several fits, such as `dpf.PureAccountant("add-or-remove-one", epsilon=2)`; a fit beyond it
        is refused. None lets each fit stand for itself.
    random_state
        For experiments only: makes the fit reproducible and not private. None draws cryptographic randomness.

    Attributes
    ----------
    classes_
        The classes, sorted, in y's type, which is taken to be public; all of the schema's, if it has the class.
    tree_
        The fitted `DecisionTree`.
    plan_
        The plan of the fit.
    private_
        Whether the fit is covered by its claim: a public schema and no random_state. The claim is about the table
        that `fit` is given: a transformer that learnt from the private rows before (a scaler in a pipeline) is
        outside of it. Public cuts make scaling needless.
    schema_
        The schema of the columns and the class.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=10), dpf.Categorical("class", values=["no", "yes"])])
    >>> X = [[i % 10] for i in range(1000)]
    >>> y = ["yes" if i % 10 >= 5 else "no" for i in range(1000)]
    >>> tree = DPID3Classifier(epsilon=10, max_depth=1, schema=schema, random_state=0).fit(X, y)
    >>> tree.predict([[2], [7]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_depth: int = 5,
        criterion: str = "norm",
        selection: str = "permute-and-flip",
        splits: str = "binary",
        numeric: str = "candidates",
        stopping: str = "none",
        budget: str = "growing",
        pruning: bool = True,
        schema: Schema | None = None,
        target: str | None = None,
        out_of_domain: str = "clamp",
        relation: str = Relation.ADD_OR_REMOVE_ONE.value,
        accountant: Accountant[Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_depth = max_depth
        self.criterion = criterion
        self.selection = selection
        self.splits = splits
        self.numeric = numeric
        self.stopping = stopping
        self.budget = budget
        self.pruning = pruning
        self.schema = schema
        self.target = target
        self.out_of_domain = out_of_domain
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def _miner(self, target: str) -> DPID3:
        return DPID3(
            target=target,
            epsilon=self.epsilon,
            max_depth=self.max_depth,
            criterion=self.criterion,
            selection=self.selection,
            splits=self.splits,
            numeric=self.numeric,
            stopping=self.stopping,
            budget=self.budget,
            pruning=self.pruning,
        )

    def _assumed(self) -> tuple[str, ...]:
        return ("real-arithmetic",) if self.numeric == "density" else ()


@final
class DPTreeClassifier(TreeClassifier):
    """Classifier: a tree of fixed depth sampled as a whole (see `dpframework_trees.DPTree` for the parameters).

    Each `fit` spends `epsilon`. Fits on the same people add up: give them one `accountant`, which clones share.
    Choosing a sampler allows what it assumes: real arithmetic, and for "mcmc" that the walk has converged.

    Parameters
    ----------
    epsilon
        The budget of one fit.
    max_depth, sampler, criterion, iterations, counts_share, pruning
        As for the miner.
    schema
        Public facts about the columns of X, by name (by position, if X is an array), and about the class. Without a
        schema one is inferred from the data, which is not private: a `PrivacyWarning` says so.
    target
        The schema's name of the class; needed only if the schema has more attributes besides.
    out_of_domain
        What to do with values outside the schema's domains, at fit and at prediction: "clamp" moves numbers to the
        nearest bound and refuses unknown texts; "missing" makes them missing, where the schema allows that; "error".
    relation
        The neighbouring relation of the claim.
    accountant
        A budget shared by several fits, such as `dpf.PureAccountant("add-or-remove-one", epsilon=2)`; a fit beyond it
        is refused. None lets each fit stand for itself.
    random_state
        For experiments only: makes the fit reproducible and not private. None draws cryptographic randomness.

    Attributes
    ----------
    classes_
        The classes, sorted, in y's type, which is taken to be public; all of the schema's, if it has the class.
    tree_
        The fitted `DecisionTree`.
    plan_
        The plan of the fit.
    private_
        Whether the fit is covered by its claim: a public schema and no random_state. The claim is about the table
        that `fit` is given: a transformer that learnt from the private rows before (a scaler in a pipeline) is
        outside of it. Public cuts make scaling needless.
    schema_
        The schema of the columns and the class.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = dpf.Schema([dpf.Numeric("x", 0, 10, bins=10), dpf.Categorical("class", values=["no", "yes"])])
    >>> X = [[i % 10] for i in range(1000)]
    >>> y = ["yes" if i % 10 >= 5 else "no" for i in range(1000)]
    >>> tree = DPTreeClassifier(epsilon=10, max_depth=1, schema=schema, random_state=0).fit(X, y)
    >>> tree.predict([[2], [7]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_depth: int = 3,
        sampler: str = "exact",
        criterion: str = "norm",
        iterations: int = 10_000,
        counts_share: float | str = 0.4,
        pruning: bool = True,
        schema: Schema | None = None,
        target: str | None = None,
        out_of_domain: str = "clamp",
        relation: str = Relation.ADD_OR_REMOVE_ONE.value,
        accountant: Accountant[Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_depth = max_depth
        self.sampler = sampler
        self.criterion = criterion
        self.iterations = iterations
        self.counts_share = counts_share
        self.pruning = pruning
        self.schema = schema
        self.target = target
        self.out_of_domain = out_of_domain
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def _miner(self, target: str) -> DPTree:
        return DPTree(
            target=target,
            epsilon=self.epsilon,
            max_depth=self.max_depth,
            sampler=self.sampler,
            criterion=self.criterion,
            iterations=self.iterations,
            counts_share=self.counts_share,
            pruning=self.pruning,
        )

    def _assumed(self) -> tuple[str, ...]:
        return {"exact": ExactTrees.assumptions, "mcmc": MarkovChainTrees.assumptions}.get(self.sampler, ())


def _plain(column: Any) -> Any:
    if hasattr(column, "to_native"):
        return column.to_numpy() if column.dtype.is_numeric() else column.to_list()
    return column.tolist() if column.dtype == object else column


def _free_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _texts(classes: NDArray[Any]) -> Any:
    """Return classes as the schema's labels write them."""
    return classes.astype(str) if classes.dtype.kind == "b" else classes


def _with_class(schema: Schema, name: str, classes: NDArray[Any]) -> Schema:
    """Add a class attribute whose values are those observed."""
    if classes.dtype.kind == "O" and any(value is None or value != value for value in classes.tolist()):
        raise InputError("y has missing values; every row needs a class")
    if len(np.unique(classes)) < 2:
        raise InputError("y has 1 class; a classifier needs two or more")
    target = Categorical(name, values=[str(value) for value in np.unique(classes).tolist()])
    inferred = tuple(dict.fromkeys((*schema.inferred, "classes: observed")))
    return attrs.evolve(schema, attributes=(*schema.attributes, target), inferred=inferred)


def _ordered_classes(target: Attribute, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the class values in y's type, sorted, and their positions among the target's labels.

    Where a label has no value of that type (a bin, a missing class) the classes are the labels.
    """
    labels = [label.lower() for label in target.labels]
    values: NDArray[Any] = np.array(target.labels)
    if set(labels) <= {"false", "true"} and dtype.kind in "biuf":
        values = np.array([label == "true" for label in labels]).astype(dtype)
    elif dtype.kind in "iuf" and all(_is_number(label) for label in labels):
        values = np.array([float(label) for label in labels]).astype(dtype)
    elif dtype.kind == "O":
        values = values.astype(object)
    order = np.argsort(values)
    return values[order], order


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
