"""Infers a table's index from its record index or the names of its file groups, if its properties do not name it.

Apache Hudi keeps no note of a table's index. Its bucket index puts the number of the bucket in place of the first eight
characters of a file id, which otherwise are those of a random UUID. A record index is named in the table's index
definitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...errors import UnsupportedTableError
from ..config import property_keys as key
from ..config.table_config import TableConfig
from ..files.names import FileGroupId, bucket_by_name
from ..files.read_written import read_written
from ..files.view import FileView
from ..record_index import kind_by_record_index
from ..table import Table

_RANDOM_IDS = 16**8
# File ids that begin as buckets do count as buckets if chance alone would be less likely than this.
_HARDLY_EVER = 1e-4


@dataclass(frozen=True, slots=True)
class InferredIndex:
    """What a table shows of its index.

    Attributes:
        kind: BUCKET by the names of the file groups; the kind of a record index; else SIMPLE, which finds rows in any
            file group of their partition. None if file groups contradict each other.
        mixture: If they do, a file group that is a bucket by its name, and a file group that is none.
        by_record_index: Whether a record index shows it.
    """

    kind: str | None
    mixture: tuple[FileGroupId, ...] = ()
    by_record_index: bool = False


def is_unnoted(config: TableConfig) -> bool:
    """Return whether a table has record keys and its properties name no index."""
    return not config.generates_keys and config.index_type is None


def index_of_groups(groups: Iterable[FileGroupId]) -> InferredIndex:
    """Return the index that the names of a table's file groups show; SIMPLE if they show no buckets."""
    buckets: list[tuple[int, FileGroupId]] = []
    unnumbered: list[FileGroupId] = []
    for group in groups:
        number = bucket_by_name(group.file_id)
        if number is None:
            unnumbered.append(group)
        else:
            buckets.append((number, group))
    greatest = max((number for number, _ in buckets), default=0)
    if not buckets or _may_be_chance(len(buckets), greatest, len(buckets) + len(unnumbered)):
        return InferredIndex(key.SIMPLE)
    return InferredIndex(None, (buckets[0][1], unnumbered[0])) if unnumbered else InferredIndex(key.BUCKET)


def index_of_view(view: FileView, partitions: Iterable[str]) -> InferredIndex:
    """Return the index of a table's live file groups, or of its replaced file groups if it has no others."""
    paths = tuple(partitions)
    live = [group.id for partition in paths for group in view.groups(partition).values()]
    if live:
        return index_of_groups(live)
    inferred = index_of_groups([group.id for partition in paths for group in view.replaced_groups(partition).values()])
    # A contradiction between replaced file groups does not matter.
    return InferredIndex(key.SIMPLE) if inferred.kind is None else inferred


def index_of_table(table: Table, view: FileView, partitions: Iterable[str]) -> InferredIndex:
    """Return the index that a table shows: BUCKET by the names of its file groups, or that of its record index."""
    inferred = index_of_view(view, partitions)
    kind = None if inferred.kind == key.BUCKET else kind_by_record_index(table)
    return inferred if kind is None else InferredIndex(kind, by_record_index=True)


def infer_index(table: Table) -> InferredIndex:
    """Return the index that the table shows now; all its partitions are listed."""
    timeline = table.timeline()
    view = FileView(timeline, read_written(timeline))
    return index_of_table(table, view, view.partitions())


def with_inferred_index(table: Table) -> Table:
    """Return a table whose properties name an index, inferred if need be; raises as `mixed` says."""
    if not is_unnoted(table.config):
        return table
    inferred = infer_index(table)
    if inferred.kind is None:
        raise mixed(inferred, table.path)
    config = with_inferred(table.config, inferred)
    return table if config is table.config else replace(table, config=config)


def with_inferred(config: TableConfig, inferred: InferredIndex) -> TableConfig:
    """Return properties with the inferred index, unless it is BUCKET: only writers know how many buckets there are."""
    looked_up = inferred.kind not in {None, key.BUCKET}
    return TableConfig({**config.properties, key.INDEX_TYPE: str(inferred.kind)}) if looked_up else config


def mixed(inferred: InferredIndex, where: str) -> UnsupportedTableError:
    """Return the error for a table whose file groups are buckets in part."""
    return UnsupportedTableError(
        f"The table {where} {mixture(inferred)}, so that its index is unknown.",
        f"If none of its writers uses buckets, set {key.INDEX_TYPE}={key.SIMPLE} once; pyhudi remembers it in the "
        f"table. Else rewrite the table with mode overwrite and {key.BUCKET_COUNT}.",
    )


def mixture(inferred: InferredIndex) -> str:
    """Return the words for a bucket and a file group that is none, as they occur in one table."""
    bucket, unnumbered = inferred.mixture
    return (
        f"says nothing of its index, and has the file group {bucket.file_id} in partition {bucket.partition_path!r}, "
        f"which is a bucket by its name, beside {unnumbered.file_id} in partition {unnumbered.partition_path!r}, which "
        "is none"
    )


def _may_be_chance(count: int, greatest: int, total: int) -> bool:
    """Return whether ``count`` of ``total`` random ids may begin with numbers up to ``greatest`` (Poisson's law)."""
    expected = total * (greatest + 1) / _RANDOM_IDS
    return count * math.log(expected) - math.lgamma(count + 1) > math.log(_HARDLY_EVER)
