from __future__ import annotations

import logging
from datetime import date, datetime, timezone
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import (
    InvalidOptionError,
    OptionConflictError,
    UnknownOptionError,
    UnsupportedOptionError,
)
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.write_settings import BulkInsertSort
from pyhudi.options.model import HudiOptions
from pyhudi.options.names import describe_options
from pyhudi.options.parsing import PyHudiWarning, format_value, parse_options
from pyhudi.reader.query import AsOf, Changes, Query
from pyhudi.table.config.payloads import PAYLOADS
from pyhudi.table.files.bloom_filter import BloomSettings
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.output import Output
from pyhudi.table.keys.generator import KeyGeneratorType
from pyhudi.timeline.writers.patience import Patience
from support.seams import patch_seam
from support.write_settings import write_settings

SCHEMA = pa.schema([("id", pa.int64())])
MIB = 1 << 20

QUICKSTART = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.datasource.hive_sync.enable": "false",
    "hoodie.metadata.enable": "false",
    "path": "/data/trips",
}


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "options that were warned of", set())


def test_a_job_written_for_apache_hudi_is_understood() -> None:
    request = parse_options(QUICKSTART).to_write_request("/data/trips", SCHEMA, overwrite=False)

    assert request.operation == "upsert"
    assert request.table == TableSettings(
        name="trips",
        table_type="COPY_ON_WRITE",
        record_key_fields=("uuid",),
        partition_fields=("city",),
        ordering_fields=("ts",),
        hive_style=True,
        index_type="BUCKET",
        bucket_count=4,
    )
    assert request.write == write_settings(metadata_enable=False, retry_s=600.0)


@pytest.mark.parametrize(
    ("text", "table_type"), [("mor", "MERGE_ON_READ"), ("COW", "COPY_ON_WRITE"), ("merge_on_read", "MERGE_ON_READ")]
)
def test_a_table_type_has_the_short_names_of_hudis_sql(text: str, table_type: str) -> None:
    assert parse_options({"type": text}).table_type == table_type


def test_without_options_everything_is_left_to_the_table_and_the_defaults() -> None:
    request = parse_options({}).to_write_request("/t", SCHEMA, overwrite=True)

    assert request.table == TableSettings()
    assert request.write == write_settings(retry_s=600.0)
    assert (request.operation, request.overwrite, request.write_id) == (None, True, "")


