"""What the names of file groups tell of a table's index, where nobody wrote it down."""

from __future__ import annotations

import random
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.names import FileGroupId, new_bucket_file_id
from pyhudi.table.inferred.index import InferredIndex, index_of_groups, index_of_view, is_unnoted, mixed, with_inferred

BUCKETS = InferredIndex("BUCKET")
LOOKUP = InferredIndex("SIMPLE")


def bucket(number: int, partition: str = "p") -> FileGroupId:
    return FileGroupId(partition, new_bucket_file_id("20260101000000000", partition, number))


def others(count: int, seed: int = 0) -> list[FileGroupId]:
    """File groups as Apache Hudi names them where it uses no buckets; none of these looks like a small one."""
    draw = random.Random(seed)
    ids = [str(uuid.UUID(int=draw.getrandbits(128), version=4)) for _ in range(count)]
    assert not any(one[:3] == "000" for one in ids)
    return [FileGroupId("p", f"{one}-0") for one in ids]


def beginning(text: str) -> FileGroupId:
    return FileGroupId("q", f"{text}-9403-473e-9c2e-a75e99c50a4f-0")


@pytest.mark.parametrize("numbers", [[0], [3], [0, 1, 2], [255, 7], [4_000]])
def test_buckets_alone_make_a_bucketed_table(numbers: list[int]) -> None:
    assert index_of_groups([bucket(one, p) for one in numbers for p in ("p", "q")]) == BUCKETS


@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_random_names_and_no_names_are_looked_up(count: int) -> None:
    assert index_of_groups(others(count)) == LOOKUP


def test_a_bucket_beside_others_is_a_mixture_of_which_one_of_each_is_named() -> None:
    rest = others(1_000)

    told = index_of_groups([*rest, bucket(3)])

    assert told == InferredIndex(None, (bucket(3), rest[0]))
    error = mixed(told, "/t")
    assert isinstance(error, UnsupportedTableError)
    assert all(text in str(error) for text in ("/t", bucket(3).file_id, rest[0].file_id, "hoodie.index.type=SIMPLE"))


def test_one_file_group_that_is_no_bucket_makes_a_mixture_of_a_bucketed_table() -> None:
    buckets = [bucket(number) for number in range(500)]

    assert index_of_groups([*buckets, *others(1)]).mixture == (buckets[0], others(1)[0])


@pytest.mark.parametrize("begins", ["00057310", "00099999"])
def test_a_random_name_of_digits_among_many_others_is_chance(begins: str) -> None:
    """Of a thousand random names one begins so in some thousand tables; a small number is none of chance's."""
    assert index_of_groups([*others(1_000), beginning(begins)]) == LOOKUP
    assert index_of_groups([*others(1_000), beginning("00000310")]).kind is None


@pytest.mark.parametrize("begins", ["83412345", "00100000"])
def test_a_large_number_is_no_bucket(begins: str) -> None:
    assert index_of_groups([beginning(begins)]) == LOOKUP
    assert index_of_groups([bucket(1), beginning(begins)]).kind is None


def test_random_names_are_hardly_ever_taken_for_buckets() -> None:
    """Tables of five to five thousand file groups, none of which a bucket index made."""
    draw = random.Random(14)
    tables = [
        [FileGroupId("p", f"{draw.getrandbits(32):08x}-9403-473e-9c2e-a75e99c50a4f-0") for _ in range(count)]
        for count in [5] * 2_000 + [5_000] * 20
    ]

    assert [index_of_groups(one) for one in tables] == [LOOKUP] * len(tables)


def test_what_is_told_is_in_the_properties_unless_it_is_buckets() -> None:
    plain = TableConfig.new(TableSettings(name="t", record_key_fields=("id",)))

    assert is_unnoted(plain)
    assert with_inferred(plain, LOOKUP).index_type == "SIMPLE"
    assert with_inferred(plain, BUCKETS) is plain
    assert not is_unnoted(TableConfig.new(TableSettings(name="t", record_key_fields=("id",), bucket_count=2)))
    assert not is_unnoted(TableConfig.new(TableSettings(name="t", record_key_fields=())))


def test_a_table_without_file_groups_is_told_by_those_that_were_replaced() -> None:
    def of(*replaced: FileGroupId, live: tuple[FileGroupId, ...] = ()) -> InferredIndex:
        def shown(groups: tuple[FileGroupId, ...]) -> Any:
            return lambda path: {one.file_id: SimpleNamespace(id=one) for one in groups if one.partition_path == path}

        view: Any = SimpleNamespace(groups=shown(live), replaced_groups=shown(replaced))
        return index_of_view(view, ["p", "q"])

    assert of(bucket(3), bucket(1, "q")) == BUCKETS
    assert of(bucket(3), live=tuple(others(2))) == LOOKUP
    assert of(bucket(3), *others(40)) == LOOKUP, "what is gone contradicts nothing"
    assert of() == LOOKUP
