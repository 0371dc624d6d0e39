"""How many requests a commit and a read take on S3: so many a task, a partition and a file, and some for the whole."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.service_settings import CleanSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.write.commit import commit_write
from pyhudi.reader.query import FileSearch
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.files.base_file import BaseFileReader
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import format_time
from pyhudi.timeline.writers.owner import seal_folder
from support import drive
from support.drive import plan, task
from support.made.begun_metadata import begin_metadata
from support.made.metadata_tables import How, simulate
from support.rules.written_metadata import check_metadata
from support.s3 import S3Server, new_url, put_object
from support.seams import patch_seam, read_seam

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
# What goes over the wire for each request is for tests/unit/storage.
pytestmark = pytest.mark.usefixtures("direct_s3")
TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",))


@dataclass(frozen=True)
class Cost:
    """Requests at most, as docs/object-stores.md says."""

    task: int
    partition: int
    file: int
    whole: int

    def of(self, tasks: int, partitions: int, files: int) -> int:
        """Return the requests of so many."""
        return self.task * tasks + self.partition * partitions + self.file * files + self.whole


FIRST = {"colocated": Cost(8, 8, 4, 44), "plain": Cost(7, 6, 2, 44)}
UPSERT = {"colocated": Cost(8, 2, 5, 40), "plain": Cost(7, 2, 2, 42)}
OVERWRITE = {"colocated": Cost(8, 5, 4, 42), "plain": Cost(7, 4, 2, 43)}
DELETE_PARTITION = Cost(4, 1, 0, 44)
READ = Cost(0, 1, 0, 6)
READ_BY_METADATA = Cost(0, 0, 0, 12)
KEPT_METADATA = 20
PAGE = Path(__file__).parents[2] / "docs" / "object-stores.md"
# (tasks, partitions, buckets of each), one of them larger at a time.
SHAPES = [(1, 1, 1), (6, 6, 1), (1, 6, 1), (1, 1, 8), (3, 6, 4)]
PLACED = pytest.mark.parametrize("colocated", [True, False], ids=["colocated", "plain"])


@pytest.fixture(autouse=True)
def nobody_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no commit look at the timeline once more because this machine is busy."""
    patch_seam(monkeypatch, "seconds after which a commit is late", 3600.0)


def hands(tasks: int, partitions: int, value: int) -> list[pa.Table]:
    """Return rows for every bucket of every partition, each partition in one task."""
    made = []
    for number in range(tasks):
        names = [f"p{one}" for one in range(partitions) if one % tasks == number]
        ids = [f"{name}-{key}" for name in names for key in range(80)]
        made.append(pa.table([ids, [one.partition("-")[0] for one in ids], [value] * len(ids)], schema=SCHEMA))
    return made


def write(
    s3: S3Server, url: str, shape: tuple[int, int, int], value: int, colocated: bool, operation: str | None = None
) -> dict[str, int]:
    """Write once and return the requests by kind."""
    tasks, partitions, buckets = shape
    table, settings = replace(TABLE, bucket_count=buckets), WriteSettings(colocated=colocated)
    with s3.watched() as requests:
        planned = plan(url, SCHEMA, operation=operation, table=table, settings=settings)
        results = [task(planned, rows, number) for number, rows in enumerate(hands(tasks, partitions, value))]
        done = commit_write(planned, results)
    met = done.replaced if operation == "delete_partition" else done.files
    assert met == partitions * buckets, "every file group is met"
    return dict(requests)


@PLACED
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape)))
def test_a_commit_takes_requests_by_tasks_partitions_and_files(
    s3: S3Server, shape: tuple[int, int, int], colocated: bool
) -> None:
    url, kind = new_url(), "colocated" if colocated else "plain"
    counts = (shape[0], shape[1], shape[1] * shape[2])
    first = write(s3, url, shape, 1, colocated)
    upsert = write(s3, url, shape, 2, colocated)
    print(f"{kind} {counts}: first {sum(first.values())} {first}, upsert {sum(upsert.values())} {upsert}")  # noqa: T201

    assert sum(first.values()) <= FIRST[kind].of(*counts)
    assert sum(upsert.values()) <= UPSERT[kind].of(*counts)


