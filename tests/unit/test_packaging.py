"""What the built wheel holds, and the one that is built from the source archive."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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


def test_the_wheel_brings_the_command_which_needs_no_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = {
            name.rpartition("/")[2]: archive.read(name).decode() for name in archive.namelist() if ".dist-" in name
        }

    assert "pyhudi = pyhudi.connector.jobs:command\n" in texts["entry_points.txt"]
    required = re.findall(r"^Requires-Dist: (.*)$", texts["METADATA"], re.MULTILINE)
    assert [text for text in required if "'cli'" in text.replace('"', "'")] == ['rich>=13; extra == "cli"']
    assert [text for text in required if text.startswith("rich") and "extra" not in text] == []


def test_pyspark_is_an_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))

    found = re.findall(r"^Requires-Dist: (pyspark\b.*)$", metadata, re.MULTILINE)
    assert [text.replace("'", '"').partition("; ")[2] for text in found] == [
        f'extra == "{name}"' for name in ("spark", "dev", "demo")
    ]


def test_what_needs_pyspark_says_so_in_one_sentence_where_there_is_none() -> None:
    """Whatever needs none is there."""
    code = (
        "import sys; sys.modules['pyspark'] = None; import pyhudi, pyhudi.arrow; pyhudi.arrow.Table; pyhudi.HudiTable"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr.splitlines()[-1] == (
        'ImportError: pyhudi.HudiTable needs PySpark, which this Python has not: pip install "pyhudi[spark]"; without '
        "Spark, pyhudi.arrow.Table reads and writes tables."
    )


def test_the_page_of_places_names_each_dependency() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("\ndependencies = [")[2].partition("\n]")[0]
    needed = re.findall(r'^  "([a-z]+)>=', text, re.MULTILINE)

    assert f"    pip install {' '.join(needed)} " in (ROOT / "docs/places.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("version", "fails"), [("3.5.3", True), ("4.0.0", False), ("4.3.0.dev1", False)])
def test_an_older_pyspark_is_refused_at_the_import(tmp_path: Path, version: str, fails: bool) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark/__init__.py").touch()
    (tmp_path / "pyspark/version.py").write_text(f"__version__: str = {version!r}\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "import pyhudi"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (result.returncode != 0) == fails
    assert ("ImportError: pyhudi needs PySpark 4.0 or newer, and this Python has 3.5.3" in result.stderr) == fails
