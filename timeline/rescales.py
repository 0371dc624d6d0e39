"""Rescales: which partitions of a bucket table a replacecommit gives another number of buckets.

Its requested file says so in ``extraMetadata``, and so does its completed file. To Apache Hudi, which passes over the
key, a pending rescale is an overwrite, and a completed rescale a clustering: no change of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import CorruptInstantError
from ..storage.threads import for_each
from . import formats
from .instants import Instant
from .timeline import Timeline

KEY = "pyhudi.rescale"
REPLACE_COMMIT = "replacecommit"
PENDING_OPERATION, OPERATION = "INSERT_OVERWRITE", "CLUSTER"


@dataclass(frozen=True, slots=True)
class Rescale:
    """What one instant rescales; ``partitions`` is None for the whole table, partitions included that it lacks yet."""

    buckets: int
    partitions: tuple[str, ...] | None

    def holds(self, partition_path: str) -> bool:
        """Return whether it gives a partition another number of buckets."""
        return self.partitions is None or partition_path in self.partitions

    def first_held(self, paths: Iterable[str]) -> str | None:
        """Return the first of some partitions that it rescales; None if it rescales none of them."""
        return next((path for path in sorted(paths) if self.holds(path)), None)

    def spell(self) -> str:
        """Return the text by which an instant's extra metadata names it."""
        return json.dumps(formats.numbered({"buckets": self.buckets, "partitions": self.partitions}, formats.RESCALE))

    @classmethod
    def read(cls, extra: Mapping[str, str] | None) -> Rescale | None:
        """Return the rescale that an instant's extra metadata names; None for any other instant.

        A text that this release does not understand counts as a rescale of the whole table.
        """
        text = (extra or {}).get(KEY)
        if text is None:
            return None
        try:
            content = json.loads(text)
            readable = formats.number_of(content) <= formats.RESCALE
            paths = content["partitions"]
            return cls(int(content["buckets"]), None if paths is None or not readable else tuple(map(str, paths)))
        except (ValueError, TypeError, KeyError):
            return cls(0, None)


def rescale_of(timeline: Timeline, instant: Instant) -> Rescale | None:
    """Return what a pending instant rescales; None if it is no rescale, or its requested file is not whole."""
    if instant.action != REPLACE_COMMIT:
        return None
    try:
        plan = timeline.files.read_replace_plan(instant)
    except CorruptInstantError:
        # The writer of an overwrite may have died in the middle of its first file.
        return None
    return None if plan is None else Rescale.read(plan.extra_metadata)


def pending_rescales(timeline: Timeline, own: str = "") -> Mapping[Instant, Rescale]:
    """Return the pending rescales by their instants, without that of the requested time ``own``, the caller's."""
    waiting = [
        instant for instant in timeline.pending if instant.action == REPLACE_COMMIT and instant.requested_time != own
    ]
    rescales = for_each(timeline.storage, lambda instant: rescale_of(timeline, instant), waiting)
    return {instant: rescale for instant, rescale in zip(waiting, rescales, strict=True) if rescale is not None}


def rescaling(instant: Instant, partition_path: str | None) -> str:
    """Return in a sentence that a rescale holds a partition, or the whole table."""
    what = "the table" if partition_path is None else f"the partition {partition_path!r}"
    return f"The rescale {instant.requested_time} is giving {what} another number of buckets"
