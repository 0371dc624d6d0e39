"""The report's page in a real Chromium: no error, every picture drawn, both colour schemes, a phone, the keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chromium import Chromium, find_chromium
from support.upkeep.report_pages import hostile_table, page_of
from support.upkeep.report_tables import TABLES

pytestmark = [pytest.mark.browser, pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed")]

DESKTOP, PHONE = (1280, 900), (390, 844)
# The marks of each picture that take up no place, or cannot be told from the paper behind them.
UNSEEN = """[...document.querySelectorAll("svg")].flatMap(svg => [...svg.querySelectorAll(".mark")].filter(mark => {
    const shapes = mark.tagName === "g" ? [...mark.children] : [mark], paper = getComputedStyle(document.body);
    return !shapes.some(shape => {
        const box = shape.getBoundingClientRect(), style = getComputedStyle(shape);
        const colours = [style.fill, style.stroke].filter(colour => colour !== "none");
        return box.height >= 0.5 && box.width >= 0.5 && colours.length && !colours.includes(paper.backgroundColor);
    });
}).map(mark => mark.outerHTML))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each table."""
    report_paths = {}
    for name, make in {**TABLES, "hostile": hostile_table}.items():
        folder = tmp_path_factory.mktemp(name)
        make(folder / "t")
        report_paths[name] = folder / "report.html"
        report_paths[name].write_text(page_of(folder / "t"), encoding="utf-8")
    return report_paths


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", [*TABLES, "hostile"])
def test_a_browser_shows_every_picture_without_an_error(
    browser: Chromium, pages: dict[str, Path], name: str, size: tuple[int, int], *, dark: bool
) -> None:
    browser.show(pages[name], width=size[0], height=size[1], dark=dark)

    assert browser.complaints == []
    assert browser.ask("document.documentElement.dataset.script") == "ready"
    assert browser.ask('document.querySelectorAll("svg").length') >= 7
    assert browser.ask(UNSEEN) == []
    assert browser.ask("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.ask('[...document.querySelectorAll("svg text")].every(t => t.getBoundingClientRect().height >= 10)')
    paper = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark
    assert browser.ask("document.scripts.length") == 2


def test_the_pointer_and_the_keys_show_the_numbers_of_a_mark(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.show(pages["worn"], width=DESKTOP[0], height=DESKTOP[1])
    tip = 'document.getElementById("tip")'

    browser.ask('document.querySelector("[data-figure=heat] svg").focus()')
    browser.press("End")
    shown = browser.ask(f"{tip}.textContent")
    assert browser.ask(f"{tip}.hidden") is False
    last = browser.ask(
        '[...[...document.querySelector("[data-figure=heat] tbody").rows].at(-1).cells].map(cell => cell.textContent)'
    )
    assert [line.partition(": ")[2] for line in shown.splitlines()][-4:] == last[-4:]
    assert shown.startswith("partition: ")
    browser.press("ArrowLeft")
    assert browser.ask(f"{tip}.textContent") != shown
    browser.press("Escape")
    assert browser.ask(f"{tip}.hidden") is True

    box = browser.ask(
        '(mark => (mark.scrollIntoView({block: "center"}), mark.getBoundingClientRect().toJSON()))'
        '(document.querySelector("[data-figure=space] .mark .part0"))'
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["x"] + 2, y=box["y"] + box["height"] / 2)
    first = browser.ask('document.querySelector("[data-figure=space] tbody").rows[0].cells[0].textContent')
    assert browser.ask(f"{tip}.textContent").startswith(f"write: {first}\n")


def test_all_tables_are_open_on_paper(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.show(pages["healthy"], width=DESKTOP[0], height=DESKTOP[1])

    browser.ask('window.dispatchEvent(new Event("beforeprint"))')

    assert browser.ask('[...document.querySelectorAll("details")].every(each => each.open)')
