"""Tables of version 6 brought to versions 8 and 9: the same rows at each time, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faults.test_decisions import nothing_is_carried_out
from pyhudi import arrow
from pyhudi.errors import (
    ConcurrentWriteError,
    CorruptInstantError,
    PyHudiError,
    UnreadableTimeError,
    UnsupportedTableError,
)
from pyhudi.operations.services.versions import change_version as versions
from pyhudi.operations.services.versions.change_version import change_version
from pyhudi.operations.services.versions.timeline_copy import completion_times
from pyhudi.operations.version_change import VersionResult
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config import property_keys as key
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from support.attempts import IMPATIENT
from support.faults.faulty import Killed
from support.made.compacting import means
from support.places import files_below
from support.readers import read_without_spark
from support.recorded.recorded_past import AS_OF
from support.recorded.recorded_version_6 import HUDI_RS, shown, unpack
from support.rules.health import errors
from support.seams import patch_seam

OF_APACHE_HUDI = ["cow_archived", "cow_clustered", "cow_defaults", "cow_past", "cow_undone", "new_cow"]
OF_HUDI_RS = [
    "cow_complexkeygen_hivestyle",
    "cow_empty",
    "cow_nonpartitioned",
    "cow_simplekeygen_nonhivestyle",
    "cow_simplekeygen_nonhivestyle_overwritetable",
    "cow_timebasedkeygen_nonhivestyle",
]
MERGE_ON_READ = [
    "mor_archived",
    "mor_bucket",
    "mor_complexkeygen_hivestyle",
    "mor_empty",
    "mor_event_class",
    "mor_event_time",
    "mor_evolved",
    "mor_failed",
    "mor_ignore_defaults",
    "mor_latest",
    "mor_marked",
    "mor_non_defaults",
    "mor_nonpartitioned",
    "mor_nonpartitioned_rollback",
    "mor_pending",
    "mor_rolled_back",
    "mor_simplekeygen_nonhivestyle",
    "mor_simplekeygen_nonhivestyle_overwritetable",
    "mor_trips_8i1u",
    "mor_trips_8i3d",
    "mor_unordered",
    "new_mor",
]
# In version 8 the payload classes of others decide, by which pyhudi does not merge.
MERGE_ON_READ_TO_8 = ["mor_archived", "mor_latest", "mor_pending", "mor_unordered", "new_mor"]
# What each upgrade to version 9 sets, but for those that name the keys and the ordering fields of the table.
USUAL = {
    key.VERSION: "9",
    key.INITIAL_VERSION: "6",
    key.LAYOUT_VERSION: "2",
    key.TIMELINE_PATH: "timeline",
    key.MERGE_MODE: "EVENT_TIME_ORDERING",
    key.OLD_MERGE_STRATEGY: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    key.LEGACY_PAYLOAD_CLASS: "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = unpack(tmp_path_factory.mktemp("made"))
    shutil.unpack_archive(HUDI_RS, folder)
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Returns a copy of a table that the test may change, with the times of its files."""
    return lambda name: Path(shutil.copytree(made / name, tmp_path / name))


def upgrade(path: Path, to: int = 9, *, dry_run: bool = False, **other_means: Any) -> VersionResult:
    storage = open_storage(str(path))
    how = replace(means(storage), patience=IMPATIENT.patience, **other_means)
    return change_version(storage, "upgrade", to, how, dry_run=dry_run)


def version_of(path: Path) -> int:
    return load_config(open_storage(str(path))).version


def history(path: Path) -> list[Instant]:
    """Return the completed instants, the archived ones included."""
    table = open_table(open_storage(str(path)))
    found = {instant.identity: instant for instant in (*table.archive.instants(), *table.timeline().completed)}
    return [found[identity] for identity in sorted(found)]


def rows_at(table: Path, time: str) -> object:
    """Return the rows as of a time; None where a clean has taken files away."""
    try:
        return shown(read_without_spark(table, {AS_OF: time}))
    except UnreadableTimeError:
        return None