@PLACED
@pytest.mark.parametrize(
    "shape",
    [pytest.param(one, marks=() if one == SHAPES[-1] else pytest.mark.slow) for one in SHAPES],
    ids=lambda shape: "-".join(map(str, shape)),
)
def test_other_operations_take_requests_by_the_same(s3: S3Server, shape: tuple[int, int, int], colocated: bool) -> None:
    """An overwrite looks at each partition more than an upsert does, a delete of partitions at no file."""
    url, kind = new_url(), "colocated" if colocated else "plain"
    counts = (shape[0], shape[1], shape[1] * shape[2])
    most = {
        "insert": UPSERT[kind],
        "insert_overwrite": OVERWRITE[kind],
        "insert_overwrite_table": OVERWRITE[kind],
        "delete": UPSERT[kind],
        "delete_partition": DELETE_PARTITION,
    }
    write(s3, url, shape, 1, colocated)
    for value, (operation, cost) in enumerate(most.items(), 2):
        taken = write(s3, url, shape, value, colocated, operation)
        print(f"{kind} {counts}: {operation} {sum(taken.values())} {taken}")  # noqa: T201

        assert sum(taken.values()) <= cost.of(*counts), operation


def test_the_documentation_says_the_same() -> None:
    text = PAGE.read_text(encoding="utf-8")
    costs = [kind[how] for kind in (UPSERT, OVERWRITE, FIRST) for how in ("colocated", "plain")]
    costs = [*costs[:4], DELETE_PARTITION, *costs[4:], READ, READ_BY_METADATA]

    assert f"takes at most {KEPT_METADATA} requests more" in text
    rows = [line.partition("|")[2].partition("|")[2].strip() for line in text.splitlines() if line.count("|") == 6]
    cells = [(one.task, one.partition, one.file, one.whole) for one in costs]
    assert rows[2:] == [" | ".join(str(cell or "–") for cell in one) + " |" for one in cells]


def test_a_read_is_planned_with_one_listing_a_partition(s3: S3Server) -> None:
    url = new_url()
    write(s3, url, (2, 6, 4), 1, True)
    with s3.watched() as requests:
        snapshot = open_snapshot(url)
        splits = snapshot.plan(snapshot.schema, (), 128 << 20)

    assert sum(len(split.parts) for split in splits) == 24
    assert sum(requests.values()) <= READ.of(0, 6, 24)


def test_a_metadata_table_lists_many_partitions(s3: S3Server, tmp_path: Path) -> None:
    """With a request more for each log file of its partition ``files``, however many partitions there are."""

    def requests_of(partitions: int, logged: int, *, asked: bool = True) -> int:
        table, url = tmp_path / f"{partitions}-{logged}", new_url()
        for value in range(logged + 1):
            rows = pa.concat_tables(hands(1, partitions, value))
            drive.write(table, rows, table=replace(TABLE, bucket_count=1), settings=WriteSettings(colocated=True))
        times = [write.requested_time for write in open_table(open_storage(str(table))).timeline().writes]
        simulate(str(table), bounds=[], how=How(logged=times[1:], only=["files"]))
        for file in table.rglob("*"):
            if file.is_file():
                put_object(f"{url}/{file.relative_to(table)}", file.read_bytes())
        search = FileSearch(asks_metadata=asked)
        assert len(open_snapshot(url, file_search=search).slices()) == partitions
        with s3.watched() as requests:
            open_snapshot(url, file_search=search).slices()
        return sum(requests.values())

    few, many, logs = requests_of(20, 0), requests_of(40, 0), requests_of(20, 3)
    print(f"listed by metadata: {few}, {many}, {logs}")  # noqa: T201

    assert few == many == logs - 3
    assert many <= READ_BY_METADATA.of(1, 40, 40)
    # Where folders cost no more, they are listed.
    assert requests_of(19, 0) == requests_of(19, 0, asked=False) <= READ.of(0, 19, 19)


@pytest.mark.parametrize("shape", SHAPES[:1] + SHAPES[-1:], ids=lambda shape: "-".join(map(str, shape)))
def test_a_commit_takes_a_few_requests_more_to_keep_a_metadata_table(s3: S3Server, shape: tuple[int, int, int]) -> None:
    """However many files it wrote."""
    taken = []
    for with_metadata in (False, True):
        url = new_url()
        write(s3, url, shape, 1, True)
        if with_metadata:
            begin_metadata(url)
        write(s3, url, shape, 2, True)
        taken.append(write(s3, url, shape, 3, True))
    more = sum(taken[1].values()) - sum(taken[0].values())
    print(f"kept metadata table, {shape}: {more} more requests")  # noqa: T201

    assert 0 < more <= KEPT_METADATA
    check_metadata(url)


