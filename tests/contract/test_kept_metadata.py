"""Each operation leaves the metadata table right, and writes to it what docs/metadata-table.md says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.operations.upkeep.services import SERVICES, VALIDATE
from pyhudi.operations.write.commit import commit_write
from pyhudi.options.names import OPTIONS
from pyhudi.options.write import WriteOptions
from pyhudi.table.metadata.kinds import FILES, PARTITION_STATS
from support.attempts import parted
from support.drawn.upkept import OFF
from support.drive import NOTHING_SAID, plan, task
from support.made.begun_metadata import BEGUN, begin_metadata
from support.places import files_below, put_files
from support.rules.written_metadata import MetadataState, check_listing, check_metadata, written_metadata
from support.streams import STREAMED, DrivenQuery
from support.write_settings import write_settings

PAGE = Path(__file__).parents[2] / "docs" / "metadata-table.md"
NOTHING, TAKEN_BACK, BUILT, DROPPED = "–", "takes its records back", "builds it anew", "drops it"
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
_NO_UPKEEP = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
Step = Callable[["Life"], object]


@dataclass
class Life:
    """A table whose metadata table began after its first write.

    Attributes:
        path: The table.
        instants: Those of its writes, in their order.
        names: The partitions of its metadata table that are in use.
    """

    path: Path
    instants: list[str] = field(default_factory=list)
    batches: int = 0
    key: int = 100
    names: tuple[str, ...] = tuple(BEGUN)

    @property
    def table(self) -> arrow.Table:
        return arrow.Table(str(self.path), options=_NO_UPKEEP)

    def write(self, operation: str | None, rows: pa.Table, **options: Any) -> None:
        named = {} if operation is None else {OPTIONS["operation"].key: operation}
        done = self.table.write(rows, record_key="", **{**named, **options})
        self.instants.append(done.instant)

    def new_rows(self, partition: str = "a", count: int = 3) -> pa.Table:
        self.key += count
        return parted(partition, *range(self.key - count, self.key), value=self.key)

    def stream(self, operation: str) -> None:
        """Write a batch as a stream in some mode does."""
        settings = replace(STREAMED, upkeep=OFF)
        rows = parted("a", 1, 2, value=50 + self.batches)
        query = DrivenQuery(self.path, NOTHING_SAID, settings=settings, operation=operation, schema=rows.schema)
        self.instants.append(query.run(self.batches, rows).instant)
        self.batches += 1


def _operation(name: str) -> Step:
    def write(life: Life) -> None:
        rows = parted("b", 3, value=0) if name == "delete_partition" else parted("a", 1, 2, value=life.key)
        life.write(name, life.new_rows() if "insert" in name else rows)

    return write


def _service(name: str, **arguments: Any) -> Step:
    return lambda life: getattr(life.table, name)(**arguments)


def _merge(life: Life) -> None:
    source = pa.concat_tables([parted("a", 1, value=70), life.new_rows()])
    merge = life.table.merge(source).when_matched_update({"value": "source.value"})
    life.instants.append(merge.when_not_matched_insert_all().execute().instant)


def _partial_update(life: Life) -> None:
    life.table.upsert(parted("a", 1, value=9).drop_columns("value"), partial=True)


def _planned_again(life: Life) -> None:
    """Have another write of the same rows complete between the tasks and the commit of a write."""
    rows = parted("a", 1, value=80)
    planned = plan(life.path, rows.schema, operation="upsert", settings=write_settings(retry_s=60.0, upkeep=OFF))
    results = [task(planned, rows, 0)]
    life.write("upsert", parted("a", 1, 2, value=79))
    done = commit_write(planned, results)
    assert done.attempts == 2
    life.instants.append(done.instant)


def _drop(life: Life) -> None:
    life.table.drop_index(FILES)
    life.names = ()


def _build(life: Life) -> None:
    life.table.create_index(PARTITION_STATS)
    life.names = tuple(BEGUN)


def _orphan(life: Life) -> None:
    """Repair a table that has a base file which no instant made."""
    newest = max(name for name in files_below(life.path) if name.startswith("a/") and name.endswith(".parquet"))
    orphan = f"{newest.partition('_')[0]}_9-9-9_20981231000000000.parquet"
    put_files(life.path, {orphan: files_below(life.path)[newest]})
    assert life.table.repair().instant


_ONE_COMMIT = {"hoodie.clean.commits.retained": 1}
_ARCHIVE = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, **_ONE_COMMIT}
_TWO_BLOCKS = {"hoodie.log.compaction.blocks.threshold": 2}
# By the kind of table: the steps, each after those before it, with its row of the page's table.
LIVES: Mapping[str, list[tuple[str, Step]]] = {
    "cow": [
        *((name, _operation(name)) for name in ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite")),
        ("mode overwrite", lambda life: life.instants.append(life.table.overwrite(life.new_rows()).instant)),
        ("insert_overwrite_table", _operation("insert_overwrite_table")),
        ("upsert", lambda life: life.write("upsert", pa.concat_tables([life.new_rows("a"), life.new_rows("b")]))),
        ("delete_partition", _operation("delete_partition")),
        ("a merge", _merge),
        ("compact_metadata", _service("compact_metadata")),
        ("a write that is planned again", _planned_again),
        ("a commit without rows", lambda life: life.write("upsert", life.new_rows(count=0))),
        ("upsert", _operation("upsert")),
        ("rollback", lambda life: life.table.rollback(life.instants.pop())),
        ("savepoint", _service("savepoint")),
        ("delete_savepoint", lambda life: life.table.delete_savepoint(life.instants[-1])),
        ("sort", _service("sort", by=("value",))),
        ("repair", _orphan),
        ("clean", _service("clean", **_ONE_COMMIT)),
        ("archive", _service("archive", **_ARCHIVE)),
        ("drop_index", _drop),
        ("create_index", _build),
    ],
    "mor": [
        ("upsert", _operation("upsert")),
        ("upsert", _operation("upsert")),
        ("schedule_log_compaction", _service("schedule_log_compaction", **_TWO_BLOCKS)),
        ("log_compact", _service("log_compact", **_TWO_BLOCKS)),
        ("delete", _operation("delete")),
        ("schedule_compaction", _service("schedule_compaction")),
        ("upsert", _operation("upsert")),
        ("compact", _service("compact")),
        ("a stream in mode append", lambda life: life.stream("insert")),
        ("a stream in mode update", lambda life: life.stream("upsert")),
        ("a stream in mode complete", lambda life: life.stream("insert_overwrite_table")),
        ("a merge", _merge),
        ("compact_metadata", _service("compact_metadata")),
        ("rescale_buckets", _service("rescale_buckets", n=4)),
        ("sort", _service("sort", by=("value",))),
        ("upsert", _operation("upsert")),
        ("upsert", _operation("upsert")),
        ("restore", lambda life: life.table.restore(life.instants[-2])),
        ("compact", _service("compact")),
        ("clean", _service("clean", **_ONE_COMMIT)),
        ("archive", _service("archive", **_ARCHIVE)),
    ],
    "global": [
        ("a row that moves to another partition", lambda life: life.write("upsert", parted("b", 1, value=9))),
    ],
    "old": [
        ("upsert", _operation("upsert")),
        ("upgrade", _service("upgrade")),
        ("upsert", _operation("upsert")),
        ("downgrade", _service("downgrade")),
        ("upsert", _operation("upsert")),
    ],
    "partial": [
        (
            "a partial update in log files",
            lambda life: life.table.upsert(parted("a", 1, value=9).drop_columns("value"), partial=True),
        ),
        ("compact", _service("compact")),
    ],
}


def _made(kind: str) -> dict[str, Any]:
    how = {"record_key": "id", "partition_by": "p", "order_by": "ts", "buckets": 2}
    return {
        "cow": how | {"index": "SIMPLE", "buckets": None},
        "mor": how | {"table_type": MOR},
        "global": how | {"index": "GLOBAL_SIMPLE", "buckets": None},
        "old": how | {"options": {"hoodie.write.table.version": 8}},
        "partial": how | {"table_type": MOR},
    }[kind]


def begun(path: Path, kind: str) -> Life:
    rows = pa.concat_tables([parted("a", *range(8), value=1), parted("b", 3, value=1)])
    arrow.Table.create(str(path), rows.schema, **_made(kind))
    life = Life(path)
    life.write("upsert", rows)
    begin_metadata(path)
    return life


def lived(path: Path, kind: str) -> Iterator[tuple[str, MetadataState, MetadataState]]:
    """Yield each step with what the metadata table had before and after it, and see that it is right."""
    life = begun(path, kind)
    before = written_metadata(path)
    for title, step in LIVES[kind]:
        step(life)
        check_metadata(path, life.names)
        if life.names:
            check_listing(path)
        after = written_metadata(path)
        yield title, before, after
        before = after


def _cells(before: MetadataState, after: MetadataState) -> dict[str, set[str]]:
    """Return what a step did to each partition, in the words of the page."""
    if before.names and not after.names:
        return {name: {DROPPED} for name in before.names}
    if after.built - before.built:
        return {name: {BUILT} for name in BEGUN}
    if after.undone(before):
        return {name: {TAKEN_BACK} for name in BEGUN}
    return {name: {kind for said in after.since(before).values() for kind in said.get(name, ())} for name in BEGUN}


def _documented() -> dict[str, dict[str, set[str]]]:
    """Return the cells of the page's table by the names of its rows, and of its columns."""
    text = PAGE.read_text(encoding="utf-8").partition("## What each operation writes")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    names = [name.strip("`") for name in rows[0][1:]]
    cells_by_row = {}
    for first, *cells in rows[2:]:
        for name in first.split(", "):
            said = [set() if cell == NOTHING else {one.strip() for one in cell.split(" and ")} for cell in cells]
            cells_by_row[name.strip("`")] = dict(zip(names, said, strict=True))
    return cells_by_row


@pytest.mark.parametrize("kind", LIVES)
def test_each_operation_writes_to_the_metadata_table_what_its_page_says(tmp_path: Path, kind: str) -> None:
    """And leaves it right: `validate` finds nothing, and its list names the files of the folders."""
    page = _documented()
    for title, before, after in lived(tmp_path / "t", kind):
        cells = _cells(before, after)
        assert cells == {name: page[title][name] for name in BEGUN}, title


def test_the_page_has_each_operation_and_some_table_shows_it() -> None:
    operations = WriteOptions.model_fields["operation"].json_schema_extra["supported"]
    shown = {title for steps in LIVES.values() for title, _ in steps}

    assert {*operations, *SERVICES} - shown == {VALIDATE}
    assert shown | {VALIDATE} == set(_documented())
