"""A healthy table, and the ways to make one sick by hand."""

from __future__ import annotations

import base64
import io
import json
import shutil
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.operations.planning.request import TableSettings
from pyhudi.table.files.base_file import MAX_KEY, MIN_KEY
from pyhudi.table.files.bloom_filter import BloomFilterBuilder, BloomSettings
from pyhudi.timeline.metadata import models
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import ActionInstant, CleanerPlan, CleanFileInfo, CleanMetadata, CleanPartition
from pyhudi.timeline.writers import decisions
from pyhudi.timeline.writers.decisions import Decision, DecisionKind
from support.drive import write
from support.made.cleaning import archive
from support.sick.sick_tables import TIMELINE, say

HISTORY = f"{TIMELINE}/history"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
TABLE = TableSettings(
    name="sick", record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2
)
LONG_AGO, LONG_AGO_DONE = "20200101000000000", "20200101000000001"
SOON = "20260101000000000"
Spoil = Callable[[Path], object]


def rows(p: str, ts: int, count: int = 12) -> pa.Table:
    """Return rows of one partition."""
    n = range(count)
    return pa.table([[f"k{i}" for i in n], [p] * count, [ts] * count, [i * ts for i in n]], schema=SCHEMA)


def make_healthy(path: Path) -> None:
    """Make a table with older slices in ``x`` and replaced file groups in ``y``, by five commits."""
    write(path, rows("x", 1), table=TABLE)
    write(path, rows("y", 1))
    write(path, rows("y", 2), operation="insert_overwrite")
    write(path, rows("x", 3))
    write(path, rows("x", 4))


@dataclass(frozen=True)
class Symptom:
    """One way to make a healthy table sick.

    Attributes:
        code: What `validate` has to call it.
        name: Says what is done.
        says: A part of the file or of the sentence that it has to give.
        spoil: Does it.
        deep: Whether it is seen only where rows are read.
    """

    code: str
    name: str
    says: str
    spoil: Spoil
    deep: bool = False


def commits(path: Path, action: str = "commit") -> list[Path]:
    """Return the completed files of an action, oldest first."""
    return sorted((path / TIMELINE).glob(f"*_*.{action}"))


def time_of(file: Path) -> str:
    """Return the requested time of an instant's file."""
    return file.name[:17]


def newest_files(path: Path, partition: str = "x") -> list[Path]:
    """Return the base files of a partition's newest instant."""
    files = sorted((path / partition).glob("*.parquet"), key=lambda one: one.stem.rpartition("_")[2])
    return [one for one in files if one.stem.endswith(files[-1].stem.rpartition("_")[2])]


def body(change: Callable[[dict[str, Any]], object], number: int = -1, action: str = "commit") -> Spoil:
    """Change what a completed commit holds."""

    def spoil(path: Path) -> None:
        file = commits(path, action)[number]
        with file.open("rb") as stream:
            reader = fastavro.reader(stream)
            (record,) = list(reader)
        assert isinstance(record, dict)
        change(record)
        sink = io.BytesIO()
        fastavro.writer(sink, reader.writer_schema, [record], codec="null")  # type: ignore[arg-type]
        file.write_bytes(sink.getvalue())

    return spoil


def stat(**changes: object) -> Spoil:
    """Change what the newest commit says of its first file."""
    return body(lambda record: next(iter(record["partitionToWriteStats"].values()))[0].update(changes))


def put(name: str, model: models.InstantModel | bytes = b"") -> Spoil:
    """Put a file on the timeline."""
    data = model if isinstance(model, bytes) else encode(model)
    return lambda path: (path / TIMELINE / name).write_bytes(data)


def rewritten(change: Callable[[pa.Table], pa.Table], footer: Mapping[bytes, bytes | None] | None = None) -> Spoil:
    """Change the rows or the footer of a newest base file in ``x``, and nothing beside it."""

    def spoil(path: Path) -> None:
        file = newest_files(path)[0]
        with pq.ParquetFile(file) as parquet:
            table, said = parquet.read(), dict(parquet.metadata.metadata)
        key_values = {**said, **(footer or {})}
        key_values = {key: value for key, value in key_values.items() if value is not None and key != b"ARROW:schema"}
        changed = change(table).replace_schema_metadata(None)
        with pq.ParquetWriter(file, changed.schema, store_schema=False) as writer:
            writer.write_table(changed)
            writer.add_key_value_metadata(key_values)

    return spoil


