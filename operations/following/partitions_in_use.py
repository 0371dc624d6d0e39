"""The partitions of the metadata table that a table's properties name: those in use, and those that are being built.

Other software changes the same properties, and each engine replaces their file as a whole. So a change says which names
come and go, and begins with a fresh read of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ...errors import ConcurrentWriteError
from ...storage.base import Storage
from ...table.config import TableConfig, load_stamped, replace_config
from ...table.config.property_keys import METADATA_INFLIGHT, METADATA_PARTITIONS
from ...table.metadata.kinds import FILES

_ROUNDS = 20


def being_built(config: TableConfig) -> tuple[str, ...]:
    """Return the partitions that an indexing builds: writers write to them, readers skip them."""
    return tuple(sorted({*config.metadata_being_built}))


def written_partitions(config: TableConfig) -> tuple[str, ...]:
    """Return the partitions to which each write must write, sorted."""
    return tuple(sorted({*config.metadata_partitions, *being_built(config)}))


def change_partitions(
    storage: Storage,
    *,
    adds: Collection[str] = (),
    begins: Collection[str] = (),
    drops: Collection[str] = (),
    binds: Callable[[], bool] = lambda: True,
) -> None:
    """Change which partitions the properties name; without ``files`` no other partition is in use.

    Args:
        adds: Built partitions that come into use, except those that are no longer being built: a drop stopped their
            indexing, so they lack later records.
        begins: Partitions that an indexing begins to build, unless they are in use.
        drops: Partitions that go out of use, or are no longer built.
        binds: Called after the properties are read; returns whether the change is still to be made.
    """
    for _ in range(_ROUNDS if adds or begins or drops else 0):
        stored_properties = load_stamped(storage)
        changes = changed_names(stored_properties.config, adds=adds, begins=begins, drops=drops)
        if not changes or not binds():
            return
        # If others replace the file in between, the next round begins.
        replace_config(storage, stored_properties.checksum, changes)
    if adds or begins or drops:
        raise ConcurrentWriteError(
            f"Other software changed the properties of the table {storage.path} {_ROUNDS} times in a row, while the "
            "partitions of its metadata table that are in use were about to change.",
            "Run it again.",
        )


def changed_names(
    config: TableConfig, *, adds: Collection[str] = (), begins: Collection[str] = (), drops: Collection[str] = ()
) -> Mapping[str, str]:
    """Return the properties that a change of partitions sets, as `change_partitions`; none if nothing changes."""
    building = {*being_built(config)}
    in_use = ({*config.metadata_partitions} | ({*adds} & building)) - {*drops}
    if FILES not in in_use:
        in_use = set()
    building = (building | ({*begins} - in_use)) - {*drops} - {*adds}
    properties = {METADATA_PARTITIONS: ",".join(sorted(in_use)), METADATA_INFLIGHT: ",".join(sorted(building))}
    return {key: text for key, text in properties.items() if config.properties.get(key, "") != text}
