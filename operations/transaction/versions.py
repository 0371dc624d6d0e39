"""A table that is upgraded or downgraded while a process is at work on it: what was planned before gives way.

Its instants would go where readers of the other version do not look, in bodies that these do not read.
"""

from __future__ import annotations

from ...errors import CommitConflictError
from ...table.config import TableConfig, stored_config
from ...table.config.property_keys import LAYOUT_VERSION
from ...table.table import Table


def refuse_other_version(table: Table, found: TableConfig | None = None) -> None:
    """Raise `CommitConflictError` where a table has another version, or timeline layout, than when it was opened.

    ``found`` are the properties, where the caller has just read them. A table that is not made yet has none.
    """
    now = stored_config(table.storage) if found is None else found
    if now is None or _version(now) == _version(table.config):
        return
    way = "downgraded" if now.version < table.config.version else "upgraded"
    raise CommitConflictError(
        f"The table {table.path} was {way} meanwhile, from {_version(table.config)} to {_version(now)}, while this "
        "process was at work on it.",
        "Run it again, which reads the table anew.",
    )


def _version(config: TableConfig) -> str:
    return f"version {config.version} (timeline layout {config.properties[LAYOUT_VERSION]})"
