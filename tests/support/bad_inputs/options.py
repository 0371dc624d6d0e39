"""Options that a healthy table refuses."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyhudi import errors
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write_settings import BulkInsertSort
from pyhudi.table.config.key_types import KeyGeneratorType
from support.bad_inputs.case import GOOD, KEYED, Case, ask, changed, upsert
from support.drive import write
from support.write_settings import write_settings

CONFLICTS = {
    "name": ("other", "hoodie.table.name", "'bad_inputs'"),
    "database": ("other", "hoodie.database.name", "''"),
    "table_type": ("MERGE_ON_READ", "hoodie.datasource.write.table.type", "'COPY_ON_WRITE'"),
    "version": (8, "hoodie.write.table.version", "9"),
    "record_key_fields": (("value",), "hoodie.datasource.write.recordkey.field", "'id'"),
    "partition_fields": ((), "hoodie.datasource.write.partitionpath.field", "'p'"),
    "ordering_fields": (("value",), "hoodie.table.ordering.fields", "'ts'"),
    "merge_mode": ("COMMIT_TIME_ORDERING", "hoodie.write.record.merge.mode", "'EVENT_TIME_ORDERING'"),
    "key_generator": (KeyGeneratorType.COMPLEX, "hoodie.datasource.write.keygenerator.type", "SIMPLE"),
    "hive_style": (True, "hoodie.datasource.write.hive_style_partitioning", "false"),
    "url_encode": (True, "hoodie.datasource.write.partitionpath.urlencode", "false"),
    "timezone": ("LOCAL", "hoodie.table.timeline.timezone", "'UTC'"),
    "index_type": ("BLOOM", "hoodie.index.type", "'BUCKET'"),
    "bucket_count": (3, "hoodie.bucket.index.num.buckets", "2"),
    "hash_fields": (("value",), "hoodie.bucket.index.hash.field", "'id'"),
}
OPERATION = "hoodie.datasource.write.operation"
OPTIONS = [
    *(
        Case(
            f"another {name}",
            errors.OptionConflictError,
            (f"{key} is", f"and {kept} in the table", "{path}"),
            upsert(GOOD, table=TableSettings(**{name: said})),
        )
        for name, (said, key, kept) in CONFLICTS.items()
    ),
    Case(
        "delete marker of another write in a table that has one",
        errors.OptionConflictError,
        ("{path}", "hoodie.payload.delete.marker", "value=5 here and value=7 in the table"),
        upsert(GOOD, table=TableSettings(delete_marker="5")),
        table=replace(KEYED, delete_field="value", delete_marker="7"),
    ),
    Case(
        "two names of one option with two values",
        errors.OptionConflictError,
        ("hoodie.datasource.write.precombine.field", "orderby", "'ts'", "'value'"),
        ask({"hoodie.datasource.write.precombine.field": "ts", "orderby": "value"}),
    ),
    Case(
        "payload class against merge mode",
        errors.OptionConflictError,
        ("hoodie.datasource.write.payload.class", "hoodie.write.record.merge.mode"),
        ask(
            {
                "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
                "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
            }
        ),
    ),
    *(
        Case(f"unknown option {key}", errors.UnknownOptionError, (repr(key), nearest), ask({key: "2"}))
        for key, nearest in {
            "hoodie.bucket.index.num.bucket": "hoodie.bucket.index.num.buckets",
            "hoodie.datasource.write.recordkey.fields": "hoodie.datasource.write.recordkey.field",
            "bucket": "buckets",
            "partitionsby": "partitionby",
            "mergeschema": "Delta Lake",
            "zzzzzzzz": "Correct the name, or leave the option out",
        }.items()
    ),
    *(
        Case(f"value of {key}", errors.InvalidOptionError, (f"{key}={value!r}",), ask({key: value}))
        for key, value in {
            "buckets": "0",
            "hoodie.bucket.index.num.buckets": "100000001",
            "hoodie.datasource.write.hive_style_partitioning": "perhaps",
            "hoodie.datasource.insert.dup.policy": "ignore",
            "hoodie.datasource.overwrite.mode": "partial",
            "hoodie.bulkinsert.sort.mode": "ZORDER",
            "hoodie.write.batch.size": "12 parsecs",
            "hoodie.datasource.write.keygenerator.class": "com.example.OwnKeys",
            "hoodie.parquet.compression.codec": "zip",
        }.items()
    ),
    *(
        Case(
            f"operation {name}", errors.UnsupportedOptionError, (f"{OPERATION}={name!r}", todo), ask({OPERATION: name})
        )
        for name, todo in {
            "upsert_prepped": "Use upsert, or Apache Hudi.",
            "delete_prepped": "Use delete, or Apache Hudi.",
            "bootstrap": "Use bulk_insert on",
            "cluster": "insert_overwrite_table or delete_partition",
            "bucket_rescale": "mode overwrite",
        }.items()
    ),
    Case(
        "operation that nobody knows",
        errors.InvalidOptionError,
        (f"{OPERATION}='merge'", "none of upsert, insert, bulk_insert, delete, insert_overwrite"),
        ask({OPERATION: "merge"}),
    ),
    *(
        Case(f"unsupported {key}", errors.UnsupportedOptionError, (key,), ask({key: value}))
        for key, value in {
            "hoodie.table.version": "7",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.write.record.merge.mode": "CUSTOM",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.write.concurrency.mode": "non_blocking_concurrency_control",
            "hoodie.schema.on.read.enable": "true",
        }.items()
    ),
    *(
        Case(
            f"{operation} and mode overwrite",
            errors.OptionConflictError,
            (operation, "overwrite", 'mode("append")'),
            ask({OPERATION: operation}, overwrite=True),
        )
        for operation in ("delete", "delete_partition")
    ),
    *(
        Case(
            f"bulk insert and {key}",
            errors.OptionConflictError,
            ("hoodie.datasource.insert.dup.policy", "bulk_insert", "operation insert"),
            ask({OPERATION: "bulk_insert", key: value}),
        )
        for key, value in {
            "hoodie.datasource.insert.dup.policy": "fail",
            "hoodie.datasource.write.insert.drop.duplicates": "true",
        }.items()
    ),
    Case(
        "deleting partitions without a name",
        errors.InvalidOptionError,
        ("hoodie.datasource.write.partitions.to.delete", "{path}", "* for all"),
        ask({OPERATION: "delete_partition", "hoodie.datasource.write.partitions.to.delete": " , "}),
    ),
    Case(
        "sorting by no column of the table",
        errors.MissingColumnError,
        ("'size'", "{path}", "sort.columns"),
        ask({OPERATION: "bulk_insert", "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "ts,size"}),
    ),
    Case(
        "sorting by a list",
        errors.UnsupportedTypeError,
        ("'value'", "list", "sort.columns"),
        upsert(
            changed("value", [[1], [2]], pa.list_(pa.int64())),
            operation="bulk_insert",
            settings=WriteSettings(sort=BulkInsertSort(columns=("value",))),
        ),
        good=changed("value", [[1], [2]], pa.list_(pa.int64())),
    ),
    Case(
        "more to merge than one commit may",
        errors.PlacementError,
        ("{path}", "hoodie.pyhudi.commit.merge.max.bytes allows 1,000", "HudiTable(spark, path)", "pyhudi.colocate"),
        upsert(GOOD, settings=write_settings(merge_max_bytes=1000)),
    ),
    *(
        Case(
            f"more to {operation} than one commit may",
            errors.PlacementError,
            ("{path}", "allows 1,500", "hoodie.pyhudi.colocated=true"),
            upsert(rows, operation=operation, settings=write_settings(merge_max_bytes=1500)),
        )
        for operation, rows in {"delete": GOOD.select(["id", "p"]), "insert_overwrite_table": GOOD}.items()
    ),
    Case(
        "colocated deletes that are not",
        errors.PlacementError,
        ("{path}", "bucket 0 of partition 'x'"),
        lambda path: (
            lambda: write(
                path, [GOOD.select(["id", "p"])] * 3, operation="delete", settings=WriteSettings(colocated=True)
            )
        ),
    ),
    Case(
        "colocated rows that are not",
        errors.PlacementError,
        ("{path}", "bucket 0 of partition 'x'", "hoodie.pyhudi.colocated"),
        lambda path: lambda: write(path, [GOOD, GOOD], settings=WriteSettings(colocated=True)),
    ),
]
