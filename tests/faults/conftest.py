"""What the tests of failing storages share."""

from __future__ import annotations

from collections.abc import Iterator

import pyhudi.operations.planning.plan as planning
import pyhudi.operations.write.merge_spills as merge_spills
import pytest
from pyhudi.storage import open_storage
from support.faulty import Faults, FaultyStorage


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Faults of every storage that a write opens from now on."""
    faults = Faults()
    monkeypatch.setattr(planning, "open_storage", lambda *a, **k: FaultyStorage(open_storage(*a, **k), faults))
    # One thread, so that a write takes the same steps in the same order every time.
    monkeypatch.setattr(merge_spills, "MOST_WORKERS", 1)
    yield faults
