"""The page of a report: its sections, in one HTML file that needs no other and no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from ...version import VERSION
from ..plain_text import size_text
from ..state.needs import Need
from .escaping import in_html, json_in_html, shown
from .figures import ReportFigures
from .pictures import attempts, debt, file_sizes, heat, older, overlap, phases, space, timeline
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


def make_page(found: ReportFigures, command_of: Callable[[Need], str]) -> str:
    """Return the page of a table's figures; ``command_of`` gives the command line that does what the table needs."""
    commands = [command_of(need) for need in found.needs]
    offered = [command_of(offer) for offer in found.offers]
    sections = (
        _facts(found),
        _problems(found),
        _needs(found, commands),
        _offers(found, offered),
        timeline(found),
        older(found),
        space(found),
        file_sizes(found),
        heat(found),
        debt(found),
        overlap(found),
        phases(found),
        attempts(found),
        _metadata(found),
        _savepoints(found),
    )
    return _PAGE.format(
        policy=in_html(content_policy()),
        version=VERSION,
        title=f"{shown(found.name)}: report",
        style=STYLE,
        body="\n".join(text for text in sections if text),
        figures=json_in_html(_as_data(found, commands, offered)),
        script=SCRIPT,
    )


def _as_data(found: ReportFigures, commands: Sequence[str], offered: Sequence[str]) -> dict[str, object]:
    data = asdict(found)
    data["heat"]["cells"] = [
        [cell.row, cell.column, cell.file_groups, cell.bytes, cell.rows] for cell in found.heat.cells
    ]
    for name, needs, lines in (("needs", found.needs, commands), ("offers", found.offers, offered)):
        data[name] = [{**asdict(need), "command": command} for need, command in zip(needs, lines, strict=True)]
    return data


def _facts(found: ReportFigures) -> str:
    def columns(names: Iterable[str]) -> str:
        return ", ".join(names)

    facts = {
        "table": f"{found.name} at {found.path}",
        "kind": f"{found.type}, version {found.version}",
        "last written by": found.written_by or "unknown",
        "key": columns(found.record_key) or "generated",
        "partitioned by": columns(found.partition_by) or "nothing",
        "ordered by": columns(found.order_by) or "nothing",
        "index": found.index or "unknown",
        "size": f"{found.partitions:,} partitions, {found.file_groups:,} file groups, {found.base_files:,} base files, "
        f"{found.log_files:,} log files",
        "live": _size(found.live_bytes),
        "dead": _size(found.dead_bytes),
        "unfinished": _size(found.unfinished_bytes),
        "timeline": f"{found.instants:,} active instants, {found.unfinished:,} of them pending; "
        f"{found.archived:,} archived",
        "looked at": f"{moment(found.at_ms)}",
    }
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{shown(text)}</dd>' for name, text in facts.items())}</dl>"


def _size(count: int) -> str:
    return f"{size_text(count)} ({count:,} bytes)"


def _problems(found: ReportFigures) -> str:
    if not found.problems:
        return ""
    texts = "".join(f"<li>{in_html(text[:600])}</li>" for text in found.problems)
    return section(
        "What could not be read",
        "Parts of the table are damaged, or gone. <code>pyhudi validate</code> says more.",
        f'<ul id="problems">{texts}</ul>',
    )


def _with_commands(needs: Sequence[Need], commands: Sequence[str]) -> str:
    return "".join(
        f'<li>{in_html(need.why)}<pre class="command"><code>{in_html(command)}</code></pre></li>'
        for need, command in zip(needs, commands, strict=True)
    )


def _offers(found: ReportFigures, commands: Sequence[str]) -> str:
    if not found.offers:
        return ""
    listed = _with_commands(found.offers, commands)
    return section("What may be done", "Nothing waits for it.", f'<ul id="offers">{listed}</ul>')


def _needs(found: ReportFigures, commands: Sequence[str]) -> str:
    listed = _with_commands(found.needs, commands)
    work = table(
        ("instant", "action", "phase", "host", "process", "last heartbeat, s ago"),
        (
            (
                *(row[name] for name in ("instant", "action", "phase")),
                row.get("host"),
                str(row.get("pid") or ""),
                row.get("heartbeat_age_s"),
            )
            for row in found.at_work
        ),
    )
    more = found.unfinished - len(found.at_work)
    return section(
        "What the table needs next",
        "Each command does what its sentence says, by the rules of its service."
        if found.needs
        else "Nothing is due, as far as could be read."
        if found.problems
        else "Nothing is due.",
        f'<ul id="needs">{listed}</ul>' if listed else "",
        f"<p>The oldest of {found.unfinished:,} pending instants:</p>{work}" if found.at_work else "",
        f"<p>{more:,} more instants are pending.</p>" if found.at_work and more else "",
    )


def _metadata(found: ReportFigures) -> str:
    if not found.metadata:
        return ""
    names = ("partition", "state", "file groups", "files", "log files", "bytes", "bytes of log files", "compacted")
    rows = (asdict(size).values() for size in found.metadata)
    text = "The partitions by which readers list files and leave files out. Log files wait for its own compaction."
    return section("Metadata table", text, table(names, (list(row) for row in rows)))


def _savepoints(found: ReportFigures) -> str:
    if not found.savepoints:
        return ""
    rows = ((each.instant, each.user, each.comment) for each in found.savepoints)
    return section("Savepoints", "The newest, with their comments.", table(("instant", "user", "comment"), rows))
