"""The instants of a listing, found from the listing before, against the same found from every name."""

from __future__ import annotations

import random

from pyhudi.timeline.layout import LayoutV2
from pyhudi.timeline.listing import listed_states, newest_states

LAYOUT = LayoutV2()
_ENDINGS = [
    "commit.requested",
    "inflight",
    "deltacommit.requested",
    "deltacommit.inflight",
    "compaction.requested",
    "compaction.inflight",
    "clustering.requested",
    "replacecommit.requested",
    "clean.requested",
    "clean.inflight",
    "savepoint.inflight",
    "commit",
    "rollback",
    "crc",
]
_ACTIONS = ["commit", "deltacommit", "replacecommit", "clean", "savepoint"]


def some_name(draw: random.Random) -> str:
    """Return a name of one of few instants, whose times differ in length."""
    time = "1" * draw.randint(1, 3) + str(draw.randint(0, 4))
    if draw.random() < 0.4:
        return f"{time}_{draw.randint(50, 53)}.{draw.choice(_ACTIONS)}"
    return draw.choice([f"{time}.{draw.choice(_ENDINGS)}", "history", f"{time}_.commit", ".commit.requested", "_.x"])


def test_each_listing_shows_what_its_names_spell() -> None:
    """Files come and go, one or many at a time."""
    draw = random.Random(7)
    file_names: set[str] = set()
    for _ in range(2000):
        count = draw.choice([0, 1, 1, 2, 5, 70])
        file_names ^= {some_name(draw) for _ in range(count)}
        names = tuple(sorted(file_names))
        parsed = [one for one in map(LAYOUT.parse, names) if one is not None]
        assert listed_states("listing", LAYOUT, names) == newest_states(parsed)
        assert newest_states(LAYOUT.parse_all(names)) == newest_states(parsed)


def test_two_tables_do_not_mix() -> None:
    """Each table is compared with its own listing before."""
    first, second = ("1.commit.requested",), ("2.commit.requested",)
    for _ in range(2):
        assert [one.requested_time for one in listed_states("a", LAYOUT, first)] == ["1"]
        assert [one.requested_time for one in listed_states("b", LAYOUT, second)] == ["2"]
