"""A synthetic table: the marginals that were measured, the model that fits them, and rows drawn from it.

All of it is post-processing of releases. The marginals, the model's potentials and a public seed are kept, and the rows
follow from them. So a file of results stays small however many rows there are.
"""

from __future__ import annotations

import functools
import io
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpframework.facts import MOST_ROWS, InputError, Schema, nearest, write_whole
from dpframework.results import DrawableResult, Noisy, TextTable
from dpframework.tables import Table
from dpframework_tables.frames import frame_of
from dpframework_tables.junction import JunctionTree, cells_of, cliques_of
from dpframework_tables.merging import Merging
from dpframework_tables.model import Measurement, Model, model_of
from dpframework_tables.row_miners import Forms, mine, mined_forms
from dpframework_tables.sampling import deal_out, sample_rows

if TYPE_CHECKING:
    import polars as pl

MOST_CELLS = 1 << 25  # the most cells of a model that is read from a file
_SAME = attrs.cmp_using(eq=np.array_equal)
_SHOWN = 40  # the most marginals that are printed or drawn
POST_PROCESSING = (
    "Synthetic rows, made by dpframework from differentially private releases. Whatever is read from them is "
    "post-processing and costs no privacy."
)


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(given)


def _numbers(given: ArrayLike) -> NDArray[np.float64]:
    found = np.array(given, dtype=np.float64)
    found.flags.writeable = False
    return found


