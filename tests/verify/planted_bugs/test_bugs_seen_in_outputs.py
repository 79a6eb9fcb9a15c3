"""Known bugs, planted: the verification kit must catch every one, and pass the correct version of each.

Each bug has been made in a published algorithm or a released program. Nothing here is caught by statistics but the
bugs in samplers, whose tests are wrong with a probability of at most 1e-6 each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest
from exact_rows import look_at
from sparse_vector import FirstAbove, IllThriceAndWell
from verify.bug_version import Version

import dpframework as dpf
from dpframework.accountant import PureAccountant
from dpframework.mechanisms import Calibration, DiscreteLaplace, Exponential, Gaussian, Laplace, Losses, PermuteAndFlip
from dpframework.queries import CandidateScores, Histogram, Norm, Query, Sensitivity, histogram_sensitivities
from dpframework.run.miner_base_and_examples import Example
from dpframework.run.private_table import PrivateTable
from dpframework.verify import LossReport, MinerConformance, Reader, audit, check_losses, check_reading, verify_examples
from dpframework.verify.mechanisms.sampler_check import SamplerReport, check_sampler
from dpframework.verify.miners import step_sensitivity_and_mechanism_checks

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill"), dpf.Numeric("age", 0, 8, cuts=[4])])
TOWN = SCHEMA["town"]
HISTOGRAM = Histogram(TOWN)
DISCRETE, GAUSSIAN = DiscreteLaplace(1), Gaussian(Fraction(1, 2))
NOTHING = -(10**9)  # a number that stands for none
REPLAYS = 600
CORRECT = 200  # of a version without the bug: that what holds passes, the suites of all that is built in test too


sampled = functools.cache(check_sampler)
compared: dict[Any, LossReport] = {}


@pytest.fixture(autouse=True)
def each_mechanism_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the bugs are not in the mechanism, which is the same one then, on answers of the same kind."""

    def sampled_once(
        mechanism: dpf.Mechanism, *, settings: bool, given: Any = None, beside: Any = None
    ) -> SamplerReport:
        return sampled(mechanism) if given is None else check_sampler(mechanism, given=given)

    def compared_once(mechanism: dpf.Mechanism, *, given: Any, relations: Any, seconds: float) -> LossReport:
        key = mechanism, tuple(asked.facts for asked in given), tuple(relations)
        if key not in compared:
            compared[key] = check_losses(mechanism, given=given, relations=relations)
        return compared[key]

    monkeypatch.setattr(step_sensitivity_and_mechanism_checks, "check_sampler", sampled_once)
    monkeypatch.setattr(step_sensitivity_and_mechanism_checks, "check_losses", compared_once)


def problems_of(miner: dpf.Miner, replays: int) -> list[str]:
    """Return what `dpframework verify` would print as wrong, under the first relation where something is."""
    examples = {"one": Example(SCHEMA, miner)}
    for relation in dpf.Relation:
        found = verify_examples("planted", examples, relations=[relation], replays=replays // 2, runs=0)
        if problems := list(found.problems()):
            return problems
    return []


def peek(table: PrivateTable) -> int:
    """Return the exact number of rows, past the gate: what a buggy miner gets hold of somehow."""
    return sum(look_at(table, lambda block: block.rows))


@attrs.frozen
class Counts(dpf.Miner):
    """Ask one query with noise: a right or a wrong one; the base of the miners with a bug of their own."""

    name = "counts"
    asked: Query = HISTOGRAM
    noise: dpf.Mechanism = DISCRETE
    right: bool = False

    def plan(self, schema):
        return dpf.step("counts", self.asked, self.noise)

    def mine(self, table):
        return table.release("counts")


@attrs.frozen
class Towns(Query):
    """How many rows each town has; the base of queries that count wrongly."""

    name = "towns"
    answer_length = 3
    right: bool = True

    @property
    def sensitivities(self):
        return histogram_sensitivities(self.answer_length)

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3)


