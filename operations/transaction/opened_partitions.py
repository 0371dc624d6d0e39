"""Partitions that a write opened and left without files become plain folders again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ...storage.base import Storage
from ...storage.parallel import for_each
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.decisions import Decision, DecisionKind
from .carried_out import is_unused
from .decide import decide


def forget_partitions(table: Table, victim: Instant, partitions: Iterable[str]) -> None:
    """Delete the metafiles of partitions that only this ended write opened and used. Raises as `decide`.

    A metafile that stayed would hide each later partition below it. A writer that relied on it makes it again.
    """
    paths = list(partitions)
    if paths:
        decide(table, partial(_unused, table.storage, victim, paths))


def _unused(storage: Storage, victim: Instant, paths: list[str], _: Timeline) -> Decision | None:
    flags = for_each(storage, lambda path: is_unused(storage, path, victim.requested_time), paths)
    unused = tuple(path for path, flag in zip(paths, flags, strict=True) if flag)
    return Decision(DecisionKind.CLOSE, victim.at(State.INFLIGHT), partitions=unused) if unused else None
