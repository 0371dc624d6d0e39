"""The instants that the names of a timeline's files spell, found from those of the listing before.

A write lists its timeline some eight times, each time with a few more names. To compare thousands of names with those
before takes a fraction of the time in which all would be parsed and put in order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..storage.kept import keep
from .instants import Instant
from .layout import Layout

# Enough for the tables of one job.
_MOST_LISTINGS = 32
_FEW = 64


@dataclass(frozen=True, slots=True)
class _Listing:
    names: frozenset[str]
    ordered: Sequence[str]
    instants: tuple[Instant, ...]


_NOTHING = _Listing(frozenset(), (), ())
# By the table's path.
_LISTINGS: dict[tuple[str, Layout], _Listing] = {}


def listed_states(path: str, layout: Layout, names: Sequence[str]) -> tuple[Instant, ...]:
    """Return the newest state of each instant that names of files spell, in order of requested time."""
    before = _LISTINGS.get((path, layout), _NOTHING)
    added = [name for name in names if name not in before.names]
    if len(names) - len(added) == len(before.names):
        if not added:
            return before.instants
        gone: frozenset[str] = frozenset()
    else:
        gone = before.names.difference(names)
    listing = _changed(before, layout, added, gone) if len(added) + len(gone) <= _FEW else _all(layout, names)
    keep(_LISTINGS, (path, layout), listing, _MOST_LISTINGS)
    return listing.instants


def newest_states(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    newest: dict[tuple[str, str], Instant] = {}
    for instant in instants:
        key = _order(instant)
        latest = newest.get(key)
        # Of two completed files of an instant, readers have acted on the earlier, which comes first in a listing.
        if latest is None or instant.state > latest.state:
            newest[key] = instant
    return tuple(newest[key] for key in sorted(newest))


def _all(layout: Layout, names: Sequence[str]) -> _Listing:
    ordered = sorted(names)
    return _Listing(frozenset(names), ordered, newest_states(layout.parse_all(ordered)))


def _changed(before: _Listing, layout: Layout, added: Sequence[str], gone: frozenset[str]) -> _Listing:
    ordered = [name for name in before.ordered if name not in gone] if gone else [*before.ordered]
    for name in added:
        insort(ordered, name)
    times = {instant.requested_time for instant in _parsed(layout, (*added, *gone))}
    instants = [instant for instant in before.instants if instant.requested_time not in times]
    for instant in newest_states(state for time in times for state in _of_time(time, layout, ordered)):
        insort(instants, instant, key=_order)
    return _Listing((before.names - gone).union(added), ordered, tuple(instants))


def _of_time(time: str, layout: Layout, names: Sequence[str]) -> Iterator[Instant]:
    start = layout.start(time)
    at = bisect_left(names, start)
    while at < len(names) and names[at].startswith(start):
        yield from (instant for instant in _parsed(layout, names[at : at + 1]) if instant.requested_time == time)
        at += 1


def _parsed(layout: Layout, names: Iterable[str]) -> Iterator[Instant]:
    return (instant for instant in map(layout.parse, names) if instant is not None)


def _order(instant: Instant) -> tuple[str, str]:
    return instant.requested_time, instant.group
