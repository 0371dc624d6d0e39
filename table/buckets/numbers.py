"""How many buckets each partition has at a moment: the rule files of a table, and which of them is in force.

A rescale brings a rule, under its own instant, and `FIRST` is the instant of the numbers before the first rescale. Of
the rules whose instants are complete at a moment, that of the greatest instant is in force. Apache Hudi asks whether an
instant is pending instead, and so obeys the rule of a rolled-back instant. If the two would differ, the number of
buckets is unknown here.

Tables of versions before 9 have Java writers that know no rules, so that a rescale of all partitions at once brings a
file of pyhudi's in `OWN`. A table without rules has the number in its properties, at every moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ...errors import CorruptFileError, TableConfigError, UnsupportedTableError
from ...storage.base import Storage, join, split
from ...storage.bounds import MOST_OF_PROPERTIES
from ...storage.kept import keep
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import ROOT
from ...timeline.writers.seals import KEPT_S
from ..config.table_config import TableConfig
from ..files.view import FileView
from ..seen_table import SeenTable
from ..table import Table
from .rules import ENDING, FIRST, BucketRule, expression_of

# Below it, ``archive`` has rules that Apache Hudi took out of ``configs``: those from before the timeline.
APACHE = ".hoodie/.bucket_index/partition_bucket_index_meta"
OWN = f"{ROOT}/buckets"
_CONFIGS = f"{APACHE}/configs"
_OWN_ENDING = ".json"
_TIME = re.compile(r"[0-9]{14,17}")
_ARCHIVED: dict[tuple[str, str], Instant] = {}
_MOST_ARCHIVED = 256


@dataclass(frozen=True, slots=True)
class BucketNumbers:
    """How many buckets each partition has at one moment; small, so that it travels with plans and tasks.

    Attributes:
        rule: The rule in force; None if it is unknown.
        unknown: Why the number is unknown, a sentence that names the file and its instant; empty if it is known.
        seen: The table at that moment, if an index may have to look into its files; else None, as for a table
            without files.
    """

    rule: BucketRule | None
    unknown: str = ""
    seen: SeenTable | None = field(default=None, repr=False, compare=False)

    def of(self, partition_path: str) -> int | None:
        """Return the number of buckets of a partition; None if it is unknown, so that nothing may rest on it."""
        if self.rule is None or not self.rule.reads_alike(partition_path):
            return None
        return self.rule.number_of(partition_path)

    def view(self) -> FileView | None:
        """Return the table's file slices at the moment, if an index may have to look into them; else None."""
        return None if self.seen is None else self.seen.view

    @property
    def default(self) -> int | None:
        """The number of a partition that no expression finds; None if it is unknown."""
        return None if self.rule is None else self.rule.default

    @property
    def differ(self) -> bool:
        """Whether partitions may have different numbers."""
        rule = self.rule
        return rule is None or any(number != rule.default for _, number in rule.expressions)

    @property
    def by_rule(self) -> bool:
        """Whether a rule file says the numbers, not the table's properties."""
        return self.rule is None or self.rule.instant_time != ""

    @property
    def by_rescale(self) -> bool:
        """Whether the rule in force is of a rescale, not of the table's first numbers."""
        return self.rule is not None and self.rule.instant_time not in {"", FIRST}


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A rule file; ``for_java`` says whether Apache Hudi goes by it now."""

    path: str
    instant_time: str
    for_java: bool


def numbers_of_property(config: TableConfig) -> BucketNumbers:
    """Return the numbers of a table without rule files: one for all partitions, unknown if no property notes it."""
    if config.bucket_count is None:
        return BucketNumbers(None, f"The properties of the table {config.name!r} note no number of buckets.")
    return BucketNumbers(BucketRule("", config.bucket_count))


def bucket_numbers(table: Table, timeline: Timeline) -> BucketNumbers:
    """Return how many buckets each partition has at the moment that a timeline shows, or why that is unknown.

    A table without rule files costs one listing, of a version before 9 two.
    """
    numbers = _numbers(table, timeline)
    return replace(numbers, seen=SeenTable(table, timeline)) if table.config.has_two_key_rules else numbers


def _numbers(table: Table, timeline: Timeline) -> BucketNumbers:
    """Return how many buckets partitions have, by the newest rule file of ``table`` whose instant is complete.

    An instant counts as complete if it is so at the moment that ``timeline`` shows. The numbers are unknown, with a
    reason, if Apache Hudi may obey another file. A table without rule files has the number in its properties.
    """
    files = rule_files(table)
    if not files:
        return numbers_of_property(table.config)
    for file in reversed(files):
        state = _state_of(table, timeline, file.instant_time)
        if state == State.COMPLETED:
            return _numbers_in(table.storage, file)
        # The rule of a pending instant is not in force yet, so that an older rule counts. Apache Hudi obeys the rule of
        # an instant that is not pending; pyhudi passes over its own file.
        if state is None and file.for_java:
            return BucketNumbers(
                None,
                f"The rule file {file.path} says how many buckets partitions of the table {table.path} have, and its "
                f"instant {file.instant_time} is neither completed nor pending.",
            )
    return BucketNumbers(
        None,
        f"No rule file of the table {table.path} says how many buckets its partitions had before the instant "
        f"{files[0].instant_time}.",
    )


def rules_without_instant(table: Table, timeline: Timeline) -> list[RuleFile]:
    """Return the rule files that are newer than the rule in force and whose instants the table does not know.

    A rescale that was rolled back may leave such a file. Without a completed rescale, all files are newer.
    """
    unknown = []
    for file in reversed(rule_files(table)):
        state = _state_of(table, timeline, file.instant_time)
        if state == State.COMPLETED:
            break
        if state is None:
            unknown.append(file)
    return unknown


def refuse_unknown(numbers: BucketNumbers) -> None:
    """Raise UnsupportedTableError if the numbers of buckets are unknown, so that no write may place rows."""
    if numbers.unknown:
        raise UnsupportedTableError(
            f"{numbers.unknown} So it is unknown in which bucket a key belongs.",
            "See what validate() finds: HudiTable.repair() deletes the rule of a rescale that was rolled back, and "
            "Apache Hudi's procedure partition_bucket_index_manager rolls one back; until then read the table.",
        )


def rule_files(table: Table) -> list[RuleFile]:
    """Return the rule files of a table in order of their instants, of one instant Apache Hudi's last."""
    files = list(_rule_files_in(table.storage, APACHE, ENDING))
    # A table that was upgraded keeps the rules from before.
    if not table.format.bucket_rules or not table.config.is_of_first_version:
        files += _rule_files_in(table.storage, OWN, _OWN_ENDING)
    return sorted(files, key=lambda file: (file.instant_time, file.path.startswith(APACHE), file.for_java))


