"""The properties of a table, as ``hoodie.properties`` holds them.

Source: ``org.apache.hudi.common.table.HoodieTableConfig``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import TableConfigError, TableVersionError, UnsupportedTableError
from ..merging.deletes import DeleteMarker
from . import property_keys as key
from .java_properties import format_properties, parse_properties
from .key_types import KeyGeneratorType, PartitionType, choose_key_generator, split_partition_field, typed_fields
from .merge_properties import marker_properties, merge_properties
from .payloads import Payload
from .property_keys import COPY_ON_WRITE, MERGE_ON_READ, NEWEST_VERSION
from .sort_order import CURVES, LINEAR, SortOrder

if TYPE_CHECKING:
    from .table_settings import TableSettings

_NUMBER = re.compile(r"[0-9]{1,9}")
_REQUIRED = (key.NAME, key.TYPE, key.VERSION, key.LAYOUT_VERSION)
_RESTORE = "Compare it with hoodie.properties.backup beside it, and restore it from there or from a backup of yours."


@dataclass(frozen=True, slots=True)
class TableConfig:
    """All properties of ``hoodie.properties``, unknown properties included."""

    properties: Mapping[str, str]

    @classmethod
    def parse(cls, data: bytes, where: str) -> TableConfig:
        """Return the configuration in a file's bytes; TableConfigError or TableVersionError for an unusable file.

        ``where`` names the file in errors.
        """
        try:
            properties = parse_properties(data)
        except ValueError as error:
            raise TableConfigError(f"{where} cannot be read: {error}.", _RESTORE) from error
        config = cls(properties)
        config._check(data, where)
        return config

    @classmethod
    def new(cls, settings: TableSettings) -> TableConfig:
        """Return the configuration of a new table; it notes no index without an index type and a bucket count.

        ``settings`` are the caller's, of which None means the default of Apache Hudi.
        """
        record_key, partition_fields = settings.record_key_fields or (), settings.partition_fields or ()
        typed = settings.partition_types is not None
        generator = settings.key_generator or choose_key_generator(record_key, partition_fields, is_typed=typed)
        settings = replace(settings, key_generator=generator)
        version = settings.or_default("version")
        properties = {
            key.PARTITION_FIELDS: ",".join(typed_fields(partition_fields, settings.partition_types)),
            **settings.spelt("record_key_fields", "name", "table_type"),
            key.CHECKSUM: checksum(settings.database or "", settings.name or ""),
            **settings.spelt("database"),
            **merge_properties(version).of_new_table(
                settings.merge_mode, settings.payload, settings.ordering_fields or ()
            ),
            **marker_properties(settings.delete_field, settings.delete_marker),
            **settings.spelt("key_generator", "hive_style", "url_encode"),
            **settings.time_options,
            **settings.spelt("timezone", "version"),
            **_version_properties(
                version, generator, _partition_extractor(partition_fields, bool(settings.hive_style))
            ),
            **key.CONSTANT_OF_NEW_TABLES,
            **key.FOLDERS_OF_NEW_TABLES[layout_of(version)],
            **settings.spelt("index_type", "isolation", "sort_by", "sort_curve"),
            **(
                {}
                if settings.bucket_count is None
                else bucket_properties(settings.bucket_count, record_key, settings.hash_fields)
            ),
        }
        config = _with_spelling(cls(properties))
        if merge_properties(version).class_alone_decides:
            # No property keeps the partial update mode beside the class.
            return config
        return cls({**config.properties, **_update_properties(settings.partial_update_mode, settings.unavailable)})

    def with_changes(self, changes: Mapping[str, str | None]) -> TableConfig:
        """Return the configuration with some properties changed; None removes one."""
        merged = {**self.properties, **changes}
        return TableConfig({option: text for option, text in merged.items() if text is not None})

    def with_delete_marker(self, marker: DeleteMarker) -> TableConfig:
        return TableConfig({**self.properties, **marker_properties(marker.field, marker.value)})

    def with_partition_types(self, types: Sequence[PartitionType]) -> TableConfig:
        """Note the types of the partition fields of a table that `lacks_partition_types`."""
        return TableConfig({**self.properties, key.PARTITION_TYPES: ",".join(kind.value for kind in types)})

    def with_payload(self, payload: Payload) -> TableConfig:
        """Note the payload class of a table that `lacks_merge_rule`."""
        return TableConfig({**self.properties, key.PAYLOAD_CLASS: payload.java_class})

    def with_key_field(self, is_named: bool | None) -> TableConfig:
        """Note whether a key of one field contains its name; None: as Hudi's release of the table version does."""
        is_named = self.version >= NEWEST_VERSION if is_named is None else is_named
        noted = {key.COMPLEX_KEY_ENCODING: key.FIELD_PREFIXED if is_named else key.VALUE_ONLY}
        return TableConfig({**self.properties, **noted})

    @property
    def kept(self) -> TableConfig:
        """The configuration without properties of a single write, such as delete markers before version 9."""
        if merge_properties(self.version).keeps_markers:
            return self
        for_one_write = {key.DELETE_FIELD, key.DELETE_MARKER}
        return TableConfig({option: value for option, value in self.properties.items() if option not in for_one_write})

    def encode(self) -> bytes:
        return format_properties(self.properties, "Hudi table properties")

    @property
    def name(self) -> str:
        return self.properties[key.NAME]

    @property
    def database(self) -> str:
        return self.properties.get(key.DATABASE, "")

    @property
    def table_type(self) -> str:
        """``COPY_ON_WRITE`` or ``MERGE_ON_READ``."""
        return self.properties[key.TYPE]

    @property
    def version(self) -> int:
        return int(self.properties[key.VERSION])

    @property
    def is_read_only(self) -> bool:
        """Whether pyhudi reads such tables, and changes nothing in them."""
        return layout_of(self.version) == key.LAYOUT_OF_OLD_TABLES and self.table_type == MERGE_ON_READ

    @property
    def timezone(self) -> str:
        """``UTC`` or ``LOCAL``, the zone of instant times; Java's default is LOCAL."""
        return self.properties.get(key.TIMEZONE, "LOCAL").upper()

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        """Columns of the record key; empty for a table whose keys are generated."""
        return self._list(key.RECORD_KEY_FIELDS)

    @property
    def generates_keys(self) -> bool:
        """Whether rows have no key columns, so that each write generates their keys."""
        return not self.record_key_fields

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Columns of the partition path, without the types that a CUSTOM key generator adds."""
        return tuple(field.partition(":")[0].strip() for field in self._list(key.PARTITION_FIELDS))

    @property
    def partition_types(self) -> tuple[PartitionType, ...]:
        """The type of each partition field; TableConfigError if the key generator CUSTOM lacks any."""
        generator = self.key_generator
        if generator is not KeyGeneratorType.CUSTOM:
            kind = PartitionType.TIMESTAMP if generator is KeyGeneratorType.TIMESTAMP else PartitionType.SIMPLE
            return (kind,) * len(self.partition_fields)
        fields, noted = self._list(key.PARTITION_FIELDS), self._list(key.PARTITION_TYPES)
        if noted and not any(":" in field for field in fields):
            fields = tuple(f"{field}:{kind}" for field, kind in zip(fields, noted, strict=False))
        try:
            kinds = [split_partition_field(field)[1] for field in fields]
        except ValueError:
            # An unknown type counts as a missing type.
            kinds = [None]
        types = tuple(kind for kind in kinds if kind is not None)
        if len(types) < len(kinds):
            raise TableConfigError(
                f"The table {self.name!r} has the key generator CUSTOM and "
                f"{key.PARTITION_FIELDS}={self.properties.get(key.PARTITION_FIELDS)}, but every field needs a type.",
                "Write each as <field>:SIMPLE or <field>:TIMESTAMP, as the table's writers do.",
            )
        return types

    @property
    def lacks_partition_types(self) -> bool:
        """Whether the key generator CUSTOM has partition fields whose types nothing says, as in version 6."""
        fields = self._list(key.PARTITION_FIELDS)
        untyped = bool(fields) and not any(":" in field for field in fields)
        return untyped and self.key_generator is KeyGeneratorType.CUSTOM and not self._list(key.PARTITION_TYPES)

    @property
    def time_options(self) -> dict[str, str]:
        """The time options that the table notes, by the keys of `property_keys.TIME_OPTIONS`."""
        noted = {
            option: self.properties.get(option) or self.properties.get(key.older_time_option(option))
            for option in key.TIME_OPTIONS
        }
        return {option: text for option, text in noted.items() if text}

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        return self._list(key.ORDERING_FIELDS) or self._list(key.PRECOMBINE_FIELD)

    @property
    def merge_mode(self) -> str:
        """``EVENT_TIME_ORDERING``, ``COMMIT_TIME_ORDERING`` or ``CUSTOM``."""
        return merge_properties(self.version).mode(self.properties, ordered=bool(self.ordering_fields))

    @property
    def lacks_merge_mode(self) -> bool:
        """Whether the properties lack the merge mode that tables of the version have."""
        return merge_properties(self.version).keeps_mode and not self.properties.get(key.MERGE_MODE)

    @property
    def lacks_merge_rule(self) -> bool:
        """Whether no property says which of two rows wins, so that releases of Apache Hudi differ."""
        return merge_properties(self.version).lacks_rule(self.properties)

    @property
    def payload(self) -> Payload | None:
        return merge_properties(self.version).payload(self.properties)

    @property
    def delete_marker(self) -> DeleteMarker | None:
        """The column, and its value, that mark a row as deleted; None without either.

        The marker of a payload class outranks the properties if that class alone decides how rows are merged.
        """
        deciding = merge_properties(self.version).deciding(self.properties)
        if deciding is not None and deciding.delete_marker is not None:
            return deciding.delete_marker
        field, value = self.properties.get(key.DELETE_FIELD), self.properties.get(key.DELETE_MARKER)
        return DeleteMarker(field, value) if field and value else None

    @property
    def isolation(self) -> str:
        """The isolation level of writes that are made from the table's rows and name none."""
        return key.SNAPSHOT if self.properties.get(key.ISOLATION, "").lower() == key.SNAPSHOT else key.SERIALIZABLE

    @property
    def sort_by(self) -> tuple[str, ...] | None:
        return self._list(key.SORT_BY) or None

    @property
    def sort_curve(self) -> str | None:
        """The curve of the rows of a base file; None in a table without `sort_by`."""
        curve = (self.properties.get(key.SORT_CURVE) or "").strip().lower()
        return (curve or LINEAR) if self.sort_by else None

    @property
    def sort_order(self) -> SortOrder | None:
        """The order of the rows of each base file; None for none."""
        columns, curve = self.sort_by, self.sort_curve
        if columns is None or curve is None:
            return None
        if curve not in CURVES:
            raise TableConfigError(
                f"The table {self.name!r} says {key.SORT_CURVE}={curve}, which this release of pyhudi does not know.",
                f"Use a newer pyhudi, or sort the table along one of {', '.join(CURVES)} (HudiTable.sort).",
            )
        return SortOrder(columns, curve)

    @property
    def partial_update_mode(self) -> str | None:
        """Which values of a row leave a column to the older row; None for none."""
        deciding = merge_properties(self.version).deciding(self.properties)
        if deciding is not None:
            return deciding.partial_update_mode
        mode = (self.properties.get(key.PARTIAL_UPDATE_MODE) or "NONE").upper()
        return None if mode == "NONE" else mode

    @property
    def compacts_partial_rows(self) -> bool:
        """Whether Apache Hudi of the table's version merges partial log rows in a compaction as in a read."""
        return self.version >= NEWEST_VERSION

    @property
    def orders_every_delete(self) -> bool:
        """Whether all releases that read tables of this version read any ordering value of a delete block.

        Apache Hudi 1.0.2 fails on decimals there and has no wrapper for several fields.
        """
        return self.version >= NEWEST_VERSION

    @property
    def unavailable_value(self) -> str | None:
        """The text or bytes that leave the older row's value as it is; None for none."""
        if self.partial_update_mode != key.FILL_UNAVAILABLE:
            return None
        return self.properties.get(key.UNAVAILABLE_VALUE) or None

    @property
    def key_generator(self) -> KeyGeneratorType:
        """The key generator by its type, its Java class, or Apache Hudi's default; UnsupportedTableError if unknown."""
        name = self.properties.get(key.KEY_GENERATOR_TYPE) or self.properties.get(key.KEY_GENERATOR_CLASS)
        if name:
            try:
                return KeyGeneratorType.parse(name)
            except UnsupportedTableError as error:
                raise UnsupportedTableError(
                    f"The table {self.name!r} has the key generator {name}, which pyhudi does not know.",
                    "Use Apache Hudi to write this table.",
                ) from error
        is_typed = ":" in self.properties.get(key.PARTITION_FIELDS, "")
        return choose_key_generator(self.record_key_fields, self.partition_fields, is_typed=is_typed)

    @property
    def names_key_field(self) -> bool | None:
        """Whether a record key of one field reads ``field:value``; None if the table does not note it.

        Releases of Apache Hudi differ in what the key generator COMPLEX makes of one field in tables before version 9.
        """
        if self.key_generator is not KeyGeneratorType.COMPLEX or len(self.record_key_fields) != 1:
            return False
        noted = (self.properties.get(key.COMPLEX_KEY_ENCODING) or "").strip().upper()
        if noted not in {key.FIELD_PREFIXED, key.VALUE_ONLY, ""}:
            raise UnsupportedTableError(
                f"The table {self.name!r} has {key.COMPLEX_KEY_ENCODING}={noted}, which pyhudi does not know.",
                f"Correct it to {key.FIELD_PREFIXED} or {key.VALUE_ONLY}, as the table's keys are, or leave it out.",
            )
        if noted:
            return noted == key.FIELD_PREFIXED
        # A table that came from an older version may have either spelling.
        made_in = (self.properties.get(key.INITIAL_VERSION) or "").strip()
        return True if self.version >= NEWEST_VERSION and made_in in {"", str(self.version)} else None

    @property
    def may_spell_keys_twice(self) -> bool:
        """Whether rows with the other spelling of a key of one field may be in the table, despite its note of one.

        0.15 and 1.x write tables of version 6 side by side, and the note does not bind them there.
        """
        return self._was_in_reach_of_release_0 and key.COMPLEX_KEY_ENCODING in self.properties

    @property
    def is_of_first_version(self) -> bool:
        """Whether the table certainly was in no other version before."""
        return (self.properties.get(key.INITIAL_VERSION) or "").strip() == str(self.version)

    @property
    def left_old_layout(self) -> bool:
        """Whether the table was made in a version that has its instants in ``.hoodie``, and has another version now."""
        made_in = (self.properties.get(key.INITIAL_VERSION) or "").strip()
        return self.version > key.NEWEST_FLAT_VERSION and made_in == str(key.NEWEST_FLAT_VERSION)

    @property
    def has_old_log_names(self) -> bool:
        """Whether log files of the table may have the names of version 6, which do not say who wrote a file."""
        return self.left_old_layout and self.table_type == key.MERGE_ON_READ

    @property
    def hive_style(self) -> bool:
        return self.flag(key.HIVE_STYLE)

    @property
    def url_encode(self) -> bool:
        return self.flag(key.URL_ENCODE)

    @property
    def metadata_partitions(self) -> tuple[str, ...]:
        return self._list(key.METADATA_PARTITIONS)

    @property
    def metadata_being_built(self) -> tuple[str, ...]:
        """The partitions of the metadata table that an indexing builds: writers write to them, readers do not ask."""
        return self._list(key.METADATA_INFLIGHT)

    @property
    def has_buckets(self) -> bool:
        """Whether the properties note the bucket index, so that partitions have numbers of buckets."""
        return not self.generates_keys and self.index_type == key.BUCKET and self.bucket_count is not None

    @property
    def index_type(self) -> str | None:
        """The index that the table notes, in capitals; None if the properties do not tell."""
        noted = (
            (self.properties.get(key.INDEX_TYPE) or self.properties.get(key.RECORD_INDEX_LOOKUP) or "").strip().upper()
        )
        return noted or (key.BUCKET if self.properties.get(key.BUCKET_COUNT) else None)

    @property
    def has_two_key_rules(self) -> bool:
        """Whether writers of the table hashed keys with ``,`` or ``:`` in two ways, by their release."""
        return self._was_in_reach_of_release_0

    @property
    def _was_in_reach_of_release_0(self) -> bool:
        """Whether the table is, or was, of a version that 0.15 and 1.x write side by side."""
        return self.version <= key.NEWEST_FLAT_VERSION or self.left_old_layout

    @property
    def bucket_count(self) -> int | None:
        text = self.properties.get(key.BUCKET_COUNT)
        return int(text) if text else None

    @property
    def hash_fields(self) -> tuple[str, ...] | None:
        """Record key columns that choose the bucket; None if the properties do not tell."""
        return self._list(key.BUCKET_HASH_FIELDS) or None

    @property
    def timeline_folder(self) -> str:
        """The folder of instants, relative to the table's root."""
        if layout_of(self.version) == key.LAYOUT_OF_OLD_TABLES:
            return ".hoodie"
        return f".hoodie/{self.properties.get(key.TIMELINE_PATH) or 'timeline'}"

    @property
    def archive_folder(self) -> str:
        if layout_of(self.version) == key.LAYOUT_OF_OLD_TABLES:
            return f"{self.timeline_folder}/{self.properties.get(key.ARCHIVE_FOLDER) or 'archived'}"
        return f"{self.timeline_folder}/{self.properties.get(key.HISTORY_PATH) or 'history'}"

    @property
    def create_schema(self) -> str | None:
        """The Avro schema (JSON) that SQL wrote when it created the table."""
        return self.properties.get(key.CREATE_SCHEMA) or None

    @property
    def populate_meta_fields(self) -> bool:
        return self.flag(key.POPULATE_META_FIELDS, default=True)

    def flag(self, option: str, *, default: bool = False) -> bool:
        """Return whether a property is ``true``; ``default`` if it is absent or empty."""
        text = self.properties.get(option)
        return default if not text else text.strip().lower() == "true"

    def _list(self, option: str) -> tuple[str, ...]:
        """Return the parts of a property between commas, without blanks and empty parts."""
        parts = (part.strip() for part in self.properties.get(option, "").split(","))
        return tuple(part for part in parts if part)

    def _check(self, data: bytes, where: str) -> None:
        """Raise TableConfigError for a file that is cut off or inconsistent, TableVersionError for a newer table.

        ``data`` are the bytes of the file that the properties are from, and ``where`` names it in errors.
        """
        if data and not data.endswith((b"\n", b"\r")):
            raise TableConfigError(
                f"{where} ends in the middle of a line, as if it had been cut off.",
                f"{_RESTORE} If it is whole, end its last line with a newline.",
            )
        for option in _REQUIRED:
            if not self.properties.get(option, "").strip():
                raise TableConfigError(f"{where} lacks {option}: the file is empty or cut off.", _RESTORE)
        for option in (key.VERSION, key.LAYOUT_VERSION, key.BUCKET_COUNT):
            text = self.properties.get(option) or "0"
            if not _NUMBER.fullmatch(text):
                raise TableConfigError(f"{where} says {option}={text[:99]}, which is no number.", _RESTORE)
        if self.version > NEWEST_VERSION:
            raise TableVersionError(
                f"{where} says table version {self.version}; pyhudi knows versions up to {NEWEST_VERSION}.",
                "Use a newer pyhudi, or the Apache Hudi release that wrote the table.",
            )
        if self.timezone not in ("UTC", "LOCAL"):
            raise TableConfigError(
                f"{where} says {key.TIMEZONE}={self.timezone}, which is neither UTC nor LOCAL.", _RESTORE
            )
        if self.table_type not in (COPY_ON_WRITE, MERGE_ON_READ):
            raise TableConfigError(f"{where} says {key.TYPE}={self.table_type}, which is no table type.", _RESTORE)
        stored, computed = self.properties.get(key.CHECKSUM), checksum(self.database, self.name)
        if stored is not None and stored != computed:
            raise TableConfigError(
                f"{where} says {key.CHECKSUM}={stored}, but database {self.database!r} and name {self.name!r} "
                f"make {computed}.",
                _RESTORE,
            )


