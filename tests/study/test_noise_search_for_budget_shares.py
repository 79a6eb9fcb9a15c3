"""Shares of a budget: what they buy, that their total is the budget, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import attrs
import pytest
from noisy_mode import NoisyMode
from people import study_file

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts.privacy_losses import last_digit, rho_below
from dpframework.results.error_bounds import ErrorBound, TableSize
from dpframework.study import epsilon_for_accuracy, noise_search_for_budget_shares as shares_module
from dpframework.study.miner_from_parameters import build_miner
from dpframework.study.noise_search_for_budget_shares import noise
from dpframework.study.study_file import load_study

DELTA = Fraction(1, 10**6)
FIRST_PAGE = Path(__file__).parents[2] / "docs" / "examples" / "adult" / "first-page.toml"
COLOURS = dpf.Schema([dpf.Categorical(f"colour {k}", ["red", "green", "blue"]) for k in range(100)])


@attrs.frozen
class Gaussians(dpf.Miner):
    """Release several histograms in zCDP, and nothing purely."""

    name = "gaussians"
    attribute: str
    rho: Fraction
    times: int = 2

    def plan(self, schema):
        counts = dpf.queries.Histogram(schema[self.attribute])
        return dpf.repeat(self.times, dpf.step("counts", counts, dpf.mechanisms.Gaussian(self.rho / self.times)))

    def mine(self, table):
        return [table.release("counts") for _ in range(self.times)]


@attrs.frozen
class Asks(dpf.Miner):
    """Ask what there is, and divide it by what is known of it."""

    name = "asks"
    attribute: str
    parts: tuple[Fraction, ...]
    seen: Fraction = Fraction(0)

    @classmethod
    def ways_to_spend(cls, epsilon, delta):
        return ({"parts": (epsilon / 4, 3 * epsilon / 4), "seen": delta},)

    def plan(self, schema):
        counts = dpf.queries.Histogram(schema[self.attribute])
        steps = [dpf.step(f"part {k}", counts, dpf.mechanisms.DiscreteLaplace(e)) for k, e in enumerate(self.parts)]
        return dpf.sequential(*steps)

    def mine(self, table):
        return None


@attrs.frozen
class Several(dpf.Miner):
    """Count all rows, and by two attributes."""

    name = "several"
    epsilon: Fraction

    def plan(self, schema):
        counting = dpf.mechanisms.DiscreteLaplace(self.epsilon / 3)
        queries = [dpf.queries.Count(), *map(dpf.queries.Histogram, list(schema)[:2])]
        return dpf.sequential(*(dpf.step(name, query, counting) for name, query in zip("abc", queries, strict=True)))

    def mine(self, table):
        return [table.release(name) for name in "abc"]


def histograms(number: int, share: object, **options: object) -> dpf.Study:
    study = dpf.Study(COLOURS, epsilon=1, **options)
    for k in range(number):
        study.add(f"step {k}", dpf.share(share, "histogram", attribute=f"colour {k}"))
    return study


def test_pure_shares_are_exact_parts_of_the_budget():
    study = dpf.Study(COLOURS, epsilon="0.7")
    for k, share in enumerate((0.1, "1/3", Fraction(17, 30))):
        study.add(str(k), dpf.share(share, "histogram", attribute=f"colour {k}"))
    assert [m.epsilon for m in study.miners.values()] == [Fraction(7, 100), Fraction(7, 30), Fraction(119, 300)]
    assert study.plan().total() == dpf.PrivacyLoss("0.7")


def test_shares_below_one_leave_the_rest_of_the_budget():
    study = histograms(2, "0.2")
    assert study.plan().total() == dpf.PrivacyLoss("0.4")
    assert histograms(20, "0.01", delta=DELTA).plan().total().epsilon <= Fraction(1, 5)


def test_steps_with_an_epsilon_and_steps_with_a_share_are_one_budget():
    study = histograms(1, "0.4")
    study.add("own", dpf.miner("histogram", attribute="colour 1", epsilon="0.6"))
    assert study.plan().total() == dpf.PrivacyLoss(1)
    study.add("more", dpf.miner("histogram", attribute="colour 2", epsilon="0.1"))
    with pytest.raises(
        dpf.InputError, match=r"shares add up to 0\.4 of the budget 1\.0, and the other steps cost 0\.7"
    ):
        study.plan()


def test_the_hundredth_step_with_a_share_takes_no_more_sums_than_the_tenth(monkeypatch):
    """A study of a wide table has thousands of steps, and to add up all shares at each took most of its time."""
    study, sums, plain = dpf.Study(COLOURS, epsilon=1), [0], Fraction.__add__

    def counting(one, other):
        sums[0] += 1
        return plain(one, other)

    monkeypatch.setattr(Fraction, "__add__", counting)
    taken = []
    for k in range(100):
        before = sums[0]
        study.add(f"colour {k}", dpf.share(Fraction(1, 100), "histogram", attribute=f"colour {k}"))
        taken.append(sums[0] - before)
    assert taken[99] <= taken[9]
    with pytest.raises(dpf.InputError, match=r"shares add up to 1\.01; at most 1"):
        study.add("more", dpf.share("0.01", "histogram", attribute="colour 1"))


def test_a_miner_that_costs_less_than_its_epsilon_gets_more_until_the_total_is_the_budget():
    @attrs.frozen
    class Thrifty(NoisyMode):
        """Spend two thirds of what it is given."""

        name = "thrifty"

        def plan(self, schema):
            return attrs.evolve(self, epsilon=self.epsilon * Fraction(2, 3)).release(schema)

        def release(self, schema):
            return NoisyMode.plan(self, schema)

    study = dpf.Study(COLOURS, epsilon=1)
    study.add("mode", dpf.share(1, Thrifty, attribute="colour 0"))
    assert study.miners["mode"].epsilon == Fraction(3, 2)
    assert study.plan().total() == dpf.PrivacyLoss(1)


def test_a_hundred_histograms_have_at_most_four_tenths_of_the_noise_of_epsilons_that_add_up():
    plain, delta = histograms(100, "0.01").plan(), histograms(100, "0.01", delta=DELTA).plan()
    usual, found = noise(plain), noise(delta)
    assert usual.keys() == found.keys()
    assert len(found) == 100
    assert all(141 < usual[path] < 142 for path in usual)
    assert max(found[path] / usual[path] for path in found) <= 0.4
    assert Fraction(999, 1000) < delta.total().epsilon <= 1
    assert not [finding for finding in delta.check() if finding.severity == "error"]


def first_page(delta: object, epsilon: object) -> dpf.StudyPlan:
    page = load_study(FIRST_PAGE).study
    study = dpf.Study(page.schema, epsilon=epsilon, delta=delta)
    for name, share in page.shares().shares.items():
        study.add(name, share)
    return study.plan()


@pytest.mark.parametrize("epsilon", [1, "0.1", 8])
def test_a_delta_gives_no_release_of_the_first_page_more_noise(epsilon):
    plain, found = first_page(0, epsilon), first_page(DELTA, epsilon)
    usual, own = noise(plain), noise(found)
    assert usual.keys() == own.keys()
    assert len(own) == 14
    assert all(own[path] <= usual[path] * (1 + 1e-9) for path in own)
    assert found.total().epsilon <= dpf.facts.exact(epsilon)


def test_the_first_page_is_planned_checked_run_and_reported(example_with_data, tmp_path, capsys):
    page = example_with_data("adult") / FIRST_PAGE.name
    assert "share = " in FIRST_PAGE.read_text()
    assert "epsilon = 0" not in FIRST_PAGE.read_text()
    assert main(["plan", str(page)]) == main(["check", str(page)]) == 0
    assert main(["run", str(page), "--seed", "1", "--out", str(tmp_path / "page")]) == 0
    capsys.readouterr()
    plan = json.loads((tmp_path / "page" / "plan.json").read_text())
    assert plan["miners"]["age"]["parameters"]["epsilon"] == "1/10"  # an auditor sees plain epsilons
    assert "share" not in json.dumps(plan["miners"])
    assert "median age" in (tmp_path / "page" / "report.html").read_text()


def test_a_plan_of_shares_is_that_of_the_numbers_that_were_found():
    study = histograms(5, "0.2", delta=DELTA)
    own = dpf.Study(COLOURS, epsilon=1, delta=DELTA)
    for name, miner in study.miners.items():
        own.add(name, miner)
    assert own.plan().hash == study.plan().hash
    assert dpf.StudyPlan.from_json(study.plan().to_json()).total() == study.plan().total()


def test_miners_in_zcdp_learn_their_share():
    study = dpf.Study(COLOURS, epsilon=2, delta=DELTA)
    study.add("gaussians", dpf.share("0.6", Gaussians, attribute="colour 0"))
    study.add("rows", dpf.share("0.4", NoisyMode, attribute="colour 1"))
    total = study.plan().total().epsilon
    assert Fraction(1999, 1000) < total <= 2
    assert study.miners["rows"].epsilon >= Fraction(8, 10)
    assert study.miners["gaussians"].rho > rho_below(Fraction(12, 10), DELTA)


def test_the_closed_form_of_rho_stays_within_epsilon():
    for epsilon in (Fraction(1, 1000), Fraction(1), Fraction(50)):
        for delta in (DELTA, Fraction(1, 10**12), Fraction(1, 10)):
            rho = rho_below(epsilon, delta)
            assert rho > 0
            cost = dpf.accountant.zcdp_to_epsilon(rho, delta)
            assert cost <= epsilon + Fraction(1, 10**9)  # totals are rounded up to nine decimals


def test_a_miner_may_ask_what_budget_it_has():
    study = dpf.Study(COLOURS, epsilon=2, delta=DELTA)
    study.add("asks", dpf.share("0.5", Asks, attribute="colour 0"))
    miner = study.miners["asks"]
    assert miner.seen == DELTA
    assert miner.parts[1] == 3 * miner.parts[0]
    assert study.plan().total().epsilon <= 1
    assert sum(miner.parts) >= 1


def test_a_share_is_first_planned_with_its_part_of_the_budget():
    planned = []

    @attrs.frozen
    class Recording(NoisyMode):
        """Remember with which epsilon it is planned."""

        name = "recording"

        def plan(self, schema):
            planned.append(self.epsilon)
            return NoisyMode.plan(self, schema)

    study = dpf.Study(COLOURS, epsilon=4)
    study.add("mode", dpf.share("0.5", Recording, attribute="colour 0"))
    assert planned[0] == 2


def test_adding_a_step_finds_all_parameters_again():
    study = histograms(1, "0.5", delta=DELTA)
    assert study.plan().total().epsilon <= Fraction(1, 2)
    before = study.miners["step 0"].epsilon
    study.add("own", dpf.miner("histogram", attribute="colour 7", epsilon="0.5"))
    assert study.plan().total().epsilon <= 1
    assert study.miners["step 0"].epsilon >= before / 2


def test_the_total_decides_and_not_the_search(monkeypatch):
    """Whatever the search thinks of scales, what it keeps has a total within the shares."""
    study = histograms(30, "0.02", delta=DELTA)
    totals = []
    known = shares_module.Shares.total

    def heard(self, nodes):
        totals.append(known(self, nodes))
        return totals[-1]

    monkeypatch.setattr(shares_module.Shares, "total", heard)
    assert study.plan().total().epsilon <= Fraction(3, 5)
    assert any(total is not None and total > Fraction(3, 5) for total in totals)  # it did try more than there is


def test_what_a_wrong_search_finds_is_refused(monkeypatch):
    monkeypatch.setattr(shares_module, "_last_that_fits", lambda over: 10**7)
    with pytest.raises(dpf.InputError, match="the parameters that were found cost more than the shares may spend"):
        histograms(30, "0.02", delta=DELTA).plan()


@pytest.mark.parametrize("last", [1, 2, 700, 500_000, 10**6 - 1, 10**6, 10**6 + 1, 1234567, 2 * 10**6, 999 * 10**6])
def test_the_last_number_of_steps_that_fits_is_found(last):
    """However totals grow beyond it: by little, by much, or to none at all."""
    for over in (
        lambda steps: 1e-12 * (steps - last),
        lambda steps: -1.0 if steps <= last else 1e-9,
        lambda steps: -1e-9 if steps <= last else math.inf,
        lambda steps: float(steps - last) if steps <= last else math.inf,
        lambda steps: float((steps - last) ** 3),
    ):
        if last < 2**-10 * 10**6:
            with pytest.raises(dpf.InputError, match="no parameters were found"):
                shares_module._last_that_fits(over)
        else:
            assert shares_module._last_that_fits(over) == last


def test_a_way_to_spend_that_makes_more_noise_is_not_taken(monkeypatch):
    plain = histograms(100, "0.01").plan()
    monkeypatch.setattr(shares_module.Shares, "_other_way", lambda self, name: (1, Fraction(1, 10**5)))
    study = histograms(100, "0.01", delta=DELTA)
    assert all(miner.rho is None for miner in study.miners.values())
    found, usual = noise(study.plan()), noise(plain)
    assert all(found[path] <= usual[path] for path in found)


def test_a_share_runs_and_spends_what_was_planned():
    study = histograms(2, "0.5", delta=DELTA)
    table = dpf.Table.from_codes(COLOURS, [[0, 1, 2]] * 100)
    results = study.run(table, seed=1)
    assert results.spent == study.plan().total()
    assert results.spent.epsilon <= 1


def test_without_a_valid_total_the_checks_say_why():
    schema = dpf.Schema([dpf.Boolean("ill")], rows=10)

    @attrs.frozen
    class Entropy(NoisyMode):
        """Ask what is declared under the other relation only."""

        name = "other-relation"

        def plan(self, schema):
            facts = attrs.evolve(
                dpf.queries.Histogram(schema["ill"]).facts(), sensitivities=(dpf.Sensitivity("l1", None, 1, source=""),)
            )
            return dpf.step("odd", dpf.queries.PlanFileQuery(facts), dpf.mechanisms.DiscreteLaplace(self.epsilon))

    study = dpf.Study(schema, epsilon=1)
    study.add("odd", dpf.share(1, Entropy, attribute="ill"))
    assert "DP002" in {finding.code for finding in study.plan().check()}


STUDY = study_file(
    "1.0",
    """
