"""Small files of a table that stand for more than any process can hold: each is refused, and costs next to nothing."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import CorruptFileError, CorruptInstantError, PyHudiError, TableConfigError, UnsupportedTypeError
from pyhudi.operations.inspect.history import history
from pyhudi.operations.transaction.carried_out import is_unused
from pyhudi.storage import bounds, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.logs.log_blocks import BlockHead, BlockType, Header, LogBlock
from pyhudi.table.files.logs.log_contents import BlockContent, columns_of
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.schema.avro import parse_avro
from pyhudi.timeline.archive import lsm as archive
from pyhudi.timeline.metadata.avro_codec import decode, encode
from pyhudi.timeline.metadata.codec import InstantBody
from pyhudi.timeline.metadata.models import CommitMetadata
from pyhudi.timeline.writers import owner
from pyhudi.timeline.writers.decisions import Decision
from pyhudi.timeline.writers.markers import Markers
from support.drawn.histories import TABLE, part, row
from support.drive import read, write
from support.made.stated_sizes import state_sizes
from support.seams import patch_seam

INSTANT = "20260101000000000"
ROWS = part(row("a", ts=1, value=1))
DEEP = b"[" * 100_000
OWNER = {"host": "h", "boot_id": "b", "pid": 1, "process_started": "s", "application": "a", "write_id": "w"}
SYNC = bytes(range(16))


def number(value: int) -> bytes:
    """Return a number as Avro writes it."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(data: bytes) -> bytes:
    return number(len(data)) + data


def container(schema: Any, body: bytes, *, codec: bytes = b"null", records: int = 1) -> bytes:
    """Return an Avro container with one block."""
    written = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    head = number(2) + text(b"avro.schema") + text(written) + text(b"avro.codec") + text(codec) + number(0)
    return b"Obj\x01" + head + SYNC + number(records) + text(body) + SYNC


