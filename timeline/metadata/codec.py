"""What every encoding of instants can do: the bodies of instants to bytes and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from . import models

M = TypeVar("M", bound="models.InstantModel")
Stat = Mapping[str, Any]

# What the keys begin with that pyhudi adds to the extraMetadata of its instants.
PYHUDI_KEYS = "pyhudi."
# The key under which a repair notes the damaged log files that it gave up.
REPAIR = "pyhudi.repair"


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """What a completed write says of files alone.

    Attributes:
        stats: The ``fileId``, ``path``, ``prevCommit``, ``numWrites``, ``numDeletes`` and ``fileSizeInBytes`` of each
            file, by partition path.
        replaced: File ids that readers no longer see, by partition path.
        by_pyhudi: Whether pyhudi made the write.
    """

    stats: Mapping[str, Sequence[Stat]] = field(default_factory=dict)
    replaced: Mapping[str, list[str]] = field(default_factory=dict)
    by_pyhudi: bool = False


class Codec(Protocol):
    """One encoding."""

    def encode(self, model: models.InstantModel) -> bytes:
        """Return the bytes that stand for a model."""

    def decode(self, kind: type[M], data: bytes, where: str) -> M:
        """Return the model that bytes stand for.

        Args:
            kind: The model's class.
            data: By whatever writer.
            where: The file, for the error.

        Raises:
            CorruptInstantError: The bytes are none, are damaged, or lack a field that has no default.
        """

    def decode_summary(self, data: bytes, where: str, *, replaces: bool) -> models.CommitSummary:
        """Return what a completed write says beside its files, where ``replaces`` is true of a replacecommit."""

    def decode_files(self, data: bytes, where: str, *, replaces: bool) -> CommitFiles:
        """Return what a completed write says of files alone, where ``replaces`` is true of a replacecommit."""

    def decode_record(self, data: bytes, where: str) -> Mapping[str, Any]:
        """Return a record by Hudi's own names, as it was written: with its nulls, whatever its schema."""
