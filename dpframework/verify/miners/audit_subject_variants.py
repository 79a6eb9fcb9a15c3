"""Variants of a subject: another schema or other parameters than in its example, one or two changes at a time.

A subject is a miner on a schema under a relation. A mistake may need two changes to show. For example, a flag says
whether values are scaled. The bound of a sum is right for all scaled values, and for all values above 0. It is wrong
only for values that are not scaled and lie below 0.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.facts.privacy_losses import exact
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Repeat, Step
from dpframework.queries import Query, QueryFacts
from dpframework.run.miner_base_and_examples import Example, Miner
from dpframework.verify.mechanisms.loss_claim_check import UNIT
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.plugin_code_constants import constants_of
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import (
    SPENT,
    further_miners,
    related_miners,
    smaller_miners,
    with_parameter,
)
from dpframework.verify.queries.schema_variants import (
    MOST_ROWS,
    far_schema,
    further_schemas,
    related_schemas,
    schemas_of_other_sizes,
)

# A switch is a change of a flag, of a word, of an option, or of a parameter that the example leaves out.
MOST_SWITCHES = 4  # how many switches are tried together with another change
MOST_NUMBERS = 3  # the most changes of numbers that each switch is tried with
MOST_CONSTANTS = 3  # a whole number is made one larger than each of this many constants of the code
# A plan, or an answer, may become at most about this many times as large where a whole number is made larger.
MOST_GROWTH = 1_000
BUDGETS = (Fraction(1, 1_000), Fraction(1, 10), Fraction(10), Fraction(1_000))  # as shares of the example's budget
ABOUT = (10, 1_000_000)  # other estimates of the number of rows
SEVERAL = 12  # the public number of rows, or of units, that a schema gets if it has none
WITH_SWITCHES = ("below 0", "above 0", "one more value")  # switches are tried on schemas whose texts end so


@final
@attrs.frozen(eq=False)
class SubjectVariant:
    """A subject with one or two changes.

    Attributes
    ----------
    how
        How the subject differs from the example, in words.
    subject
        The changed subject.
    more_rows
        Whether the schema differs only in its bound on the number of rows. There, what a query declares must hold, even
        if the query equals one of the example's.
    more_attributes
        Whether the schema has all attributes of the example's schema and some more. There, what a query declares must
        hold if the query gets other inputs than for the example.
    brief
        Whether a search on the smallest tables is enough.
    may_fail
        Whether the subject's queries may fail on some tables, as queries about dates do on numbers in the billions.
    """

    how: str
    subject: Subject
    more_rows: bool = False
    more_attributes: bool = False
    brief: bool = False
    may_fail: bool = False


def subject_variants(subject: Subject) -> Iterator[SubjectVariant]:
    """Yield a plugin's subject on related schemas and with related parameters.

    See `schema_variants` and `miner_and_mechanism_parameter_variants`.

    Parameters
    ----------
    subject
        The subject, on the schema and with the parameters of an example.
    """
    schemas = list(related_schemas(subject.schema))
    miners = list(related_miners(subject.miner, subject.schema))
    for how, schema in schemas:
        more_rows = schema.attributes == subject.schema.attributes
        yield SubjectVariant(how, attrs.evolve(subject, schema=schema, kinds=()), more_rows=more_rows)
    further = list(further_schemas(subject.schema))
    larger = [(how, schema) for how, schema in further if len(schema) > len(subject.schema)]
    for how, miner in miners:
        yield _on_fitting_schema(how, attrs.evolve(subject, miner=miner), larger)
    for how, schema in further:
        more = schema.attributes[: len(subject.schema)] == subject.schema.attributes
        changed = attrs.evolve(subject, schema=schema, kinds=())
        yield SubjectVariant(how, changed, brief=True, more_attributes=more)
    of_numbers = smaller_miners(subject.miner), further_miners(subject.miner, subject.schema)
    for how, miner in (*itertools.chain(*of_numbers), *_beyond_constants(subject, miners)):
        yield attrs.evolve(_on_fitting_schema(how, attrs.evolve(subject, miner=miner), larger), brief=True)
    for how, schema in schemas_of_other_sizes(subject.schema, subject.by.rows):
        yield SubjectVariant(how, attrs.evolve(subject, schema=schema, kinds=()), more_rows=True, brief=True)
    if subject.by.rows == 1 and type(subject.miner).for_study is not Miner.for_study:  # else the miner ignores units
        # The public number of rows, or its bound, is multiplied by UNIT (see `Example.for_units`).
        schema = Example(subject.schema, subject.miner).for_units(UNIT).schema
        if schema.rows is None or schema.rows <= MOST_ROWS:
            of_units = attrs.evolve(subject, schema=schema, kinds=(), unit=PrivacyUnit(rows=UNIT))
            yield SubjectVariant(f"for units of {UNIT} rows", of_units)
    yield from _with_other_queries(subject)
    far = far_schema(subject.schema)
    if far is not None:
        moved = attrs.evolve(subject, schema=far, kinds=())
        yield SubjectVariant("on the example's schema with numbers far above 0", moved, brief=True, may_fail=True)
    # A switch changes a flag, a word, an option, or a parameter that the example leaves out.
    switched = []
    for how, miner in miners:
        before = [getattr(subject.miner, name) for name in _changed_fields(subject.miner, miner)]
        if any(given is None or isinstance(given, bool | str | enum.Enum) for given in before):
            switched.append((how, miner))
    together = [(how, schema) for how, schema in (*schemas, *further) if how.endswith(WITH_SWITCHES)]
    for how, schema in _with_public_sizes(subject, together):
        yield SubjectVariant(how, attrs.evolve(subject, schema=schema, kinds=()), brief=True)
    for how, miner in switched[:MOST_SWITCHES]:
        for of_schema, schema in together:
            changed = attrs.evolve(subject, miner=miner, schema=schema, kinds=())
            yield SubjectVariant(f"{of_schema}, {how}", changed, brief=True)
        others = (one for one in related_miners(miner, subject.schema) if _is_number(subject.miner, miner, one[1]))
        for beside, other_miner in itertools.islice(others, MOST_NUMBERS):
            changed = attrs.evolve(subject, miner=other_miner)
            yield SubjectVariant(f"{how} and {beside.removeprefix('with ')}", changed, brief=True)
    for (how, miner), (beside, other_miner) in itertools.combinations(switched[:MOST_SWITCHES], 2):
        if (both := _changed_together(subject.miner, miner, other_miner)) is not None:
            changed = attrs.evolve(subject, miner=both)
            yield SubjectVariant(f"{how} and {beside.removeprefix('with ')}", changed, brief=True)


def _on_fitting_schema(how: str, subject: Subject, larger: Iterable[tuple[str, Schema]]) -> SubjectVariant:
    """Return a subject on its schema or, if the miner refuses that, on the first schema with more attributes that fits.

    An example's schema may have too few attributes for other parameters: two sets of three flags need six, for example.
    """
    for where, schema in (("", subject.schema), *larger):
        changed = subject if not where else attrs.evolve(subject, schema=schema, kinds=())
        with contextlib.suppress(Exception):
            if changed.plan is not None:
                return SubjectVariant(f"{where}, {how}" if where else how, changed)
    return SubjectVariant(how, subject)  # the miner refuses the parameter


def _changed_together(miner: Miner, one: Miner, other: Miner) -> Miner | None:
    """Return `one` with the changes of `other` as well; None if the miner refuses them, or both change one field."""
    names = _changed_fields(miner, other)
    if {*names} & {*_changed_fields(miner, one)}:
        return None
    fields = attrs.fields_dict(type(miner))
    with contextlib.suppress(Exception):  # the miner refuses both changes together, and so claims nothing for them
        changed: dict[str, Any] = {str(fields[name].alias): getattr(other, name) for name in names}
        return attrs.evolve(one, **changed)
    return None


def _beyond_constants(subject: Subject, miners: Iterable[tuple[str, Miner]]) -> Iterator[tuple[str, Miner]]:
    """Yield copies of a subject's miner in which a whole number is one larger than a constant of the code.

    A bound may be right for numbers up to that constant. Each increase by 1 may enlarge the plan by the same factor.
    Numbers for which the plan might become too large are left out.

    Parameters
    ----------
    subject
        The subject.
    miners
        Copies of its miner with one parameter changed, each with a text that says how.
    """
    things = [subject.miner, *(step.query for step in subject.plan.steps())]
    constants = sorted({int(number) for number in constants_of(things) if number == int(number)})
    for _, larger in miners:
        for name in _changed_fields(subject.miner, larger):
            given = getattr(subject.miner, name)
            if type(given) is not int or getattr(larger, name) != given + 1:
                continue
            try:
                growth = _size(attrs.evolve(subject, miner=larger)) / max(_size(subject), 1)
            except Exception:  # the miner refuses this number, and so claims nothing for it
                continue
            for number in [constant + 1 for constant in constants if constant > given][:MOST_CONSTANTS]:
                if (number - given) * math.log(max(growth, 1)) > math.log(MOST_GROWTH):
                    break
                yield from with_parameter(subject.miner, name, number)


def _size(subject: Subject) -> int:
    """Return how many numbers all steps of a subject's plan release, repetitions included."""
    nodes, times = subject.plan.index.nodes, list[int]()
    for placed in nodes:  # parents come first
        above = None if placed.parent is None else nodes[placed.parent].node
        repeated = above.times if isinstance(above, Repeat) else 1
        times.append(repeated * (1 if placed.parent is None else times[placed.parent]))
    steps = ((placed.node, number) for placed, number in zip(nodes, times, strict=True))
    return sum((node.facts.answer_length or 1) * number for node, number in steps if isinstance(node, Step))


