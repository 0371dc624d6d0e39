"""What an index of another package inherits that places keys by numbers of its own, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.index.base import ANY_NUMBER, Buckets, ComputedIndex
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.lookup import SimpleIndex
from pyhudi.index.settings import LookupSettings
from pyhudi.table.files.names import FileGroupId


class LengthIndex(ComputedIndex):
    """A key's length is the number of its file group."""

    def buckets(self, record_keys: pa.Array, parts: Sequence[Any] = ()) -> Buckets:
        return np.asarray(pc.utf8_length(record_keys), np.int32)


def test_an_index_without_partitions_of_its_own_numbers_all_alike_and_leaves_no_file_group_out() -> None:
    keys = pa.array(["a", "bb", "ccc"])
    paths = pa.array(["p", "q", "p"]).dictionary_encode()
    group = FileGroupId("p", "00000001-0000-0000-0000-000000000000-0")

    index = LengthIndex()

    assert index.buckets_in(paths, keys).tolist() == [1, 2, 3]
    assert index.count_of("p") == ANY_NUMBER
    for each in (index, SimpleIndex(LookupSettings())):
        assert each.number_of(group) is None
        assert not each.prunes(keys)(group)


def test_a_bucket_index_leaves_out_the_buckets_of_no_key_by_the_number_of_their_partition() -> None:
    class Numbers:
        def of(self, partition_path: str) -> int | None:
            return {"p": 4, "q": 2}.get(partition_path)

    index = BucketIndex(8, ("id",), numbers=Numbers())
    key = pa.array(["7"])  # whose hash is 55 + 31
    holds_none = index.prunes(key)

    def left_out(path: str) -> list[int]:
        groups = [index.place("20260101000000000", path, number) for number in range(6)]
        return [number for number, group in enumerate(groups) if holds_none(group)]

    (hashed,) = index.hashes(key).tolist()
    assert left_out("p") == [number for number in range(4) if number != hashed % 4], "a further bucket may hold any key"
    assert left_out("q") == [1 - hashed % 2]
    assert left_out("r") == [], "the number of buckets is unknown"
    assert not holds_none(FileGroupId("p", "a-file-group-of-another-index")), "it may hold any key"
