"""Rows of unique keys resolved by tasks and written as placed, without an engine: its shuffles are made here."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.operations.locating.file_group_writes import shares_of
from pyhudi.operations.locating.global_index import FoldTask, PairStateTask, ResolveTask
from pyhudi.operations.locating.spread_lookup import AskTask
from pyhudi.operations.locating.tagger import Tagger
from pyhudi.operations.meeting.since import seen_by
from pyhudi.operations.planning.operation import DELETE, REPLACING
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.table.arrow.string_hash import hash64
from pyhudi.table.config.property_keys import MERGE_ON_READ
from pyhudi.table.keys.generator import KeyGenerator
from pyhudi.table.merging.deletes import IS_DELETED
from pyhudi.table.merging.merger import RowMeeting
from pyhudi.table.schema.columns import FILE_GROUP, NEW_GROUP, POSITION
from pyhudi.table.seen_table import SeenTable
from support.drawn.lookups import said
from support.drive import NOTHING_SAID, carry_out, plan

TASKS = 3
KEY, PATH, HOME, GROUP, LEAVES = "key", "path", "home", "group", "leaves"


def write_spread(
    path: Path | str,
    parts: Sequence[pa.Table] | pa.Table,
    *,
    operation: str | None = None,
    table: TableSettings = NOTHING_SAID,
    settings: WriteSettings,
) -> CommitResult:
    """Write rows that tasks have resolved before."""
    parts = [parts] if isinstance(parts, pa.Table) else parts
    rows = pa.concat_tables(
        [
            part.append_column(POSITION, pa.array((number << 33) + np.arange(part.num_rows)))
            for number, part in enumerate(parts)
        ]
    ).combine_chunks()
    settings = replace(settings, colocated=True)
    planned = plan(path, rows.schema, operation=operation, table=table, settings=settings)
    tasks = _dealt(located(planned, rows))
    return carry_out(plan(path, tasks[0].schema, operation=operation, table=table, settings=settings), tasks)


def located_in_tasks(planned: WritePlan, parts: Sequence[pa.Table]) -> list[pa.Table]:
    """Return rows that say which file groups they go to, those of each in one part.

    Args:
        planned: A write of rows that are resolved.
        parts: Its rows, with where they stood; of one partition each.
    """
    if not parts or not (planned.folds or planned.rules.meeting is not RowMeeting.ADD):
        return [said(part, f"{NEW_GROUP}0") for part in parts]
    rows = pa.concat_tables(parts).combine_chunks()
    return _dealt(located(planned, rows)) if rows.num_rows else []


def _dealt(placed: pa.Table) -> list[pa.Table]:
    to = pa.array(hash64(pc.binary_join_element_wise(placed[HOME], _file_id(placed), "/").combine_chunks()) % TASKS)
    shown = placed.drop_columns([KEY, PATH, HOME])
    return [shown.filter(pc.equal(to, number)) for number in range(TASKS)]


def located(planned: WritePlan, rows: pa.Table) -> pa.Table:
    """Return rows with what they say of their file groups, with their keys, partitions, and those of the groups."""
    seen = seen_by(planned.transaction, planned.table.timeline())
    searched = None if planned.rules.meeting is RowMeeting.ADD else seen
    (batch,) = rows.to_batches()
    keys = KeyGenerator(planned.config, planned.schema)
    names, paths = keys.record_keys(batch), keys.partition_paths(batch).dictionary_decode()
    keyed = rows.append_column(KEY, names).append_column(PATH, paths)
    entries = _settled(planned, searched, keyed)
    new = entries.filter(pc.and_(pc.is_valid(entries[HOME]), pc.is_null(entries[GROUP])))
    counted = new.group_by(HOME).aggregate([([], "count_all")])
    counts = dict(zip(counted[HOME].to_pylist(), counted["count_all"].to_pylist(), strict=True))
    fills = planned.operation not in {DELETE, *REPLACING}
    view = seen.view if fills else None
    shares = shares_of(planned.config, planned.settings.lookup.sizes, view, seen.timeline, counts)
    logged = planned.config.table_type == MERGE_ON_READ
    said = []
    for entry in entries.to_pylist():
        dealt = shares.get(entry[HOME])
        joined = {one.file_id for one in dealt.shares if one.number is None} if dealt else set()
        name = entry[GROUP]
        if name is None:
            share = dealt.shares[int(dealt.take(hash64(pa.array([entry[KEY]])))[0])] if dealt else None
            number = 0 if share is None else share.number
            name = share.file_id if share is not None and number is None else f"{NEW_GROUP}{number}"
        plus = NEW_GROUP if logged and name in joined else ""
        home = "" if entry[HOME] == entry[PATH] else f"{entry[HOME]}/"
        said.append(f"{home}{plus}{name}" if entry[HOME] is not None else None)
    entries = entries.append_column(FILE_GROUP, pa.array(said, pa.string()))
    known = entries.select([KEY, PATH, HOME, LEAVES, FILE_GROUP])
    assert pc.all(pc.is_in(keyed[KEY], known[KEY])).as_py()
    going = keyed.join(known.filter(pc.is_valid(known[FILE_GROUP])), [KEY, PATH], join_type="inner")
    if planned.moves_rows:
        flag = going[IS_DELETED] if IS_DELETED in going.column_names else pa.nulls(going.num_rows, pa.bool_())
        flag = pc.or_kleene(pc.fill_null(flag, False), going[LEAVES])
        going = (going.drop_columns([IS_DELETED]) if IS_DELETED in going.column_names else going).append_column(
            pa.field(IS_DELETED, pa.bool_()), flag
        )
    return going.drop_columns([LEAVES])


def _settled(planned: WritePlan, seen: SeenTable | None, keyed: pa.Table) -> pa.Table:
    """Return where the rows of each key and partition go, each step done by some tasks."""
    rest = [name for name in planned.spec.deciding if name in keyed.column_names and name not in {KEY, PATH}]
    tagger = Tagger(planned, seen)
    decided = spread(FoldTask(tagger), keyed.select([KEY, PATH, *rest]), [KEY], [KEY, PATH])
    winners = decided.filter(decided["goes"])
    lost = decided.filter(pc.invert(decided["goes"])).select([KEY, PATH])
    nothing = pa.array([], pa.string())
    places = pa.table([nothing] * 3, names=[KEY, HOME, GROUP])
    standing = places.append_column("live", pa.array([], pa.bool_())).append_column("wins", pa.array([], pa.bool_()))
    standing = standing.append_column("since", pa.array([], pa.int64()))
    if seen is not None:
        asked = spread(AskTask(seen, planned.lookup), winners.select([KEY, PATH]), [KEY], [KEY])
        asked = asked.rename_columns([KEY, PATH, HOME, GROUP]).filter(pc.is_valid(asked["file_id"]))
        places = asked.select([KEY, HOME, GROUP]).group_by([KEY, HOME, GROUP]).aggregate([])
        met = winners.join(places, [KEY], join_type="inner")
        several = met.group_by([KEY, PATH]).aggregate([([], "count_all")])
        met = met.join(several, [KEY, PATH])
        could = pc.or_(pc.not_equal(met[PATH], met[HOME]), pc.greater(met["count_all"], 1))
        met = met.filter(pc.and_(could, pc.invert(met["deleted"])))
        if met.num_rows:
            group = [HOME, GROUP]
            held = spread(PairStateTask(tagger), met.select([*group, KEY, *rest]), group, group)
            standing = held.rename_columns([HOME, GROUP, KEY, "live", "wins", "since"])
    pairs = winners.select([KEY, PATH, "deleted"]).join(places, [KEY]).join(standing, [KEY, HOME, GROUP])
    told = {name: pc.fill_null(pairs[name], untold) for name, untold in (("live", True), ("wins", False), ("since", 0))}
    pairs = pairs.select([KEY, PATH, "deleted", HOME, GROUP])
    for name, values in told.items():
        pairs = pairs.append_column(name, values)
    resolved = spread(ResolveTask(tagger), pairs, [KEY], [KEY, PATH, "deleted", HOME, GROUP])
    resolved = resolved.rename_columns([KEY, PATH, HOME, GROUP, LEAVES])
    none = pa.nulls(lost.num_rows, pa.string())
    stay = pa.array(np.zeros(lost.num_rows, np.bool_))
    return pa.concat_tables([resolved, pa.table([lost[KEY], lost[PATH], none, none, stay], schema=resolved.schema)])


def spread(task: Any, rows: pa.Table, by: list[str], order: list[str]) -> pa.Table:
    """Return what tasks make of rows, of which each has all of the same values of some columns, in an order."""
    texts = pc.binary_join_element_wise(*(rows[name] for name in by), "/").combine_chunks()
    to = pa.array(hash64(texts) % TASKS)
    made = []
    for number in range(TASKS):
        mine = rows.filter(pc.equal(to, number)).sort_by([(name, "ascending") for name in order])
        batches: Iterator[pa.RecordBatch] = iter(mine.combine_chunks().to_batches(max_chunksize=1))
        made += pickle.loads(pickle.dumps(task))(one for one in batches if one.num_rows)  # noqa: S301
    return pa.Table.from_batches(made)


def _file_id(placed: pa.Table) -> pa.ChunkedArray:
    return pc.replace_substring_regex(placed[FILE_GROUP], r"^(.*/)?\+?", "")
