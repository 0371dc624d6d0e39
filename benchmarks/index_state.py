"""What lookups save if a stream's process remembers keys: `python benchmarks/index_state.py`.

A stream upserts batches, half of whose keys are new, into a table of scattered keys. Before the last batch its keys are
looked up as without known keys, by the same process. Then the process may keep a quarter of the keys, and the same is
measured once more: beyond the bound a lookup must not be slower than without.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from figures.tables import Bound, bounds_of, table_of
from indexes import RANDOM, keys_of
from pyhudi.index.base import KeyedRows, LookupFigures
from pyhudi.index.settings import LookupSettings
from pyhudi.operations.indexing import known_keys
from pyhudi.operations.indexing.known_keys import KnownSlices
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.operations.streams.batch import StreamBatch
from pyhudi.operations.write.run import write
from pyhudi.storage import open_storage
from pyhudi.table.files.base_file import constant
from pyhudi.table.merging.key_set import BYTES_OF_A_KEY
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table

STATE = "known keys: "
KEYS, FILES, ROWS, BATCHES = 20_000_000, 100, 10_000, 20
TYPES = ("copy-on-write", "merge-on-read")
MIB, MIB_WITHOUT, SECONDS, WITHOUT = "MiB read", "MiB without", "seconds", "seconds without"
BYTES, BEYOND, BEYOND_WITHOUT = "bytes a key", "seconds beyond", "seconds beyond without"
COLUMNS = (MIB, MIB_WITHOUT, SECONDS, WITHOUT, BYTES, BEYOND, BEYOND_WITHOUT)
# What is promised: shares of the bytes and of the seconds without, bytes a key, and the share beyond the bound.
MOST_READ, MOST_SECONDS, MOST_BYTES, MOST_BEYOND = 0.05, 0.20, 24, 1.1

Figures = Mapping[str, Mapping[str, float]]
_SCHEMA = pa.schema([("id", pa.string()), ("value", pa.int64())])
_KNOWN = TableSettings()


@dataclass
class Stream:
    """A stream into a table of ``keys`` keys, every batch of which brings as many known keys as new keys."""

    path: str
    index: str
    keys: int
    rows: int
    batches: int = 0

    def make(self, table_type: str, files: int) -> None:
        """Make the table, each of whose files has keys from everywhere."""
        kind = "COPY_ON_WRITE" if table_type == TYPES[0] else "MERGE_ON_READ"
        table = TableSettings(name="t", record_key_fields=("id",), index_type=self.index, table_type=kind)
        parts = np.array_split(np.arange(self.keys), files)
        write(
            self._request("bulk_insert", WriteSettings(durable=False), table), (iter([_rows(part)]) for part in parts)
        )

    def batch(self, cache_bytes: int) -> CommitResult:
        batch, lookup = StreamBatch("query", self.batches), LookupSettings(cache_bytes=cache_bytes)
        settings = WriteSettings(batch=batch, lookup=lookup, durable=False)
        commit_result = write(self._request("upsert", settings), [iter([_rows(self._numbers())])])
        self.batches += 1
        self.keys += self.rows // 2
        return commit_result

    def without(self) -> LookupFigures:
        """Look the keys of the next batch up, in a process that knows none."""
        table = open_table(open_storage(self.path))
        plan = plan_write(self._request("upsert", WriteSettings()))
        numbers = self._numbers()
        rows = KeyedRows(keys_of(numbers, RANDOM), constant("", len(numbers)))
        return plan.lookup.tag(rows, SeenTable.now(table).view, table.storage).figures

    def _numbers(self) -> np.ndarray:
        half = self.rows // 2
        stored = np.random.default_rng(self.batches).choice(self.keys, half, replace=False)
        return np.concatenate([stored, np.arange(self.keys, self.keys + half)])

    def _request(self, operation: str, settings: WriteSettings, table: TableSettings = _KNOWN) -> WriteRequest:
        return WriteRequest(self.path, operation, overwrite=False, schema=_SCHEMA, table=table, write=settings)


def measure(keys: int = KEYS, files: int = FILES, types: tuple[str, ...] = TYPES[1:]) -> dict[str, dict[str, float]]:
    """Return the figures of each index."""
    figures = {}
    for table_type in types:
        for index in ("SIMPLE", "BLOOM"):
            with tempfile.TemporaryDirectory() as folder:
                stream = Stream(f"{folder}/t", index, keys, ROWS)
                stream.make(table_type, files)
                known_keys.KNOWN_SLICES = KnownSlices()
                figures[f"{STATE}{index}, {table_type}"] = _measured(stream)
    return figures


def _measured(stream: Stream) -> dict[str, float]:
    roomy = 2 * BYTES_OF_A_KEY * stream.keys
    for number in range(BATCHES - 1):
        began = time.perf_counter()
        lookup = stream.batch(roomy).lookup
        if not number % 5:
            print(stream.index, number, f"{time.perf_counter() - began:.1f} s", lookup, flush=True)
    without, with_state = stream.without(), stream.batch(roomy).lookup
    bytes_a_key = known_keys.KNOWN_SLICES.nbytes / stream.keys
    tight = BYTES_OF_A_KEY * stream.keys // 4
    for _ in range(3):
        stream.batch(tight)
    beyond, beyond_without = [], []
    for _ in range(3):
        beyond_without.append(stream.without().seconds)
        beyond.append(stream.batch(tight).lookup.seconds)
    return {
        MIB: with_state.bytes / 2**20,
        MIB_WITHOUT: without.bytes / 2**20,
        SECONDS: with_state.seconds,
        WITHOUT: without.seconds,
        BYTES: bytes_a_key,
        BEYOND: min(beyond),
        BEYOND_WITHOUT: min(beyond_without),
    }


def states(rows: Figures) -> str:
    """Return a table of what was measured, and of what is promised."""
    return "\n".join((spared(rows), verdicts(rows)))


def spared(rows: Figures) -> str:
    return table_of(rows, COLUMNS, STATE, digits=3)


def verdicts(rows: Figures) -> str:
    promises: list[Bound] = []
    for row, phases in rows.items():
        if row.startswith(STATE):
            kind, beyond = row.removeprefix(STATE), phases[BEYOND] / phases[BEYOND_WITHOUT]
            promises += (
                Bound(f"{kind}: bytes read, against those without", phases[MIB] / phases[MIB_WITHOUT], MOST_READ),
                Bound(f"{kind}: seconds, against those without", phases[SECONDS] / phases[WITHOUT], MOST_SECONDS),
                Bound(f"{kind}: bytes a key", phases[BYTES], MOST_BYTES),
                Bound(f"{kind}: seconds beyond the bound, against those without", beyond, MOST_BEYOND),
            )
    return bounds_of(promises)


def _rows(numbers: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([keys_of(numbers, RANDOM), pa.array(numbers)], schema=_SCHEMA)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES[1:])
    arguments = parser.parse_args()
    print(states(measure(arguments.keys, arguments.files, tuple(arguments.types))))


if __name__ == "__main__":
    main()
