"""The bucket index of tables whose writers parse some record keys in two ways, before any file is looked into."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.connector.placement.slots import Placement
from pyhudi.errors import BucketMisfitError
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.key_parser import KeyParser
from pyhudi.index.parsed_twice import ParsedTwiceIndex
from pyhudi.index.registry import index_for
from pyhudi.table.config import TableConfig
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.names import FileGroupId, new_bucket_file_id

FIELDS = ("a", "b")
# 1.x hashes ["q,r", "7"], 0.15 ["q", "r", "7"].
DISPUTED, BY_1, BY_0 = "a:q,r,b:7", 217, 973


def group(bucket: int) -> FileGroupId:
    return FileGroupId("", new_bucket_file_id("20260101000000000", "", bucket))


def test_a_table_that_is_or_was_of_version_6_has_this_index_and_others_have_one_parser() -> None:
    made = TableConfig.new(TableSettings(record_key_fields=FIELDS, bucket_count=4, name="t"))
    older = TableConfig({**made.properties, key.VERSION: "6"})
    upgraded = TableConfig({**made.properties, key.INITIAL_VERSION: "6"})

    assert all(isinstance(index_for(one), ParsedTwiceIndex) for one in (older, upgraded))
    assert type(index_for(made)) is BucketIndex


def test_a_new_table_has_no_bucket_for_a_key_on_which_the_releases_disagree() -> None:
    index = ParsedTwiceIndex(1000, FIELDS)

    with pytest.raises(BucketMisfitError) as raised:
        index.buckets(pa.array(["a:1,b:2", DISPUTED]))

    assert all(text in raised.value.what for text in (repr(DISPUTED), f"bucket {BY_1} ", f"bucket {BY_0} "))


@given(st.lists(st.text(st.sampled_from("ab_é:,"), max_size=6), min_size=1, max_size=9))
@settings(deadline=None)
def test_other_keys_have_the_bucket_of_both_releases(keys: list[str]) -> None:
    array = pa.array(keys)
    first, second = (BucketIndex(7, FIELDS, parser=one).buckets(array).tolist() for one in KeyParser)
    alike = pa.array([key for key, one, other in zip(keys, first, second, strict=True) if one == other], pa.string())

    buckets = ParsedTwiceIndex(7, FIELDS).buckets(alike).tolist()

    assert buckets == [one for one, other in zip(first, second, strict=True) if one == other]


def test_a_disputed_key_may_be_in_either_bucket_and_in_no_other() -> None:
    index, keys = ParsedTwiceIndex(1000, FIELDS), pa.array([DISPUTED])
    holds_none = index.prunes(keys)

    assert [holds_none(group(bucket)) for bucket in (BY_1, BY_0, 0)] == [False, False, True]
    assert [index.misfits(keys, group(bucket)).tolist() for bucket in (BY_1, BY_0, 0)] == [[], [], [0]]
    assert [np.unique(hashes % 1000).tolist() for hashes in index.candidates(keys)] == [[BY_1], [BY_0]]
    assert len(index.candidates(pa.array(["a,b", "k"]))) == 1


@pytest.mark.parametrize(
    ("source", "old", "expected"),
    [(BY_1, 1000, BY_1), (BY_0, 1000, BY_0), (1, 2, BY_1), (0, 1000, BY_1)],
    ids=["by 1.x", "by 0.x", "by both", "by neither"],
)
def test_a_rescaled_key_goes_by_the_release_whose_old_bucket_holds_it(source: int, old: int, expected: int) -> None:
    keys, alike = pa.array([DISPUTED, "a:1,b:2"]), BucketIndex(1000, FIELDS).buckets(pa.array(["a:1,b:2"]))

    buckets = ParsedTwiceIndex(1000, FIELDS).rescaled(keys, (), group(source), old, 1000)

    assert buckets.tolist() == [expected, *alike.tolist()]


class Numbers:
    """The numbers of a table without files, which counts how often the table is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def view(self) -> None:
        self.asked += 1

    def of(self, partition_path: str) -> int:
        return 1000


def test_a_task_asks_the_table_once_for_all_its_rows_and_takes_no_answer_along() -> None:
    numbers, paths = Numbers(), pa.array([""]).dictionary_encode()
    index = ParsedTwiceIndex(1000, FIELDS, numbers=numbers, release_0_writes=False)

    buckets = [index.buckets_in(paths, pa.array([DISPUTED])).tolist() for _ in range(3)]

    assert (buckets, numbers.asked) == ([[BY_1]] * 3, 1)
    sent = pickle.loads(pickle.dumps(index))  # noqa: S301
    sent.buckets_in(paths, pa.array([DISPUTED]))
    assert sent.numbers.asked == 2


def test_a_placement_asks_the_table_once_for_all_its_rows() -> None:
    made = TableConfig.new(TableSettings(record_key_fields=FIELDS, bucket_count=1000, name="t"))
    numbers = Numbers()
    placement = Placement(TableConfig({**made.properties, key.INITIAL_VERSION: "6"}), None, 1000, numbers=numbers)  # type: ignore[arg-type]
    rows = pa.RecordBatch.from_pydict({"a": ["q,r"], "b": ["7"]})

    slots = [placement.slots(rows).tolist() for _ in range(3)]

    assert (slots, numbers.asked) == ([[BY_1]] * 3, 1)
