"""What partial updates must do: the checks that the real tests and the mutations of the code both run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import KeyNotFoundError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.logs.log_blocks import LogBlock
from pyhudi.table.files.logs.log_contents import columns_of
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.merging.deletes import IS_DELETED
from support.drawn.upkept import OFF
from support.drive import read, write
from support.made import compacting
from support.models.partial_model import UNAVAILABLE, PartialModel, Step, random_steps, rows
from support.rules.ends import assert_whole

COLUMNS = ("p", "id", "ts", "name", "n")
TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=1)
SETTINGS = WriteSettings(upkeep=OFF, logs=LogSettings(per_group=4))
PARTIAL = replace(SETTINGS, partial_update=True)
MODES = (None, "IGNORE_DEFAULTS", "FILL_UNAVAILABLE")


def made(mode: str | None, *, logs: bool, ordered: bool = True, index: str = "BUCKET") -> TableSettings:
    """Return what a table is made with."""
    return replace(
        TABLE,
        table_type="MERGE_ON_READ" if logs else "COPY_ON_WRITE",
        ordering_fields=("ts",) if ordered else (),
        partial_update_mode=mode,
        unavailable=UNAVAILABLE if mode == "FILL_UNAVAILABLE" else None,
        index_type=index,
        bucket_count=1 if index == "BUCKET" else None,
    )


def check_steps(
    path: Path | str,
    steps: Sequence[Step],
    table: TableSettings,
    settings: WriteSettings = SETTINGS,
    *,
    flagged: bool = True,
) -> None:
    """Assert that after each of some writes and compactions a table holds what the dicts say.

    Args:
        path: Where the table will be.
        steps: The writes and compactions; the first write deletes nothing.
        table: What the table is made with.
        settings: Of every write.
        flagged: Whether the table gets the column of the delete flag by its first write.
    """
    logs = table.table_type == "MERGE_ON_READ"
    model = PartialModel(table.partial_update_mode, bool(table.ordering_fields), logs, flagged=flagged)
    for number, step in enumerate(steps):
        refused = model.apply(step)
        if step.rows:
            parts = [pa.concat_tables(step.parts())] if settings.colocated else step.parts()
            if number == 0 and not flagged:
                parts = [part.drop_columns([IS_DELETED]) for part in parts]
            given = replace(settings, partial_update=step.columns is not None)
            if refused is None:
                write(path, parts, table=table, settings=given)
            else:
                with pytest.raises(KeyNotFoundError, match="record key"):
                    write(path, parts, table=table, settings=given)
        elif logs:
            compacting.run(path)

        assert shown(path) == model.tuples()
        if logs:
            assert not (flagged and any(one.is_partial for one in log_blocks(path)))
    assert_whole(path, written_down=False, deep=True)


def check_mode_on_copy_on_write(place: Path) -> None:
    """Check that a null takes the other row's value, whichever of the two came first."""
    table = made("IGNORE_DEFAULTS", logs=False)
    write(place / "t", rows(("k", "a", 10, "first", 1), ("l", "a", 10, None, 1)), table=table, settings=SETTINGS)

    result = write(
        place / "t",
        rows(("k", "a", 11, None, 2), ("l", "a", 3, "late", 9), ("m", "a", 1, None, None)),
        settings=SETTINGS,
    )

    assert shown(place / "t") == [("a", "k", 11, "first", 2), ("a", "l", 10, "late", 1), ("a", "m", 1, None, None)]
    assert (result.inserts, result.updates, result.deletes) == (1, 2, 0)


def check_mode_in_one_write(place: Path) -> None:
    """Check that rows of one write are put together by their order in time, however tasks have them."""
    for number, order in enumerate(([0, 1, 2], [2, 1, 0], [1, 0, 2])):
        for logs, index in ((False, "BUCKET"), (True, "BUCKET"), (False, "SIMPLE")):
            path = place / f"t{number}{logs}{index}"
            table = made("IGNORE_DEFAULTS", logs=logs, index=index)
            write(path, rows(("k", "a", 1, "base", 1)), table=table, settings=SETTINGS)
            parts = [
                rows(*((key, "a", *values) for key in ("k", "new")))
                for values in ((5, "oldest", 5), (20, None, None), (10, "middle", None))
            ]
            write(path, [parts[one] for one in order], settings=SETTINGS)

            assert shown(path) == [("a", "k", 20, "middle", 5), ("a", "new", 20, "middle", 5)]


def check_partial_rows_in_logs(place: Path) -> None:
    """Check what a partial update leaves in a log file, and that a reader and a compaction lay it over the base."""
    path = place / "t"
    write(
        path, rows(("k", "a", 10, "first", 1), ("l", "a", 10, "x", 1)), table=made(None, logs=True), settings=SETTINGS
    )
    write(path, rows(("k", "a", 11, 2), columns=("id", "p", "ts", "n")), settings=PARTIAL)

    assert [(one.is_partial, columns_of(one).names[5:]) for one in log_blocks(path)] == [(True, ["p", "ts", "n"])]
    whole = [("a", "k", 11, "first", 2), ("a", "l", 10, "x", 1)]
    assert shown(path) == whole
    compacting.run(path)
    assert shown(path) == whole


