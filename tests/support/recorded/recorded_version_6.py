"""Tables of version 6, and what Apache Hudi 0.15 and 1.2 show of them.

The archive holds a folder a table and, for each, the queries that both releases were asked, with their answers: the
rows, or nothing where one refused.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.recorded.recorded_past import AS_OF, BEGINNING, TYPE, Query, window

ARCHIVE = Path(__file__).parents[2] / "fixtures" / "version_6" / "tables.tar.xz"
# The 16 test tables of hudi-rs that are of version 6, from its repository.
HUDI_RS = ARCHIVE.with_name("hudi_rs.tar.xz")
# Tables of both releases with each key generator and with buckets, without answers.
KEYS = ARCHIVE.with_name("keys.tar.xz")
ANSWERS = "answers.json"
# The releases of Apache Hudi that answered.
OLD, NEW = "0.15.0", "1.2.0"
READ_OPTIMIZED = {TYPE: "read_optimized"}
# A table has other files wherever it is made, and other numbers of tasks.
_PASSING = ("_hoodie_commit_seqno", "_hoodie_file_name")
_WRITES = (".commit", ".deltacommit", ".replacecommit")

Values = list[list[Any]]


@dataclass(frozen=True)
class Answer:
    """What one release showed for a query: columns and rows, None where it refused."""

    query: Query
    columns: list[str]
    rows: Values | None


@cache
def _answers() -> Mapping[str, Mapping[str, list[dict[str, Any]]]]:
    with tarfile.open(ARCHIVE) as archive:
        file = archive.extractfile(ANSWERS)
        assert file is not None
        found: Mapping[str, Mapping[str, list[dict[str, Any]]]] = json.load(file)
        return found


def answers(table: str, release: str) -> list[Answer]:
    """Return what a release showed of a table."""
    return [Answer(**answer) for answer in _answers()[table][release]]


def names() -> list[str]:
    """Return the names of the tables."""
    return sorted(_answers())


def unpack(folder: Path) -> Path:
    """Unpack all tables below a folder."""
    shutil.unpack_archive(ARCHIVE, folder)
    return folder


def unpack_keys(folder: Path) -> Path:
    """Unpack the tables with each key generator and with buckets below a folder."""
    shutil.unpack_archive(KEYS, folder)
    return folder


def shown(found: pa.Table) -> tuple[list[str], Values]:
    """Return columns and rows of an answer as they are recorded, in the order of partitions and keys."""
    names = sorted(name for name in found.column_names if name not in _PASSING)
    rows = [[_plain(value) for value in row.values()] for row in found.select(names).to_pylist()]
    return names, sorted(rows, key=repr)


def without(answer: Answer, *columns: str) -> tuple[list[str], Values]:
    """Return columns and rows of an answer without some of its columns."""
    kept = [at for at, name in enumerate(answer.columns) if name not in columns]
    rows = ([row[at] for at in kept] for row in answer.rows or ())
    return [answer.columns[at] for at in kept], sorted(rows, key=repr)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else repr(value)


def writes(table: Path) -> list[str]:
    """Return the requested times of the completed writes on the timeline."""
    found = (path for path in (table / ".hoodie").iterdir() if path.suffix in _WRITES)
    return sorted(path.stem for path in found)


def queries(table: Path) -> list[dict[str, str]]:
    """Return the present, the table at each of its instants, and windows between them."""
    times = writes(table)
    first, middle = [BEGINNING, *times], [*times, None]
    windows = [window(begin, end) for begin, end in product(first, middle) if end is None or begin < end]
    # Of many windows the first and last, and each between two neighbours.
    near = [one for one in windows if len(times) < 5 or _is_near(times, one)]
    return [{}, READ_OPTIMIZED, *({AS_OF: time} for time in times), *near]


def _is_near(times: list[str], query: Mapping[str, str]) -> bool:
    begin, *rest = [value for name, value in query.items() if name != TYPE]
    at = times.index(begin) if begin in times else -1
    return not rest or rest[0] == times[at + 1]
