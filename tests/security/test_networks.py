"""A network that fails is told from a damaged file: it charges nothing, and uses up no approval."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from people import SCHEMA_FILE

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts.errors import NotOpened
from dpframework.study.owner_allowed_data_places import VARIABLE
from dpframework.tables import parquet_files
from dpframework.tables.sources import open_source

STUDY = """
[data]
place = "far"
path = "people.parquet"
schema = "people.schema.toml"
[privacy]
epsilon = 1
[[step]]
name = "ill"
miner = "histogram"
epsilon = 1
params = { attribute = "ill" }
"""


@contextlib.contextmanager
def serving(content: bytes | int) -> Iterator[str]:
    """Serve a file by HTTP, or answer with a status, while the block runs; yields the URL of its folder."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def answer(self) -> None:
            if isinstance(content, int):
                self.send_error(content)
                return
            asked = self.headers.get("Range")
            first, last = 0, len(content) - 1
            if asked:
                low, _, high = asked.removeprefix("bytes=").partition("-")
                first = int(low) if low else max(len(content) - int(high), 0)
                last = min(int(high), last) if low and high else last
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            self.send_header("Content-Length", str(last - first + 1))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content[first : last + 1])

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("rows") / "people.parquet"
    pl.DataFrame({"ill": [True, False] * 500, "age": list(range(1000))}).write_parquet(file)
    return file.read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.schema.toml").write_text(SCHEMA_FILE)
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "places.toml"))
    return tmp_path


def run(folder: Path, url: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, int]:
    """Approve one run of the study and make it: return its exit code, its error, and the runs that are left."""
    places = folder / "places.toml"
    places.write_text(f'[data.far]\nurl = "{url}"\n')
    places.chmod(0o600)
    dpf.Ledger.create(folder / "book.ledger").open("people", epsilon=5)
    named = ("--data-set", "people")
    assert main(["ledger", "approve", "book.ledger", "study.toml", *named, "--by", "the board"]) == 0
    capsys.readouterr()
    code = main(["run", "study.toml", "--ledger", "book.ledger", *named, "--out", "out"])
    data_set = dpf.Ledger(folder / "book.ledger").data_set("people")
    if code:
        assert data_set.spent.epsilon == 0
    return code, capsys.readouterr().err, sum(approval.left for approval in data_set.approvals)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (None, "the host refused the connection"),
        (404, "there is no such file"),
        (403, "access is denied"),
        (400, "the host cannot be reached, or does not answer"),
    ],
)
def test_a_network_that_fails_uses_up_no_approval(
    status: int | None, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(status or 404) as url:
        code, err, left = run(folder, f"http://127.0.0.1:{closed_port()}" if status is None else url, capsys)
    assert (code, left) == (2, 1)
    assert f"people.parquet: cannot be read from its URL: {says}; nothing was read" in err
    assert "damaged" not in err


def test_a_file_that_is_there_is_read(rows: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(rows) as url:
        assert run(folder, url, capsys)[::2] == (0, 0)


@pytest.mark.parametrize(
    "damage", [lambda rows: rows[:-100], lambda rows: b"PAR1" + bytes(5000) + b"\xff\xff\x00\x00PAR1"]
)
def test_a_damaged_file_uses_up_its_approval(
    damage: object, rows: bytes, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which bytes a file holds may follow from its rows, so nobody may ask again for nothing."""
    assert callable(damage)
    with serving(damage(rows)) as url:
        code, err, left = run(folder, url, capsys)
    assert (code, left) == (2, 0)
    assert "cannot be read as Parquet, since it is damaged" in err


def test_a_host_that_stops_after_the_footer_uses_up_the_approval(rows: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows may have been read by then, and when it stops may follow from them."""
    with serving(rows) as url:
        source = open_source(f"{url}/people.parquet", None)
    assert source.columns == ("ill", "age")

    class OnlyFooter:
        """A lazy frame that has the number of rows, which the footer holds, and no row."""

        def select(self, asked: object) -> object:
            return pl.LazyFrame({"len": [1]}) if isinstance(asked, pl.Expr) else self

        def slice(self, low: int, rows: int) -> OnlyFooter:
            return self

        def collect(self) -> None:
            raise ConnectionRefusedError("a text that may quote a cell")

    monkeypatch.setattr(parquet_files.ParquetFile, "_scan", lambda self: OnlyFooter())
    with pytest.raises(dpf.InputError) as caught:
        list(source.blocks(["ill"]))
    assert not isinstance(caught.value, NotOpened)
    assert str(caught.value) == (
        "people.parquet: cannot be read from its URL: the host refused the connection; some of its rows may have "
        "been read"
    )
    assert caught.value.__cause__ is None
