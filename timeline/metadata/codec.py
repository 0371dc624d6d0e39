"""The interface of the encodings of instants: the bodies of instants to bytes and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...errors import CorruptInstantError

if TYPE_CHECKING:
    from . import models

M = TypeVar("M", bound="models.InstantModel")
Stat = Mapping[str, Any]

# Prefix of the keys that pyhudi adds to the extraMetadata of its instants.
PYHUDI_KEYS = "pyhudi."
# The key under which a write has its id, by which a repetition of the write finds it.
WRITE_ID = "pyhudi.write.id"
# The key under which a repair notes the damaged log files that it gave up.
REPAIR = "pyhudi.repair"
# The key of the extra metadata by which an instant, or its plan, says in which order it sorts base files.
SORTED = "pyhudi.sorted"
# The keys of the checkpoints of streams: pyhudi's own, and Apache Hudi's.
STREAMS = "pyhudi.streams"
SINK_CHECKPOINT = "_hudi_streaming_sink_checkpoint"


@dataclass(frozen=True, slots=True)
class StreamTexts:
    """What a completed write says of streams, under the keys `STREAMS` and `SINK_CHECKPOINT`; "" if it is silent."""

    streams: str = ""
    sinks: str = ""
    by_pyhudi: bool = False

    @classmethod
    def of(cls, extra: Mapping[str, str]) -> StreamTexts:
        """Return what a write's extra metadata says of streams."""
        by_pyhudi = any(key.startswith(PYHUDI_KEYS) for key in extra)
        return cls(extra.get(STREAMS, ""), extra.get(SINK_CHECKPOINT, ""), by_pyhudi)


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """What a completed write records about its files, by partition path, and the write's id, "" without one.

    ``stats`` has the ``fileId``, ``path``, ``prevCommit``, ``numWrites``, ``numDeletes`` and ``fileSizeInBytes`` of
    each file; ``replaced`` the file ids that readers no longer see.
    """

    stats: Mapping[str, Sequence[Stat]] = field(default_factory=dict)
    replaced: Mapping[str, list[str]] = field(default_factory=dict)
    by_pyhudi: bool = False
    write_id: str = ""
    of_streams: StreamTexts = field(default_factory=StreamTexts)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> CommitFiles:
        """Return what the record of a completed write says, with Hudi's field names and nulls."""
        extra = record["extraMetadata"] or {}
        of_streams = StreamTexts.of(extra)
        return cls(
            record["partitionToWriteStats"] or {},
            record.get("partitionToReplaceFileIds") or {},
            of_streams.by_pyhudi,
            extra.get(WRITE_ID, ""),
            of_streams,
        )


@dataclass(frozen=True, slots=True)
class InstantBody:
    """The bytes of an instant's file; ``where`` names the file in errors."""

    data: bytes
    where: str

    def corrupt(self, reason: str) -> CorruptInstantError:
        """Return the error for a body that cannot be used."""
        return CorruptInstantError(
            f"The instant's file {self.where} cannot be used: {reason}.",
            "Restore the file from a backup, or roll the instant back with Apache Hudi; until then neither readers nor "
            "writers can tell what the table holds.",
        )


class Codec(Protocol):
    """An encoding of instants; a damaged body raises CorruptInstantError."""

    def encode(self, model: models.InstantModel) -> bytes: ...

    def decode(self, kind: type[M], body: InstantBody) -> M: ...

    def decode_summary(self, body: InstantBody, *, replaces: bool) -> models.CommitSummary:
        """Decode a completed write without its files; ``replaces`` is true of a replacecommit."""

    def decode_files(self, body: InstantBody, *, replaces: bool) -> CommitFiles:
        """Decode a completed write's files alone; ``replaces`` is true of a replacecommit."""

    def decode_record(self, body: InstantBody) -> Mapping[str, Any]:
        """Return the record as written: Hudi's field names, with nulls, whatever its schema."""
