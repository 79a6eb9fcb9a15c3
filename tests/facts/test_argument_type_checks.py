"""A wrong type at a public boundary is refused there, in one sentence that names the argument and what is needed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.argument_type_checks import require_field_types, typechecked
from dpframework.mechanisms import DiscreteLaplace, Exponential
from dpframework.queries import Count, Histogram
from dpframework.study.plugin_registry import registry

if TYPE_CHECKING:
    from fractions import NoSuchName

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("smokes")])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1], [0, 0, 1]])
ROWS = dpf.step("rows", Count(), DiscreteLaplace(1))
AMOUNT = "Fraction, int, float, str or Decimal is needed"


def study() -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=1)
    made.add("ill", dpf.miner("histogram", epsilon=1, attribute="ill"))
    return made


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: dpf.Study("x", epsilon=1), "Study: schema is a str; Schema is needed"),
    (lambda: dpf.Study(SCHEMA, epsilon=None), f"Study: epsilon is None; {AMOUNT}"),
    (lambda: dpf.Study(SCHEMA, epsilon=[1]), f"Study: epsilon is a list; {AMOUNT}"),
    (lambda: dpf.Study(SCHEMA, epsilon=1, delta=()), f"Study: delta is a tuple; {AMOUNT}"),
    (lambda: dpf.Study(SCHEMA, epsilon=1, allow=5), "Study: allow is an int; Iterable[str] is needed"),
    (lambda: dpf.Study(SCHEMA, epsilon=1, allow=["rows", 5]), "5 is not a name; names are texts"),
    (lambda: dpf.Study(SCHEMA, epsilon=1, relation=5), "Study: relation is an int; Relation or str is needed"),
    (lambda: dpf.Study(SCHEMA, epsilon=1, unit=5), "Study: unit is an int; str or None is needed"),
    (lambda: dpf.Study(SCHEMA, epsilon=1, rows_per_unit="3"), "Study: rows_per_unit is a str; int is needed"),
    (
        lambda: dpf.Study(SCHEMA, epsilon=1, out_of_domain=5),
        "Study: out_of_domain is an int; OutOfDomain, str or None is needed",
    ),
    (lambda: study().add(5, dpf.miner("count", epsilon=1)), "Study.add_plan: name is an int; str is needed"),
    (lambda: study().add("x", 5), "step 'x': 5 is not a miner; use dpf.miner(name, ...)"),
    (lambda: study().add_plan("x", 5), "Study.add_plan: node is an int; Node is needed"),
    (lambda: study().plan(5), "Study.plan: engine is an int; Engine or None is needed"),
    (lambda: study().with_epsilon([]), f"Study.with_epsilon: epsilon is a list; {AMOUNT}"),
    (lambda: study().with_rows("9"), "Study.with_rows: rows is a str; int is needed"),
    (lambda: study().epsilon_for(5, within=1), "Study.epsilon_for: step is an int; str is needed"),
    (lambda: study().epsilon_for("ill", within=1, rows="9"), "Study.epsilon_for: rows is a str; int or None is needed"),
    (
        lambda: study().run(5),
        "Study.run: table is an int; Table, TableFiles, DatabaseTable or Callable[[], Table, TableFiles or "
        "DatabaseTable] is needed",
    ),
    (lambda: study().run(TABLE, seed="x"), "Study.run: seed is a str; int or None is needed"),
    (lambda: study().run(TABLE, engine=5), "Study.run: engine is an int; Engine or None is needed"),
    (lambda: study().run(TABLE, observers=5), "Study.run: observers is an int; Iterable[Observer] is needed"),
    (lambda: study().run(TABLE, accountant=5), "Study.run: accountant is an int; Accountant[Any] or None is needed"),
    (lambda: study().run(TABLE, ledger="x"), "Study.run: ledger is a str; Recorder or None is needed"),
    (lambda: dpf.miner(5), "miner: name is an int; str is needed"),
    (lambda: dpf.miner("histogram", epsilon=1, attribute=5), "miner 'histogram': attribute is an int; str is needed"),
    (
        lambda: dpf.miner("histogram", epsilon=[1], attribute="ill"),
        "miner 'histogram': epsilon is [1]; write a finite number",
    ),
    (lambda: dpf.miner("dp-id3", epsilon=1, target=5), "miner 'dp-id3': target is an int; str is needed"),
    (
        lambda: dpf.miner("dp-id3", epsilon=1, target="ill", pruning="yes"),
        "miner 'dp-id3': pruning is a str; bool is needed",
    ),
    (lambda: dpf.share([], "histogram"), "share is []; write a finite number"),
    (lambda: dpf.share(0.5, 5), "a share is given to a miner's name or class, not to 5"),
    (
        lambda: dpf.step("x", Histogram(5), DiscreteLaplace(1)),
        "step 'x': histogram: attribute is an int; Attribute is needed",
    ),
    (lambda: dpf.step("x", 5, DiscreteLaplace(1)), "step 'x': 5 is not a query; pass an instance"),
    (lambda: dpf.step("x", Count(), Exponential), "step 'x': .* is not a mechanism; pass an instance"),
    (lambda: dpf.step("x", Count(), DiscreteLaplace([])), "epsilon is \\[\\]; write a finite number"),
    (lambda: dpf.step(5, Count(), DiscreteLaplace(1)), "the name 5 cannot be used in a plan"),
    (lambda: dpf.sequential(5), "sequential takes steps and compositions of steps, not 5"),
    (lambda: dpf.parallel(ROWS, by=5), "parallel: by is an int; .* is needed"),
    (lambda: dpf.repeat("x", ROWS), "repeat takes a positive number of times, not 'x'"),
    (lambda: dpf.sample([], ROWS), "rate is \\[\\]; write a finite number"),
    (lambda: dpf.post(5, ["x"]), "post: name is an int; str is needed"),
    (lambda: dpf.post("a", 5), "post: uses is an int; Iterable[str] is needed"),
    (lambda: dpf.FromRelease("a", attributes=[5]), "5 is not a name; names are texts"),
    (lambda: dpf.Schema([5]), "a schema holds attributes, not int"),
    (lambda: dpf.Boolean(5), "an attribute's name must be a text, not int"),
    (lambda: dpf.Categorical("x", values=5), "values must be a list, not int"),
    (lambda: dpf.read_table(5, SCHEMA), "read_table: path is an int; .* is needed"),
    (lambda: dpf.read_table("x", 5), "read_table: schema is an int; Schema is needed"),
    (lambda: dpf.table_from_columns(5, SCHEMA), "table_from_columns: columns is an int; Mapping[str, Any] is needed"),
    (lambda: dpf.PureAccountant(5), "relation 5 is unknown"),
    (lambda: dpf.Threads("x"), "an engine needs a positive number of threads, not 'x'"),
    (lambda: dpf.Ledger(5), "Ledger: path is an int; str or PathLike[str] is needed"),
    (lambda: dpf.PrivacyUnit(5), "unit is 5; give the name of the column"),
]


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_a_wrong_type_is_refused_in_a_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(dpf.InputError) as refused:
        call()
    words = str(refused.value)
    start, *end = sentence.split(".*")
    assert words.startswith(start.replace("\\", "")), words
    assert all(part.strip() in words for part in end)
    assert "\n" not in words


@pytest.mark.parametrize(("value", "remedy"), [(5, ""), (len, "; write it as a text"), ([], "")])
def test_a_remedy_is_told_only_where_it_is_one(value: Any, remedy: str) -> None:
    with pytest.raises(dpf.InputError) as refused:
        study().epsilon_for(value, within=1)
    assert str(refused.value).partition("str is needed")[2] == remedy


def test_numbers_of_numpy_stand_for_numbers() -> None:
    made = dpf.Study(SCHEMA, epsilon=np.float64(2), delta=np.float64(0))
    assert made.budget.epsilon == 2
    with pytest.raises(dpf.InputError, match="rows_per_unit is a float64; int is needed"):
        dpf.Study(SCHEMA, epsilon=1, rows_per_unit=np.float64(1))


@attrs.frozen
class Widths:
    """A value of a plugin, of which one annotation names what only a type checker imports."""

    name: ClassVar[str] = "widths"
    widths: tuple[int, ...]
    rest: NoSuchName
    least: float = 0


def test_fields_are_compared_and_values_not_shown() -> None:
    require_field_types(Widths((1, 2), "anything", 3), "here")
    with pytest.raises(dpf.InputError) as refused:
        require_field_types(Widths(("a secret",), "anything"), "here")
    assert str(refused.value) == "here: widths is a tuple; tuple[int, ...] is needed"
    require_field_types(
        Widths([1], None, Fraction(1, 3)), "here"
    )  # a file has lists, and a study's epsilon is a fraction
    with pytest.raises(dpf.InputError, match="least is a str; float is needed"):
        require_field_types(Widths((), None, "a secret"), "here")


def test_a_field_is_of_the_type_of_the_class_that_annotates_it_last() -> None:
    @attrs.frozen
    class Chain:
        following: Chain | None = None
        share: Ratio | None = None  # type: ignore[name-defined]  # noqa: F821

    @attrs.frozen
    class Longer(Chain):
        following: Longer | None = None
        share: Fraction | None = None

    Chain.__module__ = "nowhere"
    require_field_types(Longer(Longer(), Fraction(1)), "here")
    with pytest.raises(dpf.InputError, match="here: following is a Chain; Longer or None is needed"):
        require_field_types(Longer(Chain()), "here")
    with pytest.raises(dpf.InputError, match="here: share is a str; Fraction or None is needed"):
        require_field_types(Longer(None, "a secret"), "here")
    require_field_types(Chain(None, "anything"), "here")  # nobody can read what its annotation names


@typechecked
def add_all(first: int, *more: int, **named: str) -> int:
    return first + sum(more) + len(named)


def test_each_argument_of_several_is_compared() -> None:
    assert add_all(1, 2, 3, a="x") == 7
    with pytest.raises(dpf.InputError, match="add_all: more is a str; int"):
        add_all(1, 2, "3")
    with pytest.raises(dpf.InputError, match="add_all: named is an int; str"):
        add_all(1, a="x", b=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        add_all()


def test_annotations_of_a_wrapped_function_are_read_where_that_was_defined() -> None:
    elsewhere: dict[str, Any] = {}
    exec("from fractions import Fraction as Half\ndef halved(half: 'Half') -> 'Unknown': return half", elsewhere)

    @typechecked
    @functools.wraps(elsewhere["halved"])
    def outer(*given: Any) -> Any:
        return elsewhere["halved"](*given)

    assert outer(Fraction(1, 2)) == Fraction(1, 2)  # what it returns is for type checkers alone
    with pytest.raises(dpf.InputError, match="halved: half is a str; Fraction is needed"):
        outer("1/2")


def test_every_boundary_can_read_its_annotations() -> None:
    # an annotation that cannot be read would end in a NameError at the first call of a user
    for function in (dpf.post, dpf.read_table, dpf.table_from_columns):
        with pytest.raises(dpf.InputError, match=f"^{function.__name__}: "):
            function(object(), object())
    for method in (
        "add_plan",
        "plan",
        "checked_plan",
        "prepare",
        "epsilon_for",
        "accuracy",
        "with_epsilon",
        "with_rows",
        "run",
    ):
        with pytest.raises(dpf.InputError, match=f"Study.{method}: "):
            getattr(study(), method)(
                object(),
                *([object()] if method.startswith("add") else []),
                **({"within": 1} if method in ("epsilon_for", "accuracy") else {}),
            )


def miners_with_lists_of_names() -> list[tuple[type[dpf.Miner], str]]:
    classes = [brought.component for brought in registry().miners.values()]
    return [(one, of.name) for one in classes for of in attrs.fields(one) if of.type == "tuple[str, ...] | None"]


@pytest.mark.parametrize(("kind", "field"), miners_with_lists_of_names())
def test_one_text_is_no_list_of_names(kind: type[dpf.Miner], field: str) -> None:
    """Else each of its letters would be taken for an attribute."""
    miner = next(one.miner for one in kind.examples().values() if type(one.miner) is kind)
    with pytest.raises(dpf.InputError, match="'abc' is one text; give a list of names"):
        attrs.evolve(miner, **{field: "abc"})
    assert getattr(attrs.evolve(miner, **{field: ["a", "b"]}), field) == ("a", "b")
