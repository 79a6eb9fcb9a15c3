"""The command `new`, which writes the first files of a plugin."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dpframework.cli.command_classes import Command
from dpframework.cli.common import Json, path_option, print_json, write
from dpframework.facts.errors import InputError
from dpframework.facts.files import stage_folder

app = typer.Typer()


@app.command(cls=Command, epilog="Example: dpframework new dpframework-noisy-mode")
def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The plugin's name for pip. Package, miner and class get their names from it."
        ),
    ],
    out: Annotated[Path, path_option("FOLDER", "Where to make the plugin's folder; by default here.")] = Path(),
    as_json: Json = False,
) -> None:
    """Create a working plugin with one miner, its tests and an example study."""
    from dpframework.cli.skeleton import Names, skeleton, write_skeleton

    names = Names.of(name)
    names.require_free()
    folder = out / name
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the plugin another name, or --out another folder")
    with stage_folder(folder, ()) as stage:
        write_skeleton(names, stage)
    written = list(skeleton(names))
    if as_json:
        print_json({"folder": str(folder), "package": names.package, "miner": names.miner, "files": written})
        return
    write(f"wrote {folder}: the package {names.package} with the miner {names.miner}")
    for path in written:
        write(f"  {path}")
    write("next:")
    write(f"  pip install -e {shlex.quote(f'{folder}[test]')}")
    write(f"  pytest {shlex.quote(str(folder))}")
    write(f"  dpframework run {shlex.quote(str(folder / 'example' / 'study.toml'))} --out results")
