"""A moment as the text of an option, by which one part of a DataFrame sees what the other part saw."""

from __future__ import annotations

import json

from ...errors import InvalidOptionError
from ...timeline.watermark import Tally, Watermark
from .paths import PINNED


def spell(moment: Watermark) -> str:
    """Return a moment as text."""
    older = moment.older
    return json.dumps(
        {
            "completed_until": moment.completed_until,
            "first_write": moment.first_write,
            "recent": sorted(moment.recent),
            "older": [older.count, older.first, older.digest],
            "archive": moment.archive,
        }
    )


def parse(text: str) -> Watermark:
    """Return the moment that a text of `spell` stands for.

    Raises:
        InvalidOptionError: It is none; somebody else than `HudiTable` gave it.
    """
    try:
        said = json.loads(text)
        older = Tally(*said["older"])
        return Watermark(
            said["completed_until"], said["first_write"], frozenset(said["recent"]), older, said["archive"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidOptionError(
            f"The option {PINNED}={text!r} is no moment that HudiTable.to_df has noted.",
            "Leave it out: as.of.instant shows a table as it was.",
        ) from error
