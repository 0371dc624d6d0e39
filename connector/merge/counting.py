"""Counts changed rows by the places that they leave and enter, and finds conflicts among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from ...methods.merging.clauses import ClauseKind
from ...operations.planning.changed_rows import ChangedRows, RowPlace, check_changed_rows, held_elsewhere
from ...operations.planning.counted_changes import COLUMNS, COMES, GOES, LEAVES, STAYS, UNCHANGED, count_changes
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY
from ..placement.key_columns import KEY, PATH
from .changing import (
    KEPT,
    KIND,
    NEW_ORDER,
    OLD_KEY,
    OLD_ORDER,
    OLD_PATH,
    OLDER,
    OPEN,
    PROVEN,
    ROW_NUMBER,
    MergeChanges,
    is_delete,
    is_update,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_ROLE = "_pyhudi_role"


def count(changes: MergeChanges) -> ChangedRows:
    """Return the counts of changed rows, made in one job or two, and refuse rows that one write cannot carry out.

    ``changes.decided_rows`` must be persisted. Raises `DuplicateKeyError` if a row would change in two ways or a key
    would have several rows, and `OlderRowError` if a new row is older than the row that it replaces.
    """
    changed_rows = _count_in_this_process(changes) if changes.is_few else None
    if changed_rows is None:
        row = _totals(_places(changes)).first()
        changed_rows = ChangedRows() if row is None else _changed_rows(row)
    check_changed_rows(changed_rows, changes.target.path)
    if changed_rows.unproven:
        _refuse_occupied_places(changes)
    return changed_rows


def _count_in_this_process(changes: MergeChanges) -> ChangedRows | None:
    """Return the counts of few rows, made in this process: Spark's shuffle takes longer than the rest of a small merge.

    None if rows must be compared by their ordering values, which only Spark does.
    """
    names = (_ROLE, KEY, PATH, ROW_NUMBER, OLDER, OPEN, PROVEN, "shifted")
    entries = _entries(changes).select(*names).toDF(*COLUMNS)
    return count_changes(entries.toArrow(), anywhere=changes.target.is_global)


def _entries(changes: MergeChanges) -> DataFrame:
    """Return what each row does, place by place: a row that moves has one entry at each of its two places.

    ``changes`` are the changed rows of a merge. The role of an entry is `STAYS` for an update in place, `GOES` for a
    delete, `COMES` for a row that enters the place, `LEAVES` for a row that moves away from it, and `UNCHANGED` for a
    row that no clause takes.
    """
    inserts = sf.col(KIND) == int(ClauseKind.INSERT)
    single_role = sf.when(is_update(), STAYS).when(is_delete(), GOES).when(inserts, COMES).otherwise(UNCHANGED)
    ordered = changes.orders
    nothing = sf.lit(None)
    # Under a global index, a row keeps its place when only its partition changes.
    shifted = is_update() & ~sf.col(PATH).eqNullSafe(sf.col(OLD_PATH))

    def entry(role: Column, *, comes: Column, goes: Column) -> list[Column]:
        """Return the columns of an entry.

        ``comes`` says whether it is about the row's new place, ``goes`` whether about the place of its old row.
        An entry's `PROVEN` says the contrary: that the row enters a place where the table may hold a row. Its `OPEN` is
        `KEPT` if the row does not enter.
        """
        left_open = sf.when(comes, sf.col(OPEN)).otherwise(sf.col(KEPT)) if changes.leaves_open else sf.lit(False)
        return [
            role.alias(_ROLE),
            sf.when(comes, sf.col(KEY)).otherwise(sf.col(OLD_KEY)).alias(KEY),
            sf.when(comes, sf.col(PATH)).otherwise(sf.col(OLD_PATH)).alias(PATH),
            sf.when(goes, sf.col(ROW_NUMBER)).alias(ROW_NUMBER),
            (sf.col(OLDER) if ordered else sf.lit(False)).alias(OLDER),
            left_open.alias(OPEN),
            (sf.when(comes, sf.col(NEW_ORDER)) if ordered else nothing).alias(NEW_ORDER),
            (sf.when(goes, sf.col(OLD_ORDER)) if ordered else nothing).alias(OLD_ORDER),
            (comes & ~sf.col(PROVEN)).alias(PROVEN),
            # The two entries of a row that moves count it already.
            (shifted if role is single_role else sf.lit(False)).alias("shifted"),
        ]

    single = entry(single_role, comes=inserts, goes=~inserts)
    if not changes.moves:
        return changes.decided_rows.select(*single)
    yes, no = sf.lit(True), sf.lit(False)
    leaves, comes = entry(sf.lit(LEAVES), comes=no, goes=yes), entry(sf.lit(COMES), comes=yes, goes=no)
    pair = sf.array(sf.struct(*leaves), sf.struct(*comes))
    exploded = sf.explode(sf.when(changes.leaves, pair).otherwise(sf.array(sf.struct(*single))))
    return changes.decided_rows.select(exploded.alias("entry")).select("entry.*")


def _places(changes: MergeChanges) -> DataFrame:
    """Return for each place what happens there, with the rows and values by which `_totals` finds conflicts.

    ``changes`` are the changed rows of a merge. A place is a key in a partition, or the key alone under a global index.
    """
    role = sf.col(_ROLE)
    counts = {"stays": STAYS, "goes": GOES, "leaves": LEAVES, "comes": COMES}
    # If the key alone is the place, an error names a partition, too.
    path = [] if PATH in changes.place else [sf.min(PATH).alias(PATH)]
    # OLDER compares a row that stays with its old version; `_totals` compares a row that enters with the replaced row.
    return (
        _entries(changes)
        .groupBy(*changes.place)
        .agg(
            *(sf.count_if(role == number).alias(name) for name, number in counts.items()),
            sf.min(ROW_NUMBER).alias("first_row"),
            sf.max(ROW_NUMBER).alias("last_row"),
            sf.max(sf.col(OLDER) & (role == STAYS)).alias(OLDER),
            sf.max(sf.col(OPEN) & (role == STAYS)).alias(KEPT),
            sf.max(sf.col(OPEN) & (role == COMES)).alias(OPEN),
            sf.max(NEW_ORDER).alias(NEW_ORDER),
            sf.max(OLD_ORDER).alias(OLD_ORDER),
            sf.count_if(PROVEN).alias("unproven"),
            sf.count_if("shifted").alias("shifted"),
            *path,
        )
    )


def _totals(places: DataFrame) -> DataFrame:
    """Return one row: the sums, and for each kind of conflict its first place as key and path; null if none has it.

    ``places`` is what `_places` returns.
    """
    # ``several``: a place has more than one change of its old row. ``twice``: it has several old rows. ``replaced``: a
    # row comes to it, and its old row goes or leaves.
    changes, goes = sf.col("stays") + sf.col("leaves"), sf.col("goes")
    several = (changes > 0) & (changes + goes > 1)
    twice = ~sf.col("first_row").eqNullSafe(sf.col("last_row"))
    replaced = (goes + sf.col("leaves") > 0) & (sf.col("comes") > 0)
    # Several rows of a source may delete one row of the table.
    deleted = sf.when(changes > 0, 0).when(twice, goes).otherwise(sf.least(goes, sf.lit(1)))
    conflicts = {
        "matched_often": several & ~twice,
        # If a row enters a place, the deletes there are left out, because the new row would replace all rows of it.
        "held_twice": (several | (sf.col("comes") > 0)) & twice,
        "crowded": sf.col("stays") + sf.col("comes") > 1,
        "keeps_old": sf.col(KEPT) | (replaced & sf.col(OPEN)),
        "older": sf.col(OLDER) | (replaced & sf.coalesce(sf.col(NEW_ORDER) < sf.col(OLD_ORDER), sf.lit(False))),
    }
    # The write refuses a row without a key, and names it.
    has_key = sf.col(KEY).isNotNull()
    return places.agg(
        *(sf.sum(name).alias(name) for name in ("stays", "leaves", "comes", "shifted")),
        sf.sum(deleted).alias("deleted"),
        sf.count_if(replaced).alias("replaced"),
        sf.count_if(goes > 1).alias("again"),
        sf.count_if(twice & (changes + goes > 0)).alias("copied"),
        sf.sum(sf.when(replaced, 0).otherwise(sf.col("unproven"))).alias("unproven"),
        *(sf.min(sf.when(found & has_key, sf.struct(KEY, PATH))).alias(name) for name, found in conflicts.items()),
    )


def _changed_rows(row: Row) -> ChangedRows:
    """Return the counts and the conflicts in the row that `_totals` made."""
    sums = ("stays", "leaves", "comes", "shifted", "deleted", "replaced", "unproven", "again", "copied")
    conflicts = {name: row[name] for name in ("matched_often", "held_twice", "crowded", "older", "keeps_old")}
    return ChangedRows.of(
        {name: int(row[name] or 0) for name in sums},
        {name: None if found is None else RowPlace(found[KEY], found[PATH] or "") for name, found in conflicts.items()},
    )


def _refuse_occupied_places(changes: MergeChanges) -> None:
    """Refuse a row that enters a place where the table holds a row that stays."""
    place_columns = changes.place
    leaves = changes.leaves
    comes = changes.rows.where(((sf.col(KIND) == int(ClauseKind.INSERT)) & ~sf.col(PROVEN)) | leaves)
    goes = changes.rows.where(is_delete() | leaves)
    # A row that moves may enter a place whose row is not among `stored_rows`.
    stored_rows = changes.target.rows if changes.stored_rows is None or changes.moves else changes.stored_rows
    stored_places = stored_rows.select(sf.col(RECORD_KEY).alias(KEY), sf.col(PARTITION_PATH).alias(PATH))
    left_places = goes.select(sf.col(OLD_KEY).alias(KEY), sf.col(OLD_PATH).alias(PATH)).select(*place_columns)
    occupied = (
        stored_places.join(comes.select(*place_columns), place_columns, "left_semi")
        .join(left_places, place_columns, "left_anti")
        .first()
    )
    if occupied is not None:
        raise held_elsewhere(RowPlace(occupied[KEY], occupied[PATH] or ""), changes.target.path)
