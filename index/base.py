"""What an index is to the rest of pyhudi: the answer to which file group holds a record key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..storage.base import Storage
from ..table.files.names import FileGroupId
from ..table.files.view import FileView
from ..table.keys.generator import KeyPart

Buckets = np.ndarray[Any, np.dtype[np.int32]]
Positions = np.ndarray[Any, np.dtype[np.int64]]
NOT_FOUND = -1


class Index(Protocol):
    """What a writer has to know of any index, whether the key alone or the table tells where a key is."""

    @property
    def is_global(self) -> bool:
        """Whether a record key is unique in the whole table, not only within its partition."""
        ...

    @property
    def needs_lookup(self) -> bool:
        """Whether the table has to be read to tell where a key is; otherwise the key alone decides."""
        ...

    @property
    def can_index_log_files(self) -> bool:
        """Whether keys are found that stand in log files only, so that inserts may go to log files."""
        ...

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return the positions of the keys that do not belong to a file group which holds them.

        Args:
            record_keys: n record keys of one file group, none null.
            group: The file group.
        """
        ...

    def rival_key(self, group: FileGroupId) -> str:
        """Return what two writers may not both write to in one partition, as people call it.

        It is more than the file group where the index gives a place of the partition to one file group: each of two
        writers may have opened one there.
        """
        ...


class ComputedIndex(Index, Protocol):
    """An index that tells by the key alone in which file group of its partition a record key is."""

    def buckets(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the number of the file group, within its partition, that each key belongs to.

        Args:
            record_keys: n record keys, none null.
            parts: What composite keys were made of, where the caller knows: with it they need not be taken apart.
        """
        ...

    def number_of(self, group: FileGroupId) -> int | None:
        """Return the number of a file group within its partition, None where none can be told of it."""
        ...

    def place(self, instant_time: str, partition_path: str, number: int) -> FileGroupId:
        """Return the file group that an instant opens for a number: the same one for every task and attempt.

        Args:
            instant_time: Requested time of the instant.
            partition_path: The partition.
            number: As `buckets` gives it, of which the partition has no file group yet.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """n rows that are to be looked up.

    Attributes:
        record_keys: n record keys, none null.
        paths: n partition paths; a dictionary with each path once.
    """

    record_keys: pa.StringArray
    paths: pa.DictionaryArray

    def __len__(self) -> int:
        """Return n."""
        return len(self.record_keys)


@dataclass(frozen=True, slots=True)
class LookupFigures:
    """What a lookup took.

    Attributes:
        files: Base files and log-only slices that could have held a key, before anything was ruled out.
        candidates: Those that ranges and filters did not rule out, whose keys were read.
        false_positives: Those of the candidates in which no wanted key was found.
        bytes: Read from footers and key columns, but for what Spark's own reader reads of them for very many keys.
        seconds: From the first file to the last.
    """

    files: int = 0
    candidates: int = 0
    false_positives: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: LookupFigures) -> LookupFigures:
        """Return what this lookup and another one took together."""
        return LookupFigures(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Tags:
    """Where n looked-up rows are.

    Attributes:
        groups: File groups that hold some of the keys. Under a global index a row's may lie in another partition than
            the row belongs to.
        codes: n numbers: the place of a row's file group among `groups`, `NOT_FOUND` where the table lacks the key.
        figures: What it took to find out.
        copied: Rows, by their position, whose key stands in further file groups, as inserts that look for no key leave
            it there; a row comes once for each of those. Apache Hudi updates and deletes all copies of a key.
        copy_codes: The place of the further file group of each of them among `groups`.
    """

    groups: tuple[FileGroupId, ...]
    codes: Buckets
    figures: LookupFigures = field(default_factory=LookupFigures)
    copied: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    copy_codes: Buckets = field(default_factory=lambda: np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """All record keys that a file group holds; none where it is gone.

    Attributes:
        group: The file group.
        record_keys: Its keys, each once.
    """

    group: FileGroupId
    record_keys: pa.Array


class LookupIndex(Index, Protocol):
    """An index that reads the table, or asks something outside of it, to tell where record keys are."""

    @property
    def needs_lookup(self) -> bool:
        """True: the key alone does not tell."""
        return True

    @property
    def can_index_log_files(self) -> bool:
        """False, as in Apache Hudi, whose indexes of this kind see base files alone: new keys go to base files."""
        return False

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return no position: a key may be in every file group."""
        return np.zeros(0, np.int64)

    def rival_key(self, group: FileGroupId) -> str:
        """Return the file group itself: keys have no place that two writers could open twice."""
        return f"file group {group.file_id}"

    def tag(self, rows: KeyedRows, view: FileView, storage: Storage) -> Tags:
        """Return where each row's key is.

        Args:
            rows: Rows of one write, or of a part of it; a key may come several times.
            view: The table's file slices as of the write's watermark.
            storage: Rooted at the table.
        """
        ...