# Halved noise


@attrs.frozen
class HalfDrawn(DiscreteLaplace):
    """Draws with half the scale that it calibrates and states."""

    name = "half-drawn"

    def release(self, answer: Any, calibration: Calibration, randomness: Any) -> Any:
        return super().release(answer, attrs.evolve(calibration, scale=calibration.scale / 2), randomness)


@attrs.frozen
class HalfCalibrated(DiscreteLaplace):
    """Calibrates half the scale, and claims the loss of the whole."""

    name = "half-calibrated"

    def scale(self, change: Fraction) -> Fraction:
        return super().scale(change) / 2

    def losses(self, change: Any, scale: Fraction) -> Losses:
        return super().losses(change, scale * 2)


# The sensitivity of the wrong relation


@attrs.frozen
class WrongRelation(Towns):
    """Declares for a replaced row what holds for an added one."""

    name = "wrong-relation"

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.L1, 1, 2 if self.right else 1, source="planted"),)


# A candidate set that depends on the data


@attrs.frozen
class SeenTowns(CandidateScores):
    """Offers the towns that occur."""

    name = "seen-towns"
    integer = True
    right: bool
    seen: list[str] = attrs.field(factory=list, eq=False)

    @property
    def sensitivities(self):
        return histogram_sensitivities(3)

    def candidates(self, **inputs):
        return TOWN.labels if self.right else list(self.seen)

    def count(self, block, **inputs):
        counts = np.bincount(block.codes("town"), minlength=3)
        if self.right:
            return counts
        self.seen[:] = [label for label, count in zip(TOWN.labels, counts, strict=True) if count] or ["A"]
        return counts[[TOWN.labels.index(label) for label in self.seen]]


# A support filter on true counts


@attrs.frozen
class Supported(CandidateScores):
    """Leaves candidates below a true support out of the race, by a score that cannot win."""

    name = "supported"
    answer_length = 3
    right: bool

    @property
    def sensitivities(self):
        return (Sensitivity(Norm.LINF, 1, 1, fall=0, source="counts"),)

    def candidates(self, **inputs):
        return TOWN.labels

    def count(self, block, **inputs):
        return np.bincount(block.codes("town"), minlength=3)

    def answer(self, counts, **inputs):
        return counts.astype(float) if self.right else np.where(counts >= 3, counts.astype(float), -1000.0)


# Parallel composition counted as the largest part under replace-one


class LargestPart(PureAccountant):
    """Totals parts as if a replaced row stayed in its part."""

    name = "largest-part"

    def parallel(self, parts):
        return self.either(parts)


@attrs.frozen
class StaysInPart(DiscreteLaplace):
    """Calibrates in parts as it does on the whole table."""

    name = "stays-in-part"

    def calibrate(self, facts, relation, *, in_parts=False, **by):
        return super().calibrate(facts, relation, **by)


@attrs.frozen
class CountsInParts(Counts):
    def plan(self, schema):
        mechanism = self.noise if self.right else StaysInPart(1)
        return dpf.parallel(dpf.step("rows", dpf.queries.Count(), mechanism), by=TOWN)

    def mine(self, table):
        return [part.release("rows") for part in table.partition("town")]


def parallel_problems(right: bool) -> list[str]:
    accounting = PureAccountant if right else LargestPart
    report = audit(CountsInParts(right=right), SCHEMA, "replace-one", replays=REPLAYS, accounting=accounting)
    return [str(violation) for violation in report.violations]


# Parts by row position


@attrs.frozen
class EvenRows(dpf.Description):
    """Holds for every other row."""

    def holds(self, columns):
        return np.arange(columns.rows) % 2 == 0

    def literals(self):
        return ()

    def to_dict(self):
        return {}


@attrs.frozen
class PartsByPosition(Counts):
    def plan(self, schema):
        # calibrated on the whole table's relation: two halves at epsilon each
        return dpf.parallel(dpf.step("counts", self.asked, self.noise), by=self.cases)

    @property
    def cases(self):
        return dpf.Cases([dpf.Equals("ill", "true") if self.right else EvenRows()])

    def mine(self, table):
        return [part.release("counts") for part in table.partition(self.cases)]


