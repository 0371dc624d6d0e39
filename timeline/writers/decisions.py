"""The decisions of a table, a numbered file each: what its timeline gains or loses, fixed before it does.

The file of a number is made with create-if-absent, so that on every store only one process makes the decision of a
number. A process that is about to decide first executes the newest decision, if its maker has not, and then makes the
decision of the next number: a process that stalled meanwhile finds that number taken.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from ...storage.base import Storage, join, split
from .. import formats
from ..instants import Instant, State
from .first_steps import FirstSteps, check_small, parse_first, parse_properties, spelled
from .owner import ROOT

FOLDER = f"{ROOT}/decisions"
# If a file system knows no links, a decision is written in place: it may be half-made for this long.
HALF_MADE_S = 5.0
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_TIME = re.compile(r"\d{1,17}", re.ASCII)
_ACTION = re.compile(r"[a-z]+", re.ASCII)


class BucketRuleText(NamedTuple):
    """The numbers of buckets from an instant on, as decisions of earlier releases hold them."""

    default: int
    expressions: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> BucketRuleText:
        """Return the numbers of buckets in the JSON of a decision."""
        expressions = tuple((str(text), int(number)) for text, number in rule["expressions"])
        return cls(int(rule["default"]), expressions)


class DecisionKind(str, Enum):
    MAKE = "make the file of an instant's state"
    GIVE_UP = "take an instant's inflight file away"
    CLOSE = "take back partitions that an instant opened"
    SET_PROPERTIES = "set properties of the table"
    TAKE_STEPS = "take steps that make no instant of the table"


@dataclass(frozen=True, slots=True)
class Decision:
    """One change of a table's timeline.

    Attributes:
        instant: Of `DecisionKind.MAKE` with the state, and the completion time, of the file to be made. Of
            `DecisionKind.SET_PROPERTIES` it is on no timeline: it says what the properties change for, and when. Of
            `DecisionKind.TAKE_STEPS` it is an instant of the metadata table.
        body: The content of that file. Of `DecisionKind.SET_PROPERTIES` the state of the timeline that the change
            depends on (`state_of`), empty for any: if the timeline has another state, the change is not carried out.
        new_table: Properties of the table that the instant creates; empty if the table exists.
        changes: Properties to be set before, None to remove one; of `DecisionKind.SET_PROPERTIES`, all that is set.
        maker: Distinguishes two processes that make the same decision.
        first: What is to be done right before that file, in this order; of `DecisionKind.TAKE_STEPS` all that is done.
        rule: The rule of buckets to be made right before that file, which an earlier release decided; None for none.
        replaces: Of `DecisionKind.SET_PROPERTIES` the checksum of the file of properties that it changes. A file with
            another checksum was changed by this decision, or later: then the decision is carried out already.
    """

    kind: DecisionKind
    instant: Instant
    body: bytes = b""
    new_table: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str | None] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    maker: str = ""
    first: tuple[FirstSteps, ...] = ()
    rule: BucketRuleText | None = None
    replaces: str = ""

    def encode(self) -> bytes:
        """Return the decision's file: a checksum, a line of JSON, then the body.

        Raises ValueError if the files to be made are too large, or no process could read the decision.
        """
        check_small(self.first)
        if not _is_nameable(self):
            raise ValueError(self.instant)
        # A decision that earlier releases understand keeps the format that they read.
        head = {
            formats.FIELD: formats.DECISION if self.first or self.replaces else formats.PLAIN_DECISION,
            "does": self.kind.name,
            "instant": self.instant.requested_time,
            "action": self.instant.action,
            "state": self.instant.state.name,
            "completed": self.instant.completion_time,
            "newTable": dict(self.new_table),
            "changes": dict(self.changes),
            "partitions": list(self.partitions),
            "maker": self.maker,
            **({"first": spelled(self.first)} if self.first else {}),
            **({"replaces": self.replaces} if self.replaces else {}),
        }
        content = json.dumps(head).encode() + b"\n" + self.body
        return f"{zlib.crc32(content):08x}\n".encode() + content

    @classmethod
    def parse(cls, data: bytes) -> Decision | None:
        """Return the decision in a file; None if the file is incomplete, or in a newer format."""
        head, body = _head_and_body(data)
        try:
            completed = None if head["completed"] is None else str(head["completed"])
            instant = Instant(str(head["instant"]), str(head["action"]), State[head["state"]], completed)
            decision = cls(
                DecisionKind[head["does"]],
                instant,
                body,
                parse_properties(head["newTable"]),
                parse_properties(head["changes"], none=True),
                tuple(str(path) for path in head["partitions"]),
                str(head["maker"]),
                parse_first(head.get("first", ())),
                None if head.get("rule") is None else BucketRuleText.of(head["rule"]),
                str(head.get("replaces", "")),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        readable = formats.number_of(head) <= formats.DECISION
        return decision if readable and _is_nameable(decision) else None


def refuse_newer(storage: Storage, number: int, data: bytes) -> None:
    """Raise UnsupportedTableError if a decision's file has a newer format, whose meaning is unknown here.

    In every format the file begins with the checksum and a line of JSON that has the format number.
    """
    formats.refuse_newer(storage.path, path_of(number), format_of(data), formats.DECISION)


def format_of(data: bytes) -> int:
    """Return the format number of a decision's file; an incomplete file has the first."""
    return formats.number_of(_head_and_body(data)[0])


def numbers(storage: Storage) -> list[int]:
    """Return the numbers of the decisions that are stored, in order."""
    names = (split(info.path)[1] for info in storage.list(FOLDER))
    return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def newest(storage: Storage) -> Decision | None:
    """Return the newest decision, which alone may wait to be carried out; None if there is none, or it is not whole."""
    while stored := numbers(storage):
        try:
            data = storage.read(path_of(stored[-1]))
        except FileNotFoundError:
            continue  # old decisions go when newer decisions are made
        refuse_newer(storage, stored[-1], data)
        return Decision.parse(data)
    return None


def path_of(number: int) -> str:
    return join(FOLDER, f"{number:012d}")


def _head_and_body(data: bytes) -> tuple[Any, bytes]:
    """Return the JSON of a decision's first line, None if the file is incomplete, and the body after it."""
    checksum, _, content = data.partition(b"\n")
    if checksum != f"{zlib.crc32(content):08x}".encode():
        return None, b""
    head, _, body = content.partition(b"\n")
    try:
        return json.loads(head), body
    except (ValueError, RecursionError):
        return None, b""


def _is_nameable(decision: Decision) -> bool:
    """Return whether the instant's files can be named: a damaged decision must not name other files.

    No decision makes an inflight file.
    """
    instant = decision.instant
    if decision.kind == DecisionKind.MAKE and instant.state == State.INFLIGHT:
        return False
    times = [time for time in (instant.requested_time, instant.completion_time) if time is not None]
    return all(map(_TIME.fullmatch, times)) and _ACTION.fullmatch(instant.action) is not None
