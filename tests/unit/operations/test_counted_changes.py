"""Few changed rows are counted by place as a plain count of each place counts them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.operations.planning.changed_rows import ChangedRows, RowPlace
from pyhudi.operations.planning.counted_changes import COLUMNS, COMES, GOES, LEAVES, STAYS, UNCHANGED, count_changes
from pyhudi.operations.result import RowCounts
from support.share import share_of

SCHEMA = pa.schema(
    [
        *(("role", pa.int32()), ("key", pa.string()), ("path", pa.string()), ("row", pa.string())),
        *((name, pa.bool_()) for name in ("older", "open", "unproven", "shifted")),
    ]
)
Entry = tuple[int, str | None, str, str | None, bool, bool | None, bool, bool]


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    role = draw(st.sampled_from([STAYS, STAYS, GOES, LEAVES, COMES, UNCHANGED]))
    comes = role == COMES
    return (
        role,
        draw(st.sampled_from(["a", "b", "ä", None] if comes else ["a", "b", "ä"])),
        draw(st.sampled_from(["", "p"])),
        None if comes else draw(st.sampled_from(["1", "2"])),
        draw(st.booleans()),
        draw(st.sampled_from([True, False, None])),
        comes and draw(st.booleans()),
        role == STAYS and draw(st.booleans()),
    )


def place_of(entry: Entry, anywhere: bool) -> tuple[str, ...]:
    return (str(entry[1]),) if anywhere else (str(entry[1]), entry[2])


def model(all_entries: list[Entry], anywhere: bool) -> ChangedRows | None:
    names = ("stays", "goes", "leaves", "comes", "deleted", "replaced", "unproven", "shifted", "again", "copied")
    sums = dict.fromkeys(names, 0)
    wrong: dict[str, list[tuple[str, str]]] = {
        name: [] for name in ("matched_often", "held_twice", "crowded", "older", "keeps_old")
    }
    ordered = sorted(all_entries, key=lambda entry: place_of(entry, anywhere))
    for _, group in groupby(ordered, key=lambda entry: place_of(entry, anywhere)):
        here = list(group)
        roles = [entry[0] for entry in here]
        stays, goes, leaves, comes = map(roles.count, (STAYS, GOES, LEAVES, COMES))
        if goes + leaves and comes:
            return None
        rows, changes = {entry[3] for entry in here} - {None}, stays + leaves
        several = changes > 0 and changes + goes > 1
        faults: dict[str, bool] = {
            "matched_often": several and len(rows) < 2,
            "held_twice": (several or comes > 0) and len(rows) > 1,
            "crowded": stays + comes > 1,
            "older": any(entry[4] and entry[0] == STAYS for entry in here),
            "keeps_old": any(entry[5] and entry[0] == STAYS for entry in here),
        }
        key = here[0][1]
        for name, holds in faults.items():
            if holds and key is not None:
                wrong[name].append((key, min(entry[2] for entry in here)))
        for name, number in zip(("stays", "goes", "leaves", "comes"), (stays, goes, leaves, comes), strict=True):
            sums[name] += number
        sums["deleted"] += 0 if changes else goes if len(rows) > 1 else min(goes, 1)
        sums["unproven"] += sum(entry[6] for entry in here)
        sums["shifted"] += sum(entry[7] for entry in here)
        sums["again"] += goes > 1
        sums["copied"] += len(rows) > 1 and changes + goes > 0
    least = {
        name: RowPlace(*min(places, key=lambda place: (place[0].encode(), place[1].encode()))) if places else None
        for name, places in wrong.items()
    }
    return ChangedRows.of(sums, least)


@settings(max_examples=share_of(150), deadline=None)
@given(st.lists(entries(), max_size=9), st.booleans())
def test_counts_and_conflicts_are_those_of_each_place(found: list[Entry], anywhere: bool) -> None:
    columns: list[Any] = [list(column) for column in zip(*found, strict=True)] or [[] for _ in SCHEMA]
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)

    assert tuple(table.column_names) == COLUMNS
    assert count_changes(table, anywhere=anywhere) == model(found, anywhere)


def test_no_changed_row_is_no_count() -> None:
    assert count_changes(SCHEMA.empty_table(), anywhere=False) == ChangedRows(RowCounts(0, 0, 0))