# A release used twice


@attrs.frozen
class AsksTwice(Counts):
    def mine(self, table):
        once = table.release("counts")
        return [once, once if self.right else table.release("counts")]


@attrs.frozen
class ReusesNoise(Laplace):
    """Adds the noise of its last draw again, every other time."""

    name = "reuses-noise"
    kept: list[Any] = attrs.field(factory=list, eq=False, hash=False)

    def release(self, answer, calibration, randomness):
        if self.kept:
            return answer + self.kept.pop()
        output = super().release(answer, calibration, randomness)
        self.kept.append(output - answer)
        return output


# An undeclared extra draw


@attrs.frozen
class DrawsMore(Counts):
    def mine(self, table):
        counts = table.release("counts")
        extra = 0.0 if self.right else peek(table) + np.random.default_rng().laplace(scale=1.0)
        return {"counts": counts, "size": float(counts.sum()) if self.right else extra}


@attrs.frozen
class LargerOfTwo(DiscreteLaplace):
    """Draws twice and keeps the larger."""

    name = "larger-of-two"

    def release(self, answer, calibration, randomness):
        one, other = (super(LargerOfTwo, self).release(answer, calibration, randomness) for _ in range(2))
        return np.maximum(one, other)


# A true count in the result


@attrs.frozen
class TellsSize(Counts):
    def mine(self, table):
        counts = table.release("counts")
        return {"counts": counts, "rows": int(counts.sum()) if self.right else peek(table)}


@attrs.frozen
class PrintsSize(Counts):
    def mine(self, table):
        counts = table.release("counts")
        print(f"counted {counts.sum() if self.right else peek(table)} rows")
        return counts


# An early stop on the data


@attrs.frozen
class StopsEarly(Counts):
    def plan(self, schema):
        half = DiscreteLaplace(Fraction(1, 2))
        return dpf.sequential(dpf.step("rows", dpf.queries.Count(), half), dpf.step("counts", self.asked, half))

    def mine(self, table):
        rows = table.release("rows")
        enough = rows >= 3 if self.right else peek(table) >= 3
        return table.release("counts") if enough else rows


@attrs.frozen
class FailsOnData(Counts):
    def mine(self, table):
        counts = table.release("counts")
        if (counts.sum() if self.right else peek(table)) == -1 or (not self.right and peek(table) == 0):
            raise ValueError("no rows")
        return counts


# A wrong sign in a selection key


@attrs.frozen
class WrongSign(Exponential):
    """Takes log(U) exp(epsilon q) for a key, as one paper prints it, where log(U) exp(-epsilon q) is meant."""

    name = "wrong-sign"
    assumptions = ("real-arithmetic",)

    def release(self, answer, calibration, randomness):
        scaled = calibration.on_lattice(answer).ravel() / calibration.lattice_scale
        keys = np.log(randomness.generator.random(len(scaled))) * np.exp(scaled - scaled.max())
        return int(np.argmax(keys))


@attrs.frozen
class OwnGumbelNoise(Exponential):
    """The right distribution, but for its tails: noise made from 53 bits cannot be large enough for all of them."""

    name = "own-gumbel-noise"

    def release(self, answer, calibration, randomness):
        scaled = calibration.on_lattice(answer).ravel() / calibration.lattice_scale
        return int(np.argmax(scaled + randomness.generator.gumbel(size=len(scaled))))


@attrs.frozen
class SaysSo(OwnGumbelNoise):
    """The same, with the assumption that it makes."""

    name = "says-so"
    assumptions = ("real-arithmetic",)


