"""Study files: read strictly, without the data, with one sentence for each mistake."""

import math
from fractions import Fraction
from importlib.metadata import EntryPoint

import attrs
import numpy as np
import pytest
from noisy_mode import NoisyMode
from people import SCHEMA_FILE

import dpframework as dpf
from dpframework.study.plugin_registry import Registry
from dpframework.study.study_file import load_study
from dpframework.study.table_place import Data, _texts

STUDY = """
[data]
path = "people.csv"
schema = "people.schema.toml"

[privacy]
epsilon = 1.0

[[step]]
name = "mode"
miner = "noisy-mode"
epsilon = 0.4
params = { attribute = "ill" }
"""


@attrs.frozen
class Broken(dpf.Miner):
    """Fail to plan."""

    name = "broken"

    def plan(self, schema):
        raise ZeroDivisionError("no such\nnumber")

    def mine(self, table):
        return None


@attrs.frozen
class Shared(NoisyMode):
    """Have a parameter that is also a key of steps."""

    name = "shared"
    share: Fraction = attrs.field(default=Fraction(1, 2), converter=Fraction)


@dpf.hookimpl
def dpframework_miners():
    return [NoisyMode, Broken, Shared]


@pytest.fixture(scope="module")
def registry():
    class Here(EntryPoint):
        def load(self):
            import types

            plugin = types.ModuleType("plugin")
            plugin.dpframework_miners = dpframework_miners
            return plugin

    return Registry([Here("here", "plugin", "dpframework")])


def test_a_study_is_read_without_its_data(write, registry):
    file = load_study(write(STUDY), registry)
    assert not file.data.folder.joinpath("people.csv").exists()
    assert file.study.plan().total() == dpf.PrivacyLoss("0.4")
    with pytest.raises(dpf.InputError, match=r"study\.toml: .*people\.csv: there is no such file"):
        file.read()


def test_epsilon_reaches_the_miner_exactly(write, registry):
    file = load_study(write(STUDY.replace("0.4", "0.1")), registry)
    assert next(file.study.plan().steps()).mechanism.epsilon == Fraction(1, 10)


def test_the_data_is_read_and_run(write, registry, tmp_path):
    file = load_study(write(STUDY), registry)
    (tmp_path / "people.csv").write_text("ill,age\n" + "true,30\nfalse,200\n" * 20)
    assert file.study.run(file.read, seed=1)["mode"] in ("true", "false")
    for policy in ("clamp", "missing"):
        file = load_study(write(STUDY.replace("[privacy]", f'out_of_domain = "{policy}"\n[privacy]')), registry)
        assert file.study.plan().out_of_domain == policy
        assert file.study.run(file.read, seed=1)["mode"] in ("true", "false")


def test_an_owner_who_would_rather_be_stopped(write, registry, tmp_path):
    (tmp_path / "people.csv").write_text("ill,age\n" + "true,30\nfalse,200\n" * 20)
    refusing = STUDY.replace("[privacy]", 'out_of_domain = "error"\n[privacy]')
    with pytest.raises(dpf.PlanRefused, match=r"DP021 error: .* assumes 'data-fits-schema'"):
        load_study(write(refusing), registry).study.run(dict)
    for text in (STUDY, refusing):
        allowing = text.replace("epsilon = 1.0", 'epsilon = 1.0\nallow = ["data-fits-schema"]')
        file = load_study(write(allowing), registry)
        with pytest.raises(dpf.InputError, match=r"study\.toml: .*'age' holds values outside"):
            file.study.run(file.read, seed=1)
        with pytest.raises(dpf.InputError, match="breaks what its owner asserts: data-fits-schema") as caught:
            file.study.run(file.read)
        assert "age" not in str(caught.value)
        assert caught.value.__context__ is None


def test_two_views_joined_by_an_id(write, registry, tmp_path):
    views = SCHEMA_FILE.replace('kind = "boolean"', 'kind = "boolean"\nview = "left"') + 'view = "right"\n'
    (tmp_path / "people.schema.toml").write_text(views)
    text = STUDY.replace('path = "people.csv"', 'left = "l.csv"\nright = "r.csv"\nid = "who"')
    file = load_study(write(text), registry)
    (tmp_path / "l.csv").write_text("who,ill\na,true\nb,false\n")
    with pytest.raises(dpf.InputError, match=r"r\.csv: there is no such file"):
        file.read()
    (tmp_path / "r.csv").write_text("who,age\nb,3\na,50\n")
    assert file.read().values["age"].tolist() == [50, 3]


