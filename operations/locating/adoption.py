"""Checks of the properties that a write adds to a table, against rows of the table.

Apache Hudi stores no number of buckets and only some of the time options: the first write whose options name them adds
them. A write to new partitions alone could store a wrong number or zone, so these checks read rows of other partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import OptionConflictError, UnsupportedTableError
from ...index.registry import computed_index_for
from ...storage.threads import for_each
from ...table.config.key_types import PartitionType
from ...table.config.property_keys import BUCKET_COUNT, PARTITION_TYPES, TIME_OPTIONS
from ...table.files.base_file import open_base
from ...table.files.file_group import BaseFile, DataFile, FileSlice
from ...table.files.view import FileView
from ...table.inferred.some_rows import some_rows
from ...table.keys.generator import KeyGenerator
from ...table.schema.columns import RECORD_KEY
from ...table.schema.fields import root_of, values_of
from ...table.seen_table import SeenTable
from ...writer.foreign import check_bucket, check_spelling
from ..planning.operation import OVERWRITE_TABLE
from ..planning.plan import WritePlan

_FILES_LOOKED_INTO = 8
_ROWS_LOOKED_AT = 1000


def check_new_properties(plan: WritePlan, seen: SeenTable) -> None:
    """Raise if rows of some files, of any partition, contradict the properties that the write adds.

    An overwrite of the table replaces all rows, so it need not agree with them.
    """
    adds_times = any(option in plan.config_changes for option in (*TIME_OPTIONS, PARTITION_TYPES))
    adds_buckets = BUCKET_COUNT in plan.config_changes
    if not (adds_times or adds_buckets) or plan.operation == OVERWRITE_TABLE:
        return
    view = seen.view
    needed_columns = {root_of(field) for field in plan.config.partition_fields} if adds_times else set()
    schema = pa.schema(
        [pa.field(RECORD_KEY, pa.string()), *(field for field in plan.schema if field.name in needed_columns)]
    )
    slices = (file_slice for partition in view.partitions() for file_slice in view.slices(partition).values())
    for file_slice in islice(slices, _FILES_LOOKED_INTO):
        for file, rows in some_rows(plan.storage, file_slice, schema):
            if adds_buckets:
                _check_bucket(plan, rows, file_slice, file)
            if adds_times:
                _check_partition(plan, rows, file_slice, file)


def check_spelling_of_others(plan: WritePlan, view: FileView, partitions: Iterable[str]) -> None:
    """Raise UnsupportedTableError if files of other writers spell record keys differently.

    No lookup would find these keys, and the write would add rows that exist. Files with a found key are merged, which
    checks them; a missing key may be in any other file of ``view``, the newest file slices. ``partitions`` are those in
    which keys were not found. This reads some rows of some files. In a table that is or was of version 6 it reads all
    rows, because any row may have the other spelling.
    """
    all_rows = plan.config.may_spell_keys_twice
    most_files, most_batches = (None, None) if all_rows else (_FILES_LOOKED_INTO, 1)
    key_columns = {root_of(field) for field in plan.config.record_key_fields}
    schema = pa.schema(
        [pa.field(RECORD_KEY, pa.string()), *(field for field in plan.schema if field.name in key_columns)]
    )
    keys = KeyGenerator(plan.config, plan.schema)
    paths = sorted(partitions)
    # Under an index of the whole table, a missing key may be in any partition.
    if paths and plan.lookup.is_global:
        paths = view.partitions()
    slices = (file_slice for path in paths for file_slice in view.slices(path).values())
    files = [file_slice.base for file_slice in islice(slices, most_files) if file_slice.base is not None]

    def look(file: BaseFile) -> None:
        with open_base(plan.storage, file) as reader:
            # The files of pyhudi have its own spelling.
            if not reader.stamped:
                for rows in islice(reader.batches(schema, batch_rows=_ROWS_LOOKED_AT), most_batches):
                    check_spelling(keys, rows, file)

    for_each(plan.storage, look, files)


def misfit_error(plan: WritePlan, file_slice: FileSlice) -> UnsupportedTableError:
    """Return the error of a file group that is no bucket of its partition, or a second file group of a bucket."""
    file = file_slice.data_files[0]
    count = computed_index_for(plan.config, plan.numbers).count_of(file_slice.partition_path)
    return UnsupportedTableError(
        f"The file group {file_slice.file_id} of the table {plan.path} (file {file.path}, instant "
        f"{file_slice.base_time}) does not fit a bucket index with {count} buckets.",
        "Check hoodie.bucket.index.num.buckets against the table's writers; leave it out if none of them uses buckets.",
    )


def _check_bucket(plan: WritePlan, rows: pa.RecordBatch, file_slice: FileSlice, file: DataFile) -> None:
    """Raise if by the write's number of buckets the file group is no bucket, or a key of the file is in a wrong one."""
    index = computed_index_for(plan.config, plan.numbers)
    if index.number_of(file_slice.group) is None:
        raise misfit_error(plan, file_slice)
    check_bucket(index, rows.column(RECORD_KEY), file_slice.group, file)


def _check_partition(plan: WritePlan, rows: pa.RecordBatch, file_slice: FileSlice, file: DataFile) -> None:
    """Raise if by the write's time options a row of a file would belong to another partition than the file does.

    ``rows`` are some rows of ``file``, which is a file of ``file_slice``. The error is an OptionConflictError.
    """
    config = plan.config
    paths = KeyGenerator(config, plan.schema).partition_paths(rows).cast(pa.string())
    misplaced = np.flatnonzero(np.asarray(pc.not_equal(paths, file_slice.partition_path)))
    if not len(misplaced):
        return
    row = int(misplaced[0])
    field = config.partition_fields[config.partition_types.index(PartitionType.TIMESTAMP)]
    value = values_of(rows, field)[row].as_py()  # one value, for the error
    path = paths[row].as_py()  # one value, for the error
    raise OptionConflictError(
        f"The {file.kind} {file.path} of the table {config.name!r} holds a row with {field}={value!r}, which "
        f"the options would put into the partition {path!r}.",
        f"Give {', '.join(config.time_options)} the values that the table's writers use.",
    )
