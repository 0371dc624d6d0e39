"""Which tables pyhudi can read and write, judged by their configuration alone."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import UnsupportedTableError
from ...timeline import formats
from . import property_keys as key
from .merge_properties import merge_properties, own_strategy
from .property_keys import (
    COMMIT_TIME_ORDERING,
    EVENT_TIME_ORDERING,
    VERSIONS,
)
from .table_config import TableConfig, layout_of

# Each release of 1.x raises a table as it writes, unless its options forbid that.
RAISED_BY_A_WRITE = (
    "One write of Apache Hudi 1.x raises the table to version 8 or 9, unless hoodie.write.auto.upgrade is false: write "
    "to it once with that, then use pyhudi."
)


def check_supported(config: TableConfig, where: str, *, writing: bool) -> None:
    """Raise UnsupportedTableError for a kind of table that pyhudi does not support; writing needs more than reading."""
    if writing:
        check_format(config, where)
    for option, value in _unsupported(config, writing):
        raise UnsupportedTableError(
            f"The table {where} has {option}={value}, which pyhudi does not {'write' if writing else 'read'} yet.",
            RAISED_BY_A_WRITE if option == key.VERSION else "Use Apache Hudi for this table.",
        )


def check_format(config: TableConfig, where: str) -> None:
    """Raise UnsupportedTableError for a table that pyhudi must not change.

    Either pyhudi only reads tables of its version and type, or its properties have the format of a newer release.
    """
    if config.is_read_only and config.version in VERSIONS:
        raise UnsupportedTableError(
            f"The table {where} has {key.VERSION}={config.version} and {key.TYPE}={config.table_type}: pyhudi reads "
            "such tables, and does not write to them or change them.",
            "HudiTable.upgrade brings it to version 9; dry_run=True shows what that changes. Then write again.",
        )
    refuse_newer_format(config, where)


def refuse_newer_format(config: TableConfig, where: str) -> None:
    """Raise UnsupportedTableError if a table's properties have the format of a newer release of pyhudi."""
    number = formats.number_of_keys(config.properties)
    formats.refuse_newer(where, f"{formats.KEY} among its properties", number, formats.PROPERTIES)


def check_mergeable(config: TableConfig, where: str) -> None:
    """Raise UnsupportedTableError if pyhudi does not know the rules by which the table's log files are merged."""
    for option, value in (*_own_rules(config), *_unknown_updates(config)):
        raise UnsupportedTableError(
            f"The table {where} has {option}={value}, by which pyhudi does not merge log files.",
            "Read it with hoodie.datasource.query.type=read_optimized, which skips log files, or with Apache Hudi.",
        )


def check_merging(config: TableConfig, where: str) -> None:
    """Raise UnsupportedTableError if pyhudi does not merge the data files of a table into new ones.

    Unlike `check_supported` it does not ask for the version, whose other changes pyhudi may refuse.
    """
    for option, value in _unwritable(config):
        raise UnsupportedTableError(
            f"The table {where} has {option}={value}, with which pyhudi writes no data files yet.",
            "Use Apache Hudi for this table.",
        )


def _own_rules(config: TableConfig) -> Iterator[tuple[str, str]]:
    """Yield the properties that name a merge rule of the user, or contradict each other."""
    if config.merge_mode in (EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING):
        return
    if config.properties.get(key.MERGE_MODE, config.merge_mode) != config.merge_mode:
        # The named mode does not count, as class or strategy say otherwise.
        contradicted = (key.PAYLOAD_CLASS, key.MERGE_STRATEGY)
        others = " and ".join(
            f"{option}={config.properties[option]}" for option in contradicted if config.properties.get(option)
        )
        yield key.MERGE_MODE, f"{config.properties[key.MERGE_MODE]} beside {others}"
    strategy = own_strategy(config.properties)
    if strategy is not None:
        yield key.OLD_MERGE_STRATEGY, strategy
    for option in (key.LEGACY_PAYLOAD_CLASS, key.PAYLOAD_CLASS, key.MERGE_STRATEGY):
        if config.properties.get(option):
            yield option, config.properties[option]
    yield key.MERGE_MODE, config.merge_mode


def _unknown_updates(config: TableConfig) -> Iterator[tuple[str, str]]:
    """Yield the properties of partial updates and delete markers that pyhudi does not know in the table's version."""
    keeps = merge_properties(config.version).keeps_partial_updates
    modes = (None, key.IGNORE_DEFAULTS, key.FILL_UNAVAILABLE) if keeps else (None,)
    if config.partial_update_mode not in modes:
        yield key.PARTIAL_UPDATE_MODE, str(config.partial_update_mode)
    # The properties by which pyhudi merges.
    mergeable = {key.UNAVAILABLE_VALUE} if config.partial_update_mode == key.FILL_UNAVAILABLE else set()
    mergeable |= {key.DELETE_FIELD, key.DELETE_MARKER} if config.delete_marker else set()
    for option, value in config.properties.items():
        if option.startswith(key.MERGE_PROPERTY_PREFIX) and option not in mergeable:
            yield option, value


def _unsupported(config: TableConfig, writing: bool) -> Iterator[tuple[str, str]]:
    """Yield the properties because of which pyhudi does not read a table, or with ``writing`` not write it."""
    if config.version not in VERSIONS:
        yield key.VERSION, str(config.version)
    elif int(config.properties[key.LAYOUT_VERSION]) != layout_of(config.version):
        yield key.LAYOUT_VERSION, config.properties[key.LAYOUT_VERSION]
    if not config.populate_meta_fields:
        yield key.POPULATE_META_FIELDS, "false"
    base_format = config.properties.get(key.BASE_FILE_FORMAT) or "PARQUET"
    if base_format.upper() != "PARQUET":
        yield key.BASE_FILE_FORMAT, base_format
    table_format = config.properties.get(key.TABLE_FORMAT) or "native"
    if table_format.lower() != "native":
        yield key.TABLE_FORMAT, table_format
    if config.properties.get(key.BOOTSTRAP_BASE_PATH):
        yield key.BOOTSTRAP_BASE_PATH, config.properties[key.BOOTSTRAP_BASE_PATH]
    for flag in (key.DROP_PARTITION_COLUMNS, key.MULTIPLE_BASE_FILE_FORMATS, key.PARTITION_METAFILE_BASE_FORMAT):
        if config.flag(flag):
            yield flag, "true"
    if writing:
        yield from _unwritable(config)


def _unwritable(config: TableConfig) -> Iterator[tuple[str, str]]:
    """Yield the properties that are no hindrance to reading, but for which pyhudi writes no data files."""
    yield from _own_rules(config)
    yield from _unknown_updates(config)
    for flag in (key.CDC_ENABLED, key.CONSISTENT_TIMESTAMPS, key.SLASH_DATES):
        if config.flag(flag):
            yield flag, "true"
    if config.index_type in key.INDEXES_NOT_DONE:
        yield key.INDEX_TYPE, str(config.index_type)
    engine = config.properties.get(key.BUCKET_ENGINE) or "SIMPLE"
    if engine.upper() != "SIMPLE":
        yield key.BUCKET_ENGINE, engine
