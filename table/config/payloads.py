"""What Apache Hudi makes of its payload classes in a table of version 9, and which of them it merges by itself before.

Source: ``HoodieTableConfig.inferMergingConfigsForV9TableCreation``, and the properties of tables that Apache Hudi 1.2
made with each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..merging.deletes import DeleteMarker
from .property_keys import COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING, FILL_UNAVAILABLE, IGNORE_DEFAULTS

_MODEL = "org.apache.hudi.common.model"
_PACKAGES = ("org.apache.hudi.", "com.uber.hoodie.")


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload class and what a table has in its place.

    Attributes:
        name: The class, without its package.
        merge_mode: The merge mode that does the same.
        delete_marker: What marks deletes, in rows that have such a column; None for nothing.
        partial_update_mode: Which columns of a row leave the older row's values as they are; None where none does.
        ordering_fields: What it orders rows by, whatever else is asked for; none where that is free.
        package: Where Apache Hudi 1.2 has the class.
    """

    name: str
    merge_mode: str
    delete_marker: DeleteMarker | None = None
    partial_update_mode: str | None = None
    ordering_fields: tuple[str, ...] = ()
    package: str = _MODEL

    @property
    def java_class(self) -> str:
        """The class as Apache Hudi 1.2 has it, which was in other packages before."""
        return f"{self.package}.{self.name}"

    @property
    def is_plain(self) -> bool:
        """Whether the merge mode is all that it says."""
        return self.delete_marker is None and self.partial_update_mode is None

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
        Payload("PartialUpdateAvroPayload", EVENT_TIME_ORDERING, partial_update_mode=IGNORE_DEFAULTS),
        Payload("OverwriteNonDefaultsWithLatestAvroPayload", COMMIT_TIME_ORDERING, partial_update_mode=IGNORE_DEFAULTS),
        Payload(
            "MySqlDebeziumAvroPayload",
            EVENT_TIME_ORDERING,
            DeleteMarker("_change_operation_type", "d"),
            ordering_fields=("_event_bin_file", "_event_pos"),
            package=f"{_MODEL}.debezium",
        ),
        Payload(
            "PostgresDebeziumAvroPayload",
            EVENT_TIME_ORDERING,
            DeleteMarker("_change_operation_type", "d"),
            FILL_UNAVAILABLE,
            ("_event_lsn",),
            f"{_MODEL}.debezium",
        ),
    )
}
"""Those whose tables pyhudi writes, by name."""
