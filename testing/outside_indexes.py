"""Further tests for an index that lives outside of its tables, which the index's author inherits."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pyarrow as pa

from ..index.base import GroupKeys
from ..index.outside import News
from ..operations.indexing.changes import find_news
from ..operations.indexing.notify import tell
from ..operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from ..operations.services.restore import restore
from ..operations.services.rollback import rollback
from ..table.files.names import FileGroupId
from ..table.table import open_table
from .indexes import IndexContract, Model, Row
from .tables import DrivenTable, rows_of

# The function by which a write notifies the index of its commit; without it the next write does.
TELLING = "pyhudi.operations.write.after_commit.tell"


class OutsideIndexContract(IndexContract):
    """Tests that every index has to pass that keeps its state outside of its tables.

    A test may give two tables the same options.
    """

    def test_a_commit_is_told_at_once(self) -> None:
        """The index knows a commit as soon as the write returns, and the same news again change nothing."""
        for table, model in self.tables():
            for ts in (1, 2):
                rows = [(f"k{number}", "xy"[number % 2], ts, f"{ts}") for number in range(ts, 12)]
                table.write(rows_of(*rows))
                model.upsert(*rows)
            index = self.index_of(table)
            position = index.position(table.path)
            self.assertIsNotNone(position)
            self.assertIsNone(find_news(open_table(table.storage), position))

            stale = find_news(open_table(table.storage), None)
            self.assertFalse(stale is not None and index.committed(stale))
            self.assertEqual(index.position(table.path), position)
            self.check(table, model)

    def _begun(self, table: DrivenTable, model: Model) -> tuple[Any, Any]:
        """Write a first time, and return the index of the table with its position."""
        rows = [(f"k{number}", "x", 1, "first") for number in range(6)]
        table.write(rows_of(*rows))
        model.upsert(*rows)
        index = self.index_of(table)
        return index, index.position(table.path)

    def test_news_that_begin_elsewhere_change_nothing(self) -> None:
        """The index ignores news that do not begin at its position."""
        for table, model in self.tables():
            index, position = self._begun(table, model)
            unknown_keys = [GroupKeys(FileGroupId("x", "nobody-0"), pa.array(["k1", "k99"]))]
            for anew in (False, True):
                news = News(table.path, "another moment", "later", anew=anew, undone=(), groups=unknown_keys)
                self.assertFalse(index.committed(news))
                self.assertFalse(index.rolled_back(news))
            self.assertEqual(index.position(table.path), position)
            self.check(table, model)

    def test_news_that_break_off_change_nothing(self) -> None:
        """If reading a file fails half-way, the index keeps nothing of what it read before."""
        for table, model in self.tables():
            index, position = self._begun(table, model)

            def groups() -> Iterator[GroupKeys]:
                yield GroupKeys(FileGroupId("x", "nobody-0"), pa.array(["k1", "k99"]))
                raise OSError("the disk is gone")

            for anew in (False, True):
                news = News(table.path, position, "later", anew=anew, undone=(), groups=groups())
                with self.assertRaisesRegex(OSError, "the disk is gone"):
                    index.committed(news)
            self.assertEqual(index.position(table.path), position)
            self.check(table, model)

    def test_writes_that_nobody_told_of_are_caught_up_with(self) -> None:
        """Before the next lookup the index learns of inserts, deletes and overwrites by other writers."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "xy"[number % 2], 1, "first") for number in range(20)]
            more_rows = [(f"k{number}", "xyz"[number % 3], 2, "more") for number in range(15, 30)]
            overwriting_rows = [("k3", "y", 3, "over"), ("k50", "y", 3, "over")]
            last_rows = [(f"k{number}", "xyz"[number % 3], 4, "last") for number in range(0, 60, 2)]
            table.write(rows_of(*first_rows))
            model.upsert(*first_rows)
            with mock.patch(TELLING):
                table.write(rows_of(*more_rows))
                model.upsert(*more_rows)
                table.write(rows_of(*first_rows[:5]), operation="delete")
                model.delete(*first_rows[:5])
                table.write(rows_of(*overwriting_rows), operation="insert_overwrite")
                model.empty("y")
                model.upsert(*overwriting_rows)
            table.write(rows_of(*last_rows))
            model.upsert(*last_rows)
            self.check(table, model)

    def test_writes_that_were_archived_meanwhile_are_caught_up_with(self) -> None:
        """The index learns of writes that left the table's timeline before they reached it."""
        archives = Upkeep(CleanSettings(commits=1), ArchiveSettings(min_commits=2, max_commits=3, delta_commits=None))
        for table, model in self.tables():
            for ts in range(1, 8):
                rows = [(f"k{number}", "xy"[number % 2], ts, f"{ts}") for number in range(ts, ts + 4)]
                if ts in {1, 7}:
                    table.write(rows_of(*rows), upkeep=archives)
                else:
                    with mock.patch(TELLING):
                        table.write(rows_of(*rows), operation="insert_overwrite", upkeep=archives)
                    model.empty("x", "y")
                model.upsert(*rows)
            self.assertLess(len(open_table(table.storage).timeline().writes), 6)
            self.check(table, model)

    def test_an_index_that_fails_after_a_commit_fails_no_write(self) -> None:
        """If the index fails after a commit, the commit counts, and the next write gives the index both."""
        for table, model in self.tables():
            index_class = type(self.index_of(table, made=False))
            for ts, fails in ((1, False), (2, True), (3, False)):
                rows = [(f"k{number}", "x", ts, f"{ts}") for number in range(ts, ts + 5)]
                if fails:
                    with mock.patch(TELLING, self._notify_failing(index_class)):
                        table.write(rows_of(*rows))
                else:
                    table.write(rows_of(*rows))
                model.upsert(*rows)
            self.check(table, model)

    def _notify_failing(self, index_class: type) -> Callable[..., None]:
        """Return what tells an index of a commit, during which the index fails."""

        def fails(*arguments: Any) -> None:
            with mock.patch.object(index_class, "committed", side_effect=OSError("the database is away")):
                tell(*arguments)

        return fails

    def test_writes_that_were_rolled_back(self) -> None:
        """The index gets the instants that rollbacks removed, and forgets their keys."""
        for table, model in self.tables():
            self._undo_two(table, model, restores=False)

    def test_writes_that_were_restored_from(self) -> None:
        """The index gets the instants that a restore removed, and forgets their keys."""
        for table, model in self.tables():
            self._undo_two(table, model, restores=True)

    def _undo_two(self, table: DrivenTable, model: Model, *, restores: bool) -> None:
        """Undo two writes of ``table``, and check that the index learns of both and forgets their keys.

        ``restores`` says that a restore undoes them, not a rollback each. ``model`` has the rows that should remain.
        """
        first_rows = [(f"k{number}", "xy"[number % 2], 1, "first") for number in range(8)]
        first_instant = table.write(rows_of(*first_rows)).instant
        model.upsert(*first_rows)
        undone = [
            table.write(rows_of(("k0", "x", 2, "undone"), ("k20", "x", 2, "undone"))).instant,
            table.write(rows_of(("k20", "x", 3, "undone"), ("k30", "z", 2, "undone"))).instant,
        ]
        if restores:
            restore(table.storage, first_instant)
        else:
            for instant in reversed(undone):
                rollback(table.storage, instant)
        last_rows = [("k20", "x", 1, "new"), ("k30", "z", 1, "new"), ("k0", "x", 1, "again")]
        index_class = type(self.index_of(table))
        with mock.patch.object(
            index_class, "rolled_back", autospec=True, side_effect=index_class.rolled_back
        ) as rolled_back_calls:
            result = table.write(rows_of(*last_rows))
        self.assertEqual([call.args[1].undone for call in rolled_back_calls.call_args_list], [tuple(undone)])
        self.check_counts(table, result, inserts=2, updates=1)
        model.upsert(*last_rows)
        self.check(table, model)

    def test_a_table_that_is_made_anew(self) -> None:
        """The index forgets a deleted table, even if a new table takes its place."""
        for table, model in self.tables():
            first_rows = [(f"k{number}", "x", 1, "first") for number in range(8)]
            table.write(rows_of(*first_rows))
            shutil.rmtree(table.path)
            second_rows = [(f"k{number}", "x", 1, "second") for number in range(4, 12)]
            result = table.write(rows_of(*second_rows))
            self.check_counts(table, result, inserts=8, updates=0)
            model.upsert(*second_rows)
            self.check(table, model)

    def test_two_tables_of_one_index(self) -> None:
        """The index keeps the keys of two tables apart."""
        for table, model in self.tables():
            other_table = DrivenTable(f"{table.path}_2", table.terms, table.settings)
            other_model = type(model)(is_global=model.is_global)
            for ts in (1, 2):
                rows_of_table = [(f"k{number}", "x", ts, "ours") for number in range(8)]
                table.write(rows_of(*rows_of_table))
                model.upsert(*rows_of_table)
                rows_of_other: list[Row] = [(f"k{number}", "x", ts, "theirs") for number in range(4, 12)]
                other_table.write(rows_of(*rows_of_other))
                other_model.upsert(*rows_of_other)
            self.check(table, model)
            self.check(other_table, other_model)
