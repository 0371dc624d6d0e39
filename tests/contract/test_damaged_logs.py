"""Every damage of a completed write's log file is named: no reader shows other rows in its place."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.connector.command.exit_codes import WRONG_TABLE
from pyhudi.connector.jobs import main
from pyhudi.errors import CorruptFileError, InvalidOptionError, PyHudiError, UndoError
from pyhudi.operations.inspect.history import history
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.result import RepairedLog, ServiceResult
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.compaction.repair import repair
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.upkeep.after_write import means_of
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.logs.log_blocks import MAGIC, LogBlock
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.files.output import Output
from support.attempts import parted, rows
from support.drawn.upkept import OFF
from support.drive import KEYED, read, rows_of, write
from support.made import compacting
from support.places import files_below
from support.readers import read_without_spark, rows_by_hudi_rs
from support.recorded.fixture_tables import unpack
from support.rules.health import codes, errors

TABLE = replace(KEYED, table_type="MERGE_ON_READ", bucket_count=1)
_HOSTILE = (0, 1, -1, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class Damage:
    """One way in which a log file is damaged.

    Attributes:
        name: Says how and where.
        data: The file's bytes then.
    """

    name: str
    data: bytes


def make(path: Path, block_format: str) -> None:
    """Make a table of one file group, with log files of several blocks, of deletes, and of both."""
    settings = WriteSettings(logs=LogSettings(block_format=block_format, block_bytes=300))
    write(path, rows(*range(12), value=0), table=TABLE, settings=settings)
    write(path, rows(1, 2, 3, 4, 5, 6, 7, 8, value=1, ts=2), settings=settings)
    write(path, rows(1, 9, value=0, ts=3), operation="delete", settings=settings)
    gone = pa.array([False, True, False])
    write(path, rows(2, 3, 40, value=3, ts=4).append_column("_hoodie_is_deleted", gone), settings=settings)


def damages(path: Path, log: Path, dice: random.Random, *, many_bits: bool) -> Iterator[Damage]:
    """Yield ways to damage a log file: cuts, flipped bits in every byte around contents, hostile sizes, tails.

    ``many_bits`` flips a quarter of the bits of the numbers that say what follows, other ones in each block, and a bit
    of each byte of headers' texts, else a bit of each byte of the numbers, and of some of the texts.
    """
    data = log.read_bytes()
    blocks = list(read_blocks(open_storage(str(path)), log.relative_to(path).as_posix()))
    content = {
        at: block for block in blocks for at in range(block.content_offset, block.content_offset + block.content_size)
    }
    ends = {block.offset for block in blocks}
    for at in sorted({0, 1, 6, 13, 14, 17, 18, *ends, *(dice.randrange(len(data)) for _ in range(25)), len(data) - 1}):
        yield Damage(f"cut at {at}", data[:at])
    inside = dice.sample(sorted(content), min(150, len(content)))
    texts = {at for block in blocks for at in _texts(data, block)}
    told = texts if many_bits else {*dice.sample(sorted(texts), min(100, len(texts)))}
    for at in sorted({*range(len(data))} - {*content} - texts | told) + inside:
        is_number = at not in texts and at not in content
        for bit in dice.sample(range(8), 2 if many_bits and is_number else 1):
            flipped = data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
            yield Damage(f"flip of bit {bit} at {at}", flipped)
    for block in blocks:
        yield from _hostile(data, block)
    for name, tail in (("noise", b"noise"), ("magic", MAGIC), ("itself", data), ("half", data[: len(data) // 2])):
        yield Damage(f"{name} behind", data + tail)
        yield Damage(f"{name} before", tail + data)
    yield Damage("empty", b"")


def _texts(data: bytes, block: LogBlock) -> Iterator[int]:
    """Yield where the texts of a block's headers are."""
    at = block.offset
    for text in block.headers.values():
        start = data.index(text.encode(), at)
        at = start + len(text.encode())
        yield from range(start, at)


def _hostile(data: bytes, block: LogBlock) -> Iterator[Damage]:
    places = {"length": block.offset + 6, "content": block.content_offset - 8, "trailer": _end(block) - 8}
    for name, at in places.items():
        for size in _HOSTILE:
            changed = data[:at] + struct.pack(">Q", size & 0xFFFFFFFFFFFFFFFF) + data[at + 8 :]
            if changed != data:
                yield Damage(f"{name} {size} of the block at {block.offset}", changed)


def _end(block: LogBlock) -> int:
    return block.content_offset + block.content_size + 12


def content_of(path: Path) -> pa.Table:
    return read(path).sort_by("_hoodie_record_key")


def logs_of(path: Path) -> list[Path]:
    return sorted(one for one in path.rglob(".*.log.*") if not one.name.endswith(".crc"))


