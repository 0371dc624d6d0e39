"""What becomes of an instant that completes: its body, the data files that it changed, the table's properties."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...table.config import TableConfig
from ...table.files.names import FileGroupId

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel


@dataclass(frozen=True, slots=True)
class Properties:
    """What an instant does to the table's properties.

    Attributes:
        new_table: Those of the table that it makes; empty where the table is there.
        changes: Those that it sets in a table that is there; None removes one.
        current: Those that the table has, where the caller has just read them.
    """

    new_table: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str | None] = field(default_factory=dict)
    current: TableConfig | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of an instant that completes.

    Attributes:
        body: What the completed file holds, encoded or not.
        added: Paths of the data files that it makes part of the table.
        removed: Paths of the data files that it deleted.
        replaced: The file groups that readers pass over from then on.
        properties: What it does to the table's properties.
        followed: Whether followers learn of it; not of a savepoint, which changes nothing that readers see.
    """

    body: InstantModel | bytes
    added: Collection[str] = ()
    removed: Collection[str] = ()
    replaced: Collection[FileGroupId] = ()
    properties: Properties = field(default_factory=Properties)
    followed: bool = True
