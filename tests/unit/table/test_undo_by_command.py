"""Blocks of one instant taken back, in log files to which others append."""

from __future__ import annotations

import uuid

import pytest
from pyhudi.storage.base import Storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.files.file_group import log_file
from pyhudi.table.files.logs.log_blocks import ROLLBACK, BlockHead, BlockType, Header
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.files.logs.log_scan import effective_blocks
from pyhudi.table.files.logs.undo_by_command import AppendsCommands, TakesBlocksBack
from pyhudi.timeline.metadata.models import RollbackMetadata, RollbackPlan, RollbackRequest

BASE = "20260101000000000"
DEAD, ALIVE = "20260102000000000", "20260103000000000"
OTHER_SLICE = f"p/.a-0_{ALIVE}.log.1_0-1-1"


def path(version: int, attempt: str = "0-1-1") -> str:
    return f"p/.a-0_{BASE}.log.{version}_{attempt}"


def block(time: str, kind: BlockType = BlockType.DELETE) -> bytes:
    return b"".join(BlockHead(kind, {Header.INSTANT_TIME: time}).framed([b"content"]))


def command(target: str, time: str = ALIVE) -> bytes:
    headers = {Header.INSTANT_TIME: time, Header.TARGET_INSTANT_TIME: target, Header.COMMAND_BLOCK_TYPE: ROLLBACK}
    return b"".join(BlockHead(BlockType.COMMAND, headers).framed([]))


def stored(files: dict[str, bytes]) -> Storage:
    storage = MemoryStorage.open(f"memory:undo-{uuid.uuid4().hex}")
    for name, data in files.items():
        storage.write(name, data)
    return storage


def names(storage: Storage) -> list[str]:
    return [info.path for info in storage.list("p")]


def counting(storage: Storage) -> list[str]:
    """Return the instants whose blocks count once all of them were complete, in order."""
    logs = [log for name in names(storage) if (log := log_file(name)) is not None]
    ordered = sorted(logs, key=lambda log: log.name.order)
    blocks = effective_blocks([tuple(read_blocks(storage, log.path)) for log in ordered], lambda _: True)
    return [block.instant_time for block in blocks]


DEAD_AND_ALIVE = block(DEAD) + block(ALIVE)
COMMAND = path(3, "1-0-1")


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({path(1): block(DEAD)}, []),
        ({path(1): block(DEAD) * 2, path(2): block(ALIVE)}, [path(2)]),
        ({path(1): block(ALIVE), path(2): DEAD_AND_ALIVE}, [path(1), path(2), COMMAND]),
        ({path(1): DEAD_AND_ALIVE, path(2): block(DEAD)}, [path(1), COMMAND]),
        ({path(1): DEAD_AND_ALIVE, path(2): command(ALIVE)}, [path(1), path(2), COMMAND]),
        ({path(1): DEAD_AND_ALIVE, path(2): command(DEAD)}, [path(1), path(2)]),
        ({path(1): command(DEAD), path(2): DEAD_AND_ALIVE}, [path(1), path(2), COMMAND]),
        ({path(1): block(DEAD), path(2): command(DEAD)}, [path(2)]),
        ({path(1): block(DEAD)[:-3]}, []),
        ({path(1): block(ALIVE) + block(DEAD)[:-3]}, [path(1)]),
        ({path(1): block(DEAD), path(2): block(DEAD)[:-3]}, [path(2)]),
    ],
)
def test_only_blocks_of_the_undone_instant_are_taken_back(files: dict[str, bytes], left: list[str]) -> None:
    """A file that was torn before its first block goes if it is named, since nothing else says whose it is."""
    storage = stored({**files, OTHER_SLICE: block(ALIVE)})
    before = counting(storage)

    for _ in range(2):
        AppendsCommands().take_back(storage, {DEAD: [path(1)]})

        assert names(storage) == sorted([*left, OTHER_SLICE])
        assert counting(storage) == [time for time in before if time != DEAD]


def test_a_command_never_takes_the_place_of_another_writers_file() -> None:
    class Racing(MemoryStorage):
        def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[object]:  # type: ignore
            found = super().list(folder, recursive=recursive, strict=strict)
            self.write(COMMAND.replace(".log.3", ".log.2"), block(ALIVE))
            return found  # type: ignore

    storage = Racing.open("memory:undo-race")
    storage.write(path(1), DEAD_AND_ALIVE)

    TakesBlocksBack().take_back(storage, {DEAD: [path(1)]})

    assert storage.read(path(2, "1-0-1")) == block(ALIVE)
    assert [block.target_instant_time for block in read_blocks(storage, COMMAND)] == [DEAD]


def test_slices_of_one_folder_are_listed_at_once_and_each_gets_its_command() -> None:
    folders: list[str] = []

    class Told(MemoryStorage):
        def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[object]:  # type: ignore
            folders.append(folder)
            return super().list(folder, recursive=recursive, strict=strict)  # type: ignore

    storage = Told.open("memory:undo-once")
    logs = [f"p/.{file_id}-0_{BASE}.log.1_0-1-1" for file_id in "abc"]
    for log in logs:
        storage.write(log, DEAD_AND_ALIVE)

    TakesBlocksBack().take_back(storage, {DEAD: logs})

    assert folders == ["p"]
    commands = [log.replace(".log.1_0-1-1", ".log.2_1-0-1") for log in logs]
    assert names(storage) == sorted([*logs, *commands])


def test_base_files_go() -> None:
    storage = stored({f"p/a-0_0-1-1_{DEAD}.parquet": b"", f"p/b-0_0-1-1_{ALIVE}.parquet": b""})

    AppendsCommands().take_back(storage, {DEAD: [f"p/a-0_0-1-1_{DEAD}.parquet"]})

    assert names(storage) == [f"p/b-0_0-1-1_{ALIVE}.parquet"]


def test_a_plan_names_base_files_and_slices_and_is_read_back() -> None:
    undo, storage = AppendsCommands(), stored({})
    paths = [f"p/b-0_0-1-1_{DEAD}.parquet", path(1), path(2)]

    plan = RollbackPlan(RollbackRequests=undo.requests(storage, paths))

    assert [*undo.planned(plan)] == paths
    assert [(one.file_id, one.latest_base_instant) for one in plan.rollback_requests] == [("", ""), ("a-0", BASE)]
    rollback = RollbackMetadata(
        start_rollback_time=ALIVE,
        time_taken_in_millis=0,
        total_files_deleted=0,
        commits_rollback=[DEAD],
        partition_metadata=undo.results(plan),
    )
    assert [*undo.taken(rollback)] == paths


def test_a_plan_that_apache_hudi_made_by_listing_names_no_log_file() -> None:
    request = RollbackRequest(
        partition_path="p", file_id="a-0", latest_base_instant=BASE, log_blocks_to_be_deleted={"/lake/trips": 1}
    )

    assert [*AppendsCommands().planned(RollbackPlan(RollbackRequests=[request]))] == []
