"""The shapes that a table and a write can have, of which each pair of properties occurs in at least one.

Most mistakes need two properties to meet: keys of one kind and an index of another, a way of writing and a store. All
combinations would be tens of thousands, these few hold every pair that may meet. The first of them are made of what
pyhudi does already and hold each pair of that; the others wait for what is to come, and are drawn once it is there.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

FACTORS: dict[str, tuple[str, ...]] = {
    "version": ("9", "8", "6"),
    "type": ("cow", "mor"),
    "index": ("bucket", "none", "consistent", "simple", "bloom", "global", "record"),
    "keys": ("simple", "composite", "times", "unpartitioned", "generated"),
    "merge": ("event-time", "commit-time", "several-fields", "partial-update"),
    "log": ("avro", "parquet"),
    "way": ("plain", "placed", "spilled"),
    "store": ("local", "s3", "memory"),
    "service": (
        *("none", "rollback", "clean", "archive", "savepoint", "restore", "cluster", "compact"),
        *("log-compact", "sort", "rescale", "repair", "stream"),
    ),
    "writer": ("alone", "second"),
    # Whose metadata table the table has: now and then one that Apache Hudi would have made, which no write maintains.
    "metadata": ("none", "apache"),
}

Property = tuple[str, str]
Shape = Mapping[str, str]

# What pyhudi does not do yet; whoever builds one takes it out, and the suites draw its shapes from then on.
TO_COME: frozenset[Property] = frozenset(
    {
        ("index", "consistent"),
        ("index", "record"),
        ("service", "cluster"),
    }
)
# Likewise what pyhudi does not do together yet, and what only such tables have.
PAIRS_TO_COME: frozenset[frozenset[Property]] = frozenset(
    frozenset({("version", "6"), other})
    for other in [
        *[("type", "mor"), ("log", "parquet"), ("service", "compact"), ("service", "log-compact")],
        # The simulated metadata tables have the layout of later versions.
        ("metadata", "apache"),
    ]
)

# Pairs that Apache Hudi refuses, or that mean nothing.
ILLEGAL: frozenset[frozenset[Property]] = frozenset(
    frozenset(pair)
    for pair in [
        # There is nothing to compact, and there are no log files.
        (("type", "cow"), ("service", "compact")),
        (("type", "cow"), ("service", "log-compact")),
        (("type", "cow"), ("log", "parquet")),
        # Only buckets have a number.
        *((("service", "rescale"), ("index", one)) for one in FACTORS["index"] if one != "bucket"),
        (("service", "rescale"), ("keys", "generated")),
        # A stream's tasks hand all rows to the commit.
        (("service", "stream"), ("way", "placed")),
        # Its buckets are split by clustering that log files outlive.
        (("type", "cow"), ("index", "consistent")),
        # Generated keys are looked up by nobody, and are the only ones that no index finds.
        *((("keys", "generated"), ("index", one)) for one in FACTORS["index"] if one != "none"),
        *((("index", "none"), ("keys", one)) for one in FACTORS["keys"] if one != "generated"),
        # Without keys that come again nothing is updated.
        (("keys", "generated"), ("merge", "partial-update")),
        (("index", "none"), ("merge", "partial-update")),
        # They say it by a payload class alone, whose code they run as it is.
        *((("version", one), ("merge", "partial-update")) for one in ("8", "6")),
        # A row would leave columns behind where it moves from.
        (("index", "global"), ("merge", "partial-update")),
        # Tables that old have one ordering field.
        *((("version", one), ("merge", "several-fields")) for one in ("8", "6")),
    ]
)

SHAPES = """
9 cow none       generated     commit-time    avro    spilled memory rollback    alone apache
9 cow bucket     simple        several-fields avro    plain   local  none        alone apache
9 cow bucket     unpartitioned event-time     avro    placed  s3     rollback    alone apache
9 cow bucket     times         commit-time    avro    placed  memory none        alone none
9 cow bucket     composite     several-fields avro    spilled s3     none        alone none
9 cow none       generated     several-fields avro    placed  s3     rollback    alone none
9 cow bucket     unpartitioned several-fields avro    plain   memory none        alone apache
9 cow bucket     times         event-time     avro    spilled local  rollback    alone none
9 cow bucket     simple        commit-time    avro    plain   s3     rollback    alone none
9 cow bucket     simple        event-time     avro    spilled memory rollback    alone none
9 cow bucket     times         several-fields avro    plain   s3     none        alone none
9 cow bucket     simple        commit-time    avro    placed  s3     none        alone none
9 cow bucket     unpartitioned several-fields avro    spilled s3     rollback    alone none
9 cow bucket     times         several-fields avro    spilled local  restore     alone apache
9 cow none       generated     event-time     avro    spilled memory clean       alone apache
9 cow none       generated     commit-time    avro    placed  local  archive     alone none
9 cow bucket     unpartitioned commit-time    avro    plain   local  clean       alone none
9 cow bucket     times         event-time     avro    spilled local  archive     alone apache
9 cow bucket     times         commit-time    avro    spilled local  savepoint   alone none
9 cow bucket     composite     event-time     avro    plain   memory restore     alone apache
9 cow bucket     unpartitioned event-time     avro    spilled memory savepoint   alone none
9 cow bucket     composite     commit-time    avro    plain   local  archive     alone apache
9 cow bucket     simple        event-time     avro    placed  local  clean       alone none
9 cow bucket     unpartitioned several-fields avro    placed  s3     archive     alone none
9 cow bucket     composite     commit-time    avro    placed  memory savepoint   alone apache
9 cow bucket     unpartitioned commit-time    avro    placed  memory restore     alone none
9 mor bucket     unpartitioned event-time     parquet plain   local  compact     alone none
9 mor bucket     composite     commit-time    avro    spilled s3     compact     alone apache
9 mor bucket     times         commit-time    parquet spilled s3     none        alone none
9 mor bucket     simple        event-time     avro    placed  local  clean       alone apache
9 mor bucket     simple        commit-time    parquet plain   memory savepoint   alone apache
9 mor bucket     composite     event-time     parquet placed  memory archive     alone none
9 mor bucket     unpartitioned commit-time    parquet placed  s3     restore     alone none
9 mor bucket     unpartitioned several-fields parquet spilled s3     rollback    alone none
9 mor bucket     times         event-time     avro    placed  s3     compact     alone apache
9 mor bucket     simple        several-fields parquet spilled local  clean       alone apache
9 mor bucket     composite     several-fields parquet plain   local  compact     alone none
9 mor bucket     unpartitioned several-fields avro    placed  s3     rollback    alone none
9 mor bucket     simple        event-time     avro    plain   s3     compact     alone none
9 cow simple     simple        event-time     avro    plain   local  none        alone none
9 mor simple     composite     commit-time    parquet placed  s3     rollback    alone apache
9 mor bloom      simple        several-fields parquet plain   s3     none        alone apache
9 mor bloom      times         commit-time    avro    plain   memory clean       alone apache
9 cow bloom      simple        commit-time    avro    placed  local  savepoint   alone none
8 cow bucket     times         commit-time    avro    placed  local  savepoint   alone none
9 mor simple     times         partial-update avro    spilled s3     restore     alone none
9 mor bucket     simple        partial-update parquet placed  s3     none        alone none
9 mor global     simple        event-time     parquet spilled local  rollback    alone apache
8 mor bloom      composite     commit-time    avro    placed  memory archive     alone apache
8 mor none       generated     event-time     parquet placed  local  compact     alone none
8 mor simple     times         event-time     avro    placed  s3     compact     alone apache
9 mor global     simple        several-fields avro    plain   local  compact     alone none
9 cow none       generated     event-time     avro    plain   local  none        alone none
9 cow bucket     composite     commit-time    avro    plain   local  rollback    second none
9 cow bucket     composite     event-time     avro    placed  memory rollback    alone none
9 cow bucket     unpartitioned commit-time    avro    placed  local  none        second apache
9 cow bucket     simple        several-fields avro    plain   memory archive     second apache
9 cow none       generated     event-time     avro    placed  s3     savepoint   second none
9 cow bucket     simple        several-fields avro    plain   memory savepoint   alone apache
9 cow none       generated     event-time     avro    plain   s3     restore     alone apache
9 cow bucket     simple        commit-time    avro    placed  memory restore     second apache
9 cow bucket     composite     several-fields avro    placed  local  clean       second none
9 cow bucket     times         event-time     avro    placed  s3     clean       alone none
9 mor none       generated     several-fields parquet placed  memory compact     alone none
9 mor bucket     times         several-fields avro    plain   local  rollback    second none
9 mor none       generated     event-time     avro    spilled local  rollback    second apache
9 mor none       generated     commit-time    avro    plain   local  archive     alone none
9 cow simple     times         several-fields avro    spilled memory clean       alone none
9 mor simple     unpartitioned event-time     avro    plain   local  archive     second none
9 cow simple     unpartitioned commit-time    avro    spilled memory savepoint   alone apache
9 mor simple     times         several-fields parquet placed  local  restore     second none
9 mor simple     simple        commit-time    parquet spilled memory compact     second none
9 cow bloom      composite     event-time     avro    placed  local  rollback    second none
9 cow bloom      unpartitioned several-fields avro    spilled memory archive     alone none
9 mor bloom      unpartitioned event-time     parquet spilled local  restore     second none
9 mor bloom      composite     several-fields avro    placed  memory compact     second apache
8 mor bucket     composite     event-time     parquet spilled local  restore     alone none
9 cow bucket     simple        partial-update avro    plain   s3     rollback    second apache
9 mor bucket     unpartitioned partial-update parquet spilled local  compact     alone apache
9 mor simple     composite     partial-update parquet placed  memory archive     second none
9 cow bloom      times         partial-update avro    placed  local  clean       alone none
9 mor bloom      composite     partial-update parquet plain   memory savepoint   alone none
9 cow simple     unpartitioned partial-update avro    plain   memory none        alone apache
9 cow global     unpartitioned commit-time    avro    placed  memory restore     alone apache
8 mor global     times         event-time     avro    placed  local  savepoint   second apache
9 mor global     unpartitioned event-time     parquet spilled local  rollback    alone none
9 cow global     simple        event-time     avro    placed  memory none        second none
8 cow global     times         commit-time    avro    spilled s3     archive     second apache
9 mor bloom      times         several-fields parquet spilled s3     compact     alone none
8 mor none       generated     commit-time    parquet placed  local  clean       second apache
9 cow simple     times         partial-update avro    spilled s3     restore     alone none
9 cow global     simple        event-time     avro    plain   local  clean       second none
8 mor bucket     simple        event-time     avro    plain   s3     compact     alone apache
8 mor bucket     unpartitioned event-time     parquet spilled memory clean       alone apache
9 mor global     composite     several-fields parquet spilled s3     none        second none
9 mor global     simple        several-fields avro    spilled local  compact     alone none
8 cow simple     unpartitioned event-time     avro    plain   s3     rollback    alone apache
8 mor bloom      times         commit-time    parquet placed  memory none        second apache
8 cow bucket     simple        commit-time    avro    plain   memory repair      second none
9 cow bloom      simple        several-fields avro    plain   local  stream      second apache
9 mor bloom      composite     partial-update parquet placed  local  repair      alone none
9 mor bucket     unpartitioned commit-time    avro    placed  local  rescale     alone apache
8 mor global     times         event-time     parquet spilled local  log-compact alone none
8 mor simple     simple        event-time     avro    spilled local  sort        second apache
8 mor none       generated     commit-time    parquet spilled memory stream      alone none
9 mor bucket     times         partial-update parquet plain   memory sort        alone apache
9 mor simple     composite     several-fields avro    plain   memory log-compact second none
8 cow bucket     composite     event-time     avro    spilled memory rescale     second none
8 cow none       generated     commit-time    avro    placed  s3     sort        second apache
8 mor none       generated     commit-time    avro    placed  s3     log-compact second none
9 mor global     times         several-fields parquet spilled s3     repair      alone none
9 mor bucket     times         several-fields parquet plain   s3     rescale     alone apache
8 cow global     unpartitioned event-time     avro    plain   s3     stream      second apache
9 mor bloom      simple        partial-update avro    placed  memory log-compact second apache
9 mor simple     times         partial-update parquet plain   local  stream      alone none
9 mor none       generated     event-time     parquet spilled memory repair      alone none
9 cow bloom      composite     several-fields avro    plain   memory sort        alone apache
9 cow bucket     simple        partial-update avro    placed  memory rescale     alone none
8 mor bucket     composite     commit-time    avro    spilled memory stream      alone none
8 mor bucket     unpartitioned commit-time    avro    placed  memory log-compact alone none
9 mor simple     unpartitioned several-fields parquet placed  local  repair      second apache
6 cow none       generated     commit-time    avro    plain   memory archive     second none
6 cow simple     simple        commit-time    avro    plain   memory none        second none
6 cow bucket     composite     event-time     avro    spilled local  restore     second none
6 cow bucket     unpartitioned event-time     avro    placed  s3     rollback    alone none
6 cow bloom      times         event-time     avro    spilled local  clean       alone none
6 cow global     unpartitioned event-time     avro    placed  local  savepoint   second none
6 cow bucket     simple        commit-time    avro    placed  local  rescale     alone none
6 cow simple     times         event-time     avro    plain   local  sort        alone none
6 cow bloom      simple        commit-time    avro    plain   memory repair      second none
6 cow none       generated     event-time     avro    spilled memory stream      alone none
8 mor global     unpartitioned commit-time    parquet plain   memory sort        second none
8 mor bloom      composite     event-time     parquet plain   memory cluster     alone none
9 cow record     simple        commit-time    avro    spilled s3     cluster     second none
8 mor consistent composite     commit-time    avro    placed  memory compact     alone apache
9 mor consistent unpartitioned event-time     parquet plain   local  archive     second apache
9 mor record     composite     several-fields parquet placed  memory restore     alone none
9 mor simple     unpartitioned several-fields avro    spilled local  cluster     alone none
6 mor record     times         event-time     parquet spilled memory rollback    second apache
9 mor consistent simple        several-fields parquet plain   s3     restore     second apache
8 mor none       generated     event-time     parquet plain   s3     cluster     alone none
9 cow global     simple        several-fields avro    spilled local  cluster     second apache
8 mor consistent times         event-time     parquet placed  memory none        alone none
6 mor bloom      simple        event-time     parquet plain   memory clean       second apache
6 mor consistent times         commit-time    avro    spilled s3     cluster     second apache
9 mor record     unpartitioned partial-update parquet spilled memory clean       second apache
8 mor record     composite     event-time     parquet placed  s3     none        alone apache
8 mor record     unpartitioned event-time     avro    spilled s3     archive     second apache
6 mor global     unpartitioned event-time     parquet placed  s3     savepoint   alone apache
6 mor consistent times         commit-time    avro    spilled memory savepoint   alone apache
6 mor record     simple        event-time     parquet plain   local  compact     alone apache
9 mor consistent unpartitioned partial-update avro    placed  s3     cluster     second none
9 mor bucket     unpartitioned event-time     parquet spilled memory cluster     alone none
9 cow record     simple        several-fields avro    plain   memory savepoint   second apache
6 mor consistent unpartitioned commit-time    avro    spilled s3     clean       second none
9 mor consistent unpartitioned event-time     parquet placed  local  rollback    alone apache
6 mor consistent composite     commit-time    avro    spilled local  stream      second apache
6 mor consistent unpartitioned commit-time    avro    spilled local  repair      alone none
6 mor record     composite     event-time     parquet plain   local  sort        second none
6 mor record     composite     commit-time    parquet spilled local  log-compact alone apache
6 mor bucket     composite     event-time     parquet placed  memory rescale     second apache
6 cow record     simple        commit-time    avro    plain   memory repair      second apache
6 mor consistent times         event-time     parquet placed  local  log-compact second none
9 mor record     times         partial-update parquet spilled memory stream      second apache
6 mor consistent unpartitioned commit-time    avro    placed  local  sort        second none
"""


def shapes() -> list[dict[str, str]]:
    """Return all shapes, those of what pyhudi does already first."""
    return [dict(zip(FACTORS, line.split(), strict=True)) for line in SHAPES.strip().splitlines()]


def shapes_of_today() -> list[dict[str, str]]:
    """Return the shapes in which nothing is still to come."""
    return [shape for shape in shapes() if not is_to_come(pairs_of(shape))]


def is_to_come(pairs: Iterable[frozenset[Property]]) -> bool:
    """Return whether pyhudi does not do some of what meets in these pairs yet."""
    return any(pair & TO_COME or pair in PAIRS_TO_COME for pair in pairs)


def pairs_of(shape: Shape) -> set[frozenset[Property]]:
    """Return the pairs of properties that meet in a shape."""
    return {frozenset(pair) for pair in itertools.combinations(shape.items(), 2)}


def needed(given: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return those of some shapes without which a pair of theirs would not meet: those on S3 are left out first."""
    needed_shapes = list(given)
    met = Counter(pair for shape in given for pair in pairs_of(shape))
    for shape in sorted(given, key=lambda shape: shape["store"] != "s3"):
        if all(met[pair] > 1 for pair in pairs_of(shape)):
            needed_shapes.remove(shape)
            met.subtract(pairs_of(shape))
    return needed_shapes


def is_legal(shape: Shape) -> bool:
    """Return whether no two properties of a shape exclude each other."""
    return not pairs_of(shape) & ILLEGAL


def legal_pairs() -> set[frozenset[Property]]:
    """Return every pair of properties that may meet."""
    factors = [[(name, value) for value in values] for name, values in FACTORS.items()]
    pairs = {
        frozenset(pair) for one, other in itertools.combinations(factors, 2) for pair in itertools.product(one, other)
    }
    return pairs - ILLEGAL


def covering(given: Sequence[dict[str, str]], count: int) -> list[dict[str, str]]:
    """Return so many of some shapes, each the one in which most pairs meet that are in none before it."""
    chosen: list[dict[str, str]] = []
    left = list(given)
    met: set[frozenset[Property]] = set()
    while left and len(chosen) < count:
        best = max(left, key=lambda one: len(pairs_of(one) - met))
        left.remove(best)
        chosen.append(best)
        met |= pairs_of(best)
    return chosen
