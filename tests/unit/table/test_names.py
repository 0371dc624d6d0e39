"""File names there and back, with names that Apache Hudi made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.table.files.names import (
    BaseFileName,
    LogFileName,
    WriteToken,
    bucket_by_name,
    bucket_of,
    new_bucket_file_id,
)

FILE_IDS = st.from_regex(r"[A-Za-z0-9]{1,12}(-[A-Za-z0-9]{1,6}){0,4}", fullmatch=True)
INSTANTS = st.from_regex(r"[0-9]{17}", fullmatch=True)
COUNTS = st.integers(0, 2**40)
TOKENS = st.builds(WriteToken, COUNTS, COUNTS, COUNTS)


def test_a_base_file_of_java_is_read() -> None:
    name = "00000000-7416-4ad0-83c2-18237b6fb996-0_3-5-9_20261121030404561.parquet"

    parsed = BaseFileName.parse(name)

    assert parsed == BaseFileName(
        "00000000-7416-4ad0-83c2-18237b6fb996-0", WriteToken(3, 5, 9), "20261121030404561", ".parquet"
    )
    assert bucket_of(parsed.file_id) == 0


@given(FILE_IDS, TOKENS, INSTANTS)
def test_a_base_file_name_is_read_back(file_id: str, token: WriteToken, instant: str) -> None:
    name = BaseFileName(file_id, token, instant)

    assert BaseFileName.parse(name.format()) == name


@given(FILE_IDS, INSTANTS, st.integers(1, 10**6), st.none() | TOKENS, st.booleans())
def test_a_log_file_name_is_read_back(
    file_id: str, instant: str, version: int, token: WriteToken | None, is_cdc: bool
) -> None:
    name = LogFileName(file_id, instant, version, token, is_cdc)

    assert LogFileName.parse(name.format()) == name
    assert BaseFileName.parse(name.format()) is None


def test_a_log_file_of_java_is_read() -> None:
    name = ".00000003-9403-473e-9c2e-a75e99c50a4f-0_20261120224644250.log.1_0-12-8.cdc"

    assert LogFileName.parse(name) == LogFileName(
        "00000003-9403-473e-9c2e-a75e99c50a4f-0", "20261120224644250", 1, WriteToken(0, 12, 8), True
    )


@pytest.mark.parametrize("path", ["c%2Dd", "a_b", "year%3D2026%2Fé"])
def test_a_file_of_a_record_index_names_a_partition_of_the_table(path: str) -> None:
    file_id = f"record-index-{path}-0000-0"

    base = BaseFileName.parse(f"{file_id}_3-327-582_20261129173706407.hfile")
    log = LogFileName.parse(f".{file_id}_20261129173643746.log.1_0-0-0")

    assert base == BaseFileName(file_id, WriteToken(3, 327, 582), "20261129173706407", ".hfile")
    assert log == LogFileName(file_id, "20261129173643746", 1, WriteToken(0, 0, 0))


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        ".00000000-7416-4ad0-83c2-18237b6fb996-0_3-5-9_20261121030404561.parquet.crc",
        "00000000-7416-4ad0-83c2-18237b6fb996-0_3-5_20261121030404561.parquet",
        "00000000-7416-4ad0-83c2-18237b6fb996-0_3-5-9_20261121030404561.parquet.0a1b",
        "part-00000-a.snappy.parquet",
        "",
    ],
)
def test_other_files_are_no_base_files(name: str) -> None:
    assert BaseFileName.parse(name) is None


@pytest.mark.parametrize(
    ("file_id", "bucket"),
    [
        ("00000012-9403-473e-9c2e-a75e99c50a4f-0", 12),
        ("00000012-0000-0000-0000-000000000000-0", 12),
        ("9403473e-9403-473e-9c2e-a75e99c50a4f-0", None),
        ("000000123-9403", None),
        ("abc", None),
    ],
)
def test_the_bucket_is_the_eight_digits_in_front(file_id: str, bucket: int | None) -> None:
    assert bucket_of(file_id) == bucket


def test_the_file_id_of_a_new_bucket_never_changes() -> None:
    """Every task and attempt, of this release and later ones, must invent the same id."""
    assert new_bucket_file_id("20261121030404561", "a/b", 7) == "00000007-f979-59b1-b4b2-2b90f4416dff-0"


@given(INSTANTS, st.text(max_size=10), st.integers(0, 99_999_999))
def test_the_file_id_of_a_new_bucket_tells_its_bucket(instant: str, partition: str, bucket: int) -> None:
    file_id = new_bucket_file_id(instant, partition, bucket)

    assert bucket_of(file_id) == bucket
    assert BaseFileName.parse(BaseFileName(file_id, WriteToken(0, 0, 0), instant).format()) is not None


def test_a_bucket_of_nine_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="100000000"):
        new_bucket_file_id("20261121030404561", "", 100_000_000)


def test_digits_that_no_number_of_buckets_reaches_name_no_bucket() -> None:
    tail = "4d0b-8b7c-9632ba746358-0"

    assert [bucket_by_name(f"{text}-b959-{tail}") for text in ("00000007", "00099999", "00100000", "11104325")] == [
        7,
        99_999,
        None,
        None,
    ]
