"""The miner of histograms: counts of rows by the values of one attribute, by public bins or by released bins."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import attrs

from dpframework.basics.basic_miner_base import EXAMPLE_DELTA, BasicMiner
from dpframework.basics.bounds_argument_check import as_bounds, bounds_misfit
from dpframework.basics.cell_count_miner_base import TableMiner
from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import named_once
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Node, beside
from dpframework.results.frequencies import Frequencies
from dpframework.run.miner_base_and_examples import Example, Miner, Witness
from dpframework.run.miner_chain import MinerChain
from dpframework.run.private_table import PrivateTable

if TYPE_CHECKING:
    from dpframework.queries.released_bounds_queries import ReleasedBins

#: The number of bins, the edges of the bins, or the names of earlier steps that release the cuts between bins.
Bins: TypeAlias = "int | tuple[float, ...] | tuple[str, ...]"


def _bins(bins: Any) -> Bins | None:
    if bins is None or isinstance(bins, int):
        return bins
    if isinstance(bins, str) or not isinstance(bins, Iterable):
        raise InputError(f"bins is {bins!r}; a number of bins, a list of edges or a list of steps is needed")
    given = tuple(bins)
    steps = [one for one in given if isinstance(one, str)]
    if steps and len(steps) < len(given):
        raise InputError("bins mixes names of steps and edges; give the names of steps, or edges")
    named_once("bins", steps)
    return given


def _cut_between(lower: float, upper: float, number: int) -> list[float]:
    """Return the cuts that divide the range between two bounds into `number` bins of equal width."""
    return sorted({lower + (upper - lower) * k / number for k in range(1, number)} - {lower, upper})


@final
@attrs.frozen
class HistogramMiner(TableMiner):
    """The number of rows with each value of an attribute, or in each bin of a numeric attribute.

    If values may be missing, the rows without a value are counted too.

    Parameters
    ----------
    attribute
        The attribute's name.
    bins
        For a numeric attribute, one of three: the number of bins of equal width, the edges of the bins, or a list of
        names of earlier steps. These are steps of miner `quantile` or `median`, and their released points are the cuts
        between bins. Edges must be public, so do not take them from the data. By default the bins of the schema are
        used.
    bounds
        If `bins` is a number, the bounds between which the bins lie: two public numbers, or the name of an earlier step
        of miner `private-bounds`. The first and the last bin also count the rows beyond the bounds. By default the
        bounds of the schema are used.
    epsilon, rho
        The budget: `epsilon`, or `rho` for zCDP in a study with a delta.

    Examples
    --------
    >>> HistogramMiner("age", bins=[0, 18, 65, 120], epsilon=0.1).bins
    (0, 18, 65, 120)
    >>> HistogramMiner("cost", bins=20, bounds="cost-bounds", epsilon=0.1).sources
    ('cost-bounds',)
    """

    name = "histogram"
    result = Frequencies
    attribute: str
    bins: Bins | None = attrs.field(default=None, converter=_bins)
    bounds: tuple[float, float] | str | None = attrs.field(default=None, converter=as_bounds, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Refuse bounds if `bins` is not a number."""
        BasicMiner.__attrs_post_init__(self)
        if self.bounds is not None and not isinstance(self.bins, int):
            raise InputError("bounds are given without a number of bins between them; give it as bins, such as 20")

    @functools.cached_property
    def own_sources(self) -> Sequence[str]:
        """The names of the earlier steps that release the bounds or the cuts."""
        if isinstance(self.bounds, str):
            return (self.bounds,)
        return tuple(one for one in self.bins if isinstance(one, str)) if isinstance(self.bins, tuple) else ()

    def own_misfit(self, sources: Mapping[str, Miner]) -> str | None:
        """Return the reason why the named steps do not release bounds or cuts of the attribute; None if they do."""
        if isinstance(self.bounds, str):
            return bounds_misfit(self.attribute, sources)
        from dpframework.results.estimates import QuantileEstimate

        for name, source in sources.items():
            if source.result is not QuantileEstimate or getattr(source, "by", None):
                return f"bins names step '{name}', of miner '{source.name}'; name steps of miner 'quantile' without by"
            if (found := getattr(source, "attribute", self.attribute)) != self.attribute:
                return f"bins names step '{name}', which finds a point of '{found}' and not of '{self.attribute}'"
        return None

    def cells(self, schema: Schema) -> tuple[Attribute, ...]:
        """Return the attribute with its bins. If earlier steps release the bins, the plan assumes equal widths."""
        attribute, bins = schema[self.attribute], self.bins
        if self.own_sources and isinstance(bins, tuple):
            bins = len(bins) + 1
        elif isinstance(self.bounds, tuple) and isinstance(bins, int) and isinstance(attribute, Numeric):
            from dpframework.queries.sums import require_bounds

            require_bounds(attribute, *self.bounds)
            bins = tuple(_cut_between(*self.bounds, bins))
        if bins is None:
            return (attribute,)
        if not isinstance(attribute, Numeric):
            raise InputError(f"attribute '{attribute.name}' is {attribute.kind}; only a numeric one is counted in bins")
        if isinstance(bins, int):
            return (attrs.evolve(attribute, bins=bins, cuts=()),)
        ends = {0: attribute.lower, len(bins) - 1: attribute.upper}
        edges: list[Any] = [edge for k, edge in enumerate(bins) if ends.get(k) != edge]
        return (attrs.evolve(attribute, bins=None if edges else 1, cuts=edges),)

    def _released_bins(self, schema: Schema) -> ReleasedBins | None:
        """Return the query that counts rows in released bins; None if the bins are public."""
        (attribute,) = self.cells(schema)
        if not self.own_sources or not isinstance(attribute, Numeric):
            return None
        from dpframework.queries.released_bounds_queries import ReleasedBins

        return ReleasedBins(attribute, len(attribute.interior_cuts) + 1)

    def plan_rows(self, schema: Schema) -> Node:
        """Plan one release of all counts."""
        query = self._released_bins(schema)
        if query is None:
            return super().plan_rows(schema)
        return self.plan_step(query, schema, uses=map(beside, self.own_sources))

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return the attribute's name if the bins are not the schema's, since raw values are read then."""
        return (self.attribute,) if self.own_sources else super().values_read(schema)

    def mine_rows(self, table: PrivateTable) -> Frequencies:
        """Release the counts, in public bins or in bins from earlier releases."""
        query = self._released_bins(table.schema)
        if query is None:
            return super().mine_rows(table)
        if isinstance(self.bounds, str):
            within = table.given[self.bounds]
            cuts = _cut_between(within.lower, within.upper, query.most)
        else:
            lower, upper = query.attribute.lower, query.attribute.upper
            points = {table.given[source].value for source in self.own_sources}
            cuts = sorted(point for point in points if lower < point < upper)
        attribute = query.at(cuts)
        counts, calibration = table.release("counts", cuts=tuple(cuts)), table.calibration("counts")
        frequencies = self.table_of(calibration, [attribute], counts[: attribute.size])
        return frequencies if len(counts) == attribute.size else attrs.evolve(frequencies, exact_total=False)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        """Return examples with public and released bins, a public number of rows, and released rows per unit."""
        from dpframework.basics.bounds_miner import PrivateBoundsMiner
        from dpframework.basics.quantile_miners import QuantileMiner
        from dpframework.basics.row_cap_selection_miner import released_rows_example

        schema = Schema([Categorical("town", ["A", "B", "C"], missing=True), Numeric("age", 0, 90, cuts=[40])])
        counted = attrs.evolve(schema, rows=6)
        age = Schema([Numeric("age", 0, 8, bins=4, missing=True)])
        search = PrivateBoundsMiner("age", outside=Fraction(1, 5), epsilon=1)
        between = MinerChain({"found": search, "then": cls("age", bins=3, bounds="found", epsilon=1)})
        # With all 14 rows, every point from 2 to 8 is a median. Without one of the rows at 8, the point 1 misses the
        # median by 6.5 rows instead of 7.
        low, high, other = {"age": 2}, {"age": 8}, {"age": 0}
        halves = [Witness(((low, 7), (high, 6)), high, left, {"half/quantile": 1}) for left in (None, other)]
        half = MinerChain({"half": QuantileMiner("age", epsilon=1), "then": cls("age", bins=["half"], epsilon=1)})
        return {
            "values": Example(schema, cls("town", epsilon=1)),
            "bins": Example(schema, cls("age", bins=[0, 30, 60, 90], epsilon=1)),
            "rows-public": Example(counted, cls("age", bins=3, epsilon=1)),
            "released-rows": released_rows_example(
                Schema([Boolean("ill")]), cls("ill", rows_per_unit="most", rho=Fraction(1, 8)), delta=EXAMPLE_DELTA
            ),
            "released-bounds": Example(age, between),
            "released-cuts": Example(attrs.evolve(age, rows=6), half, witnesses=halves),
            "zcdp": Example(schema, cls("town", rho=Fraction(1, 8)), EXAMPLE_DELTA),
        }
