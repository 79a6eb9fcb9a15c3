"""A study file, whoever wrote it, chooses no host, no scheduler, no variable and no file outside of its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from people import SCHEMA_FILE, study_file, tree_step

import dpframework as dpf
from dpframework.cli import main
from dpframework.study.owner_allowed_data_places import VARIABLE, owner_places
from dpframework.study.study_file import load_study

from .listening import Listener, listening

PEOPLE = "ill,age\ntrue,10\nfalse,50\n"
COUNT = '[[step]]\nname = "ill"\nminer = "histogram"\nepsilon = 1\nparams = { attribute = "ill" }\n'


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a study, beside which lies a file of somebody else; the owner has no configuration."""
    made = tmp_path / "study"
    made.mkdir()
    (made / "people.schema.toml").write_text(SCHEMA_FILE)
    (made / "people.csv").write_text(PEOPLE)
    (tmp_path / "secret.csv").write_text(PEOPLE)
    pl.DataFrame({"ill": [True, False], "age": [10, 50]}).write_parquet(tmp_path / "secret.parquet")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(made)
    return made


def write(folder: Path, data: str = 'path = "people.csv"', top: str = "", schema: str = "people.schema.toml") -> Path:
    file = folder / "study.toml"
    head = f'{top}\n[data]\n{data}\nschema = "{schema}"\n'
    file.write_text(head + "[privacy]\nepsilon = 1\n" + COUNT)
    return file


