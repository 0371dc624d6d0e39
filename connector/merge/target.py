"""The table whose rows are changed, as of one moment."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from ...errors import MissingColumnError
from ...storage.base import Storage
from ...table.config import TableConfig
from ...table.config.property_keys import COMMIT_TIME_ORDERING, IGNORE_DEFAULTS
from ...table.merging.deletes import IS_DELETED
from ...table.schema.fields import root_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SOURCE, TARGET = "source", "target"


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """A table, as of one moment.

    Attributes:
        storage: Rooted at it.
        config: Its properties.
        schema: Its data columns.
        rows: Its rows, the meta columns first.
        moment: What a write of rows made from these is to be based on.
        is_global: Whether keys are unique in the whole table, not only within their partition.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    rows: DataFrame
    moment: str
    is_global: bool

    @property
    def path(self) -> str:
        """The table's path."""
        return self.storage.path

    @property
    def place_fields(self) -> tuple[str, ...]:
        """The fields that make the place of a row: its record key and its partition."""
        return (*self.config.record_key_fields, *self.config.partition_fields)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The fields of which a row with lesser values loses; none where the later row wins."""
        return () if self.config.merge_mode == COMMIT_TIME_ORDERING else self.config.ordering_fields

    @property
    def kept_of_deletes(self) -> frozenset[str]:
        """The columns that a delete needs, whatever the row held besides."""
        return frozenset({*map(root_of, self.place_fields), *self.ordering_fields, IS_DELETED})

    @property
    def marks_of_deletes(self) -> list[Column]:
        """Conditions over the table's columns by which a row says that it is a delete."""
        flag = [sf.coalesce(sf.col(IS_DELETED), sf.lit(False))] if IS_DELETED in self.schema.names else []
        marker = self.config.delete_marker
        if marker is None or marker.field not in self.schema.names:
            return flag
        return [*flag, sf.col(marker.field).cast("string").eqNullSafe(marker.value)]

    def left_open(self, name: str, value: Column) -> Column | None:
        """Return whether a value leaves its column to the older row of its key; None where no value of it does.

        Args:
            name: The column, as the table spells it.
            value: The value that a row has.
        """
        mode = self.config.partial_update_mode
        if mode is None or name in self.kept_of_deletes:
            return None
        word, kind = self.config.unavailable_value, self.schema.field(name).type
        if mode == IGNORE_DEFAULTS:
            return value.isNull()
        if word is None or not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
            return None
        return sf.coalesce(value.cast("binary") == sf.lit(word).cast("binary"), sf.lit(False))

    def column(self, name: str, what: str) -> str:
        """Return the name of a column as the table spells it.

        Args:
            name: As it was given, in any case where the table has one such column; with ``target.`` in front or not.
            what: Where it was given, for messages.

        Raises:
            MissingColumnError: The table has no such column.
        """
        bare = name.removeprefix(f"{TARGET}.").strip("`")
        names: list[str] = self.schema.names
        alike = [one for one in names if one.lower() == bare.lower()]
        if bare in alike:
            return bare
        if len(alike) == 1:
            return alike[0]
        near = difflib.get_close_matches(bare, self.schema.names, 1)
        inner = bare.partition(".")[0] in self.schema.names
        advice = f"Did you mean {near[0]!r}? " if near else ""
        if inner:
            advice = "Give the whole column, of which withField changes one field. "
        raise MissingColumnError(
            f"{what} names {name!r}, which is no column of the table {self.path}; it has "
            f"{', '.join(self.schema.names)}.",
            f"{advice}Columns that a table lacks come with an upsert.",
        )
