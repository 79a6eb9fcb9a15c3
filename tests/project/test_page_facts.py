"""Pages that must agree with something else: the commands' own help, and what OpenDP ships."""

import importlib.util
import sys
from pathlib import Path

EXTENSIONS = Path(__file__).parents[2] / "docs" / "extensions"


def test_the_page_of_commands_is_up_to_date(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    sys.modules.pop("commands", None)
    import commands

    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), "run python docs/extensions/commands.py"
    assert commands.page().count("\n## dpframework ") > 20


def test_the_gallery_is_the_page_that_its_command_writes(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    import gallery

    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "run python docs/extensions/gallery.py"
    drawn = {path.stem for path in gallery.PICTURES.glob("*.png")}
    assert drawn == {name for name, _, _ in gallery.GALLERY}


def test_the_comparison_names_what_opendp_ships() -> None:
    """Its extras need more packages to be imported, so their sources are looked at."""
    opendp = Path(importlib.util.find_spec("opendp").origin).parent / "extras"
    page = (EXTENSIONS.parent / "compared.md").read_text(encoding="utf-8")
    shipped = (opendp / "mbi" / "__init__.py").read_text(encoding="utf-8")
    for name in ("AIM", "MST", "Sequential", "Fixed"):
        assert f'"{name}"' in shipped
        assert f"`{name}`" in page
    assert "early release" in (opendp / "ibis" / "__init__.py").read_text(encoding="utf-8")
    assert "opendp.extras.ibis" in page
