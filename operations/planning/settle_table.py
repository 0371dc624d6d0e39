"""What a commit does to the table's properties: made with the table, taught, or told that readers list files again."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import OptionConflictError
from ...table.config import PROPERTIES_PATH, load_config
from ...table.config.property_keys import ADDED_BY_PYHUDI, CREATE_SCHEMA
from ..transaction.concurrency import WRITE, Asked, Known, Meeting, Shared, Verdict, judge
from ..transaction.outcome import Properties
from .plan import WritePlan


def settle_table(plan: WritePlan) -> Properties:
    """Return the properties of the table that the write creates, and those that it changes in an existing one.

    Raises:
        OptionConflictError: Another writer made the table meanwhile, or taught it something else.
        TableNotFoundError: The table is gone.
    """
    if plan.creates_table and not plan.storage.exists(PROPERTIES_PATH):
        return Properties(plan.new_config.properties)
    found = load_config(plan.storage)
    if plan.creates_table:
        _check_same_table(plan, found.properties)
    _check_same_lesson(plan, found.properties)
    lesson = {key: value for key, value in plan.config_changes.items() if found.properties.get(key) != value}
    return Properties(changes=lesson, current=found)


def _check_same_table(plan: WritePlan, theirs: Mapping[str, str]) -> None:
    ours = plan.config.properties
    # Whether the columns of both go together was looked at before. Another release adds other properties by itself.
    compared = {*ours, *theirs} - {CREATE_SCHEMA} - (ADDED_BY_PYHUDI - (ours.keys() & theirs.keys()))
    differing = sorted(key for key in compared if ours.get(key, "") != theirs.get(key, ""))
    if differing and _forbidden():
        key = differing[0]
        raise OptionConflictError(
            f"Another writer created the table {plan.path} meanwhile, with {key}={theirs.get(key, '')!r} where this "
            f"write has {ours.get(key, '')!r}.",
            "Nothing of this write is left; write again without these options.",
        )


def _check_same_lesson(plan: WritePlan, theirs: Mapping[str, str]) -> None:
    """Refuse to teach the table something else than another writer taught it meanwhile."""
    for key, value in plan.config_changes.items():
        if theirs.get(key, value) != value and _forbidden():
            raise OptionConflictError(
                f"Another writer told the table {plan.path} meanwhile that {key} is {theirs[key]!r}; this write has "
                f"{value!r}.",
                "Nothing of this write is left; find out which is right and write again.",
            )


def _forbidden() -> bool:
    """Return whether two writes must not settle one property each in its way."""
    shared = frozenset({Shared.PROPERTIES})
    return judge(Meeting(WRITE, WRITE, Known.COMPLETED, shared, Asked.SINCE_PLAN)) is not Verdict.GO_ON
