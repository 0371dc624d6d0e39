"""An index that lives outside of its table: what it is told of the table's commits, so that it knows what it is asked.

A commit is never told of in its own transaction: the process may die in between, and other engines tell nobody. So such
an index says how far it knows the table, and before it is asked it is told what happened since. Whoever tells it may
have looked at the table before another one did who is done already; what an index takes note of therefore begins where
it stands, or is left out as a whole.
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
        since: The moment at which the index has to stand, as it was given as `until` before; None where it knows
            nothing of the table.
        until: The moment at which it stands afterwards; a text of some kilobytes.
        anew: Whether all that it knows of the table is to be forgotten first: `groups` are all that there are.
        undone: Requested times of the writes, of which it may have been told, that are no part of the table any more.
        groups: The file groups that changed, each with all keys that it holds now, and without keys where it is gone.
            They are read while they are gone through, which can be done once.
    """

    table: str
    since: str | None
    until: str
    anew: bool
    undone: tuple[str, ...]
    groups: Iterable[GroupKeys] = field(repr=False)


@runtime_checkable
class OutsideIndex(LookupIndex, Protocol):
    """An index that looks keys up in something that it keeps itself, in a database for instance.

    A class that inherits from it has to say whether it `is_global`, and to define `tag` and what follows here.
    """

    @property
    def asked_by_tasks(self) -> bool:
        """Whether `tag` gives the same answers in any process of a cluster, to which the index is sent as a pickle.

        False, so that it is asked where its writes are committed. What keeps keys in a file of the driver's host must
        leave it so: elsewhere it would find no key, and every row would be there twice.
        """
        return False

    def position(self, table: str) -> str | None:
        """Return the moment up to which it knows a table, None where it knows nothing of it.

        Args:
            table: The table's path.
        """
        ...

    def committed(self, news: News) -> bool:
        """Take note of what writes made of a table's file groups, all of it or nothing.

        Whatever `groups` raises is to be let through, and nothing is then to be noted.

        Returns:
            False, and nothing changed, where the index does not stand at `News.since`: somebody else told it meanwhile.
        """
        ...

    def rolled_back(self, news: News) -> bool:
        """Take note that writes were undone, which `News.undone` names, as `committed` does of the others.

        The file groups come with the keys that they hold now, so that an index that keeps nothing of single writes does
        the same in both.

        Returns:
            As `committed` does.
        """
        ...
