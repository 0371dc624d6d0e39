"""The micro-batches that a table has: each completed write of pyhudi carries the checkpoints of all streams on.

In the rounds of its decision, each write takes over the checkpoints of the newest write. So the newest write of pyhudi
has them all, however many instants were archived. Apache Hudi keeps the greatest batch id of an identifier in the same
way, and finds it in the newest active write that names the identifier; pyhudi keeps its checkpoints by the query.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...errors import OptionConflictError, StorageError
from ...storage.bounds import parse_json
from ...table.files.read_written import read_written
from ...table.seen_table import SeenTable
from ...timeline.instants import WRITE_ACTIONS, Instant
from ...timeline.metadata.codec import SINK_CHECKPOINT, STREAMS, InstantBody, StreamTexts
from ...timeline.writers.owner import Claim
from ..write_ids import archived_ids, greatest_batch
from .batch import OFFSETS, StreamBatch

if TYPE_CHECKING:
    from ...table.seen_table import SeenTable


def refuse_other_offsets(
    seen: SeenTable, batch: StreamBatch, instant_time: str, offsets: Callable[[], str] | None = None
) -> None:
    """Raise `OptionConflictError` if an instant has another batch with that number.

    ``offsets`` is called for the batch's offsets if it has none. If these are unknown, or an older release made the
    commit, which then lacks them, it counts as the same batch.
    """
    batch_offsets = batch.offsets or (offsets() if offsets is not None else "")
    noted_offsets = _offsets_of(seen, instant_time) if batch_offsets else ""
    if noted_offsets and noted_offsets != batch_offsets:
        raise OptionConflictError(
            f"The streaming query {batch.query_id} writes its batch {batch.batch_id} to the table {seen.table.path}, "
            f"which has another batch of that number as {instant_time}: the checkpoint folder is a copy from before "
            "that batch.",
            "Continue from the newest folder; without it, start from a new folder at the end of that batch, and give "
            f"{IDENTIFIER} another name.",
        )


def _offsets_of(seen: SeenTable, time: str) -> str:
    """Return the offsets that the write of a time notes, on the timeline or in the archive; empty if it notes none."""
    table, timeline = seen.table, seen.timeline
    write = timeline.write_at(time)
    try:
        if write is not None:
            return timeline.files.read_commit(write).extra_metadata.get(OFFSETS, "")
    except StorageError as error:
        # It was archived since the timeline was listed.
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
    archived = table.archive.write_at(time)
    for instant, body in table.archive.bodies([] if archived is None else [archived]).items():
        # The archive has at most this body.
        where = f"{time} in the archive of {table.path}"
        return table.instants.decode_commit(instant, InstantBody(body, where)).extra_metadata.get(OFFSETS, "")
    return ""


# A write names at most so many queries; `find_batch` finds batches of others by their write ids.
MOST_QUERIES = 64

_PARTS = ("queries", "identifiers")
IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The greatest batch of a query or of an identifier, and the requested time of its instant.

    Attributes:
        name: For a query the identifier of the batch, for an identifier its query; empty if Apache Hudi wrote it.
    """

    batch_id: int
    instant: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The greatest batches by query id, and by Apache Hudi's identifier; the newest come last."""

    queries: Mapping[str, Checkpoint] = field(default_factory=dict)
    identifiers: Mapping[str, Checkpoint] = field(default_factory=dict)

    def with_batch(self, batch: StreamBatch, instant: str) -> Checkpoints:
        """Return the checkpoints after a batch has become an instant."""
        of_query = Checkpoint(batch.batch_id, instant, batch.identifier)
        return Checkpoints(
            _moved_last(self.queries, batch.query_id, of_query),
            _moved_last(self.identifiers, batch.identifier, replace(of_query, name=batch.query_id)),
        )

    def followed_by(self, instant: Instant, texts: StreamTexts) -> Checkpoints:
        """Return the checkpoints after a write that completed later, of pyhudi or of Apache Hudi."""
        if texts.streams:
            # The entry of pyhudi also has what its writer found under Apache Hudi's key.
            written_checkpoints = _parse_checkpoints(texts.streams)
            return Checkpoints(
                {**self.queries, **written_checkpoints.queries}, {**self.identifiers, **written_checkpoints.identifiers}
            )
        identifiers = self.identifiers
        for name, batch_id in _parse_sinks(texts.sinks).items():
            if name not in identifiers or identifiers[name].batch_id < batch_id:
                identifiers = _moved_last(identifiers, name, Checkpoint(batch_id, instant.requested_time))
        return replace(self, identifiers=identifiers)

    def without_undone(self, seen: SeenTable) -> Checkpoints:
        """Return the checkpoints without those of instants that were rolled back."""
        is_committed = {
            # Apache Hudi may archive instants that are younger than a savepoint on the timeline.
            time: seen.timeline.is_committed(time) or seen.table.archive.holds(time)
            for time in {found.instant for found in (*self.queries.values(), *self.identifiers.values())}
        }
        if all(is_committed.values()):
            return self
        return Checkpoints(
            {name: found for name, found in self.queries.items() if is_committed[found.instant]},
            {name: found for name, found in self.identifiers.items() if is_committed[found.instant]},
        )

    def instant_of(self, path: str, batch: StreamBatch, noted_checkpoint: Checkpoint | None) -> str | None:
        """Return the requested time of the instant that has a batch; None if the batch is to be written.

        ``noted_checkpoint`` is the query's greatest batch if these checkpoints do not name the query. Raises
        `OptionConflictError` if the table has a later batch, or if the identifier is of another stream.
        """
        of_query, of_identifier = (
            self.queries.get(batch.query_id, noted_checkpoint),
            self.identifiers.get(batch.identifier),
        )
        if of_identifier is not None and of_identifier.name not in {"", batch.query_id}:
            raise OptionConflictError(
                f"The streaming query {batch.query_id} writes to the table {path} as {batch.identifier!r}, and so did "
                f"the query {of_identifier.name}, up to its batch {of_identifier.batch_id}.",
                f"Give each query into the table, and each new checkpoint folder, a name of its own by {IDENTIFIER}.",
            )
        greatest = max((found.batch_id for found in (of_query, of_identifier) if found is not None), default=-1)
        if batch.batch_id > greatest:
            return None
        if of_query is not None and batch.batch_id == of_query.batch_id == greatest:
            return of_query.instant
        # The first batch of a query is not the first batch of a stream of Apache Hudi with the same identifier.
        if (
            of_identifier is not None
            and batch.batch_id == of_identifier.batch_id == greatest
            and (batch.batch_id or of_query or of_identifier.name)
        ):
            return of_identifier.instant
        if of_query is None:
            raise OptionConflictError(
                f"The streaming query {batch.query_id} writes its batch {batch.batch_id} to the table {path} as "
                f"{batch.identifier!r}, and another stream of that name had come to its batch {greatest} there.",
                f"Give the query a name of its own by {IDENTIFIER}; to continue the other stream, start from its "
                "checkpoint folder.",
            )
        raise OptionConflictError(
            f"The streaming query {batch.query_id} writes its batch {batch.batch_id} to the table {path}, which has "
            f"its batch {greatest} already: the checkpoint folder is older than the table, or another run of the query "
            "is at work.",
            "End the other run; if the checkpoint folder is an old copy, start from a new folder and give "
            f"{IDENTIFIER} another name.",
        )

    def texts(self, left_out: Iterable[str] = ()) -> dict[str, str]:
        """Return the entries of extraMetadata by key; the entry for Apache Hudi lacks the identifiers ``left_out``."""
        if not self.queries and not self.identifiers:
            return {}
        sinks = {name: str(found.batch_id) for name, found in self.identifiers.items() if name not in {*left_out}}
        parts = zip(_PARTS, (self.queries, self.identifiers), strict=True)
        own_text = json.dumps(
            {part: {name: [*astuple(found)] for name, found in checkpoints.items()} for part, checkpoints in parts},
            separators=(",", ":"),
        )
        return {STREAMS: own_text, **({SINK_CHECKPOINT: json.dumps(sinks, separators=(",", ":"))} if sinks else {})}


