"""Who may be at work beside whom: each meeting of two instants that can come about, staged on a real table.

The fixture says what becomes of each, one a line. The table of verdicts has a cell for each line, and no cell is
without effect.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from pyhudi.operations.meeting.concurrency import (
    OPTIMISTIC,
    SINGLE_WRITER,
    Asked,
    Cell,
    ConcurrencyRules,
    InstantKind,
    Known,
    Shared,
    Verdict,
)
from support.rules.impossible_meetings import IMPOSSIBLE, why_impossible
from support.seams import patch_seam, read_seam
from support.upkeep import meetings_of_rescales, meetings_of_services, meetings_of_undoing, meetings_of_writes
from support.upkeep.meetings import STAGES, STAGES_OF_A_SINGLE_WRITER, Stage, scene

FIXTURES = Path(__file__).parents[1] / "fixtures"


def lines_of(fixture: str) -> dict[str, str]:
    text = (FIXTURES / fixture).read_text(encoding="utf-8")
    return dict(line.rsplit(" | ", 1) for line in text.splitlines())


LINES = lines_of("meetings.txt")
# Rules, what becomes of each meeting, and its stage; of the second set what differs from the first.
SETS: dict[str, tuple[ConcurrencyRules, dict[str, str], dict[str, tuple[str, Stage]]]] = {
    "optimistic": (OPTIMISTIC, LINES, STAGES),
    "single writer": (SINGLE_WRITER, lines_of("meetings_of_a_single_writer.txt"), STAGES_OF_A_SINGLE_WRITER),
}
MEETINGS = [(name, key) for name, (_, lines, _) in SETS.items() for key in lines]
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
        ("write | rescale | living | partition | before", "write | rescale | pending | partition | since"),
        *(
            (f"restore | rollback | {known} | victim | before", "restore | rollback | pending | victim | since")
            for known in ("living", "foreign")
        ),
        *(
            (f"{mine} | write | {known} | later | before", f"{mine} | write | {known} | later | since")
            for mine in ("rollback", "restore")
            for known in ("living", "foreign")
        ),
    )
}
# They fill the stages when they are imported.
STAGED_BY = (meetings_of_rescales, meetings_of_services, meetings_of_undoing, meetings_of_writes)


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


def staged(rules: str, key: str, folder: Path) -> str:
    kind, stage = SETS[rules][-1][key]
    return stage(scene(kind, folder))


@pytest.mark.parametrize(("rules", "key"), MEETINGS)
def test_a_meeting_ends_as_it_is_written_down(
    rules: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[Cell] = set()
    verdict = read_seam("verdict of a meeting")
    patch_seam(monkeypatch, "verdict of a meeting", lambda rules, cell: asked.add(cell) or verdict(rules, cell))
    used, lines, _ = SETS[rules]

    assert staged(rules, key, tmp_path) == lines[key]
    assert cell_of(key) in asked
    assert [why_impossible(one, used) for one in asked if one not in used.verdicts] == []


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "key"), MEETINGS)
def test_another_verdict_changes_how_a_meeting_ends(
    rules: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = read_seam("verdict of a meeting")

    def changed(rules: ConcurrencyRules, cell: Cell) -> Verdict:
        found = verdict(rules, cell)
        return another(found, cell) if cell in {cell_of(key), cell_of(BEHIND.get(key, key))} else found

    patch_seam(monkeypatch, "verdict of a meeting", changed)

    assert staged(rules, key, tmp_path) != SETS[rules][1][key]


def test_every_cell_is_staged_and_has_the_verdict_that_is_seen() -> None:
    told = {cell: OUTCOMES.get(verdict, "refuses") for cell, verdict in OPTIMISTIC.verdicts.items()}

    assert {cell_of(key): outcome.partition(":")[0] for key, outcome in LINES.items()} == told
    assert LINES.keys() == STAGES.keys()


def test_a_single_writer_has_another_verdict_for_what_is_staged_so() -> None:
    others = SINGLE_WRITER.verdicts.items() - OPTIMISTIC.verdicts.items()
    _, lines, stages = SETS["single writer"]

    told = {cell: OUTCOMES.get(verdict, "refuses") for cell, verdict in others}
    assert {cell_of(key): outcome.partition(":")[0] for key, outcome in lines.items()} == told
    assert lines.keys() == stages.keys()
    assert SINGLE_WRITER.verdicts.keys() == OPTIMISTIC.verdicts.keys()


def test_every_other_meeting_has_a_reason_why_it_cannot_come_about() -> None:
    some = {cell[:4] for cell in OPTIMISTIC.verdicts}
    others = [one for one in product(InstantKind, InstantKind, Known, Asked) if one not in some]
    reasons = [why_impossible((*one, None), OPTIMISTIC) for one in others]

    assert {*reasons} == {row[-1] for row in IMPOSSIBLE}