def cut(path: Path) -> tuple[Path, str]:
    """Cut the newest log file, and return it with its path in the table."""
    log = max(logs_of(path), key=lambda one: one.name.partition(".log.")[0].rpartition("_")[2])
    log.write_bytes(log.read_bytes()[:-5])
    return log, log.relative_to(path).as_posix()


def mend(path: Path, *files: str, dry_run: bool = False) -> ServiceResult:
    return repair(open_storage(str(path)), files, means_of(WriteSettings()), dry_run=dry_run)


# What is around contents is alike whatever their format.
@pytest.mark.parametrize(
    ("block_format", "many_bits"),
    [("parquet", False), ("avro", False), pytest.param("avro", True, marks=pytest.mark.long)],
)
def test_no_damage_of_a_log_file_shows_other_rows(tmp_path: Path, block_format: str, many_bits: bool) -> None:
    make(tmp_path, block_format)
    expected, dice = content_of(tmp_path), random.Random(block_format)
    wrong: list[Damage] = []
    for log in logs_of(tmp_path):
        whole = log.read_bytes()
        for damage in damages(tmp_path, log, dice, many_bits=many_bits):
            log.write_bytes(damage.data)
            try:
                if content_of(tmp_path) != expected:
                    wrong.append(damage)
            except PyHudiError:
                pass
        log.write_bytes(whole)

    assert content_of(tmp_path) == expected
    assert [one.name for one in wrong] == []


QUIET = WriteSettings(upkeep=OFF)
INDEXES = ["BUCKET", "SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"]


@pytest.mark.parametrize("index", INDEXES)
def test_a_repaired_file_group_takes_the_next_upsert(tmp_path: Path, index: str) -> None:
    """Reads, lookups and compactions refuse the damaged file; its older rows, and other log files, stay."""
    made = replace(TABLE, index_type=index, bucket_count=1 if index == "BUCKET" else None)
    settings = WriteSettings(output=Output(bloom_filter=True if "BLOOM" in index else None))
    write(tmp_path, rows(1, 2, 3, value=0), table=made, settings=settings)
    write(tmp_path, rows(1, value=1, ts=2))
    lost = write(tmp_path, rows(2, value=2, ts=2)).instant
    log, path = cut(tmp_path)
    size = log.stat().st_size
    with pytest.raises(CorruptFileError, match=re.escape(f"repair(accept_loss=['{path}'])")):
        rows_of(tmp_path, "id", "value")
    with pytest.raises(CorruptFileError):
        compacting.run(tmp_path)
    assert "LOG_DAMAGED" in {one["code"] for one in errors(tmp_path)}
    if index != "BUCKET":
        with pytest.raises(CorruptFileError):
            write(tmp_path, rows(2, 9, value=9, ts=3))

    told = mend(tmp_path, path, dry_run=True)
    repair = mend(tmp_path, path)

    [report] = repair.repaired
    assert told.repaired == repair.repaired and (told.dry, told.instant) == (True, "")
    assert report == RepairedLog(path, lost, size + 5, size, 1, 0)
    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 0), ("k3", 0)]
    write(tmp_path, rows(2, 9, value=3, ts=3))
    expected = [("k1", 1), ("k2", 3), ("k3", 0), ("k9", 3)]
    assert rows_of(tmp_path, "id", "value") == rows_by_hudi_rs(tmp_path, "id", "value") == expected
    assert errors(tmp_path) == []
    assert "REPAIRED" in codes(tmp_path)
    [row] = [one for one in history(open_storage(str(tmp_path))).to_pylist() if one["repair"]]
    assert (row["instant"], json.loads(row["repair"])) == (repair.instant, [asdict(report)])
    assert log.exists()
    with pytest.raises(CorruptFileError, match="is damaged"):
        read_without_spark(tmp_path, {"as.of.instant": lost})


CHANGES = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}


