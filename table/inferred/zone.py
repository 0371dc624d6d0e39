"""Infers from stored rows the time zone in which a table's partition paths show times, if no option names it.

Apache Hudi then takes the zone of the machine that writes, and stores none. Of each looked-into file, the rows with the
earliest and latest times tell most about the offset from UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import MissingOptionError, PartitionValueError
from ..config import property_keys as key
from ..config.key_types import PartitionType
from ..config.table_config import TableConfig
from ..files.lost import open_view
from ..keys.generator import KeyGenerator
from ..keys.time_partitions import TimeOptions
from ..keys.time_zones import DAY, FIRST_MS, LAST_MS, Millis, TimeZone
from ..latest_schema import latest_schema
from ..schema.fields import root_of, values_of
from ..table import Table
from .some_rows import some_rows

_SLICES_LOOKED_INTO = 16
_YEARS_AHEAD = 2
_AREAS = ("Europe/", "America/", "Asia/", "Australia/", "Africa/", "Atlantic/", "Indian/", "Pacific/", "Antarctica/")


@dataclass(frozen=True, slots=True)
class _StoredRows:
    """Some rows of a table, and for each the path of the partition that holds it."""

    rows: pa.Table
    paths: pa.Array
    schema: pa.Schema

    def fits(self, config: TableConfig) -> bool:
        """Return whether the options of `config` put every row into the partition that it is stored in."""
        keys = KeyGenerator(config, self.schema)
        try:
            paths = [keys.partition_paths(batch).cast(pa.string()) for batch in self.rows.to_batches()]
        except PartitionValueError:
            return False
        return bool(pa.chunked_array(paths, pa.string()).combine_chunks().equals(self.paths))


def infer_zone(table: Table, given_options: Mapping[str, str]) -> dict[str, str]:
    """Return the option of the zone of the paths, if it alone is missing from a table's and the given time options.

    Raises MissingOptionError if the rows fit no zone, or two that will differ. Without rows it returns nothing.
    """
    config = table.config
    if PartitionType.TIMESTAMP not in config.partition_types:
        return {}
    options = {**config.time_options, **given_options}
    if TimeOptions(options, table.path).missing() != [key.TIME_OUTPUT_ZONE]:
        return {}
    stored = _find_rows(table)
    if stored is None:
        return {}
    properties = {**config.properties, **options}
    fitting = [
        zone for zone in _zones_to_try() if stored.fits(TableConfig({**properties, key.TIME_OUTPUT_ZONE: zone.name}))
    ]
    # Several zones may fit the few rows. They will do if they are alike at all times that rows may have.
    moments = _weeks_to_compare(stored, config, options)
    first_local = fitting[0].local(moments) if fitting else moments
    disagreeing = next((zone for zone in fitting[1:] if not np.array_equal(zone.local(moments), first_local)), None)
    if fitting and disagreeing is None:
        return {key.TIME_OUTPUT_ZONE: fitting[0].name}
    fit = f"both {fitting[0].name} and {disagreeing.name}" if disagreeing else "no time zone that pyhudi knows"
    raise MissingOptionError(
        f"The table {table.path} has partitions made of times, {key.TIME_OUTPUT_ZONE} is not given, and the stored "
        f"rows that pyhudi looked at fit {fit}.",
        "Give the time zone of the table's writers, once; pyhudi keeps it in the table.",
    )


def _find_rows(table: Table) -> _StoredRows | None:
    """Return rows with the earliest and latest times of some partitions; None for a table without rows."""
    timeline = table.timeline()
    schema = latest_schema(table.config, timeline)
    if schema is None:
        return None
    view = open_view(timeline)
    partitions = view.partitions()
    # Rows on both sides of a border between partitions tell most, so that two neighbours are looked into at a time.
    step = max(2, -(-len(partitions) // (_SLICES_LOOKED_INTO // 2)))
    columns = pa.schema([schema.field(name) for name in {root_of(field) for field in table.config.partition_fields}])
    batches, paths = [], []
    for partition in (name for number, name in enumerate(partitions) if number % step < 2):
        # One file slice of a partition is enough.
        for file_slice in [*view.slices(partition).values()][:1]:
            for _, rows in some_rows(table.storage, file_slice, columns):
                batches.append(
                    rows.take(pa.array(_positions_of_extremes(_time_columns(rows, table.config)), pa.int64()))
                )
                paths += [partition] * batches[-1].num_rows
    rows = pa.Table.from_batches(batches, columns).combine_chunks()
    return _StoredRows(rows, pa.array(paths, pa.string()), schema) if rows.num_rows else None


def _positions_of_extremes(times: Iterable[pa.Array]) -> list[int]:
    """Return the positions of a row with the least and a row with the greatest value of each column of times."""
    positions = set()
    for values in times:
        extremes = pc.min_max(values)
        positions |= {pc.index(values, extremes[bound]).as_py() for bound in ("min", "max")}  # one value a batch
    # The index is -1 if all values are null.
    return sorted(positions - {-1})


def _time_columns(rows: pa.RecordBatch, config: TableConfig) -> Iterator[pa.Array]:
    """Yield the values of the partition columns of times."""
    for field, kind in zip(config.partition_fields, config.partition_types, strict=True):
        if kind is PartitionType.TIMESTAMP:
            yield values_of(rows, field)


def _weeks_to_compare(stored: _StoredRows, config: TableConfig, options: Mapping[str, str]) -> Millis:
    """Return a moment in each week from the earliest row to some years from now."""
    times = TimeOptions({**options, key.TIME_OUTPUT_ZONE: "UTC"}, config.name).partitions()
    earliest = [
        times.instants(values)[0].min() for rows in stored.rows.to_batches() for values in _time_columns(rows, config)
    ]
    until = dt.datetime(dt.datetime.now(dt.timezone.utc).year + _YEARS_AHEAD, 1, 1, tzinfo=dt.timezone.utc)
    start = np.clip(min(earliest), FIRST_MS, LAST_MS)
    return np.arange(start, max(start, int(until.timestamp()) * 1000) + 7 * DAY, 7 * DAY, dtype=np.int64)


def _zones_to_try() -> Iterator[TimeZone]:
    """Yield UTC, the offsets in whole hours, and the regions; of zones that are alike the first is chosen."""
    yield TimeZone("UTC")
    for hours in range(1, 15):
        yield from (TimeZone(f"GMT{sign}{hours}:00") for sign in "+-")
    names = sorted(available_timezones())
    yield from (TimeZone(name) for area in _AREAS for name in names if name.startswith(area))