def column(name: str, value: Callable[[list[Any]], list[Any]]) -> Spoil:
    """Change a column of a newest base file; its footer's bounds go with it."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        kept = table.column(at).cast(pa.string()) if at < 5 else table.column(at)
        changed = pa.array(value(kept.to_pylist()), kept.type)
        return table.set_column(at, pa.field(name, kept.type), changed)

    return rewritten(change, {MIN_KEY.encode(): None, MAX_KEY.encode(): None})


def same(table: pa.Table) -> pa.Table:
    return table


def filter_of(*keys: str) -> dict[bytes, bytes | None]:
    """Return what a footer says of a bloom filter that holds some keys."""
    builder = BloomFilterBuilder(BloomSettings())
    builder.add(pa.array(keys))
    return {name.encode(): text.encode() for name, text in builder.footer().items()}


def clean_of(path: Path, files: list[Path], *, done: bool) -> None:
    """Plan a clean of some files, or say that it took them."""
    named = {str(one.parent.relative_to(path)): [] for one in files} if files else {}
    for file in files:
        named[str(file.parent.relative_to(path))].append(file.name)
    plan = CleanerPlan(
        earliest_instant_to_retain=ActionInstant(timestamp=LONG_AGO, action="commit", state="COMPLETED"),
        policy="KEEP_LATEST_COMMITS",
        file_paths_to_be_deleted_per_partition={
            partition: [CleanFileInfo(file_path=f"file:{path}/{partition}/{name}") for name in names]
            for partition, names in named.items()
        },
    )
    put(f"{SOON}.clean.requested", plan)(path)
    if done:
        took = {
            partition: CleanPartition(partition_path=partition, policy="x", success_delete_files=names)
            for partition, names in named.items()
        }
        meta = CleanMetadata(
            start_clean_time=SOON,
            time_taken_in_millis=0,
            total_files_deleted=len(files),
            earliest_commit_to_retain="",
            partition_metadata=took,
        )
        put(f"{SOON}_{SOON}.clean", meta)(path)
        for file in files:
            file.unlink()


def savepoint_of(path: Path, names: list[str], time: str = "", partition: str = "x") -> None:
    """Keep some files of a partition by a savepoint of the newest commit, or of another time."""
    time = time or time_of(commits(path)[-1])
    kept = models.SavepointPartition(partition_path=partition, savepoint_data_file=names)
    meta = models.SavepointMetadata(savepointed_by="", savepointed_at=0, comments="", partition_metadata={"x": kept})
    put(f"{time}_{LONG_AGO_DONE}.savepoint", meta)(path)


def rollback_of(path: Path, victim: str) -> None:
    """Say that an instant was rolled back."""
    meta = models.RollbackMetadata(
        start_rollback_time=SOON,
        time_taken_in_millis=0,
        total_files_deleted=0,
        commits_rollback=[victim],
        partition_metadata={},
    )
    put("20981231000000000_20981231000000001.rollback", meta)(path)


def clustering_of(path: Path, time: str, file_id: str, partition: str) -> None:
    """Plan to rewrite a file group."""
    file_slice = models.SliceInfo(file_id=file_id, partition_path=partition)
    plan = models.ClusteringPlan(input_groups=[models.ClusteringGroup(slices=[file_slice])])
    put(f"{time}.clustering.requested", models.RequestedReplaceMetadata(clustering_plan=plan))(path)


def wanted_twice(path: Path) -> None:
    file_id = newest_files(path)[0].name.partition("_")[0]
    for time in (SOON, "20260101000000001"):
        clustering_of(path, time, file_id, "x")


def plan_replaced(path: Path) -> None:
    first = min((path / "y").glob("*.parquet"), key=lambda one: one.stem.rpartition("_")[2])
    clustering_of(path, SOON, first.name.partition("_")[0], "y")


def copied(path: Path, instant: str) -> Path:
    """Put a copy of a base file beside it, of another instant or attempt."""
    file = newest_files(path)[0]
    copy = file.with_name(f"{file.name.partition('_')[0]}_9-9-9_{instant or file.stem.rpartition('_')[2]}.parquet")
    shutil.copy(file, copy)
    return copy


def second_group(path: Path, begins: str = "") -> None:
    """Commit a copy of a base file as a file group of its own, of the same bucket or with another name."""
    file = newest_files(path)[0]
    file_id = f"{begins or file.name[:8]}-0000-4000-8000-000000000000-0"
    copy = file.with_name(f"{file_id}_0-0-0_{SOON}.parquet")
    shutil.copy(file, copy)
    stats = models.WriteStat(
        file_id=file_id, path=f"x/{copy.name}", partition_path="x", file_size_in_bytes=copy.stat().st_size
    )
    put(f"{SOON}_{SOON}.commit", models.CommitMetadata(partition_to_write_stats={"x": [stats]}))(path)


def of_two_minds(path: Path) -> None:
    """Say nothing of the index, and have a file group that is none of a bucket beside those that are."""
    for key in ("hoodie.index.type", "hoodie.bucket.index.num.buckets"):
        say(key, None)(path)
    second_group(path, "8c0f11d2")


def record_ring(path: Path) -> None:
    """Leave what Apache Hudi's consistent hashing records of the table's root."""
    file = path / ".hoodie/.bucket_index/consistent_hashing_metadata/00000000000000.hashing_meta"
    file.parent.mkdir(parents=True)
    file.write_text("{}")


def record_rule(content: bytes, path: Path, *, time: str = LONG_AGO) -> None:
    """Leave a rule of bucket numbers, of an instant that no timeline has."""
    file = path / f".hoodie/.bucket_index/partition_bucket_index_meta/configs/{time}.hashing_config"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)


def undone_rescale(path: Path) -> None:
    """Leave the rule of a rescale that was rolled back."""
    rule = {"expressions": "^,8", "defaultBucketNumber": 8, "rule": "regex", "version": 1, "instant": SOON}
    record_rule(json.dumps(rule).encode(), path, time=SOON)
    rollback_of(path, SOON)


def archived(then: Spoil, count: int = 2) -> Spoil:
    """Archive the first instants, and do something then."""

    def spoil(path: Path) -> None:
        archive(path, count)
        then(path)

    return spoil


def put_back(path: Path, name: str) -> None:
    """Put an archived instant's file back on the timeline."""
    time = next((path / HISTORY).glob("*_0.parquet")).name[:17]
    (path / TIMELINE / name.format(time)).write_bytes(b"")