@pytest.mark.parametrize(
    ("key", "text", "name", "value"),
    [
        ("recordKey", "a, b ,", "record_key", ("a", "b")),
        ("partitionby", "", "partition_fields", ()),
        ("orderby", "ts", "ordering_fields", ("ts",)),
        ("record_key", "id", "record_key", ("id",)),
        ("partition_by", "p", "partition_fields", ("p",)),
        ("order_by", "ts", "ordering_fields", ("ts",)),
        ("missing_ok", "false", "delete_missing_ok", False),
        ("as_of", "2026-11-21", "as_of", "2026-11-21"),
        ("since", "earliest", "begin_time", "earliest"),
        ("until", "2026-11-21", "end_time", "2026-11-21"),
        ("hoodie.table.precombine.field", "ts", "ordering_fields", ("ts",)),
        ("hoodie.datasource.write.ordering.fields", "ts", "ordering_fields", ("ts",)),
        ("BUCKETS", "12", "buckets", 12),
        ("hoodie.index.type", "global_bloom", "index_type", "GLOBAL_BLOOM"),
        ("index", "Simple", "index_type", "SIMPLE"),
        ("hoodie.parquet.small.file.limit", "0", "small_file_limit", 0),
        ("hoodie.simple.index.update.partition.path", "false", "update_partition_path", False),
        ("operation", "DELETE", "operation", "delete"),
        ("hoodie.write.batch.size", "1048576", "batch_size", MIB),
        ("hoodie.write.batch.size", "256m", "batch_size", 256 * MIB),
        ("hoodie.write.task.max.size", "1 GiB", "task_max_size", 1024 * MIB),
        ("hoodie.parquet.compression.codec", "SNAPPY", "compression", "snappy"),
        ("hoodie.table.timeline.timezone", "local", "timezone", "LOCAL"),
        ("hoodie.combine.before.upsert", "FALSE", "combine_before_upsert", False),
        ("hoodie.pyhudi.foreign.pending.max.age.seconds", "0.5", "foreign_age_s", 0.5),
        ("columns", "b,a", "columns", ("b", "a")),
        ("hoodie.cleaner.policy.failed.writes", "lazy", "failed_writes", "LAZY"),
        ("hoodie.datasource.write.keygenerator.type", "complex", "key_generator_type", KeyGeneratorType.COMPLEX),
        (
            "hoodie.datasource.write.keygenerator.class",
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "key_generator_class",
            KeyGeneratorType.NON_PARTITION,
        ),
        (
            "hoodie.datasource.write.payload.class",
            "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            "payload",
            "OverwriteWithLatestAvroPayload",
        ),
        (
            "hoodie.datasource.write.payload.class",
            "org.apache.hudi.payload.AWSDmsAvroPayload",
            "payload",
            "AWSDmsAvroPayload",
        ),
    ],
)
def test_a_text_becomes_a_value(key: str, text: str, name: str, value: object) -> None:
    assert getattr(parse_options({key: text}), name) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (8, "8"),
        (["a", "b"], "a,b"),
        ("x", "x"),
        (Path("/data/trips"), "/data/trips"),
        (datetime(2026, 11, 21, 8, 30, 15), "2026-11-21T08:30:15.000000"),
        (datetime(2026, 11, 21, 8, 30, 15, 123456, timezone.utc), "2026-11-21T08:30:15.123456+00:00"),
        (date(2026, 11, 21), "2026-11-21"),
    ],
)
def test_a_python_value_becomes_the_text_that_spark_carries(value: Any, text: str) -> None:
    assert format_value(value) == text


