"""Several ordering fields and delete markers held against what Apache Hudi 1.2.0 made of the same rows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.table.files.output import Output
from support.drive import rows_of, write
from support.places import Place, below
from support.rules.ends import assert_whole
from support.write_settings import write_settings

TWO_FIELDS = TableSettings(record_key_fields=("id",), ordering_fields=("a", "b"), bucket_count=2)
MARKED = TableSettings(
    record_key_fields=("id",), ordering_fields=("ts",), bucket_count=2, delete_field="op", delete_marker="D"
)
TINY = write_settings(batch_size=400, output=Output(memory=1200))

Row = tuple[object, ...]


def two_fields(*rows: Row) -> pa.Table:
    """Return rows of (id, a, b, deleted, n)."""
    names = ["id", "a", "b", "_hoodie_is_deleted", "n"]
    kinds = [pa.string(), pa.int32(), pa.string(), pa.bool_(), pa.int32()]
    return pa.table([pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)], names=names)


def marked(*rows: Row, kind: pa.DataType | None = None) -> pa.Table:
    """Return rows of (id, ts, op, n)."""
    kinds = [pa.string(), pa.int64(), kind or pa.string(), pa.int32()]
    return pa.table(
        [pa.array([row[at] for row in rows], one) for at, one in enumerate(kinds)], names=["id", "ts", "op", "n"]
    )


def check_two_fields(folder: Place) -> None:
    """Assert that the second field decides where the first is tied, against the base and within a write."""
    path = below(folder, "two")
    write(path, two_fields(*((f"k{number}", 5, "m", False, 1) for number in range(9))), table=TWO_FIELDS)
    rows = [
        ("k0", 5, "m", False, 2),
        ("k1", 5, "l", False, 2),
        ("k2", 5, "n", False, 2),
        ("k3", 4, "z", False, 2),
        ("k4", 6, "a", False, 2),
        ("k5", 5, "l", True, 2),
        ("k6", 5, "m", True, 2),
        ("k7", 0, "", True, 2),  # no commit-time delete: that takes a single field
        *[("f1", 1, "b", False, 1), ("f1", 1, "a", False, 2)],
        *[("f2", 1, "a", False, 1), ("f2", 1, "b", False, 2)],
        *[("f3", 2, "a", False, 1), ("f3", 1, "z", False, 2)],
    ]
    result = write(path, two_fields(*rows))

    expected = {"k0": 2, "k1": 1, "k2": 2, "k3": 1, "k4": 2, "k5": 1, "k7": 1, "k8": 1, "f1": 1, "f2": 2, "f3": 1}
    assert rows_of(path, "id", "n") == sorted(expected.items())
    assert (result.inserts, result.updates, result.deletes) == (3, 3, 1)
    assert_whole(path)


def check_many_of_two_fields(folder: Place) -> None:
    """Assert what a dict says, however the rows are dealt out over tasks and spills."""
    chance = random.Random(7)
    path = below(folder, "many")
    content: dict[object, tuple[tuple[int, str], Row]] = {}
    for number in range(4):
        pairs = chance.sample([(a, b) for a in range(4) for b in "abcdefghijklmnopqrst"], 60)
        rows = [(f"k{chance.randrange(12)}", a, b, chance.random() < 0.2, number) for a, b in pairs]
        newest = {row[0]: row for row in sorted(rows, key=lambda row: row[1:3])}
        for key, row in newest.items():
            held = content.get(key)
            if held is None or row[1:3] >= held[0]:
                content[key] = (row[1:3], row)
        for key in [key for key, (_, row) in content.items() if row[3]]:
            del content[key]
        hands: Sequence[pa.Table] = [two_fields(*rows[task::3]) for task in range(3)]
        write(path, hands, table=TWO_FIELDS, settings=TINY if number % 2 else WriteSettings())

        assert rows_of(path, "id", "a", "b", "n") == sorted((r[0], r[1], r[2], r[4]) for _, r in content.values())
    assert_whole(path)


def check_marked_deletes(folder: Place) -> None:
    """Assert that marked rows are deletes that obey the ordering, against the base and within a write."""
    path = below(folder, "marked")
    write(path, marked(*((f"k{number}", 5, "I", 1) for number in range(7))), table=MARKED)
    rows = [
        ("k0", 5, "D", 2),
        ("k1", 4, "D", 2),
        ("k2", 6, "D", 2),
        ("k3", 6, None, 2),
        ("k4", 6, "I", 2),
        ("new", 6, "D", 2),
        *[("f", 6, "D", 1), ("f", 5, "I", 2)],
        *[("g", 5, "D", 1), ("g", 6, "I", 2)],
    ]
    result = write(path, marked(*rows))

    expected = {"k1": 1, "k3": 2, "k4": 2, "k5": 1, "k6": 1, "g": 2}
    assert rows_of(path, "id", "n") == sorted(expected.items())
    assert (result.inserts, result.updates, result.deletes, result.not_found) == (1, 2, 2, 2)
    assert_whole(path)
