"""Merges that tables with and without Spark carry out alike, or refuse alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from pyhudi.errors import DuplicateKeyError, NullKeyError, OlderRowError, PyHudiError
from support.merge_rows import Values

REFUSED: dict[str, tuple[list[Values], Callable[[Any], Any], object, type[PyHudiError], str]] = {
    "several source rows": (
        [(1, "a", 6, 1, "x"), (1, "a", 7, 2, "y")],
        lambda merge: merge.when_matched_update_all(),
        None,
        DuplicateKeyError,
        r"rows of the source match the row of the record key '1' in partition 'a'",
    ),
    "one updates and one deletes": (
        [(1, "a", 6, 1, "x"), (1, "a", 7, 2, "y")],
        lambda merge: merge.when_matched_delete("source.n = 1").when_matched_update_all(),
        "id",
        DuplicateKeyError,
        r"'1' in partition 'a'",
    ),
    "one new key twice": (
        [(6, "a", 6, 1, "x"), (6, "a", 7, 2, "y")],
        lambda merge: merge.when_not_matched_insert_all(),
        None,
        DuplicateKeyError,
        r"would have the record key '6' in partition 'a'",
    ),
    "two rows get one key": (
        [(1, "a", 6, 1, "x"), (2, "a", 7, 2, "y")],
        lambda merge: merge.when_matched_update({"id": 6}),
        None,
        DuplicateKeyError,
        r"would have the record key '6' in partition 'a'",
    ),
    "the key of a row that stays": (
        [(1, "a", 6, 1, "x")],
        lambda merge: merge.when_matched_update({"id": 4, "p": "'b'", "ts": 99}),
        None,
        DuplicateKeyError,
        r"the record key '4' in partition 'b', which a row of the table has",
    ),
    "a new row with a key that is there": (
        [(2, "a", 6, 99, "x")],
        lambda merge: merge.when_not_matched_insert_all(),
        "source.n = target.n",
        DuplicateKeyError,
        r"the record key '2' in partition 'a', which a row of the table has",
    ),
    "an older row": (
        [(1, "a", 6, 1, "x"), (4, "b", 8, 1, "y")],
        lambda merge: merge.when_matched_update_all(),
        None,
        OlderRowError,
        r"record key '4' in partition 'b' of the table .* lesser ordering value",
    ),
    "an older row in the place of one that leaves": (
        [(3, "b", 5, 1, "x"), (4, "b", 9, 1, "y")],
        lambda merge: merge.when_matched_update({"id": "7 - target.id"}),
        None,
        OlderRowError,
        r"record key '4' in partition 'b'",
    ),
    "no key": (
        [(None, "a", 6, 1, "x")],
        lambda merge: merge.when_not_matched_insert_all(),
        None,
        NullKeyError,
        "'id'",
    ),
}


def drawn_merge(chance: random.Random) -> tuple[list[Values], str, list[tuple[str, tuple[Any, ...]]]]:
    """Return rows, a condition and clauses, in words that Spark, delta-rs and pyhudi understand alike."""
    ids = chance.sample(range(12), 6)
    given = [(one, chance.choice("ab"), 9, chance.choice([None, 1, 2, 3]), chance.choice(["x", "y"])) for one in ids]
    on = chance.choice(["source.id = target.id and source.p = target.p", "source.id = target.id"])
    condition = [None, "source.n > 1", "source.t = 'x'"]
    both = [*condition, "source.n = target.n", "target.n > 2 or source.n is null"]
    theirs = [None, "target.n > 2", "target.t is null"]
    sets: list[Mapping[str, str]] = [{"n": "source.n + target.n"}, {"t": "target.t || source.t", "n": "7"}]
    some = [
        ("when_matched_update", (chance.choice(sets), chance.choice(both))),
        ("when_matched_delete", (chance.choice(both),)),
        ("when_matched_update_all", (chance.choice(both),)),
        ("when_not_matched_insert", ({"id": "source.id", "p": "source.p", "ts": "1"}, chance.choice(condition))),
        ("when_not_matched_insert_all", (chance.choice(condition),)),
        ("when_not_matched_by_source_update", ({"n": "target.n - 1"}, chance.choice(theirs))),
        ("when_not_matched_by_source_delete", (chance.choice(theirs),)),
    ]
    chosen = chance.sample(some, chance.randrange(2, 6))
    # Without a condition a clause is the last one of its kind.
    kinds = {name: name.removesuffix("_all").rpartition("_")[0] for name, _ in chosen}
    last = {kinds[name]: name for name, _ in chosen}
    return given, on, [one for one in chosen if one[1][-1] is not None or last[kinds[one[0]]] == one[0]]
