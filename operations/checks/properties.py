"""The checks of ``hoodie.properties``."""

from __future__ import annotations

from ...errors import NotATableError, PyHudiError, StorageError, TableError, TableNotFoundError, UnsupportedTableError
from ...storage.bounds import MOST_OF_PROPERTIES
from ...table.config import BACKUP_PATH, PROPERTIES_PATH, TableConfig, check_supported, load_config
from ...table.config import property_keys as key
from ...table.files.partitions import METAFILE
from ...table.format import format_of
from ...table.keys.generator import KeyGenerator
from ...table.keys.partition_paths import parse_partition_path
from ...table.schema.columns import arrow_schema
from .check_catalogue import (
    NOT_CHECKED,
    PARTITION_FIELDS_MISSING,
    PARTITION_NAME,
    PROPERTIES_BACKUP,
    PROPERTIES_UNUSABLE,
    PROPERTY_INVALID,
    PROPERTY_MISSING,
)
from .finding import Findings
from .subject import Subject, shown


def load(findings: Findings) -> TableConfig | None:
    """Return a table's properties, from the backup if necessary; None if neither file can be used.

    Raises TableNotFoundError, NotATableError, and StorageError.
    """
    storage = findings.storage
    try:
        config = load_config(storage)
    except (TableNotFoundError, NotATableError):
        raise
    except StorageError:
        # Raises StorageError if the store itself cannot be reached; else only this file cannot be read.
        storage.look("")
        findings.add(
            PROPERTIES_UNUSABLE,
            f"{PROPERTIES_PATH} is no file; nothing else was checked.",
            file=PROPERTIES_PATH,
        )
        return None
    except TableError as error:
        findings.add(PROPERTIES_UNUSABLE, f"{error.what} Nothing else was checked.", file=PROPERTIES_PATH)
        return None
    if findings.is_old(storage.modified(BACKUP_PATH)):
        findings.add(
            PROPERTIES_BACKUP, f"{BACKUP_PATH} exists because a change of the properties broke off.", file=BACKUP_PATH
        )
    with findings.turning(PROPERTIES_UNUSABLE, file=PROPERTIES_PATH):
        try:
            TableConfig.parse(storage.read(PROPERTIES_PATH, MOST_OF_PROPERTIES), storage.uri(PROPERTIES_PATH))
        except FileNotFoundError:
            findings.add(
                PROPERTIES_UNUSABLE,
                f"{PROPERTIES_PATH} is gone, and only its backup is there, which hudi-rs does not read.",
                file=PROPERTIES_PATH,
            )
    return config


def is_known(config: TableConfig, findings: Findings) -> bool:
    """Return whether pyhudi can check the timeline of the table's version; report what it cannot check."""
    try:
        format_of(config)
    except PyHudiError as error:
        findings.add(NOT_CHECKED, f"{error.what} Only its properties were checked.", file=PROPERTIES_PATH)
        return False
    try:
        check_supported(config, findings.storage.path, writing=False)
    except UnsupportedTableError as error:
        findings.add(NOT_CHECKED, f"{error.what} What that means for its files was not checked.", file=PROPERTIES_PATH)
    # The names of instants and files can be checked even if pyhudi cannot read the table's rows.
    return True


def check_properties(subject: Subject) -> None:
    """Look for properties that are missing, have no meaning, or do not fit the table's folders."""
    config, findings = subject.config, subject.findings
    layout = config.properties[key.LAYOUT_VERSION]
    if layout != format_of(config).layout_version:
        contradiction = f"{key.VERSION}={config.version} and {key.LAYOUT_VERSION}={layout}, which do not go together"
        findings.add(PROPERTY_INVALID, f"{PROPERTIES_PATH} says {contradiction}.", file=PROPERTIES_PATH)
    if config.lacks_merge_mode:
        findings.add(
            PROPERTY_MISSING,
            f"{PROPERTIES_PATH} lacks {key.MERGE_MODE}, without which Apache Hudi's writers fail.",
            file=PROPERTIES_PATH,
        )
    with findings.turning(PROPERTY_INVALID, file=PROPERTIES_PATH):
        _check_partition_fields(subject)
    with findings.turning(PROPERTY_INVALID, file=PROPERTIES_PATH):
        if config.create_schema:
            arrow_schema(config.create_schema, f"{PROPERTIES_PATH} ({key.CREATE_SCHEMA})")
    # Only an error counts: pyhudi then cannot make the table's keys.
    for generator in (lambda: config.key_generator, lambda: KeyGenerator(config)):
        with findings.turning(NOT_CHECKED, file=PROPERTIES_PATH):
            generator()


def _check_partition_fields(subject: Subject) -> None:
    """Report partitions that the table's partition fields do not explain.

    These are partitions of a table without partition fields, a root with files of a table that has such fields, and
    under Hive's style a path that does not name the fields.
    """
    config, findings = subject.config, subject.findings
    partitions = set(subject.folders.partitions)
    if not config.partition_fields:
        if partitions - {""}:
            findings.add(
                PARTITION_FIELDS_MISSING,
                f"{PROPERTIES_PATH} names no partition fields, and the table has the partitions {shown(partitions)}.",
                file=PROPERTIES_PATH,
            )
        return
    if "" in partitions:
        fields = ", ".join(config.partition_fields)
        findings.add(
            PARTITION_NAME, f"The table is partitioned by {fields}, and its root is a partition.", file=METAFILE
        )
    # Other paths have values alone, so that any path may be right.
    names_columns = config.hive_style and not config.flag(key.SLASH_DATES)
    for partition in sorted(partitions - {""}):
        if names_columns and parse_partition_path(partition, config) is None:
            findings.add(
                PARTITION_NAME,
                f"The partition {partition!r} does not name the values of {', '.join(config.partition_fields)}.",
                file=partition,
            )
