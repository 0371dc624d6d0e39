"""Very many interleavings, in as many processes as the machine has cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.interleaving.machine import machine
from support.interleaving.trial import run

_AT_ONCE = 500


@dataclass
class Stretch:
    """Seeds one after another.

    Attributes:
        failed: What the failed ones say.
    """

    first: int
    end: int
    failed: list[str] = field(default_factory=list)


def run_stretches(seeds: Stretch) -> Iterator[Stretch]:
    """Run all seeds; yield a stretch of them whenever it is done, in their order."""
    starts = range(seeds.first, seeds.end, _AT_ONCE)
    parts = [Stretch(first, min(first + _AT_ONCE, seeds.end)) for first in starts]
    # A forked process would have threads of Arrow that do not run.
    with multiprocessing.get_context("spawn").Pool(min(os.cpu_count() or 1, len(parts))) as pool:
        yield from pool.imap(_run, parts)


def _run(part: Stretch) -> Stretch:
    with machine() as own_machine:
        for seed in range(part.first, part.end):
            try:
                run(own_machine, seed)
            except Exception as error:  # noqa: BLE001 (said of its seed)
                part.failed.append(f"seed {seed}: {type(error).__name__}: {error}")
    return part
