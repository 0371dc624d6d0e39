"""What it takes to carry out one file slice of a plan, whatever is done to it, and what completes the plan.

The write tokens in the names of the files tell apart who carried a plan out.
"""

from __future__ import annotations

import secrets
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from ....storage import open_storage
from ....storage.base import Storage
from ....table.files.file_group import FileSlice
from ....table.files.names import WriteToken
from ....table.schema.columns import avro_schema
from ....timeline import formats
from ....timeline.writers import heartbeat
from ....version import VERSION
from ...transaction.transaction import Transaction

if TYPE_CHECKING:
    from ....timeline.metadata.models import CommitMetadata, WriteStat

# The key of extraMetadata that says which release of pyhudi carried a plan out.
MADE_BY = "pyhudi.version"
# Apache Hudi takes the parts of a write token for Java's ints.
_MOST = (1 << 31) - 1


def token_of(work: Transaction) -> tuple[int, int]:
    """Return the numbers in the names of the files of one who carries a plan out; nobody else has the same."""
    both = uuid.UUID(hex=work.write_id).int
    return both % _MOST, (both >> 64) % _MOST


def new_token(work: Transaction) -> WriteToken:
    """Return the token of one attempt at one file.

    Whoever carried the plan out before may be late: no file of another attempt may have the same name.
    """
    return WriteToken(*token_of(work), secrets.randbelow(_MOST))


@contextmanager
def at_work(work: Transaction) -> Iterator[Storage]:
    """Yield a folder of this machine for what memory has no place for; the plan counts as alive meanwhile.

    Args:
        work: The plan's instant, claimed.
    """
    interval = work.patience.heartbeat_interval_s
    with (
        heartbeat.HeartbeatThread(work.storage, work.instant_time, interval_s=interval),
        tempfile.TemporaryDirectory(prefix="pyhudi-") as folder,
    ):
        yield open_storage(folder, durable=False)


def every_block(_: str) -> bool:
    """Return that a block counts: a plan names complete log files alone."""
    return True


def largest_first(plan: Iterable[FileSlice]) -> list[FileSlice]:
    """Return file slices so that whoever comes last has little left to do."""
    return sorted(plan, key=lambda one: -one.size)


def completed(
    work: Transaction,
    schema: pa.Schema,
    operation: str,
    stats: Iterable[tuple[FileSlice, WriteStat]],
    notes: Mapping[str, str] | None = None,
) -> CommitMetadata:
    """Return what the completed file says, as Apache Hudi writes it.

    Args:
        work: The plan's instant.
        schema: The table's data columns.
        operation: What Apache Hudi calls it.
        stats: What became of each slice.
        notes: Further entries of extraMetadata.
    """
    from ....timeline.metadata.models import CommitMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

    by_partition: dict[str, list[WriteStat]] = {}
    for piece, stat in sorted(stats, key=lambda one: one[0].group):
        by_partition.setdefault(piece.partition_path, []).append(stat)
    return CommitMetadata(
        partition_to_write_stats=by_partition,
        compacted=True,
        extra_metadata={
            "schema": avro_schema(schema, work.config.name),
            formats.KEY: str(formats.COMMIT_KEYS),
            MADE_BY: VERSION,
            **(notes or {}),
        },
        operation_type=operation,
    )
