"""Answers of an index of another package that cannot be of the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyhudi import errors
from pyhudi.index import NOT_FOUND, FileGroupId, KeyedRows, Tags
from pyhudi.testing.tables import DrivenTable
from support.bad_inputs.case import GOOD, KEYED, Act, Case
from support.drive import write
from support.made.strange_index import NAME, Answer, coded, nothing, saying


def too_few(rows: KeyedRows) -> Tags:
    return Tags((), np.full(len(rows) - 1, NOT_FOUND, np.int32))


def broken(rows: KeyedRows) -> Tags:
    return Tags((), np.full(len(rows), float(NOT_FOUND)))


def beyond(rows: KeyedRows) -> Tags:
    return Tags((), np.zeros(len(rows), np.int32))


def copied_beyond(rows: KeyedRows) -> Tags:
    return Tags((), nothing(rows).codes, copied=np.array([0]), copy_codes=np.array([3], np.int32))


def elsewhere(rows: KeyedRows) -> Tags:
    group = FileGroupId("x", "6e1f7a52-0c4d-4b3e-9a55-1d2c3b4a5f60-0")
    return Tags((group,), np.zeros(len(rows), np.int32))


def away(rows: KeyedRows) -> Tags:
    raise RuntimeError("the database is away")


def says(answer: Answer) -> Callable[[Path], Act]:
    """Let the index answer so."""

    def prepare(path: Path) -> Act:
        def act() -> object:
            with saying(answer):
                return write(path, GOOD)

        return act

    return prepare


def of_another_partition(path: Path) -> Act:
    view = DrivenTable(str(path), KEYED).view()
    (group,) = (file_slice.group for file_slice in view.slices("x").values())
    return says(coded((group,), {"a": 0, "b": 0}))(path)


MISFIT = errors.IndexMisfitError
# The table has the index that gives them.
ANSWERS = [
    Case(f"index that {name}", MISFIT, (f"The index {NAME} of the table {{path}}", *words), prepare)
    for name, words, prepare in (
        ("answers for fewer keys", ("got 2 keys", "shape (1,)"), says(too_few)),
        ("answers with floats", ("float64",), says(broken)),
        ("answers beyond its file groups", ("with 0 file groups and with codes from 0 to 0",), says(beyond)),
        ("copies keys beyond its file groups", ("with codes of further places from 3 to 3",), says(copied_beyond)),
        ("names a file group of another table", ("partition 'x', which the table does not have",), says(elsewhere)),
        ("mixes partitions up", ("the key 'b' of partition 'y' is in partition 'x'",), of_another_partition),
    )
] + [
    Case(
        "index that is away",
        errors.StorageError,
        (f"The index {NAME} of the table {{path}} failed (RuntimeError: the database is away)",),
        says(away),
    )
]
