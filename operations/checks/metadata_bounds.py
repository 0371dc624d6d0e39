"""Compares the bounds of columns in the metadata table, by file and by partition, with the values in the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import join, split
from ...storage.threads import for_each
from ...table.arrow.arrays import Mask, mask, struct_array
from ...table.files.column_bounds import MOST_OF_A_BOUND
from ...table.files.file_group import BaseFile, DataFile, LogFile
from ...table.metadata.column_spans import column_spans
from ...table.metadata.kinds import COLUMN_STATS, PARTITION_STATS
from ...table.metadata.record_keys import hash_of_column, hash_of_file, hash_of_partition, key_of_partition
from ...table.metadata.releases import joined
from ...table.schema.types import children
from .check_catalogue import (
    METADATA_BOUNDS,
    METADATA_BOUNDS_MISSING,
    METADATA_BOUNDS_WIDE,
    METADATA_COUNTS,
    METADATA_LEFT,
)
from .column_facts import Change, ColumnFacts, Facts, facts_of_base, facts_of_log
from .metadata_subject import MetadataSubject, any_in, name_of
from .subject import shown

# The facts of so many files are in memory at a time.
_FILES_AT_ONCE = 1000
# The number of characters of the hash of a column, or of a partition, in a key of bounds.
_OF_COLUMN = 12
# By these counts a reader decides whether it believes bounds of base files.
_IN_DOUBT = frozenset({"nullCount", "totalUncompressedSize"})


@dataclass(frozen=True)
class StatedBounds:
    """All bounds of one partition of the metadata table; each key begins with the hash of the column.

    ``bounds`` has the field ``ColumnStatsMetadata`` of the record of each key.
    """

    keys: pa.StringArray
    bounds: pa.StructArray

    @classmethod
    def read(cls, judged: MetadataSubject, partition: str) -> StatedBounds | None:
        """Return the bounds of a partition of the metadata table; None if it has no record."""
        parts = list(judged.entries(judged.metadata.partition(partition)))
        if not parts:
            return None
        records = joined(parts)
        bounds = records.field("ColumnStatsMetadata")
        has_bounds = bounds.is_valid()
        return cls(records.field("key").filter(has_bounds), bounds.filter(has_bounds))

    @cached_property
    def key_tails(self) -> pa.StringArray:
        """The end of each key, after the column: the partition, and the file if the bounds are of a file."""
        return pc.utf8_slice_codeunits(self.keys, _OF_COLUMN)

    def of_column(self, column: str) -> StatedBounds:
        """Return the bounds of one column."""
        return self.filter(pc.starts_with(self.keys, hash_of_column(column)))

    def filter(self, is_chosen: pa.Array) -> StatedBounds:
        """Return the bounds of chosen records."""
        return StatedBounds(self.keys.filter(is_chosen), self.bounds.filter(is_chosen))


FactsOfFile = tuple[DataFile, ColumnFacts]


def _table_of_facts(pairs: Sequence[FactsOfFile], data_type: pa.DataType) -> pa.Table:
    """Return the facts of a column in some files as a table with a row for each file; the column has ``data_type``."""
    facts = [fact for _, fact in pairs]
    return pa.table(
        {
            "rows": pa.array([fact.rows for fact in facts], pa.int64()),
            "nulls": pa.array([fact.nulls for fact in facts], pa.int64()),
            "least": pa.array([fact.least for fact in facts], data_type),
            "greatest": pa.array([fact.greatest for fact in facts], data_type),
        }
    )


@dataclass(frozen=True)
class TrueBounds:
    """What files or partitions hold in one column; ``keys`` are as `StatedBounds.key_tails`, ``names`` for people."""

    keys: pa.StringArray
    names: Sequence[str]
    facts: pa.Table

    @classmethod
    def of(cls, pairs: Sequence[FactsOfFile], data_type: pa.DataType) -> TrueBounds:
        """Return the true bounds of a column of type ``data_type`` in each file."""
        keys = [key_of(file) for file, _ in pairs]
        return cls(pa.array(keys, pa.string()), [file.path for file, _ in pairs], _table_of_facts(pairs, data_type))

    @classmethod
    def of_partitions(cls, pairs: Sequence[FactsOfFile], data_type: pa.DataType) -> TrueBounds:
        """Return the true bounds as `of`, with the partition path of each file as its key, for `together`."""
        paths = [split(file.path)[0] for file, _ in pairs]
        return cls(pa.array(paths, pa.string()), paths, _table_of_facts(pairs, data_type))

    def column(self, name: str) -> pa.Array:
        """Return one fact of each file or partition: ``rows``, ``nulls``, ``least`` or ``greatest``."""
        return self.facts.column(name).combine_chunks()

    def filter(self, is_chosen: Mask) -> TrueBounds:
        """Return the true bounds of chosen files or partitions."""
        chosen_array = pa.array(is_chosen)
        names = [self.names[at] for at in np.flatnonzero(is_chosen).tolist()]  # O(files)
        return TrueBounds(self.keys.filter(chosen_array), names, self.facts.filter(chosen_array))


def check_bounds_of_metadata(judged: MetadataSubject, names: Sequence[str]) -> None:
    """Compare `column_stats` with all files of completed writes, and `partition_stats` with the newest slices.

    Only those of the two that ``names`` has are compared.
    """
    stated = {name: bounds for name in names if (bounds := StatedBounds.read(judged, name)) is not None}
    by_file, by_partition = stated.get(COLUMN_STATS), stated.get(PARTITION_STATS)
    all_keys = pa.concat_arrays([found.keys for found in stated.values()]) if stated else pa.array([], pa.string())
    prefixes = pc.unique(pc.utf8_slice_codeunits(all_keys, 0, _OF_COLUMN)).to_pylist()  # O(columns)
    # Apache Hudi 0.15 counts nulls of nested columns, too, and has no bounds of them.
    plain_columns = [field for field in judged.schema if not pa.types.is_nested(field.type)]
    checked_columns = pa.schema(
        [field for field in plain_columns if hash_of_column(field.name) in prefixes and _is_kept(judged, field)]
    )
    newest = {path for file_slice in judged.newest for path in file_slice.files}
    files = [file for path, file in judged.committed.items() if by_file is not None or path in newest]
    of_files = {} if by_file is None else {field.name: by_file.of_column(field.name) for field in checked_columns}
    # The columns without bounds, by the path of the file.
    lacking: dict[str, list[str]] = {}
    in_partitions: dict[str, list[TrueBounds]] = {field.name: [] for field in checked_columns}
    for at in range(0, len(files), _FILES_AT_ONCE):
        chunk = files[at : at + _FILES_AT_ONCE]
        facts = for_each(
            judged.subject.storage, lambda file: facts_of(judged, file, checked_columns), chunk, computes=True
        )
        # The newest files whose writers must have stated bounds of all columns.
        stating_all = newest - _with_missing_columns(judged, chunk, facts, checked_columns)
        for column in checked_columns:
            pairs = with_facts(chunk, facts, column.name)
            if by_file is not None:
                files_without = _check_files(judged, column, pairs, of_files[column.name])
                for path in files_without & stating_all:
                    lacking.setdefault(path, []).append(column.name)
            if by_partition is not None:
                in_newest = [(file, fact) for file, fact in pairs if file.path in newest]
                in_partitions[column.name].append(TrueBounds.of_partitions(in_newest, column.type))
    for path, columns in lacking.items():
        if by_file is None or _needs_no_bounds(judged.committed[path], by_file):
            continue
        judged.add(
            METADATA_BOUNDS_MISSING, COLUMN_STATS, f"{path} has no bounds of {shown(columns)}, as other files have."
        )
    if by_file is not None:
        check_left(judged, COLUMN_STATS, by_file)
    if by_partition is not None:
        for column in checked_columns:
            _check_partitions(judged, column, in_partitions[column.name], by_partition.of_column(column.name))


def _is_kept(judged: MetadataSubject, column: pa.Field) -> bool:
    """Return whether bounds of a column are kept; a write that changes its type takes it out of the definition."""
    defined = judged.indexes.get(COLUMN_STATS)
    return defined is None or column.name in defined.columns


def _needs_no_bounds(file: DataFile, stated: StatedBounds) -> bool:
    """Return whether a file is a log file without any bounds, as of partial rows: readers keep its slice then."""
    if not isinstance(file, LogFile):
        return False
    return not pc.any(pc.equal(stated.key_tails, key_of(file))).as_py()  # one value a file


def facts_of(judged: MetadataSubject, file: DataFile, columns: pa.Schema, change: Change | None = None) -> Facts:
    """Return the facts of a file's columns; none for a file that cannot be read, which is a finding."""
    with judged.subject.unreadable(file.path):
        if isinstance(file, BaseFile):
            return facts_of_base(judged.subject, file, columns, change)
        return facts_of_log(judged.subject, file, columns, change)
    return {}


