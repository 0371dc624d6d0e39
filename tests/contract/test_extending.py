"""A lock, a table version, a store and a follower come in by the files that docs/code-in-an-hour.md names.

`test_own_index` adds an index, and `tests/unit/connector/test_service_entries.py` a table service; `test_traces` says
what a lock is held for.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.operations.inspect.detail import detail
from pyhudi.operations.inspect.files import files
from pyhudi.operations.inspect.partitions import partitions
from pyhudi.operations.inspect.sizes import sizes
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.service_settings import (
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    LogCompactionSettings,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.config import TableConfig, update_config
from pyhudi.table.files.file_group import BaseFile, DataFile, LogFile, OpenLog, data_file
from pyhudi.table.files.log_names import NamedByMaker
from pyhudi.table.files.read_written import read_written
from pyhudi.table.files.slice_rule import ByCompletionTime
from pyhudi.table.table import LockSettings, open_table
from pyhudi.timeline.archive.archive import Archive, MergedFile
from pyhudi.timeline.instant_files import InstantFiles
from pyhudi.timeline.instants import Instant
from pyhudi.timeline.layout import LayoutV2
from pyhudi.timeline.metadata.avro_codec import AvroCodec
from pyhudi.timeline.metadata.codec import InstantBody
from pyhudi.timeline.timeline import Timeline
from pyhudi.writer.written_file import FileKind
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import KEYED, carry_out, plan, rows_of, write
from support.faults.locks import FakeLock
from support.made.compacting import IMPATIENT as PATIENCE
from support.made.compacting import means
from support.made.following import KeepingFollower, check_kept
from support.seams import patch_seam, read_seam

_SETTINGS = replace(IMPATIENT, upkeep=OFF)
_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def _live(path: Path, made: TableSettings, act: Callable[[str, Callable[[Storage], object]], None]) -> None:
    """Make each kind of instant of a table once."""

    def upsert(rows: pa.Table, operation: str | None = None) -> Callable[[Storage], object]:
        def commit(_: Storage) -> str:
            planned = plan(path, rows.schema, operation=operation, table=made, settings=_SETTINGS)
            instants.append(carry_out(planned, [rows]).instant)
            return instants[-1]

        return commit

    instants: list[str] = []
    act("upsert", upsert(parted("a", *range(20), value=1)))
    act("upsert", upsert(parted("a", *range(9), value=2)))
    act("upsert", upsert(parted("a", *range(9), value=3)))
    act("savepoint", lambda storage: savepoint(storage, instants[-1]))
    if made.table_type == "MERGE_ON_READ":
        act("log compaction", lambda storage: compact(storage, LogCompactionSettings(blocks=2), means(storage)))
        act("compaction", lambda storage: compact(storage, CompactionSettings(), means(storage)))
    act("insert_overwrite", upsert(parted("a", 1, value=4), "insert_overwrite"))
    act("rollback", lambda storage: rollback(storage, instants[-1], patience=PATIENCE))
    act("delete_partition", upsert(parted("a", 1, value=0), "delete_partition"))
    act("restore", lambda storage: restore(storage, instants[2], patience=PATIENCE))
    act("deletion of the savepoint", lambda storage: delete_savepoint(storage, instants[2]))
    for value in (5, 6):
        act("upsert", upsert(parted("a", *range(20), value=value)))
        if made.table_type == "MERGE_ON_READ":
            act("compaction", lambda storage: compact(storage, CompactionSettings(), means(storage)))
    act("clean", lambda storage: clean(storage, CleanSettings(commits=1)))
    act("archiving", lambda storage: archive(storage, ArchiveSettings(min_commits=1, max_commits=2, batch=2)))


def test_a_lock_comes_in_by_its_name_among_the_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, pa.table({"id": ["k1"], "ts": [1], "value": [1]}), table=KEYED, settings=_SETTINGS)
    storage, again = open_storage(str(tmp_path)), pa.table({"id": ["k1"], "ts": [2], "value": [2]})
    options = {"hoodie.write.lock.provider": "fake", "hoodie.write.lock.url": "here"}
    update_config(storage, options)
    with pytest.raises(UnsupportedTableError, match="provider=fake"):
        write(tmp_path, again, settings=_SETTINGS)
    lock, asked = FakeLock(), list[LockSettings]()
    patch_seam(monkeypatch, "locks by name", {"fake": lambda settings: (asked.append(settings), lock)[1]})
    write(tmp_path, again, settings=_SETTINGS)
    assert rows_of(tmp_path, "id", "value") == [("k1", 2)]
    assert lock.taken
    assert {*asked} == {LockSettings("fake", tuple(sorted(options.items())))}
    assert pickle.loads(pickle.dumps(open_table(storage))).lock == asked[0]  # noqa: S301 (made here)


@pytest.mark.parametrize("table_type", _TYPES)
def test_a_follower_learns_of_each_file_that_instants_add_and_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str
) -> None:
    """Before each of them completes, whichever kind of instant it is; what it keeps is right after each of them."""
    follower = KeepingFollower(columns=("value",))
    patch_seam(monkeypatch, "followers of a table", (follower,))
    path = tmp_path / "t"

    def files() -> set[str]:
        found = {str(one.relative_to(path)) for one in path.rglob("*") if ".hoodie/" not in str(one)}
        return {one for one in found if data_file(one, changes=True) is not None}

    def act(title: str, operate: Callable[[Storage], object]) -> None:
        follower.prepared.clear()
        before = files()
        operate(open_storage(str(path)))
        after = files()
        outcomes = [outcome for _, outcome in follower.prepared]
        assert {one.path for outcome in outcomes for one in outcome.written} == after - before, title
        bases = [one for outcome in outcomes for one in outcome.written if one.kind is FileKind.BASE]
        assert all([bounds.column for bounds in one.statistics or ()] == ["value"] for one in bases), title
        removed = {one for outcome in outcomes for one in outcome.removed}
        # Archiving makes no instant; followers hear of the files that it removes beforehand.
        assert removed == before - after or title == "archiving", title
        replaces = any(outcome.replaced for outcome in outcomes)
        assert replaces == (title in {"insert_overwrite", "delete_partition"}), title
        assert bool(outcomes) == ("savepoint" not in title and title != "archiving"), title
        if title != "archiving":
            check_kept(path)

    _live(path, replace(PARTED, table_type=table_type), act)
    assert follower.asked


@dataclass(frozen=True, slots=True)
class _FakeLayout(LayoutV2):
    """Names of instants that begin with a letter."""

    def parse(self, name: str) -> Instant | None:
        return LayoutV2.parse(self, name[1:]) if name.startswith("x") else None

    def parse_all(self, names: Sequence[str]) -> list[Instant]:
        return LayoutV2.parse_all(self, [name[1:] for name in names if name.startswith("x")])

    def format(self, instant: Instant) -> str:
        return "x" + LayoutV2.format(self, instant)

    def start(self, requested_time: str) -> str:
        return "x" + requested_time


class _FakeCodec(AvroCodec):
    """Bodies of instants from their end to their beginning."""

    def encode(self, model: Any) -> bytes:
        return super().encode(model)[::-1]

    def decode(self, kind: Any, body: InstantBody) -> Any:
        return super().decode(kind, _turned(body))

    def decode_summary(self, body: InstantBody, *, replaces: bool) -> Any:
        return super().decode_summary(_turned(body), replaces=replaces)

    def decode_files(self, body: InstantBody, *, replaces: bool) -> Any:
        return super().decode_files(_turned(body), replaces=replaces)

    def decode_record(self, body: InstantBody) -> Any:
        return super().decode_record(_turned(body))


def _turned(body: InstantBody) -> InstantBody:
    return replace(body, data=body.data[::-1])


@dataclass
class _FakeRule(ByCompletionTime):
    """A rule by which a log file's name does not say who wrote it: completed writes do, or else its blocks."""

    opened: set[str] = field(default_factory=set)

    def makers(self, files: Iterable[DataFile], completed: Timeline, open_log: OpenLog | None = None) -> frozenset[str]:
        written, instant_times = read_written(completed), set()
        for file in files:
            stated = written.stated(file) if isinstance(file, LogFile) else None
            if stated is not None:
                instant_times.update(stated.makers)
            elif isinstance(file, BaseFile):
                instant_times.add(file.instant_time)
            elif open_log is not None:
                self.opened.add(file.path)
                instant_times.update(open_log(file))
        return frozenset(instant_times)


