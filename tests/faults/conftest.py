"""What the tests of failing storages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.faults.faulty import Faults, FaultyStorage
from support.stores import merge_in_one_thread, wrap_stores


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Faults of every storage that a write opens from now on."""
    faults = Faults()
    wrap_stores(monkeypatch, lambda store: FaultyStorage(store, faults))
    merge_in_one_thread(monkeypatch)
    yield faults