def test_an_option_given_as_none_is_not_given() -> None:
    assert parse_options({"recordkey": None}).record_key is None


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("buckets", "0"),
        ("buckets", "many"),
        ("operation", "upsrt"),
        ("hoodie.write.batch.size", "12x"),
        ("hoodie.write.batch.size", "-1"),
        ("hoodie.combine.before.upsert", "perhaps"),
        ("hoodie.index.type", "BUCKETS"),
        ("hoodie.index.bloom.fpp", "0"),
        ("hoodie.index.bloom.fpp", "1"),
        ("hoodie.bloom.index.filter.type", "DYNAMIC_V1"),
        ("hoodie.parquet.small.file.limit", "-1"),
        ("hoodie.parquet.max.file.size", "0"),
        ("hoodie.datasource.write.keygenerator.type", "CLEVER"),
        ("hoodie.table.timeline.timezone", "Europe/Berlin"),
        ("hoodie.client.heartbeat.interval_in_ms", "0"),
        ("hoodie.pyhudi.foreign.pending.max.age.seconds", "-1"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_key_and_value(key: str, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=key.replace(".", r"\.")) as caught:
        parse_options({key: text})

    assert repr(text) in caught.value.what


AS_OF = "as.of.instant"
BEGIN, END = (f"hoodie.datasource.read.{word}.instanttime" for word in ("begin", "end"))
GLOB = "hoodie.datasource.read.incr.path.glob"
NO_TIMES = ["", "junk", "20261121", "2026-1-1", "2026-13-01", "2026-02-30 00:00:00", "20269921120000000", "latest"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *((key, text) for key in (AS_OF, BEGIN, END) for text in NO_TIMES),
        *((key, text) for key in (AS_OF, END) for text in ("earliest", "000")),
        *((BEGIN, text) for text in ("-1", "00001", "ear liest")),
        *((GLOB, text) for text in ("[", "a[bc", "{a,b", "[z-a]", "[^]")),
        *(
            (f"hoodie.datasource.read.{key}", text)
            for key in ("incr.fallback.fulltablescan.enable", "schema.use.end.instanttime")
            for text in ("", "perhaps", "2", "all", "-")
        ),
        *(("hoodie.datasource.query.type", text) for text in ("", "realtime", "snapshots", "cdc", "read-optimized")),
    ],
)
def test_what_no_query_can_mean_is_refused(key: str, text: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        parse_options({key: text})

    assert f"{key}={text!r}" in caught.value.what


INCREMENTAL = {"hoodie.datasource.query.type": "Incremental"}


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ({}, None),
        ({"hoodie.datasource.query.type": "read_optimized"}, None),
        ({"hoodie.datasource.view.type": "SNAPSHOT"}, None),
        ({AS_OF: "2026-11-21"}, AsOf("2026-11-21")),
        ({AS_OF.upper(): " 2026-11-21 08:00:00 "}, AsOf("2026-11-21 08:00:00")),
        ({AS_OF: "20261121080000", "hoodie.datasource.query.type": "read_optimized"}, AsOf("20261121080000")),
        ({**INCREMENTAL, BEGIN: "Earliest"}, Changes("Earliest")),
        ({**INCREMENTAL, BEGIN: "000", END: "2026-11-21"}, Changes("000", "2026-11-21")),
        ({**INCREMENTAL, BEGIN: "1795214804", GLOB: "/2026/*"}, Changes("1795214804", path_glob="/2026/*")),
        (
            {
                **INCREMENTAL,
                BEGIN: "000",
                "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true",
                "hoodie.datasource.read.schema.use.end.instanttime": "TRUE",
                "hoodie.datasource.query.incremental.format": "latest_state",
                "hoodie.datasource.read.incr.skip_cluster": "true",
            },
            Changes("000", full_scan=True, schema_of_end=True),
        ),
    ],
)
def test_the_options_of_a_query_say_what_it_shows(given: dict[str, str], query: Query | None) -> None:
    assert parse_options(given).to_query() == query


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("operation", "cluster"),
        ("hoodie.datasource.write.operation", "upsert_prepped"),
        ("hoodie.index.type", "record_index"),
        ("hoodie.index.bucket.engine", "CONSISTENT_HASHING"),
        ("hoodie.write.record.merge.mode", "CUSTOM"),
        ("hoodie.datasource.write.payload.class", "com.example.MyPayload"),
        ("hoodie.datasource.write.payload.class", "com.example.AWSDmsAvroPayload"),
        ("hoodie.write.table.version", "7"),
        ("hoodie.datasource.query.incremental.format", "cdc"),
        ("hoodie.datasource.read.incr.filters", "v = 2"),
        ("hoodie.static.overwrite.partition.paths", "a"),
        ("hoodie.populate.meta.fields", "false"),
        ("hoodie.write.concurrency.mode", "non_blocking_concurrency_control"),
        ("hoodie.prewrite.cleaner.policy", "clean"),
    ],
)
def test_what_apache_hudi_does_and_pyhudi_does_not_is_refused(key: str, text: str) -> None:
    with pytest.raises(UnsupportedOptionError, match=key.replace(".", r"\.")):
        parse_options({key: text})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("hoodie.datasource.write.drop.partition.columns", "false"),
        ("hoodie.datasource.write.drop.partition.columns", "False"),
        ("hoodie.populate.meta.fields", "true"),
        ("hoodie.static.overwrite.partition.paths", ""),
        ("hoodie.log.compaction.inline", "false"),
    ],
)
def test_an_option_that_pyhudi_does_not_do_is_accepted_at_its_default(key: str, text: str) -> None:
    assert parse_options({key: text}) == HudiOptions()


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.metadata.enabled", "hoodie.metadata.enable"),
        ("hoodie.bucket.index.num.bucket", "hoodie.bucket.index.num.buckets"),
        ("colums", "columns"),
        ("recordkeys", "recordkey"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(key: str, nearest: str) -> None:
    with pytest.raises(UnknownOptionError) as caught:
        parse_options({key: "x"})

    assert f"{nearest}?" in caught.value.todo


def test_an_unknown_option_that_resembles_none_is_refused_too() -> None:
    with pytest.raises(UnknownOptionError, match="'zzzzzzzz'"):
        parse_options({"zzzzzzzz": "x"})


def test_two_names_of_one_option_must_agree() -> None:
    agreed = parse_options({"orderby": "a,b", "hoodie.datasource.write.precombine.field": "a, b"})
    assert agreed.ordering_fields == ("a", "b")

    with pytest.raises(OptionConflictError, match=r"orderby and hoodie\.datasource\.write\.precombine\.field"):
        parse_options({"orderby": "a", "hoodie.datasource.write.precombine.field": "b"})


def test_two_spellings_of_one_key_must_agree() -> None:
    assert parse_options({"OrderBy": "a", "orderby": "a"}).ordering_fields == ("a",)

    with pytest.raises(OptionConflictError, match=r"hoodie\.metadata\.enable was given twice, .* 'true' and 'false'"):
        parse_options({"hoodie.metadata.enable": True, "hoodie.Metadata.Enable": False})


@pytest.mark.parametrize(
    ("key", "text", "name", "value"),
    [
        ("hoodie.datasource.write.recordkey.field", "\n  id,\n  ts\n", "record_key", ("id", "ts")),
        ("hoodie.table.name", "two\nlines", "table_name", "two\nlines"),
        ("hoodie.metadata.enable", " TRUE\n", "metadata_enable", True),
        ("hoodie.write.batch.size", "\t1m\r\n", "batch_size", MIB),
        ("path", " /data/a b/ü:x/\n", "path", "/data/a b/ü:x/"),
        ("HOODIE.PARQUET.COMPRESSION.CODEC", "SNAPPY", "compression", "snappy"),
    ],
)
def test_blanks_and_line_breaks_around_a_value_do_no_harm(key: str, text: str, name: str, value: object) -> None:
    assert getattr(parse_options({key: text}), name) == value


def test_a_line_break_in_a_value_leaves_the_error_on_one_line() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        parse_options({"buckets": "1\n2"})

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given_options",
    [
        {
            "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        },
        {
            "hoodie.datasource.write.keygenerator.type": "SIMPLE",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        },
    ],
)
def test_two_options_that_say_one_thing_must_agree(given_options: dict[str, str]) -> None:
    with pytest.raises(OptionConflictError):
        parse_options(given_options)


def test_a_service_that_is_not_done_is_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pyhudi"):
        for _ in range(2):
            parse_options({"hoodie.clustering.inline": "true", "hoodie.clustering.schedule.inline": "true"})

    assert [(record.levelname, record.args) for record in caplog.records] == [("WARNING", ())] * 2
    assert "hoodie.clustering.inline=true" in caplog.text
    assert "file groups stay as the writes leave them" in caplog.text


def test_a_service_is_announced_once_it_is_switched_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pyhudi"):
        parse_options({"hoodie.log.compaction.inline": "false", "hoodie.clustering.inline": "False"})
        assert not caplog.records
        parse_options({"hoodie.clustering.inline": "true"})

    assert "hoodie.clustering.inline=true" in caplog.text


def test_an_option_without_a_meaning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pyhudi"):
        for _ in range(2):
            parse_options({"hoodie.upsert.shuffle.parallelism": "2", "hoodie.metrics.datadog.something": "1"})

    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]


