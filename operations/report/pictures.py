"""The sections of a report that have pictures; the marks of each picture are drawn from the rows of its table."""

from __future__ import annotations

import math

from ..words.text import size_text
from . import svg
from .escaping import in_html, shown
from .figures import ReportFigures
from .sections import figure, moment, section, table
from .svg import Bar, Cell, TimeBar, Unit
from .time_bars import MOST_BARS, MOST_DAYS


def timeline_section(figures: ReportFigures) -> str:
    """Return the HTML section that shows the newest instants as bars in time."""
    spans = [
        TimeBar(bar.action, bar.began_ms, figures.at_ms if bar.ended_ms is None else bar.ended_ms, bar.ended_ms is None)
        for bar in figures.bars
    ]
    rows = (
        (bar.instant, bar.action, bar.state, moment(bar.began_ms), bar.ended_ms and moment(bar.ended_ms), bar.seconds)
        for bar in figures.bars
    )
    left_out = f" {figures.untimed:,} of them have a name that is no time, and no bar." if figures.untimed else ""
    return section(
        "Timeline",
        f"The newest {MOST_BARS} instants, or all if there are fewer, from their request to their completion. A "
        f"dashed bar is pending.{left_out}",
        figure(
            [svg.lanes(spans, lambda at_ms: moment(at_ms)[:19]).svg("Instants in time")],
            table(("instant", "action", "state", "requested", "completed", "seconds"), rows),
            kind="timeline",
        ),
    )


def older_instants_section(figures: ReportFigures) -> str:
    """Return the HTML section that counts the older instants of each day; empty without older instants."""
    if not figures.older:
        return ""
    bars = [Bar(day.day, (day.instants,)) for day in figures.older]
    earlier = f" {figures.before:,} instants are of still older days." if figures.before else ""
    return section(
        "Older instants by day",
        f"By the day of their request in the table's time zone, the newest of at most {MOST_DAYS} days first.{earlier}",
        figure(
            [svg.columns(bars, Unit.COUNT).svg("Older instants by day")],
            table(("day", "instants"), ((day.day, day.instants) for day in figures.older)),
            kind="older",
        ),
    )


def space_section(figures: ReportFigures) -> str:
    """Return the HTML section that shows the live and dead bytes after each write."""
    bars = [Bar(point.instant, (point.live_bytes, point.dead_bytes)) for point in figures.space]
    rows = ((point.instant, moment(point.at_ms), point.live_bytes, point.dead_bytes) for point in figures.space)
    return section(
        "Live and dead bytes over time",
        "Of the files that exist now: how many bytes were live, and how many were dead, when each write of the "
        "active timeline completed, the oldest first. Files that a clean has deleted are not counted.",
        figure(
            [svg.columns(bars, Unit.BYTES).svg("Live and dead bytes after each write")],
            table(("write", "completed", "live bytes", "dead bytes"), rows),
            '<span class="key k0"></span>live<span class="key k1"></span>dead',
            kind="space",
        ),
    )


