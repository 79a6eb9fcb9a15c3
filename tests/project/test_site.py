"""The documentation site: built strict, and nothing public is missing from its reference."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dpframework_greedy
import dpframework_trees
import pytest

import dpframework as dpf
from dpframework.cli import command as program

pytest.importorskip("sphinx", reason="the site needs the extra 'docs': pip install -e '.[docs]'")
pytest.importorskip("myst_parser", reason="the site needs the extra 'docs': pip install -e '.[docs]'")
pytest.importorskip("latex2mathml", reason="the site needs the extra 'docs': pip install -e '.[docs]'")
pytest.importorskip("furo", reason="the site needs the extra 'docs': pip install -e '.[docs]'")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    str(page.relative_to(DOCS).with_suffix(""))
    for page in DOCS.rglob("*.md")
    if not any(part.startswith(".") for part in page.relative_to(DOCS).parts)
)
MOST_SECONDS = 600  # that a site which is being built takes
READERS = ["Analyst", "Auditor", "Researcher"]


def public_modules() -> Iterator[str]:
    """Name the modules that the reference is to hold: the command line has a page of its own."""
    for package in (dpf, dpframework_trees, dpframework_greedy):
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            parts = found.name.split(".")
            if not any(part.startswith("_") for part in parts) and parts[1] not in ("cli", "version"):
                yield found.name


MODULES = sorted(public_modules())


def public_names(module: str) -> list[str]:
    """Name what a module defines for others, and what its `__all__` lists."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return list(found.__all__)
    return [
        name
        for name, thing in vars(found).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isroutine(thing))
        and thing.__module__ == module
    ]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, with warnings as errors, away from the checkout; or take the one that is being built so."""
    if "DPFRAMEWORK_SITE" in os.environ:
        given, end = Path(os.environ["DPFRAMEWORK_SITE"]), time.monotonic() + MOST_SECONDS
        while not given.is_dir():
            assert time.monotonic() < end, f"no site came to be at {given}: what builds it says why"
            time.sleep(0.2)
        return given
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-B", "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--nitpicky"]
    built = subprocess.run(
        [*command, "-d", str(out / "doctrees"), str(DOCS), str(out / "html")], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return out / "html"


@pytest.fixture(scope="session")
def documented(site: Path) -> set[str]:
    """Return the names that the built reference can be linked to by."""
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {name for kind in inventory.data if kind.startswith("py:") for name in inventory.data[kind]}


def text_of(site: Path, page: str) -> str:
    return (site / f"{page}.html").read_text(encoding="utf-8")


def test_every_page_is_built_and_in_the_navigation(site: Path) -> None:
    home = text_of(site, "index")
    for page in PAGES:
        assert (site / f"{page}.html").is_file()
        assert page == "index" or f'href="{page}.html"' in home, page


def test_the_navigation_begins_with_the_three_readers(site: Path) -> None:
    assert (
        re.findall(r'<p class="caption"[^>]*><span class="caption-text">([^<]+)', text_of(site, "index"))[:3] == READERS
    )


@pytest.mark.parametrize("module", [name for name in MODULES if name not in ("dpframework", "dpframework.__main__")])
def test_every_public_module_and_name_is_in_the_reference(module: str, documented: set[str]) -> None:
    assert module in documented
    packages = [module.rsplit(".", k)[0] for k in range(module.count(".") + 1)]
    for name in public_names(module):
        places = {f"{package}.{name}" for package in packages}
        assert places & documented or any(re.fullmatch(rf"{module}\.\w+\.{name}", place) for place in documented), name


def test_the_reference_lists_every_name_at_the_top() -> None:
    page = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   ~?dpframework\.(?:\w+\.)*(\w+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(dpf.__all__)


def test_formulas_are_drawn_by_the_browser_alone(site: Path) -> None:
    page = (site / "composition.html").read_text(encoding="utf-8")
    assert page.count("<math") >= 50
    assert "<msqrt>" in page
    assert "\\sqrt" not in page
    assert not re.search(r"<script[^>]*src=\"http", page)


def test_every_command_and_option_is_on_its_page(site: Path) -> None:
    page = text_of(site, "commands")

    def visible(command: object, path: str) -> Iterator[tuple[str, object]]:
        yield path, command
        for name, below in getattr(command, "commands", {}).items():
            if not below.hidden:
                yield from visible(below, f"{path} {name}")

    commands = dict(visible(program(), "dpframework"))
    assert {"dpframework plan", "dpframework schema infer"} <= set(commands)
    for path, command in commands.items():
        (section,) = re.findall(rf'<section id="{path.replace(" ", "-")}">(.*?)</table>', page, re.DOTALL)
        for parameter in command.params:  # type: ignore[attr-defined]
            name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.metavar
            assert name in section, f"{path}: {name}"


def test_every_row_of_soundness_leads_to_a_test() -> None:
    page = (DOCS / "soundness.md").read_text(encoding="utf-8")
    sections = {
        f"soundness/{below.name}#" + re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-"): text
        for below in (DOCS / "soundness").glob("*.md")
        for heading, text in re.findall(r"^## (.+)\n((?:(?!^##).*\n)*)", below.read_text("utf-8"), re.MULTILINE)
    }
    rows = re.findall(r"^\|.*\]\((soundness/[\w.#-]+)\) \|$", page, re.MULTILINE)
    assert sorted(set(rows)) == sorted(sections)  # a section may prove several rows
    for row in rows:
        assert re.search(r"`[\w/]+\.py::test_\w+`", sections[row]), row


def test_the_site_needs_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="([^"]+)"', page.read_text("utf-8"))
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page
    assert (site / "searchindex.js").is_file()
    assert "url(http" not in "".join(sheet.read_text("utf-8") for sheet in site.rglob("*.css"))


def test_code_has_a_button_that_copies_it_and_outputs_have_none(site: Path) -> None:
    script = (site / "_static" / "copybutton.js").read_text("utf-8")
    assert "div.highlight-python pre" in script
    assert "output" not in "".join(re.findall(r"'div[.]highlight[^']*'", script))
    page = (site / "how-to.html").read_text("utf-8")
    assert 'class="highlight-python notranslate"' in page
    assert 'class="highlight-output notranslate"' in page


#: What people type who do not know the words of a question.
SEARCHES = ("count rows", "mean by group", "median", "histogram", "excel", "semicolons", "report auditor", "dataframe")


def test_each_how_to_is_first_in_the_search_for_its_question(site: Path) -> None:
    """The site's own search, run by node; words alone find the page of questions first."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, to run the search of the site without a browser")
    text = (DOCS / "how-to.md").read_text(encoding="utf-8")
    questions = re.findall(r"^## (How do I .*)$", text, re.MULTILINE)
    assert len(questions) >= 25
    asked = "\n".join([*questions, *SEARCHES])
    command = [node, str(DOCS / "extensions" / "search_ranks.js"), str(site)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    assert [(best[0][0], best[0][1].endswith(q)) for q, best in zip(questions, found, strict=False)] == [
        ("how-to", True)
    ] * len(questions)
    assert {words: best[0][0] for words, best in zip(SEARCHES, found[len(questions) :], strict=True)} == dict.fromkeys(
        SEARCHES, "how-to"
    )


def test_no_two_pages_have_one_title() -> None:
    titles = {
        page: page.read_text("utf-8").partition("\n")[0] for page in DOCS.rglob("*.md") if ".ipynb" not in page.name
    }
    heads = [title for title in titles.values() if title.startswith("# ")]
    assert sorted(heads) == sorted(set(heads))
    assert len(heads) > 100


def test_private_names_are_not_shown(documented: set[str]) -> None:
    assert not [name for name in documented if any(part.startswith("_") for part in name.split("."))]
