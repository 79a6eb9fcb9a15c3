"""What the operators of our own change, and what they leave alone."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

parso = pytest.importorskip("parso", reason="the extra 'mutation' is not installed")
pytest.importorskip("cosmic_ray", reason="the extra 'mutation' is not installed")
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _nothing_required(_modules, monkeypatch):
    """As if the project had no function: to read all of it takes seconds."""
    monkeypatch.setattr(import_module("own_operators"), "_required", dict)


@pytest.fixture(scope="module")
def _modules():
    """The modules of the command, which import one another as those of a folder do."""
    sys.path.insert(0, str(ROOT / "tests/mutation"))
    yield
    sys.path.remove(str(ROOT / "tests/mutation"))


def _changed(operator, source):
    """Return the code of each mutant by its id, without the four digits."""
    own, ids = import_module("own_operators"), import_module("mutant_ids").MutantIds(source)
    tool = getattr(own, operator)()
    found, occurrence = {}, 0
    for node in import_module("cosmic_ray.ast").ast_nodes(parso.parse(source)):
        for index, _ in enumerate(tool.mutation_positions(node)):
            place, change = tool.change(node, index)
            code = import_module("cosmic_ray.mutating").mutate_code(source, tool, occurrence)
            compile(code, "mutant", "exec")
            found[ids.id_of(place, change).rpartition(" ")[0].removeprefix("module ")] = code
            assert ids.line_of(ids.id_of(place, change)) == place[0]
            occurrence += 1
    return found


GUARDED = "if a:\n    raise ValueError\nelif b:\n    raise KeyError\nelif c:\n    d()\n"


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("SwapName", "f(max(a, b), max=1)\n", {"max->min": "f(min(a, b), max=1)\n"}),
        ("DropStatement", "check(a)(b)\nc = f(a)\n", {"(->pass#2": "pass\nc = f(a)\n"}),
        ("DropStatement", "if a:  # why\n    b.c += 2\n", {"+=->pass": "if a:  # why\n    pass\n"}),
        (
            "DropOperand",
            "a = b and (c) and f(d)\n",
            {
                "and->right": "a = (c) and f(d)\n",
                "and->left": "a = b and f(d)\n",
                "and->left#2": "a = b and (c)\n",
            },
        ),
        ("DropOperand", "a = b or c\n", {"or->right": "a = c\n", "or->left": "a = b\n"}),
        ("DropOperand", "a = 0 < b <= 1\n", {"<->right": "a = b <= 1\n", "<=->left": "a = 0 < b\n"}),
        ("DropElement", "a = [b, *c,]\n", {",->right": "a = [*c,]\n", ",->left": "a = [b,]\n"}),
        ("DropElement", "a = {b, c}\n", {",->right": "a = {c}\n", ",->left": "a = {b}\n"}),
        ("DropElement", "f([b, c])\n", {",->right": "f([c])\n", ",->left": "f([b])\n"}),
        ("DropElement", "a in (b, c)\n", {",->right": "a in (c,)\n", ",->left": "a in (b,)\n"}),
        (
            "DropElement",
            "for a in (b, c): pass\n",
            {",->right": "for a in (c,): pass\n", ",->left": "for a in (b,): pass\n"},
        ),
        ("DropKeyword", "f(a, b=1, *c, d=2)\n", {"=->": "f(a, *c, d=2)\n", "=->#2": "f(a, b=1, *c)\n"}),
        ("DropKeyword", "f(b=1, strict=True)\n", {"=->": "f(strict=True)\n"}),
        ("KeepOne", "a = np.maximum(b, c)\n", {"maximum->first": "a = (b)\n", "maximum->second": "a = (c)\n"}),
        ("KeepOne", "a = min(b, c + 1) + 1\n", {"min->first": "a = (b) + 1\n", "min->second": "a = (c + 1) + 1\n"}),
        ("ReturnArgument", "def f():\n    return sorted(a)\n", {"f return->argument": "def f():\n    return (a)\n"}),
        (
            "ReturnArgument",
            "def f(a: Node) -> Node:\n    return f(a)\n",
            {"f return->argument": "def f(a: Node) -> Node:\n    return (a)\n"},
        ),
        (
            "DropCheck",
            GUARDED,
            {
                "if->ifFalse": GUARDED.replace("if a", "if False"),
                "elif->elifFalse": GUARDED.replace("elif b", "elif False"),
            },
        ),
    ],
)
def test_a_part_is_left_out(operator, source, expected):
    assert _changed(operator, source) == expected


@pytest.mark.parametrize(
    ("operator", "source"),
    [
        ("DropStatement", '"""Text."""\na = b\nreturned = f(a)\n'),
        ("DropCheck", "if a:\n    b()\n    raise ValueError\n"),
        ("DropElement", "a = (b, c)\nd[e, g]\nf([b])\n[b for b in c]\n{b: 1, c: 2}\nAlias = Callable[[a, b], c]\n"),
        ("DropKeyword", "class A(metaclass=B):\n    pass\n\n\nf(a, **b)\nf()\n"),
        ("KeepOne", "max(a)\nmax(a, b, c)\nmax(*a, b)\nmax(a, key=b)\nmax(a, b).c\n"),
        ("ReturnArgument", "def f(a: int) -> str:\n    return f(a)\n\n\ndef g():\n    return PrivacyLoss(a)\n"),
    ],
)
def test_what_would_be_noticed_or_means_the_same_is_left_alone(operator, source):
    assert _changed(operator, source) == {}


def test_an_argument_without_a_default_is_left_alone(monkeypatch, tmp_path):
    """Everybody notices that it is missing."""
    (tmp_path / "module.py").write_text("class A:\n    b: int\n    c: int = 1\n\n\ndef f(b, c=1, *, d, g=2): ...\n")
    required = import_module("own_operators").required_in(tmp_path.glob("*.py"))
    assert required == {"A": {"b"}, "f": {"b", "d"}}
    monkeypatch.setattr(import_module("own_operators"), "_required", lambda: required)
    assert _changed("DropKeyword", "A(b=1)\nf(b=1, d=1)\n") == {}
    assert list(_changed("DropKeyword", "A(b=1, c=2)\n")) == ["=->#2"]
    assert list(_changed("DropKeyword", "g(b=1)\n")) == ["=->"]