def file_sizes_section(figures: ReportFigures) -> str:
    """Return the HTML section that counts base files by size, with a line at the size up to which writes fill them.

    Without any base file the picture has neither bars nor the line.
    """
    bars = [Bar(f"{size_text(each.least)}+", (each.files,)) for each in figures.size_bins]
    target, line = max(figures.target_bytes, 1), None
    if figures.size_bins:
        # Each bar stands for a power of two, so the line's place among them is a logarithm.
        first_power = math.log2(max(figures.size_bins[0].below // 2, 1))
        line = (math.log2(target) - first_power, f"target {size_text(target)}")
    outside = (
        " The target lies outside of the picture, beyond the edge at which it is drawn."
        if line is not None and not 0 <= line[0] <= len(bars)
        else ""
    )
    rows = ((each.least, each.below, each.files, each.bytes) for each in figures.size_bins)
    return section(
        "File sizes",
        f"Base files that a snapshot reads, by size. The target is {size_text(target)} ({target:,} bytes), by the "
        f"option <code>hoodie.parquet.max.file.size</code>.{outside}",
        figure(
            [svg.columns(bars, Unit.COUNT, line).svg("Base files by size")],
            table(("bytes from", "to below", "files", "bytes together"), rows),
            kind="sizes",
        ),
    )


def heat_section(figures: ReportFigures) -> str:
    """Return the HTML section with two grids of shaded cells: the bytes and the rows of file groups.

    A cell has the file groups of a partition and a bucket.
    """
    grid, pictures = figures.heat, []
    column = "bucket" if grid.of_buckets else "file group of the partition"
    for quantity in ("bytes", "rows"):
        cells = [Cell(each.row, each.column, getattr(each, quantity)) for each in grid.cells]
        drawing = svg.cells(len(grid.rows), len(grid.columns), cells)
        pictures.append(_legend(quantity, svg.greatest(cells)) + drawing.svg(f"{quantity} by partition and {column}"))
    shared = (
        f" {grid.partitions:,} partitions share {len(grid.rows):,} rows, {grid.numbers:,} {column}s share "
        f"{len(grid.columns):,} columns: neighbours are added up."
        if len(grid.rows) < grid.partitions or len(grid.columns) < grid.numbers
        else ""
    )
    unknown = (
        f" The rows of {figures.unknown_rows:,} file groups are unknown: the groups have log files, or the commit that "
        "states the rows is archived or was not opened. Their cells are dashed."
        if figures.unknown_rows
        else ""
    )
    return section(
        f"Bytes and rows by partition and {column}",
        f"Of the newest file slices, log files included. Each row is a partition by its number in the table "
        f"below, each column a {column}.{shared}{unknown}",
        figure(pictures, _heat_table(figures, column), kind="heat"),
    )


def _legend(quantity: str, most: float) -> str:
    """Return the HTML line above a grid that says which shade means how much; ``most`` is the greatest value."""
    text = (Unit.BYTES if quantity == "bytes" else Unit.COUNT).text
    steps = svg.STEPS - 1
    keys = [("s0", "0")]
    if most:
        keys += [(f"s{step}", f"to {text(most * step / steps)}") for step in range(1, steps + 1)]
    items = (f'<span class="item"><span class="key {kind}"></span>{words}</span>' for kind, words in keys)
    unknown = '<span class="item"><span class="key ku"></span>unknown</span>'
    return f'<p class="soft">{quantity}: {" ".join(items)} {unknown}</p>'


def _heat_table(figures: ReportFigures, column: str) -> str:
    """Return the HTML table beneath the grids, in which a partition has one head for all its rows.

    ``column`` says in words what a column of a grid shows.
    """
    grid = figures.heat
    by_row: dict[int, list[str]] = {}
    for each in grid.cells:
        # The table's class, and not each cell, says that cells are numbers: there may be three thousand rows.
        rows = "-" if each.rows is None else f"{each.rows:,}"
        cells = (
            f"<td>{grid.columns[each.column]}</td><td>{each.file_groups:,}</td><td>{each.bytes:,}</td><td>{rows}</td>"
        )
        by_row.setdefault(each.row, []).append(cells)
    body = "".join(
        f'<tr><th rowspan="{len(lines)}">{row + 1}. {shown(grid.rows[row]) or "(no partition)"}</th>{lines[0]}</tr>'
        + "".join(f"<tr>{line}</tr>" for line in lines[1:])
        for row, lines in by_row.items()
    )
    heads = "".join(f"<th>{in_html(name)}</th>" for name in ("partition", column, "file groups", "bytes", "rows"))
    return f'<div class="scroll"><table class="all"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def debt_section(figures: ReportFigures) -> str:
    """Return the HTML section of the file groups with most bytes of log files; empty if none has log files."""
    if not figures.debt_groups:
        return ""
    bars = [Bar(f"{each.partition} {each.file_id}".strip(), (each.base_bytes, each.log_bytes)) for each in figures.debt]
    rows = ((each.partition, each.file_id, each.base_bytes, each.log_bytes, each.log_files) for each in figures.debt)
    return section(
        "Compaction debt",
        f"{figures.debt_groups:,} file groups have log files, of {size_text(figures.debt_bytes)} "
        f"({figures.debt_bytes:,} bytes); {figures.delta_commits:,} delta commits since the last compaction. These are "
        f"the {len(figures.debt):,} with most.",
        figure(
            [svg.rows(bars, Unit.BYTES).svg("Bytes of base and log files")],
            table(("partition", "file group", "base bytes", "log bytes", "log files"), rows),
            '<span class="key k0"></span>base file<span class="key k1"></span>log files',
            kind="debt",
        ),
    )


def overlap_section(figures: ReportFigures) -> str:
    """Return the HTML section that says with how many others the key ranges of base files overlap.

    A file has no sure range if its footer gives none, or bounds that Apache Hudi's writers may order differently.
    """
    overlaps = figures.overlap
    bars = [Bar(_range_text(each.least, each.most), (each.files,)) for each in overlaps.bins]
    sampled = (
        f"sample of {overlaps.sampled:,} of {overlaps.base_files:,} base files: whole partitions at equal distances; "
        "<code>--deep</code> reads all footers"
        if overlaps.sampled < overlaps.base_files
        else f"the footers of all {overlaps.base_files:,} base files"
    )
    lacking = "".join(
        f" {count:,} {words}."
        for count, words in ((overlaps.without_range, "have no sure range"), (overlaps.unreadable, "could not be read"))
        if count
    )
    return section(
        "Overlap of key ranges",
        f"With how many other files of its partition a base file shares a range of record keys ({sampled}).{lacking} "
        "If ranges overlap, an index that looks keys up has to look into several files.",
        figure(
            [svg.columns(bars, Unit.COUNT).svg("Base files by overlaps")],
            table(("overlaps from", "to", "files"), ((each.least, each.most, each.files) for each in overlaps.bins)),
            kind="overlap",
        ),
    )


def phases_section(figures: ReportFigures) -> str:
    """Return the HTML section of the seconds of commits by phase; it is a sentence if no commit recorded any."""
    if not figures.phases:
        text = f"None of the newest {figures.bodies:,} completed writes recorded seconds by phase: only pyhudi's do."
        return section("Commit seconds by phase", text)
    bars = [Bar(each.phase, (max(each.seconds, 0.0),)) for each in figures.phases]
    rows = ((each.phase, each.commits, float(each.seconds), float(each.most)) for each in figures.phases)
    return section(
        "Commit seconds by phase",
        f"As {figures.timed:,} of the newest {figures.bodies:,} completed writes recorded them, added up. Phases of "
        "tasks (<code>tasks.</code>) are sums over tasks that may have run at the same time.",
        figure(
            [svg.rows(bars, Unit.SECONDS).svg("Seconds by phase")],
            table(("phase", "commits", "seconds", "most of a commit"), rows),
            kind="phases",
        ),
    )


def attempts_section(figures: ReportFigures) -> str:
    """Return the HTML section of how many attempts commits took, and which waited; empty if no commit was read."""
    if not figures.attempts:
        return ""
    bars = [Bar(f"{each.attempts:,}", (each.commits,)) for each in figures.attempts]
    waits = table(
        ("write", "attempts", "seconds waited", "waited for the writes"),
        ((each.instant, each.attempts, each.seconds, ", ".join(each.met)) for each in figures.waits),
    )
    return section(
        "Attempts and waits of writers",
        f"How many attempts the newest {figures.bodies:,} completed writes took, as they recorded. Writers that record "
        "none, such as Apache Hudi's, count as a single attempt.",
        figure(
            [svg.columns(bars, Unit.COUNT).svg("Commits by attempts")],
            table(("attempts", "commits"), ((each.attempts, each.commits) for each in figures.attempts)),
            kind="attempts",
        ),
        f'<p>The newest writes that took several attempts, or waited:</p><div id="waits">{waits}</div>'
        if figures.waits
        else "<p>None of them met another write.</p>",
    )


def _range_text(least: int, most: int) -> str:
    """Return a range of numbers in words; a single number if both ends are equal."""
    return f"{least}" if least == most else f"{least}–{most}"
