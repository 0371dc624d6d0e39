"""Damage of the metadata table: what counts as damage, which partition has it, and the warning about it.

Apache Hudi fails at a damaged partition, and a further log file in a damaged file group would be lost with it. So the
decision of the commit that meets the damage takes the partition out of use. The write does not fail, because the rows
of the table are whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from ...errors import PyHudiError, TableError
from ...table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS, group_in
from ...table.metadata.metadata_table import MetadataTable

DAMAGE = (TableError, ValueError, KeyError, TypeError)
"""The errors of reading a damaged file of the metadata table; a store that fails raises others."""

# Each partition with the partitions that need it.
_NEEDED_BY = {FILES: (COLUMN_STATS, PARTITION_STATS), COLUMN_STATS: (PARTITION_STATS,)}


class DamagedPartitionError(Exception):
    """A partition of the metadata table cannot be written to."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason


@contextmanager
def damage_of(name: str) -> Iterator[None]:
    """Raise `DamagedPartitionError` with the name of a partition if the block meets damage."""
    try:
        yield
    except DAMAGE as error:
        raise DamagedPartitionError(name, reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """Return a sentence that says why the metadata table cannot be read, for a warning."""
    return error.what if isinstance(error, PyHudiError) else f"a file of it cannot be read ({error!r})."


def check_folders(metadata: MetadataTable, built: Collection[str]) -> None:
    """Raise `DamagedPartitionError` if the folder of a partition in use lacks file groups or is gone.

    ``built`` are the partitions in use, because a partition that is being built may have no file yet.
    """
    for name in built:
        with damage_of(name):
            file_ids = [*metadata.partition(name).slices]
        if not file_ids:
            raise DamagedPartitionError(name, f"the metadata table has no file of {name} that counts.")
        numbers = [number for number in map(group_in, file_ids) if number is not None]
        # File groups with names of another form have no numbers that could show a gap.
        if len(numbers) == len(file_ids) and sorted(numbers) != [*range(len(numbers))]:
            # The hash of a key would name another file group than before.
            raise DamagedPartitionError(name, f"a file group of {name} is gone from the metadata table.")


def gone_with(name: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the partitions among ``names`` that go out of use with a damaged partition."""
    gone_names = {name, *_NEEDED_BY.get(name, ())}
    return tuple(sorted(set(names) if name == FILES else gone_names & set(names)))


def warning_of(gone_names: Collection[str], reason: str) -> str:
    """Return the warning about partitions that went out of use; it names the call that builds all of them."""
    last_needed = next((name for name in (PARTITION_STATS, COLUMN_STATS) if name in gone_names), FILES)
    what = "The metadata table" if FILES in gone_names else " and ".join(sorted(gone_names))
    return (
        f"{what} went out of use because of damage: {reason} HudiTable.create_index({last_needed!r}) builds it again."
    )
