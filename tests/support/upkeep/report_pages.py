"""Pages of reports for tests, and a table whose texts would become markup."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pyhudi.operations.report.figures import ReportFigures
from pyhudi.operations.report.gather import ReportTerms, gather
from pyhudi.operations.report.page import make_page
from pyhudi.operations.service_settings import Upkeep
from pyhudi.storage import open_storage
from pyhudi.timeline.metadata import models
from pyhudi.timeline.writers.patience import Patience
from support.drive import write
from support.made.compacting import rows
from support.sick.spoiling import LONG_AGO_DONE, body, commits, put, time_of
from support.upkeep.meetings import COW, QUIET

TARGET = 120 << 20
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u2028&quot;\"'\u202e"


def figures_of(path: Path, *, deep: bool = False) -> ReportFigures:
    """Return the figures of a table's report."""
    return gather(open_storage(str(path)), ReportTerms(Upkeep(), Patience(), TARGET, deep))


def page_of(path: Path) -> str:
    """Return the page of a table's report, whose commands only name their service."""
    return make_page(figures_of(path), lambda need: f"pyhudi {need.service}")


def hostile_table(path: Path) -> None:
    """Make a table whose partition, name, comments, phases and met writes are hostile."""
    partition = "<img src=x onerror=alert(3)>\x1b\"'&amp;"
    extra = {"pyhudi.seconds": json.dumps({HOSTILE: 1.5}), "pyhudi.met": json.dumps([HOSTILE])}
    table = replace(COW, name=HOSTILE.replace("/", "").replace("\u2028", ""))
    write(path, rows(("k1", partition, 1, 1)), table=table, settings=QUIET)
    body(lambda record: record["extraMetadata"].update(extra))(path)
    kept = models.SavepointMetadata(savepointed_by=HOSTILE, savepointed_at=0, comments=HOSTILE, partition_metadata={})
    put(f"{time_of(commits(path)[-1])}_{LONG_AGO_DONE}.savepoint", kept)(path)
