"""What the caller says of a table, held against what the table says of itself."""

from __future__ import annotations

from ..errors import MissingOptionError, OptionConflictError, UnsupportedOptionError
from ..table.config import TableConfig
from ..table.deletes import DeleteMarker
from ..table.keys import KeyGeneratorType, choose_key_generator
from .settings import TableSettings

DEFAULT_BUCKETS = 8
BUCKET_COUNT = "hoodie.bucket.index.num.buckets"
HASH_FIELDS = "hoodie.bucket.index.hash.field"
INDEX_TYPE = "hoodie.index.type"
INDEX_ENGINE = "hoodie.index.bucket.engine"
DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"

# Attribute of TableSettings -> (attribute of TableConfig, the option's key).
_COMPARED = {
    "name": ("name", "hoodie.table.name"),
    "database": ("database", "hoodie.database.name"),
    "table_type": ("table_type", "hoodie.datasource.write.table.type"),
    "version": ("version", "hoodie.write.table.version"),
    "record_key_fields": ("record_key_fields", "hoodie.datasource.write.recordkey.field"),
    "partition_fields": ("partition_fields", "hoodie.datasource.write.partitionpath.field"),
    "ordering_fields": ("ordering_fields", "hoodie.table.ordering.fields"),
    "merge_mode": ("merge_mode", "hoodie.write.record.merge.mode"),
    "key_generator": ("key_generator", "hoodie.datasource.write.keygenerator.type"),
    "hive_style": ("hive_style", "hoodie.datasource.write.hive_style_partitioning"),
    "url_encode": ("url_encode", "hoodie.datasource.write.partitionpath.urlencode"),
    "timezone": ("timezone", "hoodie.table.timeline.timezone"),
    "index_type": ("index_type", INDEX_TYPE),
    "bucket_count": ("bucket_count", BUCKET_COUNT),
    "hash_fields": ("hash_fields", HASH_FIELDS),
}


def new_config(asked: TableSettings, path: str) -> TableConfig:
    """Return the properties of a table that is about to be created.

    Raises:
        MissingOptionError: No record key was named.
        UnsupportedOptionError: A kind of table that pyhudi does not create yet.
        OptionConflictError: Two of the options contradict each other.
    """
    if not asked.record_key_fields:
        raise MissingOptionError(
            f"There is no table at {path} yet, and hoodie.datasource.write.recordkey.field, the one option that a new "
            "table needs, is not given.",
            'Add .option("hoodie.datasource.write.recordkey.field", "<column>"), or correct the path.',
        )
    _check_creatable(asked, path)
    partition_fields = asked.partition_fields or ()
    generator = asked.key_generator or choose_key_generator(asked.record_key_fields, partition_fields)
    _check_generator(generator, asked.record_key_fields, partition_fields, path)
    ordering = asked.ordering_fields or ()
    merge_mode = asked.merge_mode or ("EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING")
    if merge_mode == "EVENT_TIME_ORDERING" and not ordering:
        raise OptionConflictError(
            f"hoodie.write.record.merge.mode=EVENT_TIME_ORDERING needs an ordering field, and none is given for the "
            f"new table {path}.",
            "Name one with hoodie.table.ordering.fields, or use COMMIT_TIME_ORDERING.",
        )
    _check_hash_fields(asked.hash_fields, asked.record_key_fields, path)
    return TableConfig.new(
        name=asked.name or path.rstrip("/").rpartition("/")[2],
        database=asked.database or "",
        record_key_fields=asked.record_key_fields,
        partition_fields=partition_fields,
        ordering_fields=ordering,
        merge_mode=merge_mode,
        delete_marker=_marker(asked, None, path),
        key_generator=generator,
        hive_style=bool(asked.hive_style),
        url_encode=bool(asked.url_encode),
        timezone=asked.timezone or "UTC",
        bucket_count=asked.bucket_count or DEFAULT_BUCKETS,
        hash_fields=asked.hash_fields or asked.record_key_fields,
    )


