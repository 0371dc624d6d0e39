"""Generated record keys, for tables without record key fields.

Source: ``org.apache.hudi.keygen.AutoRecordGenWrapperKeyGenerator`` and ``HoodieRecord.generateSequenceId``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class GeneratedKeys:
    """Numbers the rows of one task of one write: ``<requested instant time>_<Spark partition>_<row>``.

    Attempts of the same task make the same keys, and Spark commits only one attempt; no other task makes them.
    """

    def __init__(self, instant_time: str, partition: int) -> None:
        self._prefix = f"{instant_time}_{partition}"
        self._given = 0

    def take(self, count: int) -> pa.StringArray:
        numbers = pa.array(np.arange(self._given, self._given + count)).cast(pa.string())
        self._given += count
        return pc.binary_join_element_wise(self._prefix, numbers, "_")
