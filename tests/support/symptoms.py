"""Every sickness that `validate` knows, made by hand in a healthy table: how, and what has to be said of it."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.operations.planning.request import TableSettings
from pyhudi.table.files.base_file import MAX_KEY, MIN_KEY
from pyhudi.timeline.metadata import models
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import ActionInstant, CleanerPlan, CleanFileInfo, CleanMetadata, CleanPartition
from pyhudi.timeline.writers import decisions
from pyhudi.timeline.writers.decisions import Decision, Kind
from support.cleaning import archive
from support.drive import write
from support.sick_tables import PROPERTIES, TIMELINE, at, become_folder, leave, lose, say

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
        kept = {**said, **(footer or {})}
        kept = {key: value for key, value in kept.items() if value is not None and key != b"ARROW:schema"}
        changed = change(table).replace_schema_metadata(None)
        with pq.ParquetWriter(file, changed.schema, store_schema=False) as writer:
            writer.write_table(changed)
            writer.add_key_value_metadata(kept)

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


def clean_of(path: Path, files: list[Path], *, done: bool) -> None:
    """Plan a clean of some files, or say that it took them."""
    named = {str(one.parent.relative_to(path)): [] for one in files} if files else {}
    for one in files:
        named[str(one.parent.relative_to(path))].append(one.name)
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
        for one in files:
            one.unlink()


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
    piece = models.SliceInfo(file_id=file_id, partition_path=partition)
    plan = models.ClusteringPlan(input_groups=[models.ClusteringGroup(slices=[piece])])
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


def second_group(path: Path) -> None:
    """Commit a copy of a base file as a file group of its own, of the same bucket."""
    file = newest_files(path)[0]
    file_id = f"{file.name[:9]}0000-4000-8000-000000000000-0"
    copy = file.with_name(f"{file_id}_0-0-0_{SOON}.parquet")
    shutil.copy(file, copy)
    stats = models.WriteStat(
        file_id=file_id, path=f"x/{copy.name}", partition_path="x", file_size_in_bytes=copy.stat().st_size
    )
    put(f"{SOON}_{SOON}.commit", models.CommitMetadata(partition_to_write_stats={"x": [stats]}))(path)


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
    found = Decision.parse(newest.read_bytes())
    assert found is not None
    assert found.kind == Kind.MAKE
    following = path / decisions.path_of(int(newest.name) + 1)
    following.write_bytes(replace(found, maker="another").encode())
    decided(path)


def metadata_table(path: Path) -> None:
    """Say that readers may trust a metadata table, which knows of one write of the past alone."""
    say("hoodie.table.metadata.partitions", "files")(path)
    for name in ("00000000000000000_20200101000000000", f"{time_of(commits(path)[0])}_20990101000000000"):
        file = path / ".hoodie/metadata/.hoodie/timeline" / f"{name}.deltacommit"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")


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
META_FIRST = ["_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_partition_path"]

SYMPTOMS = [
    Symptom("PROPERTIES_UNUSABLE", "checksum", PROPERTIES, say("hoodie.table.checksum", "1")),
    Symptom(
        "PROPERTIES_UNUSABLE",
        "only the backup",
        "hudi-rs",
        lambda p: (p / PROPERTIES).rename(p / f"{PROPERTIES}.backup"),
    ),
    Symptom(
        "PROPERTIES_UNUSABLE",
        "cut, with a backup",
        "cut off",
        lambda p: (shutil.copy(p / PROPERTIES, p / f"{PROPERTIES}.backup"), at(PROPERTIES, lambda data: data[:400])(p)),
    ),
    Symptom("PROPERTIES_BACKUP", "left", "backup", lambda p: shutil.copy(p / PROPERTIES, p / f"{PROPERTIES}.backup")),
    Symptom("PROPERTY_MISSING", "merge mode", "hoodie.record.merge.mode", say("hoodie.record.merge.mode", None)),
    Symptom("PARTITION_FIELDS_MISSING", "empty", "x, y", say("hoodie.table.partition.fields", "")),
    Symptom(
        "PROPERTY_INVALID", "layout", "hoodie.timeline.layout.version=1", say("hoodie.timeline.layout.version", "1")
    ),
    Symptom("PROPERTY_INVALID", "schema", "hoodie.table.create.schema", say("hoodie.table.create.schema", "{")),
    Symptom("NOT_CHECKED", "version", "version 6", say("hoodie.table.version", "6")),
    Symptom("NOT_CHECKED", "index", "BLOOM", say("hoodie.index.type", "BLOOM")),
    Symptom("NOT_CHECKED", "buckets", "hoodie.bucket.index.num.buckets=0", say("hoodie.bucket.index.num.buckets", "0")),
    Symptom("NOT_CHECKED", "merge on read", "MERGE_ON_READ", say("hoodie.table.type", "MERGE_ON_READ")),
    Symptom("NOT_CHECKED", "key generator", "my.Own", say("hoodie.table.keygenerator.type", "my.Own")),
    Symptom("STRANGE_FILE", "on the timeline", f"{TIMELINE}/x.tmp", leave(f"{TIMELINE}/x.tmp")),
    Symptom(
        "STRANGE_FILE", "Java died", "commit.", leave(f"{TIMELINE}/{SOON}.commit.{'a' * 8}-bbbb-cccc-dddd-{'e' * 12}")
    ),
    Symptom("STRANGE_FILE", "in a partition", "x/readme", leave("x/readme")),
    Symptom("STRANGE_FILE", "in the archive", f"{HISTORY}/readme", archived(leave(f"{HISTORY}/readme"))),
    Symptom("LINK", "in a partition", "x/link", link),
    Symptom("UNREADABLE", "checksum is a folder", PROPERTIES, lambda p: (p / ".hoodie/.hoodie.properties.crc").mkdir()),
    Symptom(
        "NO_COMPLETION_TIME",
        "renamed",
        ".commit",
        lambda p: commits(p)[-1].rename(p / TIMELINE / f"{time_of(commits(p)[-1])}.commit"),
    ),
    Symptom("STRANGE_TIME", "no day", "99999999999999999", leave(f"{TIMELINE}/99999999999999999.commit.requested")),
    Symptom("FUTURE_TIME", "requested", "20990101000000000", leave(f"{TIMELINE}/20990101000000000.commit.requested")),
    Symptom("OUT_OF_ORDER", "before it was requested", LONG_AGO, partial(completed_at, number=-1, time=LONG_AGO)),
    Symptom("OUT_OF_ORDER", "both at once", "completed both at", at_one_time),
    Symptom("COMPLETED_TWICE", "two files", "2 completed files", twice_completed),
    Symptom(
        "COMPLETED_TWICE",
        "two actions",
        "that of a clean and of a commit",
        lambda p: put(f"{time_of(commits(p)[-1])}.clean.requested")(p),
    ),
    *(
        Symptom("EMPTY_INSTANT", name, says, put(name))
        for name, says in (
            (f"{SOON}_{SOON}.commit", "pyhudi fails"),
            (f"{SOON}_{SOON}.deltacommit", "hudi-rs fails"),
            (f"{SOON}_{SOON}.replacecommit", "pyhudi fails"),
            (f"{SOON}.compaction.requested", "every read"),
            (f"{SOON}.logcompaction.requested", "every read"),
            (f"{SOON}.clean.requested", "every write"),
            (f"{SOON}_{SOON}.rollback", "metadata table"),
            (f"{SOON}_{SOON}.restore", "metadata table"),
            (f"{SOON}_{SOON}.savepoint", "keeps no file"),
            (f"{SOON}_{SOON}.indexing", "without the table's rows"),
        )
    ),
    Symptom("EMPTY_CLEAN", "completed", ".clean", put(f"{SOON}_{SOON}.clean")),
    *(
        Symptom("TORN_INSTANT", name, name, put(name, b"Obj\x01noise"))
        for name in (
            *(f"{SOON}_{SOON}.{action}" for action in ("commit", "replacecommit", "clean", "rollback", "restore")),
            *(f"{SOON}_{SOON}.{action}" for action in ("savepoint", "indexing")),
            *(f"{SOON}.{action}.requested" for action in ("clean", "rollback", "restore", "clustering", "compaction")),
            f"{SOON}.replacecommit.requested",
        )
    ),
    Symptom("TORN_INSTANT", "cut", ".commit", lambda p: commits(p)[-1].write_bytes(commits(p)[-1].read_bytes()[:-3])),
    Symptom("NULL_IN_COMMIT", "extra", "extraMetadata", body(lambda record: record.update(extraMetadata=None))),
    Symptom(
        "NULL_IN_COMMIT",
        "stats",
        "partitionToWriteStats",
        body(lambda record: record.update(partitionToWriteStats=None)),
    ),
    Symptom("UNKNOWN_OPERATION", "lower case", "'upsert'", body(lambda record: record.update(operationType="upsert"))),
    Symptom("NO_SCHEMA", "nothing", ".commit", put(f"20981231000000000_{SOON}.commit", models.CommitMetadata())),
    Symptom("STAT_MISMATCH", "group", "other", stat(fileId="other")),
    Symptom("STAT_MISMATCH", "path", "y/k.parquet", stat(path="y/k.parquet")),
    Symptom("NO_SIZE", "null", "how large", stat(fileSizeInBytes=None)),
    Symptom("SIZE_MISMATCH", "said", "says 7", stat(fileSizeInBytes=7)),
    Symptom("ROW_COUNT", "said", "says 777", stat(numWrites=777)),
    Symptom("PENDING_WRITE", "foreign", f"commit {SOON}", put(f"{SOON}.commit.requested")),
    Symptom("PENDING_WRITE", "inflight", f"replacecommit {SOON}", put(f"{SOON}.replacecommit.inflight")),
    *(
        Symptom("PENDING_SERVICE", name, says, put(f"{SOON}.{name}"))
        for name, says in (
            ("clean.requested", "next clean"),
            ("rollback.requested", "Apache Hudi"),
            ("compaction.requested", "refuses"),
            ("clustering.inflight", "refused"),
            ("indexing.requested", "archive"),
            ("savepoint.inflight", "keeps nothing"),
        )
    ),
    Symptom("PENDING_RESTORE", "requested", "refused", put(f"{SOON}.restore.requested")),
    Symptom("PENDING_ARCHIVED", "requested", "archive", archived(partial(put_back, name="{}.commit.requested"))),
    Symptom("NO_REQUESTED", "inflight", "never requested", put(f"{SOON}.inflight")),
    Symptom(
        "ROLLBACK_UNFINISHED", "complete", "still on the timeline", lambda p: rollback_of(p, time_of(commits(p)[0]))
    ),
    Symptom("CLAIMED_TWICE", "clusterings", "both want", wanted_twice),
    Symptom("PLAN_REPLACED", "clustering", "is replaced", plan_replaced),
    Symptom("CLEAN_TAKES_LIVE", "newest", "readers see", lambda p: clean_of(p, newest_files(p), done=False)),
    Symptom(
        "CLEAN_TAKES_LIVE",
        "savepoint",
        "keeps",
        lambda p: (
            savepoint_of(p, [min((p / "x").glob("*.parquet"), key=lambda f: f.stem[-17:]).name]),
            clean_of(p, [min((p / "x").glob("*.parquet"), key=lambda f: f.stem[-17:])], done=False),
        ),
    ),
    Symptom("SAVEPOINT_FILE_LOST", "gone", "x/gone.parquet", lambda p: savepoint_of(p, ["gone.parquet"])),
    Symptom("SAVEPOINT_WITHOUT_COMMIT", "none", SOON, lambda p: savepoint_of(p, [], SOON)),
    Symptom("ARCHIVE_MANIFEST", "version", "_version_", archived(at(f"{HISTORY}/_version_", lambda _: b"7"))),
    Symptom("ARCHIVE_MANIFEST", "noise", "manifest_1", archived(at(f"{HISTORY}/manifest_1", lambda _: b"{"))),
    Symptom(
        "ARCHIVE_MANIFEST",
        "none",
        HISTORY,
        archived(lambda p: [(p / HISTORY / one).unlink() for one in ("manifest_1", "_version_")]),
    ),
    Symptom(
        "ARCHIVE_BROKEN_OFF",
        "ahead",
        "manifest_2",
        archived(at(f"{HISTORY}/manifest_1", lambda data: data))
        and archived(lambda p: shutil.copy(p / HISTORY / "manifest_1", p / HISTORY / "manifest_2")),
    ),
    Symptom("ARCHIVE_BROKEN_OFF", "no version", "_version_", archived(lose(f"{HISTORY}/_version_"))),
    Symptom("ARCHIVE_BROKEN_OFF", "unlisted", "_0.parquet", archived(manifest(lambda said: said.update(files=[])))),
    Symptom("ARCHIVE_FILE_LOST", "gone", "_0.parquet", archived(lose_archived)),
    Symptom("ARCHIVE_FILE_LOST", "size", "says 7", archived(manifest(lambda said: said["files"][0].update(fileLen=7)))),
    Symptom(
        "ARCHIVE_FILE_CORRUPT", "noise", "_0.parquet", archived(at(f"{HISTORY}/*_0.parquet", lambda data: data[:-9]))
    ),
    Symptom("IN_BOTH_PLACES", "completed", "is archived", archived(partial(put_back, name="{0}_{0}.commit"))),
    Symptom("NO_METAFILE", "lost", "x", moved),
    Symptom("METAFILE_CORRUPT", "noise", "x/.hoodie_partition", at("x/.hoodie_partition_metadata", lambda _: b"noise")),
    Symptom(
        "METAFILE_CORRUPT",
        "depth",
        "7 folders",
        at("x/.hoodie_partition_metadata", lambda data: data.replace(b"Depth=1", b"Depth=7")),
    ),
    Symptom("NESTED_PARTITION", "root", "'x'", lambda p: shutil.copy(p / "x/.hoodie_partition_metadata", p)),
    Symptom("NESTED_PARTITION", "inner", "'x/z'", lambda p: shutil.copytree(p / "y", p / "x/z")),
    Symptom("PARTITION_NAME", "hive", "'x'", say("hoodie.datasource.write.hive_style_partitioning", "true")),
    Symptom("LOST_FILE", "newest", "x/0000000", lambda p: newest_files(p)[0].unlink()),
    Symptom("LOST_FILE", "all", "x/0000000", lambda p: shutil.rmtree(p / "x")),
    Symptom("CLEANED_LIVE_FILE", "newest", "a clean took it", lambda p: clean_of(p, newest_files(p), done=True)),
    Symptom("UNNAMED_FILE", "attempt", "9-9-9", lambda p: copied(p, "")),
    Symptom("ORPHAN", "young", "20981231000000000", lambda p: copied(p, "20981231000000000")),
    Symptom("ORPHAN_SHOWN", "old", LONG_AGO, lambda p: copied(p, LONG_AGO)),
    Symptom(
        "ROLLED_BACK_FILE",
        "young",
        "undid",
        lambda p: (copied(p, "20981230000000000"), rollback_of(p, "20981230000000000")),
    ),
    Symptom("REPLACED_SHOWN", "archived", "y/0000000", archived(lambda p: None, count=3)),
    Symptom("BUCKET_TWICE", "committed", "has the file groups", second_group),
    Symptom("NO_BUCKET", "beyond", "no bucket among 1", say("hoodie.bucket.index.num.buckets", "1")),
    Symptom("FILE_CORRUPT", "empty", "x/0000000", lambda p: newest_files(p)[0].write_bytes(b"")),
    Symptom(
        "FILE_CORRUPT",
        "page",
        "x/0000000",
        lambda p: newest_files(p)[0].write_bytes(_with_noise(newest_files(p)[0].read_bytes())),
        deep=True,
    ),
    Symptom(
        "META_COLUMNS",
        "order",
        "begins with",
        rewritten(lambda table: table.select([*META_FIRST, *(n for n in table.column_names if n not in META_FIRST)])),
    ),
    Symptom(
        "COLUMNS_MISFIT",
        "type",
        "value",
        rewritten(lambda table: table.set_column(table.num_columns - 1, "value", table.column("id"))),
    ),
    Symptom("FOOTER_INVALID", "one bound", "one of", rewritten(same, {MAX_KEY.encode(): None})),
    Symptom("FOOTER_INVALID", "schema", "x/0000000", rewritten(same, {b"parquet.avro.schema": b"noise"})),
    Symptom("KEY_RANGE", "statistics", "'zz'", rewritten(same, {MAX_KEY.encode(): b"zz"})),
    Symptom("BLOOM_CORRUPT", "noise", "bloom filter", rewritten(same, {BLOOM: b"!"})),
    Symptom(
        "BLOOM_CORRUPT",
        "cut",
        "where 20 belong",
        rewritten(same, {BLOOM: base64.b64encode(b"\xff" * 4 + b"\0\0\0\5\1\0\0\0\x38" + b"\0" * 6)}),
    ),
    Symptom(
        "FILE_NAME_COLUMN", "other", "12345", column("_hoodie_file_name", lambda some: ["12345", *some[1:]]), deep=True
    ),
    Symptom(
        "PARTITION_COLUMN", "meta", "'y'", column("_hoodie_partition_path", lambda some: [*some[1:], "y"]), deep=True
    ),
    Symptom("PARTITION_COLUMN", "made", "'y'", column("p", lambda some: [*some[1:], "y"]), deep=True),
    Symptom(
        "COMMIT_TIME_COLUMN",
        "nobody",
        "20981231000000000",
        column("_hoodie_commit_time", lambda some: ["20981231000000000", *some[1:]]),
        deep=True,
    ),
    Symptom(
        "KEY_MISMATCH", "other", "than its columns make", column("id", lambda some: ["other", *some[1:]]), deep=True
    ),
    Symptom(
        "KEY_MISMATCH", "null", "no record key", column("_hoodie_record_key", lambda some: [None, *some[1:]]), deep=True
    ),
    Symptom("WRONG_BUCKET", "all", "does not belong to bucket", lambda p: swap(newest_files(p)), deep=True),
    Symptom(
        "DUPLICATE_KEY",
        "upserted",
        "1 record keys",
        column("_hoodie_record_key", lambda some: [some[1], *some[1:]]),
        deep=True,
    ),
    Symptom(
        "KEY_ADDED_TWICE", "inserted", "12 record keys", lambda p: write(p, rows("x", 5), operation="insert"), deep=True
    ),
    Symptom("METADATA_LOST", "gone", "files", say("hoodie.table.metadata.partitions", "files")),
    Symptom("METADATA_STALE", "behind", "does not know", metadata_table),
    Symptom(
        "STALE_CHECKSUM",
        "properties",
        PROPERTIES,
        partial(crc, name=".hoodie/.hoodie.properties.crc", data=b"crc\0\0\0\2\0noise"),
    ),
    Symptom("STALE_CHECKSUM", "noise", PROPERTIES, partial(crc, name=".hoodie/.hoodie.properties.crc", data=b"noise")),
    Symptom(
        "STALE_CHECKSUM",
        "data",
        "x/0000000",
        lambda p: [crc(p, f"x/.{one.name}.crc", b"crc\0\0\0\2\0") for one in newest_files(p)],
        deep=True,
    ),
    Symptom("LEFT_OVER", "markers", "markers of", new_folder(f".hoodie/.temp/{SOON}/MARKERS0")),
    Symptom("LEFT_OVER", "folder", "working folder", new_folder(f".hoodie/.pyhudi/{SOON}/owner.json")),
    Symptom("LEFT_OVER", "heartbeat", "heartbeat of", new_folder(f".hoodie/.heartbeat/{SOON}")),
    Symptom("LOCK_LEFT", "lock", ".hoodie/lock", leave(".hoodie/lock")),
    Symptom("DECISION_OPEN", "not carried out", "was decided", opened_decision),
    Symptom("DECISION_OPEN", "torn", "not whole", torn_decision),
]


def swap(files: list[Path]) -> None:
    """Give the files of two buckets each other's names."""
    one, other = files
    one.rename(one.with_suffix(".aside"))
    other.rename(one)
    one.with_suffix(".aside").rename(other)


def _with_noise(data: bytes) -> bytes:
    return data[:200] + b"\xee" * 100 + data[300:]


__all__ = ["SYMPTOMS", "Symptom", "become_folder", "make_healthy"]
