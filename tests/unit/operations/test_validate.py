from __future__ import annotations

import os
import re
import shutil
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import NotATableError, StorageError, TableNotFoundError
from pyhudi.operations.checks import bodies
from pyhudi.operations.checks.check_catalogue import ALL
from pyhudi.operations.inspect.validate import FINDINGS_SCHEMA, validate
from pyhudi.storage import open_storage
from pyhudi.timeline.writers import decisions
from support.bad_inputs.case import GOOD, KEYED
from support.drawn.lookups import APART, TABLE
from support.drawn.lookups import rows as looked_up
from support.drive import write
from support.places import files_below
from support.recorded.fixture_tables import TABLES, unpack
from support.rules.health import codes, errors, findings
from support.seams import patch_seam
from support.sick.log_symptoms import LOG_SYMPTOMS
from support.sick.sick_tables import SICK, Sick
from support.sick.spoiling import Symptom, column, make_healthy, newest_files, rows
from support.sick.symptoms import SYMPTOMS

DOCS = Path(__file__).parents[3] / "docs" / "validating.md"
# Of a kind that pyhudi does not write, and whole all the same.
HEALTHY = {"hoodie.record.merge.mode CUSTOM", "hoodie.table.cdc.enabled true", "half a delete marker"}

# Made of tables that are or were of version 6, by the contract tests of their states and upgrades.
OF_VERSION_6 = {"FILE_TIME", "LEFT_BEHIND", "LOG_PASSED_OVER"}
# Planted in metadata tables of Apache Hudi, by the contract test of these checks.
OF_METADATA = {one.code for one in ALL if one.code.startswith("METADATA_")} - {"METADATA_LOST", "METADATA_STALE"}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("healthy") / "t"
    make_healthy(path)
    return path


@pytest.fixture
def table(healthy: Path, tmp_path: Path) -> Path:
    """A copy of the healthy table."""
    return Path(shutil.copytree(healthy, tmp_path / "t"))


def test_nothing_is_wrong_with_a_healthy_table_and_nothing_is_changed(table: Path) -> None:
    before = files_below(table)

    findings_table = validate(open_storage(str(table)), deep=True, stale_s=0)

    assert findings_table.schema.equals(FINDINGS_SCHEMA)
    assert findings_table.to_pylist() == []
    assert files_below(table) == before


@pytest.mark.parametrize("case", SYMPTOMS, ids=lambda case: f"{case.code}-{case.name}".replace(" ", "-"))
def test_each_sickness_is_told_with_its_place_and_cure(table: Path, case: Symptom) -> None:
    case.spoil(table)

    case_findings = [one for one in findings(table, deep=case.deep, stale_s=0) if one["code"] == case.code]

    assert any(case.says in f"{one['file']} {one['what']}" for one in case_findings), case_findings
    (sickness,) = (one for one in ALL if one.code == case.code)
    assert {(one["table"], one["severity"], one["cure"]) for one in case_findings} == {
        (str(table), sickness.severity, sickness.cure)
    }


def test_a_torn_decision_is_told_however_young_it_is_once_writers_wait_no_longer(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be half-made until then: it is read again, and what has become whole is no finding."""
    newest = max((table / decisions.FOLDER).iterdir())
    whole, reads = newest.read_bytes(), []
    patch_seam(monkeypatch, "age at which a torn decision is dead", 0.3)
    newest.write_bytes(whole[:50])
    assert codes(table) == {"DECISION_UNREADABLE"}

    class Completing:
        def __getattr__(self, name: str) -> Any:
            return getattr(storage, name)

        def read(self, path: str, *given: Any) -> bytes:
            content = storage.read(path, *given)
            if path.endswith(newest.name) and not reads:
                reads.append(path)
                newest.write_bytes(whole)
            return content

    storage = open_storage(str(table))
    assert validate(Completing()).to_pylist() == []  # type: ignore[arg-type]
    assert reads


@pytest.mark.parametrize("case", [one for one in SYMPTOMS if one.deep], ids=lambda case: f"{case.code}-{case.name}")
def test_what_only_rows_show_is_not_read_unless_asked_for(table: Path, case: Symptom) -> None:
    case.spoil(table)

    assert case.code not in codes(table, deep=False)


def test_every_sickness_has_been_made_and_is_documented() -> None:
    page = DOCS.read_text(encoding="utf-8")

    assert {one.code for one in ALL} == {one.code for one in (*SYMPTOMS, *LOG_SYMPTOMS)} | OF_VERSION_6 | OF_METADATA
    assert len({one.code for one in ALL}) == len(ALL)
    for sickness in ALL:
        assert f"| `{sickness.code}` | {sickness.severity} | {sickness.meaning} | {sickness.cure} |" in page


@pytest.mark.parametrize("case", [one for one in SICK if one.name not in HEALTHY], ids=lambda case: case.name)
def test_no_table_that_pyhudi_refuses_passes_for_healthy(tmp_path: Path, case: Sick) -> None:
    path = tmp_path / "t"
    write(path, GOOD, table=KEYED)
    case.spoil(path)

    assert findings(path, stale_s=0)


@pytest.mark.parametrize("name", sorted(one.stem for one in TABLES.glob("*.zip")))
def test_tables_of_apache_hudi_have_no_errors(tmp_path: Path, name: str) -> None:
    assert errors(unpack(name, tmp_path)) == []


def in_its_footer(data: bytes) -> int:
    """Return a place in a Parquet file that everybody reads who opens it: nobody looks at the rows of older slices."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little") + 2


