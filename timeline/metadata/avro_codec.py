"""Models to bytes and back: Avro object containers of one record, uncompressed, as timeline layout 2 keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ...errors import CorruptInstantError
from . import avro_schemas as schemas
from .avro_container import check_container
from .codec import CommitFiles

if TYPE_CHECKING:
    from . import models

M = TypeVar("M", bound="models.InstantModel")

# The models, pydantic and fastavro are imported where an instant is opened, because they are slow to import: of the
# processes that Spark starts for a write, the tasks need no models, and those of a first write open no instant.


@cache
def _schemas() -> Mapping[type[models.InstantModel], dict[str, Any]]:
    from . import models  # noqa: PLC0415

    return {
        models.CommitMetadata: schemas.COMMIT,
        models.ReplaceCommitMetadata: schemas.REPLACE_COMMIT,
        models.RequestedReplaceMetadata: schemas.REQUESTED_REPLACE,
        models.CompactionPlan: schemas.COMPACTION_PLAN,
        models.RollbackPlan: schemas.ROLLBACK_PLAN,
        models.RollbackMetadata: schemas.ROLLBACK,
        models.RestorePlan: schemas.RESTORE_PLAN,
        models.RestoreMetadata: schemas.RESTORE,
        models.CleanerPlan: schemas.CLEANER_PLAN,
        models.CleanMetadata: schemas.CLEAN,
        models.SavepointMetadata: schemas.SAVEPOINT,
    }


def encode(model: models.InstantModel) -> bytes:
    """Return the bytes that stand for a model on the timeline."""
    import fastavro  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    fastavro.writer(sink, _schemas()[type(model)], [model.model_dump(by_alias=True)], codec="null")
    return bytes(sink.getvalue())


def decode(kind: type[M], data: bytes, where: str, *, only: dict[str, Any] | None = None) -> M:
    """Return the model that bytes stand for, read by the schema that they bring along.

    Args:
        kind: The model's class.
        data: An Avro object container, by whatever writer.
        where: The file, for the error.
        only: Part of the record's schema, where the rest is not wanted and need not be taken apart.

    Raises:
        CorruptInstantError: The bytes are none, are damaged, or lack a field that has no default.
    """
    from pydantic import ValidationError  # noqa: PLC0415

    record = _record(data, where, only)
    try:
        return kind.model_validate(record)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise _corrupt(where, f"its field {field} does not fit ({first['msg']})") from error


def decode_summary(data: bytes, where: str, *, replaces: bool) -> models.CommitSummary:
    """Return what the bytes of a completed write say beside its files; quick for large ones.

    Raises:
        CorruptInstantError: As in `decode`.
    """
    from . import models  # noqa: PLC0415

    whole = schemas.REPLACE_COMMIT if replaces else schemas.COMMIT
    fields = [one for one in whole["fields"] if one["name"] in {"extraMetadata", "operationType"}]
    return decode(models.CommitSummary, data, where, only={**whole, "fields": fields})


def decode_files(data: bytes, where: str, *, replaces: bool) -> CommitFiles:
    """Return what the bytes of a completed write say of files alone; quick for large ones.

    Raises:
        CorruptInstantError: As in `decode`.
    """
    record = _record(data, where, schemas.REPLACE_COMMIT_FILES if replaces else schemas.COMMIT_FILES)
    return CommitFiles(record["partitionToWriteStats"] or {}, record.get("partitionToReplaceFileIds") or {})


def decode_record(data: bytes, where: str) -> Mapping[str, Any]:
    """Return the record that bytes hold, as it was written: with its nulls, whatever its schema.

    Raises:
        CorruptInstantError: The bytes are none, are damaged, or hold something else.
    """
    record = _record(data, where, None)
    if not isinstance(record, dict):
        raise _corrupt(where, "it holds no record")
    return record


def _record(data: bytes, where: str, only: dict[str, Any] | None) -> Any:
    import fastavro  # noqa: PLC0415

    if not data:
        raise _corrupt(where, "it is empty")
    try:
        check_container(data)
        # To the end, or a file that breaks off in its last bytes would pass.
        records = list(fastavro.reader(pa.BufferReader(data), reader_schema=only))
    except Exception as error:
        # Damaged bytes make the parser fail in every way that Python knows.
        raise _corrupt(where, f"it is not a whole Avro file ({type(error).__name__}: {error})") from error
    if not records:
        raise _corrupt(where, "it holds no record")
    return records[0]


class AvroCodec:
    """Instants as Avro object containers, as timeline layout 2 keeps them."""

    encode = staticmethod(encode)
    decode = staticmethod(decode)
    decode_summary = staticmethod(decode_summary)
    decode_files = staticmethod(decode_files)
    decode_record = staticmethod(decode_record)


def _corrupt(where: str, reason: str) -> CorruptInstantError:
    return CorruptInstantError(
        f"The instant's file {where} cannot be used: {reason}.",
        "Restore the file from a backup, or roll the instant back with Apache Hudi; until then neither readers nor "
        "writers can tell what the table holds.",
    )
