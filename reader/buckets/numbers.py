"""How many buckets each partition of a snapshot has, or why a join by bucket cannot use the table."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import OptionConflictError, UnsupportedTableError
from ...index.registry import placing_index_for
from ...table.bucket_numbers import bucket_numbers
from ...table.config import TableConfig
from ...table.config import property_keys as key
from ...table.table import Table
from ...timeline.timeline import Timeline
from .hashed_columns import ADVICE


def numbers_of_buckets(table: Table, timeline: Timeline) -> Callable[[str], int]:
    """Return the number of buckets by partition, at the moment that the timeline shows.

    Raises OptionConflictError for a table whose rows have no computed buckets, UnsupportedTableError if their number
    is unknown; so does the result for a partition.
    """
    config, path = table.config, table.path
    why = _why_unindexed(config)
    if why:
        raise OptionConflictError(f"The table {path} {why}, so that its rows are in no particular buckets.", ADVICE)
    # Refuses properties that contradict each other.
    placing_index_for(config)
    numbers = bucket_numbers(table, timeline)
    if numbers.unknown:
        raise UnsupportedTableError(
            f"{numbers.unknown} So it is unknown which buckets of the table {path} belong together.",
            f"See what HudiTable.validate() finds; a write with the option {key.BUCKET_COUNT} notes a number that no "
            f"property has. {ADVICE}",
        )

    def number_of(partition_path: str) -> int:
        number = numbers.of(partition_path)
        if number is None:
            raise UnsupportedTableError(
                f"Java and Python may read a rule of buckets of the table {path} differently for its partition "
                f"{partition_path!r}, so the number of buckets there is unknown.",
                ADVICE,
            )
        return number

    return number_of


def _why_unindexed(config: TableConfig) -> str:
    if config.generates_keys:
        return "generates its record keys"
    if config.index_type not in {None, key.BUCKET}:
        return f"has the index {config.index_type}"
    engine = config.properties.get(key.BUCKET_ENGINE, "")
    return f"has {key.BUCKET_ENGINE}={engine}" if engine.upper() not in {"", "SIMPLE"} else ""
