"""Put the table of who may be at work beside whom into docs/concurrency.md, from the table that the code reads.

PYTHONPATH=tests python docs/make_concurrency.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyhudi.operations.meeting.concurrency import (
    OPTIMISTIC,
    SINGLE_WRITER,
    Asked,
    Cell,
    InstantKind,
    Known,
    Shared,
    Verdict,
)
from support.rules.impossible_meetings import IMPOSSIBLE

PAGE = Path(__file__).with_name("concurrency.md")
BEGIN, END = "<!-- concurrency: made by docs/make_concurrency.py -->\n", "<!-- /concurrency -->\n"

VERDICTS = {
    Verdict.GO_ON: "continues",
    Verdict.GIVE_WAY: "gives way",
    Verdict.FINISH: "finishes theirs",
    Verdict.UNDO: "undoes theirs",
    Verdict.WAIT: "waits",
    Verdict.REFUSE: "is refused",
}

WORDS = {
    Shared.FILE_GROUP: "both change a file group, or mine changes a file group that theirs holds",
    Shared.BASE_FILE: "mine made a new base file of a file group that theirs merges",
    Shared.BUCKET: "each opened a file group for the same bucket",
    Shared.PARTITION: "one of the two replaces all of a partition that the other changed or holds",
    Shared.BUCKET_NUMBER: "theirs changed the number of buckets of a partition in which mine placed rows by it",
    Shared.NEW_KEY: "both added a record key, each to another file group",
    Shared.LOOKED_UP: "theirs may have taken or brought back keys that mine looked for",
    Shared.READ: "theirs changed which rows satisfy a condition that mine was made by, see [isolation](isolation.md)",
    Shared.COLUMNS: "either would take columns of the other away",
    Shared.PROPERTIES: "both settle a property of the table, each in its way",
    Shared.ROOM: "new keys of mine would join a small file that theirs holds",
    Shared.BASIS: "theirs takes away what mine has merged, or adds to it",
    Shared.REPLACED: "theirs replaced file groups of mine, or brings back some that mine did not see",
    Shared.UNTOLD: "the plan of theirs does not say which file groups it holds",
    Shared.PLAN: "both carry out the same plan",
    Shared.ITSELF: "theirs undoes mine, or counts it as archived",
    Shared.VICTIM: "theirs undoes a write that is on the timeline",
    Shared.TARGET: "theirs concerns the write that mine undoes, keeps or goes back to",
    Shared.LATER: "theirs was requested after that write",
    Shared.EARLIER: "theirs was requested before the first write of which mine retains all",
    Shared.FILES: "either keeps or needs files that the other takes",
}
# Of one instant that asks: theirs, what is known of them, when they were requested, and what follows.
Line = tuple[tuple[InstantKind, ...], tuple[Known, ...], tuple[Asked, ...], str]


def lines_of(mine: InstantKind, verdicts: Mapping[Cell, Verdict]) -> list[Line]:
    """Return the lines of an instant that asks; what differs in one column alone is one line."""
    told: dict[tuple[InstantKind, Known, Asked], dict[Shared | None, Verdict]] = {}
    for (asking, theirs, knowledge, asked, shared), verdict in verdicts.items():
        if asking is mine:
            told.setdefault((theirs, knowledge, asked), {})[shared] = verdict
    lines = [((theirs,), (known,), (asked,), _verdicts(some)) for (theirs, known, asked), some in told.items()]
    for column in (1, 2, 0):
        joined: dict[tuple[object, ...], Line] = {}
        for line in lines:
            rest = (*line[:column], *line[column + 1 :])
            there = joined.get(rest)
            joined[rest] = line if there is None else _with(there, column, line)
        lines = list(joined.values())
    return lines


def _with(line: Line, column: int, other: Line) -> Line:
    theirs, knowledge, asked, text = line
    if column == 0:
        return (*theirs, *other[0]), knowledge, asked, text
    return (
        (theirs, (*knowledge, *other[1]), asked, text)
        if column == 1
        else (theirs, knowledge, (*asked, *other[2]), text)
    )


def table() -> str:
    """Return the table, and the reasons why there are no more meetings."""
    others = {cell: one for cell, one in SINGLE_WRITER.verdicts.items() if OPTIMISTIC.verdicts.get(cell) is not one}
    reasons = [
        f"| {_names(mine)} | {_names(theirs)} | {_names(known)} | {_names(asked)} | {reason} |"
        for mine, theirs, known, asked, reason in IMPOSSIBLE
    ]
    words = [f"| {one.value} | {WORDS[one]} |" for one in Shared]
    both = "| both touch | that is |\n|---|---|"
    head = "| mine | theirs | known of theirs | requested | mine then |\n|---|---|---|---|---|"
    why = "| mine | theirs | known of theirs | requested | why it cannot come about |\n|---|---|---|---|---|"
    single = "A single writer (`hoodie.write.concurrency.mode=SINGLE_WRITER`) has other verdicts here:"
    rows, more = _rows(OPTIMISTIC.verdicts), _rows(others)
    none = "All other meetings cannot come about:"
    return "\n".join([both, *words, "", head, *rows, "", single, "", head, *more, "", none, "", why, *reasons, ""])


def _rows(verdicts: Mapping[Cell, Verdict]) -> list[str]:
    return [
        f"| {mine.value} | {_names(theirs)} | {_names(known)} | {_names(asked)} | {text} |"
        for mine in InstantKind
        for theirs, known, asked, text in sorted(
            lines_of(mine, verdicts), key=lambda one: list(InstantKind).index(one[0][0])
        )
    ]


def _verdicts(told: Mapping[Shared | None, Verdict]) -> str:
    """Return what follows from each thing that both touch, and from nothing or anything else."""
    rest = told.get(None)
    shown = sorted({verdict for verdict in told.values() if verdict is not rest}, reverse=True)
    texts = [
        f"{VERDICTS[verdict]}: {', '.join(one.value for one, found in told.items() if one and found is verdict)}"
        for verdict in shown
    ]
    if rest is not None:
        texts.append(f"{'otherwise ' if texts else ''}{VERDICTS[rest]}")
    return "; ".join(texts)


def _names(some: Iterable[InstantKind | Known | Asked]) -> str:
    members = list(some)
    if len(members) == len(type(members[0])):
        return "any"
    return ", ".join(one.value.removesuffix(" plan") for one in members)


def with_table(page: str) -> str:
    """Return the page with the table put between its marks."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