@pytest.mark.parametrize(
    ("name", "to"),
    [
        *((name, 9) for name in [*OF_APACHE_HUDI, *OF_HUDI_RS, *MERGE_ON_READ]),
        *((name, 8) for name in [*OF_APACHE_HUDI, *OF_HUDI_RS, *MERGE_ON_READ_TO_8]),
    ],
)
def test_a_table_shows_the_same_rows_now_and_at_each_of_its_instants(
    copied: Callable[[str], Path], name: str, to: int
) -> None:
    """But for the past of a merge-on-read table whose merge mode the upgrade changes."""
    table = copied(name)
    writes = open_table(open_storage(str(table))).timeline().writes
    now = shown(read_without_spark(table))
    then = {write.requested_time: rows_at(table, write.requested_time) for write in writes}
    before = {instant.identity for instant in history(table)}

    foretold = upgrade(table, to, dry_run=True)
    assert version_of(table) == 6
    result = upgrade(table, to)

    assert (version_of(table), result.from_version, result.to_version) == (to, 6, to)
    assert replace(foretold, dry=False, unfinished=result.unfinished) == result
    assert [one.split()[0] for one in result.unfinished] == [one.split()[0] for one in foretold.unfinished]
    assert errors(table) == []
    assert shown(read_without_spark(table)) == now
    completed = {write.requested_time: write.visible_since for write in history(table) if write.is_write}
    for requested, rows in then.items() if not result.changed_keys else ():
        assert rows_at(table, completed[requested]) == rows
    made = {instant.identity for instant in history(table)} - before
    assert before <= {instant.identity for instant in history(table)}
    assert len(made) == len(result.unfinished)
    left = {path.name for path in (table / ".hoodie").iterdir() if path.is_file()}
    assert left - {"hoodie.properties", "hoodie.properties.backup"} == set()
    assert not list((table / ".hoodie").glob("*/.commits_.archive*"))
    assert not upgrade(table, to).changed


# Of the others one is empty, one has a pending clustering, and one needs an option that Apache Hudi does not store.
@pytest.mark.parametrize(
    "name",
    sorted({*OF_APACHE_HUDI, *OF_HUDI_RS} - {"cow_empty", "cow_clustered", "cow_timebasedkeygen_nonhivestyle"}),
)
def test_an_upgraded_table_is_written_and_read_on(copied: Callable[[str], Path], name: str) -> None:
    path = copied(name)
    upgrade(path)
    table = arrow.Table(path)
    rows = table.read()

    table.upsert(rows.slice(0, 1))

    assert table.read().num_rows == rows.num_rows
    assert errors(path) == []


def test_properties_are_those_that_apache_hudi_sets(copied: Callable[[str], Path]) -> None:
    table = copied("cow_defaults")
    before = dict(load_config(open_storage(str(table))).properties)

    upgrade(table)

    after = load_config(open_storage(str(table))).properties
    changed = {option: text for option, text in after.items() if before.get(option) != text}
    named = {key.KEY_GENERATOR_TYPE: "NON_PARTITION", key.ORDERING_FIELDS: before[key.PRECOMBINE_FIELD]}
    assert {**changed, key.METADATA_PARTITIONS: ""} == {**USUAL, **named, key.METADATA_PARTITIONS: ""}
    assert set(before) - set(after) <= {key.PRECOMBINE_FIELD, key.METADATA_PARTITIONS}
    assert after[key.KEY_GENERATOR_CLASS] == before[key.KEY_GENERATOR_CLASS]


def test_a_dry_run_writes_nothing_and_says_what_it_would_do(copied: Callable[[str], Path]) -> None:
    table = copied("cow_undone")
    before = files_below(table)

    foretold = upgrade(table, dry_run=True)

    assert files_below(table) == before
    assert [text for text in foretold.unfinished if "20261129102602909" in text]
    assert any("0.15 lets the newest row win" in text for text in foretold.warnings)
    assert foretold.bytes > 0


def test_a_pending_clustering_is_carried_over(copied: Callable[[str], Path]) -> None:
    table = copied("cow_clustered")

    upgrade(table)

    pending = open_table(open_storage(str(table))).timeline().pending
    assert [(instant.requested_time, instant.action) for instant in pending] == [("20261129102512093", "clustering")]


