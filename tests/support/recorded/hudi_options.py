"""Options by which Apache Hudi writes the small tables of tests."""

from __future__ import annotations

# Of tables with the columns id, p and ts, number of buckets left out.
SMALL = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.metadata.enable": "false",
}


def unpartitioned(buckets: int) -> dict[str, str]:
    """Return the options of tables without partitions."""
    return {
        **SMALL,
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.bucket.index.num.buckets": str(buckets),
    }
