"""Tests of what an index does for a table, which the index's author inherits.

An example::

    class TestMyIndex(IndexContract, unittest.TestCase):
        index = "MY_INDEX"

        def own_options(self) -> Mapping[str, str]:
            return {"path": f"{self.folder}/keys.db"}

`unittest` and pytest both run them. Each test writes small tables of both table types through the index, in a folder of
its own, without Spark. An index that lives outside of the table inherits from `OutsideIndexContract` instead.
"""

from __future__ import annotations

import functools
import importlib.metadata
import random
import tempfile
import unittest
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa

from ..errors import CommitConflictError, NullKeyError
from ..index.base import NOT_FOUND, KeyedRows, LookupIndex
from ..index.registry import ENTRY_POINTS, index_for
from ..index.settings import FileSizes
from ..operations.result import CommitResult
from ..operations.write.instant import abort_write
from ..table.config import load_config
from ..table.files.names import FileGroupId
from ..timeline.writers.patience import Patience
from .tables import ROWS, DrivenTable, rows_of

TABLE_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
KEY, PARTITION, FILE = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"

Row = tuple[str, str, int, str]


class Model:
    """The rows that a table should hold.

    Args:
        is_global: Whether a key is unique in the whole table, and not in its partition only.
    """

    def __init__(self, *, is_global: bool) -> None:
        self.is_global = is_global
        self.rows: dict[tuple[str, ...], Row] = {}
        self.ever: set[str] = set()

    def upsert(self, *rows: Row) -> None:
        """Add or update rows: the greater ts wins, and the later row if both are the same.

        Args:
            rows: Values of id, p, ts and value.
        """
        for row in rows:
            self.ever.add(row[0])
            current = self.rows.get(self.name_of(row))
            if current is None or row[2] >= current[2]:
                self.rows[self.name_of(row)] = row

    def delete(self, *rows: Row) -> None:
        """Remove the rows of some keys.

        Args:
            rows: Rows with these keys; their other values do not matter.
        """
        for row in rows:
            self.rows.pop(self.name_of(row), None)

    def empty(self, *partitions: str) -> None:
        """Remove all rows of some partitions.

        Args:
            partitions: Partition paths.
        """
        self.rows = {name: row for name, row in self.rows.items() if row[1] not in partitions}

    def has(self, row: Row) -> bool:
        """Return whether the model holds the key of a row.

        Args:
            row: Values of id, p, ts and value.

        Returns:
            True if it does.
        """
        return self.name_of(row) in self.rows

    def name_of(self, row: tuple[Any, ...]) -> tuple[str, ...]:
        """Return what identifies a row: its key, and its partition unless the index is global.

        Args:
            row: At least the key and the partition path.

        Returns:
            The values that identify it.
        """
        return row[:1] if self.is_global else row[:2]


if TYPE_CHECKING:
    _Base = unittest.TestCase
else:
    _Base = object


