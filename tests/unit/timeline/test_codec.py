from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import CorruptInstantError, StorageError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.layout import LayoutV2
from pyhudi.timeline.metadata import avro_schemas as schemas
from pyhudi.timeline.metadata import models
from pyhudi.timeline.metadata.avro_codec import decode, encode
from pyhudi.timeline.metadata.codec import InstantBody
from pyhudi.timeline.timeline import Timeline
from support.made.timelines import instants_in

V9 = Path(__file__).parents[2] / "fixtures" / "timeline" / "v9"

FIXTURES = [
    ("20261121034806510_20261121034810262.commit", models.CommitMetadata),
    ("20261121034810542_20261121034812343.commit", models.CommitMetadata),
    ("20261121034810542.inflight", models.CommitMetadata),
    ("20261121034813159.replacecommit.inflight", models.CommitMetadata),
    ("20261121034813159.replacecommit.requested", models.RequestedReplaceMetadata),
    ("20261121034813159_20261121034814793.replacecommit", models.ReplaceCommitMetadata),
    ("20261121034821753.rollback.requested", models.RollbackPlan),
    ("20261121034821753_20261121034822900.rollback", models.RollbackMetadata),
    ("20261121034829928.clean.requested", models.CleanerPlan),
    ("20261121034829928_20261121034830124.clean", models.CleanMetadata),
    ("20261121034810542_20261121034813004.savepoint", models.SavepointMetadata),
    ("../compaction/20261122125019024.compaction.requested", models.CompactionPlan),
    ("../compaction/20261122125019024_20261122125026660.commit", models.CommitMetadata),
]


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def container(data: bytes) -> Any:
    return fastavro.reader(io.BytesIO(data))


def pack(schema: dict[str, Any], record: dict[str, Any], codec: str = "null") -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [record], codec=codec)
    return sink.getvalue()


def bare(schema: Any) -> Any:
    """Return a schema without what carries no data: docs, and defaults put at types instead of fields."""
    if isinstance(schema, list):
        return [bare(one) for one in schema]
    if isinstance(schema, dict):
        drop = {"doc"} | ({"default"} if schema.get("type") in ("array", "map") else set())
        return {key: bare(value) for key, value in schema.items() if key not in drop}
    return schema


@pytest.mark.parametrize(("name", "kind"), FIXTURES)
def test_what_apache_hudi_wrote_is_written_again_the_same(name: str, kind: type[models.InstantModel]) -> None:
    data = (V9 / name).read_bytes()

    assert list(container(encode(decode(kind, InstantBody(data, name))))) == list(container(data))


@pytest.mark.parametrize(("name", "kind"), FIXTURES)
def test_the_schema_in_the_file_is_apache_hudis(name: str, kind: type[models.InstantModel]) -> None:
    data = (V9 / name).read_bytes()
    theirs = container(data).metadata["avro.schema"]
    ours = container(encode(decode(kind, InstantBody(data, name)))).metadata["avro.schema"]

    assert fastavro.schema.to_parsing_canonical_form(json.loads(ours)) == fastavro.schema.to_parsing_canonical_form(
        json.loads(theirs)
    )


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (schemas.COMMIT, "20261121034806510_20261121034810262.commit"),
        (schemas.REPLACE_COMMIT, "20261121034813159_20261121034814793.replacecommit"),
        (schemas.REQUESTED_REPLACE, "20261121034813159.replacecommit.requested"),
        (schemas.ROLLBACK_PLAN, "20261121034821753.rollback.requested"),
        (schemas.ROLLBACK, "20261121034821753_20261121034822900.rollback"),
        (schemas.CLEANER_PLAN, "20261121034829928.clean.requested"),
        (schemas.CLEAN, "20261121034829928_20261121034830124.clean"),
        (schemas.SAVEPOINT, "20261121034810542_20261121034813004.savepoint"),
    ],
)
def test_defaults_and_string_types_are_apache_hudis_too(schema: dict[str, Any], name: str) -> None:
    theirs = json.loads(container((V9 / name).read_bytes()).metadata["avro.schema"])

    assert bare(schema) == bare(theirs)


def test_the_container_is_uncompressed_and_holds_one_record() -> None:
    avro_reader = container(encode(models.CommitMetadata()))

    assert avro_reader.codec == "null"
    assert avro_reader.writer_schema["name"] == "org.apache.hudi.avro.model.HoodieCommitMetadata"
    assert len(list(avro_reader)) == 1


