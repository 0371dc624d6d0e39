"""The table properties that a commit writes: those of a new table, or the additions to an existing table's."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import OptionConflictError
from ...table.config import PROPERTIES_PATH, load_config
from ...table.config.property_keys import ADDED_BY_PYHUDI, CREATE_SCHEMA
from ..transaction.concurrency import WRITE, Asked, Known, Meeting, Shared, Verdict, judge
from ..transaction.outcome import Properties
from .plan import WritePlan


def settle_table(plan: WritePlan) -> Properties:
    """Return the properties that the commit writes.

    Raises:
        OptionConflictError: Another writer created the table meanwhile, or added different properties.
        TableNotFoundError: The table is gone.
    """
    if plan.creates_table and not plan.storage.exists(PROPERTIES_PATH):
        return Properties(plan.new_config.properties)
    found = load_config(plan.storage)
    if plan.creates_table:
        _check_same_table(plan, found.properties)
    _check_same_additions(plan, found.properties)
    additions = {key: value for key, value in plan.config_changes.items() if found.properties.get(key) != value}
    return Properties(changes=additions, current=found)


def _check_same_table(plan: WritePlan, theirs: Mapping[str, str]) -> None:
    ours = plan.config.properties
    # The conflict check compares the columns. Properties that only one pyhudi release adds by itself do not conflict.
    compared = {*ours, *theirs} - {CREATE_SCHEMA} - (ADDED_BY_PYHUDI - (ours.keys() & theirs.keys()))
    differing = sorted(key for key in compared if ours.get(key, "") != theirs.get(key, ""))
    if differing and _forbidden():
        key = differing[0]
        raise OptionConflictError(
            f"Another writer created the table {plan.path} meanwhile, with {key}={theirs.get(key, '')!r} where this "
            f"write has {ours.get(key, '')!r}.",
            "This write changed nothing; write again without these options.",
        )


def _check_same_additions(plan: WritePlan, theirs: Mapping[str, str]) -> None:
    """Refuse a property for which another writer stored a different value meanwhile."""
    for key, value in plan.config_changes.items():
        if theirs.get(key, value) != value and _forbidden():
            raise OptionConflictError(
                f"Another writer stored {key}={theirs[key]!r} in the table {plan.path} meanwhile, where this write "
                f"has {value!r}.",
                "This write changed nothing; find out which value is right and write again.",
            )


def _forbidden() -> bool:
    """Return whether the rules of concurrency forbid two writes to set one property."""
    shared = frozenset({Shared.PROPERTIES})
    return judge(Meeting(WRITE, WRITE, Known.COMPLETED, shared, Asked.SINCE_PLAN)) is not Verdict.GO_ON
