"""What pyhudi promises of its speed, held against one run: the promise, what was measured, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from joins import BY_BUCKET, BY_SHUFFLE
from joins import row as joined
from phases import conditions
from phases import merge_on_read as logs
from phases import merging as by_conditions
from phases.limits import FORWARD, REWRITE, SINK
from phases.loads import BY_FORMAT as LOADED_BY_FORMAT
from phases.loads import BY_PARQUET, LOAD, SYNCED
from phases.loads import BY_TABLE as LOADED_BY_TABLE
from phases.lookups import INDEXES, by, theirs
from phases.rescaling import PHASE, RESCALED, SPLIT, UPSERTED
from phases.sizes import DROPPED, FIRST, PLAIN_LOGS, TABLE_LOGS, THOUSANDTH
from phases.sizes import PHASES as SIZES
from phases.sizes import PLAIN as BY_FORMAT
from phases.sizes import TABLE as BY_TABLE

Seconds = Mapping[str, Mapping[str, float]]
PLAIN, TABLE, TO_DF = "pyhudi, df.write", "pyhudi, HudiTable.upsert", "pyhudi, HudiTable.to_df"
UPSERTS = ("up1", "up2")
FIRST_WITHIN_S = 3.0


@dataclass(frozen=True)
class Promise:
    """One promise.

    Attributes:
        what: Names it.
        ours: The row of pyhudi.
        theirs: The row it is compared with.
        phases: Whose seconds are summed.
        at_most: The greatest promised ratio of our seconds to theirs.
        limit: The row of what bounds us on this machine.
    """

    what: str
    ours: str
    theirs: str
    phases: tuple[str, ...]
    at_most: float
    limit: str


PROMISES = [
    *(
        Promise(
            f"sum of a join of {buckets} buckets, against Spark's shuffle",
            joined(buckets, BY_BUCKET),
            joined(buckets, BY_SHUFFLE),
            ("sum",),
            ratio,
            joined(buckets, BY_SHUFFLE),
        )
        for buckets, ratio in ((8, 0.6), (64, 0.8))
    ),
    *(
        Promise(f"upsert by {row.partition(', ')[2]}, against {theirs}", row, theirs, UPSERTS, ratio, REWRITE)
        for row in (PLAIN, TABLE)
        for theirs, ratio in (
            ("Apache Hudi", 1 / 10),
            ("Delta Lake, MERGE", 1 / 3),
            ("Iceberg, MERGE copy-on-write", 1 / 3),
        )
    ),
    *(
        Promise(f"load by {row.partition(': ')[2]}, against {SYNCED}", row, BY_PARQUET, (LOAD,), 1.2, SINK)
        for row in (LOADED_BY_FORMAT, LOADED_BY_TABLE)
    ),
    *(
        Promise(f"HudiTable.upsert against df.write: {size}", BY_TABLE, BY_FORMAT, (size,), 1.2, BY_FORMAT)
        for size in SIZES
    ),
    *(
        Promise(f"upsert by {row.removeprefix('pyhudi, ')}, against {theirs}", row, theirs, UPSERTS, ratio, SINK)
        for row in (logs.PLAIN, logs.TABLE)
        for theirs, ratio in (
            (logs.THEIRS, 1 / 10),
            ("Iceberg, MERGE merge-on-read", 1 / 2.5),
            ("Delta Lake, MERGE, deletion vectors", 1 / 2.5),
        )
    ),
    Promise(f"upsert by {logs.PLAIN.removeprefix('pyhudi, ')}, against {SINK}", logs.PLAIN, SINK, UPSERTS, 2.0, SINK),
    *(
        Promise(f"upsert of {THOUSANDTH} by {way}, against copy-on-write", ours, theirs, (THOUSANDTH,), 1 / 5, DROPPED)
        for way, ours, theirs in (("df.write", PLAIN_LOGS, BY_FORMAT), ("HudiTable.upsert", TABLE_LOGS, BY_TABLE))
    ),
    *(
        Promise(
            f"upsert by {way} under {index}, against Apache Hudi's", by(way, index), theirs(index), UPSERTS, 1 / 8, SINK
        )
        for index in INDEXES
        for way in ("df.write", "HudiTable.upsert")
    ),
    Promise(
        "HudiTable.merge, against upsert and the join alone",
        by_conditions.MERGED,
        by_conditions.APART,
        UPSERTS,
        1.3,
        REWRITE,
    ),
    *(
        Promise(f"HudiTable.merge, against {theirs}", by_conditions.MERGED, theirs, UPSERTS, 1.0, REWRITE)
        for theirs in ("Delta Lake, MERGE", "Iceberg, MERGE copy-on-write")
    ),
    *(
        Promise(f"HudiTable.merge {what}, against upsert and the join alone", ours, theirs, UPSERTS, 1.3, limit)
        for what, ours, theirs, limit in (
            ("with conditions", conditions.MERGED, conditions.APART, REWRITE),
            ("with conditions, merge-on-read", conditions.MERGED_LOGS, conditions.APART_LOGS, SINK),
        )
    ),
    Promise("rescale of all buckets, against a copy-on-write upsert", RESCALED, UPSERTED, (PHASE,), 1.0, SPLIT),
    Promise("rescale of all buckets, against the split alone", RESCALED, SPLIT, (PHASE,), 1.3, SPLIT),
    Promise("full compaction, against a copy-on-write upsert", logs.COMPACTED, TABLE, UPSERTS, 1.3, REWRITE),
    Promise(f"to_df() of three columns, against {logs.THEIRS}", logs.TO_DF, logs.THEIRS, ("scan3",), 1 / 3, "Parquet"),
    Promise("to_df() of three columns", TO_DF, "Parquet", ("scan3",), 1.1, "Parquet"),
    Promise("spark.read of all columns", PLAIN, "Parquet", ("scan_all",), 2.5, FORWARD),
]


def verdicts(seconds: Seconds) -> str:
    """Return a table of the promises that this run can judge."""
    lines = ["| promise | at most | measured | of what bounds it |", "|---|---:|---:|---:|"]
    for promise in PROMISES:
        ours, theirs, limit = (
            _sum(seconds, row, promise.phases) for row in (promise.ours, promise.theirs, promise.limit)
        )
        if ours is None or theirs is None:
            continue
        ratio = ours / theirs
        mark = "" if ratio <= promise.at_most else ", missed"
        bound = "–" if limit is None else f"{ours / limit:.2f}x"
        lines.append(f"| {promise.what} | {promise.at_most:.2f} | {ratio:.2f}{mark} | {bound} |")
    ours, sink = _sum(seconds, BY_FORMAT, (FIRST,)), _sum(seconds, DROPPED, (FIRST,))
    if ours is not None and sink is not None:
        mark = "" if ours - sink <= FIRST_WITHIN_S else ", missed"
        what = "first write of a session, beyond a sink that drops its rows"
        lines.append(f"| {what} | {FIRST_WITHIN_S:.1f} s | {ours - sink:.1f} s{mark} | {ours / sink:.2f}x |")
    return "\n".join([*lines, ""])


def _sum(seconds: Seconds, row: str, phases: tuple[str, ...]) -> float | None:
    phases_of_row = seconds.get(row, {})
    return sum(phases_of_row[phase] for phase in phases) if all(phase in phases_of_row for phase in phases) else None
