"""HFiles: what is written is found again, by scans, keys and prefixes, in few reads; damage is named."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import CorruptFileError
from pyhudi.table.hfile.blocks import Compression, Magic, write_block
from pyhudi.table.hfile.crc32c import crc32c
from pyhudi.table.hfile.entries import Entries, encode
from pyhudi.table.hfile.reader import HFile
from pyhudi.table.hfile.tail import BlockPlace, Trailer, read_root_index, write_file_info, write_trailer
from pyhudi.table.hfile.writer import BLOCK_BYTES, HFileWriter

SCHEMA = '"bytes"'
SMALL = 120


def entries(pairs: Mapping[bytes, bytes]) -> Entries:
    ordered = sorted(pairs)
    return Entries(pa.array(ordered, pa.binary()), pa.array([pairs[key] for key in ordered], pa.binary()))


def written(
    pairs: Mapping[bytes, bytes], compression: Compression = Compression.GZIP, block_bytes: int = SMALL
) -> bytes:
    stream = BytesIO()
    writer = HFileWriter(stream, SCHEMA, compression=compression, block_bytes=block_bytes, made_at=0)
    writer.add(entries(pairs))
    writer.close()
    return stream.getvalue()


def opened(data: bytes) -> HFile:
    return HFile(pa.BufferReader(data), "files/a.hfile")


def pairs_of(found: Entries) -> dict[bytes, bytes]:
    return dict(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))


def scanned(file: HFile) -> dict[bytes, bytes]:
    parts = list(file.scan())
    found = {key: value for part in parts for key, value in pairs_of(part).items()}
    assert sum(map(len, parts)) == len(found)
    return found


# What a block has around keys, so that values look like entries and keys like parts of them.
LOOKS = [encode(entries({key: b""}))[0] for key in (b"", b"a", b"ab")]
VALUES = st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(LOOKS), max_size=3).map(b"".join))
KEYS = st.one_of(st.text("ab\xff", max_size=4).map(lambda text: text.encode("latin-1")), st.binary(max_size=200))


@given(
    st.dictionaries(KEYS, VALUES, max_size=40), st.sampled_from(Compression), st.lists(KEYS, max_size=30), st.booleans()
)
def test_scans_keys_and_prefixes_find_what_was_written(
    pairs: dict[bytes, bytes], compression: Compression, others: list[bytes], is_small: bool
) -> None:
    """Whatever keys and values hold, though values look like entries; of keys that were not written nothing."""
    file = opened(written(pairs, compression, SMALL if is_small else BLOCK_BYTES))
    asked = [*others, *list(pairs)[::2]]
    prefixes = [key[:2] for key in others]

    assert file.schema == SCHEMA
    assert scanned(file) == pairs
    assert pairs_of(file.find(pa.array(asked, pa.binary()))) == {k: v for k, v in pairs.items() if k in asked}
    by_prefix = {k: v for k, v in pairs.items() if k.startswith(tuple(prefixes))}
    assert pairs_of(file.with_prefixes(prefixes)) == by_prefix
    assert file.with_prefixes(prefixes).keys.to_pylist() == sorted(by_prefix)


class Counted:
    """A file that notes which bytes were read."""

    def __init__(self, data: bytes) -> None:
        self._file = pa.BufferReader(data)
        self.reads: list[tuple[int, int]] = []

    def size(self) -> int:
        return int(self._file.size())

    def read_at(self, size: int, at: int) -> bytes:
        self.reads.append((at, at + size))
        return bytes(self._file.read_at(size, at))


def test_a_look_up_reads_only_the_blocks_that_can_hold_its_keys() -> None:
    """The end of the file in one read, then blocks side by side in one read each."""
    pairs = {b"%05d" % number: b"v" * 100 for number in range(20_000)}
    source = Counted(written(pairs, Compression.NONE, BLOCK_BYTES))
    file = HFile(source, "a.hfile")
    places = file.blocks
    opening = len(source.reads)
    source.reads.clear()

    file.find(pa.array([b"00000", b"09999", b"x"], pa.binary()))
    for_keys = source.reads[:]
    source.reads.clear()
    file.with_prefixes([b"100"])

    assert (opening, len(places)) == (1, 39)
    assert max(place.size for place in places) < BLOCK_BYTES + 100
    number = max(number for number, place in enumerate(places) if place.key <= b"09999")
    assert for_keys == [(place.at, place.end) for place in (places[0], places[number])]
    (start, end), *rest = source.reads
    assert rest == []
    assert end - start <= 2 * max(place.size for place in places)


def test_an_entry_larger_than_a_block_has_a_block_of_its_own() -> None:
    """Apache Hudi's reader passes over the last bytes of a large block, but never over all of it."""
    pairs = {b"a": b"1", b"b": b"x" * 300_000, b"c": b"2"}
    file = opened(written(pairs, Compression.NONE, BLOCK_BYTES))

    assert [place.key for place in file.blocks] == [b"a", b"b", b"c"]
    assert scanned(file) == pairs


