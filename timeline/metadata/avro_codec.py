"""Models to bytes and back: uncompressed Avro object containers of one record, as timeline layout 2 keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from . import avro_schemas as schemas
from .avro_container import read_container
from .codec import CommitFiles, InstantBody

if TYPE_CHECKING:
    from . import models

M = TypeVar("M", bound="models.InstantModel")

# Models, pydantic and fastavro are slow to import, so functions that open an instant import them. Of the processes that
# Spark starts for a write, tasks need no models, and those of a first write open no instant.


@cache
def _schemas() -> Mapping[type[models.InstantModel], dict[str, Any]]:
    """Return the Avro schema of each model."""
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
        models.IndexPlan: schemas.INDEX_PLAN,
        models.IndexCommitMetadata: schemas.INDEX_COMMIT,
    }


@cache
def _partial_schema(name: str, replaces: bool) -> Any:
    """Return the parsed schema of the fields that a partial read needs; ``name`` is ``summary`` or ``files``."""
    from fastavro import parse_schema  # noqa: PLC0415

    commit_schema = schemas.REPLACE_COMMIT if replaces else schemas.COMMIT
    if name == "summary":
        fields = [field for field in commit_schema["fields"] if field["name"] in {"extraMetadata", "operationType"}]
        return parse_schema({**commit_schema, "fields": fields})
    return parse_schema(schemas.REPLACE_COMMIT_FILES if replaces else schemas.COMMIT_FILES)


def encode(model: models.InstantModel) -> bytes:
    """Return a model's bytes."""
    import fastavro  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    fastavro.writer(sink, _schemas()[type(model)], [model.model_dump(by_alias=True)], codec="null")
    return bytes(sink.getvalue())


def decode(kind: type[M], body: InstantBody) -> M:
    """Return the model of an Avro object container, read by the schema that the container brings along."""
    return validated(kind, _record(body), body)


def decode_summary(body: InstantBody, *, replaces: bool) -> models.CommitSummary:
    """Return a completed write without its files."""
    from . import models  # noqa: PLC0415

    return validated(models.CommitSummary, _record(body, _partial_schema("summary", replaces)), body)


def decode_files(body: InstantBody, *, replaces: bool) -> CommitFiles:
    """Return what a completed write records about its files."""
    return CommitFiles.of(_record(body, _partial_schema("files", replaces)))


def decode_record(body: InstantBody) -> Mapping[str, Any]:
    """Return the record as it was written; CorruptInstantError if the file holds none."""
    record = _record(body)
    if not isinstance(record, dict):
        raise body.corrupt("it holds no record")
    return record


def _record(body: InstantBody, reader_schema: Any = None) -> Any:
    """Return a container's only record, with the fields of ``reader_schema`` if it is given."""
    if not body.data:
        raise body.corrupt("it is empty")
    try:
        records = read_container(body.data, reader_schema)
    except Exception as error:
        # Damaged bytes can make the parser raise any exception.
        raise body.corrupt(f"it is not a whole Avro file ({type(error).__name__}: {error})") from error
    if not records:
        raise body.corrupt("it holds no record")
    return records[0]


def validated(kind: type[M], record: Any, body: InstantBody) -> M:
    """Return the model of a record; CorruptInstantError if a field of it does not fit."""
    from pydantic import ValidationError  # noqa: PLC0415

    try:
        return kind.model_validate(record)
    except ValidationError as error:
        first_error = error.errors()[0]
        field = ".".join(str(part) for part in first_error["loc"])
        raise body.corrupt(f"its field {field} does not fit ({first_error['msg']})") from error


class AvroCodec:
    encode = staticmethod(encode)
    decode = staticmethod(decode)
    decode_summary = staticmethod(decode_summary)
    decode_files = staticmethod(decode_files)
    decode_record = staticmethod(decode_record)
