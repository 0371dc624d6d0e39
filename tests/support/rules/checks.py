"""Whether a table on disk is whole: told from its files alone, by rules written down here a second time.

Nothing of `pyhudi` decides here, so that a mistake in its hash, its names or its view cannot hide itself. The rules are
those of tables that pyhudi alone has written, cleaned and archived.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.places import Place, on_disk
from support.rules.base_bytes import base_bytes
from support.rules.log_bytes import DELETE, INSTANT, SCHEMA, Block, blocks_of
from support.rules.timeline_bytes import Done, Layout, completed_in, layout_of

METAFILE = ".hoodie_partition_metadata"
# Of a table without buckets they begin with a letter, and a task that opens many file groups counts them at the end.
FILE_ID = r"(?P<file_id>\d{8}-[0-9a-f-]{27}-0|[a-f][0-9a-f]{7}-[0-9a-f-]{27}-\d+)"
DATA_FILE = re.compile(rf"{FILE_ID}_\d+-\d+-\d+_(?P<instant>\d{{17}})\.parquet")
LOG_FILE = re.compile(rf"\.{FILE_ID}_(?P<instant>\d{{17}})\.log\.(?P<version>\d+)_\d+-\d+-\d+")
# Spark partitions, and file groups of one write in one partition, of which the tests have fewer.
MANY = 64
KNOWN = re.compile(
    r"hoodie\.properties|\.pyhudi/(sealed/(\d{10}\.v2/)?\d{17}(\.[0-9a-f]{32})?|sealed/\d{10}\.v2/[0-9a-f]{32}\.\d|decisions/\d{12}|archiving/\d{17}|cleaned|write_ids|archived_instants"
    r"|buckets/\d{14,17}\.json|removed/\d{17}(\.json|/.+))|\.bucket_index/partition_bucket_index_meta/(configs|archive)/\d{14,17}\.hashing_config"
    # What `support.made.following` keeps.
    r"|fake/\d{17}\.(list|change)"
    # What Apache Hudi keeps, or `support.made.metadata_tables` in its place.
    r"|metadata/.+|\.index_defs/index\.json"
)
# What makes all attempts invent one file id; tables out there hold ids made with it.
NAMESPACE = uuid.UUID("5a4cb0ba-5b4a-5d0c-8d75-3c2a2f5c6e1e")

Stats = dict[str, Any]


@dataclass
class _Replay:
    """The timeline taken from its first to its last completed write."""

    live: dict[tuple[str, str], Stats] = field(default_factory=dict)
    written: dict[str, Stats] = field(default_factory=dict)
    # Of each file group the log files that go with its newest base file, with the times at which they were complete.
    logs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    replaced: set[tuple[str, str]] = field(default_factory=set)

    def live_files(self) -> set[str]:
        """Return the paths of the files that readers see."""
        return {stat["path"] for stat in self.live.values()} | {name for some in self.logs.values() for name in some}


def assert_format(path: Place, *, unique: bool = True) -> None:
    """Assert that the table at the path is complete, consistent, and free of anything else.

    Args:
        path: The table.
        unique: Whether each key is there once; inserts add rows without looking.
    """
    with on_disk(path) as root:
        _assert_all(root, unique)


def _assert_all(root: Path, unique: bool) -> None:
    files = {one.relative_to(root).as_posix(): one for one in root.rglob("*") if one.is_file()}
    properties = _properties(root)
    layout = layout_of(properties)
    completed = completed_in(root, layout)
    _assert_no_leftovers(files, layout)
    replay = _Replay()
    for entry in completed:
        if entry.action in {"commit", "replacecommit", "deltacommit"}:
            _take(replay, entry)
    data = {
        name
        for name in files
        if not name.startswith(".hoodie/") and (name.endswith(".parquet") or LOG_FILE.fullmatch(Path(name).name))
    }
    cleaned = {name for one in completed if one.action == "clean" for name in _cleaned(one)}
    assert not cleaned & replay.live_files(), "no clean takes what readers see"
    assert data == set(replay.written) - cleaned, "the data files are those that the commits name, less the cleaned"
    kept = {name for one in completed if one.action == "savepoint" for name in _kept(one)}
    assert kept <= data, "savepoints keep their files"
    instants = {one.instant for one in completed}
    rule = _rule(root, instants)
    there = {name: replay.written[name] for name in data}
    for name, stat in there.items():
        (_assert_log if ".log." in name else _assert_file)(files[name], name, stat, instants)
    for partition in {stat["partitionPath"] for stat in replay.written.values()}:
        _assert_partition(root, partition)
        buckets = _number_of(rule, partition, int(properties.get("hoodie.bucket.index.num.buckets", 0)))
        _assert_keys(root, partition, replay, buckets, properties, unique=unique)
    _assert_unique_numbers(root, replay)


def java_bucket(record_key: str, fields: list[str], count: int) -> int:
    """Return the bucket of a record key by Java's ``List.hashCode``, one character at a time."""
    values = [record_key]
    if "," in record_key and ":" in record_key:
        pairs = [file_slice.split(":", 1) for file_slice in re.split(r",(?=[^,:]+:)", record_key)]
        values = [value for name, value in pairs if name in fields]
    total = 1
    for value in values:
        text = value.encode("utf-16-le")
        units = [int.from_bytes(text[at : at + 2], "little") for at in range(0, len(text), 2)]
        of_value = 0
        for unit in units:
            of_value = (31 * of_value + unit) & 0xFFFFFFFF
        total = (31 * total + of_value) & 0xFFFFFFFF
    return (total & 0x7FFFFFFF) % count