class IndexContract(_Base):
    """Tests that every index has to pass.

    Attributes:
        index: The index's name, as ``hoodie.index.type`` has it.
        entry_point: Where the index is, as ``package.module:object``, if its package is not installed.
        folder: An empty folder of the test that runs.
    """

    index: str
    entry_point: str = ""
    folder: str

    def own_options(self) -> Mapping[str, str]:
        """Return the options of the index; the tests call it once a table.

        Returns:
            Options by their names after ``hoodie.pyhudi.index.``.
        """
        return {}

    def setUp(self) -> None:
        """Make the test's folder, and register the index if `entry_point` is set."""
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="pyhudi-")
        self.folder = folder.name
        self.addCleanup(folder.cleanup)
        if self.entry_point:
            offering = offered(self.index, self.entry_point)
            offering.__enter__()
            self.addCleanup(offering.__exit__, None, None, None)

    def tables(self, **terms: Any) -> Iterator[tuple[DrivenTable, Model]]:
        """Yield a new table of each table type, in a folder named after the type.

        Args:
            terms: Fields of the table's settings, which replace those of `DrivenTable.keyed`.

        Yields:
            The table, and the empty model of what it should hold.
        """
        for table_type in TABLE_TYPES:
            table = self.table(table_type.lower(), table_type=table_type, **terms)
            yield table, Model(is_global=self.index_of(table, made=False).is_global)

    def table(self, name: str, **terms: Any) -> DrivenTable:
        """Return a table that does not exist yet.

        Args:
            name: Its folder in the test's folder.
            terms: Fields of the table's settings, which replace those of `DrivenTable.keyed`.

        Returns:
            The table.
        """
        return DrivenTable.keyed(f"{self.folder}/{name}", self.index, self.own_options(), **terms)

    def index_of(self, table: DrivenTable, *, made: bool = True) -> Any:
        """Return a table's index, as a write opens it.

        Args:
            table: The table.
            made: Whether the table exists.

        Returns:
            The index.
        """
        config = load_config(table.storage) if made else table.plan(ROWS).config
        return index_for(config, table.settings.lookup)

    def check(self, table: DrivenTable, model: Model) -> None:
        """Compare the table's rows with the model, and each key's file group with what the index answers.

        Args:
            table: The table.
            model: What the table should hold.

        Raises:
            AssertionError: They differ.
        """
        table_rows = table.read()
        row_values = sorted(zip(*(table_rows.column(name).to_pylist() for name in ROWS.names), strict=True))
        self.assertEqual(row_values, sorted(model.rows.values()), table.path)
        index = self.index_of(table)
        if index.needs_lookup:
            self.check_tags(table, index, model)

    def check_tags(self, table: DrivenTable, index: LookupIndex, model: Model) -> None:
        """Look up every key of the table twice, and absent keys, and compare the answers with the rows.

        If a log file deletes a key that its base file holds, the index may still find the key.

        Args:
            table: The table.
            index: Its index.
            model: What the table should hold.

        Raises:
            AssertionError: An answer is wrong.
        """
        rows = table.read()
        keys, paths = rows.column(KEY).to_pylist(), rows.column(PARTITION).to_pylist()
        ids = [name.partition("_")[0] for name in rows.column(FILE).to_pylist()]
        group_by_name: dict[tuple[str, ...], FileGroupId] = {}
        for key, path, file_id in zip(keys, paths, ids, strict=True):
            group_by_name[model.name_of((key, path))] = FileGroupId(path, file_id)
        partitions = sorted({*paths, "x", "nowhere"})
        # Keys that the table lacks, and keys of the table with another partition path.
        strangers = [(f"{key}!", path) for key, path in zip(keys[:5], paths, strict=False)]
        elsewhere = [
            (key, partitions[(partitions.index(path) + 1) % len(partitions)])
            for key, path in zip(keys, paths, strict=True)
        ]
        pairs_to_look_up = [
            *zip(keys, paths, strict=True),
            *strangers,
            *elsewhere,
            ("!", "x"),
            *zip(keys, paths, strict=True),
        ]
        tags = index.tag(keyed(pairs_to_look_up), table.view(), table.storage)
        appends = table.terms.table_type == "MERGE_ON_READ"
        self.assertEqual(len(tags.codes), len(pairs_to_look_up))
        self.assertTrue(np.issubdtype(np.asarray(tags.codes).dtype, np.integer))
        answers: list[set[FileGroupId]] = [set() if code == NOT_FOUND else {tags.groups[code]} for code in tags.codes]
        # Further file groups that hold the key of a row.
        for row, code in zip(tags.copied, tags.copy_codes, strict=True):
            self.assertNotEqual(tags.codes[row], NOT_FOUND)
            answers[row].add(tags.groups[code])
        for (key, path), groups in zip(pairs_to_look_up, answers, strict=True):
            expected = group_by_name.get(model.name_of((key, path)))
            deleted_in_logs = groups - {expected} if appends and key in model.ever else set()
            self.assertTrue(index.is_global or {entry.partition_path for entry in deleted_in_logs} <= {path})
            self.assertEqual(
                groups - deleted_in_logs,
                set() if expected is None else {expected},
                f"where the key {key!r} of partition {path!r} of {table.path} is",
            )
        self.assertEqual(len(index.tag(keyed([]), table.view(), table.storage).codes), 0)

    def check_counts(self, table: DrivenTable, result: CommitResult, **counts: int) -> None:
        """Compare the counts in a write's result with the expected counts, unless the write appended without a lookup.

        Args:
            table: The table.
            result: What the write returned.
            counts: The expected values, by the names of `CommitResult`.

        Raises:
            AssertionError: A count differs.
        """
        if self.index_of(table).needs_lookup or table.terms.table_type == "COPY_ON_WRITE":
            self.assertEqual({name: getattr(result, name) for name in counts}, counts, table.path)

    def test_rows_are_inserted_updated_and_deleted(self) -> None:
        """The index finds keys where writes of several tasks put them, and no deleted keys."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "xyz"[number % 3], 1, "first") for number in range(40)]
            table.write(rows_of(*first_rows[:25]), rows_of(*first_rows[25:]))
            model.upsert(*first_rows)
            self.check(table, model)

            second = [(f"k{number}", "xyz"[number % 3], 2, "second") for number in range(0, 60, 3)]
            result = table.write(rows_of(*second[10:]), rows_of(*second[:10]))
            self.check_counts(table, result, inserts=6, updates=14)
            model.upsert(*second)
            self.check(table, model)

            deleted_rows = [(f"k{number}", "xyz"[number % 3], 3, "") for number in range(0, 80, 4)]
            present = sum(model.has(row) for row in deleted_rows)
            result = table.write(rows_of(*deleted_rows), operation="delete")
            self.check_counts(table, result, deletes=present, not_found=len(deleted_rows) - present)
            model.delete(*deleted_rows)
            self.check(table, model)

    def test_a_key_in_another_partition(self) -> None:
        """A row whose partition changed is a second row; with a global index it moves."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "x", 5, "first") for number in range(12)]
            table.write(rows_of(*first_rows))
            model.upsert(*first_rows)
            moved = [*((f"k{number}", "y", 6, "moved") for number in range(4)), ("k4", "y", 4, "late")]
            table.write(rows_of(*moved))
            model.upsert(*moved)
            self.check(table, model)

            deleted_rows = [("k0", "y", 7, ""), ("k1", "x", 7, ""), ("k9", "y", 7, "")]
            table.write(rows_of(*deleted_rows), operation="delete")
            model.delete(*deleted_rows)
            self.check(table, model)

    def test_a_key_several_times_in_one_batch(self) -> None:
        """Rows of one key are merged, whichever tasks write them, whether the table has the key or not."""
        for table, model in self.tables():
            for ts in (1, 2):
                parts = [[(f"k{n % 5}", "x", ts, f"{ts} {task} {n}") for n in range(15)] for task in range(3)]
                table.write(*(rows_of(*part) for part in parts))
                model.upsert(*(row for part in parts for row in part))
                self.check(table, model)

    def test_keys_that_inserts_added_twice(self) -> None:
        """A delete removes a key from every file group into which inserts without a lookup put it."""
        # Copy-on-write alone: log files meet one row of a key that a base file holds twice.
        table = self.table("copies")
        model = Model(is_global=self.index_of(table, made=False).is_global)
        for ts, small in ((1, 0), (2, 0), (3, 1 << 20)):
            lookup = replace(table.settings.lookup, sizes=FileSizes(small=small))
            rows = rows_of(("k1", "x", ts, "one"), (f"k{ts + 1}", "x", ts, "other"))
            table.write(rows, operation="insert", lookup=lookup)
        self.assertEqual(table.read().column("id").to_pylist().count("k1"), 3)
        table.write(rows_of(("k1", "x", 4, ""), ("k2", "x", 4, "")), operation="delete")
        model.upsert(("k3", "x", 2, "other"), ("k4", "x", 3, "other"))
        self.check(table, model)

    def test_replaced_file_groups(self) -> None:
        """Keys of overwritten or deleted file groups are inserts when they come again."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "xy"[number % 2], 1, "first") for number in range(20)]
            table.write(rows_of(*first_rows))
            table.write(rows_of(("k0", "x", 2, "over")), operation="insert_overwrite")
            model.upsert(*first_rows)
            model.empty("x")
            model.upsert(("k0", "x", 2, "over"))
            self.check(table, model)

            result = table.write(rows_of(*first_rows))
            self.check_counts(table, result, inserts=9)
            model.upsert(*first_rows)
            self.check(table, model)

            table.write(rows_of(*first_rows[:1]), operation="delete_partition")
            model.empty("x")
            table.write(rows_of(("k2", "x", 1, "again"), ("k3", "y", 2, "second")))
            model.upsert(("k2", "x", 1, "again"), ("k3", "y", 2, "second"))
            self.check(table, model)

            table.write(rows_of(("k1", "x", 1, "alone")), operation="insert_overwrite_table")
            model.empty("x", "y")
            model.upsert(("k1", "x", 1, "alone"))
            self.check(table, model)

    def test_failed_writes(self) -> None:
        """The index finds no key of a failed write, nor of a write whose process died."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "x", 1, "first") for number in range(6)]
            table.write(rows_of(*first_rows))
            model.upsert(*first_rows)
            again = [(f"k{number}", "x", 2, "failed") for number in range(3, 12)]
            for dies in (False, True):
                plan = table.plan(ROWS)
                table.task(plan, rows_of(*again), 0)
                if not dies:
                    abort_write(plan)
                self.check(table, model)
            patience = Patience(heartbeat_misses=0, eager=True)
            later = [(f"k{number}", "x", 3, "later") for number in range(4, 9)]
            table.write(rows_of(*later), patience=patience)
            model.upsert(*later)
            self.check(table, model)

    def test_an_empty_table(self) -> None:
        """The index finds no key in a table without rows, new or emptied."""
        for table, model in self.tables():
            rows = [(f"k{number}", "x", 1, "first") for number in range(4)]
            table.write(rows_of())
            self.check(table, model)
            table.write(rows_of(*rows), operation="delete")
            self.check(table, model)
            for ts in (1, 2):
                later = [(key, p, ts, value) for key, p, _, value in rows]
                table.write(rows_of(*later))
                model.upsert(*later)
                self.check(table, model)
                table.write(rows_of(*later), operation="delete")
                model.delete(*later)
                self.check(table, model)

    def test_log_files_and_their_compaction(self) -> None:
        """The index finds keys through updates and deletes in log files, and after their compaction."""
        table = self.table("logs", table_type="MERGE_ON_READ")
        model = Model(is_global=self.index_of(table, made=False).is_global)
        for ts in range(1, 6):
            rows = [(f"k{number % 9}", "xy"[number % 2], ts, f"{ts}") for number in range(ts, ts + 5)]
            rows = list({row[:1]: row for row in rows}.values())
            table.write(rows_of(*rows))
            model.upsert(*rows)
            deleted_rows = [(f"k{ts}", "xy"[ts % 2], ts, "")]
            table.write(rows_of(*deleted_rows), operation="delete")
            model.delete(*deleted_rows)
            self.check(table, model)

    def test_keys_of_all_kinds(self) -> None:
        """A key may be any text."""
        texts = [" ", "a:1,b:2", "é:日", "😀", "x" * 3000, "__null__", "0", "00", "k\n", "K", "k", "%20", "'; --"]
        for table, model in self.tables():
            for ts in (1, 2):
                rows = [(text, "x", ts, f"{number}") for number, text in enumerate(texts)]
                table.write(rows_of(*rows))
                model.upsert(*rows)
                self.check(table, model)

    def test_more_keys_than_are_asked_at_once(self) -> None:
        """The answers match their keys when a write looks up more keys than fit into one request."""
        table = self.table("many")
        model = Model(is_global=self.index_of(table, made=False).is_global)
        rows = [(f"k{number * 7919 % 12_000}", "xyz"[number % 3], 1, "first") for number in range(12_000)]
        table.write(rows_of(*rows[:8_000]))
        result = table.write(rows_of(*rows))
        self.check_counts(table, result, inserts=4_000, updates=8_000)
        model.upsert(*rows)
        self.check(table, model)

    def test_nulls_are_refused(self) -> None:
        """A write refuses a row without a key, and the index does not change."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "x", 1, "first") for number in range(4)]
            table.write(rows_of(*first_rows))
            model.upsert(*first_rows)
            with self.assertRaises(NullKeyError):
                table.write(rows_of(("k9", "x", 1, "new"), (None, "x", 1, "nobody")))
            self.check(table, model)

    def test_two_writers_of_one_new_key(self) -> None:
        """Of two concurrent writes that insert one new key, one fails, whichever opened a file group for it first."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "x", 1, "first") for number in range(4)]
            table.write(rows_of(*first_rows))
            model.upsert(*first_rows)
            ours, theirs = ("new", "x", 2, "ours"), ("new", "x", 2, "theirs")
            plan = table.plan(ROWS)
            table.write(rows_of(theirs))
            with self.assertRaises(CommitConflictError):
                table.commit(plan, [rows_of(ours)])
            model.upsert(theirs)
            self.check(table, model)
            table.write(rows_of(ours))
            model.upsert(ours)
            self.check(table, model)

    def test_a_long_life(self) -> None:
        """After each of many random writes, the table and the index agree."""
        for table, model in self.tables():
            chance = random.Random(7)  # noqa: S311 (the same writes each time)
            for ts in range(1, 8):
                names = [f"k{chance.randrange(60)}" for _ in range(chance.randrange(1, 20))]
                rows = [(name, chance.choice("xyz"), ts, f"{ts}") for name in dict.fromkeys(names)]
                if chance.random() < 0.3:
                    table.write(rows_of(*rows), operation="delete")
                    model.delete(*rows)
                else:
                    table.write(*(rows_of(*rows[start::2]) for start in range(min(2, len(rows)))))
                    model.upsert(*rows)
                self.check(table, model)


def keyed(rows: list[tuple[str, str]]) -> KeyedRows:
    """Return keys and partition paths in the form in which a write passes them to an index.

    Args:
        rows: Pairs of a record key and a partition path.

    Returns:
        The same rows, in columns.
    """
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    codes = [numbers[path] for _, path in rows]
    paths = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(list(numbers), pa.string()))
    return KeyedRows(pa.array([key for key, _ in rows], pa.string()), paths)


@contextmanager
def offered(index: str, entry_point: str) -> Iterator[None]:
    """Register an index in this process, as the installed package that offers it would do.

    Args:
        index: Its name.
        entry_point: Where the index is, as ``package.module:object``.

    Yields:
        Nothing; the registration ends with the context.
    """
    # Installed packages do not change meanwhile, and each look at them reads a file of each package.
    installed = functools.cache(importlib.metadata.entry_points)

    def with_ours(**wanted: Any) -> EntryPoints:
        ours = EntryPoints([EntryPoint(index, entry_point, ENTRY_POINTS)])
        return EntryPoints([*installed(**wanted), *ours.select(**wanted)])

    with mock.patch("importlib.metadata.entry_points", with_ours):
        yield
