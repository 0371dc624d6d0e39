"""The steps from one table version to another: what each changes, and which tables it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ....errors import InvalidOptionError, TableVersionError, UnsupportedTableError
from ....table.buckets.numbers import bucket_numbers, has_own_rules
from ....table.config import TableConfig, check_merging, check_supported, refuse_newer_format
from ....table.config import property_keys as key
from ....table.config.version_changes import (
    changes_from_6_to_8,
    changes_from_6_to_9,
    changes_to_8,
    changes_to_9,
    lost_from_6,
    lost_in_8,
    lost_in_9,
)
from ....table.inferred.key_encoding import noted_key_encoding
from ....table.left_behind import refuse_instants_left_by_upgrade
from ....table.table import Table

UPGRADE, DOWNGRADE = "upgrade", "downgrade"
_OLDEST = 6
# The first release of Apache Hudi that opens tables of the newest version.
FIRST_RELEASE_OF_NEWEST = "1.1"


@dataclass(frozen=True, slots=True)
class VersionStep:
    """How a table gets from one version to another.

    Attributes:
        changes: Returns the changes of a table's properties; None removes a property.
        lost: Yields the properties that have no equivalent in the other version.
        copies: Whether the other version has its timeline in another layout, so that instants are copied first and the
            old files go last.
    """

    before: int
    after: int
    changes: Callable[[TableConfig], Mapping[str, str | None]]
    lost: Callable[[TableConfig], Iterable[tuple[str, str]]]
    copies: bool = False

    @property
    def name(self) -> str:
        """The call that takes the step: upgrade or downgrade."""
        return UPGRADE if self.before < self.after else DOWNGRADE

    def compacts(self, table: Table) -> bool:
        """Return whether log files are merged first, as readers of the other version merge them by other rules."""
        return self.copies and table.config.table_type == key.MERGE_ON_READ

    def refuse(self, table: Table) -> None:
        """Raise `UnsupportedTableError` for a table that this step cannot bring whole to the version ``after``.

        That is a table that pyhudi does not support, or with instants that an interrupted upgrade left; with a property
        that the other version lacks; with log files that pyhudi cannot merge first; or, in a downgrade, with different
        numbers of buckets.
        """
        refuse_newer_format(table.config, table.path)
        refuse_instants_left_by_upgrade(table)
        check_supported(table.config, table.path, writing=False)
        for option, text in self.lost(table.config):
            raise UnsupportedTableError(
                f"The {self.name} of the table {table.path} to version {self.after} cannot carry over {option}={text}, "
                "which has no equivalent there.",
                "Write its rows into a new table of that version.",
            )
        if self.compacts(table):
            try:
                check_merging(table.config, table.path)
            except UnsupportedTableError as error:
                raise UnsupportedTableError(
                    f"The {self.name} of the table {table.path} has to compact it first. {error.what}",
                    "Compact and upgrade it with Apache Hudi 1.2, then use pyhudi.",
                ) from error
        if self.after < self.before and table.config.has_buckets and bucket_numbers(table, table.timeline()).differ:
            raise UnsupportedTableError(
                f"The {self.name} of the table {table.path} to version {self.after} cannot carry over that its "
                "partitions have different numbers of buckets.",
                "Give all of them the same number first: HudiTable.rescale_buckets(n, whole_table=True).",
            )

    def properties(self, table: Table, stored: TableConfig, spelling: str | None) -> dict[str, str | None]:
        """Return the changes of a table's stored properties, None to remove one.

        ``spelling`` is how the table's keys are spelled, for the property that notes that; None if no note is
        needed.
        """
        changes = dict(self.changes(stored))
        if spelling is not None:
            changes[key.COMPLEX_KEY_ENCODING] = spelling
        if stored.properties.get(key.INITIAL_VERSION) == str(self.after) and has_own_rules(table):
            # A table whose first version is its current version counts as a table without such rules.
            changes[key.INITIAL_VERSION] = str(self.before)
        return {option: text for option, text in changes.items() if stored.properties.get(option) != text}


_STEPS = {
    (step.before, step.after): step
    for step in (
        VersionStep(6, 8, changes_from_6_to_8, lost_from_6, copies=True),
        VersionStep(6, 9, changes_from_6_to_9, lost_from_6, copies=True),
        VersionStep(8, 9, changes_to_9, lost_in_9),
        VersionStep(9, 8, changes_to_8, lost_in_8),
    )
}


def step_of(table: Table, name: str, to: int) -> VersionStep | None:
    """Return the step that brings a table to a version; None if it has that version.

    Raises `InvalidOptionError` for a version that the call cannot reach, and `TableVersionError` for a table version
    from which there is no step.
    """
    version = table.config.version
    reached = sorted({step.after for step in _STEPS.values() if step.name == name})
    if to not in reached:
        raise InvalidOptionError(
            f"The {name} of the table {table.path} was called with to={to}.",
            f"It leads to version {', '.join(map(str, reached))}; pyhudi brings no table to another version.",
        )
    if version == to:
        return None
    if version < _OLDEST:
        raise TableVersionError(
            f"The table {table.path} is of version {version}, which pyhudi does not {name} yet.",
            "Upgrade it with Apache Hudi 0.14 first, then use pyhudi.",
        )
    step = _STEPS.get((version, to))
    if step is None or step.name != name:
        other_name = UPGRADE if name == DOWNGRADE else DOWNGRADE
        raise InvalidOptionError(
            f"The {name} of the table {table.path} to version {to} was called, and the table is of version {version}.",
            f"Call HudiTable.{other_name}(to={to}).",
        )
    return step


def offered_upgrade(table: Table) -> VersionStep | None:
    """Return the step to the newest version; None if the table has that version, or cannot be brought to it."""
    step = _STEPS.get((table.config.version, key.NEWEST_VERSION))
    if step is None:
        return None
    try:
        step.refuse(table)
    except UnsupportedTableError:
        return None
    return step


def spelling_of(table: Table) -> str | None:
    """Return how a table spells keys of one field, from its rows; None if such keys have only one spelling.

    Raises `UnsupportedTableError` if the table has keys in both spellings.
    """
    return noted_key_encoding(table)


def warnings_of(before: TableConfig, step: VersionStep, after: TableConfig, spelling: str | None) -> tuple[str, ...]:
    """Return warnings of what another engine or a later write does differently in the other version.

    `before` and `after` are the table's properties, and `spelling` is how it spells keys, None if they have only one
    spelling.
    """
    warnings = []
    of_after = f"version {step.after}"
    if step.copies and before.ordering_fields and before.payload is None:
        warnings.append(
            f"In {of_after} the greatest value of {', '.join(before.ordering_fields)} decides which row of a key wins: "
            "the table does not name a payload class, and Apache Hudi 0.15 lets the newest row win there by default"
        )
    if before.merge_mode != after.merge_mode:
        warnings.append(
            f"In {of_after} the table has the merge mode {after.merge_mode} instead of {before.merge_mode}, "
            f"by which later writes and reads of log files choose among the rows of a key"
        )
    if before.ordering_fields != after.ordering_fields:
        warnings.append(
            f"In {of_after} rows are ordered by {', '.join(after.ordering_fields) or 'nothing'} instead of "
            f"{', '.join(before.ordering_fields) or 'nothing'}"
        )
    if after.merge_mode == key.CUSTOM:
        warnings.append(
            f"In {of_after} a class decides which row wins, {after.properties.get(key.PAYLOAD_CLASS)}: pyhudi neither "
            "merges the log files of such a table nor writes it"
        )
    usual_spelling = key.FIELD_PREFIXED if step.after >= key.NEWEST_VERSION else key.VALUE_ONLY
    if spelling is not None and spelling != usual_spelling:
        warnings.append(
            f"The table spells keys in the way {spelling}, and Apache Hudi by default in the way {usual_spelling} in "
            f"{of_after}: it would write each key a second time"
        )
    return tuple(warnings)
