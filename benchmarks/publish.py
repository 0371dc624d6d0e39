"""Put a run's results into the pages that show them: tables between markers, and the picture.

    python benchmarks/publish.py .bench/results.json

A table stands between ``<!-- bench: name -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from figures.picture import draw
from figures.promises import verdicts
from indexes import INDEX, filters, groups, tagging
from long_life import LIFE, lives
from many_files import MANY, many_files
from phases.conditions import ROWS, conditions
from phases.limits import FLUSH, LIMIT
from phases.loads import TURNS
from phases.lookups import LOOKUP, lookups
from phases.sizes import SIZE, sizes
from run import ROOT, of, table

PAGES = ("README.md", "docs/performance.md")
_TABLE = re.compile(r"(<!-- bench: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def tables(seconds: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return each table by the name that pages call it by."""
    others = (LIMIT, FLUSH, SIZE, LIFE, TURNS, INDEX, LOOKUP, MANY, ROWS)
    systems = {row: of_row for row, of_row in seconds.items() if not row.startswith(others)}
    return {
        "systems": table(systems),
        "limits": table(of(LIMIT, seconds)),
        "flushing": table(of(FLUSH, seconds)),
        "loads": table(of(TURNS, seconds)),
        "promises": verdicts(seconds),
        "conditions": conditions(seconds),
        "sizes": sizes(seconds),
        "life": lives(seconds),
        "lookups": lookups(seconds),
        "tagging": tagging(seconds),
        "groups": groups(seconds),
        "filters": filters(seconds),
        "many": many_files(seconds),
    }


def main(results: Path) -> None:
    """Rewrite the tables of all pages, and draw the picture."""
    made = tables(json.loads(results.read_text(encoding="utf-8"))["seconds"])
    for name in PAGES:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        page.write_text(_TABLE.sub(lambda found: found[1] + made[found[2]] + found[3], text), encoding="utf-8")
    draw(results, ROOT / "docs" / "benchmark.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