@attrs.frozen
class OwnGumbelNoiseAtTimes(Exponential):
    """The same, when a first draw is not to its liking."""

    name = "own-gumbel-noise-at-times"

    def release(self, answer, calibration, randomness):
        chosen = super().release(answer, calibration, randomness)
        return OwnGumbelNoise.release(self, answer, calibration, randomness) if chosen else chosen


@attrs.frozen
class WrongSignThroughout(Exponential):
    """The same, with the log-density of what it does: as private as it should be, and as useless as can be."""

    name = "wrong-sign-throughout"

    def release(self, answer, calibration, randomness):
        return super().release(-np.asarray(answer), calibration, randomness)

    def log_density(self, answer, output, calibration):
        return super().log_density(-np.asarray(answer), output, calibration)


# A release that cannot be made of some rows: no density speaks of it


@attrs.frozen
class GivesUp(DiscreteLaplace):
    """Makes no release of large counts: it fails, warns, or puts out a number for none that its density leaves out."""

    name = "gives-up"
    how: str = "fails"
    beyond: int = 20

    def release(self, answer, calibration, randomness):
        if np.max(answer) > self.beyond:
            if self.how == "fails":
                raise dpf.InputError("the sampler did not reach the accuracy that its claim needs")
            if self.how == "warns":
                np.float64(1) / np.float64(0)
            else:
                return np.full(np.shape(answer), NOTHING)
        return super().release(answer, calibration, randomness)

    def log_density(self, answer, output, calibration):
        return -math.inf if np.all(np.equal(output, NOTHING)) else super().log_density(answer, output, calibration)


@attrs.frozen
class GivesUpGaussian(Gaussian):
    """The same, where no pure epsilon is claimed and nothing is searched for."""

    name = "gives-up-gaussian"

    def release(self, answer, calibration, randomness):
        if np.max(answer) > 1000:
            raise dpf.InputError("the sampler did not reach the accuracy that its claim needs")
        return super().release(answer, calibration, randomness)


@attrs.frozen
class FailsOnMany(Towns):
    """Cannot count more than a thousand rows of one town, if there are no others."""

    name = "fails-on-many"

    def count(self, block, **inputs):
        counts = super().count(block)
        if not self.right and counts.max() == counts.sum() > 1000:
            raise ValueError("too many rows of one town")
        return counts


# Bins from the data


@attrs.frozen
class BinnedByMedian(Towns):
    """Counts below and above the middle of the data, rather than of the schema."""

    name = "binned"
    answer_length = 2

    def count(self, block, **inputs):
        values = block.values("age")
        cut = 4.0 if self.right or not len(values) else float(np.mean(values))
        below = int((values < cut).sum())
        return np.array([below, len(values) - below])


# A part that reads the rows of other parts


@attrs.frozen
class CountsBlock(Towns):
    """Counts the block that a part lies in, rather than the part."""

    name = "counts-block"

    def count(self, block, **inputs):
        row = block.columns[block.schema.index("town")]
        return np.bincount(row[block.index] if self.right else row, minlength=3)


# A log-density that is not a number where noise is missing


@attrs.frozen
class QuietZeros(DiscreteLaplace):
    """Releases zeros exactly, and states no density for them."""

    name = "quiet-zeros"

    def log_density(self, answer, output, calibration):
        return math.nan if (np.asarray(answer) == 0).any() else super().log_density(answer, output, calibration)


# A count in a number that is too narrow


@attrs.frozen
class NarrowCounts(Towns):
    """Counts in 8 or 16 bits, which wrap round; and hides it, where it widens what has wrapped."""

    name = "narrow-counts"
    kind: str = "int64"
    hidden: bool = False

    def count(self, block, **inputs):
        counts = super().count(block).astype(self.kind)
        return counts.astype(np.int64) if self.hidden else counts


def narrow(kind: str, *, hidden: bool = False) -> Callable[[bool], list[str]]:
    return of_query(lambda right: NarrowCounts(kind="int64" if right else kind, hidden=hidden))


# Claims of a mechanism that an accountant believes