def test_an_empty_commit_has_what_apache_hudi_must_not_miss() -> None:
    (record,) = container(encode(models.CommitMetadata(operation_type="upsert")))

    assert record == {
        "partitionToWriteStats": {},
        "compacted": False,
        "extraMetadata": {},
        "version": None,
        "operationType": "UPSERT",
    }


def test_values_of_a_real_commit_have_python_names() -> None:
    name = "20261121034810542_20261121034812343.commit"
    commit = decode(models.CommitMetadata, InstantBody((V9 / name).read_bytes(), name))

    (stat,) = commit.partition_to_write_stats["x"]
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (2, 1, 1, 0)
    assert stat.prev_commit == "20261121034806510"
    assert stat.prev_base_file == "00000000-559f-48f1-a81f-198e9ba6165b-0_0-5-8_20261121034806510.parquet"
    assert stat.file_size_in_bytes == 435002
    assert commit.operation_type == "UPSERT"
    assert commit.replaced == {}


def test_a_replacecommit_tells_which_file_groups_it_took_away() -> None:
    name = "20261121034813159_20261121034814793.replacecommit"
    commit = decode(models.ReplaceCommitMetadata, InstantBody((V9 / name).read_bytes(), name))

    assert commit.replaced == {
        "x": ["00000000-559f-48f1-a81f-198e9ba6165b-0"],
        "y": ["00000001-a2d4-495b-bbd9-278d9a921aed-0"],
    }


def test_a_rollback_plan_keeps_the_capital_of_its_field() -> None:
    plan = models.RollbackPlan(
        instant_to_rollback=models.InstantInfo(commit_time="1", action="commit"),
        rollback_requests=[models.RollbackRequest(partition_path="x", files_to_be_deleted=["file:///t/x/a"])],
    )

    (record,) = container(encode(plan))
    assert [one["filesToBeDeleted"] for one in record["RollbackRequests"]] == [["file:///t/x/a"]]
    assert decode(models.RollbackPlan, InstantBody(encode(plan), "x")) == plan


def test_a_clustering_plan_survives_the_way_there_and_back() -> None:
    plan = models.RequestedReplaceMetadata(
        operation_type="CLUSTER",
        clustering_plan=models.ClusteringPlan(
            input_groups=[
                models.ClusteringGroup(
                    slices=[models.SliceInfo(data_file_path="file:/t/a/x.parquet", file_id="x-0", partition_path="a")],
                    metrics={"TOTAL_IO_MB": 1.5},
                )
            ],
            strategy=models.ClusteringStrategy(strategy_class_name="S", strategy_params={"k": "v"}),
            preserve_hoodie_metadata=True,
        ),
    )

    assert decode(models.RequestedReplaceMetadata, InstantBody(encode(plan), "x")) == plan


def test_fewer_and_other_fields_another_name_and_compression_are_read() -> None:
    schema = {
        "type": "record",
        "name": "SomeCommit",
        "fields": [
            {"name": "operationType", "type": "string"},
            {"name": "novelty", "type": "int"},
            {
                "name": "partitionToWriteStats",
                "type": {
                    "type": "map",
                    "values": {
                        "type": "array",
                        "items": {
                            "type": "record",
                            "name": "Stat",
                            "fields": [{"name": "path", "type": "string"}, {"name": "mood", "type": "string"}],
                        },
                    },
                },
            },
        ],
    }
    record = {
        "operationType": "INSERT",
        "novelty": 1,
        "partitionToWriteStats": {"a": [{"path": "a/x", "mood": "good"}]},
    }

    commit = decode(models.CommitMetadata, InstantBody(pack(schema, record, codec="deflate"), "x"))

    assert commit == models.CommitMetadata(
        operation_type="INSERT", partition_to_write_stats={"a": [models.WriteStat(path="a/x")]}
    )


def test_nulls_read_as_defaults() -> None:
    record = dict.fromkeys([field["name"] for field in schemas.COMMIT["fields"]])

    assert decode(models.CommitMetadata, InstantBody(pack(schemas.COMMIT, record), "x")) == models.CommitMetadata()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"{}", "it is not a whole Avro file"),
        (b'{"operationType": "UPSERT"}' * 10, "it is not a whole Avro file"),
        (pack(schemas.COMMIT, {})[:-20], "it is not a whole Avro file"),
        (
            pack(schemas.SAVEPOINT, {"savepointedBy": "", "savepointedAt": 1, "comments": "", "partitionMetadata": {}}),
            "",
        ),
    ],
)
def test_a_corrupt_instant_is_named_with_what_to_do(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptInstantError) as raised:
        decode(models.RollbackMetadata, InstantBody(data, "/t/.hoodie/timeline/1_2.rollback"))

    assert raised.value.what.startswith("The instant's file /t/.hoodie/timeline/1_2.rollback cannot be used: ")
    assert reason in raised.value.what
    assert "Restore the file from a backup" in raised.value.todo


