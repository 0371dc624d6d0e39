"""Which of Apache Hudi's operations a write carries out, and how its rows meet one another and those that are there."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..errors import InvalidOptionError, OptionConflictError, UnsupportedOptionError
from ..writer.merge import Meeting, MergeRules
from .settings import WriteRequest, WriteSettings

logger = logging.getLogger("pyhudi")

INSERT, BULK_INSERT, UPSERT, DELETE = "INSERT", "BULK_INSERT", "UPSERT", "DELETE"
OVERWRITE, OVERWRITE_TABLE, DELETE_PARTITION = "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"
REPLACING = frozenset({OVERWRITE, OVERWRITE_TABLE, DELETE_PARTITION})

_POLICIES = {"drop": Meeting.DROP, "fail": Meeting.FAIL}
_DUP_POLICY = "hoodie.datasource.insert.dup.policy"


@dataclass(frozen=True, slots=True)
class Operation:
    """What one write does.

    Attributes:
        name: Hudi's name.
        rules: How incoming rows meet one another and the rows that are there.
        sorts: Whether the order of rows in a file is the write's to choose.
    """

    name: str
    rules: MergeRules
    sorts: bool = False


def choose_operation(request: WriteRequest) -> Operation:
    """Return what the write does.

    Raises:
        UnsupportedOptionError: pyhudi does not do the operation, or a setting of it.
        InvalidOptionError: Partitions are to be deleted, and none is named.
        OptionConflictError: The operation does not go with the mode, or with another option.
    """
    settings = request.write
    if settings.bloom_filter:
        raise UnsupportedOptionError(
            "hoodie.parquet.bloom.filter.enabled=true is not done by pyhudi yet; the bucket index needs none.",
            "Leave the option out.",
        )
    asked = (request.operation or _default(request)).upper()
    policy = _dup_policy(settings)
    if asked == UPSERT and policy is not None and not request.overwrite:
        logger.warning("%s asks for an insert, so that the upsert of %s becomes one", _DUP_POLICY, request.path)
        asked = INSERT
    if asked == BULK_INSERT and policy is not None:
        raise OptionConflictError(
            f"{_DUP_POLICY} and hoodie.datasource.write.insert.drop.duplicates are about the operation insert; a "
            "bulk_insert looks no key up.",
            "Use the operation insert, or leave the option out.",
        )
    if asked == DELETE_PARTITION and settings.partitions_to_delete == ():
        raise InvalidOptionError(
            f"hoodie.datasource.write.partitions.to.delete names no partition of the table {request.path}.",
            "Name partition paths, * for all, or leave the option out to delete the partitions of the rows.",
        )
    name = _in_mode_overwrite(asked) if request.overwrite else asked
    if name in REPLACING:
        fold = settings.combine_before_upsert if asked == UPSERT else settings.combine_before_insert
        rules = MergeRules(Meeting.ADD, fold=fold)
    elif name == BULK_INSERT:
        rules = MergeRules(Meeting.ADD, fold=settings.combine_before_insert)
    elif name == INSERT:
        rules = _insert_rules(settings, policy)
    else:
        rules = MergeRules(must_find=name == DELETE and not settings.delete_missing_ok)
    return Operation(name, rules, sorts=asked == BULK_INSERT)


def _default(request: WriteRequest) -> str:
    if not request.overwrite:
        return "upsert"
    return "insert_overwrite" if request.write.overwrite_mode == "dynamic" else "insert_overwrite_table"


def _dup_policy(settings: WriteSettings) -> Meeting | None:
    policy = _POLICIES.get(settings.insert_dup_policy)
    return Meeting.DROP if policy is None and settings.insert_drop_duplicates else policy


def _in_mode_overwrite(asked: str) -> str:
    if asked in {DELETE, DELETE_PARTITION}:
        raise OptionConflictError(
            f"The operation {asked.lower()} cannot be combined with mode overwrite, which replaces the whole table.",
            f'Use mode("append") with the operation {asked.lower()}.',
        )
    return asked if asked == OVERWRITE else OVERWRITE_TABLE


def _insert_rules(settings: WriteSettings, policy: Meeting | None) -> MergeRules:
    if policy is not None:
        return MergeRules(policy, fold=settings.combine_before_insert)
    if settings.allow_duplicates_on_insert:
        return MergeRules(Meeting.ADD, fold=settings.combine_before_insert)
    return MergeRules()