@pytest.mark.parametrize("block_format", ["parquet", "avro"])
def test_every_reader_and_service_refuses_a_damaged_file_and_changes_nothing(
    tmp_path: Path, block_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = WriteSettings(upkeep=OFF, logs=LogSettings(block_format=block_format))
    write(tmp_path, rows(1, 2, 3, value=0), table=TABLE, settings=settings)
    write(tmp_path, rows(1, value=1, ts=2), settings=settings)
    write(tmp_path, rows(2, value=2, ts=2), settings=settings)
    _, path = cut(tmp_path)
    damaged = files_below(tmp_path)
    ways: list[Callable[[], object]] = [
        lambda: read_without_spark(tmp_path),
        lambda: read_without_spark(tmp_path, CHANGES),
        lambda: compacting.join(tmp_path),
        lambda: compacting.run(tmp_path),
    ]
    for way in ways:
        with pytest.raises(CorruptFileError, match=re.escape(f"repair(accept_loss=['{path}'])")):
            way()

    assert {name: data for name, data in files_below(tmp_path).items() if name in damaged} == damaged
    assert main(["validate", "--path", str(tmp_path)]) == WRONG_TABLE
    assert "LOG_DAMAGED" in {json.loads(line)["code"] for line in capsys.readouterr().out.splitlines()}


@pytest.mark.parametrize("deep", [False, True])
def test_validate_holds_files_against_archived_instants(tmp_path: Path, deep: bool) -> None:
    """Nothing on the timeline states their size, so readers pass over what is torn, as before."""
    write(tmp_path, rows(1, 2, value=0), table=TABLE, settings=QUIET)
    gone = write(tmp_path, rows(1, value=1, ts=2), settings=QUIET).instant
    for value in (2, 3, 4):
        write(tmp_path, rows(2, value=value, ts=value), settings=QUIET)
    archive(open_storage(str(tmp_path)), ArchiveSettings(min_commits=2, max_commits=3, delta_commits=None))
    assert gone not in instants(tmp_path)
    [log] = [one for one in logs_of(tmp_path) if gone in one.name]
    log.write_bytes(log.read_bytes()[:-5])

    assert rows_of(tmp_path, "id", "value") == [("k1", 0), ("k2", 4)]
    [found] = [one for one in errors(tmp_path, deep=deep) if one["code"] == "LOG_DAMAGED"]
    assert (found["file"], found["instant"]) == (log.relative_to(tmp_path).as_posix(), gone)


def test_damage_of_one_file_group_leaves_the_others_alone(tmp_path: Path) -> None:
    """Other groups are read and written, the damaged one is appended to, and its write can be rolled back."""
    table = replace(TABLE, partition_fields=("p",))
    for partition in ("a", "b"):
        write(tmp_path, parted(partition, 1, 2, value=0), table=table, settings=QUIET)
    lost = write(tmp_path, parted("a", 1, value=1), settings=QUIET).instant
    cut(tmp_path)

    write(tmp_path, parted("b", 1, value=5), settings=QUIET)
    newest = write(tmp_path, parted("a", 2, value=6), settings=QUIET).instant

    rollback(open_storage(str(tmp_path)), newest)
    with pytest.raises(UndoError, match="not its newest write"):
        rollback(open_storage(str(tmp_path)), lost)
    restore(open_storage(str(tmp_path)), max(time for time in instants(tmp_path) if time < lost))
    assert rows_of(tmp_path, "p", "id", "value") == [(p, f"k{n}", 0) for p in "ab" for n in (1, 2)]


def test_a_repair_takes_back_the_plan_that_names_the_file(tmp_path: Path) -> None:
    write(tmp_path, rows(1, 2, value=0), table=TABLE)
    write(tmp_path, rows(1, value=1, ts=2))
    planned = compacting.schedule(tmp_path).instant
    _, path = cut(tmp_path)

    repair = mend(tmp_path, path)

    assert planned not in instants(tmp_path)
    assert repair.instant in instants(tmp_path)
    assert rows_of(tmp_path, "id", "value") == [("k1", 0), ("k2", 0)]


def test_a_repair_leaves_other_file_groups_and_their_plans_alone(tmp_path: Path) -> None:
    table = replace(TABLE, partition_fields=("p",), bucket_count=2)
    for partition in ("a", "b"):
        write(tmp_path, parted(partition, *range(8), value=0), table=table, settings=QUIET)
    write(tmp_path, parted("b", *range(8), value=1), settings=QUIET)
    planned = compacting.schedule(tmp_path).instant
    write(tmp_path, parted("a", *range(8), value=1), settings=QUIET)
    _, path = cut(tmp_path)

    mend(tmp_path, path)

    assert planned in {one.requested_time for one in compacting.timeline_of(tmp_path).pending}
    assert [len(list((tmp_path / name).glob("*.parquet"))) for name in ("a", "b")] == [3, 2]
    values = [value for _, value in rows_of(tmp_path, "p", "value")]
    assert 0 < values[:8].count(1) < 8 and values[8:] == [1] * 8


def test_a_job_repairs_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, rows(1, 2, value=0), table=TABLE)
    write(tmp_path, rows(1, value=1, ts=2))
    _, path = cut(tmp_path)
    job = ["repair", "--path", str(tmp_path), "--accept-loss", path]

    codes = [main([*job, "--dry-run"]), main(job), main(job)]

    assert codes == [0, 0, 2]
    told, done = map(json.loads, capsys.readouterr().out.splitlines())
    assert (told["dry"], told["repaired"]) == (True, done["repaired"])
    assert rows_of(tmp_path, "id", "value") == [("k1", 0), ("k2", 0)]


