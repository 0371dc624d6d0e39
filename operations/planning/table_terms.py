"""What the options of new tables and of tables that are there have in common: how they are checked, and shown."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import MissingOptionError, OptionConflictError
from ...table.config.key_types import KeyGeneratorType, PartitionType
from ...table.config.property_keys import BUCKET, BUCKET_COUNT, BUCKET_HASH_FIELDS, INDEX_TYPE
from ...table.config.table_settings import TERMS, TableSettings
from ...table.merging.deletes import DeleteMarker

# What a caller says of delete markers; the table keeps both as properties of its merge mode.
DELETE_FIELD, DELETE_MARKER = TERMS["delete_field"].option, TERMS["delete_marker"].option
PAYLOAD_CLASS, UNAVAILABLE = TERMS["payload"].option, TERMS["unavailable"].option
NO_UPDATE_MODE = "NONE"


@dataclass(frozen=True, slots=True)
class TableTerms:
    """What a write says of its table, with the table's path for messages."""

    asked: TableSettings
    path: str

    def marker(self, kept: DeleteMarker | None) -> DeleteMarker | None:
        """Return the delete marker that the options name, completed from the table's own."""
        field = self.asked.delete_field or (kept.field if kept else None)
        value = self.asked.delete_marker or (kept.value if kept else None)
        if field and value:
            return DeleteMarker(field, value)
        if field or value:
            given, missing = (DELETE_FIELD, DELETE_MARKER) if field else (DELETE_MARKER, DELETE_FIELD)
            raise MissingOptionError(
                f"{given} is given for the table {self.path} without {missing}: the one names a column, the "
                "other its value in rows that are deletes.",
                "Give both or neither.",
            )
        return None

    def check_no_index(self) -> None:
        """Refuse an index of a table that generates its keys: nobody would look for a key."""
        for key, said in (*self._said_of_buckets(), (INDEX_TYPE, self.asked.index_type)):
            if said is not None:
                raise OptionConflictError(
                    f"{key} is {shown(said)}, and the table {self.path} has no record key, of which an index is made.",
                    "Leave the option out, or name a record key with hoodie.datasource.write.recordkey.field.",
                )

    def check_no_buckets(self, index_type: str) -> None:
        """Refuse buckets of a table whose index has none."""
        for key, said in self._said_of_buckets():
            if said is not None:
                raise OptionConflictError(
                    f"{key} is {shown(said)}, and the table {self.path} has {INDEX_TYPE}={index_type}, an index "
                    "without buckets.",
                    f"Leave the option out; a new table gets buckets with {INDEX_TYPE}={BUCKET}.",
                )

    def _said_of_buckets(self) -> tuple[tuple[str, object], ...]:
        return (BUCKET_COUNT, self.asked.bucket_count), (BUCKET_HASH_FIELDS, self.asked.hash_fields)

    def check_hash_fields(self, hash_fields: tuple[str, ...] | None, record_key: tuple[str, ...]) -> None:
        """Refuse buckets of columns that are not in the record key."""
        strangers = [name for name in hash_fields or () if name not in record_key]
        if strangers:
            raise OptionConflictError(
                f"{BUCKET_HASH_FIELDS} names {shown(tuple(strangers))}, which is not in the record key "
                f"{shown(record_key)} of the table {self.path}.",
                "Name record key columns only.",
            )


def shown(value: object) -> str:
    """Return a value as messages show it."""
    if isinstance(value, KeyGeneratorType):
        return value.value
    if isinstance(value, tuple):
        return repr(",".join(one.value if isinstance(one, PartitionType) else str(one) for one in value))
    return str(value).lower() if isinstance(value, bool) else repr(value)
