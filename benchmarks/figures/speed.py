"""The table of the README: each system used as its users would, several measured rows in one shown row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phases import merge_on_read as logs
from systems import NAMED

from figures.promises import PLAIN, TABLE, TO_DF
from figures.tables import table_of

# The phases of each column; the seconds of several phases are averaged.
COLUMNS = {
    "load": ("load",),
    "upsert": ("up1", "up2"),
    "three columns": ("scan3",),
    "all columns": ("scan_all",),
    "one key": ("point",),
    "one partition": ("partition",),
}
_WRITES, _WHOLE = ("load", "upsert"), ("all columns",)


@dataclass(frozen=True)
class Row:
    """A row of the table, and the measured rows that have its seconds.

    Attributes:
        name: What the table calls it.
        writes: The measured row of the load and the upserts.
        reads: The measured row of the reads.
        whole: The measured row of the read of all columns, which needs no names of columns.
    """

    name: str
    writes: str
    reads: str
    whole: str

    def seconds(self, measured: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Return the seconds by column, without the columns that were not measured."""
        shown = {}
        for column, phases in COLUMNS.items():
            name = self.writes if column in _WRITES else self.whole if column in _WHOLE else self.reads
            by_phase = measured.get(name, {})
            if all(phase in by_phase for phase in phases):
                shown[column] = sum(by_phase[phase] for phase in phases) / len(phases)
        return shown


def _same(name: str) -> Row:
    return Row(name, name, name, name)


ROWS = (
    Row("pyhudi, HudiTable", TABLE, TO_DF, TO_DF),
    Row("pyhudi, df.write", PLAIN, NAMED, PLAIN),
    _same("Apache Hudi"),
    _same("Delta Lake, MERGE"),
    _same("Iceberg, MERGE copy-on-write"),
    Row("pyhudi, HudiTable, merge-on-read", logs.TABLE, logs.TO_DF, logs.TO_DF),
    Row("pyhudi, df.write, merge-on-read", logs.PLAIN, logs.NAMED, logs.PLAIN),
    _same(logs.THEIRS),
    _same("Delta Lake, MERGE, deletion vectors"),
    _same("Iceberg, MERGE merge-on-read"),
    _same("delta-rs, merge"),
    _same("Parquet"),
)


def speed(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return the table, with the rows of which something was measured."""
    rows = {row.name: shown for row in ROWS if (shown := row.seconds(seconds))}
    return table_of(rows, tuple(COLUMNS))