def types_of_new_tables(version: int) -> tuple[str, ...]:
    """Return the types of tables that pyhudi makes in a version."""
    flat = layout_of(version) == key.LAYOUT_OF_OLD_TABLES
    return (COPY_ON_WRITE,) if flat else (COPY_ON_WRITE, MERGE_ON_READ)


def layout_of(version: int) -> int:
    """Return the layout that the timeline has in tables of a version, ``hoodie.timeline.layout.version``."""
    return key.LAYOUT_OF_OLD_TABLES if version <= key.NEWEST_FLAT_VERSION else key.NEWEST_LAYOUT


def checksum(database: str, name: str) -> str:
    """Return ``hoodie.table.checksum``: the CRC-32 of ``<database>.<name>``."""
    return str(zlib.crc32(f"{database}.{name}".encode()))


def _partition_extractor(partition_fields: Sequence[str], hive_style: bool) -> str:
    """Return the class by which Apache Hudi 1.2 would sync the partitions to a Hive metastore."""
    if not partition_fields:
        kind = "NonPartitionedExtractor"
    elif len(partition_fields) > 1:
        kind = "MultiPartKeysValueExtractor"
    else:
        kind = "HiveStylePartitionValueExtractor" if hive_style else "SinglePartPartitionValueExtractor"
    return f"org.apache.hudi.hive.{kind}"