[[step]]
name = "ill"
miner = "histogram"
share = 0.4
params = { attribute = "ill" }
[[step]]
name = "ages"
miner = "histogram"
share = 0.6
params = { attribute = "age" }
""",
)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("0.4", "1.5", r"step 'ill': share is 1\.5; a number above 0 and at most 1 is needed"),
        ("0.4", "0", r"step 'ill': share is 0\.0; a number above 0 and at most 1 is needed"),
        ("0.4", "-0.1", r"step 'ill': share is -0\.1; it cannot be negative"),
        ("0.4", "nan", "step 'ill': share is nan; write a finite number"),
        ("0.4", '"all"', "step 'ill': share is 'all'; write a finite number"),
        ("0.4", "0.41", r"step 'ages': the study's shares add up to 1\.01; at most 1 can be shared"),
        ("share = 0.4", "share = 0.4\nepsilon = 0.4", "step 'ill': has an epsilon and a share of the budget; give one"),
        ("share = 0.4", "", "step 'ill': has neither an epsilon nor a share of the budget; write epsilon"),
        ('"ill" }', '"ill", share = 0.4 }', "step 'ill': share is a key of the step itself, not of its params"),
        ('"ill" }', '"ill", rho = 0.4 }', "'histogram' has a share and the parameter 'rho'; give one"),
        ("epsilon = 1.0", "", r"\[privacy\] has no 'epsilon'"),
    ],
)
def test_a_study_file_with_a_wrong_share_is_one_sentence(write, capsys, old, new, sentence):
    path = write(STUDY.replace(old, new, 1))
    for command in (["plan", str(path)], ["run", str(path), "--out", str(path.parent / "out")]):
        assert main(command) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        assert re.search(sentence, err)
    assert not (path.parent / "out").exists()  # and there is no data file, which nobody has looked for


def test_shares_of_an_absurd_epsilon_add_up_and_nothing_is_searched(monkeypatch):
    monkeypatch.setattr(shares_module.Shares, "_search", lambda *_: pytest.fail("searched"))
    study = dpf.Study(COLOURS, epsilon=2**63, delta=DELTA)
    for k in range(2):
        study.add(f"step {k}", dpf.share("0.5", "histogram", attribute=f"colour {k}"))
    study.plan()
    assert [miner.epsilon for miner in study.miners.values()] == [2**62, 2**62]


def test_a_study_file_s_shares_are_planned(write, capsys):
    assert main(["plan", str(write(STUDY)), "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert [miner["parameters"]["epsilon"] for miner in form["miners"].values()] == ["2/5", "3/5"]


def test_what_cannot_have_a_share():
    for wrong in (3, NoisyMode("ill", 1), dict):
        with pytest.raises(dpf.InputError, match="a share is given to a miner's name or class"):
            dpf.share(0.5, wrong)
    with pytest.raises(dpf.InputError, match="no miner is named 'histogran'; did you mean 'histogram'"):
        dpf.share(0.5, "histogran")
    study = dpf.Study(COLOURS, epsilon=1)
    with pytest.raises(dpf.InputError, match="'gaussians' has no budget that a share could set without a delta"):
        study.add("g", dpf.share(0.5, Gaussians, attribute="colour 0"))
    with pytest.raises(dpf.InputError, match="step 'h': miner 'histogram' has no parameter 'atribute'"):
        study.add("h", dpf.share(0.5, "histogram", atribute="colour 0"))
    with pytest.raises(dpf.InputError, match="colour x"):
        study.add("h", dpf.share(0.5, "histogram", attribute="colour x"))
    study.add("h", dpf.share(0.9, "histogram", attribute="colour 0"))  # what was refused took nothing
    with pytest.raises(dpf.InputError, match="step 'h' is in the study twice"):
        study.add("h", dpf.share(0.1, "histogram", attribute="colour 0"))
    assert study.plan().total() == dpf.PrivacyLoss("0.9")


def mixed(delta: object = 0) -> dpf.Study:
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, bins=10)], rows=1000)
    study = dpf.Study(schema, epsilon=1, delta=delta)
    study.add("own", dpf.miner("histogram", attribute="ill", epsilon="0.2"))
    study.add("median", dpf.share("0.3", "quantile", attribute="age"))
    study.add("shared", dpf.share("0.2", "histogram", attribute="age"))
    study.add_plan("planned", dpf.step("n", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace("0.1")))
    return study


@pytest.mark.parametrize("delta", [0, DELTA])
def test_an_epsilon_is_just_enough_for_the_error_that_is_asked_for(delta):
    study = mixed(delta)
    for step, within in (("own", 30), ("own/counts", "1 %"), ("own", 2)):
        needed = study.epsilon_for(step, within=within)
        error = 10 if within == "1 %" else within

        def is_enough(epsilon, error=error, delta=delta):
            one = dpf.Study(study.schema, epsilon=epsilon, delta=delta)
            one.add("own", dpf.miner("histogram", attribute="ill", epsilon=epsilon))
            return one.plan().previews()["own/counts"].within <= error

        assert is_enough(needed)
        assert not is_enough(needed * Fraction(9999, 10000))


@pytest.mark.parametrize("delta", [0, DELTA])
def test_the_epsilon_of_a_share_is_the_study_s(delta):
    study = mixed(delta)
    needed = study.epsilon_for("shared", within=8)
    assert study.with_epsilon(needed).plan().previews()["shared/counts"].within <= 8
    assert study.with_epsilon(needed * Fraction(98, 100)).plan().previews()["shared/counts"].within > 8
    assert study.epsilon_for("own", within="1e30") > 0  # at a smaller one the noise is too large for integers
    others = study.epsilon_for("shared", within=10**6)  # the steps with an epsilon cost 0.3, and half is left for them
    assert others == Fraction(3, 5) if not delta else Fraction(59, 100) < others <= Fraction(3, 5)


def test_asking_for_an_epsilon_reads_and_finds_nothing_else(monkeypatch):
    study = mixed(DELTA)
    monkeypatch.setattr(shares_module.Shares, "found", None)  # calling it would fail
    assert study.epsilon_for("own", within=30) > 0


@pytest.mark.parametrize(
    ("step", "options", "sentence"),
    [
        ("onw", {"within": 3}, "the study has no step 'onw'; did you mean 'own'"),
        ("own", {"within": 0}, "within is 0; write a number above 0"),
        ("own", {"within": "-2 %"}, "within is -2.0; it cannot be negative"),
        ("own", {"within": "much"}, "within is 'much'; write a finite number"),
        ("own", {"within": "1 %", "rows": 0}, "rows is 0; write a number above 0"),
        ("own/nothing", {"within": 3}, "the study has no step 'own/nothing'; known: own/counts"),
        ("tree", {"within": "1 %"}, "step 'tree' makes several releases; name one of them, such as 'tree/"),
        ("three", {"within": 3}, "several releases; name one of them, such as 'three/a' or 'three/b'$"),
        ("planned", {"within": 3}, "step 'planned' has no epsilon that could change"),
        ("two", {"within": 3}, "step 'two' has no epsilon that could change"),
        ("gaussian", {"within": 3}, "step 'gaussian' has no epsilon that could change"),
        ("mean", {"within": "1e-80"}, "no epsilon makes 'mean' that accurate"),
    ],
)
def test_an_epsilon_that_cannot_be_found_is_one_sentence(step, options, sentence):
    study = mixed(DELTA)
    one = dpf.queries.Count()
    study.add_plan(
        "two", dpf.sequential(*(dpf.step(name, one, dpf.mechanisms.DiscreteLaplace("0.01")) for name in ("a", "b")))
    )
    study.add("three", Several(Fraction(1, 100)))
    study.add("mean", dpf.miner("mean", attribute="age", epsilon="0.01"))
    study.add("gaussian", dpf.miner("histogram", attribute="ill", rho="0.0001"))
    study.add("tree", dpf.miner("dp-id3", target="ill", epsilon="0.01"))
    with pytest.raises(dpf.InputError, match=sentence):
        study.epsilon_for(step, **options)


@pytest.mark.parametrize(
    ("about", "note", "sentence"),
    [
        (None, "depends on the rows", "the error of 'own' depends on the number of rows, which is not public; give"),
        (
            100,
            "depends on the rows",
            "'own' has no error bound from which an epsilon could be found: depends on the rows",
        ),
        (None, "none is known", "'own' has no error bound from which an epsilon could be found: none is known"),
    ],
)
def test_an_error_without_a_bound_says_what_it_lacks(about, note, sentence, monkeypatch):
    bound = ErrorBound("that", None, size=TableSize(about=about), note=note)
    study = mixed(DELTA)
    monkeypatch.setattr(type(study.miners["own"]), "error_bounds", lambda *_: [bound])
    with pytest.raises(dpf.InputError, match=f"^{sentence}"):
        study.epsilon_for("own", within=3)


def test_a_percentage_needs_a_number_of_rows_that_is_public(write, capsys):
    path = str(write(STUDY.replace("share = 0.4", "epsilon = 0.4")))
    assert main(["epsilon", path, "ill", "--within", "2 %"]) == 2
    assert "a percentage for 'ill' depends on the number of rows, which is not public" in capsys.readouterr().err
    assert main(["epsilon", path, "ill", "--within", "2 %", "--rows", "1000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    error = told.pop("error")
    assert told == {"step": "ill", "within": "2 %", "epsilon": "0.146004", "of": "step"}
    assert (error["amount"], error["unit"], error["rows"], error["confidence"]) == (20, "rows", 1000, 0.95)
    assert main(["epsilon", path, "ages", "--within", "20", "--rows", "1000"]) == 0
    told = capsys.readouterr().out
    assert "for the study" in told
    assert "Counts of 'age': each within ±5 rows, 0.5 % of about 1,000 rows, in 95 % of releases." in told


# Making miners


@attrs.frozen
class Particular(dpf.Miner):
    """Needs two parameters, and refuses some."""

    name = "particular"
    epsilon: Fraction
    attribute: str = attrs.field()
    size: int = 3

    @attribute.validator
    def _check(self, _, value):
        if value == "wrong":
            raise ValueError("too wrong\nby far")
        if value == "empty":
            raise ValueError
        if value == "refused":
            raise dpf.InputError("attribute is refused")

    def plan(self, schema):
        return NoisyMode("colour 0", 1).plan(schema)

    def mine(self, table):
        return None


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {},
            "miner 'particular' needs the parameters 'epsilon', 'attribute'; `dpframework miners particular` explains "
            "its parameters",
        ),
        (
            {"epsilon": 1},
            "miner 'particular' needs the parameter 'attribute'; `dpframework miners particular` explains its "
            "parameters",
        ),
        ({"epsilon": 1, "atribute": "a"}, "miner 'particular' has no parameter 'atribute'; did you mean 'attribute'?"),
        ({"epsilon": 1, "attribute": "wrong"}, "miner 'particular' refuses its parameters: too wrong"),
        ({"epsilon": 1, "attribute": "empty"}, "miner 'particular' refuses its parameters: no reason given"),
        ({"epsilon": 1, "attribute": "refused"}, "miner 'particular': attribute is refused"),
    ],
)
def test_a_miner_that_cannot_be_made_is_one_sentence(parameters, sentence):
    with pytest.raises(dpf.InputError) as caught:
        build_miner(Particular, parameters)
    assert str(caught.value).rstrip("?") == sentence.rstrip("?")
    assert build_miner(Particular, {"epsilon": 1, "attribute": "a"}).size == 3


# What is searched


def test_shares_of_any_size_may_be_spent_in_another_way():
    """All miners as if epsilons added up, then all that know another way, then the smaller and smaller ones."""
    study = dpf.Study(COLOURS, epsilon=1, delta=DELTA)
    sizes = {"large": "0.5", "small": "0.1", "middle": "0.2", "one way": "0.15"}
    for k, (name, share) in enumerate(sizes.items()):
        kind = Asks if name == "one way" else "histogram"
        study.add(name, dpf.share(share, kind, attribute=f"colour {k}"))
    found = list(study.shares().choices())
    assert found[0] == dict.fromkeys(sizes, (0, 1))
    others = [{name for name, (way, _) in ways.items() if way == 1} for ways in found[1:]]
    assert others == [{"large", "small", "middle"}, {"small", "middle"}, {"small"}]


def test_a_miner_spends_its_share_of_the_scale_times_its_factor():
    study = dpf.Study(COLOURS, epsilon=1, delta=DELTA)
    factors = {"a": Fraction(3, 2), "b": Fraction(1), "c": Fraction(1, 2)}
    for k, name in enumerate(factors):
        study.add(name, dpf.share(Fraction(k + 1, 10), "histogram", attribute=f"colour {k}"))
    found = study.shares().miners_at({name: (0, factor) for name, factor in factors.items()}, Fraction(2, 3))
    assert {name: miner.epsilon for name, (miner, _) in found.items()} == {
        "a": Fraction(1, 10),
        "b": Fraction(2, 15),
        "c": Fraction(1, 10),
    }


@pytest.mark.parametrize("epsilon", [1, 4])
def test_another_way_has_the_noise_of_the_first_and_not_more(epsilon):
    study = dpf.Study(COLOURS, epsilon=epsilon, delta=DELTA)
    for k in range(3):
        study.add(f"step {k}", dpf.share("0.02", "histogram", attribute=f"colour {k}"))
    shares = study.shares()
    _, others = shares.choices()
    way, factor = others["step 1"]
    assert way == 1
    share, own = shares.shares["step 1"], Fraction(2, 100) * epsilon

    def noise_of(way, epsilon):
        miner = share.spending(way, epsilon, DELTA)
        (size,) = noise(shares.plan_of([shares.planned("step 1", miner)])).values()
        return size

    assert 1 - 1e-5 <= noise_of(1, own * factor) / noise_of(0, own) <= 1 + 1e-9


def test_the_noise_of_a_selection_is_its_gap_and_the_exponential_mechanism_s_counts_twice():
    counts = dpf.queries.Histogram(COLOURS["colour 0"])
    mechanisms = dpf.mechanisms
    steps = [
        dpf.step("permuted", counts, mechanisms.PermuteAndFlip(1)),
        dpf.step("exponential", counts, mechanisms.Exponential(1)),
        dpf.step("counts", counts, mechanisms.DiscreteLaplace(1)),
    ]
    study = dpf.Study(COLOURS, epsilon=3)
    study.add_plan("all", dpf.sequential(*steps))
    plan = study.plan()
    found = {path.split("/")[-1]: size for path, size in noise(plan).items()}
    expected = {path.split("/")[-1]: shown.expected for path, shown in plan.previews().items()}
    assert found["permuted"] == expected["permuted"]
    assert found["exponential"] == 2 * expected["exponential"]
    assert found["counts"] ** 2 == pytest.approx(2 * math.exp(-1) / (1 - math.exp(-1)) ** 2)


def test_how_much_larger_the_noise_is_at_most():
    ratio = shares_module._ratio
    assert ratio({"a": 2.0, "b": 1.5, "c": 1.0}, {"a": 1.0, "b": 0.5, "d": 0.1}) == 3
    assert ratio({"a": 2.0, "b": 1.0}, {"a": 0.0, "b": 4.0}) == 0.25
    assert ratio({"a": 2.0}, {"b": 1.0}) == ratio({}, {}) == 1


def test_ways_are_compared_by_their_totals_and_the_largest_scale_is_kept(monkeypatch):
    """Two ways whose totals cross: each is best at the scale that the other has, and one has the larger scale."""
    shares = histograms(1, 1, delta=DELTA).shares()
    ways = [{"step 0": (0, Fraction(1))}, {"step 0": (1, Fraction(1))}]
    monkeypatch.setattr(shares_module.Shares, "choices", lambda self: iter(ways))

    def total_at(self, chosen, scale):  # of the first: the scale itself; of the second: 1/2 and a third of it
        return scale if chosen == ways[0] else (Fraction(1, 2) + scale / 3 if scale < 2 else scale)

    monkeypatch.setattr(shares_module.Shares, "_total_at", total_at)
    assert shares._best(Fraction(1)) == (ways[1], Fraction(3, 2))
    monkeypatch.setattr(shares_module.Shares, "_total_at", lambda self, chosen, scale: None)
    with pytest.raises(dpf.InputError, match="no parameters were found"):
        shares._best(Fraction(1))


@pytest.mark.parametrize(
    ("total_at", "largest"),
    [
        (lambda scale: scale, 3),
        (lambda scale: scale * 7, Fraction(3, 7)),  # what adds up is found exactly
        (lambda scale: scale / 7, 21),
        (lambda scale: scale**2 / 3, 3),
        (lambda scale: scale**2, Fraction(1732050, 10**6)),  # in millionths of 3: 577,350 of them
        (lambda scale: None if scale > 1 else scale, 1),
        (lambda scale: scale if scale <= 1 else 5, 1),
    ],
)
def test_the_largest_scale_has_a_total_of_what_is_allowed(total_at, largest, monkeypatch):
    study = dpf.Study(COLOURS, epsilon=3)
    study.add("step 0", dpf.share(1, "histogram", attribute="colour 0"))
    shares = study.shares()
    monkeypatch.setattr(shares_module.Shares, "_total_at", lambda self, ways, scale: total_at(scale))
    found = shares._largest({}, Fraction(3))
    assert found == largest or 0 < largest - found < Fraction(6, 10**6)
    assert total_at(found) <= 3


# An epsilon for an error


@attrs.frozen
class Erring(dpf.Miner):
    """A miner whose error follows from its epsilon as a test says, and whose noise does not."""

    name = "erring"
    epsilon: Fraction = attrs.field(converter=Fraction)
    error: Callable[[Fraction], float] = attrs.field(eq=False)
    whole: float | None = None

    def plan(self, schema):
        return dpf.step("counts", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace(1))

    def mine(self, table):
        raise NotImplementedError

    def error_bounds(self, part):
        return [ErrorBound("n", self.error(self.epsilon), whole=self.whole, whole_text="the rows")]


def epsilon_for(error, within=3, whole=None):
    """The epsilon that is found for an error that follows from it."""
    study = dpf.Study(COLOURS, epsilon=1)
    study.add("step", Erring(10**18, error, whole))  # with which it is planned, before another is found
    return study.accuracy("step", within=within).epsilon


def met(enough):
    return lambda epsilon: 1.0 if enough(epsilon) else 5.0


@pytest.mark.parametrize(
    "number",
    [
        "0.3",
        "1",
        "1.0000005",
        "1.5",
        "2",
        "2.000001",
        "0.5",
        "123456.7",
        "1e-5",
        "7e-18",
        "5e17",
        "1048575.5",
        "524288.5",
    ],
)
def test_the_smallest_epsilon_of_six_digits_is_found(number):
    """Six of those of the next power of two, where noise is small enough just from a number on."""
    least = Fraction(number)
    power = Fraction(2) ** math.ceil(math.log2(least))
    unit = last_digit(power, 6)
    found = epsilon_for(met(lambda epsilon: epsilon >= least))
    assert found - unit < least <= found
    assert (found / unit).denominator == 1

    def fails_far_below(epsilon):
        if epsilon < least / 3:
            raise dpf.InputError("the noise is too large")
        return epsilon >= least

    assert epsilon_for(met(fails_far_below)) == found


def test_an_epsilon_is_given_up_where_it_would_be_absurd():
    with pytest.raises(dpf.InputError, match="no epsilon makes 'step' that accurate; ask for a larger error"):
        epsilon_for(lambda epsilon: 5.0)
    assert 0 < epsilon_for(lambda epsilon: 1.0) < 2.0**-55


def test_larger_epsilons_are_tried_percent_by_percent_with_six_digits_rounded_up():
    found = list(itertools.islice(epsilon_for_accuracy._epsilons_from(Fraction(1, 3)), 4))
    assert found == [Fraction(text) for text in ("0.333334", "0.336667", "0.34", "0.343334")]
    assert next(epsilon_for_accuracy._epsilons_from(Fraction(123456789))) == 123457000
    assert next(epsilon_for_accuracy._epsilons_from(Fraction(7, 2))) == Fraction(7, 2)
    tried = list(epsilon_for_accuracy._epsilons_from(Fraction(1)))
    assert (len(tried), tried[-1]) == (1000, Fraction("10.99"))


def test_an_error_is_a_number_or_a_percentage_of_its_whole():
    def inverse(epsilon):
        return 1 / float(epsilon)

    assert epsilon_for(inverse, "1 %", 3000) == epsilon_for(inverse, 30)
    assert epsilon_for(inverse, " 0.5% ", 200) == 1
    assert epsilon_for(inverse, "7.5") == epsilon_for(inverse, 7.5) == epsilon_for(inverse, "7.5", 200)
    with pytest.raises(dpf.InputError, match="a percentage for 'step' depends on the number of rows, which is not"):
        epsilon_for(inverse, "1 %")


def test_an_error_is_met_where_the_bound_is_within_it():
    study = dpf.Study(COLOURS, epsilon=1)
    study.add("step", dpf.miner("histogram", attribute="colour 0", epsilon="0.5"))
    within = study.plan().previews()["step/counts"].within
    for step in ("step", "step/counts"):
        assert study.accuracy(step, within=within).epsilon <= Fraction(1, 2)
        assert study.accuracy(step, within=within).bound.amount <= within
        assert study.accuracy(step, within=within * 0.999).bound.amount < within


def test_the_error_of_one_of_several_releases_is_asked_for_by_its_path():
    study = dpf.Study(COLOURS, epsilon=1)
    study.add("it", Several(Fraction(1)))
    for name in "abc":
        assert study.accuracy(f"it/{name}", within=100).bound.steps == (name,)
    with pytest.raises(dpf.InputError, match="step 'it' makes several releases; name one of them, such as 'it/a'"):
        study.accuracy("it", within=100)


def test_no_budget_is_enough_for_other_steps_beside_shares_of_all_of_it():
    study = dpf.Study(COLOURS, epsilon=1)
    study.add("shared", dpf.share(1, "histogram", attribute="colour 0"))
    alone = study.epsilon_for("shared", within=2000)
    errors = [study.with_epsilon(alone * k).plan().previews()["shared/counts"].within for k in (1, Fraction(99, 100))]
    assert errors[0] <= 2000 < errors[1]
    study.add("own", dpf.miner("histogram", attribute="colour 1", epsilon="0.2"))
    with pytest.raises(dpf.InputError, match="no valid total from which an epsilon could be found; 'check' says why"):
        study.epsilon_for("shared", within=20)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 3), Fraction(5, 2)])
def test_a_miner_is_given_its_share_of_the_scale_times_its_factor(scale):
    shares = histograms(2, "1/4", delta=DELTA).shares()
    found = shares.miners_at({"step 0": (0, Fraction(3)), "step 1": (1, Fraction(2))}, scale)
    miners = [found[name][0] for name in ("step 0", "step 1")]
    assert (miners[0].epsilon, miners[0].rho) == (scale * 3 / 4, None)
    assert (miners[1].epsilon, miners[1].rho) == (None, rho_below(scale / 2, DELTA))


def test_the_noise_of_every_release_is_compared():
    study = histograms(2, "0.5")
    shares = study.shares()
    first, ways = shares.first(), next(shares.choices())
    less, more = (shares.miners_at(ways, scale) for scale in (2, Fraction(1, 2)))
    assert shares._no_noisier(first, first)
    assert shares._no_noisier(less, first)
    assert not shares._no_noisier(more, first)
    assert not shares._no_noisier({"step 0": less["step 0"], "step 1": more["step 1"]}, first)


@pytest.mark.parametrize(("epsilon", "searched"), [(500, True), (501, False)])
def test_totals_are_searched_up_to_an_epsilon_of_500(epsilon, searched, monkeypatch):
    asked = []
    monkeypatch.setattr(shares_module.Shares, "_search", lambda self, allowed, first: asked.append(allowed) or first)
    study = dpf.Study(COLOURS, epsilon=epsilon)
    study.add("step", dpf.share(1, "histogram", attribute="colour 0"))
    assert study.plan().total().epsilon == epsilon
    assert asked[:1] == ([epsilon] if searched else [])


def test_a_thousand_times_the_epsilon_is_enough():
    """Where all totals fit, as of noise that nobody could tell from none."""
    assert shares_module._last_that_fits(lambda steps: -1.0) == 2**10 * 10**6
    assert shares_module._last_that_fits(lambda steps: float(steps - 10**12)) == 2**10 * 10**6


@pytest.mark.parametrize(
    ("over", "most"),
    [
        (lambda steps: 1e-6 * (steps - 1234567.3), 4),
        (lambda steps: 1e-6 * (steps - 700000.7), 4),
        (lambda steps: (steps / 1.7e6) ** 2 - 1, 7),
        (lambda steps: math.sqrt(steps) - 1111.1, 9),
        (lambda steps: math.inf if steps > 1300000 else -1.0, 22),
    ],
)
def test_few_totals_are_asked_for(over, most):
    """Each takes a while. Of totals that are nearly in proportion a handful do; halving alone takes twenty."""
    asked = set()
    assert over(shares_module._last_that_fits(lambda steps: asked.add(steps) or over(steps))) <= 0
    assert len(asked) <= most