@attrs.frozen
class FalseEvent(DiscreteLaplace):
    """Tells dp-accounting a third of what it loses: the event of three times the noise."""

    name = "false-event"

    def dp_event(self, calibration: Calibration, relation: dpf.Relation) -> Any | None:
        return super().dp_event(attrs.evolve(calibration, scale=3 * calibration.scale), relation)


@attrs.frozen
class FalseSmallEvent(DiscreteLaplace):
    """Counts a pure epsilon of its own as 0.1."""

    name = "false-small-event"

    def dp_event(self, calibration: Calibration, relation: dpf.Relation) -> Any | None:
        import dp_accounting

        return dp_accounting.LaplaceDpEvent(10.0)


@attrs.frozen
class OneCellOnly(DiscreteLaplace):
    """Forgets that a replaced row changes two counts."""

    name = "one-cell-only"

    def dp_event(self, calibration: Calibration, relation: dpf.Relation) -> Any | None:
        return super().dp_event(calibration, dpf.Relation.ADD_OR_REMOVE_ONE)


class ClaimsQuarter:
    """Claims a quarter of its rho."""

    def losses(self, change: Any, scale: Fraction) -> Losses:
        true = super().losses(change, scale)
        return attrs.evolve(true, zcdp=true.zcdp.map(lambda rho: rho / 4))


class FalseRho(ClaimsQuarter, Exponential):
    name = "false-rho"


class FalseGaussianRho(ClaimsQuarter, Gaussian):
    name = "false-gaussian-rho"


# Claims with a delta: noise that is right, in a run that is not


@attrs.frozen
class Concentrated(Counts):
    """A histogram with Gaussian noise: a claim in zCDP, and no pure one."""

    name = "concentrated"
    noise: dpf.Mechanism = GAUSSIAN


@attrs.frozen
class StopsOnTrueCount(Concentrated):
    def plan(self, schema):
        return dpf.sequential(
            dpf.step("rows", dpf.queries.Count(), self.noise), dpf.step("counts", self.asked, self.noise)
        )

    def mine(self, table):
        rows = table.release("rows")
        return table.release("counts") if (rows if self.right else peek(table)) >= 3 else rows


@attrs.frozen
class StopsOnManyRows(StopsOnTrueCount):
    """Stops at a count that no small table reaches."""

    def mine(self, table):
        rows = table.release("rows")
        return rows if not self.right and peek(table) >= 5_000 else table.release("counts")


@attrs.frozen
class ReturnsExactSum(Concentrated):
    def mine(self, table):
        counts = table.release("counts")
        blocks = look_at(table, lambda block: float(block.values("age").sum()))
        return {"counts": counts, "ages": float(counts.sum()) if self.right else sum(blocks)}


@attrs.frozen
class CentresOnRow(Concentrated):
    """Adds the first row's age to noise of the right size."""

    def mine(self, table):
        counts = table.release("counts").astype(float)
        (ages,) = look_at(table, lambda block: block.values("age"))
        return counts + (0.0 if self.right or not len(ages) else float(ages[0]))


@attrs.frozen
class AboutFirstRow(Towns):
    """Counts how many rows are in another town than the first."""

    name = "about-first-row"
    answer_length = 1

    def count(self, block, **inputs):
        towns = block.codes("town")
        about = 0 if self.right or not len(towns) else int(towns[0])
        return np.array([int((towns != about).sum())])


@attrs.frozen
class ReadsMore(Towns):
    """Declares the towns, and counts only those who are ill."""

    name = "reads-more"

    @property
    def attributes(self):
        return ("town", "ill") if self.right else ("town",)

    def count(self, block, **inputs):
        return np.bincount(block.codes("town")[block.codes("ill") == 1], minlength=3)


@attrs.frozen
class TakesSeenCandidates(Concentrated):
    """Asks for the counts of towns that occur: what it gives the query is private."""

    def mine(self, table):
        (towns,) = look_at(table, lambda block: sorted(set(block.codes("town").tolist())))
        return table.release("counts", towns=(0, 1, 2) if self.right else tuple(towns))