def _with_public_sizes(subject: Subject, others: Iterable[tuple[str, Schema]]) -> Iterator[tuple[str, Schema]]:
    """Yield copies of a subject's schema with a public number of rows, or with a bound on it, if it has neither.

    A plan may ask other queries where the number of rows is public, such as a mean in place of a sum. Then other
    schemas, each with a text that says how it differs, get a public number of rows, too. If the plan samples, the
    number is small, since all samples are listed.
    """
    rows = subject.most_rows(SEVERAL * subject.by.rows)
    unfit = not 2 * subject.by.rows <= rows <= MOST_ROWS
    if subject.schema.row_bound is not None or subject.schema.derivation or unfit:
        return
    public = attrs.evolve(subject.schema, rows=rows, about_rows=None)
    yield f"on the example's schema with {rows} rows", public
    bounded = attrs.evolve(subject.schema, max_rows=rows, about_rows=None)
    yield f"on the example's schema with at most {rows} rows", bounded
    with contextlib.suppress(Exception):  # the miner refuses a public number of rows, and so claims nothing for it
        if _facts(attrs.evolve(subject, schema=public, kinds=())) != _facts(subject):
            for how, schema in others:
                yield f"{how} and {rows} rows", attrs.evolve(schema, rows=rows, about_rows=None)


