"""The bodies of instants of table version 6."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyhudi.errors import CorruptInstantError
from pyhudi.timeline.metadata.avro_codec import AvroCodec
from pyhudi.timeline.metadata.codec import InstantBody
from pyhudi.timeline.metadata.json_codec import JsonCodec
from pyhudi.timeline.metadata.models import CleanMetadata, CommitMetadata, ReplaceCommitMetadata

STAT = {"fileId": "a-0", "path": "p/a-0_0-0-0_1.parquet", "numWrites": 3, "fileSizeInBytes": 9, "recordsStats": None}
RECORD = {
    "partitionToWriteStats": {"p": [STAT]},
    "compacted": False,
    # Apache Hudi's writers leave nulls where a source has no checkpoint.
    "extraMetadata": {"schema": "{}", "pyhudi.write.id": "w", "deltastreamer.checkpoint.key": None},
    "operationType": "UPSERT",
}


def body(record: Any) -> InstantBody:
    return InstantBody(json.dumps(record).encode(), "1.commit")


def test_a_commit_is_json_with_fields_of_any_release() -> None:
    commit = JsonCodec.decode(CommitMetadata, body({**RECORD, "writePartitionPaths": ["p"]}))

    assert commit.extra_metadata == {"schema": "{}", "pyhudi.write.id": "w"}
    assert commit.partition_to_write_stats["p"][0].num_writes == 3
    assert JsonCodec.decode_summary(body(RECORD), replaces=False).operation_type == "UPSERT"


def test_the_files_of_a_commit_come_without_the_rest() -> None:
    commit_files = JsonCodec.decode_files(body({**RECORD, "partitionToReplaceFileIds": {"p": ["b-0"]}}), replaces=True)

    assert [stat["path"] for stat in commit_files.stats["p"]] == ["p/a-0_0-0-0_1.parquet"]
    assert (commit_files.replaced, commit_files.write_id) == ({"p": ["b-0"]}, "w")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"extraMetadata": 1}',
        b'{"extraMetadata": {"schema": 1}}',
        b'{"partitionToWriteStats": {"p": 1}}',
        b'{"partitionToWriteStats": {"p": [{"path": 1}]}}',
        b'{"partitionToReplaceFileIds": {"p": [1]}}',
    ],
)
def test_a_damaged_commit_is_named(data: bytes) -> None:
    with pytest.raises(CorruptInstantError, match=r"1\.commit"):
        JsonCodec.decode_files(InstantBody(data, "1.commit"), replaces=False)


def test_other_instants_are_avro_and_come_back_from_json_too() -> None:
    clean = CleanMetadata(
        start_clean_time="1",
        time_taken_in_millis=2,
        total_files_deleted=0,
        earliest_commit_to_retain="",
        partition_metadata={},
    )
    encoded = JsonCodec.encode(clean)

    assert encoded.startswith(b"Obj\x01")
    archived = body(dict(AvroCodec.decode_record(InstantBody(encoded, "1.clean"))))
    found = JsonCodec.decode(CleanMetadata, InstantBody(encoded, "1.clean"))
    assert found.start_clean_time == "1"
    assert JsonCodec.decode(CleanMetadata, archived) == found


def test_a_write_is_encoded_as_it_is_decoded() -> None:
    made = ReplaceCommitMetadata(partition_to_replace_file_ids={"p": ["b-0"]}, extra_metadata={"schema": "{}"})

    assert JsonCodec.decode(ReplaceCommitMetadata, InstantBody(JsonCodec.encode(made), "1.commit")) == made
