"""Counts what a report says of a table, from names and bodies of files alone, by rules of its own.

It knows tables of bucket indexes whose instants are all on the active timeline and whose compactions, if any, are done.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq

_INSTANT = re.compile(r"(\d+)(?:_(\d+))?\.(\w+?)(?:\.(requested|inflight))?")
_BASE = re.compile(r"(?P<id>[\w-]+)_[\d-]+_(?P<at>\d+)\.parquet")
_LOG = re.compile(r"\.(?P<id>[\w-]+)_(?P<at>\d+)\.log\.\d+_[\d-]+")
_WRITES = ("commit", "deltacommit", "replacecommit")
Groups = dict[tuple[str, str], "Group"]


@dataclass
class Group:
    """The files of a file group: names, times and sizes of the newest slice, and the bytes of older ones."""

    bases: dict[str, Path] = field(default_factory=dict)
    logs: dict[Path, str] = field(default_factory=dict)

    @property
    def newest(self) -> str:
        """When the newest slice began."""
        return max(self.bases, default="")

    @property
    def base(self) -> Path | None:
        """The newest base file."""
        return self.bases.get(self.newest)

    @property
    def live_logs(self) -> list[Path]:
        """The log files that the newest base file does not hold."""
        return [path for path, at in self.logs.items() if at > self.newest]

    def until(self, time: str) -> Group:
        """Return the files that writes requested until a time have left."""
        return Group(
            {at: path for at, path in self.bases.items() if at <= time},
            {path: at for path, at in self.logs.items() if at <= time},
        )

    @property
    def live(self) -> list[Path]:
        """The files of the newest slice."""
        return ([self.base] if self.base else []) + self.live_logs


@dataclass
class CountedTable:
    """What the files of a table say.

    Attributes:
        instants: Action, and completion time if complete, by requested time.
        bodies: What the completed writes hold, by requested time; those that cannot be read are left out.
        every: All file groups, by partition and file id; ``replaced`` says when some of them were replaced.
        unfinished: The files of pending writes.
    """

    path: Path
    instants: dict[str, tuple[str, str | None]]
    bodies: dict[str, Any]
    every: Groups
    replaced: dict[tuple[str, str], str]
    unfinished: list[Path]

    @classmethod
    def of(cls, path: Path) -> CountedTable:
        """Count a table."""
        instants: dict[str, tuple[str, str | None]] = {}
        bodies = {}
        for file in (path / ".hoodie/timeline").glob("[0-9]*"):
            name_match = _INSTANT.fullmatch(file.name)
            assert name_match is not None, file
            time, completed, action, _ = name_match.groups()
            if action == "inflight":
                action = "commit"
            if completed or time not in instants:
                instants[time] = action, completed
            if completed and action in _WRITES:
                try:
                    with file.open("rb") as stream:
                        (bodies[time],) = fastavro.reader(stream)
                except (ValueError, EOFError):
                    continue
        replaced = {
            (partition, file_id): time
            for time, body in bodies.items()
            for partition, ids in (body.get("partitionToReplaceFileIds") or {}).items()
            for file_id in ids
        }
        every: Groups = {}
        unfinished = []
        for file in sorted(path.rglob("*")):
            place = str(file.parent.relative_to(path)).replace(".", "", 1) if file.parent == path else ""
            place = place or str(file.parent.relative_to(path))
            name_match = _BASE.fullmatch(file.name) or _LOG.fullmatch(file.name)
            if place.startswith(".hoodie") or name_match is None:
                continue
            if instants[name_match["at"]][1] is None:
                unfinished.append(file)
                continue
            group = every.setdefault((place, name_match["id"]), Group())
            if file.name.startswith("."):
                group.logs[file] = name_match["at"]
            else:
                group.bases[name_match["at"]] = file
        return cls(path, instants, bodies, every, replaced, unfinished)

    @property
    def groups(self) -> Groups:
        """The file groups that are not replaced."""
        return {name: group for name, group in self.every.items() if name not in self.replaced}

    @property
    def dead(self) -> list[Path]:
        """The files of writes that no snapshot reads."""
        live = set(self.live)
        every = (file for group in self.every.values() for file in (*group.bases.values(), *group.logs))
        return [file for file in every if file not in live]

    @property
    def live(self) -> list[Path]:
        """The files that a snapshot reads."""
        return [file for group in self.groups.values() for file in group.live]

    @property
    def bases(self) -> list[Path]:
        """The base files among them."""
        return [group.base for group in self.groups.values() if group.base is not None]

    @property
    def rows_of_files(self) -> dict[str, int]:
        """The rows of each file, as its commit states them."""
        stats = (
            stat for body in self.bodies.values() for part in body["partitionToWriteStats"].values() for stat in part
        )
        return {stat["path"].rpartition("/")[2]: stat["numWrites"] for stat in stats}

    def recorded(self, key: str) -> dict[str, Any]:
        """Return what the extra metadata of writes has under a key, by their times."""
        found = {time: body["extraMetadata"].get(key) for time, body in self.bodies.items()}
        return {time: json.loads(text) for time, text in found.items() if text is not None}

    def space(self) -> dict[str, tuple[int, int]]:
        """Return the live and dead bytes as each write left them."""
        bytes_by_time = {}
        for time, (action, completed) in sorted(self.instants.items()):
            if action in _WRITES and completed is not None:
                live = every = 0
                for name, group in self.every.items():
                    then = group.until(time)
                    every += size_of([*then.bases.values(), *then.logs])
                    live += 0 if self.replaced.get(name, "9") <= time else size_of(then.live)
                bytes_by_time[time] = live, every - live
        return bytes_by_time


def size_of(files: list[Path]) -> int:
    """Return the bytes of some files."""
    return sum(file.stat().st_size for file in files)


def key_range(file: Path) -> tuple[str, str]:
    """Return the least and greatest record key of a base file, from its rows."""
    keys = pq.read_table(file, columns=["_hoodie_record_key"]).column(0).to_pylist()
    return min(keys), max(keys)


def seconds_between(requested: str, completed: str) -> float:
    """Return the seconds between two times of instants."""
    earlier, later = (_moment(text) for text in (requested, completed))
    return (later - earlier) / timedelta(seconds=1)


def spelled_moment(text: str) -> str:
    """Return a time of an instant as the page shows it."""
    return f"{_moment(text):%Y-%m-%d %H:%M:%S} UTC"


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%d%H%M%S%f").replace(tzinfo=timezone.utc)