def test_noise_in_any_file_raises_nothing(table: Path) -> None:
    """Empty, cut off, or with other bytes in the middle, each is a finding, or of no concern to anybody."""
    # Requests and profiles of what is in flight may be empty, and are read by nobody; a property may be another one.
    told = re.compile(r".*(_\d{17}\.\w+|\.parquet|metadata)")
    for name, data in files_below(table).items():
        half = len(data) // 2
        at = in_its_footer(data) if name.endswith(".parquet") else half
        for bad in (b"", data[:half], data[:at] + b"\xff\0\xee" + data[at + 3 :]):
            (table / name).write_bytes(bad)

            assert findings(table, stale_s=0) or not told.fullmatch(name), name
        (table / name).write_bytes(data)


def test_a_file_whose_name_is_no_text_is_named(table: Path) -> None:
    """A disk keeps any bytes as a name, and a column of texts does not."""
    (table / "x" / os.fsdecode(b"\xff.txt")).touch()

    (finding,) = findings(table, stale_s=0)

    assert (finding["code"], finding["file"]) == ("STRANGE_FILE", "x/\\udcff.txt")


def test_a_path_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        validate(open_storage(str(tmp_path / "none")))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(NotATableError):
        validate(open_storage(str(tmp_path / "other")))


def test_a_store_that_cannot_be_listed_is_no_sick_table(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(str(table))

    def refuse(folder: str) -> None:
        raise StorageError(f"The store could not list {folder}.", "Try again.")

    patch_seam(monkeypatch, "look into a local folder", lambda self, folder: refuse(folder))
    with pytest.raises(StorageError):
        validate(storage)


def test_what_is_young_may_be_at_work(table: Path) -> None:
    """A write that has just begun, and left-overs of one that has just ended, are nobody's sickness."""
    for name in (
        ".hoodie/timeline/20260101000000000.commit.requested",
        ".hoodie/timeline/20260101000000001.clean.inflight",
        ".hoodie/timeline/20260101000000001.clean.requested",
        ".hoodie/.heartbeat/20260101000000003",
        ".hoodie/lock",
    ):
        (table / name).parent.mkdir(exist_ok=True)
        (table / name).write_bytes(b"")

    assert {one["code"] for one in findings(table)} == {"EMPTY_INSTANT"}
    assert codes(table) == {"EMPTY_INSTANT", "PENDING_WRITE", "PENDING_SERVICE", "LEFT_OVER", "LOCK_LEFT"}


def test_duplicates_are_found_however_few_hashes_fit_into_memory(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(table, rows("x", 5, count=5), operation="insert")
    seen = [one["what"] for one in findings(table) if one["code"] == "KEY_ADDED_TWICE"]
    patch_seam(monkeypatch, "most hashes of a duplicate check", 3)

    assert [one["what"] for one in findings(table) if one["code"] == "KEY_ADDED_TWICE"] == seen
    assert "5 record keys" in seen[0]


def test_copies_without_a_commit_time_are_counted(table: Path) -> None:
    column("_hoodie_record_key", lambda keys: [keys[0], *keys[:-1]])(table)
    column("_hoodie_commit_time", lambda times: [None] * len(times))(table)

    [told] = [one["what"] for one in findings(table) if one["code"] == "KEY_ADDED_TWICE"]
    assert "1 record keys several times" in told


def test_copies_that_an_insert_left_and_an_upsert_rewrote_are_no_sickness_of_upserts(tmp_path: Path) -> None:
    """A lookup finds every copy; only the delete that the cure names leaves none."""
    write(tmp_path, looked_up(1, 2, value=1), table=TABLE)
    write(tmp_path, looked_up(1, value=2), operation="insert", settings=APART)
    write(tmp_path, looked_up(1, value=3), settings=APART)

    found = [one for one in findings(tmp_path) if one["code"] in ("KEY_ADDED_TWICE", "DUPLICATE_KEY")]
    assert [(one["code"], "1 record keys" in one["what"]) for one in found] == [("KEY_ADDED_TWICE", True)]

    write(tmp_path, looked_up(1, value=3), operation="delete", settings=APART)
    write(tmp_path, looked_up(1, value=4), settings=APART)
    assert {"KEY_ADDED_TWICE", "DUPLICATE_KEY"} & codes(tmp_path) == set()


def test_a_checksum_of_hadoop_that_fits_is_right(table: Path) -> None:
    for file in [*newest_files(table), table / ".hoodie/hoodie.properties"]:
        data = file.read_bytes()
        sums = b"".join(zlib.crc32(data[at : at + 512]).to_bytes(4, "big") for at in range(0, len(data), 512))
        file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)

    assert codes(table) == set()


def test_every_action_that_chokes_somebody_is_one_of_the_timeline() -> None:
    action_pattern = re.compile(
        "commit|deltacommit|replacecommit|compaction|logcompaction|clean|rollback|restore|savepoint|indexing"
    )

    assert all(action_pattern.fullmatch(action) for action, _ in bodies._CHOKES)


def test_keys_are_unique_in_the_table_where_its_index_says_so(tmp_path: Path) -> None:
    """In two partitions each for itself otherwise."""
    for kind, told in (("SIMPLE", []), ("GLOBAL_SIMPLE", ["The table has 1 record keys several times, 'k1' 2 times."])):
        table = tmp_path / kind
        made = replace(TABLE, index_type=kind)
        write(table, [looked_up(1, 2, value=1), looked_up(1, value=1, p="b")], operation="insert", table=made)

        assert [one["what"] for one in findings(table)] == told
