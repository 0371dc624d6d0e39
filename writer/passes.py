"""Spilled rows read in passes, each of as many rows as memory can hold the deciding columns of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..table.arrow.batches import within
from ..table.arrow.string_hash import hash64
from ..table.schema.columns import RECORD_KEY
from .buffer import GroupRows
from .routes import Route


@dataclass(frozen=True, slots=True)
class Portion:
    """The rows of one route, or of one of `parts` of its keys, by their hashes."""

    route: Route
    rows: GroupRows
    part: int = 0
    parts: int = 1

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the portion, all columns by default."""
        for batch in self.rows.batches(columns):
            if self.parts == 1:
                yield batch
            else:
                # Not the highest bits, which chose the route, nor the lowest bits, which key lookups use.
                parts = (hash64(batch.column(RECORD_KEY)) >> np.uint64(30)) % np.uint64(self.parts)
                yield batch.filter(pa.array(parts == self.part))


@dataclass(frozen=True, slots=True)
class Held:
    """A portion with its deciding columns in memory."""

    portion: Portion
    batches: list[pa.RecordBatch]

    @property
    def count(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


def passes(units: Iterable[Sequence[Portion]], columns: Sequence[str], nbytes: int) -> Iterator[list[Held]]:
    """Yield all rows once, as many at a time as fit into `nbytes` Arrow bytes of some columns.

    The portions of one unit may share keys, so one pass holds them all. A unit that is too large is split by keys.
    """
    pass_portions: list[Held] = []
    size = 0
    for unit in units:
        portions_held, unit_bytes = _read_unit(unit, columns, nbytes)
        if pass_portions and (portions_held is None or size + unit_bytes > nbytes):
            yield pass_portions
            pass_portions, size = [], 0
        if portions_held is None:
            # Plan for half of the memory, because parts differ in size.
            parts = math.ceil(2 * unit_bytes / nbytes)
            for part in range(parts):
                portions = [Portion(portion.route, portion.rows, part, parts) for portion in unit]
                yield [Held(portion, list(portion.batches(columns))) for portion in portions]
            continue
        pass_portions += portions_held
        size += unit_bytes
    if pass_portions:
        yield pass_portions


def _read_unit(unit: Sequence[Portion], columns: Sequence[str], nbytes: int) -> tuple[list[Held] | None, int]:
    """Return the portions of a unit in memory, and their bytes; None and all bytes if they exceed ``nbytes``."""
    portions_held: list[Held] = []
    size = 0
    for portion in unit:
        batches = within(portion.batches(columns), nbytes - size)
        if batches is None:
            return None, sum(batch.nbytes for portion in unit for batch in portion.batches(columns))
        size += sum(batch.nbytes for batch in batches)
        portions_held.append(Held(portion, batches))
    return portions_held, size