def has_own_rules(table: Table) -> bool:
    """Return whether a rescale of another version than 9 left rules, which Apache Hudi does not know."""
    return any(_rule_files_in(table.storage, OWN, _OWN_ENDING))


def rule_file(table: Table, rule: BucketRule) -> tuple[str, bytes]:
    """Return the path and the content of a rule's file, where Java's writers read it if they know rules."""
    own = not table.format.bucket_rules
    return _path_of(rule.instant_time, own=own), rule.encode(own=own)


def write_bucket_rule(table: Table, rule: BucketRule) -> None:
    """Make the file of a rule; a second call changes nothing.

    Raises TableConfigError if another rule of the same instant is there.
    """
    path, content = rule_file(table, rule)
    if table.storage.create(path, content) or table.storage.read(path, MOST_OF_PROPERTIES) == content:
        return
    # Another spelling of the same numbers is no conflict.
    stored = _numbers_in(table.storage, RuleFile(path, rule.instant_time, for_java=True)).rule
    if stored is None or (stored.default, _expressions_in_file(stored)) != (rule.default, _expressions_in_file(rule)):
        raise TableConfigError(
            f"The file {path} of the table {table.path} exists, and says other numbers of buckets than this rescale.",
            "Look at the table's history for the rescale of that instant, and at the file.",
        )