def _rule(root: Path, instants: set[str]) -> Mapping[str, Any] | None:
    """Return the newest rule of bucket numbers whose instant completed; None for a table that has none."""
    folders = (root / ".hoodie/.bucket_index/partition_bucket_index_meta/configs", root / ".hoodie/.pyhudi/buckets")
    rule_files = {file.name.partition(".")[0]: file for folder in folders for file in folder.glob("[0-9]*")}
    assert not rule_files or "0" * 14 in rule_files, "the first rescale notes the number before it"
    assert rule_files.keys() <= {*instants, "0" * 14}, "every rule is of an instant that completed"
    return json.loads(rule_files[max(rule_files)].read_text()) if rule_files else None


def _number_of(rule: Mapping[str, Any] | None, partition: str, noted: int) -> int:
    if rule is None:
        return noted
    pairs = (one.split(",") for one in rule["expressions"].split(";"))
    return next((int(number) for text, number in pairs if re.search(text, partition)), rule["defaultBucketNumber"])


def _properties(root: Path) -> dict[str, str]:
    lines = (root / ".hoodie/hoodie.properties").read_text().splitlines()
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {key: value.replace("\\:", ":") for key, _, value in pairs}


def _cleaned(clean: Done) -> set[str]:
    """Return the paths of the files that a clean says it took."""
    said = clean.record
    parts = said["partitionMetadata"].items()
    taken = {f"{name}/{file}".lstrip("/") for name, part in parts for file in part["successDeleteFiles"]}
    assert said["totalFilesDeleted"] == len(taken) > 0, f"the clean {clean.instant} says how many"
    return taken


def _kept(savepoint: Done) -> list[str]:
    parts = savepoint.record["partitionMetadata"]
    return [f"{name}/{file}".lstrip("/") for name, part in parts.items() for file in part["savepointDataFile"]]


def _assert_no_leftovers(files: dict[str, Path], layout: Layout) -> None:
    """Assert that nothing lies about: no marker, heartbeat, spill, lock or temporary file."""
    strangers = [
        name
        for name in files
        if not (
            layout.knows(name) or KNOWN.fullmatch(name.removeprefix(".hoodie/"))
            if name.startswith(".hoodie/")
            else DATA_FILE.fullmatch(name.rpartition("/")[2])
            or LOG_FILE.fullmatch(name.rpartition("/")[2])
            or name.rpartition("/")[2] == METAFILE
        )
    ]
    assert not strangers, strangers


