"""What a decision does before it makes the completed file: small files to make, and files written aside to publish.

A follower of the table's files prepares its steps before the decision is made. Any process that carries the decision
out takes them in their order, and calls no follower. So a file that a follower wrote aside and a process deleted since
must not stop the table: the decision names the properties that take the follower out of use instead.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .owner import ROOT

# Bytes of all files that a decision itself holds.
MOST_TO_MAKE = 1 << 20
_NAME = re.compile(r"[\w.-]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class MakeFile:
    """Make a file with these bytes, unless it exists."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class PublishFile:
    """Publish a whole file under a path, unless a file of that size has the path.

    Attributes:
        name: Of the file in the instant's `folder_of`; no other process gives a file the same name.
        path: Below the table's root, where readers look for it.
        size: In bytes.
        crc: CRC-32 of its bytes.
    """

    name: str
    path: str
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class ReplaceFile:
    """Give a file other bytes, if it still has those that were read.

    Attributes:
        replaces: CRC-32 of the bytes that were read, None if there was no file. A file with any others was replaced
            by this step before, or by another process since, and stays.
    """

    path: str
    content: bytes
    replaces: int | None


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Delete a file whose name no process gives again."""

    path: str


Step = MakeFile | PublishFile | ReplaceFile | DeleteFile


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """The steps of one follower.

    Attributes:
        steps: In their order.
        out_of_use: Properties that take the follower out of use, None to remove one: they are set if a file that was
            to be published is gone, and the steps after it are left out.
        drops: Partitions of the metadata table that go out of use before the steps.
        adds: Partitions of the metadata table that are built, and come into use once all steps are taken.
        begins: Partitions of the metadata table that an indexing begins to build once all steps are taken.
    """

    steps: tuple[Step, ...]
    out_of_use: Mapping[str, str | None] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the steps add."""
        return tuple(step.path for step in self.steps if isinstance(step, (MakeFile, PublishFile)))


def folder_of(instant_time: str) -> str:
    """Return the folder of the files that wait to be published before an instant's completed file."""
    return f"{ROOT}/{instant_time}/first"


def check_small(first: Sequence[FirstSteps]) -> None:
    """Raise ValueError if a decision would hold more bytes of files than it may."""
    steps = (step for group in first for step in group.steps)
    size = sum(len(step.content) for step in steps if isinstance(step, (MakeFile, ReplaceFile)))
    if size > MOST_TO_MAKE:
        raise ValueError(f"a decision makes files of {size:,} bytes, and {MOST_TO_MAKE:,} are allowed")


def spelled(first: Sequence[FirstSteps]) -> list[dict[str, Any]]:
    """Return steps as the JSON of a decision holds them."""
    return [
        {
            "steps": [_spelled_step(step) for step in group.steps],
            "outOfUse": dict(group.out_of_use),
            **({"drops": list(group.drops)} if group.drops else {}),
            **({"adds": list(group.adds)} if group.adds else {}),
            **({"begins": list(group.begins)} if group.begins else {}),
        }
        for group in first
    ]


def parse_first(groups: Sequence[Mapping[str, Any]]) -> tuple[FirstSteps, ...]:
    """Return the steps of each follower in the JSON of a decision, in the order in which they are taken.

    Raises ValueError, TypeError or KeyError if the JSON is malformed.
    """
    return tuple(
        FirstSteps(
            tuple(map(_parse_step, group["steps"])),
            # A property that is to be removed has the value None.
            parse_properties(group["outOfUse"], none=True),
            tuple(map(str, group.get("drops", ()))),
            tuple(map(str, group.get("adds", ()))),
            tuple(map(str, group.get("begins", ()))),
        )
        for group in groups
    )


def parse_properties(values: Mapping[str, Any], *, none: bool = False) -> dict[str, Any]:
    """Return properties in the JSON of a decision; TypeError if a value is no text, or None without ``none``."""
    if not all(isinstance(value, str) or (none and value is None) for value in values.values()):
        raise TypeError(values)
    return dict(values)


def _spelled_step(step: Step) -> dict[str, Any]:
    """Return a step as the JSON of a decision holds it."""
    if isinstance(step, MakeFile):
        return {"make": step.path, "content": base64.b64encode(step.content).decode()}
    if isinstance(step, ReplaceFile):
        content = base64.b64encode(step.content).decode()
        return {"replace": step.path, "content": content, "replaces": step.replaces}
    if isinstance(step, DeleteFile):
        return {"delete": step.path}
    return {"publish": step.path, "name": step.name, "size": step.size, "crc": step.crc}


def _parse_step(step: Mapping[str, Any]) -> Step:
    """Return the step in the JSON of a decision; raises as `parse_first`."""
    if "make" in step:
        return MakeFile(_checked(step["make"]), base64.b64decode(step["content"], validate=True))
    if "replace" in step:
        replaces = step["replaces"]
        if not (replaces is None or type(replaces) is int):
            raise ValueError(step)
        return ReplaceFile(_checked(step["replace"]), base64.b64decode(step["content"], validate=True), replaces)
    if "delete" in step:
        return DeleteFile(_checked(step["delete"]))
    name, size, crc = step["name"], step["size"], step["crc"]
    if not (_NAME.fullmatch(name) and type(size) is int and type(crc) is int):
        raise ValueError(step)
    return PublishFile(name, _checked(step["publish"]), size, crc)


def _checked(path: str) -> str:
    """Return a path below ``.hoodie``, where no data file is: a damaged decision must not name other files."""
    folder, *inner = path.split("/")
    if folder != ".hoodie" or not inner or not {"", ".", ".."}.isdisjoint(inner) or "\0" in path:
        raise ValueError(path)
    return path
