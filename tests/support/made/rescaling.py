"""Rescales made by hand: partitions written anew by other numbers of buckets, in the steps of Apache Hudi's manager.

The rows of the partitions go into new file groups under a replacecommit, beside which a rule says the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import (
    FIRST,
    BucketNumbers,
    BucketRule,
    bucket_numbers,
    expression_of,
    write_bucket_rule,
)
from pyhudi.table.schema.columns import META_COLUMNS
from pyhudi.table.table import Table, open_table
from support.drive import plan, read, task

COLOCATED = WriteSettings(colocated=True)


def table_at(path: Path | str) -> Table:
    """Return the table at a path, as it is now."""
    return open_table(open_storage(str(path)))


def numbers_at(path: Path | str) -> BucketNumbers:
    """Return the numbers of buckets in force now."""
    table = table_at(path)
    return bucket_numbers(table, table.timeline())


@dataclass
class Rescale:
    """A rescale by hand, step by step.

    Attributes:
        numbers: The new numbers by partition path.
        notes_first: Whether a rule keeps the numbers from before, as pyhudi does and Apache Hudi does not.
        default: The new number of all other partitions; None where it stays.
    """

    path: Path
    numbers: Mapping[str, int]
    notes_first: bool = True
    default: int | None = None
    settings: WriteSettings = COLOCATED

    def begin(self) -> None:
        """Write the rows of the partitions into new file groups; the instant is inflight then."""
        before = numbers_at(self.path)
        assert before.rule is not None
        self.rule = before.rule
        rows = read(self.path)
        chosen = rows.filter(
            [path in self.numbers for path in rows.column("_hoodie_partition_path").to_pylist()]
        ).drop_columns(list(META_COLUMNS))
        planned = plan(self.path, chosen.schema, operation="insert_overwrite", settings=self.settings)
        pairs = [(expression_of(path), number) for path, number in sorted(self.numbers.items())]
        ours = {expression for expression, _ in pairs}
        kept = [pair for pair in self.rule.expressions if pair[0] not in ours]
        self.new = BucketRule("", self.default or self.rule.default, (*pairs, *kept))
        self.plan: WritePlan = replace(planned, numbers=BucketNumbers(self.new))
        self.results = [task(self.plan, chosen, 0)]

    @property
    def instant(self) -> str:
        """The instant of the rescale."""
        return self.results[0].instant_time

    def note_first(self) -> None:
        """Keep the numbers from before."""
        if self.notes_first and not numbers_at(self.path).by_rule:
            write_bucket_rule(table_at(self.path), replace(self.rule, instant_time=FIRST))

    def note(self) -> None:
        """Write the rule, which waits for the completed file."""
        write_bucket_rule(table_at(self.path), replace(self.new, instant_time=self.instant))

    def complete(self) -> CommitResult:
        """Complete the instant."""
        return commit_write(self.plan, self.results)

    @property
    def steps(self) -> list[Callable[[], object]]:
        """All steps, in their order."""
        return [self.begin, self.note_first, self.note, self.complete]


def rescale(path: Path, numbers: Mapping[str, int], **options: object) -> str:
    """Rescale partitions, and return the instant."""
    made = Rescale(path, numbers, **options)  # type: ignore[arg-type]
    for step in made.steps:
        step()
    return made.instant
