"""Keys and paths held against those of Apache Hudi 1.2.0's own key generators, thousands of rows."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import PartitionValueError, PyHudiError
from pyhudi.operations.planning.new_table import NewTable
from pyhudi.operations.planning.request import TableSettings
from pyhudi.table.config.key_types import KeyGeneratorType, PartitionType, split_partition_field
from pyhudi.table.keys.generator import KeyGenerator

FIXTURE = Path(__file__).parents[2] / "fixtures" / "key_generators" / "apache_hudi_1_2.json.gz"
CASES = json.loads(gzip.decompress(FIXTURE.read_bytes()))
WRITE = "hoodie.datasource.write."
INPUT_ZONE = "hoodie.keygen.timebased.input.timezone"
TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "struct": pa.struct([("b", pa.string())]),
}


def generator(case: dict[str, Any]) -> KeyGenerator:
    options = dict(case["options"])
    keys = tuple(options.pop(f"{WRITE}recordkey.field").split(","))
    fields = [split_partition_field(one) for one in options.pop(f"{WRITE}partitionpath.field").split(",") if one]
    flags = [
        options.pop(WRITE + name, "false") == "true" for name in ("hive_style_partitioning", "partitionpath.urlencode")
    ]
    kind = KeyGeneratorType.parse(f"{case['generator']}KeyGenerator")
    types = tuple(one for _, one in fields if one is not None)
    of_times = kind is KeyGeneratorType.TIMESTAMP or PartitionType.TIMESTAMP in types
    settings = TableSettings(
        record_key_fields=keys,
        partition_fields=tuple(name for name, _ in fields),
        partition_types=types or None,
        key_generator=kind,
        hive_style=flags[0],
        url_encode=flags[1],
        time_options=options if of_times else {},
    )
    return KeyGenerator(NewTable(settings, "t").config())


def column(kind: str, values: list[Any]) -> pa.Array:
    if kind == "struct":
        return pa.array([None if value is None else {"b": value} for value in values], TYPES[kind])
    if kind in {"date", "timestamp"}:
        return pa.array(values, pa.int32() if kind == "date" else pa.int64()).view(TYPES[kind])
    return pa.array(values, TYPES[kind])


def batch(case: dict[str, Any], rows: list[list[Any]]) -> pa.RecordBatch:
    columns = [column(kind, [row[n] for row in rows]) for n, kind in enumerate(case["columns"].values())]
    return pa.RecordBatch.from_arrays(columns, names=list(case["columns"]))


def made(keys: KeyGenerator, rows: pa.RecordBatch) -> list[tuple[str, str]]:
    return list(zip(keys.record_keys(rows).to_pylist(), keys.partition_paths(rows).to_pylist(), strict=True))


def is_dangerous(case: dict[str, Any], path: str) -> bool:
    """Return whether a path of Java's leaves the table or the years 1 to 9999, or is one that Hudi cannot use."""
    folders = path.split("/")
    return bool(case["options"][f"{WRITE}partitionpath.field"]) and (
        re.match("0000-|[0-9]{5}-", path) is not None
        or any(one in {"", ".", ".."} or one.startswith(".hoodie") or len(one.encode()) > 255 for one in folders)
        or ":" in folders[0]
    )


def is_our_own(case: dict[str, Any], row: list[Any]) -> bool:
    """Return whether a null makes something else here, on purpose.

    Java writes it as text in the output zone and reads that in the zone of the machine, which is UTC here; a table of
    ours notes that zone, whereupon Java does as we do. And it fails on null columns within which it looks for a key.
    """
    options = case["options"]
    zones = {name for name in options if name.endswith("timezone")}
    shifted = "STRING" in str(options) or "MIXED" in str(options)
    return row[-1] is None and (
        (shifted and bool(zones) and INPUT_ZONE not in zones and case["generator"] == "TimestampBased")
        or "a.b" in options[f"{WRITE}recordkey.field"]
    )


def name_of(case: dict[str, Any]) -> str:
    return "-".join([case["generator"], *(case["options"][one] for one in case["options"] if "format" in one)])


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_keys_and_paths_are_those_of_java(case: dict[str, Any]) -> None:
    keys = generator(case)
    answers = list(zip(case["rows"], case["keys"], case["paths"], strict=True))
    good = [one for one in answers if one[1] is not None and not is_dangerous(case, one[2])]
    good = [one for one in good if not is_our_own(case, one[0])]
    found = made(keys, batch(case, [row for row, _, _ in good]))

    assert found == [(key, path) for _, key, path in good]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_what_java_refuses_or_misplaces_is_refused(case: dict[str, Any]) -> None:
    keys = generator(case)
    accepted = []
    for row, key, path in zip(case["rows"], case["keys"], case["paths"], strict=True):
        if is_our_own(case, row) or (key is not None and not is_dangerous(case, path)):
            continue
        try:
            accepted.append((row, made(keys, batch(case, [row]))))
        except PyHudiError as error:
            assert key is None or type(error) is PartitionValueError
    assert accepted == []


def test_the_fixture_is_large_and_has_every_generator() -> None:
    rows = [(case["generator"], key is None) for case in CASES for key in case["keys"]]

    assert sum(not refused for _, refused in rows) > 6000
    assert {name for name, _ in rows} == {"Simple", "Complex", "Nonpartitioned", "TimestampBased", "Custom"}
