"""The end of an HFile: the index of its data blocks, what it says of itself, and the trailer that leads to both.

    root index | index of meta blocks | file info | trailer 4096

Index and file info are blocks of their own kinds. Source: ``HFileReaderImpl``, ``HFileTrailer``,
``HFileRootIndexBlock`` and the ``hfile.proto`` of Apache Hudi; ``HFileBlockIndex`` of Apache HBase, whose index may
have several levels.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .blocks import Compression
from .first_keys import first_keys

TRAILER_BYTES = 4096
MAGIC = b'TRABLK"$'
_VERSION = struct.Struct(">I")
_MAJOR = 3
_PLACE = struct.Struct(">qi")
_INT = struct.Struct(">i")
_PROTO = b"PBUF"
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
# What Apache HBase has behind the row key in an index: no family, timestamp and type.
_SUFFIX = 10
_VARINT, _BYTES = 0, 2
_LONGEST_VARINT = 10


@dataclass(frozen=True, slots=True)
class Trailer:
    """What the trailer of a file says.

    Attributes:
        file_info: The byte at which the block with the file's properties begins.
        load_on_open: The byte at which the root index begins.
        index_entries: How many entries the root index has.
        entries: How many keys the file has.
        levels: How many levels the index of data blocks has.
        first_block: The byte at which the first data block begins.
        last_block: The byte at which the last data block begins.
        data_bytes: Bytes of all blocks before compression; only for writing.
    """

    file_info: int
    load_on_open: int
    index_entries: int
    entries: int
    levels: int
    first_block: int
    last_block: int
    compression: Compression
    data_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Where a block is; no key in it is less than ``key``, and all keys of the block before it are less."""

    at: int
    size: int
    key: bytes

    @property
    def end(self) -> int:
        return self.at + self.size


def read_trailer(data: bytes) -> Trailer:
    """Return what the last bytes of a file say; ValueError if they are no trailer."""
    if len(data) != TRAILER_BYTES or not data.startswith(MAGIC):
        raise ValueError(f"for it does not begin with {MAGIC!r}")
    (version,) = _VERSION.unpack_from(data, TRAILER_BYTES - _VERSION.size)
    if version & 0xFFFFFF != _MAJOR:
        raise ValueError(f"for it is of version {version & 0xFFFFFF} of HFiles")
    length, at = _varint(data, len(MAGIC))
    if length > TRAILER_BYTES - _VERSION.size - at:
        raise ValueError("for its fields do not end within it")
    fields = {number: value for number, value in _fields(data[at : at + length]) if isinstance(value, int)}
    # The numbers are those of the fields in ``hfile.proto``.
    try:
        required = [fields[number] for number in (1, 2, 5, 7, 8)]
        compression = Compression(fields.get(12, Compression.NONE))
    except KeyError as error:
        raise ValueError(f"for it lacks the field {error}") from None
    # Field 13 is the key of an encrypted file.
    if 13 in dict(_fields(data[at : at + length])):
        raise ValueError("for the file is encrypted")
    info, load_on_open, index_entries, entries, levels = required
    return Trailer(info, load_on_open, index_entries, entries, levels, fields.get(9, 0), fields.get(10, 0), compression)


def write_trailer(trailer: Trailer) -> bytes:
    """Return the last bytes of a file."""
    # By the numbers of the fields in ``hfile.proto``; 6 is how many blocks of meta data the file has.
    numbers = {
        1: trailer.file_info,
        2: trailer.load_on_open,
        3: trailer.data_bytes,
        4: trailer.data_bytes,
        5: trailer.index_entries,
        6: 0,
        7: trailer.entries,
        8: trailer.levels,
        9: trailer.first_block,
        10: trailer.last_block,
    }
    fields = b"".join(_number_field(field, value) for field, value in numbers.items())
    fields += _bytes_field(11, _COMPARATOR) + _number_field(12, trailer.compression)
    begun = MAGIC + _write_varint(len(fields)) + fields
    return begun + bytes(TRAILER_BYTES - _VERSION.size - len(begun)) + _VERSION.pack(_MAJOR)


def read_file_info(content: bytes) -> dict[bytes, bytes]:
    """Return what a file says of itself; ValueError if the content is damaged."""
    if not content.startswith(_PROTO):
        raise ValueError(f"for it does not begin with {_PROTO!r}")
    length, at = _varint(content, len(_PROTO))
    if length > len(content) - at:
        raise ValueError("for its entries do not end within it")
    info = {}
    for _, pair in _fields(content[at : at + length]):
        if isinstance(pair, bytes):
            fields = dict(_fields(pair))
            # Field 1 of a pair is its key, and field 2 its value.
            key, value = fields.get(1, b""), fields.get(2, b"")
            if not isinstance(key, bytes) or not isinstance(value, bytes):
                raise ValueError("for an entry of it is a number")
            info[key] = value
    return info


def write_file_info(info: Mapping[bytes, bytes]) -> bytes:
    """Return the content of the block in which a file says what it is."""
    pairs = (_bytes_field(1, _bytes_field(1, key) + _bytes_field(2, info[key])) for key in sorted(info))
    entries = b"".join(pairs)
    return _PROTO + _write_varint(len(entries)) + entries