def test_the_users_own_process_is_warned_every_time() -> None:
    for _ in range(2):
        with pytest.warns(PyHudiWarning, match=r"hoodie\.clustering\.inline"):
            parse_options({"hoodie.clustering.inline": "true"}, warn=True)


def test_storage_options_and_extra_metadata_are_families_of_keys() -> None:
    options = parse_options({"hoodie.pyhudi.storage.key": "k", "_checkpoint": "7"})

    assert options.storage_options == {"key": "k"}
    assert options.extra_metadata == {"_checkpoint": "7"}


def test_the_prefix_of_extra_metadata_can_be_chosen() -> None:
    options = parse_options({"hoodie.datasource.write.commitmeta.key.prefix": "my.", "my.source": "kafka"})

    assert options.extra_metadata == {"my.source": "kafka"}


def test_every_write_setting_can_be_said() -> None:
    said = {
        "hoodie.write.batch.size": "1m",
        "hoodie.write.task.max.size": "2m",
        "hoodie.pyhudi.commit.merge.max.bytes": "3m",
        "hoodie.pyhudi.colocated": "true",
        "hoodie.combine.before.upsert": "false",
        "hoodie.combine.before.insert": "true",
        "hoodie.datasource.insert.dup.policy": "DROP",
        "hoodie.datasource.write.insert.drop.duplicates": "true",
        "hoodie.merge.allow.duplicate.on.inserts": "false",
        "hoodie.pyhudi.delete.missing.ok": "false",
        "hoodie.datasource.overwrite.mode": "Dynamic",
        "hoodie.pyhudi.write.based.on": "20260101000000000",
        "hoodie.datasource.write.partitions.to.delete": "a/*, b",
        "hoodie.bulkinsert.sort.mode": "global_sort",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "b,a",
        "hoodie.allow.empty.commit": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.clean.failed.writes.policy": "EAGER",
        "hoodie.pyhudi.foreign.pending.max.age.seconds": "5",
        "hoodie.client.heartbeat.interval_in_ms": "1500",
        "hoodie.client.heartbeat.tolerable.misses": "3",
        "hoodie.parquet.compression.codec": "uncompressed",
        "hoodie.parquet.block.size": "4m",
        "hoodie.parquet.bloom.filter.enabled": "false",
        "hoodie.logfile.data.block.format": "AVRO",
        "hoodie.logfile.data.block.max.size": "5m",
        "hoodie.logfile.max.size": "6m",
        "hoodie.pyhudi.log.files.per.group": "7",
        "hoodie.pyhudi.write.retry.max.seconds": "1.5",
        "hoodie.write.lock.wait_time_ms": "2500",
        "_a": "b",
    }

    assert parse_options(said).to_write_request("/t", SCHEMA, overwrite=False).write == write_settings(
        retry_s=1.5,
        wait_s=2.5,
        batch_size=MIB,
        merge_max_bytes=3 * MIB,
        colocated=True,
        combine_before_upsert=False,
        combine_before_insert=True,
        insert_dup_policy="drop",
        insert_drop_duplicates=True,
        allow_duplicates_on_insert=False,
        delete_missing_ok=False,
        overwrite_mode="dynamic",
        based_on="20260101000000000",
        partitions_to_delete=("a/*", "b"),
        sort=BulkInsertSort("GLOBAL_SORT", ("b", "a")),
        allow_empty_commit=False,
        metadata_enable=False,
        patience=Patience(heartbeat_interval_s=1.5, heartbeat_misses=3, foreign_age_s=5.0, eager=True),
        output=Output(compression="none", row_group_bytes=4 * MIB, bloom_filter=False, memory=2 * MIB),
        logs=LogSettings(block_format="avro", block_bytes=5 * MIB, file_bytes=6 * MIB, per_group=7),
        extra_metadata={"_a": "b"},
    )


