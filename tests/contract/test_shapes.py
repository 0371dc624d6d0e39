"""Each pair of properties that a table and a write can have meets in a shape, and each shape holds its rows.

Shapes of which every pair meets in others too are for `make test-long`.
"""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import pytest
from support.drawn.shaped import EVERYWHERE, check_shape, moves_rows, settings_of
from support.drawn.shapes import (
    FACTORS,
    SHAPES,
    Shape,
    is_legal,
    is_to_come,
    legal_pairs,
    needed,
    pairs_of,
    shapes,
    shapes_of_today,
)
from support.s3 import new_url

SEEDS = range(3)
# What services do is looked at after each step, and drawn from many histories elsewhere.
SERVED = {"clean", "archive", "savepoint", "restore", "log-compact", "sort", "rescale", "repair", "stream"}
OFTEN = needed(shapes_of_today())


def drawn(*, on_s3: bool) -> list[Any]:
    """Return the shapes of today that are on S3, or those that are not, with the seeds of their histories."""
    return [
        pytest.param(one, seed, id=f"{'-'.join(one.values())}-{seed}", marks=() if one in OFTEN else pytest.mark.long)
        for one in shapes_of_today()
        for seed in SEEDS
        if (one["store"] == "s3") is on_s3 and (seed == 0 or not (on_s3 or one["service"] in SERVED))
    ]


def test_every_legal_pair_is_there() -> None:
    covered = set().union(*map(pairs_of, shapes()))

    assert legal_pairs() - covered == set()
    assert all(map(is_legal, shapes()))
    assert len(SHAPES.split()) == len(shapes()) * len(FACTORS)
    assert all(shape[name] in FACTORS[name] for shape in shapes() for name in FACTORS)


def test_every_legal_pair_of_what_is_there_meets_in_a_shape_that_is_drawn() -> None:
    """Or a pair of what pyhudi does would wait for something that it does not do yet."""
    wanted = {pair for pair in legal_pairs() if not is_to_come([pair])}

    assert wanted - set().union(*map(pairs_of, OFTEN)) == set()


def test_keys_of_the_whole_table_are_found_both_ways_and_rows_move_or_stay_on_tables_of_both_types() -> None:
    """None of which is a property of a shape, as each would have to meet all others."""
    shown = [one.values for on_s3 in (False, True) for one in drawn(on_s3=on_s3) if one.values[0] in OFTEN]
    met = {
        (shape["type"], settings_of(shape).index_type, moves_rows(shape, seed))
        for shape, seed in shown
        if shape["index"] == "global"
    }

    assert met == {*itertools.product(("cow", "mor"), EVERYWHERE, (True, False))}


@pytest.mark.parametrize(("shape", "seed"), drawn(on_s3=False))
def test_a_history_of_any_shape_gives_what_the_dict_says(shape: Shape, seed: int) -> None:
    check_shape(shape, seed, f"memory://shapes/{uuid.uuid4()}" if shape["store"] == "memory" else None)


@pytest.mark.parametrize(("shape", "seed"), drawn(on_s3=True))
@pytest.mark.usefixtures("direct_s3")
def test_a_history_of_any_shape_on_s3_gives_what_the_dict_says(shape: Shape, seed: int) -> None:
    check_shape(shape, seed, new_url())
