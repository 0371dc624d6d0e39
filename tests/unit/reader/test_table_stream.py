from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyhudi.reader.streams.offsets import INITIAL
from pyhudi.reader.streams.table_stream import TableStream
from pyhudi.reader.streams.terms import BatchLimits, StreamTerms
from support.made.cleaning import archive, clean
from support.models.past import Past
from support.seams import patch_seam, read_seam


def test_limits_are_kept_where_a_clean_is_archived_between_its_listing_and_its_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = Past(tmp_path / "t")
    for number in range(4):
        past.upsert("a", ["k1", f"k{number}"], number)
    clean(past.path, retain=2)
    for number in range(2):
        past.upsert("a", ["k1"], number)
    look = read_seam("look into a local folder")
    listings = 0

    def looking(self: Any, folder: str) -> Any:
        nonlocal listings
        listed = look(self, folder)
        listings += folder.endswith("timeline")
        if listings == 2:
            monkeypatch.undo()
            archive(past.path, 5)
        return listed

    patch_seam(monkeypatch, "look into a local folder", looking)

    assert TableStream(str(past.path), {}, StreamTerms("earliest", BatchLimits(1))).latest(INITIAL).time == (
        past.commits[3].completed
    )