def decided(path: Path) -> None:
    """Take a completed commit's file away, whose decision was made."""
    commits(path)[-1].unlink()


def torn_decision(path: Path) -> None:
    newest = max((path / decisions.FOLDER).iterdir())
    newest.write_bytes(newest.read_bytes()[:50])


def opened_decision(path: Path) -> None:
    newest = max((path / decisions.FOLDER).iterdir())
    decision = Decision.parse(newest.read_bytes())
    assert decision is not None
    assert decision.kind == DecisionKind.MAKE
    following = path / decisions.path_of(int(newest.name) + 1)
    following.write_bytes(replace(decision, maker="another").encode())
    decided(path)


def metadata_table(path: Path) -> None:
    """Say that readers may trust a metadata table, which knows of one write of the past alone."""
    say("hoodie.table.metadata.partitions", "files")(path)
    for name in ("00000000000000000_20200101000000000", f"{time_of(commits(path)[0])}_20990101000000000"):
        file = path / ".hoodie/metadata/.hoodie/timeline" / f"{name}.deltacommit"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    shutil.copy(path / ".hoodie/hoodie.properties", path / ".hoodie/metadata/.hoodie/hoodie.properties")


def new_folder(name: str) -> Spoil:
    """Put an empty file where its folder may be missing too."""

    def spoil(path: Path) -> None:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"")

    return spoil


def link(path: Path) -> None:
    (path / "x/link").symlink_to(path / "y")


def moved(path: Path) -> None:
    """Turn a partition's folder into none."""
    (path / "x/.hoodie_partition_metadata").unlink()


def twice_completed(path: Path) -> None:
    newest = commits(path)[-1]
    shutil.copy(newest, newest.with_name(f"{time_of(newest)}_20260101000000000.commit"))


def completed_at(path: Path, number: int, time: str) -> None:
    file = commits(path)[number]
    file.rename(file.with_name(f"{time_of(file)}_{time}.commit"))


def at_one_time(path: Path) -> None:
    completed_at(path, -2, commits(path)[-1].stem.rpartition("_")[2])


def crc(path: Path, name: str, data: bytes) -> None:
    (path / name).write_bytes(data)


def manifest(change: Callable[[dict[str, Any]], object]) -> Spoil:
    def spoil(path: Path) -> None:
        file = path / HISTORY / "manifest_1"
        said = json.loads(file.read_text())
        change(said)
        file.write_text(json.dumps(said))

    return spoil


def lose_archived(path: Path) -> None:
    next((path / HISTORY).glob("*.parquet")).unlink()


BLOOM = b"org.apache.hudi.bloomfilter"
BLOOM_TYPE = b"hoodie_bloom_filter_type_code"
FILTER_CHECKSUM = b"pyhudi.bloomfilter.crc32"


def simple_filter(
    *, version: int = -1, kind: int = 1, bits: bytes = bytes(7), checksum: bytes | None = None
) -> dict[bytes, bytes | None]:
    """Return what a footer says of a filter of 56 bits that does not grow."""
    data = struct.pack(">iibi", version, 5, kind, 56) + bits
    return {BLOOM: base64.b64encode(data), BLOOM_TYPE: b"SIMPLE", FILTER_CHECKSUM: checksum}


def dynamic_filter(*, hashes: int = 5, rows: int = 1) -> dict[bytes, bytes | None]:
    """Return what a footer says of a filter that grows, and whose rows have 5 hash functions and 56 bits."""
    head, row = struct.pack(">iibi", -1, hashes, 1, 56), struct.pack(">iibi", -1, 5, 1, 56) + bytes(7)
    data = head + struct.pack(">iii", 10, 0, rows) + row * rows
    return {BLOOM: base64.b64encode(data), BLOOM_TYPE: b"DYNAMIC_V0", FILTER_CHECKSUM: None}


META_FIRST = ["_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path"]


def swap(files: list[Path]) -> None:
    """Give the files of two buckets each other's names."""
    first_file, other = files
    first_file.rename(first_file.with_suffix(".aside"))
    other.rename(first_file)
    first_file.with_suffix(".aside").rename(other)


def _with_noise(data: bytes) -> bytes:
    return data[:200] + b"\xee" * 100 + data[300:]
