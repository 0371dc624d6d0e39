"""What the caller says of a table, held against what the table says of itself."""

from __future__ import annotations

from ...errors import MissingOptionError, OptionConflictError, UnsupportedOptionError
from ...table.config import TableConfig
from ...table.config.key_types import KeyGeneratorType, PartitionType, choose_key_generator
from ...table.config.property_keys import BUCKET_COUNT, BUCKET_ENGINE, BUCKET_HASH_FIELDS, INDEX_TYPE, TIME_ZONES
from ...table.keys.time_partitions import TimePartitions, missing_options
from ...table.merging.deletes import DeleteMarker
from .request import TableSettings

DEFAULT_BUCKETS = 8
# What a caller says of delete markers; the table keeps both as properties of its merge mode.
DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"
PAYLOAD_CLASS = "hoodie.datasource.write.payload.class"

# Attribute of TableSettings -> (attribute of TableConfig, the option's key).
_COMPARED = {
    "name": ("name", "hoodie.table.name"),
    "database": ("database", "hoodie.database.name"),
    "table_type": ("table_type", "hoodie.datasource.write.table.type"),
    "version": ("version", "hoodie.write.table.version"),
    "record_key_fields": ("record_key_fields", "hoodie.datasource.write.recordkey.field"),
    "partition_fields": ("partition_fields", "hoodie.datasource.write.partitionpath.field"),
    "partition_types": ("partition_types", "hoodie.datasource.write.partitionpath.field"),
    "ordering_fields": ("ordering_fields", "hoodie.table.ordering.fields"),
    "merge_mode": ("merge_mode", "hoodie.write.record.merge.mode"),
    "key_generator": ("key_generator", "hoodie.datasource.write.keygenerator.type"),
    "hive_style": ("hive_style", "hoodie.datasource.write.hive_style_partitioning"),
    "url_encode": ("url_encode", "hoodie.datasource.write.partitionpath.urlencode"),
    "timezone": ("timezone", "hoodie.table.timeline.timezone"),
    "index_type": ("index_type", INDEX_TYPE),
    "bucket_count": ("bucket_count", BUCKET_COUNT),
    "hash_fields": ("hash_fields", BUCKET_HASH_FIELDS),
}


def new_config(asked: TableSettings, path: str, *, generates_keys: bool = False) -> TableConfig:
    """Return the properties of a table that is about to be created.

    Args:
        asked: What the caller says of it.
        path: Where it will be.
        generates_keys: Whether it may do without a record key.

    Raises:
        MissingOptionError: No record key was named.
        UnsupportedOptionError: A kind of table that pyhudi does not create yet.
        OptionConflictError: Two of the options contradict each other.
    """
    record_key = asked.record_key_fields or ()
    if not record_key and not generates_keys:
        raise MissingOptionError(
            f"There is no table at {path} yet, and hoodie.datasource.write.recordkey.field, the one option that a new "
            "table needs, is not given.",
            'Add .option("hoodie.datasource.write.recordkey.field", "<column>"); or '
            '.option("hoodie.datasource.write.operation", "insert") for a table that generates its keys and takes no '
            "upserts; or correct the path.",
        )
    _check_creatable(asked, path)
    if not record_key:
        _check_no_buckets(asked, path)
    partition_fields = asked.partition_fields or ()
    _check_named_once(asked, path)
    generator = _generator(asked, path)
    ordering = asked.ordering_fields or ()
    merge_mode = asked.merge_mode or ("EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING")
    if merge_mode == "EVENT_TIME_ORDERING" and not ordering:
        raise OptionConflictError(
            f"hoodie.write.record.merge.mode=EVENT_TIME_ORDERING needs an ordering field, and none is given for the "
            f"new table {path}.",
            "Name one with hoodie.table.ordering.fields, or use COMMIT_TIME_ORDERING.",
        )
    _check_hash_fields(asked.hash_fields, record_key, path)
    brought = asked.payload.delete_marker if asked.payload else None
    return TableConfig.new(
        name=asked.name or path.rstrip("/").rpartition("/")[2],
        database=asked.database or "",
        record_key_fields=record_key,
        partition_fields=partition_fields,
        partition_types=asked.partition_types if generator is KeyGeneratorType.CUSTOM else None,
        ordering_fields=ordering,
        merge_mode=merge_mode,
        payload=asked.payload,
        delete_marker=_marker(asked, None, path) or brought,
        key_generator=generator,
        hive_style=bool(asked.hive_style),
        url_encode=bool(asked.url_encode),
        timezone=asked.timezone or "UTC",
        # Apache Hudi's own default, which finds keys in files, goes with generated ones.
        index_type="BUCKET" if record_key else None,
        bucket_count=asked.bucket_count or DEFAULT_BUCKETS,
        hash_fields=asked.hash_fields or record_key,
        time_options=_time_options(asked, generator, path),
    )


