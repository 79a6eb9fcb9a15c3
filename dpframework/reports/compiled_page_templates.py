"""The templates of pages.

The compiled templates are kept on disk, since compiling them takes longer than making a page.
"""

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

    The files are trusted like the package's own compiled modules. A template is compiled anew if its source,
    this module, Python or jinja has changed. If the folder cannot be written, or Python is told to keep no compiled
    files there, each process compiles the templates itself.
    """

    folder = FOLDER / "__pycache__"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load the compiled template into the bucket, if there is one."""
        if sys.pycache_prefix is None:
            with contextlib.suppress(Exception):  # a damaged file counts as missing
                bucket.bytecode_from_string(self._place(bucket).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template to its file. Several processes may do so at the same time."""
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
        """Return a digest of the template's source, this module and the version of jinja.

        The digest changes if any of the three changes.
        """
        return hashlib.sha256(b"\0".join((source.encode(), _this_module(), version("jinja2").encode()))).hexdigest()


@functools.cache
def _this_module() -> bytes:
    return Path(__file__).read_bytes()


@functools.cache
def environment() -> Environment:
    """Return the jinja environment of all pages."""
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
