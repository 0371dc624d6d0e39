"""Which columns a table has at a moment, by whatever tells them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CorruptInstantError, UnsupportedTableError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config import TableConfig, load_config
from pyhudi.table.config import property_keys as key
from pyhudi.table.latest_schema import latest_schema, newest_schema
from pyhudi.table.schema.columns import avro_schema
from pyhudi.table.schema.schema_history import FOLDER
from pyhudi.table.table import Table
from pyhudi.timeline.layout import LayoutV2
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata, ReplaceCommitMetadata
from pyhudi.timeline.watermark import Seen
from support.drive import write
from support.made.logged import Logged
from support.made.timelines import timeline_in
from support.recorded.ddl import columns, show

LAYOUT = LayoutV2()


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def put(storage: Storage, name: str, ddl: str, operation: str = "UPSERT", *, meta: bool = False) -> None:
    """Put a completed write on the timeline that says what the table's columns are; nothing for no columns."""
    text = avro_schema(columns(ddl), "t", meta=meta) if ddl else ""
    kind = ReplaceCommitMetadata if name.endswith("replacecommit") else CommitMetadata
    body = encode(kind(extra_metadata={"schema": text} if text else {}, operation_type=operation))
    assert storage.create(f"{LAYOUT.folder}/{name}", body)


def config(**properties: str) -> TableConfig:
    return TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "9", **properties})


def found(storage: Storage, table: TableConfig | None = None) -> str | None:
    schema = latest_schema(table or config(), timeline_in(storage))
    return None if schema is None else show(schema)


def test_the_write_with_the_greatest_requested_time_counts_whichever_completed_last(storage: Storage) -> None:
    put(storage, "20260101000000001_20260101000000009.commit", "a int")
    put(storage, "20260101000000002_20260101000000003.commit", "a int, b int")

    assert found(storage) == "a int, b int"


def test_what_tells_no_columns_and_what_only_moves_rows_is_passed_over(storage: Storage) -> None:
    put(storage, "20260101000000001_20260101000000002.replacecommit", "a int", "INSERT_OVERWRITE_TABLE")
    put(storage, "20260101000000003_20260101000000004.replacecommit", "old int", "CLUSTER")
    put(storage, "20260101000000005_20260101000000006.commit", "older int", "COMPACT")
    put(storage, "20260101000000007_20260101000000008.commit", "", "UPSERT")

    assert found(storage) == "a int"


def test_meta_columns_in_a_commit_are_no_columns(storage: Storage) -> None:
    """Apache Hudi puts them there when columns are altered."""
    put(storage, "20260101000000001_20260101000000002.commit", "a int", "ALTER_SCHEMA", meta=True)

    assert found(storage) == "a int"


def test_a_table_without_writes_has_the_columns_it_was_created_with(storage: Storage) -> None:
    created = config(**{key.CREATE_SCHEMA: avro_schema(columns("c int"), "t")})

    assert found(storage, created) == "c int"
    assert found(storage) is None
    assert newest_schema(timeline_in(storage)) is None


def test_an_earlier_moment_has_earlier_columns(storage: Storage) -> None:
    put(storage, "20260101000000001_20260101000000002.commit", "a int")
    then = timeline_in(storage).watermark()
    put(storage, "20260101000000003_20260101000000004.commit", "a int, b int")
    now = timeline_in(storage)

    assert show(latest_schema(config(), now.as_of(Seen(then)))) == "a int"


