"""The pages of the papers' experiments: their files plan and run, and what they show is what was measured."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import attrs
import pytest
from packaging.requirements import Requirement

import dpframework as dpf
from dpframework.lab.experiment import Experiment, load_experiment
from dpframework.lab.experiment.job import FinishedCell, compute
from dpframework.lab.experiment.job_list import jobs_of
from dpframework.lab.experiment.user_functions import Code

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
FILES = sorted(path for path in FOLDER.rglob("*.toml") if not path.name.endswith(".schema.toml"))
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "index.md")
RESULTS = sorted(path for path in FOLDER.glob("*/results/**/*") if path.is_file())
LARGEST = 60_000  # bytes of a committed result
written = Code("pages.py:written", FOLDER).load()


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))


def missing_libraries(file: Path) -> list[str]:
    """Return what is not installed of the extra that an experiment's file says it needs."""
    pyproject = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    missing = []
    for extra in re.findall(r"needs the extra \"([\w-]+)\"", file.read_text(encoding="utf-8")):
        for requirement in map(Requirement, pyproject["project"]["optional-dependencies"][extra]):
            try:
                metadata.version(requirement.name)
            except metadata.PackageNotFoundError:
                missing.append(requirement.name)
    return missing


def with_first_tables(experiment: Experiment) -> Experiment:
    """Return the experiment with the first of the tables that each generator makes: the others may be large."""
    data = [attrs.evolve(one, grid={key: values[:1] for key, values in one.grid.items()}) for one in experiment.data]
    return attrs.evolve(experiment, data=tuple(data), repetitions=1, repetitions_at={})


def first_cell(experiment: Experiment) -> Experiment:
    """Return the experiment with the first method, parameters and epsilon only, on the first table."""
    small = with_first_tables(experiment)
    cell = next(small.cells())
    method = small.method(cell.method)
    method = attrs.evolve(
        method,
        grid={key: values[:1] for key, values in method.grid.items()},
        epsilon=None if cell.epsilon is None else (cell.epsilon,),
    )
    return attrs.evolve(small, data=(small.data_set(cell.data),), methods=(method,))


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_an_experiment_plans_without_data(file, monkeypatch):
    monkeypatch.delenv("DPFRAMEWORK_DATA", raising=False)
    experiment = with_first_tables(load_experiment(file))
    try:
        planned, lacking = len(jobs_of(experiment)), ""
    except dpf.InputError as error:
        planned, lacking = 0, str(error)
    if lacking:  # plans come first: nothing but the data is lacking
        assert "the environment variable DPFRAMEWORK_DATA, which is not set" in lacking
    else:
        assert planned == len(list(experiment.cells()))


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_the_first_cell_of_an_experiment_can_be_computed(file, data_dir, monkeypatch):
    if missing := missing_libraries(file):
        pytest.skip(f"{name_of(file)} needs an extra of which {', '.join(missing)} is not installed")
    monkeypatch.setenv("DPFRAMEWORK_DATA", str(data_dir))
    outcome = compute(jobs_of(first_cell(load_experiment(file)))[0])
    assert isinstance(outcome, FinishedCell), outcome.reason
    assert outcome.values


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_an_experiment_has_a_page_that_names_it(file):
    page = FOLDER / f"{file.relative_to(FOLDER).parts[0]}.md"
    assert name_of(file) in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page):
    for target in links(page):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_of_a_page_are_the_committed_results(page):
    assert page.read_text(encoding="utf-8") == written(page), f"python docs/experiments/pages.py {page}"


@pytest.mark.parametrize("result", RESULTS, ids=name_of)
def test_a_committed_result_is_small_and_shown(result):
    assert result.suffix in (".csv", ".png")
    assert result.stat().st_size <= LARGEST
    page = FOLDER / f"{result.relative_to(FOLDER).parts[0]}.md"
    assert name_of(result) in page.read_text(encoding="utf-8")


def test_every_page_is_listed_once():
    assert sorted(links(FOLDER / "index.md")) == sorted([*map(name_of, PAGES), "../experiment-format.md"])


def test_a_table_is_written_from_its_file(tmp_path):
    lines = ["method,epsilon,value,mean,mean_low,mean_high", "a,1.0,accuracy,0.5,0.4,0.6", "b,,accuracy,0.25,,"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n<!-- t.csv rows=method columns=epsilon digits=2 -->\n\n| old |\n| 1 |\n\nAfter.\n")
    table = "| method | epsilon 1 | no epsilon |\n| --- | ---: | ---: |\n| a | 0.50 ± 0.10 |  |\n| b |  | 0.25 |\n"
    assert written(page).split(" -->\n\n")[1] == f"{table}\nAfter.\n"
    page.write_text(written(page))
    assert written(page) == page.read_text()


#: The last figure and the last table of each paper, in the order of the list of all of them.
LAST = {"Friedman": (3, 0), "Mihelčić": (6, 6), "Battaglia": (12, 8), "Karjalainen": (3, 0), "Fletcher": (3, 6)}


def test_every_figure_and_table_of_the_papers_is_listed():
    _, *papers = (FOLDER / "figures.md").read_text(encoding="utf-8").split("\n## ")
    assert [paper.split()[0].strip(",") for paper in papers] == list(LAST)
    for paper, (figures, tables) in zip(papers, LAST.values(), strict=True):
        named = {"Figure": set(), "Table": set()}
        for row in re.findall(r"^\| (Figure|Table)s? ([^|]*) \| [^|]+ \| ([^|]+) \|", paper, re.M):
            numbers = [int(number) for number in re.findall(r"\d+", row[1])]
            named[row[0]] |= set(range(numbers[0], numbers[-1] + 1))
            for file in re.findall(r"`([\w-]+/[\w-]+\.toml)`", row[2]):
                assert (FOLDER / file).exists(), file
        assert named == {"Figure": set(range(1, figures + 1)), "Table": set(range(1, tables + 1))}, paper[:40]