def test_a_key_too_long_for_any_file_is_in_none() -> None:
    """A condition may ask for any text."""
    pairs = {b"a": b"1", b"b": b"2"}
    file = opened(written(pairs))

    assert pairs_of(file.find(pa.array([b"a", b"a" * (1 << 16), b"b"], pa.binary()))) == pairs


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"], [b"a" * 40_000]])
def test_a_writer_refuses_keys_that_no_reader_finds(keys: list[bytes]) -> None:
    """Out of order, twice, or too long."""
    with pytest.raises(ValueError, match="of an HFile"):
        HFileWriter(BytesIO(), SCHEMA).add(Entries(pa.array(keys, pa.binary()), pa.array(keys, pa.binary())))


@pytest.mark.parametrize("compression", Compression)
def test_a_flipped_bit_is_named_or_changes_nothing(compression: Compression) -> None:
    """At each byte, but those that fill the trailer up."""
    pairs = {b"key %02d" % number: b"value" * (number % 5) for number in range(12)}
    data = written(pairs, compression)
    fill = data.index(bytes(3000))
    damage = 0
    for at in [*range(fill), *range(len(data) - 4, len(data))]:
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        try:
            file = opened(bytes(broken))
            assert file.schema == SCHEMA, at
            assert scanned(file) == pairs, at
            assert pairs_of(file.find(pa.array([b"key 07"], pa.binary()))) == {b"key 07": pairs[b"key 07"]}, at
        except CorruptFileError as error:
            damage += 1
            assert "The HFile files/a.hfile cannot be read: the block at byte" in error.what, at

    assert damage > fill * 0.8


@pytest.mark.parametrize("size", [0, 7, 4095, 4096, 4200])
def test_a_file_that_was_cut_off_is_damaged(size: int) -> None:
    data = written({b"a": b"1"})
    with pytest.raises(CorruptFileError, match=r"files/a\.hfile"):
        scanned(opened(data[:size]))


@pytest.mark.parametrize("length", [0, 1, 9, 255, 256, 1000])
def test_a_checksum_is_that_of_each_byte_in_turn(length: int) -> None:
    """The check value of the polynomial, and bytes one by one."""
    data = bytes(number * 7 % 251 for number in range(length))
    crc = 0xFFFFFFFF
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)

    assert crc32c(data) == crc ^ 0xFFFFFFFF
    assert crc32c(b"123456789") == 0xE3069283


SUFFIX = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\xff"


def by_hbase(pairs: Mapping[bytes, bytes], levels: int) -> bytes:
    """Return a file as Apache HBase writes it: with an index of several levels whose keys lie between two blocks."""
    ordered = sorted(pairs)
    # Less than the first key, and greater than the last of the block before.
    keys = [ordered[at][:-1] if at else ordered[at] for at in range(0, len(ordered), 2)]
    return in_blocks([(key, pairs[key]) for key in ordered], 2, keys, levels)


