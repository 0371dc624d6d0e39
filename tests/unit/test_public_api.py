"""What users and authors of indexes rely on stays as it is; `PYHUDI_RECORD_API=1` records what was added."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyhudi import ServiceResult
from support.public_api import public_names

RECORD = Path(__file__).parents[1] / "fixtures" / "public_api.txt"


def test_public_names_and_their_signatures_are_those_on_record() -> None:
    signatures = public_names()
    if os.environ.get("PYHUDI_RECORD_API"):
        RECORD.write_text("".join(f"{line}\n" for line in signatures), encoding="utf-8")

    assert signatures == RECORD.read_text(encoding="utf-8").splitlines()


def test_the_old_name_of_what_a_service_skipped_still_works() -> None:
    result = ServiceResult("t", "compaction", skipped="it waits")

    with pytest.warns(DeprecationWarning, match="skipped"):
        assert result.left == "it waits"
