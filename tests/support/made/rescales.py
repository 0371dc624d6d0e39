"""Rescales for tests: carried out, or left behind as a process at work leaves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi.operations.result import ServiceResult
from pyhudi.operations.services.rescale.rescale import rescale_buckets
from pyhudi.operations.transaction.claimed import begin_claimed
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import BucketNumbers
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant
from pyhudi.timeline.metadata.models import RequestedReplaceMetadata
from pyhudi.timeline.rescales import KEY, PENDING_OPERATION, REPLACE_COMMIT, Rescale
from pyhudi.timeline.writers.patience import Patience
from support.made.compacting import means
from support.made.rescaling import numbers_at


def rescale(path: Path | str, n: int, partitions: list[str] | None = None, **changes: Any) -> ServiceResult:
    """Rescale in this process; changes of the means, and ``dry_run`` and ``whole_table``, go by their names."""
    storage = open_storage(str(path))
    call = {name: changes.pop(name) for name in ("dry_run", "whole_table") if name in changes}
    return rescale_buckets(storage, n, means(storage, **changes), partitions=partitions, **call)


def leave_rescale(path: Path | str, *partitions: str, inflight: bool = False) -> Instant:
    """Leave a rescale by a process that lives, this one: requested, or reading; of the whole table by default."""
    table = open_table(open_storage(str(path)))
    text = Rescale(8, partitions or None).spell()
    plan = RequestedReplaceMetadata(operation_type=PENDING_OPERATION, extra_metadata={KEY: text})
    work = begin_claimed(table, REPLACE_COMMIT, Patience(), "", lambda _: plan)
    if inflight:
        table.instants.start(work.inflight)
    return work.inflight


def numbers(path: Path | str) -> BucketNumbers:
    """Return the numbers of buckets that are in force now."""
    return numbers_at(path)
