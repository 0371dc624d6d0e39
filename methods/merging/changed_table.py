"""The table that a merge or an update changes, as it was read."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CommitConflictError, MissingColumnError, SchemaMismatchError
from ...table.config import TableConfig
from ...table.config.key_types import PartitionType
from ...table.config.property_keys import COMMIT_TIME_ORDERING
from ...table.keys.partition_paths import HIVE_DEFAULT_PARTITION
from ...table.merging.deletes import IS_DELETED
from ...table.schema.fields import find_field, root_of
from ...table.table import Table

SOURCE, TARGET = "source", "target"
# Texts that name no partition, as nulls do not: their rows share one.
UNNAMED = ("", HIVE_DEFAULT_PARTITION)


@dataclass(frozen=True)
class ChangedTable:
    """One moment of a table.

    Attributes:
        schema: The data columns.
        moment: The watermark of what was read, which the write is checked against.
        is_global: Whether keys are unique in the whole table, not only within their partition.
        serializable: Whether the rows that are read count when the changes are committed.
    """

    table: Table
    schema: pa.Schema
    moment: str
    is_global: bool
    serializable: bool

    @property
    def path(self) -> str:
        return self.table.path

    @property
    def config(self) -> TableConfig:
        return self.table.config

    @property
    def place_fields(self) -> tuple[str, ...]:
        """The fields of the record key and of the partition, which together decide in which place a row is."""
        return (*self.config.record_key_fields, *self.config.partition_fields)

    @property
    def place_roots(self) -> tuple[tuple[str, str], ...]:
        """The fields of the record key and the partition, each with its column, of which it may be a part."""
        return tuple((field, root_of(field)) for field in self.place_fields)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The ordering fields; empty if the later row wins."""
        return () if self.config.merge_mode == COMMIT_TIME_ORDERING else self.config.ordering_fields

    @property
    def kept_of_deletes(self) -> frozenset[str]:
        """The columns of which a delete needs the values of the row that it deletes."""
        return frozenset({*map(root_of, self.place_fields), *self.ordering_fields, IS_DELETED})

    @property
    def leaves_open(self) -> bool:
        """Whether a value of a new row may be a placeholder for the stored value (partial updates)."""
        return self.config.partial_update_mode is not None

    @property
    def matched_fields(self) -> tuple[str, ...]:
        """The fields that identify a row: the record key's, and the partition's unless keys are unique in the table."""
        return self.config.record_key_fields if self.is_global else self.place_fields

    @property
    def spells_apart(self) -> bool:
        """Whether rows of different key and partition values always have different keys or partition paths.

        Rows with nulls, which equal nothing, and rows whose partition has no name are exceptions.
        """
        config = self.config
        keys = [find_field(self.schema, name) for name in config.record_key_fields]
        paths = [find_field(self.schema, name) for name in config.partition_fields]
        if any(field is None for field in (*keys, *paths)) or {*config.partition_types} - {PartitionType.SIMPLE}:
            return False
        return are_distinct(keys) and (self.is_global or are_distinct(paths))

    def names_places(self, name: str, values: pa.ChunkedArray) -> bool:
        """Return whether all rows at the places of rows with some values of a column have these values, too.

        A place is a record key and a partition path, and ``name`` is a field of either. A partition of times holds rows
        of many values, and rows without a partition's name share one.
        """
        kinds = dict(zip(self.config.partition_fields, self.config.partition_types, strict=True))
        if kinds.get(name, PartitionType.SIMPLE) is not PartitionType.SIMPLE or values.null_count:
            return False
        if name not in kinds or not pa.types.is_string(values.type):
            return True
        return not pc.any(pc.is_in(values, value_set=pa.array(UNNAMED)), min_count=0).as_py()  # O(1)

    def column(self, name: str, what: str) -> str:
        """Return the table's spelling of a column given in any case, with or without ``target.``; see `field`."""
        return self.field(name, what, inside=False)[0]

    def field(self, name: str, what: str, *, inside: bool) -> list[str]:
        """Return the path to a column, or with ``inside`` to a field of a struct, in the table's spelling.

        ``what`` names the argument in the message of the `MissingColumnError`.
        """
        parts = [part.strip() for part in str(name).replace("`", "").split(".")]
        if len(parts) > 1 and parts[0].lower() == TARGET:
            del parts[0]
        path: list[str] = []
        data_type = pa.struct(list(self.schema))
        # Without ``inside``, a dot is part of a column's name.
        for part in parts if inside else [".".join(parts)]:
            names = [field.name for field in data_type] if pa.types.is_struct(data_type) else []
            alike = [name for name in names if name.lower() == part.lower()]
            # Names that differ in their case alone need the exact spelling.
            if part not in alike and len(alike) != 1:
                break
            path.append(part if part in alike else alike[0])
            data_type = data_type.field(path[-1]).type
        else:
            return path
        name_without_side = ".".join(parts)
        similar_names = difflib.get_close_matches(name_without_side, self.schema.names, 1)
        advice = f"Did you mean {similar_names[0]!r}? " if similar_names else ""
        if len(parts) > 1 and not inside:
            advice = "Give the whole column. "
        raise MissingColumnError(
            f"{what} names {name!r}, which is no column of the table {self.path}; it has "
            f"{', '.join(self.schema.names)}.",
            f"{advice}An upsert can add columns to the table.",
        )


@contextmanager
def newer_columns_conflict(table: ChangedTable, newest: Callable[[], ChangedTable]) -> Iterator[None]:
    """Turn a `SchemaMismatchError` of the block into a `CommitConflictError` if another writer changed the columns.

    ``table`` is the table as it was read, and ``newest`` reads it again.
    """
    try:
        yield
    except SchemaMismatchError as error:
        if newest().schema == table.schema:
            raise
        raise CommitConflictError(
            f"Another writer changed the columns of the table {table.path} after its rows were read to be changed.",
            "This write left nothing behind; run it again.",
        ) from error


def are_distinct(fields: Sequence[pa.Field]) -> bool:
    """Return whether different values of some fields always have different joined texts, as keys and paths have them.

    The joined texts of several strings may be equal.
    """
    has_one_spelling = all(_is_whole(field.type) or pa.types.is_string(field.type) for field in fields)
    return has_one_spelling and (len(fields) < 2 or all(_is_whole(field.type) for field in fields))


def _is_whole(data_type: pa.DataType) -> bool:
    """Return whether equal values of a type always have one text that no other value has."""
    return bool(pa.types.is_integer(data_type) or pa.types.is_boolean(data_type) or pa.types.is_date(data_type))
