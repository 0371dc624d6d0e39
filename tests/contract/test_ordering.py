"""Ordering fields and deletes of every kind, as Apache Hudi 1.2.0 was seen to merge them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import (
    MissingColumnError,
    NullOrderingError,
    OptionConflictError,
    SchemaMismatchError,
)
from pyhudi.operations.planning.request import TableSettings
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.config.payloads import PAYLOADS
from support.drive import KEYED, rows_of, write
from support.places import Place, below
from support.recorded.orderings import (
    MARKED,
    TWO_FIELDS,
    check_many_of_two_fields,
    check_marked_deletes,
    check_two_fields,
    marked,
    two_fields,
)
from support.write_settings import write_settings

DELETE_FIELD = "hoodie.record.merge.property.hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.record.merge.property.hoodie.payload.delete.marker"


@pytest.mark.parametrize("check", [check_two_fields, check_many_of_two_fields, check_marked_deletes])
def test_rows_are_merged_as_by_apache_hudi(anywhere: Place, check: Any) -> None:
    """The checks are in a module of their own because mutations of the code run them too."""
    check(anywhere)


def test_a_null_in_any_ordering_field_is_refused_by_name(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, two_fields(("k", 1, "a", False, 1)), table=TWO_FIELDS)

    with pytest.raises(NullOrderingError, match=r"'b' is null in 1 of 2 rows .* 'l'"):
        write(path, two_fields(("k", 2, "a", False, 1), ("l", 2, None, True, 1)))
    with pytest.raises(NullOrderingError, match="'a' is null"):
        write(path, two_fields(("k", None, "a", False, 1)))


def test_ordering_fields_are_properties_of_the_table(anywhere: Place) -> None:
    path = below(anywhere, "t")
    rows = two_fields(("k", 1, "a", False, 1))
    write(path, rows, table=TWO_FIELDS)

    properties = load_config(open_storage(str(path))).properties
    assert properties["hoodie.table.ordering.fields"] == "a,b"
    assert properties["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    with pytest.raises(OptionConflictError, match=r"'b,a' here and 'a,b' in the table"):
        write(path, rows, table=TableSettings(ordering_fields=("b", "a")))
    with pytest.raises(MissingColumnError, match="ordering column 'b'"):
        write(path, rows.drop_columns(["b"]))


INT_ZERO = [
    # base, incoming (ordering value, deleted)..., what stays: the last row's n or nothing
    pytest.param(1, [(0, True)], None, id="beats a greater base"),
    pytest.param(1, [(-1, True)], 1, id="only zero does"),
    pytest.param(None, [(1, False), (0, True)], None, id="beats a greater row above"),
    pytest.param(None, [(0, True), (-1, False)], -1, id="loses against any row below"),
    # Apache Hudi shows the base row again, which the delete had taken away (decision 40).
    pytest.param(1, [(0, True), (-1, False)], -1, id="the row below counts anew, whatever the base has"),
    pytest.param(None, [(9, False), (0, True), (2, False), (1, False)], 2, id="rows below it are ordered"),
]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize(("base", "incoming", "stays"), INT_ZERO)
def test_a_delete_of_ordering_value_zero_has_none(
    anywhere: Place, base: int | None, incoming: list[tuple[int, bool]], stays: int | None, kind: pa.DataType
) -> None:
    """Where the column is an int: the Integer 0 is how Apache Hudi says that there is no ordering value."""
    path = below(anywhere, "t")

    def rows(*values: tuple[int, bool]) -> pa.Table:
        stamps, flags = [value for value, _ in values], [flag for _, flag in values]
        return pa.table(
            {"id": ["k"] * len(values), "ts": pa.array(stamps, kind), "n": stamps, "_hoodie_is_deleted": flags}
        )

    write(path, rows((base, False) if base is not None else (-99, True)), table=KEYED)
    write(path, rows(*incoming))

    stored_values = [n for (n,) in rows_of(path, "n")]
    if kind != pa.int64():
        assert stored_values == ([] if stays is None else [stays])
    else:  # an ordinary value
        stamps = ([(base, False)] if base is not None else []) + incoming
        last = max(enumerate(stamps), key=lambda one: (one[1][0], one[0]))[1]
        assert stored_values == ([] if last[1] else [last[0]])


def test_a_delete_marker_is_kept_where_apache_hudi_keeps_it(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, marked(("k", 1, "I", 1)), table=MARKED)

    properties = load_config(open_storage(str(path))).properties
    assert (properties[DELETE_FIELD], properties[DELETE_MARKER]) == ("op", "D")
    with pytest.raises(OptionConflictError, match="op=X here and op=D in the table"):
        write(path, marked(("k", 2, "X", 2)), table=TableSettings(delete_marker="X"))
    write(path, marked(("k", 2, "D", 2)), table=TableSettings(delete_field="op", delete_marker="D"))
    assert rows_of(path, "id") == []


def test_a_marker_given_to_a_table_without_one_holds_for_that_write(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(
        path, marked(("k", 1, "I", 1), ("l", 1, "I", 1)), table=replace(MARKED, delete_field=None, delete_marker=None)
    )
    write(path, marked(("k", 2, "D", 2)), table=TableSettings(delete_field="op", delete_marker="D"))
    write(path, marked(("l", 2, "D", 2)))

    assert rows_of(path, "id", "n") == [("l", 2)]
    assert DELETE_FIELD not in load_config(open_storage(str(path))).properties


DMS = TableSettings(
    record_key_fields=("id",), bucket_count=2, merge_mode="COMMIT_TIME_ORDERING", payload=PAYLOADS["AWSDmsAvroPayload"]
)


def dms(*rows: tuple[str, int, str | None], names: tuple[str, ...] = ("id", "n", "Op")) -> pa.Table:
    """Return rows of (id, n, Op) as AWS DMS leaves them, or without their last column."""
    kinds = [pa.string(), pa.int32(), pa.string()][: len(names)]
    return pa.table([pa.array([row[at] for row in rows], one) for at, one in enumerate(kinds)], names=names)


def test_the_first_load_of_dms_says_of_no_row_what_it_is(anywhere: Place) -> None:
    """Its rows lack the column by which those that follow are deletes."""
    path = below(anywhere, "t")
    write(path, dms(("a", 1, None), ("b", 1, None), ("c", 1, None), names=("id", "n")), table=DMS)
    write(path, dms(("a", 2, "U"), ("b", 2, "D"), ("d", 2, "I"), ("e", 2, "D")), table=DMS)

    assert rows_of(path, "id", "n", "Op") == [("a", 2, "U"), ("c", 1, None), ("d", 2, "I")]


def test_a_table_made_without_dms_does_not_learn_its_deletes_by_the_way(anywhere: Place) -> None:
    """Apache Hudi keeps such rows; said in so many words they are deletes in that write."""
    path = below(anywhere, "t")
    write(path, dms(("a", 1, "I"), ("b", 1, "I")), table=replace(DMS, payload=None))
    with pytest.raises(OptionConflictError, match=r"payload\.class means here that rows with Op=D are deletes"):
        write(path, dms(("a", 2, "D")), table=DMS)
    write(path, dms(("a", 2, "D")), table=replace(DMS, delete_field="Op", delete_marker="D"))

    assert rows_of(path, "id") == [("b",)]


@pytest.mark.parametrize(
    ("kind", "values", "marker", "left"),
    [
        (pa.int32(), [0, 1, None], "0", [1, 2]),
        (pa.int64(), [-7, 7, None], "-7", [1, 2]),
        (pa.int64(), [7, 7, None], "07", [0, 1, 2]),
        (pa.int32(), [7, 7, None], "seven", [0, 1, 2]),
        (pa.int32(), [7, 7, None], str(2**40), [0, 1, 2]),
        (pa.bool_(), [True, False, None], "true", [1, 2]),
        (pa.bool_(), [True, False, None], "True", [0, 1, 2]),
        (pa.bool_(), [True, False, None], "1", [0, 1, 2]),
        (pa.string(), ["D", "d", None], "D", [1, 2]),
    ],
)
def test_a_marker_is_compared_as_javas_text(
    anywhere: Place, kind: pa.DataType, values: list[Any], marker: str, left: list[int]
) -> None:
    path = below(anywhere, "t")
    write(
        path,
        marked(*((f"k{n}", 2, v, n) for n, v in enumerate(values)), kind=kind),
        table=replace(MARKED, delete_marker=marker),
    )

    assert rows_of(path, "n") == [(n,) for n in left]


REQUIRED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("place", pa.struct([pa.field("x", pa.int32(), nullable=False)]), nullable=False),
        pa.field("tags", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)


def required(*rows: tuple[Any, ...], strict: bool = False) -> pa.Table:
    """Return rows whose schema allows nulls throughout, or nowhere."""
    lax = pa.schema([pa.field(one.name, _lax(one.type)) for one in REQUIRED])
    return pa.Table.from_pylist(
        [dict(zip(REQUIRED.names, row, strict=True)) for row in rows], REQUIRED if strict else lax
    )


def _lax(kind: pa.DataType) -> pa.DataType:
    return pa.struct([("x", pa.int32())]) if pa.types.is_struct(kind) else kind


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_a_delete_needs_no_values_but_key_and_ordering(anywhere: Place, colocated: bool) -> None:
    path = below(anywhere, "t")
    # Which keeps a rule that rows of nullable columns would end.
    settings = write_settings(colocated=colocated, reconcile=True)
    full = [(f"k{n}", 1, f"name {n}", {"x": n}, ["a"], False) for n in range(4)]
    write(path, required(*full, strict=True), table=KEYED, settings=settings)
    rows = [
        ("k0", 2, None, None, None, True),
        ("k1", 2, "new", {"x": 9}, [], None),
        ("k2", 0, None, None, None, True),
        ("k3", 2, None, {"x": None}, None, True),
    ]
    write(path, required(*rows), settings=settings)

    assert rows_of(path, "id", "name") == [("k1", "new"), ("k2", "name 2")]
    for bad in (
        ("k4", 2, None, {"x": 1}, [], False),
        ("k4", 2, "a", None, [], None),
        ("k4", 2, "a", {"x": None}, [], False),
    ):
        with pytest.raises(SchemaMismatchError, match="may not be null in the table and is null in 1 of 2"):
            write(path, required(rows[0], bad), settings=settings)
    with pytest.raises(NullOrderingError):
        write(path, required(("k1", None, None, None, None, True)), settings=settings)