def _with_missing_columns(
    judged: MetadataSubject, files: Sequence[DataFile], facts: Sequence[Facts], columns: pa.Schema
) -> set[str]:
    """Return the log files whose rows may lack columns: a writer states no bounds of these columns.

    If a file has bounds of other columns alone, readers take a column without bounds for all null.
    """
    if judged.subject.config.partial_update_mode is not None:
        return {file.path for file in files if not isinstance(file, BaseFile)}
    pairs = zip(files, facts, strict=True)
    return {file.path for file, found in pairs if not isinstance(file, BaseFile) and len(found) < len(columns)}


def with_facts(files: Sequence[DataFile], facts: Sequence[Facts], column: str) -> list[FactsOfFile]:
    """Return the files that have a column, each with its facts."""
    return [(file, found[column]) for file, found in zip(files, facts, strict=True) if column in found]


def key_of(file: DataFile) -> str:
    """Return the end of a key of bounds, which names a file."""
    partition, name = split(file.path)
    return hash_of_partition(partition) + hash_of_file(name)


def _check_files(
    judged: MetadataSubject, column: pa.Field, pairs: Sequence[FactsOfFile], stated: StatedBounds
) -> set[str]:
    """Report wrong bounds and counts of files in one column, and return the files without bounds of it.

    ``pairs`` are the facts that the rows of each file give, and ``stated`` the bounds of the column in `column_stats`
    of the metadata table ``judged``. If no file at all has bounds of it, none is missing, and the result is empty.
    """
    if not len(stated.keys):
        return set()
    true_bounds = TrueBounds.of(pairs, column.type)
    is_stated, bounds = compare(judged, COLUMN_STATS, column, true_bounds, stated)
    # Writers of partial updates count other rows of log files.
    in_base = np.array([isinstance(file, BaseFile) for file, _ in pairs], np.bool_)[is_stated]
    true_stated = true_bounds.filter(is_stated)
    is_wrong = np.zeros(len(in_base), np.bool_)
    for count, fact in (("valueCount", "rows"), ("nullCount", "nulls")):
        counted = pc.fill_null(bounds.field(count), -1).to_numpy()
        is_wrong |= in_base & (counted != true_stated.column(fact).to_numpy())
    for at in np.flatnonzero(is_wrong).tolist():  # O(wrong files)
        rows, nulls = (_value(true_stated.column(fact), at) for fact in ("rows", "nulls"))
        counted_rows, counted_nulls = (_value(bounds.field(count), at) for count in ("valueCount", "nullCount"))
        what = f"{true_stated.names[at]} has {rows} rows with {nulls} nulls in {column.name}, "
        what += f"not {counted_rows} with {counted_nulls}."
        judged.add(METADATA_COUNTS, COLUMN_STATS, what)
    return {name for name, has_bounds in zip(true_bounds.names, is_stated, strict=True) if not has_bounds}


