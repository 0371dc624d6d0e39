"""A disk that forgets at a power cut what was not flushed: what is left of a folder at each step of a work.

Told from the system calls alone, by the rules of fsync(2): a file's bytes are kept when the file was flushed, what is
in a folder (names made, changed, taken away) when the folder was. The strictest disk keeps nothing else. A careless one
keeps any part of the rest besides, in any order: a name without its bytes, a deletion before an older one.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# Of files by path below the watched folder; folders are there with None.
Image = dict[str, bytes | None]
_CHANGES = frozenset({"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir"})
_DURABLE, _LIVE = 0, 1


@dataclass(frozen=True)
class Cut:
    """What is left when the power goes at one step.

    Attributes:
        at: The number of the step, and what was about to be done or had just been flushed.
        image: The files that are left.
        done: Whether what was watched had said that it is done.
    """

    at: str
    image: Image
    done: bool


@dataclass
class Disk:
    """Watches one folder, which is taken for kept as it is.

    Attributes:
        root: The folder.
        careless: How many images of a careless disk are taken at each step.
        strict: Images of the strictest disk, each once.
        others: Images of a careless disk.
        before_flush: Called before a flush takes effect, with the path of what is flushed.
    """

    root: Path
    careless: int = 0
    strict: list[Cut] = field(default_factory=list)
    others: list[Cut] = field(default_factory=list)
    before_flush: Callable[[Path], Any] = lambda path: None
    done: bool = False
    _names: dict[int, dict[str, int]] = field(default_factory=dict)
    _bytes: dict[int, bytes] = field(default_factory=dict)
    _folders: set[int] = field(default_factory=set)
    # An inode that somebody holds is not given to another file.
    _held: list[int] = field(default_factory=list)
    _step: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(7))

    def keep_all(self) -> None:
        """Take everything that is there for kept."""
        for folder, _, files in os.walk(self.root):
            for name in (*files, "."):
                descriptor = os.open(Path(folder, name), os.O_RDONLY)
                self._keep(descriptor)
                os.close(descriptor)

    def fsync(self, descriptor: int) -> None:
        """Stand in for the call of that name."""
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_relative_to(self.root):
            self.before_flush(path)
            self._take(f"before flushing {path.relative_to(self.root)}")
            self._keep(descriptor)
            self._take(f"flushed {path.relative_to(self.root)}")

    def about_to(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note that a change of names is about to be made."""
        paths = [Path(os.fsdecode(one)) for one in arguments if isinstance(one, str | bytes | os.PathLike)]
        if paths and paths[-1].is_relative_to(self.root):
            self._take(f"before {event} {paths[-1].relative_to(self.root)}")

    def say_done(self) -> None:
        """Note that what was watched is done."""
        self.done = True
        self._take("done")

    def strictest(self) -> Image:
        """Return what is left when nothing is kept but what was flushed."""
        return self._image(lambda: _DURABLE)

    def release(self) -> None:
        """Let go of what is held."""
        for descriptor in self._held:
            os.close(descriptor)
        self._held.clear()

    def _keep(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        self._held.append(os.dup(descriptor))
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            self._folders.add(inode)
            self._names[inode] = _listing(f"/proc/self/fd/{descriptor}")
        else:
            self._bytes[inode] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def _take(self, what: str) -> None:
        self._step += 1
        at = f"step {self._step}, {what}"
        left = self.strictest()
        if not self.strict or self.strict[-1].image != left or self.done:
            self.strict.append(Cut(at, left, self.done))
        for _ in range(self.careless):
            self.others.append(Cut(at, self._image(lambda: self._chance.choice((_DURABLE, _LIVE))), self.done))

    def _image(self, choose: Callable[[], int]) -> Image:
        image: Image = {}
        waiting: list[tuple[str, int, Path | None]] = [("", self.root.stat().st_ino, self.root)]
        while waiting:
            below, inode, live = waiting.pop()
            kept, seen = self._names.get(inode, {}), _listing(live)
            for name in sorted({*kept, *seen}):
                one = (kept.get(name), seen.get(name))
                chosen = one[0] if one[0] == one[1] else one[choose()]
                if chosen is None:
                    continue
                path = f"{below}{name}"
                at = live / name if live is not None and chosen == seen.get(name) else None
                if chosen in self._folders or (at is not None and at.is_dir()):
                    image[path] = None
                    waiting.append((f"{path}/", chosen, at))
                else:
                    image[path] = self._bytes_of(chosen, at, choose)
        return image

    def _bytes_of(self, inode: int, live: Path | None, choose: Callable[[], int]) -> bytes:
        if inode in self._bytes or live is None:
            return self._bytes.get(inode, b"")
        data = live.read_bytes() if choose() == _LIVE else b""
        return data if choose() == _LIVE else data[: len(data) // 2]


@contextmanager
def watched(root: Path, *, careless: int = 0) -> Iterator[Disk]:
    """Watch what is done in a folder."""
    disk = Disk(root.resolve(), careless)
    disk.keep_all()
    disk._take("start")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", disk.fsync)
        _watching.append(disk)
        try:
            yield disk
        finally:
            _watching.remove(disk)
            disk.release()


def restore(image: Image, root: Path) -> None:
    """Make the files of an image below a folder that is not there yet."""
    root.mkdir()
    for name in sorted(image):
        data = image[name]
        if data is None:
            (root / name).mkdir(parents=True, exist_ok=True)
        else:
            (root / name).write_bytes(data)


def _listing(folder: Path | str | None) -> dict[str, int]:
    if folder is None:
        return {}
    with os.scandir(folder) as entries:
        return {entry.name: entry.inode() for entry in entries}


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _CHANGES:
        for disk in _watching:
            disk.about_to(event, arguments)


_watching: list[Disk] = []
# It cannot be taken away again.
sys.addaudithook(_listen)