def changes_to(config: TableConfig, asked: TableSettings, path: str) -> tuple[TableConfig, dict[str, str]]:
    """Return an existing table's properties with what this write teaches it, and those additions alone.

    Apache Hudi stores neither the index nor the number of buckets; the first write that names them does.

    Raises:
        OptionConflictError: An option disagrees with the table.
        MissingOptionError: The table does not say how many buckets it has, nor does the write.
    """
    conflicts = []
    for name, (attribute, key) in _COMPARED.items():
        said, kept = getattr(asked, name), getattr(config, attribute)
        unknown = name in {"bucket_count", "hash_fields", "index_type"} and kept is None
        if said is not None and not unknown and said != kept:
            conflicts.append(f"{key} is {_shown(said)} here and {_shown(kept)} in the table")
    marker = _marker(asked, config.delete_marker, path)
    if marker is not None and config.delete_marker is None:
        # For this write alone, as Apache Hudi takes it.
        config = config.with_delete_marker(marker)
    elif marker is not None and marker != config.delete_marker:
        conflicts.append(
            f"{DELETE_FIELD} and {DELETE_MARKER} are {marker} here and {config.delete_marker} in the table"
        )
    if conflicts:
        raise OptionConflictError(
            f"Options disagree with the table {path}: {'; '.join(conflicts)}.",
            "Leave these options out: after creation a write needs none.",
        )
    if config.bucket_count is not None:
        return config, {}
    if asked.bucket_count is None:
        raise MissingOptionError(
            f"The table {path} was made without a note of its number of buckets, because Apache Hudi keeps none.",
            f"Give {BUCKET_COUNT} the number that its writers use, once; pyhudi remembers it in the table.",
        )
    hash_fields = asked.hash_fields or config.record_key_fields
    _check_hash_fields(hash_fields, config.record_key_fields, path)
    additions = {
        INDEX_TYPE: "BUCKET",
        INDEX_ENGINE: "SIMPLE",
        BUCKET_COUNT: str(asked.bucket_count),
        HASH_FIELDS: ",".join(hash_fields),
    }
    return TableConfig({**config.properties, **additions}), additions


def _marker(asked: TableSettings, kept: DeleteMarker | None, path: str) -> DeleteMarker | None:
    """Return the delete marker that the options name, completed from the table's own."""
    field = asked.delete_field or (kept.field if kept else None)
    value = asked.delete_marker or (kept.value if kept else None)
    if field and value:
        return DeleteMarker(field, value)
    if field or value:
        given, missing = (DELETE_FIELD, DELETE_MARKER) if field else (DELETE_MARKER, DELETE_FIELD)
        raise MissingOptionError(
            f"{given} is given for the table {path} without {missing}: the one names a column, the other its value in "
            "rows that are deletes.",
            "Give both or neither.",
        )
    return None


def _check_creatable(asked: TableSettings, path: str) -> None:
    only = {
        "hoodie.datasource.write.table.type": (asked.table_type, "COPY_ON_WRITE"),
        "hoodie.write.table.version": (asked.version, 9),
        INDEX_TYPE: (asked.index_type, "BUCKET"),
    }
    for key, (said, supported) in only.items():
        if said is not None and said != supported:
            raise UnsupportedOptionError(
                f"The new table {path} was asked for with {key}={said}, which pyhudi does not do yet.",
                f"Use {key}={supported}, or create the table with Apache Hudi.",
            )
    if asked.timezone not in {None, "UTC", "LOCAL"}:
        raise UnsupportedOptionError(
            f"The new table {path} was asked for with hoodie.table.timeline.timezone={asked.timezone}.",
            "Use UTC or LOCAL, the two that Apache Hudi knows.",
        )
    if asked.merge_mode not in {None, "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"}:
        raise UnsupportedOptionError(
            f"The new table {path} was asked for with hoodie.write.record.merge.mode={asked.merge_mode}.",
            "Use EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING.",
        )


def _check_generator(
    generator: KeyGeneratorType, record_key: tuple[str, ...], partition: tuple[str, ...], path: str
) -> None:
    fits = {
        KeyGeneratorType.SIMPLE: len(record_key) == 1 and len(partition) == 1,
        KeyGeneratorType.COMPLEX: True,
        KeyGeneratorType.NON_PARTITION: not partition,
    }.get(generator, False)
    if not fits:
        raise OptionConflictError(
            f"The key generator {generator.value} does not fit the new table {path} with the record key "
            f"{_shown(record_key)} and the partition columns {_shown(partition)}.",
            "Leave hoodie.datasource.write.keygenerator.type out: it follows from the columns.",
        )


def _check_hash_fields(hash_fields: tuple[str, ...] | None, record_key: tuple[str, ...], path: str) -> None:
    strangers = [name for name in hash_fields or () if name not in record_key]
    if strangers:
        raise OptionConflictError(
            f"{HASH_FIELDS} names {_shown(tuple(strangers))}, which is not in the record key {_shown(record_key)} of "
            f"the table {path}.",
            "Name record key columns only.",
        )


def _shown(value: object) -> str:
    if isinstance(value, KeyGeneratorType):
        return value.value
    if isinstance(value, tuple):
        return repr(",".join(str(one) for one in value))
    return str(value).lower() if isinstance(value, bool) else repr(value)
