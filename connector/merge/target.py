"""The snapshot that a merge or an update changes."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from ...errors import MissingColumnError
from ...table.config import TableConfig
from ...table.config.property_keys import COMMIT_TIME_ORDERING, IGNORE_DEFAULTS
from ...table.merging.deletes import IS_DELETED
from ...table.schema.fields import root_of
from ...table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ..table.shown_rows import ShownRows

SOURCE, TARGET = "source", "target"


@dataclass(frozen=True)
class MergeTarget:
    """One snapshot of a table.

    Attributes:
        schema: The data columns.
        shown: The rows, of which a part can be read.
        moment: The snapshot's watermark, which the write is checked against.
        is_global: Whether keys are unique in the whole table, not only within their partition.
        serializable: Whether the rows that are read count when the changes are committed.
    """

    table: Table
    schema: pa.Schema
    shown: ShownRows
    moment: str
    is_global: bool
    serializable: bool = True

    @cached_property
    def rows(self) -> DataFrame:
        """The rows, with the meta columns first; made at its first use, as many merges read a part alone."""
        return self.shown.df()

    @property
    def path(self) -> str:
        return self.table.path

    @property
    def config(self) -> TableConfig:
        return self.table.config

    @property
    def place_fields(self) -> tuple[str, ...]:
        return (*self.config.record_key_fields, *self.config.partition_fields)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The ordering fields; empty where the later row wins."""
        return () if self.config.merge_mode == COMMIT_TIME_ORDERING else self.config.ordering_fields

    @property
    def kept_of_deletes(self) -> frozenset[str]:
        return frozenset({*map(root_of, self.place_fields), *self.ordering_fields, IS_DELETED})

    @property
    def marks_of_deletes(self) -> list[Column]:
        """Conditions over the table's columns that mark a row as a delete."""
        flag = [sf.coalesce(sf.col(IS_DELETED), sf.lit(False))] if IS_DELETED in self.schema.names else []
        marker = self.config.delete_marker
        if marker is None or marker.field not in self.schema.names:
            return flag
        return [*flag, sf.col(marker.field).cast("string").eqNullSafe(marker.value)]

    @property
    def leaves_open(self) -> bool:
        return self.config.partial_update_mode is not None

    def left_open(self, name: str, value: Column) -> Column | None:
        """Return whether a value of a column is a placeholder for the stored value; None where the column has none."""
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
        """Return the table's spelling of a column given in any case, with or without ``target.``; see `field`."""
        return self.field(name, what, inside=False)[0]

    def field(self, name: str, what: str, *, inside: bool) -> list[str]:
        """Return the path to a column, or with ``inside`` to a field of a struct, in the table's spelling.

        ``what`` names the argument in the message of the `MissingColumnError`.
        """
        parts = [part.strip() for part in str(name).replace("`", "").split(".")]
        if len(parts) > 1 and parts[0].lower() == TARGET:
            del parts[0]
        found: list[str] = []
        kind = pa.struct(list(self.schema))
        for part in parts if inside else [".".join(parts)]:
            names = [field.name for field in kind] if pa.types.is_struct(kind) else []
            alike = [name for name in names if name.lower() == part.lower()]
            if part not in alike and len(alike) != 1:
                break
            found.append(part if part in alike else alike[0])
            kind = kind.field(found[-1]).type
        else:
            return found
        bare = ".".join(parts)
        near = difflib.get_close_matches(bare, self.schema.names, 1)
        advice = f"Did you mean {near[0]!r}? " if near else ""
        if len(parts) > 1 and not inside:
            advice = "Give the whole column. "
        raise MissingColumnError(
            f"{what} names {name!r}, which is no column of the table {self.path}; it has "
            f"{', '.join(self.schema.names)}.",
            f"{advice}An upsert can add columns to the table.",
        )
