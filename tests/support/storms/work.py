"""What a process of a storm does, as the storm gives it to the process, and the tables that all of them write to."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
from pyhudi.operations.service_settings import Upkeep
from pyhudi.timeline.writers.patience import Patience
from support.storms.notes import COUNT, Act
from support.storms.oracle import COUNTERS, HOT, partition_of
from support.write_settings import write_settings

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("value", pa.int64())])
_BUCKETS = TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=2)
# Rows have no ordering values, so that the order of two writes shows.
TABLES = {
    "cow": _BUCKETS,
    "mor": replace(_BUCKETS, table_type="MERGE_ON_READ"),
    "looked_up": replace(_BUCKETS, bucket_count=None, index_type="SIMPLE"),
}
# Those whose metadata table all processes keep.
WITH_METADATA = ("mor", "looked_up")
RETRY_S = 600.0


@dataclass(frozen=True)
class Work:
    """One process of a storm.

    Attributes:
        folder: Of the storm: tables below ``tables``, notes below ``notes``, logs below ``logs``; ``over`` ends it.
        number: Of the process, which no two have alike.
        kind: ``writer``, ``services``, ``elsewhere``, ``spark`` or ``read``.
        again: Writes of killed processes, which this one begins again.
    """

    folder: str
    number: int
    kind: str
    seed: int
    tolerance_s: float
    again: tuple[Act, ...] = ()

    @property
    def patience(self) -> Patience:
        return Patience(heartbeat_interval_s=self.tolerance_s / 2, heartbeat_misses=2)

    @property
    def settings(self) -> WriteSettings:
        return write_settings(retry_s=RETRY_S, patience=self.patience, upkeep=Upkeep())

    @property
    def options(self) -> dict[str, Any]:
        """The same settings for a write through Spark."""
        return {
            "hoodie.client.heartbeat.interval_in_ms": str(int(self.tolerance_s * 500)),
            "hoodie.client.heartbeat.tolerable.misses": "2",
        }

    @property
    def notes(self) -> Path:
        return Path(self.folder, "notes", f"{self.number}.jsonl")

    @property
    def over(self) -> Path:
        return Path(self.folder, "over")

    def table(self, name: str) -> str:
        """Return the path of a table."""
        return str(Path(self.folder, "tables", name))

    def encode(self) -> str:
        """Return the work as one argument of a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Work:
        """Return the work of a command line."""
        told = json.loads(text)
        return cls(**{**told, "again": tuple(Act.parse(one) for one in told["again"])})

    def request(self, act: Act, settings: WriteSettings | None = None) -> WriteRequest:
        """Return a write as pyhudi takes it; a counting update is an upsert."""
        return WriteRequest(
            path=self.table(act.table),
            operation="upsert" if act.operation == COUNT else act.operation,
            overwrite=False,
            schema=SCHEMA,
            write=settings or self.settings,
            write_id=act.write_id,
            application=f"storm {self.number}",
        )

    def acts(self, thread: int = 0) -> Iterator[Act]:
        """Yield writes without end; ``thread`` counts those that write at once in this process."""
        chance, number = random.Random(f"{self.seed} {self.number} {thread}"), 0
        while True:
            number += 1
            yield _draw(chance, f"storm-{self.number}-{thread}-{number}")


def _draw(chance: random.Random, write_id: str) -> Act:
    table = chance.choice(["cow", "cow", "mor", "mor", "looked_up"])
    kinds = {"upsert": 9, COUNT: 6, "insert": 3, "delete": 0 if table == "looked_up" else 2}
    operation = chance.choices(list(kinds), list(kinds.values()))[0]
    value = chance.randrange(1, 1 << 40)
    if operation == COUNT:
        keys = [chance.choice(COUNTERS)]
    elif operation == "insert":
        keys = [f"own-{write_id}-{number}" for number in range(chance.randint(1, 3))]
    else:
        keys = chance.sample(HOT, chance.choice([1, 1, 2, 3]))
    if operation == "upsert":
        keys += [f"own-{write_id}-{number}" for number in range(2)]
    return Act(write_id, table, operation, tuple((key, partition_of(key), value) for key in keys))


def batches_of(act: Act, values: tuple[int, ...] = ()) -> list[pa.RecordBatch]:
    """Return the rows of a write, with other values where these are given."""
    told = values or tuple(value for _, _, value in act.rows)
    columns = [[key for key, _, _ in act.rows], [p for _, p, _ in act.rows], list(told)]
    return pa.table(columns, schema=SCHEMA).to_batches()
