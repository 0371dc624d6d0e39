"""Creates an empty table from the arguments of a method, or checks that a table agrees with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ..errors import NotATableError, OptionConflictError
from ..operations.planning.request import WriteRequest
from ..options.model import HudiOptions
from ..options.names import OPTIONS
from ..options.sources import find_config
from ..storage import open_storage
from ..storage.base import Storage
from ..table.config import create_config
from ..table.latest_schema import latest_schema
from ..table.schema.columns import without_meta
from ..table.schema.types import sql_name
from ..table.table import Table

if TYPE_CHECKING:
    from ..operations.planning.plan import WritePlan

# Returns the plan with the number of buckets that was measured, and the number; None if it measured none.
WithBuckets: TypeAlias = "Callable[[WriteRequest, WritePlan], tuple[WritePlan, int | None]]"


@dataclass(frozen=True, slots=True)
class CreationTerms:
    """The arguments by which a table is created that are options, too."""

    record_key: str | Sequence[str]
    partition_by: str | Sequence[str]
    order_by: str | Sequence[str]
    index: str | None
    buckets: int | None
    table_type: str | None
    partial_update_mode: str | None = None

    def options(self) -> dict[str, Any]:
        """Return the arguments as options; a table without partition columns is created so on purpose."""
        return {"partitionby": "", **self.key(), **self.without_key()}

    def key(self) -> dict[str, Any]:
        """Return the option of the record key; without a key, the operation by which a table generates its keys."""
        from ..operations.planning.operation import INSERT  # noqa: PLC0415 (see __init__.py)

        return {"recordkey": _names(self.record_key)} if self.record_key else {OPTIONS["operation"].key: INSERT}

    def without_key(self) -> dict[str, Any]:
        """Return the options of the arguments that are given, except the record key."""
        options_by_key: dict[str, Any] = {}
        for short_key, names in {"partitionby": self.partition_by, "orderby": self.order_by}.items():
            if names:
                options_by_key[short_key] = _names(names)
        further = {"index_type": self.index, "table_type": self.table_type, "buckets": self.buckets}
        for name, value in {**further, "partial_update_mode": self.partial_update_mode}.items():
            if value is not None:
                options_by_key[OPTIONS[name].key] = value
        return options_by_key


def holds_table(path: str, storage_options: Mapping[str, str]) -> bool:
    """Return whether a path holds a table, and not something else."""
    try:
        return find_config(open_storage(path, storage_options)) is not None
    except NotATableError:
        return False


def table_above(path: str, storage_options: Mapping[str, str]) -> str | None:
    """Return the path of the nearest table in whose folder a path lies; None if it lies in none."""
    scheme, mark, folder = path.rpartition("://")
    while "/" in folder.rstrip("/"):
        folder = folder.rstrip("/").rpartition("/")[0]
        if folder and holds_table(f"{scheme}{mark}{folder}", storage_options):
            return f"{scheme}{mark}{folder}"
    return None


def create_table(
    path: str,
    options: HudiOptions,
    schema: Callable[[], pa.Schema],
    *,
    open_call: str,
    if_not_exists: bool,
    dry_run: bool = False,
    with_buckets: WithBuckets | None = None,
) -> bool:
    """Create an empty table; False if there is one. With ``dry_run`` the arguments are checked, and no more.

    With ``if_not_exists`` a table of other terms raises an OptionConflictError, without it any table does. ``options``
    are those of the call, checked and with their defaults. ``schema`` returns the columns. ``open_call`` is the call
    that opens a table, for errors. ``with_buckets`` returns the plan with a number of buckets that suits the rows, and
    the number; None if it leaves the plan as it is.
    """
    from ..operations.planning.plan import plan_write  # noqa: PLC0415 (see __init__.py)
    from ..operations.write.after_commit import describe, tables  # noqa: PLC0415

    storage = open_storage(path, options.storage_options, durable=options.durable)
    exists = find_config(storage) is not None
    if exists and not if_not_exists:
        raise _exists(path, open_call)
    request = options.to_write_request(path, schema(), overwrite=False)
    if exists:
        _find_same(request, storage, open_call)
        return False
    plan, number = plan_write(request), None
    if with_buckets is not None:
        plan, number = with_buckets(request, plan)
    _check_kept(plan, path)
    if dry_run:
        return True
    if not create_config(storage, plan.new_config):
        # Another process has made a table meanwhile.
        if not if_not_exists:
            raise _exists(path, open_call)
        _find_same(request, storage, open_call)
        return False
    _make_timeline_folder(plan.table)
    note = "" if number is None else " suggest_buckets chose their number by the given rows."
    tables.info("%s%s", describe(plan.config, path), note)
    return True


def _find_same(request: WriteRequest, storage: Storage, open_call: str) -> None:
    """Raise OptionConflictError unless the table below a store has the terms of a call that may have made it."""
    from ..operations.planning.target import find_target  # noqa: PLC0415 (see __init__.py)
    from ..operations.write.after_commit import warn_once  # noqa: PLC0415

    target = find_target(request, storage)
    warn_once(target.notices)
    _check_same(target.table, request, storage.path, open_call)


def _check_same(table: Table, request: WriteRequest, path: str, open_call: str) -> None:
    """Raise OptionConflictError if an existing table has another partitioning, order or columns than asked for.

    ``request`` is what the call asks for, and ``open_call`` the call that opens the table, for the error.
    """
    config, requested = table.config, request.table
    # `find_target` has compared what the arguments name; columns that they leave out count here, too.
    for words, mine, theirs in (
        ("is partitioned by", requested.partition_fields or (), config.partition_fields),
        ("is ordered by", requested.ordering_fields or (), config.ordering_fields),
    ):
        if tuple(mine) != tuple(theirs):
            raise OptionConflictError(
                f"The table {path} {words} {', '.join(theirs) or 'nothing'}, and the call asks for "
                f"{', '.join(mine) or 'nothing'}.",
                "Correct the arguments, or choose another path.",
            )
    stored_columns = latest_schema(config, table.timeline())
    columns = (
        {} if stored_columns is None else {field.name: sql_name(field.type) for field in without_meta(stored_columns)}
    )
    requested_columns = {field.name: sql_name(field.type) for field in without_meta(request.schema)}
    if stored_columns is not None and columns != requested_columns:
        # The first column that differs, or that one side lacks.
        name = next(
            name for name in {**columns, **requested_columns} if columns.get(name) != requested_columns.get(name)
        )
        raise OptionConflictError(
            f"The table {path} has the column {name!r} with the type {columns.get(name, 'none')}, and the call asks "
            f"for the type {requested_columns.get(name, 'none')}.",
            f"Correct the schema, or open the table with {open_call}: writes add columns to it.",
        )


def _check_kept(plan: WritePlan, path: str) -> None:
    """Raise OptionConflictError for delete marker options that the new table's version has no property for."""
    if plan.config.kept != plan.config:
        raise OptionConflictError(
            f"The options hoodie.payload.delete.field and hoodie.payload.delete.marker of the new table {path} cannot "
            f"be kept, because a table of version {plan.config.version} has no properties for them.",
            "Leave the two out here and give them to every write, or use hoodie.write.table.version=9.",
        )


def _names(columns: str | Sequence[str]) -> str:
    """Return names of columns as the text of an option."""
    return columns if isinstance(columns, str) else ",".join(columns)


def _exists(path: str, open_call: str) -> OptionConflictError:
    """Return the error for a path that holds a table already."""
    return OptionConflictError(
        f"There is a Hudi table at {path} already.", f"Open it with {open_call}, or choose another path."
    )


def _make_timeline_folder(table: Table) -> None:
    """Create the timeline folder, without which Apache Hudi cannot open the table, through a file that is deleted."""
    placeholder = f"{table.config.timeline_folder}/.created"
    table.storage.create(placeholder, b"")
    table.storage.delete(placeholder)
