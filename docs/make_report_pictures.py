"""Makes the pictures that ``docs/report.md`` shows: ``make report-pictures``, with a Chromium on this machine."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from pyhudi.connector.jobs import command
from support.chromium import Chromium, find_chromium
from support.drive import write
from support.made.compacting import rows, run
from support.upkeep.meetings import MOR, QUIET, Scene

DOCS = Path(__file__).parent
CITIES = ("Bern", "Cairo", "Delhi", "Lima", "Oslo", "Quito", "Rome", "Seoul", "Tunis")
TABLE = replace(MOR, name="trips", bucket_count=12)
WRITES = 20


def make_table(path: Path) -> None:
    """Write a table with some history: skewed partitions, compactions, log files, and a writer that died."""
    for number in range(WRITES):
        count = 1200 if number == 0 else 30 + 17 * (number % 7)
        # The square makes some cities larger than others.
        cities = [CITIES[(n * n + number) % 23 % len(CITIES)] for n in range(count)]
        drawn = [(f"trip{n * 31 % 1200:05}", city, number, n) for n, city in enumerate(cities)]
        write(path, rows(*drawn), table=TABLE, settings=QUIET)
        if number in {6, 14}:
            run(path)
    Scene(path, ()).dead(("trip00031", "Rome", WRITES, 1))


def main() -> int:
    """Make both pictures; return the exit code."""
    if find_chromium() is None:
        sys.stderr.write("No Chromium is installed here.\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        path, page = Path(folder) / "trips", Path(folder) / "report.html"
        make_table(path)
        command(["report", str(path), "--output", str(page)])
        browser.show(page, width=1000, height=1500)
        (DOCS / "report.png").write_bytes(browser.picture())
        browser.show(page, width=1000, height=1200, dark=True)
        browser.ask('document.querySelector("[data-figure=heat]").parentElement.scrollIntoView()')
        (DOCS / "report-dark.png").write_bytes(browser.picture())
    return 0


if __name__ == "__main__":
    sys.exit(main())
