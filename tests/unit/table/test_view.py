"""File groups and their slices, as a listing and a timeline show them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.files.names import FileGroupId
from pyhudi.table.files.view import FileView
from pyhudi.table.files.written import Written
from pyhudi.timeline.instants import Instant, State
from support.made.timelines import timeline_of

GROUP = FileGroupId("p", "00000001-a-0")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def view(storage: Storage, *names: str) -> FileView:
    """Return the view of a partition with these files, of a timeline on which 2 and 3 are committed and 4 is not."""
    for name in names:
        storage.write(f"p/{GROUP.file_id}_{name}.parquet", name.encode())
    done = [Instant(time, "commit", State.COMPLETED, f"{time}5") for time in ("2", "3")]
    return FileView(timeline_of([*done, Instant("4", "commit", State.INFLIGHT)], storage), Written())


def test_a_file_group_keeps_its_older_slices(storage: Storage) -> None:
    """One older than the timeline counts as committed; one that is not committed is no slice."""
    group = view(storage, "0-0-0_3", "0-0-0_1", "0-0-0_2", "0-0-0_4").groups("p")[GROUP.file_id]

    assert group.id == GROUP
    assert [one.base_time for one in group.slices] == ["1", "2", "3"]
    assert group.newest.base_file.name == f"{GROUP.file_id}_0-0-0_3.parquet"


def test_of_two_attempts_of_one_instant_the_later_one_counts(storage: Storage) -> None:
    file_system_view = view(storage, "0-9-9_3", "0-9-10_3", "0-9-8_3")

    assert [one.base_file.write_token for one in file_system_view.groups("p")[GROUP.file_id].slices] == ["0-9-10"]
    assert file_system_view.slices("p") == {GROUP.file_id: file_system_view.groups("p")[GROUP.file_id].newest}


def test_a_slice_of_log_files_alone_has_no_base_file() -> None:
    with pytest.raises(ValueError, match=r"3 of FileGroupId.* has no base file"):
        _ = FileSlice(GROUP, "3", None).base_file