def _update_properties(mode: str | None, unavailable: str | None) -> dict[str, str]:
    """Return the partial update mode and its placeholder, by default that of Debezium."""
    if mode != key.FILL_UNAVAILABLE:
        return {key.PARTIAL_UPDATE_MODE: mode} if mode else {}
    return {key.PARTIAL_UPDATE_MODE: mode, key.UNAVAILABLE_VALUE: unavailable or key.UNAVAILABLE_OF_DEBEZIUM}


def _version_properties(version: int, generator: KeyGeneratorType, extractor: str) -> dict[str, str]:
    """Return the properties that only new tables of the version have: key generator, format and extractor."""
    if layout_of(version) == key.LAYOUT_OF_OLD_TABLES:
        # Apache Hudi 0.15 knows the class alone.
        return {key.KEY_GENERATOR_CLASS: generator.java_class}
    properties = {key.INITIAL_VERSION: str(version)}
    if version < NEWEST_VERSION:
        return properties
    return properties | {key.TABLE_FORMAT: "native", key.PARTITION_EXTRACTOR: extractor}


def _with_spelling(config: TableConfig) -> TableConfig:
    """Return the configuration with a note of how a new table spells its keys, if its other properties do not tell."""
    return config if config.names_key_field is not None else config.with_key_field(None)


def bucket_properties(
    bucket_count: int, record_key: Sequence[str], hash_fields: Sequence[str] | None
) -> dict[str, str]:
    """Return the properties of the index BUCKET; ``hash_fields`` None means all columns of the record key."""
    return {
        key.INDEX_TYPE: key.BUCKET,
        key.BUCKET_COUNT: str(bucket_count),
        key.BUCKET_HASH_FIELDS: ",".join(hash_fields or record_key),
        key.BUCKET_ENGINE: "SIMPLE",
        key.RECORD_KEY_OPTION: ",".join(record_key),
    }
