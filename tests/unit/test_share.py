"""What `make test` takes of what a test repeats, and what it leaves to CI."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.share import some, taken

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100])
def test_a_test_keeps_a_third_of_its_cases_and_one_at_least(count: int) -> None:
    for number in range(20):
        cases = taken(f"test_{number}", range(count), 3)

        assert cases
        assert abs(len(cases) - count / 3) < 1
        assert taken(f"test_{number}", range(count), 3) == cases, "each process takes the same"


def test_each_type_of_table_stays_with_some_tests() -> None:
    assert {one for number in range(20) for one in taken(f"test_{number}", TYPES, 3)} == {*TYPES}


def test_a_run_that_is_asked_for_no_share_takes_all() -> None:
    assert taken("test", TYPES, 1) == some(TYPES, 1) == TYPES
    assert some(range(1, 8), 3) == range(1, 8, 3)


def test_make_test_alone_takes_a_share() -> None:
    """CI, and whoever runs a half, a module or a slow suite, has all cases."""
    assert re.findall(r"^(\S+):.*\n\t@?\+?PYHUDI_ONE_OF=3 ", MAKEFILE, re.MULTILINE) == ["test"]
    assert MAKEFILE.count("PYHUDI_ONE_OF") == 1
    steps = (ROOT / ".ci" / "run").read_text()
    assert "PYHUDI_ONE_OF" not in steps
    assert not re.search(r"^ +\"?test\b(?!-)", steps, re.MULTILINE)
