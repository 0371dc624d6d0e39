"""What Apache Hudi 1.2 shows of tables' pasts: every moment, every window, every spelling of a time, and the tables.

The archive holds a folder a table and, for each, the queries that Apache Hudi was asked with its answers: the rows, or
nothing where it refused. Of the table that it cleaned and archived there is also what stood in it after each write.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.readers import read_without_spark

ARCHIVE = Path(__file__).parents[2] / "fixtures" / "past" / "apache_hudi_1_2.tar.xz"
ANSWERS = "answers.json"
# Upserts, overwritten and deleted partitions, commits that overtook others, the last one pyhudi's; clustered twice;
# cleaned and archived.
TURNS, CLUSTERED, CLEANED = "turns", "clustered", "cleaned"

AS_OF = "as.of.instant"
TYPE = "hoodie.datasource.query.type"
BEGIN, END = (f"hoodie.datasource.read.{word}.instanttime" for word in ("begin", "end"))
FULL_SCAN = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
BEGINNING = "00000000000000"

Query = Mapping[str, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class Commit:
    """A completed write, from the name of its file."""

    instant: str
    completed: str
    action: str


@dataclass(frozen=True)
class Recorded:
    """The unpacked archive.

    Attributes:
        folder: Where it is.
        answers: Of each table the queries and what Apache Hudi showed, None where it refused.
        held: What the cleaned table held after each of its writes, by their requested times.
    """

    folder: Path
    answers: Mapping[str, list[tuple[Query, list[Row] | None]]]
    held: Mapping[str, list[Row]]

    @classmethod
    def unpack(cls, folder: Path) -> Recorded:
        """Unpack the archive into a folder."""
        shutil.unpack_archive(ARCHIVE, folder)
        said = json.loads((folder / ANSWERS).read_text(encoding="utf-8"))
        answers = {
            name: [(query, None if rows is None else rows_of(said["columns"], rows)) for query, rows in asked]
            for name, asked in said["answers"].items()
        }
        return cls(folder, answers, {time: rows_of(said["columns"], rows) for time, rows in said["held"].items()})

    def table(self, name: str) -> Path:
        """Return where a table is."""
        return self.folder / name


def rows_of(columns: list[str], values: Iterable[list[Any]]) -> list[Row]:
    """Return rows that are recorded as values alone."""
    return [dict(zip(columns, row, strict=True)) for row in values]


def sorted_rows(found: pa.Table) -> list[Row]:
    """Return what a reader found in the order of partitions and keys."""
    by = ("_hoodie_partition_path", "_hoodie_record_key")
    return sorted(found.to_pylist(), key=lambda row: [row[name] for name in by])


def ours(table: Path, query: Query) -> list[Row]:
    """Return what pyhudi shows for the options of a query."""
    return sorted_rows(read_without_spark(table, query))


def commits(table: Path) -> list[Commit]:
    """Return the completed writes of the timeline in order of requested time."""
    files = (table / ".hoodie" / "timeline").glob("[0-9]*_[0-9]*.*commit")
    return [Commit(*file.stem.split("_"), file.suffix[1:]) for file in sorted(files)]


def window(begin: str, end: str | None = None) -> dict[str, str]:
    """Return the query of what was written between two completions, or since one."""
    return {TYPE: "incremental", BEGIN: begin, **({END: end} if end else {})}


def windows(table: Path) -> list[dict[str, str]]:
    """Return every window between two completions, from the beginning, and until now."""
    times = sorted(one.completed for one in commits(table))
    pairs = product([BEGINNING, *times], [*times, None])
    return [window(begin, end) for begin, end in pairs if end is None or begin < end]


def moments(table: Path) -> list[dict[str, str]]:
    """Return the query of the table at each of its instants."""
    return [{AS_OF: one.instant} for one in commits(table)]


def spelled_times(table: Path) -> list[dict[str, str]]:
    """Return queries that name one commit in each way that Apache Hudi understands."""
    third = commits(table)[2]
    day = f"{third.completed[:4]}-{third.completed[4:6]}-{third.completed[6:8]}"
    return [
        *({AS_OF: text} for text in _spellings(third.instant)),
        *(window(BEGINNING, text) for text in _spellings(third.completed)),
        *(window(text) for text in [*_spellings(third.completed), day]),
    ]


def queries_after_cleaning(table: Path) -> list[dict[str, str]]:
    """Return what the cleaned table is asked: each moment, what came since each, and what its archive tells."""
    table_commits = commits(table)
    since = [window(one.completed) for one in table_commits]
    searched = {**window("2020-01-01"), FULL_SCAN: "true"}
    return [*moments(table), *since, searched, window(table_commits[0].completed, table_commits[-2].completed)]


def _spellings(time: str) -> list[str]:
    """Return an instant's time in each way that Apache Hudi understands, and its second."""
    moment = dt.datetime.strptime(time[:14], "%Y%m%d%H%M%S").replace(tzinfo=dt.timezone.utc)
    millis, seconds = time[14:], int(moment.timestamp())
    texts = [f"{moment:{form}}" for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")]
    return [time, time[:14], *texts, *(f"{text}.{millis}" for text in texts), f"{seconds}{millis}", f"{seconds}"]
