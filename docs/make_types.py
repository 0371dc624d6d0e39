"""Write the tables of docs/types.md from what the code does with each type.

python docs/make_types.py
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.connector.source.spark_types import to_arrow, to_spark
from pyhudi.errors import UnsupportedTypeError
from pyhudi.table.files.base_file import BaseFileWriter, file_schema
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import avro_schema, canonical
from pyspark.sql import types as T  # noqa: N812

PAGE = Path(__file__).with_name("types.md")
COLUMN = "c"


@dataclass(frozen=True)
class Stored:
    """A type that tables hold.

    Attributes:
        kind: The type.
        hudi_rs: What hudi-rs says instead of reading it.
    """

    kind: T.DataType
    hudi_rs: str = ""

    @property
    def schema(self) -> pa.Schema:
        """One column of the type, as a table keeps it."""
        return canonical(to_arrow(T.StructType([T.StructField(COLUMN, self.kind)])))


def _struct(*fields: tuple[str, T.DataType, bool]) -> T.StructType:
    return T.StructType([T.StructField(*field) for field in fields])


_DEEP = _struct(("a", _struct(("b", _struct(("c", T.DateType(), True), ("d", T.StringType(), False)), True)), True))
STORED = [
    Stored(T.BooleanType()),
    Stored(T.ByteType()),
    Stored(T.ShortType()),
    Stored(T.IntegerType()),
    Stored(T.LongType()),
    Stored(T.FloatType()),
    Stored(T.DoubleType()),
    Stored(T.DecimalType(5, 2)),
    Stored(T.DecimalType(15, 4)),
    Stored(T.DecimalType(38, 18)),
    Stored(T.StringType()),
    Stored(T.CharType(5)),
    Stored(T.VarcharType(5)),
    Stored(T.BinaryType()),
    Stored(T.DateType()),
    Stored(T.TimestampType()),
    Stored(T.TimestampNTZType(), hudi_rs="not yet implemented"),
    Stored(T.ArrayType(T.IntegerType())),
    Stored(T.ArrayType(T.ArrayType(T.StringType(), False))),
    Stored(T.ArrayType(_struct(("x", T.ShortType(), True)))),
    Stored(T.MapType(T.StringType(), T.LongType())),
    Stored(T.MapType(T.StringType(), T.ArrayType(T.DoubleType()))),
    Stored(_DEEP),
]


def _named(name: str, text: str, *arguments: Any) -> T.DataType:
    """Return a type that only younger Sparks have; elsewhere a class that looks like it."""
    if hasattr(T, name):
        kind: T.DataType = getattr(T, name)(*arguments)
        return kind
    return type(name, (T.DataType,), {"simpleString": lambda self: text})()  # type: ignore[no-any-return]


class PointUDT(T.UserDefinedType):
    """Represents any type of a user's own."""

    @classmethod
    def sqlType(cls) -> T.DataType:  # noqa: N802 (Spark's name)
        """Return what Spark stores it as."""
        return T.ArrayType(T.DoubleType())


REFUSED = [
    T.NullType(),
    T.YearMonthIntervalType(),
    T.DayTimeIntervalType(),
    T.CalendarIntervalType(),
    T.VariantType(),
    T.StringType("UNICODE_CI"),
    T.MapType(T.IntegerType(), T.StringType()),
    T.StructType([]),
    PointUDT(),
    _named("TimeType", "time(6)"),
    _named("GeometryType", "geometry(4326)", 4326),
    _named("GeographyType", "geography(4326)", 4326),
]


def kinds(kind: T.DataType) -> list[type[T.DataType]]:
    """Return the classes of a type and of all types inside it."""
    inner = [getattr(kind, name) for name in ("elementType", "keyType", "valueType") if hasattr(kind, name)]
    inner += [field.dataType for field in kind.fields] if isinstance(kind, T.StructType) else []
    return [type(kind), *(one for each in inner for one in kinds(each))]


def spark_type(kind: T.DataType) -> str:
    """Return a type as Spark's DDL has it, with what may not be null."""
    if isinstance(kind, T.StructType):
        fields = (f"{one.name}: {spark_type(one.dataType)}{'' if one.nullable else ' not null'}" for one in kind)
        return f"struct<{', '.join(fields)}>"
    if isinstance(kind, T.ArrayType):
        return f"array<{spark_type(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"map<{spark_type(kind.keyType)}, {spark_type(kind.valueType)}>"
    return kind.simpleString()