def compare(
    judged: MetadataSubject,
    partition: str,
    column: pa.Field,
    true_bounds: TrueBounds,
    stated: StatedBounds,
    *,
    tells_wide: bool = True,
) -> tuple[Mask, pa.StructArray]:
    """Report bounds that do not contain the values, and, with ``tells_wide``, tight bounds that contain more.

    ``stated`` are the bounds of ``column`` in ``partition`` of the metadata table ``judged``. Return which of
    ``true_bounds`` have stated bounds, and these bounds, in the same order.
    """
    # Positions among the stated bounds; null for a file or partition without stated bounds.
    positions = pc.index_in(true_bounds.keys, value_set=stated.key_tails)
    is_stated = positions.is_valid().to_numpy(zero_copy_only=False)
    bounds = stated.bounds.take(positions.drop_null())
    true_bounds = true_bounds.filter(is_stated)
    # The spans are what readers believe of the stated bounds, `stated_spans` the bounds as they are stated.
    spans, stated_spans = column_spans(bounds, column.type), column_spans(_as_bounds_of_logs(bounds), column.type)
    least, greatest = true_bounds.column("least"), true_bounds.column("greatest")
    has_nulls = true_bounds.column("nulls").to_numpy() > 0
    has_values = true_bounds.column("nulls").to_numpy() < true_bounds.column("rows").to_numpy()
    narrow = has_nulls & ~spans.nulls | has_values & ~spans.values
    if not pa.types.is_floating(column.type):
        # Apache Hudi states other bounds of floats with NaN than their values have; readers know that.
        spans = replace(spans, least=stated_spans.least, greatest=stated_spans.greatest)
    narrow |= mask(pc.greater(spans.least, least)) | mask(pc.less(spans.greatest, greatest))
    wide = mask(pc.less(spans.least, least)) & ~_may_be_cut(least)
    wide |= mask(pc.greater(spans.greatest, greatest)) & ~_may_be_cut(greatest)
    wide &= _is_tight(bounds) & tells_wide
    for check, wrong, how in (
        (METADATA_BOUNDS, narrow, "do not contain"),
        (METADATA_BOUNDS_WIDE, wide & ~narrow, "are called tight, and are wider than"),
    ):
        for number in np.flatnonzero(wrong).tolist():  # O(wrong files)
            stated_text = f"{_value(spans.least, number)!r} to {_value(spans.greatest, number)!r}"
            true_text = f"{_value(least, number)!r} to {_value(greatest, number)!r}"
            nulls = f" with {_value(true_bounds.column('nulls'), number)} nulls"
            what = f"the bounds of {column.name} in {true_bounds.names[number]!r}, {stated_text}, "
            what += f"{how} {true_text}{nulls}."
            judged.add(check, partition, what)
    return is_stated, bounds


