"""The benchmark's rows: TPC-H lineitem in three parts, and what a table must hold after each of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

KEYS = ("l_orderkey", "l_linenumber")
PARTITION = "ship_year"
ORDERING = "ts"
# The arguments of `HudiTable.create`.
TERMS: dict[str, Any] = {"record_key": KEYS, "partition_by": PARTITION, "order_by": ORDERING, "buckets": 2}
PARTS = ("base", "up1", "up2")


def point_key(scale: float) -> int:
    """Return an order key that exists at this scale (dbgen uses the first 8 of every 32)."""
    return 32 * int(125_000 * scale) + 1


def prepare(folder: Path, scale: float) -> dict[str, Any]:
    """Make the Parquet folders base, up1 and up2 unless they are there.

    ``base`` is the whole of lineitem with ``ship_year`` and ``ts`` = 1. Each ``upN`` changes the price of another
    10 % of its rows and adds 1 % of rows with new keys, both with ``ts`` = N + 1.

    Returns:
        For "base" and "final" the list of count, sum of prices, greatest date and rows at the point key that every
        system has to agree with; they are computed by DuckDB from the parts alone.
    """
    expectations = folder / "expected.json"
    if not expectations.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        generate = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run(
            [generate, "parquet", "-s", str(scale), "--tables=lineitem", f"--output-dir={folder}"], check=True
        )
        for number, part in enumerate(PARTS):
            _write_part(folder, number, part)
        expectations.write_text(json.dumps(_expect(folder, scale)), encoding="utf-8")
    expected: dict[str, Any] = json.loads(expectations.read_text(encoding="utf-8"))
    return expected


def _write_part(folder: Path, number: int, part: str) -> None:
    import duckdb

    source = f"'{folder}/lineitem.parquet'"
    added = f"year(l_shipdate)::varchar as {PARTITION}, {number + 1}::bigint as {ORDERING}"
    if number == 0:
        query = f"select *, {added} from {source}"
    else:
        draw = "hash(l_orderkey, l_linenumber)"
        price = f"(l_extendedprice * {number + 1})::decimal(15, 2) as l_extendedprice"
        key = f"l_orderkey + {number}00000000 as l_orderkey"
        query = f"""
            select * replace ({price}), {added} from {source} where {draw} % 10 = {number + 2}
            union all
            select * replace ({key}), {added} from {source} where {draw} % 100 = {number + 6}"""
    duckdb.sql(f"copy ({query}) to '{folder}/{part}' (format parquet, per_thread_output true)")


def _expect(folder: Path, scale: float) -> dict[str, list[Any]]:
    import duckdb

    of_key = ", ".join(KEYS)
    parts = " union all ".join(f"select * from '{folder}/{part}/*.parquet'" for part in PARTS)
    newest = f"select * from ({parts}) qualify row_number() over (partition by {of_key} order by {ORDERING} desc) = 1"
    expected = {}
    for name, rows in (("base", f"select * from '{folder}/base/*.parquet'"), ("final", newest)):
        [(count, total, latest, at_point)] = duckdb.sql(f"""
            select count(*), sum(l_extendedprice), max(l_shipdate),
                   count(*) filter (l_orderkey = {point_key(scale)} and l_linenumber = 1)
            from ({rows})""").fetchall()
        expected[name] = [count, str(total), str(latest), at_point]
    return expected
