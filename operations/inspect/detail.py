"""The properties and the size of a table, in one row."""

from __future__ import annotations

import pyarrow as pa

from ...storage.base import Storage
from ...table.config import check_supported
from ...table.files.view import FileView
from ...table.files.written import read_written
from ...table.infer_index import index_of_view, is_unnoted
from ...table.table import open_table
from .debt import DEBT_FIELDS, debt_of

DETAIL_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
        pa.field("record_key", pa.list_(pa.string()), nullable=False),
        pa.field("partition_by", pa.list_(pa.string()), nullable=False),
        pa.field("order_by", pa.list_(pa.string()), nullable=False),
        pa.field("index", pa.string()),
        pa.field("buckets", pa.int32()),
        pa.field("partitions", pa.int64(), nullable=False),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        *DEBT_FIELDS,
        pa.field("newest_instant", pa.string()),
        pa.field("completed", pa.string()),
        pa.field("properties", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)


def detail(storage: Storage) -> pa.Table:
    """Return one row about a table, with columns as in `DETAIL_SCHEMA`; files are listed, but none is opened.

    Partitions, files and bytes are those of the newest file slices; files and bytes count base files, and `debt_of`
    counts log files. Where no property names the index, it follows from the names of file groups; null where they
    contradict each other. The newest instant is the completed write with the latest requested time.
    """
    table = open_table(storage)
    config, timeline = table.config, table.timeline()
    check_supported(config, storage.path, writing=False)
    view = FileView(timeline, read_written(timeline))
    partitions = view.partitions()
    slices = [file_slice for partition in partitions for file_slice in view.slices(partition).values()]
    newest = timeline.writes[-1] if timeline.writes else None
    row = {
        "name": config.name,
        "path": storage.path,
        "type": config.table_type,
        "version": config.version,
        "record_key": config.record_key_fields,
        "partition_by": config.partition_fields,
        "order_by": config.ordering_fields,
        "index": index_of_view(view, partitions).kind if is_unnoted(config) else config.index_type,
        "buckets": config.bucket_count,
        "partitions": len({one.partition_path for one in slices}),
        "files": sum(one.base is not None for one in slices),
        "bytes": sum(one.size - one.log_bytes for one in slices),
        **debt_of(timeline, slices),
        "newest_instant": newest and newest.requested_time,
        "completed": newest and newest.completion_time,
        "properties": sorted(config.properties.items()),
    }
    return pa.Table.from_pylist([row], DETAIL_SCHEMA)
