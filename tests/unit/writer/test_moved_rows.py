"""Where rows go under an index whose keys are unique in the whole table, whatever partitions they come with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.index.base import KeyedRows, Positions, Tags
from pyhudi.storage import open_storage
from pyhudi.table.files.file_group import FileSlice, LogFile
from pyhudi.table.files.names import FileGroupId, LogFileName
from pyhudi.table.merging.deletes import IS_DELETED
from pyhudi.table.merging.row_spec import RowSpec
from pyhudi.table.schema.columns import RECORD_KEY
from pyhudi.writer.moved_rows import OldRows, PairState, resolve, tombstones
from support.share import share_of

GROUPS = tuple(FileGroupId(path, f"{path}{number}") for path in "pqr" for number in (1, 2))


def keyed(paths: list[str]) -> KeyedRows:
    keys = pa.array([f"k{number}" for number in range(len(paths))], pa.string())
    return KeyedRows(keys, pa.array(paths, pa.string()).dictionary_encode())


def tags(places: list[list[int]]) -> Tags:
    """Return tags of rows whose keys are in the file groups of these numbers."""
    copies = [(row, code) for row, codes in enumerate(places) for code in codes[1:]]
    return Tags(
        GROUPS,
        np.array([codes[0] if codes else -1 for codes in places], np.int32),
        copied=np.array([row for row, _ in copies], np.int64),
        copy_codes=np.array([code for _, code in copies], np.int32),
    )


# When each of the file groups began.
SINCE = np.array([3, 5, 1, 4, 0, 2])
PLACES = st.dictionaries(st.integers(0, 5), st.tuples(st.booleans(), st.booleans()), max_size=3)


@settings(deadline=None, max_examples=share_of(300))
@given(st.lists(st.tuples(st.sampled_from("pqs"), PLACES, st.booleans()), max_size=12), st.booleans())
def test_a_key_is_in_one_partition_afterwards(
    rows: list[tuple[str, dict[int, tuple[bool, bool]], bool]], moves: bool
) -> None:
    """Each row has a partition, and places of its key: whether a row is left there, and whether that one wins."""
    paths, places, deletes = ([one[part] for one in rows] for part in range(3))
    asked: list[tuple[int, int]] = []

    def look(positions: Positions, codes: np.ndarray) -> PairState:
        pairs = list(zip(positions.tolist(), codes.tolist(), strict=True))
        asked.extend(pairs)
        live, wins = (np.array([places[row][code][part] for row, code in pairs], np.bool_) for part in (0, 1))
        return PairState(live, live & wins, SINCE[codes])

    resolved = resolve(
        keyed(paths), tags([list(one) for one in places]), np.array(deletes, np.bool_), look, moves=moves
    )

    meets, leaves = (
        list(zip(resolved.rows, resolved.codes, strict=True)),
        list(zip(resolved.leaving, resolved.left, strict=True)),
    )
    assert len({*meets}) == len(meets) and len({*leaves}) == len(leaves) and len({*asked}) == len(asked)
    assert resolved.new.tolist() == sorted({*resolved.new.tolist()})
    for row, (path, key_places, delete) in enumerate(rows):
        at_home = {code for code in key_places if GROUPS[code].partition_path == path}
        elsewhere = {*key_places} - at_home
        met, left, looked_at = ({code for one, code in pairs if one == row} for pairs in (meets, leaves, asked))
        if delete:
            assert (met, left, looked_at) == ({*key_places}, set(), set())
            assert (row in resolved.new) == (not key_places)
            continue
        assert looked_at == ({*key_places} if len(key_places) > 1 else elsewhere)
        # Where all are gone, the row meets the delete in the newest place at home.
        first = sorted((code for code in key_places if code in at_home), key=SINCE.__getitem__)[-1:]
        live = {code for code in key_places if key_places[code][0] or code not in looked_at} or {*first}
        if moves and any(key_places[code][1] for code in live & elsewhere):
            assert (met, left, row in resolved.new) == (set(), set(), False)
            continue
        assert left == (live & elsewhere if moves else set())
        assert met == live - left
        assert (row in resolved.new) == (not met)
        # What is added, or stays, is in one partition alone where rows move.
        assert not moves or {GROUPS[code].partition_path for code in met} <= {path}


def test_rows_of_a_table_without_their_keys_are_all_new() -> None:
    resolved = resolve(keyed(["p", "q"]), Tags((), np.full(2, -1, np.int32)), np.zeros(2, np.bool_), _never, moves=True)

    assert resolved.new.tolist() == [0, 1]
    assert not len(resolved.rows) and not len(resolved.leaving)


def _never(rows: Positions, codes: np.ndarray) -> PairState:
    raise AssertionError("there is nothing to look at")


LOG = LogFile("p/.log", 10, LogFileName("p1", "1", 1))


@dataclass
class Slices:
    """Slices that are told by their file groups, with the times that their keys have."""

    times: dict[FileGroupId, dict[str, int | None]]
    logs: tuple[LogFile, ...] = ()
    read: list[FileGroupId] = field(default_factory=list)

    def old_rows(self, *ordering: str, judges: bool = True) -> OldRows:
        spec = RowSpec(pa.schema([pa.field("ts", pa.int64(), nullable=False)]), ordering, deletes=False)
        return OldRows(open_storage("memory://moved"), spec, judges, self._piece, self._read)

    def _piece(self, group: FileGroupId) -> FileSlice:
        return FileSlice(group, "1", None, self.logs)

    def _read(self, file_slice: FileSlice, columns: pa.Schema, keys: pa.StringArray) -> Iterator[pa.RecordBatch]:
        assert len(keys.unique()) == len(keys)
        self.read.append(file_slice.group)
        for key, time in self.times[file_slice.group].items():
            row = {RECORD_KEY: pa.array([key]), "ts": pa.array([time], pa.int64())}
            yield pa.RecordBatch.from_arrays([row[name] for name in columns.names], schema=columns)


INCOMING = pa.record_batch({RECORD_KEY: [f"k{number}" for number in range(4)], "ts": [10, 20, 30, 40]})


def test_a_row_that_is_newer_where_it_was_wins() -> None:
    slices = Slices({GROUPS[0]: {"k0": 11, "k1": 20, "other": 99, "k2": None}, GROUPS[2]: {"k3": 41, "k0": 9}})
    look = slices.old_rows("ts").look(INCOMING, GROUPS)

    pair_state = look(np.array([0, 3, 1, 2, 0, 1]), np.array([0, 2, 0, 0, 2, 2], np.int32))

    assert pair_state.wins.tolist() == [True, True, False, False, False, False]
    assert pair_state.live.tolist() == [True, True, True, True, True, False]
    assert sorted(slices.read) == [GROUPS[0], GROUPS[2]]


@pytest.mark.parametrize(("ordering", "judges"), [((), True), (("ts",), False)])
def test_base_files_are_not_read_where_no_row_is_judged(ordering: tuple[str, ...], judges: bool) -> None:
    slices = Slices({GROUPS[0]: {"k0": 11}})
    found = slices.old_rows(*ordering, judges=judges).look(INCOMING, GROUPS)(np.array([0]), np.array([0], np.int32))

    assert (found.live.tolist(), found.wins.tolist(), slices.read) == ([True], [False], [])


def test_log_files_may_have_deleted_a_row_also_of_a_key_that_comes_twice() -> None:
    slices = Slices({GROUPS[0]: {"k0": 11}}, (LOG,))
    twice = pa.record_batch({RECORD_KEY: ["k1", "k0", "k1", "k0"], "ts": [1, 1, 1, 1]})
    look = slices.old_rows("ts", judges=False).look(twice, GROUPS)

    found = look(np.arange(4), np.zeros(4, np.int32))

    assert (found.live.tolist(), found.wins.tolist()) == ([False, True, False, True], [False] * 4)


@pytest.mark.parametrize("flag", [pa.field(IS_DELETED, pa.bool_()), pa.field(IS_DELETED, pa.bool_(), nullable=False)])
def test_a_tombstone_is_a_delete_with_the_values_of_its_row(flag: pa.Field) -> None:
    schema = pa.schema([pa.field(RECORD_KEY, pa.string()), pa.field("ts", pa.int64()), flag])
    rows = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), pa.array([1, 2]), pa.array([False, False])], schema=schema)

    delete_rows = tombstones(rows)

    assert delete_rows.schema == schema
    assert delete_rows.to_pydict() == {RECORD_KEY: ["a", "b"], "ts": [1, 2], IS_DELETED: [True, True]}
