"""Errors that name pyhudi's argument for keywords that delta-spark, delta-rs and PyIceberg users give to its methods.

Names are compared without case and underscores. A keyword that no method of these libraries has stays a TypeError, or
an unknown option.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InvalidOptionError

# By method: the call to make, and the keywords in whose place.
Keywords = Mapping[str, Mapping[str, str]]

_PREDICATE = "cond predicate expr expression filter filters row_filter filter_expr where_clause"
_CONDITION = f"condition {_PREDICATE}"
VERSIONS = "version snapshot_id instant_time commit commit_time"
TIMES = "timestamp time datetime as_of_timestamp as_of_instant timestamp_as_of version_as_of instant at"
_SET = "set_expr updates update new_values assignments"
_PARTS = "partition partitions partition_filter partition_filters partition_path partition_paths partition_spec"
_JOIN = f"{_CONDITION} join_cols join_columns keys key using by match_on left_on"
_SIDES = "source_alias target_alias alias"
_KEYS = "record_keys recordkey key keys primary_key primary_keys key_columns join_cols identifier_fields"
_CALLED_SIDES = "merge(source, on), whose conditions call the two sides source and target"
_BY_HOURS = 'clean(**{"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": hours})'
_NARROW = "insert_overwrite(df) for the partitions of its rows, or delete(condition) and then insert(df)"
_WRITE: Mapping[str, str] = {
    "merge(source, on), with clauses, for rows that match by another condition than their keys": _JOIN + " on where",
    "insert_overwrite(df) or overwrite(df), which replace rows; upsert(df) and insert(df) add them": "mode save_mode",
}
_OVERWRITE: Mapping[str, str] = {
    _NARROW: f"{_CONDITION} where overwrite_filter replace_where {_PARTS}",
    **{call: names for call, names in _WRITE.items() if not call.startswith("merge")},
}

SHARED_KEYWORDS: Keywords = {
    "upsert": _WRITE,
    "insert": _WRITE,
    "bulk_insert": _WRITE,
    "overwrite": _OVERWRITE,
    "insert_overwrite": _OVERWRITE,
    "delete": {
        "delete(condition)": f"{_PREDICATE} where delete_filter",
        "delete(keys), with rows of the keys": "keys df rows source data ids",
        "delete_partitions(path)": _PARTS,
    },
    "delete_partitions": {"delete_partitions('2024/05', ...)": f"{_PARTS} paths {_CONDITION} where"},
    "update": {
        "update(set, where=condition)": _PREDICATE,
        "update(set, where)": f"{_SET} values",
    },
    "merge": {
        "merge(source, on)": _JOIN.removeprefix("condition "),
        _CALLED_SIDES: _SIDES,
        "merge(rows, on)": "df rows data updates other",
    },
    "history": {"history(limit)": "n last count num max_results"},
    "clean": {
        _BY_HOURS: "retention_hours hours retain_hours older_than retention older_than_ms",
        "clean(retain=commits)": "retain_last retain_commits commits keep versions",
    },
    "archive": {"archive(keep=commits)": "retain retain_last commits keep_commits min_commits"},
    "rollback": {"rollback(instant)": f"{VERSIONS} timestamp time datetime to target"},
    "savepoint": {
        "savepoint(instant)": f"{VERSIONS} timestamp time datetime to target as_of at",
        "savepoint(instant, comment=...)": "name tag label message reason",
    },
    "delete_savepoint": {"delete_savepoint(instant)": f"{VERSIONS} timestamp time savepoint name to"},
    "restore": {
        "restore(to), with a time or an instant": f"{VERSIONS} timestamp time datetime instant target savepoint as_of"
    },
    "repair": {"repair(accept_loss=[file])": "files file log_file"},
    "validate": {"validate(deep=True)": "full thorough"},
    "explain_options": {"explain_options(defaults=False)": "show_defaults all with_defaults"},
}
_MERGE_CONDITION = f"{_PREDICATE} where on"
MERGE_KEYWORDS: Keywords = {
    "when_matched_update": {
        "when_matched_update(set, condition)": f"{_MERGE_CONDITION} {_SET}",
    },
    "when_matched_update_all": {"when_matched_update_all(condition)": _MERGE_CONDITION},
    "when_matched_delete": {"when_matched_delete(condition)": _MERGE_CONDITION},
    "when_not_matched_insert": {
        "when_not_matched_insert(values, condition)": f"{_MERGE_CONDITION} {_SET} set",
    },
    "when_not_matched_insert_all": {"when_not_matched_insert_all(condition)": _MERGE_CONDITION},
    "when_not_matched_by_source_update": {
        "when_not_matched_by_source_update(set, condition)": f"{_MERGE_CONDITION} {_SET}",
    },
    "when_not_matched_by_source_delete": {"when_not_matched_by_source_delete(condition)": _MERGE_CONDITION},
}


def argument_or_condition(call: str, name: str, argument: Any, condition: Any) -> Any:
    """Return the argument of a method or the ``condition`` in its place; raises InvalidOptionError for both.

    ``call`` and ``name`` are what the error calls the method and the argument.
    """
    if argument is not None and condition is not None:
        raise InvalidOptionError(
            f"{call} got {name!r} and 'condition', which are two names of one argument.", f"Give {name!r} alone."
        )
    return condition if argument is None else argument


def keywords_of_create(first_arguments: str, call: str = "create") -> Mapping[str, str]:
    """Return the keywords of other libraries, by the call to make in place of a creation with them.

    Blanks separate the keywords. ``call`` is the method's name, and ``first_arguments`` are those before the schema.
    """
    beginning = f"{call}({first_arguments}, schema, record_key=..."
    return {
        f"{beginning})": _KEYS,
        f"{beginning}, partition_by=...)": "partitioned_by partition_cols partition_columns partition_fields "
        "partition_spec partition_path partition",
        f"{beginning}, order_by=...)": "precombine precombine_field precombine_key ordering_field ordering_fields "
        "order_fields sort_order sort_by",
        f"{beginning}, buckets=...)": "num_buckets bucket_count bucket_num n_buckets",
        f"{beginning}, table_type=...)": "type storage_type kind",
        f"{beginning}, options=...)": "properties configuration config conf table_properties tblproperties "
        "storage_options",
        f"{beginning}, if_not_exists=True)": "exist_ok exists_ok create_if_not_exists if_exists ignore_if_exists",
        f"{beginning}), whose schema may be rows too": "columns cols df data",
        f"{beginning}): a table has a path and no name of a catalog": "name table_name location table_path identifier",
    }


def keywords_of_reads(call: str, limited: str) -> Mapping[str, str]:
    """Return the keywords of other libraries, by the call to make in place of a read with them.

    Blanks separate the keywords. ``call`` is the method's name, and ``limited`` the call that reads a number of rows.
    """
    return {
        f"{call}(where=condition)": f"{_CONDITION} partitions partition_filters",
        f"{call}(columns)": "select selected_fields selected_columns cols fields projection",
        f"{call}(as_of=...), with a time or an instant that history() shows": f"{VERSIONS} {TIMES}",
        f"{call}(since=...), with a time or an instant that history() shows": "begin begin_time start start_time "
        "starting_version starting_timestamp from_version from_timestamp start_snapshot_id begin_instant after",
        f"{call}(since=..., until=...)": "end end_time ending_version ending_timestamp to_version to_timestamp "
        "end_snapshot_id end_instant before",
        limited: "limit n",
        f"{call}(read_optimized=True), or {call}(since=...) for changes": "query_type incremental mode",
        f"{call}(meta=False)": "meta_columns metadata include_meta with_meta hoodie_meta drop_meta",
    }


def name_arguments(method: Callable[..., Any], calls: Mapping[str, str]) -> Callable[..., Any]:
    """Return a method that raises for a keyword of another library an InvalidOptionError with the call to make.

    ``calls`` has such keywords, with blanks between, by the call to make.
    """
    call_by_name = {_folded(name): call for call, names in calls.items() for name in names.split()}
    parameters = inspect.signature(method).parameters.values()
    parameter_names = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL}

    @functools.wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        """Call the method, unless a keyword is another library's name of one of its arguments."""
        for name in kwargs.keys() - parameter_names:
            call = call_by_name.get(_folded(name))
            if call is not None:
                raise InvalidOptionError(f"{method.__name__}() has no argument {name!r}.", f"Call {call}.")
        return method(*args, **kwargs)

    return checked


def _folded(name: str) -> str:
    return name.replace("_", "").lower()
