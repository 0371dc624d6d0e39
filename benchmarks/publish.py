"""Put a run's results into the pages that show them: tables between markers, and the picture.

    python benchmarks/publish.py .bench/results.json

A table stands between ``<!-- bench: name -->`` and ``<!-- end -->``. Rows that the run did not measure stay as they
are, so that a run of some systems publishes those; whoever publishes it says on the page which rows are of which run.
A table of `WHOLE` is of one run: a run that measured all of its rows replaces it, and any other run leaves it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from backlog import BACKLOG, reads
from backlog import verdicts as verdicts_of_backlogs
from batches import BATCH, costs
from batches import verdicts as verdicts_of_batches
from figures.picture import draw
from figures.promises import verdicts
from figures.speed import speed
from figures.tables import bounds_of
from index_state import STATE, spared
from index_state import verdicts as verdicts_of_states
from indexes import INDEX, filters, groups, tagging
from joins import JOIN, joins
from kept_metadata import KEPT, kept_metadata
from kept_metadata import verdicts as verdicts_of_kept
from long_life import LIFE, lives
from many_files import MANY, many_files
from metadata import METADATA, metadata_tables
from metadata import verdicts as verdicts_of_metadata
from newest import NEWEST, newest
from phases.conditions import ROWS, conditions
from phases.few_merges import FEW, few_merges
from phases.few_merges import verdicts as verdicts_of_few_merges
from phases.limits import FLUSH, LIMIT
from phases.loads import TURNS
from phases.lookups import LOOKUP, lookups
from phases.rescaling import RESCALE, rescales
from phases.sizes import SIZE, sizes
from phases.sorting import ROWS as SORTED
from phases.sorting import sorting
from restart import RESTART, restarted
from restart import verdicts as verdicts_of_restarts
from run import ROOT, of, table
from streams import STREAM, sinks
from streams import verdicts as verdicts_of_streams
from without_spark import SMALL, WITHOUT, promises, small_writes, whole_tables
from writers import WRITERS, rates, refusals
from writers import verdicts as verdicts_of_writers

PAGES = ("README.md", "docs/performance.md")
WHOLE = ("speed",)
_TABLE = re.compile(r"(<!-- bench: ([a-z]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def tables(seconds: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return each table by the name that pages call it by."""
    others = (LIMIT, FLUSH, SIZE, LIFE, TURNS, INDEX, LOOKUP, NEWEST, MANY, ROWS, SORTED, WRITERS, STREAM, BATCH)
    others = (*others, BACKLOG, STATE, JOIN, RESCALE, RESTART, FEW, METADATA, KEPT, WITHOUT, SMALL)
    systems = {row: of_row for row, of_row in seconds.items() if not row.startswith(others)}
    return {
        "speed": speed(seconds),
        "systems": table(systems),
        "limits": table(of(LIMIT, seconds)),
        "flushing": table(of(FLUSH, seconds)),
        "loads": table(of(TURNS, seconds)),
        "promises": verdicts(seconds),
        "conditions": conditions(seconds),
        "few": few_merges(seconds),
        "fewer": verdicts_of_few_merges(seconds),
        "sorting": sorting(seconds) if of(SORTED, seconds) else "",
        "sizes": sizes(seconds) if of(SIZE, seconds) else "",
        "life": lives(seconds),
        "lookups": lookups(seconds),
        "tagging": tagging(seconds),
        "groups": groups(seconds),
        "newest": newest(seconds),
        "filters": filters(seconds),
        "many": many_files(seconds),
        "metadata": metadata_tables(seconds),
        "planned": verdicts_of_metadata(seconds),
        "kept": kept_metadata(seconds),
        "upheld": verdicts_of_kept(seconds),
        "without": whole_tables(seconds),
        "small": small_writes(seconds),
        "alone": bounds_of(promises(seconds)),
        "joins": joins(seconds),
        "rescales": rescales(seconds),
        "writers": rates(seconds),
        "refusals": refusals(seconds),
        "promised": verdicts_of_writers(seconds),
        "streams": sinks(seconds),
        "streamed": verdicts_of_streams(seconds),
        "batches": costs(seconds),
        "batched": verdicts_of_batches(seconds),
        "backlogs": reads(seconds),
        "caught": verdicts_of_backlogs(seconds),
        "known": spared(seconds),
        "spared": verdicts_of_states(seconds),
        "restarts": restarted(seconds),
        "restarted": verdicts_of_restarts(seconds),
    }


def rows_of(shown: str) -> dict[str, str]:
    """Return the lines of a table by their first cell, without its two lines of heading."""
    return {line.split("|")[1].strip(): line for line in shown.splitlines()[2:] if line.startswith("|")}


def renewed(old: str, new: str) -> str:
    """Return a table with the rows of a newer one in place of its own; what is new to it comes last."""
    rows, heading = rows_of(new), new.splitlines()[:2]
    if not rows:
        return old
    by_row = len(rows_of(old)) == len(old.splitlines()) - 2
    return "\n".join([*heading, *(rows_of(old) | rows).values(), ""]) if by_row and old.startswith(heading[0]) else new


def replaced(name: str, old: str, new: str) -> str:
    """Return a table of one run in place of an older one, or the older one if the run lacks some of its rows."""
    lacking = rows_of(old).keys() - rows_of(new).keys()
    if lacking:
        print(f"The table {name} stays as it is: this run did not measure {', '.join(sorted(lacking))}.")
    return old if lacking else new


def seconds_of(shown: str) -> dict[str, dict[str, float]]:
    """Return what a table of seconds shows, by row and phase."""
    phases = [cell.strip() for cell in shown.splitlines()[0].split("|")[2:-1]]
    cells = {row: [cell.strip() for cell in line.split("|")[2:-1]] for row, line in rows_of(shown).items()}
    return {
        row: {phase: float(cell) for phase, cell in zip(phases, of_row, strict=True) if cell != "–"}
        for row, of_row in cells.items()
    }


def main(results: Path) -> None:
    """Renew the tables of all pages, and draw the picture."""
    told = json.loads(results.read_text(encoding="utf-8"))
    made = tables(told["seconds"])

    def in_place(found: re.Match[str]) -> str:
        name, old = found[2], found[3]
        new = replaced(name, old, made[name]) if name in WHOLE else renewed(old, made[name])
        return found[1] + new + found[4]

    for name in PAGES:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        page.write_text(_TABLE.sub(in_place, text), encoding="utf-8")
    if not rows_of(made["systems"]):
        # The picture shows the systems alone.
        return
    shown = {found[2]: found[3] for found in _TABLE.finditer(page.read_text(encoding="utf-8"))}
    title = f"TPC-H lineitem, scale {told['scale']:g}, {told['machine']['cores']} cores"
    draw(seconds_of(shown["systems"]), title, ROOT / "docs" / "benchmark.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
