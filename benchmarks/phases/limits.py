"""What bounds pyhudi on this machine, each bound measured alone on the table that the plain run left.

An upsert that touches every file of a copy-on-write table decodes and encodes all of it. A scan through a Python data
source hands every batch from Python to the JVM, a write hands them the other way. None can be faster than that alone.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phases.bare import BARE, bare

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from stopwatch import Run

# Rows of what bounds a table format, as no format is one of them.
LIMIT = "limit:"
REWRITE = f"{LIMIT} pyarrow rewrites the files"
FORWARD = f"{LIMIT} a Python source forwards batches"
SINK = f"{LIMIT} a Python sink drops batches"
# Rows of what it costs that writes wait for the disk; no format is one of them either.
FLUSH = "flush:"
FLUSHED = f"{FLUSH} df.write, warm"
UNFLUSHED = f"{FLUSH} the same with hoodie.pyhudi.durable=false"
PLAIN = "pyhudi"


def newest_files(table: Path) -> list[str]:
    """Return the newest base file of each file group, by names alone."""
    newest: dict[tuple[str, str], tuple[str, str]] = {}
    for file in table.rglob("*.parquet"):
        file_id, _, instant = file.stem.split("_")
        group = (file.parent.name, file_id)
        newest[group] = max(newest.get(group, ("", "")), (instant, str(file)))
    return sorted(path for _, path in newest.values())


def opened(path: str) -> tuple[pq.ParquetFile, dict[str, Any]]:
    """Return a file, and the settings of a writer that encodes its rows as it does."""
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    chunks = [footer.row_group(0).column(leaf) for leaf in range(footer.num_columns)]
    dictionaried = [chunk for chunk in chunks if "RLE_DICTIONARY" in chunk.encodings]
    texts = [chunk.path_in_schema for chunk in dictionaried if chunk.physical_type == "BYTE_ARRAY"]
    file = pq.ParquetFile(path, metadata=footer, read_dictionary=texts)
    return file, {"compression": "zstd", "use_dictionary": [chunk.path_in_schema for chunk in dictionaried]}


def rewrite(path: str) -> None:
    """Decode a file and encode it again as it is encoded, row group by row group, into memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file, settings = opened(path)
    with pq.ParquetWriter(pa.BufferOutputStream(), file.schema_arrow, **settings) as writer:
        for number in range(file.num_row_groups):
            writer.write_table(file.read_row_group(number, use_threads=False))


def limits(run: Run) -> list[Any]:
    """Measure each bound; what is found says only that all rows were met."""
    spark = run.session()
    table = Path(run.table).with_name(PLAIN)
    files = newest_files(table)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for phase in ("up1", "up2"):
            run.timed(REWRITE, phase, lambda: list(pool.map(rewrite, files)))
    schema = spark.read.parquet(*files).schema

    bare(spark, schema, files)
    run.writes(SINK, lambda rows: spark.read.parquet(rows).write.format(BARE).mode("append").save())
    return run.reads(FORWARD, lambda: spark.read.format(BARE).load())
