"""The steps by which rows get their file groups under an index with a lookup.

Fold chooses the winning row of each key, tag looks up the file groups of the keys, look compares the rows with the
stored rows there, and resolve chooses the file group of each row.

The commit takes them in threads, for as many rows as fit into memory (`tagging`). Each task of an engine takes them for
all rows of some keys (`global_index`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...index.base import NOT_FOUND, KeyedRows, Positions, Tags
from ...storage.base import Storage
from ...table.arrow.arrays import Mask
from ...table.arrow.spill import local_spills
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.merging.merger import RowMeeting, folded
from ...table.merging.row_spec import RowSpec
from ...table.seen_table import SeenTable
from ...writer.buffer import MERGE_RESERVE
from ...writer.moved_rows import Look, OldRows, ResolvedRows, resolve
from ...writer.slice_reader import SliceReader
from ..indexing.known_keys import KeysOfWrite
from ..indexing.query import ask
from ..planning.row_plan import RowPlan
from .file_group_writes import SlicesByGroup, unknown_group


@dataclass(frozen=True)
class Tagger:
    """Finds the file groups of the rows of one write.

    Attributes:
        seen: The table in which keys are looked up; None if none is looked up.
        known_keys: The table's keys that the commit knows; None in tasks.
    """

    plan: RowPlan
    seen: SeenTable | None
    known_keys: KeysOfWrite | None = None

    @cached_property
    def spec(self) -> RowSpec:
        """What decides between two rows of a key; kept, because the plan unpacks its columns at each call."""
        return self.plan.spec

    @property
    def deletes(self) -> bool:
        """Whether rows with a delete flag are deletes; they are not in an operation that only adds rows."""
        return self.plan.rules.meeting is RowMeeting.MERGE

    def fold(self, rows: pa.RecordBatch) -> Positions:
        """Return the rows that count: the winner of each key, or all rows without a fold."""
        return folded(self.spec, rows) if self.plan.folds else np.arange(rows.num_rows)

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows delete their key, whatever its partition."""
        return self.spec.deleted(rows) & self.deletes

    def tag(self, keyed: KeyedRows) -> Tags:
        """Return the file groups that hold each row's key; none for a write that looks no key up."""
        if self.seen is None:
            return Tags((), np.full(len(keyed), NOT_FOUND, np.int32))
        return ask(self.plan.lookup, keyed, self.seen, self.known_keys)

    def old_rows(self, local: Storage) -> OldRows:
        """Return the reader of stored rows with the keys of incoming rows; it spills to a local folder."""
        plan, view = self.plan, None if self.seen is None else self.seen.view
        slices = SlicesByGroup(view)
        memory = int(plan.settings.output.memory * MERGE_RESERVE)
        sees = (lambda _: True) if view is None else view.sees
        reader = SliceReader(plan.storage, plan.config, plan.schema, sees, memory, local_spills(local))

        def slice_of(group: FileGroupId) -> FileSlice:
            file_slice = slices.find(group)
            if file_slice is None:
                raise unknown_group(plan, group)
            return file_slice

        return OldRows(plan.storage, self.spec, plan.moves_rows, slice_of, reader.read)

    def resolve(self, keyed: KeyedRows, tags: Tags, deletes: Mask, look: Look) -> ResolvedRows:
        """Return where rows go by the file groups of their keys (``tags``); ``deletes`` says which rows are deletes.

        ``look`` compares rows with the stored rows there.
        """
        return resolve(keyed, tags, deletes, look, moves=self.plan.moves_rows)
