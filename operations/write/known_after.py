"""The keys of a file group after a commit, if they follow from its keys before and the rows of the commit.

In a few cases they do not follow, and the next lookup reads the group: after a merge of log files, which may have held
deletes; after deletes beside rows that lost; and after very many rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...table.arrow.batches import concat
from ...table.merging.key_set import EMPTY, KeyHashes, KeySet
from ...table.merging.merger import MergeCounts, RowMeeting, folded
from ...table.schema.columns import RECORD_KEY
from ...writer.buffer import GroupRows
from ...writer.group_writer import FileGroupWrite
from ...writer.written_file import WrittenFile
from ..indexing.known_keys import KeysOfWrite, SliceName
from ..planning.plan import WritePlan

_MANY_ROWS = 1 << 20


def note_written(
    keys: KeysOfWrite, plan: WritePlan, job: FileGroupWrite, rows: GroupRows, written: Sequence[WrittenFile]
) -> None:
    """Add the keys of the slice that a write made of a file group to the keys of the write, if all are known."""
    before = EMPTY if job.file_slice is None else keys.keys_of(job.file_slice)
    if before is None or job.rolls or rows.rows > _MANY_ROWS:
        return
    files = [(file.path, file.size) for file in written if file.path]
    file_slice = plan.transaction.table.format.slices.slice_after(job.file_slice, job.group, files)
    if file_slice is None:
        return
    after: KeySet | None = None
    if written[0].is_log:
        after = before if before.holds(_all_keys(rows)).all() else None
    elif not (job.file_slice and job.file_slice.logs):
        after = _merged(plan, before, rows, written[0])
    if after is not None:
        keys.written[SliceName.of(file_slice)] = after


def _merged(plan: WritePlan, before: KeySet, rows: GroupRows, file: WrittenFile) -> KeySet | None:
    """Return the keys of a merged file; None if they are unknown, or the file holds a key several times."""
    counts: MergeCounts = file.counts
    if not counts.deletes and not counts.not_found:
        return _if_all(before.added(_all_keys(rows)), file.rows)
    if plan.lays_rows or plan.rules.meeting is not RowMeeting.MERGE:
        return None
    incoming = concat(list(rows.batches(plan.spec.deciding)))
    won = incoming.take(folded(plan.spec, incoming))
    deleted = plan.spec.deleted(won)
    hashes = KeyHashes.of(won.column(RECORD_KEY))
    after = before.added(hashes.take(~deleted))
    # A delete may have lost against the stored row. `_if_all` finds out: the file then has more rows than keys.
    after = after.without(hashes.take(np.flatnonzero(deleted))) if counts.deletes else after
    return _if_all(after, file.rows)


def _if_all(keys: KeySet, rows: int) -> KeySet | None:
    """Return keys if the file has exactly one row for each; otherwise a lookup must read the file."""
    return keys if len(keys) == rows else None


def _all_keys(rows: GroupRows) -> KeyHashes:
    return KeyHashes.joined(KeyHashes.of(batch.column(RECORD_KEY)) for batch in rows.batches([RECORD_KEY]))