def test_a_container_without_record_is_corrupt() -> None:
    sink = io.BytesIO()
    fastavro.writer(sink, schemas.COMMIT, [])

    with pytest.raises(CorruptInstantError, match="it holds no record"):
        decode(models.CommitMetadata, InstantBody(sink.getvalue(), "x"))


def test_a_field_that_does_not_fit_is_named() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "startRollbackTime", "type": "string"}]}

    with pytest.raises(CorruptInstantError, match="its field timeTakenInMillis does not fit"):
        decode(models.RollbackMetadata, InstantBody(pack(schema, {"startRollbackTime": "1"}), "x"))


@pytest.mark.parametrize("missing", [1, 8, 15, 16, 17, 40])
def test_a_truncated_instant_is_corrupt(missing: int) -> None:
    whole = (V9 / "20261121034806510_20261121034810262.commit").read_bytes()

    with pytest.raises(CorruptInstantError, match="it is not a whole Avro file"):
        decode(models.CommitMetadata, InstantBody(whole[:-missing], "x"))


@given(st.data())
def test_damaged_bytes_give_a_model_or_a_corrupt_instant_and_nothing_else(data: st.DataObject) -> None:
    whole = bytearray((V9 / "20261121034813159_20261121034814793.replacecommit").read_bytes())
    # Damage behind the schema, whose own damage could ask the parser for anything.
    body = bytes(whole).index(b"partitionToReplaceFileIds")
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(body, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))

    try:
        metadata = decode(models.ReplaceCommitMetadata, InstantBody(bytes(whole[:end]), "x"))
    except CorruptInstantError:
        return
    assert isinstance(metadata, models.ReplaceCommitMetadata)


longs = st.integers(-(2**63), 2**63 - 1)
stats = st.builds(
    models.WriteStat,
    file_id=st.none() | st.text(),
    path=st.text(),
    num_writes=longs,
    log_version=st.none() | st.integers(-(2**31), 2**31 - 1),
    log_files=st.none() | st.lists(st.text(), max_size=2),
    cdc_stats=st.none() | st.dictionaries(st.text(), longs, max_size=2),
)


@given(
    st.dictionaries(st.text(), st.lists(stats, max_size=2), max_size=2),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.dictionaries(st.text(), st.lists(st.text()), max_size=2),
)
def test_every_commit_survives_the_way_there_and_back(
    written: dict[str, list[models.WriteStat]], extra: dict[str, str], replaced: dict[str, list[str]]
) -> None:
    commit = models.ReplaceCommitMetadata(
        partition_to_write_stats=written,
        extra_metadata=extra,
        operation_type="INSERT_OVERWRITE",
        partition_to_replace_file_ids=replaced,
    )

    assert decode(models.ReplaceCommitMetadata, InstantBody(encode(commit), "x")) == commit


def test_commits_of_a_timeline_are_read_by_their_action() -> None:
    storage = open_storage(str(V9.parent))
    instants = instants_in(storage, LayoutV2("v9"))

    commits = [instants.read_commit(one) for one in Timeline.load(instants).writes]

    assert [type(one).__name__ for one in commits] == [
        "CommitMetadata",
        "CommitMetadata",
        "ReplaceCommitMetadata",
        "CommitMetadata",
        "CommitMetadata",
    ]
    assert all("schema" in one.extra_metadata for one in commits)


def test_a_zero_byte_commit_is_named_by_its_full_path(storage: Storage) -> None:
    storage.write(".hoodie/timeline/1_2.commit", b"")

    with pytest.raises(CorruptInstantError, match=rf"{storage.path}/\.hoodie/timeline/1_2\.commit cannot be used"):
        instants_in(storage).read_commit(Instant("1", "commit", State.COMPLETED, "2"))


def test_a_commit_without_completion_time_in_its_name_is_read_under_that_name(storage: Storage) -> None:
    storage.write(".hoodie/timeline/1.commit", encode(models.CommitMetadata(operation_type="INSERT")))

    found = instants_in(storage).read_commit(Instant("1", "commit", State.COMPLETED))

    assert found.operation_type == "INSERT"


def test_a_commit_that_vanished_asks_for_another_run(storage: Storage) -> None:
    with pytest.raises(StorageError, match=r"commit 1 of the table .* was archived or rolled back"):
        instants_in(storage).read_commit(Instant("1", "commit", State.COMPLETED, "2"))
