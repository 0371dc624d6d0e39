"""Every sickness that `validate` knows: how it is made, and what has to be said of it."""

from __future__ import annotations

import shutil
from functools import partial

from pyhudi.table.files.base_file import MAX_KEY
from pyhudi.timeline.metadata import models
from support.drive import write
from support.sick.sick_tables import PROPERTIES, TIMELINE, at, leave, lose, say
from support.sick.spoiling import (
    BLOOM,
    HISTORY,
    LONG_AGO,
    META_FIRST,
    SOON,
    Symptom,
    _with_noise,
    archived,
    at_one_time,
    body,
    clean_of,
    column,
    commits,
    completed_at,
    copied,
    crc,
    dynamic_filter,
    filter_of,
    link,
    lose_archived,
    manifest,
    metadata_table,
    moved,
    new_folder,
    newest_files,
    of_two_minds,
    opened_decision,
    plan_replaced,
    put,
    put_back,
    record_ring,
    record_rule,
    rewritten,
    rollback_of,
    rows,
    same,
    savepoint_of,
    second_group,
    simple_filter,
    stat,
    swap,
    time_of,
    torn_decision,
    twice_completed,
    undone_rescale,
    wanted_twice,
)

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
    Symptom("NOT_CHECKED", "version", "version 7", say("hoodie.table.version", "7")),
    Symptom("NOT_CHECKED", "index", "HBASE", say("hoodie.index.type", "HBASE")),
    Symptom("NOT_CHECKED", "buckets", "hoodie.bucket.index.num.buckets=0", say("hoodie.bucket.index.num.buckets", "0")),
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
            ("compaction.requested", "queries have to merge"),
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
    Symptom("ARCHIVE_LOST", "merged", "merged the slice", archived(lambda p: shutil.rmtree(p / HISTORY))),
    Symptom("ARCHIVE_LOST", "noted", "write_ids notes the ids", new_folder(".hoodie/.pyhudi/write_ids")),
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
    Symptom("OTHER_BUCKETS", "ring", "hashing_meta", record_ring),
    Symptom("BUCKETS_UNKNOWN", "gone", f"{LONG_AGO}.hashing_config", partial(record_rule, b'{"rule": "regex"}')),
    Symptom("BUCKETS_UNKNOWN", "damaged", "is damaged", partial(record_rule, b"{", time="0" * 14)),
    Symptom("RESCALE_UNDONE", "rule", f"{SOON}.hashing_config stays", undone_rescale),
    Symptom("INDEX_UNCLEAR", "mixture", "beside 8c0f11d2", of_two_minds),
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
    Symptom("BLOOM_CORRUPT", "cut", "5 hashes and 56 bits", rewritten(same, simple_filter(bits=bytes(6)))),
    Symptom("BLOOM_CORRUPT", "long", "follow its end", rewritten(same, simple_filter(bits=bytes(8)))),
    # Apache Hudi takes the first number for that of the hash functions, and these for Jenkins's.
    Symptom("BLOOM_CORRUPT", "older than its head", "murmur", rewritten(same, simple_filter(version=5))),
    Symptom("BLOOM_CORRUPT", "other hashes", "murmur", rewritten(same, simple_filter(kind=0))),
    Symptom("BLOOM_CORRUPT", "checksum", "checksum", rewritten(same, simple_filter(checksum=b"1a2b3c4d"))),
    Symptom("BLOOM_CORRUPT", "head", "does not fit its rows", rewritten(same, dynamic_filter(hashes=4))),
    Symptom("BLOOM_CORRUPT", "no rows", "it has no rows", rewritten(same, dynamic_filter(rows=0))),
    Symptom("BLOOM_MISS", "others", "not in the bloom filter", rewritten(same, filter_of("other")), deep=True),
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
    Symptom("WRONG_BUCKET", "all", "does not belong to bucket", lambda p: swap(newest_files(p))),
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
    Symptom("DECISION_UNREADABLE", "torn", "not whole", torn_decision),
]