def check_whole_rows_in_logs(place: Path) -> None:
    """Check that a table with the column of the delete flag gets whole rows, laid over base rows and log entries."""
    names = ("id", "p", "ts", "name", "n", IS_DELETED)
    some = ("id", "p", "ts", "n")
    for number, ordered in enumerate((True, False)):
        path = place / f"t{number}"
        before = [(key, "a", 10, key, 1, None) for key in ("k", "l", "m", "o")]
        write(path, rows(*before, columns=names), table=made(None, logs=True, ordered=ordered), settings=SETTINGS)
        write(path, rows(("l", "a", 12, "logged", None, False), columns=names), settings=SETTINGS)
        result = write(
            path, rows(("k", "a", 11, 2), ("l", "a", 13, 3), ("m", "a", 10, 4), columns=some), settings=PARTIAL
        )

        assert (result.updates, result.log_files, result.files) == (3, 1, 0)
        assert [(one.is_partial, set(names) <= {*columns_of(one).names}) for one in log_blocks(path)] == [
            (False, True),
            (False, True),
        ]
        whole = [("a", "k", 11, "k", 2), ("a", "l", 13, "logged", 3), ("a", "m", 10, "m", 4), ("a", "o", 10, "o", 1)]
        assert shown(path) == whole
        late = write(path, rows(("o", "a", 9, 5), columns=some), settings=PARTIAL)
        assert (late.updates, late.log_files) == ((0, 0) if ordered else (1, 1))
        whole[3] = ("a", "o", 10, "o", 1) if ordered else ("a", "o", 9, "o", 5)
        assert shown(path) == whole
        with pytest.raises(KeyNotFoundError, match=r"'new'.*partition 'a'"):
            write(path, rows(("k", "a", 20, 6), ("new", "a", 20, 7), columns=some), settings=PARTIAL)
        assert shown(path) == whole
        compacting.run(path)
        assert shown(path) == whole


def check_late_partial_rows(place: Path) -> None:
    """Check that a row which comes too late changes nothing, on both kinds of table."""
    for logs in (False, True):
        path = place / f"t{logs}"
        write(path, rows(("k", "a", 10, "first", 1)), table=made(None, logs=logs), settings=SETTINGS)
        write(path, rows(("k", "a", 3, 9), columns=("id", "p", "ts", "n")), settings=PARTIAL)

        assert shown(path) == [("a", "k", 10, "first", 1)]


def check_unknown_keys(place: Path) -> None:
    """Check that a partial update of a key that is not there is refused and leaves nothing."""
    for index in ("BUCKET", "SIMPLE"):
        for logs in (False, True):
            path = place / f"t{index}{logs}"
            before = rows(("k", "a", 10, "first", 1), ("gone", "a", 10, "x", 1))
            write(path, before, table=made(None, logs=logs, index=index), settings=SETTINGS)
            write(path, rows(("gone", "a"), columns=("id", "p")), operation="delete", settings=SETTINGS)
            for key, partition in (("gone", "a"), ("new", "a"), ("k", "b")):
                some = rows(("k", "a", 11, 2), (key, partition, 12, 3), columns=("id", "p", "ts", "n"))
                with pytest.raises(KeyNotFoundError, match=f"'{key}'.*partition '{partition}'"):
                    write(path, some, settings=PARTIAL)

            assert shown(path) == [("a", "k", 10, "first", 1)]


def check_deletes_and_partial_rows(place: Path) -> None:
    """Check that deletes go along with partial updates, but before no row of their own key."""
    names = ("id", "p", "ts", "n", "_hoodie_is_deleted")
    for logs in (False, True):
        path = place / f"t{logs}"
        before = rows(("k", "a", 10, "first", 1), ("l", "a", 10, "x", 1), ("m", "a", 10, "y", 1))
        write(path, before, table=made(None, logs=logs), settings=SETTINGS)
        some = (("k", "a", 11, 2, False), ("l", "a", 12, None, True), ("m", "a", 11, 5, None), ("m", "a", 12, 0, True))
        write(path, rows(*some, columns=names), settings=PARTIAL)

        assert shown(path) == [("a", "k", 11, "first", 2)]

        for tasks in (1, 2):
            both = [rows(("k", "a", 12, None, True), columns=names), rows(("k", "a", 13, 4, False), columns=names)]
            with pytest.raises(KeyNotFoundError, match="'k' is deleted by a row of this write"):
                write(path, both if tasks == 2 else pa.concat_tables(both), settings=PARTIAL)

        assert shown(path) == [("a", "k", 11, "first", 2)]


def check_random_steps(place: Path) -> None:
    """Check a history of partial and whole rows on a copy-on-write table."""
    check_steps(place / "t", random_steps(1, mode=None), made(None, logs=False))


def shown(path: Path | str) -> list[tuple[object, ...]]:
    """Return the table's rows, in the order of partition and key."""
    table = read(path)
    found = zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
    return sorted(found, key=lambda one: one[:2])


def log_blocks(path: Path | str) -> list[LogBlock]:
    """Return the blocks of all log files of the newest slices."""
    storage = open_storage(str(path))
    return [
        block
        for file_slice in compacting.slices(path)
        for log in file_slice.logs
        for block in read_blocks(storage, log.path)
    ]
