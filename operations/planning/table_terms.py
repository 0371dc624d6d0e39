"""Checks of table options that new and existing tables share, and how messages show their values."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import MissingOptionError, OptionConflictError
from ...table.config.key_types import KeyGeneratorType, PartitionType
from ...table.config.property_keys import BUCKET, BUCKET_COUNT, BUCKET_HASH_FIELDS, INDEX_TYPE
from ...table.config.table_settings import TERMS, TableSettings
from ...table.merging.deletes import DeleteMarker

# The options of a delete marker; the table keeps both as properties of its merge mode.
DELETE_FIELD, DELETE_MARKER = TERMS["delete_field"].option, TERMS["delete_marker"].option
PAYLOAD_CLASS, UNAVAILABLE = TERMS["payload"].option, TERMS["unavailable"].option
NO_UPDATE_MODE = "NONE"


@dataclass(frozen=True, slots=True)
class TableTerms:
    """The table options of a write, with the table's path for messages."""

    settings: TableSettings
    path: str

    def marker(self, stored: DeleteMarker | None) -> DeleteMarker | None:
        """Return the delete marker of the options, a missing half from the table's ``stored`` marker; None without any.

        Raises MissingOptionError if only one half is given and the table has no marker.
        """
        field = self.settings.delete_field or (stored.field if stored else None)
        value = self.settings.delete_marker or (stored.value if stored else None)
        if field and value:
            return DeleteMarker(field, value)
        if field or value:
            given_key, absent_key = (DELETE_FIELD, DELETE_MARKER) if field else (DELETE_MARKER, DELETE_FIELD)
            raise MissingOptionError(
                f"{given_key} is given for the table {self.path} without {absent_key}: the one names a column, the "
                "other its value in rows that are deletes.",
                "Give both or neither.",
            )
        return None

    def check_no_index(self) -> None:
        """Refuse index options for a table with generated keys, in which no write looks a key up."""
        for key, value in (*self._bucket_options(), (INDEX_TYPE, self.settings.index_type)):
            if value is not None:
                raise OptionConflictError(
                    f"{key} is {shown(value)}, and the table {self.path} has no record key, which an index needs.",
                    "Leave the option out, or name a record key with hoodie.datasource.write.recordkey.field.",
                )

    def check_no_buckets(self, index_type: str) -> None:
        """Refuse bucket options for a table whose index has no buckets."""
        for key, value in self._bucket_options():
            if value is not None:
                raise OptionConflictError(
                    f"{key} is {shown(value)}, and the table {self.path} has {INDEX_TYPE}={index_type}, an index "
                    "without buckets.",
                    f"Leave the option out; a new table gets buckets with {INDEX_TYPE}={BUCKET}.",
                )

    def _bucket_options(self) -> tuple[tuple[str, object], ...]:
        return (BUCKET_COUNT, self.settings.bucket_count), (BUCKET_HASH_FIELDS, self.settings.hash_fields)

    def check_hash_fields(self, hash_fields: tuple[str, ...] | None, record_key: tuple[str, ...]) -> None:
        """Refuse hash fields that are no columns of the record key: a delete by key needs the bucket, too."""
        other_fields = [name for name in hash_fields or () if name not in record_key]
        if other_fields:
            raise OptionConflictError(
                f"{BUCKET_HASH_FIELDS} names {shown(tuple(other_fields))}, which is not in the record key "
                f"{shown(record_key)} of the table {self.path}.",
                "Name record key columns only.",
            )


def shown(value: object) -> str:
    """Return the value of an option as an error shows it: texts quoted, enumerations and flags as users spell them."""
    if isinstance(value, KeyGeneratorType):
        return value.value
    if isinstance(value, tuple):
        return repr(",".join(part.value if isinstance(part, PartitionType) else str(part) for part in value))
    return str(value).lower() if isinstance(value, bool) else repr(value)