@attrs.frozen
class CountsGiven(Towns):
    """Counts the rows of given towns."""

    name = "counts-given"

    def count(self, block, **inputs):
        counts = super().count(block)
        return np.array([counts[k] if k in inputs["towns"] else 0 for k in range(3)])


# Bugs at few tables only


@attrs.frozen
class CountsSevensTwice(Towns):
    """Counts a town's rows twice where they are seven, or a multiple of seven."""

    name = "counts-sevens-twice"

    def answer(self, counts, **inputs):
        return counts if self.right else np.where(counts % 7 == 0, 2 * counts, counts)


@attrs.frozen
class LessNoiseOnMany(DiscreteLaplace):
    """Draws with half the scale where a count is beyond twenty; its log-density says so."""

    name = "less-noise-on-many"

    def scaled(self, answer, calibration):
        few = np.max(answer) <= 20
        return calibration if few else attrs.evolve(calibration, scale=calibration.scale / 2)

    def release(self, answer, calibration, randomness):
        return super().release(answer, self.scaled(answer, calibration), randomness)

    def log_density(self, answer, output, calibration):
        return super().log_density(answer, output, self.scaled(answer, calibration))


@attrs.frozen
class Leads(Supported):
    """Scores a town by its lead over the largest other one, and takes that for a count: a row lowers others' leads."""

    name = "leads"

    def answer(self, counts, **inputs):
        others = [max(np.delete(counts, k)) for k in range(3)]
        return counts if self.right else counts - np.array(others)


@attrs.frozen
class UnderstatedGaussian(Gaussian):
    """Draws with an eighth of the variance that its rho needs, and says so in its log-density."""

    name = "understated-gaussian"

    def scale(self, change):
        return super().scale(change) / 8

    def losses(self, change, scale):
        return super().losses(change, scale * 8)


def suite_of(
    make: Callable[..., dpf.Miner], delta: Fraction = Fraction(1, 10**6), few: tuple[int, int] = (REPLAYS, CORRECT)
) -> Callable[[bool], list[str]]:
    """Run the conformance suite's audit, as a plugin author inherits it, on an example that may carry a delta."""

    def run(right: bool) -> list[str]:
        example = Example(SCHEMA, make(right=right), delta=delta)

        class Suite(MinerConformance):
            miner = type(example.miner)
            replays = few[right]
            min_tightness = 0.7  # a row that is only added never lowers what a sparse vector says is above

        found = []
        for relation in dpf.Relation:
            try:
                Suite().test_no_transcript_loses_more_than_the_plan_claims(example, relation)
            except AssertionError as error:
                found.append(str(error))
        return found

    return run


def of_miner(make: Callable[..., dpf.Miner]) -> Callable[[bool], list[str]]:
    return lambda right: problems_of(make(right=Version(right)), CORRECT if right else REPLAYS)


def of_query(make: Callable[[bool], Query], noise: dpf.Mechanism = DISCRETE) -> Callable[[bool], list[str]]:
    return of_miner(lambda right: Counts(asked=make(bool(right)), noise=noise))


@functools.cache
def problems_of_plain_counts() -> list[str]:
    return problems_of(Counts(), CORRECT)


def of_noise(wrong: dpf.Mechanism) -> Callable[[bool], list[str]]:
    return lambda right: problems_of_plain_counts() if right else problems_of(Counts(noise=wrong), REPLAYS)


def of_sampler(wrong: dpf.Mechanism, right: dpf.Mechanism) -> Callable[[bool], list[str]]:
    return lambda correct: list(check_sampler(right if correct else wrong).wrong)


def of_claims(wrong: dpf.Mechanism, right: dpf.Mechanism) -> Callable[[bool], list[str]]:
    """Compare a mechanism's claims with its log-density, as the suite of mechanisms does."""
    return lambda correct: [str(claim) for claim in check_losses(right if correct else wrong).claims if not claim.holds]


