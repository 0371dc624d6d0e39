"""Tables of version 6: what pyhudi, Apache Hudi 0.15 and 1.2 and hudi-rs show of each part of their pasts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import hudi
import pyarrow as pa
import pytest
from hudi import HudiTable
from pyhudi import arrow
from pyhudi.errors import UnreadableTimeError, UnsupportedTableError
from support.readers import read_without_spark
from support.recorded.recorded_past import AS_OF, BEGIN, END, TYPE, Query
from support.recorded.recorded_version_6 import HUDI_RS, NEW, OLD, answers, names, shown, unpack, without, writes

# Tables of hudi-rs that pyhudi refuses: they lack the meta columns.
REFUSED = {"cow_simplekeygen_hivestyle_no_metafields", "mor_simplekeygen_hivestyle_no_metafields"}
OF_HUDI_RS = [
    "cow_complexkeygen_hivestyle",
    "cow_empty",
    "cow_nonpartitioned",
    "cow_simplekeygen_nonhivestyle",
    "cow_simplekeygen_nonhivestyle_overwritetable",
    "cow_timebasedkeygen_nonhivestyle",
    "mor_complexkeygen_hivestyle",
    "mor_empty",
    "mor_nonpartitioned",
    "mor_nonpartitioned_rollback",
    "mor_simplekeygen_nonhivestyle",
    "mor_simplekeygen_nonhivestyle_overwritetable",
    "mor_trips_8i1u",
    "mor_trips_8i3d",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of Apache Hudi, which no test changes."""
    return unpack(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def of_hudi_rs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The test tables of hudi-rs, likewise."""
    folder = tmp_path_factory.mktemp("of_hudi_rs")
    shutil.unpack_archive(HUDI_RS, folder)
    yield folder


@pytest.mark.parametrize("name", OF_HUDI_RS)
def test_a_table_of_hudi_rs_shows_what_hudi_rs_shows(of_hudi_rs: Path, name: str) -> None:
    table = of_hudi_rs / name
    for time in (None, *writes(table)):
        options = hudi.HudiReadOptions()
        theirs = HudiTable(str(table)).read(options if time is None else options.with_as_of_timestamp(time))
        batches = [pa.record_batch(batch) for batch in theirs]
        ours = read_without_spark(table, {} if time is None else {AS_OF: time})
        # hudi-rs names no columns of a table without rows.
        assert shown(ours) == (shown(pa.Table.from_batches(batches)) if batches else (shown(ours)[0], []))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_table_without_meta_columns_is_refused_by_its_property(of_hudi_rs: Path, name: str) -> None:
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.populate\.meta\.fields=false"):
        read_without_spark(of_hudi_rs / name)


NOW, OPTIMIZED, PAST, WINDOW = "now", "read optimized", "as of", "window"
# Where pyhudi shows other rows than a release of Apache Hudi, by the kinds of queries (docs/versions.md says why): it
# shows what a clean has left whole, and refuses a window whose end it has not; of a window without the base file Apache
# Hudi shows log rows that lost; 0.15 merges log files otherwise, forgets rows of archived commits, and fails on windows
# under one class.
CLEANED = {"cow_archived", "mor_archived", "new_cow"}
DIFFERENT: Mapping[str, Mapping[str, set[str]]] = {
    OLD: {
        "cow_archived": {WINDOW},
        "mor_bucket": {NOW, PAST, WINDOW},
        "mor_event_class": {WINDOW},
        "mor_event_time": {NOW, PAST, WINDOW},
        "mor_ignore_defaults": {WINDOW},
        "mor_marked": {WINDOW},
        "mor_non_defaults": {NOW, PAST, WINDOW},
        "mor_rolled_back": {PAST},
        "new_cow": {WINDOW},
        "new_mor": {NOW, PAST, WINDOW},
    },
    NEW: {
        "mor_event_class": {WINDOW},
        "mor_event_time": {WINDOW},
        "mor_ignore_defaults": {WINDOW},
        "mor_non_defaults": {WINDOW},
        "new_mor": {WINDOW},
    },
}
# Apache Hudi gives rows whose values stay the time of the newest row that left them so.
OTHER_TIMES = {"mor_ignore_defaults"}
TIME = "_hoodie_commit_time"


@pytest.mark.parametrize("release", [OLD, NEW])
@pytest.mark.parametrize("name", names())
def test_a_table_shows_what_apache_hudi_shows(made: Path, name: str, release: str) -> None:
    different = set()
    left_out = [TIME] if name in OTHER_TIMES else []
    for answer in answers(name, release):
        try:
            ours = read_without_spark(made / name, answer.query).drop_columns(left_out)
        except UnreadableTimeError:
            assert name in CLEANED
            continue
        if without(answer, *left_out) != shown(ours) and not (answer.rows is None and name in CLEANED):
            different.add(kind_of(answer.query))
    assert different == DIFFERENT[release].get(name, set())


def kind_of(query: Query) -> str:
    kinds = {"incremental": WINDOW, "read_optimized": OPTIMIZED}
    return kinds[query[TYPE]] if TYPE in query else PAST if AS_OF in query else NOW


@pytest.mark.parametrize("name", sorted({*names()} - OTHER_TIMES))
def test_a_window_shows_the_rows_of_its_end_that_its_commits_wrote(made: Path, name: str) -> None:
    """As 1.2 shows the table at each of its instants."""
    at = {answer.query[AS_OF]: answer for answer in answers(name, NEW) if AS_OF in answer.query}
    checked = 0
    for answer in answers(name, NEW):
        begin, end = answer.query.get(BEGIN), answer.query.get(END)
        then = at.get(end or "")
        if begin is None or then is None or then.rows is None or answer.rows is None:
            continue
        try:
            ours = read_without_spark(made / name, answer.query)
        except UnreadableTimeError:
            assert name in CLEANED
            continue
        time = then.columns.index(TIME)
        written = [row for row in then.rows if begin < row[time] <= (end or "")]
        # A window has the columns of today.
        assert shown(ours.select(then.columns))[1] == written, answer.query
        checked += 1
    assert checked


# For each column that decides over a table's partitions or keys, a value that it has.
CONDITIONS = {"id": 1, "byteField": 10, "shortField": 300, "ts_str": "2023-04-01T12:01:00.123Z", "city": "chennai"}


@pytest.mark.parametrize("name", OF_HUDI_RS)
def test_a_condition_leaves_out_no_row_under_any_key_generator(of_hudi_rs: Path, name: str) -> None:
    every = arrow.read(str(of_hudi_rs / name)).to_pylist()
    for column, value in CONDITIONS.items():
        if every and column in every[0]:
            found = arrow.read(str(of_hudi_rs / name), where=f"{column} = {value!r}").to_pylist()
            assert sorted(map(str, found)) == sorted(str(row) for row in every if row[column] == value)
