"""Who may be at work beside whom: each meeting of two instants that can come about, staged on a real table.

The fixture says what becomes of each, one a line. The table of verdicts has a cell for each line, and no cell is
without effect.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from pyhudi.operations.transaction.concurrency import (
    IMPOSSIBLE,
    SINGLE_WRITER,
    Asked,
    Cell,
    ConcurrencyRules,
    InstantKind,
    Known,
    Shared,
    Verdict,
)
from support.seams import patch_seam, read_seam
from support.upkeep import meetings_of_services, meetings_of_undoing, meetings_of_writes
from support.upkeep.meetings import STAGES, scene

FIXTURE = Path(__file__).parents[1] / "fixtures/meetings.txt"
LINES = dict(line.rsplit(" | ", 1) for line in FIXTURE.read_text(encoding="utf-8").splitlines())
OUTCOMES = {
    Verdict.GO_ON: "goes on",
    Verdict.GIVE_WAY: "gives way",
    Verdict.FINISH: "finishes theirs",
    Verdict.UNDO: "undoes theirs",
    Verdict.WAIT: "waits",
}
# Where two cells look for the same, one after the other, the first alone changes nothing.
BEHIND = {
    f"{first} plan": f"{second} plan"
    for first, second in (
        ("log compaction | write | completed | replaced | since", "log compaction | write | completed | basis | since"),
        ("restore | archiving | pending | target | before", "restore | archiving | pending | target | since"),
        *(
            (f"{mine} | write | {known} | later | before", f"{mine} | write | {known} | later | since")
            for mine in ("rollback", "restore")
            for known in ("living", "unknown")
        ),
    )
}
# They fill the stages when they are imported.
STAGED_BY = (meetings_of_services, meetings_of_undoing, meetings_of_writes)


def cell_of(key: str) -> Cell:
    mine, theirs, known, shared, asked = key.split(" | ")
    both = None if shared == "-" else Shared(shared)
    return InstantKind(mine), InstantKind(theirs), Known(known), Asked(asked), both


def another(verdict: Verdict, cell: Cell) -> Verdict:
    """Return a verdict that the step which asks would take another way by."""
    if verdict is Verdict.REFUSE and cell[-1] is Shared.PLAN:
        return Verdict.UNDO
    if verdict is Verdict.REFUSE and cell[:2] == (InstantKind.RESTORE, InstantKind.RESTORE):
        return Verdict.FINISH
    if verdict is Verdict.GO_ON or (verdict is Verdict.UNDO and cell[-1] is Shared.TARGET):
        return Verdict.REFUSE
    return Verdict.GO_ON


def staged(key: str, folder: Path) -> str:
    kind, stage = STAGES[key]
    return stage(scene(kind, folder))


@pytest.mark.parametrize("key", LINES)
def test_a_meeting_ends_as_it_is_written_down(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[Cell] = set()
    verdict = read_seam("verdict of a meeting")
    patch_seam(monkeypatch, "verdict of a meeting", lambda rules, cell: asked.add(cell) or verdict(rules, cell))

    assert staged(key, tmp_path) == LINES[key]
    assert cell_of(key) in asked
    assert [SINGLE_WRITER.why_impossible(one) for one in asked if one not in SINGLE_WRITER.verdicts] == []


@pytest.mark.parametrize("key", LINES)
def test_another_verdict_changes_how_a_meeting_ends(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = read_seam("verdict of a meeting")

    def changed(rules: ConcurrencyRules, cell: Cell) -> Verdict:
        found = verdict(rules, cell)
        return another(found, cell) if cell in {cell_of(key), cell_of(BEHIND.get(key, key))} else found

    patch_seam(monkeypatch, "verdict of a meeting", changed)

    assert staged(key, tmp_path) != LINES[key]


def test_every_cell_is_staged_and_has_the_verdict_that_is_seen() -> None:
    told = {cell: OUTCOMES.get(verdict, "refuses") for cell, verdict in SINGLE_WRITER.verdicts.items()}

    assert {cell_of(key): outcome.partition(":")[0] for key, outcome in LINES.items()} == told
    assert LINES.keys() == STAGES.keys()


def test_every_other_meeting_has_a_reason_why_it_cannot_come_about() -> None:
    some = {cell[:4] for cell in SINGLE_WRITER.verdicts}
    others = [one for one in product(InstantKind, InstantKind, Known, Asked) if one not in some]
    reasons = [SINGLE_WRITER.why_impossible((*one, None)) for one in others]

    assert {*reasons} == {row[-1] for row in IMPOSSIBLE}
