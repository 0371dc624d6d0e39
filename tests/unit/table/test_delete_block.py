"""Delete blocks: their bytes are Apache Hudi's, and what they say of order comes back."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import SchemaMismatchError, UnsupportedTypeError
from pyhudi.table.files.logs.avro_records import number
from pyhudi.table.files.logs.delete_block import Deletes, OldVersionError, decode, encode
from support.seams import patch_seam, read_seam


def deletes(keys: list[str], *ordering: pa.Array, default: list[bool] | None = None, path: str = "0") -> Deletes:
    mask = pa.array(default if default is not None else [not ordering] * len(keys), pa.bool_())
    return Deletes(pa.array(keys, pa.string()), pa.array([path] * len(keys), pa.string()), ordering, mask)


def test_the_bytes_are_those_of_apache_hudi() -> None:
    """A delete that Apache Hudi 1.2 wrote."""
    assert encode(deletes(["k0"])).hex() == "000000030000000b0202046b300202300400" + "00"


UTC = datetime.timezone.utc
VALUES = [
    pa.array([True, False]),
    pa.array([7, -(1 << 31)], pa.int32()),
    pa.array([0, -(1 << 63)], pa.int64()),
    pa.array([1.5, -0.0], pa.float32()),
    pa.array([1e300, 0.0], pa.float64()),
    pa.array(["", "é 𝄞"]),
    pa.array([b"", b"\xff"]),
    pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, 4, UTC)] * 2, pa.timestamp("us", "UTC")),
    pa.array([datetime.datetime(1, 1, 1)] * 2, pa.timestamp("us")),
    pa.array([Decimal("-1.280"), Decimal("12345678901234.127")], pa.decimal128(17, 3)),
    pa.array([Decimal(0), Decimal("-0.000000000000001")], pa.decimal128(15, 15)),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda one: str(one.type))
def test_ordering_values_come_back_in_their_types(values: pa.Array) -> None:
    field = pa.field("ts", values.type, nullable=False)

    decoded_deletes = decode(encode(deletes(["a", "b"], values, default=[False, False])), [values.type], [field])

    assert decoded_deletes.keys.to_pylist() == ["a", "b"]
    assert decoded_deletes.ordering == (values,)
    assert decoded_deletes.default.to_pylist() == [False, False]


def test_values_of_several_fields_come_back() -> None:
    fields = [pa.field(f"f{at}", values.type) for at, values in enumerate(VALUES)]
    mixed = deletes(["a", "b"], *VALUES, default=[True, False])

    decoded_deletes = decode(encode(mixed), [one.type for one in fields], fields)

    assert [one.to_pylist() for one in decoded_deletes.ordering] == [[None, one[1].as_py()] for one in VALUES]
    assert decoded_deletes.default.to_pylist() == [True, False]


def test_a_value_may_stand_in_any_wrapper_that_fits_its_column() -> None:
    """What was an integer when it was written, and a date or a moment in the wrapper of its own."""
    was = deletes(["a", "b"], pa.array([7, 8], pa.int32()), default=[False, False])

    found = decode(encode(was), [pa.int32()], [pa.field("ts", pa.int64())])

    assert found.ordering[0] == pa.array([7, 8])
    day = bytes.fromhex("000000030000000a020202610202301004" + "00")
    assert decode(day, [pa.date32()], [pa.field("d", pa.date32())]).ordering[0].to_pylist() == [
        datetime.date(1970, 1, 3)
    ]
    with pytest.raises(SchemaMismatchError, match="orders by int32, and a delete in a log file by int64"):
        decode(encode(deletes(["a"], pa.array([7]), default=[False])), [pa.int32()], [pa.field("ts", pa.int32())])


@pytest.mark.parametrize("zone", ["UTC", None])
def test_the_wrapper_of_moments_holds_microseconds_for_a_column_in_milliseconds_too(zone: str | None) -> None:
    """Apache Hudi's wrapper; pyhudi's own, of plain numbers, holds what the column has."""
    kind = pa.timestamp("ms", zone)
    ordering = pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)], pa.timestamp("ms")).cast(kind)
    own = encode(deletes(["a"], ordering, default=[False]))
    # The bytes behind the key and the partition: the wrapper's number and the value, and the end of the list.
    start = own.index(b"\x020") + 2
    micros = ordering.view(pa.int64())[0].as_py() * 1000
    body = own[8:start] + number(11) + number(micros) + number(0)
    content = own[:4] + struct.pack(">i", len(body)) + body

    both = [decode(block, [kind], [pa.field("ts", kind)]).ordering[0] for block in (own, content)]

    assert both == [ordering, ordering]


@pytest.mark.parametrize("values", VALUES, ids=lambda one: str(one.type))
def test_deletes_alike_are_read_at_once_as_one_by_one(values: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [*(f"k{one}" * (one % 40) for one in range(200)), "é" * 100]
    some = deletes(keys, values.take(pa.array([one % 2 for one in range(201)])), default=[False] * 201)
    content, field = encode(some), pa.field("ts", values.type)
    slow = read_seam("read deletes one by one")
    patch_seam(monkeypatch, "read deletes one by one", None)

    at_once = decode(content, [values.type], [field])

    patch_seam(monkeypatch, "read deletes one by one", slow)
    patch_seam(monkeypatch, "read equally long deletes at once", lambda *_: None)
    assert at_once == decode(content, [values.type], [field]) == some


def test_a_key_that_holds_what_parts_keys_from_values_is_read() -> None:
    """Wherever it stands in it, and where it only seems to begin there."""
    keys = [
        f"{before}\x02\x020\x06{behind}" for before in ("", "a", "\x02", "\x02\x02") for behind in ("", "\x02", "b")
    ]
    for order in ([*keys, "c"], ["c", *keys], ["\x02\x020", "\x02", ""], ["c", "\x02\x020\x06", "\x02\x02"]):
        some = deletes(order, pa.array(range(len(order))), default=[False] * len(order))

        assert decode(encode(some), [pa.int64()], [pa.field("ts", pa.int64())]) == some


def test_columns_may_be_dictionaries() -> None:
    some = deletes(["a", "b"], pa.array(["x", "y"]), default=[False, False])
    keys, paths, (values,) = some.keys, some.partition_paths, some.ordering
    packed = Deletes(keys.dictionary_encode(), paths.dictionary_encode(), (values.dictionary_encode(),), some.default)

    assert encode(packed) == encode(some)


def test_a_delete_is_written_in_its_order_or_not_at_all() -> None:
    with pytest.raises(ValueError, match="has no value for it"):
        encode(deletes(["a"], pa.array([None], pa.int64()), default=[False]))


def test_the_integer_zero_asks_for_no_order_and_no_other_zero_does() -> None:
    zeros = [pa.array([0], pa.int32()), pa.array([0], pa.int64()), pa.array([0.0])]

    asked = [
        decode(encode(deletes(["a"], one, default=[False])), [one.type], [pa.field("ts", one.type)]) for one in zeros
    ]

    assert [one.default.to_pylist() for one in asked] == [[True], [False], [False]]


def test_a_decimal_too_fine_for_the_format_is_refused() -> None:
    fine = pa.array([Decimal("0.0000000000000001")], pa.decimal128(20, 16))

    with pytest.raises(UnsupportedTypeError, match="15 digits behind the point"):
        encode(deletes(["a"], fine, default=[False]))


@given(
    st.lists(st.tuples(st.text("aé𝄞", max_size=90), st.none() | st.integers(-(1 << 63), (1 << 63) - 1)), max_size=40)
)
def test_the_list_is_written_as_fastavro_writes_it(rows: list[tuple[str, int | None]]) -> None:
    some = deletes(
        [key for key, _ in rows], pa.array([ts for _, ts in rows], pa.int64()), default=[ts is None for _, ts in rows]
    )
    sink = pa.BufferOutputStream()
    of_value = [
        {"type": "record", "name": f"r{at}", "fields": [{"name": f"v{at}", "type": kind}]}
        for at, kind in enumerate(("boolean", "int", "long"))
    ]
    union: Any = {
        "type": "record",
        "name": "o",
        "fields": [
            {"name": "k", "type": ["null", "string"]},
            {"name": "p", "type": ["null", "string"]},
            {"name": "v", "type": ["null", *of_value]},
        ],
    }
    values = [{"k": key, "p": "0", "v": {"v1": 0} if ts is None else {"v2": ts}} for key, ts in rows]
    fastavro.schemaless_writer(sink, fastavro.parse_schema({"type": "array", "items": union}), values)

    content = encode(some)

    assert content[8:] == sink.getvalue().to_pybytes()
    found = decode(content, [pa.int64()], [pa.field("ts", pa.int64())])
    assert (found.keys, found.ordering) == (some.keys, some.ordering)


def test_what_is_no_list_of_deletes_is_refused() -> None:
    good = encode(deletes(["k0", "k1"]))
    for at in range(len(good)):
        with pytest.raises(ValueError, match=r"breaks off|as it says"):
            decode(good[:at], [], [])
    with pytest.raises(ValueError, match="do not end where"):
        decode(good[:4] + struct.pack(">i", len(good) - 7) + good[8:] + b"\0", [], [])
    with pytest.raises(OldVersionError):
        decode(struct.pack(">ii", 2, 0), [], [])