def test_where_nothing_tells_the_columns_a_base_file_does(tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": "x"}]})
    write(path, rows, table=TableSettings(record_key_fields=("id",), bucket_count=1))
    (commit,) = (path / ".hoodie/timeline").glob("*.commit")
    commit.write_bytes(encode(CommitMetadata(operation_type="UPSERT")))
    storage = open_storage(str(path))
    table = load_config(storage)

    schema = latest_schema(table, Table(storage, table).timeline())
    assert schema is not None
    assert show(schema) == "id int, s struct<a:string>"


def test_where_there_is_no_base_file_the_rows_of_a_log_file_tell_the_columns(tmp_path: Path) -> None:
    table = Logged(tmp_path / "t").made(1)
    table.append(9, value=1, partition="b")
    for commit in (table.path / ".hoodie/timeline").glob("*_*.deltacommit"):
        commit.write_bytes(encode(CommitMetadata(operation_type="UPSERT")))
    for base in table.path.rglob("*.parquet"):
        base.unlink()

    schema = latest_schema(table.config, table.timeline)
    assert schema is not None
    assert show(schema) == "id string, ts bigint, value bigint, p string"


def history(storage: Storage, *versions: dict[str, object]) -> None:
    """Put a history of columns into the table, as Apache Hudi does: the newest version first, in every file all."""
    for name in ("20260101000000001.schemacommit.requested", "20260101000000001.schemacommit.inflight"):
        storage.create(f"{FOLDER}/{name}", b"")
    body = json.dumps({"schemas": [{"version_id": n, **one} for n, one in enumerate(versions)]})
    storage.create(f"{FOLDER}/20260101000000001_20260101000000002.schemacommit", body.encode())


def record(**fields: tuple[int, object]) -> dict[str, object]:
    return {
        "type": "record",
        "fields": [{"id": n, "name": name, "optional": True, "type": kind} for name, (n, kind) in fields.items()],
    }


A, B = (5, "int"), (6, "string")
LIST = {"type": "array", "element_id": 8, "element": record(x=(9, "int")), "element_optional": True}
OTHER_LIST = {"type": "array", "element_id": 8, "element": record(y=(9, "int")), "element_optional": True}
MAP = {"type": "map", "key_id": 8, "value_id": 9, "key": "string", "value": "int", "value_optional": True}


@pytest.mark.parametrize(
    "versions",
    [
        [record(a=A)],
        [record(a=A, b=B), record(a=A)],
        [record(b=B), record(a=A, b=B)],
        [record(b=B, a=(5, "long")), record(a=A, b=B)],
        [record(l=(7, LIST), m=(17, {**MAP, "key_id": 18, "value_id": 19}))],
    ],
    ids=["one", "added", "dropped", "moved-and-widened", "nested"],
)
def test_a_table_whose_columns_kept_their_names_is_read_and_not_written(storage: Storage, versions) -> None:
    put(storage, "20260101000000001_20260101000000002.commit", "a int", "ALTER_SCHEMA", meta=True)
    history(storage, *versions)

    assert found(storage) == "a int"
    with pytest.raises(UnsupportedTableError, match=r"schema\.on\.read"):
        latest_schema(config(), timeline_in(storage), writing=True)


@pytest.mark.parametrize(
    ("column", "versions"),
    [
        ("a", [record(b=A), record(a=A)]),
        ("b", [record(a=A, b=(7, "int")), record(a=A), record(a=A, b=B)]),
        ("l.element.x", [record(l=(7, OTHER_LIST)), record(l=(7, LIST))]),
        ("m", [record(n=(7, MAP)), record(m=(7, MAP))]),
    ],
    ids=["renamed", "dropped-and-added-anew", "renamed-in-a-list", "map-renamed"],
)
def test_a_table_whose_names_were_mixed_up_is_refused_by_the_columns_name(storage: Storage, column, versions) -> None:
    put(storage, "20260101000000001_20260101000000002.commit", "a int", "ALTER_SCHEMA", meta=True)
    history(storage, *versions)
    with pytest.raises(UnsupportedTableError, match=f"'{column}'"):
        found(storage)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"schemas": [{"type": "record"}]}', b'{"schemas": [1]}'])
def test_a_history_that_cannot_be_read_is_refused(storage: Storage, body: bytes) -> None:
    storage.create(f"{FOLDER}/20260101000000001_20260101000000002.schemacommit", body)
    with pytest.raises(CorruptInstantError, match=r"\.schemacommit"):
        found(storage)
