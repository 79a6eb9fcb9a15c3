"""Checks: for each code one plan that triggers it, and one close to it that does not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.checks import large_noise_checks
from dpframework.checks.assumption_texts_and_check_help_pages import CheckPage, check_page
from dpframework.checks.base import Finding, Findings, Severity
from dpframework.checks.built_in import BUILT_IN, findings
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace, PartitionSelection, PermuteAndFlip
from dpframework.plan import Step, VerificationRecords
from dpframework.plan.code_digests import code_of
from dpframework.results.error_bounds import ErrorBound

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"])], max_rows=100)
COUNTED = dpf.Schema(SCHEMA.attributes, rows=90)
UNCOUNTED = dpf.Schema(SCHEMA.attributes)
INFERRED = dpf.Schema(SCHEMA.attributes, inferred=["values of c"])
ADD, REPLACE = "add-or-remove-one", "replace-one"


class Told(dpf.Query):
    """Declares what it is told."""

    name = "told"

    def __init__(self, *sensitivities: dpf.Sensitivity) -> None:
        self.declared = sensitivities

    @property
    def sensitivities(self) -> tuple[dpf.Sensitivity, ...]:
        return self.declared

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.zeros(1, dtype=np.int64)


class ToldToo(dpf.Query):
    """Has the name of another query."""

    name = Told.name
    sensitivities = (dpf.Sensitivity("l1", 1, source="by construction"),)

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.zeros(1, dtype=np.int64)


class Renamed(ToldToo):
    """Has a name of its own."""

    name = "told too"


def told(added: Any, replaced: Any = None, norm: str = "l1", source: str = "by construction") -> Told:
    return Told(dpf.Sensitivity(norm, added, replaced, source=source))


def count(name: str = "n", epsilon: Any = 1, **options: Any) -> Step:
    return dpf.step(name, dpf.queries.Count(), DiscreteLaplace(epsilon), **options)


def asked(query: dpf.Query, mechanism: Any = None, **options: Any) -> Step:
    return dpf.step("q", query, mechanism or DiscreteLaplace(1), **options)


def scoped(name: str, *parts: dpf.Node) -> dpf.Node:
    return dpf.sequential(*parts, name=name)


def best(epsilon: Any) -> Step:
    return dpf.step("best", dpf.queries.Histogram(SCHEMA["c"]), PermuteAndFlip(epsilon))


class InFloatingPoint(Exponential):
    """Says that it assumes real arithmetic."""

    name = "in-floating-point"
    assumptions = ("real-arithmetic",)


class Eventful(DiscreteLaplace):
    """Tells PLD accounting something that is no event."""

    def dp_event(self, *args: Any) -> Any:
        return "an event"


class ForOneRow(DiscreteLaplace):
    """Has no claim for units of several rows."""

    name = "for-one-row"

    def for_rows(self, rows: int) -> None:
        return None


def cells(name: str) -> Step:
    return dpf.step(name, dpf.queries.Histogram(SCHEMA["c"]), DiscreteLaplace("0.4"))


TWO, PERSON = dpf.PrivacyUnit(None, 2), dpf.PrivacyUnit("person")
TWO_TABLES = dpf.sequential(scoped("n", cells("n")), scoped("m", cells("m")))
WITH_IDS = dpf.Schema([*SCHEMA.attributes, dpf.Categorical("Patient ID", ["1", "2"])])
BLOCK = dpf.spend("b", dpf.kind("n", dpf.queries.Count(), DiscreteLaplace), rho="0.1")
A, NOT_A = dpf.Equals("a", "true"), dpf.Equals("a", "false")
BOTH = (ADD, REPLACE)

# code: (severity, text of the finding, what triggers it, what does not); each a node and options of the plan.
CASES: dict[str, list[tuple[str, str, tuple[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]]] = {
    "DP001": [
        ("error", "total epsilon is 1.1 under", (count(epsilon="1.1"), {"epsilon": 1}), (count(), {"epsilon": 1})),
        (
            "error",
            "the budget is 2.0",
            (dpf.repeat(3, count()), {"epsilon": 2}),
            (dpf.repeat(400, count(epsilon="0.01")), {"epsilon": 2, "delta": "1e-6"}),  # 4 in pure epsilon
        ),
    ],
    "DP002": [
        (
            "error",
            'set relation = "replace-one"',
            (asked(told(None, 1)), {}),
            (asked(told(None, 1)), {"relation": REPLACE}),
        ),
        (
            "error",
            "released from parts|parts of a table need",
            (dpf.parallel(asked(told(None, 1)), by=SCHEMA["a"]), {"relation": REPLACE}),
            (dpf.parallel(asked(told(1, 1)), by=SCHEMA["a"]), {"relation": REPLACE}),
        ),
        ("error", "use another query", (asked(told(None)), {}), (asked(told(1)), {})),
        (
            "error",
            "nor have 2 other steps",
            (dpf.sequential(*(dpf.step(name, told(None), DiscreteLaplace(1)) for name in "abc")), {"epsilon": 3}),
            (dpf.sequential(*(dpf.step(name, told(1), DiscreteLaplace(1)) for name in "abc")), {"epsilon": 3}),
        ),
    ],
    "DP003": [
        (
            "error",
            "does not say how its parts are made",
            (dpf.parallel(count()), {}),
            (dpf.parallel(count(), by=SCHEMA["a"]), {}),
        ),
        (
            "error",
            "did you mean 'split'",
            (dpf.sequential(count("split"), dpf.parallel(count(), by=dpf.FromRelease("spilt"))), {}),
            (dpf.sequential(count("split"), scoped("s", dpf.parallel(count(), by=dpf.FromRelease("split")))), {}),
        ),
        (
            "error",
            "'a = true' and 'c = x' overlap",
            (dpf.parallel(count(), by=[A, dpf.Equals("c", "x")]), {}),
            (dpf.parallel(count(), by=[A, dpf.And([NOT_A, dpf.Equals("c", "x")])]), {}),
        ),
        (
            "error",
            "no value 'w'",
            (dpf.parallel(count(), by=[A, dpf.Equals("c", "w")]), {}),
            (dpf.parallel(count(), by=[A, NOT_A]), {}),
        ),
    ],
    "DP004": [
        ("error", "declares no sensitivity", (asked(Told()), {}), (asked(told(1)), {})),
        ("error", "sensitivity of 0, as if it read no rows", (asked(told(0)), {}), (asked(told("1e-9")), {})),
        ("error", "sensitivity of 0, as if it read no rows", (asked(told(1, 0)), {}), (asked(told(1, "1e-9")), {})),
        ("error", "gives no source", (asked(told(1, source=" ")), {}), (asked(told(1, source="a theorem")), {})),
    ],
    "DP005": [
        (
            "error",
            "step 'n' assumes 'mcmc-converged'",
            (count(assumptions=["mcmc-converged"]), {}),
            (count(assumptions=["mcmc-converged"]), {"allow": ("mcmc-converged",)}),
        ),
        (
            "error",
            "'q' assumes? 'real-arithmetic'",
            (asked(told(1, norm="linf"), InFloatingPoint(1)), {}),
            (asked(told(1, norm="linf"), Exponential(1)), {}),
        ),
    ],
    "DP006": [
        (
            "error",
            r"inferred from private data \(values of c\), which no epsilon covers",
            (count(), {"schema": INFERRED}),
            (count(), {}),
        ),
        (
            "warning",
            "no claim of this plan covers that",
            (count(), {"schema": INFERRED, "allow": ("schema-inferred-from-data",)}),
            (count(), {}),
        ),
    ],
    "DP007": [
        ("warning", "'n' is compared with 5", (count(epsilon="0.1", threshold=5), {}), (count(threshold=5), {})),
        (
            "warning",
            "or the threshold 6 times",
            (count(epsilon="0.1", threshold=5), {}),
            (count(epsilon="0.6", threshold=5), {}),
        ),
    ],
    "DP008": [
        (
            "warning",
            "step 'm' in the plan is released but nobody uses it",
            (dpf.sequential(count("n"), count("m"), dpf.post("p", ["n"])), {}),
            (dpf.sequential(count("n"), count("m", uses=["n"]), dpf.post("p", ["m"])), {}),
        ),
        (
            "warning",
            "step 'n' in the plan is released but nobody uses it",
            (dpf.sequential(count("n"), scoped("s", count("m", uses=["l"])), dpf.post("p", ["s"])), {}),
            (dpf.sequential(count("n"), scoped("s", count("m", uses=["n"])), dpf.post("p", ["s"])), {}),
        ),
        (  # a scope without post-processing, such as the whole plan, hands all its releases to the result
            "warning",
            "step 'm' in 's' is released but nobody uses it",
            (dpf.sequential(count("o"), scoped("s", count("n"), count("m"), dpf.post("p", ["n"]))), {}),
            (dpf.sequential(count("o"), scoped("s", count("n"), count("m"), dpf.post("p", ["n", "m"]))), {}),
        ),
    ],
    "DP009": [
        (
            "error",
            "the plan holds 2 parts named 'n'",
            (dpf.sequential(count("n"), dpf.either(count("m"), count("n"))), {}),
            (dpf.sequential(count("n"), dpf.sequential(count("n"), name="inner")), {}),
        ),
        (
            "error",
            "'s' holds 2 parts named 'n'",
            (dpf.sequential(dpf.sequential(count(), dpf.post("n", [])), name="s"), {"nested": True}),
            (dpf.repeat(2, count()), {}),
        ),
    ],
    "DP010": [
        (
            "error",
            "gaussian.* has no finite pure epsilon; set delta > 0",
            (asked(dpf.queries.Count(), Gaussian("0.1")), {}),
            (asked(dpf.queries.Count(), Gaussian("0.1")), {"delta": "1e-6"}),
        ),
        (
            "error",
            "the releases have a delta of 1e-07 of their own under add-or-remove-one, and the study's delta is 1e-08; "
            "raise it",
            (asked(dpf.queries.Count(), PartitionSelection("0.5", "1e-7")), {"delta": "1e-8"}),
            (asked(dpf.queries.Count(), PartitionSelection("0.5", "1e-7")), {"delta": "1e-7"}),
        ),
        ("error", "block 'b' has no cap on epsilon; set delta > 0", (BLOCK, {}), (BLOCK, {"delta": "1e-6"})),
    ],
    "DP011": [
        ("warning", "delta 0.01 is not below 1/100", (count(), {"delta": "0.01"}), (count(), {"delta": "0.00001"})),
        ("warning", "is not below 1/40", (count(), {"delta": "0.025", "about_rows": 40}), (count(), {"delta": "1e-5"})),
        ("warning", "delta 2e-05 is above 1e-05", (count(), {"delta": "2e-5", "schema": UNCOUNTED}),
         (count(), {"delta": "1e-5", "schema": UNCOUNTED})),
        ("info", "the study allows 'large-delta'", (count(), {"delta": "0.01", "allow": ["large-delta"]}),
         (count(), {"allow": ["large-delta"]})),
    ],
    "DP012": [
        ("info", "epsilon 1.0 of the budget is not", (count(), {"epsilon": 2}), (count(), {"epsilon": "1.001"})),
    ],
    "DP013": [
        ("error", "makes no release", (dpf.sequential(dpf.post("p", [])), {}), (count(), {})),
    ],
    "DP014": [
        (
            "error",
            "discrete-laplace on .* needs a sensitivity in the l1 norm",
            (asked(told(1, norm="linf")), {}),
            (asked(told(1, norm="linf"), Exponential(1)), {}),
        ),
        (
            "error",
            "step 'q': for-one-row on told has no claim for one unit of at most 2 rows, .*; define Mechanism.for_rows",
            (asked(told(1), ForOneRow(1)), {"unit": TWO}),
            (asked(told(1)), {"unit": TWO}),
        ),
        (
            "error",
            "step 'q': for-one-row on .* needs a sensitivity in the l1 norm",
            (asked(told(1, norm="linf"), ForOneRow(1)), {"unit": TWO}),
            (asked(told(1), ForOneRow(1)), {}),
        ),
        (  # what the query lacks is not what the mechanism lacks
            "error",
            "step 'q': for-one-row on told has no claim for one unit",
            (asked(told(1), ForOneRow(1)), {"unit": TWO}),
            (asked(told(None, 1), ForOneRow(1)), {}),
        ),
    ],
    "DP015": [
        ("error", "did you mean 'mcmc-converged'", (count(), {"allow": ("mcmc-converge",)}), (count(), {})),
        (
            "warning",
            "but nothing in the plan assumes it",
            (count(), {"allow": ("mcmc-converged",)}),
            (count(assumptions=["mcmc-converged"]), {"allow": ("mcmc-converged",)}),
        ),
    ],
    "DP016": [
        (
            "error",
            "'m' in the plan uses 'rowz', which is not there; did you mean 'rows'",
            (dpf.sequential(count("rows"), count("m", uses=["rowz"])), {}),
            (dpf.sequential(count("rows"), count("m", uses=["rows"])), {}),
        ),
        (  # the name of a scope is not seen from another: a study's miners have one each
            "error",
            "'m' in 'inner' uses 'other', which is not there",
            (dpf.sequential(scoped("other", count()), scoped("inner", count("m", uses=["other"]))), {}),
            (dpf.sequential(count("other"), scoped("inner", count("m", uses=["other"]))), {}),
        ),
        (
            "error",
            "'m' in 'parts' uses 'x', which is not there",
            (dpf.sequential(scoped("inner", count("x")), dpf.parallel(count("m", uses=["x"]), by=SCHEMA["a"])), {}),
            (dpf.sequential(count("x"), dpf.parallel(count("m", uses=["x"]), by=SCHEMA["a"])), {}),
        ),
    ],
    "DP017": [
        ("warning", "the choice is nearly uniform", (best("0.001"), {}), (best(1), {})),
    ],
    "DP024": [
        ("warning", "worse than the best by .* on a table of at most 100 rows", (best("0.05"), {}), (best("0.5"), {})),
        ("warning", "on a table of about 40 rows", (best("0.2"), {"about_rows": 40}), (best("0.5"), {})),
        ("info", "the study allows 'noisy-selection'", (best("0.05"), {"allow": ["noisy-selection"]}),
         (best("0.5"), {"allow": ["noisy-selection"]})),
    ],
    "DP025": [
        ("warning", "off by 300 rows on a table of at most 100 rows, which is more than the whole table",
         (count(epsilon="0.01"), {}), (count(), {})),
        ("warning", "on a table of about 2 rows", (count(), {"about_rows": 2}), (count(), {})),
        ("info", "the study allows 'noisy-result'",
         (count(epsilon="0.01"), {"allow": ["noisy-result"]}), (count(), {})),
    ],
    "DP026": [
        ("warning", "epsilon is 12.0: odds of a claim about one row may grow 163,000-fold; above 10",
         (count(epsilon=12), {"epsilon": 12}), (count(), {"epsilon": 12})),
        ("warning", "of a claim about one id may", (count(epsilon=12), {"epsilon": 12, "unit": dpf.PrivacyUnit("id")}),
         (count(), {})),
        ("info", "may grow 999-fold; up to 1", (count(epsilon="6.907"), {"epsilon": 7}), (count(), {})),
        ("info", "may grow 1,000-fold; up to 1", (count(epsilon="6.9074"), {"epsilon": 7}), (count(), {})),
        ("info", "may grow 1,010-fold; up to 1", (count(epsilon="6.9082"), {"epsilon": 7}), (count(), {})),
        ("info", "may grow 2.97-fold; up to 1", (count(epsilon="1.09"), {"epsilon": 2}), (count(), {"epsilon": 2})),
        ("warning", "may grow 899,000-fold; above 10", (count(epsilon="13.708"), {"epsilon": 14}), (count(), {})),
        ("warning", "may grow more than a million-fold; above 10", (count(epsilon="13.82"), {"epsilon": 14}),
         (count(), {})),
        ("info", "more than a million-fold; the study allows 'large-epsilon'",
         (count(epsilon=20), {"epsilon": 21, "allow": ["large-epsilon"]}), (count(), {"allow": ["large-epsilon"]})),
    ],
    "DP027": [
        ("info", "if a person may have several, give unit", (count(), {}), (count(), {"unit": dpf.PrivacyUnit("id")})),
        ("info", "the owner states 'one-row-per-person'", (count(), {"allow": ["one-row-per-person"]}),
         (count(), {"unit": TWO})),
    ],
    "DP028": [
        ("warning", "results 'n', 'm' count groups of about 6.7 rows or fewer", (TWO_TABLES, {"about_rows": 20}),
         (TWO_TABLES, {"about_rows": 33})),
        ("info", "the study allows 'small-groups'", (TWO_TABLES, {"about_rows": 20, "allow": ["small-groups"]}),
         (scoped("n", cells("n")), {"about_rows": 20})),
    ],
    "DP029": [
        ("warning", "the unit 'visit_id' seems to name an event", (count(), {"unit": dpf.PrivacyUnit("visit_id", 2)}),
         (count(), {"unit": dpf.PrivacyUnit("patient_id", 2)})),
        ("warning", "attribute 'Patient ID' seems to name the person of each row", (count(), {"schema": WITH_IDS}),
         (count(), {"schema": WITH_IDS, "unit": dpf.PrivacyUnit("person")})),
        ("info", "the study allows 'unit-weaker-than-ids'",
         (count(), {"schema": WITH_IDS, "allow": ["unit-weaker-than-ids"]}), (count(), {})),
    ],
    "DP031": [
        ("info", "one id in one month, by at most 2 of its rows: a fact that shows in several months is protected less",
         (count(), {"unit": dpf.PrivacyUnit("id", 2, period="month", date="on")}), (count(), {"unit": TWO})),
    ],
    "DP018": [
        ("warning", "publishes the exact row count", (best(1), {"schema": COUNTED}),
         (best(1), {"schema": COUNTED, "relation": REPLACE})),
        ("error", "publishes the exact row count", (best(1), {"schema": COUNTED, "unit": dpf.PrivacyUnit("id", 2)}),
         (best(1), {"schema": COUNTED, "unit": dpf.PrivacyUnit("id", 2), "relation": REPLACE})),
    ],
    "DP019": [
        (
            "error",
            r"'q', \S*test_checks\.Told, and that of step 'r', \S*test_checks\.ToldToo, are both named 'told'",
            (dpf.sequential(asked(told(1)), dpf.step("r", ToldToo(), DiscreteLaplace(1))), {}),
            (dpf.sequential(asked(told(1)), dpf.step("r", Renamed(), DiscreteLaplace(1))), {}),
        ),
        (
            "error",
            "'told'",  # wherever the two are
            (dpf.sequential(dpf.repeat(3, asked(ToldToo())), dpf.sequential(asked(told(1)), name="s")), {}),
            (dpf.sequential(dpf.repeat(3, asked(told(2))), dpf.sequential(asked(told(1)), name="s")), {}),
        ),
    ],
    "DP020": [
        ("warning", "'pld' cannot total the plan .InputError: PLD accounting knows no str",
         (asked(told(1), Eventful(1)), {"delta": "1e-6"}), (asked(told(1), Eventful(1)), {})),
    ],
    "DP021": [
        ("info", "asserts max_rows = 100: if the table breaks this, the run ends", (count(), {}),
         (count(), {"schema": UNCOUNTED})),
        ("info", "asserts rows = 90: ", (count(), {"schema": COUNTED, "relation": REPLACE}),
         (count(), {"schema": UNCOUNTED, "relation": REPLACE})),
    ],
    "DP022": [
        ("warning", "mechanism 'discrete-laplace': not verified: no record of it",
         (count(), {"verified": VerificationRecords()}), (count(), {})),
    ],
    "DP030": [
        ("warning", "neither proved nor tested", (count(), {"verified": VerificationRecords()}), (count(), {})),
    ],
    "DP023": [
        ("error", "under replace-one nothing is known about the cost of a sample",
         (dpf.sample("0.1", count()), {"relation": REPLACE}), (dpf.sample("0.1", count()), {})),
    ],
}  # fmt: skip


def found(plan_of: Callable[..., dpf.StudyPlan], node: Any, options: dict[str, Any]) -> list[dpf.Finding]:
    options = dict(options)
    schema = options.pop("schema", SCHEMA)
    relation = options.pop("relation", ADD)
    if options.pop("nested", False):
        node = dpf.sequential(node)
    verified = options.pop("verified", None)
    about = options.pop("about_rows", None)
    plan = plan_of(node, schema, relation, **options).with_rows(about)
    return findings(attrs.evolve(plan, code=code_of(plan.root, []), verified=verified))


@pytest.mark.parametrize(("code", "case"), [(code, case) for code, cases in CASES.items() for case in cases])
def test_each_check_finds_its_fault_and_no_other_plan(
    plan_of: Callable[..., dpf.StudyPlan], code: str, case: Any
) -> None:
    import re

    severity, text, faulty, sound = case
    of_code = [f for f in found(plan_of, *faulty) if f.code == code]
    assert [f.severity.value for f in of_code] == [severity]
    assert re.search(text, of_code[0].message), of_code[0].message
    assert [f for f in found(plan_of, *sound) if f.code == code] == []


# a step more is used by nobody, or is the release that lacks, or its own noise is found
OF_THE_SCOPE = {"DP008", "DP013", "DP025", "DP028"}


@pytest.mark.parametrize(
    ("code", "case"), [(code, case) for code, cases in CASES.items() for case in cases if code not in OF_THE_SCOPE]
)
def test_a_fault_is_found_behind_a_step_that_has_none(
    plan_of: Callable[..., dpf.StudyPlan], code: str, case: Any
) -> None:
    severity, _, (node, options), _ = case
    with_sound = dpf.sequential(count("sound before", "0.001"), node, count("sound after", "0.001"))
    faults = [f for f in found(plan_of, with_sound, options) if f.code == code]
    assert [f.severity.value for f in faults] == [severity]


def messages(of: list[dpf.Finding], code: str) -> list[str]:
    return [finding.message for finding in of if finding.code == code]


def test_a_bound_itself_is_on_the_sound_side_or_not(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    """Of each number that a check compares, the bound itself and a little more."""

    def has(code: str, node: Any, **options: Any) -> bool:
        return bool(messages(found(plan_of, node, options), code))

    ((_, _, calibration),) = plan_of(count(), SCHEMA, ADD, epsilon=1).calibrated_steps()
    within = Fraction(calibration.preview.within)
    assert not has("DP007", count(threshold=within))
    assert has("DP007", count(threshold=within - Fraction(1, 10**6)))
    assert not has("DP001", count(epsilon=2), epsilon=2)
    assert has("DP001", count(epsilon="2.000001"), epsilon=2)
    assert not has("DP012", count(epsilon="0.999"), epsilon=1)
    assert has("DP012", count(epsilon="0.998999"), epsilon=1)
    assert not has("DP012", dpf.post("p", []), epsilon=1)  # nothing is spent, and DP013 says so
    assert has("DP011", count(), delta="0.01")  # of at most 100 rows
    assert "1e-05" in messages(found(plan_of, count(), {"delta": "0.009999"}), "DP011")[0]
    assert not has("DP026", count(), epsilon=1)
    assert has("DP026", count(epsilon="1.000001"), epsilon=2)
    ten, more = (found(plan_of, count(epsilon=e), {"epsilon": 11})[0] for e in (10, "10.000001"))
    assert (ten.severity.value, more.severity.value) == ("info", "warning")
    assert has("DP028", TWO_TABLES, about_rows=32)  # 3 cells of fewer than 11 rows
    for names, listed in (("nmo", "'n', 'm', 'o'"), ("nmop", "'n', 'm', 'o' and 1 more")):
        several = dpf.sequential(*(scoped(name, cells(name)) for name in names))
        (told,) = messages(found(plan_of, several, {"about_rows": 20}), "DP028")
        assert told.startswith(f"results {listed} count groups of")


def test_steps_with_one_fault_are_named_together(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    def named(number: int, step: Callable[[str], Any], code: str) -> str:
        (message,) = messages(found(plan_of, dpf.sequential(*map(step, "abc"[:number])), {"epsilon": 3}), code)
        return message

    def chained(name: str) -> Any:
        return count(name, assumptions=["mcmc-converged"])

    def unclaimed(name: str) -> Any:
        return dpf.step(name, told(None, 1), DiscreteLaplace(1))

    for allowed, asked_for in itertools.permutations(("mcmc-converged", "real-arithmetic")):
        both = count("a", assumptions=["row-count-public", "mcmc-converged", "real-arithmetic"])
        (message,) = messages(found(plan_of, both, {"allow": (allowed,)}), "DP005")
        assert message.startswith(f"step 'a' assumes '{asked_for}'; ")
    assert named(1, chained, "DP005").startswith("step 'a' assumes 'mcmc-converged'; ")
    assert named(3, chained, "DP005").startswith("steps 'a', 'b', 'c' assume 'mcmc-converged'; ")
    assert " has no claim under add-or-remove-one; set" in named(1, unclaimed, "DP002")
    assert " has no claim under add-or-remove-one, nor has another step; set" in named(2, unclaimed, "DP002")
    assert " has no claim under add-or-remove-one, nor have 2 other steps; set" in named(3, unclaimed, "DP002")


@pytest.mark.parametrize(
    ("schema", "remedy"),
    [
        (SCHEMA, 'set relation = "replace-one" in the study and the public row count in the schema (rows = ...)'),
        (COUNTED, 'set relation = "replace-one" in the study; some queries need no more than a public bound on the '
         "count (max_rows = ... in place of rows)"),
        (UNCOUNTED, 'set relation = "replace-one" in the study and the public row count in the schema (rows = ...); '
         "some queries need no more than a public bound on the count (max_rows = ... in place of rows)"),
    ],
)  # fmt: skip
def test_a_claim_under_replace_one_needs_what_the_schema_lacks(
    plan_of: Callable[..., dpf.StudyPlan], schema: dpf.Schema, remedy: str
) -> None:
    (message,) = messages(found(plan_of, asked(told(None, 1)), {"schema": schema}), "DP002")
    assert message == f"step 'q': told has no claim under add-or-remove-one; {remedy}"


def test_one_fault_does_not_hide_the_next(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    def of(code: str, *queries: dpf.Query, **options: Any) -> list[str]:
        steps = [dpf.step(name, query, DiscreteLaplace(1)) for name, query in zip("abc", queries, strict=False)]
        return messages(found(plan_of, dpf.sequential(*steps), options), code)

    for queries in itertools.permutations((Told(), told(None, 1), told(0))):
        assert len(of("DP002", *queries)) == 1
        assert len(of("DP004", *queries)) == 2
    chained = count("a", assumptions=["mcmc-converged"])
    of_step, of_unit = messages(found(plan_of, chained, {"unit": TWO}), "DP005")
    assert of_step.startswith("step 'a' assumes 'mcmc-converged'; list it")
    assert of_unit.startswith("the study assumes 'rows-per-unit-asserted'; name the unit's column (unit), or list it")


def test_an_unknown_use_is_found_beside_a_partition(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    parts, wrong = dpf.parallel(count("part", "0.1"), by=SCHEMA["a"]), dpf.post("p", ["rowz"])
    for nodes in itertools.permutations((parts, count("rows", "0.1"), wrong)):
        (message,) = messages(found(plan_of, dpf.sequential(*nodes), {}), "DP016")
        assert message.startswith("'p' in the plan uses 'rowz', which is not there; did you mean 'rows'")


@pytest.mark.parametrize(
    ("mechanism", "caps", "lacks"),
    [
        (DiscreteLaplace, {"epsilon": 1}, None),
        (DiscreteLaplace, {"rho": "0.1"}, None),
        (Gaussian, {"rho": "0.1"}, None),
        (Gaussian, {"epsilon": 1, "rho": "0.1"}, "epsilon"),
    ],
)
def test_a_block_caps_what_its_releases_have_a_claim_in(
    plan_of: Callable[..., dpf.StudyPlan], mechanism: Any, caps: dict[str, Any], lacks: str | None
) -> None:
    block = dpf.spend("b", dpf.kind("n", dpf.queries.Count(), mechanism), **caps)
    for node in (block, dpf.sequential(count("rows", "0.1"), block)):
        own = messages(found(plan_of, node, {"delta": "1e-6", "epsilon": 5}), "DP014")
        assert len(own) == (lacks is not None)
        assert all(f"has no claim in {lacks}, which block 'b' caps; leave that cap out" in message for message in own)


def test_parts_are_told_by_their_name(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    for name, what in ((None, "a parallel in the plan"), ("halves", "parallel 'halves' in the plan")):
        (message,) = messages(found(plan_of, dpf.sequential(dpf.parallel(count(), name=name)), {}), "DP003")
        assert message.startswith(f"{what} does not say how its parts are made; ")


def test_only_a_code_of_a_built_in_check_has_a_page() -> None:
    assert all(check_page(check.code) for check in BUILT_IN)
    assert [check_page(code) for code in ("DP999", "XY001", "../pages/DP001", "./DP001", "")] == [None] * 5


def test_a_page_has_sections_by_name_without_marks() -> None:
    page = CheckPage("XY001", "# A\n\n**What it finds.** A `plan`\nof *much*.\n\nMore.\n\n**Why it matters.** So.\n")
    assert page.section("What it finds") == "A plan of much."
    assert page.section("Why it matters") == "So."
    assert page.section("What to do") == ""


def test_findings_show_themselves_where_there_are_some() -> None:
    assert "no findings" in Findings()._repr_html_()
    one = Finding("DP001", Severity.ERROR, "too much")
    assert "no findings" not in Findings([one])._repr_html_()
    for shown in (one._repr_html_(), Findings([one])._repr_html_()):
        assert all(text in shown for text in ("DP001", "error", "too much"))


def test_every_code_has_a_case() -> None:
    assert sorted(check.code for check in BUILT_IN) == sorted(CASES)
    assert len({check.title for check in BUILT_IN}) == len(BUILT_IN)


def test_a_sound_plan_has_no_findings(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    for relation in BOTH:
        node = dpf.sequential(
            count("rows", "0.4"), best("0.5"), dpf.parallel(count("part", "0.1"), by=dpf.FromRelease("best"))
        )
        assert found(plan_of, node, {"schema": UNCOUNTED, "relation": relation, "epsilon": 1, "unit": PERSON}) == []


def test_an_owner_who_would_rather_be_stopped_says_so_by_name() -> None:
    def codes(**options: Any) -> list[tuple[str, str]]:
        study = dpf.Study(UNCOUNTED, epsilon=1, unit="id", **options)
        study.add_plan("n", count())
        again = dpf.StudyPlan.from_json(study.plan().to_json())
        assert again == study.plan()
        return [(finding.code, finding.severity.value) for finding in again.check()]

    assert codes() == codes(out_of_domain="missing") == []
    assert codes(out_of_domain="error") == [("DP021", "error")]
    assert codes(allow=["data-fits-schema"]) == [("DP021", "warning")]
    assert codes(allow=["data-fits-schema"], out_of_domain="clamp") == [("DP015", "warning")]
    hashes = set()
    for policy in ("clamp", "missing", "error"):
        study = dpf.Study(UNCOUNTED, epsilon=1, out_of_domain=policy)
        study.add_plan("n", count())
        hashes.add(study.plan().hash)
    assert len(hashes) == 3


def test_findings_are_drawn_by_check_with_how_many_each_has_the_gravest_first() -> None:
    kinds = [("DP021", "info", 3), ("DP001", "error", 1), ("DP025", "warning", 2)]
    some = Findings(Finding(code, Severity(kind), str(k)) for code, kind, times in kinds for k in range(times))
    axes = some.plot()
    drawn = [
        (label.get_text(), bar.get_width()) for label, bar in zip(axes.get_yticklabels(), axes.patches, strict=True)
    ]
    assert drawn == [("DP001 error", 1), ("DP025 warning", 2), ("DP021 info", 3)]
    assert axes.yaxis_inverted()
    assert axes.get_title() == "6 findings"


def test_errors_come_first_and_each_finding_once(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    twice = dpf.sequential(asked(told(None)), count("n"), count("n"))
    of = found(plan_of, twice, {"epsilon": 1, "allow": ("mcmc",)})
    assert [f.severity.value for f in of] == sorted(
        (f.severity.value for f in of), key=["error", "warning", "info"].index
    )
    assert len(of) == len(set(of))
    assert of[0].to_dict().keys() == {"code", "severity", "message"}
    assert str(of[0]).startswith(f"{of[0].code} error: ")


def test_checks_read_plans_from_files(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(dpf.sequential(count(), best("0.001")), SCHEMA, epsilon="0.5")
    assert dpf.StudyPlan.from_json(plan.to_json()).check() == plan.check()


@pytest.mark.parametrize("code", ["", "dp001", "DP1", "DP0001", "D001"])
def test_codes_have_a_form(code: str) -> None:
    with pytest.raises(dpf.InputError, match="two to ten capitals"):
        dpf.Check(code, "a check", lambda plan: [])


def test_steps_without_a_proof_are_named_in_one_sentence(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    for steps, what in (
        ([count()], "the claim of step 'n' is"),
        ([count("a"), count("b")], "the claims of steps 'a', 'b' are"),
    ):
        plan = plan_of(dpf.sequential(*steps), SCHEMA).with_verified(VerificationRecords())
        (message,) = (one.message for one in plan.check() if one.code == "DP030")
        assert message == f"{what} neither proved nor tested according to the given records"


def test_noise_that_overflows_is_one_sentence(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    with pytest.raises(dpf.InputError, match="laplace on told: the noise would be too large"):
        found(plan_of, asked(told(1), Laplace("1e-40")), {})


def test_noise_that_is_allowed_and_that_no_result_has_is_found(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    for name in ("noisy-selection", "noisy-result"):
        plan = plan_of(dpf.sequential(best(1), count()), SCHEMA, ADD, allow=[name])
        assert messages(findings(plan), "DP015") == [f"the study allows '{name}', and no known error is that large"]
        noisy = plan_of(dpf.sequential(best("0.05"), count(epsilon="0.01")), SCHEMA, ADD, allow=[name])
        assert not messages(findings(noisy), "DP015")


def test_results_that_are_alike_are_one_finding(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    for k in range(9):
        study.add(f"part {k}", dpf.miner("histogram", attribute="c", epsilon="0.01"))
    (told,) = messages(study.plan().check(), "DP025")
    assert told.startswith("result 'part 0' and 8 more: counts of 'c': each may be off by 300 rows")


@pytest.mark.parametrize(
    ("kind", "amount", "unit", "text"),
    [
        ("counts", 1234.2, "rows", "each may be off by 1,240 rows"),
        ("number", 1234.2, "years", "it may be off by 1.23e+03 years"),
        ("number", 0.51, "", "it may be off by 0.51"),
        ("choice", 0.51, "rows", "the choice may be worse than the best by 1 rows"),
    ],
)
def test_an_error_is_told_in_its_unit(kind: str, amount: float, unit: str, text: str) -> None:
    assert large_noise_checks._error_of(ErrorBound("that", amount, unit, kind)) == text


@pytest.mark.parametrize(
    ("within", "threshold", "text"),
    [(3, 0.5, " 6 times"), (1.01, 1, " 1.1 times"), (3, 0, ""), (3, -1, ""), (float("inf"), 1, "")],
)
def test_how_many_times_less_noise_is_enough(within: float, threshold: float, text: str) -> None:
    assert large_noise_checks._factor_text(within, threshold) == text


@pytest.mark.parametrize(
    ("allowed", "meant"),
    [("noisy-reslt", "noisy-result"), ("mcmc-convergd", "mcmc-converged"), ("ours-onIy", "ours-only")],
)
def test_a_misspelt_allowance_is_refused_with_what_was_meant(
    plan_of: Callable[..., dpf.StudyPlan], allowed: str, meant: str
) -> None:
    node = count(assumptions=["ours-only"])
    for names in ([allowed], ["ours-only", allowed], [allowed, "ours-only"], ["one-row-per-person", allowed]):
        plan = plan_of(node, SCHEMA, ADD, epsilon=1, allow=names)
        (message,) = messages(findings(plan), "DP015")
        assert message == f"the study allows '{allowed}', which is no known assumption or risk; did you mean '{meant}'?"


@pytest.mark.parametrize(
    ("allowed", "options"),
    [
        ("large-epsilon", {"epsilon": 12, "node": count(epsilon=12)}),
        ("large-delta", {"delta": "0.01"}),
        ("one-row-per-person", {}),
        ("unit-weaker-than-ids", {"schema": WITH_IDS}),
    ],
)
def test_what_is_allowed_is_needed_or_said_not_to_be(
    plan_of: Callable[..., dpf.StudyPlan], allowed: str, options: dict[str, Any]
) -> None:
    needing = {"node": count(), "schema": SCHEMA, "allow": [allowed]} | options
    assert messages(found(plan_of, needing.pop("node"), needing), "DP015") == []
    other = found(plan_of, count(epsilon="0.1"), {"schema": UNCOUNTED, "unit": PERSON, "allow": [allowed]})
    assert messages(other, "DP015") == [f"the study allows '{allowed}', and nothing in the plan needs it"]


@pytest.mark.parametrize("severity", [dpf.Severity.ERROR, "error"])
def test_an_error_of_a_plugin_refuses_the_plan_however_it_is_written(
    severity: str, plan_of: Callable[..., Any]
) -> None:
    """The text "error" is equal to the severity, but it is another object."""
    plan = plan_of(count(), SCHEMA)
    (found,) = dpf.Check("ACME001", "ours only", lambda _: [(severity, "not ours")]).findings(plan)
    assert found.severity is dpf.Severity.ERROR
    assert found.to_dict() == {"code": "ACME001", "severity": "error", "message": "not ours"}


def raises(_: Any) -> Any:
    raise KeyError("budget")


NO_FINDINGS: dict[str, tuple[Any, str]] = {
    "upper case": (
        lambda _: [("ERROR", "not ours")],
        "yields the severity 'ERROR'; accepted: 'error', 'warning'",
    ),
    "no severity": (lambda _: [("critical", "not ours")], "yields the severity 'critical'; accepted: 'error'"),
    "a finding": (lambda _: [dpf.Finding("ACME001", dpf.Severity.ERROR, "not ours")], "yields Finding, not a pair"),
    "a text": (lambda _: ["not ours"], "yields str, not a pair of a severity and a text"),
    "one pair": (lambda _: (dpf.Severity.ERROR, "not ours"), "yields Severity, not a pair"),
    "three things": (lambda _: [(dpf.Severity.ERROR, "not", "ours")], "yields tuple, not a pair"),
    "a number": (lambda _: [(dpf.Severity.ERROR, 7)], "yields tuple, not a pair"),
    "nothing": (lambda _: None, "failed with TypeError: 'NoneType' object is not iterable"),
    "an error": (raises, "failed with KeyError: 'budget'"),
}


@pytest.mark.parametrize("what", NO_FINDINGS)
def test_what_a_check_yields_in_place_of_findings_is_refused_with_its_name(
    what: str, plan_of: Callable[..., Any]
) -> None:
    """Nobody knows whether it was to refuse the plan."""
    examine, says = NO_FINDINGS[what]
    plan = plan_of(count(), SCHEMA)
    with pytest.raises(dpf.InputError, match=rf"^check ACME001 \(ours only\) {re.escape(says)}"):
        list(dpf.Check("ACME001", "ours only", examine).findings(plan))


def test_a_mechanism_without_a_claim_in_parts_is_told_from_one_without_any() -> None:
    """Keys of a person with several rows have a claim with Gaussian noise, but not where parts may divide the rows."""
    schema = dpf.Schema([dpf.Open("page"), dpf.Categorical("country", ["A", "B"])])
    keys = dpf.step("keys", dpf.queries.Keys("page"), dpf.mechanisms.GaussianThreshold("0.01", "1e-6"))
    found = {}
    for name, node in (("whole", keys), ("parts", dpf.parallel(keys, by=schema["country"]))):
        study = dpf.Study(schema, epsilon=1, delta="1e-5", unit="device", rows_per_unit=10)
        study.add_plan("keys", node)
        found[name] = [str(finding) for finding in study.plan().refusals()]
    assert found["whole"] == []
    (told,) = found["parts"]
    assert told.endswith(
        "has no claim for one device, by at most 10 of its rows, if these lie in different parts; use another "
        "mechanism, or release it outside of the parts"
    )
