"""Why meetings of two instants that have no verdict cannot come about, for the page and the test of all meetings."""

from __future__ import annotations

from pyhudi.operations.meeting.concurrency import (
    ARCHIVING,
    CLEAN,
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    RESCALE,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    WRITE,
    Asked,
    Cell,
    ConcurrencyRules,
    InstantKind,
    Known,
)

Kinds = tuple[InstantKind, ...]

_COMPACTIONS = (COMPACTION, LOG_COMPACTION)
_PLANNED = (*_COMPACTIONS, CLUSTERING)
_REWRITING = (*_COMPACTIONS, RESCALE)
_UNDOING = (ROLLBACK, RESTORE)
_ALL = tuple(InstantKind)

_PENDING, _COMPLETED = (Known.PENDING,), (Known.COMPLETED,)
_EITHER = (*_PENDING, *_COMPLETED)
_MAKER = (Known.LIVING, Known.FOREIGN, Known.DEAD)
_ANY = tuple(Known)
_BEFORE, _SINCE = (Asked.BEFORE_PLAN,), (Asked.SINCE_PLAN,)
_WHENEVER = (*_BEFORE, *_SINCE)

# The first row counts that a meeting is in.
IMPOSSIBLE: tuple[tuple[Kinds, Kinds, tuple[Known, ...], tuple[Asked, ...], str], ...] = (
    ((CLUSTERING,), _ALL, _ANY, _WHENEVER, "pyhudi plans no clustering, and carries none out"),
    (_ALL, (CLUSTERING,), _COMPLETED, _WHENEVER, "a clustering completes as a write"),
    (_ALL, (RESCALE,), _COMPLETED, _WHENEVER, "a rescale completes as a write"),
    (
        (CLEAN, *_UNDOING, SAVEPOINT, ARCHIVING),
        (RESCALE,),
        (*_PENDING, *_MAKER),
        _WHENEVER,
        "a pending rescale is a write to it",
    ),
    (_ALL, (ARCHIVING,), _COMPLETED, _WHENEVER, "archiving leaves no instant"),
    (
        _ALL,
        (CLUSTERING, CLEAN, SAVEPOINT, ARCHIVING, *_UNDOING),
        _MAKER,
        _WHENEVER,
        "nothing tells which process is at work on it",
    ),
    ((RESCALE,), (WRITE,), (*_PENDING, *_MAKER), _SINCE, "a write that begins later looks for the rescale"),
    ((RESCALE,), _COMPACTIONS, (*_PENDING, *_MAKER), _SINCE, "its plan leaves the partitions of a rescale out"),
    ((RESCALE,), (CLUSTERING,), _PENDING, _SINCE, "Apache Hudi's writers have to be stopped"),
    (
        (RESCALE,),
        (CLEAN, SAVEPOINT, ARCHIVING),
        _EITHER,
        _WHENEVER,
        "it leaves newest slices and later times alone",
    ),
    ((WRITE, RESCALE), (RESCALE,), (Known.FOREIGN,), _WHENEVER, "nothing tells another engine's from a write"),
    ((WRITE, RESCALE), (RESCALE,), _PENDING, _BEFORE, "the plan asks for its maker"),
    ((RESCALE,), (RESCALE,), (*_PENDING, *_MAKER), _SINCE, "none begins while another is pending"),
    ((WRITE,), (RESCALE,), _MAKER, _SINCE, "whether it lives makes no difference to a commit"),
    (_COMPACTIONS, (RESCALE,), _PENDING, _SINCE, "it gives the plan up, or waits for it"),
    (_COMPACTIONS, (RESCALE,), _MAKER, _WHENEVER, "whether the rescale lives makes no difference"),
    ((WRITE,), _COMPACTIONS, _MAKER, _WHENEVER, "a write continues whichever process carries the plan out"),
    ((WRITE,), (WRITE,), _MAKER, _SINCE, "a commit asks for no maker: the other commit looks for this one"),
    ((WRITE, RESCALE), (WRITE,), _PENDING, _BEFORE, "the plan asks for the maker of each"),
    ((WRITE,), (ARCHIVING,), _PENDING, _BEFORE, "a write's time is greater than that of every instant its plan saw"),
    ((WRITE,), (SAVEPOINT,), _COMPLETED, _SINCE, "a savepoint changes no file group, and no commit looks for one"),
    (_REWRITING, _COMPACTIONS, _COMPLETED, _WHENEVER, "it completes as a write"),
    (_COMPACTIONS, _COMPACTIONS, _MAKER, _WHENEVER, "only processes with the same plan ask for each other"),
    (_COMPACTIONS, _PLANNED, _PENDING, _SINCE, "it was planned beside this plan, and left its file groups out"),
    (_COMPACTIONS, (WRITE,), _MAKER, _WHENEVER, "whether the write lives makes no difference"),
    (_COMPACTIONS, (CLEAN, SAVEPOINT, ARCHIVING), _EITHER, _WHENEVER, "it leaves alone what a pending plan names"),
    ((CLEAN,), (WRITE, *_COMPACTIONS), _MAKER, _WHENEVER, "whether it lives makes no difference"),
    ((CLEAN,), _COMPACTIONS, _COMPLETED, _WHENEVER, "it completes as a write"),
    ((CLEAN,), (SAVEPOINT,), _PENDING, _BEFORE, "it keeps files once it is complete"),
    ((CLEAN,), (ARCHIVING,), _PENDING, _WHENEVER, "archiving takes instants, a clean takes files"),
    ((ROLLBACK, RESTORE, SAVEPOINT), _COMPACTIONS, _MAKER, _WHENEVER, "whether it lives makes no difference"),
    ((ROLLBACK, RESTORE, SAVEPOINT), _COMPACTIONS, _COMPLETED, _WHENEVER, "it completes as a write"),
    ((SAVEPOINT,), (WRITE,), _MAKER, _WHENEVER, "whether it lives makes no difference"),
    ((SAVEPOINT,), (SAVEPOINT,), _EITHER, _WHENEVER, "one of the same write is the same savepoint, others are apart"),
    ((ROLLBACK, RESTORE, SAVEPOINT), _ALL, _EITHER, _SINCE, "the plan is made within the decision that requests it"),
    ((ARCHIVING,), _ALL, _EITHER, _SINCE, "it reads the timeline again once it is announced"),
    ((ARCHIVING,), (WRITE, *_COMPACTIONS), _MAKER, _WHENEVER, "whether it lives makes no difference"),
    ((ARCHIVING,), (ARCHIVING,), _PENDING, _WHENEVER, "all take the same steps, each of them once or twice"),
    (_ALL, _ALL, _COMPLETED, _BEFORE, "what was complete, the plan is made of"),
)
NOT_LOOKED_FOR = "the step looks for nothing else that both touch"


def why_impossible(cell: Cell, rules: ConcurrencyRules) -> str:
    """Return why a meeting cannot come about; empty where it can."""
    if cell in rules.verdicts:
        return ""
    reasons = [
        reason
        for mine, theirs, known, asked, reason in IMPOSSIBLE
        if cell[0] in mine and cell[1] in theirs and cell[2] in known and cell[3] in asked
    ]
    return reasons[0] if reasons else NOT_LOOKED_FOR
