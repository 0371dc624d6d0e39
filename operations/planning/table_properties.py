"""The table properties that a commit writes: those of a new table, or the additions to an existing table's."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import TableNotFoundError
from ...table.config import PROPERTIES_PATH, TableConfig, load_config
from ...table.config.property_keys import ADDED_BY_PYHUDI, CREATE_SCHEMA, INDEX_TYPE
from ...table.table import refuse_other_version
from ..meeting.concurrency import WRITE, Asked, Known, Meeting, Shared, forbids
from ..transaction.outcome import Properties
from .plan import WritePlan


def properties_to_write(plan: WritePlan) -> Properties:
    """Return the properties that the commit writes.

    Raises `CommitConflictError` if another writer created, dropped or replaced the table since the plan, or added
    different properties. A new plan checks the options of the write against the table as it is then.
    """
    if plan.creates_table and not plan.storage.exists(PROPERTIES_PATH):
        return Properties(plan.new_config.properties)
    try:
        config = load_config(plan.storage)
    except TableNotFoundError as error:
        raise plan.transaction.conflict("The table was dropped meanwhile") from error
    if plan.creates_table:
        _check_same_table(plan, config.properties)
    refuse_other_version(plan.table, config)
    _check_same_additions(plan, config.properties)
    _check_same_places(plan, config)
    additions = {key: value for key, value in plan.config_changes.items() if config.properties.get(key) != value}
    return Properties(changes=additions, current=config)


def _check_same_table(plan: WritePlan, stored: Mapping[str, str]) -> None:
    """Refuse a table that another writer created meanwhile with other properties than this write would give it."""
    planned = plan.config.properties
    # The conflict check compares the columns. Properties that only some pyhudi releases add do not conflict.
    compared = {*planned, *stored} - {CREATE_SCHEMA} - (ADDED_BY_PYHUDI - (planned.keys() & stored.keys()))
    differing = sorted(key for key in compared if planned.get(key, "") != stored.get(key, ""))
    if differing and _forbidden():
        key = differing[0]
        raise plan.transaction.conflict(
            f"Another writer created the table meanwhile, with {key}={stored.get(key, '')!r}, but this write has "
            f"{planned.get(key, '')!r}",
        )


def _check_same_additions(plan: WritePlan, stored: Mapping[str, str]) -> None:
    """Refuse a property for which another writer stored a different value meanwhile."""
    for key, value in plan.config_changes.items():
        if stored.get(key, value) != value and _forbidden():
            raise plan.transaction.conflict(
                f"Another writer stored {key}={stored[key]!r} meanwhile, but this write has {value!r}",
            )


def _check_same_places(plan: WritePlan, config: TableConfig) -> None:
    """Refuse a table that was made anew meanwhile if the rows of this write belong in other places there.

    ``config`` has the properties that the table has now. The place of a row is its partition and file group, which the
    compared properties decide. Raises `CommitConflictError`.
    """
    keys = ["record_key_fields", "hash_fields", "partition_fields", "partition_types", "hive_style", "url_encode"]
    names = ["table_type", *keys, "index_type", "bucket_count"]
    if plan.numbers is not None and plan.numbers.by_rule:
        # The property follows the rules, which the decision compares.
        names.remove("bucket_count")
    if INDEX_TYPE in plan.config_changes:
        # The write names an index of the kind that the table notes, so the two need no comparison.
        names.remove("index_type")
    # The table lacks the properties that the write adds, or has the same: see `_check_same_additions`.
    config = TableConfig({**plan.config_changes, **config.properties})
    for name in names:
        planned, stored = getattr(plan.config, name), getattr(config, name)
        if stored is not None and planned != stored and _forbidden():
            raise plan.transaction.conflict(
                f"Another writer made the table anew meanwhile, with {name.replace('_', ' ')} {stored}, but this "
                f"write has {planned}",
            )


def _forbidden() -> bool:
    """Return whether the rules of concurrency forbid two writes to set one property."""
    shared = frozenset({Shared.PROPERTIES})
    return forbids(Meeting(WRITE, WRITE, Known.COMPLETED, shared, Asked.SINCE_PLAN))
