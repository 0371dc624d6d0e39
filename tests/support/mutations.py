"""Mistakes made in the code on purpose, and the checks that have to see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyFailure
from pyhudi.table.schema.columns import RECORD_KEY
from support.seams import patch_seam, read_seam

Patch = pytest.MonkeyPatch
# What an assertion of ours raises, and what pytest.raises does where nothing was raised; and what hypothesis makes of
# one that is not raised again where it looks twice, as of a mistake that is seen by who comes first.
RED: tuple[type[BaseException], ...] = (AssertionError, pytest.fail.Exception, FlakyFailure)
Mutate = Callable[[Patch], None]
Check = Callable[[Path], None]


def always(examples: int) -> settings:
    """Have hypothesis draw so many examples, always the same ones, and stop at the first red one."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


def each(mutations: Sequence[tuple[Mutate, Check]]) -> pytest.MarkDecorator:
    """Have a test take each mistake with its check, and be called by their names."""
    named = [pytest.param(*pair, id=f"{pair[0].__name__}-{pair[1].__name__}") for pair in mutations]
    return pytest.mark.parametrize(("mutate", "check"), named)


def assert_red(
    place: Path, patch: Patch, mutate: Mutate, check: Check, red: tuple[type[BaseException], ...] = RED
) -> None:
    """Make a mistake and assert that the check sees it.

    Args:
        place: Where the check makes its tables.
        patch: By which the mistake is made, for as long as the test runs.
        mutate: Makes the mistake.
        check: What has to see it.
        red: What it raises then.
    """
    mutate(patch)
    with pytest.raises(red):
        check(place)


def further_rows_of_a_key_stay_in_the_base(patch: Patch) -> None:
    """What arrives meets the first row of its key alone, as in Apache Hudi's readers."""
    original = read_seam("rows that survive a merge")

    def survivors(self: Any, base: Any) -> Any:
        seen: set[str] = set()
        for batch in base:
            keys = batch.column(RECORD_KEY).to_pylist()
            again = np.array([key in seen or key in keys[:at] for at, key in enumerate(keys)], dtype=np.bool_)
            seen.update(keys)
            yield from original(self, [batch.filter(pa.array(~again))])
            yield batch.filter(pa.array(again))

    patch_seam(patch, "rows that survive a merge", survivors)