@final
@attrs.frozen
class MeasuredMarginal:
    """A marginal that was measured, and its potential in the model.

    Attributes
    ----------
    names
        The attributes, in the order of the synthetic table's columns.
    counts
        The noisy counts in rows, with one axis per attribute. They are unbiased, and may be negative.
    variance
        The variance of the noise of each count.
    potential
        For each cell, the term that it adds to the logarithm of the probability of its rows.
    """

    names: tuple[str, ...] = attrs.field(converter=_names)
    counts: NDArray[np.float64] = attrs.field(converter=_numbers, eq=_SAME)
    variance: float = attrs.field(converter=float)
    potential: NDArray[np.float64] = attrs.field(converter=_numbers, eq=_SAME)

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise of each count, in rows."""
        return math.sqrt(self.variance)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        tables = {"counts": self.counts.tolist(), "potential": self.potential.tolist()}
        return {"attributes": list(self.names), "variance": self.variance, **tables}


def _as_tuple(given: Iterable[MeasuredMarginal]) -> tuple[MeasuredMarginal, ...]:
    return tuple(given)


# Not slotted: cached properties need an instance dictionary.
@final
@attrs.frozen(slots=False)
class SyntheticRows(DrawableResult):
    """A synthetic table, and the measurements that it follows from.

    Attributes
    ----------
    schema
        The public facts about its columns.
    method
        The method that made it: "independent", "tree", "rounds" or "adaptive".
    measured
        The marginals that were measured. All other dependence between attributes is inferred.
    total
        The number of rows that the model stands for.
    rows
        The number of synthetic rows.
    seed
        The public seed. The rows follow from it and from the model.
    miners
        The miners that are run on the rows, by the names of their findings.
    merged
        For each attribute whose rare values form one group in marginals of several attributes, the group of each of its
        codes. The rows of a group are shared among its values by the attribute's own marginal.
    """

    name_in_errors = "a synthetic table"
    schema: Schema
    method: str
    measured: tuple[MeasuredMarginal, ...] = attrs.field(converter=_as_tuple)
    total: float = attrs.field(converter=float)
    rows: int = attrs.field(converter=int)
    seed: int = attrs.field(converter=int)
    miners: Forms = attrs.field(factory=dict, converter=mined_forms)
    merged: dict[str, list[int]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        """Refuse attributes or shapes that are not the schema's, numbers that are not finite, and too large a model."""
        if not (0 < self.rows <= MOST_ROWS and 0 <= self.seed < 2**64 and 0 < self.total < math.inf):
            raise InputError("a synthetic table needs a positive number of rows and total, and a seed from 0 up")
        places = {name: k for k, name in enumerate(self.schema.names)}
        if wrong := [
            name for name, own in self.merged.items() if name not in places or len(own) != self.schema[name].size
        ]:
            raise InputError(f"merged has no group for each value of '{wrong[0]}'; give each a group, or leave it out")
        sets = [tuple(places[name] for name in one.names) for one in self.measured]
        for of, one in zip(sets, self.measured, strict=True):
            sizes = [a.size for a in self.schema] if len(of) == 1 else self._merging.sizes
            shape = tuple(sizes[a] for a in of)
            if list(of) != sorted(set(of)) or not of or shape not in {one.counts.shape} & {one.potential.shape}:
                raise InputError(f"the marginal of {' by '.join(one.names)} does not have a number for each cell")
            if not (np.isfinite(one.counts).all() and np.isfinite(one.potential).all() and one.variance >= 0):
                raise InputError(f"the marginal of {' by '.join(one.names)} has numbers that are not finite")
        if cells_of(self._merging.sizes, cliques_of(self._merging.sizes, sets)) > MOST_CELLS:
            raise InputError(f"the model of a synthetic table has more than {MOST_CELLS:,} cells")

    @functools.cached_property
    def _merging(self) -> Merging:
        return Merging([self.merged.get(a.name, np.arange(a.size)) for a in self.schema])

    @functools.cached_property
    def model(self) -> Model:
        """The model, computed from the measured marginals and their potentials."""
        places = {name: k for k, name in enumerate(self.schema.names)}
        given = []
        for one in self.measured:
            of, counts, own = tuple(places[name] for name in one.names), one.counts, one.potential
            if len(of) == 1 and self._merging.merges(of[0]):
                top = own.max()
                counts, own = self._merging.table(counts, of), top + np.log(self._merging.table(np.exp(own - top), of))
            given.append(Measurement(of, counts, one.variance, 1.0, own))
        tree = JunctionTree.of(self._merging.sizes, [one.of for one in given])
        return model_of(tree, given, [one.start for one in given], self.total)

    @functools.cached_property
    def codes(self) -> NDArray[Any]:
        """The codes of the rows, shape (rows, attributes)."""
        found = sample_rows(self.model, self.rows, self.seed)
        for one in self.measured:
            if len(one.names) == 1 and one.names[0] in self.merged:
                a, shares = self.schema.index(one.names[0]), np.exp(one.potential - one.potential.max())
                found[:, a] = deal_out(found[:, a], self._merging.groups[a], shares, self.seed + 2 + a)
        found.flags.writeable = False
        return found

    def __getitem__(self, names: str | tuple[str, ...]) -> MeasuredMarginal:
        """Return the measured marginal of one attribute, or of several together. If it was measured again, the last.

        Raises
        ------
        InputError
            If the marginal was not measured, so that the rows only infer it.
        """
        wanted = {names} if isinstance(names, str) else set(names)
        for one in reversed(self.measured):
            if set(one.names) == wanted:
                return one
        known = [" by ".join(one.names) for one in self.measured]
        text = " by ".join([names] if isinstance(names, str) else names)
        raise InputError(f"the marginal of {text} was not measured but inferred; {nearest(text, known)}")

    def to_frame(self) -> pl.DataFrame:
        """Return the rows as a polars dataframe, with numbers drawn within their bins and null for missing values."""
        return frame_of(self.schema, self.codes, self.seed + 1)

    def to_table(self) -> Table:
        """Return the rows as a table, to be mined. Its results are post-processing."""
        return Table.from_codes(attrs.evolve(self.schema, rows=self.rows), self.codes.T)

    def finding(self, name: str) -> Any:
        """Return what a miner of `miners` finds in the rows. It is post-processing, and the same each time.

        Raises
        ------
        InputError
            If no finding has this name.
        """
        if name not in self.miners:
            raise InputError(f"nothing called '{name}' is mined from these rows; {nearest(name, self.miners)}")
        if name not in self._found:
            self._found[name] = mine(self.to_table(), name, self.miners[name], self.seed // 2)
        return self._found[name]

    @functools.cached_property
    def _found(self) -> dict[str, Any]:
        return {}

    def write(self, path: str | Path) -> list[Path]:
        """Write the rows as CSV or Parquet, with two files beside them: their schema and their provenance.

        Parameters
        ----------
        path
            A new file, ending in .csv or .parquet. The others are named after it: `.schema.toml`, and
            `.provenance.json`, which says that reading these rows is post-processing, which marginals were measured
            with which error, and what is only inferred.

        Returns
        -------
        list of Path
            The three files.

        Raises
        ------
        InputError
            If `path` has another ending, or if one of the files exists or cannot be written.
        """
        rows = Path(path)
        if rows.suffix not in (".csv", ".parquet"):
            raise InputError(f"{rows}: its name does not say in which format to write it; end it in .csv or .parquet")
        beside = [rows.with_suffix(".schema.toml"), rows.with_suffix(".provenance.json")]
        for one in (rows, *beside):
            if one.exists():
                raise InputError(f"{one}: exists already, and is never replaced; give another name")
        frame, content = self.to_frame(), io.BytesIO()
        frame.write_csv(content) if rows.suffix == ".csv" else frame.write_parquet(content)
        write_whole(rows, content.getvalue())
        write_whole(beside[0], attrs.evolve(self.schema, rows=self.rows).dumps())
        write_whole(beside[1], json.dumps(self.provenance(), indent=2) + "\n")
        return [rows, *beside]

    def rare_values(self) -> dict[str, list[str]]:
        """Return the rare values of each attribute that form one group in marginals of several attributes."""
        return {
            name: [cell for cell, group in zip(self.schema[name].cells, own, strict=True) if group == max(own)]
            for name, own in self.merged.items()
        }

    def provenance(self) -> dict[str, Any]:
        """Return where the rows come from, JSON-safe: the measured marginals, with their standard errors in rows."""
        measured = [{"marginal": list(one.names), "standard error": one.standard_error} for one in self.measured]
        return {
            "what": POST_PROCESSING,
            "post-processing": True,
            "method": self.method,
            "rows": self.rows,
            "seed": self.seed,
            "measured": measured,
            "rare values merged": self.rare_values(),
            "inferred": "all other marginals; do not rely on small groups and rare cells",
        }

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {
            "schema": self.schema.to_dict(),
            "method": self.method,
            "measured": [one.to_dict() for one in self.measured],
            "total": self.total,
            "rows": self.rows,
            "miners": self.miners,
            "merged": self.merged,
            "seed": str(self.seed),  # many readers of JSON round whole numbers of 63 bits
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> SyntheticRows:
        """Return the synthetic table that a form holds (see `StoredResult`)."""
        measured = [
            MeasuredMarginal(one["attributes"], one["counts"], one["variance"], one["potential"])
            for one in form["measured"]
        ]
        schema = Schema.from_dict(form["schema"])
        own = schema, str(form["method"]), measured, form["total"], form["rows"], int(form["seed"])
        return cls(*own, form.get("miners"), form.get("merged", {}))

    def draw(self, axes: Any) -> None:
        """Draw the error of each marginal: the rows by which a count is off at most, with 95 % probability."""
        shown = self.measured[:_SHOWN]
        axes.barh(range(len(shown)), [Noisy.margin_of(one.variance) for one in shown], color="#0b5394")
        axes.set_yticks(range(len(shown)), [" by ".join(one.names) for one in shown])
        axes.invert_yaxis()
        axes.set(xlabel="error of each count in rows (95 %)", title=f"{self.rows:,} synthetic rows")

    def _repr_html_(self) -> str:
        shown = [
            (" by ".join(one.names), f"±{math.ceil(Noisy.margin_of(one.variance))}") for one in self.measured[:_SHOWN]
        ]
        first, *_, last = str(self).split("\n")
        more = len(self.measured) - _SHOWN
        return TextTable(("measured", "rows (95 %)"), shown, more=more, legend=f"{first} {last}").html()

    def __str__(self) -> str:
        lines = [f"{self.rows:,} synthetic rows of {len(self.schema)} attributes, method {self.method}."]
        for one in self.measured[:_SHOWN]:
            margin = math.ceil(Noisy.margin_of(one.variance))
            lines.append(f"measured: {' by '.join(one.names)}, each count within ±{margin} rows")
        if len(self.measured) > _SHOWN:
            lines.append(f"and {len(self.measured) - _SHOWN} more, in to_json")
        if self.merged:
            lines.append(f"rare values form one group in marginals of several attributes, in {', '.join(self.merged)}")
        lines += [f"mined from the rows: {name}, by {form['miner']}" for name, form in self.miners.items()]
        lines.append("All other marginals are inferred. Reading the rows is post-processing.")
        return "\n".join(lines)
