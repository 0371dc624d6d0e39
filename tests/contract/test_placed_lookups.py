"""Rows that somebody looked up and placed: each task finishes the file groups that its rows say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, PartitionValueError, PlacementError, PyHudiError, UnsupportedTypeError
from pyhudi.index.base import LookupFigures
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.table.schema.columns import FILE_GROUP
from support.drawn.lookups import (
    APART,
    LOGGED,
    PLACED,
    TABLE,
    assert_healthy,
    check_placed,
    home,
    rows,
    said,
    slices,
)
from support.drive import carry_out, plan, read, rows_of, task, write
from support.write_settings import write_settings


@pytest.mark.parametrize("made", [TABLE, LOGGED], ids=["cow", "mor"])
def test_placed_rows_go_where_they_say(tmp_path: Path, made: TableSettings) -> None:
    check_placed(tmp_path, made)


def test_new_keys_of_a_known_file_group_have_its_base_file_made_anew(tmp_path: Path) -> None:
    """All rows of the group say so, as those that are found would go to log files otherwise."""
    write(tmp_path, rows(1, 2, value=1), table=LOGGED, settings=APART)
    group = home(tmp_path, 1)
    joined = said(pa.concat_tables([rows(1, value=2), rows(3, value=2)]), f"+{group}")
    result = carry_out(plan(tmp_path, joined.schema, settings=PLACED), [joined])
    assert (result.files, result.log_files, result.inserts, result.updates) == (1, 0, 1, 1)
    found = said(rows(3, value=3), group)
    result = carry_out(plan(tmp_path, found.schema, settings=PLACED), [found])

    assert (result.files, result.log_files) == (0, 1)
    assert [file_slice.file_id for file_slice in slices(tmp_path)] == [group]
    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 3)]
    assert FILE_GROUP not in read(tmp_path).column_names
    assert_healthy(tmp_path)


def test_what_the_lookup_of_placed_rows_took_is_told_by_their_write(tmp_path: Path) -> None:
    """Those who placed them say it."""
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    took = LookupFigures(files=4, candidates=3, false_positives=2, bytes=900, seconds=1.5)
    some = said(rows(1, value=2), home(tmp_path, 1))

    done = carry_out(plan(tmp_path, some.schema, settings=write_settings(PLACED, looked_up=took)), [some])

    assert done.lookup == took


WRONG = [
    (["no-such-group"], CommitConflictError, "'no-such-group' of partition 'a', which the table does not have"),
    (["+no-such-group"], CommitConflictError, "'.no-such-group'"),
    (["+"], CommitConflictError, "'.' of partition"),
    ([None], PlacementError, "1 of 2 rows.*have no _pyhudi_file_group"),
    (["{group}", "+{group}"], PlacementError, "takes new keys in, and others do not"),
    (["{group}", "b/{group}"], CommitConflictError, "of partition 'b', which the table does not have"),
    (["b/+0"], PlacementError, "open a file group of partition 'b', which is not their own"),
    (["{group}", "../x/{group}"], PartitionValueError, r"'\.\./x'"),
]


@pytest.mark.parametrize(("named", "error", "message"), WRONG)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    tmp_path: Path, named: list[str | None], error: type[PyHudiError], message: str
) -> None:
    write(tmp_path, rows(1, 2, value=1), table=TABLE, settings=APART)
    group = home(tmp_path, 1)
    names = [None if one is None else one.format(group=group) for one in (named * 2)[:2]]
    if named == [None]:
        names[1] = group
    some = rows(1, 2, value=2).append_column(FILE_GROUP, pa.array(names, pa.string()))
    with pytest.raises(error, match=message):
        carry_out(plan(tmp_path, some.schema, settings=PLACED), [some])

    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 1)]
    assert_healthy(tmp_path)


def test_one_file_group_in_two_tasks_is_refused(tmp_path: Path) -> None:
    write(tmp_path, rows(1, 2, value=1), table=TABLE, settings=APART)
    for name in (home(tmp_path, 1), "+3"):
        parts = [said(rows(key, value=2), name) for key in (1, 2)]
        work = plan(tmp_path, parts[0].schema, settings=PLACED)
        with pytest.raises(PlacementError, match=r"Two tasks.*file group"):
            commit_write(work, [task(work, part, number) for number, part in enumerate(parts)])
        abort_write(work)

    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 1)]
    assert_healthy(tmp_path)


def test_rows_that_do_not_say_where_they_go_are_looked_up_by_the_commit(tmp_path: Path) -> None:
    """Whoever says that rows are placed may mean another place: it is right all the same."""
    write(tmp_path, rows(1, 2, value=1), table=TABLE, settings=APART)
    done = write(tmp_path, [rows(1, 3, value=2), rows(3, value=3)], settings=PLACED)

    assert (done.inserts, done.updates) == (1, 1)
    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 3)]


def test_the_column_is_no_column_of_a_table(tmp_path: Path) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    with pytest.raises(UnsupportedTypeError, match=r"_pyhudi_file_group.*colocated=true"):
        plan(tmp_path, said(rows(1, value=1), "+0").schema, settings=APART)
    number = rows(1, value=1).append_column(FILE_GROUP, pa.array([1]))
    with pytest.raises(UnsupportedTypeError, match=r"_pyhudi_file_group.*bigint"):
        plan(tmp_path, number.schema, settings=PLACED)
