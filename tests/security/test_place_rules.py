"""The owner's places, rule by rule: which entries may be used, what a study may name in them, and what is shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import dpframework as dpf
from dpframework.study import owner_allowed_data_places as places_module
from dpframework.study.owner_allowed_data_places import DEFAULT, VARIABLE, OwnerPlaces, Place, owner_places


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], OwnerPlaces]:
    """Return a function that writes the owner's file and reads it."""
    monkeypatch.setenv("DPF_SOME", "some")
    monkeypatch.delenv("DPF_NONE", raising=False)

    def read(text: str) -> OwnerPlaces:
        file = tmp_path / "places.toml"
        file.write_text(text)
        file.chmod(0o600)
        monkeypatch.setenv(VARIABLE, str(file))
        return owner_places()

    return read


def test_an_address_is_a_folder_or_a_url() -> None:
    folder, store = Place("f", "/rows"), Place("s", "s3://hospital/visits/", {"key": "secret"})  # type: ignore[arg-type]
    assert (folder.is_url, store.is_url) == (False, True)
    assert folder.file_at("a/b.csv", "here") == str(Path("/rows/a/b.csv"))
    assert folder.file_at("a%b.csv", "here") == str(Path("/rows/a%b.csv"))
    assert store.file_at("a/b.csv", "here") == "s3://hospital/visits/a/b.csv"
    assert Place("s", "s3://hospital").file_at("b.csv", "here") == "s3://hospital/b.csv"
    assert "secret" not in repr(store)
    for place in (folder, store):
        with pytest.raises(dpf.InputError, match=r"^here is 'a/../b', which leaves its folder"):
            place.file_at("a/../b", "here")
    for character in "%?#":
        with pytest.raises(dpf.InputError, match=r"^here is 'a.b'; in place 's' a path cannot hold any of % \? # "):
            store.file_at(f"a{character}b", "here")


def test_a_plan_shows_the_host_that_an_option_chooses_and_no_key() -> None:
    options = {"AWS_Endpoint_URL": "https://x", "key": "secret", "other_endpoint": "y"}
    assert Place("s", "s3://h/v", options).shown("a.csv", "here") == "s3://h/v/a.csv at https://x, y (place 's')"  # type: ignore[arg-type]
    assert Place("s", "s3://h/v", {"key": "secret"}).shown("a.csv", "here") == "s3://h/v/a.csv (place 's')"  # type: ignore[arg-type]
    assert Place("f", "/rows").shown("a.csv", "here") == f"{Path('/rows/a.csv')} (place 'f')"


def test_entries_that_can_be_used(places: Callable[[str], OwnerPlaces]) -> None:
    found = places(
        '[data.folder]\npath = "/rows/$DPF_SOME"\n[data."a.b-c_1"]\nurl = "s3://h/$DPF_SOME"\n'
        '[data.store]\nurl = "https://h:99/v"\noptions = { key = "$DPF_SOME", region = "x" }\n'
        '[data.home]\npath = "~/rows"\n[engine.ours]\nengine = "dask"\naddress = "tcp://$DPF_SOME"\nworkers = 4\n'
    )
    assert found.place("folder") == Place("folder", "/rows/some")
    assert found.place("a.b-c_1") == Place("a.b-c_1", "s3://h/some")
    assert found.place("store") == Place("store", "https://h:99/v", {"key": "some", "region": "x"})  # type: ignore[arg-type]
    assert found.place("home").address == os.path.expanduser("~/rows")
    assert found.engine("ours") == ("dask", {"address": "tcp://some", "workers": 4})
    assert "some" not in repr(found)


FOLDER = "path must be the absolute path of a folder, and takes no options$"
URL = (
    'url must be a URL with a host or a store, such as "s3://hospital/visits"; for a folder on this machine write path '
    "instead$"
)
SHOWN = "url holds credentials or a query, which plans would show; write them into options$"
TEXTS = 'options must be a table of texts, such as { aws_region = "eu-west-1" }$'


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("", "needs exactly one of url, path and database$"),
        ('path = "/a"\nurl = "s3://h/v"', "needs exactly one of url, path and database$"),
        ('path = "/a"\nother = 1', "unknown key 'other'; "),
        ("path = 1", "path must be a text, not a number$"),
        ('path = "a"', FOLDER),
        ('path = "/a"\noptions = {}', FOLDER),
        ('path = "/a://b"', FOLDER),
        ('path = "/a\\u0007"', FOLDER),
        ("url = true", "url must be a text, not true or false$"),
        ('url = "s3://h/v"\noptions = 3', TEXTS),
        ('url = "s3://h/v"\noptions = { a = "x", b = 3 }', TEXTS),
        ('url = "https://[::1/v"', "url cannot be read as a URL$"),
        ('url = "/a"', URL),
        ('url = "s3:///v"', URL),
        ('url = "file://h/v"', URL),
        ('url = "s3://h/v\\u0007"', URL),
        ('url = "s3:/h"', URL),
        ('url = "s3://me:secret@h/v"', SHOWN),
        ('url = "s3://h/v?key=secret"', SHOWN),
        ('url = "s3://h/v#part"', SHOWN),
        ('url = "s3://h/%41"', SHOWN),
        ('url = "s3://h/v\\\\w"', SHOWN),
    ],
)
def test_entries_that_cannot_be_used_are_refused(
    places: Callable[[str], OwnerPlaces], tmp_path: Path, entry: str, says: str
) -> None:
    with pytest.raises(dpf.InputError) as refused:
        places(f"[data.bad]\n{entry}\n").place("bad")
    beginning = f"{tmp_path / 'places.toml'}: [data.bad] "
    assert str(refused.value).startswith(beginning)
    assert str(refused.value).removeprefix(beginning) == says.removesuffix("$") or (
        not says.endswith("$") and str(refused.value).removeprefix(beginning).startswith(says)
    )
    assert "secret" not in str(refused.value)


