"""Which index a table's properties lead to."""

from __future__ import annotations

import importlib.metadata

import pyarrow as pa
import pytest
from pyhudi.errors import MissingOptionError, OptionConflictError, PyHudiError, TableConfigError, UnsupportedTableError
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.registry import ENTRY_POINTS, computed_index_for, index_for, is_offered
from pyhudi.index.settings import LookupSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.names import FileGroupId


def config(**changes: str) -> TableConfig:
    base_config = TableConfig.new(
        TableSettings(name="t", record_key_fields=("a", "b"), bucket_count=8, hash_fields=("b",))
    )
    names = {
        "index": "hoodie.index.type",
        "engine": "hoodie.index.bucket.engine",
        "count": "hoodie.bucket.index.num.buckets",
        "fields": "hoodie.bucket.index.hash.field",
        "expressions": "hoodie.bucket.index.partition.expressions",
    }
    return TableConfig({**base_config.properties, **{names[name]: value for name, value in changes.items()}})


def test_a_table_of_buckets_has_a_bucket_index() -> None:
    assert index_for(config()) == BucketIndex(8, ("a", "b"), ("b",))


def test_a_table_that_generates_its_keys_looks_nothing_up() -> None:
    keyless = TableConfig.new(TableSettings(name="t", record_key_fields=()))
    index = index_for(keyless)

    assert (index.needs_lookup, index.is_global) == (False, False)
    with pytest.raises(ValueError, match="do not tell"):
        computed_index_for(keyless)
    assert len(index.misfits(pa.array(["a", "b"]), FileGroupId("p", "00000007-x-0"))) == 0


def test_the_index_is_named_in_any_case_or_not_at_all() -> None:
    assert index_for(config(index="bucket", engine="simple")) == index_for(config())
    assert index_for(config(index="")) == index_for(config())


def test_all_key_fields_are_hashed_where_the_table_names_none() -> None:
    assert index_for(config(fields="")) == BucketIndex(8, ("a", "b"), ("a", "b"))


@pytest.mark.parametrize(
    ("changes", "error", "named"),
    [
        ({"index": "RECORD_INDEX"}, UnsupportedTableError, "hoodie.index.type=RECORD_INDEX"),
        ({"engine": "CONSISTENT_HASHING"}, UnsupportedTableError, "hoodie.index.bucket.engine=CONSISTENT_HASHING"),
        ({"expressions": "2024.*,4"}, UnsupportedTableError, "hoodie.bucket.index.partition.expressions"),
        ({"count": ""}, MissingOptionError, "hoodie.bucket.index.num.buckets"),
        ({"count": "0"}, TableConfigError, "hoodie.bucket.index.num.buckets=0"),
        ({"fields": "b,c"}, TableConfigError, "hoodie.bucket.index.hash.field=b,c"),
    ],
)
def test_what_is_not_done_or_makes_no_sense_is_refused(
    changes: dict[str, str], error: type[PyHudiError], named: str
) -> None:
    with pytest.raises(error) as raised:
        index_for(config(**changes))

    assert named in str(raised.value)
    assert "'t'" in raised.value.what


def offer_one_bucket(table: TableConfig, settings: LookupSettings) -> BucketIndex:
    return BucketIndex(int(settings.own.get("buckets", 1)), table.record_key_fields)


def entries(monkeypatch: pytest.MonkeyPatch, *offers: tuple[str, str]) -> None:
    points = [importlib.metadata.EntryPoint(name, value, ENTRY_POINTS) for name, value in offers]
    found = importlib.metadata.EntryPoints(points)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found.select(group=group))
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: offer_one_bucket)


def test_another_package_may_offer_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    entries(monkeypatch, ("My_Index", "my_package:index_of_table"))

    assert index_for(config(index="MY_INDEX")) == BucketIndex(1, ("a", "b"))
    assert index_for(config(index="my_index"), LookupSettings(own={"buckets": "3"})) == BucketIndex(3, ("a", "b"))
    assert [is_offered(name) for name in ("BUCKET", "GLOBAL_BLOOM", "MY_INDEX", "YOUR_INDEX")] == [True] * 3 + [False]


def test_a_built_in_index_cannot_be_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    entries(monkeypatch, ("BUCKET", "my_package:index_of_table"))

    assert index_for(config()) == BucketIndex(8, ("a", "b"), ("b",))


def test_two_packages_may_not_offer_the_same_index(monkeypatch: pytest.MonkeyPatch) -> None:
    entries(monkeypatch, ("MINE", "one:index"), ("MINE", "two:index"))

    with pytest.raises(OptionConflictError, match="one:index, two:index"):
        index_for(config(index="MINE"))
