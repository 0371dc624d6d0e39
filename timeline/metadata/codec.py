"""Models to bytes and back: Avro object containers of one record, uncompressed, as timeline layout 2 keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ...errors import CorruptInstantError, StorageError
from ...storage.base import Storage, join
from ..instants import Instant, State
from ..layout import Layout
from . import avro_schemas as schemas
from .avro_container import check_container

if TYPE_CHECKING:
    from . import models

M = TypeVar("M", bound="models.InstantModel")

# The models, pydantic and fastavro are imported where an instant is opened, because they are slow to import: of the
# processes that Spark starts for a write, the tasks need no models, and those of a first write open no instant.


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """What a completed write says of files alone.

    Attributes:
        stats: The ``fileId`` and ``path`` of each file, by partition path.
        replaced: File ids that readers no longer see, by partition path.
    """

    stats: Mapping[str, list[dict[str, str | None]]] = field(default_factory=dict)
    replaced: Mapping[str, list[str]] = field(default_factory=dict)


@cache
def _schemas() -> Mapping[type[models.InstantModel], dict[str, Any]]:
    from . import models  # noqa: PLC0415

    return {
        models.CommitMetadata: schemas.COMMIT,
        models.ReplaceCommitMetadata: schemas.REPLACE_COMMIT,
        models.RequestedReplaceMetadata: schemas.REQUESTED_REPLACE,
        models.RollbackPlan: schemas.ROLLBACK_PLAN,
        models.RollbackMetadata: schemas.ROLLBACK,
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


def read_commit(storage: Storage, layout: Layout, instant: Instant) -> models.CommitMetadata:
    """Return what a completed commit, deltacommit or replacecommit holds.

    Raises:
        CorruptInstantError: The file cannot be parsed.
        StorageError: The file is gone, or the store failed.
    """
    from . import models  # noqa: PLC0415

    kind = models.ReplaceCommitMetadata if instant.group == "replacecommit" else models.CommitMetadata
    return decode(kind, *_read(storage, layout, instant))


def read_summary(storage: Storage, layout: Layout, instant: Instant) -> models.CommitSummary:
    """Return what a completed commit, deltacommit or replacecommit holds beside its files; quick for large ones.

    Raises:
        CorruptInstantError: The file cannot be parsed.
        StorageError: The file is gone, or the store failed.
    """
    from . import models  # noqa: PLC0415

    whole = schemas.REPLACE_COMMIT if instant.group == "replacecommit" else schemas.COMMIT
    fields = [one for one in whole["fields"] if one["name"] in {"extraMetadata", "operationType"}]
    data, path = _read(storage, layout, instant)
    return decode(models.CommitSummary, data, path, only={**whole, "fields": fields})


def read_files(storage: Storage, layout: Layout, instant: Instant) -> CommitFiles:
    """Return what a completed commit, deltacommit or replacecommit says of files alone; quick for large ones.

    Raises:
        CorruptInstantError: The file cannot be parsed.
        StorageError: The file is gone, or the store failed.
    """
    only = schemas.REPLACE_COMMIT_FILES if instant.group == "replacecommit" else schemas.COMMIT_FILES
    data, path = _read(storage, layout, instant)
    record = _record(data, path, only)
    return CommitFiles(record["partitionToWriteStats"] or {}, record.get("partitionToReplaceFileIds") or {})


def read_clean(storage: Storage, layout: Layout, instant: Instant) -> models.CleanMetadata | models.CleanerPlan | None:
    """Return what a completed clean did, or what a pending one is about to do; None where it says nothing.

    Raises:
        CorruptInstantError: The file cannot be parsed.
        StorageError: The file is gone, or the store failed.
    """
    from . import models  # noqa: PLC0415

    if instant.state == State.COMPLETED:
        data, where = _read(storage, layout, instant)
        # Apache Hudi takes an empty one for nothing, and removes it.
        return decode(models.CleanMetadata, data, where) if data else None
    return _read_plan(models.CleanerPlan, storage, layout, instant)


def read_rollback_plan(storage: Storage, layout: Layout, instant: Instant) -> models.RollbackPlan | None:
    """Return what a rollback, done or not, was about to undo; None where it says nothing.

    Raises:
        CorruptInstantError: The file cannot be parsed.
        StorageError: The store failed.
    """
    from . import models  # noqa: PLC0415

    return _read_plan(models.RollbackPlan, storage, layout, instant)


def _read_plan(kind: type[M], storage: Storage, layout: Layout, instant: Instant) -> M | None:
    """Read an instant's requested file; Apache Hudi takes an empty one for none."""
    path = join(layout.folder, _name(layout, Instant(instant.requested_time, instant.action, State.REQUESTED)))
    try:
        data = storage.read(path)
    except FileNotFoundError:
        return None
    return decode(kind, data, join(storage.path, path)) if data else None


def _read(storage: Storage, layout: Layout, instant: Instant) -> tuple[bytes, str]:
    path = join(layout.folder, _name(layout, instant))
    try:
        return storage.read(path), join(storage.path, path)
    except FileNotFoundError as error:
        raise StorageError(
            f"The completed {instant.action} {instant.requested_time} of the table {storage.path} was archived or "
            f"rolled back while it was being read ({path} is gone).",
            "Run the job again.",
        ) from error


def _name(layout: Layout, instant: Instant) -> str:
    if instant.state == State.COMPLETED and instant.completion_time is None:
        return f"{instant.requested_time}.{instant.group}"
    return layout.format(instant)


def _corrupt(where: str, reason: str) -> CorruptInstantError:
    return CorruptInstantError(
        f"The instant's file {where} cannot be used: {reason}.",
        "Restore the file from a backup, or roll the instant back with Apache Hudi; until then neither readers nor "
        "writers can tell what the table holds.",
    )
