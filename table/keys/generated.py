"""Record keys of rows that have none of their own.

Source: ``org.apache.hudi.keygen.AutoRecordGenWrapperKeyGenerator`` and ``HoodieRecord.generateSequenceId``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class GeneratedKeys:
    """Numbers the rows of one task of one write: ``<instant>_<Spark partition>_<row>``.

    No other task of the table makes these keys, but for further attempts of the same one, of which one is committed.

    Args:
        instant_time: Requested time of the instant.
        partition: The task's Spark partition.
    """

    def __init__(self, instant_time: str, partition: int) -> None:
        self._prefix = f"{instant_time}_{partition}"
        self._given = 0

    def take(self, count: int) -> pa.StringArray:
        """Return the keys of the next rows."""
        numbers = pa.array(np.arange(self._given, self._given + count)).cast(pa.string())
        self._given += count
        return pc.binary_join_element_wise(self._prefix, numbers, "_")
