"""The index of one's own that docs/indexes.md shows, held to what every index has to do."""

from __future__ import annotations

import re
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from pyhudi.operations.indexing.changes import find_news
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.table import Table
from pyhudi.testing.outside_indexes import OutsideIndexContract
from support.drawn.lookups import APART, TABLE, rows
from support.drive import write
from support.seams import patch_seam

PAGE = Path(__file__).parents[2] / "docs" / "indexes.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# The modules that the page shows, by the names that they begin with.
SHOWN = {found[1]: block for block in BLOCKS if (found := re.match(r'"""(\w+)\.py', block))}


def module(name: str, text: str) -> ModuleType:
    """Return a module of that text, which entry points find by its name."""
    made = ModuleType(name)
    sys.modules[name] = made
    exec(compile(text, f"{PAGE}:{name}.py", "exec"), vars(made))  # noqa: S102
    return made


module("sqlite_index", SHOWN["sqlite_index"])
TestSqliteIndex: type[OutsideIndexContract] = module("test_sqlite_index", SHOWN["test_sqlite_index"]).TestSqliteIndex


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "spoilt", "test"),
    [
        (
            "if self._position(db, news.table) != news.since:",
            "if False:",
            "test_news_that_begin_elsewhere_change_nothing",
        ),
        ("if news.anew:", "if False:", "test_writes_that_were_rolled_back"),
        ("where file_groups.path = ?", "where ? > ''", "test_two_tables_of_one_index"),
        ("using (number, partition)", "using (number)", "test_a_key_in_another_partition"),
        ('"delete from keys where number = ?"', '"select ?"', "test_rows_are_inserted_updated_and_deleted"),
        (
            "copied=np.concatenate(found)[copies, 0], copy_codes=codes[copies].astype(np.int32)",
            "",
            "test_keys_that_inserts_added_twice",
        ),
        ('"insert or replace into positions values (?, ?)"', '"select ?, ?"', "test_a_commit_is_told_at_once"),
        (
            'db.execute("begin immediate")\n            yield db\n            db.execute("commit")',
            "yield db",
            "test_news_that_break_off_change_nothing",
        ),
        ("range(start, start + BATCH), keys", "range(0, BATCH), keys", "test_more_keys_than_are_asked_at_once"),
    ],
)
def test_the_contract_finds_what_is_wrong_with_an_index(line: str, spoilt: str, test: str) -> None:
    text = SHOWN["sqlite_index"]
    assert text.count(line) == 1
    module("spoilt_index", text.replace(line, spoilt))
    kind = type("TestSpoilt", (TestSqliteIndex,), {"entry_point": "spoilt_index:open_index"})
    result = unittest.TestResult()

    kind(test).run(result)

    assert result.testsRun == 1
    assert not result.wasSuccessful()


def test_all_file_groups_are_news_where_the_archive_tells_not_what_writes_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives = Upkeep(CleanSettings(commits=1), ArchiveSettings(min_commits=1, max_commits=1))
    settings = replace(APART, upkeep=archives)
    for number in range(7):
        write(tmp_path, rows(number, value=number), table=TABLE, settings=settings)
        if not number:
            storage = open_storage(str(tmp_path))
            config = load_config(storage)
            first = find_news(Table(storage, config), None)
            assert first is not None
            assert first.anew

    told = find_news(Table(storage, config), first.until)
    patch_seam(monkeypatch, "bodies that the archive holds", lambda *_: {})
    untold = find_news(Table(storage, config), first.until)

    assert told is not None
    assert untold is not None
    assert (told.anew, untold.anew) == (False, True)
    known = {file.group for file in told.groups}
    assert len({file.group for file in untold.groups} - known) == 1, "the first write's, which was known"
