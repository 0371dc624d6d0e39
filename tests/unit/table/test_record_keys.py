"""Keys of records of a metadata table: what Apache Hudi wrote of these names, and vectors of the xxHash project."""

from __future__ import annotations

import pytest
from pyhudi.table.metadata.record_keys import (
    hash_of_column,
    hash_of_file,
    hash_of_partition,
    key_of_file_bounds,
    key_of_filter,
    key_of_partition,
    key_of_partition_bounds,
    xxh64,
)


def test_hashes_are_those_that_apache_hudi_wrote() -> None:
    assert (hash_of_column("p1"), hash_of_column("ts")) == ("qT4Pioac33A=", "oyTjviKHuhI=")
    assert hash_of_partition("") == "FXThHwelITM=", "the partition of a table without partitions is called ."
    assert (key_of_partition(""), key_of_partition("p1")) == (".", "p1")


def test_keys_join_the_hashes() -> None:
    file = hash_of_file("a.parquet")

    assert len(file) == 24
    assert key_of_file_bounds("ts", "p1", "a.parquet") == "oyTjviKHuhI=qT4Pioac33A=" + file
    assert key_of_partition_bounds("ts", "p1") == "oyTjviKHuhI=qT4Pioac33A="
    assert key_of_filter("p1", "a.parquet") == "qT4Pioac33A=" + file


@pytest.mark.parametrize(
    ("text", "seed", "digest"),
    [
        ("", 0, 0xEF46DB3751D8E999),
        ("a", 0, 0xD24EC4F1A98C6E5B),
        ("abc", 0, 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
        ("xxhash", 20141025, 0xB559B98D844E0635),
    ],
)
def test_digests_of_texts_of_all_lengths(text: str, seed: int, digest: int) -> None:
    assert xxh64(text.encode(), seed) == digest
