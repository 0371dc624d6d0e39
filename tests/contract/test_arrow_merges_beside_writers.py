"""Merges and updates of `pyhudi.arrow` while others write: no change is lost, and none is made of stale rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyhudi import arrow
from pyhudi.errors import InvalidOptionError
from support.drive import write as add
from support.merge_tables_of_arrow import START, Values, counts, given, made, rows
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> arrow.Table:
    return made(tmp_path / "t", table_type=request.param)


def rows_meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[tuple[arrow.Table, pa.Table]]:
    """Let another writer add the first of these rows to their table, between the look of a merge and its write."""
    waiting: list[tuple[arrow.Table, pa.Table]] = []
    attempt = read_seam("an attempt of a write without Spark")

    def late(*arguments: Any) -> Any:
        write, _, _, past = arguments
        if waiting and write.origin.counted is not None and not past.attempts:
            table, added = waiting.pop(0)
            # The core's write waits for no ticket, which this process may hold.
            add(table.path, [added])
        return attempt(*arguments)

    patch_seam(monkeypatch, "an attempt of a write without Spark", late)
    return waiting


BY_DAY = {
    "hoodie.table.keygenerator.type": "TIMESTAMP",
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}


# What creates a table, the source's place, and another row's values at that place.
ONE_PLACE: dict[str, tuple[dict[str, Any], Values, Values]] = {
    "an absent part of a key": ({"record_key": ["id", "p"], "partition_by": ()}, (7, None, 0), (7, None, 0)),
    "a partition without a name": ({}, (7, "", 0), (7, None, 0)),
    "a partition of times": ({"partition_by": "ts", "order_by": (), "options": BY_DAY}, (7, "a", 100), (7, "a", 200)),
}


@pytest.mark.parametrize("shape", ONE_PLACE)
def test_a_row_that_others_add_at_the_place_of_a_source_row_counts_whatever_its_columns_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    terms, mine, theirs = ONE_PLACE[shape]
    table = made(tmp_path / "t", **terms)
    rows_meanwhile(monkeypatch).append((table, given((*theirs, 1, "theirs"))))
    source = given((*mine, 2, "mine"), (8, "b", 0, 2, "mine"))
    merge_result = table.merge(source).when_matched_update({"t": "source.t"}).execute()

    assert (counts(merge_result), merge_result.attempts) == ((0, 1, 0, 0), 2)
    empty = table.merge(source.slice(0, 0)).when_matched_delete().when_not_matched_insert_all()
    rows_meanwhile(monkeypatch).append((table, given((*theirs, 1, "theirs"))))
    assert empty.execute().attempts == 1, "no row of the table is about it"


def test_of_an_expression_its_equalities_tell_which_rows_of_others_count(
    table: arrow.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of columns of both sides in `on`, and of columns with constants there and in conditions."""
    meanwhile, target, source = rows_meanwhile(monkeypatch), pc.field("target.id"), pc.field("source.id")
    mine = given((1, "x", 0, 10, "mine"), (2, "x", 0, 20, "mine"), (90, "x", 0, 0, "mine"))
    merge = table.merge(mine, (source == target) & (pc.field("target.n") < 2)).when_matched_update({"t": "source.t"})
    attempts = []
    for row in [(50, "q", 1, 1, ""), (90, "q", 1, 5, ""), (90, "r", 1, 1, "")]:
        meanwhile.append((table, given(row)))
        result = merge.execute()
        attempts.append((result.updates, result.attempts))
    for row in [(51, "q", 1, 60, ""), (52, "q", 1, 61, "")]:
        meanwhile.append((table, given(row)))
        result = table.update({"t": "'large'"}, pc.field("n") > 60)
        attempts.append((result.updates, result.attempts))
    assert attempts == [(1, 1), (1, 1), (2, 2), (0, 1), (1, 2)]


def test_what_others_commit_meanwhile_is_not_written_over(table: arrow.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look of a merge and its write; a source that comes once is read again from where it stays."""
    meanwhile = rows_meanwhile(monkeypatch)
    meanwhile.append((table, given((50, "z", 1, 0, "added"))))
    once = iter(given((3, "b", 7, 0, "mine")).to_batches())
    merge = table.merge(once).when_matched_update_all().when_not_matched_by_source_delete()
    assert counts(merge.execute(**{"hoodie.pyhudi.isolation": "snapshot"})) == (0, 1, 3, 0)
    assert rows(table) == [(3, "b", 7, 0, "mine"), (50, "z", 1, 0, "added")]
    with pytest.raises(InvalidOptionError, match=r"a stream, which an earlier execute\(\) has read"):
        merge.execute()

    table.upsert(given(*START))
    meanwhile.append((table, given((1, "a", 6, 1, "theirs"))))
    result = table.update({"n": "n + 1"}, "id = 1")
    assert (counts(result), result.attempts) == ((0, 1, 0, 0), 2), "it is run again"
    meanwhile.append((table, given((60, "b", 6, 7, "theirs"))))
    result = table.update({"n": "n + 1"}, "n = 7")
    assert (counts(result), result.attempts) == ((0, 1, 0, 0), 2), "a row came for which the condition holds"
    source = iter(given((4, "b", 9, 1, "mine")).to_batches())
    meanwhile.append((table, given((4, "b", 9, 8, "theirs"))))
    result = table.merge(source).when_matched_update({"n": "source.n + target.n"}).execute()
    assert (counts(result), result.attempts) == ((0, 1, 0, 0), 2)
    wider = given((9, "d", 1, 1, "theirs")).append_column("more", pa.array([1]))
    meanwhile.append((table, wider))
    result = table.update({"n": "n + 1"}, "id = 1")
    assert (counts(result), result.attempts) == ((0, 1, 0, 0), 2), "the table has another column"
    table.delete("id = 9")
    assert [row[:4] for row in rows(table)] == [
        *((1, "a", 6, 3), (2, "a", 5, 2), (3, "b", 7, 0), (4, "b", 9, 9)),
        *((50, "z", 1, 0), (60, "b", 6, 8)),
    ]


def test_no_increment_of_several_processes_is_lost(tmp_path: Path) -> None:
    """Each reads the rows that it changes, and reads them again where another process came first."""
    table = made(tmp_path / "t", table_type="MERGE_ON_READ")
    code = (
        "import sys; from pyhudi.arrow import Table\n"
        "table = Table(sys.argv[1], options={'hoodie.pyhudi.durable': False})\n"
        "for _ in range(4): table.update({'n': 'n + 1', 'ts': 'ts + 1'}, 'id < 3')"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, table.path]) for _ in range(3)]

    assert [process.wait(300) for process in processes] == [0, 0, 0]
    assert [row[3] for row in rows(table)] == [13, 14, 3, 4]
    assert_whole(Path(table.path))
