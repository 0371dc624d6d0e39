"""The operation of Apache Hudi that a write carries out, and how its rows meet each other and the stored rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ...errors import InvalidOptionError, OptionConflictError
from ...index.registry import index_for
from ...table.config import TableConfig
from ...table.merging.merger import MergeRules, RowMeeting
from ..write_settings import KeySettings
from .request import WriteRequest

logger = logging.getLogger("pyhudi")

INSERT, BULK_INSERT, UPSERT, DELETE = "INSERT", "BULK_INSERT", "UPSERT", "DELETE"
OVERWRITE, OVERWRITE_TABLE, DELETE_PARTITION = "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"
REPLACING = frozenset({OVERWRITE, OVERWRITE_TABLE, DELETE_PARTITION})

_POLICIES = {"drop": RowMeeting.DROP, "fail": RowMeeting.FAIL}
_DUP_POLICY = "hoodie.datasource.insert.dup.policy"


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of one write; ``sorts`` says whether the write may choose the order of rows in a file."""

    name: str
    rules: MergeRules
    sorts: bool = False

    @property
    def breaks_ties(self) -> bool:
        """Whether the order of two incoming rows may decide which of them wins."""
        return self.rules.fold and self.name not in {DELETE, DELETE_PARTITION}


def opens_alone(operation: str, rules: MergeRules, config: TableConfig) -> bool:
    """Return whether each task writes to new file groups of its own, to which no other task adds rows.

    It does so if the write looks up no row and keeps all rows of one key. The tasks of an insert of keyed rows fill
    small files together.
    """
    if config.generates_keys:
        return operation != DELETE
    if rules.meeting is not RowMeeting.ADD or rules.fold or operation in {INSERT, DELETE_PARTITION}:
        return False
    return index_for(config).needs_lookup and not keeps_keys_unique(operation, config)


def keeps_keys_unique(operation: str, config: TableConfig) -> bool:
    """Return whether a write that replaces partitions must not leave a key of its rows in another partition."""
    return operation == OVERWRITE and not config.generates_keys and index_for(config).is_global


def asks_for_generated_keys(request: WriteRequest) -> bool:
    """Return whether a write that creates its table asks for generated keys: it names no key, and only inserts."""
    return not request.table.record_key_fields and (request.operation or "").upper() in {INSERT, BULK_INSERT}


def choose_operation(request: WriteRequest, *, generates_keys: bool = False) -> Operation:
    """Return the operation of a write, by its option, its mode and the options for rows with existing keys.

    ``generates_keys`` says that the table makes a key for each row, so that a write finds no row by a key of its own.
    Raises OptionConflictError if the options contradict each other, or the table's generated keys.
    """
    keys = request.write.keys
    asked_operation = (request.operation or _default_operation(request, generates_keys=generates_keys)).upper()
    if generates_keys:
        return _operation_without_keys(request, asked_operation)
    policy = _dup_policy(keys)
    if asked_operation == UPSERT and policy is not None and not request.overwrite:
        logger.warning("%s asks for an insert, so that the upsert of %s becomes one", _DUP_POLICY, request.path)
        asked_operation = INSERT
    if asked_operation == BULK_INSERT and policy is not None:
        raise OptionConflictError(
            f"{_DUP_POLICY} and hoodie.datasource.write.insert.drop.duplicates are about the operation insert; a "
            "bulk_insert looks no key up.",
            "Use the operation insert, or leave the option out.",
        )
    _refuse_no_partitions(request, asked_operation)
    name = _in_mode_overwrite(asked_operation) if request.overwrite else asked_operation
    if name in REPLACING:
        # Readers skip the replaced rows, so the incoming rows meet only each other.
        fold = keys.combine_before_upsert if asked_operation == UPSERT else keys.combine_before_insert
        rules = MergeRules(RowMeeting.ADD, fold=fold)
    elif name == BULK_INSERT:
        rules = MergeRules(RowMeeting.ADD, fold=keys.combine_before_insert)
    elif name == INSERT:
        rules = _insert_rules(keys, policy)
    else:
        rules = MergeRules(must_find=name == DELETE and not keys.delete_missing_ok)
    return Operation(name, rules, sorts=asked_operation == BULK_INSERT)


