"""A store in memory whose every call is a step of the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyhudi.storage.base import FileInfo, Folder, ListedFolder
from pyhudi.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from support.interleaving.machine import Machine

# What asks the store for nothing, or changes nothing in memory.
_NO_STEPS = frozenset({"uri", "file_time", "flush", "sweep"})


@dataclass(frozen=True)
class SteppedStorage:
    """A table in memory, whose scheduler lets an actor wait before each call.

    Several files are deleted one after another. A listing may be torn, as of a folder that changes meanwhile.
    """

    inner: MemoryStorage
    machine: Machine

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.inner, name)
        if name in _NO_STEPS or not callable(attribute):
            return attribute

        def call(path: str, *more: Any, **options: Any) -> Any:
            self._step(name, path)
            return attribute(path, *more, **options)

        return call

    def __hash__(self) -> int:
        return hash(self.inner)

    def parent(self) -> SteppedStorage | None:
        """Return the folder above."""
        above = self.inner.parent()
        return None if above is None else SteppedStorage(above, self.machine)

    def now(self) -> float:
        """Return the clock of the host that asks, as of a mounted file system."""
        return self.machine.clock()

    def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[FileInfo]:
        """List a folder."""
        began = self.machine.scheduler.now
        found = self._torn("list", folder, lambda: self.inner.list(folder, recursive=recursive, strict=strict))
        self.machine.listed(folder, began)
        return found

    def look(self, folder: str) -> Folder:
        """Look into a folder."""
        folders: list[Folder] = []

        def files() -> list[FileInfo]:
            folders.append(self.inner.look(folder))
            return list(folders[-1].files)

        found = self._torn("look", folder, files)
        return ListedFolder(tuple(found), folders[-1].folders)

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Put a file in place."""
        self._step("write", path)
        self.inner.write(path, data)
        self.machine.made(self, path, data)

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        """Put a file where there is none."""
        self._step("create", path)
        created = self.inner.create(path, data)
        if created:
            self.machine.made(self, path, data)
        return created

    def delete(self, *paths: str, durable: bool = True) -> None:
        """Delete files, a step each."""
        for path in sorted(paths):
            self._step("delete", path)
            self.inner.delete(path)
            self.machine.deleted(path)

    def delete_folder(self, path: str) -> None:
        """Delete a folder."""
        self._step("delete_folder", path)
        self.inner.delete_folder(path)

    def stage(self, path: str, aside: str, *, durable: bool = True) -> SteppedStaged:
        """Begin a file."""
        return SteppedStaged(self.inner.stage(path, aside), path, self)

    def publish(self, staged: Any, path: str) -> int:
        """Make a file visible."""
        self._step("publish", path)
        return int(staged.publish())

    def _step(self, what: str, path: str) -> None:
        self.machine.scheduler.step(f"{what} {path or '.'}")

    def _torn(self, what: str, folder: str, files: Callable[[], list[FileInfo]]) -> list[FileInfo]:
        self._step(what, folder)
        first = files()
        scheduler = self.machine.scheduler
        if not self.machine.torn or len(first) < 2 or scheduler.here() is None or scheduler.schedule.random() < 0.5:
            return first
        cut = first[len(first) // 2].path
        self._step(f"{what} on", folder)
        second = files()
        if scheduler.schedule.random() < 0.5:
            first, second = second, first
        return [one for one in first if one.path < cut] + [one for one in second if one.path >= cut]


class SteppedStaged:
    """A staged file, whose publishing is a step."""

    def __init__(self, inner: Any, path: str, storage: SteppedStorage) -> None:
        self._inner = inner
        self._path = path
        self._storage = storage
        self.stream = inner.stream

    def publish(self) -> int:
        """Publish the file."""
        return self._storage.publish(self._inner, self._path)

    def discard(self) -> None:
        """Give the file up; it is in the memory of its process."""
        self._inner.discard()
