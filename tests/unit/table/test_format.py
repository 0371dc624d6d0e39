"""Which format a table's version has."""

from __future__ import annotations

import uuid

import pytest
from pyhudi.errors import TableVersionError
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig
from pyhudi.table.files.logs.log_archive import LogArchive
from pyhudi.table.table import Table
from pyhudi.timeline.archive.lsm import LsmArchive
from pyhudi.timeline.layout import LayoutV1, LayoutV2


def table_of(version: int) -> Table:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.version": str(version),
        "hoodie.timeline.path": "elsewhere",
        "hoodie.timeline.history.path": "past",
        "hoodie.archivelog.folder": "kept",
    }
    return Table(open_storage(f"memory://{uuid.uuid4().hex}"), TableConfig(properties))


@pytest.mark.parametrize("version", [8, 9])
def test_versions_8_and_9_have_layout_2_in_the_folders_of_their_properties(version: int) -> None:
    table = table_of(version)

    assert table.instants.layout == LayoutV2(".hoodie/elsewhere", ".hoodie/elsewhere/past")
    assert table.archive == LsmArchive(table.storage, ".hoodie/elsewhere/past")


def test_version_6_has_layout_1_and_its_archive_in_the_folder_of_its_property() -> None:
    table = table_of(6)

    assert table.instants.layout == LayoutV1(".hoodie", ".hoodie/kept")
    assert table.archive == LogArchive(table.storage, ".hoodie/kept")


@pytest.mark.parametrize("version", [5, 7, 10])
def test_other_versions_are_refused_by_number(version: int) -> None:
    with pytest.raises(TableVersionError, match=f"table 't' is of version {version},"):
        table_of(version).timeline()
