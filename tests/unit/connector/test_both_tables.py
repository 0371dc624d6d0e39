"""`HudiTable` and `pyhudi.arrow.Table` have the same methods with the same arguments, but for what needs Spark."""

from __future__ import annotations

import inspect

import pytest
from pyhudi import HudiTable, arrow

# What needs Spark: `to_df` is `read` and `scan` without Spark.
OF_SPARK = {"to_df", "sql", "create_view", "refresh_views", "stream"}
OF_ARROW = {"write", "append", "read", "scan", "to_polars", "to_duckdb", "to_pandas"}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def arguments(call: object) -> dict[str, object]:
    found = inspect.signature(call).parameters.values()  # type: ignore[arg-type]
    return {one.name: one.kind for one in found if one.name not in {"self", "spark"}}


def test_each_method_is_in_both_but_for_what_one_alone_can_have() -> None:
    assert public(HudiTable) - public(arrow.Table) == OF_SPARK
    assert public(arrow.Table) - public(HudiTable) == OF_ARROW


@pytest.mark.parametrize("name", sorted(public(HudiTable) & public(arrow.Table)))
def test_a_method_has_the_same_arguments_in_both(name: str) -> None:
    mine, theirs = getattr(arrow.Table, name), getattr(HudiTable, name)
    if not callable(mine):
        return
    more = set(arguments(mine)) - set(arguments(theirs))

    assert more <= {"timestamps", "storage_options", "threads"}
    assert {key: kind for key, kind in arguments(mine).items() if key not in more} == arguments(theirs)


def test_a_read_has_the_arguments_of_a_dataframe() -> None:
    theirs = arguments(HudiTable.to_df)

    assert {**theirs, "limit": inspect.Parameter.KEYWORD_ONLY} == arguments(arrow.Table.read)
    assert arguments(arrow.Table.scan) == arguments(arrow.Table.read)
    assert set(arguments(arrow.read)) == {*arguments(arrow.Table.read), "path", "storage_options", "options", "threads"}
    assert set(arguments(arrow.write)) == {*arguments(arrow.Table.write), "path", "storage_options", "threads"}
