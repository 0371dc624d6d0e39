"""What a table of version 6 does not say, and a write has to know: which row wins, keys, partitions and buckets."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.arrow import Table
from pyhudi.errors import (
    BucketMisfitError,
    MissingOptionError,
    OptionConflictError,
    UnsupportedOptionError,
    UnsupportedTableError,
)
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.key_parser import KeyParser
from pyhudi.operations.result import CommitResult
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import bucket_numbers
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config import property_keys as key
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from support.readers import read_without_spark
from support.recorded.recorded_version_6 import unpack_keys
from support.rules.health import errors

MODEL = "org.apache.hudi.common.model"
LATEST, GREATEST = f"{MODEL}.OverwriteWithLatestAvroPayload", f"{MODEL}.DefaultHoodieRecordPayload"
PAYLOAD, MODE = "hoodie.datasource.write.payload.class", "hoodie.write.record.merge.mode"
PARTITIONS = "hoodie.datasource.write.partitionpath.field"
NUMBER = {"hoodie.bucket.index.num.buckets": "5"}
TIMES = {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS"}
TYPED = {PARTITIONS: "p:SIMPLE,t:TIMESTAMP", **TIMES}
TYPED |= {"hoodie.keygen.timebased.output.dateformat": "yyyyMM", "hoodie.keygen.timebased.timezone": "UTC"}
# Of the keys with these values of b, the second, the fourth and the last have other buckets by each release.
MARKED = ("x", "y,z", "v:w", ",", "a:1,b:2", "q,r")

Copied = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_keys(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Copied:
    """Returns a copy of a table that the test may change."""
    return lambda name: Path(shutil.copytree(made / name, tmp_path / name))


def rows(name: str, ts: int, *at: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number}" for number in at],
            "b": [MARKED[number] for number in at],
            "p": ["a"] * len(at),
            "t": pa.array([1_704_412_800_000 + 2_000_000_000 * number for number in at], pa.int64()),
            "name": [name] * len(at),
            "ts": pa.array([ts] * len(at), pa.int64()),
        }
    )


def upsert(table: Path, name: str, ts: int, *at: int, options: Mapping[str, str] | None = None) -> CommitResult:
    return Table(table).upsert(rows(name, ts, *at), **(options or {}))


def names(table: Path) -> dict[str, str]:
    found = read_without_spark(table)
    assert len(set(found["_hoodie_record_key"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def noted(table: Path, option: str) -> str | None:
    return load_config(open_storage(str(table))).properties.get(option)


def of_release_1(table: Path) -> None:
    """As `CREATE TABLE` of Apache Hudi 1.0.2 leaves a table: without the payload class."""
    update_config(open_storage(str(table)), {key.PAYLOAD_CLASS: None})


@pytest.mark.parametrize(
    ("name", "release", "noticed", "wins"),
    [("old_simple", "0.x", LATEST, "lower"), ("new_simple", "1.x", GREATEST, "first")],
)
def test_the_release_that_wrote_last_decides_which_row_wins_and_the_write_says_so(
    copied: Copied, name: str, release: str, noticed: str, wins: str
) -> None:
    table = copied(name)
    of_release_1(table)

    first, second = upsert(table, "lower", 5, 0), upsert(table, "lowest", 3, 1)

    assert [f"Apache Hudi {release}" in text and noticed in text for text in first.warnings] == [True]
    assert second.warnings == ()
    assert noted(table, key.PAYLOAD_CLASS) == noticed
    assert names(table)["k0"] == wins
    assert names(table)["k1"] == {"lower": "lowest"}.get(wins, wins)
    assert errors(table) == []


def test_a_newer_release_that_left_the_properties_alone_decides(copied: Copied) -> None:
    """Apache Hudi 1.2 wrote last to a table that 0.15 made."""
    table = copied("both_buckets")

    done = upsert(table, "lower", 5, 0, options=NUMBER)

    assert "Apache Hudi 1.x" in done.warnings[0]
    assert names_of_twice(table)["k0"] == {"by 0.15"}


def names_of_twice(table: Path) -> dict[str, set[str]]:
    names_by_key: dict[str, set[str]] = {}
    for row in read_without_spark(table).to_pylist():
        names_by_key.setdefault(row["id"], set()).add(row["name"])
    return names_by_key


@pytest.mark.parametrize(
    ("options", "noticed", "wins"),
    [
        ({PAYLOAD: GREATEST}, GREATEST, "first"),
        ({PAYLOAD: "OverwriteWithLatestAvroPayload"}, LATEST, "lower"),
        ({MODE: "EVENT_TIME_ORDERING"}, GREATEST, "first"),
        ({PAYLOAD: f"{MODEL}.PartialUpdateAvroPayload"}, f"{MODEL}.PartialUpdateAvroPayload", "first"),
    ],
)
def test_an_option_of_the_first_write_decides_otherwise(
    copied: Copied, options: dict[str, str], noticed: str, wins: str
) -> None:
    table = copied("old_simple")

    done = upsert(table, "lower", 5, 0, options=options)

    assert done.warnings == ()
    assert noted(table, key.PAYLOAD_CLASS) == noticed
    assert names(table)["k0"] == wins
    other = "COMMIT_TIME_ORDERING" if wins == "first" else "EVENT_TIME_ORDERING"
    with pytest.raises(OptionConflictError, match=f"{MODE} is '{other}' here"):
        upsert(table, "lower", 5, 0, options={MODE: other})


@pytest.mark.parametrize(
    ("payload", "named"),
    [(f"{MODEL}.debezium.PostgresDebeziumAvroPayload", "_event_lsn"), ("com.example.Mine", "com.example.Mine")],
)
def test_a_class_by_which_pyhudi_does_not_merge_is_refused_by_name(copied: Copied, payload: str, named: str) -> None:
    table = copied("old_simple")

    with pytest.raises(UnsupportedOptionError, match=named):
        upsert(table, "lower", 5, 0, options={PAYLOAD: payload})

    assert noted(table, key.PAYLOAD_CLASS) is None


@pytest.mark.parametrize("option", [key.MERGE_STRATEGY, key.OLD_MERGE_STRATEGY])
def test_a_table_that_merges_by_a_class_of_the_user_is_refused_by_its_strategy(copied: Copied, option: str) -> None:
    """The newer key is that of 1.x."""
    table = copied("new_simple")
    update_config(open_storage(str(table)), {option: "00000000-1111-2222-3333-444444444444", key.PAYLOAD_CLASS: None})

    with pytest.raises(UnsupportedTableError, match=f"{option}=00000000-1111"):
        upsert(table, "lower", 5, 0)


def test_without_an_ordering_field_nothing_is_said_and_nothing_noted(copied: Copied) -> None:
    table = copied("old_simple")
    update_config(open_storage(str(table)), {key.PRECOMBINE_FIELD: None})

    done = upsert(table, "lower", 5, 0)

    assert (done.warnings, noted(table, key.PAYLOAD_CLASS)) == ((), None)
    assert names(table)["k0"] == "lower"
    with pytest.raises(OptionConflictError, match="no ordering field"):
        upsert(table, "lower", 5, 0, options={PAYLOAD: GREATEST})


def test_a_delete_of_partitions_decides_nothing(copied: Copied) -> None:
    table = copied("old_simple")

    Table(table).delete_partitions("a")

    assert noted(table, key.PAYLOAD_CLASS) is None


def test_a_delete_marker_holds_for_the_write_that_gives_it(copied: Copied) -> None:
    table = copied("old_simple")
    marker = {"hoodie.payload.delete.field": "name", "hoodie.payload.delete.marker": "gone"}

    upsert(table, "gone", 20, 0, options=marker)
    upsert(table, "gone", 20, 1)

    assert {**names(table), "k1": "gone"} == names(table)
    assert "k0" not in names(table)


@pytest.mark.parametrize(
    ("name", "options", "paths"),
    [
        ("simple", {}, {"a"}),
        ("complex", {}, {"a"}),
        ("unpartitioned", {}, {""}),
        ("timestamp", TIMES, {"202401", "202402", "202403", "202404"}),
        ("custom", TYPED, {"a/202401", "a/202402", "a/202403", "a/202404"}),
    ],
)
@pytest.mark.parametrize("made_by", ["old", "new"])
def test_each_key_generator_finds_its_rows_again(
    copied: Copied, made_by: str, name: str, options: dict[str, str], paths: set[str]
) -> None:
    table = copied(f"{made_by}_{name}")

    result = upsert(table, "second", 20, *range(6), options=options)
    upsert(table, "third", 30, 0)

    assert (result.updates, result.inserts) == (6, 0)
    assert names(table) == {"k0": "third", **{f"k{number}": "second" for number in range(1, 6)}}
    assert set(read_without_spark(table)["_hoodie_partition_path"].to_pylist()) == paths
    assert errors(table) == []


@pytest.mark.parametrize("made_by", ["old", "new"])
def test_types_of_partition_fields_are_asked_for_once_and_held_against_rows(copied: Copied, made_by: str) -> None:
    """Tables of version 6 store the names of the fields alone, as 0.15 would take the types for a part of them."""
    table = copied(f"{made_by}_custom")
    other = {**TYPED, "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd"}

    with pytest.raises(MissingOptionError, match="p, t are times") as raised:
        upsert(table, "second", 20, 0)
    with pytest.raises(OptionConflictError):
        upsert(table, "second", 20, 0, options=other)

    assert PARTITIONS in raised.value.todo
    assert noted(table, key.PARTITION_TYPES) is None
    upsert(table, "second", 20, 0, options=TYPED)
    assert (noted(table, key.PARTITION_FIELDS), noted(table, key.PARTITION_TYPES)) == ("p,t", "SIMPLE,TIMESTAMP")


@pytest.mark.parametrize(("made_by", "encoding"), [("old", "VALUE_ONLY"), ("new", "FIELD_PREFIXED")])
def test_keys_of_one_field_go_on_as_they_are_spelt(copied: Copied, made_by: str, encoding: str) -> None:
    table = copied(f"{made_by}_one_field")

    done = upsert(table, "second", 20, 0, 1)

    assert (done.updates, done.inserts) == (2, 0)
    assert noted(table, key.COMPLEX_KEY_ENCODING) == encoding


@pytest.mark.parametrize("encoding", [None, "VALUE_ONLY", "FIELD_PREFIXED"])
@pytest.mark.parametrize("at", [0, 1])
def test_both_spellings_in_one_table_are_refused_also_where_one_is_noted(
    copied: Copied, encoding: str | None, at: int
) -> None:
    table = copied("both_one_field")
    update_config(open_storage(str(table)), {key.COMPLEX_KEY_ENCODING: encoding})

    with pytest.raises(UnsupportedTableError, match=r"'(id:)?k\d'|as id:value in"):
        upsert(table, "second", 30, at)


@pytest.mark.parametrize("made_by", ["old", "new"])
def test_a_disputed_key_goes_where_its_row_is_and_a_new_one_as_those_of_its_table_do(
    copied: Copied, made_by: str
) -> None:
    table = copied(f"{made_by}_buckets")

    with pytest.raises(MissingOptionError, match="number of buckets"):
        upsert(table, "second", 20, 1)
    first = upsert(table, "second", 20, 0, 1, options=NUMBER)
    second = upsert(table, "second", 20, 3, 5)
    third = upsert(table, "third", 30, 3, 5)

    assert [(done.updates, done.inserts) for done in (first, second, third)] == [(2, 0), (0, 2), (2, 0)]
    found = read_without_spark(table)
    buckets = {row["id"]: int(row["_hoodie_file_name"][:8]) for row in found.to_pylist()}
    by_rule = {"old": {"k1": 0, "k3": 4, "k5": 3}, "new": {"k1": 4, "k3": 3, "k5": 2}}[made_by]
    assert {one: buckets[one] for one in by_rule} == by_rule
    assert errors(table) == []


@pytest.mark.parametrize(
    ("name", "at", "words"),
    [
        ("plain_buckets", 1, ("id:k1,b:y,z", "bucket 4 ", "bucket 0 ", "show neither")),
        ("both_buckets", 3, ("id:k3,b:,", "bucket 3 ", "bucket 4 ", "follow both")),
        ("both_buckets", 1, ("id:k1,b:y,z", "bucket 4 ", "bucket 0 ", "in both")),
    ],
)
def test_a_key_whose_bucket_stored_keys_do_not_show_is_refused(
    copied: Copied, name: str, at: int, words: tuple[str, ...]
) -> None:
    """And other keys of the table are written."""
    table = copied(name)
    before = names_of_twice(table)

    with pytest.raises(BucketMisfitError) as raised:
        upsert(table, "second", 30, 0, at, options=NUMBER)

    assert all(word in raised.value.what for word in words)
    assert names_of_twice(table) == before
    upsert(table, "second", 30, 0, options=NUMBER)
    assert names_of_twice(table)["k0"] == {"second"}


def test_a_write_asks_for_the_rows_of_the_moment_that_it_sees(copied: Copied) -> None:
    """In each of its tasks, whatever others commit meanwhile."""
    table = copied("old_buckets")
    upsert(table, "second", 20, 0, 1, options=NUMBER)
    seen = SeenTable.now(open_table(open_storage(str(table))))
    numbers = bucket_numbers(seen.table, seen.timeline)
    upsert(table, "third", 30, 1)

    view = pickle.loads(pickle.dumps(numbers)).view()  # noqa: S301

    assert [*view.slices("a")] and view.slices("a") == seen.view.slices("a")
    assert view.slices("a") != SeenTable.now(seen.table).view.slices("a")


@pytest.mark.parametrize("upgraded", [False, True])
@pytest.mark.parametrize(("made_by", "parser"), [("old", KeyParser.RELEASE_0), ("new", KeyParser.RELEASE_1)])
def test_a_rescale_keeps_disputed_keys_where_the_release_that_put_them_looks(
    copied: Copied, made_by: str, parser: KeyParser, upgraded: bool
) -> None:
    table = copied(f"{made_by}_buckets")
    upsert(table, "second", 20, 1, 3, 5, options=NUMBER)
    if upgraded:
        Table(table).upgrade()

    Table(table).rescale_buckets(7, whole_table=True)

    found = read_without_spark(table)
    keys = found["_hoodie_record_key"].combine_chunks()
    buckets = [int(name[:8]) for name in found["_hoodie_file_name"].to_pylist()]
    assert buckets == BucketIndex(7, ("id", "b"), parser=parser).buckets(keys).tolist()
    done = upsert(table, "third", 30, 1, 3, 5)
    assert (done.updates, done.inserts) == (3, 0)
    assert errors(table) == []


@pytest.mark.parametrize(("name", "stored"), [("old_buckets", {"k1": 0}), ("plain_buckets", {})])
def test_new_disputed_keys_of_an_upgraded_table_go_by_the_one_rule_that_is_left(
    copied: Copied, name: str, stored: dict[str, int]
) -> None:
    """Whatever the stored keys show: Apache Hudi 0.15 cannot write the table any more."""
    table = copied(name)
    upsert(table, "second", 20, 0, options=NUMBER)
    Table(table).upgrade()

    done = upsert(table, "third", 30, 1, 3, 5)

    assert (done.updates, done.inserts) == (len(stored), 3 - len(stored))
    found = read_without_spark(table)
    buckets = {row["id"]: int(row["_hoodie_file_name"][:8]) for row in found.to_pylist() if row["name"] == "third"}
    assert buckets == {"k1": 4, "k3": 3, "k5": 2, **stored}
    assert errors(table) == []


def test_a_read_finds_a_disputed_key_in_either_bucket(copied: Copied) -> None:
    for name in ("old_buckets", "new_buckets"):
        table = copied(name)
        upsert(table, "second", 20, 0, options=NUMBER)

        found = Table(table).read(where="id = 'k1' and b = 'y,z'")

        assert found["name"].to_pylist() == ["first"]


NEW = {"hoodie.write.table.version": "6"}


def create(path: Path, **options: str) -> None:
    Table.create(path, rows("", 0, 0).schema, record_key="id", order_by="ts", options={**NEW, **options})


@pytest.mark.parametrize(
    ("options", "noticed"),
    [
        ({}, GREATEST),
        ({MODE: "COMMIT_TIME_ORDERING"}, LATEST),
        ({PAYLOAD: "AWSDmsAvroPayload"}, f"{MODEL}.AWSDmsAvroPayload"),
        ({PAYLOAD: "PartialUpdateAvroPayload"}, f"{MODEL}.PartialUpdateAvroPayload"),
    ],
)
def test_a_new_table_notes_a_payload_class_that_every_release_obeys(
    tmp_path: Path, options: dict[str, str], noticed: str
) -> None:
    create(tmp_path / "t", **options)

    made = load_config(open_storage(str(tmp_path / "t"))).properties
    assert (made[key.PAYLOAD_CLASS], made[key.PRECOMBINE_FIELD]) == (noticed, "ts")
    assert not {key.MERGE_MODE, key.PARTIAL_UPDATE_MODE, key.DELETE_FIELD, key.ORDERING_FIELDS} & made.keys()


def test_a_class_of_a_new_table_deletes_and_leaves_values(tmp_path: Path) -> None:
    """As the class does in Apache Hudi: the properties name nothing else."""
    dms, partial = tmp_path / "dms", tmp_path / "partial"
    marked = rows("x", 1, 0, 1).append_column("Op", pa.array(["I", "I"]))
    Table.create(dms, marked.schema, record_key="id", order_by="ts", options={**NEW, PAYLOAD: "AWSDmsAvroPayload"})
    Table(dms).upsert(marked)
    Table(dms).upsert(rows("x", 0, 0).append_column("Op", pa.array(["D"])))
    create(partial, **{PAYLOAD: "PartialUpdateAvroPayload"})
    upsert(partial, "first", 1, 0)
    left_out = rows("", 2, 0).set_column(4, "name", pa.nulls(1, pa.string()))
    Table(partial).upsert(left_out)

    assert names(dms) == {"k1": "x"}
    assert read_without_spark(partial).select(["name", "ts"]).to_pylist() == [{"name": "first", "ts": 2}]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, UnsupportedOptionError, "COPY_ON_WRITE alone"),
        ({PAYLOAD: "PostgresDebeziumAvroPayload"}, UnsupportedOptionError, "orders rows by _event_lsn"),
        ({key.PARTIAL_UPDATE_MODE: "IGNORE_DEFAULTS"}, OptionConflictError, "as a payload class alone"),
        ({key.ORDERING_FIELDS: "ts,t"}, OptionConflictError, "have one ordering field"),
    ],
)
def test_what_version_6_cannot_say_makes_no_table(
    tmp_path: Path, options: dict[str, str], error: type[Exception], words: str
) -> None:
    said = {"record_key": "id", "options": {**NEW, **options}}

    with pytest.raises(error, match=words):
        Table.create(tmp_path / "t", rows("", 0, 0).schema, **said)

    assert not (tmp_path / "t" / ".hoodie").exists()


def test_a_table_of_another_version_is_not_made_one_of_version_6(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", rows("", 0, 0).schema, record_key="id")

    with pytest.raises(OptionConflictError, match=r"hoodie.write.table.version is 6 here and 9 in the table"):
        upsert(tmp_path / "t", "first", 1, 0, options=NEW)
