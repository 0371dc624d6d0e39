"""Delete blocks: their bytes are Apache Hudi's, and what they say of order comes back."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyhudi.table.files.logs.delete_block import Deletes, decode, encode


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

    found = decode(encode(deletes(["a", "b"], values, default=[False, False])), [values.type], [field])

    assert found.keys.to_pylist() == ["a", "b"]
    assert found.ordering == (values,)
    assert found.default.to_pylist() == [False, False]


def test_values_of_several_fields_come_back() -> None:
    fields = [pa.field(f"f{at}", values.type) for at, values in enumerate(VALUES)]
    mixed = deletes(["a", "b"], *VALUES, default=[True, False])

    found = decode(encode(mixed), [one.type for one in fields], fields)

    assert [one.to_pylist() for one in found.ordering] == [[None, one[1].as_py()] for one in VALUES]
    assert found.default.to_pylist() == [True, False]
