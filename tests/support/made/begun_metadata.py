"""Tables whose metadata table begins early, so that all that happens to them afterwards has to keep it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from pyhudi.operations.services.metadata.create_index import create_index
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from support.made.compacting import means
from support.made.metadata_of_logs import with_log_files
from support.made.metadata_tables import How, files_of, simulate
from support.places import Place
from support.seams import patch_seam

BEGUN: Sequence[str] = (FILES, COLUMN_STATS, PARTITION_STATS)
"""The partitions with which a metadata table begins."""

# Of as few files as a test has the metadata table would not be asked.
_THRESHOLDS = (
    *("least file slices on a disk", "least file slices over a network"),
    *("folders of a disk for which the metadata table answers", "folders that a file of the metadata table takes"),
)


def begin_metadata(path: Place, *, by_apache_hudi: bool = False) -> None:
    """Give a table its metadata table: one that pyhudi builds, or one as Apache Hudi would have made it."""
    if by_apache_hudi:
        files, bounds = with_log_files(str(path), files_of(str(path)))
        simulate(str(path), files, bounds, how=How(only=BEGUN))
        return
    storage = open_storage(str(path))
    built = create_index(storage, PARTITION_STATS, means(storage))
    assert sorted(built.indexes) == sorted(BEGUN)


def assert_in_use(path: Place, wanted: Sequence[str] = BEGUN) -> None:
    """Assert that partitions of a table's metadata table are in use, by default those with which it began."""
    names = load_config(open_storage(str(path))).metadata_partitions
    assert names == tuple(sorted(wanted)), f"the metadata table has the partitions {names} in use"


@contextmanager
def asked_always() -> Iterator[None]:
    """Have readers ask the metadata table of a table however few files it has."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _THRESHOLDS:
            patch_seam(patch, name, 0)
        yield
