"""What `hoodie.properties` says, and its life in the store."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import (
    ConcurrentWriteError,
    NotATableError,
    TableConfigError,
    TableNotFoundError,
    TableVersionError,
    UnsupportedTableError,
)
from pyhudi.storage import open_storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.config import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    TableConfig,
    create_config,
    load_config,
    update_config,
)
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.config.table_config import checksum
from pyhudi.table.config.table_settings import TableSettings
from support.recorded.fixture_tables import unpack
from support.seams import patch_seam, read_seam

FIXTURE = Path(__file__).parents[2] / "fixtures" / "apache_hudi_1_2_types" / "hoodie.properties"

# Of a table by Apache Hudi 1.2.0 that has a metadata table.
BY_JAVA = b"""\
#Updated at 2026-11-21T03:04:13.676532146Z
#Sat Nov 21 03:04:13 UTC 2026
hoodie.table.keygenerator.type=SIMPLE
hoodie.table.type=COPY_ON_WRITE
hoodie.timeline.layout.version=2
hoodie.timeline.history.path=history
hoodie.table.checksum=498511606
hoodie.datasource.write.drop.partition.columns=false
hoodie.table.format=native
hoodie.table.partition_extractor_class=org.apache.hudi.hive.SinglePartPartitionValueExtractor
hoodie.datasource.write.hive_style_partitioning=false
hoodie.table.metadata.partitions.inflight=
hoodie.table.index.defs.path=.hoodie/.index_defs/index.json
hoodie.datasource.write.partitionpath.urlencode=false
hoodie.record.merge.mode=EVENT_TIME_ORDERING
hoodie.table.version=9
hoodie.table.initial.version=9
hoodie.table.metadata.partitions=column_stats,files,partition_stats
hoodie.table.partition.fields=p
hoodie.table.cdc.enabled=false
hoodie.archivelog.folder=history
hoodie.table.multiple.base.file.formats.enable=false
hoodie.table.timeline.timezone=LOCAL
hoodie.table.name=t
hoodie.table.recordkey.fields=id
hoodie.timeline.path=timeline
hoodie.table.ordering.fields=ts
hoodie.partition.metafile.use.base.format=false
hoodie.populate.meta.fields=true
hoodie.table.base.file.format=PARQUET
"""
LEAST = b"""\
hoodie.table.name=t
hoodie.table.type=MERGE_ON_READ
hoodie.table.version=6
hoodie.timeline.layout.version=1
"""
INDEX_KEYS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.datasource.write.recordkey.field": "id",
}


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(f"memory://{uuid.uuid4()}/t")


def replaced(option: str, value: str | None) -> bytes:
    """Return Java's file with one line changed, or left out."""
    kept = [line for line in BY_JAVA.decode().splitlines() if not line.startswith(f"{option}=")]
    return "\n".join([*kept, *([] if value is None else [f"{option}={value}"]), ""]).encode()


def test_a_file_of_java_is_understood() -> None:
    config = TableConfig.parse(BY_JAVA, "t")

    assert (config.name, config.database, config.table_type, config.version) == ("t", "", "COPY_ON_WRITE", 9)
    assert (config.record_key_fields, config.partition_fields, config.ordering_fields) == (("id",), ("p",), ("ts",))
    assert (config.timezone, config.timeline_folder) == ("LOCAL", ".hoodie/timeline")
    assert (config.merge_mode, config.key_generator) == ("EVENT_TIME_ORDERING", KeyGeneratorType.SIMPLE)
    assert (config.hive_style, config.url_encode, config.populate_meta_fields) == (False, False, True)
    assert config.metadata_partitions == ("column_stats", "files", "partition_stats")
    assert (config.index_type, config.bucket_count, config.hash_fields) == (None, None, None)
    assert config.create_schema is None
    assert config.properties["hoodie.table.index.defs.path"] == ".hoodie/.index_defs/index.json"


def test_the_least_file_is_understood_with_hudis_defaults() -> None:
    config = TableConfig.parse(LEAST, "t")

    assert (config.timezone, config.timeline_folder, config.archive_folder) == ("LOCAL", ".hoodie", ".hoodie/archived")
    assert (config.record_key_fields, config.partition_fields, config.ordering_fields) == ((), (), ())
    assert (config.merge_mode, config.key_generator) == ("COMMIT_TIME_ORDERING", KeyGeneratorType.NON_PARTITION)
    assert config.populate_meta_fields is True


