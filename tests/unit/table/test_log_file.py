"""Log files: framed as Apache Hudi frames them, read in spite of what is torn, and nothing taken for what it is not."""

from __future__ import annotations

import logging
import pickle
import struct
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import (
    CorruptFileError,
    SchemaMismatchError,
    StorageError,
    UnsupportedTableError,
    UnsupportedTypeError,
)
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.base_file import file_schema
from pyhudi.table.files.logs import avro_rows
from pyhudi.table.files.logs.log_blocks import BlockHead, BlockType, Header, LogBlock
from pyhudi.table.files.logs.log_contents import BlockContent, Deletes, columns_of
from pyhudi.table.files.logs.log_file import LogFileWriter, read_blocks
from pyhudi.table.files.logs.log_scan import effective_blocks
from pyhudi.table.schema.columns import META_COLUMNS, RECORD_KEY, avro_schema, with_meta
from support.places import Place, below
from support.seams import patch_seam

INSTANT = "20260101000000000"
PATH = "p/.00000000-f-0_20260101000000000.log.1_0-0-0"
DATA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("ts", pa.int64()), pa.field("d", pa.date32())])
TS = DATA.field("ts")
FORMATS = [BlockType.PARQUET, BlockType.AVRO]
HEADERS = {Header.INSTANT_TIME: INSTANT, Header.SCHEMA: avro_schema(DATA, "t", meta=True)}