@pytest.mark.parametrize(("policy", "read"), [(None, [100, 3]), ("clamp", [100, 3]), ("missing", [math.nan, 3])])
def test_two_views_are_read_by_the_policy_of_the_study(write, registry, tmp_path, policy, read):
    views = SCHEMA_FILE.replace('kind = "boolean"', 'kind = "boolean"\nview = "left"') + 'view = "right"\n'
    (tmp_path / "people.schema.toml").write_text(views + "missing = true\n")
    told = "" if policy is None else f'\nout_of_domain = "{policy}"'
    text = STUDY.replace('path = "people.csv"', 'left = "l.csv"\nright = "r.csv"' + told)
    (tmp_path / "l.csv").write_text("ill\ntrue\nfalse\n")
    (tmp_path / "r.csv").write_text("age\n500\n3\n")
    np.testing.assert_array_equal(load_study(write(text), registry).read().values["age"], read)


def test_two_views_need_a_view_for_each_attribute_before_any_run(write, registry, tmp_path):
    path = write(STUDY.replace('path = "people.csv"', 'left = "l.csv"\nright = "r.csv"'))
    with pytest.raises(dpf.InputError, match="attribute 'ill' of the schema has no view; give each"):
        load_study(path, registry)
    left = SCHEMA_FILE.replace("[[attribute]]", '[[attribute]]\nview = "left"')
    (tmp_path / "people.schema.toml").write_text(left)
    with pytest.raises(dpf.InputError, match="the schema has no attribute of the right view"):
        load_study(path, registry)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[data]", "[date]", "unknown table or key 'date'; did you mean 'data'?"),
        ("[privacy]\nepsilon = 1.0", "", r"has no \[privacy\] table"),
        ("[data]", "data = 3\n[dat]", "unknown table or key 'dat'"),
        ('path = "people.csv"', "path = 3", r"\[data\] path must be a text, not a number"),
        ('path = "people.csv"', "", r"\[data\] has no 'path'"),
        ('path = "people.csv"', 'left = "l.csv"', r"\[data\] has no 'right'"),
        ('path = "people.csv"', 'path = "a.csv"\nleft = "l.csv"', "has both 'path' and 'left'"),
        ('path = "people.csv"', 'paht = "people.csv"', "unknown key 'paht'; did you mean 'path'"),
        ('schema = "people.schema.toml"', "", r"\[data\] has no 'schema'"),
        ("people.schema.toml", "other.toml", r"other\.toml: there is no such file"),
        ("people.schema.toml", "$DPFRAMEWORK_UNSET/s.toml", "no variable expands in a study"),
        ("[privacy]", 'out_of_domain = "clmp"\n[privacy]', "did you mean 'clamp'"),
        ("epsilon = 1.0", "", r"\[privacy\] has no 'epsilon'"),
        ("epsilon = 1.0", "epsilon = nan", r"\[privacy\] epsilon is nan"),
        ("epsilon = 1.0", "epsilon = inf", r"\[privacy\] epsilon is inf"),
        ("epsilon = 1.0", "epsilon = -1", r"\[privacy\] epsilon is -1.0; it cannot be negative"),
        ("epsilon = 1.0", "epsilon = 0", r"\[privacy\] epsilon is 0; write a number above 0"),
        ("epsilon = 1.0", "epsilon = true", r"\[privacy\] epsilon is True"),
        ("epsilon = 1.0", 'epsilon = "much"', r"\[privacy\] epsilon is 'much'"),
        ("epsilon = 1.0", "epsilon = 1.0\ndelta = 1", r"\[privacy\] delta is 1"),
        ("epsilon = 1.0", "epsilon = 1.0\ndelta = nan", r"\[privacy\] delta is nan"),
        ("epsilon = 1.0", 'epsilon = 1.0\nrelation = "replace"', "relation 'replace' is unknown"),
        ("epsilon = 1.0", "epsilon = 1.0\nrelation = 3", "relation must be a text"),
        ("epsilon = 1.0", 'epsilon = 1.0\nallow = "all"', "allow must be a list"),
        ("epsilon = 1.0", "epsilon = 1.0\nepsilom = 1.0", "unknown key 'epsilom'; did you mean 'epsilon'"),
        ("[[step]]", "[step]", r"under its own \[\[step\]\] heading"),
        ('name = "mode"', "", "step number 1: has no 'name'"),
        ('name = "mode"', 'name = ""', "step number 1: name must not be blank"),
        ('name = "mode"', 'name = "a/b"', "step 'a/b': the name 'a/b' cannot be used"),
        ('miner = "noisy-mode"', "", "step 'mode': has no 'miner'"),
        ('miner = "noisy-mode"', 'miner = "noisy-mod"', "step 'mode': no miner is named 'noisy-mod'; did you mean"),
        ("epsilon = 0.4", "", "step 'mode': has neither an epsilon nor a share of the budget; write epsilon"),
        ("epsilon = 0.4", "epsilon = nan", "step 'mode': epsilon is nan"),
        ("epsilon = 0.4", "epsilon = -0.4", "step 'mode': epsilon is -0.4; it cannot be negative"),
        ("epsilon = 0.4", "epsilon = [1]", r"step 'mode': epsilon is \[1\]"),
        (
            "epsilon = 0.4",
            "epsilon = 0.4\nseed = 1",
            r"step 'mode': unknown key 'seed'; write parameters of the miner as params = \{ seed = ... \}$",
        ),
        ("params = {", "params = { epsilon = 1,", "epsilon is a key of the step itself"),
        ("params = {", "params = { atribute = 1,", "has no parameter 'atribute'; did you mean 'attribute'"),
        ('{ attribute = "ill" }', '"ill"', "params must be a table"),
        ('{ attribute = "ill" }', '{ attribute = "il" }', "step 'mode': attribute 'il' is not in the schema; did you"),
        ("[data]", "[data", "is not TOML"),
    ],
)
def test_each_mistake_is_one_sentence_that_names_the_place(write, registry, old, new, says):
    assert old in STUDY
    path = write(STUDY.replace(old, new))
    with pytest.raises(dpf.InputError, match=says) as caught:
        load_study(path, registry)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_no_steps_and_duplicate_names(write, registry):
    with pytest.raises(dpf.InputError, match="has no step"):
        load_study(write(STUDY[: STUDY.index("[[step]]")]), registry)
    twice = STUDY + STUDY[STUDY.index("[[step]]") :]
    with pytest.raises(dpf.InputError, match="step 'mode': this name is used twice"):
        load_study(write(twice), registry)