def test_older_names_of_properties_are_understood() -> None:
    old = b"""\
hoodie.table.precombine.field=ts
hoodie.table.keygenerator.class=org.apache.hudi.keygen.ComplexKeyGenerator
"""
    config = TableConfig.parse(LEAST + old, "t")

    assert config.ordering_fields == ("ts",)
    assert config.key_generator is KeyGeneratorType.COMPLEX


def test_the_types_of_a_custom_key_generator_are_no_part_of_its_fields() -> None:
    config = TableConfig.parse(replaced("hoodie.table.partition.fields", "i\\:SIMPLE,l\\:TIMESTAMP"), "t")

    assert config.partition_fields == ("i", "l")


def test_a_new_table_has_the_properties_that_java_writes() -> None:
    """Except for the time zone, and for the index, which Apache Hudi forgets."""
    by_java = TableConfig.parse(FIXTURE.read_bytes(), "t")

    config = TableConfig.new(TableSettings(name="9my-tab.x", record_key_fields=("id",), bucket_count=4))

    assert config.properties == {**by_java.properties, "hoodie.table.timeline.timezone": "UTC", **INDEX_KEYS}


@pytest.mark.parametrize(("name", "ordering"), [("v8_mor", ["ts"]), ("v8_mor_commit_time", [])])
def test_a_new_table_of_version_8_has_the_properties_that_its_release_writes(
    name: str, ordering: list[str], tmp_path: Path
) -> None:
    """Apache Hudi 1.0.2, which knows the ordering field by its older name alone."""
    by_java = load_config(open_storage(unpack(name, tmp_path)))

    config = TableConfig.new(
        TableSettings(
            name=name,
            version=8,
            table_type="MERGE_ON_READ",
            record_key_fields=("id",),
            partition_fields=("p",),
            ordering_fields=ordering,
            bucket_count=4,
        )
    )

    assert config.properties == {**by_java.properties, **INDEX_KEYS}


def test_a_new_table_in_a_database_with_partitions_and_ordering() -> None:
    config = TableConfig.new(
        TableSettings(
            name="t",
            database="default",
            record_key_fields=("a", "b"),
            partition_fields=("p", "q"),
            ordering_fields=("ts",),
            hive_style=True,
            url_encode=True,
            timezone="LOCAL",
            bucket_count=16,
            hash_fields=("b",),
        )
    )

    assert (config.properties["hoodie.table.checksum"], config.database) == ("454464632", "default")
    assert (config.key_generator, config.merge_mode) == (KeyGeneratorType.COMPLEX, "EVENT_TIME_ORDERING")
    assert (config.record_key_fields, config.partition_fields) == (("a", "b"), ("p", "q"))
    assert (config.hive_style, config.url_encode, config.timezone) == (True, True, "LOCAL")
    assert (config.index_type, config.bucket_count, config.hash_fields) == ("BUCKET", 16, ("b",))
    assert TableConfig.parse(config.encode(), "t") == config
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301


@pytest.mark.parametrize(
    ("fields", "hive_style", "extractor"),
    [
        ([], False, "NonPartitionedExtractor"),
        (["p"], False, "SinglePartPartitionValueExtractor"),
        (["p"], True, "HiveStylePartitionValueExtractor"),
        (["p", "q"], True, "MultiPartKeysValueExtractor"),
    ],
)
def test_the_partition_extractor_is_the_one_that_java_infers(
    fields: list[str], hive_style: bool, extractor: str
) -> None:
    config = TableConfig.new(
        TableSettings(
            name="t", record_key_fields=("id",), partition_fields=fields, hive_style=hive_style, index_type="BUCKET"
        )
    )

    assert config.properties["hoodie.table.partition_extractor_class"] == f"org.apache.hudi.hive.{extractor}"


@pytest.mark.parametrize(
    ("database", "name", "expected"),
    [("", "t", "498511606"), ("default", "t", "454464632"), ("", "t_metadata", "3339867397")],
)
def test_the_checksum_is_that_of_java(database: str, name: str, expected: str) -> None:
    assert checksum(database, name) == expected


