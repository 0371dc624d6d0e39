"""Groups of the settings of a write; a module mostly reads one group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..index.base import LookupFigures
from ..table.files.output import GIB, MIB
from .result import RowCounts

if TYPE_CHECKING:
    from .read_rows import ReadRows


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where the figures of commits go; nowhere by default.

    Attributes:
        file: The path of a text file; or of a folder with a slash at its end, which gets a file for each table.
        gateway: Host and port of a Prometheus gateway; empty for none.
        job: The gateway's job; empty for the table's name.
        labels: Further labels of the gateway's group.
        prefix: The beginning of all names; empty for the table's name.
    """

    file: str = ""
    gateway: str = ""
    job: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class KeySettings:
    """What a write does with a key of several rows, or of no row.

    The choice of the operation reads them (`operations/planning/operation.py`); the search for shared keys reads
    ``may_collide`` (`operations/locating/shared_keys.py`).

    Attributes:
        combine_before_upsert: Whether an upsert that replaces the table folds rows of one key. Merges always do.
        combine_before_insert: The same for inserts and for operations that replace partitions or the table.
        insert_drop_duplicates: Whether ``insert_dup_policy`` is ``drop``, unless it is ``fail``.
        insert_dup_policy: What an insert does with a row whose key exists: ``none`` (keep both), ``drop``, ``fail``.
        allow_duplicates_on_insert: Whether an insert without a lookup may add a second row of a key; else it merges.
        delete_missing_ok: Whether a key to be deleted may be absent.
        may_collide: Whether rows with different values in several key columns may have one record key.
    """

    combine_before_upsert: bool = True
    combine_before_insert: bool = False
    insert_drop_duplicates: bool = False
    insert_dup_policy: str = "none"
    allow_duplicates_on_insert: bool = True
    delete_missing_ok: bool = True
    may_collide: bool = False


@dataclass(frozen=True, slots=True)
class ReplacementSettings:
    """What a write replaces or deletes as a whole.

    The choice of the operation reads them, the lookup of an overwrite (`operations/locating/tagging.py`), and the
    commit's list of replaced file groups (`operations/write/replacement.py`).

    Attributes:
        overwrite_mode: ``dynamic`` lets mode overwrite replace the partitions that rows belong to, not the table.
        overwrite_moves_keys: Whether an overwrite of partitions under a global index deletes the copies of its keys in
            other partitions; else it is refused if there are any.
        partitions_to_delete: Partition paths with ``*`` for anything; None for the partitions of the rows.
    """

    overwrite_mode: str | None = None
    overwrite_moves_keys: bool = False
    partitions_to_delete: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BulkInsertSort:
    """How a bulk insert orders the rows of each file: read by the plan of the rows, and where Spark arranges them.

    Attributes:
        mode: One of Apache Hudi's; GLOBAL_SORT and PARTITION_SORT order rows by record key.
        columns: The columns that take the place of the record key; none for the order of the mode.
    """

    mode: str = "NONE"
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """How a task does its work (`operations/write/task.py`).

    Attributes:
        threads: How many threads each task takes, and the commit; they share the memory of a task. None for one thread
            in a task, and as many in the commit as the machine has cores.
        batch_size: After how many bytes the buffered rows of one file group are spilled.
        hand_over: Whether tasks leave all rows to the commit, which can merge them again as often as needed.
    """

    threads: int | None = None
    batch_size: int = 256 * MIB
    hand_over: bool = False


@dataclass(frozen=True, slots=True)
class CommitSettings:
    """What the commit of a write may do: `attempts`, `merge_spills` and `commit` in `operations/write` read it.

    Attributes:
        retry_s: Seconds for which a commit that met another write merges its rows again; with 0 it fails at once.
        wait_s: Seconds for which a commit waits for older writes of the same data before it merges.
        merge_max_bytes: Bytes of spills and touched base files that ``commit`` may merge by itself.
        allow_empty_commit: Whether a write without rows leaves an instant.
        extra_metadata: Further entries of the commit's metadata, besides the figures of the write.
    """

    retry_s: float = 0.0
    wait_s: float = 60.0
    merge_max_bytes: int = 8 * GIB
    allow_empty_commit: bool = True
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """What the caller found out about the rows before the write was planned; options set only ``based_on``.

    The plan of the rows reads it, the attempts of the commit, and what places rows in Spark (`connector/placement`).

    Attributes:
        based_on: Completion time of the newest instant from which the rows were made, or that moment as `spell_moment`
            spells it; empty if they were not made from the table.
        looked_up: Figures of the lookup that placed the rows; None if no lookup did.
        counted: Counts by a merge or an update that read the table; None for other writes.
        read: The rows of the table that decided what the write does, if its isolation level makes them count.
        deletes_read: Whether the write read the rows that it deletes, so that its deletes have their ordering values.
        of_stored: Whether rows were made of stored rows, one of each, and their keys may have further stored rows.
    """

    based_on: str = ""
    looked_up: LookupFigures | None = None
    counted: RowCounts | None = None
    read: tuple[ReadRows, ...] = ()
    deletes_read: bool = False
    of_stored: bool = False
