"""Compares record indexes and secondary indexes of the metadata table with the rows of the newest slices, both ways.

Memory holds some of the keys at a time: those of a few file groups of a record index, or of one part of the hashes'
range. The rows are read once for each part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.arrays import Mask, plain
from ...table.arrow.string_hash import hash64
from ...table.files.base_file import BaseFileReader
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.metadata.kinds import RECORD_INDEX, by_partition, groups_of
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import beginnings, escaped, escaped_record_keys
from ...table.metadata.record_places import file_group_in
from ...table.schema.columns import RECORD_KEY
from .check_catalogue import (
    METADATA_KEY_LEFT,
    METADATA_KEY_MISSING,
    METADATA_KEY_PLACE,
    METADATA_VALUE_LEFT,
    METADATA_VALUE_MISSING,
    NOT_CHECKED,
)
from .metadata_subject import MetadataSubject, any_in, first_of

MOST_KEYS = 4_000_000
_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])
# Bytes of log files per row, by which rows are estimated.
_A_LOG_ROW = 100


def check_record_index(judged: MetadataSubject) -> None:
    """Compare the record index, of the whole table or of each partition, with the rows."""
    partition = judged.metadata.partition(RECORD_INDEX)
    # An index of the whole table has None as its only path.
    indexed = by_partition(list(partition.slices))
    for path, file_ids in indexed.items():
        slices = [each for each in judged.newest if path is None or each.partition_path == unquote(path)]
        _RecordIndex(judged, partition, file_ids, slices).check()
    paths = {unquote(path) for path in indexed if path is not None}
    unindexed_slices = [] if None in indexed else [each for each in judged.newest if each.partition_path not in paths]
    for partition_path in sorted({each.partition_path for each in unindexed_slices}):
        what = f"it has no file group for the partition {partition_path!r}, which has rows."
        judged.add(METADATA_KEY_MISSING, RECORD_INDEX, what)


@dataclass(frozen=True)
class _RecordIndex:
    """The file groups of one record index, and the slices whose rows it has."""

    judged: MetadataSubject
    partition: MetadataPartition
    file_ids: Sequence[str]
    slices: Sequence[FileSlice]

    def check(self) -> None:
        """Compare rows and entries, in as many passes as memory needs, each with a part of the index's file groups."""
        passes = min(passes_for(self.judged, self.slices), len(self.file_ids))
        for part in range(passes):
            rows = self._row_keys(part, passes)
            if rows is not None:
                self._compare(*rows, *self._entry_keys(part, passes))

    def _row_keys(self, part: int, passes: int) -> tuple[pa.Array, Mask] | None:
        """Return the keys of the rows of one pass, and the number of the slice of each; None if a slice is damaged.

        A pass has the keys whose hashes lead to file groups with the numbers ``part``, ``part + passes`` and so on.
        """
        keys, numbers = [pa.array([], pa.string())], [np.zeros(0, np.int64)]

        def chosen(some_keys: pa.StringArray) -> Mask:
            return np.asarray(groups_of(some_keys, len(self.file_ids)) % passes == part)

        for number, file_slice in enumerate(self.slices):
            with self.judged.subject.unreadable(file_slice.files[0]):
                for rows in self.judged.rows(file_slice, _KEYS):
                    row_keys = plain(rows.column(RECORD_KEY)).drop_null()
                    row_keys = row_keys if passes == 1 else row_keys.filter(pa.array(chosen(row_keys)))
                    keys.append(row_keys)
                    numbers.append(np.full(len(row_keys), number))
                continue
            # The slice could not be read, which is a finding.
            return None
        return pa.concat_arrays(keys), np.concatenate(numbers)

    def _entry_keys(self, part: int, passes: int) -> tuple[pa.Array, Mask]:
        """Return the keys in the index's file groups of one pass, and the number of the slice that each entry names.

        The number is -1 if the table has no such slice. A pass is as in `_row_keys`.
        """
        keys, numbers = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
        number_of_group: dict[FileGroupId | None, int] = {each.group: number for number, each in enumerate(self.slices)}
        for group_number in range(part, len(self.file_ids), passes):
            for records in self.partition.records_in(self.file_ids[group_number]):
                entry_keys = records.field("key")
                self.judged.check_hashes(
                    self.partition, entry_keys, self.file_ids[group_number], group_number, len(self.file_ids)
                )
                keys.append(entry_keys)
                numbers.append(_slice_numbers(records.field("recordIndexMetadata"), number_of_group))
        return pa.concat_arrays(keys), np.concatenate(numbers)

    def _compare(self, row_keys: pa.Array, row_numbers: Any, keys: pa.Array, numbers: Any) -> None:
        """Report rows without an entry, entries without a row, and entries that lead to another file group.

        ``keys`` are the keys of entries. ``row_numbers`` and ``numbers`` are the numbers of the slices that rows are
        in, and that entries name.
        """
        all_keys = pa.concat_arrays([row_keys, keys]).dictionary_encode()
        indices = all_keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        of_rows, of_entries = indices[: len(row_keys)], indices[len(row_keys) :]
        is_missing = ~_is_among(of_entries, len(all_keys.dictionary))[of_rows]
        is_left = ~_is_among(of_rows, len(all_keys.dictionary))[of_entries]
        slice_count = len(self.slices) + 1
        # If a key has several rows, which is a finding of its own, its entry leads to one of them.
        astray = ~is_left & ~np.isin(of_entries * slice_count + numbers, of_rows * slice_count + row_numbers)
        if is_missing.any():
            what = f"it lacks the record keys of rows: {first_of(row_keys, pa.array(is_missing))}, which is in"
            self._add(METADATA_KEY_MISSING, what, row_numbers[np.argmax(is_missing)])
        if is_left.any():
            what = f"it has record keys of no row: {first_of(keys, pa.array(is_left))}, which it says is in"
            self._add(METADATA_KEY_LEFT, what, numbers[np.argmax(is_left)])
        if astray.any():
            first_astray = np.argmax(astray)
            row_number = row_numbers[np.argmax(of_rows == of_entries[first_astray])]
            what = (
                f"it leads to other file groups than those of the rows: {first_of(keys, pa.array(astray))}, which is in"
            )
            self._add(
                METADATA_KEY_PLACE,
                f"{what} {self._group_in_words(row_number)} and said to be in",
                numbers[first_astray],
            )

    def _add(self, check: Any, what: str, number: int) -> None:
        """Add a finding whose sentence ends with the file group of a slice, given by its number."""
        self.judged.add(check, RECORD_INDEX, f"{what} {self._group_in_words(number)}.")

    def _group_in_words(self, number: int) -> str:
        """Return the file group of a slice by its number, for a finding; -1 is a group that the table does not have."""
        if number < 0:
            return "a file group that the table does not have"
        file_slice = self.slices[number]
        return f"the file group {file_slice.file_id} of the partition {file_slice.partition_path!r}"


