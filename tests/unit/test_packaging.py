"""What the built wheel holds, and the one that is built from the source archive."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from support.environments import ROOT, build_wheel, build_wheel_of_sdist


def inside(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {one.filename: one.CRC for one in archive.infolist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    """The paths inside the wheel."""
    return list(inside(wheel))


def test_the_wheel_holds_only_the_two_packages(names: list[str]) -> None:
    tops = {name.split("/")[0] for name in names}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"pyhudi", "pyspark_pyhudi"}


def test_the_wheel_holds_every_module_and_no_other_file(names: list[str]) -> None:
    """A new folder that pyproject.toml does not name would be missing; a stray file at the root would be added."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("*/__init__.py")}
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    expected = {path.relative_to(ROOT).as_posix() for path in sources}
    expected |= {path.name for path in ROOT.glob("*.py")} | {"py.typed"}

    found = {name for name in names if ".dist-info/" not in name}

    assert found == {name if name.startswith("pyspark_pyhudi/") else f"pyhudi/{name}" for name in expected}


def test_the_source_archive_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """All that is built, licence and version included, is in it."""
    assert inside(build_wheel_of_sdist(tmp_path)) == inside(wheel)


def test_the_wheel_says_that_it_is_typed(names: list[str]) -> None:
    assert "pyhudi/py.typed" in names
