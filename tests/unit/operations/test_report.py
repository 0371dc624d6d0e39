"""The report: its numbers against counts from the files, its pictures against its tables, and what is never markup."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import shutil
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyhudi.operations.report.escaping import in_html, json_in_html
from pyhudi.operations.report.figures import DayCount, HeatCell
from pyhudi.operations.report.page import make_page
from support.drive import write
from support.made.compacting import rows
from support.rules.counted_table import CountedTable, key_range, seconds_between, size_of, spelled_moment
from support.upkeep.meetings import COW, QUIET
from support.upkeep.report_pages import HOSTILE, figures_of, hostile_table, page_of
from support.upkeep.report_tables import TABLES


class Page(HTMLParser):
    """What a browser would make of a page: tables with their cells, the marks of each picture, and all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.figures: dict[str, tuple[list[int], list[list[str]]]] = {}
        self.tables: list[list[list[str]]] = []
        self.facts: dict[str, str] = {}
        self.commands: list[str] = []
        self.text = ""
        self._at: list[str] = []
        self._name = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags[tag] += 1
        self.attributes.update(given.keys())
        self._at.append(tag)
        if tag == "figure":
            self._marks: list[int] = []
            self._name = given["data-figure"] or ""
        elif tag == "svg":
            self._marks.append(0)
        elif "mark" in (given.get("class") or "").split():
            self._marks[-1] += 1
        elif tag == "tbody":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in {"td", "th"} and "tbody" in self._at:
            self.tables[-1][-1].append("")
        elif tag == "dt":
            self._fact = ""
        elif tag == "pre":
            self.commands.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._at and self._at.pop() != tag:
            pass
        if tag == "figure":
            self.figures[self._name] = self._marks, list(self.tables[-1])

    def handle_data(self, data: str) -> None:
        at = self._at[-1] if self._at else ""
        if at in {"td", "th"} and "tbody" in self._at:
            self.tables[-1][-1][-1] += data
        elif at == "dt":
            self._fact = data
        elif at == "dd":
            self.facts[self._fact] = data
        elif "pre" in self._at:
            self.commands[-1] += data
        elif at not in {"style", "script"}:
            self.text += data


