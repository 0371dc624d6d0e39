"""Apache Hudi's own records of buckets that differ by partition: consistent hashing, and rules of bucket counts.

Source: ``ConsistentBucketIndexUtils`` and ``PartitionBucketIndexHashingConfig``, whose files are below
``.hoodie/.bucket_index``. pyhudi reads such tables and writes none of them.
"""

from __future__ import annotations

from ..errors import UnsupportedTableError
from ..storage.base import Storage

FOLDER = ".hoodie/.bucket_index"
_KINDS = {
    "consistent_hashing_metadata": (
        ".hashing_meta",
        "consistent hashing (hoodie.index.bucket.engine=CONSISTENT_HASHING)",
    ),
    "partition_bucket_index_meta": (".hashing_config", "a number of buckets by partition"),
}


def recorded_buckets(storage: Storage) -> tuple[str, str] | None:
    """Return in words the bucket index that Apache Hudi recorded, and a file that says so; None for none."""
    for info in storage.list(FOLDER, recursive=True, strict=False):
        ending, kind = _KINDS.get(info.path.removeprefix(f"{FOLDER}/").partition("/")[0], ("", ""))
        if ending and info.path.endswith(ending):
            return kind, info.path
    return None


def refuse_recorded_buckets(storage: Storage) -> None:
    """Raise `UnsupportedTableError` where Apache Hudi records the table's buckets in files of its own."""
    found = recorded_buckets(storage)
    if found is not None:
        kind, path = found
        raise UnsupportedTableError(
            f"The table {storage.path} has the bucket index of {kind}, as {path} shows. pyhudi reads such tables and "
            "does not write them.",
            "Write the table with Apache Hudi, or copy its rows into a new table with pyhudi.",
        )
