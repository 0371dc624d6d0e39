"""How far a stream of a table has come: Apache Hudi's offset, and the writes until that offset.

Apache Hudi's offset is ``{"offsetCommitTime": "<completion time>"}`` (``HoodieSourceOffset``; an older source has the
field ``commitTime``), and its parser skips other fields. pyhudi adds the number of the writes that completed until then
and a sum of hashes of their requested times. So a write that completes late, before an offset, is found even after a
restart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain, combinations, islice
from typing import Any

from ...errors import InvalidOptionError
from ...table.config import TableConfig
from ...timeline.instants import Instant

TIME = "offsetCommitTime"
_OLDER_NAME = "commitTime"
_COUNT, _SUM, _AFTER = "pyhudiWrites", "pyhudiSum", "pyhudiAfter"
_INITIAL = "00000000000000"
_DIGITS = re.compile(r"\d{14,17}", re.ASCII)
_BYTES = 16
_MOST = 1 << (8 * _BYTES)
# Each set of undone writes that a batch may have had takes a comparison.
_MOST_SETS = 4096


@dataclass(frozen=True, slots=True)
class WriteSum:
    """The number of some writes, and the sum of hashes of their requested times, which does not depend on an order."""

    count: int = 0
    total: int = 0

    @classmethod
    def of(cls, times: Collection[str]) -> WriteSum:
        """Return the sum of some requested times."""
        return cls(len(times), sum(map(_hash, times)) % _MOST)

    def explain(self, present: Collection[str], undone: Collection[str]) -> tuple[str, ...] | None:
        """Return which of the ``present`` times the sum lacks, at most two; None if that does not explain the sum.

        The sum is that of the present times without the times that it lacks, and with some of the ``undone`` times,
        which are no longer present.
        """
        present_sum = WriteSum.of(present)
        hashes = {_hash(time): time for time in present}
        undone_times = sorted(undone)
        # A restore undoes all writes from a certain write on. The sum has those that existed when it was made.
        suffixes = (undone_times[number:] for number in range(len(undone_times), -1, -1))
        subsets = chain.from_iterable(combinations(undone_times, number) for number in range(len(undone_times) + 1))
        # Try each set of undone times that the sum may hold, the likeliest first.
        for undone_in_sum in islice(chain(suffixes, subsets), _MOST_SETS):
            excess = (present_sum.total - self.total + sum(map(_hash, undone_in_sum))) % _MOST
            missing_count = present_sum.count - self.count + len(undone_in_sum)
            if not missing_count and not excess:
                return ()
            # The excess is the hash of the write that the sum lacks, or the sum of the hashes of two.
            if missing_count == 1 and excess in hashes:
                return (hashes[excess],)
            if missing_count == 2:
                for value, time in hashes.items():
                    other = hashes.get((excess - value) % _MOST, time)
                    if other != time:
                        return tuple(sorted((time, other)))
        return None


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch.

    Attributes:
        time: The completion time of the newest write in it; zeros before the first.
        writes: The writes completed until then; None if a batch of Apache Hudi, or a user, gave the time.
        after: Where the batch began; "" if unknown.
    """

    time: str
    writes: WriteSum | None = None
    after: str = ""

    @property
    def is_initial(self) -> bool:
        return not self.time.strip("0")

    @property
    def bound(self) -> str:
        """The time that the completion times of all later writes exceed."""
        return "" if self.is_initial else self.time

    def carried_over(self, config: TableConfig, writes: Mapping[str, Instant]) -> Offset:
        """Return the offset of the same writes in a table that was upgraded since.

        In the layout before, the offset's time is the requested time of the newest write, which the upgrade gave a
        completion time. ``writes`` are the completed writes by requested time.
        """
        if self.is_initial or not config.left_old_layout:
            return self
        older_times = frozenset(time for time in writes if time <= self.time)
        completed = [time for time, write in writes.items() if write.visible_since <= self.time]
        if self.writes is None:
            # A time alone is a requested time if a write has it, and no write completed then.
            is_older = self.time in writes and all(write.visible_since != self.time for write in writes.values())
        else:
            # The sum tells by which of the two times the writes until the offset were counted.
            is_older = self.writes == WriteSum.of(older_times) != WriteSum.of(completed)
        if not is_older:
            return self
        after = Offset(self.after).carried_over(config, writes).time if self.after else ""
        return replace(self, time=max(writes[time].visible_since for time in older_times), after=after)

    def to_fields(self) -> dict[str, Any]:
        """Return the offset as a checkpoint stores it."""
        fields: dict[str, Any] = {TIME: self.time}
        if self.writes is not None:
            fields |= {_COUNT: self.writes.count, _SUM: f"{self.writes.total:0{2 * _BYTES}x}"}
        return fields | {_AFTER: self.after} if self.after else fields


INITIAL = Offset(_INITIAL)


def parse_offset(fields: Mapping[str, Any], path: str) -> Offset:
    """Return the offset in a checkpoint; raises InvalidOptionError for the checkpoint of another source."""
    try:
        time = str(fields[TIME] if TIME in fields else fields[_OLDER_NAME])
        if not _DIGITS.fullmatch(time):
            raise ValueError(time)
        count = fields.get(_COUNT)
        writes = None if count is None else WriteSum(int(count), int(str(fields[_SUM]), 16))
        return Offset(time, writes, str(fields.get(_AFTER, "")))
    except (KeyError, ValueError, TypeError) as error:
        raise InvalidOptionError(
            f"The checkpoint of the stream of {path} has the offset {dict(fields)}, which no Hudi table has.",
            "Start the query with a checkpoint of its own.",
        ) from error


def _hash(time: str) -> int:
    """Return a number of 128 bits for a time."""
    return int.from_bytes(blake2b(time.encode(), digest_size=_BYTES).digest(), "big")