@given(st.dictionaries(st.text(st.characters(codec="utf-8")).map("x.{}".format), st.text(st.characters(codec="utf-8"))))
def test_unknown_properties_are_kept(unknown: dict[str, str]) -> None:
    config = TableConfig({**unknown, **TableConfig.parse(BY_JAVA, "t").properties})

    assert TableConfig.parse(config.encode(), "t").properties == config.properties


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"", "hoodie.table.name"),
        (b"#only a comment\n", "hoodie.table.name"),
        (BY_JAVA[:-3], "cut off"),
        (BY_JAVA[: BY_JAVA.index(b"hoodie.table.version")], "hoodie.table.name"),
        (b"hoodie.table.name=\\u12\n", "malformed"),
        (replaced("hoodie.table.version", None), "hoodie.table.version"),
        (replaced("hoodie.table.type", None), "hoodie.table.type"),
        (replaced("hoodie.timeline.layout.version", None), "hoodie.timeline.layout.version"),
        (replaced("hoodie.table.version", "nine"), "nine"),
        (replaced("hoodie.bucket.index.num.buckets", "4.5"), "4.5"),
        (replaced("hoodie.table.type", "copy_on_write"), "copy_on_write"),
        (replaced("hoodie.table.timeline.timezone", "Europe/Berlin"), "EUROPE/BERLIN"),
        (replaced("hoodie.table.checksum", "1"), "498511606"),
        (replaced("hoodie.table.name", "u"), "hoodie.table.checksum=498511606"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused(data: bytes, names: str) -> None:
    with pytest.raises(TableConfigError, match=names) as raised:
        TableConfig.parse(data, "file:///t/.hoodie/hoodie.properties")

    assert "file:///t/.hoodie/hoodie.properties" in raised.value.what
    assert "hoodie.properties.backup" in raised.value.todo


def test_a_file_without_a_checksum_is_taken() -> None:
    assert TableConfig.parse(replaced("hoodie.table.checksum", None), "t").name == "t"


def test_a_newer_table_is_refused_by_its_version() -> None:
    with pytest.raises(TableVersionError, match="10"):
        TableConfig.parse(replaced("hoodie.table.version", "10"), "t")


def test_an_unknown_key_generator_is_refused_when_it_is_asked_for() -> None:
    config = TableConfig.parse(replaced("hoodie.table.keygenerator.type", "com.acme.Mine"), "t")

    with pytest.raises(UnsupportedTableError, match=r"com\.acme\.Mine"):
        _ = config.key_generator


@pytest.mark.parametrize("fields", ["p,t", "p:SIMPLE,t", "p:SIMPLE,t:WHENEVER", "p:SIMPLE:TIMESTAMP,t:SIMPLE"])
def test_a_custom_key_generator_needs_a_type_for_every_field(fields: str) -> None:
    properties = {"hoodie.table.keygenerator.type": "CUSTOM", "hoodie.table.partition.fields": fields}
    config = TableConfig({**TableConfig.parse(BY_JAVA, "t").properties, **properties})

    with pytest.raises(TableConfigError) as raised:
        _ = config.partition_types

    assert fields in raised.value.what


def test_options_of_times_are_known_by_their_older_names() -> None:
    older = {"hoodie.deltastreamer.keygen.timebased.timestamp.type": "SCALAR"}
    config = TableConfig({**TableConfig.parse(BY_JAVA, "t").properties, **older})

    assert config.time_options == {"hoodie.keygen.timebased.timestamp.type": "SCALAR"}


def test_a_created_table_is_loaded(storage: MemoryStorage) -> None:
    config = TableConfig.new(TableSettings(name="t", record_key_fields=("id",), bucket_count=4))

    assert create_config(storage, config) is True
    assert (
        create_config(storage, TableConfig.new(TableSettings(name="u", record_key_fields=("id",), index_type="BUCKET")))
        is False
    )
    assert load_config(storage) == config


def test_nothing_at_the_path_is_no_table(storage: MemoryStorage) -> None:
    with pytest.raises(TableNotFoundError, match=storage.path):
        load_config(storage)


def test_a_first_write_under_way_is_no_table_yet(storage: MemoryStorage) -> None:
    storage.write(".hoodie/timeline/20261121030404561.inflight", b"")
    storage.write("x/.hoodie_partition_metadata", b"")

    with pytest.raises(TableNotFoundError):
        load_config(storage)


def test_a_file_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"1")

    with pytest.raises(NotATableError, match="is a file"):
        load_config(open_storage(str(tmp_path / "rows.csv")))


@pytest.mark.parametrize("path", ["part-0.parquet", "x/y/part-0.parquet"])
def test_other_files_at_the_path_are_not_a_table(storage: MemoryStorage, path: str) -> None:
    storage.write(path, b"")

    with pytest.raises(NotATableError, match=storage.path):
        load_config(storage)


@pytest.mark.parametrize(
    "path", [".hoodie/timeline/20261121030404561_20261121030409678.commit", ".hoodie/20261121030404561.deltacommit"]
)
def test_a_table_that_lost_its_properties_is_not_taken_for_a_new_one(storage: MemoryStorage, path: str) -> None:
    storage.write(path, b"")

    with pytest.raises(TableConfigError, match="20261121030404561"):
        load_config(storage)


