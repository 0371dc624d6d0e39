"""Checks of rows that a merge or an update made from the table's own rows, before it writes any of them.

For each place (key and partition) the caller counts which rows leave and which rows come. The checks refuse what one
write cannot do, and name a key for which it would happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ...errors import DuplicateKeyError, OlderRowError, OptionConflictError
from ...table.config.property_keys import PARTIAL_UPDATE_MODE
from ..read_rows import ReadRows
from ..result import RowCounts
from ..write_settings import RowOrigin


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where a row is or would be: its key and its partition, which is empty in a table without partitions."""

    record_key: str
    partition_path: str

    def __str__(self) -> str:
        where = f" in partition {self.partition_path!r}" if self.partition_path else ""
        return f"the record key {self.record_key!r}{where}"


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Counts of changed rows, and the first place of each forbidden change; None if there is no such change.

    Attributes:
        left: The number of rows that leave their places.
        replaced: The number of places that one row leaves and to which another row comes.
        unproven: The number of rows that come to places at which the table may have a row.
        again: The number of places at which several changes delete a row: several rows of the table, or the same row.
        copied: The number of places at which a row changes and the table holds several rows.
        matched_often: Several rows change one row of the table, and not all of them delete it.
        held_twice: The table holds several rows of one key, and not all of them are deleted.
        crowded: Several rows come to one place.
        older: A row has a lesser ordering value than the row that it replaces.
        keeps_old: A value of a row makes a partial update keep the old value of the row that it replaces.
    """

    counts: RowCounts = field(default_factory=RowCounts)
    left: int = 0
    replaced: int = 0
    unproven: int = 0
    again: int = 0
    copied: int = 0
    matched_often: RowPlace | None = None
    held_twice: RowPlace | None = None
    crowded: RowPlace | None = None
    older: RowPlace | None = None
    keeps_old: RowPlace | None = None

    @classmethod
    def of(cls, sums: Mapping[str, int], forbidden: Mapping[str, RowPlace | None]) -> ChangedRows:
        """Return the changed rows by sums over all places, and by the first place of each forbidden change.

        ``sums`` has numbers of rows or places by what happens to them: ``comes``, ``leaves``, ``stays``, ``deleted``,
        ``shifted``, ``replaced``, ``unproven``, ``again`` and ``copied``.
        """
        counts = RowCounts(
            inserts=sums["comes"] - sums["leaves"],
            updates=sums["stays"] + sums["leaves"],
            deletes=sums["deleted"],
            moved=sums["leaves"] + sums["shifted"],
        )
        return cls(
            counts,
            left=sums["leaves"],
            replaced=sums["replaced"],
            unproven=sums["unproven"],
            again=sums["again"],
            copied=sums["copied"],
            **forbidden,
        )

    def needs_counts(self, *, has_copies: bool) -> bool:
        """Return whether the write must count the stored rows of changed keys, because it may change only some of them.

        ``has_copies`` says that all rows of a key were counted, or none.
        """
        if has_copies:
            return self.copied > 0
        return bool(self.counts.updates or self.counts.deletes or self.left)

    def origin(self, read: tuple[ReadRows, ...], *, has_copies: bool) -> RowOrigin:
        """Return what the write of the changed rows has to know about them; ``read`` decided which rows they are."""
        of_stored = self.needs_counts(has_copies=has_copies)
        return RowOrigin(counted=self.counts, read=read, deletes_read=True, of_stored=of_stored)

    def plus(self, other: ChangedRows) -> ChangedRows:
        """Return the counts of both added up, and the first place of each forbidden change that either has."""
        own_counts, other_counts = asdict(self.counts), asdict(other.counts)
        counts = RowCounts(**{name: own_counts[name] + other_counts[name] for name in own_counts})
        summed = ("left", "replaced", "unproven", "again", "copied")
        sums = {name: getattr(self, name) + getattr(other, name) for name in summed}
        forbidden = ("matched_often", "held_twice", "crowded", "older", "keeps_old")
        return ChangedRows(counts, **sums, **{name: getattr(self, name) or getattr(other, name) for name in forbidden})


def check_changed_rows(changes: ChangedRows, table: str) -> None:
    """Raise an error that names a place for the first forbidden change of rows, if there is any.

    ``table`` is the path of the table, for the message. Each compared attribute of ``changes`` is the first place
    of one kind of forbidden change, None without such a change.
    """
    if changes.matched_often is not None:
        raise DuplicateKeyError(
            f"Several rows of the source match the row of {changes.matched_often} of the table {table}, and "
            "several of them would change it.",
            "Leave one row of each in the source, or add to the condition by which rows match, or to those of the "
            "clauses, until one row matches.",
        )
    if changes.held_twice is not None:
        raise DuplicateKeyError(
            f"The table {table} holds several rows of {changes.held_twice}, as inserts without a lookup make them, "
            "and a change of a single row would replace all of them.",
            "Upsert or delete this key first, which leaves one row of it or none, and run this again.",
        )
    if changes.crowded is not None:
        raise DuplicateKeyError(
            f"Several rows for the table {table} would have {changes.crowded}: the source brings it more than once, or "
            "an update gives it to more than one row.",
            "Leave one row of each key in the source, and give each updated row a key of its own.",
        )
    if changes.older is not None:
        raise OlderRowError(
            f"The new row of {changes.older} of the table {table} has a lesser ordering value than the row that it is "
            "to replace, so that readers would still show the stored row.",
            "Leave the ordering field out of what is set, or give it a value that is not less; or narrow the "
            "condition to rows that are older.",
        )
    if changes.keeps_old is not None:
        raise OptionConflictError(
            f"The new row of {changes.keeps_old} of the table {table} has a value that the table's "
            f"{PARTIAL_UPDATE_MODE} reads as missing, so that readers would still show the value of the stored row.",
            "Give the columns other values, such as coalesce(source.a, target.a); or delete the row first, and insert "
            "it by another write.",
        )


def held_elsewhere(place: RowPlace, table: str) -> DuplicateKeyError:
    """Return the error of a row that comes to the place of an unchanged row."""
    return DuplicateKeyError(
        f"A row for the table {table} would have {place}, which a row of the table has already, and nothing here "
        "changes that row.",
        "Match rows by their key, which updates the stored row; or give the new row another key.",
    )
