"""The contract between an index and the rest of pyhudi: an index says which file group holds a record key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from ..storage.base import Storage
from ..table.files.names import FileGroupId
from ..table.files.view import FileView

if TYPE_CHECKING:
    from ..table.keys.generator import KeyPart

Buckets = np.ndarray[Any, np.dtype[np.int32]]
Positions = np.ndarray[Any, np.dtype[np.int64]]
NOT_FOUND = -1
# More file groups than a partition has.
ANY_NUMBER = 1 << 32


class Index(Protocol):
    """What a writer asks of every index, whether the index computes a key's place or looks it up."""

    @property
    def is_global(self) -> bool:
        """Whether a record key is unique in the whole table, not only within its partition."""
        ...

    @property
    def needs_lookup(self) -> bool:
        """Whether the index has to look a key up in order to place it; otherwise the key alone decides."""
        ...

    @property
    def can_index_log_files(self) -> bool:
        """Whether the index finds keys that only log files hold, so that inserts may be written to log files."""
        ...

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return the positions of the keys that the index would put into another file group.

        Args:
            record_keys: n record keys of one file group, none null.
            group: The file group.

        Returns:
            Positions among the n keys, ascending.
        """
        ...

    def rival_key(self, group: FileGroupId) -> str:
        """Return the name of the unit of conflict that a file group belongs to, such as a bucket of its partition.

        Two concurrent writers of a partition are in conflict if they wrote to file groups of one unit, for which this
        method returns equal texts. Most often each file group is a unit of its own. Under a bucket index the unit is
        the bucket: two writers may each open a file group for it, and only one of them may commit. Errors show the
        text.

        Args:
            group: A file group that a writer wrote to.

        Returns:
            A text such as ``bucket 3`` or ``file group <file id>``, the same for all file groups of the unit.
        """
        ...

    def number_of(self, group: FileGroupId) -> int | None:
        """Return the number of a file group within its partition.

        Args:
            group: The file group.

        Returns:
            None, unless the index computes numbers: see `ComputedIndex.buckets`.
        """
        return None

    def prunes(self, record_keys: pa.Array) -> Callable[[FileGroupId], bool]:
        """Return a test of file groups that certainly hold none of some keys.

        Args:
            record_keys: n record keys, none null.

        Returns:
            A function that is false for every file group, unless the index computes where keys are.
        """
        return lambda group: False


class ComputedIndex(Index, Protocol):
    """An index that computes from the key alone which file group of its partition holds it."""

    def buckets(self, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the number of the file group, within its partition, that each key belongs to.

        Args:
            record_keys: n record keys, none null.
            parts: The fields and texts that composite keys were made of, if the caller has them; they save parsing
                the keys.

        Returns:
            n numbers, from 0 on.
        """
        ...

    def buckets_in(self, paths: pa.DictionaryArray, record_keys: pa.Array, parts: Sequence[KeyPart] = ()) -> Buckets:
        """Return the number of the file group, within its own partition, that each key belongs to.

        Args:
            paths: n partition paths; a dictionary with each path once.
            record_keys: n record keys, none null.
            parts: As for `buckets`.

        Returns:
            n numbers: those of `buckets`, unless partitions have numbers of their own.
        """
        return self.buckets(record_keys, parts)

    def count_of(self, partition_path: str) -> int | None:
        """Return how many numbers a partition has.

        Args:
            partition_path: The partition.

        Returns:
            `ANY_NUMBER`, unless the index knows better; None if it cannot know.
        """
        return ANY_NUMBER

    def place(self, instant_time: str, partition_path: str, number: int) -> FileGroupId:
        """Return the file group that an instant opens for a number: the same for every task and attempt.

        Args:
            instant_time: Requested time of the instant.
            partition_path: The partition.
            number: As `buckets` gives it, of which the partition has no file group yet.

        Returns:
            The new file group.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """n rows to look up.

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
    """What a lookup cost.

    Attributes:
        files: Base files and log-only slices that could have held a key, before ranges and filters excluded any.
        candidates: Files that ranges and filters did not exclude, whose keys were read.
        false_positives: Candidates in which no wanted key was found.
        bytes: Bytes read from footers and key columns, without those that Spark's own reader reads for very many keys.
        seconds: Seconds from the first file to the last.
    """

    files: int = 0
    candidates: int = 0
    false_positives: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: LookupFigures) -> LookupFigures:
        """Return what this lookup and another lookup cost together."""
        return LookupFigures(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Tags:
    """Where n looked-up rows are.

    Attributes:
        groups: File groups that hold some of the keys. Under a global index a file group may lie in another partition
            than the row that belongs to it.
        codes: n numbers: the position of a row's file group among `groups`, `NOT_FOUND` if the table lacks the key.
        figures: What the lookup cost.
        copied: Positions of rows whose key further file groups hold too, as inserts without a lookup leave it there; a
            row comes once for each further file group. Apache Hudi updates and deletes all copies of a key.
        copy_codes: The position among `groups` of the further file group, for each element of `copied`.
        repeating: Positions among `groups` of file groups whose base files hold one of the keys several times, as
            inserts without a lookup leave it there; none if the index does not know. Such a file group is written anew,
            as Apache Hudi merges entries of log files with the first row of their key alone.
    """

    groups: tuple[FileGroupId, ...]
    codes: Buckets
    figures: LookupFigures = field(default_factory=LookupFigures)
    copied: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    copy_codes: Buckets = field(default_factory=lambda: np.zeros(0, np.int32))
    repeating: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """All record keys that a file group holds; none if it is gone.

    Attributes:
        group: The file group.
        record_keys: Its keys, each once.
    """

    group: FileGroupId
    record_keys: pa.Array


class LookupIndex(Index, Protocol):
    """An index that reads the table, or asks a store outside of it, to find record keys."""

    @property
    def needs_lookup(self) -> bool:
        """True: the key alone does not place the row."""
        return True

    @property
    def can_index_log_files(self) -> bool:
        """False, as in Apache Hudi, whose indexes of this kind see base files alone: new keys go to base files."""
        return False

    def misfits(self, record_keys: pa.Array, group: FileGroupId) -> Positions:
        """Return no position: every file group may hold every key.

        Args:
            record_keys: n record keys of one file group.
            group: The file group.

        Returns:
            An empty array.
        """
        return np.zeros(0, np.int64)

    def rival_key(self, group: FileGroupId) -> str:
        """Return the name of the file group itself: writers conflict only if they wrote to the same file group.

        Args:
            group: The file group.

        Returns:
            The file group's name, for the comparison and for error messages.
        """
        return f"file group {group.file_id}"

    def tag(self, rows: KeyedRows, view: FileView, storage: Storage) -> Tags:
        """Return where each row's key is.

        Args:
            rows: Rows of one write, or of a part of it; a key may come several times.
            view: The table's file slices as of the write's watermark.
            storage: Rooted at the table.

        Returns:
            The file groups, and which of them holds each row's key.
        """
        ...