def test_a_table_that_is_created_while_it_is_looked_for_is_found(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its properties come into being after they were read, and its first commit before the timeline is listed."""
    config = TableConfig.new(TableSettings(name="t", record_key_fields=("id",), bucket_count=4))
    look = read_seam("look into a folder in memory")

    def created(self: MemoryStorage, folder: str) -> Any:
        create_config(storage, config)
        storage.write(".hoodie/timeline/20261121030413676_20261121030414676.commit", b"")
        return look(self, folder)

    patch_seam(monkeypatch, "look into a folder in memory", created)

    assert load_config(storage) == config


def test_the_backup_serves_while_the_file_is_away(storage: MemoryStorage) -> None:
    storage.write(BACKUP_PATH, BY_JAVA)

    assert load_config(storage).name == "t"
    assert storage.exists(PROPERTIES_PATH) is False


def test_an_update_changes_adds_and_removes(storage: MemoryStorage) -> None:
    storage.write(PROPERTIES_PATH, BY_JAVA)

    config = update_config(
        storage,
        {"hoodie.table.metadata.partitions": "", "hoodie.table.index.defs.path": None, "hoodie.index.type": "BUCKET"},
    )

    assert load_config(storage) == config
    assert (config.metadata_partitions, config.index_type) == ((), "BUCKET")
    assert "hoodie.table.index.defs.path" not in config.properties
    assert config.ordering_fields == ("ts",)
    assert storage.exists(BACKUP_PATH) is False


def test_an_update_without_a_change_writes_nothing(storage: MemoryStorage) -> None:
    storage.write(PROPERTIES_PATH, BY_JAVA)

    update_config(storage, {"hoodie.table.name": "t", "absent": None})

    assert storage.read(PROPERTIES_PATH) == BY_JAVA


@pytest.mark.parametrize("main_is_there", [True, False])
def test_an_update_first_finishes_one_that_was_left_half_done(storage: MemoryStorage, main_is_there: bool) -> None:
    storage.write(BACKUP_PATH, BY_JAVA)
    if main_is_there:
        storage.write(PROPERTIES_PATH, BY_JAVA)

    update_config(storage, {"a": "b"})

    assert load_config(storage).properties["a"] == "b"
    assert storage.exists(BACKUP_PATH) is False


class Watched(MemoryStorage):
    """A store in which something happens right before one kind of step."""

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        if path == BACKUP_PATH:
            MemoryStorage(self.path).write(BACKUP_PATH, data)
        return super().create(path, data, durable=durable)


class Snooped:
    """A store that notes what a reader would find before and after every change of an update."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self.seen: list[tuple[str, bool, bool]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)
        if name not in ("write", "create", "delete"):
            return method

        def noted(path: str, *data: bytes) -> Any:
            result = method(path, *data)
            there = [self._storage.exists(file) for file in (PROPERTIES_PATH, BACKUP_PATH)]
            self.seen.append((f"{name} {path}", *there))
            return result

        return noted


def test_two_updates_at_once_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "patience with torn properties", 0)
    storage = Watched(f"memory://{uuid.uuid4()}/t")
    storage.write(PROPERTIES_PATH, BY_JAVA)

    with pytest.raises(ConcurrentWriteError):
        update_config(storage, {"a": "b"})


class Overtaken(MemoryStorage):
    """A store in which somebody else changes the properties while an update sleeps behind its backup."""

    def create(self, path: str, data: bytes) -> bool:
        made = MemoryStorage(self.path).create(path, data)
        if path == BACKUP_PATH:
            update_config(MemoryStorage(self.path), {"theirs": "newer"})
        return made


def test_an_update_that_slept_does_not_put_back_what_others_changed() -> None:
    storage = Overtaken(f"memory://{uuid.uuid4()}/t")
    storage.write(PROPERTIES_PATH, BY_JAVA)

    update_config(storage, {"a": "b"})

    assert load_config(storage).properties["theirs"] == "newer"
    assert load_config(storage).properties["a"] == "b"


def test_the_file_is_there_at_every_step_and_the_backup_around_its_change(storage: MemoryStorage) -> None:
    storage.write(PROPERTIES_PATH, BY_JAVA)
    snooped = Snooped(storage)

    update_config(snooped, {"a": "b"})

    assert snooped.seen == [
        (f"create {BACKUP_PATH}", True, True),
        (f"write {PROPERTIES_PATH}", True, True),
        (f"delete {BACKUP_PATH}", True, False),
    ]
