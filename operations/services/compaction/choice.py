"""Strategies that choose which file slices a compaction merges, and in which order, on values alone.

They are those of Apache Hudi's package ``table.action.compact.strategy``, under the same names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....errors import InvalidOptionError
from ....table.files.file_group import FileSlice
from ...service_settings import BOUNDED_IO, BY_DAY, BY_REGEX, LOG_COUNT, LOG_SIZE, UNBOUNDED, CompactionSettings

MB = 1 << 20
# Apache Hudi's assumption for a slice without a base file: hoodie.parquet.max.file.size.
_EXPECTED_BASE_BYTES = 120 * MB
_KEY_OF_VALUE = re.compile(r"(^|/)[^/=]*=")
_DAY = re.compile(r"(\d{1,4})/(\d{1,2})/(\d{1,2})(?!\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cost:
    """What the compaction of one file slice reads and writes, in whole MB (2^20 bytes) as in Apache Hudi."""

    read_mb: int
    write_mb: int
    log_bytes: int
    log_files: int

    @classmethod
    def of(cls, file_slice: FileSlice) -> Cost:
        """Return the cost of a slice; without a base file, it assumes Apache Hudi's size of a full base file."""
        log_bytes = sum(log.size for log in file_slice.logs)
        base = 0 if file_slice.base is None else file_slice.base.size
        written = base or _EXPECTED_BASE_BYTES
        return cls((base + log_bytes) // MB, written // MB, log_bytes, len(file_slice.logs))

    @property
    def total_mb(self) -> int:
        """What is read and written together."""
        return self.read_mb + self.write_mb

    def metrics(self) -> dict[str, float]:
        """Return the cost in the form that a plan holds."""
        return {
            "TOTAL_LOG_FILES": float(self.log_files),
            "TOTAL_IO_READ_MB": float(self.read_mb),
            # Apache Hudi's executor fails without this entry.
            "TOTAL_LOG_FILES_SIZE": float(self.log_bytes),
            "TOTAL_IO_WRITE_MB": float(self.write_mb),
            "TOTAL_IO_MB": float(self.total_mb),
        }


def choose_partitions(settings: CompactionSettings, partitions: Iterable[str]) -> list[str]:
    """Return the partitions whose slices may be merged by the strategy, so that the others need not be listed.

    They match the regular expression of the settings, or are of the newest days; other strategies take all.
    """
    if settings.strategy == BY_REGEX:
        pattern = re.compile(settings.partition_regex)
        return [partition for partition in partitions if pattern.search(partition)]
    if settings.strategy == BY_DAY:
        return sorted(partitions, key=_day, reverse=True)[: settings.partitions]
    return list(partitions)


def choose_slices(settings: CompactionSettings, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Return the slices to merge, in order, of the `slices` with log files, by partition path and file id."""
    return _STRATEGIES[settings.strategy](settings, slices)


def _all(_: CompactionSettings, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Return all slices, in the given order."""
    return list(slices)


def _bounded(settings: CompactionSettings, slices: Iterable[FileSlice]) -> list[FileSlice]:
    """Return slices up to the bound of MB read and written, and the slice that reaches it."""
    left_mb, chosen = settings.target_io_mb, []
    for file_slice in slices:
        chosen.append(file_slice)
        left_mb -= Cost.of(file_slice).total_mb
        if left_mb <= 0:
            break
    return chosen


def _largest(settings: CompactionSettings, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Return the slices with enough bytes in log files, the most bytes first, up to the bound of MB."""
    sizes = {file_slice.group: Cost.of(file_slice).log_bytes for file_slice in slices}
    large_slices = [file_slice for file_slice in slices if sizes[file_slice.group] >= settings.log_bytes]
    return _bounded(settings, sorted(large_slices, key=lambda file_slice: -sizes[file_slice.group]))


def _most_files(settings: CompactionSettings, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Return the slices with enough log files, the most files first, up to the bound of MB."""
    slices_of_many_files = [file_slice for file_slice in slices if len(file_slice.logs) >= settings.log_files]
    return _bounded(settings, sorted(slices_of_many_files, key=lambda file_slice: -len(file_slice.logs)))


def _newest_days(_: CompactionSettings, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Return all slices, those of the newest days first."""
    return sorted(slices, key=lambda file_slice: _day(file_slice.partition_path), reverse=True)


def _day(partition: str) -> tuple[int, ...]:
    """Return the day that a partition path spells, with or without the names of its columns."""
    day = _DAY.match(_KEY_OF_VALUE.sub(r"\1", partition))
    if day is None:
        raise InvalidOptionError(
            f"hoodie.compaction.strategy is {BY_DAY}, and the partition {partition!r} is no day such as 2026/11/22.",
            "Choose another strategy for this table.",
        )
    return tuple(map(int, day.groups()))


_STRATEGIES: Mapping[str, Callable[[CompactionSettings, Sequence[FileSlice]], list[FileSlice]]] = {
    LOG_SIZE: _largest,
    LOG_COUNT: _most_files,
    BOUNDED_IO: _bounded,
    UNBOUNDED: _all,
    BY_DAY: _newest_days,
    BY_REGEX: _all,
}