def _is_among(indices: Any, count: int) -> Mask:
    """Return for each number below ``count`` whether some indices have it."""
    present = np.zeros(count, np.bool_)
    present[indices] = True
    return present


def _slice_numbers(info: pa.StructArray, number_of_group: Mapping[FileGroupId | None, int]) -> Any:
    """Return the number of the file group of each entry, -1 for a file group that the table does not have.

    ``info`` has the field ``recordIndexMetadata`` of each entry.
    """
    # Number the combinations of these fields, so that each file group is parsed once.
    names = ["partitionName", "fileIdEncoding", "fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId"]
    combined = np.zeros(len(info), np.int64)
    for name in names:
        encoded = info.field(name).dictionary_encode(null_encoding="encode")
        count = max(len(encoded.dictionary), 1)
        combined = combined * count + encoded.indices.to_numpy(zero_copy_only=False)
        # Make the numbers as small as possible, so that those of the next field fit.
        combined = np.unique(combined, return_inverse=True)[1]
    _, firsts, inverse = np.unique(combined, return_index=True, return_inverse=True)
    distinct = info.take(pa.array(firsts)).to_pylist()  # O(file groups)
    slice_numbers = np.array([number_of_group.get(file_group_in(entry), -1) for entry in distinct], np.int64)
    return slice_numbers[inverse] if len(slice_numbers) else np.zeros(0, np.int64)


