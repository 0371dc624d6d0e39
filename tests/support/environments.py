"""Python environments as other machines have them: with what pyhudi needs, but without pyhudi."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pyarrow as pa
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(str(importlib.metadata.distribution("pyspark").locate_file("pyspark")))
_NOT_SOURCE = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests")


def build_wheel(work: Path) -> Path:
    """Return the wheel, built from a copy of the source, so that the build leaves nothing in the project."""
    return _build("wheel", _copy_source(work / "source"), work)


def build_wheel_of_sdist(work: Path) -> Path:
    """Return the wheel that installers make of the source archive where they find no wheel."""
    shutil.unpack_archive(_build("sdist", _copy_source(work / "source"), work), work)
    [unpacked] = work.glob("pyhudi-*/")
    return _build("wheel", unpacked, work)


def variables_without(*prefixes: str) -> dict[str, str]:
    """Return this process's variables, but for those of these beginnings, which Spark's own scripts would find."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def new_environment(folder: Path) -> tuple[Path, Path]:
    """Make an environment with nothing in it, and return its Python and the folder of its packages.

    Its interpreter is a copy, so that the environment can be packed: archives hold no links to somewhere else.
    """
    venv.create(folder, symlinks=False)
    [site] = folder.glob("lib/python*/site-packages")
    return folder / "bin" / "python", site


def link_packages(site: Path) -> None:
    """Let an environment see the packages of this one, those aside that are installed by a link, as pyhudi is here."""
    (site / "linked.pth").write_text(f"{Path(pa.__file__).parents[1]}\n", encoding="utf-8")


def link_packages_without(site: Path, *names: str) -> None:
    """Let an environment see the packages of this one but for some, and none that is installed by a link."""
    for one in Path(pa.__file__).parents[1].iterdir():
        if not one.name.startswith((*names, "__editable__", "pyhudi", "pyspark_pyhudi")) and one.suffix != ".pth":
            (site / one.name).symlink_to(one)


def _copy_source(folder: Path) -> Path:
    shutil.copytree(ROOT, folder, ignore=_NOT_SOURCE)
    return folder


def _build(kind: str, source: Path, work: Path) -> Path:
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(work)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return work / done.stdout.splitlines()[-1]


def copy_packages(wheel: Path, site: Path) -> None:
    """Copy into an environment what a wheel needs beside Spark, and unpack the wheel."""
    shutil.unpack_archive(wheel, site, format="zip")
    [metadata] = site.glob("pyhudi-*.dist-info/METADATA")
    waiting = importlib.metadata.Distribution.at(metadata.parent).requires or []
    handled_packages = {"pyspark"}
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name in handled_packages or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        handled_packages.add(wanted.name)
        package = importlib.metadata.distribution(wanted.name)
        waiting += package.requires or []
        for file in package.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), site / file)