def test_a_large_file_is_read_with_few_requests(s3: S3Server) -> None:
    """Columns that lie side by side come together: requests follow the bytes, not the number of columns."""
    storage = open_storage(new_url())
    table = pa.table(
        {f"c{number}": np.random.default_rng(number).integers(0, 1 << 60, 100_000) for number in range(12)}
    )
    staged = storage.stage("a.parquet", "")
    pq.write_table(table, staged.stream, row_group_size=50_000)
    size = staged.publish()
    with s3.watched() as requests, BaseFileReader(storage, "a.parquet") as reader:
        rows = sum(batch.num_rows for batch in reader.batches(table.schema))

    assert (rows, size > 8 << 20) == (100_000, True)
    assert requests["GET"] <= 5


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
def test_a_longer_timeline_takes_no_more_requests(s3: S3Server, operation: str) -> None:
    """A process reads no older commit again; of those that replace something, only what came since it last looked."""
    url = new_url()
    write(s3, url, (1, 1, 2), 0, True)
    counts = [sum(write(s3, url, (1, 1, 2), value, True, operation).values()) for value in range(1, 6)]

    assert len(set(counts[1:])) == 1


def test_seals_of_many_commits_take_no_more_requests(s3: S3Server) -> None:
    """10,000 commits, one every nine seconds, leave as many seals within 25 hours, of which a write lists none."""
    counts = []
    for commits in (50, 10_000):
        url = new_url()
        write(s3, url, (1, 1, 2), 0, True)
        now_ms = int(time.time() * 1000)
        for number in range(commits):
            instant = format_time(now_ms - 9000 * number, "UTC")
            put_object(f"{url}/{seal_folder(instant[:10])}/{instant}")
        counts.append(write(s3, url, (1, 1, 2), 1, True))
        print(f"{commits} seals: {sum(counts[-1].values())} {counts[-1]}")  # noqa: T201

    assert counts[0] == counts[1]


def test_a_fresh_process_reads_each_commit_once(s3: S3Server) -> None:
    """So the first look at a long history costs a request for each of its commits, and later ones what is new."""
    url = new_url()
    for value in range(8):
        write(s3, url, (1, 1, 2), value, True, "insert_overwrite" if value % 3 else "insert_overwrite_table")

    def bodies_read(value: int) -> tuple[int, int, int]:
        """Upsert and return all requests, those that read commits, and how many commits were read."""
        total = sum(write(s3, url, (1, 1, 2), value, True).values())
        names = [name for kind, name, _ in s3.seen if kind == "GET" and name.endswith("commit")]
        return total, len(names), len(set(names))

    read_seam("written files that the process knows").clear()
    fresh, warm, again = bodies_read(8), bodies_read(9), bodies_read(10)
    # The newest is read for its columns, too.
    assert fresh[2] == 8
    assert (warm[2], again[2]) == (1, 1)
    assert fresh[0] == warm[0] + 7

    reads = []
    for clear in (True, False):
        if clear:
            read_seam("written files that the process knows").clear()
        with s3.watched() as requests:
            open_snapshot(url).slices(())
        reads.append(sum(requests.values()))
    assert reads[0] == reads[1] + 11
    assert reads[1] <= READ.of(0, 1, 2)


def test_a_clean_takes_requests_by_what_changed(s3: S3Server) -> None:
    """However many partitions and commits there are: a listing and a request of deletion for each that changed."""

    def requests_of(url: str, partitions: int) -> dict[str, int]:
        write(s3, url, (1, partitions, 2), 0, True)
        names = [f"p{one}" for one in range(partitions)]
        for value in range(1, 5):
            ids = [f"{names[0]}-{key}" for key in range(80)]
            rows = pa.table([ids, [names[0]] * 80, [value] * 80], schema=SCHEMA)
            drive.write(url, rows, settings=WriteSettings(colocated=True))
            read_seam("written files that the process knows").clear()
            with s3.watched() as requests:
                done = clean(open_storage(url), CleanSettings(commits=1))
            assert done.files == (0 if value < 2 else 2)
        return dict(requests)

    few, many = requests_of(new_url(), 2), requests_of(new_url(), 12)
    print(f"clean: {sum(many.values())} {many}")  # noqa: T201

    assert few == many
    assert sum(many.values()) <= 30
