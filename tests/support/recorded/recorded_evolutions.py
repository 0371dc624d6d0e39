"""What Apache Hudi 1.2 makes of each difference between a write's columns and a table's, and the bytes it left.

The archive holds, for each case of the matrix that Apache Hudi can be asked about, the table before (``bases``) and
after its write (``after``), and its answers: the rows that it then reads, or that it refused.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.latest_schema import latest_schema
from pyhudi.table.schema.columns import canonical
from pyhudi.table.schema.types import children
from pyhudi.table.table import Table
from support.recorded.ddl import columns
from support.recorded.evolutions import MATRIX, Difference
from support.recorded.hudi_options import unpartitioned

ARCHIVE = Path(__file__).parents[2] / "fixtures" / "schema_evolution" / "apache_hudi_1_2.tar.xz"
ANSWERS = "answers.json"
BUCKETS = 2
OPTIONS = unpartitioned(BUCKETS)
# Spark cannot be told of columns that may not be null.
CASES = [one for one in MATRIX if "not null" not in one.table + one.incoming]


@dataclass(frozen=True)
class Recorded:
    """The unpacked archive.

    Attributes:
        folder: Where it is.
        answers: The rows that Apache Hudi read after its write, as `spelled` spells them, by the name of the case;
            None where it refused the write.
    """

    folder: Path
    answers: Mapping[str, str | None]

    @classmethod
    def unpack(cls, folder: Path) -> Recorded:
        """Unpack the archive into a folder."""
        shutil.unpack_archive(ARCHIVE, folder)
        return cls(folder, json.loads((folder / ANSWERS).read_text(encoding="utf-8")))

    def base(self, case: Difference) -> Path:
        """Return the table before the write."""
        return self.folder / base_of(case)

    def after(self, case: Difference) -> Path:
        """Return the table after it."""
        return self.folder / after_of(case)


def base_of(case: Difference) -> str:
    """Return where in the archive the table of a case is before the write."""
    return f"bases/{_plain(case.table)}"


def after_of(case: Difference) -> str:
    """Return where it is afterwards."""
    return f"after/{_plain(case.name)}"


def _plain(name: str) -> str:
    return name.translate(dict.fromkeys(map(ord, " <>,:()"), "_"))


def first_rows(case: Difference) -> pa.Table:
    """Return the rows that the table of a case is made with."""
    return _rows(columns(f"id string, ts bigint, {case.table}"), "k1", "k2", "k3", ts=1)


def next_rows(case: Difference) -> pa.Table:
    """Return the rows whose columns differ: one of a known key, one of a new one."""
    batch = _rows(columns(f"id string, ts bigint, {case.incoming}"), "k1", "n1", ts=2)
    if (case.table, case.incoming) == ("v date", "v string"):
        at = batch.schema.get_field_index("v")
        return batch.set_column(at, "v", pa.array(["2021-03-04"] * batch.num_rows))
    return batch


def columns_of(path: Path) -> pa.Schema:
    """Return a table's columns as pyhudi tells them."""
    storage = open_storage(str(path))
    config = load_config(storage)
    schema = latest_schema(config, Table(storage, config).timeline())
    assert schema is not None
    return schema


def rows_of(found: pa.Table, schema: pa.Schema) -> list[dict[str, Any]]:
    """Return some columns of what a reader found, in the order of the keys."""
    plain = pa.schema([one.with_nullable(True) for one in schema])
    return sorted(found.select(plain.names).to_pylist(maps_as_pydicts="strict"), key=lambda row: row["id"])


def spelled(rows: list[dict[str, Any]]) -> str:
    """Return rows as a text, the same for the same values."""
    return json.dumps(rows, default=str)


def values_of(schema: pa.Schema, number: int) -> dict[str, Any]:
    """Return a value for each column but the key and the ordering."""
    return {one.name: _value(one.type, number) for one in schema if one.name not in {"id", "ts"}}


def _rows(schema: pa.Schema, *keys: str, ts: int) -> pa.Table:
    given = [{"id": key, "ts": ts, **values_of(canonical(schema), ts)} for key in keys]
    return pa.Table.from_pylist(given, schema)


def _value(kind: pa.DataType, number: int) -> Any:
    """Return a value of a type; texts are such that a date or a decimal can be made of them, one of the two."""
    if pa.types.is_struct(kind):
        return {one.name: _value(one.type, number) for one in children(kind)}
    if pa.types.is_list(kind):
        return [_value(kind.value_type, number)]
    if pa.types.is_map(kind):
        return {"key": _value(kind.item_type, number)}
    if pa.types.is_decimal(kind):
        return Decimal(number) + Decimal("0.50")
    return {
        pa.bool_(): True,
        pa.int32(): number,
        pa.int64(): number + 100,
        pa.float32(): 1.100000023841858,
        pa.float64(): 2.25,
        pa.string(): "1.50",
        pa.binary(): b"1.25",
        pa.date32(): dt.date(2024, 2, 1 + number),
        pa.timestamp("us", "UTC"): dt.datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=dt.timezone.utc),
        pa.timestamp("us"): dt.datetime(2024, 2, 29, 1, 2, 3, 456789),
    }[kind]
