"""The record index of a table, as Apache Hudi's index definitions and the table's properties name it.

A record index is the only index of which Apache Hudi leaves a note. It keeps record keys unique in the whole table, or
within their partitions if its definition says ``isPartitioned``.

Source: ``org.apache.hudi.common.model.HoodieIndexMetadata`` and ``HoodieIndexDefinition``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import TableConfigError
from ..storage.base import Storage
from .config import property_keys as key
from .table import Table

INDEXES_FOLDER = ".hoodie/.index_defs"
RECORD_INDEX = "record_index"

INDEXES_FILE = f"{INDEXES_FOLDER}/index.json"


def kind_by_record_index(table: Table) -> str | None:
    """Return the lookup index that finds the keys of a record index, GLOBAL_SIMPLE or SIMPLE; None without one.

    Apache Hudi before 1.1 defines none in the file, and its record index is global. Raises `TableConfigError` if the
    file cannot be read.
    """
    definitions = defined_indexes(table.storage)
    if RECORD_INDEX not in definitions:
        return key.GLOBAL_SIMPLE if RECORD_INDEX in table.config.metadata_partitions else None
    options = options_of(RECORD_INDEX, definitions[RECORD_INDEX])
    is_partitioned = str(options.get("isPartitioned", "")).lower() == "true"
    return key.SIMPLE if is_partitioned else key.GLOBAL_SIMPLE


def defined_indexes(storage: Storage) -> dict[str, dict[str, Any]]:
    """Return the definitions of a table's indexes, as they are stored, by the names of their metadata partitions.

    Raises `TableConfigError` if the file cannot be read.
    """
    try:
        stored = storage.read(INDEXES_FILE)
    except FileNotFoundError:
        return {}
    try:
        definitions = json.loads(stored)["indexDefinitions"]
        return {str(name): dict(definition) for name, definition in definitions.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TableConfigError(
            f"{INDEXES_FILE} of the table {storage.path} cannot be read ({error!r}), so that it is unknown what its "
            "indexes are of, and whether a record index keeps keys unique in the whole table.",
            "Restore the file from a backup; or delete it if the table has no record index.",
        ) from error


def options_of(name: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the stored definition of an index; raises `TableConfigError` if they are no map."""
    options = definition.get("indexOptions") or {}
    if not isinstance(options, dict):
        raise refused_definition(name, "indexOptions", options)
    return options


def refused_definition(name: str, part: str, stored: object) -> TableConfigError:
    """Return the error about a part of a definition that has another shape than Apache Hudi gives it."""
    return TableConfigError(
        f"The definition of the index {name} in {INDEXES_FILE} cannot be understood: its {part} are {stored!r}.",
        "Restore the file from a backup; or drop the index, and make it anew.",
    )