@pytest.fixture(params=TABLES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Each of the tables."""
    TABLES[request.param](tmp_path / "t")
    return tmp_path / "t"


def numbers(*values: int) -> list[str]:
    return [f"{value:,}" for value in values]


def test_every_number_is_that_of_the_files(path: Path) -> None:
    """A count by the test's own rules, from names, sizes and bodies, finds what the page shows."""
    counted, page = CountedTable.of(path), Page(page_of(path))

    pending = [time for time, (_, completed) in counted.instants.items() if completed is None]
    logs = [log for group in counted.groups.values() for log in group.live_logs]
    facts = page.facts
    assert facts["size"] == (
        f"{len({place for place, _ in counted.groups}):,} partitions, {len(counted.groups):,} file groups, "
        f"{len(counted.bases):,} base files, {len(logs):,} log files"
    )
    for name, files in (("live", counted.live), ("dead", counted.dead), ("unfinished", counted.unfinished)):
        assert facts[name].endswith(f"({size_of(files):,} bytes)"), name
    assert facts["timeline"] == f"{len(counted.instants)} active instants, {len(pending)} of them pending; 0 archived"
    check_timeline(page, counted)
    check_space(page, counted)
    check_sizes(page, counted)
    check_heat(page, counted)
    check_debt(page, counted)
    check_overlap(page, counted)
    check_commits(page, counted)


def check_timeline(page: Page, counted: CountedTable) -> None:
    expected = [
        [
            time,
            action,
            spelled_moment(time),
            "-" if completed is None else spelled_moment(completed),
            "-" if completed is None else f"{seconds_between(time, completed):,.3f}",
        ]
        for time, (action, completed) in sorted(counted.instants.items(), reverse=True)
    ]
    assert [row[:2] + row[3:] for row in page.figures["timeline"][1]] == expected


def check_space(page: Page, counted: CountedTable) -> None:
    rows = page.figures["space"][1]
    space = counted.space()
    assert [[row[0], *row[2:]] for row in rows] == [[time, *numbers(*pair)] for time, pair in space.items()]
    assert rows[-1][2:] == numbers(size_of(counted.live), size_of(counted.dead))


def check_sizes(page: Page, counted: CountedTable) -> None:
    bins: dict[int, list[int]] = {}
    for file in counted.bases:
        bins.setdefault(int(math.log2(file.stat().st_size)), []).append(file.stat().st_size)
    expected = [
        numbers(2**power, 2 ** (power + 1), len(bins.get(power, [])), sum(bins.get(power, [])))
        for power in range(min(bins), max(bins) + 1)
    ]
    assert page.figures["sizes"][1] == expected


def check_heat(page: Page, counted: CountedTable) -> None:
    rows, expected = counted.rows_of_files, []
    places = sorted({place for place, _ in counted.groups})
    named: set[str] = set()
    for (place, file_id), group in sorted(counted.groups.items()):
        stated = None if group.live_logs or group.base is None else rows.get(group.base.name)
        label = [] if place in named else [f"{places.index(place) + 1}. {place}"]
        named.add(place)
        cells = [f"{int(file_id[:8])}", "1", f"{size_of(group.live):,}", "-" if stated is None else f"{stated:,}"]
        expected.append([*label, *cells])
    assert page.figures["heat"][1] == expected


def check_debt(page: Page, counted: CountedTable) -> None:
    logged = [(name, group) for name, group in counted.groups.items() if group.live_logs]
    expected = sorted(
        (-size_of(group.live_logs), *name, size_of(group.live) - size_of(group.live_logs), len(group.live_logs))
        for name, group in logged
    )
    rows = page.figures.get("debt", ([], []))[1]
    assert rows == [
        [place, file_id, *numbers(base, -size, count)] for size, place, file_id, base, count in expected[:20]
    ]
    if logged:
        assert f"{len(logged):,} file groups have log files" in page.text
        assert f"({-sum(each[0] for each in expected):,} bytes)" in page.text


def check_overlap(page: Page, counted: CountedTable) -> None:
    ranges: dict[str, list[tuple[str, str]]] = {}
    for (place, _), group in counted.groups.items():
        if group.base is not None and (found := safe_range(group.base)) is not None:
            ranges.setdefault(place, []).append(found)
    counts = Counter(
        sum(other[0] <= each[1] and each[0] <= other[1] for other in part) - 1
        for part in ranges.values()
        for each in part
    )
    rows = [[int(cell) for cell in row] for row in page.figures["overlap"][1]]
    assert [files for *_, files in rows] == [
        sum(files for number, files in counts.items() if least <= number <= most) for least, most, _ in rows
    ]
    assert sum(files for *_, files in rows) == counts.total()
    assert f"the footers of all {len(counted.bases)} base files" in page.text
    unread = len(counted.bases) - counts.total()
    assert (f"{unread} could not be read" in page.text) == bool(unread)


def safe_range(file: Path) -> tuple[str, str] | None:
    try:
        return key_range(file)
    except (OSError, ValueError):
        return None


def check_commits(page: Page, counted: CountedTable) -> None:
    recorded = counted.recorded("pyhudi.seconds")
    seconds_by_phase: dict[str, list[float]] = {}
    for seconds in recorded.values():
        for phase, value in seconds.items():
            seconds_by_phase.setdefault(phase, []).append(value)
    assert sorted(page.figures["phases"][1]) == sorted(
        [phase, str(len(values)), f"{sum(values):,.3f}", f"{max(values):,.3f}"]
        for phase, values in seconds_by_phase.items()
    )
    attempts, met = counted.recorded("pyhudi.attempts"), counted.recorded("pyhudi.met")
    counts = Counter(attempts.get(time, 1) for time in counted.bodies)
    assert page.figures["attempts"][1] == [numbers(*pair) for pair in sorted(counts.items())]
    waited = [
        [time, str(attempts.get(time, 1)), f"{recorded[time].get('wait', 0):,.3f}", ", ".join(met.get(time, [])) or "-"]
        for time in sorted(counted.bodies, reverse=True)
        if attempts.get(time, 1) > 1 or time in met or "wait" in recorded.get(time, {})
    ]
    assert [table for table in page.tables if table == waited] or not waited


def test_each_picture_draws_the_rows_of_its_table(path: Path) -> None:
    page = Page(page_of(path))

    assert {"timeline", "space", "sizes", "heat", "overlap", "phases", "attempts"} <= set(page.figures)
    for name, (marks, lines) in page.figures.items():
        assert len(marks) == (2 if name == "heat" else 1), name
        assert lines, name
        assert set(marks) == {len(lines)}, name


def test_text_of_a_table_never_becomes_markup(tmp_path: Path) -> None:
    hostile_table(tmp_path / "t")
    text = page_of(tmp_path / "t")
    page = Page(text)

    plain = tmp_path / "plain"
    write(plain, rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)
    assert set(page.tags) <= set(Page(page_of(plain)).tags)
    assert page.tags["script"] == 2
    assert not [name for name in page.attributes if name.startswith("on") or name in {"src", "href", "style"}]
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    cells = {cell for table in page.tables for row in table for cell in row}
    assert HOSTILE.replace("\x1b", r"\x1b").replace("\u2028", r"\u2028").replace("\u202e", r"\u202e") in cells
    assert any(r"<img src=x onerror=alert(3)>\x1b" in cell for cell in cells)


@pytest.mark.parametrize("text", [HOSTILE, "<!--", "]]>", "\0", "\ud800", "a" * 10])
def test_json_inside_a_page_keeps_its_value(text: str) -> None:
    block = json_in_html({text: [text]})

    assert json.loads(block) == {text: [text]}
    assert not set("<>&\u2028\u2029") & set(block)
    assert not set("<>\"'") & set(in_html(text).replace("&lt;", "").replace("&gt;", ""))


def test_the_policy_allows_the_own_style_and_script_alone(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)
    text = page_of(tmp_path / "t")

    allowed = html.unescape(re.search('Content-Security-Policy" content="([^"]*)"', text)[1])  # type: ignore[index]
    blocks = re.findall(r"<(style|script)>(.*?)</\1>", text, re.DOTALL)
    hashes = {kind: base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for kind, block in blocks}
    assert allowed == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert len(blocks) == 2
    assert len(dict(blocks)["script"].encode()) <= 10_000


def spread(path: Path, partitions: int, buckets: int) -> None:
    """Give a table of one write many partitions and file groups, by names alone; their sizes differ."""
    write(path, rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)
    (base,) = path.glob("a/*.parquet")
    metadata_file = next((path / "a").glob(".hoodie_partition_metadata*"))
    for number in range(partitions):
        folder = path / f"p{number:03}"
        folder.mkdir()
        (folder / metadata_file.name).write_bytes(metadata_file.read_bytes())
        for bucket in range(buckets):
            name = f"{bucket:08}-0000-4000-8000-{number:012}-0_{base.name.partition('_')[2]}"
            (folder / name).write_bytes(b"x" * (1 + (number * 7 + bucket) % 50))
    shutil.rmtree(path / "a")


def test_a_table_without_file_groups_has_an_empty_picture(tmp_path: Path) -> None:
    path = tmp_path / "t"
    spread(path, 0, 0)

    heat = figures_of(path).heat

    assert (heat.rows, heat.columns, heat.cells) == ((), (), ())


def test_neighbours_share_cells_where_there_are_too_many(tmp_path: Path) -> None:
    """Each file group is in a single cell, whose labels name its partition and bucket."""
    path = tmp_path / "t"
    spread(path, 100, 70)

    heat = figures_of(path).heat

    assert (len(heat.rows), len(heat.columns), heat.partitions, heat.numbers) == (48, 64, 100, 70)
    expected: Counter[tuple[int, int]] = Counter()
    for row, label in enumerate(heat.rows):
        first, _, last = label.partition(" … ")
        for column, buckets in enumerate(heat.columns):
            least, _, most = buckets.partition("–")
            for number in range(int(first[1:]), int((last or first)[1:]) + 1):
                sizes = [1 + (number * 7 + bucket) % 50 for bucket in range(int(least), int(most or least) + 1)]
                expected[row, column] += sum(sizes)
    assert {(cell.row, cell.column): cell.bytes for cell in heat.cells} == expected
    assert sum(cell.file_groups for cell in heat.cells) == 7000


def test_a_sample_of_footers_takes_whole_partitions(tmp_path: Path) -> None:
    path = tmp_path / "t"
    spread(path, 100, 30)

    figures = figures_of(path)
    page = Page(page_of(path))

    assert (figures.overlap.sampled, figures.overlap.base_files, figures.overlap.unreadable) == (480, 3000, 480)
    assert "sample of 480 of 3,000 base files" in page.text
    assert figures_of(path, deep=True).overlap.sampled == 3000


def test_a_page_of_a_large_table_has_at_most_a_megabyte(tmp_path: Path) -> None:
    """40,000 file groups in 1,000 partitions and 10,000 instants: figures as such a table has them."""
    path = tmp_path / "t"
    TABLES["worn"](path)
    small = figures_of(path)
    cells = tuple(HeatCell(n // 64, n % 64, 14, 10**9 + n, 10**7 + n) for n in range(48 * 64))
    label = "country=Netherlands/day=2026-11-26 … country=Netherlands/day=2026-12-16"
    large = replace(
        small,
        bars=tuple(replace(small.bars[0], instant=f"{20261126000000000 + n}") for n in range(300)),
        older=tuple(DayCount(f"2026-{n:05}", 50) for n in range(200)),
        space=tuple(replace(small.space[0], live_bytes=10**12, dead_bytes=10**12) for _ in range(300)),
        heat=replace(small.heat, rows=(label,) * 48, columns=tuple(f"{n}–{n + 1}" for n in range(64)), cells=cells),
        debt=small.debt * 5,
    )

    page = make_page(large, lambda need: need.service)

    assert len(page.encode()) <= 1_000_000
    assert Page(page).figures["heat"][0] == [48 * 64] * 2
