"""The names of instants in timeline layout 1."""

from __future__ import annotations

import pytest
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.layout import LayoutV1
from support.made.timelines import timeline_in

LAYOUT = LayoutV1()
TIME = "20261128225642501"


@pytest.mark.parametrize(
    ("name", "action", "state"),
    [
        ("commit", "commit", State.COMPLETED),
        ("commit.requested", "commit", State.REQUESTED),
        ("inflight", "commit", State.INFLIGHT),
        ("deltacommit.inflight", "deltacommit", State.INFLIGHT),
        ("compaction.requested", "compaction", State.REQUESTED),
        ("compaction.inflight", "compaction", State.INFLIGHT),
        ("replacecommit.inflight", "replacecommit", State.INFLIGHT),
        ("savepoint.inflight", "savepoint", State.INFLIGHT),
        ("rollback", "rollback", State.COMPLETED),
    ],
)
def test_a_name_has_one_time_and_the_state(name: str, action: str, state: State) -> None:
    instant = Instant(TIME, action, state)

    assert LAYOUT.parse(f"{TIME}.{name}") == instant
    assert LAYOUT.format(instant) == f"{TIME}.{name}"
    assert LAYOUT.is_whole(instant)


@pytest.mark.parametrize("name", ["hoodie.properties", "metadata", f"{TIME}_20261128225715386.commit", f"{TIME}.crc"])
def test_what_lies_beside_instants_is_none(name: str) -> None:
    assert LAYOUT.parse(name) is None


def test_an_instant_completes_without_a_time_of_its_own_and_is_visible_from_its_request_on() -> None:
    asked = Instant(TIME, "clustering", State.INFLIGHT)
    completed_instant = LAYOUT.completed(asked, "20261128225715386")

    assert completed_instant == Instant(TIME, "replacecommit", State.COMPLETED)
    assert LAYOUT.visible_at(asked) == completed_instant.visible_since == TIME


def test_a_timeline_is_found_beside_all_else_in_its_folder() -> None:
    storage = MemoryStorage.open("memory:of-layout-1")
    for name in ("hoodie.properties", "1.commit.requested", "1.inflight", "1.commit", "2.deltacommit.requested"):
        storage.write(f".hoodie/{name}", b"")
    storage.write(".hoodie/metadata/.hoodie/3.deltacommit", b"")

    timeline = timeline_in(storage, LAYOUT)

    assert timeline.instants == (
        Instant("1", "commit", State.COMPLETED),
        Instant("2", "deltacommit", State.REQUESTED),
    )