def changes_to(config: TableConfig, asked: TableSettings, path: str) -> tuple[TableConfig, dict[str, str]]:
    """Return an existing table's properties with what this write teaches it, and those additions alone.

    Apache Hudi stores neither the index nor the number of buckets; the first write that names them does.

    Raises:
        OptionConflictError: An option disagrees with the table.
        MissingOptionError: The table does not say how many buckets it has, nor does the write.
    """
    _check_agrees(config, asked, path)
    marker = _marker(asked, config.delete_marker, path)
    if marker is not None and config.delete_marker is None:
        # For this write alone, as Apache Hudi takes it.
        config = config.with_delete_marker(marker)
    additions = {**_taught_buckets(config, asked, path), **_taught_times(config, asked, path)}
    return (TableConfig({**config.properties, **additions}) if additions else config), additions


def _check_agrees(config: TableConfig, asked: TableSettings, path: str) -> None:
    conflicts = []
    for name, (attribute, key) in _COMPARED.items():
        said, kept = getattr(asked, name), getattr(config, attribute)
        unknown = name in {"bucket_count", "hash_fields", "index_type"} and kept is None
        if said is not None and not unknown and said != kept:
            conflicts.append(f"{key} is {_shown(said)} here and {_shown(kept)} in the table")
    marker = _marker(asked, config.delete_marker, path)
    if marker is not None and config.delete_marker not in {None, marker}:
        conflicts.append(
            f"{DELETE_FIELD} and {DELETE_MARKER} are {marker} here and {config.delete_marker} in the table"
        )
    brought = asked.payload.delete_marker if asked.payload else None
    if brought and marker is None:
        conflicts.append(
            f"{PAYLOAD_CLASS} means here that rows with {brought} are deletes, and the table was made without it "
            f"({DELETE_FIELD} and {DELETE_MARKER} say so for one write)"
        )
    known = config.time_options
    has_times = bool(asked.time_options) and PartitionType.TIMESTAMP in config.partition_types
    for key, said in asked.time_options.items():
        if not has_times:
            conflicts.append(f"{key} is given, and no partition of the table is made of times")
        elif known.get(key, said) != said:
            conflicts.append(f"{key} is {_shown(said)} here and {_shown(known[key])} in the table")
    if conflicts:
        raise OptionConflictError(
            f"Options disagree with the table {path}: {'; '.join(conflicts)}.",
            "Leave these options out: after creation a write needs none.",
        )


def _taught_times(config: TableConfig, asked: TableSettings, path: str) -> dict[str, str]:
    """Return what the write says of the times in partition paths and the table does not."""
    if PartitionType.TIMESTAMP not in config.partition_types:
        return {}
    known = config.time_options
    TimePartitions.of({**known, **asked.time_options}, path)
    return {option: text for option, text in asked.time_options.items() if option not in known}


def _taught_buckets(config: TableConfig, asked: TableSettings, path: str) -> dict[str, str]:
    if config.generates_keys:
        _check_no_buckets(asked, path)
        return {}
    if config.bucket_count is not None:
        return {}
    if asked.bucket_count is None:
        raise MissingOptionError(
            f"The table {path} was made without a note of its number of buckets, because Apache Hudi keeps none.",
            f"Give {BUCKET_COUNT} the number that its writers use, once; pyhudi remembers it in the table.",
        )
    hash_fields = asked.hash_fields or config.record_key_fields
    _check_hash_fields(hash_fields, config.record_key_fields, path)
    return {
        INDEX_TYPE: "BUCKET",
        BUCKET_ENGINE: "SIMPLE",
        BUCKET_COUNT: str(asked.bucket_count),
        BUCKET_HASH_FIELDS: ",".join(hash_fields),
    }


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


