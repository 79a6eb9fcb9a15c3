"""An index of the reference's names by their last part. Sphinx looks through all names for each type in a docstring."""

from typing import Any

from sphinx.domains.python import ObjectEntry, PythonDomain


class IndexedPythonDomain(PythonDomain):
    """Sphinx's domain of Python, which finds the same objects."""

    _among: dict[str, ObjectEntry] | None = None
    _index: tuple[int, dict[str, dict[str, ObjectEntry]]] = (-1, {})

    @property
    def objects(self) -> dict[str, ObjectEntry]:
        """The objects by their names: while one is looked for, those with its last part, since every match has it."""
        return super().objects if self._among is None else self._among

    def find_obj(self, env: Any, modname: str, classname: str, name: str, *how: Any, **more: Any) -> Any:
        """Find objects by a name (see `PythonDomain.find_obj`)."""
        known = self.objects
        if self._index[0] != len(known):
            by_last: dict[str, dict[str, ObjectEntry]] = {}
            for whole, entry in known.items():
                by_last.setdefault(whole.rpartition(".")[2], {})[whole] = entry
            self._index = (len(known), by_last)
        self._among = self._index[1].get(name.removesuffix("()").rpartition(".")[2], {})
        try:
            return super().find_obj(env, modname, classname, name, *how, **more)
        finally:
            self._among = None


def setup(app: Any) -> dict[str, bool]:
    app.add_domain(IndexedPythonDomain, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
