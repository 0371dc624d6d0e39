"""Tables brought to another version: the properties that Apache Hudi sets, the same rows, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.errors import (
    CommitConflictError,
    ConcurrentWriteError,
    CorruptInstantError,
    InvalidOptionError,
    PyHudiError,
    TableVersionError,
    UnsupportedTableError,
)
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.services.rescale.rescale import rescale_buckets
from pyhudi.operations.services.versions import change_version as versions
from pyhudi.operations.services.versions.change_version import change_version
from pyhudi.operations.version_change import VersionResult
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.config import PROPERTIES_PATH, TableConfig, load_config, update_config
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.config.version_changes import changes_to_8, changes_to_9
from pyhudi.table.table import open_table
from pyhudi.timeline import formats
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers import decisions
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import plan, rows_of, task, write
from support.made import compacting
from support.made.compacting import means
from support.places import files_below
from support.recorded.fixture_tables import unpack
from support.rules.ends import assert_whole
from support.rules.health import errors
from support.seams import patch_seam

RECORDED = json.loads((Path(__file__).parents[1] / "fixtures/versions/apache_hudi_1_2.json").read_text())
QUIET = replace(IMPATIENT, upkeep=OFF)
PATIENT = WriteSettings(upkeep=OFF)
LOGGED = replace(PARTED, table_type="MERGE_ON_READ")
DMS = {
    key.PAYLOAD_CLASS: "org.apache.hudi.common.model.AWSDmsAvroPayload",
    key.MERGE_MODE: "CUSTOM",
    key.MERGE_STRATEGY: "00000000-0000-0000-0000-000000000000",
}


def made(path: Path, version: int, table: TableSettings = PARTED, settings: WriteSettings = QUIET) -> None:
    for value in (1, 2):
        write(path, [parted("a", 1, 2, 3, value=value)], table=replace(table, version=version), settings=settings)


def change(path: Path, to: int, *, dry_run: bool = False) -> VersionResult:
    storage = open_storage(str(path))
    name = "upgrade" if to == 9 else "downgrade"
    how = replace(means(storage), patience=IMPATIENT.patience)
    return change_version(storage, name, to, how, dry_run=dry_run)


def config_of(path: Path) -> TableConfig:
    return load_config(open_storage(str(path)))


def set_properties(path: Path, **changes: str | None) -> None:
    update_config(open_storage(str(path)), changes)


def changed(before: dict[str, str], changes: dict[str, str | None]) -> dict[str, str | None]:
    return {name: text for name, text in changes.items() if before.get(name) != text}


@pytest.mark.parametrize("name", RECORDED)
def test_properties_change_as_by_apache_hudi(name: str) -> None:
    """But for the payload class of a table that was made in version 9 without one, which version 8 needs."""
    recorded = RECORDED[name]
    before = recorded["made"]
    if "upgrade" in recorded:
        assert changed(before, changes_to_9(TableConfig(before))) == recorded["upgrade"]
        merged = {**before, **recorded["upgrade"]}
        before = {option: text for option, text in merged.items() if text is not None}
    ours = changed(before, changes_to_8(TableConfig(before)))
    added = {} if key.LEGACY_PAYLOAD_CLASS in before else {key.PAYLOAD_CLASS: ours[key.PAYLOAD_CLASS]}

    assert ours == {**recorded["downgrade"], **added}


@pytest.mark.parametrize("table", [PARTED, LOGGED], ids=lambda table: table.table_type or "COPY_ON_WRITE")
@pytest.mark.parametrize(("version", "to"), [(8, 9), (9, 8)])
def test_a_table_goes_on_in_the_other_version(tmp_path: Path, table: TableSettings, version: int, to: int) -> None:
    made(tmp_path, version, table)
    rows = rows_of(tmp_path, "id", "value")
    files = {path: data for path, data in files_below(tmp_path).items() if not path.startswith(".hoodie")}

    foretold = change(tmp_path, to, dry_run=True)
    assert config_of(tmp_path).version == version
    result = change(tmp_path, to)

    assert replace(foretold, dry=False) == result
    assert (result.from_version, result.to_version, result.changed_keys, result.warnings) == (version, to, 0, ())
    assert config_of(tmp_path).version == to
    assert rows_of(tmp_path, "id", "value") == rows
    assert {path: data for path, data in files_below(tmp_path).items() if not path.startswith(".hoodie")} == files
    assert not change(tmp_path, to).changed
    write(tmp_path, [parted("a", 1, 9, value=7)], settings=QUIET)
    assert rows_of(tmp_path, "id", "value") == [("k1", 7), ("k2", 2), ("k3", 2), ("k9", 7)]
    change(tmp_path, version)
    write(tmp_path, [parted("a", 9, value=8)], settings=QUIET)
    assert rows_of(tmp_path, "id", "value")[-1] == ("k9", 8)
    assert_whole(tmp_path)


@pytest.mark.parametrize("name", ["v8_cow", "v8_complex", "v8_mor", "v8_mor_commit_time", "v8_mor_kept"])
def test_tables_of_apache_hudi_1_0_show_the_same_rows_in_version_9_and_back(tmp_path: Path, name: str) -> None:
    """Cleaned, archived, with a metadata table, with bare keys, or with a pending compaction."""
    path = Path(unpack(name, tmp_path))
    rows = rows_of(path, "_hoodie_record_key", "name", "ts")
    old_properties = config_of(path).properties

    up = change(path, 9)

    assert (up.to_version, up.changed_keys) == (9, 0)
    assert len(up.unfinished) == (name == "v8_mor_kept")
    assert rows_of(path, "_hoodie_record_key", "name", "ts") == rows
    assert errors(path) == []
    change(path, 8)
    assert rows_of(path, "_hoodie_record_key", "name", "ts") == rows
    differing = {option for option, text in config_of(path).properties.items() if old_properties.get(option) != text}
    assert {option for option in differing if ".metadata." not in option} <= {
        "hoodie.compaction.record.merger.strategy",
        key.COMPLEX_KEY_ENCODING,
    }


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    made(tmp_path, 8)
    before = files_below(tmp_path)

    change(tmp_path, 9, dry_run=True)

    assert files_below(tmp_path) == before


def test_a_write_that_was_planned_before_gives_way(tmp_path: Path) -> None:
    """In its commit, and leaves nothing; planned again it goes by the new version."""
    made(tmp_path, 8)
    rows = parted("a", 1, value=9)
    planned = plan(tmp_path, rows.schema, settings=PATIENT)
    change(tmp_path, 9)

    with pytest.raises(CommitConflictError, match=r"was upgraded meanwhile, from version 8 .* to version 9"):
        commit_write(planned, [task(planned, rows, 0)])
    abort_write(planned)

    assert config_of(tmp_path).version == 9
    assert ("k1", 9) not in rows_of(tmp_path, "id", "value")
    write(tmp_path, [rows], settings=QUIET)
    assert ("k1", 9) in rows_of(tmp_path, "id", "value")
    assert_whole(tmp_path)


@pytest.mark.parametrize("lives", [True, False])
def test_a_living_writer_keeps_it_out_and_a_dead_write_is_rolled_back(tmp_path: Path, lives: bool) -> None:
    made(tmp_path, 8)
    rows = parted("a", 1, value=9)
    planned = plan(tmp_path, rows.schema, settings=PATIENT if lives else QUIET)
    task(planned, rows, 0)
    storage = open_storage(str(tmp_path))
    [pending] = open_table(storage).timeline().pending
    if lives:
        for dry_run in (True, False):
            with pytest.raises(ConcurrentWriteError, match=pending.requested_time):
                change(tmp_path, 9, dry_run=dry_run)
        assert config_of(tmp_path).version == 8
        return

    foretold = change(tmp_path, 9, dry_run=True)
    result = change(tmp_path, 9)

    assert foretold.unfinished == result.unfinished
    assert [pending.requested_time in sentence for sentence in result.unfinished] == [True]
    assert not open_table(storage).timeline().pending
    assert_whole(tmp_path)


def test_a_write_that_begins_right_before_the_decision_is_done_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, 8)
    rows = parted("a", 1, value=9)
    planned = plan(tmp_path, rows.schema, settings=QUIET)
    decided = versions.set_properties
    begun: list[int] = []

    def begin_first(*given: Any) -> None:
        if not begun:
            begun.append(1)
            task(planned, rows, 0)
        decided(*given)

    patch_seam(monkeypatch, "decide on properties", begin_first)
    done = change(tmp_path, 9)

    assert len(done.unfinished) == 1
    assert not open_table(open_storage(str(tmp_path))).timeline().pending
    assert config_of(tmp_path).version == 9
    assert_whole(tmp_path)


@pytest.mark.parametrize("of_class", [False, True])
def test_a_pending_compaction_is_carried_out_first_or_taken_back(tmp_path: Path, of_class: bool) -> None:
    """By the rules of a payload class pyhudi cannot merge, so that it takes such a plan back."""
    table = replace(compacting.TABLE, version=8)
    write(tmp_path, compacting.rows(("k1", "a", 1, 1)), table=table, settings=QUIET)
    write(tmp_path, compacting.rows(("k1", "a", 2, 2)), settings=QUIET)
    plan = compacting.schedule(tmp_path).instant
    write(tmp_path, compacting.rows(("k1", "a", 3, 3)), settings=QUIET)
    if of_class:
        set_properties(tmp_path, **DMS)

    done = change(tmp_path, 9)

    assert done.unfinished == (f"{'Take back' if of_class else 'Carry out'} the compaction {plan}.",)
    timeline = open_table(open_storage(str(tmp_path))).timeline()
    assert not timeline.pending
    assert (timeline.write_at(plan) is None) == of_class
    assert rows_of(tmp_path, "id", "value") == [("k1", 3)]
    assert_whole(tmp_path)


def test_it_counts_the_keys_whose_row_depends_on_their_order(tmp_path: Path) -> None:
    """A class of version 8 becomes a merge mode in version 9: k1 has a later row with a smaller ordering value."""
    table = replace(compacting.TABLE, version=8)
    write(tmp_path, compacting.rows(("k1", "a", 5, 1), ("k2", "a", 5, 1)), table=table, settings=QUIET)
    write(tmp_path, compacting.rows(("k1", "a", 2, 2), ("k2", "a", 6, 2)), settings=QUIET)
    set_properties(tmp_path, **DMS)

    foretold = change(tmp_path, 9, dry_run=True)

    assert foretold.changed_keys == 1
    assert any("COMMIT_TIME_ORDERING instead of CUSTOM" in text for text in foretold.warnings)
    assert "at most 1 key shows another row" in str(foretold)


def test_the_metadata_table_goes_out_of_use_in_the_same_decision(tmp_path: Path) -> None:
    made(tmp_path, 8)
    (tmp_path / ".hoodie/metadata/files").mkdir(parents=True)
    (tmp_path / ".hoodie/metadata/files/a").write_bytes(b"x")
    set_properties(tmp_path, **{key.METADATA_PARTITIONS: "files"})

    change(tmp_path, 9)

    storage = open_storage(str(tmp_path))
    assert config_of(tmp_path).metadata_partitions == ()
    stored_decisions = [storage.read(decisions.path_of(number)) for number in decisions.numbers(storage)[-2:]]
    parsed = [decisions.Decision.parse(data) for data in stored_decisions]
    assert [one and one.kind.name for one in parsed] == ["SET_PROPERTIES", "CLOSE"]
    assert parsed[0] is not None
    assert {key.VERSION, key.METADATA_PARTITIONS} <= set(parsed[0].changes)
    assert formats.number_of(json.loads(stored_decisions[0].splitlines()[1])) == formats.DECISION


@pytest.mark.parametrize("back", ["the same file", "the same properties"])
def test_what_was_changed_back_stays(tmp_path: Path, back: str) -> None:
    """By a restored file, or by Apache Hudi, which puts the time into it: no process carries the decision out again."""
    made(tmp_path, 8)
    place = tmp_path / PROPERTIES_PATH
    before = place.read_bytes()
    change(tmp_path, 9)
    if back == "the same properties":
        storage = open_storage(str(tmp_path))
        # Its maker died before it made the next decision.
        storage.delete(decisions.path_of(decisions.numbers(storage)[-1]))
        before = before.replace(b"#Hudi table properties", b"#Updated at 2026-11-29T11:00:00Z")
    place.write_bytes(before)

    write(tmp_path, [parted("a", 1, value=9)], settings=QUIET)

    assert config_of(tmp_path).version == 8
    assert ("k1", 9) in rows_of(tmp_path, "id", "value")


@pytest.mark.parametrize("version", [8, 9])
def test_the_spelling_of_keys_of_one_field_is_noted(tmp_path: Path, version: int) -> None:
    """Its absence means another spelling in another version."""
    table = TableSettings(record_key_fields=("id",), key_generator=KeyGeneratorType.COMPLEX, bucket_count=1)
    rows = pa.table({"id": ["a"], "ts": [1]})
    write(tmp_path, [rows], table=replace(table, version=version), settings=QUIET)
    set_properties(tmp_path, **{key.COMPLEX_KEY_ENCODING: None})
    spelled = rows_of(tmp_path, "_hoodie_record_key")

    result = change(tmp_path, 17 - version)

    noted = "VALUE_ONLY" if version == 8 else "FIELD_PREFIXED"
    assert config_of(tmp_path).properties[key.COMPLEX_KEY_ENCODING] == noted
    assert any("a second time" in text for text in result.warnings)
    write(tmp_path, [rows], settings=QUIET)
    assert rows_of(tmp_path, "_hoodie_record_key") == spelled


def test_rules_of_buckets_count_in_a_table_that_was_in_both_versions(tmp_path: Path) -> None:
    made(tmp_path, 9)
    change(tmp_path, 8)
    storage = open_storage(str(tmp_path))
    rescale_buckets(storage, 3, means(storage))
    change(tmp_path, 9)
    write(tmp_path, [parted("a", *range(9), value=9)], settings=QUIET)

    assert len(rows_of(tmp_path, "id")) == 9
    assert_whole(tmp_path)


LOST: dict[str, tuple[int, dict[str, str | None], str]] = {
    "class": (8, {**DMS, key.PAYLOAD_CLASS: "com.mine.Own"}, "com.mine.Own"),
    "merger": (8, {key.MERGE_MODE: "CUSTOM", key.MERGE_STRATEGY: "1", key.PAYLOAD_CLASS: None}, "CUSTOM"),
    "merger of 9": (9, {key.MERGE_MODE: "CUSTOM"}, "CUSTOM"),
    "ordering fields": (9, {key.ORDERING_FIELDS: "ts,value"}, "ts,value"),
    "partial updates": (9, {key.PARTIAL_UPDATE_MODE: "IGNORE_DEFAULTS"}, "IGNORE_DEFAULTS"),
    "delete marker": (9, {key.DELETE_FIELD: "value", key.DELETE_MARKER: "1"}, "delete.field"),
    "record index": (9, {key.METADATA_PARTITIONS: "files,record_index"}, "record_index"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_the_other_version_cannot_say_is_refused(tmp_path: Path, name: str) -> None:
    version, changes, named = LOST[name]
    made(tmp_path, version)
    set_properties(tmp_path, **changes)
    before = files_below(tmp_path)

    for dry_run in (True, False):
        with pytest.raises(UnsupportedTableError, match=named) as raised:
            change(tmp_path, 17 - version, dry_run=dry_run)
        assert str(tmp_path) in str(raised.value)
    assert files_below(tmp_path) == before


def test_partitions_of_different_numbers_of_buckets_are_refused(tmp_path: Path) -> None:
    made(tmp_path, 9)
    write(tmp_path, [parted("b", 1, value=1)], settings=QUIET)
    storage = open_storage(str(tmp_path))
    rescale_buckets(storage, 3, means(storage), partitions=["a"])

    with pytest.raises(UnsupportedTableError, match="different numbers of buckets"):
        change(tmp_path, 8)
    rescale_buckets(storage, 3, means(storage), whole_table=True)
    change(tmp_path, 8)
    write(tmp_path, [parted("a", *range(9), value=9)], settings=QUIET)

    assert len(rows_of(tmp_path, "id")) == 10
    assert_whole(tmp_path)


WRONG: dict[str, tuple[Callable[[Path], object], type[PyHudiError], str]] = {
    "version 5": (lambda path: set_properties(path, **{key.VERSION: "5"}), TableVersionError, "0.14"),
    "restore": (
        lambda path: open_table(open_storage(str(path))).instants.request(
            Instant("20990101000000000", "restore", State.REQUESTED), b""
        ),
        ConcurrentWriteError,
        "restore",
    ),
    "indexing": (
        lambda path: open_table(open_storage(str(path))).instants.request(
            Instant("20990101000000000", "indexing", State.REQUESTED), b""
        ),
        ConcurrentWriteError,
        "indexing 20990101000000000",
    ),
    "torn commit": (
        lambda path: next((path / ".hoodie/timeline").glob("*_*.commit")).write_bytes(b"torn"),
        CorruptInstantError,
        r"\.commit.*Put the file back",
    ),
    "empty commit": (
        lambda path: next((path / ".hoodie/timeline").glob("*_*.commit")).write_bytes(b""),
        CorruptInstantError,
        r"\.commit is empty",
    ),
    "torn clean": (
        lambda path: (path / ".hoodie/timeline/20260101000000001_20260101000000002.clean").write_bytes(b"torn"),
        CorruptInstantError,
        r"\.clean",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_table_that_is_not_ready_stays_as_it_is(tmp_path: Path, name: str) -> None:
    spoil, kind, named = WRONG[name]
    made(tmp_path, 8)
    spoil(tmp_path)
    before = files_below(tmp_path)

    for dry_run in (True, False):
        with pytest.raises(kind, match=named) as raised:
            change(tmp_path, 9, dry_run=dry_run)
        assert str(tmp_path) in str(raised.value)
    assert files_below(tmp_path) == before


def test_versions_to_which_no_call_leads_are_refused(tmp_path: Path) -> None:
    made(tmp_path, 8)
    table = arrow.Table(tmp_path)

    with pytest.raises(InvalidOptionError, match="to=7"):
        table.upgrade(to=7)
    with pytest.raises(InvalidOptionError, match="to=6"):
        table.downgrade(to=6)
    assert table.upgrade(dry_run=True).changed
    assert not table.downgrade().changed
    assert table.upgrade().changed