def in_blocks(
    pairs: Sequence[tuple[bytes, bytes]], each: int, index: Sequence[bytes] | None = None, levels: int = 1
) -> bytes:
    """Return a file with so many entries in each block; ``index`` has their first keys by default."""
    file, places = BytesIO(), []
    for at in range(0, len(pairs), each):
        keys, values = zip(*pairs[at : at + each], strict=True)
        content = encode(Entries(pa.array(keys, pa.binary()), pa.array(values, pa.binary())))[0]
        block = write_block(Magic.DATA, content, -1, Compression.NONE)
        places.append(BlockPlace(file.tell(), len(block), index[at // each] if index else keys[0]))
        file.write(block)
    for magic in (Magic.LEAF, Magic.INTERMEDIATE)[: levels - 1]:
        above = []
        for at in range(0, len(places), 2):
            block = write_block(magic, inner_index(places[at : at + 2]), -1, Compression.NONE)
            above.append(BlockPlace(file.tell(), len(block), places[at].key))
            file.write(block)
        places = above
    root = file.tell()
    file.write(write_block(Magic.ROOT, b"".join(root_entries(places)), -1, Compression.NONE))
    file.write(write_block(Magic.ROOT, b"", -1, Compression.NONE))
    info = file.tell()
    file.write(write_block(Magic.INFO, write_file_info({b"schema": SCHEMA.encode()}), -1, Compression.NONE))
    file.write(write_trailer(Trailer(info, root, len(places), len(pairs), levels, 0, 0, Compression.NONE)))
    return file.getvalue()


def stored_key(place: BlockPlace) -> bytes:
    return len(place.key).to_bytes(2, "big") + place.key + SUFFIX


def root_entries(places: Sequence[BlockPlace]) -> Iterator[bytes]:
    return (struct.pack(">qiB", place.at, place.size, len(stored_key(place))) + stored_key(place) for place in places)


def inner_index(places: Sequence[BlockPlace]) -> bytes:
    parts = [struct.pack(">qi", place.at, place.size) + stored_key(place) for place in places]
    starts = [sum(map(len, parts[:count])) for count in range(len(parts) + 1)]
    return struct.pack(f">i{len(starts)}i", len(parts), *starts) + b"".join(parts)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_an_index_of_apache_hbase_leads_to_every_key(levels: int) -> None:
    pairs = {b"key %02d!" % number: b"%d" % number for number in range(17)}
    file = opened(by_hbase(pairs, levels))

    assert scanned(file) == pairs
    for key, value in pairs.items():
        assert pairs_of(file.find(pa.array([key], pa.binary()))) == {key: value}
    assert set(pairs_of(file.with_prefixes([b"key 1"]))) == {key for key in pairs if key.startswith(b"key 1")}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be"])
@pytest.mark.parametrize("each", [*range(1, 12), 35])
def test_keys_are_found_in_both_orders_of_writers(encoding: str, each: int) -> None:
    """Apache HBase sorts bytes, Apache Hudi since 1.1 UTF-16: U+1F600 comes behind U+FF5E, or before it."""
    begins = ("a", "b\ue000", "b\U0001f600", "b\uff5e", "\u5b57", "\ue000", "\U0001f600", "\U0010ffff", "\uff5e")
    texts = [f"{begin}{number}" for begin in begins for number in range(4)]
    keys = [text.encode() for text in sorted(texts, key=lambda text: text.encode(encoding))]
    file = opened(in_blocks([(key, key) for key in keys], each))

    assert [*scanned(file)] == keys
    assert file.find(pa.array([*keys, b"c", "\ue001".encode()], pa.binary())).keys.to_pylist() == keys
    for key in keys:
        assert file.find(pa.array([key], pa.binary())).keys.to_pylist() == [key]
    for prefix in (*(begin.encode() for begin in begins), b"b", b"", b"\xef", b"\xf0"):
        assert file.with_prefixes([prefix]).keys.to_pylist() == [key for key in keys if key.startswith(prefix)]


def test_an_index_in_no_order_is_damaged() -> None:
    with pytest.raises(CorruptFileError, match="out of order"):
        opened(in_blocks([(key, b"") for key in (b"b", b"a")], 1)).find(pa.array([b"a"], pa.binary()))


def test_a_long_key_in_an_index_has_its_length_in_one_of_two_ways() -> None:
    """Apache Hudi 1.1 wrote it as protobuf does, and cannot read it."""
    keys = [b"k" * length for length in (1, 125, 126, 200, 300)]
    rows = [len(key).to_bytes(2, "big") + key for key in keys]
    protobuf = [b"\x03", b"\x7f", b"\x80\x01", b"\xca\x01", b"\xae\x02"]
    hadoop = [b"\x03", b"\x7f", b"\x8f\x80", b"\x8f\xca", b"\x8e\x01\x2e"]

    for lengths in (protobuf, hadoop):
        places = (struct.pack(">qi", 10 * at, 10) for at in range(len(keys)))
        content = b"".join(b"".join(parts) for parts in zip(places, lengths, rows, strict=True))
        assert [place.key for place in read_root_index(content, len(keys))] == keys


def test_a_trailer_that_leads_nowhere_is_damaged() -> None:
    data = written({b"a": b"1"}, Compression.NONE)
    trailer = opened(data).trailer
    for wrong in (
        replace(trailer, file_info=1 << 40),
        replace(trailer, load_on_open=trailer.file_info),
        replace(trailer, levels=0),
        replace(trailer, index_entries=9),
        replace(trailer, entries=2),
    ):
        with pytest.raises(CorruptFileError, match=r"files/a\.hfile"):
            scanned(opened(data[:-4096] + write_trailer(wrong)))
