"""Tables of drawn histories with the metadata table which Apache Hudi would have made, and which each step keeps.

What pyhudi shows by it is what it shows without it: all rows, those of drawn conditions, now and at other moments.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyhudi.errors import UnreadableTimeError
from pyhudi.reader.query import AsOf, Changes, Query
from pyhudi.reader.row_filter import read_where
from pyhudi.reader.scan import scan
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import PROPERTIES_PATH, load_config
from pyhudi.table.config.property_keys import METADATA_PARTITIONS
from pyhudi.table.hfile.blocks import Compression
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from pyhudi.table.metadata.metadata_table import FOLDER
from pyhudi.table.table import open_table
from pyhudi.timeline.watermark import Watermark
from support.drawn.upkept import Life
from support.made.begun_metadata import BEGUN, asked_always
from support.made.metadata_of_logs import keys_of_rows, with_log_files
from support.made.metadata_tables import How, files_of, simulate
from support.places import on_disk
from support.rules.health import findings

COLUMNS = ("p", "id", "ts", "value")
# With which it may begin.
_PARTITIONS = tuple(
    some for some in ((FILES,), (FILES, COLUMN_STATS), (FILES, COLUMN_STATS, PARTITION_STATS)) if {*some} <= {*BEGUN}
)


@dataclass(frozen=True)
class Question:
    """A condition, None for all rows, and the moment of which it is asked; by default now."""

    where: str | None = None
    query: Query | None = None
    seen: Watermark | None = None


@dataclass
class MetadataBeside:
    """Gives the table of a history its metadata table, and looks at what is shown by it.

    Attributes:
        tolerated: Codes of findings that are none of the metadata table.
        composite: Whether record keys name their fields, the partition's too.
        chance: Draws when, of which kind, and what is asked.
        often: How often it is looked at, and begins where there is none.
        each: How many conditions are asked of each moment.
        seen: The moments at which it was looked at.
        names: The partitions with which it began.
    """

    life: Life
    tolerated: frozenset[str]
    chance: random.Random
    composite: bool = False
    often: float = 0.3
    each: int = 4
    seen: list[Watermark] = field(default_factory=list)
    names: tuple[str, ...] = ()

    def may_begin(self) -> None:
        """Give the table its metadata table where it has none, and, as Apache Hudi may build it anew, now and then."""
        again = self.names and self.chance.random() < self.often / 3
        if again or (not self.names and self.chance.random() < 1 - self.often):
            self._give(self.chance.choice([*_PARTITIONS, _PARTITIONS[-1], _PARTITIONS[-1]]))

    def look(self) -> None:
        """Assert that each step kept the metadata table, and, now and then, that nothing else is shown by it."""
        path = str(self.life.table)
        assert load_config(open_storage(path)).metadata_partitions == tuple(sorted(self.names))
        if self.names and self.chance.random() < self.often:
            self._compare(path)
            assert not (wrong := self._wrong(path)), wrong

    def give_with_indexes(self) -> None:
        """Give the table one with a record index, which no write keeps, and see that nothing else is shown by it."""
        self._give((FILES, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX))
        if self.names:
            self._compare(str(self.life.table))

    def _give(self, names: tuple[str, ...]) -> None:
        path = str(self.life.table)
        timeline = open_table(open_storage(path)).timeline()
        if not timeline.writes:
            return
        self._take_away()
        self._simulate(path, [write.requested_time for write in timeline.writes], names)
        self.names = load_config(open_storage(path)).metadata_partitions

    def _compare(self, path: str) -> None:
        """Assert that all questions have the answers that they have without it, as so small tables do not ask it."""
        questions = self._questions()
        without = [_answer(path, one) for one in questions]
        with asked_always():
            for question, expected in zip(questions, without, strict=True):
                assert _answer(path, question) == expected, question
        self.seen.append(open_table(open_storage(path)).timeline().watermark())

    def _take_away(self) -> None:
        """Delete the metadata table, as Apache Hudi does before it makes one anew."""
        storage = open_storage(str(self.life.table))
        config = load_config(storage)
        if config.metadata_partitions:
            storage.write(PROPERTIES_PATH, config.with_changes({METADATA_PARTITIONS: ""}).encode())
        storage.delete(*(file.path for file in storage.list(FOLDER, recursive=True, strict=False)))

    def _simulate(self, path: str, writes: Sequence[str], only: tuple[str, ...]) -> None:
        """Have it made, of some partitions, with the newest writes in its log files."""
        files = files_of(path)
        files, bounds = with_log_files(path, files)
        keys = keys_of_rows(path, files) if RECORD_INDEX in only else None
        how = How(
            file_groups={RECORD_INDEX: self.chance.choice([1, 3]), COLUMN_STATS: self.chance.choice([1, 2])},
            compression=self.chance.choice([Compression.GZIP, Compression.NONE]),
            logged=writes[len(writes) - self.chance.randint(0, min(3, len(writes))) :],
            only=only,
        )
        simulate(path, files, bounds, keys, how)

    def _questions(self) -> list[Question]:
        """Draw what is asked: all rows and those of some conditions, now, and of some other moments."""
        now = [Question(), *(Question(self._condition()) for _ in range(self.each))]
        times = sorted(self.life.moments)
        moments: list[Question] = []
        if times:
            begin, end = sorted(self.chance.choices(times, k=2))
            moments += [Question(query=AsOf(self.chance.choice(times))), Question(query=Changes(begin, end))]
        if self.seen:
            moments.append(Question(seen=self.chance.choice(self.seen)))
        moments = self.chance.sample(moments, min(2, len(moments)))
        return [*now, *moments, *(replace(one, where=self._condition()) for one in moments)]

    def _condition(self, depth: int = 0) -> str:
        """Return a condition on columns of the table that rows of some moment may satisfy."""
        shape = self.chance.random()
        if depth < 2 and shape < 0.35:
            one, other = self._condition(depth + 1), self._condition(depth + 1)
            return self.chance.choice([f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"])
        by_column = self._values()
        column = self.chance.choice([*by_column, "id", "id"])
        values = by_column[column]
        texts = [_spelt(value) for value in self.chance.choices(values, k=2)]
        if shape < 0.5:
            return f"{column} IN ({', '.join(texts)})"
        if shape < 0.55:
            return f"{column} IS {self.chance.choice(['', 'NOT '])}NULL"
        if shape < 0.7:
            return f"{column} BETWEEN {min(texts, key=len)} AND {max(texts, key=len)}"
        return f"{column} {self.chance.choice(['=', '=', '<', '<=', '>', '>=', '<>'])} {texts[0]}"

    def _values(self) -> dict[str, list[object]]:
        """Return values of columns, of rows that are there or were, and some beside them."""
        moments = [self.life.model, *self.life.moments.values()]
        rows = self.chance.choice(moments).tuples() or [("a", "k0", 0, 0)]
        values = {name: [*dict.fromkeys(column)] for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}
        key = "id:{1},p:{0}" if self.composite else "{1}"
        return {
            **values,
            "id": [*values["id"], "k99"],
            "ts": [*values["ts"], -1],
            "value": [*values["value"], 500],
            "_hoodie_record_key": [key.format(*row) for row in rows],
            "_hoodie_commit_time": [*self.life.moments, "2"],
        }

    def _wrong(self, path: str) -> list[dict[str, Any]]:
        """Return what `validate` finds, on S3 in a copy, as each look costs seconds there."""
        if "s3://" in path:
            with on_disk(path) as copy:
                return self._wrong(str(copy))
        return [one for one in findings(path, deep=True) if one["code"] not in self.tolerated]


def _answer(path: str, asked: Question) -> object:
    """Return the rows that are shown, or which error tells that there are none to be shown."""
    try:
        snapshot = open_snapshot(path, watermark=asked.seen, query=asked.query)
        where = None if asked.where is None else read_where(asked.where, snapshot.schema, path)
        batches = list(scan(snapshot, COLUMNS, where=where))
    except UnreadableTimeError as error:
        return type(error)
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)


def _spelt(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