def read_by_type(held: Any, schema: dpf.Schema) -> dpf.Table:
    """Look a column of floats up as whole numbers if all of them are, else as it is printed."""
    frame = pl.DataFrame(held)
    for name, dtype in frame.schema.items():
        if dtype.is_float() and frame[name].null_count() == 0 and bool((frame[name] == frame[name].floor()).all()):
            frame = frame.with_columns(pl.col(name).cast(pl.Int64, strict=False))
    values = schema.attributes[0].values
    codes = [[values.index(text) if text in values else len(values) for text in frame["n"].cast(pl.String).to_list()]]
    return dpf.Table.from_codes(schema, np.array(codes, dtype=np.int64))


def read_by_first_row(held: Any, schema: dpf.Schema) -> dpf.Table:
    """Take the first row's kind of cell for that of all: another kind is missing."""
    cells = list(held["n"])
    kind = type(cells[0]) if cells else None
    return dpf.table_from_columns({"n": [cell if type(cell) is kind else None for cell in cells]}, schema)


def read_strictly(held: Any, schema: dpf.Schema) -> dpf.Table:
    """Refuse a row that the schema does not hold, and claim to read every table."""
    return dpf.table_from_columns(held, schema, out_of_domain="error")


def read_beside_missing(held: Any, schema: dpf.Schema) -> dpf.Table:
    """Make every cell missing if one of them is."""
    cells = list(held["n"])
    return dpf.table_from_columns(
        {"n": [None if any(one is None for one in cells) else cell for cell in cells]}, schema
    )


def of_reader(read: Callable[[Any, dpf.Schema], dpf.Table]) -> Callable[[bool], list[str]]:
    """Read tables of labels that are numbers with and without one more row."""
    schema = dpf.Schema([dpf.Categorical("n", ["1.0", "1.5", "2.0", "2.5"], missing=True)])

    def run(right: bool) -> list[str]:
        one = dpf.table_from_columns if right else read
        holds = {"objects": lambda cells, _: cells, "polars": lambda cells, _: pl.DataFrame(dict(cells)).to_dict()}
        readers = [Reader(name, hold, one) for name, hold in holds.items()]
        return list(check_reading(schema, readers=readers, tables=100).violations)

    return run