def test_variables_that_are_not_set_are_named_and_an_at_sign_in_a_path_is_no_password(
    places: Callable[[str], OwnerPlaces],
) -> None:
    for entry in ('path = "/$DPF_NONE"', 'url = "s3://$DPF_NONE/v"', 'url = "s3://h/v"\noptions = { k = "$DPF_NONE" }'):
        with pytest.raises(dpf.InputError, match=r"uses the environment variable DPF_NONE, which is not set$"):
            places(f"[data.bad]\n{entry}\n").place("bad")
    assert places('[data.at]\nurl = "s3://h/a@b"\n').place("at").address == "s3://h/a@b"


def test_names_of_entries_are_plain_and_entries_are_tables(places: Callable[[str], OwnerPlaces]) -> None:
    found = places(
        '[data]\nnumber = 3\n[data." a"]\npath = "/a"\n[data."-a"]\npath = "/a"\n[engine.none]\nworkers = 1\n'
    )
    for name in ("number", " a", "-a"):
        with pytest.raises(dpf.InputError, match=r"\] must be a table, and its name may hold only letters"):
            found.place(name)
    with pytest.raises(dpf.InputError, match=r"has no entry \[data.numbre\]; did you mean 'number'.* into this"):
        found.place("numbre")
    with pytest.raises(dpf.InputError, match=r"has no entry \[engine.number\]; .* into this file$"):
        found.engine("number")
    with pytest.raises(dpf.InputError, match=r"places.toml: \[engine.none\] has no 'engine'$"):
        found.engine("none")


def test_the_file_is_the_owner_s_and_holds_tables_of_two_kinds(
    places: Callable[[str], OwnerPlaces], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    empty = places("")
    assert (dict(empty.data), dict(empty.engines)) == ({}, {})
    for text, says in (
        ("[other]\n", r"unknown table 'other'; "),
        ("data = 3\n", r"'data' must hold tables, each written as \[data.NAME\], not a number$"),
        ("engine = []\n", r"'engine' must hold tables, each written as \[engine.NAME\], not a list$"),
    ):
        with pytest.raises(dpf.InputError, match=rf"places.toml: {says}"):
            places(text)
    monkeypatch.setenv(VARIABLE, "places.toml")
    with pytest.raises(dpf.InputError, match=r"is 'places.toml'; the absolute path of a file is needed"):
        owner_places()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.toml"))
    with pytest.raises(dpf.InputError, match=f"{VARIABLE} names this file, and it does not exist$"):
        owner_places()
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path))
    default = tmp_path / ".config" / "dpframework" / "places.toml"
    assert owner_places() == OwnerPlaces(default)
    default.parent.mkdir(parents=True)
    default.write_text('[data.a]\npath = "/a"\n')
    default.chmod(0o600)
    assert owner_places().place("a").address == "/a"
    default.chmod(0o602)
    with pytest.raises(dpf.InputError, match="others can write this file"):
        owner_places()
    monkeypatch.setattr(places_module.os, "name", "nt")
    assert DEFAULT == "~/.config/dpframework/places.toml"


def test_a_file_of_the_administrator_is_the_owner_s_and_one_of_a_stranger_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "places.toml"
    file.write_text('[data.a]\npath = "/a"\n')
    file.chmod(0o600)
    monkeypatch.setenv(VARIABLE, str(file))
    found = file.stat()
    for owner, me, accepted in ((0, 1000, True), (1000, 1000, True), (1001, 1000, False), (1001, 0, False)):
        of_owner = os.stat_result((*found[:4], owner, *found[5:]))
        with monkeypatch.context() as patch:
            patch.setattr(os, "getuid", lambda me=me: me)
            patch.setattr(Path, "stat", lambda path, of_owner=of_owner, **_: of_owner)
            if accepted:
                assert set(owner_places().data) == {"a"}
            else:
                with pytest.raises(dpf.InputError, match="let it belong to you or to root"):
                    owner_places()