def _take(replay: _Replay, one: Done) -> None:
    """Apply one completed write, checking what its statistics say of themselves."""
    metadata, instant = one.record, one.instant
    assert metadata["extraMetadata"]["schema"]
    for partition, ids in (metadata.get("partitionToReplaceFileIds") or {}).items():
        for file_id in ids:
            known = [one for one in (replay.live, replay.logs) if (partition, file_id) in one]
            assert known, f"{instant} replaces a file group that is not there"
            for one_of_them in known:
                del one_of_them[partition, file_id]
            replay.replaced.add((partition, file_id))
    for partition, stats in metadata["partitionToWriteStats"].items():
        for stat in stats:
            assert stat["partitionPath"] == partition
            assert stat["path"].rpartition("/")[0] == partition
            file, group = stat["path"].rpartition("/")[2], (partition, stat["fileId"])
            name = LOG_FILE.fullmatch(file) or DATA_FILE.fullmatch(file)
            assert name is not None, stat["path"]
            assert (name["file_id"], name["instant"]) == (stat["fileId"], instant)
            assert group not in replay.replaced, f"{instant} uses an id that a replacecommit took away for good"
            replay.written[stat["path"]] = stat
            if file.startswith("."):
                base = replay.live.get(group)
                joined = metadata["operationType"] == "LOG_COMPACT"
                assert joined or stat["prevCommit"] == instant
                assert not joined or base is None or stat["prevCommit"] == _instant_of(base)
                assert (stat["logFiles"], stat["logOffset"]) == ([file], 0)
                assert stat["logVersion"] == int(name["version"])
                if group not in replay.live and group not in replay.logs:
                    _assert_invented(stat, instant)
                replay.logs.setdefault(group, {})[stat["path"]] = one.at
                continue
            newer = replay.live.get(group)
            if newer is not None and _instant_of(newer) > instant:
                continue  # a compaction that was planned before the file group was written anew
            merged = replay.logs.get(group, {})
            if not merged:
                _assert_follows(stat, replay.live.get(group), instant)
            replay.live[group] = stat
            replay.logs[group] = {path: at for path, at in merged.items() if at >= instant}
    of_merges = {"COMPACT": ("commit", True), "LOG_COMPACT": ("deltacommit", True)}
    action = of_merges.get(metadata["operationType"], (one.action, False))
    assert (one.action, bool(metadata["compacted"])) == action


def _assert_follows(stat: Stats, previous: Stats | None, instant: str) -> None:
    """Assert that a file's counts lead from the file group's previous file to it, and that a new group's id is ours."""
    rows_before = 0 if previous is None else previous["numWrites"]
    assert stat["numWrites"] == rows_before + stat["numInserts"] - stat["numDeletes"], "the counts add up"
    if previous is None:
        assert stat["prevCommit"] == "null"
        _assert_invented(stat, instant)
    else:
        name = previous["path"].rpartition("/")[2]
        assert stat["prevBaseFile"] == name
        assert stat["prevCommit"] == _instant_of(previous)


def _instant_of(stat: Stats) -> str:
    name = DATA_FILE.fullmatch(stat["path"].rpartition("/")[2])
    assert name is not None, stat["path"]
    return name["instant"]


def _assert_invented(stat: Stats, instant: str) -> None:
    """Assert that a new file group's id is the one that every attempt invents."""
    file_id, path = stat["fileId"], stat["partitionPath"]
    if file_id[0].isdigit():
        bucket = int(file_id[:8])
        invented = str(uuid.uuid5(NAMESPACE, f"{instant}/{path}/{bucket}"))
        assert file_id == f"{bucket:08d}{invented[8:]}-0", "every attempt invents this id"
        return
    by_number = (str(uuid.uuid5(NAMESPACE, f"{instant}/{path}/by {number}")) for number in range(MANY))
    known = {f"{'abcdef'[int(one[0], 16) % 6]}{one[1:]}" for one in by_number}
    assert file_id.rpartition("-")[0] in known, "every attempt invents this id"


def _assert_log(file: Path, name: str, stat: Stats, instants: set[str]) -> None:
    """Assert a log file's size, and its blocks with their rows."""
    assert file.stat().st_size == stat["fileSizeInBytes"] == stat["totalWriteBytes"]
    rows = 0
    blocks = blocks_of(file)
    for block in blocks:
        assert block.headers[INSTANT] == LOG_FILE.fullmatch(file.name)["instant"], name  # type: ignore[index]
        assert json.loads(block.headers[SCHEMA])["fields"][0]["name"] == "_hoodie_commit_time"
        if block.kind == DELETE:
            continue
        some = block.rows.select(["_hoodie_commit_time", *_LABELS]).to_pydict()
        rows += len(some["_hoodie_record_key"])
        assert set(some["_hoodie_file_name"]) <= {stat["fileId"]}
        assert set(some["_hoodie_partition_path"]) <= {stat["partitionPath"]}
        assert set(some["_hoodie_commit_time"]) <= instants
    behind = [block.kind for block in itertools.dropwhile(_asks_for_no_order, blocks)]
    assert behind == sorted(behind, key=lambda kind: kind == DELETE), "deletes come after the rows of their append"
    assert rows == stat["numWrites"]
    new = stat["numInserts"]
    assert (rows, 0) in {(stat["numUpdateWrites"], new), (new, stat["numUpdateWrites"])}, "nobody looks them up"


