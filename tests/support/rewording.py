"""Errors that say the same in no word: what goes by an error's facts does as before."""

from __future__ import annotations

import pytest
from pyhudi.errors import MetInstant, PyHudiError
from support.seams import patch_seam, read_seam

ERROR = "make an error"


def reword_errors(patch: pytest.MonkeyPatch) -> None:
    """Have all errors of pyhudi say the same words."""
    make = read_seam(ERROR)

    def reworded(error: PyHudiError, what: str, todo: str, *, met: MetInstant | None = None) -> None:
        make(error, "Etwas war im Weg.", "Noch einmal.", met=met)

    patch_seam(patch, ERROR, reworded)