def newest_checkpoints(seen: SeenTable) -> Checkpoints:
    """Return the checkpoints of a table's newest write of pyhudi, and of later writes of other engines."""
    timeline = seen.timeline
    texts_by_instant: list[tuple[Instant, StreamTexts]] = []
    for instant in _newest_first(timeline.writes):
        try:
            texts = timeline.files.read_of_streams(instant)
        except StorageError:
            if instant in timeline.reload().instants:
                raise
            # It was archived meanwhile, or rolled back.
            continue
        texts_by_instant.append((instant, texts))
        if texts.by_pyhudi:
            # This write carries the checkpoints of all earlier writes on.
            break
    checkpoints = Checkpoints()
    for instant, texts in reversed(texts_by_instant):
        checkpoints = checkpoints.followed_by(instant, texts)
    return checkpoints.without_undone(seen)


def carried_on(seen: SeenTable, pending: Instant, batch: StreamBatch | None) -> Mapping[str, str]:
    """Return the entries of extraMetadata about streams, for a write that completes now.

    They have the checkpoints of the newest write, and the write's own ``batch``, None if it is no micro-batch.
    """
    checkpoints = newest_checkpoints(seen)
    if batch is not None:
        checkpoints = checkpoints.with_batch(batch, pending.requested_time)
    if not checkpoints.identifiers:
        return checkpoints.texts()
    # Apache Hudi trusts the write with the greatest requested time, even if an older write completes after it.
    older_writes = (write for write in seen.timeline.pending if write.requested_time < pending.requested_time)
    owners = (
        Claim(seen.storage, write.requested_time).owner() for write in older_writes if write.action in WRITE_ACTIONS
    )
    own_identifiers = set() if batch is None else {batch.identifier}
    return checkpoints.texts(
        {owner.identifier for owner in owners if owner is not None and owner.query_id} - own_identifiers
    )


