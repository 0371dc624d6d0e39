"""Timelines and the files of instants, for tests that make them by hand."""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.storage.base import Storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.archive.lsm import LsmArchive
from pyhudi.timeline.instant_files import InstantFiles
from pyhudi.timeline.instants import Instant
from pyhudi.timeline.layout import Layout, LayoutV2
from pyhudi.timeline.metadata.avro_codec import AvroCodec
from pyhudi.timeline.timeline import Timeline

LAYOUT = LayoutV2()


def instants_in(storage: Storage, layout: Layout = LAYOUT) -> InstantFiles:
    """Return the files of the instants of a table that need not have properties."""
    return InstantFiles(storage, layout, AvroCodec(), LsmArchive(storage, layout.archive_folder), _is_current)


def timeline_in(storage: Storage, layout: Layout = LAYOUT) -> Timeline:
    """Read the timeline of such a table."""
    return Timeline.load(instants_in(storage, layout))


def timeline_of(instants: Iterable[Instant], storage: Storage | None = None) -> Timeline:
    """Return a timeline of instants that have no files, of an empty table where no store is given."""
    return Timeline(tuple(instants), instants_in(storage or MemoryStorage.open("memory:no-files")))


def _is_current() -> bool:
    return True