def configure(folder: Path, text: str) -> Path:
    """Write the owner's configuration where it is looked for."""
    file = folder.parent / "home" / ".config" / "dpframework" / "places.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)
    return file


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run a command, and return its exit code and what it wrote."""
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


HOSTILE = {
    "a scheduler": ('path = "people.csv"', 'engine = {{ name = "dask", address = "tcp://127.0.0.1:{port}" }}'),
    "a scheduler as a name": ('path = "people.csv"', 'engine = "tcp://127.0.0.1:{port}"'),
    "a URL": ('path = "http://127.0.0.1:{port}/people.parquet"', ""),
    "a URL in a list": ('path = ["people.csv", "http://127.0.0.1:{port}/people.parquet"]', ""),
    "a URL of a view": ('left = "http://127.0.0.1:{port}/l.parquet"\nright = "people.csv"', ""),
    "a variable in a URL": ('path = "http://127.0.0.1:{port}/$SECRET/people.parquet"', ""),
    "an endpoint": ('path = "people.csv"\noptions = {{ aws_endpoint_url = "http://127.0.0.1:{port}" }}', ""),
    "a place as an address": ('place = "http://127.0.0.1:{port}"\npath = "people.parquet"', ""),
    "a URL of a file": ('path = "file://{outside}/secret.parquet"', ""),
    "a variable": ('path = "$FOLDER/secret.csv"', ""),
    "a variable in braces": ('path = "${{FOLDER}}/secret.csv"', ""),
    "the home folder": ('path = "~/secret.csv"', ""),
    "an absolute path": ('path = "{outside}/secret.csv"', ""),
    "the folder above": ('path = "../secret.csv"', ""),
    "the folder above, later": ('path = "people/../../secret.csv"', ""),
    "the folder above of Windows": ("path = '..\\secret.csv'", ""),
    "a share of Windows": (r"path = '\\127.0.0.1\share\people.parquet'", ""),
    "a drive of Windows": (r"path = 'C:\secret.csv'", ""),
    "a pattern above": ('path = "../*.csv"', ""),
    "an escape sequence": ('path = "people\\u001b[2K.csv"', ""),
}


@pytest.mark.parametrize("which", HOSTILE)
def test_a_study_names_no_host_no_variable_and_no_file_outside_of_its_folder(
    which: str,
    folder: Path,
    listener: Listener,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "value-of-the-variable")
    monkeypatch.setenv("FOLDER", str(folder.parent))
    data, top = (text.format(port=listener.port, outside=folder.parent) for text in HOSTILE[which])
    study = write(folder, data, top)
    for command in (["plan", study], ["run", study, "--out", folder.parent / "out"]):
        code, out, err = said(capsys, *command)
        assert (code, out) == (2, ""), which
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert "value-of-the-variable" not in err
    assert listener.received == []
    assert not (folder.parent / "out").exists()


@pytest.mark.parametrize("outside", ["{outside}/people.schema.toml", "../people.schema.toml", "http://x/s.toml", "~/s"])
def test_its_schema_lies_in_its_folder(outside: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / "people.schema.toml").write_text(SCHEMA_FILE)
    code, _, err = said(capsys, "plan", write(folder, schema=outside.format(outside=folder.parent)))
    assert code == 2
    assert "[data] schema is" in err
    (folder / "link.toml").symlink_to(folder.parent / "people.schema.toml")
    code, _, err = said(capsys, "plan", write(folder, schema="link.toml"))
    assert code == 2
    assert "is a symbolic link that leaves the folder" in err


@pytest.mark.parametrize("data", ["link.csv", "inner/secret.csv", "in*/*.csv", "inner", "files/*.parquet", "files"])
def test_a_link_that_leaves_the_folder_is_not_followed(
    data: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "link.csv").symlink_to("../secret.csv")
    (folder / "inner").symlink_to("..", target_is_directory=True)
    (folder / "files").mkdir()
    (folder / "files" / "link.parquet").symlink_to(folder.parent / "secret.parquet")
    code, out, err = said(capsys, "run", write(folder, f'path = "{data}"'), "--out", folder.parent / "out")
    assert (code, out) == (2, "")
    assert "leaves the folder" in err or "without Parquet files" in err
    assert not (folder.parent / "out").exists()


def test_a_link_within_the_folder_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.csv").symlink_to("people.csv")
    assert said(capsys, "run", write(folder, 'path = "link.csv"'), "--out", folder.parent / "out")[0] == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("data", ["pipe.csv", "folder", "folder/*.parquet"])
def test_a_pipe_is_not_waited_for(data: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / "pipe.csv")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "folder" / "pipe.parquet")
    code, _, err = said(capsys, "run", write(folder, f'path = "{data}"'), "--out", folder.parent / "out")
    assert code == 2
    assert "not a regular file" in err


def test_a_configuration_that_comes_with_the_study_is_not_read(
    folder: Path, listener: Listener, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = f'[data.warehouse]\nurl = "http://127.0.0.1:{listener.port}/"\n[engine.far]\nengine = "dask"\n'
    planted += f'address = "tcp://127.0.0.1:{listener.port}"\ntrust_network = true\n'
    for place in ("places.toml", ".dpframework/places.toml", ".config/dpframework/places.toml"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(planted)
    stores = write(folder, 'place = "warehouse"\npath = "people.parquet"')
    code, _, err = said(capsys, "run", stores, "--out", folder.parent / "out")
    assert code == 2
    assert "the owner's configuration has no entry [data.warehouse]" in err
    code, _, err = said(capsys, "run", write(folder, top='engine = "far"'), "--out", folder.parent / "out")
    assert code == 2
    assert "no engine is named 'far'" in err
    monkeypatch.setenv(VARIABLE, "places.toml")  # which would be the working folder's
    code, _, err = said(capsys, "run", stores, "--out", folder.parent / "out")
    assert code == 2
    assert "the absolute path of a file is needed" in err
    assert listener.received == []


@pytest.mark.skipif(os.name != "posix", reason="files have no modes here")
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_configuration_that_others_can_write_is_refused(mode: int, folder: Path) -> None:
    file = configure(folder, f'[data.here]\npath = "{folder.parent}"\n')
    assert owner_places().place("here").address == str(folder.parent)
    file.chmod(mode)
    with pytest.raises(dpf.InputError, match="others can write this file"):
        owner_places()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("../other/people.parquet", "leaves its folder"),
        ("/people.parquet", "absolute path"),
        ("%2e%2e/people.parquet", "cannot hold any of"),
        ("people.parquet?x=$SECRET", "no variable expands"),
        ("people.parquet#x", "cannot hold any of"),
        ("http://127.0.0.1/people.parquet", "names no host"),
    ],
)
def test_a_path_stays_within_the_owner_s_place(path: str, says: str, folder: Path) -> None:
    configure(folder, '[data.warehouse]\nurl = "http://127.0.0.1:9/visits"\n')
    with pytest.raises(dpf.InputError, match=says):
        load_study(write(folder, f'place = "warehouse"\npath = "{path}"'))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('url = "s3://key:secret@bucket/x"', "holds credentials"),
        ('url = "https://host/x?signature=secret"', "holds credentials or a query"),
        ('url = "file:///srv/data"', "write path instead"),
        ('url = "https://"', "write path instead"),
        ('path = "data"', "absolute path of a folder"),
        ('path = "/srv"\noptions = { a = "b" }', "takes no options"),
        ('path = "/srv"\nurl = "s3://b"', "exactly one of url, path and database"),
        ("", "exactly one of url, path and database"),
        ('url = "s3://b"\noptions = { a = 3 }', "options must be a table of texts"),
        ('url = "s3://b"\noptions = { a = "$DPFRAMEWORK_NOWHERE" }', "DPFRAMEWORK_NOWHERE, which is not set"),
        ('adress = "s3://b"', "unknown key 'adress'"),
        ('path = "/srv\\u0007"', "absolute path of a folder"),
        ('path = "/srv://b"', "absolute path of a folder"),
        ('url = "s3://b"\ndatabase = "a://b"', "exactly one of url, path and database"),
        ('url = "s3://b"\noptions = 3', "options must be a table of texts"),
        ('url = "s3://b\\u0007"', "write path instead"),
        ('url = "bucket"', "write path instead"),
        ('url = "http://[b"', "url cannot be read as a URL"),
        ('database = "a://[b"', "database cannot be read as a URL"),
        ('database = "a://b\\u0007"', "database must be a URL in SQLAlchemy's form"),
        ('database = "host/name"', "database must be a URL in SQLAlchemy's form"),
        ('database = "a://me:secret@host/name"', "database holds credentials"),
        ('database = "a://host/name?password=secret"', "database holds credentials or a query"),
    ],
)
def test_an_entry_that_cannot_be_used_is_one_sentence_without_its_secrets(entry: str, says: str, folder: Path) -> None:
    configure(folder, f"[data.warehouse]\n{entry}\n")
    with pytest.raises(dpf.InputError, match=says) as caught:
        owner_places().place("warehouse")
    assert "secret" not in str(caught.value)


def test_a_study_reads_the_owner_s_folder_and_its_plan_and_reports_say_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(folder, f'[data.archive]\npath = "{tmp_path}"\n')
    study = write(folder, 'place = "archive"\npath = "secret.csv"')
    shown = f"{tmp_path / 'secret.csv'} (place 'archive')"
    assert f"data: {shown}\n" in said(capsys, "plan", study)[1]
    assert json.loads(said(capsys, "plan", study, "--json")[1])["data"] == [shown]
    assert said(capsys, "run", study, "--out", tmp_path / "out")[0] == 0
    for form in ("terminal", "md", "html"):
        page = said(capsys, "report", study, "--format", form)[1]
        assert str(tmp_path / "secret.csv") in page.replace("\n", ""), form
    assert dict(json.loads(said(capsys, "report", study, "--json")[1])["facts"])["data"] == shown
    (tmp_path / "link.csv").symlink_to("/etc/hostname")
    outside = write(folder, 'place = "archive"\npath = "link.csv"')
    assert "leaves the folder" in said(capsys, "run", outside, "--out", tmp_path / "more")[2]


def test_credentials_are_the_owner_s_and_are_shown_nowhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STORE_KEY", "s3cr3t")
    options = '{ aws_region = "eu-west-1", aws_secret_access_key = "$STORE_KEY", endpoint_url = "https://minio.local" }'
    configure(folder, f'[data.warehouse]\nurl = "s3://hospital/visits/"\noptions = {options}\n')
    study = write(folder, 'place = "warehouse"\npath = "2026/*.parquet"')
    file = load_study(study)
    assert dict(file.table_files().options)["aws_secret_access_key"] == "s3cr3t"
    where = "s3://hospital/visits/2026/*.parquet at https://minio.local (place 'warehouse')"
    assert file.study.plan().data == (where,)
    assert file.data.places() == ["s3://hospital/visits/2026/*.parquet"]
    told = "".join("".join(map(str, said(capsys, *command))) for command in (("plan", study), ("report", study)))
    assert where in told
    values = "".join(map(repr, (file, file.data, file.table_files(), owner_places())))
    assert "s3cr3t" not in told + values + file.study.plan().to_json()


def test_an_approved_plan_does_not_run_with_another_place(
    folder: Path, tmp_path: Path, listener: Listener, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither another file of the study, nor another entry, nor the same entry with another address."""
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
        (place / "people.csv").write_text(PEOPLE)
    entries = f'[data.here]\npath = "{here}"\n[data.there]\npath = "{there}"\n'
    configure(folder, entries)
    book = dpf.Ledger.create(tmp_path / "book.ledger")
    book.open("people", epsilon=5)
    study = write(folder, 'place = "here"\npath = "people.csv"')
    code, out, _ = said(capsys, "ledger", "approve", book.path, study, "--data-set", "people", "--by", "the board")
    assert code == 0
    assert f"data: {here / 'people.csv'} (place 'here')\n" in out

    def run() -> tuple[int, str]:
        code, _, err = said(
            capsys, "run", study, "--ledger", book.path, "--data-set", "people", "--out", tmp_path / "out"
        )
        return code, err

    for other in ('place = "there"\npath = "people.csv"', 'path = "people.csv"', 'place = "here"\npath = "more.csv"'):
        (here / "more.csv").write_text(PEOPLE)
        write(folder, other)
        code, err = run()
        assert code == 1, other
        assert f"is approved, but not for this place: data was {here / 'people.csv'} (place 'here'), is " in err
    write(folder, 'place = "here"\npath = "people.csv"')
    for moved in (f'path = "{there}"', f'url = "http://127.0.0.1:{listener.port}"'):
        configure(folder, f"[data.here]\n{moved}\n")
        code, err = run()
        assert code == 1
        assert "is approved, but not for this place: " in err
    assert book.data_set("people").spent.epsilon == 0
    configure(folder, entries)
    assert run()[0] == 0
    assert listener.received == []