@dataclass(frozen=True, slots=True)
class _FakeArchive(Archive):
    """An archive with a file for each instant."""

    def instants(self, since: str = "", until: str | None = None) -> tuple[Instant, ...]:
        found = [one for name in sorted(self.file_names()) if (one := LayoutV2().parse(name)) is not None]
        return tuple(one for one in found if since <= one.requested_time <= (until or "~"))

    def newest(self, count: int | None, besides: frozenset[str]) -> tuple[Instant, ...]:
        return tuple(one for one in self.instants()[::-1] if one.identity not in besides)[:count]

    def bodies(self, wanted: Iterable[Instant]) -> dict[Instant, bytes]:
        return {one: self.storage.read(f"{self.folder}/{LayoutV2().format(one)}") for one in wanted}

    def bodies_in(self, names: Iterable[str], times: Sequence[str] | None = None) -> Iterator[tuple[Instant, bytes]]:
        yield from self.bodies(one for one in self.instants() if LayoutV2().format(one) in names).items()

    def file_names(self) -> frozenset[str]:
        return frozenset(Path(info.path).name for info in self.storage.list(self.folder))

    def state(self) -> str:
        return str(sorted(self.file_names()))

    def is_there(self) -> bool:
        return bool(self.file_names())


@dataclass(frozen=True, slots=True)
class _FakeArchiveWriter:
    storage: Storage
    config: TableConfig

    def put(self, instants: Sequence[Instant], files: InstantFiles) -> None:
        for one in instants:
            path = f"{self.config.archive_folder}/{LayoutV2().format(one)}"
            self.storage.write(path, self.storage.read(files.path(one)))

    def merge(self, aside: str, batch: int) -> list[MergedFile]:
        return []

    def tidy(self, merged: Sequence[MergedFile]) -> None:
        pass


