"""The table of a write, as it is or as the write will make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import TableNotFoundError
from ...index.registry import index_for
from ...storage.base import Storage
from ...table.bucket_metadata import refuse_recorded_buckets
from ...table.config import TableConfig, check_supported, load_config
from ...table.config.property_keys import BUCKET, INDEX_TYPE
from ...table.infer_index import infer_index, is_unnoted
from ...table.infer_key_encoding import with_inferred_key_encoding
from ...table.infer_zone import infer_zone
from ...table.table import Table
from .adopted_table import AdoptedTable
from .new_table import NewTable
from .operation import DELETE, DELETE_PARTITION, OVERWRITE_TABLE, Operation, choose_operation, makes_keyless
from .request import WriteRequest


@dataclass(frozen=True, slots=True)
class Target:
    """The table of a write.

    Attributes:
        exists: Whether the table exists before the write.
        changes: Properties that the write's commit adds to an existing table.
        inferred: Whether only the names of its file groups say which index it has.
    """

    table: Table
    exists: bool
    changes: Mapping[str, str]
    operation: Operation
    inferred: bool = False

    @property
    def config(self) -> TableConfig:
        return self.table.config


def find_target(request: WriteRequest, storage: Storage, *, creates: bool = True) -> Target:
    """Return the table of a write, having checked the options of the request against it.

    Args:
        creates: Whether the write may create the table.
    """
    try:
        found = load_config(storage)
    except TableNotFoundError:
        if not creates:
            raise
        keyless = makes_keyless(request)
        operation = choose_operation(request, generates_keys=keyless)
        if operation.name in {DELETE, DELETE_PARTITION}:
            raise
        found = None
    if found is None:
        new = NewTable(request.table, storage.path).config(generates_keys=keyless)
        return Target(Table(storage, new), False, {}, operation)
    operation = choose_operation(request, generates_keys=found.generates_keys)
    check_supported(found, storage.path, writing=True)
    if is_unnoted(found):
        refuse_recorded_buckets(storage)
    spelt = with_inferred_key_encoding(Table(storage, found)).config
    zone = infer_zone(Table(storage, found), request.table.time_options)
    asked = replace(request.table, time_options={**request.table.time_options, **zone})
    config, changes = AdoptedTable(asked, storage.path).changes_to(
        spelt,
        lambda: infer_index(Table(storage, found)),
        rewrites=operation.name == OVERWRITE_TABLE,
    )
    if config.index_type not in {None, BUCKET}:
        index_for(config, request.write.lookup)
    # A delete of partitions reads no key that could contradict a number of buckets.
    noted = {option: text for option, text in spelt.properties.items() if option not in found.properties}
    changes = {} if operation.name == DELETE_PARTITION else {**noted, **changes}
    return Target(Table(storage, config), True, changes, operation, is_unnoted(found) and INDEX_TYPE not in changes)
