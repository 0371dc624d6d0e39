"""Properties that an existing table lacks: a write takes them from its options or from files of the table.

The write notes them in the table, so that later writes find them among the properties.
"""

from __future__ import annotations

from ...errors import MissingOptionError, OptionConflictError, UnsupportedOptionError
from ...table.config import TableConfig
from ...table.config.merge_properties import DEFAULT_PAYLOADS
from ...table.config.payloads import PAYLOADS, Payload
from ...table.config.property_keys import EVENT_TIME_ORDERING
from ...table.config.property_keys import PAYLOAD_CLASS as NOTED
from ...table.config.table_settings import TERMS, TableSettings
from ...table.infer_merge_rule import InferredRule, infer_merge_rule
from ...table.table import Table
from .table_terms import PAYLOAD_CLASS

_MERGE_MODE = TERMS["merge_mode"].option


def with_partition_types(table: Table, asked: TableSettings) -> TableConfig:
    """Return the table's properties with the types of its partition fields, if its key generator has types.

    Tables of version 6 do not store them; each writer of Apache Hudi gets them by an option.
    """
    config = table.config
    if not config.lacks_partition_types:
        return config
    fields, types = config.partition_fields, asked.partition_types or ()
    if len(types) != len(fields) or asked.partition_fields != fields:
        examples = ",".join(f"{field}:SIMPLE or {field}:TIMESTAMP" for field in fields)
        raise MissingOptionError(
            f"The table {table.path} has the key generator CUSTOM, and does not store which of its partition fields "
            f"{', '.join(fields)} are times.",
            f"Give {TERMS['partition_types'].option} once as the table's writers do, of {examples}; pyhudi notes it in "
            "the table.",
        )
    return config.with_partition_types(types)


def with_merge_rule(table: Table, asked: TableSettings) -> tuple[TableConfig, tuple[str, ...]]:
    """Return the table's properties with the payload class that they lack, and a notice if no option decides it.

    Without an ordering field the newest row wins in each release of Apache Hudi, and the write notes nothing.
    """
    config = table.config
    if not config.lacks_merge_rule:
        return config, ()
    if asked.payload is not None or asked.merge_mode is not None:
        return config.with_payload(_payload_of_options(table, asked)), ()
    if not config.ordering_fields:
        return config, ()
    inferred = infer_merge_rule(table)
    return config.with_payload(inferred.payload), (_notice(table, inferred),)


def _payload_of_options(table: Table, asked: TableSettings) -> Payload:
    payload = asked.payload or PAYLOADS.get(DEFAULT_PAYLOADS.get(asked.merge_mode or "", ""))
    if payload is None:
        raise UnsupportedOptionError(
            f"{_MERGE_MODE}={asked.merge_mode} is given for the table {table.path}, which notes no payload class yet.",
            f"Use {' or '.join(DEFAULT_PAYLOADS)}.",
        )
    if payload.ordering_fields:
        raise UnsupportedOptionError(
            f"{PAYLOAD_CLASS}={payload.name} is given for the table {table.path}. In tables of version "
            f"{table.config.version} pyhudi does not merge by this class, which orders rows by "
            f"{', '.join(payload.ordering_fields)}.",
            "Write the table with Apache Hudi, or upgrade it: HudiTable.upgrade.",
        )
    if payload.merge_mode == EVENT_TIME_ORDERING and not table.config.ordering_fields:
        option = PAYLOAD_CLASS if asked.payload is not None else _MERGE_MODE
        raise OptionConflictError(
            f"{option} asks for the row with the greatest ordering value, and the table {table.path} has no ordering "
            "field.",
            "Leave the option out: the newest row wins.",
        )
    return payload


def _notice(table: Table, inferred: InferredRule) -> str:
    by = ", ".join(table.config.ordering_fields)
    greatest, newest = f"the row with the greatest {by} wins", f"the newest row wins, whatever its {by}"
    wins, other, otherwise = greatest, newest, "OverwriteWithLatestAvroPayload"
    if inferred.payload.merge_mode != EVENT_TIME_ORDERING:
        wins, other, otherwise = newest, greatest, "DefaultHoodieRecordPayload"
    return (
        f"The table {table.path} does not say which of two rows with one key wins. {wins[0].upper()}{wins[1:]}, as in "
        f"{inferred.release}, which wrote it last. The write notes that as {NOTED}="
        f"{inferred.payload.java_class}, which Apache Hudi obeys, too. So that {other}, give "
        f"{PAYLOAD_CLASS}={otherwise} with the first write, or change the property."
    )
