"""Compares indexes of expressions in the metadata table with the expressions' values in the files."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ...storage.threads import for_each
from ...table.metadata.record_keys import hash_of_partition
from .check_catalogue import NOT_CHECKED
from .column_facts import Change
from .metadata_bounds import StatedBounds, TrueBounds, check_left, compare, facts_of, together, with_facts
from .metadata_filters import check_filters
from .metadata_subject import MetadataSubject

# The keys of bounds of partitions have the hash of this text where others have that of a partition.
_OF_PARTITIONS = "__partition_stat__"
_CHANGES: Mapping[str, Change] = {
    "identity": lambda values: values,
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
}


def check_expression_index(judged: MetadataSubject, name: str) -> None:
    """Compare the bounds or filters of an expression with files; report `NOT_CHECKED` if pyhudi cannot compute it.

    ``name`` is the partition of the metadata table. Even then it looks for entries of files that are gone.
    """
    definition = judged.indexes.get(name)
    fields, function = ((), "") if definition is None else (definition.columns, definition.function)
    change = _CHANGES.get(function)
    column = judged.schema.field(fields[0]) if len(fields) == 1 and fields[0] in judged.schema.names else None
    is_filter = definition is not None and definition.has_filters
    change = None if change is None else _of_ascii(change)
    if change is None or column is None or not pa.types.is_string(column.type):
        what = f"{name} of the metadata table is of {function or 'no function'} of {', '.join(fields) or 'no column'}, "
        judged.subject.findings.add(
            NOT_CHECKED, f"{what}which was not computed: its entries were compared with the names of files alone."
        )
        change = None
    if is_filter:
        check_filters(judged, name, column or pa.field("", pa.string()), change or _no_values)
    else:
        _check_bounds(judged, name, column, change)


def _no_values(values: pa.Array) -> pa.Array:
    """Return no value, in place of an expression that pyhudi cannot compute, so that no filter lacks a value."""
    return values.slice(0, 0)


def _of_ascii(change: Change) -> Change:
    """Return a change of ASCII texts alone: Spark and Arrow may spell other texts differently in lower case."""
    return lambda values: change(values.filter(pc.fill_null(pc.string_is_ascii(values), True)))


def _check_bounds(judged: MetadataSubject, name: str, column: pa.Field | None, change: Change | None) -> None:
    """Compare the bounds of an expression with the values in files and partitions.

    Without column or change, which pyhudi cannot compute, it only looks for bounds of files that are gone.
    """
    stated = StatedBounds.read(judged, name)
    if stated is None:
        return
    of_partitions = pc.starts_with(stated.key_tails, hash_of_partition(_OF_PARTITIONS))
    check_left(judged, name, stated.filter(pc.invert(of_partitions)))
    if column is None or change is None:
        return
    newest = {path for file_slice in judged.newest for path in file_slice.files}
    files = list(judged.committed.values())
    facts = for_each(
        judged.subject.storage, lambda file: facts_of(judged, file, pa.schema([column]), change), files, computes=True
    )
    pairs = with_facts(files, facts, column.name)
    true_bounds = TrueBounds.of(pairs, column.type)
    compare(judged, name, column, true_bounds, stated, tells_wide=False)
    parts = together([TrueBounds.of_partitions([pair for pair in pairs if pair[0].path in newest], column.type)])
    keys = pa.array([hash_of_partition(_OF_PARTITIONS) + hash_of_partition(path) for path in parts.names], pa.string())
    compare(judged, name, column, TrueBounds(keys, parts.names, parts.facts), stated, tells_wide=False)
