"""Where new keys go, as a column: each by its hash to one of the shares that were dealt out to its partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from ...index.small_files import Shares
from ...table.schema.columns import FILE_GROUP, NEW_GROUP
from .key_columns import KEY, PATH

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The first new file group of the row's partition.
FIRST_NEW = f"{NEW_GROUP}0"
_BITS, _NAMES, _TAKING = "_pyhudi_bits", "_pyhudi_names", "_pyhudi_taking"
# A partition has about so many times as many slots as shares, in powers of two, so that a share is met within some
# hundredths; but so many at most.
_SLOTS_BITS, _MOST_BITS = 6, 20


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows of a write go.

    Attributes:
        shares: What was dealt out to new keys, by partition path; one of another partition goes to its first new group.
        appends: Whether rows of file groups that are there go to log files, but for those that new keys join.
    """

    shares: Mapping[str, Shares]
    appends: bool

    def named(self, rows: DataFrame, found: Column | None = None) -> DataFrame:
        """Return rows with a column that says to which file group each goes.

        Args:
            rows: Rows with keys and paths.
            found: The file id where a key was found, null for a new one; None where all are new.
        """
        if not self.shares:
            return rows.withColumn(FILE_GROUP, _first(found, sf.lit(FIRST_NEW)))
        joined = rows.join(rows.sparkSession.createDataFrame(self._table()), PATH, "left")
        # Spark's own hash does as well as any: what counts is that every task of the write takes the same.
        slot = sf.expr(f"cast(shiftrightunsigned(xxhash64({KEY}), 64 - {_BITS}) as int)")
        new = sf.coalesce(sf.get(sf.col(_NAMES), slot), sf.lit(FIRST_NEW))
        if found is not None and self.appends:
            # All rows of a file group that gets a new base file say so, those that were found in it too.
            taking = sf.coalesce(sf.array_contains(sf.col(_TAKING), found), sf.lit(False))
            found = sf.when(taking, sf.concat(sf.lit(NEW_GROUP), found)).otherwise(found)
        return joined.withColumn(FILE_GROUP, _first(found, new)).drop(_BITS, _NAMES, _TAKING)

    def _table(self) -> pa.Table:
        """Return by partition how many bits of a hash tell the slot, each slot's name, and which groups are there."""
        bits: list[int] = []
        names: list[str] = []
        taking: list[list[str]] = []
        for dealt in self.shares.values():
            spelled = [
                f"{NEW_GROUP}{one.number}"
                if one.number is not None
                else f"{NEW_GROUP if self.appends else ''}{one.file_id}"
                for one in dealt.shares
            ]
            bits.append(_bits(len(spelled)))
            names += [spelled[code] for code in _shares_of_slots(dealt, bits[-1])]
            taking.append([one.file_id for one in dealt.shares if one.number is None])
        offsets = np.cumsum([0, *(1 << one for one in bits)]).astype(np.int32)
        return pa.table(
            {
                PATH: pa.array([*self.shares], pa.string()),
                _BITS: pa.array(bits, pa.int32()),
                _NAMES: pa.ListArray.from_arrays(pa.array(offsets), pa.array(names, pa.string())),
                _TAKING: pa.array(taking, pa.list_(pa.string())),
            }
        )


def _first(found: Column | None, new: Column) -> Column:
    return new if found is None else sf.coalesce(found, new)


def _shares_of_slots(dealt: Shares, bits: int) -> list[int]:
    """Return which share has the hash in the middle of each slot."""
    if len(dealt.shares) == 1:
        return [0] * (1 << bits)
    slots = np.arange(1 << bits, dtype=np.uint64)
    middles = (slots << np.uint64(64 - bits)) + np.uint64(1 << (63 - bits))
    return [int(code) for code in dealt.take(middles)]


def _bits(shares: int) -> int:
    # At least one: Java takes a shift by 64 for none.
    return 1 if shares == 1 else min((shares - 1).bit_length() + _SLOTS_BITS, _MOST_BITS)