def find_batch(seen: SeenTable, batch: StreamBatch) -> str | None:
    """Return the requested time of the completed instant that has a batch; None if the batch is to be written.

    Raises `OptionConflictError` if the table has a later batch, or if the identifier is of another stream.
    """
    checkpoints = newest_checkpoints(seen)
    noted_checkpoint = None if batch.query_id in checkpoints.queries else _checkpoint_by_write_ids(seen, batch)
    return checkpoints.instant_of(seen.table.path, batch, noted_checkpoint)


def find_newest_batch(seen: SeenTable, batch: StreamBatch) -> str | None:
    """As `find_batch`, for a batch that the table lacked at its plan, so that the checkpoints are enough."""
    return newest_checkpoints(seen).instant_of(seen.table.path, batch, None)


def _checkpoint_by_write_ids(seen: SeenTable, batch: StreamBatch) -> Checkpoint | None:
    """Return a query's greatest batch if the newest write does not name the query, one of very many."""
    for ids in (read_written(seen.timeline).ids, archived_ids(seen.table)):
        greatest = greatest_batch(ids, batch.query_id)
        if greatest is not None:
            return Checkpoint(*greatest, batch.identifier)
    return None


def _newest_first(writes: Iterable[Instant]) -> Iterable[Instant]:
    """Yield writes, the last completed first; the others are sorted only if the caller takes a second write."""
    newest = max(writes, key=_completion_order, default=None)
    if newest is not None:
        yield newest
        yield from (write for write in sorted(writes, key=_completion_order, reverse=True) if write != newest)


def _completion_order(instant: Instant) -> tuple[str, str]:
    """Return the key that sorts instants by their completion, and those of one moment by their request."""
    return instant.visible_since, instant.requested_time


def _moved_last(checkpoints: Mapping[str, Checkpoint], name: str, newest: Checkpoint) -> Mapping[str, Checkpoint]:
    """Return checkpoints with a new one at the end; the oldest leave if there are more than `MOST_QUERIES`."""
    other_checkpoints = [(other, checkpoint) for other, checkpoint in checkpoints.items() if other != name]
    return dict([*other_checkpoints[-(MOST_QUERIES - 1) :], (name, newest)])


def _parse_checkpoints(text: str) -> Checkpoints:
    """Return the checkpoints in a text that `Checkpoints.texts` made; for any other text, checkpoints of no stream."""
    try:
        parsed = parse_json(text)
        return Checkpoints(
            *({name: _parse_checkpoint(spelled) for name, spelled in parsed[part].items()} for part in _PARTS)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Checkpoints()


def _parse_checkpoint(fields: Any) -> Checkpoint:
    """Return the checkpoint of a list in JSON: batch id, instant and name; raise `ValueError` for other values."""
    batch_id, instant, name = fields
    if type(batch_id) is not int or not isinstance(instant, str) or not isinstance(name, str):
        raise ValueError(f"{fields} is no checkpoint")
    return Checkpoint(batch_id, instant, name)


def _parse_sinks(text: str) -> Mapping[str, int]:
    """Return the batch ids by identifier in Apache Hudi's text; empty if it is another text."""
    try:
        batch_ids = parse_json(text) if text else {}
        return {name: int(batch_id) for name, batch_id in batch_ids.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
