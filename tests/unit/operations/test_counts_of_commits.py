"""How many commits a clean retains and an archiving keeps, given by one number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.operations.service_settings import (
    KEEP_LATEST_BY_HOURS,
    KEEP_LATEST_FILE_VERSIONS,
    ArchiveSettings,
    CleanSettings,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.storage import open_storage
from support.attempts import PARTED, parted
from support.drawn.upkept import OFF
from support.drive import DEFAULTS, write


def test_a_number_counts_what_the_policy_counts() -> None:
    assert CleanSettings().retaining(3) == CleanSettings(commits=3)
    by_version, by_hours = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS), CleanSettings(policy=KEEP_LATEST_BY_HOURS)
    assert by_version.retaining(3).file_versions == 3
    assert by_hours.retaining(3).hours == 3
    assert CleanSettings().retaining(None) == CleanSettings()
    assert ArchiveSettings().keeping(None) == ArchiveSettings()


@pytest.mark.parametrize("count", [0, -1])
def test_a_number_below_one_is_refused(count: int) -> None:
    for call in (CleanSettings().retaining, ArchiveSettings().keeping):
        with pytest.raises(InvalidOptionError, match=f"={count}"):
            call(count)


def test_a_clean_retains_and_an_archiving_keeps_so_many_commits(tmp_path: Path) -> None:
    path, settings = tmp_path / "t", replace(DEFAULTS, upkeep=OFF)
    for value in range(6):
        write(path, parted("a", 1, value=value), table=PARTED, settings=settings)
    storage = open_storage(str(path))

    assert clean(storage, CleanSettings().retaining(2)).files == 3
    assert archive(storage, ArchiveSettings().keeping(4)).instants == 2
