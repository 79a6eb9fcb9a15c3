"""The data owner's configuration: the folders, stores, databases and engines that studies may use by name.

The owner is the person who holds the data. A study file may come from anyone, so it cannot hold an address. It names an
entry of this configuration instead. The configuration is the file that the environment variable `DPFRAMEWORK_PLACES`
names, or a file in the user's configuration folder. It is never read from the study's folder or the working folder,
where others may have put it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final
from urllib.parse import urlsplit

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.path_containment import inner_path, require_relative
from dpframework.facts.toml import expand, kind_of, prefix_errors, read_toml, refuse_unknown, require_text
from dpframework.facts.value_checks import as_pairs

#: The environment variable that holds the absolute path of the file.
VARIABLE = "DPFRAMEWORK_PLACES"
#: The path of the file if that variable is not set.
DEFAULT = "~/.config/dpframework/places.toml"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OUTSIDE = re.compile(r"[%?#\\]")  # characters that could change the object or host to which a URL leads
#: The options that choose a host, or a database on a host.
_CHOOSES = ("host", "hostaddr", "port", "dbname", "database", "db", "service", "server", "unix_socket")
_WRITABLE_BY_OTHERS = 0o022


@final
@attrs.frozen
class Place:
    """A folder, a part of a store, or a database that the owner lets studies read.

    Attributes
    ----------
    name
        The name by which studies refer to this place.
    address
        The absolute path of the folder, or a URL.
    options
        The options for opening the URL, such as a key (polars' `storage_options`), or for connecting to the database.
    is_database
        Whether the URL is that of a database. A study then names a table or a query in `[read]`.
    """

    name: str
    address: str
    options: tuple[tuple[str, str], ...] = attrs.field(default=(), converter=as_pairs, repr=False)
    is_database: bool = False

    @property
    def is_url(self) -> bool:
        """Whether the address is a URL, not a folder of this machine."""
        return "://" in self.address

    def file_at(self, path: str, where: str) -> str:
        """Return the file or URL of a relative path in this place. Error messages begin with `where`.

        Raises
        ------
        InputError
            If the path could lead out of this place.
        """
        if self.is_database:
            return self.address
        if not self.is_url:
            return str(inner_path(path, Path(self.address), where))
        require_relative(path, where)
        if _OUTSIDE.search(path):
            raise InputError(f"{where} is '{path}'; in place '{self.name}' a path cannot hold any of % ? # \\")
        return f"{self.address.rstrip('/')}/{path}"

    def shown(self, path: str, where: str) -> str:
        """Return the address of a relative path in this place, without credentials, as plans show it."""
        # Options may choose the host or the database, so plans must show them.
        ends = [text for name, text in self.options if name.lower() in _CHOOSES or "endpoint" in name.lower()]
        served = f" at {', '.join(ends)}" if ends else ""
        return f"{self.file_at(path, where)}{served} (place '{self.name}')"


@final
@attrs.frozen
class OwnerPlaces:
    """The contents of the owner's configuration file.

    Attributes
    ----------
    source
        The path of the file.
    data
        The tables `[data.NAME]` of the file, by name.
    engines
        The tables `[engine.NAME]` of the file, by name. Each has the name of an installed engine and its parameters.
    """

    source: Path
    data: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, repr=False)
    engines: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, repr=False)

    def place(self, name: str) -> Place:
        """Return the place that the entry `[data.NAME]` describes.

        Raises
        ------
        InputError
            If there is no such entry, or it cannot be used.
        """
        with prefix_errors(f"{self.source}: "):
            form = self._entry(self.data, "data", name)
            where = f"[data.{name}] "
            refuse_unknown(form, ("url", "path", "database", "options"), f"{where}unknown key")
            if sum(key in form for key in ("url", "path", "database")) != 1:
                raise InputError(f"{where}needs exactly one of url, path and database")
            if "path" in form:
                folder = os.path.expanduser(expand(require_text(form, "path", where)))
                if "options" in form or not os.path.isabs(folder) or "://" in folder or not folder.isprintable():
                    raise InputError(f"{where}path must be the absolute path of a folder, and takes no options")
                return Place(name, folder)
            key = "database" if "database" in form else "url"
            url = expand(require_text(form, key, where))
            options = form.get("options", {})
            if not isinstance(options, Mapping) or not all(isinstance(text, str) for text in options.values()):
                raise InputError(f'{where}options must be a table of texts, such as {{ aws_region = "eu-west-1" }}')
            # Plans show the URL, so it must hold no password and no query.
            try:
                parts = urlsplit(url)
            except ValueError:
                raise InputError(f"{where}{key} cannot be read as a URL") from None
            if key == "database" and (not url.isprintable() or "://" not in url):
                raise InputError(
                    f'{where}database must be a URL in SQLAlchemy\'s form, such as "postgresql+psycopg://host/name"'
                )
            if key == "url" and (
                not url.isprintable() or "://" not in url or parts.scheme == "file" or not parts.netloc
            ):
                raise InputError(
                    f'{where}url must be a URL with a host or a store, such as "s3://hospital/visits"; for a folder on '
                    "this machine write path instead"
                )
            if "@" in parts.netloc or _OUTSIDE.search(url):
                raise InputError(
                    f"{where}{key} holds credentials or a query, which plans would show; write them into options"
                )
            return Place(name, url, {key: expand(text) for key, text in options.items()}, key == "database")

    def engine(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return the name of the installed engine in the entry `[engine.NAME]`, and its parameters.

        Raises
        ------
        InputError
            If there is no such entry, or it cannot be used.
        """
        with prefix_errors(f"{self.source}: "):
            form, where = self._entry(self.engines, "engine", name), f"[engine.{name}] "
            given = {key: expand(value) if isinstance(value, str) else value for key, value in form.items()}
            return require_text(form, "engine", where), {key: value for key, value in given.items() if key != "engine"}

    def _entry(self, entries: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
        if name not in entries:
            raise InputError(
                f"the owner's configuration has no entry [{kind}.{name}]; {nearest(name, entries)}, or write this "
                "table into this file"
            )
        form = entries[name]
        if not _NAME.fullmatch(name) or not isinstance(form, Mapping):
            raise InputError(
                f"[{kind}.{name}] must be a table, and its name may hold only letters, digits, dots, dashes and "
                "underscores, beginning with a letter or digit"
            )
        return form


def owner_places() -> OwnerPlaces:
    """Read the owner's configuration file. If the default file does not exist, return a configuration without entries.

    Raises
    ------
    InputError
        If the file cannot be read, if other users can write it, or if `$DPFRAMEWORK_PLACES` is not the absolute path of
        an existing file.
    """
    given = os.environ.get(VARIABLE)
    path = Path(given or os.path.expanduser(DEFAULT))
    if not path.is_absolute():
        raise InputError(f"{VARIABLE} is '{given}'; the absolute path of a file is needed")
    if not path.exists():
        if given:
            raise InputError(f"{path}: {VARIABLE} names this file, and it does not exist")
        return OwnerPlaces(path)
    if os.name == "posix":
        found = path.stat()
        is_own = found.st_uid in (0, os.getuid())
        if not is_own or found.st_mode & _WRITABLE_BY_OTHERS:
            remedy = "run chmod go-w on it" if is_own else "let it belong to you or to root"
            raise InputError(f"{path}: others can write this file, which says where data and code go; {remedy}")
    form = read_toml(path, "the owner's configuration of places")
    with prefix_errors(f"{path}: "):
        refuse_unknown(form, ("data", "engine"), "unknown table")
        for key, value in form.items():
            if not isinstance(value, Mapping):
                raise InputError(f"'{key}' must hold tables, each written as [{key}.NAME], not {kind_of(value)}")
    return OwnerPlaces(path, form.get("data", {}), form.get("engine", {}))
