"""Upgrades and downgrades that are interleaved with writers, services and each other, at every storage step."""

from __future__ import annotations

import random

import pytest
from support.interleaving.acts import draw, with_version
from support.interleaving.machine import machine
from support.interleaving.trial import run
from support.share import share_of

SOME, MANY = 20, 1500


def interleave(seeds: range) -> None:
    with machine() as there:
        for seed in seeds:
            run(there, seed, with_version(draw(random.Random(seed)), seed))


def test_changes_of_version_leave_what_the_dict_says() -> None:
    interleave(range(share_of(SOME)))


@pytest.mark.slow
def test_many_changes_of_version_leave_what_the_dict_says() -> None:
    interleave(range(SOME, MANY))
