"""Notes beside the timeline about plans whose execution failed, so that later runs wait before they try again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from ...errors import CorruptFileError
from ...storage.base import Storage, join, split
from ...storage.bounds import MOST_OF_A_NOTE, parse_json
from .. import formats
from .owner import ROOT

FOLDER = f"{ROOT}/failed"
_MOST_DOUBLINGS = 6
_MOST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Failed:
    """Consecutive failures of a plan; ``after`` is the table's newest write at the last failure."""

    times: int
    after: str
    error: str

    @property
    def wait(self) -> int:
        """The number of further writes before the next try: 1, 2, 4, and so on, up to 64."""
        return 1 << min(self.times - 1, _MOST_DOUBLINGS)

    def again(self, after: str, error: str) -> Failed:
        """Return the failures with one more, after which the table's newest write was ``after``."""
        return Failed(self.times + 1, after, error[:_MOST_TEXT])


NEVER = Failed(0, "", "")


def read_failures(storage: Storage, *, writing: bool = False) -> Mapping[str, Failed]:
    """Return the failures by the plan's requested time, less notes that are damaged or gone.

    A caller that is ``writing`` notes gets an UnsupportedTableError for a note of a newer release.
    """
    failures = {}
    for info in storage.list(FOLDER, strict=False):
        try:
            content = parse_json(storage.read(info.path, MOST_OF_A_NOTE))
            if writing:
                formats.refuse_newer(storage.path, info.path, formats.number_of(content), formats.FAILURE)
            failures[split(info.path)[1]] = Failed(int(content["times"]), str(content["after"]), str(content["error"]))
        except (FileNotFoundError, CorruptFileError, ValueError, TypeError, KeyError):
            continue
    return {time: failure for time, failure in failures.items() if failure.times > 0}


def note(storage: Storage, instant_time: str, failed: Failed) -> None:
    """Note the failures of a plan, by its requested time."""
    content = formats.numbered(asdict(failed), formats.FAILURE)
    storage.write(join(FOLDER, instant_time), json.dumps(content).encode(), durable=False)


def forget(storage: Storage, instant_times: Iterable[str]) -> None:
    """Delete the notes of some plans."""
    storage.delete(*(join(FOLDER, time) for time in instant_times), durable=False)