def spark_reads(stored: Stored) -> str:
    """Return the type that a read declares."""
    return spark_type(to_spark(stored.schema)[COLUMN].dataType)


def avro_type(stored: Stored) -> str:
    """Return the type in the schema that commits carry, short of names and nullability."""
    return _avro(json.loads(avro_schema(stored.schema, "t"))["fields"][0]["type"])


def _avro(kind: Any) -> str:
    if isinstance(kind, list):
        return _avro(kind[1])
    if isinstance(kind, str):
        return kind
    if kind["type"] == "record":
        fields = (f"{one['name']}: {_avro(one['type'])}" for one in kind["fields"])
        return f"record{{{', '.join(fields)}}}"
    if kind["type"] == "array":
        return f"array<{_avro(kind['items'])}>"
    if kind["type"] == "map":
        return f"map<{_avro(kind['values'])}>"
    size = f"({kind['size']})" if "size" in kind else ""
    precision = f"({kind['precision']},{kind['scale']})" if "precision" in kind else ""
    return f"{kind['type']}{size} {kind['logicalType']}{precision}"


def parquet_leaves(stored: Stored) -> list[str]:
    """Return the columns of the Parquet file: path below the column, physical type, logical type."""
    schema = file_schema(stored.schema)
    sink = io.BytesIO()
    BaseFileWriter(sink, schema, "{}", output=Output(row_group_bytes=1)).close()
    parquet = pq.ParquetFile(sink).schema
    leaves = [parquet.column(number) for number in range(len(parquet))]
    return [_leaf(leaf) for leaf in leaves if leaf.path.partition(".")[0] == COLUMN]


def _leaf(leaf: Any) -> str:
    logical = leaf.logical_type.type
    size = f"({leaf.length})" if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else ""
    detail = ""
    if logical == "DECIMAL":
        detail = f"({leaf.precision},{leaf.scale})"
    if logical == "TIMESTAMP":
        zone = json.loads(leaf.logical_type.to_json())["isAdjustedToUTC"]
        detail = " in microseconds, UTC" if zone else " in microseconds, local"
    meaning = "" if logical in {"NONE", "UNKNOWN"} else f" {logical}{detail}"
    path = leaf.path.partition(".")[2]
    return f"{path}{': ' if path else ''}{leaf.physical_type}{size}{meaning}"


def arrow_type(stored: Stored) -> str:
    """Return the Arrow type in which hudi-rs gives the column."""
    return str(stored.schema.field(COLUMN).type)


def refusal(kind: T.DataType) -> str:
    """Return why a type is refused."""
    try:
        to_arrow(T.StructType([T.StructField(COLUMN, kind)]))
    except UnsupportedTypeError as error:
        return error.what.rpartition("cannot be stored: ")[2].rstrip(".")
    raise AssertionError(f"{kind} is not refused")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text}`"


def stored_table() -> str:
    """Return the table of what is stored."""
    head = ["Spark type", "in Avro", "in Parquet", "read by Spark", "read by hudi-rs"]
    lines = [_line(head), _line(["---"] * len(head))]
    for stored_type in STORED:
        leaves = "<br>".join(map(_code, parquet_leaves(stored_type)))
        rust = f"fails: “{stored_type.hudi_rs}”" if stored_type.hudi_rs else _code(arrow_type(stored_type))
        lines.append(
            _line(
                [
                    _code(spark_type(stored_type.kind)),
                    _code(avro_type(stored_type)),
                    leaves,
                    _code(spark_reads(stored_type)),
                    rust,
                ]
            )
        )
    return "\n".join(lines)


def refused_table() -> str:
    """Return the table of what is refused."""
    lines = [_line(["Spark type", "why"]), _line(["---", "---"])]
    return "\n".join([*lines, *(_line([_code(spark_type(kind)), refusal(kind)]) for kind in REFUSED)])


TABLES = {"stored": stored_table, "refused": refused_table}


def with_tables(page: str) -> str:
    """Return the page with its tables made anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: made by docs/make_types.py -->\n", f"\n<!-- /{name} -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}{table()}{end}{rest.split(end)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
