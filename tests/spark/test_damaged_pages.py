"""A flipped bit in a base file, or another file in its place, met by Spark's own Parquet reader and by ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyhudi import HudiTable, from_spark
from pyhudi.errors import CorruptFileError
from pyspark.sql import SparkSession


def test_a_flipped_bit_is_never_shown(spark: SparkSession, tmp_path: Path) -> None:
    """Uncompressed plain numbers would decode to anything; dictionary pages come first in the column ``word``."""
    path = str(tmp_path / "t")
    df = spark.range(1000).selectExpr("id", "cast(id as double) / 7 n", "concat('w', id % 3) word")
    table = HudiTable.create(spark, path, df, record_key="id", buckets=1)
    table.upsert(df, **{"hoodie.parquet.compression.codec": "uncompressed"})
    (file,) = tmp_path.glob("t/*.parquet")
    whole, group = file.read_bytes(), pq.ParquetFile(file).metadata.row_group(0)
    places = {
        group.column(position).path_in_schema: group.column(position).dictionary_page_offset
        or group.column(position).data_page_offset
        for position in range(group.num_columns)
    }

    for name, distance in {"n": 4000, "word": 28}.items():
        data = bytearray(whole)
        data[places[name] + distance] ^= 1
        file.write_bytes(data)
        for vectorised in ("true", "false"):
            spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
            try:
                with pytest.raises(Exception, match=r"(?i)crc|checksum") as raised:
                    table.to_df([name]).collect()
            finally:
                spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
            assert file.name in str(raised.value)
        with pytest.raises(Exception, match="CORRUPT_FILE") as raised:
            spark.read.format("pyhudi").load(path).select(name).collect()
        assert isinstance(from_spark(raised.value), CorruptFileError)
    file.write_bytes(whole)
    assert table.to_df().where("n = id / 7D").count() == 1000

    pq.write_table(pq.read_table(file).slice(0, 10), file)
    for way in (
        table.to_df,
        lambda: table.update({"n": 0.0}, "id = 3"),
        lambda: table.merge(df, "source.id = target.id").when_matched_update_all().execute(),
        lambda: spark.read.format("pyhudi").load(path).collect(),
    ):
        with pytest.raises(Exception, match="states") as raised:
            way()
        assert isinstance(from_spark(raised.value), CorruptFileError)
