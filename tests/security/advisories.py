"""Look for known advisories of the dependencies: at the lowest versions, and at those that are installed here.

    python tests/security/advisories.py                          # asks a service, by pip-audit if it is installed
    python tests/security/advisories.py --service osv            # another of pip-audit's services
    python tests/security/advisories.py --advisories FOLDER      # reads files in the OSV format, without a network

The lowest versions are those of `pyproject.toml`, of all extras. The installed ones are those of this Python's packages
that dpframework needs, and that these need. FOLDER is a copy of a database such as pypa/advisory-database (YAML) or
github/advisory-database (JSON); advisories of other ecosystems in it are left out.

The exit code is 0 if every package was checked and none has an advisory, 1 if one has, and 2 if some were not checked.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[2]
Pinned = dict[str, set[str]]


def lowest() -> Pinned:
    """Return the lowest version of each requirement, of the extras too; of two for two Pythons both."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: Pinned = {}
    for text in (
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ):
        requirement = Requirement(text)
        for specifier in requirement.specifier:
            if specifier.operator == ">=":
                found.setdefault(canonicalize_name(requirement.name), set()).add(specifier.version)
    return found


def installed() -> Pinned:
    """Return the installed versions of what dpframework and its extras need, and of what that needs."""
    found: Pinned = {}
    queue = [Requirement(f"dpframework[{','.join(metadata.metadata('dpframework').get_all('Provides-Extra') or ())}]")]
    while queue:
        wanted = queue.pop()
        name = canonicalize_name(wanted.name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # an extra that is not installed here
            continue
        if name in found and not wanted.extras:
            continue
        if name != "dpframework":
            found[name] = {distribution.version}
        for text in distribution.requires or ():
            needed = Requirement(text)
            extras = wanted.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({**_here(), "extra": one}) for one in extras):
                queue.append(needed)
    return found


def _here() -> dict[str, str]:
    return {key: str(value) for key, value in default_environment().items()}


def advisories(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each advisory of some packages in a folder of files in the OSV format, with the package that it is of."""
    wanted = set(names)
    likely = re.compile("|".join(re.escape(name).replace("\\-", "[-_.]") for name in sorted(wanted)), re.IGNORECASE)
    for path in sorted([*folder.rglob("*.json"), *folder.rglob("*.yaml")]):
        text = path.read_text(encoding="utf-8")
        if not likely.search(text):
            continue
        if path.suffix == ".json":
            form = json.loads(text)
        else:
            import yaml

            form = yaml.safe_load(text)
        if not isinstance(form, dict) or form.get("withdrawn"):
            continue
        for affected in form.get("affected", ()):
            package = affected.get("package", {})
            name = canonicalize_name(str(package.get("name", "")))
            if package.get("ecosystem") == "PyPI" and name in wanted:
                yield name, {**affected, "id": form["id"], "summary": form.get("summary") or form.get("details", "")}


def concerns(version: str, affected: dict[str, Any]) -> bool:
    """Tell whether an advisory is of a version: it is listed, or lies in one of the ranges."""
    if version in affected.get("versions", ()):
        return True
    here = Version(version)
    for bounds in affected.get("ranges", ()):
        if bounds.get("type") != "ECOSYSTEM":
            continue
        inside = False
        for event in sorted(bounds["events"], key=lambda one: _version(next(iter(one.values())))):
            if "introduced" in event and _version(event["introduced"]) <= here:
                inside = True
            if ("fixed" in event and _version(event["fixed"]) <= here) or (
                "last_affected" in event and _version(event["last_affected"]) < here
            ):
                inside = False
        if inside:
            return True
    return False


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:  # of an advisory; such a bound is above everything, so that the package is shown
        return Version("99999")


def read(folder: Path, pinned: Pinned) -> list[str]:
    """Return a line for each advisory in a folder that is of one of the versions."""
    found = {
        _line(name, version, affected["id"], affected["summary"])
        for name, affected in advisories(folder, pinned)
        for version in pinned[name]
        if concerns(version, affected)
    }
    return sorted(found)


def _line(name: str, version: str, advisory: str, summary: str) -> str:
    return f"{name} {version}: {advisory}: {' '.join(summary.split())[:100]}"


def asked(pinned: Pinned, service: str) -> tuple[list[str], list[str]]:
    """Ask a service by pip-audit; return a line for each advisory, and the packages that it did not check."""
    lines, missed = [], []
    # One version of a package at a time: that is all that a file of requirements may hold.
    rounds = max(map(len, pinned.values()))
    for k in range(rounds):
        chosen = {name: sorted(versions)[k] for name, versions in pinned.items() if k < len(versions)}
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(f"{name}=={version}\n" for name, version in sorted(chosen.items())))
            file.flush()
            options = ["--requirement", file.name, "--no-deps", "--disable-pip", "--format", "json"]
            command = [sys.executable, "-m", "pip_audit", *options, "--vulnerability-service", service]
            done = subprocess.run(command, capture_output=True, text=True)
        try:
            found = {canonicalize_name(one["name"]): one for one in json.loads(done.stdout)["dependencies"]}
        except (ValueError, KeyError):
            print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
            found = {}
        for name, version in sorted(chosen.items()):
            # It calls a package that its service does not answer for "skipped", and exits with 0.
            if "vulns" not in found.get(name, {}):
                missed.append(f"{name} {version}")
            vulnerable = found.get(name, {}).get("vulns", ())
            lines.extend(_line(name, version, one["id"], one.get("description", "")) for one in vulnerable)
    return lines, missed


def main() -> int:
    """Read the command line, check both sets of versions, and say with what they were checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", choices=("pypi", "osv"), default="pypi", help="whom pip-audit asks")
    parser.add_argument("--advisories", type=Path, metavar="FOLDER", help="files in the OSV format")
    options = parser.parse_args()
    if options.advisories is None and importlib.util.find_spec("pip_audit") is None:
        print("NOT CHECKED: pip-audit is not installed; 'pip install pip-audit', or give --advisories FOLDER")
        return 2
    codes = []
    for what, pinned in (("lowest", lowest()), ("installed", installed())):
        missed: list[str] = []
        if options.advisories is None:
            lines, missed = asked(pinned, options.service)
            source = f"pip-audit and the service '{options.service}'"
        else:
            lines, source = read(options.advisories, pinned), f"the advisories in {options.advisories}"
        number = sum(map(len, pinned.values()))
        for line in lines:
            print(f"{what}: {line}")
        if missed:
            print(f"{what}: NOT CHECKED: {len(missed)} of {number} versions; {source} did not answer for them")
        print(f"{what}: {number - len(missed)} of {number} versions checked with {source}: {len(lines)} advisories")
        codes.append(1 if lines else 2 if missed else 0)
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main())