def test_how_keys_are_looked_up_can_be_said() -> None:
    said = {
        "hoodie.bloom.index.prune.by.ranges": "false",
        "hoodie.bloom.index.keys.per.bucket": "5",
        "hoodie.simple.index.use.caching": "false",
        "hoodie.bloom.index.update.partition.path": "false",
        "hoodie.bloom.index.filter.type": "simple",
        "hoodie.index.bloom.num_entries": "100",
        "hoodie.index.bloom.fpp": "0.01",
        "hoodie.bloom.index.filter.dynamic.max.entries": "200",
        "hoodie.parquet.small.file.limit": "1m",
        "hoodie.parquet.max.file.size": "2m",
        "hoodie.copyonwrite.record.size.estimate": "64",
        "hoodie.record.size.estimation.threshold": "0.5",
        "hoodie.merge.small.file.group.candidates.limit": "3",
        "hoodie.pyhudi.index.Path": "/var/keys.db",
    }

    write = parse_options(said).to_write_request("/t", SCHEMA, overwrite=False).write

    assert write.output.bloom == BloomSettings(entries=100, false_positives=0.01, dynamic=False, most_entries=200)
    assert write.lookup == LookupSettings(
        prunes_by_ranges=False,
        keys_per_task=5,
        caches=False,
        moves_rows=False,
        sizes=FileSizes(small=MIB, largest=2 * MIB, record_bytes=64, telling=0.5, most_rewritten=3),
        own={"path": "/var/keys.db"},
    )


