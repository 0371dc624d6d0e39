"""What follows a write that is complete: services that may fail, and that start only where there may be work."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError, PyHudiError, StorageError
from pyhudi.operations.result import CommitResult, ServiceResult
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.storage import open_storage
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers import heartbeat
from support.seams import patch_seam
from support.write_settings import write_settings

from tests.support import drive

ROWS = pa.table({"id": ["a", "b"], "ts": [1, 1]})
SOON = Upkeep(CleanSettings(commits=1), ArchiveSettings(min_commits=2, max_commits=3))


SERVICES = {"clean": "clean a table", "archive": "archive instants"}


class Services:
    """Stand in for clean and archive, and note what they are asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.fail: dict[str, Exception] = {}
        for name, settings in (("clean", [SOON.clean]), ("archive", [SOON.archive, SOON.clean])):
            patch_seam(monkeypatch, SERVICES[name], self._service(name, settings))

    def _service(self, name: str, expected: object) -> Callable[..., ServiceResult]:
        def service(
            storage: object,
            *given: object,
            timeline: Timeline,
            merge_metadata: object = None,
            inline: bool = False,
            dry_run: bool = False,
        ) -> ServiceResult:
            assert timeline.writes
            assert [replace(one, automatic=True) for one in given] == expected  # type: ignore[type-var]
            assert inline is (name == "clean")
            assert (merge_metadata is not None) is (name == "archive")
            assert not dry_run
            self.asked.append(name)
            if name in self.fail:
                raise self.fail[name]
            counts = {"files": 3, "bytes": 1234} if name == "clean" else {"instants": 2}
            return ServiceResult(storage.path, name, "20261122090000000", **counts)  # type: ignore[attr-defined]

        return service


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    return Services(monkeypatch)


def write(path: Path, upkeep: Upkeep = SOON, rows: pa.Table = ROWS, **options: object) -> CommitResult:
    settings = write_settings(upkeep=upkeep, allow_empty_commit=False)
    return drive.write(path, rows, table=drive.KEYED, settings=settings, **options)


def test_a_service_starts_once_there_may_be_something_to_do(tmp_path: Path, services: Services) -> None:
    """So many commits are kept; a write before asks the store for nothing more, and imports nothing."""
    asked = []
    for _ in range(4):
        write(tmp_path)
        asked.append(tuple(services.asked))
        services.asked.clear()

    assert asked == [(), ("clean",), ("clean",), ("clean", "archive")]


def test_a_clean_that_was_begun_is_finished_whatever_the_number_of_commits(tmp_path: Path, services: Services) -> None:
    write(tmp_path)
    begun = tmp_path / ".hoodie" / "timeline" / "20261122090000000.clean.requested"
    begun.touch()

    write(tmp_path, Upkeep(SOON.clean, ArchiveSettings(automatic=False)))

    assert services.asked == ["clean"]


@pytest.mark.parametrize("policy", ["KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"])
def test_what_goes_by_other_than_commits_is_looked_at_after_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    seen = []
    patch_seam(monkeypatch, "clean a table", lambda *_, **__: seen.append(policy) or ServiceResult("", "clean"))

    write(tmp_path, Upkeep(CleanSettings(policy=policy)))

    assert seen == [policy]


def test_what_is_switched_off_is_not_done(tmp_path: Path, services: Services) -> None:
    for _ in range(4):
        write(tmp_path, Upkeep(CleanSettings(automatic=False, commits=1), SOON.archive))

    assert services.asked == ["archive"]


def test_a_result_says_what_was_done_after_the_write(tmp_path: Path, services: Services) -> None:
    for _ in range(3):
        write(tmp_path)

    result = write(tmp_path)

    assert [(one.service, one.files, one.instants, one.error) for one in result.services] == [
        ("clean", 3, 0, ""),
        ("archive", 0, 2, ""),
    ]
    assert {"clean", "archive"} < result.seconds.keys()
    assert "; clean: 3 files deleted, 1,234 bytes; archive: 2 instants>" in repr(result)


def test_a_service_that_fails_leaves_the_write_complete(
    tmp_path: Path, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        write(tmp_path)
    services.asked.clear()
    services.fail["clean"] = StorageError("The store is away.", "Run again.")

    with caplog.at_level(logging.WARNING, "pyhudi"):
        result = write(tmp_path)

    assert result.updates == 2
    assert services.asked == ["clean", "archive"]
    assert [(one.service, one.error) for one in result.services] == [
        ("clean", "PyHudiError[STORAGE]: The store is away. Run again."),
        ("archive", ""),
    ]
    assert len(caplog.records) == 1
    assert f"table {tmp_path}: the write is complete, and the clean after it failed" in caplog.text
    assert "the clean after it failed" in repr(result)


@pytest.mark.parametrize("met", [ConcurrentWriteError, CommitConflictError])
def test_a_service_that_meets_another_process_is_skipped(
    tmp_path: Path, services: Services, caplog: pytest.LogCaptureFixture, met: type[PyHudiError]
) -> None:
    for _ in range(3):
        write(tmp_path)
    services.fail["clean"] = met("A rollback is pending.", "Clean again.")

    with caplog.at_level(logging.WARNING, "pyhudi"):
        result = write(tmp_path)

    assert [(one.service, one.error, one.skipped) for one in result.services] == [
        ("clean", "", "A rollback is pending"),
        ("archive", "", ""),
    ]
    assert caplog.records == []


def test_a_replay_and_a_write_that_left_nothing_do_nothing_else(tmp_path: Path, services: Services) -> None:
    for number in range(4):
        write(tmp_path, write_id=f"batch-{number}")
    services.asked.clear()

    assert write(tmp_path, write_id="batch-1").services == ()
    assert write(tmp_path, rows=ROWS.slice(0, 0)).instant == ""
    assert services.asked == []


def test_a_service_finds_the_write_over(tmp_path: Path, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heartbeat has stopped and its folder is gone, so that nothing of it is taken for a write at work."""
    left: list[str] = []

    def clean(storage: object, *_: object, **__: object) -> ServiceResult:
        files = open_storage(str(tmp_path)).list(heartbeat.ROOT, strict=False)
        left.extend(info.path for info in files)
        left.extend(map(str, (tmp_path / ".hoodie" / ".pyhudi").glob("2*")))
        return ServiceResult(str(tmp_path), "clean")

    patch_seam(monkeypatch, "clean a table", clean)
    write(tmp_path)
    write(tmp_path)

    assert left == []
