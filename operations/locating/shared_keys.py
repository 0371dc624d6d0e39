"""Checks that no row of a write takes the record key of a row with other values in its key columns.

Values of several key columns may make one key. New rows with such values are refused by their values alone. A delete,
or a row of a merge or an update, passes if the stored row of its key has the same values. Few writes have such rows, so
reading the stored rows is rare.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DataError
from ...index.base import KeyedRows
from ...index.lookup import TableLookup
from ...index.registry import as_computed, index_for
from ...storage import open_storage
from ...storage.base import Storage
from ...table.arrow.arrays import Mask, mask
from ...table.arrow.spill import local_spills
from ...table.arrow.string_hash import string_buffers
from ...table.files.file_group import FileSlice
from ...table.keys.generator import EMPTY_KEY, NULL_KEY, KeyGenerator, KeyPart
from ...table.merging.key_probe import KeyProbe
from ...table.merging.merger import RowMeeting
from ...table.schema.columns import RECORD_KEY
from ...table.schema.fields import find_field, root_of
from ...table.schema.types import is_text
from ...table.seen_table import SeenTable
from ...writer.buffer import MERGE_RESERVE
from ...writer.routes import Routes
from ...writer.slice_reader import SliceReader
from ..planning.operation import DELETE_PARTITION
from ..planning.row_plan import RowPlan


@dataclass(frozen=True, slots=True)
class KeyReadings:
    """Finds values that make a record key ambiguous, because other values of the key's columns make the same key, too.

    It looks at columns that hold texts. A key has the names and values of its columns, unescaped: ``a:1,b:2``.
    """

    fields: tuple[str, ...]

    def refused(self, columns: Sequence[KeyPart]) -> Mask | None:
        """Return which rows have a value that continues as a later column, or is a word for null or empty; None: none.

        ``columns`` has the names of key columns with the text of each row. Without such rows, different values make
        different keys.
        """
        rows = None
        for name, texts in columns:
            rows = _union(rows, _rows_with_next_column(texts, self.fields[self.fields.index(name) + 1 :]))
            rows = _union(rows, _true_rows(pc.or_(pc.equal(texts, NULL_KEY), pc.equal(texts, EMPTY_KEY))))
        return rows

    def shared(self, columns: Sequence[KeyPart]) -> Mask | None:
        """Return which rows make a key that a row with other values can make, too; None if none.

        These are the rows that `refused` finds and their counterparts, such as rows with a null or an empty text.
        """
        rows = self.refused(columns)
        for name, texts in columns:
            # In ``a:1,b:2,b:3`` the text ``,b:`` belongs to the value of a, or in the counterpart to that of b itself.
            rows = _union(rows, _rows_with_next_column(texts, self.fields[1 : self.fields.index(name) + 1]))
            rows = _union(rows, _true_rows(pc.fill_null(pc.equal(texts, ""), True)))
        return rows

    def is_refused(self, field: str, text: str | None) -> bool:
        """Return whether this value makes its record key ambiguous, by `refused`; an error names such columns."""
        later_fields = self.fields[self.fields.index(field) + 1 :]
        return text in {NULL_KEY, EMPTY_KEY} or any(_next_column_text(name) in (text or "") for name in later_fields)


def _next_column_text(name: str) -> str:
    """Return the text that begins the next column in a record key of several columns."""
    return f",{name}:"


def _rows_with_next_column(texts: pa.StringArray, names: Sequence[str]) -> Mask | None:
    """Return which texts contain the beginning of one of the later columns; None if none does."""
    rows = None
    for name in names:
        if _is_in_buffer(texts, _next_column_text(name).encode()):
            rows = _union(rows, _true_rows(pc.match_substring(texts, _next_column_text(name))))
    return rows


def _is_in_buffer(texts: pa.StringArray, part: bytes) -> bool:
    """Return whether the joined texts hold some bytes, a fifth of the time that it takes to ask text by text."""
    data, _ = string_buffers(texts)
    return re.search(re.escape(part), data.data) is not None


def _true_rows(rows: pa.BooleanArray) -> Mask | None:
    """Return a mask as numpy has it, a null as False; None if no row is True."""
    return mask(pc.fill_null(rows, False)) if pc.any(rows).as_py() else None  # O(1)


def _union(left: Mask | None, right: Mask | None) -> Mask | None:
    """Return the rows of either mask; None, which means no row, adds none."""
    if left is None or right is None:
        return right if left is None else left
    return np.asarray(left | right)


OPTION = "hoodie.pyhudi.keys.may.collide"

# When the waiting rows have so many bytes, the stored rows of their keys are read, all at once.
_MOST_WAITING = 64 << 20
_SEVERAL = 2
# Columns of waiting rows: the partition path, and whether the row is refused unless its key is stored. The texts of key
# columns follow as ``given0`` and so on; those of the stored rows are called ``kept0`` and so on.
_PATH, _NEW = "path", "new"


@dataclass
class SharedKeys:
    """Checks the incoming rows of one task.

    Attributes:
        texts: The key columns that hold texts.
        keys: Makes record keys, and texts of key columns, of rows.
        opened: Returns the table at the moment of the plan; called for the first row whose stored row counts.
    """

    plan: RowPlan
    keys: KeyGenerator
    readings: KeyReadings
    texts: tuple[str, ...]
    opened: Callable[[], SeenTable]
    _waiting: list[pa.Table] = field(default_factory=list)

    @classmethod
    def of(cls, plan: RowPlan, opened: Callable[[], SeenTable]) -> SharedKeys | None:
        """Return the checks of a write; None if no two rows share a key, or the write allows it."""
        fields = plan.config.record_key_fields
        if len(fields) < _SEVERAL or plan.settings.keys.may_collide or plan.operation == DELETE_PARTITION:
            return None
        schema = plan.schema
        named_columns = ((name, find_field(schema, name)) for name in fields)
        texts = tuple(name for name, column in named_columns if column is not None and is_text(column.type))
        return cls(plan, KeyGenerator(plan.config, schema), KeyReadings(fields), texts, opened) if texts else None

    def check(self, rows: pa.RecordBatch, routes: Routes, deletes: Mask) -> None:
        """Check rows, of which some are deletes. Raises `DataError` for a new row that could share its key.

        ``routes`` has their record keys and partition paths, and ``deletes`` says which are deletes.
        Rows that are right only if the stored row of their key has the same values wait for `finish`.
        """
        texts = self.keys.texts(rows, self.texts)
        # In an operation that only adds rows, rows with a delete flag are no deletes.
        if self.plan.rules.meeting is not RowMeeting.MERGE:
            deletes = np.zeros(rows.num_rows, np.bool_)
        refused = self.readings.refused(texts)
        # A merge or an update, which read the table, has counted its rows.
        is_of_table = self.plan.settings.origin.counted is not None
        if refused is not None and not is_of_table and (refused & ~deletes).any():
            raise self._refusal(self.keys.texts(rows, self.readings.fields), int(np.flatnonzero(refused & ~deletes)[0]))
        if not is_of_table and not deletes.any():
            return
        shared = self.readings.shared(texts)
        if shared is None:
            return
        positions = np.flatnonzero(shared if is_of_table else shared & deletes)
        if len(positions):
            may_be_new = np.zeros(rows.num_rows, np.bool_) if refused is None else refused & ~deletes
            at = pa.array(positions)
            key_texts = [text for _, text in self.keys.texts(rows.take(at), self.readings.fields)]
            route_columns = [
                routes.record_keys.take(at),
                routes.paths.take(at).cast(pa.string()),
                pa.array(may_be_new[positions]),
            ]
            names = [RECORD_KEY, _PATH, _NEW, *_column_names("given", len(key_texts))]
            self._waiting.append(pa.table([*route_columns, *key_texts], names=names))
            if sum(table.nbytes for table in self._waiting) > _MOST_WAITING:
                self.finish()

    def finish(self) -> None:
        """Compare the waiting rows with the stored rows of their keys, after which no row waits. Raises `DataError`.

        It raises for a row whose key columns have other values than the stored row of its key, and for a row that may
        only replace or delete a stored row, and whose key the table lacks. `check` adds the rows that wait.
        """
        if not self._waiting:
            return
        waiting, self._waiting = pa.concat_tables(self._waiting).combine_chunks(), []
        with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            local = open_storage(folder, durable=False)
            stored = pa.Table.from_batches(self._stored_rows(waiting, local), self._stored_schema())
        is_global = index_for(self.plan.config).is_global
        # If keys are unique in the whole table, the stored row may be in another partition than the incoming row.
        key_columns = [RECORD_KEY] if is_global else [RECORD_KEY, _PATH]
        stored = (stored.drop_columns([_PATH]) if is_global else stored).append_column(
            "found", pa.repeat(pa.scalar(True), stored.num_rows)
        )
        joined_rows = waiting.join(stored, key_columns, join_type="left outer").combine_chunks()
        differs = pa.repeat(pa.scalar(False), joined_rows.num_rows)
        fields = self.readings.fields
        for incoming_name, stored_name in zip(
            _column_names("given", len(fields)), _column_names("kept", len(fields)), strict=True
        ):
            differs = pc.or_(differs, _texts_differ(joined_rows.column(incoming_name), joined_rows.column(stored_name)))
        has_row = pc.fill_null(joined_rows.column("found"), False)
        differing_rows = np.flatnonzero(mask(pc.and_(has_row, differs)))
        if len(differing_rows):
            raise self._differing_row_error(joined_rows, int(differing_rows[0]))
        unstored_rows = np.flatnonzero(mask(pc.and_(pc.invert(has_row), joined_rows.column(_NEW))))
        if len(unstored_rows):
            names = zip(fields, _column_names("given", len(fields)), strict=True)
            texts = [(name, joined_rows.column(column).combine_chunks()) for name, column in names]
            raise self._refusal(texts, int(unstored_rows[0]))

    def _stored_schema(self) -> pa.Schema:
        """Return the columns of `_stored_rows`: record key, partition path, and the text of each key column."""
        names = [RECORD_KEY, _PATH, *_column_names("kept", len(self.readings.fields))]
        return pa.schema([pa.field(name, pa.string()) for name in names])

    def _stored_rows(self, waiting: pa.Table, local: Storage) -> Iterator[pa.RecordBatch]:
        """Yield the stored rows of the waiting rows' keys, with the columns of `_stored_schema`.

        ``local`` is the folder to which a merge with log files spills.
        """
        plan, seen = self.plan, self.opened()
        roots = {root_of(name) for name in self.readings.fields}
        columns = pa.schema(
            [pa.field(RECORD_KEY, pa.string()), *(column for column in plan.schema if column.name in roots)]
        )
        memory = int(plan.settings.output.memory * MERGE_RESERVE)
        reader = SliceReader(plan.storage, plan.config, plan.schema, seen.view.sees, memory, local_spills(local))
        keys = waiting.column(RECORD_KEY).combine_chunks().unique()
        probe = KeyProbe(keys)
        for file_slice in self._slices_to_search(waiting, seen):
            for rows in reader.read(file_slice, columns, keys):
                hits = rows.take(pa.array(np.flatnonzero(probe.find(rows.column(RECORD_KEY)) >= 0)))
                texts = [text for _, text in self.keys.texts(hits, self.readings.fields)]
                path = pa.repeat(pa.scalar(file_slice.partition_path), hits.num_rows)
                yield pa.RecordBatch.from_arrays([hits.column(RECORD_KEY), path, *texts], schema=self._stored_schema())

    def _slices_to_search(self, waiting: pa.Table, seen: SeenTable) -> Iterable[FileSlice]:
        """Return the file slices that may hold stored rows of the waiting rows' keys, by the table's index."""
        index = self.plan.index
        paths = waiting.column(_PATH).combine_chunks().dictionary_encode()
        partition_paths = paths.dictionary.to_pylist()  # O(partitions)
        keyed = KeyedRows(waiting.column(RECORD_KEY).combine_chunks(), paths)
        if isinstance(index, TableLookup):
            groups = set(index.tag(keyed, seen.view, seen.storage).groups)
            partitions = {group.partition_path for group in groups}
            candidates = (file_slice for path in sorted(partitions) for file_slice in seen.view.slices(path).values())
            return [file_slice for file_slice in candidates if file_slice.group in groups]
        if index.is_global:
            return seen.view.all_slices()
        slices = [
            (number, each) for number, path in enumerate(partition_paths) for each in seen.view.slices(path).values()
        ]
        computed = as_computed(index)
        if computed is None:
            return [file_slice for _, file_slice in slices]
        pairs = np.stack([paths.indices.to_numpy(), computed.buckets_in(paths, keyed.record_keys)])
        wanted_buckets = set(map(tuple, np.unique(pairs, axis=1).T.tolist()))  # O(file groups)
        return [each for number, each in slices if (number, index.number_of(each.group)) in wanted_buckets]

    def _refusal(self, texts: Sequence[KeyPart], row: int) -> DataError:
        """Return the error of a row by the texts of its key columns; it names the columns that are to blame."""
        values = {name: column[row].as_py() for name, column in texts}  # O(columns)
        ambiguous_fields = [name for name, text in values.items() if self.readings.is_refused(name, text)]
        noun = "columns" if len(ambiguous_fields) > 1 else "column"
        return refusal(self.plan.path, _values_in_words(values), f"the {noun} {', '.join(map(repr, ambiguous_fields))}")

    def _differing_row_error(self, joined_rows: pa.Table, row: int) -> DataError:
        """Return the error of a change whose stored row has the same key and other values; it names both values."""
        fields = self.readings.fields
        incoming_values, stored_values = (
            {
                name: joined_rows.column(column)[row].as_py()  # O(columns), for the error
                for name, column in zip(fields, _column_names(what, len(fields)), strict=True)
            }
            for what in ("given", "kept")
        )
        return DataError(
            f"A row for the table {self.plan.path}, to be deleted or changed, has {_values_in_words(incoming_values)}. "
            f"The stored row of the same record key has {_values_in_words(stored_values)}.",
            f"Give the stored row's values to change that row; or let the key alone decide, as in Apache Hudi, by "
            f"{OPTION}=true.",
        )


def refusal(table: str, row: str, culprit: str) -> DataError:
    """Return the error of a new row whose record key another row with other values could have, too.

    ``row`` names the row's key columns with their values, and ``culprit`` the columns with the ambiguous values.
    """
    return DataError(
        f"A row for the table {table} has {row}. Another row could have the same record key, because keys of several "
        f"columns are not escaped: see {culprit}.",
        f"Change the value; or let such rows replace one another, as Apache Hudi does, by {OPTION}=true.",
    )


def _column_names(name: str, count: int) -> list[str]:
    """Return ``count`` names of columns: the name with the numbers from 0 on."""
    return [f"{name}{number}" for number in range(count)]


def _texts_differ(texts: pa.ChunkedArray, other_texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return where two texts differ; null equals null alone."""
    one_null = pc.xor(pc.is_null(texts), pc.is_null(other_texts))
    return pc.or_(one_null, pc.fill_null(pc.not_equal(texts, other_texts), False))


def _values_in_words(values: dict[str, str | None]) -> str:
    """Return the names and values of key columns for an error."""
    return ", ".join(f"{name}={text!r}" for name, text in values.items())