def record(*kinds: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": f"f{at}", "type": one} for at, one in enumerate(kinds)]}


def deflated(size: int) -> bytes:
    """Return what inflates to so many zeros."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    file_slice = squeezer.compress(bytes(1 << 20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    return file_slice * (size >> 20) + squeezer.flush()


MANY = number(1 << 40)
EMPTY: dict[str, Any] = {"type": "record", "name": "E", "fields": []}
CHAIN = [{"type": "record", "name": "C0", "fields": [{"name": "f", "type": "int"}]}]
CHAIN += [
    {"type": "record", "name": f"C{at}", "fields": [{"name": "f", "type": f"C{at - 1}"}]} for at in range(1, 3000)
]
NO_INSTANTS = {
    "nulls": container(record({"type": "array", "items": "null"}), MANY),
    "nulls by another name": container(record({"type": "array", "items": {"type": "null"}}), MANY),
    "empty records": container(record({"type": "array", "items": EMPTY}), MANY),
    "empty fixed": container(record({"type": "map", "values": {"type": "fixed", "name": "F", "size": 0}}), MANY),
    "null records": container(record("null"), b"", records=1 << 40),
    "many strings": container(record({"type": "array", "items": "string"}), MANY),
    "fewer than none": container(record({"type": "array", "items": "string"}), number(-(1 << 40)) + number(9)),
    "a long string": container(record("string"), number(1 << 60)),
    "a string of less than nothing": container(record("string"), number(-5)),
    "inflated": container(record("bytes"), deflated(1 << 31), codec=b"deflate"),
    "zstandard": container(record("bytes"), b"", codec=b"zstandard"),
    "a deep schema": container(DEEP, b""),
    "a schema of many fields": container(record(*["int"] * 100_000), b""),
    "a chain of records": container(record(*CHAIN), b""),
    "a record in itself": container(record(["null", "R"]), b""),
    "a decimal": container(record({"type": "bytes", "logicalType": "decimal", "precision": 9}), text(bytes(9))),
    "a number without end": b"Obj\x01" + b"\xff" * 1000,
    "a header of many": b"Obj\x01" + MANY,
    "a header of less than nothing": b"Obj\x01" + number(1) + number(-1),
}


@pytest.mark.parametrize("name", NO_INSTANTS)
def test_an_instant_is_decoded_only_at_the_price_of_its_bytes(name: str) -> None:
    with pytest.raises(CorruptInstantError, match="it is not a whole Avro file"):
        decode(CommitMetadata, InstantBody(NO_INSTANTS[name], "x.commit"))


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(OWNER).replace('"pid": 1', '"pid": 1e400').encode(),
        json.dumps(OWNER).replace('"pid": 1', '"pid": ' + "9" * 5000).encode(),
        *(json.dumps({**OWNER, "pid": pid}).encode() for pid in (0, -1, True, 1.0, 10**30, None, [1])),
        json.dumps({**OWNER, "host": None}).encode(),
        json.dumps({**OWNER, "host": "h" * bounds.MOST_OF_A_NOTE}).encode(),
        DEEP,
        b'{"host":' + DEEP,
        b"[]",
        b"\xff",
        b"",
    ],
)
def test_an_owner_is_named_or_refused(data: bytes) -> None:
    storage = open_storage("memory://bombs")
    storage.write(f"{owner.ROOT}/{INSTANT}/owner.json", data)
    with pytest.raises((CorruptInstantError, CorruptFileError)):
        owner.Claim(storage, INSTANT).owner()
    assert Decision.parse(data) is None
    content = data + b"\n"
    assert Decision.parse(f"{zlib.crc32(content):08x}\n".encode() + content) is None


PROPERTIES = {
    "a version of many digits": {"hoodie.table.version": "9" * 5000},
    "a number of buckets of many digits": {"hoodie.bucket.index.num.buckets": "9" * 5000},
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_hold_numbers_or_are_refused(name: str) -> None:
    good = TableConfig.new(TableSettings(name="t", record_key_fields=("id",), index_type="BUCKET")).properties
    with pytest.raises(TableConfigError, match="which is no number"):
        TableConfig.parse(TableConfig({**good, **PROPERTIES[name]}).encode(), "x")


@pytest.mark.parametrize(
    "data", [b"commitTime=\xb2\npartitionDepth=\xb2\n", b"commitTime=1\npartitionDepth=" + b"9" * 5000, b"a=\\u12\n"]
)
def test_a_partition_says_how_deep_it_is_or_is_refused(data: bytes) -> None:
    storage = open_storage("memory://bombs")
    storage.write("p/.hoodie_partition_metadata", data)
    with pytest.raises(CorruptFileError, match="does not say"):
        is_unused(storage, "p", INSTANT)


def doubling(depth: int) -> dict[str, Any]:
    """Return a schema whose every record has the one before it twice."""
    pairs = [
        {"type": "record", "name": f"C{at}", "fields": [{"name": name, "type": f"C{at - 1}"} for name in "ab"]}
        for at in range(1, depth)
    ]
    return record(CHAIN[0], *pairs)


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "record", "name": "R", "fields": ' + DEEP.decode(),
        json.dumps(doubling(60)),
        json.dumps(record(*CHAIN)),
        json.dumps(record({"type": "fixed", "name": "d", "size": 9, "logicalType": "decimal", "precision": 0})).replace(
            '"precision": 0', '"precision": 1e400'
        ),
    ],
    ids=["deep", "doubling", "chain", "endless precision"],
)
def test_a_schema_of_rows_is_read_or_refused(schema: str) -> None:
    with pytest.raises(CorruptInstantError, match="cannot be read"):
        parse_avro(schema, "x")


def test_the_deepest_schema_is_read() -> None:
    nested: Any = "int"
    for at in range(60):
        nested = ["null", {"type": "record", "name": f"N{at}", "fields": [{"name": "f", "type": nested}]}]

    assert parse_avro(json.dumps(record(nested)), "x")[0].name == "f0"


def test_what_a_commit_says_of_itself_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    """Another writer may use pyhudi's names for something else."""
    write(tmp_path, ROWS, table=TABLE)
    (file,) = (tmp_path / ".hoodie/timeline").glob("*_*.commit")
    commit = decode(CommitMetadata, InstantBody(file.read_bytes(), "x"))
    strange = {"pyhudi.not.found": "many", "pyhudi.dropped": "9" * 5000, "pyhudi.seconds": DEEP.decode()}
    stats = {
        "a": [one.model_copy(update={"num_inserts": (1 << 63) - 1}) for one in commit.partition_to_write_stats["a"]]
    }
    file.write_bytes(
        encode(
            commit.model_copy(
                update={
                    "extra_metadata": {**commit.extra_metadata, **strange},
                    "partition_to_write_stats": {**stats, "b": stats["a"]},
                }
            )
        )
    )

    assert history(open_storage(str(tmp_path))).column("inserts").to_pylist() == [(1 << 63) - 1]


def test_an_archive_of_too_many_instants_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that repeat take no bytes."""
    patch_seam(monkeypatch, "most instants of an archive", 9)
    storage = open_storage("memory://bombs")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: ["1"] * 10 for name in archive.COLUMNS}), sink)
    storage.write("history/1_2_0.parquet", bytes(sink.getvalue()))
    with pytest.raises(CorruptInstantError, match="10 instants"):
        archive.LsmArchive(storage, "history").writes()


def test_an_archived_instant_without_a_time_is_refused() -> None:
    storage = open_storage("memory://bombs")
    sink = pa.BufferOutputStream()
    columns = {"instantTime": ["1"], "completionTime": pa.array([None], pa.string()), "action": ["commit"]}
    pq.write_table(pa.table(columns), sink)
    storage.write("history/1_2_0.parquet", bytes(sink.getvalue()))
    with pytest.raises(CorruptInstantError, match="without a time"):
        archive.LsmArchive(storage, "history").writes()


def test_a_base_file_of_rows_without_bytes_is_refused(tmp_path: Path) -> None:
    write(tmp_path, ROWS, table=TABLE)
    (file,) = tmp_path.glob("a/*.parquet")
    rows = 3_000_000
    nulls = pa.table({"value": pa.nulls(rows, pa.int64())})
    pq.write_table(nulls, file, row_group_size=rows, max_rows_per_page=rows, write_statistics=False)
    state_sizes(tmp_path)
    with pytest.raises(CorruptFileError, match="its footer counts 3000000 rows"):
        read(tmp_path)


def test_a_file_larger_than_any_of_its_kind_is_not_read(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(f"{place}/t")
    storage.write("a", b"12345")

    assert storage.read("a", 5) == b"12345"
    with pytest.raises(CorruptFileError, match=r"/a has 5 bytes, and files of its kind never have more than 4"):
        storage.read("a", 4)


LOG = f"a/.00000000-f-0_{INSTANT}.log.1_0-0-0"
SAID = {Header.INSTANT_TIME: INSTANT, Header.SCHEMA: json.dumps(record("int"))}


def block(kind: BlockType, content: bytes, schema: Any = None, headers: dict[Header, str] = SAID) -> bytes:
    if schema is not None:
        headers = {**headers, Header.SCHEMA: schema if isinstance(schema, str) else json.dumps(schema)}
    return b"".join(BlockHead(kind, headers).framed([content]))


def rows(count: int, *bodies: bytes) -> bytes:
    return struct.pack(">ii", 3, count) + b"".join(struct.pack(">i", len(one)) + one for one in bodies)


def nothings(count: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"f0": pa.nulls(count, pa.int32())}), sink, row_group_size=count, max_rows_per_page=count)
    return sink.getvalue().to_pybytes()


FIXED = {"type": "fixed", "name": "F", "size": 0, "logicalType": "decimal", "precision": 4}
TORN = b"#HUDI#" + struct.pack(">q", 1 << 40)
LOGS = {
    "empty records": block(BlockType.AVRO, rows(1, MANY + b"\0"), record({"type": "array", "items": EMPTY})),
    "empty decimals": block(BlockType.AVRO, rows(1, MANY + b"\0"), record({"type": "array", "items": FIXED})),
    "long decimals": block(BlockType.AVRO, rows(1, b""), record({**FIXED, "size": 1 << 40})),
    "nulls": block(BlockType.AVRO, rows(1, MANY + b"\0"), record({"type": "array", "items": "null"})),
    "a long string": block(BlockType.AVRO, rows(1, number(1 << 60)), record("string")),
    "a long list": block(BlockType.AVRO, rows(1, MANY), record({"type": "array", "items": "int"})),
    "a list of less than nothing": block(BlockType.AVRO, rows(1, number(-5)), record({"type": "map", "values": "int"})),
    "many rows": block(BlockType.AVRO, rows((1 << 31) - 1, b"\2")),
    "rows of no columns": block(BlockType.AVRO, rows(1 << 20), EMPTY),
    "a deep schema": block(BlockType.AVRO, rows(0), DEEP.decode()),
    "a schema that doubles": block(BlockType.AVRO, rows(0), doubling(60)),
    "Parquet of nothings": block(BlockType.PARQUET, nothings(3_000_000)),
    "many deletes": block(BlockType.DELETE, struct.pack(">ii", 3, len(MANY)) + MANY),
    "a delete of a long key": block(BlockType.DELETE, struct.pack(">ii", 3, 11) + number(1) * 2 + number(1 << 60)),
    "many headers": block(BlockType.AVRO, b"", headers={}).replace(b"\0" * 12, b"\x7f\xff\xff\xff" + b"\0" * 8, 1),
    "a long header": block(BlockType.AVRO, b"", headers={**SAID, Header.SCHEMA: " " * (17 << 20)}),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_block_is_read_only_at_the_price_of_its_bytes(name: str) -> None:
    with pytest.raises((CorruptFileError, UnsupportedTypeError)) as caught:
        read_log(LOGS[name])
    assert LOG in str(caught.value)


def test_what_is_torn_over_and_over_is_one_torn_block() -> None:
    """Each announces a block that no file can hold."""
    assert [one.type for one in read_log(TORN * 20_000)] == [BlockType.CORRUPT]


def read_log(data: bytes) -> list[LogBlock]:
    storage = open_storage("memory://bombs")
    storage.write(LOG, data)
    blocks = list(read_blocks(storage, LOG))
    for block in blocks:
        if block.type == BlockType.DELETE:
            BlockContent(storage, block).deletes()
        elif block.is_data:
            for _ in BlockContent(storage, block).rows(columns_of(block)):
                pass
    return blocks


def run_all() -> None:
    """Meet every bomb; all but errors of pyhudi's own ends it."""
    for data in LOGS.values():
        try:
            read_log(data)
        except PyHudiError:
            continue
        raise AssertionError
    for data in NO_INSTANTS.values():
        try:
            decode(CommitMetadata, InstantBody(data, "x"))
        except PyHudiError:
            continue
        raise AssertionError
    storage = open_storage("memory://bombs")
    storage.write(f".hoodie/.temp/{INSTANT}/MARKERS0", b"\n" * (16 << 20))
    assert Markers(storage, INSTANT).read() == []


def test_all_of_them_fit_into_little_memory() -> None:
    """A process that may take no more than a gigabyte beside what it starts with."""
    code = """
        import resource, sys
        sys.path[:0] = sys.argv[1:]
        from contract import test_bombs
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
        test_bombs.run_all()
    """
    tests = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tests)], check=True, timeout=300)