def _may_be_cut(values: pa.Array) -> Mask:
    """Return which values are so long that a bound holds them cut; a cut greatest bound is greater than its text."""
    if not pa.types.is_string(values.type):
        return np.zeros(len(values), np.bool_)
    return mask(pc.greater(pc.binary_length(values), MOST_OF_A_BOUND))


def _as_bounds_of_logs(bounds: pa.StructArray) -> pa.StructArray:
    """Return records as if they were of log files: readers do not doubt these for what a footer may have lacked."""
    columns = [
        pa.array(np.zeros(len(bounds), np.int64)) if field.name in _IN_DOUBT else bounds.field(field.name)
        for field in children(bounds.type)
    ]
    return struct_array(bounds.type, len(bounds), None, columns)


def _value(values: pa.Array, at: int) -> object:
    """Return one value of an array as a Python object, for a finding."""
    return values[at].as_py()  # one value a call


def _is_tight(bounds: pa.StructArray) -> Mask:
    """Return which bounds are called tight and can be believed.

    Apache Hudi 1.0 widens tight bounds by file groups that were replaced since. Its records have no type of values.
    """
    tight = pc.and_(_has_value(bounds, "isTightBound"), _has_value(bounds, "valueType"))
    # Records of older releases lack the field altogether; then no record has a value in it.
    return mask(pc.and_(tight, bounds.field("isTightBound"))) if any_in(tight) else mask(tight)


def _has_value(bounds: pa.StructArray, name: str) -> pa.BooleanArray:
    """Return which records have a value in a field that older releases do not know."""
    if name in [field.name for field in children(bounds.type)]:
        return bounds.field(name).is_valid()
    return pa.array(np.zeros(len(bounds), np.bool_))


