"""The messages that docs/errors.md shows: each is what a bad input really gets to read."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyhudi import errors
from pyhudi.errors import PyHudiError
from support.bad_inputs import (
    ANSWERS,
    COLUMNS,
    CREATIONS,
    GOOD,
    KEYED,
    OPTIONS,
    OTHERS,
    QUERIES,
    ROWS,
    UNDOING,
    Act,
    Case,
    new_table,
)
from support.drive import write
from support.made.strange_index import NAME, saying
from support.sick.sick_tables import SICK, Sick

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
EXAMPLES = dict(re.findall(r"^```text\nPyHudiError\[(\w+)\]: (.+?)\n```$", PAGE.read_text("utf-8"), re.M | re.S))
KINDS = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
# What differs from run to run, or is the operating system's to say.
PASSING = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "<id>",
    r"_\d+-\d+-\d+_": "_<task>_",
    r"\d{17}": "<time>",
    r"\d{1,3}(,\d{3})+": "<bytes>",
    r"\d+ s ago, process \d+ on [\w-]+(\.[\w-]+)*(, application \w+)?": "<writer>",
    r"\(kill \d+\)": "(kill <process>)",
    r"(hoodie\.properties): [\w ]+\. Check": r"\1: <reason>. Check",
}


def occupied(path: Path) -> Act:
    path.mkdir()
    (path / "mine").touch()
    return lambda: write(path, GOOD, table=KEYED)


OCCUPIED = Case("path of something else", errors.NotATableError, ("{path}",), occupied)
ALONE = [*CREATIONS, OCCUPIED]
CASES: list[Case | Sick] = [*ROWS, *COLUMNS, *OPTIONS, *OTHERS, *ANSWERS, *UNDOING, *QUERIES, *SICK, *ALONE]


def likened(text: str) -> str:
    """Return a message on one line without what differs from run to run."""
    text = " ".join(text.split())
    for pattern, name in PASSING.items():
        text = re.sub(pattern, name, text)
    return text


def said(case: Case | Sick, path: Path) -> str:
    """Return what a bad input gets to read, as if the table were at /lake/trips."""
    path.parent.mkdir()
    if isinstance(case, Sick):
        new_table(path)
        case.spoil(path)
        act: Act = partial(write, path, GOOD)
    else:
        if case in ANSWERS:
            with saying():
                write(path, case.good, table=replace(case.table, index_type=NAME, bucket_count=None))
        elif case not in ALONE:
            new_table(path, case.good, case.table)
        act = case.prepare(path)
    with pytest.raises(PyHudiError) as raised:
        act()
    return likened(f"{raised.value.what} {raised.value.todo}".replace(str(path), "/lake/trips"))


@pytest.mark.parametrize("code", [kind.code for kind in KINDS if not kind.__subclasses__()])
def test_the_page_shows_a_message_that_somebody_gets(tmp_path: Path, code: str) -> None:
    example, messages = likened(EXAMPLES[code]), []
    for number, case in enumerate(CASES):
        if case.error.code == code and example not in messages:
            messages.append(said(case, tmp_path / f"{number}" / "t"))

    assert example in messages
