"""The properties that decide which of two rows with one key wins, for each table version.

Version 9 has the merge mode, and delete markers as its properties. Version 8 has a payload class, the equivalent merge
mode and the equivalent strategy; there each write names its delete marker. Version 6 has a payload class, and a
strategy that is the same whatever the class. Apache Hudi 0.15 leaves the class of a copy-on-write table out, and obeys
a class that the properties name.

Source: ``HoodieTableConfig`` of Apache Hudi 1.0.2 and 1.2.0 (``inferCorrectMergingBehavior``,
``inferMergingConfigsForV9TableCreation``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from . import property_keys as key
from .payloads import PAYLOADS, Payload
from .property_keys import COMMIT_TIME_ORDERING, CUSTOM, EVENT_TIME_ORDERING

# The other two strategies of Apache Hudi run a class of the user.
STRATEGY_OF_PAYLOADS = "00000000-0000-0000-0000-000000000000"
STRATEGIES = {
    EVENT_TIME_ORDERING: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    COMMIT_TIME_ORDERING: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
}
_BY_STRATEGY = {strategy: mode for mode, strategy in STRATEGIES.items()}
DEFAULT_PAYLOADS = {
    EVENT_TIME_ORDERING: "DefaultHoodieRecordPayload",
    COMMIT_TIME_ORDERING: "OverwriteWithLatestAvroPayload",
}


class MergeProperties(Protocol):
    """The merge properties of tables of one version."""

    most_ordering_fields: int | None
    """The limit of ordering fields; None for any number."""

    keeps_mode: bool
    """Whether the table's properties keep the merge mode."""

    keeps_markers: bool
    """Whether the table's properties keep the delete marker."""

    keeps_partial_updates: bool
    """Whether the table's properties keep the partial update mode."""

    class_alone_decides: bool
    """Whether they keep it, and the delete marker, as a payload class alone."""

    def mode(self, properties: Mapping[str, str], *, ordered: bool) -> str:
        """Return the merge mode; ``CUSTOM`` for a user's rules or contradictory properties."""

    def payload(self, properties: Mapping[str, str]) -> Payload | None:
        """Return the payload class of the properties; None for none, and for a class that pyhudi does not know."""

    def deciding(self, properties: Mapping[str, str]) -> Payload | None:
        """Return the payload class by whose name alone rows are merged; None if other properties say how."""

    def lacks_rule(self, properties: Mapping[str, str]) -> bool:
        """Return whether no property says which row wins, so that releases of Apache Hudi differ."""

    def of_new_table(self, mode: str | None, payload: Payload | None, ordering_fields: Sequence[str]) -> dict[str, str]:
        """Return the properties of a new table; mode None means Apache Hudi's default."""


class ByMode:
    """Version 9: the merge mode alone decides; the payload class is informative."""

    most_ordering_fields: int | None = None
    keeps_mode: bool = True
    keeps_markers: bool = True
    keeps_partial_updates: bool = True
    class_alone_decides: bool = False

    def mode(self, properties: Mapping[str, str], *, ordered: bool) -> str:
        return properties.get(key.MERGE_MODE) or default_merge_mode(ordered=ordered)

    def payload(self, properties: Mapping[str, str]) -> Payload | None:
        return Payload.find(properties.get(key.LEGACY_PAYLOAD_CLASS, ""))

    def deciding(self, properties: Mapping[str, str]) -> Payload | None:
        return None

    def lacks_rule(self, properties: Mapping[str, str]) -> bool:
        return False

    def of_new_table(self, mode: str | None, payload: Payload | None, ordering_fields: Sequence[str]) -> dict[str, str]:
        mode = mode or default_merge_mode(ordered=bool(ordering_fields))
        noted = {} if payload is None else {key.LEGACY_PAYLOAD_CLASS: payload.java_class}
        return {**_ordering(key.ORDERING_FIELDS, ordering_fields), key.MERGE_MODE: mode, **noted}