def check_left(judged: MetadataSubject, partition: str, stated: StatedBounds) -> None:
    """Report bounds of files that no completed write made, or that are gone.

    ``stated`` are all bounds in ``partition`` of the metadata table ``judged``. Apache Hudi 0.15 leaves the bounds of
    cleaned files in the metadata table of version 6. It deletes the bounds of wrong names instead, which lack as many
    characters in front as the partition's path has.
    """
    committed = pa.array([key_of(file) for file in judged.committed.values()], pa.string())
    is_left = pc.invert(pc.is_in(stated.key_tails, value_set=committed))
    # Records of 0.15 do not say whether they are tight.
    is_left = pc.and_(is_left, _has_value(stated.bounds, "isTightBound"))
    defined = judged.indexes.get(COLUMN_STATS) if partition == COLUMN_STATS else None
    if defined is not None:
        # A column that left the definition keeps its records, and no reader asks for them.
        of_defined = pc.is_in(stated.bounds.field("columnName"), value_set=pa.array(defined.columns, pa.string()))
        is_left = pc.and_(is_left, of_defined)
    tails, names = stated.key_tails.filter(is_left), stated.bounds.field("fileName").filter(is_left)
    pairs = pa.table({"rest": tails, "name": names}).group_by(["rest", "name"]).aggregate([])
    partitions = {hash_of_partition(path): path for path in judged.subject.folders.partitions}
    for pair in pairs.to_pylist():  # O(files)
        folder = partitions.get(pair["rest"][:_OF_COLUMN])
        path = None if folder is None else join(folder, name_of(pair["name"] or ""))
        # Newer files than the listing, lost files, and files that a pending clean deletes are files of the table.
        is_new = path is not None and path not in judged.listed and judged.subject.storage.exists(path)
        if is_new or path in judged.absent or path in judged.leaving:
            continue
        judged.add(
            METADATA_LEFT, partition, f"it has bounds of {path or pair['name']!r}, which is no file of the table."
        )


def together(parts: Sequence[TrueBounds]) -> TrueBounds:
    """Return the true bounds of each partition from those of its files; keys and names are partition paths."""
    tables = [part.facts.append_column("path", part.keys) for part in parts]
    aggregates = [("rows", "sum"), ("nulls", "sum"), ("least", "min"), ("greatest", "max")]
    sums = pa.concat_tables(tables).group_by("path").aggregate(aggregates)
    paths = sums.column("path").combine_chunks()
    facts = pa.table({name: sums.column(f"{name}_{how}") for name, how in aggregates})
    return TrueBounds(paths, paths.to_pylist(), facts)  # O(partitions)


def _check_partitions(
    judged: MetadataSubject, column: pa.Field, parts: Sequence[TrueBounds], stated: StatedBounds
) -> None:
    """Report wrong bounds of partitions in one column, missing bounds, and bounds of partitions that are gone.

    ``parts`` are the true bounds of some files each, by the path of their partition, and ``stated`` the bounds of the
    column in `partition_stats` of the metadata table ``judged``.
    """
    if not len(stated.keys):
        return
    by_path = together(parts or [TrueBounds.of_partitions([], column.type)])
    true_bounds = TrueBounds(pa.array(map(hash_of_partition, by_path.names), pa.string()), by_path.names, by_path.facts)
    is_stated, _ = compare(judged, PARTITION_STATS, column, true_bounds, stated)
    for name, has_bounds in zip(true_bounds.names, is_stated, strict=True):
        if not has_bounds:
            what = f"the partition {key_of_partition(name)!r} has no bounds of {column.name}, as others have."
            judged.add(METADATA_BOUNDS_MISSING, PARTITION_STATS, what)
    # A partition keeps its bounds until a clean deletes its files. Bounds that are not tight stay for as long as an
    # older write is pending, which might add files.
    has_files = {hash_of_partition(split(path)[0]) for path in judged.committed}
    is_left = pc.invert(pc.is_in(stated.key_tails, value_set=pa.array(sorted(has_files), pa.string())))
    is_left = pc.and_(is_left, pa.array(_is_tight(stated.bounds)))
    for name in stated.bounds.field("fileName").filter(is_left).to_pylist():  # O(partitions)
        judged.add(
            METADATA_LEFT, PARTITION_STATS, f"it has bounds of {column.name} in {name!r}, which is no partition."
        )
