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
    """The names of a timeline's files, the same in order, and the instants that they spell."""

    names: frozenset[str]
    ordered: Sequence[str]
    instants: tuple[Instant, ...]


_NOTHING = _Listing(frozenset(), (), ())
# By the table's path.
_LISTINGS: dict[tuple[str, Layout], _Listing] = {}


def listed_states(path: str, layout: Layout, names: Sequence[str]) -> tuple[Instant, ...]:
    """Return the newest state of each instant that names of files spell, in order of requested time.

    ``path`` is the table's path, under which a process keeps the last listing: a few changes are then applied to it, as
    a full parse takes longer. ``layout`` parses the names.
    """
    previous = _LISTINGS.get((path, layout), _NOTHING)
    added = [name for name in names if name not in previous.names]
    # All names of before are among the names, so none was removed.
    if len(names) - len(added) == len(previous.names):
        if not added:
            return previous.instants
        removed: frozenset[str] = frozenset()
    else:
        removed = previous.names.difference(names)
    listing = (
        _listing_with_changes(previous, layout, added, removed)
        if len(added) + len(removed) <= _FEW
        else _listing_of_all(layout, names)
    )
    keep(_LISTINGS, (path, layout), listing, _MOST_LISTINGS)
    return listing.instants


def newest_states(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """Return the newest state of each instant, in order of requested time."""
    newest: dict[tuple[str, str], Instant] = {}
    for instant in instants:
        key = _sort_key(instant)
        latest = newest.get(key)
        # Of two completed files of an instant, readers have acted on the earlier, which comes first in a listing.
        if latest is None or instant.state > latest.state:
            newest[key] = instant
    return tuple(newest[key] for key in sorted(newest))


def _listing_of_all(layout: Layout, names: Sequence[str]) -> _Listing:
    """Return a listing for which all names are parsed."""
    ordered = sorted(names)
    return _Listing(frozenset(names), ordered, newest_states(layout.parse_all(ordered)))


def _listing_with_changes(
    previous: _Listing, layout: Layout, added: Sequence[str], removed: frozenset[str]
) -> _Listing:
    """Return a previous listing with some names added and removed; only instants of their times are parsed."""
    ordered = [name for name in previous.ordered if name not in removed] if removed else [*previous.ordered]
    for name in added:
        insort(ordered, name)
    # Another file may now hold the newest state of an instant, so find the instants of these times anew.
    times = {instant.requested_time for instant in _instants_of(layout, (*added, *removed))}
    instants = [instant for instant in previous.instants if instant.requested_time not in times]
    for instant in newest_states(state for time in times for state in _states_at(time, layout, ordered)):
        insort(instants, instant, key=_sort_key)
    return _Listing((previous.names - removed).union(added), ordered, tuple(instants))


def _states_at(time: str, layout: Layout, names: Sequence[str]) -> Iterator[Instant]:
    """Yield the states of instants with a requested time that names, which are in order, spell."""
    start = layout.start(time)
    position = bisect_left(names, start)
    while position < len(names) and names[position].startswith(start):
        # Another time may begin with the time.
        instants = _instants_of(layout, names[position : position + 1])
        yield from (instant for instant in instants if instant.requested_time == time)
        position += 1


def _instants_of(layout: Layout, names: Iterable[str]) -> Iterator[Instant]:
    return (instant for instant in map(layout.parse, names) if instant is not None)


def _sort_key(instant: Instant) -> tuple[str, str]:
    """Return the key by which instants are in order; all states of one instant share it."""
    return instant.requested_time, instant.group
