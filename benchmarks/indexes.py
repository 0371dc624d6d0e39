"""What it takes to find out where keys are, by each index and without Spark: `python benchmarks/indexes.py`.

Files are made by hand: a record key, which is text of 19 digits, and five other columns. Random keys lie anywhere in
every file; keys in the order of time give each file a range of its own, and updates are of the newest of them. Seconds
are of the clock, on all cores, by a process that has read none of the footers before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.index import bloom
from pyhudi.index.base import KeyedRows, LookupFigures
from pyhudi.index.bloom import BloomIndex
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.lookup import SimpleIndex, TableLookup
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.task import run_task
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.process import cores
from pyhudi.table.files.base_file import BaseFileWriter, constant, file_schema
from pyhudi.table.files.bloom_filter import FILTER, TYPE_CODE, BloomFilter, BloomFilterBuilder, BloomSettings
from pyhudi.table.files.file_group import BaseFile, FileSlice
from pyhudi.table.files.key_footers import KeyFooters
from pyhudi.table.files.names import BaseFileName, FileGroupId, WriteToken
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import RECORD_KEY, avro_schema

# Rows of what indexes take; no format is one of them.
INDEX = "index: "
TAGGING, GROUPS, FILTERS, FEW, UPSERT = (
    f"{INDEX}{what}" for what in ("tagging, ", "groups, ", "a filter for ", "few updates", "an upsert, ")
)
LOOKUPS: dict[str, TableLookup] = {"SIMPLE": SimpleIndex(), "BLOOM": BloomIndex()}
SHARES = {"1%": 0.01, "10%": 0.1, "100%": 1.0}
RANDOM, TIME = "random keys", "keys in the order of time"
BYTES = "bytes read for 1%"
FILES, ROWS = 100, 100_000
COUNTS = (100, 1_000, 10_000, 40_000)
WANTED = 1_000
# A small file of its own filter for each of so many groups: what is measured is what each group costs.
FEW_ROWS = 100
FED = {"as many keys as it is made for": 60_000, "its greatest number": 100_000, "12.5 million": 12_500_000}
UPDATES, UPDATED_FILES = 100, 400
# Of a table that is loaded and upserted by whole writes, in files of some 100,000 rows.
UPSERTED, LARGEST = 2_000_000, 6 << 20
# Of so many upserts that know no footer the middle one counts: finding takes some hundredths of a second.
UPSERTS = 31
# What finding keys in the order of time may take of an upsert of 1% of them.
MOST = 0.1

_DATA = pa.schema(
    [
        pa.field("id", pa.string()),
        *(pa.field(name, pa.float64()) for name in ("a", "b", "c")),
        pa.field("text", pa.string()),
    ]
)
_SCHEMA = file_schema(_DATA)
_TIME = "20260101000000000"
_ODD = np.uint64(0x9E3779B97F4A7C15)


def keys_of(numbers: np.ndarray, kind: str) -> pa.StringArray:
    """Return the record keys of some rows, by their numbers; no two have the same."""
    values = numbers.astype(np.uint64)
    # Multiplied by an odd number, different numbers stay different.
    spread = (values * _ODD) >> np.uint64(1) if kind == RANDOM else values + np.uint64(1_767_225_600_000_000)
    return pc.utf8_lpad(pc.cast(pa.array(spread), pa.string()), 19, "0")


@dataclass
class Table:
    """Base files of one partition, as a view that indexes look into.

    Attributes:
        storage: Rooted at the table.
        kind: Of its keys.
        rows: Of each file.
        file_slices: Its slices, by file id.
    """

    storage: Storage
    kind: str
    rows: int
    file_slices: dict[str, FileSlice] = field(default_factory=dict)

    def slices(self, _: str) -> dict[str, FileSlice]:
        return self.file_slices

    def sees(self, _: str) -> bool:
        return True

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file_slice.size for file_slice in self.file_slices.values())

    def first(self, count: int) -> Table:
        """Return the table of the first files alone."""
        return Table(self.storage, self.kind, self.rows, dict(list(self.file_slices.items())[:count]))

    def grow(self, count: int, settings: BloomSettings) -> None:
        """Add files, as many at once as there are cores."""
        numbers = range(len(self.file_slices), len(self.file_slices) + count)
        with ThreadPoolExecutor(cores()) as pool:
            for file_slice in pool.map(lambda number: self._file(number, settings), numbers):
                self.file_slices[file_slice.file_id] = file_slice

    def _file(self, number: int, settings: BloomSettings) -> FileSlice:
        group = FileGroupId("p", f"{uuid.UUID(int=number)}-0")
        name = BaseFileName(group.file_id, WriteToken(number, 1, 1), _TIME).format()
        numbers = np.arange(number * self.rows, (number + 1) * self.rows)
        keys = keys_of(numbers, self.kind)
        values = np.random.default_rng(number).random((4, self.rows))
        columns = {
            RECORD_KEY: keys,
            "id": keys,
            **{column: pa.array(values[place]) for place, column in enumerate("abc")},
            "text": pc.cast(pa.array(values[3]), pa.string()),
            "_hoodie_commit_seqno": pc.binary_join_element_wise(_TIME, pc.cast(pa.array(numbers), pa.string()), "_"),
        }
        batch = pa.RecordBatch.from_arrays(
            [columns.get(one.name, constant("p", self.rows)) for one in _SCHEMA], schema=_SCHEMA
        )
        sink = pa.BufferOutputStream()
        avro = avro_schema(_DATA, "t", meta=True)
        writer = BaseFileWriter(sink, _SCHEMA, avro, output=Output(row_group_bytes=120 << 20), bloom=settings)
        writer.write(batch)
        writer.close()
        body = sink.getvalue().to_pybytes()
        self.storage.write(f"p/{name}", body, durable=False)
        return FileSlice(group, _TIME, BaseFile(f"p/{name}", len(body), group.file_id, "0-1-1", _TIME))

    def wanted(self, count: int) -> KeyedRows:
        """Return keys to be looked up: the newest, or of random ones any."""
        every = len(self.file_slices) * self.rows
        numbers = np.arange(every - count, every)
        if self.kind == RANDOM:
            numbers = np.random.default_rng(1).choice(every, count, replace=False)
        return KeyedRows(keys_of(numbers, self.kind), constant("p", count))


def measure(scale: float = 1.0) -> dict[str, dict[str, float]]:
    """Return all figures by row and phase: seconds, shares and numbers of files.

    Args:
        scale: Of the numbers of rows, files and keys; 1 for those that are published.
    """
    by_row: dict[str, dict[str, float]] = {}
    for kind in (RANDOM, TIME):
        with _table(kind, max(int(ROWS * scale), 1)) as table:
            table.grow(FILES, BloomSettings())
            by_row |= _tagging(table)
    with _table(TIME, FEW_ROWS) as table:
        table.grow(int(max(COUNTS) * scale), BloomSettings(entries=FEW_ROWS))
        by_row |= _by_groups(table, scale)
        few = table.first(UPDATED_FILES)
        by_row[FEW] = {}
        for name in LOOKUPS:
            figures = _tag(name, few, _scattered(few, UPDATES))
            by_row[FEW][name] = figures.candidates
    for name in LOOKUPS:
        by_row[f"{UPSERT}{name}"] = _upsert(name, int(UPSERTED * scale))
    return by_row | _filters(scale)


def _tagging(table: Table) -> dict[str, dict[str, float]]:
    by_row: dict[str, dict[str, float]] = {}
    every = len(table.file_slices) * table.rows
    buckets = BucketIndex(FILES, ("id",))
    for name in (*LOOKUPS, "BUCKET"):
        row = by_row.setdefault(f"{TAGGING}{name}, {table.kind}", {})
        for share, part in SHARES.items():
            rows = table.wanted(max(int(every * part), 1))
            if name == "BUCKET":
                row[share] = _seconds(lambda rows=rows: buckets.buckets(rows.record_keys))
                continue
            figures = _tag(name, table, rows)
            row[share] = figures.seconds
            if part == min(SHARES.values()):
                row[BYTES] = figures.bytes / table.size
    return by_row


def _by_groups(table: Table, scale: float) -> dict[str, dict[str, float]]:
    """Return how long it takes to find as many keys, all over the table, among ever more file groups."""
    by_row: dict[str, dict[str, float]] = {}
    for count in COUNTS:
        some = table.first(int(count * scale))
        rows = _scattered(some, WANTED)
        for name in LOOKUPS:
            by_row.setdefault(f"{GROUPS}{name}", {})[f"{count:,}"] = _tag(name, some, rows).seconds
        index = BucketIndex(int(count * scale), ("id",))
        seconds = _seconds(lambda index=index, rows=rows: index.buckets(rows.record_keys))
        by_row.setdefault(f"{GROUPS}BUCKET", {})[f"{count:,}"] = seconds
    return by_row


def _filters(scale: float) -> dict[str, dict[str, float]]:
    """Return which share of absent keys the default filter lets pass, fed with ever more keys."""
    by_row = {}
    for name, count in FED.items():
        builder = BloomFilterBuilder(BloomSettings())
        fed = int(count * scale)
        for start in range(0, fed, ROWS):
            builder.add(keys_of(np.arange(start, min(start + ROWS, fed)), RANDOM))
        footer = builder.footer()
        read = BloomFilter.decode(footer[FILTER].encode(), footer[TYPE_CODE])
        absent = [keys_of(np.arange(fed + start, fed + start + ROWS), RANDOM) for start in range(0, 10 * ROWS, ROWS)]
        passed = sum(int(read.may_hold(keys).sum()) for keys in absent)
        by_row[f"{FILTERS}{name}"] = {"keys": float(fed), "passed": passed / (10 * ROWS)}
    return by_row


def _upsert(name: str, rows: int) -> dict[str, float]:
    """Return how long an upsert of the newest 1% of keys in the order of time takes, and finding them in it."""
    with tempfile.TemporaryDirectory(prefix="pyhudi-indexes-") as folder:
        settings = WriteSettings(lookup=LookupSettings(sizes=FileSizes(small=0, largest=LARGEST)))
        # An upsert would deal new keys out over all new files.
        _write(f"{folder}/t", name, np.arange(rows), settings, operation="bulk_insert")
        newest = np.arange(rows - rows // 100, rows)
        runs: list[tuple[float, float]] = []
        for _ in range(UPSERTS):
            bloom.FOOTERS = KeyFooters()
            start = time.perf_counter()
            result = _write(f"{folder}/t", name, newest, settings)
            runs.append((time.perf_counter() - start, result.lookup.seconds))
            if result.updates != len(newest):
                raise SystemExit(f"{name} found {result.updates} of {len(newest)} keys")
    upsert, finding = sorted(runs, key=lambda run: run[1] / run[0])[UPSERTS // 2]
    return {"upsert": upsert, "finding": finding}


def _write(
    path: str, index: str, numbers: np.ndarray, settings: WriteSettings, operation: str = "upsert"
) -> CommitResult:
    """Write some rows as a single task."""
    table = TableSettings(name="t", record_key_fields=("id",), index_type=index)
    request = WriteRequest(path, operation, overwrite=False, schema=_DATA, table=table, write=settings)
    plan = plan_write(request)
    batches = (_rows(numbers[start : start + ROWS]) for start in range(0, len(numbers), ROWS))
    return commit_write(plan, [run_task(plan, batches, WriteToken(0, 1, 1))])


def _rows(numbers: np.ndarray) -> pa.RecordBatch:
    values = np.random.default_rng(int(numbers[0])).random((4, len(numbers)))
    columns = [keys_of(numbers, TIME), *map(pa.array, values[:3]), pc.cast(pa.array(values[3]), pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=_DATA)


def _scattered(table: Table, count: int) -> KeyedRows:
    """Return keys from all over a table whose keys are in the order of time."""
    every = len(table.file_slices) * table.rows
    numbers = np.random.default_rng(2).choice(every, min(count, every), replace=False)
    return KeyedRows(keys_of(numbers, table.kind), constant("p", len(numbers)))


def _tag(name: str, table: Table, rows: KeyedRows) -> LookupFigures:
    """Look rows up by a process that knows no footer, and see that each was found."""
    bloom.FOOTERS = KeyFooters()
    tags = LOOKUPS[name].tag(rows, table, table.storage)  # type: ignore[arg-type]
    if (tags.codes < 0).any() or len(tags.copied):
        raise SystemExit(f"{name} found {int((tags.codes >= 0).sum())} of {len(rows)} keys")
    return tags.figures


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def _table(kind: str, rows: int) -> Iterator[Table]:
    """Yield an empty table in a folder that goes away with it."""
    with tempfile.TemporaryDirectory(prefix="pyhudi-indexes-") as folder:
        yield Table(open_storage(f"{folder}/t", durable=False), kind, rows)


def tagging(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds that looking up all sorts of keys took."""
    columns = [*SHARES, BYTES]
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for row, found in _of(TAGGING, rows):
        cells = [f"{found[share]:.2f}" for share in SHARES]
        cells.append(f"{100 * found[BYTES]:.1f}%" if BYTES in found else "–")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def groups(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds that looking up as many keys among ever more file groups took."""
    titles = [f"{count:,}" for count in COUNTS]
    lines = [f"| file groups | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}"]
    for row, phases in _of(GROUPS, rows):
        lines.append(f"| {row} | {' | '.join(f'{phases[title]:.3f}' for title in titles)} |")
    opened = rows.get(FEW, {})
    if opened:
        said = ", ".join(f"{name} read the keys of {int(count)}" for name, count in opened.items())
        lines += ["", f"To find {UPDATES} keys in a table of {UPDATED_FILES} files, {said}."]
    for name, phases in _of(UPSERT, rows):
        share = phases["finding"] / phases["upsert"]
        mark = "" if share <= MOST else f", which misses its promise of {MOST:.0%}"
        upsert = "an upsert of the newest 1% of two million keys, without Spark"
        lines += ["", f"Of {upsert}, {name} took {share:.1%}{mark}."]
    return "\n".join([*lines, ""])


def filters(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the keys that filters take for present though they are not."""
    lines = ["| the default filter, fed with | keys | absent keys that pass | configured |", "|---|---:|---:|---:|"]
    for row, found in _of(FILTERS, rows):
        configured = f"{BloomSettings().false_positives:g}"
        lines.append(f"| {row} | {int(found['keys']):,} | {found['passed']:.2g} | {configured} |")
    return "\n".join([*lines, ""])


def _of(kind: str, rows: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, Mapping[str, float]]]:
    return ((row.removeprefix(kind), found) for row, found in rows.items() if row.startswith(kind))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of rows and files")
    by_row = measure(parser.parse_args().scale)
    print(tagging(by_row), groups(by_row), filters(by_row), sep="\n")


if __name__ == "__main__":
    main()