def _check_named_once(asked: TableSettings, path: str) -> None:
    """Refuse fields that are named twice: the key would hold a value twice, and no reader knows two like columns."""
    for fields, key in (
        (asked.record_key_fields, "hoodie.datasource.write.recordkey.field"),
        (asked.partition_fields, "hoodie.datasource.write.partitionpath.field"),
    ):
        if fields and len(set(fields)) < len(fields):
            raise OptionConflictError(
                f"{key} of the new table {path} names a column twice: {_shown(fields)}.", "Name each column once."
            )


def _generator(asked: TableSettings, path: str) -> KeyGeneratorType:
    """Return the key generator of a new table, having checked that it fits the columns."""
    record_key, partition = asked.record_key_fields or (), asked.partition_fields or ()
    typed = asked.partition_types is not None
    generator = asked.key_generator or choose_key_generator(record_key, partition, is_typed=typed)
    fits = {
        KeyGeneratorType.SIMPLE: len(record_key) <= 1 and len(partition) == 1,
        KeyGeneratorType.COMPLEX: True,
        KeyGeneratorType.NON_PARTITION: not partition,
        KeyGeneratorType.TIMESTAMP: len(record_key) <= 1 and len(partition) == 1,
        KeyGeneratorType.CUSTOM: typed or not partition,
    }[generator]
    if fits and (generator is KeyGeneratorType.CUSTOM or not typed):
        return generator
    cure = "Leave it out: it follows from the columns."
    if generator is KeyGeneratorType.CUSTOM:
        cure = "Write each partition column as <column>:SIMPLE or <column>:TIMESTAMP."
    elif generator is KeyGeneratorType.TIMESTAMP:
        cure = "Name one partition column without a type, or use CUSTOM with <column>:SIMPLE and <column>:TIMESTAMP."
    raise OptionConflictError(
        f"The key generator {generator.value} (hoodie.datasource.write.keygenerator.type) does not fit the new table "
        f"{path} with the record key "
        f"{_shown(record_key)} and the partition columns {_shown(_typed(partition, asked.partition_types))}.",
        cure,
    )


def _typed(fields: tuple[str, ...], types: tuple[PartitionType, ...] | None) -> tuple[str, ...]:
    return tuple(f"{field}:{kind.value}" for field, kind in zip(fields, types, strict=True)) if types else fields


def _time_options(asked: TableSettings, generator: KeyGeneratorType, path: str) -> dict[str, str]:
    """Return what a new table notes of the times in its partition paths.

    A zone that nobody named is noted as UTC: Apache Hudi would take that of the machine it runs on.
    """
    of_times = generator is KeyGeneratorType.TIMESTAMP or PartitionType.TIMESTAMP in (asked.partition_types or ())
    if not of_times:
        if asked.time_options:
            raise OptionConflictError(
                f"{next(iter(asked.time_options))} says how the new table {path} makes partition paths of times, and "
                f"its key generator {generator.value} makes none.",
                "Leave the option out, or use hoodie.datasource.write.keygenerator.type=TIMESTAMP.",
            )
        return {}
    given = dict(asked.time_options)
    given |= {option: "UTC" for option in missing_options(given, path) if option in TIME_ZONES}
    TimePartitions.of(given, path)
    return given


def _check_no_buckets(asked: TableSettings, path: str) -> None:
    """Refuse buckets of a table that generates its keys: nobody would look for a key."""
    for key, said in (
        (BUCKET_COUNT, asked.bucket_count),
        (BUCKET_HASH_FIELDS, asked.hash_fields),
        (INDEX_TYPE, asked.index_type),
    ):
        if said is not None:
            raise OptionConflictError(
                f"{key} is {_shown(said)}, and the table {path} has no record key, of which buckets are made.",
                "Leave the option out, or name a record key with hoodie.datasource.write.recordkey.field.",
            )


def _check_hash_fields(hash_fields: tuple[str, ...] | None, record_key: tuple[str, ...], path: str) -> None:
    strangers = [name for name in hash_fields or () if name not in record_key]
    if strangers:
        raise OptionConflictError(
            f"{BUCKET_HASH_FIELDS} names {_shown(tuple(strangers))}, which is not in the record key "
            f"{_shown(record_key)} of the table {path}.",
            "Name record key columns only.",
        )


def _shown(value: object) -> str:
    if isinstance(value, KeyGeneratorType):
        return value.value
    if isinstance(value, tuple):
        return repr(",".join(one.value if isinstance(one, PartitionType) else str(one) for one in value))
    return str(value).lower() if isinstance(value, bool) else repr(value)
