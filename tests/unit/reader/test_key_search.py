"""Base files that are left out because their footers say that they hold none of the keys looked for."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyhudi.reader.skipping.predicates import Compare, OneOf, Predicate
from pyhudi.reader.skipping.search import Search
from pyhudi.table.config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.base_file import MAX_KEY, MIN_KEY
from pyhudi.table.files.bloom_filter import BloomFilterBuilder, BloomSettings
from pyhudi.table.schema.columns import with_meta

# Below and above the characters that take two of Java's, whose order differs from that of bytes.
TEXTS = st.text(st.sampled_from("aZ9é\ud7ff\ue000\uffff\U00010000\U0010ffff"), min_size=1, max_size=3)
KEYS = st.lists(TEXTS, min_size=1, max_size=8, unique=True)
SMALL = BloomSettings(entries=4, false_positives=0.1, most_entries=8)


def as_java(text: str) -> bytes:
    """What Java orders texts by."""
    return text.encode("utf-16-be")


def footer(held: Iterable[str], order=None, bloom: bool = False) -> dict[bytes, bytes]:
    keys = sorted(held, key=order)
    metadata = {MIN_KEY: keys[0], MAX_KEY: keys[-1]}
    if bloom:
        builder = BloomFilterBuilder(SMALL)
        builder.add(pa.array(keys))
        metadata |= builder.footer()
    return {key.encode(): value.encode() for key, value in metadata.items()}


SCHEMA = with_meta(pa.schema([("id", pa.int32()), ("line", pa.string())]))


def keyed(*fields: str) -> TableConfig:
    return TableConfig.new(TableSettings(name="t", record_key_fields=fields, index_type="SIMPLE"))


CONFIG = keyed("id")


def parquet(keys: list[str | None], said: dict[bytes, bytes] | None = None) -> pq.ParquetFile:
    """Two rows a row group; nothing but their keys tells what is in them."""
    sink = pa.BufferOutputStream()
    ids = pa.array(range(1, len(keys) + 1), pa.int32())
    table = pa.table({"_hoodie_record_key": pa.array(keys, pa.string()), "id": ids})
    with pq.ParquetWriter(sink, table.schema, write_statistics=["_hoodie_record_key"]) as writer:
        writer.write_table(table, row_group_size=2)
        writer.add_key_value_metadata(said or {})
    return pq.ParquetFile(pa.BufferReader(sink.getvalue()))


def groups(file: pq.ParquetFile, *predicates: Predicate) -> list[int]:
    return Search.of(predicates, SCHEMA, CONFIG).row_groups(file, "f")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Compare("_hoodie_record_key", "=", "4"), [1]),
        (Compare("id", "=", 4), [1]),
        (OneOf("id", (2, 5)), [0, 2]),
        (OneOf("id", (None, 2**40)), []),
        (Compare("id", ">", 4), [0, 1, 2]),
    ],
)
def test_row_groups_are_left_out_by_their_keys(predicate: Predicate, expected: list[int]) -> None:
    assert groups(parquet(["1", "2", "3", "4", "5", "6"]), predicate) == expected


@pytest.mark.parametrize("order", [None, as_java], ids=["bytes", "Java"])
@pytest.mark.parametrize("bloom", [False, True], ids=["range", "filter"])
@given(held=KEYS, others=KEYS, data=st.data())
@example(held=["\ue000", "\U00010000"], others=["\uffff"], data=None)
def test_what_holds_a_key_is_never_left_out(order, bloom: bool, held, others, data) -> None:
    """Whichever order the file's range has."""
    wanted = data.draw(st.sampled_from(held)) if data else held[0]
    file = parquet(held, footer(held, order, bloom))

    assert held.index(wanted) // 2 in groups(file, OneOf("_hoodie_record_key", (*others, wanted)))


def test_rows_without_a_key_may_be_any() -> None:
    assert groups(parquet([None, None, "3", None, "5", "6"]), Compare("id", "=", 2)) == [0, 1]


def test_a_whole_file_is_left_out_by_its_footer() -> None:
    keys = ["1", "2", "5", "6"]

    assert groups(parquet(keys), Compare("id", "=", 4)) == []
    assert groups(parquet(keys, footer(["1", "2"])), Compare("id", "=", 5)) == []
    assert groups(parquet(keys, footer(keys, bloom=True)), Compare("id", "=", 5)) == [1]


def test_what_else_is_looked_for_does_not_make_a_file_hold_a_key() -> None:
    search = Search.of([Compare("id", "=", 4)], SCHEMA, CONFIG).with_more(Compare("id", ">", 0))

    assert search.row_groups(parquet(["1", "2", "5", "6"]), "f") == []


def test_nothing_is_left_out_by_keys_that_the_predicates_do_not_fix() -> None:
    strange = TableConfig({**CONFIG.properties, "hoodie.table.keygenerator.type": "my.Own"})

    untyped = {"hoodie.table.keygenerator.type": "CUSTOM", "hoodie.table.partition.fields": "line"}

    unnoted = {"hoodie.table.keygenerator.type": "COMPLEX", "hoodie.table.version": "8"}

    assert Search.of([Compare("id", "=", 1)], SCHEMA, CONFIG).keys.to_pylist() == ["1"]
    others = [TableConfig({**CONFIG.properties, **changes}) for changes in (untyped, unnoted)]
    for config in (keyed("id", "line"), strange, *others, None):
        assert Search.of([Compare("id", "=", 1)], SCHEMA, config).keys is None