def passes_for(judged: MetadataSubject, slices: Sequence[FileSlice]) -> int:
    """Return how many times the rows are read, so that memory holds about `MOST_KEYS` of their keys at most."""
    rows = 0
    for file_slice in slices:  # O(file groups)
        rows += file_slice.log_bytes // _A_LOG_ROW
        if file_slice.base is not None:
            path = file_slice.base.path
            with judged.subject.unreadable(path), BaseFileReader(judged.subject.storage, path) as reader:
                rows += reader.rows
    return rows // MOST_KEYS + 1


def check_secondary_index(judged: MetadataSubject, name: str) -> None:
    """Compare the pairs of a value and a record key with those of the rows.

    ``name`` is that of the index, and of its partition of the metadata table ``judged``. A pair
    that only one side has is a finding.
    """
    definition = judged.indexes.get(name)
    fields = definition.columns if definition is not None else ()
    if len(fields) != 1 or fields[0] not in judged.schema.names:
        what = f"{name} of the metadata table is of {', '.join(fields) or 'no column'}, and was not compared with rows."
        judged.subject.findings.add(NOT_CHECKED, what)
        return
    column = judged.schema.field(fields[0])
    of_entries, of_rows = _pairs_of_entries, _pairs_of_rows(column)
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        # It is not documented how Apache Hudi spells other values, so only the record keys are compared.
        of_entries, of_rows = _keys_of_entries, _escaped_keys
    passes = passes_for(judged, judged.newest)
    columns = pa.schema([*_KEYS, *([column] if column.name != RECORD_KEY else [])])
    for part in range(passes):
        row_texts: list[pa.Array] = [pa.array([], pa.string())]
        for file_slice in judged.newest:
            with judged.subject.unreadable(file_slice.files[0]):
                row_texts += [_of_part(of_rows(rows), part, passes) for rows in judged.rows(file_slice, columns)]
                continue
            # Without the rows of this slice, its entries would look left over.
            return
        entry_texts = [pa.array([], pa.string())]
        for records in judged.entries(judged.metadata.partition(name)):
            entry_texts.append(_of_part(of_entries(records), part, passes))
        _compare_pairs(judged, name, column.name, pa.concat_arrays(row_texts), pa.concat_arrays(entry_texts))


def _compare_pairs(judged: MetadataSubject, name: str, column: str, rows: pa.Array, entries: pa.Array) -> None:
    """Report pairs of rows that the index lacks, and pairs of the index that no row has."""
    is_missing, is_left = pc.invert(pc.is_in(rows, value_set=entries)), pc.invert(pc.is_in(entries, value_set=rows))
    if any_in(is_missing):
        what = f"it lacks values of {column} with the record keys of their rows: {first_of(rows, is_missing)}."
        judged.add(METADATA_VALUE_MISSING, name, what)
    if any_in(is_left):
        what = f"it has values of {column} that their rows do not have, or of no row: {first_of(entries, is_left)}."
        judged.add(METADATA_VALUE_LEFT, name, what)


def _of_part(texts: pa.StringArray, part: int, passes: int) -> pa.StringArray:
    """Return the texts of one part of the hashes' range; all texts for a single pass."""
    if passes == 1:
        return texts
    return texts.filter(pa.array(hash64(texts) % np.uint64(passes) == part))


def _pairs_of_entries(records: pa.StructArray) -> pa.StringArray:
    return records.field("key")


def _keys_of_entries(records: pa.StructArray) -> pa.StringArray:
    """Return the record keys of an index's entries, as the entries spell them."""
    return escaped_record_keys(records.field("key"))


def _escaped_keys(rows: pa.RecordBatch) -> pa.StringArray:
    """Return the record keys of rows as entries of the index spell them."""
    return escaped(plain(rows.column(RECORD_KEY)))


def _pairs_of_rows(column: pa.Field) -> Callable[[pa.RecordBatch], pa.StringArray]:
    """Return a function that returns the pairs of rows, spelled as in keys of the index."""

    def spelt(rows: pa.RecordBatch) -> pa.StringArray:
        values = beginnings(plain(rows.column(column.name)).cast(pa.string()))
        return pc.binary_join_element_wise(values, _escaped_keys(rows), "")

    return spelt
