"""Another store in the place of the one that a write opens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyhudi.operations.planning import plan
from pyhudi.operations.transaction import transaction
from pyhudi.operations.write import merge_spills
from pyhudi.storage import Storage, open_storage


def wrap_stores(patch: pytest.MonkeyPatch, wrap: Callable[[Storage], object]) -> None:
    """Have writes, from their plans on, work on what ``wrap`` makes of each table's store."""
    for module in (plan, transaction):
        patch.setattr(module, "open_storage", lambda *given, **named: wrap(open_storage(*given, **named)))


def merge_in_one_thread(patch: pytest.MonkeyPatch) -> None:
    """Have a write take the same steps in the same order every time."""
    patch.setattr(merge_spills, "MOST_WORKERS", 1)