def test_the_address_of_an_engine_is_in_the_plan_and_its_hash(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, hashes = write(folder, top='engine = "cluster-a"'), set()
    for host in ("10.0.0.1", "10.0.0.2"):
        configure(folder, f'[engine.cluster-a]\nengine = "dask"\naddress = "tcp://{host}:8786"\ntrust_network = true\n')
        plan = json.loads(said(capsys, "plan", study, "--json")[1])
        assert plan["engine"] == f"tcp://{host}:8786"
        assert f"engine: counts are evaluated at tcp://{host}:8786\n" in said(capsys, "plan", study)[1]
        assert f"counts are evaluated at tcp://{host}:8786" in said(capsys, "report", study, "--format", "md")[1]
        for form, line in (("mermaid", '[("engine: counts are evaluated at tcp'), ("dot", 'label="engine: counts are')):
            assert line in said(capsys, "plan", study, "--format", form)[1]
        hashes.add(plan["hash"])
    assert len(hashes) == 2
    assert load_study(write(folder)).study.plan().engine is None


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('engine = "dsk"', "no engine is named 'dsk'; did you mean 'dask'?"),
        ('engine = "dask"\nadress = "tcp://a:1"', "engine 'dask' takes address"),
        ('address = "tcp://a:1"', "has no 'engine'"),
    ],
)
def test_an_engine_s_entry_that_cannot_be_used_is_one_sentence(
    entry: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(folder, f"[engine.far]\n{entry}\n")
    code, _, err = said(capsys, "plan", write(folder, top='engine = "far"'))
    assert code == 2
    assert says in err


def test_a_plan_that_names_no_place_keeps_its_hash(people: dpf.Schema, plan: Callable[[], dpf.StudyPlan]) -> None:
    """Plans that were written before plans named places, and those of Python code, hold no such keys."""
    made = plan()
    assert {"data", "engine"}.isdisjoint(made.content())
    form = json.loads(made.to_json())
    assert dpf.StudyPlan.from_json(json.dumps(form)).hash == made.hash == form["hash"]
    for key, value in (("data", ["people.csv"]), ("engine", "tcp://10.0.0.1:1")):
        with pytest.raises(dpf.InputError, match="does not fit its hash"):
            dpf.StudyPlan.from_json(json.dumps({**form, key: value}))


@pytest.fixture
def people() -> dpf.Schema:
    return dpf.Schema([dpf.Boolean("ill")])


@pytest.fixture
def plan(people: dpf.Schema) -> Callable[[], dpf.StudyPlan]:
    def made() -> dpf.StudyPlan:
        study = dpf.Study(people, epsilon=1)
        study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
        return study.plan()

    return made


def test_the_difference_of_two_plans_tells_of_places(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = folder / "before.toml"
    before.write_text(study_file(1, tree_step("tree")))
    after = folder / "after.toml"
    after.write_text(study_file(1, tree_step("tree")).replace("people.csv", "others.csv"))
    assert "places: data from people.csv to others.csv" in said(capsys, "plan", before, "--diff", after)[1]


def test_a_study_reads_a_table_of_the_owner_s_database_and_its_plan_and_reports_say_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra 'database' is not installed")
    place = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute(f"create table people as select * from '{tmp_path / 'secret.parquet'}'")
    configure(folder, f'[engine.clinic]\nengine = "duckdb"\ndatabase = "{place}"\nthreads = 1\n')
    code, _, err = said(capsys, "run", write(folder, 'table = "people"'), "--out", tmp_path / "out")
    assert (code, "table 'people' is read by an engine of its database; name an entry" in err) == (2, True)
    study = write(folder, 'table = "people"', 'engine = "clinic"')
    plan = json.loads(said(capsys, "plan", study, "--json")[1])
    assert (plan["data"], plan["engine"].endswith(f"on the database {place}")) == (["table people"], True)
    assert said(capsys, "run", study, "--out", tmp_path / "out", "--seed", 3)[0] == 0
    files = write(folder, 'path = "people.csv"')
    assert said(capsys, "run", files, "--out", tmp_path / "other", "--seed", 3)[0] == 0
    found, expected = (json.loads((tmp_path / one / "results.json").read_text()) for one in ("out", "other"))
    assert found["texts"] == expected["texts"]
    assert found["counted"].startswith("DuckDB ")
    page = said(capsys, "report", tmp_path / "out", "--format", "md")[1]
    assert found["counted"] in page.replace("\\", "")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ('table = "people"\npath = "people.csv"', "has both 'table' and 'path'"),
        ('path = "people.csv"\norder = "age"', "has 'order', and no 'table' of a database"),
        ('table = ["a", "b"]', "table must be one name, or a list of the left and the right view, joined by 'id'"),
        ('table = "a"\nid = "person"', "table must be one name, or a list of the left and the right view"),
        ('table = "information_schema.tables"', "a table or view of the owner is expected"),
        ('table = "dpf_codes_0"', "a table or view of the owner is expected"),
    ],
)
def test_a_table_of_a_database_is_one_name_or_two_views(data: str, says: str, folder: Path) -> None:
    with pytest.raises(dpf.InputError, match=says):
        load_study(write(folder, data))