def _operation_without_keys(request: WriteRequest, asked_operation: str) -> Operation:
    """Return the operation of a write to a table with generated keys, which has no upserts and finds no duplicates.

    Raises OptionConflictError for an upsert, and for options that look for rows of one key.
    """
    if asked_operation == UPSERT:
        raise OptionConflictError(
            f"The table {request.path} generates its keys, so that no row of an upsert could be found in it.",
            "Use the operation insert or bulk_insert; or make a table with hoodie.datasource.write.recordkey.field.",
        )
    keys = request.write.keys
    if keys.combine_before_insert or _dup_policy(keys) is not None:
        raise OptionConflictError(
            f"The table {request.path} generates its keys, so that no two rows share a key: there is nothing for "
            "hoodie.combine.before.insert, hoodie.datasource.write.insert.drop.duplicates and "
            f"{_DUP_POLICY} to find.",
            "Leave these options out.",
        )
    _refuse_no_partitions(request, asked_operation)
    name = _in_mode_overwrite(asked_operation) if request.overwrite else asked_operation
    rules = (
        MergeRules(must_find=not keys.delete_missing_ok) if name == DELETE else MergeRules(RowMeeting.ADD, fold=False)
    )
    return Operation(name, rules, sorts=asked_operation == BULK_INSERT)


def _refuse_no_partitions(request: WriteRequest, asked_operation: str) -> None:
    """Refuse a delete of partitions whose option names an empty list of partitions."""
    if asked_operation == DELETE_PARTITION and request.write.replacement.partitions_to_delete == ():
        raise InvalidOptionError(
            f"hoodie.datasource.write.partitions.to.delete names no partition of the table {request.path}.",
            "Name partition paths, * for all, or leave the option out to delete the partitions of the rows.",
        )


def _default_operation(request: WriteRequest, *, generates_keys: bool) -> str:
    """Return an operation's name for a write that names none: by its mode, and by whether keys are generated."""
    if not request.overwrite:
        return "insert" if generates_keys else "upsert"
    return "insert_overwrite" if request.write.replacement.overwrite_mode == "dynamic" else "insert_overwrite_table"


def _dup_policy(keys: KeySettings) -> RowMeeting | None:
    """Return what an insert does with a row whose key exists: drop it or fail; None if it keeps both rows."""
    policy = _POLICIES.get(keys.insert_dup_policy)
    return RowMeeting.DROP if policy is None and keys.insert_drop_duplicates else policy


def _in_mode_overwrite(asked_operation: str) -> str:
    """Return the operation in mode overwrite, which replaces the table, or its partitions if the operation says so.

    Raises OptionConflictError for an operation that only deletes.
    """
    if asked_operation in {DELETE, DELETE_PARTITION}:
        raise OptionConflictError(
            f"The operation {asked_operation.lower()} cannot be combined with mode overwrite, which replaces the "
            "whole table.",
            f'Use mode("append") with the operation {asked_operation.lower()}.',
        )
    return asked_operation if asked_operation == OVERWRITE else OVERWRITE_TABLE


def _insert_rules(keys: KeySettings, policy: RowMeeting | None) -> MergeRules:
    """Return how the rows of an insert meet rows with their keys: by the policy, as further rows, or merged.

    ``policy`` says to drop such rows or to fail; None if the options name no policy.
    """
    if policy is not None:
        return MergeRules(policy, fold=keys.combine_before_insert)
    if keys.allow_duplicates_on_insert:
        return MergeRules(RowMeeting.ADD, fold=keys.combine_before_insert)
    return MergeRules()
