"""Tables that are sorted without Spark, and the slices that readers see of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi.operations.meeting.concurrency import COMPACTION
from pyhudi.operations.result import ServiceResult
from pyhudi.operations.services.means import Means
from pyhudi.operations.services.sorting.sort import SortingCompaction, sort
from pyhudi.operations.services.sorting.unsorted import UnsortedSlices
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import update_config
from pyhudi.table.config.property_keys import SORT_BY
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.files.output import Output
from pyhudi.table.table import open_table
from pyhudi.timeline.writers.patience import Patience

IMPATIENT = Patience(heartbeat_misses=-1, foreign_age_s=-1.0)
MEANS = Means(IMPATIENT, Output())


def run(path: Path | str, *, means: Means | None = None, storage: Storage | None = None, **asked: Any) -> ServiceResult:
    """Sort a table in this process."""
    return sort(storage or open_storage(str(path)), means or MEANS, **asked)


def schedule(path: Path | str, *by: str) -> str:
    """Note an order of a merge-on-read table and plan the compaction that makes it; return its time."""
    storage = open_storage(str(path))
    update_config(storage, {SORT_BY: ",".join(by)})
    table = open_table(storage)
    assert table.config.sort_order is not None
    service = SortingCompaction(table, MEANS, UnsortedSlices(storage, table.config.sort_order, None, COMPACTION))
    made = service.schedule()
    assert made is not None
    return made[0].requested_time


def slices(path: Path | str) -> list[FileSlice]:
    return list(open_snapshot(str(path)).slices())
