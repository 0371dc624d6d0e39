"""A lookup spread over tasks: what each is to do, and that they find together what one process finds."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.index.base import KeyedRows
from pyhudi.index.bloom import BloomIndex
from pyhudi.index.lookup import SimpleIndex, TableLookup
from pyhudi.index.registry import lookup_for
from pyhudi.index.settings import LookupSettings
from pyhudi.index.slice_keys import Hits
from pyhudi.operations.locating.spread_lookup import LookTask, SpreadLookup, keys_in
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig, load_config
from pyhudi.table.config.property_keys import COPY_ON_WRITE, MERGE_ON_READ
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.base_file import MIN_KEY
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.files.lost import open_view
from pyhudi.table.files.names import FileGroupId
from pyhudi.table.schema.columns import RECORD_KEY
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import Table
from support.drawn.lookups import APART, TABLE, rows
from support.drawn.upkept import OFF
from support.drive import read, write
from support.made.keyed_files import KeyedFiles


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


class Tasks:
    """An executor that sends what it is given through a pickle, as engines do, and counts."""

    def __init__(self) -> None:
        self.shares: list[Any] = []

    def __call__(self, call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        self.shares += units
        return [sent(call)(sent(unit)) for unit in units]


# Log files stay: nothing merges them.
QUIET = replace(APART, upkeep=OFF)


class Made:
    """A table of three partitions, with keys in order of time and some that are twice."""

    def __init__(self, folder: Path, kind: str, table_type: str) -> None:
        path = folder / "t"
        table = replace(TABLE, index_type=kind, table_type=table_type)
        for start in range(0, 60, 20):
            for p in "abc":
                write(path, rows(*range(100 + start, 120 + start), value=1, p=p), table=table, settings=QUIET)
        write(path, rows(105, 150, value=2, p="b"), operation="insert", settings=QUIET)
        write(path, rows(101, 141, value=3, p="c"), settings=QUIET)
        self.path = path
        self.storage = open_storage(str(path))
        self.config = load_config(self.storage)
        self.timeline = Table(self.storage, self.config).timeline()
        assert any(file_slice.logs for file_slice in self.view().all_slices()) == (table_type == MERGE_ON_READ)
        self.seen = SeenTable(Table(self.storage, self.config), self.timeline)

    def view(self) -> Any:
        return open_view(self.timeline)

    def index(self, **settings: Any) -> TableLookup:
        found = lookup_for(self.config, LookupSettings(**settings))
        assert isinstance(found, TableLookup)
        return found


KINDS = [("SIMPLE", COPY_ON_WRITE), ("BLOOM", COPY_ON_WRITE), ("BLOOM", MERGE_ON_READ)]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"), *request.param)


def keyed(*keys: tuple[str, int]) -> KeyedRows:
    paths = pa.array([path for path, _ in keys]).dictionary_encode()
    return KeyedRows(pa.array([f"k{number}" for _, number in keys]), paths)


@pytest.mark.parametrize("most", [1, 4, 100])
def test_tasks_find_what_one_process_finds(made: Made, most: int) -> None:
    wanted = keyed(*((path, number) for number in (150, 170, 105, 99, 150, 141, 101) for path in "abcd"))
    tasks = Tasks()

    spread_tags = SpreadLookup(made.seen, made.index(), tasks, most).tag(wanted)

    alone = made.index().tag(wanted, made.view(), made.storage)
    assert replace(spread_tags.figures, seconds=0) == replace(alone.figures, seconds=0)
    assert spread_tags.groups == alone.groups
    assert spread_tags.codes.tolist() == alone.codes.tolist()
    assert spread_tags.copied.tolist() == alone.copied.tolist()
    assert spread_tags.copy_codes.tolist() == alone.copy_codes.tolist()
    assert len(spread_tags.copied) == 3, "k105 once and k150 twice, in partition b"
    slices = [file_slice.group for share in tasks.shares for _, pieces in share for file_slice in pieces]
    assert sorted(slices) == sorted(file_slice.group for file_slice in made.view().all_slices()), "each once"
    assert len(tasks.shares) == min(most, len(slices))


def test_tasks_see_no_more_than_the_lookup(tmp_path: Path) -> None:
    made = Made(tmp_path, "BLOOM", MERGE_ON_READ)
    logs = tuple(replace(file_slice, base=None) for file_slice in made.view().all_slices() if file_slice.logs)
    before = replace(made.seen, timeline=replace(made.timeline, instants=made.timeline.instants[:-1]))
    keys = pa.array(["k101", "k141"])

    now, then = (LookTask(seen, made.index())([(keys, logs)]) for seen in (made.seen, before))

    assert sorted(place for one in now for place in one.positions) == [0, 1]
    assert not any(len(one.positions) for one in then)


def test_no_task_tests_more_keys_than_it_should(made: Made) -> None:
    wanted = keyed(*(("a", number) for number in range(10)), ("b", 1))
    tasks = Tasks()

    SpreadLookup(made.seen, made.index(keys_per_task=20), tasks, 1).tag(wanted)

    pairs = [sum(len(keys) * len(pieces) for keys, pieces in share) for share in tasks.shares]
    assert pairs == [20, 14], "the ten keys of a three slices, and the one of four"


def test_all_keys_of_slices_are_those_that_readers_see(made: Made) -> None:
    placed_keys = [
        (file_slice.partition_path, key)
        for file_slice, keys, _ in keys_in(sent(made.seen), made.view().all_slices())
        for key in keys.to_pylist()
    ]

    shown = read(made.path)
    expected = set(zip(shown.column("p").to_pylist(), shown.column(RECORD_KEY).to_pylist(), strict=True))
    assert set(placed_keys) == expected


def test_only_files_beyond_the_keys_are_left_out(made: Made) -> None:
    spans = {"a": ("k125", "k130"), "b": ("k139", "k140"), "c": ("k00", "k099")}
    tasks = Tasks()
    every = made.view().all_slices()

    left = SpreadLookup(made.seen, BloomIndex(), tasks, 2).overlapping(every, spans)

    def meets(file_slice: FileSlice) -> bool:
        least, greatest = spans[file_slice.partition_path]
        keys = sorted(key for _, some, _ in keys_in(made.seen, [file_slice]) for key in some.to_pylist())
        return bool(file_slice.logs) or (keys[0] <= greatest and least <= keys[-1])

    assert left == [file_slice for file_slice in every if meets(file_slice)]
    assert 0 < len(left) < len(every)
    assert len(tasks.shares) <= 2


@pytest.mark.parametrize(
    ("span", "expected"), [(("a", "b"), []), (("a", "c"), [0]), (("e", "f"), [0]), (("d", "d"), [0]), (("f", "z"), [])]
)
def test_files_that_do_not_tell_their_keys_stay_and_bounds_belong_to_a_range(
    span: tuple[str, str], expected: list[int]
) -> None:
    files = KeyedFiles()
    groups = [files.add("p", keys) for keys in (["c", "e"], ["x", "z"])]
    files.say(groups[1], {MIN_KEY: None})
    opened = Table(
        files.storage, TableConfig.new(TableSettings(name="t", record_key_fields=("id",), index_type="BUCKET"))
    )
    table = SeenTable.now(opened)

    def left(index: TableLookup) -> list[FileGroupId]:
        def here(call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
            return [call(one) for one in units]

        found = SpreadLookup(table, index, here, 4).overlapping(files.all_slices(), {"p": span})
        return [file_slice.group for file_slice in found]

    assert left(BloomIndex()) == [groups[number] for number in [*expected, 1]]
    assert left(BloomIndex(LookupSettings(prunes_by_ranges=False))) == groups
    assert left(SimpleIndex()) == groups


@pytest.mark.parametrize("kind", ["SIMPLE", "BLOOM"])
@pytest.mark.parametrize("parts", [1, 40])
def test_what_the_driver_holds_of_as_many_keys_as_it_takes(tmp_path: Path, kind: str, parts: int) -> None:
    """Beside keys of 36 bytes about 200 a key, and one copy of them for all tasks, however many slices look."""
    count = 1 << 18
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)[np.random.default_rng(5).integers(0, 16, (count, 36))]
    ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * 36)
    keys = pa.StringArray.from_buffers(count, ends, pa.py_buffer(letters.tobytes()))
    numbers = pa.array(np.arange(count, dtype=np.int32) % parts)
    paths = pa.DictionaryArray.from_arrays(numbers, pa.array([f"p{number}" for number in range(parts)]))
    index = lookup_for(
        TableConfig.new(TableSettings(name="t", record_key_fields=("id",), index_type=kind)), LookupSettings()
    )
    assert isinstance(index, TableLookup)
    packed: list[int] = []

    def spread(_: Any, shares: Sequence[Any]) -> list[Any]:
        packed.append(len(pickle.dumps(shares)))
        return [[Hits.none() for _, pieces in share for _ in pieces] for share in shares]

    def slices(path: str) -> dict[str, FileSlice]:
        groups = [FileGroupId(path, str(number)) for number in range(40 // parts)]
        return {group.file_id: FileSlice(group, "1", None) for group in groups}

    storage = open_storage(str(tmp_path))
    seen: Any = SimpleNamespace(view=SimpleNamespace(slices=slices, storage=storage), storage=storage)
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        SpreadLookup(seen, index, spread, 200).tag(KeyedRows(keys, paths))
        peak = pool.max_memory() + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)

    assert packed[0] < keys.nbytes + (1 << 16)
    assert peak < 256 * count, f"{peak / count:.0f} bytes a key"
