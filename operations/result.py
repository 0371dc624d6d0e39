"""What one commit did, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What one commit did.

    Attributes:
        path: The table's path.
        instant: Requested time of the instant; empty when a write without rows left nothing.
        operation: Hudi's name of the operation.
        inserts: Rows added: those with new keys, and all rows of an insert, which looks no key up.
        updates: Rows that took the place of another of their key.
        deletes: Rows removed one by one; rows of replaced file groups are not counted.
        not_found: Deletes that removed nothing.
        dropped: Incoming rows left out because their key was there (``hoodie.datasource.insert.dup.policy=drop``).
        replaced: File groups taken away as a whole, by an overwrite or with their partition.
        files: Base files written.
        bytes: Their size.
        seconds: Seconds by phase: those of the tasks summed over all of them, those of the commit as they passed, and
            as ``total`` those of the whole call where a method of `HudiTable` was called.
        write_id: Identifies the write across replays.
    """

    path: str
    instant: str
    operation: str
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    not_found: int = 0
    dropped: int = 0
    replaced: int = 0
    files: int = 0
    bytes: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    write_id: str = ""

    def __repr__(self) -> str:
        counts = [f"{getattr(self, name):,} {words}" for name, words in _COUNTED.items() if getattr(self, name)]
        files = [f"{self.files:,} files, {self.bytes:,} bytes"] if self.files else []
        took = [f"{self.seconds['total']:.1f} s"] if "total" in self.seconds else []
        told = "; ".join([", ".join(counts) or "no rows", *files, *took])
        return f"<{self.operation} {self.instant or 'that left nothing'} of {self.path}: {told}>"


_COUNTED = {
    "inserts": "inserted",
    "updates": "updated",
    "deletes": "deleted",
    "not_found": "not found",
    "dropped": "dropped",
    "replaced": "file groups replaced",
}
