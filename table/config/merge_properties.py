"""What ``hoodie.properties`` says of merging: which of two rows with one key wins, in the words of each table version.

Version 9 names the merge mode, and delete markers as properties of it. Version 8 names a payload class, the merge mode
that does the same, and the strategy that does it; what marks deletes is said by each write.

Source: ``HoodieTableConfig`` of Apache Hudi 1.0.2 and 1.2.0 (``inferCorrectMergingBehavior``,
``inferMergingConfigsForV9TableCreation``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from . import property_keys as key
from .payloads import Payload
from .property_keys import COMMIT_TIME_ORDERING, CUSTOM, EVENT_TIME_ORDERING

# By strategy; the two others that there are do what a class of the user's does.
_STRATEGIES = {
    EVENT_TIME_ORDERING: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    COMMIT_TIME_ORDERING: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
}
_BY_STRATEGY = {strategy: mode for mode, strategy in _STRATEGIES.items()}
_DEFAULT_PAYLOADS = {
    EVENT_TIME_ORDERING: "DefaultHoodieRecordPayload",
    COMMIT_TIME_ORDERING: "OverwriteWithLatestAvroPayload",
}


class MergeProperties(Protocol):
    """How tables of one version say who wins."""

    most_ordering_fields: int | None
    """How many ordering fields there may be; None for any number."""

    keeps_markers: bool
    """Whether the table keeps what marks deletes."""

    keeps_partial_updates: bool
    """Whether the table keeps by which mode rows leave columns to older ones."""

    def mode(self, properties: Mapping[str, str], *, ordered: bool) -> str:
        """Return the merge mode, ``CUSTOM`` for rules that are none of Apache Hudi's own or contradict each other.

        Args:
            properties: Of the table.
            ordered: Whether it has ordering fields.
        """

    def payload(self, properties: Mapping[str, str]) -> Payload | None:
        """Return the payload class that the table notes; None for none, or for one that pyhudi does not know."""

    def of_new_table(self, mode: str | None, payload: Payload | None, ordering_fields: Sequence[str]) -> dict[str, str]:
        """Return the properties of a new table.

        Args:
            mode: The merge mode; None for Apache Hudi's default.
            payload: The payload class by which it was named; None for none.
            ordering_fields: Columns that decide which of two rows is newer.
        """


class ByMode:
    """Version 9: the merge mode alone decides, and a payload class is no more than a note."""

    most_ordering_fields: int | None = None
    keeps_markers: bool = True
    keeps_partial_updates: bool = True

    def mode(self, properties: Mapping[str, str], *, ordered: bool) -> str:
        """Return the merge mode that the table names, or Apache Hudi's default."""
        return properties.get(key.MERGE_MODE) or default_merge_mode(ordered=ordered)

    def payload(self, properties: Mapping[str, str]) -> Payload | None:
        """Return the payload class in place of which the table has its merge mode."""
        return Payload.find(properties.get(key.LEGACY_PAYLOAD_CLASS, ""))

    def of_new_table(self, mode: str | None, payload: Payload | None, ordering_fields: Sequence[str]) -> dict[str, str]:
        """Return the properties of a new table."""
        mode = mode or default_merge_mode(ordered=bool(ordering_fields))
        noted = {} if payload is None else {key.LEGACY_PAYLOAD_CLASS: payload.java_class}
        return {**_ordering(key.ORDERING_FIELDS, ordering_fields), key.MERGE_MODE: mode, **noted}


class ByPayload:
    """Version 8: payload class, merge mode and strategy say the same in three ways, and have to agree."""

    most_ordering_fields: int | None = 1
    keeps_markers: bool = False
    keeps_partial_updates: bool = False

    def mode(self, properties: Mapping[str, str], *, ordered: bool) -> str:
        """Return the one merge mode that the payload class, the mode and the strategy name."""
        said = {mode for mode in self._said(properties) if mode is not None}
        if not said:
            return default_merge_mode(ordered=ordered)
        return said.pop() if len(said) == 1 else CUSTOM

    def payload(self, properties: Mapping[str, str]) -> Payload | None:
        """Return the table's payload class."""
        return Payload.find(properties.get(key.PAYLOAD_CLASS, ""))

    def of_new_table(self, mode: str | None, payload: Payload | None, ordering_fields: Sequence[str]) -> dict[str, str]:
        """Return the properties of a new table."""
        mode = mode or default_merge_mode(ordered=bool(ordering_fields))
        known = payload or Payload.find(_DEFAULT_PAYLOADS[mode])
        return {
            **_ordering(key.PRECOMBINE_FIELD, ordering_fields),
            key.MERGE_MODE: mode,
            key.MERGE_STRATEGY: _STRATEGIES[mode],
            **({} if known is None else {key.PAYLOAD_CLASS: known.java_class}),
        }

    def _said(self, properties: Mapping[str, str]) -> tuple[str | None, ...]:
        by_class = properties.get(key.PAYLOAD_CLASS)
        payload = Payload.find(by_class or "")
        # Classes that do more are run as they are, and have no merge mode before version 9.
        builtin = payload.merge_mode if payload is not None and payload.is_plain else CUSTOM
        strategy = properties.get(key.MERGE_STRATEGY)
        return (
            builtin if by_class else None,
            properties.get(key.MERGE_MODE) or None,
            _BY_STRATEGY.get(strategy, CUSTOM) if strategy else None,
        )


def merge_properties(version: int) -> MergeProperties:
    """Return how tables of a version say who wins."""
    return _BY_MODE if version >= key.NEWEST_VERSION else _BY_PAYLOAD


def marker_properties(field: str | None, value: str | None) -> dict[str, str]:
    """Return the properties by which a table keeps that rows with a value in a column are deletes."""
    return {key.DELETE_FIELD: field, key.DELETE_MARKER: value} if field and value else {}


def default_merge_mode(*, ordered: bool) -> str:
    """Return the merge mode of a table that names none."""
    return EVENT_TIME_ORDERING if ordered else COMMIT_TIME_ORDERING


def _ordering(option: str, fields: Sequence[str]) -> dict[str, str]:
    return {option: ",".join(fields)} if fields else {}


_BY_MODE, _BY_PAYLOAD = ByMode(), ByPayload()
