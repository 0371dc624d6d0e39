"""The page of a report: one HTML file with all sections, which needs no other file and no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from ...version import VERSION
from ..state.needs import Need
from ..words.text import size_text
from .escaping import in_html, json_in_html, shown
from .figures import ReportFigures
from .pictures import (
    attempts_section,
    debt_section,
    file_sizes_section,
    heat_section,
    older_instants_section,
    overlap_section,
    phases_section,
    space_section,
    timeline_section,
)
from .sections import moment, section, table
from .style import SCRIPT, STYLE, content_policy

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="pyhudi {version}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
<div id="tip" role="status" hidden></div>
<script type="application/json" id="figures">{figures}</script>
<script>{script}</script>
</body>
</html>
"""


def make_page(figures: ReportFigures, command_of: Callable[[Need], str]) -> str:
    """Return the page of a table's figures; ``command_of`` returns the command line for a need of the table.

    The page is one HTML document, with the figures as JSON in it. A need is a service that has work to do; an offer,
    such as an upgrade, may be done though nothing waits for it.
    """
    commands = [command_of(need) for need in figures.needs]
    offered = [command_of(offer) for offer in figures.offers]
    sections = (
        _facts_list(figures),
        _problems_section(figures),
        _needs_section(figures, commands),
        _offers_section(figures, offered),
        timeline_section(figures),
        older_instants_section(figures),
        space_section(figures),
        file_sizes_section(figures),
        heat_section(figures),
        debt_section(figures),
        overlap_section(figures),
        phases_section(figures),
        attempts_section(figures),
        _metadata_section(figures),
        _savepoints_section(figures),
    )
    return _PAGE.format(
        policy=in_html(content_policy()),
        version=VERSION,
        title=f"{shown(figures.name)}: report",
        style=STYLE,
        body="\n".join(text for text in sections if text),
        figures=json_in_html(_as_data(figures, commands, offered)),
        script=SCRIPT,
    )


def _as_data(figures: ReportFigures, commands: Sequence[str], offered: Sequence[str]) -> dict[str, object]:
    """Return the figures as the page's script and other programs read them: cells as lists, needs with commands."""
    data = asdict(figures)
    data["heat"]["cells"] = [
        [cell.row, cell.column, cell.file_groups, cell.bytes, cell.rows] for cell in figures.heat.cells
    ]
    for name, needs, lines in (("needs", figures.needs, commands), ("offers", figures.offers, offered)):
        data[name] = [{**asdict(need), "command": command} for need, command in zip(needs, lines, strict=True)]
    return data


def _facts_list(figures: ReportFigures) -> str:
    """Return the HTML list of what the table is: its properties, its size and its timeline."""

    def columns(names: Iterable[str]) -> str:
        return ", ".join(names)

    facts = {
        "table": f"{figures.name} at {figures.path}",
        "kind": f"{figures.type}, version {figures.version}",
        "last written by": figures.written_by or "unknown",
        "key": columns(figures.record_key) or "generated",
        "partitioned by": columns(figures.partition_by) or "nothing",
        "ordered by": columns(figures.order_by) or "nothing",
        "index": figures.index or "unknown",
        "size": f"{figures.partitions:,} partitions, {figures.file_groups:,} file groups, "
        f"{figures.base_files:,} base files, {figures.log_files:,} log files",
        "live": _size(figures.live_bytes),
        "dead": _size(figures.dead_bytes),
        "unfinished": _size(figures.unfinished_bytes),
        "timeline": f"{figures.instants:,} active instants, {figures.unfinished:,} of them pending; "
        f"{figures.archived:,} archived",
        "looked at": f"{moment(figures.at_ms)}",
    }
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{shown(text)}</dd>' for name, text in facts.items())}</dl>"


def _size(count: int) -> str:
    """Return a number of bytes in words, and exactly."""
    return f"{size_text(count)} ({count:,} bytes)"


def _problems_section(figures: ReportFigures) -> str:
    """Return the HTML section of what could not be read; empty if all was readable."""
    if not figures.problems:
        return ""
    texts = "".join(f"<li>{in_html(text[:600])}</li>" for text in figures.problems)
    return section(
        "What could not be read",
        "Parts of the table are damaged, or gone. <code>pyhudi validate</code> says more.",
        f'<ul id="problems">{texts}</ul>',
    )


def _with_commands(needs: Sequence[Need], commands: Sequence[str]) -> str:
    """Return an HTML list entry for each need, with its reason and the command that carries it out."""
    return "".join(
        f'<li>{in_html(need.why)}<pre class="command"><code>{in_html(command)}</code></pre></li>'
        for need, command in zip(needs, commands, strict=True)
    )


def _offers_section(figures: ReportFigures, commands: Sequence[str]) -> str:
    """Return the HTML section of what may be done for the table though nothing needs it; empty without any offer.

    ``commands`` has the command for each of the offers.
    """
    if not figures.offers:
        return ""
    listed = _with_commands(figures.offers, commands)
    return section("What may be done", "Nothing waits for it.", f'<ul id="offers">{listed}</ul>')


def _needs_section(figures: ReportFigures, commands: Sequence[str]) -> str:
    """Return the HTML section of what the table needs next, and of the pending instants.

    ``commands`` are the command lines that carry the needs out, in their order.
    """
    listed = _with_commands(figures.needs, commands)
    work = table(
        ("instant", "action", "phase", "host", "process", "last heartbeat, s ago"),
        (
            (
                *(row[name] for name in ("instant", "action", "phase")),
                row.get("host"),
                str(row.get("pid") or ""),
                row.get("heartbeat_age_s"),
            )
            for row in figures.at_work
        ),
    )
    unlisted = figures.unfinished - len(figures.at_work)
    return section(
        "What the table needs next",
        "Each command does what its sentence says, by the rules of its service."
        if figures.needs
        else "Nothing is due, as far as could be read."
        if figures.problems
        else "Nothing is due.",
        f'<ul id="needs">{listed}</ul>' if listed else "",
        f"<p>The oldest of {figures.unfinished:,} pending instants:</p>{work}" if figures.at_work else "",
        f"<p>{unlisted:,} more instants are pending.</p>" if figures.at_work and unlisted else "",
    )


def _metadata_section(figures: ReportFigures) -> str:
    """Return the HTML section of the metadata table's partitions and sizes; empty without a metadata table."""
    if not figures.metadata:
        return ""
    names = ("partition", "state", "file groups", "files", "log files", "bytes", "bytes of log files", "compacted")
    rows = (asdict(size).values() for size in figures.metadata)
    text = "The partitions by which readers list files and leave files out. Log files wait for its own compaction."
    return section("Metadata table", text, table(names, (list(row) for row in rows)))


def _savepoints_section(figures: ReportFigures) -> str:
    """Return the HTML section of the newest savepoints; empty without any."""
    if not figures.savepoints:
        return ""
    rows = ((each.instant, each.user, each.comment) for each in figures.savepoints)
    return section("Savepoints", "The newest, with their comments.", table(("instant", "user", "comment"), rows))
