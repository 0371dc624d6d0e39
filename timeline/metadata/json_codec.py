"""Models to bytes and back as timeline layout 1 keeps them: writes are JSON, all other instants Avro.

Source: ``HoodieCommitMetadata.fromJsonString`` and ``CommitMetadataSerDeV1``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ...storage.bounds import parse_json
from . import avro_codec
from .avro_container import MAGIC
from .codec import CommitFiles, InstantBody

if TYPE_CHECKING:
    from . import models

M = TypeVar("M", bound="models.InstantModel")

# The fields of a write statistic that `CommitFiles` has, and their types.
_OF_FILES: Mapping[str, type] = {
    "fileId": str,
    "path": str,
    "prevCommit": str,
    "numWrites": int,
    "numDeletes": int,
    "fileSizeInBytes": int,
}

# The fields that the statistic of a base file lacks, as in Apache Hudi's JSON.
_OF_LOG_FILES = ("logVersion", "logOffset", "baseFile", "logFiles", "totalLogFiles")


def encode(model: models.InstantModel) -> bytes:
    """Return a model's bytes: a write as JSON, any other instant as Avro."""
    from . import models  # noqa: PLC0415 (see avro_codec.py)

    if not isinstance(model, models.CommitMetadata):
        return avro_codec.encode(model)
    record = model.model_dump(by_alias=True, exclude={"version"})
    for stats in record["partitionToWriteStats"].values():
        for stat in stats:
            for name in _OF_LOG_FILES:
                if stat[name] is None:
                    del stat[name]
    return json.dumps(record, indent=2).encode()


def decode(kind: type[M], body: InstantBody) -> M:
    """Return the model of a body in JSON or Avro: the archive returns instants of every kind as JSON."""
    return avro_codec.validated(kind, _record(body), body)


def decode_summary(body: InstantBody, *, replaces: bool) -> models.CommitSummary:
    """Return a completed write without its files; ``replaces`` does not matter, as JSON names its fields."""
    from . import models  # noqa: PLC0415 (see avro_codec.py)

    return avro_codec.validated(models.CommitSummary, _record(body), body)


def decode_files(body: InstantBody, *, replaces: bool) -> CommitFiles:
    """Return what a completed write records about its files; CorruptInstantError for values of other types.

    ``replaces`` does not matter, as JSON names its fields.
    """
    record = _record(body)
    try:
        return CommitFiles.of(
            {
                "partitionToWriteStats": {
                    partition: [_stat(stat) for stat in stats]
                    for partition, stats in (record.get("partitionToWriteStats") or {}).items()
                },
                "partitionToReplaceFileIds": {
                    partition: [_typed(file_id, str) for file_id in file_ids]
                    for partition, file_ids in (record.get("partitionToReplaceFileIds") or {}).items()
                },
                "extraMetadata": {name: _typed(text, str) for name, text in record["extraMetadata"].items()},
            }
        )
    except (AttributeError, TypeError) as error:
        raise body.corrupt(f"it does not have the fields of a write ({error})") from error


def decode_record(body: InstantBody) -> Mapping[str, Any]:
    """Return the record of JSON or Avro as it was written; CorruptInstantError if the file holds none."""
    if not body.data or body.data.startswith(MAGIC):
        return avro_codec.decode_record(body)
    try:
        record = parse_json(body.data)
    except ValueError as error:
        raise body.corrupt(f"it is not whole JSON ({error})") from error
    if not isinstance(record, dict):
        raise body.corrupt("it holds no record")
    return record


def _record(body: InstantBody) -> Mapping[str, Any]:
    """Return the record less the keys of its extra metadata that are null, which writers of Apache Hudi's may leave."""
    record = decode_record(body)
    extra = record.get("extraMetadata")
    if not isinstance(extra, dict | type(None)):
        raise body.corrupt("its extraMetadata is no map")
    return {**record, "extraMetadata": {name: text for name, text in (extra or {}).items() if text is not None}}


def _stat(stat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a write statistic that `CommitFiles` has; TypeError for a value of another type."""
    return {name: _typed(stat.get(name), kind) for name, kind in _OF_FILES.items()}


def _typed(value: Any, kind: type) -> Any:
    """Return a value that is None or of a type; TypeError for any other value."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{str(value)[:99]!r} is no {kind.__name__}")
    return value


class JsonCodec:
    encode = staticmethod(encode)
    decode = staticmethod(decode)
    decode_summary = staticmethod(decode_summary)
    decode_files = staticmethod(decode_files)
    decode_record = staticmethod(decode_record)