def delete_bucket_rule(table: Table, instant_time: str) -> None:
    """Delete the file of a rule, before its instant is given up or rolled back."""
    table.storage.delete(_path_of(instant_time, own=False), _path_of(instant_time, own=True))
    # Apache Hudi fails at a table whose folder of rules is empty.
    table.storage.sweep([_CONFIGS], KEPT_S, empty=True)


def _expressions_in_file(rule: BucketRule) -> tuple[tuple[str, int], ...]:
    """Return a rule's expressions; one for all paths stands in for none, as `BucketRule.encode` writes it."""
    return rule.expressions or (("^", rule.default),)


def _path_of(instant_time: str, *, own: bool) -> str:
    """Return the path of an instant's rule file; with ``own`` of pyhudi's file, which Java's writers do not read."""
    return join(OWN, f"{instant_time}{_OWN_ENDING}") if own else join(_CONFIGS, f"{instant_time}{ENDING}")


def _rule_files_in(storage: Storage, folder: str, ending: str) -> Iterator[RuleFile]:
    """Yield the rule files below a folder, whose names end with ``ending``.

    Other files, such as ``.commit`` files of Apache Hudi, are passed over.
    """
    for info in storage.list(folder, recursive=True, strict=False):
        where, name = split(info.path)
        if name.endswith(ending) and _TIME.fullmatch(name.removesuffix(ending)):
            yield RuleFile(info.path, name.removesuffix(ending), where == _CONFIGS)


def _numbers_in(storage: Storage, file: RuleFile) -> BucketNumbers:
    """Return the numbers that a rule file says; unknown, with the reason, if it is gone, damaged or not supported."""
    where = join(storage.path, file.path)
    try:
        return BucketNumbers(BucketRule.parse(file.instant_time, storage.read(file.path, MOST_OF_PROPERTIES), where))
    except FileNotFoundError:
        return BucketNumbers(None, f"The rule file {where}, which was in force, is gone since it was listed.")
    except (CorruptFileError, UnsupportedTableError) as error:
        return BucketNumbers(None, error.what)


def _state_of(table: Table, timeline: Timeline, instant_time: str) -> State | None:
    """Return the state of a rule's instant at the timeline's moment; None if the table knows no such instant.

    An instant that was requested after that moment counts as requested.
    """
    if instant_time == FIRST:
        return State.COMPLETED
    active = timeline.write_at(instant_time)
    if active is not None:
        return active.state
    archived = _archived_write(table, instant_time)
    if archived is not None:
        first_active = next((instant.requested_time for instant in timeline.instants if instant.is_write), "")
        archived_before = not first_active or instant_time < first_active
        # An archived write of a timeline of the present counts if it is older than all active writes.
        was_there = archived_before if timeline.seen is None else timeline.seen.saw_archived(archived)
        return State.COMPLETED if was_there else State.REQUESTED
    # It may have been requested since the timeline was listed.
    return None if timeline.reload().write_at(instant_time) is None else State.REQUESTED


def _archived_write(table: Table, instant_time: str) -> Instant | None:
    """Return the archived write with a requested time, None if there is none.

    A write stays archived, so a process looks for it in the archive until it is there, and then no more.
    """
    name = (table.path, instant_time)
    instant = _ARCHIVED.get(name) or table.archive.write_at(instant_time)
    if instant is not None:
        keep(_ARCHIVED, name, instant, _MOST_ARCHIVED)
    return instant


__all__ = [
    "APACHE",
    "FIRST",
    "OWN",
    "BucketNumbers",
    "BucketRule",
    "RuleFile",
    "bucket_numbers",
    "delete_bucket_rule",
    "expression_of",
    "has_own_rules",
    "numbers_of_property",
    "refuse_unknown",
    "rule_file",
    "rule_files",
    "rules_without_instant",
    "write_bucket_rule",
]
