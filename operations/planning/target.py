"""The table of a write, as it is or as the write will make it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import MissingOptionError, OptionConflictError, TableNotFoundError, UnsupportedOptionError
from ...index.registry import index_for
from ...index.settings import LookupSettings
from ...index.unnoted import unknown_index
from ...storage.base import Storage
from ...storage.kept import keep
from ...table.buckets.numbers import BucketNumbers, bucket_numbers, refuse_unknown
from ...table.buckets.recorded_by_hudi import has_bucket_rules
from ...table.config import TableConfig, check_supported, load_config
from ...table.config.merge_properties import DEFAULT_PAYLOADS
from ...table.config.payloads import PAYLOADS, Payload
from ...table.config.property_keys import (
    BUCKET,
    BUCKET_COUNT,
    EVENT_TIME_ORDERING,
    GLOBAL_SIMPLE,
    INDEX_TYPE,
    RECORD_INDEX_LOOKUP,
    SIMPLE,
)
from ...table.config.property_keys import PAYLOAD_CLASS as NOTED
from ...table.config.table_settings import TERMS, TableSettings
from ...table.inferred.index import infer_index, is_unnoted
from ...table.inferred.key_encoding import with_inferred_key_encoding
from ...table.inferred.merge_rule import InferredRule, infer_merge_rule
from ...table.inferred.zone import infer_zone
from ...table.left_behind import refuse_instants_left_by_upgrade, refuse_other_creation
from ...table.table import Table
from .adopted_table import AdoptedTable
from .new_table import NewTable
from .operation import (
    DELETE,
    DELETE_PARTITION,
    OVERWRITE_TABLE,
    UPSERT,
    Operation,
    asks_for_generated_keys,
    choose_operation,
)
from .request import WriteRequest, WriteSettings
from .table_terms import PAYLOAD_CLASS

_MERGE_MODE = TERMS["merge_mode"].option


def with_partition_types(table: Table, settings: TableSettings) -> TableConfig:
    """Return the table's properties with the types of its partition fields, if its key generator has types.

    Tables of version 6 do not store them; each writer of Apache Hudi gets them by an option.
    """
    config = table.config
    if not config.lacks_partition_types:
        return config
    fields, types = config.partition_fields, settings.partition_types or ()
    if len(types) != len(fields) or settings.partition_fields != fields:
        examples = ",".join(f"{field}:SIMPLE or {field}:TIMESTAMP" for field in fields)
        raise MissingOptionError(
            f"The table {table.path} has the key generator CUSTOM, and does not store which of its partition fields "
            f"{', '.join(fields)} are times.",
            f"Give {TERMS['partition_types'].option} once as the table's writers do, of {examples}; pyhudi notes it in "
            "the table.",
        )
    return config.with_partition_types(types)


def with_merge_rule(table: Table, settings: TableSettings) -> tuple[TableConfig, tuple[str, ...]]:
    """Return the table's properties with the payload class that they lack, and a notice if it is inferred.

    Without an ordering field the newest row wins in each release of Apache Hudi, and the write notes nothing.
    """
    config = table.config
    if not config.lacks_merge_rule:
        return config, ()
    if settings.payload is not None or settings.merge_mode is not None:
        return config.with_payload(_payload_of_options(table, settings)), ()
    if not config.ordering_fields:
        return config, ()
    inferred = infer_merge_rule(table)
    return config.with_payload(inferred.payload), (_notice_of_merge_rule(table, inferred),)


def _payload_of_options(table: Table, settings: TableSettings) -> Payload:
    """Return the payload class that the options name, by the class or by the merge mode.

    Raises if pyhudi does not merge by it, or it needs an ordering field that the table lacks.
    """
    payload = settings.payload or PAYLOADS.get(DEFAULT_PAYLOADS.get(settings.merge_mode or "", ""))
    if payload is None:
        raise UnsupportedOptionError(
            f"{_MERGE_MODE}={settings.merge_mode} is given for the table {table.path}, which notes no payload class "
            "yet.",
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
        option = PAYLOAD_CLASS if settings.payload is not None else _MERGE_MODE
        raise OptionConflictError(
            f"{option} asks for the row with the greatest ordering value, and the table {table.path} has no ordering "
            "field.",
            "Leave the option out: the newest row wins.",
        )
    return payload


def _notice_of_merge_rule(table: Table, inferred: InferredRule) -> str:
    """Return the notice that the write notes an inferred merge rule, and how to choose the other rule."""
    fields = ", ".join(table.config.ordering_fields)
    greatest, newest = f"the row with the greatest {fields} wins", f"the newest row wins, whatever its {fields}"
    wins, other_rule, other_class = greatest, newest, "OverwriteWithLatestAvroPayload"
    if inferred.payload.merge_mode != EVENT_TIME_ORDERING:
        wins, other_rule, other_class = newest, greatest, "DefaultHoodieRecordPayload"
    return (
        f"The table {table.path} does not say which of two rows with one key wins. {wins[0].upper()}{wins[1:]}, as in "
        f"{inferred.release}, which wrote it last. The write notes that as {NOTED}="
        f"{inferred.payload.java_class}, which Apache Hudi obeys, too. So that {other_rule}, give "
        f"{PAYLOAD_CLASS}={other_class} with the first write, or change the property."
    )


logger = logging.getLogger("pyhudi")

# The paths of tables for which this process has logged that their index is unknown.
_LOGGED: dict[str, bool] = {}
_MOST_LOGGED = 1024


@dataclass(frozen=True, slots=True)
class Target:
    """The table of a write.

    Attributes:
        exists: Whether the table exists before the write.
        changes: Properties that the write's commit adds to an existing table.
        inferred: Whether only the names of its file groups say which index it has.
        unnoted: Whether nothing says if its keys are unique in the whole table or only within their partitions: another
            engine made it, with partitions, and noted no index.
        notices: A sentence for each option of the write that has no effect, and for each property that the write notes
            without an option.
    """

    table: Table
    exists: bool
    changes: Mapping[str, str]
    operation: Operation
    inferred: bool = False
    unnoted: bool = False
    notices: tuple[str, ...] = ()

    @property
    def config(self) -> TableConfig:
        return self.table.config

    def lookup(self, settings: LookupSettings) -> LookupSettings:
        """Return how the write looks keys up: upserts and deletes search all partitions if the index is unknown."""
        unnoted = self.unnoted and self.operation.name in {UPSERT, DELETE}
        return replace(settings, unnoted=True) if unnoted else settings


def find_target(request: WriteRequest, storage: Storage, *, creates: bool = True) -> Target:
    """Return the table of a write after a check of the options.

    ``storage`` is the store at the path of the ``request``. If there is no table, the target is the table that the
    write makes; but without ``creates``, or for a delete, that raises TableNotFoundError. Raises other errors of pyhudi
    if options contradict each other or the table, or if pyhudi cannot write the table.
    """
    try:
        stored = load_config(storage)
    except TableNotFoundError:
        if not creates:
            raise
        keyless = asks_for_generated_keys(request)
        operation = choose_operation(request, generates_keys=keyless)
        if operation.name in {DELETE, DELETE_PARTITION}:
            raise
        stored = None
    if stored is None:
        new_config = NewTable(request.table, storage.path).config(generates_keys=keyless)
        table = Table.of(storage, new_config)
        refuse_other_creation(table)
        return Target(table, False, {}, operation)
    operation = choose_operation(request, generates_keys=stored.generates_keys)
    check_supported(stored, storage.path, writing=True)
    refuse_instants_left_by_upgrade(Table(storage, stored))
    typed = Table(storage, with_partition_types(Table(storage, stored), request.table))
    with_encoding = with_inferred_key_encoding(typed).config
    # A delete of partitions merges no rows, and notes nothing.
    merged, merge_notices = (
        (with_encoding, ())
        if operation.name == DELETE_PARTITION
        else with_merge_rule(Table(storage, with_encoding), request.table)
    )
    inferred_zone = infer_zone(typed, request.table.time_options)
    settings, notices = with_number_by_rule(Table(storage, stored), request.table)
    settings = replace(settings, time_options={**request.table.time_options, **inferred_zone})
    config, changes = AdoptedTable(settings, storage.path).changes_to(
        merged, lambda: infer_index(Table(storage, stored)), rewrites=operation.name == OVERWRITE_TABLE
    )
    if config.index_type not in {None, BUCKET}:
        # This raises if no installed package offers the index.
        index_for(config, request.write.lookup)
    # A delete of partitions reads no key that could contradict a number of buckets.
    noted_properties = {option: text for option, text in merged.properties.items() if option not in stored.properties}
    changes = {} if operation.name == DELETE_PARTITION else {**noted_properties, **changes}
    # Once the write notes an index, the names of file groups do not count any more.
    inferred = is_unnoted(stored) and not {INDEX_TYPE, RECORD_INDEX_LOOKUP} & changes.keys()
    unnoted = inferred and config.index_type == SIMPLE and bool(config.partition_fields)
    target = Target(Table.of(storage, config), True, changes, operation, inferred, unnoted, (*merge_notices, *notices))
    if target.lookup(request.write.lookup).unnoted:
        _log_unknown_index(target, request.write)
    return target


def _log_unknown_index(target: Target, settings: WriteSettings) -> None:
    """Log once in this process that the index is unknown. Raises `MissingOptionError` for a batch of a stream.

    Else a later batch could end a stream that has run for long.
    """
    path = target.table.path
    if settings.is_batch:
        raise unknown_index("A stream asks for the index before its first batch", path)
    if path not in _LOGGED:
        keep(_LOGGED, path, True, _MOST_LOGGED)
        logger.warning(
            "table %s: notes no index, so that writes look in all partitions for keys that their own partition lacks; "
            "say once %s=%s if its keys are unique in the whole table, or %s if they are within their partitions",
            path,
            INDEX_TYPE,
            GLOBAL_SIMPLE,
            SIMPLE,
        )


def check_numbers(request: WriteRequest, target: Target, numbers: BucketNumbers | None) -> tuple[str, ...]:
    """Refuse a write if the number of buckets for its rows is unknown, or its options contradict that number.

    Returns a notice if a rescale has overruled the options.
    """
    if numbers is None or target.operation.name == DELETE_PARTITION:
        return ()
    refuse_unknown(numbers)
    asked_count = request.table.bucket_count
    if asked_count is None or asked_count == numbers.default:
        return ()
    if numbers.by_rescale:
        return (_notice_of_rescale(target.table, asked_count, numbers),)
    rule = "" if numbers.rule is None else numbers.rule.instant_time
    raise OptionConflictError(
        f"{BUCKET_COUNT} is {asked_count} here, and the partitions of the table {target.table.path} have "
        f"{numbers.default} buckets by the rule of the instant {rule}, if no expression says otherwise.",
        "Leave the option out: after creation a write needs none.",
    )


def with_number_by_rule(table: Table, settings: TableSettings) -> tuple[TableSettings, tuple[str, ...]]:
    """Return the options of a write with the number of buckets that counts for the table, and notices.

    Rule files in ``.hoodie/.bucket_index`` state numbers of buckets. If the properties lack a number, the options get
    that of the rules. A number of the options that only the properties contradict is dropped, because they may be older
    than the rules. A number that a rescale has overruled is dropped with a notice, because a job with the old number
    must not fail for the rescale. Otherwise the options stay as they are.
    """
    stored_count, asked_count = table.config.bucket_count, settings.bucket_count
    if is_unnoted(table.config):
        if not has_bucket_rules(table.storage):
            return settings, ()
        if settings.index_type not in {None, BUCKET}:
            raise OptionConflictError(
                f"{INDEX_TYPE} is {settings.index_type} here, and rule files in .hoodie/.bucket_index say how many "
                f"buckets the partitions of the table {table.path} have.",
                "Leave the option out.",
            )
        numbers = bucket_numbers(table, table.timeline())
        if asked_count is None:
            refuse_unknown(numbers)
        if asked_count is not None and not (numbers.by_rescale and asked_count != numbers.default):
            return settings, ()
        notices = () if asked_count is None else (_notice_of_rescale(table, asked_count, numbers),)
        return replace(settings, bucket_count=numbers.default), notices
    if asked_count in {None, stored_count} or table.config.index_type != BUCKET:
        return settings, ()
    numbers = bucket_numbers(table, table.timeline())
    without_count = replace(settings, bucket_count=None)
    if numbers.by_rule and numbers.default == asked_count:
        return without_count, ()
    if asked_count and numbers.by_rescale:
        return without_count, (_notice_of_rescale(table, asked_count, numbers),)
    return settings, ()


def _notice_of_rescale(table: Table, asked_count: int, numbers: BucketNumbers) -> str:
    """Return the notice that the option names a number of buckets from before a rescale, and has no effect."""
    rule = "" if numbers.rule is None else numbers.rule.instant_time
    return (
        f"{BUCKET_COUNT} is {asked_count} here, and the rescale {rule} gave the table {table.path} {numbers.default} "
        "buckets, which count. Leave the option out."
    )
