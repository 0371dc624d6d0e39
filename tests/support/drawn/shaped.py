"""Histories of writes to tables of any shape that pyhudi can make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import pyarrow as pa
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, CompactionSettings
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.config.property_keys import BLOOM, GLOBAL_BLOOM, GLOBAL_SIMPLE, IGNORE_DEFAULTS, SIMPLE
from pyhudi.table.config.sort_order import CURVES
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.timeline.writers.patience import Patience
from support import attempts
from support.drawn.histories import ROOMY, TINY, check_history
from support.drawn.shapes import Shape
from support.drawn.upkept import JOINING, OFF, RESCALES, SERVICES, SORTS
from support.faults.failures import Work
from support.models.changing import with_merges
from support.models.everywhere_model import without_twins
from support.models.logged_model import without_copies
from support.models.model import Step, random_history
from support.places import Place

IMPATIENT = Patience(heartbeat_misses=-1)
DAYS = {key.TIME_TYPE: "DATE_STRING", key.TIME_INPUT_FORMAT: "yyyy-MM-dd", key.TIME_OUTPUT_FORMAT: "yyyy/MM/dd"}
KEYS = {
    "simple": TableSettings(record_key_fields=("id",), partition_fields=("p",)),
    "composite": TableSettings(record_key_fields=("id", "p"), partition_fields=("p",), url_encode=True),
    "times": TableSettings(
        record_key_fields=("id",),
        partition_fields=("p",),
        key_generator=KeyGeneratorType.TIMESTAMP,
        time_options=DAYS,
    ),
    "unpartitioned": TableSettings(record_key_fields=("id",)),
    "generated": TableSettings(partition_fields=("p",)),
}
# What the column of the partition holds; without partitions one value, that no name of a partition to be deleted fits.
PARTITIONS = {"times": ("2024-02-29", "2024-03-01"), "unpartitioned": ("",)}
ORDERING: dict[str, tuple[str, ...]] = {
    "event-time": ("ts",),
    "commit-time": (),
    "several-fields": ("ts", "value"),
    "partial-update": ("ts",),
}
WAYS = {"plain": ROOMY, "placed": replace(ROOMY, colocated=True), "spilled": TINY}
SERVED = {
    "none": (),
    "rollback": ("rollback",),
    "clean": ("clean", SORTS),
    "archive": ("clean", "archive"),
    "savepoint": ("savepoint", "delete_savepoint", "clean"),
    "restore": SERVICES,
    "compact": (*JOINING, SORTS),
    "log-compact": ("join",),
    "sort": (SORTS,),
    "rescale": RESCALES,
    "repair": ("repair",),
    "stream": (),
}
LOOKUPS = {"simple": SIMPLE, "bloom": BLOOM}
EVERYWHERE = (GLOBAL_SIMPLE, GLOBAL_BLOOM)
# New keys fill small files up; or open file groups; or do both, of some rows each.
SIZES = (FileSizes(), FileSizes(small=0), FileSizes(small=9000, largest=12_000, record_bytes=2500, telling=100.0))
# What a write does itself of the services of a shape.
UPKEEP = {
    "clean": replace(OFF, clean=CleanSettings(commits=1)),
    "archive": replace(OFF, clean=CleanSettings(commits=1), archive=ArchiveSettings(min_commits=1, max_commits=1)),
    "compact": replace(OFF, compaction=CompactionSettings(delta_commits=1)),
}
ADDING = {"upsert": "insert", "delete": "bulk_insert"}


def check_shape(shape: Shape, seed: int, table: Place | None) -> None:
    """Assert that a random history of some writes to a table of a shape leaves what the dict says.

    Args:
        shape: Of which nothing is still to come.
        seed: Decides the history.
        table: Where the table goes; None for a folder of its own.
    """
    kind = shape["keys"]
    generated = kind == "generated"
    # A request costs the test server more than the rest of a step does.
    steps = 4 if shape["store"] == "s3" else 6
    resets = shape["merge"] == "event-time" and shape["index"] == "bucket" and seed % 2 == 1
    partitions = PARTITIONS.get(kind, ("a", "ab"))
    history = random_history(seed, steps=steps, keys=6, partitions=partitions, resets=resets)
    logged = shape["type"] == "mor"
    looks_up = looks_keys_up(shape)
    made = settings_of(shape)
    if generated:
        history = adding(history)
    elif shape["index"] == "global":
        history = without_twins(history)
    elif logged or looks_up or shape["merge"] == "partial-update":
        # Each of the copies of a key that are in several file groups is updated, or that leave columns open.
        history = without_copies(history)
    if not generated and (shape["index"] != "global" or moves_rows(shape, seed)):
        # A merge moves rows whatever upserts do.
        history = with_merges(history, seed)
    check_history(
        history,
        bounds=_bounds(shape, seed),
        seed=seed,
        table=table,
        made=made,
        deaths=shape["service"] == "rollback",
        services=_services_of(shape),
        streams=shape["service"] == "stream",
        beside=shape["writer"] == "second",
        # What stands in this process's memory nobody else finds; the second writing-down of the format knows buckets
        # alone, and hudi-rs one ordering field.
        whole=not generated and shape["store"] != "memory",
        hudi_rs=shape["merge"] != "several-fields" and shape["store"] != "memory",
        metadata=shape["metadata"] == "apache",
    )


def _services_of(shape: Shape) -> tuple[str, ...]:
    """Return what is drawn between the writes; what is planned of log files a rescale would give up."""
    logged, service = shape["type"] == "mor", shape["service"]
    joins = logged and service == "restore"
    rescales = shape["index"] == "bucket" and service in {"clean", "archive", "savepoint", "restore"} and not joins
    return (*SERVED[service], *(JOINING if joins else ()), *(RESCALES if rescales else ()))


def work_of(shape: Shape) -> Work:
    """Return a write to a table of a shape, for tests in which one of its steps fails; of services what it does itself.

    Args:
        shape: Of which nothing is still to come.
    """
    generated, bounds = shape["keys"] == "generated", _bounds(shape, 0)
    if looks_keys_up(shape):
        # Who places rows by what it found has found it before.
        bounds = replace(bounds, colocated=False)
    some, other = (*PARTITIONS.get(shape["keys"], ("a", "ab")), "")[:2]
    first = [_rows(some, 1, 2, 3, value=1), _rows(other or some, 4, 5, value=1)]
    second = [_rows(some, 2, 6, value=2, ts=2), _rows(other or some, 4, 7, value=2, ts=2)]
    rows_after = pa.concat_tables(second if not generated else [*first, *second]).to_pylist()
    if not generated:
        touched = {(row["p"], row["id"]) for row in rows_after}
        rows_after += [row for row in pa.concat_tables(first).to_pylist() if (row["p"], row["id"]) not in touched]
    made = settings_of(shape)
    names = [*(made.partition_fields or ()), "id", "value"]
    return Work(
        parts=[pa.concat_tables(second)] if bounds.colocated else second,
        before=first,
        after=sorted(tuple(row[name] for name in names) for row in rows_after),
        operation="insert" if generated else None,
        colocated=bounds.colocated,
        table=made,
        dead=second[0] if shape["service"] == "rollback" else None,
        bounds=replace(bounds, patience=attempts.IMPATIENT.patience, upkeep=UPKEEP.get(shape["service"], OFF)),
    )


def looks_keys_up(shape: Shape) -> bool:
    """Return whether tables of a shape have an index that looks keys up."""
    return shape["index"] == "global" or shape["index"] in LOOKUPS


def moves_rows(shape: Shape, seed: int) -> bool:
    """Return whether rows move where keys are unique in the table; else they are updated where their key is."""
    return (_number_of(shape) + seed) % 3 > 0


def _number_of(shape: Shape) -> int:
    """Return a number of a shape, by which what is no property of it differs, whatever lies beside it."""
    return crc32("-".join(value for name, value in shape.items() if name != "metadata").encode())


def _rows(partition: str, *keys: int, value: int, ts: int = 1) -> pa.Table:
    return attempts.rows(*keys, value=value, ts=ts).append_column("p", pa.array([partition] * len(keys)))


def settings_of(shape: Shape) -> TableSettings:
    """Return what the tables of a shape are made with; one in three has an order of its rows."""
    number = _number_of(shape) // 7
    order = {"sort_by": ("value", "ts"), "sort_curve": CURVES[number // 3 % len(CURVES)]} if number % 3 == 0 else {}
    return replace(_settings_of(shape), **order)


def _settings_of(shape: Shape) -> TableSettings:
    made = replace(KEYS[shape["keys"]], table_type="MERGE_ON_READ" if shape["type"] == "mor" else None)
    made = replace(made, version=None if shape["version"] == "9" else int(shape["version"]))
    if shape["keys"] == "generated":
        return made
    made = replace(made, ordering_fields=ORDERING[shape["merge"]])
    if shape["merge"] == "partial-update":
        made = replace(made, partial_update_mode=IGNORE_DEFAULTS)
    if shape["index"] == "global":
        return replace(made, index_type=EVERYWHERE[_number_of(shape) // 2 % len(EVERYWHERE)])
    if shape["index"] in LOOKUPS:
        return replace(made, index_type=LOOKUPS[shape["index"]])
    return replace(made, bucket_count=3)


def adding(history: Sequence[Step]) -> list[Step]:
    """Return a history in which no key is looked up; its first write may make a table whose keys are generated."""
    steps = [replace(step, operation=ADDING.get(step.operation, step.operation), options={}) for step in history]
    return [replace(steps[0], operation="insert"), *steps[1:]]


def _bounds(shape: Shape, seed: int) -> WriteSettings:
    """Return how much a task keeps in memory, and whom it takes for dead."""
    bounds = replace(WAYS[shape["way"]], logs=LogSettings(block_format=shape["log"]))
    sizes = SIZES[seed % len(SIZES)]
    bounds = replace(bounds, lookup=LookupSettings(sizes=sizes, moves_rows=moves_rows(shape, seed)))
    return replace(bounds, patience=IMPATIENT) if shape["service"] == "rollback" else bounds
