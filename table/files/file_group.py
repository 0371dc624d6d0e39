"""File groups: their slices, and the files of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from .names import BaseFileName, FileGroupId, LogFileName


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file; its path is relative to the table's root.

    Attributes:
        stated: Its size as its completed instant states it; 0 if no instant at hand does.
    """

    path: str
    size: int
    file_id: str
    write_token: str
    instant_time: str
    stated: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def named_time(self) -> str:
        return self.instant_time

    @property
    def kind(self) -> str:
        return "base file"


@dataclass(frozen=True, slots=True)
class StatedLog:
    """What the completed instants that wrote a log file, its `makers`, state about its bytes and records.

    From table version 8 on one instant writes the file, and no other instant appends to it; if others may, it is
    ``shared``. If several write statistics name the file, the greatest numbers count. Source: ``HoodieWriteStat``.
    """

    size: int
    records: int
    by_pyhudi: bool
    makers: tuple[str, ...]
    shared: bool = False

    def allows_size(self, size: int) -> bool:
        """Return whether an undamaged file may have a size: Apache Hudi's writers may state less than they wrote."""
        return size == self.size if self.by_pyhudi else size >= self.size

    @property
    def allows_torn_blocks(self) -> bool:
        """Whether an undamaged file may hold a torn block: a writer of Apache Hudi's may write a block again."""
        return not self.by_pyhudi


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file; its path is relative to the table's root.

    Attributes:
        stated: What its completed instant states about it; None if no instant on the timeline does.
        readable: Where the blocks begin that a repair reads, which gives up the others; None if all must be read.
    """

    path: str
    size: int
    name: LogFileName
    stated: StatedLog | None = field(default=None, compare=False)
    readable: frozenset[int] | None = field(default=None, compare=False)

    @property
    def file_id(self) -> str:
        return self.name.file_id

    @property
    def named_time(self) -> str:
        return self.name.named_time

    def is_counted(self, counts: Callable[[str], bool]) -> bool:
        """Return whether the instant in the name counts; ``counts`` says so of an instant's requested time."""
        return counts(self.named_time)

    @property
    def kind(self) -> str:
        return "log file"


DataFile = BaseFile | LogFile
# Returns the requested times of the instants whose blocks a log file holds, which opens the file.
OpenLog = Callable[[LogFile], frozenset[str]]
# Returns the completion time of an instant by its requested time.
CompletedAt = Callable[[str], str]
# Paths of files and their sizes.
Sizes = Sequence[tuple[str, int]]


def every_instant(_: str) -> bool:
    """Return True: all blocks of a log file count, whichever instant wrote them."""
    return True


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The files of a file group from one instant that compacts or rewrites it to the next.

    ``base_time`` is the requested time of the instant that began it; ``logs`` are in the order in which they are read.
    ``counts`` says of which instants the blocks in them count.
    """

    group: FileGroupId
    base_time: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = ()
    counts: Callable[[str], bool] = field(default=every_instant, repr=False, compare=False)

    @property
    def partition_path(self) -> str:
        return self.group.partition_path

    @property
    def file_id(self) -> str:
        return self.group.file_id

    @property
    def data_files(self) -> tuple[DataFile, ...]:
        return self.logs if self.base is None else (self.base, *self.logs)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.data_files)

    def names(self, requested_time: str) -> bool:
        """Return whether a log file has the time of an instant in its name."""
        return any(log.named_time == requested_time for log in self.logs)

    def has_another(self, log: LogFile) -> bool:
        """Return whether another log file has the same time in its name, such as the file of another attempt."""
        return any(other.named_time == log.named_time and other.path != log.path for other in self.logs)

    @property
    def log_bytes(self) -> int:
        return sum(log.size for log in self.logs)

    @property
    def size(self) -> int:
        return self.log_bytes + (0 if self.base is None else self.base.size)

    @property
    def base_file(self) -> BaseFile:
        """The base file of a slice that has one, as every slice of a copy-on-write table has."""
        if self.base is None:
            raise ValueError(f"the file slice {self.base_time} of {self.group} has no base file")
        return self.base


@dataclass(frozen=True, slots=True)
class FileGroup:
    """One file group with all its committed slices that exist, at least one, the oldest first."""

    id: FileGroupId
    slices: tuple[FileSlice, ...]

    @property
    def newest(self) -> FileSlice:
        return self.slices[-1]


def base_file(path: str, size: int = 0) -> BaseFile | None:
    """Return what the path of a base file says; None for any other path."""
    name = BaseFileName.parse(path.rpartition("/")[2])
    return None if name is None else BaseFile(path, size, name.file_id, str(name.write_token), name.instant_time)


def log_file(path: str, size: int = 0, *, changes: bool = False) -> LogFile | None:
    """Return what the path of a log file of rows says, with ``changes`` also of change data (CDC); None for others."""
    text = path.rpartition("/")[2]
    name = LogFileName.parse(text) if text.startswith(".") else None
    return None if name is None or (name.is_cdc and not changes) else LogFile(path, size, name)


def data_file(path: str, size: int = 0, *, changes: bool = False) -> DataFile | None:
    """Return what the path of a base file or a log file says; None for any other path.

    Log files of change data (CDC) count only with ``changes``.
    """
    return base_file(path, size) or log_file(path, size, changes=changes)


def is_change_data(file: DataFile) -> bool:
    return isinstance(file, LogFile) and file.name.is_cdc


def file_id_and_time(file: DataFile) -> tuple[str, str]:
    """Return the file id and the time in a file's name, which the change data of the same write has too."""
    return file.file_id, file.named_time


def slice_with(previous: FileSlice | None, group: FileGroupId, files: Sizes) -> FileSlice | None:
    """Return the slice that one new base file, or log files appended to ``previous``, make; None for anything else."""
    base = base_file(*files[0]) if len(files) == 1 else None
    if base is not None:
        return FileSlice(group, base.instant_time, base)
    logs = [log for file in files if (log := log_file(*file)) is not None]
    if previous is None or not logs or len(logs) < len(files):
        return None
    return replace(previous, logs=(*previous.logs, *logs))
