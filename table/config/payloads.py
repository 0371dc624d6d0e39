"""The merge properties that replace each payload class of Apache Hudi in a table of version 9.

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
    """A payload class, without its package, and the table properties that replace it.

    Attributes:
        partial_update_mode: Which values of a row leave a column to the older row; None for none.
        ordering_fields: The fixed ordering fields; empty if the user chooses them.
        package: The class's package in Apache Hudi 1.2.
    """

    name: str
    merge_mode: str
    delete_marker: DeleteMarker | None = None
    partial_update_mode: str | None = None
    ordering_fields: tuple[str, ...] = ()
    package: str = _MODEL

    @property
    def java_class(self) -> str:
        """The class with its package in Apache Hudi 1.2; older releases have other packages."""
        return f"{self.package}.{self.name}"

    @property
    def is_plain(self) -> bool:
        """Whether the merge mode alone replaces the class."""
        return self.delete_marker is None and self.partial_update_mode is None

    @staticmethod
    def find(text: str) -> Payload | None:
        """Return the payload of a class name with any package of Apache Hudi or none; None if unknown."""
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
"""The payload classes whose tables pyhudi writes, by name."""