def read_root_index(content: bytes, count: int) -> list[BlockPlace]:
    """Return the ``count`` entries of a root index, each the place of a block; ValueError if it is damaged."""
    places, at = [], 0
    for _ in range(count):  # O(blocks)
        if len(content) - at < _PLACE.size:
            raise ValueError("for its entries do not end within it")
        start, size = _PLACE.unpack_from(content, at)
        length, at = _key_length(content, at + _PLACE.size)
        places.append(BlockPlace(start, size, _row_key(content[at : at + length])))
        at += length
    if at != len(content):
        raise ValueError("for it does not end with its last entry")
    return _in_order(places)


def write_root_index(places: Sequence[BlockPlace]) -> bytes:
    """Return the content of the root index."""
    return b"".join(
        _PLACE.pack(place.at, place.size) + _write_hadoop_number(len(place.key) + 2) + index_key(place.key)
        for place in places
    )


def index_key(key: bytes) -> bytes:
    """Return a row key as an index has it, with its length in two bytes in front."""
    return len(key).to_bytes(2, "big") + key


def read_inner_index(content: bytes) -> list[BlockPlace]:
    """Return the entries of an index below the root, which Apache HBase wrote; ValueError if it is damaged."""
    if len(content) < _INT.size:
        raise ValueError("for it has no entries")
    (count,) = _INT.unpack_from(content)
    entries_start = _INT.size * (count + 2)
    if not 0 <= count <= len(content) // _INT.size - 2:
        raise ValueError(f"for it says that it has {count} entries")
    offsets = struct.unpack_from(f">{count + 1}i", content, _INT.size)
    places = []
    for start, end in pairwise(offsets):  # O(blocks)
        if not 0 <= start <= end - _PLACE.size <= len(content) - entries_start - _PLACE.size:
            raise ValueError("for its entries do not end within it")
        at, size = _PLACE.unpack_from(content, entries_start + start)
        places.append(
            BlockPlace(at, size, _row_key(content[entries_start + start + _PLACE.size : entries_start + end]))
        )
    return _in_order(places)


def _in_order(places: list[BlockPlace]) -> list[BlockPlace]:
    """Return the places; ValueError if the blocks or their keys are out of order."""
    # `first_keys` returns the orders in which keys ascend, nothing if they ascend in none.
    ascends = all(earlier.end <= later.at for earlier, later in pairwise(places))
    if not ascends or not first_keys([place.key for place in places]):
        raise ValueError("for its entries are out of order")
    return places


def _row_key(key: bytes) -> bytes:
    """Return the row key in a key of an index; ValueError if its length is wrong."""
    length = int.from_bytes(key[:2], "big")
    if len(key) not in (2 + length, 2 + length + _SUFFIX):
        raise ValueError("for a key in it does not have the bytes that it states")
    return key[2 : 2 + length]


def _key_length(content: bytes, at: int) -> tuple[int, int]:
    """Return the length of a key in a root index, and where the key begins.

    Apache Hudi 1.1 wrote lengths over 127 as protobuf has them, not as Hadoop has them, and cannot read them itself. A
    key begins with its own length, which tells the two apart.
    """
    for read_number in (_hadoop_number, _varint):
        try:
            length, begins = read_number(content, at)
        except ValueError:
            continue
        stated = int.from_bytes(content[begins : begins + 2], "big") + 2
        if length in (stated, stated + _SUFFIX) and begins + length <= len(content):
            return length, begins
    raise ValueError("for a key in it has no length")


def _hadoop_number(content: bytes, at: int) -> tuple[int, int]:
    """Return a number that is not negative as Hadoop's ``WritableUtils`` writes it, and where it ends."""
    if at >= len(content):
        raise ValueError("for a number in it has no end")
    first_byte = content[at]
    if first_byte < 0x80:
        return first_byte, at + 1
    size = 0x90 - first_byte
    if not 0 < size <= 8 or at + 1 + size > len(content):
        raise ValueError("for a number in it is negative, or has no end")
    return int.from_bytes(content[at + 1 : at + 1 + size], "big"), at + 1 + size


def _write_hadoop_number(value: int) -> bytes:
    """Return a number as Hadoop's ``WritableUtils`` writes it."""
    if value < 0x80:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([0x90 - size]) + value.to_bytes(size, "big")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number as protobuf writes it, and where it ends; ValueError if it has no end."""
    value = 0
    for position, octet in enumerate(content[at : at + _LONGEST_VARINT]):
        value |= (octet & 0x7F) << 7 * position
        if octet < 0x80:
            return value, at + position + 1
    raise ValueError("for a number in it has no end")


def _write_varint(value: int) -> bytes:
    """Return a number as protobuf writes it."""
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*octets, value])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number of each field of a protobuf message, with its value, a number or bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at)
        if tag & 7 == _VARINT:
            yield tag >> 3, value
        elif tag & 7 == _BYTES and value <= len(message) - at:
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            raise ValueError("for a field of it is of an unknown kind, or does not end within it")


def _number_field(field: int, value: int) -> bytes:
    """Return a field of a protobuf message that holds a number."""
    return _write_varint(field << 3 | _VARINT) + _write_varint(value)


def _bytes_field(field: int, value: bytes) -> bytes:
    """Return a field of a protobuf message that holds bytes."""
    return _write_varint(field << 3 | _BYTES) + _write_varint(len(value)) + value
