"""What Apache Hudi makes of its payload classes in a table of version 9, and which of them it merges by itself before.

Source: ``HoodieTableConfig.inferMergingConfigsForV9TableCreation``, and the properties of tables that Apache Hudi 1.2
made with each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..merging.deletes import DeleteMarker
from .property_keys import COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING

_MODEL = "org.apache.hudi.common.model"
_PACKAGES = ("org.apache.hudi.", "com.uber.hoodie.")


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload class and what a table has in its place.

    Attributes:
        name: The class, without its package.
        merge_mode: The merge mode that does the same.
        delete_marker: What marks deletes, in rows that have such a column; None for nothing.
    """

    name: str
    merge_mode: str
    delete_marker: DeleteMarker | None = None

    @property
    def java_class(self) -> str:
        """The class as Apache Hudi 1.2 has it, which was in other packages before."""
        return f"{_MODEL}.{self.name}"

    @staticmethod
    def find(text: str) -> Payload | None:
        """Return the payload of a class, named with any package of Apache Hudi's or none; None for others."""
        package, _, name = text.rpartition(".")
        return PAYLOADS.get(name) if not package or f"{package}.".startswith(_PACKAGES) else None


PAYLOADS = {
    payload.name: payload
    for payload in (
        Payload("DefaultHoodieRecordPayload", EVENT_TIME_ORDERING),
        Payload("OverwriteWithLatestAvroPayload", COMMIT_TIME_ORDERING),
        Payload("EventTimeAvroPayload", EVENT_TIME_ORDERING),
        Payload("AWSDmsAvroPayload", COMMIT_TIME_ORDERING, DeleteMarker("Op", "D")),
    )
}
"""Those whose tables pyhudi writes, by name."""
