"""How many bytes a row takes, as earlier commits tell."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from pyhudi.index.settings import FileSizes
from pyhudi.index.small_files import learned_record_bytes
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.layout import LayoutV2
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata, ReplaceCommitMetadata, WriteStat
from support.made.timelines import timeline_in

SIZES = FileSizes(small=1000, record_bytes=77)


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def put(
    storage: Storage, number: int, *files: tuple[str, int, int], action: str = "commit", operation: str = "UPSERT"
) -> None:
    """Put a completed write on the timeline, of files with their bytes and rows."""
    stats = [
        WriteStat(path=path, total_write_bytes=size, file_size_in_bytes=size, num_writes=rows)
        for path, size, rows in files
    ]
    kind = ReplaceCommitMetadata if action == "replacecommit" else CommitMetadata
    body = encode(kind(partition_to_write_stats={"p": stats}, operation_type=operation))
    time = f"202601010000{number:05d}"
    assert storage.create(f"{LayoutV2().folder}/{time}_{time}.{action}", body)


def learned(storage: Storage, sizes: FileSizes = SIZES) -> float:
    return learned_record_bytes(timeline_in(storage), sizes)


def test_a_table_without_commits_tells_nothing(storage: Storage) -> None:
    assert learned(storage) == 77


def test_all_files_of_the_newest_commits_that_wrote_much_tell_together(storage: Storage) -> None:
    put(storage, 1, ("p/a.parquet", 600, 10), ("p/b.parquet", 600, 20))
    put(storage, 2, ("p/a.parquet", 3000, 10))

    assert learned(storage) == (600 + 600 + 3000) / (10 + 20 + 10)


def test_commits_that_wrote_little_do_not_tell(storage: Storage) -> None:
    """The footer of a small file weighs more than its rows."""
    put(storage, 1, ("p/a.parquet", 1001, 10))
    put(storage, 2, ("p/a.parquet", 1000, 1))

    assert learned(storage) == 100.1
    assert learned(storage, FileSizes(small=1000, record_bytes=77, telling=0.999)) == 2001 / 11
    assert learned(storage, FileSizes(small=1000, record_bytes=77, telling=2)) == 77
    assert learned(storage, FileSizes(small=0, record_bytes=77, telling=2)) == 2001 / 11


def test_older_commits_than_the_newest_five_do_not_tell(storage: Storage) -> None:
    put(storage, 1, ("p/a.parquet", 50_000, 1))
    for number in range(2, 7):
        put(storage, number, ("p/a.parquet", 2000, 100))

    assert learned(storage) == 20


def test_log_files_and_clusterings_do_not_tell_and_other_replacements_do(storage: Storage) -> None:
    put(storage, 1, ("p/.a_1.log.1_0-0-0", 9999, 1), ("p/b.parquet", 2000, 4), action="deltacommit")
    put(storage, 2, ("p/c.parquet", 9999, 9999), action="replacecommit", operation="CLUSTER")
    put(storage, 3, ("p/c.parquet", 4000, 4), action="replacecommit", operation="INSERT_OVERWRITE")

    assert learned(storage) == 6000 / 8


@pytest.mark.parametrize("rows", [0, -5])
def test_commits_that_count_no_rows_do_not_tell(storage: Storage, rows: int) -> None:
    put(storage, 1, ("p/a.parquet", 5000, rows))

    assert learned(storage) == 77


def test_a_commit_that_cannot_be_read_does_not_tell(storage: Storage) -> None:
    put(storage, 1, ("p/a.parquet", 2000, 100))
    assert storage.create(f"{LayoutV2().folder}/20260102000000000_20260102000000000.commit", b"no commit")

    assert learned(storage) == 20
