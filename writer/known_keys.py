"""The stored rows of keys that go to log files: counted, looked up, read to make whole rows, or to order deletes.

Apache Hudi and hudi-rs merge an entry of a log file with the first row of its key. So a file group in which a write
meets several rows of a key is written anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..table.arrow.arrays import Mask
from ..table.arrow.batches import concat
from ..table.arrow.string_hash import hash64
from ..table.files.file_group import FileSlice
from ..table.files.logs.delete_block import Deletes
from ..table.merging.key_probe import KeyProbe
from ..table.merging.meet import FOLDING_BYTES, Rows
from ..table.merging.merger import check_known
from ..table.merging.row_spec import DeleteOrder, RowSpec
from ..table.merging.stored_copies import StoredCopies
from ..table.merging.winners import Positions, base_wins, joint_ranks
from ..table.schema.columns import RECORD_KEY
from .slice_reader import SliceReader

_KEY = pa.field(RECORD_KEY, pa.string())
_KEYS = pa.schema([_KEY])


class CopiesMetError(Exception):
    """Says that a file group holds several rows of a key, so that its rows must not be appended."""


@dataclass(frozen=True, slots=True)
class CountedKeys:
    """Counts the stored rows of keys that rows made of stored rows delete or replace."""

    slices: SliceReader

    def refuse_copies(self, file_slice: FileSlice, rows: Rows, where: str) -> None:
        """Raise `CopiesMetError` if the slice holds a key of the rows several times.

        The caller then merges the rows into a new base file: readers would merge a log entry with the first row of its
        key alone. Each of the rows was made of a stored row that it replaces or deletes, as by MERGE INTO. Raises
        `DuplicateKeyError`, in which ``where`` names the file group, if they were made of some stored rows of a key and
        not of all, because a write changes all rows of a key or none.
        """
        has_copies = False
        for keys in self._parts(rows):
            unique = pc.unique(keys)
            stored_copies = StoredCopies.of_keys(unique, keys)
            with closing(self.slices.read(file_slice, _KEYS, unique)) as batches:
                for batch in batches:
                    stored_copies.add_keys(batch.column(RECORD_KEY))
            stored_copies.check(where)
            has_copies |= stored_copies.any
        if has_copies:
            raise CopiesMetError

    def _parts(self, rows: Rows) -> Iterator[pa.Array]:
        """Yield the keys of rows, all of one key together, in parts that fit into memory."""
        nbytes = sum(_folding_bytes(batch) for batch in rows.batches([RECORD_KEY]))
        parts = math.ceil(nbytes / self.slices.memory)
        for number in range(parts):
            batches = rows.batches([RECORD_KEY])
            yield concat(
                list(batches) if parts == 1 else [_keys_of_part(batch, number, parts) for batch in batches]
            ).column(0)


def _folding_bytes(keys: pa.RecordBatch) -> int:
    """Return the memory that folding some keys takes."""
    nbytes: int = keys.nbytes + FOLDING_BYTES * keys.num_rows
    return nbytes


def _keys_of_part(keys: pa.RecordBatch, number: int, parts: int) -> pa.RecordBatch:
    """Return the keys that belong to one of so many parts, by their hashes."""
    # Not the highest bits, which may have chosen the file group, nor the lowest bits, which key lookups use.
    return keys.filter(pa.array((hash64(keys.column(0)) >> np.uint64(40)) % np.uint64(parts) == number))


def _refuse_copies(is_known: Mask, rows_with_keys: int) -> None:
    """Raise `CopiesMetError` if more stored rows than known keys were read, so that a key has several rows."""
    if rows_with_keys > np.count_nonzero(is_known):
        raise CopiesMetError


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Checks that the keys of whole rows, which a log file is to get, are stored, each once."""

    slices: SliceReader

    def rows(self, file_slice: FileSlice | None, live: pa.RecordBatch, where: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows, no two of one key, unchanged; raise `KeyNotFoundError` unless the slice has all keys.

        Raises `CopiesMetError` if it has one several times.
        """
        keys = live.column(RECORD_KEY)
        is_known, rows_with_keys = np.zeros(len(keys), dtype=np.bool_), 0
        if file_slice is not None and len(keys):
            probe = KeyProbe(keys)
            with closing(self.slices.read(file_slice, _KEYS, keys)) as batches:
                for batch in batches:
                    positions = probe.find(batch.column(RECORD_KEY))
                    is_known[positions[positions >= 0]] = True
                    rows_with_keys += int(np.count_nonzero(positions >= 0))
        _refuse_copies(is_known, rows_with_keys)
        check_known(keys.filter(pa.array(~is_known)), where)
        yield live


@dataclass(frozen=True, slots=True)
class WholeRows:
    """Makes whole rows of the rows of a partial update, which give the columns `given`, and of their stored rows."""

    slices: SliceReader
    given: frozenset[str]
    ordering_fields: tuple[str, ...]

    def rows(self, file_slice: FileSlice | None, live: pa.RecordBatch, where: str) -> Iterator[pa.RecordBatch]:
        """Yield rows with all columns of the table; none for a row that is older than the stored row.

        Raises `CopiesMetError` if a key has several stored rows, and at the end `KeyNotFoundError`.
        """
        keys = live.column(RECORD_KEY)
        is_known, rows_with_keys = np.zeros(len(keys), dtype=np.bool_), 0
        if file_slice is not None and len(keys):
            probe = KeyProbe(keys)
            with closing(self.slices.read(file_slice, pa.schema([_KEY, *self.slices.schema]), keys)) as batches:
                for batch in batches:
                    positions = probe.find(batch.column(RECORD_KEY))
                    stored = np.flatnonzero(positions >= 0)
                    if len(stored):
                        is_known[positions[stored]] = True
                        rows_with_keys += len(stored)
                        yield self._overlaid(batch.take(pa.array(stored)), live.take(pa.array(positions[stored])))
        _refuse_copies(is_known, rows_with_keys)
        check_known(keys.filter(pa.array(~is_known)), where)

    def _overlaid(self, stored: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        """Return stored rows with the given columns of newer rows, without those whose stored row wins."""
        columns = [newer.column(name) if name in self.given else stored.column(name) for name in stored.schema.names]
        whole_rows = pa.RecordBatch.from_arrays(columns, names=stored.schema.names)
        if not self.ordering_fields:
            return whole_rows
        before, after = ([rows.column(name) for name in self.ordering_fields] for rows in (stored, newer))
        return whole_rows.filter(pa.array(~base_wins(before, after)))


@dataclass(frozen=True, slots=True)
class StoredOrder:
    """Gives deletes by key the ordering values of the rows that they remove, so that a later row with less loses.

    Attributes:
        ordering: The ordering fields.
    """

    slices: SliceReader
    ordering: pa.Schema

    def of(self, file_slice: FileSlice, gone: Deletes) -> Deletes:
        """Return the deletes ``gone`` with the greatest values of their keys' stored rows, or with none.

        No two deletes are of one key.
        """
        spec = RowSpec(self.ordering, tuple(self.ordering.names), deletes=True, order=DeleteOrder.STORED)
        stored, keys = self._stored_ordering(file_slice, gone.keys)
        # Of the rows of one key the greatest is the last; a null is the least.
        order = np.lexsort([joint_ranks(spec.ordering(stored), len(keys)), keys])
        last_rows = order[np.append(keys[order][1:] != keys[order][:-1], True)] if len(order) else order
        row_of_delete = np.full(len(gone), -1, dtype=np.int64)
        row_of_delete[keys[last_rows]] = last_rows
        values = stored.take(pa.array(row_of_delete, mask=row_of_delete < 0))
        # A delete without a stored row, or with a null among the values, has no ordering value.
        default = spec.unordered(values, np.ones(len(gone), dtype=np.bool_))
        return Deletes(gone.keys, gone.partition_paths, tuple(values.columns), pa.array(default))

    def _stored_ordering(self, file_slice: FileSlice, keys: pa.StringArray) -> tuple[pa.RecordBatch, Positions]:
        """Return the ordering values of the stored rows, and the position of each row's key."""
        probe = KeyProbe(keys)
        batches, positions = [pa.RecordBatch.from_pylist([], self.ordering)], [np.zeros(0, np.int64)]
        with closing(self.slices.read(file_slice, pa.schema([_KEY, *self.ordering]), keys)) as batches_read:
            for batch in batches_read:
                hits = probe.find(batch.column(RECORD_KEY))
                stored = np.flatnonzero(hits >= 0)
                batches.append(batch.select(self.ordering.names).take(pa.array(stored)))
                positions.append(hits[stored])
        return concat(batches), np.concatenate(positions)
