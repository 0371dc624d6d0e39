"""One bit of a base file is not what it was: the rows are right, or the file is named, and a write fails whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import CorruptFileError
from pyhudi.index.bloom import BloomIndex
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.storage import open_storage
from pyhudi.table.files.base_file import BaseFileReader
from pyhudi.table.files.bloom_filter import FILTER, BloomSettings
from pyhudi.table.files.key_footers import KeyFooters
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import with_meta
from support.drive import KEYED, write
from support.made.keyed_files import KeyedFiles, keyed
from support.places import files_below
from support.recorded.fixture_tables import unpack
from support.seams import patch_seam

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("n", pa.float64()),
        pa.field("word", pa.string()),
        pa.field("l", pa.list_(pa.int32())),
    ]
)
ROWS = 6_000
FLIPS = 80


def rows(value: float) -> pa.Table:
    numbers = range(ROWS)
    columns = [
        [f"k{one}" for one in numbers],
        [1] * ROWS,
        [None if one % 7 == 0 else value * one for one in numbers],
        [("left", "right", None)[one % 3] for one in numbers],
        [[1, 2], None, [3]] * (ROWS // 3),
    ]
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file group, whose base file has several row groups, and dictionaries beside plain values."""
    path = tmp_path_factory.mktemp("flipped") / "t"
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "rows of an arrival", ROWS // 6)
        write(
            path,
            rows(0.37),
            table=replace(KEYED, bucket_count=1),
            settings=WriteSettings(output=Output(row_group_bytes=100_000)),
        )
    return path


def base_file(table: Path) -> Path:
    return max(table.rglob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])


def chunks(file: Path) -> list[range]:
    """Return where the pages of each column chunk lie."""
    metadata = pq.ParquetFile(file).metadata
    byte_ranges = []
    for number in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            chunk = metadata.row_group(number).column(position)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            byte_ranges.append(range(start, start + chunk.total_compressed_size))
    return byte_ranges


def read(file: Path, schema: pa.Schema, *, plain: tuple[str, ...] | None = None) -> pa.Table:
    """Read as queries do or, with columns that pass through as dictionaries, as merges do."""
    with BaseFileReader(open_storage(str(file.parent)), file.name, plain=plain) as reader:
        wanted = with_meta(schema)
        return pa.Table.from_batches([batch.cast(wanted) for batch in reader.batches(wanted)], wanted)


def flipped(file: Path, bits: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield each bit while it alone is flipped."""
    whole = file.read_bytes()
    try:
        for at, bit in bits:
            data = bytearray(whole)
            data[at] ^= 1 << bit
            file.write_bytes(data)
            yield at, bit
    finally:
        file.write_bytes(whole)


def somewhere(file: Path) -> list[tuple[int, int]]:
    dice = random.Random(4)
    places = [at for chunk in chunks(file) for at in chunk]
    return [(dice.choice(places), dice.randrange(8)) for _ in range(FLIPS)]


@pytest.mark.parametrize("plain", [None, ("id",)], ids=["query", "merge"])
def test_rows_are_right_or_refused(table: Path, plain: tuple[str, ...] | None) -> None:
    file = base_file(table)
    assert pq.ParquetFile(file).num_row_groups == 3
    whole, refused = read(file, SCHEMA), 0

    for place in flipped(file, somewhere(file)):
        try:
            assert read(file, SCHEMA, plain=plain).equals(whole), place
        except CorruptFileError as error:
            assert file.name in str(error)
            refused += 1
    assert refused > FLIPS * 0.8


def test_every_bit_of_a_page_s_header_is_harmless_or_refused(table: Path) -> None:
    """The checksum is of what follows: a kind of page that nobody knows is skipped, a wrong count spills over."""
    file = base_file(table)
    heads = [chunk.start for chunk in chunks(file)[6 : len(with_meta(SCHEMA))]]
    bits = [(head + byte, bit) for head in heads for byte in (1, 2, *range(15, 21)) for bit in range(8)]
    whole = read(file, SCHEMA)

    for place in flipped(file, bits):
        with suppress(CorruptFileError):
            assert read(file, SCHEMA).equals(whole), place


def test_files_of_apache_hudi_have_checksums_too(tmp_path: Path) -> None:
    file = base_file(Path(unpack("v9_cow_evolved", tmp_path)))
    (first, *_), schema = chunks(file), pa.schema([])
    assert read(file, schema).num_rows

    for _ in flipped(file, [(first[-1], 3)]):
        with pytest.raises(CorruptFileError, match="CRC"):
            read(file, schema)


@pytest.mark.parametrize("colocated", [True, False], ids=["colocated", "plain"])
def test_an_upsert_that_meets_a_damaged_page_leaves_nothing(table: Path, colocated: bool) -> None:
    file = base_file(table)
    middle = chunks(file)[len(with_meta(SCHEMA)) // 2]

    for _ in flipped(file, [(middle[len(middle) // 2], 5)]):
        before = {name: data for name, data in files_below(table).items() if "/.pyhudi/" not in name}
        with pytest.raises(CorruptFileError, match=file.name):
            write(table, rows(0.5).slice(0, 10), settings=WriteSettings(colocated=colocated))
        assert {name: data for name, data in files_below(table).items() if "/.pyhudi/" not in name} == before
    assert write(table, rows(0.5).slice(0, 10)).updates == 10


def test_no_bit_of_a_range_or_a_filter_hides_a_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both stand in the footer, of which Parquet has no checksum."""
    files = KeyedFiles()
    keys = [f"k{number}" for number in range(100, 200)]
    group = files.add("p", keys, bloom=BloomSettings(entries=100, false_positives=1e-6))
    path = files.slices("p")[group.file_id].base_file.path
    whole = files.storage.read(path)
    footer = pq.ParquetFile(pa.BufferReader(whole)).metadata.metadata
    # The last place: before them are the key column's own statistics, and its pages.
    starts = {value: whole.rindex(value) for value in (footer[b"hoodie_min_record_key"], footer[FILTER.encode()])}
    dice = random.Random(5)
    places = [start + dice.randrange(len(value)) for value, start in starts.items() for _ in range(FLIPS // 2)]
    hidden = 0

    for at in places:
        data = bytearray(whole)
        data[at] ^= 1 << dice.randrange(8)
        files.storage.write(path, bytes(data))
        patch_seam(monkeypatch, "footers in memory", KeyFooters())
        with suppress(CorruptFileError):
            found = BloomIndex().tag(keyed([("p", key) for key in keys]), files, files.storage)  # type: ignore[arg-type]
            hidden += int((found.codes < 0).sum())

    assert hidden == 0
    assert sum("cannot be used" in record.getMessage() for record in caplog.records) > FLIPS * 0.8
