"""The properties that differ between versions of a table: what an upgrade or a downgrade sets and removes.

Source: ``EightToNineUpgradeHandler`` and ``NineToEightDowngradeHandler`` of Apache Hudi 1.2.0, and the properties of
tables that it upgraded and downgraded (tests/fixtures/versions).
"""

from __future__ import annotations

from collections.abc import Iterator

from . import property_keys as key
from .merge_properties import DEFAULT_PAYLOADS, STRATEGIES, STRATEGY_OF_PAYLOADS, marker_properties, own_strategy
from .payloads import PAYLOADS, Payload
from .property_keys import COMMIT_TIME_ORDERING, CUSTOM, EVENT_TIME_ORDERING, FILL_UNAVAILABLE
from .table_config import TableConfig

Changes = dict[str, str | None]

_BUILTIN = (EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING)
# Apache Hudi sets a merge mode for all payload classes but these two, whose tables have it.
_HAVE_THEIR_MODE = frozenset(DEFAULT_PAYLOADS.values())
_MYSQL, _ORDER_OF_MYSQL = "MySqlDebeziumAvroPayload", "_event_seq"


def changes_to_9(config: TableConfig) -> Changes:
    """Return what changes in the properties of a table of version 8 that becomes one of version 9; None removes."""
    mode = _named_mode(config)
    changes: Changes = {key.VERSION: "9", key.MERGE_MODE: mode, key.MERGE_STRATEGY: None}
    ordering, payload = config.ordering_fields, config.payload
    if payload is not None:
        changes |= {key.LEGACY_PAYLOAD_CLASS: config.properties[key.PAYLOAD_CLASS], key.PAYLOAD_CLASS: None}
        ordering = payload.ordering_fields or ordering
        if payload.name not in _HAVE_THEIR_MODE:
            strategy = STRATEGIES[payload.merge_mode]
            # Apache Hudi sets the older name of the key beside the new name, and never removes it.
            changes |= {
                key.MERGE_MODE: payload.merge_mode,
                key.OLD_MERGE_STRATEGY: strategy,
                **dict(_properties_of_payload(payload)),
            }
            changes |= {} if mode in _BUILTIN else {key.MERGE_STRATEGY: strategy}
    return changes | {key.ORDERING_FIELDS: ",".join(ordering) or None, key.PRECOMBINE_FIELD: None}


def changes_from_6_to_9(config: TableConfig) -> Changes:
    """Return what changes in the properties of a table of version 6 that becomes one of version 9; None removes."""
    to_version_8 = changes_from_6_to_8(config)
    # Version 9 names the class of version 6, which version 8 may not.
    payload_class = config.properties.get(key.PAYLOAD_CLASS) or to_version_8[key.PAYLOAD_CLASS]
    merged = {**config.properties, **to_version_8, key.PAYLOAD_CLASS: payload_class}
    to_version_9 = changes_to_9(TableConfig({option: text for option, text in merged.items() if text is not None}))
    return to_version_8 | to_version_9 | {key.MERGE_STRATEGY: None}


def changes_from_6_to_8(config: TableConfig) -> Changes:
    """Return what changes in the properties of a table of version 6 that becomes one of version 8; None removes.

    Copy-on-write tables name no payload class, and Apache Hudi 1.x orders the rows of a key by the ordering field. The
    newest row wins if there is none. So it does on merge-on-read tables, but for classes that mean more than a
    merge mode: `OverwriteWithLatestAvroPayload`, which 0.15 names by default, gives way to the ordering field.
    """
    payload_class, ordering = config.properties.get(key.PAYLOAD_CLASS), ",".join(config.ordering_fields)
    payload = config.payload
    if payload is None or (payload.is_plain and ordering):
        payload = PAYLOADS[DEFAULT_PAYLOADS[EVENT_TIME_ORDERING if ordering else COMMIT_TIME_ORDERING]]
        payload_class = payload.java_class
    mode = payload.merge_mode if payload.is_plain else CUSTOM
    strategy = STRATEGIES.get(mode, STRATEGY_OF_PAYLOADS)
    return {
        key.VERSION: "8",
        key.INITIAL_VERSION: str(config.version),
        key.LAYOUT_VERSION: str(key.NEWEST_LAYOUT),
        key.TIMELINE_PATH: config.properties.get(key.TIMELINE_PATH) or "timeline",
        key.KEY_GENERATOR_TYPE: config.properties.get(key.KEY_GENERATOR_TYPE) or config.key_generator.value,
        # Apache Hudi leaves both, also if 1.2 made the table with the type alone.
        key.KEY_GENERATOR_CLASS: config.properties.get(key.KEY_GENERATOR_CLASS) or config.key_generator.java_class,
        key.MERGE_MODE: mode,
        key.MERGE_STRATEGY: strategy,
        key.OLD_MERGE_STRATEGY: strategy,
        key.PAYLOAD_CLASS: payload_class or payload.java_class,
        key.PRECOMBINE_FIELD: ordering or None,
        key.ORDERING_FIELDS: None,
    }


