"""What is wrong with rows that were made from a table's own, before any of them is written.

Whoever changes rows of a table by more than their keys counts, for each place that a row may have, what goes and what
comes there. What one write cannot do as it was meant is refused here, with a key that it would have happened to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import DuplicateKeyError, OlderRowError, OptionConflictError
from ...table.config.property_keys import PARTIAL_UPDATE_MODE
from ..result import RowCounts


@dataclass(frozen=True, slots=True)
class RowPlace:
    """What names a row of a table.

    Attributes:
        record_key: Its key.
        partition_path: Its partition.
    """

    record_key: str
    partition_path: str

    def __str__(self) -> str:
        where = f" in partition {self.partition_path!r}" if self.partition_path else ""
        return f"the record key {self.record_key!r}{where}"


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Some changed rows, and the first place at which each thing happens that must not; None where it does nowhere.

    Attributes:
        counts: What becomes of the rows.
        left: How many rows leave their places.
        replaced: At how many places a row comes whose own row goes.
        unproven: How many rows come to places of which nobody knows yet whether the table has a row there.
        matched_often: Several rows change one row of the table, and not all of them delete it.
        held_twice: The table holds several rows of one key, and not all of them are deleted.
        crowded: Several rows come to one place.
        older: A row has a lesser ordering value than the one whose place it takes.
        kept: A row leaves a column as it is in the one whose place it takes, by a value that was to be there.
    """

    counts: RowCounts = field(default_factory=RowCounts)
    left: int = 0
    replaced: int = 0
    unproven: int = 0
    matched_often: RowPlace | None = None
    held_twice: RowPlace | None = None
    crowded: RowPlace | None = None
    older: RowPlace | None = None
    kept: RowPlace | None = None


def check_changed_rows(found: ChangedRows, table: str) -> None:
    """Refuse changed rows that one write cannot bring into the table as they were meant.

    Args:
        found: What was found among them.
        table: The table's path, for messages.

    Raises:
        DuplicateKeyError: A row would be changed in two ways, or a key would have several rows.
        OlderRowError: A row would be dropped for being older than the one that it is to replace.
        OptionConflictError: A value would be dropped by the table's mode of partial updates.
    """
    if found.matched_often is not None:
        raise DuplicateKeyError(
            f"Several rows of the source match the row of {found.matched_often} of the table {table}, and more than "
            "one of them would change it.",
            "Leave one row of each in the source, or add to the condition by which rows match, or to those of the "
            "clauses, until one is left.",
        )
    if found.held_twice is not None:
        raise DuplicateKeyError(
            f"The table {table} holds several rows of {found.held_twice}, as inserts leave them that look no key up, "
            "and a change of one of them would take the place of all.",
            "Upsert or delete this key first, which leaves one row of it or none, and run this again.",
        )
    if found.crowded is not None:
        raise DuplicateKeyError(
            f"Several rows for the table {table} would have {found.crowded}: the source brings it more than once, or "
            "an update gives it to more than one row.",
            "Leave one row of each key in the source, and give each updated row a key of its own.",
        )
    if found.older is not None:
        raise OlderRowError(
            f"The new row of {found.older} of the table {table} has a lesser ordering value than the row whose place "
            "it is to take, so that readers would go on to show that one.",
            "Leave the ordering field out of what is set, or give it a value that is not less; or narrow the "
            "condition to rows that are older.",
        )
    if found.kept is not None:
        raise OptionConflictError(
            f"The new row of {found.kept} of the table {table} has a value that stands for none by the table's "
            f"{PARTIAL_UPDATE_MODE}, so that readers would go on to show what the row before it has there.",
            "Give the columns other values, such as coalesce(source.a, target.a); or delete the row first, and insert "
            "it by another write.",
        )


def held_elsewhere(place: RowPlace, table: str) -> DuplicateKeyError:
    """Return the error of a row that comes to a place where the table has a row which nothing changes."""
    return DuplicateKeyError(
        f"A row for the table {table} would have {place}, which a row of the table has that nothing here changes.",
        "Match rows by their key, so that the row which is there is updated; or give the new row another key.",
    )