def test_a_miner_that_fails_to_plan_is_named(write, registry):
    text = STUDY[: STUDY.index("[[step]]")] + '[[step]]\nname = "b"\nminer = "broken"\n'
    with pytest.raises(dpf.InputError) as caught:
        load_study(write(text), registry)
    says = "step 'b': miner 'broken' of plugin 'here' failed to plan with ZeroDivisionError (no such)"
    assert str(caught.value).endswith(says)


def test_files_that_are_no_study(tmp_path, registry):
    with pytest.raises(dpf.InputError, match="there is no such file"):
        load_study(tmp_path / "none.toml", registry)
    with pytest.raises(dpf.InputError, match="is a directory; a study file"):
        load_study(tmp_path, registry)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(dpf.InputError, match="not UTF-8"):
        load_study(tmp_path / "latin.toml", registry)


def test_data_at_a_url_is_refused_where_files_are_needed(tmp_path):
    Data(("people.csv",), tmp_path).require_local("files are noted")
    data = Data(("people.csv", "https://example.org/more.csv"), tmp_path, unrestricted=True)
    with pytest.raises(dpf.InputError, match="the data is at a URL, and files are noted"):
        data.require_local("files are noted")


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("a", ("a",)),
        (["a"], ("a",)),
        (["a", "b"], ("a", "b")),
        ([], None),
        (["a", ""], None),
        (["a", 1], None),
        ([1], None),
    ],
)
def test_a_text_or_a_list_of_texts(given: object, texts: tuple[str, ...] | None) -> None:
    if texts is None:
        with pytest.raises(dpf.InputError, match=r"^\[data\] path must be a text, or a list of texts such as x$"):
            _texts({"path": given}, "path", "[data] ", " such as x")
    else:
        assert _texts({"path": given}, "path", "[data] ") == texts


@pytest.mark.parametrize("budget", ["epsilon = 0.4", "share = 0.4"])
def test_a_miner_may_have_a_parameter_that_is_a_key_of_steps(tmp_path, registry, budget):
    (tmp_path / "people.schema.toml").write_text(SCHEMA_FILE)
    text = (
        STUDY.replace("noisy-mode", "shared")
        .replace("epsilon = 0.4", budget)
        .replace('"ill" }', '"ill", share = "1/3" }')
    )
    (tmp_path / "study.toml").write_text(text)
    miner = load_study(tmp_path / "study.toml", registry).study.miners["mode"]
    assert (miner.share, miner.epsilon) == (Fraction(1, 3), Fraction(2, 5))
