"""Rescales that Apache Hudi rolled back, and whose number of buckets is still noted.

Apache Hudi's ``rollback_to_instant`` brings the earlier file groups back, but leaves the rule file, which its writers
follow whatever became of the rule's instant. In tables of version 8 it leaves the property, with which its jobs must
agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...table.buckets.numbers import RuleFile, rules_without_instant
from ...table.config import property_keys as key
from ...timeline.instants import Instant
from .bodies import is_by_pyhudi, undone_instants
from .subject import Subject, called


@dataclass(frozen=True, slots=True)
class UndoneRescale:
    """A rule file whose rescale was rolled back.

    Attributes:
        undone_by: The rollback or the restore.
        later_writes: The writes of other engines that completed since then, and may have followed the rule.
        what: What is wrong, for `validate` and `repair`.
    """

    file: RuleFile
    undone_by: Instant
    later_writes: tuple[Instant, ...]
    what: str


def undone_rescales(subject: Subject) -> tuple[UndoneRescale, ...]:
    """Return the rescales that were rolled back and whose numbers writers of Apache Hudi still follow."""
    if subject.config.index_type not in {None, key.BUCKET}:
        return ()
    files = rules_without_instant(subject.table, subject.timeline)
    victims = undone_instants(subject) if files else {}
    in_use = [file for file in files if file.instant_time in victims and (file.for_java or _property_differs(subject))]
    return tuple(_with_sentence(subject, file, victims[file.instant_time]) for file in in_use)


def _property_differs(subject: Subject) -> bool:
    """Return whether the property has another number of buckets than the rule file that pyhudi follows."""
    numbers = subject.numbers
    return (
        numbers is not None
        and numbers.by_rule
        and not numbers.differ
        and numbers.default != subject.config.bucket_count
    )


def _with_sentence(subject: Subject, file: RuleFile, undone_by: Instant) -> UndoneRescale:
    """Return an undone rescale with the writes that may have followed its rule, and the sentence of its finding."""
    later_writes = tuple(
        instant
        for instant in subject.timeline.writes
        if instant.visible_since > undone_by.visible_since and not is_by_pyhudi(subject, instant)
    )
    what_stays = file.path if file.for_java else f"{key.BUCKET_COUNT}={subject.config.bucket_count}"
    what = f"The {called(undone_by)} undid the rescale {file.instant_time}, and {what_stays} "
    what += "stays, which Apache Hudi follows."
    if later_writes:
        write_names = ", ".join(map(called, later_writes))
        what += f" These writes may have put keys into other buckets than those of their rows: {write_names}."
    return UndoneRescale(file, undone_by, later_writes, what)