def test_a_repair_keeps_every_block_that_can_be_read(tmp_path: Path) -> None:
    """Of a file with several blocks the torn block alone is given up."""
    settings = WriteSettings(logs=LogSettings(block_bytes=64))
    write(tmp_path, rows(*range(20), value=0), table=TABLE)
    write(tmp_path, rows(*range(20), value=1, ts=2), settings=settings)
    _, path = cut(tmp_path)

    [report] = mend(tmp_path, path).repaired

    assert (report.stated_records, 0 < report.readable_records < 20) == (20, True)
    assert [value for (value,) in rows_of(tmp_path, "value")].count(1) == report.readable_records


def test_a_repair_that_meets_another_damaged_file_names_it_and_leaves_no_plan(tmp_path: Path) -> None:
    write(tmp_path, rows(1, 2, value=0), table=TABLE)
    write(tmp_path, rows(1, value=1, ts=2))
    _, first = cut(tmp_path)
    write(tmp_path, rows(2, value=2, ts=2))
    _, second = cut(tmp_path)

    with pytest.raises(CorruptFileError, match=re.escape(second)):
        mend(tmp_path, first)
    assert not [one for one in compacting.timeline_of(tmp_path).pending if one.action == "compaction"]
    repair = mend(tmp_path, first, second)
    assert {one.file for one in repair.repaired} == {first, second}
    [noted] = [one["repair"] for one in history(open_storage(str(tmp_path))).to_pylist() if one["repair"]]
    assert json.loads(noted) == [asdict(one) for one in repair.repaired]
    assert rows_of(tmp_path, "id", "value") == [("k1", 0), ("k2", 0)]


def test_a_repair_refuses_what_is_not_damaged(tmp_path: Path) -> None:
    write(tmp_path, rows(1, 2, value=0), table=TABLE)
    write(tmp_path, rows(1, value=1, ts=2))
    [log] = logs_of(tmp_path)
    before = files_below(tmp_path)

    with pytest.raises(InvalidOptionError, match="is not damaged"):
        mend(tmp_path, log.name)
    with pytest.raises(InvalidOptionError, match="no log file of a newest file slice"):
        mend(tmp_path, "nowhere.log")
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_repair_that_gives_up_no_file_is_refused(tmp_path: Path, dry_run: bool) -> None:
    write(tmp_path, rows(1, value=0), table=TABLE)

    with pytest.raises(InvalidOptionError, match="leave accept_loss out"):
        mend(tmp_path, dry_run=dry_run)


def test_a_log_file_of_another_writer_may_be_longer_and_may_repeat_a_torn_block(tmp_path: Path) -> None:
    table = Path(unpack("v9_mor_torn", tmp_path))
    expected = content_of(table)
    longest = max(logs_of(table), key=lambda one: one.stat().st_size)
    data = longest.read_bytes()

    for name, damaged in {"end": data + data[:60], "cut": data[:-70], "rows": data[: data.rindex(MAGIC)]}.items():
        longest.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match="is damaged"):
            content_of(table)
        assert "LOG_DAMAGED" in {one["code"] for one in errors(table)}, name
    longest.write_bytes(data)
    assert content_of(table) == expected
    assert "SKIPPED_BLOCK" in codes(table)


@pytest.mark.parametrize("block_format", ["parquet", "avro"])
def test_whole_blocks_are_missed_by_size_and_by_records(tmp_path: Path, block_format: str) -> None:
    """A cut at a block's end leaves no torn block; of another writer's file a torn one may be there once more."""
    settings = WriteSettings(upkeep=OFF, logs=LogSettings(block_format=block_format, block_bytes=64))
    write(tmp_path, rows(*range(20), value=0), table=TABLE, settings=settings)
    write(tmp_path, rows(*range(20), value=1, ts=2), settings=settings)
    expected = content_of(tmp_path)
    [log] = logs_of(tmp_path)
    data = log.read_bytes()
    starts = [one.offset for one in read_blocks(open_storage(str(tmp_path)), log.relative_to(tmp_path).as_posix())]
    _, second, *_, last = starts
    lost = {
        "cut": (data[:last], "and the instant states"),
        "torn": (data[:second] + b"#NONE#" + data[second + 6 :], "from byte"),
    }
    for other in (False, True):
        if other:
            compacting.as_another_writer(tmp_path)
            lost["torn"] = (lost["torn"][0], "records, and the instant states 20")
        for damaged, why in lost.values():
            log.write_bytes(damaged)
            with pytest.raises(CorruptFileError, match=why):
                content_of(tmp_path)
    log.write_bytes(data[:second] + data[second : second + 40] + data[second:])
    assert content_of(tmp_path) == expected


def instants(path: Path) -> set[str]:
    return {one.requested_time for one in compacting.timeline_of(path).instants}