def _with_other_queries(subject: Subject) -> Iterator[SubjectVariant]:
    """Yield a subject with another budget or estimate of the number of rows, if its plan then asks other queries.

    A plan may derive the depth of a tree, or the number of bins, from its budget or from the number of rows. With equal
    queries nothing is yielded, since only their noise differs.
    """
    made: list[tuple[str, Subject]] = []
    for name in SPENT[:2]:
        given = getattr(subject.miner, name, None)
        if isinstance(given, int | float | Fraction) and not isinstance(given, bool):
            changed = (with_parameter(subject.miner, name, share * exact(given, name)) for share in BUDGETS)
            miners = itertools.chain.from_iterable(changed)
            made += [(how, attrs.evolve(subject, miner=miner)) for how, miner in miners]
    if subject.schema.rows is None:
        for about in ABOUT if subject.schema.max_rows is None else ():
            schema = attrs.evolve(subject.schema, about_rows=about)
            how = f"on the example's schema with about {about:,} rows"
            made.append((how, attrs.evolve(subject, schema=schema, kinds=())))
    known = [_queries(subject)]
    for how, other in made:
        with contextlib.suppress(Exception):  # the miner refuses this budget, and so claims nothing for it
            queries = _queries(other)
            if not any(same(queries, one) for one in known):
                known.append(queries)
                yield SubjectVariant(how, other, brief=True)


def _queries(subject: Subject) -> list[Query]:
    """Return the queries of a subject's plan."""
    return [step.query for step in subject.plan.steps()]


def _facts(subject: Subject) -> list[QueryFacts]:
    """Return the facts of the queries of a subject's plan."""
    return [step.query.facts() for step in subject.plan.steps()]


def _changed_fields(miner: Miner, other: Miner) -> list[str]:
    fields = [field.name for field in attrs.fields(type(miner)) if field.init and field.name not in SPENT]
    return [name for name in fields if not same(getattr(miner, name), getattr(other, name))]


def _is_number(miner: Miner, switched: Miner, other: Miner) -> bool:
    """Tell whether `other` differs from `switched` in a number that is the same in `miner` and `switched`."""
    changed = [name for name in _changed_fields(switched, other) if same(getattr(miner, name), getattr(switched, name))]
    return any(type(getattr(switched, name)) in (int, float) for name in changed)
