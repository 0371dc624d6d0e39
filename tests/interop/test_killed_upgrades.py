"""Upgrades of version 6 that pyhudi left half done, as Apache Hudi meets them: the rows of before or after, or none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.test_upgrades_of_version_6 import KEYED
from pyhudi.arrow import Table
from pyhudi.operations.services.versions.change_version import change_version
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from support.attempts import IMPATIENT
from support.faults.faulty import Killed
from support.faults.traces import Trace, TracedStorage
from support.made.compacting import means
from support.readers import read_without_spark
from support.recorded.recorded_version_6 import shown, unpack
from support.rules.health import errors

pytestmark = pytest.mark.interop

# Right before which call of the store the process dies: the first after so many that begin alike.
MOMENTS = {
    "some copied": ("write .hoodie/timeline/", 6),
    "all copied": ("create .hoodie/.pyhudi/decisions/", 0),
    "decided": ("create .hoodie/hoodie.properties.backup", 0),
    "properties set": ("create .hoodie/.pyhudi/decisions/", 1),
    "nothing deleted": ("delete .hoodie/<time", 0),
}


@dataclass
class Dying(Trace):
    """Calls of the store of a process that dies before one of them."""

    call: str = ""
    passed: int = 0

    def add(self, verb: str, *given: object, **named: object) -> None:
        super().add(verb, *given, **named)
        if self.lines[-1].startswith(self.call):
            self.passed -= 1
            if self.passed < 0:
                raise Killed


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi-0.15"), release="0.15.0")
    yield process
    process.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("made"))


def left(made: Path, folder: Path, moment: str) -> Path:
    """Return a copy of a table whose upgrade died at a moment."""
    path = Path(shutil.copytree(made / "cow_past", folder))
    storage: Any = TracedStorage(open_storage(str(path)), Dying(call=MOMENTS[moment][0], passed=MOMENTS[moment][1]))
    with pytest.raises(Killed):
        change_version(storage, "upgrade", 9, replace(means(storage), patience=IMPATIENT.patience))
    return path


def answer(apache: ApacheHudi, path: Path) -> object:
    """Return the rows that Apache Hudi shows; None where it refuses."""
    try:
        return shown(apache.read(path))
    except ApacheHudiError:
        return None


def rows_of(rows: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(rows[name].to_pylist() for name in ("id", "name", "p")), strict=True))


@pytest.mark.parametrize("moment", MOMENTS)
def test_both_releases_show_the_rows_or_refuse(
    made: Path, tmp_path: Path, apache: ApacheHudi, old: ApacheHudi, moment: str
) -> None:
    rows = shown(read_without_spark(made / "cow_past"))
    path = left(made, tmp_path / "t", moment)

    answers = {"0.15": answer(old, path), "1.2": answer(apache, path)}

    print(moment, {name: None if each is None else each == rows for name, each in answers.items()})  # noqa: T201
    assert all(each in (None, rows) for each in answers.values())
    assert shown(read_without_spark(path)) == rows


@pytest.mark.parametrize("upgrades", [True, False])
@pytest.mark.parametrize("moment", MOMENTS)
def test_pyhudi_goes_on_after_a_write_of_apache_hudi(
    made: Path, tmp_path: Path, apache: ApacheHudi, moment: str, upgrades: bool
) -> None:
    path = left(made, tmp_path / "t", moment)
    before = rows_of(read_without_spark(path))
    sample = Table(path).read().slice(0, 2)
    version = str(load_config(open_storage(str(path))).version)
    stays = {} if upgrades else {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": version}
    told = ""
    try:
        apache.write(path, sample, {**KEYED, **stays})
    except ApacheHudiError as error:
        told = str(error).splitlines()[0][:200]
    print(moment, upgrades, told, load_config(open_storage(str(path))).version)  # noqa: T201
    Table(path).upgrade()
    Table(path).upsert(sample)

    assert rows_of(Table(path).read()) == before
    assert rows_of(apache.read(path)) == before
    assert errors(path) == []
