"""Bucket hashing of record keys against one `utf8_upper` pass over the same keys: `python benchmarks/hash_keys.py`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.index.bucket import BucketIndex
from pyhudi.table.arrow.string_hash import hash64, java_string_hash

ROWS = 1_000_000
ROUNDS = 11


def keys(lengths: np.ndarray) -> pa.StringArray:
    """Return lower-case keys of the given lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = np.random.default_rng(7).integers(ord("a"), ord("z") + 1, offsets[-1], dtype=np.uint8)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))


def samples() -> dict[str, tuple[pa.Array, tuple[str, ...]]]:
    """Return kinds of record keys with the fields that they are made of; the first is the measure."""
    rng = np.random.default_rng(11)
    fixed = keys(np.full(ROWS, 20))
    numbers = pc.cast(pa.array(rng.integers(0, 1 << 40, ROWS)), pa.string())
    other = pc.cast(pa.array(np.arange(ROWS)), pa.string())
    return {
        "20 bytes": (fixed, ("id",)),
        "10 to 30 bytes": (keys(rng.integers(10, 31, ROWS)), ("id",)),
        "numbers": (numbers, ("id",)),
        "not ASCII": (pc.binary_join_element_wise(keys(np.full(ROWS, 18)), "é", ""), ("id",)),
        "two fields": (pc.binary_join_element_wise("a:", numbers, ",b:", other, ""), ("a", "b")),
    }


def medians(passes: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median seconds of each pass; they take turns, so that other load on the machine meets all alike."""
    taken: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(ROUNDS):
        for name, run in passes.items():
            began = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    print(f"{ROWS:,} record keys, medians of {ROUNDS} rounds; in brackets: multiples of the utf8_upper pass")
    for kind, (array, fields) in samples().items():
        index = BucketIndex(bucket_count=16, record_key_fields=fields)
        passes: dict[str, Callable[[], object]] = {
            "utf8_upper": lambda array=array: pc.utf8_upper(array),
            "buckets": lambda array=array, index=index: index.buckets(array),
            "java_string_hash": lambda array=array: java_string_hash(array),
            "hash64": lambda array=array: hash64(array),
        }
        times = medians(passes)
        unit = times["utf8_upper"]
        shown = "  ".join(f"{name} {1e3 * took:6.1f} ms ({took / unit:4.1f})" for name, took in times.items())
        print(f"{kind:15} {shown}")


if __name__ == "__main__":
    main()
