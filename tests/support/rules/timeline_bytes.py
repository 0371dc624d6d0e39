"""The completed instants of a table, read from their files by rules written down here a second time."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
from support.made.old_archives import records_of

# What merges log files is asked for by one name and completes by another.
MERGES = {"compaction": "commit", "logcompaction": "deltacommit"}
_PENDING = re.compile(r"(?P<instant>\d{17})\.(?:(?P<asked>[a-z]+)\.requested|(?:(?P<begun>[a-z]+)\.)?inflight)")


@dataclass(frozen=True)
class Done:
    """A completed instant, on the timeline or archived, with what it holds.

    Attributes:
        at: When it completed; the time by which it was asked for, where nothing tells.
    """

    instant: str
    at: str
    action: str
    body: bytes

    @property
    def record(self) -> Mapping[str, Any]:
        """What its file says."""
        return _decoded(self.body)


@dataclass(frozen=True)
class Layout:
    """Where tables of some versions have their instants; folders are relative to the table."""

    folder: str
    archive: str
    completed: re.Pattern[str]
    archived: re.Pattern[str]
    timed: bool

    def knows(self, name: str) -> bool:
        """Return whether a file, by its path in the table, is of the timeline or the archive."""
        folder, _, short = name.rpartition("/")
        if folder == self.archive:
            return self.archived.fullmatch(short) is not None
        return folder == self.folder and any(one.fullmatch(short) for one in (self.completed, _PENDING))


FLAT = Layout(
    ".hoodie",
    ".hoodie/archived",
    re.compile(r"(?P<instant>\d{17})\.(?P<action>commit|replacecommit|clean|rollback|restore|savepoint)"),
    re.compile(r"\.commits_\.archive\.\d+_1-0-1"),
    timed=False,
)
TIMED = Layout(
    ".hoodie/timeline",
    ".hoodie/timeline/history",
    re.compile(r"(?P<instant>\d{17})_(?P<at>\d{17})\.(?P<action>[a-z]+)"),
    re.compile(r"_version_|manifest_\d+|(?P<least>\d{17})_(?P<greatest>\d{17})_\d\.parquet"),
    timed=True,
)


def layout_of(properties: Mapping[str, str]) -> Layout:
    """Return the layout that a table's properties name."""
    return FLAT if properties["hoodie.timeline.layout.version"] == "1" else TIMED


def completed_in(root: Path, layout: Layout) -> list[Done]:
    """Return the completed instants of a table, in the order in which readers see them."""
    instants = _on_timeline(root, layout) + (_in_history(root, layout) if layout.timed else _in_log_files(root, layout))
    if layout.timed:
        times = [one.at for one in instants]
        assert len(set(times)) == len(times), "no two instants completed at one time"
        assert all(one.at > one.instant for one in instants)
    return sorted(instants, key=lambda one: one.at)


def _on_timeline(root: Path, layout: Layout) -> list[Done]:
    """Return the completed instants of the timeline, having checked that none is pending and none half there."""
    files = {one.name: one for one in (root / layout.folder).iterdir() if one.is_file() and one.name[0].isdigit()}
    completed: list[Done] = []
    states: dict[tuple[str, bool], list[str]] = {}
    for short, file in files.items():
        completed_match, pending = layout.completed.fullmatch(short), _PENDING.fullmatch(short)
        assert completed_match or pending, f"{short} is no instant"
        if completed_match:
            at = completed_match["at"] if layout.timed else completed_match["instant"]
            completed.append(Done(completed_match["instant"], at, completed_match["action"], file.read_bytes()))
        # A savepoint has the time of the write that it keeps.
        states.setdefault(((completed_match or pending)["instant"], "savepoint" in short), []).append(  # type: ignore[index]
            f"completed {completed_match['action']}" if completed_match else short[18:]
        )
    for (instant, keeps), found in states.items():
        _assert_states(instant, found, keeps=keeps)
    return completed


def _assert_states(instant: str, found: list[str], *, keeps: bool) -> None:
    action = next((one.split()[1] for one in found if one.startswith("completed ")), None)
    service = next((one.partition(".")[0] for one in found if one.partition(".")[0] in MERGES), None)
    if service is not None:
        asked = [f"{service}.requested"]
        # One that waits is for somebody else.
        whole = sorted([f"completed {MERGES[service]}", *asked, f"{service}.inflight"])
        assert sorted(found) in (asked, whole), found
        return
    assert action is not None, f"{instant} is pending: {found}"
    begun = "inflight" if action == "commit" else f"{action}.inflight"
    asked = [] if keeps else [f"{action}.requested"]
    assert sorted(found) == sorted([f"completed {action}", *asked, begun])


def _in_history(root: Path, layout: Layout) -> list[Done]:
    """Return the instants of the archive, having checked that it is whole and repeats nothing."""
    folder = root / layout.archive
    if not any(folder.glob("*")):
        return []
    number = int((folder / "_version_").read_text())
    manifests = [int(one.name.partition("_")[2]) for one in folder.glob("manifest_*")]
    assert number == max(manifests), "readers and writers go by one manifest"
    instants: list[Done] = []
    for entry in json.loads((folder / f"manifest_{number}").read_text())["files"]:
        file, name = folder / entry["fileName"], layout.archived.fullmatch(entry["fileName"])
        assert name is not None
        assert file.stat().st_size == entry["fileLen"]
        rows = pq.ParquetFile(file).read().to_pylist()
        times = [row["instantTime"] for row in rows]
        assert (min(times), max(times)) == (name["least"], name["greatest"]), "a file's name spans its instants"
        instants += [Done(row["instantTime"], row["completionTime"], row["action"], row["metadata"]) for row in rows]
    return instants


def _in_log_files(root: Path, layout: Layout) -> list[Done]:
    """Return the instants of an archive of log files, each of which has a record of all its states."""
    states: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    folder = root / layout.archive
    for row in records_of(folder) if folder.exists() else ():
        states.setdefault((row["commitTime"], row["actionType"]), {})[row["actionState"]] = row
    instants = []
    for (instant, action), rows in states.items():
        asked = set() if action == "savepoint" else {"REQUESTED"}
        assert rows.keys() == {*asked, "INFLIGHT", "COMPLETED"}, f"{instant} {action}: {rows.keys()}"
        bodies = [name for name, body in rows["COMPLETED"].items() if name.startswith("hoodie") and body is not None]
        assert len(bodies) == 1, f"{instant} {action}: {bodies}"
        instants.append(Done(instant, instant, action, json.dumps(rows["COMPLETED"][bodies[0]]).encode()))
    return instants


# Of copies of a table the same bytes come up again and again.
@lru_cache(maxsize=1024)
def _decoded(body: bytes) -> Mapping[str, Any]:
    if body.startswith(b"{"):
        record = json.loads(body)
    else:
        (record,) = list(fastavro.reader(io.BytesIO(body)))
    assert isinstance(record, dict)
    return record
