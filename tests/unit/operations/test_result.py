"""Results print as sentences with units."""

from __future__ import annotations

import pytest
from pyhudi import CommitResult, ServiceResult

CLEANED = ServiceResult("/t", "clean", "2", files=1_200, bytes=3 << 20, seconds=0.25)
SECONDS = {"total": 3.14}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (CLEANED, "clean 2 of /t: 1,200 files deleted (3.0 MiB) in 0.2 s."),
        (
            ServiceResult("/t", "clean", files=1, bytes=10, dry=True),
            "clean of /t: 1 file would be deleted (10 bytes) in 0.0 s.",
        ),
        (ServiceResult("/t", "clean"), "clean of /t had nothing to do in 0.0 s."),
        (ServiceResult("/t", "clean", error="no disk"), "clean of /t failed: no disk"),
        (ServiceResult("/t", "archive", "3", instants=10), "archive 3 of /t: 10 instants archived in 0.0 s."),
        (
            ServiceResult("/t", "restore", "3", instants=2, files=5),
            "restore 3 of /t: 2 instants undone, 5 files deleted in 0.0 s.",
        ),
        (
            ServiceResult("/t", "compaction", "3", file_groups=2, log_files=9, files=2, bytes=2048, skipped="it waits"),
            "compaction 3 of /t: 2 file groups merged, 9 log files read, 2 files written (2.0 KiB) in 0.0 s. it waits.",
        ),
        (
            ServiceResult("/t", "schedule_compaction", "3", file_groups=1, log_files=1),
            "schedule_compaction 3 of /t: 1 file group planned, 1 log file in the plan in 0.0 s.",
        ),
        (
            CommitResult(
                "/t", "1", "UPSERT", inserts=1, updates=2_000, files=2, bytes=5 << 30, seconds={"total": 3.14}
            ),
            "UPSERT 1 of /t: 1 row inserted, 2,000 rows updated, 2 base files written (5.0 GiB) in 3.1 s.",
        ),
        (
            CommitResult("/t", "", "UPSERT", warnings=("An option does nothing.",)),
            "UPSERT of /t: no rows. Warning: An option does nothing.",
        ),
        (
            CommitResult(
                "/t",
                "1",
                "DELETE",
                not_found=1,
                log_files=1,
                log_bytes=7,
                services=(CLEANED, ServiceResult("/t", "archive")),
            ),
            "DELETE 1 of /t: 1 delete without a row, 1 log file appended (7 bytes). Then clean 2 of /t: 1,200 files "
            "deleted (3.0 MiB) in 0.2 s.",
        ),
    ],
    ids=range(11),
)
def test_a_result_prints_as_a_sentence_with_units(result: CommitResult | ServiceResult, text: str) -> None:
    assert str(result) == text
