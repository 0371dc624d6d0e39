"""What tables must hold after a storm, by what the processes noted and by the order in which writes completed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from support.storms.notes import COUNT, Act, Begun

# Keys whose values are only ever counted up, keys that all writes share, and keys of one write alone.
COUNTERS = tuple(f"c{number}" for number in range(4))
HOT = tuple(f"k{number}" for number in range(6))
PARTITIONS = ("a", "b")
# By the ids of the storm's writes.
OWN = re.compile(r"storm-\d+-\d+-\d+")

Row = tuple[str, str, int]


def partition_of(key: str) -> str:
    """Return the partition of a key, which is the same in each write."""
    return PARTITIONS[sum(key.encode()) % len(PARTITIONS)]


def first_rows() -> tuple[Row, ...]:
    """Return the rows of a table before the storm."""
    return tuple((key, partition_of(key), 0) for key in (*COUNTERS, *HOT))


@dataclass(frozen=True)
class Ended:
    """A table after a storm.

    Attributes:
        begun: The writes to this table that were begun, by id.
        completed: The ids and requested times of the writes that its timeline shows as completed, in their order.
        rows: What a reader shows.
    """

    name: str
    begun: Mapping[str, Begun]
    completed: Sequence[tuple[str, str]]
    rows: Sequence[Row]


def mistakes_of(table: Ended) -> list[str]:
    """Return what a table holds and should not, or should hold and does not; the reader may be any."""
    mistakes = [*_of_timeline(table), *_of_keys(table)]
    keys = Counter(key for key, _, _ in table.rows)
    mistakes += [f"the key {key} is there {count} times" for key, count in keys.items() if count > 1]
    mistakes += _of_replay(table)
    return [f"{table.name}: {one}" for one in mistakes]


def replay(acts: Sequence[Act]) -> dict[str, Row]:
    """Return what a table holds after these writes, one after another."""
    rows = {row[0]: row for row in first_rows()}
    for act in acts:
        for key, p, value in act.rows:
            if act.operation == "delete":
                rows.pop(key, None)
            else:
                rows[key] = (key, p, rows[key][2] + 1 if act.operation == COUNT else value)
    return rows


def _of_timeline(table: Ended) -> Iterator[str]:
    """Yield the acknowledged writes that are not complete, and the complete ones that should not be."""
    times: dict[str, list[str]] = {}
    for write_id, instant in table.completed:
        times.setdefault(write_id, []).append(instant)
        if write_id not in table.begun:
            yield f"{write_id} is complete as {instant}, and no process has begun it"
    for write_id, found in times.items():
        if len(found) > 1:
            yield f"{write_id} is complete more than once: {found}"
    for write_id, write in table.begun.items():
        end = write.acknowledged
        if end is not None and end.instant not in times.get(write_id, []):
            yield f"{write_id} is acknowledged as {end.instant}, and complete as {times.get(write_id, 'nothing')}"
        if end is None and _is_refused(write) and write_id in times:
            yield f"{write_id} is refused ({write.ends[-1].refused[:100]}), and complete as {times[write_id]}"


def _of_keys(table: Ended) -> Iterator[str]:
    """Yield what is wrong with keys of one write alone and with counters, whatever the timeline shows."""
    values = {key: value for key, _, value in table.rows}
    for write in table.begun.values():
        own = [row for row in write.act.rows if row[0].startswith("own")]
        rows_present = [values.get(key) == value for key, _, value in own]
        if write.acknowledged is not None and not all(rows_present):
            yield f"{write.act.write_id} is acknowledged, and of its rows {own} some are not there"
        elif write.acknowledged is None and _is_refused(write) and any(rows_present):
            yield f"{write.act.write_id} is refused, and its rows {own} are there"
        elif any(rows_present) and not all(rows_present):
            yield f"{write.act.write_id} is there in part: {own}"
    known = {key for one in table.begun.values() for key, _, _ in one.act.rows}
    yield from (f"nothing wrote the key {key}" for key in sorted({*values} - known - {*COUNTERS, *HOT}))
    for counter in COUNTERS:
        counts = [one for one in table.begun.values() if one.act.operation == COUNT and one.act.rows[0][0] == counter]
        least = sum(one.acknowledged is not None for one in counts)
        most = least + sum(one.acknowledged is None and not _is_refused(one) for one in counts)
        if not least <= values.get(counter, -1) <= most:
            yield f"the counter {counter} is {values.get(counter)}, after {least} to {most} updates"


def _of_replay(table: Ended) -> Iterator[str]:
    expected = replay([table.begun[write_id].act for write_id, _ in table.completed if write_id in table.begun])
    rows_by_key = {row[0]: row for row in table.rows}
    for key in sorted({*expected, *rows_by_key}):
        if expected.get(key) != rows_by_key.get(key):
            yield f"the key {key} holds {rows_by_key.get(key)}, and by the completed writes {expected.get(key)}"


def _is_refused(one: Begun) -> bool:
    """Return whether each run of a write is known to have failed; a run that was killed is not."""
    return bool(one.ends) and len(one.ends) == one.runs and all(end.refused for end in one.ends)