def rows(*ids: str, schema: pa.Schema = DATA) -> pa.RecordBatch:
    """Return rows, the row's number in every column of numbers."""
    written, n = file_schema(schema), len(ids)
    meta = [pa.array([one] * n).cast(written.field(name).type) for name, one in zip(META_COLUMNS, "abcde", strict=True)]
    meta[META_COLUMNS.index(RECORD_KEY)] = pa.array(ids, pa.string())
    data = [
        pa.array(ids) if pa.types.is_string(one.type) else pa.array(range(n)).cast(pa.int32()).cast(one.type)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays([*meta, *data], schema=written)


def deletes(*keys: str, ts: int | None = None) -> Deletes:
    n = len(keys)
    return Deletes(pa.array(keys), pa.array(["p"] * n), (pa.array([ts] * n, pa.int64()),), pa.array([ts is None] * n))


def log(fill: Callable[[LogFileWriter], None], schema: pa.Schema = DATA, **options: Any) -> bytes:
    """Return the bytes of a log file."""
    sink = pa.BufferOutputStream()
    avro = avro_schema(schema, "t", meta=True)
    writer = LogFileWriter(sink, instant_time=INSTANT, schema=file_schema(schema), avro_schema=avro, **options)
    fill(writer)
    writer.close()
    assert writer.size == sink.tell()
    return bytes(sink.getvalue())


def framed(kind: int, content: bytes = b"", headers: Mapping[Any, str] = HEADERS) -> bytes:
    return b"".join(BlockHead(kind, headers).framed([content]))  # type: ignore[arg-type]


def avro_block(*ids: str) -> bytes:
    return log(lambda one: one.add_rows(rows(*ids)), data_format=BlockType.AVRO)


def delete_block(*keys: str) -> bytes:
    return log(lambda one: one.add_deletes(deletes(*keys)))


def read(data: bytes) -> list[LogBlock]:
    storage = put(data)
    return list(read_blocks(storage, PATH))


def put(data: bytes) -> Storage:
    storage = open_storage("memory://logs")
    storage.write(PATH, data)
    return storage


def table(storage: Storage, block: LogBlock, schema: pa.Schema | None = None) -> pa.Table:
    wanted = with_meta(DATA) if schema is None else schema
    batches = list(BlockContent(storage, block).rows(wanted))
    return pa.Table.from_batches(batches, batches[0].schema if batches else wanted)


def ids(storage: Storage, block: LogBlock) -> list[str]:
    if block.type == BlockType.DELETE:
        return [*BlockContent(storage, block).deletes([TS]).keys.to_pylist()]
    return [*table(storage, block).column(RECORD_KEY).to_pylist()]


@pytest.mark.parametrize("data_format", FORMATS)
def test_rows_and_deletes_come_back(data_format: BlockType) -> None:
    def fill(one: LogFileWriter) -> None:
        one.add_rows(rows("a", "b"))
        one.add_deletes(deletes("c", ts=5))
        one.add_deletes(deletes("d"))
        one.add_rows(rows("e"))

    storage = put(log(fill, data_format=data_format))
    blocks = list(read_blocks(storage, PATH))

    assert [one.type for one in blocks] == [data_format, BlockType.DELETE, BlockType.DELETE, data_format]
    assert [ids(storage, one) for one in blocks] == [["a", "b"], ["c"], ["d"], ["e"]]
    assert [BlockContent(storage, one).count() for one in blocks] == [2, 1, 1, 1]
    assert {one.instant_time for one in blocks} == {INSTANT}
    assert table(storage, blocks[0]).to_pylist()[1] == {
        **dict(zip(META_COLUMNS, "abcde", strict=True)),
        RECORD_KEY: "b",
        "id": "b",
        "ts": 1,
        "d": table(storage, blocks[0])["d"][1].as_py(),
    }
    ordered, unordered = (BlockContent(storage, one).deletes([TS]) for one in blocks[1:3])
    assert (ordered.ordering[0].to_pylist(), ordered.default.to_pylist()) == ([5], [False])
    assert (unordered.ordering[0].to_pylist(), unordered.default.to_pylist()) == ([None], [True])
    assert unordered.partition_paths.to_pylist() == ["p"]
    assert pickle.loads(pickle.dumps(blocks)) == blocks  # noqa: S301 (our own)


def test_blocks_are_read_in_place_wherever_they_are(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """By requests for what is wanted, on a disk and over a network."""
    patch_seam(monkeypatch, "most bytes of a file that is read whole", 0)
    data = log(lambda one: one.add_rows(rows("a", "b"))) + delete_block("c") + avro_block("d")
    storage = open_storage(below(place, "t"))
    storage.write(PATH, data + data[:50])

    *blocks, torn = read_blocks(storage, PATH)

    assert [ids(storage, one) for one in blocks] == [["a", "b"], ["c"], ["d"]]
    assert [BlockContent(storage, one).count() for one in blocks] == [2, 1, 1]
    assert table(storage, blocks[0], pa.schema([TS])).to_pydict() == {"ts": [0, 1]}
    assert (torn.type, torn.offset) == (BlockType.CORRUPT, len(data))
    storage.delete(PATH)
    for one in blocks:
        with pytest.raises(StorageError, match="was removed while it was needed"):
            ids(storage, one)


def test_no_block_has_deletes_with_and_without_order() -> None:
    """hudi-rs refuses one that has."""
    mixed = Deletes(pa.array(["a", "b"]), pa.array(["p"] * 2), (pa.array([1, None]),), pa.array([False, True]))
    data = log(lambda one: one.add_deletes(mixed))

    assert [ids(put(data), one) for one in read(data)] == [["a"], ["b"]]


@pytest.mark.parametrize("data_format", FORMATS)
def test_a_block_ends_when_it_is_full(data_format: BlockType) -> None:
    def fill(one: LogFileWriter) -> None:
        for number in range(4):
            one.add_rows(rows(f"k{number}"))

    size = rows("k0").nbytes
    data = log(fill, data_format=data_format, block_bytes=size + 1)

    assert [ids(put(data), one) for one in read(data)] == [["k0", "k1"], ["k2", "k3"]]


@pytest.mark.parametrize("data_format", FORMATS)
def test_rows_of_older_columns_are_read_as_the_table_has_them_now(data_format: BlockType) -> None:
    older = pa.schema(
        [pa.field("id", pa.string(), nullable=False), pa.field("ts", pa.int32()), pa.field("gone", pa.int32())]
    )
    storage = put(log(lambda one: one.add_rows(rows("a", "b", schema=older)), older, data_format=data_format))
    (block,) = read_blocks(storage, PATH)

    stored_rows = table(storage, block, pa.schema([DATA.field("d"), DATA.field("ts")]))

    assert stored_rows.to_pydict() == {"d": [None, None], "ts": [0, 1]}
    assert stored_rows.schema == pa.schema([DATA.field("d"), DATA.field("ts")])
    with pytest.raises(SchemaMismatchError, match=r"'new'.* is missing"):
        table(storage, block, pa.schema([pa.field("new", pa.int32(), nullable=False)]))


@pytest.mark.parametrize("data_format", FORMATS)
def test_rows_of_some_columns_say_which(data_format: BlockType) -> None:
    some = pa.schema([DATA.field("ts")])
    storage = put(log(lambda one: one.add_rows(rows("a", schema=some)), some, data_format=data_format, partial=True))
    (block,) = read_blocks(storage, PATH)

    assert block.is_partial
    assert columns_of(block).names == [*META_COLUMNS, "ts"]
    assert table(storage, block, DATA).to_pydict() == {"id": [None], "ts": [0], "d": [None]}


def test_only_partial_rows_are_marked_so() -> None:
    """Readers of version 6 fail at the number of that header."""
    assert Header.IS_PARTIAL not in read(avro_block("a"))[0].headers


def test_a_file_that_ends_anywhere_gives_its_whole_blocks(caplog: pytest.LogCaptureFixture) -> None:
    blocks = [avro_block("a", "b"), delete_block("c"), avro_block("d")]
    whole = b"".join(blocks)
    ends = [0, len(blocks[0]), len(blocks[0]) + len(blocks[1])]
    caplog.set_level(logging.CRITICAL, "pyhudi")
    for cut in (one for one in range(len(whole)) if one % 7 == 0 or any(one - end in range(-20, 40) for end in ends)):
        storage = put(whole[:cut])
        *sound, last = [*read_blocks(storage, PATH), None]
        torn = sound.pop() if sound and sound[-1].type == BlockType.CORRUPT else None
        # What ends with another block's beginning is whole only with all of it.
        sound_count = sum(1 for end in ends[1:] if cut == end or cut >= end + 6)
        assert [ids(storage, one) for one in sound] == [["a", "b"], ["c"]][:sound_count]
        begun = cut - ends[sound_count]
        assert (torn is None) == (begun in (0, 6)) and last is None
        assert torn is None or (torn.offset, torn.content_size) == (ends[sound_count], begun)


def test_a_good_block_behind_a_torn_one_counts(caplog: pytest.LogCaptureFixture) -> None:
    good, other = avro_block("#HUDI#", "a"), delete_block("#HUDI#")
    for cut in [*range(1, 40), *range(40, len(good), 17), len(good) - 1]:
        storage = put(other + good[:cut] + good)
        blocks = list(read_blocks(storage, PATH))

        assert [one.type for one in blocks] == [BlockType.DELETE, BlockType.CORRUPT, BlockType.AVRO] or cut < 6
        assert ids(storage, blocks[-1]) == ["#HUDI#", "a"]
        assert effective_blocks([blocks], lambda _: True) == tuple(
            one for one in blocks if one.type != BlockType.CORRUPT
        )
    assert (
        f"{PATH} has a corrupt or torn block at byte {len(other)}; {len(good) - 1} bytes are passed over" in caplog.text
    )


@pytest.mark.parametrize("data", [b"", b"#HUDI#", b"#HUDI", b"PAR1", b"#HUDI#" * 3, b"#HUDI#" + b"\xff" * 8])
def test_a_file_without_a_block_has_no_rows(data: bytes) -> None:
    """A writer of Apache Hudi's that fails leaves the six bytes alone."""
    assert [one.type for one in read(data)] == [BlockType.CORRUPT] * (data not in (b"", b"#HUDI#"))


def test_a_file_that_is_gone_is_named() -> None:
    with pytest.raises(StorageError, match="The log file p/nowhere of the table memory://logs was removed"):
        list(read_blocks(open_storage("memory://logs"), "p/nowhere"))


def test_any_flipped_bit_is_noticed_or_harms_no_more_than_a_value() -> None:
    whole = avro_block("a") + delete_block("c") + avro_block("d")
    logging.getLogger("pyhudi").setLevel(logging.CRITICAL)
    try:
        for at in range(0, len(whole), 9):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            storage = put(bytes(damaged))
            try:
                for block in effective_blocks([list(read_blocks(storage, PATH))], lambda _: True):
                    assert len(ids(storage, block)) == 1
            except (CorruptFileError, UnsupportedTableError) as error:
                assert PATH in str(error)
            except (SchemaMismatchError, UnsupportedTypeError):
                continue  # a column has another name or type by now
    finally:
        logging.getLogger("pyhudi").setLevel(logging.NOTSET)


def test_a_flipped_bit_in_parquet_is_noticed() -> None:
    whole = log(lambda one: one.add_rows(rows("a", "b")))
    storage = put(whole)
    (block,) = read_blocks(storage, PATH)
    good, noticed = table(storage, block), 0
    footer = 8 + struct.unpack_from("<i", whole, block.content_offset + block.content_size - 8)[0]
    for at in range(block.content_offset, block.content_offset + block.content_size - footer, 3):
        damaged = bytearray(whole)
        damaged[at] ^= 16
        storage = put(bytes(damaged))
        try:
            assert table(storage, block) == good
        except CorruptFileError as error:
            assert f"The block at byte 0 of the log file {PATH} cannot be read" in str(error)
            noticed += 1
    assert noticed > 100


def number(value: int) -> bytes:
    return struct.pack(">i", value)


AVRO_ROWS = b"".join(avro_rows.encode(rows("a", "b")))
DAMAGED = {
    "a block of nobody": framed(BlockType.AVRO, b"", {}),
    "fewer rows than it says": framed(BlockType.AVRO, number(3) + number(3) + AVRO_ROWS),
    "more rows than it says": framed(BlockType.AVRO, number(3) + number(1) + AVRO_ROWS),
    "rows by the billion": framed(BlockType.AVRO, number(3) + number((1 << 31) - 1) + AVRO_ROWS),
    "fewer rows than none": framed(BlockType.AVRO, number(3) + number(-1) + AVRO_ROWS),
    "a row that is longer than it says": framed(BlockType.AVRO, number(3) + number(2) + b"\0\0\0\1" + AVRO_ROWS[4:]),
    "rows of an unknown version": framed(BlockType.AVRO, number(4) + number(2) + AVRO_ROWS),
    "rows that break off": framed(BlockType.AVRO, number(3) + number(2) + AVRO_ROWS[:-1]),
    "no rows at all": framed(BlockType.AVRO),
    "rows of no columns": framed(BlockType.AVRO, number(3) + number(0), {Header.INSTANT_TIME: INSTANT}),
    "rows of a schema that is none": framed(BlockType.AVRO, b"", {**HEADERS, Header.SCHEMA: "{"}),
    "Parquet that is none": framed(BlockType.PARQUET, b"PAR1"),
    "deletes that are none": framed(BlockType.DELETE, b"PAR1"),
    "a delete by the billion": framed(BlockType.DELETE, number(3) + number(6) + b"\xfe\xff\xff\xff\x0f\0"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_whole_block_with_damaged_content_is_refused(name: str) -> None:
    """What is torn is what nobody was told of; this was told of, and to leave it out would lose rows."""
    storage = put(DAMAGED[name])

    with pytest.raises(CorruptFileError, match=f"he block at byte 0 of the log file {PATH} cannot be read"):
        ids(storage, next(read_blocks(storage, PATH)))


STRANGE = {
    "HFile": (framed(BlockType.HFILE, b"x"), "is of the type HFILE"),
    "change data": (framed(BlockType.CDC, number(3) + number(0)), "is of the type CDC"),
    "a type to come": (framed(9), "is of the unknown type 9"),
    "a block that only readers make": (framed(BlockType.CORRUPT), "is of the unknown type 2"),
    "a header to come": (framed(BlockType.AVRO, b"", {**HEADERS, 9: "x"}), "has the unknown header 9"),
    "another format": (framed(BlockType.AVRO).replace(number(1), number(2), 1), "is of version 2"),
    "deletes of objects": (framed(BlockType.DELETE, number(1) + number(0)), "is of version 1: objects as Java keeps"),
    "deletes of later objects": (framed(BlockType.DELETE, number(2) + number(0)), "is of version 2: objects as Java"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_not_read_is_refused_by_its_name(name: str) -> None:
    data, message = STRANGE[name]
    storage = put(data)

    for look in (ids, lambda *place: BlockContent(*place).count()):
        with pytest.raises(UnsupportedTableError, match=message):
            look(storage, next(read_blocks(storage, PATH)))


def test_positions_of_rows_are_passed_over_unread() -> None:
    positions = {**HEADERS, Header.RECORD_POSITIONS: "x" * 100, Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "1"}
    (block,) = read(framed(BlockType.AVRO, b"", positions))

    assert Header.RECORD_POSITIONS not in block.headers


def block(time: str, *, target: str | None = None, replaces: str = "", kind: BlockType = BlockType.AVRO) -> LogBlock:
    headers = {Header.INSTANT_TIME: time, Header.COMPACTED_BLOCK_TIMES: replaces}
    if target is not None:
        kind = BlockType.COMMAND
        headers |= {Header.TARGET_INSTANT_TIME: target, Header.COMMAND_BLOCK_TYPE: "0"}
    return LogBlock("f", 0, kind, headers, 0, 0)


@pytest.mark.parametrize(
    ("blocks", "counting"),
    [
        ([block("1"), block("hidden"), block("2", kind=BlockType.CORRUPT), block("3"), block("1")], "1 1 3"),
        ([block("1"), block("2"), block("3", target="1"), block("4", target="9"), block("1")], "2 1"),
        ([block("1"), block("2"), block("3"), block("m", replaces="1,2"), block("4")], "m 3 4"),
        ([block("1"), block("2"), block("m", replaces="1,2"), block("m", replaces="1,2"), block("3")], "m m 3"),
        ([block("1"), block("2"), block("m", replaces="1,2"), block("3"), block("n", replaces="m,3")], "n"),
        ([block("m", replaces="1,2"), block("3")], "3"),
        ([block("m", replaces="m,3"), block("3")], "3"),
        ([block("1"), block("2"), block("3"), block("m", replaces="1,2"), block("n", replaces="m,3")], "n"),
        ([block("1"), block("late"), block("2"), block("m", replaces="1,2"), block("3")], "late m 3"),
        ([block("1"), block("2"), block("m", replaces="1,2"), block("hidden", replaces="m")], "m"),
        ([block("1"), block("m", replaces="1"), block("2", target="m")], "1"),
    ],
)
def test_what_was_rolled_back_or_compacted_does_not_count(blocks: list[LogBlock], counting: str) -> None:
    found = effective_blocks([blocks[:2], blocks[2:]], lambda time: time != "hidden")

    assert [one.instant_time for one in found] == counting.split()


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="a command that pyhudi does not know"):
        effective_blocks(
            [[LogBlock("f", 0, BlockType.COMMAND, {Header.COMMAND_BLOCK_TYPE: "1"}, 0, 0)]], lambda _: True
        )
