"""Assigns file groups to new keys in a column: the hash of the key selects a share of its partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from ...index.small_files import Shares
from ...table.files.names import FileGroupId
from ...table.schema.columns import FILE_GROUP, NEW_GROUP
from .key_columns import KEY, PATH

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The first new file group of the row's partition.
FIRST_NEW = f"{NEW_GROUP}0"
_BITS, _NAMES, _REWRITTEN = "_pyhudi_bits", "_pyhudi_names", "_pyhudi_taking"
# A partition has about 2**_SLOTS_BITS slots for each share, so that sizes are accurate to a few hundredths, and at most
# 2**_MOST_BITS slots.
_SLOTS_BITS, _MOST_BITS = 6, 20


@dataclass(frozen=True, slots=True)
class Places:
    """The file groups of a write's new keys.

    Attributes:
        shares: By partition path; keys of any other partition go to its first new file group.
        appends: Whether rows of existing file groups go to log files, except in groups that new keys join.
        repeating: File groups that hold a key several times, whose rows do not go to log files either.
    """

    shares: Mapping[str, Shares]
    appends: bool
    repeating: frozenset[FileGroupId] = frozenset()

    def with_file_groups(self, rows: DataFrame, file_id: Column | None = None) -> DataFrame:
        """Return rows with the column `FILE_GROUP`.

        ``file_id`` is the file id of a key in the table, null for a new key; None if all keys are new.
        """
        if not (self.shares or self.repeating):
            return rows.withColumn(FILE_GROUP, _group_or_new(file_id, sf.lit(FIRST_NEW)))
        joined = rows.join(rows.sparkSession.createDataFrame(self._groups_by_path()), PATH, "left")
        # Any hash is suitable, if all tasks of the write use the same hash.
        slot = sf.expr(f"cast(shiftrightunsigned(xxhash64({KEY}), 64 - {_BITS}) as int)")
        new_group = sf.coalesce(sf.get(sf.col(_NAMES), slot), sf.lit(FIRST_NEW))
        if file_id is not None and self.appends:
            # Mark all rows of a file group that gets a new base file, also the rows whose keys it contains.
            is_rewritten = sf.coalesce(sf.array_contains(sf.col(_REWRITTEN), file_id), sf.lit(False))
            file_id = sf.when(is_rewritten, sf.concat(sf.lit(NEW_GROUP), file_id)).otherwise(file_id)
        return joined.withColumn(FILE_GROUP, _group_or_new(file_id, new_group)).drop(_BITS, _NAMES, _REWRITTEN)

    def _groups_by_path(self) -> pa.Table:
        """Return for each partition its file groups by slot, and the file ids whose groups get a new base file.

        The columns are `PATH`; `_BITS`, how many first bits of a key's hash are the number of its slot; `_NAMES`, by
        slot the file group that a new key joins; and `_REWRITTEN`, those file ids.
        """
        bits: list[int] = []
        names: list[str] = []
        rewritten_ids: list[list[str]] = []
        repeating: dict[str, list[str]] = {}
        for group in sorted(self.repeating):
            repeating.setdefault(group.partition_path, []).append(group.file_id)
        paths = [*self.shares, *(path for path in repeating if path not in self.shares)]
        for path in paths:
            shares = self.shares.get(path)
            rewritten_ids.append(repeating.get(path, []))
            # The partition is here only for its groups with repeats. Its new keys go to its first new file group.
            if shares is None:
                bits.append(1)
                names += [FIRST_NEW, FIRST_NEW]
                continue
            # The prefix marks a group that gets a new base file. Without log files every group does; then only new ones
            # have the mark.
            group_names = [
                f"{NEW_GROUP}{share.number}"
                if share.number is not None
                else f"{NEW_GROUP if self.appends else ''}{share.file_id}"
                for share in shares.shares
            ]
            bits.append(_bits_of_slots(len(group_names)))
            names += [group_names[code] for code in _shares_of_slots(shares, bits[-1])]
            rewritten_ids[-1] += [share.file_id for share in shares.shares if share.number is None]
        offsets = np.cumsum([0, *(1 << bit for bit in bits)]).astype(np.int32)
        return pa.table(
            {
                PATH: pa.array(paths, pa.string()),
                _BITS: pa.array(bits, pa.int32()),
                _NAMES: pa.ListArray.from_arrays(pa.array(offsets), pa.array(names, pa.string())),
                _REWRITTEN: pa.array(rewritten_ids, pa.list_(pa.string())),
            }
        )


def _group_or_new(file_id: Column | None, new_group: Column) -> Column:
    """Return the file id of a key in the table, or the new file group if it is null or absent."""
    return new_group if file_id is None else sf.coalesce(file_id, new_group)


def _shares_of_slots(dealt: Shares, bits: int) -> list[int]:
    """Return for each of ``2 ** bits`` slots the position of its share: the share of the hash in the slot's middle."""
    if len(dealt.shares) == 1:
        return [0] * (1 << bits)
    slots = np.arange(1 << bits, dtype=np.uint64)
    middles = (slots << np.uint64(64 - bits)) + np.uint64(1 << (63 - bits))
    return [int(code) for code in dealt.take(middles)]


def _bits_of_slots(shares: int) -> int:
    """Return the bits of the hash that select a slot among those of so many shares."""
    # At least one bit, because Java ignores a shift by 64.
    return 1 if shares == 1 else min((shares - 1).bit_length() + _SLOTS_BITS, _MOST_BITS)