def changes_to_8(config: TableConfig) -> Changes:
    """Return what changes in the properties of a table of version 9 that becomes one of version 8; None removes.

    Unlike Apache Hudi it names a payload class if the table names none, or one of another merge mode: in version 8
    the two have to agree.
    """
    mode, payload = config.merge_mode, config.payload
    payload_class = config.properties.get(key.LEGACY_PAYLOAD_CLASS)
    if payload is None or (payload.is_plain and payload.merge_mode != mode):
        payload = PAYLOADS[DEFAULT_PAYLOADS[mode]]
        payload_class = payload.java_class
    mode = mode if payload.is_plain else CUSTOM
    strategy = STRATEGIES.get(mode, STRATEGY_OF_PAYLOADS)
    # Version 8 has one ordering field, which for this class is none of version 9's.
    ordering = _ORDER_OF_MYSQL if payload.name == _MYSQL else ",".join(config.ordering_fields)
    return {
        key.VERSION: "8",
        key.MERGE_MODE: mode,
        key.MERGE_STRATEGY: strategy,
        key.OLD_MERGE_STRATEGY: strategy,
        key.PAYLOAD_CLASS: payload_class,
        key.LEGACY_PAYLOAD_CLASS: None,
        key.PARTIAL_UPDATE_MODE: None,
        **{option: None for option in config.properties if option.startswith(key.MERGE_PROPERTY_PREFIX)},
        key.PRECOMBINE_FIELD: ordering or None,
        key.ORDERING_FIELDS: None,
    }


def lost_in_9(config: TableConfig) -> Iterator[tuple[str, str]]:
    """Yield the properties of a table of version 8, with their values, for which version 9 has no merge mode."""
    payload_class, payload = config.properties.get(key.PAYLOAD_CLASS), config.payload
    if payload_class and payload is None:
        yield key.PAYLOAD_CLASS, payload_class
    elif (payload is None or payload.name in _HAVE_THEIR_MODE) and _named_mode(config) not in _BUILTIN:
        yield key.MERGE_MODE, _named_mode(config)


def lost_from_6(config: TableConfig) -> Iterator[tuple[str, str]]:
    """Yield the properties of a table of version 6, with their values, for which later versions have no merge mode."""
    payload_class = config.properties.get(key.PAYLOAD_CLASS)
    if payload_class and config.payload is None:
        yield key.PAYLOAD_CLASS, payload_class
    for option in (key.OLD_MERGE_STRATEGY, key.MERGE_STRATEGY):
        strategy = own_strategy(config.properties, option)
        if strategy is not None:
            yield option, strategy
    if len(config.ordering_fields) > 1:
        yield key.ORDERING_FIELDS, ",".join(config.ordering_fields)


def lost_in_8(config: TableConfig) -> Iterator[tuple[str, str]]:
    """Yield the properties of a table of version 9, with their values, that version 8 cannot say."""
    mode, payload = config.merge_mode, config.payload
    payload_class = config.properties.get(key.LEGACY_PAYLOAD_CLASS)
    if mode not in _BUILTIN or (payload_class and payload is None):
        yield (key.MERGE_MODE, mode) if mode not in _BUILTIN else (key.LEGACY_PAYLOAD_CLASS, str(payload_class))
        return
    # What the class stands for needs no property of its own in version 8.
    expected = {} if payload is None else dict(_properties_of_payload(payload))
    # The ordering fields that the class has, whatever the properties say.
    fixed = () if payload is None else payload.ordering_fields
    if len(config.ordering_fields) > 1 and config.ordering_fields != fixed:
        yield key.ORDERING_FIELDS, ",".join(config.ordering_fields)
    if payload is not None and not payload.is_plain and mode != payload.merge_mode:
        yield key.MERGE_MODE, f"{mode} beside {key.LEGACY_PAYLOAD_CLASS}={payload_class}"
    for option, text in config.properties.items():
        decides = option == key.PARTIAL_UPDATE_MODE or option.startswith(key.MERGE_PROPERTY_PREFIX)
        if decides and text not in {"NONE", expected.get(option)}:
            yield option, text


def _named_mode(config: TableConfig) -> str:
    """Return the merge mode by its own property, which decides even if a payload class contradicts it."""
    return config.properties.get(key.MERGE_MODE) or config.merge_mode


def _properties_of_payload(payload: Payload) -> Iterator[tuple[str, str]]:
    """Yield the properties of version 9 that a payload class stands for beside its merge mode."""
    if payload.partial_update_mode is not None:
        yield key.PARTIAL_UPDATE_MODE, payload.partial_update_mode
    if payload.delete_marker is not None:
        yield from marker_properties(payload.delete_marker.field, payload.delete_marker.value).items()
    if payload.partial_update_mode == FILL_UNAVAILABLE:
        yield key.UNAVAILABLE_VALUE, key.UNAVAILABLE_OF_DEBEZIUM
