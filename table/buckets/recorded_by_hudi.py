"""Apache Hudi's own records of a bucket index: consistent hashing, and rules of bucket numbers.

Source: ``ConsistentBucketIndexUtils`` and ``PartitionBucketIndexHashingConfig``, whose files are below
``.hoodie/.bucket_index``. pyhudi reads tables with consistent hashing and writes none of them.
"""

from __future__ import annotations

from ...errors import UnsupportedTableError
from ...storage.base import Storage
from .rules import ENDING

FOLDER = ".hoodie/.bucket_index"
_HASHING, _RULES = "consistent_hashing_metadata", "partition_bucket_index_meta"
_ENDINGS = {_HASHING: ".hashing_meta", _RULES: ENDING}


def recorded_hashing(storage: Storage) -> str | None:
    """Return a file that shows consistent hashing; None for none."""
    return _first_records(storage).get(_HASHING)


def has_bucket_rules(storage: Storage) -> bool:
    """Return whether Apache Hudi recorded numbers of buckets; raise `UnsupportedTableError` for consistent hashing."""
    records = _first_records(storage)
    if _HASHING in records:
        raise UnsupportedTableError(
            f"The table {storage.path} has the bucket index of consistent hashing "
            f"(hoodie.index.bucket.engine=CONSISTENT_HASHING), as {records[_HASHING]} shows. pyhudi reads such tables "
            "and does not write them.",
            "Write the table with Apache Hudi, or copy its rows into a new table with pyhudi.",
        )
    return _RULES in records


def _first_records(storage: Storage) -> dict[str, str]:
    """Return, by the folder of its kind, the first file of each kind of record that the table has."""
    records: dict[str, str] = {}
    for info in storage.list(FOLDER, recursive=True, strict=False):
        kind = info.path.removeprefix(f"{FOLDER}/").partition("/")[0]
        # No path ends in a NUL, so that other kinds do not count.
        if info.path.endswith(_ENDINGS.get(kind, "\0")):
            records.setdefault(kind, info.path)
    return records
