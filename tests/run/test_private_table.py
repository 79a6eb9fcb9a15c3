"""The private table: nothing but releases comes out of it, errors included."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.facts.errors import DPFrameworkError
from dpframework.facts.privacy_losses import rho_below
from dpframework.mechanisms import DiscreteLaplace, Exponential, ExponentialInterval, PermuteAndFlip
from dpframework.queries import histogram_sensitivities
from dpframework.run import Example
from dpframework.run.gate import Gate
from dpframework.tables.output_suppression import silenced

SCHEMA = dpf.Schema(
    [
        dpf.Categorical("order", ["pizza", "salad", "pie"], missing=True),
        dpf.Numeric("age", 0, 100, cuts=[30, 60], missing=True),
        dpf.Boolean("ill"),
    ]
)
CODES = [[0, 0, 0, 1, 1, 2, 3], [0, 1, 2, 2, 3, 0, 1], [0, 1, 0, 1, 0, 1, 1]]
TABLE = dpf.Table.from_codes(SCHEMA, CODES)
SECRET = "4242424242"
SURE = 10**6  # an epsilon without noise


def counting(name: str = "n", epsilon: Any = SURE, where: dpf.Description | None = None) -> dpf.Node:
    return dpf.step(name, dpf.queries.Count(where), DiscreteLaplace(epsilon))


def histogram(name: str, attribute: dpf.Attribute, epsilon: Any = SURE) -> dpf.Node:
    return dpf.step(name, dpf.queries.Histogram(attribute), DiscreteLaplace(epsilon))


# --- what is seen ---------------------------------------------------------------------------------------------------


def test_nothing_public_shows_rows(opened: Callable[..., Any]) -> None:
    table, _ = opened(counting(), TABLE)
    assert repr(table) == str(table) == "PrivateTable(order, age, ill)"
    public = {name for name in dir(table) if not name.startswith("_")}
    releases = {"release", "release_many", "public_random"}
    assert public == releases | {"calibration", "derive", "given", "partition", "sampled", "schema", "scope", "spend"}
    assert table.given == {}
    assert table.schema is SCHEMA
    for forbidden in (len, list, iter, bool):
        if forbidden is bool:
            assert bool(table) is True
        else:
            with pytest.raises(TypeError):
                forbidden(table)
    with pytest.raises(TypeError):
        table["order"]
    with pytest.raises(TypeError):
        vars(table)
    with pytest.raises(AttributeError):
        table.rows = 1


@pytest.mark.parametrize("leak", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_private_table_cannot_be_pickled_or_copied(opened: Callable[..., Any], leak: Callable[[Any], Any]) -> None:
    table, _ = opened(counting(), TABLE)
    with pytest.raises(dpf.InputError, match="cannot be pickled or copied"):
        leak(table)


def test_what_is_repeated_once_is_released_once(opened: Callable[..., Any]) -> None:
    table, _ = opened(dpf.repeat(1, counting()), TABLE)
    table.release("n")
    with pytest.raises(dpf.ReleaseRefused, match="'n'"):
        table.release("n")


def test_repeated_partitions_are_made_in_any_order(opened: Callable[..., Any]) -> None:
    """A partition that is passed over for another may still be made, once for each repetition."""
    by_order = dpf.parallel(counting(), by=SCHEMA["order"], name="orders")
    by_ill = dpf.parallel(counting(), by=SCHEMA["ill"], name="illnesses")
    table, run = opened(dpf.repeat(2, dpf.sequential(by_order, by_ill)), TABLE)
    for attribute, counts in (("ill", [3, 4]), ("ill", [3, 4]), ("order", [3, 2, 1, 1]), ("order", [3, 2, 1, 1])):
        assert [part.release("n") for part in table.partition(attribute)] == counts
    for attribute in ("ill", "order"):
        with pytest.raises(dpf.ReleaseRefused, match="a partition was made before"):
            table.partition(attribute)
    assert len(run.charges) == 12


def test_blocks_show_no_rows() -> None:
    (block,) = dpf.InMemory().load(TABLE)
    assert repr(block) == "Block(3 attributes; rows are private)"


def test_noise_is_public_before_the_release(opened: Callable[..., Any]) -> None:
    table, run = opened(counting(epsilon="0.5"), TABLE)
    assert table.calibration("n").scale == 2
    assert run.charges == []


# --- releases -------------------------------------------------------------------------------------------------------


def test_releases_are_those_of_the_rows(opened: Callable[..., Any]) -> None:
    node = dpf.sequential(
        counting(),
        counting("young", where=dpf.Below("age", 30)),
        histogram("orders", SCHEMA["order"]),
        dpf.step("joint", dpf.queries.JointHistogram([SCHEMA["ill"], SCHEMA["order"]]), DiscreteLaplace(SURE)),
        dpf.step("best", dpf.queries.Histogram(SCHEMA["order"]), PermuteAndFlip(SURE)),
        dpf.step(
            "best pair", dpf.queries.JointHistogram([SCHEMA["ill"], SCHEMA["order"]]), PermuteAndFlip(SURE)
        ),
        dpf.step(
            "best of", dpf.queries.Supports([dpf.Equals("ill", "true"), dpf.Not(dpf.Equals("order", "pie"))]),
            Exponential(SURE),
        ),
    )  # fmt: skip
    for seed in (3, None):
        table, run = opened(node, TABLE, seed=seed)
        assert table.release("n") == 7
        assert table.release("young") == 2
        assert table.release("orders").tolist() == [3, 2, 1, 1]
        assert table.release("joint").tolist() == [[2, 1, 0, 0], [1, 1, 1, 1]]
        assert table.release("best") == "pizza"
        assert table.release("best pair") == ("false", "pizza")
        assert table.release("best of") == dpf.Not(dpf.Equals("order", "pie"))
        assert len(run.charges) == 7


def test_a_step_may_be_given_itself(opened: Callable[..., Any]) -> None:
    step = counting()
    table, _ = opened(step, TABLE)
    assert table.release(step) == 7


CUTS: dict[str, tuple[Any, Any, list[int]]] = {
    "attribute by name": ("order", SCHEMA["order"], [3, 2, 1, 1]),
    "attribute": (SCHEMA["ill"], SCHEMA["ill"], [3, 4]),
    "description": (dpf.Below("age", 30), dpf.Cases([dpf.Below("age", 30)]), [2, 5]),
    "cases": (
        dpf.Cases([dpf.Below("age", 60), dpf.Equals("ill", "true")]),
        dpf.Cases([dpf.Below("age", 60), dpf.Equals("ill", "true")]),
        [4, 1, 2],
    ),
    "descriptions": (
        [dpf.Equals("order", "pizza"), dpf.Equals("order", "pie")],
        [dpf.Equals("order", "pizza"), dpf.Equals("order", "pie")],
        [3, 1],
    ),
}


@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Threads(3), dpf.Threads(20)])
@pytest.mark.parametrize("cut", CUTS)
def test_partitions_cut_by_value(opened: Callable[..., Any], cut: str, engine: dpf.Engine) -> None:
    by, planned, sizes = CUTS[cut]
    for made_by in (planned, dpf.FromRelease("r")):
        node = dpf.sequential(counting("r"), dpf.parallel(counting(), by=made_by))
        table, run = opened(node, TABLE, engine=engine)
        parts = table.partition(by)
        assert [part.release("n") for part in parts] == sizes
        assert run.spent == dpf.PrivacyLoss(epsilon=SURE)


YOUNG = dpf.Cases([dpf.Below("age", 30)])
MADE_OF_MORE = dpf.Cases([dpf.And([dpf.Equals("young", "true"), dpf.Equals("ill", "true")])])


class Unsaid(dpf.Equals):
    """A description that does not say what it is about."""

    def literals(self) -> tuple[Any, ...]:
        return ()


@pytest.mark.parametrize(
    ("named", "by", "agrees"),
    [
        ((), "ill", True),
        (("ill",), "ill", True),
        (("age", "ill"), "ill", True),
        (("age",), "ill", False),
        (("age",), YOUNG, True),
        (("ill",), YOUNG, False),
        (("age",), "young", True),
        (("young",), "young", False),
        (("age", "ill"), MADE_OF_MORE, True),
        (("age",), MADE_OF_MORE, False),
        (("ill",), MADE_OF_MORE, False),
        (("ill",), dpf.Cases([Unsaid("ill", "true")]), False),
        ((), dpf.Cases([Unsaid("ill", "true")]), True),
    ],
)
def test_a_cut_from_a_release_depends_on_what_the_plan_names(
    opened: Callable[..., Any], named: tuple[str, ...], by: Any, agrees: bool
) -> None:
    node = dpf.sequential(counting("r"), dpf.parallel(counting(), by=dpf.FromRelease("r", attributes=named)))
    table, _ = opened(node, TABLE)
    derived = table.derive(dpf.Boolean("young"), YOUNG)
    if agrees:
        assert len(derived.partition(by)) == 2
    else:
        with pytest.raises(dpf.ReleaseRefused, match="depends on attributes that the plan's `FromRelease` does not"):
            derived.partition(by)


def test_partitions_are_made_in_any_order(opened: Callable[..., Any]) -> None:
    node = dpf.sequential(dpf.parallel(counting(), by=SCHEMA["order"]), dpf.parallel(counting("m"), by=SCHEMA["ill"]))
    table, _ = opened(node, TABLE)
    assert [part.release("m") for part in table.partition("ill")] == [3, 4]
    assert [part.release("n") for part in table.partition("order")] == [3, 2, 1, 1]


def test_a_refused_partition_is_told_of_the_one_that_comes_near(opened: Callable[..., Any]) -> None:
    """From a release, by other attributes; if none of its name or number of parts is planned, that alone is told."""
    of_ill = dpf.parallel(counting(), by=dpf.FromRelease("r", attributes=["ill"]), name="made")
    node = dpf.sequential(counting("r"), dpf.parallel(counting(), by=SCHEMA["ill"], name="ill"), of_ill)
    table, _ = opened(node, TABLE)
    for name in (None, "made"):
        with pytest.raises(dpf.ReleaseRefused, match="depends on attributes that the plan's `FromRelease` does not"):
            table.partition("order", name=name)
    with pytest.raises(dpf.ReleaseRefused, match="into these 4 parts is not in the plan, or not in the branch"):
        table.partition("order", name="ill")
    with pytest.raises(dpf.ReleaseRefused, match="into these 4 parts is not in the plan, or not in the branch"):
        opened(dpf.sequential(counting("r"), dpf.parallel(counting(), by=SCHEMA["ill"])), TABLE)[0].partition("order")


def test_a_named_partition_is_found_without_its_name_too(opened: Callable[..., Any]) -> None:
    named = dpf.parallel(counting(), by=SCHEMA["ill"], name="halves")
    for name in (None, "halves"):
        table, _ = opened(dpf.sequential(counting("r"), named), TABLE)
        assert [part.release("n") for part in table.partition("ill", name=name)] == [3, 4]


def test_parts_of_parts_and_empty_parts(opened: Callable[..., Any]) -> None:
    inner = dpf.parallel(counting(), by=SCHEMA["order"])
    table, run = opened(dpf.parallel(dpf.sequential(histogram("h", SCHEMA["age"]), inner), by=SCHEMA["ill"]), TABLE)
    well, ill = table.partition("ill")
    assert well.release("h").tolist() == [1, 0, 1, 1]
    assert [part.release("n") for part in well.partition("order")] == [2, 1, 0, 0]
    assert [part.release("n") for part in ill.partition("order")] == [1, 1, 1, 1]
    assert ill.release("h").tolist() == [1, 2, 1, 0]
    assert run.spent == dpf.PrivacyLoss(epsilon=2 * SURE)
    assert run.charges[1].path == "parts 1/parts 1/n"


@pytest.mark.parametrize("size", [{"rows": 7}, {"rows": 7, "max_rows": 9}, {"max_rows": 9}, {"about_rows": 7}, {}])
def test_no_part_and_no_sample_is_told_the_number_of_rows_of_the_whole(
    opened: Callable[..., Any], size: dict[str, int]
) -> None:
    """A bound on the number of rows is one on that of each part."""
    schema = attrs.evolve(SCHEMA, **size)
    whole = dpf.Table.from_codes(schema, CODES)
    cut = dpf.parallel(counting(), by=SCHEMA["ill"])
    table, _ = opened(dpf.sequential(dpf.parallel(cut, by=SCHEMA["order"]), dpf.sample("0.5", cut)), whole)
    parts = table.partition("order")
    sampled = table.sampled()
    smaller = [*parts, *parts[0].partition("ill"), sampled, *sampled.partition("ill")]
    told = schema.of_part()
    assert (told.rows, told.max_rows, told.about_rows) == (None, size.get("rows", size.get("max_rows")), None)
    assert [part.schema for part in smaller] == [told] * len(smaller)
    assert sampled.derive(dpf.Boolean("young"), dpf.Cases([dpf.Below("age", 30)])).schema.rows is None
    assert table.schema == schema, "the whole is told what is known of it"


def test_an_empty_table_can_be_released_from(opened: Callable[..., Any]) -> None:
    empty = dpf.Table.from_codes(SCHEMA, np.zeros((3, 0), dtype=int))
    node = dpf.sequential(counting(), dpf.parallel(histogram("h", SCHEMA["order"]), by=SCHEMA["ill"]))
    for engine in (dpf.InMemory(), dpf.Threads(4)):
        table, _ = opened(node, empty, engine=engine)
        assert table.release("n") == 0
        assert [part.release("h").tolist() for part in table.partition("ill")] == [[0] * 4] * 2


def test_derived_attributes_are_counted_and_cut_by(opened: Callable[..., Any]) -> None:
    cases = dpf.Cases([dpf.Equals("order", "missing"), dpf.Below("age", 60)])
    group = dpf.Categorical("group", ["unknown", "young", "rest"])
    node = dpf.sequential(histogram("h", group), dpf.parallel(histogram("k", SCHEMA["ill"]), by=group))
    for engine in (dpf.InMemory(), dpf.Threads(3)):
        table, run = opened(node, TABLE, engine=engine)
        derived = table.derive(group, cases)
        assert "group" not in table.schema
        assert "group" in derived.schema
        assert derived.release("h").tolist() == [1, 3, 3]
        assert [part.release("k").tolist() for part in derived.partition("group")] == [[0, 1], [1, 2], [2, 1]]
        assert run.spent == dpf.PrivacyLoss(epsilon=2 * SURE)


def test_an_attribute_derived_in_a_part_is_that_of_the_parts_rows(opened: Callable[..., Any]) -> None:
    """Codes are given for the rows of a part, and stand at their places among all rows."""
    group = dpf.Boolean("not young")
    cases = dpf.Cases([dpf.Below("age", 60)])  # code 0; the rest, missing ones included, is code 1
    part = dpf.sequential(
        dpf.step("h", dpf.queries.Histogram(group), DiscreteLaplace(SURE)),
        dpf.parallel(dpf.step("k", dpf.queries.Histogram(SCHEMA["order"]), DiscreteLaplace(SURE)), by=group),
    )
    for engine in (dpf.InMemory(), dpf.Threads(3)):
        table, _ = opened(dpf.parallel(part, by=SCHEMA["ill"]), TABLE, engine=engine)
        found = []
        for one in table.partition("ill"):
            derived = one.derive(group, cases)
            counts = derived.release("h").tolist()
            found.append((counts, [inner.release("k").tolist() for inner in derived.partition("not young")]))
        expected = []
        for ill in (0, 1):
            rows = [(order, age) for order, age, sick in zip(*CODES, strict=True) if sick == ill]
            orders = [[order for order, age in rows if (age < 2) == (case == 0)] for case in (0, 1)]
            expected.append(([len(o) for o in orders], [np.bincount(o, minlength=4).tolist() for o in orders]))
        assert found == expected


def test_a_derived_attribute_needs_a_name_and_codes_of_its_own(opened: Callable[..., Any]) -> None:
    table, _ = opened(counting(), TABLE)
    with pytest.raises(dpf.InputError, match="exists"):
        table.derive(dpf.Boolean("ill"), dpf.Cases([dpf.Below("age", 30)]))
    with pytest.raises(dpf.InputError, match="3 codes for 2 cases"):
        table.derive(dpf.Boolean("young", missing=True), dpf.Cases([dpf.Below("age", 30)]))


def test_parts_cannot_be_made_by_position(opened: Callable[..., Any]) -> None:
    table, _ = opened(dpf.parallel(counting(), by=SCHEMA["ill"]), TABLE)
    for by in (np.array([0, 1]), 2, [0, 1], [[0, 1], [2]], [], None):
        with pytest.raises(dpf.InputError, match="by value, never by position"):
            table.partition(by)


# --- errors ---------------------------------------------------------------------------------------------------------


class Faulty(dpf.Query):
    """Fails as it is told, with a private value in its mouth."""

    name = "faulty"
    sensitivities = (dpf.Sensitivity("linf", 1, source="none"), dpf.Sensitivity("l1", 1, source="none"))
    answer_length = 2  # type: ignore[assignment]

    def __init__(self, fail: Callable[[], Any], listed: Sequence[Any] = ("x", "y")) -> None:
        self.fail, self.listed = fail, listed

    def candidates(self, **inputs: Any) -> Sequence[Any]:
        return self.listed

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return self.fail()


def raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


FAULTS = {
    "value error": raising(ValueError(f"row {SECRET} is bad")),
    "key error": raising(KeyError(SECRET)),
    "input error": raising(dpf.InputError(f"row {SECRET} is bad")),
    "refusal": raising(dpf.ReleaseRefused(f"row {SECRET} is bad")),
    "text": lambda: np.array([SECRET, "x"]),
    "objects": lambda: np.array([SECRET, 4], dtype=object),
    "floats": lambda: np.array([float(SECRET), 0.5]),
    "too long": lambda: np.full(3, int(SECRET)),
    "too short": lambda: np.full(1, int(SECRET)),
    "not a number": lambda: np.array([float(SECRET), np.nan]),
    "nothing": lambda: None,
}


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(1), PermuteAndFlip(1), Exponential(1), ExponentialInterval(1)])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Threads(2)])
def test_no_error_of_a_private_run_shows_a_private_value(
    opened: Callable[..., Any], fault: str, mechanism: Any, engine: dpf.Engine
) -> None:
    table, run = opened(dpf.step("s", Faulty(FAULTS[fault]), mechanism), TABLE, seed=None, engine=engine)
    try:
        table.release("s")
    except DPFrameworkError as error:
        chain: BaseException | None = error
        while chain is not None:
            assert SECRET not in str(chain)
            assert SECRET not in repr(chain)
            chain = chain.__cause__ or chain.__context__
    else:
        assert (fault, mechanism.name) == ("too short", "discrete-laplace")
    assert len(run.charges) == 1  # that it failed was learnt from the rows: the charge stays


def test_a_seeded_run_shows_what_failed(opened: Callable[..., Any]) -> None:
    table, _ = opened(dpf.step("s", Faulty(FAULTS["value error"]), DiscreteLaplace(1)), TABLE, seed=1)
    with pytest.raises(dpf.InputError, match="failed with ValueError") as failed:
        table.release("s")
    assert SECRET in str(failed.value.__cause__)
    table, _ = opened(dpf.step("s", Faulty(FAULTS["input error"]), DiscreteLaplace(1)), TABLE, seed=1)
    with pytest.raises(dpf.InputError, match=SECRET):
        table.release("s")


@attrs.frozen
class Undeclared(dpf.Query):
    """Declares `order`, and reads what it is given."""

    name = "undeclared"
    sensitivities = histogram_sensitivities(2)
    read: Callable[[Any], Any]
    gathered: bool = False
    names: tuple[str, ...] = ("order",)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.names

    def count(self, block: dpf.Block, **inputs: Any) -> NDArray[np.int64]:
        return np.array([0, len(self.read(block))])

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        if self.gathered:
            return np.sum(engine.map(rows, self.count), axis=0)
        return super().evaluate(engine, rows, **inputs)


READS: dict[str, Callable[[Any], Any]] = {
    "codes": lambda block: block.codes("ill"),
    "values": lambda block: block.values("age"),
    "columns": lambda block: np.asarray(block.columns[2]),
    "one cell": lambda block: [block.columns[2][0]],
    "raw": lambda block: block.raw["age"].round(),
    "a derived attribute": lambda block: block.codes("young"),
    "a tile": lambda block: next(iter(block.tiles(2))).codes("ill"),
    "a description": lambda block: dpf.Equals("ill", "true").holds(block),
}


@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize("read", READS)
def test_what_a_query_does_not_declare_is_not_there(opened: Callable[..., Any], read: str, gathered: bool) -> None:
    node = dpf.parallel(dpf.step("s", Undeclared(READS[read], gathered), DiscreteLaplace(1)), by=dpf.FromRelease("r"))
    for ask in (lambda part: part.release("s"), lambda part: part.release_many([(part, "s", {})])):
        table, _ = opened(node, TABLE, seed=1)
        derived = table.derive(dpf.Boolean("young"), dpf.Cases([dpf.Below("age", 30)]))
        with pytest.raises(dpf.InputError, match="which it does not declare; name in `attributes`"):
            ask(derived.partition(SCHEMA["order"])[0])


def test_what_a_query_declares_is_there(opened: Callable[..., Any]) -> None:
    table, _ = opened(dpf.step("s", Undeclared(lambda block: block.codes("order")), DiscreteLaplace(SURE)), TABLE)
    assert table.release("s").tolist() == [0, 7]


def test_a_derived_attribute_is_there_with_all_that_it_depends_on(opened: Callable[..., Any]) -> None:
    young, risky = dpf.Boolean("young"), dpf.Boolean("risky")
    at_risk = dpf.Cases([dpf.And([dpf.Equals("young", "true"), dpf.Equals("ill", "true")])])
    for names, seen in {("age", "ill"): True, ("risky",): True, ("age",): False, ("young", "ill"): False}.items():
        query = Undeclared(lambda block: block.codes("risky"), names=names)
        table, _ = opened(dpf.step("s", query, DiscreteLaplace(SURE)), TABLE, seed=1)
        derived = table.derive(young, dpf.Cases([dpf.Below("age", 30)])).derive(risky, at_risk)
        if seen:
            assert derived.release("s").tolist() == [0, 7]
        else:
            with pytest.raises(dpf.InputError, match="reads attribute 'risky', which it does not declare"):
                derived.release("s")


@attrs.frozen
class AboutMore(dpf.Description):
    """Says that it is about `order`, and reads another attribute."""

    def holds(self, columns: Any) -> Any:
        return columns.codes("ill") == 1

    def literals(self) -> tuple[dpf.Literal, ...]:
        return (dpf.Equals("order", "pie"),)

    def to_dict(self) -> dict[str, Any]:
        return {}


class AboutNothing(AboutMore):
    """Does not say what it is about."""

    def literals(self) -> tuple[dpf.Literal, ...]:
        return ()


def test_what_is_derived_from_who_knows_what_is_there_by_its_name_only(opened: Callable[..., Any]) -> None:
    for names, seen in {("order", "age", "ill"): False, ("order", "odd"): True}.items():
        query = Undeclared(lambda block: block.codes("odd"), names=names)
        table, _ = opened(dpf.step("s", query, DiscreteLaplace(SURE)), TABLE, seed=1)
        derived = table.derive(dpf.Boolean("odd"), dpf.Cases([AboutNothing()]))
        if seen:
            assert derived.release("s").tolist() == [0, 7]
        else:
            with pytest.raises(dpf.InputError, match="reads attribute 'odd', which it does not declare"):
                derived.release("s")


def test_a_cut_reads_what_its_descriptions_are_about(opened: Callable[..., Any]) -> None:
    table, _ = opened(dpf.parallel(counting(), by=dpf.FromRelease("r")), TABLE, seed=1)
    calls = (
        lambda: table.partition(dpf.Cases([AboutMore()])),
        lambda: table.derive(dpf.Boolean("young"), dpf.Cases([AboutMore()])),
    )
    for call in calls:
        with pytest.raises(dpf.InputError, match="reads attribute 'ill', which it does not declare"):
            call()


class Peeking(dpf.Description):
    """A description that fails with a private value."""

    def holds(self, columns: Any) -> Any:
        raise ValueError(f"{SECRET} {columns.codes('ill')}")

    def literals(self) -> tuple[dpf.Literal, ...]:
        return ()

    def to_dict(self) -> dict[str, Any]:
        return {}


def test_partitions_and_derivations_show_no_private_value(opened: Callable[..., Any]) -> None:
    table, _ = opened(dpf.parallel(counting(), by=dpf.FromRelease("r")), TABLE, seed=None)
    cases = dpf.Cases([Peeking()])
    for call in (lambda: table.partition(cases), lambda: table.derive(dpf.Boolean("young"), cases)):
        with pytest.raises(dpf.InputError, match="failed with ValueError") as failed:
            call()
        assert SECRET not in str(failed.value)
        assert failed.value.__context__ is None


class FailingOnRows(Peeking):
    """A description that fails wherever there is a row."""

    def holds(self, columns: Any) -> Any:
        if columns.rows:
            raise ValueError(SECRET)
        return np.zeros(0, dtype=np.bool_)


class FailingAnywhere(Peeking):
    """A description that fails on no rows, too."""

    def holds(self, columns: Any) -> Any:
        raise ValueError(SECRET)


def test_a_cut_that_fails_on_rows_ends_the_run_and_one_that_fails_without_rows_does_not(
    opened: Callable[..., Any],
) -> None:
    for description, ends in ((FailingOnRows(), True), (FailingAnywhere(), False)):
        table, _ = opened(counting(), TABLE, seed=None)
        with pytest.raises(dpf.InputError, match="failed with ValueError"):
            table.partition(dpf.Cases([description]))
        if ends:
            with pytest.raises(dpf.InputError, match="a partition failed with ValueError"):
                table.release("n")
        else:
            assert abs(table.release("n") - 7) < 1  # without noise


@attrs.frozen
class Telling(DiscreteLaplace):
    """An honest mechanism that says too much when it fails."""

    name = "telling"
    error: Any = dpf.InputError

    def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
        raise self.error(f"the answer is {SECRET}")


class Overlapping(Peeking):
    """A description that fails with an error of the project, and quotes a row."""

    def holds(self, columns: Any) -> Any:
        raise dpf.InputError(f"{SECRET} {columns.codes('ill')}")


@pytest.mark.parametrize("error", [dpf.InputError, dpf.ReleaseRefused, type(SECRET, (Exception,), {})])
def test_no_text_of_a_mechanism_description_or_engine_is_shown(opened: Callable[..., Any], error: Any) -> None:
    cases = dpf.Cases([Overlapping()])
    step = dpf.step("s", dpf.queries.Count(), Telling(1, error))
    table, _ = opened(dpf.sequential(step, dpf.parallel(counting(), by=dpf.FromRelease("s"))), TABLE, seed=None)
    for call in (
        lambda: table.release("s"),
        lambda: table.partition(cases),
        lambda: table.derive(dpf.Boolean("young"), cases),
    ):
        with pytest.raises(dpf.InputError, match="failed with") as failed:
            call()
        assert SECRET not in str(failed.value)
        assert failed.value.__context__ is None
    table, _ = opened(step, TABLE, seed=1)
    with pytest.raises(Exception, match=r"failed with|the answer is"):
        table.release("s")


def test_no_warning_of_a_private_run_is_shown_or_raised(opened: Callable[..., Any]) -> None:
    """A division by zero on one neighbour only would tell the two apart, as a warning or, with -W error, as a stop."""

    def divided() -> Any:
        warnings.warn(SECRET, stacklevel=1)
        return np.nan_to_num(np.array([0.0]) / np.array([0.0])).astype(int)

    for engine in (dpf.InMemory(), dpf.Threads(2)):
        for seed, shown in ((None, 0), (1, 2)):
            table, _ = opened(dpf.step("s", Faulty(divided), DiscreteLaplace(1)), TABLE, seed=seed, engine=engine)
            before = list(warnings.filters)
            with warnings.catch_warnings(record=True) as told, np.errstate(all="warn"):
                warnings.simplefilter("always")
                table.release("s")
            assert (len(told) > 0) == (shown > 0)
            assert list(warnings.filters) == before
    table, _ = opened(dpf.step("s", Faulty(divided), DiscreteLaplace(1)), TABLE, seed=None)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        table.release("s")


def test_runs_in_threads_give_the_warning_filters_back() -> None:
    before = list(warnings.filters)
    first, second = silenced(), silenced()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert list(warnings.filters) != before  # the second one has not ended
    second.__exit__(None, None, None)
    assert list(warnings.filters) == before


@pytest.mark.parametrize("listed", [(), ("x",), ("x", "y", "z")])
def test_candidates_must_match_the_scores(opened: Callable[..., Any], listed: tuple[str, ...]) -> None:
    query = Faulty(lambda: np.array([1, 2]), listed)
    for seed in (0, None):
        table, _ = opened(dpf.step("s", query, PermuteAndFlip(1)), TABLE, seed=seed)
        with pytest.raises(dpf.InputError, match="candidate"):
            table.release("s")


def test_a_selection_needs_a_candidate(opened: Callable[..., Any]) -> None:
    query = Faulty(lambda: np.array([], dtype=np.int64), ())
    table, _ = opened(dpf.step("s", query, PermuteAndFlip(1)), TABLE, seed=None)
    with pytest.raises(dpf.InputError, match="there is no candidate to select from"):
        table.release("s")


# --- observers ------------------------------------------------------------------------------------------------------


class Witness(dpf.Observer):
    """Writes down what it is told."""

    def __init__(self, deny: bool = False) -> None:
        self.told: list[Any] = []
        self.deny = deny

    def charged(self, charge: Any) -> None:
        self.told.append(("charged", charge.path))
        if self.deny:
            raise OSError("the ledger is full")

    def released(self, release: dpf.Release) -> None:
        self.told.append(("released", release.charge.path, release.output, release.value, dict(release.inputs)))


def test_observers_are_told_of_the_charge_first(opened: Callable[..., Any]) -> None:
    witness = Witness()
    node = dpf.step("best", dpf.queries.Histogram(SCHEMA["order"]), PermuteAndFlip(SURE))
    table, _ = opened(node, TABLE, observers=(dpf.Observer(), witness))
    table.release("best", hint=1)
    assert witness.told == [("charged", "best"), ("released", "best", 0, "pizza", {"hint": 1})]


def test_a_charge_that_cannot_be_recorded_is_not_followed_by_its_release(opened: Callable[..., Any]) -> None:
    witness = Witness(deny=True)
    evaluated: list[int] = []
    query = Faulty(lambda: evaluated.append(1))
    table, run = opened(dpf.step("s", query, DiscreteLaplace(1)), TABLE, observers=(witness,))
    with pytest.raises(
        dpf.RunStopped, match=r"^step 's': observer 'Witness' of .* failed with OSError; what was"
    ) as told:
        table.release("s")
    assert str(told.value.__cause__) == "the ledger is full"  # seeded
    assert not evaluated
    assert len(run.charges) == 1


def test_the_gate_can_be_replaced_step_by_step() -> None:
    """Replay depends on these: the exact answer and the draw are methods of their own."""
    assert {"answer", "draw", "release_many"} <= set(dir(Gate))


# --- places, parameters, witnesses ----------------------------------------------------------------------------------


def test_a_release_is_recorded_at_its_place_in_the_plan(opened: Callable[..., Any]) -> None:
    """Parts are numbered from 1, and what has no name is called by its kind."""
    node = dpf.sequential(
        counting("top"),
        dpf.parallel(counting(), by=SCHEMA["ill"]),
        dpf.parallel(
            dpf.sequential(dpf.sequential(dpf.parallel(counting("leaf"), by=SCHEMA["ill"]), name="inner")),
            by=SCHEMA["order"],
            name="orders",
        ),
        dpf.sample("0.5", counting("few")),
        dpf.sample("0.25", dpf.sequential(dpf.sequential(counting("fewer"), name="within")), name="quarter"),
    )
    table, run = opened(node, TABLE)
    table.release("top")
    for part in table.partition("ill"):
        part.release("n")
    for part in table.partition("order", name="orders"):
        for leaf in part.scope("inner").partition("ill"):
            leaf.release("leaf")
    table.sampled().release("few")
    table.sampled("quarter").scope("within").release("fewer")
    assert [charge.path for charge in run.charges] == [
        "top",
        *("parts 1/n", "parts 2/n"),
        *(f"orders {k}/inner/parts {own}/leaf" for k in (1, 2, 3, 4) for own in (1, 2)),
        *("sample/few", "quarter/within/fewer"),
    ]
    assert {path for path, _ in run.plan.placed_steps()} == {
        *("top", "parts/n", "orders/inner/parts/leaf", "sample/few", "quarter/within/fewer")
    }


def test_what_is_refused_is_named_with_its_scope_and_the_nearest_name(opened: Callable[..., Any]) -> None:
    inner = dpf.sequential(counting("leaf"), dpf.sample("0.5", counting("few"), name="half"), name="inner")
    table, _ = opened(dpf.sequential(counting("rows"), dpf.parallel(counting(), by=SCHEMA["ill"]), inner), TABLE)
    refused = [
        (lambda: table.release("rowz"), "step 'rowz' is not in the plan; did you mean 'rows'?"),
        (lambda: table.scope("iner"), "scope 'iner' is not in the plan; did you mean 'inner'?"),
        (
            lambda: table.partition("order"),
            "a partition into these 4 parts is not in the plan, or not in the branch that was taken",
        ),
        (
            lambda: table.partition("ill", name="x"),
            "partition 'x' into these 2 parts is not in the plan, or not in the branch that was taken",
        ),
        (lambda: table.calibration("rowz"), "step 'rowz' is not in the plan; did you mean 'rows'?"),
    ]
    for call, told in refused:
        with pytest.raises(dpf.ReleaseRefused) as caught:
            call()
        assert str(caught.value) == told
    within = table.scope("inner")
    with pytest.raises(dpf.ReleaseRefused, match=r"^step 'leef' in 'inner' is not in the plan; did you mean 'leaf'\?$"):
        within.release("leef")
    with pytest.raises(dpf.ReleaseRefused, match=r"^scope 'inner' was made before; a second one is not in the plan$"):
        table.scope("inner")
    within.sampled("half")
    with pytest.raises(dpf.ReleaseRefused, match=r"^sample 'half' in 'inner' was made before; a second one is not"):
        within.sampled("half")


@pytest.mark.parametrize("number", [1, 7, 8, 9, 12])
def test_a_table_shows_eight_names_at_most(opened: Callable[..., Any], number: int) -> None:
    names = [f"a{k}" for k in range(number)]
    schema = dpf.Schema([dpf.Boolean(name) for name in names])
    table, _ = opened(counting(), dpf.Table.from_codes(schema, [[0]] * number))
    assert repr(table) == f"PrivateTable({', '.join(names[:8])}{', ...' if number > 8 else ''})"


def test_candidates_are_what_a_miner_gets_and_positions_what_observers_see(opened: Callable[..., Any]) -> None:
    seen: list[dpf.Release] = []

    class Sees(dpf.Observer):
        def released(self, release: dpf.Release) -> None:
            seen.append(release)

    node = dpf.step("best", dpf.queries.Histogram(SCHEMA["order"]), PermuteAndFlip(SURE))
    table, _ = opened(node, TABLE, observers=(Sees(),))
    chosen = table.release("best")
    assert seen[0].output == 0
    assert seen[0].value == chosen == dpf.queries.Histogram(SCHEMA["order"]).candidates()[0]
    assert seen[0].charge.path == "best"
    assert seen[0].inputs == {}


def test_a_witness_says_which_relation_its_tables_are_neighbours_under() -> None:
    row, other = {"ill": "true"}, {"ill": "false"}
    tables = [dpf.Witness([(row, 3)], *pair) for pair in ((row, None), (None, row), (row, other))]
    added, removed, replaced = (witness.relation for witness in tables)
    assert added is removed is dpf.Relation.ADD_OR_REMOVE_ONE
    assert replaced is dpf.Relation.REPLACE_ONE
    assert tables[0].shared == (({"ill": "true"}, 3),)
    assert dict(tables[0].outputs) == {}


@attrs.frozen
class Spends(dpf.Miner):
    """A miner of two budgets, and of parameters of several types."""

    name = "spends"
    epsilon: Any = None
    rho: Any = None
    where: Any = None
    many: Any = ()
    made: Any = attrs.field(init=False, default=7)

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return counting()

    def mine(self, table: dpf.PrivateTable) -> Any:
        return table.release("n")


def test_a_miner_says_how_a_budget_may_be_spent_and_how_it_is_written() -> None:
    one = Fraction(1)
    assert Spends.ways_to_spend(one, Fraction(0)) == ({"epsilon": one},)
    epsilon, rho = Spends.ways_to_spend(one, Fraction(1, 10**6))
    assert epsilon == {"epsilon": one}
    assert rho == {"rho": rho_below(one, Fraction(1, 10**6))}
    assert Spends.examples() == {}
    assert Spends().values_read(SCHEMA) is None
    assert Spends.result is None
    both = dpf.And([dpf.Equals("ill", "true"), dpf.Below("age", 30)])
    either = dpf.Or([dpf.Equals("ill", "true"), dpf.Below("age", 30)])
    written = Spends(epsilon=Fraction(1, 3), where=both, many=(SCHEMA["ill"], len)).to_dict()
    assert set(written) == {"miner", "parameters"}
    assert written["miner"] == "spends"
    assert set(written["parameters"]) == {"epsilon", "rho", "where", "many"}
    assert written["parameters"]["where"] == both.to_dict() != Spends(where=either).to_dict()["parameters"]["where"]
    assert written["parameters"]["rho"] is None
    assert "ill" in str(written["parameters"]["many"][0])
    assert written["parameters"]["many"][1] == "builtin_function_or_method"


def test_an_example_for_units_has_room_for_as_many_units() -> None:
    schema = dpf.Schema([dpf.Boolean("ill")], rows=10, max_rows=20)
    example = Example(schema, Spends(), delta="1e-6")
    grown = example.for_units(3)
    assert (grown.schema.rows, grown.schema.max_rows, grown.delta) == (30, 60, example.delta)
    unbounded = Example(dpf.Schema([dpf.Boolean("ill")]), Spends()).for_units(3).schema
    assert (unbounded.rows, unbounded.max_rows) == (None, None)
    assert Example(schema, Spends()).delta == 0


@pytest.mark.parametrize("parts", [[dpf.Equals("ill", "true"), "ill"], [3], [], 3, [dpf.Equals("ill", "true"), 0]])
def test_parts_are_all_descriptions(opened: Callable[..., Any], parts: Any) -> None:
    table, _ = opened(dpf.parallel(counting(), by=dpf.FromRelease("r")), TABLE)
    with pytest.raises(dpf.InputError, match="by value, never by position"):
        table.partition(parts)