def _asks_for_no_order(block: Block) -> bool:
    """Return whether a block holds deletes whose ordering value is the Integer 0, judged by the last of them."""
    return block.kind == DELETE and block.content.endswith(b"\x04\x00\x00")


def _assert_file(file: Path, name: str, stat: Stats, instants: set[str]) -> None:
    """Assert a data file's size, rows, footer and meta columns."""
    assert file.stat().st_size == stat["fileSizeInBytes"] == stat["totalWriteBytes"]
    found = base_bytes(file)
    footer, rows = found.footer, found.rows
    assert len(rows["_hoodie_record_key"]) == stat["numWrites"]
    assert set(rows["_hoodie_file_name"]) <= {name.rpartition("/")[2]}
    assert set(rows["_hoodie_partition_path"]) <= {stat["partitionPath"]}
    assert set(rows["_hoodie_commit_time"]) <= instants
    assert b"parquet.avro.schema" in footer
    keys = rows["_hoodie_record_key"]
    if keys:
        span = (footer[b"hoodie_min_record_key"].decode(), footer[b"hoodie_max_record_key"].decode())
        assert span == (min(keys, key=str.encode), max(keys, key=str.encode))


_LABELS = ("_hoodie_file_name", "_hoodie_partition_path", "_hoodie_record_key")


def _assert_partition(root: Path, partition: str) -> None:
    assert (root / partition / METAFILE).is_file(), f"{partition!r} is no partition"
    text = (root / partition / METAFILE).read_text()
    depth = len(partition.split("/")) if partition else 0
    assert f"partitionDepth={depth}" in text.splitlines()


def _assert_keys(
    root: Path, partition: str, replay: _Replay, buckets: int, properties: dict[str, str], *, unique: bool
) -> None:
    """Assert that each bucket is one file group, and that each key is where its hash says, once if it is unique."""
    live = {file_id: stat for (where, file_id), stat in replay.live.items() if where == partition}
    logged = {file_id: some for (where, file_id), some in replay.logs.items() if where == partition}
    assert all(file_id[:8].isdigit() is bool(buckets) for file_id in {*live, *logged}), "buckets alone have numbers"
    in_bases = [(file_id, base_bytes(root / stat["path"]).rows["_hoodie_record_key"]) for file_id, stat in live.items()]
    if buckets:
        counts = Counter(int(file_id[:8]) for file_id in {*live, *logged})
        assert all(number == 1 for number in counts.values()), f"one file group a bucket: {counts}"
        fields = properties["hoodie.bucket.index.hash.field"].split(",")
        in_logs = [(file_id, _logged(root, names, "_hoodie_record_key")) for file_id, names in logged.items()]
        for file_id, keys in [*in_bases, *in_logs]:
            for key in keys:
                assert java_bucket(key, fields, buckets) == int(file_id[:8]), f"{key!r} is in another bucket"
    seen = Counter(key for _, keys in in_bases for key in keys)
    assert not unique or all(number == 1 for number in seen.values()), "keys are unique within their partition"


def _logged(root: Path, names: Iterable[str], column: str) -> list[str]:
    """Return a column of all rows in some log files."""
    blocks = (block for name in names for block in blocks_of(root / name) if block.kind != DELETE)
    return [value for block in blocks for value in block.rows.column(column).to_pylist()]


def _assert_unique_numbers(root: Path, replay: _Replay) -> None:
    numbers: list[str] = []
    for stat in replay.live.values():
        rows = base_bytes(root / stat["path"]).rows
        for at, number in zip(rows["_hoodie_commit_time"], rows["_hoodie_commit_seqno"], strict=True):
            assert number.startswith(f"{at}_")
            numbers.append(number)
    logs = (name for some in replay.logs.values() for name in some)
    # What was joined holds rows of other log files once more, and has the slice's instant for the previous one.
    appended = (name for name in logs if f"_{replay.written[name]['prevCommit']}.log." in name)
    numbers += _logged(root, appended, "_hoodie_commit_seqno")
    assert len(set(numbers)) == len(numbers), "sequence numbers are unique"
