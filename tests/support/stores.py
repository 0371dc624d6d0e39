"""Another store in the place of the one that a write opens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyhudi.storage import Storage, open_storage
from support.seams import patch_seam


def wrap_stores(patch: pytest.MonkeyPatch, wrap: Callable[[Storage], object]) -> None:
    """Have writes, from their plans on, work on what ``wrap`` makes of each table's store."""
    patch_seam(patch, "open the store of a write", lambda *given, **named: wrap(open_storage(*given, **named)))


def merge_in_one_thread(patch: pytest.MonkeyPatch) -> None:
    """Have a write take the same steps in the same order every time."""
    patch_seam(patch, "most workers of a merge", 1)