@pytest.mark.parametrize("table_type", _TYPES)
def test_a_table_version_comes_in_by_its_number_and_its_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str
) -> None:
    formats = read_seam("formats by version")
    fake = replace(
        formats[8], layout=_FakeLayout, codec=_FakeCodec(), archive=_FakeArchive, archive_writer=_FakeArchiveWriter
    )
    made = replace(PARTED, table_type=table_type, version=7)
    path = tmp_path / "t"
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "versions that pyhudi writes", (9, 8, 7))
        patch_seam(patch, "formats by version", {**formats, 7: fake})
        rules = read_seam("slice rules by layout")
        rule = _FakeRule()
        patch_seam(patch, "slice rules by layout", {**rules, _FakeLayout: rule})
        patch_seam(patch, "log names by layout", {**read_seam("log names by layout"), _FakeLayout: NamedByMaker()})
        patch_seam(patch, "checks of archives by format", {_FakeArchive: lambda archive, _: archive.instants()})
        seen: list[list[str]] = []
        opening: set[str] = set()

        def act(title: str, operate: Callable[[Storage], object]) -> None:
            storage = open_storage(str(path))
            operate(storage)
            opening.update([title] if rule.opened else [])
            rule.opened.clear()
            for listing in (sizes, files, partitions, detail):
                listing(storage)
            assert not rule.opened
            seen.append(_names(path))

        _live(path, made, act)
        assert opening == ({"rollback", "restore", "archiving"} if table_type == "MERGE_ON_READ" else set())
        assert validate(open_storage(str(path))).to_pylist() == []
        assert open_table(open_storage(str(path))).archive.instants()
        assert {name for names in seen for name in names}
        assert all(name.startswith("x") for names in seen for name in names)
        assert rows_of(path, "id", "value") == sorted((f"k{key}", 6) for key in range(20))
    with pytest.raises(UnsupportedTableError, match="version=7"):
        write(path, parted("a", 1, value=7), settings=_SETTINGS)


def _names(path: Path) -> list[str]:
    return [one.name for one in (path / ".hoodie/timeline").iterdir() if one.is_file()]


def test_a_store_comes_in_by_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: str, options: Mapping[str, str]) -> Storage:
        return MemoryStorage.open(path.replace("fake://", "memory://fake/"))

    patch_seam(monkeypatch, "stores by scheme", {**read_seam("stores by scheme"), "fake": opened})
    write("fake://t", pa.table({"id": ["k1"], "ts": [1], "value": [1]}), table=KEYED, settings=_SETTINGS)
    write("fake://t", pa.table({"id": ["k1"], "ts": [2], "value": [2]}), settings=_SETTINGS)
    assert rows_of("fake://t", "id", "value") == [("k1", 2)]
    assert MemoryStorage.open("memory://fake/t").exists(".hoodie/hoodie.properties")
