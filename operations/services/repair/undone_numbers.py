"""Deletes the number of buckets of a rescale that Apache Hudi rolled back, if no later write may have used it."""

from __future__ import annotations

from dataclasses import dataclass

from ....table.bucket_numbers import delete_bucket_rule, rule_files
from ....table.config.property_keys import BUCKET_COUNT
from ....table.table import Table, open_table
from ...checks.finding import Findings
from ...checks.undone_rescales import UndoneRescale, undone_rescales
from ...inspect.validate import STALE_S, read_subject
from ...transaction.commit_path import exclusive
from ..bucket_property import follow_rules


@dataclass(frozen=True, slots=True)
class UndoneNumbers:
    """The rescales whose numbers are deleted, and the reasons why the numbers of others stay."""

    rescales: tuple[UndoneRescale, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(
            f"Delete {rescale.file.path}, the number of buckets of the rescale {rescale.file.instant_time}, which was "
            "rolled back."
            if rescale.file.for_java
            else f"Set {BUCKET_COUNT} to the number from before the rescale {rescale.file.instant_time}, which was "
            "rolled back."
            for rescale in self.rescales
        )


def find_undone(table: Table) -> UndoneNumbers:
    """Return the numbers of rescales that were rolled back; a number stays if a later write may have used it.

    Without the rule, readers would look a key up by the number from before, and miss the rows of such a write.
    """
    if not rule_files(table):
        return UndoneNumbers()
    subject = read_subject(Findings(table.storage, STALE_S))
    rescales = () if subject is None else undone_rescales(subject)
    stays = tuple(rescale for rescale in rescales if rescale.file.for_java and rescale.since)
    return UndoneNumbers(
        tuple(rescale for rescale in rescales if rescale not in stays),
        tuple(f"{rescale.file.path} stays: {rescale.what.rstrip('.')}" for rescale in stays),
    )


def delete_undone(table: Table, undone: UndoneNumbers) -> str:
    """Delete the rules, and set the property to match; return what the user has to change in jobs of Apache Hudi."""
    exclusive(table, lambda _: _delete_rules(table, undone))
    return follow_rules(open_table(table.storage))


def _delete_rules(table: Table, undone: UndoneNumbers) -> None:
    for rescale in undone.rescales:
        delete_bucket_rule(table, rescale.file.instant_time)
