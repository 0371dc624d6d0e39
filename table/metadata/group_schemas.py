"""The Avro schema of the records in a file group of the metadata table, which new log files of the group share.

hudi-rs reads log files by the schema of the base file.
"""

from __future__ import annotations

from ...storage.base import Storage, storage_errors
from ...storage.kept import keep
from ..files.file_group import BaseFile
from ..files.logs.log_file import read_blocks
from ..hfile.reader import HFile
from .metadata_table import MetadataTable
from .record_schema import record_schema

# Of base files that this process has met, by table, path and size: base files never change.
_SCHEMAS: dict[tuple[str, str, int], str] = {}
_MOST_SCHEMAS = 256


def schema_of_group(metadata: MetadataTable, partition: str, file_id: str) -> str:
    """Return the schema of a file group's base file, or of its newest log file; pyhudi's own for a new group.

    Raises `CorruptFileError` if that file is damaged.
    """
    newest = metadata.partition(partition).slices.get(file_id)
    if newest is None:
        return record_schema()
    if newest.base is not None:
        return _schema_of_base(metadata.storage, newest.base)
    for log in reversed(newest.logs):
        schemas = [block.schema for block in read_blocks(metadata.storage, log.path) if block.schema]
        if schemas:
            return schemas[-1]
    return record_schema()


def _schema_of_base(storage: Storage, base: BaseFile) -> str:
    """Return the schema in a base file's footer, which the process reads once."""
    file = (storage.path, base.path, base.size)
    schema = _SCHEMAS.get(file)
    if schema is None:
        with storage_errors("read", base.path), storage.open_input(base.path) as source:
            schema = HFile(source, base.path).schema
        keep(_SCHEMAS, file, schema, _MOST_SCHEMAS)
    # Another thread may have dropped it from the kept schemas meanwhile.
    return schema