@pytest.mark.parametrize("name", ["cow_past", "cow_archived"])
def test_an_instant_that_comes_while_others_are_copied_is_copied_too(
    copied: Callable[[str], Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a writer that does not look at the version; the decision is not made without it."""
    table = copied(name)
    folder = table / ".hoodie"
    newest = max(folder.glob("*.commit"))
    late = [path.rename(table.parent / path.name) for path in folder.glob(f"{newest.stem}.*")]
    decided = versions.set_properties
    begun: list[int] = []

    def complete_first(*given: object) -> None:
        if not begun:
            begun.append(1)
            for path in late:
                path.rename(folder / path.name)
        decided(*given)  # type: ignore[arg-type]

    patch_seam(monkeypatch, "decide on properties", complete_first)
    upgrade(table)

    assert f"{newest.stem}.commit" in {instant.identity for instant in history(table)}
    assert errors(table) == []


def test_a_decision_is_void_once_an_instant_came_since_the_copies(copied: Callable[[str], Path]) -> None:
    """The process that decided died, and a writer of Apache Hudi completed a write before another process came."""
    table = copied("cow_past")
    folder = table / ".hoodie"
    newest = max(folder.glob("*.commit"))
    late = [path.rename(table.parent / path.name) for path in folder.glob(f"{newest.stem}.*")]

    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        upgrade(table)
    for path in late:
        path.rename(folder / path.name)
    rows = shown(read_without_spark(table))

    upgrade(table)

    assert shown(read_without_spark(table)) == rows
    assert f"{newest.stem}.commit" in {instant.identity for instant in history(table)}
    assert errors(table) == []


@pytest.mark.parametrize("how", ["archived", "undone", "moved"])
def test_a_table_is_readable_beside_copies_of_what_left_its_timeline(copied: Callable[[str], Path], how: str) -> None:
    """But for instants that Apache Hudi moved, which are nowhere else."""
    table = copied("cow_undone" if how == "undone" else "cow_archived")
    storage = open_storage(str(table))
    opened = open_table(storage)
    folder = table / ".hoodie/timeline"
    folder.mkdir()
    rows = shown(read_without_spark(table))
    archived = [write.requested_time for write in opened.archive.writes()]
    [gone, *_] = {"archived": archived, "moved": ["20261129102500000"], "undone": undone_by(table)}[how]
    (folder / f"{gone}_20261129235959000.commit").write_bytes(b"x")

    if how == "moved":
        with pytest.raises(UnsupportedTableError, match="broke off"):
            read_without_spark(table)
        return
    assert shown(read_without_spark(table)) == rows
    upgrade(table)
    assert shown(read_without_spark(table)) == rows
    assert not list(folder.glob(f"{gone}_20261129235959000.*"))
    assert errors(table) == []


def _deleted_savepoint(table: arrow.Table, die: Callable[[], None]) -> None:
    savepoint_time = table.savepoint().instant
    die()
    table.delete_savepoint(savepoint_time)


def _restored(table: arrow.Table, die: Callable[[], None]) -> None:
    """A restore deletes the rollbacks that came after the write to which it goes back."""
    to = table.upsert(table.read().slice(0, 1)).instant
    table.rollback(table.upsert(table.read().slice(0, 1)).instant)
    table.upsert(table.read().slice(0, 1))
    die()
    table.restore(to)


def _rolled_back(table: arrow.Table, die: Callable[[], None]) -> None:
    undone = table.upsert(table.read().slice(0, 1)).instant
    die()
    table.rollback(undone)


def _archived_rollback(table: arrow.Table, die: Callable[[], None]) -> None:
    _rolled_back(table, die)
    for _ in range(4):
        table.upsert(table.read().slice(0, 1))
    table.clean(retain=1)
    table.archive(keep=2)
    left = open_table(open_storage(table.path)).timeline().instants
    assert not [instant for instant in left if instant.action == "rollback"]


@pytest.mark.parametrize("change", [_deleted_savepoint, _restored, _rolled_back, _archived_rollback])
def test_a_table_stays_usable_after_what_it_undid_beside_the_copies_of_an_upgrade_that_died(
    copied: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[arrow.Table, Callable[[], None]], None],
) -> None:
    """Copies of what left the timeline stay in the next layout, until the next upgrade deletes them."""
    path = copied("cow_past")

    def die() -> None:
        def killed(*_: object) -> None:
            raise Killed("upgrade")

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch_seam(patch, "decide on properties", killed)
            upgrade(path)

    change(arrow.Table(path), die)
    rows, instants = shown(read_without_spark(path)), [instant.identity for instant in history(path)]
    upgrade(path)

    assert shown(read_without_spark(path)) == rows
    assert [instant.identity for instant in history(path)] == instants
    assert errors(path) == []


def test_a_listing_beside_copies_of_archived_writes_reads_no_body_of_the_archive(
    copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive of version 6 decodes its files again for each body, and a write lists the table some ten times."""
    path = copied("cow_past")
    table = arrow.Table(path)
    undone = table.upsert(table.read().slice(0, 1)).instant
    table.rollback(undone)
    for _ in range(4):
        table.upsert(table.read().slice(0, 1))
    table.clean(retain=1)
    table.archive(keep=2)
    opened = open_table(open_storage(table.path))
    archived = opened.archive.instants()
    assert "rollback" in {instant.action for instant in archived}
    write = next(instant for instant in archived if instant.is_write)
    (path / ".hoodie/timeline").mkdir()
    (path / f".hoodie/timeline/{write.requested_time}_20261129235959000.{write.action}").write_bytes(b"x")

    def read(*_: object) -> None:
        raise AssertionError

    patch_seam(monkeypatch, "bodies that an old archive holds", read)
    assert opened.timeline().instants


def undone_by(path: Path) -> list[str]:
    timeline = open_table(open_storage(str(path))).timeline()
    found = [instant for instant in timeline.completed if instant.action == "restore"]
    return [time for instant in found for time in timeline.files.read_undone(instant)]


def test_what_a_call_left_behind_after_its_decision_is_removed_by_the_next(
    copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instants that the table does not have in its own layout stay."""
    table = copied("cow_archived")
    with monkeypatch.context() as patch:
        patch_seam(patch, "remove the old files of a timeline", lambda _: None)
        upgrade(table)
    stray = table / ".hoodie/20261129235959000.commit"
    stray.write_bytes(b"{}")
    rows = shown(read_without_spark(table))
    assert len(list((table / ".hoodie").glob("*.commit"))) > 1

    assert not upgrade(table).changed

    assert [path.name for path in (table / ".hoodie").glob("*.commit")] == [stray.name]
    assert not list((table / ".hoodie").glob("*/.commits_.archive*"))
    assert shown(read_without_spark(table)) == rows


@pytest.mark.parametrize("how", ["delete_savepoint", "restore"])
def test_old_files_of_what_the_table_deleted_since_keep_no_write_out(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that upgraded the table died before it deleted the old files."""
    path = tmp_path / "table"
    rows = pa.table({"id": ["1", "2"]})
    arrow.write(path, rows, record_key="id", **{"hoodie.write.table.version": "6"})
    table = arrow.Table(path)
    savepoint_instant = table.savepoint().instant
    undone = [table.upsert(rows).instant for _ in range(2)]
    table.rollback(undone[1])
    with monkeypatch.context() as patch:
        patch_seam(patch, "remove the old files of a timeline", lambda _: None)
        upgrade(path)

    if how == "restore":
        # It deletes the rollbacks of both, of which each has an old file.
        table.rollback(undone[0])
        table.upsert(rows)
        table.restore(savepoint_instant)
    else:
        table.delete_savepoint(savepoint_instant)

    assert errors(path) == []
    table.upsert(rows)
    upgrade(path)
    assert [file.name for file in (path / ".hoodie").glob("2*")] == []


def left_by_apache_hudi(table: Path) -> Path:
    """Upgrade a table as Apache Hudi does where it cannot read a commit: its other files move, and the run goes on."""
    folder = table / ".hoodie"
    newest = max(folder.glob("*.commit"))
    body = newest.read_bytes()
    upgrade(table)
    [copy] = (folder / "timeline").glob(f"{newest.stem}_*")
    copy.unlink()
    newest.write_bytes(body[:99])
    return newest


WRITES: dict[str, Callable[[arrow.Table], object]] = {
    "upsert": lambda table: table.upsert(table.read().slice(0, 1)),
    "clean": lambda table: table.clean(),
    "archive": lambda table: table.archive(),
    "savepoint": lambda table: table.savepoint(),
    "rollback": lambda table: table.rollback("20261129102431375"),
    "repair": lambda table: table.repair(),
    "downgrade": lambda table: table.downgrade(),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_table_that_was_upgraded_without_an_instant_is_not_written(copied: Callable[[str], Path], name: str) -> None:
    """The next write would roll it back, and delete its data files."""
    table = copied("cow_past")
    left = left_by_apache_hudi(table)
    before = files_below(table)

    with pytest.raises(UnsupportedTableError, match=left.name):
        WRITES[name](arrow.Table(table))

    assert files_below(table) == before
    assert "LEFT_BEHIND" in {found["code"] for found in errors(table)}


def test_a_repeated_upgrade_keeps_what_the_table_does_not_have(copied: Callable[[str], Path]) -> None:
    table = copied("cow_past")
    left = left_by_apache_hudi(table)

    upgrade(table)

    assert left.exists()


def test_what_was_undone_since_its_upgrade_is_not_left_behind(copied: Callable[[str], Path]) -> None:
    """The process that upgraded the table died before it deleted the old files."""
    table = copied("cow_past")
    upgrade(table)
    newest = open_table(open_storage(str(table))).timeline().writes[-1].requested_time
    arrow.Table(table).rollback(newest)
    left = table / f".hoodie/{newest}.commit"
    left.write_bytes(b"{}")
    assert errors(table) == []

    arrow.Table(table).upsert(arrow.Table(table).read().slice(0, 1))
    upgrade(table)

    assert not left.exists()


def spoil_bytes(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 400)


DEBEZIUM = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
REFUSED: dict[str, tuple[str, Callable[[Path], object], type[PyHudiError], str]] = {
    "rules of Debezium": (
        "mor_marked",
        lambda path: update_config(open_storage(str(path)), {key.PAYLOAD_CLASS: DEBEZIUM}),
        UnsupportedTableError,
        DEBEZIUM,
    ),
    "change data": (
        "mor_latest",
        lambda path: update_config(open_storage(str(path)), {key.CDC_ENABLED: "true"}),
        UnsupportedTableError,
        key.CDC_ENABLED,
    ),
    "no meta columns": (
        "cow_simplekeygen_hivestyle_no_metafields",
        lambda _: None,
        UnsupportedTableError,
        "populate.meta.fields",
    ),
    "class": (
        "cow_past",
        lambda path: update_config(open_storage(str(path)), {key.PAYLOAD_CLASS: "com.mine.Own"}),
        UnsupportedTableError,
        "com.mine.Own",
    ),
    "merger": (
        "cow_past",
        lambda path: update_config(open_storage(str(path)), {key.OLD_MERGE_STRATEGY: "mine"}),
        UnsupportedTableError,
        "mine",
    ),
    "torn commit": (
        "cow_past",
        lambda path: max((path / ".hoodie").glob("*.commit")).write_bytes(b"{"),
        CorruptInstantError,
        "20261129102433427.commit",
    ),
    "empty commit": (
        "cow_past",
        lambda path: max((path / ".hoodie").glob("*.commit")).write_bytes(b""),
        CorruptInstantError,
        "20261129102433427.commit",
    ),
    "torn archive": (
        "cow_archived",
        lambda path: spoil_bytes(path / ".hoodie/archived/.commits_.archive.1_1-0-1", 20_000),
        CorruptInstantError,
        "archive",
    ),
    "restore": (
        "cow_past",
        lambda path: (path / ".hoodie/20261129235959000.restore.requested").write_bytes(b""),
        ConcurrentWriteError,
        "restore",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_over_is_refused_and_nothing_changes(copied: Callable[[str], Path], name: str) -> None:
    of, spoil, kind, named = REFUSED[name]
    table = copied(of)
    spoil(table)
    before = files_below(table)

    for dry_run in (True, False):
        with pytest.raises(kind, match=named):
            upgrade(table, dry_run=dry_run)
    assert files_below(table) == before


T = "202611290000000{:02}"


@pytest.mark.parametrize(
    ("changed", "completed"),
    [
        (("05", "15", "25"), ("05", "15", "25")),
        (("99", "99", "99"), ("01", "11", "99")),
        (("00", "50", "21"), ("01", "11", "21")),
        ((None, None, None), ("01", "11", "21")),
    ],
)
def test_completion_times_are_in_the_order_of_requested_times(
    changed: tuple[str | None, ...], completed: tuple[str, ...]
) -> None:
    """Files of a copied table all have the time of the copy."""
    writes = [Instant(T.format(at), "commit", State.COMPLETED) for at in (0, 10, 20)]
    told = {write: time and T.format(int(time)) for write, time in zip(writes, changed, strict=True)}

    assert [*completion_times(told).values()] == [T.format(int(time)) for time in completed]