def test_options_of_an_index_of_ones_own_are_not_shown() -> None:
    options = parse_options({"hoodie.pyhudi.index.password": "hunter2"})

    request = options.to_write_request("/t", SCHEMA, overwrite=False)
    assert request.write.lookup.own == {"password": "hunter2"}
    assert "hunter2" not in f"{options!r}{request!r}"


def test_an_index_that_a_package_offers_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = EntryPoints([EntryPoint("My_Index", "mine:index", "pyhudi.indexes")])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: offers.select(group=group))

    assert parse_options({"index": "my_index"}).index_type == "MY_INDEX"


@pytest.mark.parametrize(
    ("fold", "drop", "folds"),
    [(None, None, False), (None, "true", True), ("false", "true", False), ("true", "false", True)],
)
def test_dropping_duplicates_folds_incoming_rows_unless_that_is_forbidden(
    fold: str | None, drop: str | None, folds: bool
) -> None:
    """As ``DataSourceUtils.createHoodieConfig`` of Apache Hudi has it."""
    said = {"hoodie.combine.before.insert": fold, "hoodie.datasource.write.insert.drop.duplicates": drop}
    options = parse_options({key: value for key, value in said.items() if value is not None})

    assert options.to_write_request("/t", SCHEMA, overwrite=False).write.keys.combine_before_insert is folds


def test_a_payload_class_means_a_merge_mode_and_a_class_a_key_generator() -> None:
    request = parse_options(
        {
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        }
    ).to_write_request("/t", SCHEMA, overwrite=False)

    assert request.table == TableSettings(
        merge_mode="COMMIT_TIME_ORDERING",
        payload=PAYLOADS["OverwriteWithLatestAvroPayload"],
        partial_update_mode="NONE",
        key_generator=KeyGeneratorType.COMPLEX,
    )


def test_every_option_is_described_and_no_name_is_used_twice() -> None:
    described = describe_options()
    names = [name for info in described for name in (info.key, *info.aliases)]

    assert len(set(names)) == len(names)
    assert all(name == name.lower() for name in names)
    assert all(info.doc.endswith(".") and info.type and info.since for info in described)
    assert {info.name for info in described} == set(HudiOptions.model_fields) - {
        "storage_options",
        "extra_metadata",
        "index_options",
    }


@given(st.integers(0, 2**40), st.sampled_from(["", "k", "K", "mb", "GiB", " t"]))
def test_sizes_count_in_powers_of_1024(number: int, unit: str) -> None:
    factor = 1024 ** " kmgt".index(unit.strip()[:1].lower() or " ")

    if number:
        assert parse_options({"hoodie.write.batch.size": f"{number}{unit}"}).batch_size == number * factor
    else:
        with pytest.raises(InvalidOptionError):
            parse_options({"hoodie.write.batch.size": f"{number}{unit}"})
