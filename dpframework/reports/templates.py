"""The templates of pages, which are compiled once, and not in each process: compiling takes longer than a page does."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from dpframework.results.error_bounds import percent_text

FOLDER = Path(__file__).with_name("page")


class CompiledTemplates(BytecodeCache):
    """Compiled templates in the folder `__pycache__` beside the templates, as Python keeps compiled modules.

    They are trusted as far as the package's own compiled modules are. One is compiled anew where its source, this
    module, Python or jinja is another. Where the folder cannot be written, or Python is told to write no such file,
    each process compiles its own.
    """

    folder = FOLDER / "__pycache__"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give the compiled template, if there is one."""
        if sys.pycache_prefix is None:
            with contextlib.suppress(Exception):  # a file that is damaged in any way is none
                bucket.bytecode_from_string(self._place(bucket).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template. Processes that do so at once do not disturb each other."""
        if sys.dont_write_bytecode or sys.pycache_prefix is not None:
            return
        place = self._place(bucket)
        part = place.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            try:
                part.write_bytes(bucket.bytecode_to_string())
                os.replace(part, place)
            finally:
                part.unlink(missing_ok=True)

    def _place(self, bucket: Bucket) -> Path:
        return self.folder / f"{bucket.key[:16]}.{sys.implementation.cache_tag}.template"

    def get_source_checksum(self, source: str) -> str:
        """Return the digest of all that a compiled template depends on: its source, this module and jinja."""
        return hashlib.sha256(b"\0".join((source.encode(), _this_module(), version("jinja2").encode()))).hexdigest()


@functools.cache
def _this_module() -> bytes:
    return Path(__file__).read_bytes()


@functools.cache
def environment() -> Environment:
    """Return the environment that all pages are made in."""
    made = Environment(
        loader=PackageLoader("dpframework.reports", "page"),
        bytecode_cache=CompiledTemplates(),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    made.filters["percent"] = percent_text
    # A long path may be broken after each slash.
    made.filters["breakable"] = lambda path: Markup("/<wbr>").join(escape(part) for part in path.split("/"))
    return made
