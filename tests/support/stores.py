"""Another store in the place of the one that a write opens."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

import pytest
from pyhudi.storage import Storage, open_storage
from support.seams import patch_seam

# What tests made of stores, by its number: a plan that travels finds it again in its own process.
_WRAPPED: list[object] = []


def wrap_stores(patch: pytest.MonkeyPatch, wrap: Callable[[Storage], object]) -> None:
    """Have writes, from their plans on, work on what ``wrap`` makes of each table's store."""

    def opened(*given: Any, **named: Any) -> object:
        wrapped = wrap(open_storage(*given, **named))
        _WRAPPED.append(wrapped)
        copyreg.pickle(type(wrapped), lambda one: (_wrapped, (_number_of(one),)))
        return wrapped

    patch_seam(patch, "open the store of a write", opened)


def _wrapped(number: int) -> object:
    return _WRAPPED[number]


def _number_of(store: object) -> int:
    return next(number for number, one in enumerate(_WRAPPED) if one is store)


def merge_in_one_thread(patch: pytest.MonkeyPatch) -> None:
    """Have a write take the same steps in the same order every time, look-ups in several files too."""
    patch_seam(patch, "most workers of a merge", 1)
    patch_seam(patch, "cores for store calls that compute", lambda: 1)
