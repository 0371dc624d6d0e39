"""An index that lives outside of its table, and how pyhudi reports the table's commits to it.

pyhudi never reports a commit within the commit's own transaction: the process may die in between, and other engines
report nothing. So an outside index says up to which moment it knows the table, and pyhudi reports what happened since
before it asks the index. Two processes may report at the same time, and the slower may have looked at the table before
the faster. So the index takes a report only if the report begins at the index's own position, and takes it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from .base import GroupKeys, LookupIndex


@dataclass(frozen=True, slots=True)
class News:
    """What became of a table's file groups between two moments.

    Attributes:
        table: The table's path. An index may serve several tables.
        since: The position that the index must have, as an earlier report gave it in `until`; None if the index
            knows nothing of the table.
        until: The index's position afterwards; a text of some kilobytes.
        anew: Whether the index must first forget all that it knows of the table: `groups` are all of the table's file
            groups.
        undone: Requested times of writes that are no part of the table any more; earlier reports may have included
            them.
        groups: The file groups that changed, each with all keys that it holds now, and without keys if it is gone.
            Iterating reads them, and works once.
    """

    table: str
    since: str | None
    until: str
    anew: bool
    undone: tuple[str, ...]
    groups: Iterable[GroupKeys] = field(repr=False)


@runtime_checkable
class OutsideIndex(LookupIndex, Protocol):
    """An index that looks keys up in a store of its own, in a database for instance.

    A class that inherits from it must define `is_global`, `tag`, `position`, `committed` and `rolled_back`.
    """

    @property
    def asked_by_tasks(self) -> bool:
        """Whether `tag` gives the same answers in any process of a cluster, if the index arrives as a pickle.

        False by default: only the process that commits a write calls `tag`. An index that keeps keys in a file of the
        driver's host must leave it False. On another host it would find no key, and every row would be in the table
        twice.
        """
        return False

    def position(self, table: str) -> str | None:
        """Return the moment up to which the index knows a table.

        Args:
            table: The table's path.

        Returns:
            `News.until` of the last report that the index took; None if it knows nothing of the table.
        """
        ...

    def committed(self, news: News) -> bool:
        """Take note of what writes made of a table's file groups, all of it or nothing.

        Args:
            news: The report.

        Returns:
            True if the index took the report. False, with nothing changed, if the index's position is not
            `News.since`, because another process reported meanwhile.

        Raises:
            Exception: Whatever iterating `News.groups` raises; the index must pass it on and take note of nothing.
        """
        ...

    def rolled_back(self, news: News) -> bool:
        """Take note that the writes which `News.undone` names were undone, as `committed` takes note of commits.

        The file groups come with the keys that they hold now, so that an index that keeps nothing of single writes may
        do the same in both methods.

        Args:
            news: The report.

        Returns:
            As `committed` does.

        Raises:
            Exception: As `committed` does.
        """
        ...