class ByPayload:
    """Version 8: payload class, merge mode and strategy each name the rules, and have to agree."""

    most_ordering_fields: int | None = 1
    keeps_mode: bool = True
    keeps_markers: bool = False
    keeps_partial_updates: bool = False
    class_alone_decides: bool = False

    def mode(self, properties: Mapping[str, str], *, ordered: bool) -> str:
        modes = {mode for mode in self._named_modes(properties) if mode is not None}
        if not modes:
            return default_merge_mode(ordered=ordered)
        return modes.pop() if len(modes) == 1 else CUSTOM

    def payload(self, properties: Mapping[str, str]) -> Payload | None:
        return Payload.find(properties.get(key.PAYLOAD_CLASS, ""))

    def deciding(self, properties: Mapping[str, str]) -> Payload | None:
        return None

    def lacks_rule(self, properties: Mapping[str, str]) -> bool:
        return False

    def of_new_table(self, mode: str | None, payload: Payload | None, ordering_fields: Sequence[str]) -> dict[str, str]:
        """Return class, mode and strategy of the same meaning, as they have to agree."""
        mode = mode or default_merge_mode(ordered=bool(ordering_fields))
        payload_class = payload or Payload.find(DEFAULT_PAYLOADS[mode])
        return {
            **_ordering(key.PRECOMBINE_FIELD, ordering_fields),
            key.MERGE_MODE: mode,
            key.MERGE_STRATEGY: STRATEGIES[mode],
            **({} if payload_class is None else {key.PAYLOAD_CLASS: payload_class.java_class}),
        }

    def _named_modes(self, properties: Mapping[str, str]) -> tuple[str | None, ...]:
        """Return the merge mode by the payload class, the mode and the strategy; None for each that is not set."""
        java_class = properties.get(key.PAYLOAD_CLASS)
        payload = Payload.find(java_class or "")
        # Before version 9 Apache Hudi runs classes that do more, without an equivalent merge mode.
        builtin = payload.merge_mode if payload is not None and payload.is_plain else CUSTOM
        strategy = properties.get(key.MERGE_STRATEGY)
        return (
            builtin if java_class else None,
            properties.get(key.MERGE_MODE) or None,
            _BY_STRATEGY.get(strategy, CUSTOM) if strategy else None,
        )


class ByClass(ByPayload):
    """Version 6: the payload class decides, unless the properties name a strategy of the user.

    A class with ordering fields of its own does not count: the table's delete blocks have the value of another field.
    """

    keeps_mode: bool = False
    keeps_partial_updates: bool = True
    class_alone_decides: bool = True

    def deciding(self, properties: Mapping[str, str]) -> Payload | None:
        payload = self.payload(properties)
        return None if payload is None or payload.ordering_fields else payload

    def of_new_table(self, mode: str | None, payload: Payload | None, ordering_fields: Sequence[str]) -> dict[str, str]:
        """Return the class that decides, by default that of the mode, and the strategy that goes with every class."""
        mode = mode or default_merge_mode(ordered=bool(ordering_fields))
        deciding = payload or PAYLOADS[DEFAULT_PAYLOADS[mode]]
        return {
            **_ordering(key.PRECOMBINE_FIELD, ordering_fields),
            # Apache Hudi has the same strategy beside each class.
            key.OLD_MERGE_STRATEGY: STRATEGIES[EVENT_TIME_ORDERING],
            key.PAYLOAD_CLASS: deciding.java_class,
        }

    def lacks_rule(self, properties: Mapping[str, str]) -> bool:
        return not properties.get(key.PAYLOAD_CLASS) and not _runs_own_class(properties)

    def _named_modes(self, properties: Mapping[str, str]) -> tuple[str | None, ...]:
        """Return the merge mode by payload class, mode and the user's strategy; None for each that is not set."""
        deciding = self.deciding(properties)
        return (
            (CUSTOM if deciding is None else deciding.merge_mode) if properties.get(key.PAYLOAD_CLASS) else None,
            properties.get(key.MERGE_MODE) or None,
            CUSTOM if _runs_own_class(properties) else None,
        )


def own_strategy(properties: Mapping[str, str], option: str = key.OLD_MERGE_STRATEGY) -> str | None:
    """Return the strategy of a property if it runs a class of the user; None for one of Apache Hudi's own."""
    strategy = properties.get(option)
    return None if strategy in {*_BY_STRATEGY, STRATEGY_OF_PAYLOADS} else strategy or None


def _runs_own_class(properties: Mapping[str, str]) -> bool:
    """Return whether a table of version 6 merges by a class of the user; 1.x names its strategy by the newer key."""
    return any(own_strategy(properties, option) for option in (key.OLD_MERGE_STRATEGY, key.MERGE_STRATEGY))


def merge_properties(version: int) -> MergeProperties:
    """Return the rules of a table version."""
    if version >= key.NEWEST_VERSION:
        return _BY_MODE
    return _BY_CLASS if version <= key.NEWEST_FLAT_VERSION else _BY_PAYLOAD


def marker_properties(field: str | None, value: str | None) -> dict[str, str]:
    """Return the properties of a delete marker; empty without both a field and a value."""
    return {key.DELETE_FIELD: field, key.DELETE_MARKER: value} if field and value else {}


def default_merge_mode(*, ordered: bool) -> str:
    """Return Apache Hudi's merge mode for a table with or without ordering fields."""
    return EVENT_TIME_ORDERING if ordered else COMMIT_TIME_ORDERING


def _ordering(option: str, fields: Sequence[str]) -> dict[str, str]:
    return {option: ",".join(fields)} if fields else {}


_BY_MODE, _BY_PAYLOAD, _BY_CLASS = ByMode(), ByPayload(), ByClass()