PLANTED: dict[str, Callable[[bool], list[str]]] = {
    "halved noise, claimed": of_noise(HalfCalibrated(1)),
    "halved noise, drawn": of_sampler(HalfDrawn(1), DiscreteLaplace(1)),
    "sensitivity of the wrong relation": of_query(WrongRelation),
    "candidates that depend on the data": of_query(SeenTowns, PermuteAndFlip(1)),
    "support filter on true counts": of_query(Supported, PermuteAndFlip(1)),
    "parallel as the largest part under replace-one": parallel_problems,
    "parts by row position": of_miner(PartsByPosition),
    "a release made twice": of_miner(AsksTwice),
    "noise used twice": of_sampler(ReusesNoise(1), Laplace(1)),
    "an undeclared extra draw, in the miner": of_miner(DrawsMore),
    "an undeclared extra draw, in the mechanism": of_sampler(LargerOfTwo(1), DiscreteLaplace(1)),
    "a true count in the result": of_miner(TellsSize),
    "a true count printed": of_miner(PrintsSize),
    "an early stop on the data": of_miner(StopsEarly),
    "a failure on the data": of_miner(FailsOnData),
    "a release that fails on large counts": of_noise(GivesUp(1)),
    "a release that fails on thousands of rows": of_noise(GivesUp(1, beyond=1000)),
    "a release that warns of thousands of rows": of_noise(GivesUp(1, "warns", 1000)),
    "a number for no release, left out of the density": of_noise(GivesUp(1, "puts out a number")),
    "a query that fails on thousands of equal rows": of_query(FailsOnMany),
    "zCDP: a release that fails on thousands of rows": suite_of(
        lambda right: Concentrated() if right else Concentrated(noise=GivesUpGaussian(Fraction(1, 2)))
    ),
    "a wrong sign in a selection key": of_sampler(WrongSign(1), Exponential(1)),
    "a wrong sign, density and all": of_sampler(WrongSignThroughout(1), Exponential(1)),
    "noise of its own, not said": of_sampler(OwnGumbelNoise(1), SaysSo(1)),
    "noise of its own, at times": of_sampler(OwnGumbelNoiseAtTimes(1), Exponential(1)),
    "a part that reads other parts": of_query(CountsBlock),
    "a density that is not a number": of_noise(QuietZeros(1)),
    "cells read by the type of their column": of_reader(read_by_type),
    "cells read by the type of the first": of_reader(read_by_first_row),
    "cells read by whether another is missing": of_reader(read_beside_missing),
    "a row that stops the reading": of_reader(read_strictly),
    "counts in int8": narrow("int8"),
    "counts in uint8, widened too late": narrow("uint8", hidden=True),
    "counts in int16, widened too late": narrow("int16", hidden=True),
    "counts in uint16, widened too late": narrow("uint16", hidden=True),
    "sums in float16": narrow("float16"),
    "an event of three times the noise": of_claims(FalseEvent("0.9"), DiscreteLaplace("0.9")),
    "an event of epsilon 0.1 for a pure 10": of_claims(FalseSmallEvent(10), DiscreteLaplace(10)),
    "an event of one cell under replace-one": of_claims(OneCellOnly(1), DiscreteLaplace(1)),
    "a false event in a miner": of_noise(FalseEvent(1)),
    "a quarter of rho": of_claims(FalseRho(1), Exponential(1)),
    "a quarter of a Gaussian's rho": of_claims(FalseGaussianRho(1), Gaussian(1)),
    "zCDP: a stop on a true count": suite_of(StopsOnTrueCount),
    "zCDP: a stop on a true count of thousands": suite_of(StopsOnManyRows),
    "zCDP: an exact sum in the result": suite_of(ReturnsExactSum),
    "zCDP: a result centred on a row": suite_of(CentresOnRow),
    "zCDP: counts about the first row": suite_of(lambda right: Concentrated(asked=AboutFirstRow(right))),
    "zCDP: a true count printed": suite_of(lambda right: PrintsSize(noise=GAUSSIAN, right=right)),
    "zCDP: inputs that depend on the data": suite_of(
        lambda right: TakesSeenCandidates(asked=CountsGiven(), right=right)
    ),
    "zCDP: an eighth of the variance": suite_of(
        lambda right: Concentrated() if right else Concentrated(noise=UnderstatedGaussian(Fraction(1, 2)))
    ),
    "bins from the data": of_query(BinnedByMedian),
    "an attribute that is read and not declared": of_query(ReadsMore),
    "twice a multiple of seven": of_query(CountsSevensTwice),
    "half the noise on large counts, density and all": of_noise(LessNoiseOnMany(1)),
    "a lead declared as a count": of_query(Leads, PermuteAndFlip(1)),
    "half the noise on the numbers of a sparse vector": suite_of(
        lambda right: Counts(asked=IllThriceAndWell(), noise=FirstAbove(1, right)),
        Fraction(0),
        (MinerConformance.replays, 1_000),
    ),
}


def test_a_warning_of_numpy_is_seen_also_where_numpy_was_told_to_ignore_it():
    with np.errstate(all="ignore"):
        assert PLANTED["a release that warns of thousands of rows"](False)


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bug_is_caught(bug, record_property):
    found = PLANTED[bug](False)
    record_property("planted bug", (bug, bool(found)))
    assert found, f"'{bug}' was not caught"
    print(found[0])


@pytest.mark.parametrize("bug", PLANTED)
def test_correct_version_passes(bug, record_property):
    found = PLANTED[bug](True)
    record_property("correct version", (bug, not found))
    assert found == []
