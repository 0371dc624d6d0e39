"""Which instants may run beside each other: one table of rules for all writes and services.

A step of a write or service finds out what two instants share, and `judge` returns what follows. Both sets of rules,
`OPTIMISTIC` and `SINGLE_WRITER`, have a verdict for each possible meeting; tests stage each meeting on a real table
(tests/contract/test_meetings.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from ...timeline.instants import Instant, State
from ...timeline.writers.patience import Patience


class InstantKind(Enum):
    """The kinds of instants and of other work on the timeline that the rules tell from each other."""

    WRITE = "write"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log compaction"
    CLUSTERING = "clustering"
    RESCALE = "rescale"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    ARCHIVING = "archiving"


class Known(Enum):
    """What mine knows of theirs: its state, and for some meetings whether its process lives."""

    PENDING = "pending"  # which process executes it is unknown, or makes no difference
    LIVING = "living"  # pyhudi's, and not known to be dead
    FOREIGN = "foreign"  # another engine's, and not known to be dead
    DEAD = "dead"
    COMPLETED = "completed"


class Asked(Enum):
    """When theirs was requested; as in Apache Hudi, a commit asks this only for compactions and clusterings."""

    BEFORE_PLAN = "before plan"
    SINCE_PLAN = "since plan"


class Shared(Enum):
    """What mine and theirs have in common."""

    FILE_GROUP = "file group"
    BASE_FILE = "base file"  # mine made a new base file of a file group that theirs merges
    BUCKET = "bucket"  # each opened a file group for it
    PARTITION = "partition"  # mine, or theirs, replaces all of it
    BUCKET_NUMBER = "number of buckets"  # theirs changed it in a partition in which mine placed rows by it
    NEW_KEY = "new key"
    LOOKED_UP = "looked-up keys"  # theirs may have taken or brought keys that mine looked for
    READ = "read rows"  # theirs changed which rows satisfy a condition of mine
    COLUMNS = "columns"
    PROPERTIES = "properties"
    ROOM = "room"  # a small file of theirs would take new keys of mine in
    BASIS = "basis"  # theirs takes away what mine has merged, or adds to it
    REPLACED = "replaced"  # theirs replaced file groups of mine, or brings replaced file groups back
    UNTOLD = "untold"  # the plan of theirs does not name the file groups that it holds
    PLAN = "the plan"  # both carry out the same plan
    ITSELF = "mine itself"  # theirs undoes mine, or counts it as archived
    VICTIM = "victim"  # theirs undoes a write that is on the timeline
    TARGET = "target"  # theirs concerns the write that mine undoes, keeps or goes back to
    LATER = "later"  # theirs was requested after that write
    EARLIER = "earlier"  # theirs was requested before the first write that mine retains
    FILES = "files"  # one keeps or needs files that the other takes


class Verdict(IntEnum):
    """What mine does; of several verdicts, the greatest counts."""

    GO_ON = 0
    GIVE_WAY = 1  # mine leaves what both touch to theirs, and plans anew if it has planned already
    FINISH = 2  # mine finishes theirs, then continues
    UNDO = 3  # mine undoes theirs, then continues
    WAIT = 4  # mine does nothing until theirs is over
    REFUSE = 5


@dataclass(frozen=True, slots=True)
class Meeting:
    """An instant in the making, "mine", meets another instant of its table, "theirs"."""

    mine: InstantKind
    theirs: InstantKind
    their_state: Known = Known.PENDING
    shared: frozenset[Shared] = frozenset()
    asked: Asked = Asked.BEFORE_PLAN


# The kinds of mine and theirs, the state of theirs, when theirs was requested, and one of the things that both share.
Cell = tuple[InstantKind, InstantKind, Known, Asked, Shared | None]
# Several of each, and the verdict by what both share.
_Row = tuple[
    tuple[InstantKind, ...], tuple[InstantKind, ...], tuple[Known, ...], tuple[Asked, ...], dict[Shared | None, Verdict]
]


@dataclass(frozen=True, slots=True)
class ConcurrencyRules:
    """The verdict of each meeting by what both instants share; None means that they share nothing."""

    verdicts: Mapping[Cell, Verdict]

    @classmethod
    def of(cls, rows: Iterable[_Row]) -> ConcurrencyRules:
        """Return the rules that rows spell out: a row is for each combination of its members, and later rows win."""
        return cls(
            {
                (kind, other, known, asked, shared): verdict
                for mine, theirs, states, times, verdicts in rows
                for kind in mine
                for other in theirs
                for known in states
                for asked in times
                for shared, verdict in verdicts.items()
            }
        )

    def changed(self, rows: Iterable[_Row]) -> ConcurrencyRules:
        """Return these rules with other verdicts for some meetings."""
        return ConcurrencyRules({**self.verdicts, **ConcurrencyRules.of(rows).verdicts})

    def verdict(self, cell: Cell) -> Verdict:
        """Return the verdict of one meeting; mine must refuse a meeting that no rule foresees."""
        return self.verdicts.get(cell, Verdict.REFUSE)


def judge(meeting: Meeting, rules: ConcurrencyRules | None = None) -> Verdict:
    """Return what mine does in a meeting, by `OPTIMISTIC` unless other rules are given.

    Both sets of rules differ only for two writes at work.
    """
    rules = rules or OPTIMISTIC
    cell = (meeting.mine, meeting.theirs, meeting.their_state, meeting.asked)
    return max(rules.verdict((*cell, shared)) for shared in (meeting.shared or {NOTHING}))


def forbids(meeting: Meeting, rules: ConcurrencyRules | None = None) -> bool:
    """Return whether mine has to do anything else than continue."""
    return judge(meeting, rules) is not Verdict.GO_ON


def rules_of(patience: Patience) -> ConcurrencyRules:
    """Return the rules of a writer: whether other writers may be at work beside it."""
    return SINGLE_WRITER if patience.single_writer else OPTIMISTIC


def all_shared(conditions: Mapping[Shared, object]) -> frozenset[Shared]:
    """Return what two instants share: the members whose condition holds."""
    return frozenset(shared for shared, holds in conditions.items() if holds)


def kind_of(action: str) -> InstantKind | None:
    """Return the kind of an action's instants; None for an action without rules."""
    return _KINDS.get(action)


def known_of(instant: Instant) -> Known:
    """Return whether an instant is completed or pending, without a look at its process."""
    return Known.COMPLETED if instant.state == State.COMPLETED else Known.PENDING


def asked_of(requested_time: str, instant: Instant) -> Asked:
    """Return whether an instant was requested before or after the time at which mine was requested."""
    return Asked.SINCE_PLAN if instant.requested_time > requested_time else Asked.BEFORE_PLAN


NOTHING = None
WRITE, COMPACTION, LOG_COMPACTION = InstantKind.WRITE, InstantKind.COMPACTION, InstantKind.LOG_COMPACTION
CLUSTERING, CLEAN, ROLLBACK = InstantKind.CLUSTERING, InstantKind.CLEAN, InstantKind.ROLLBACK
RESCALE = InstantKind.RESCALE
RESTORE, SAVEPOINT, ARCHIVING = InstantKind.RESTORE, InstantKind.SAVEPOINT, InstantKind.ARCHIVING
_KINDS = {
    **dict.fromkeys(("commit", "deltacommit", "replacecommit"), WRITE),
    **{kind.value.replace(" ", ""): kind for kind in (COMPACTION, LOG_COMPACTION, CLUSTERING)},
    **{kind.value: kind for kind in (CLEAN, ROLLBACK, RESTORE, SAVEPOINT)},
}
_COMPACTIONS = (COMPACTION, LOG_COMPACTION)
_PLANNED = (*_COMPACTIONS, CLUSTERING)
_REWRITING = (*_COMPACTIONS, RESCALE)
_UNDOING = (ROLLBACK, RESTORE)

_PENDING, _COMPLETED = (Known.PENDING,), (Known.COMPLETED,)
_EITHER = (*_PENDING, *_COMPLETED)
_LIVING = (Known.LIVING, Known.FOREIGN)
_DEAD = (Known.DEAD,)
_BEFORE, _SINCE = (Asked.BEFORE_PLAN,), (Asked.SINCE_PLAN,)
_WHENEVER = (*_BEFORE, *_SINCE)

_GO_ON, _GIVE_WAY, _FINISH = Verdict.GO_ON, Verdict.GIVE_WAY, Verdict.FINISH
_UNDO, _WAIT, _REFUSE = Verdict.UNDO, Verdict.WAIT, Verdict.REFUSE


def _all(verdict: Verdict, *shared: Shared) -> dict[Shared | None, Verdict]:
    """Return the same verdict for several things that two instants may share."""
    return dict.fromkeys(shared, verdict)


# A write keeps all others out while its writer lives, or may live. Writes that were planned beside each other exclude
# each other only if they changed the same things.
SINGLE_WRITER = ConcurrencyRules.of(
    (
        # --- a write
        ((WRITE,), (WRITE,), _LIVING, _BEFORE, {NOTHING: _REFUSE}),
        ((WRITE,), (WRITE,), _DEAD, _BEFORE, {NOTHING: _UNDO}),
        ((WRITE,), (WRITE,), _PENDING, _SINCE, {NOTHING: _GO_ON}),
        (
            (WRITE,),
            (WRITE,),
            _COMPLETED,
            _SINCE,
            {
                NOTHING: _GO_ON,
                **_all(_REFUSE, Shared.FILE_GROUP, Shared.BUCKET, Shared.PARTITION, Shared.NEW_KEY),
                **_all(_REFUSE, Shared.BUCKET_NUMBER, Shared.READ, Shared.COLUMNS, Shared.PROPERTIES),
            },
        ),
        # Readers put log files that complete later on top of a compaction's base file. A base file replaces only base
        # files of earlier instants. Readers would put the log file of a log compaction on top of a base file that holds
        # its rows, and behind log files of earlier instants.
        ((WRITE,), _COMPACTIONS, _EITHER, _WHENEVER, {NOTHING: _GO_ON}),
        ((WRITE,), _COMPACTIONS, _PENDING, _BEFORE, {Shared.ROOM: _GIVE_WAY}),
        ((WRITE,), _COMPACTIONS, _PENDING, _WHENEVER, {Shared.FILE_GROUP: _GO_ON}),
        ((WRITE,), (COMPACTION,), _COMPLETED, _WHENEVER, {Shared.FILE_GROUP: _GO_ON}),
        ((WRITE,), (LOG_COMPACTION,), _COMPLETED, _BEFORE, {Shared.FILE_GROUP: _GO_ON}),
        ((WRITE,), (LOG_COMPACTION,), _COMPLETED, _SINCE, {Shared.FILE_GROUP: _REFUSE}),
        ((WRITE,), (COMPACTION,), _EITHER, _BEFORE, {Shared.BASE_FILE: _GO_ON}),
        ((WRITE,), (COMPACTION,), _EITHER, _SINCE, {Shared.BASE_FILE: _REFUSE}),
        ((WRITE,), (LOG_COMPACTION,), _EITHER, _WHENEVER, {Shared.BASE_FILE: _REFUSE}),
        # A clustering replaces its file groups by the rows that they held when it was planned.
        ((WRITE,), (CLUSTERING,), _PENDING, _BEFORE, {Shared.ROOM: _GIVE_WAY}),
        (
            (WRITE,),
            (CLUSTERING,),
            _PENDING,
            _WHENEVER,
            {NOTHING: _GO_ON, **_all(_REFUSE, Shared.FILE_GROUP, Shared.PARTITION, Shared.UNTOLD)},
        ),
        # A rescale waits for older writes. Then it becomes inflight, and reads the slices that it replaces.
        ((WRITE,), (RESCALE,), _LIVING[:1], _BEFORE, {Shared.PARTITION: _REFUSE}),
        ((WRITE,), (RESCALE,), _DEAD, _BEFORE, {Shared.PARTITION: _UNDO}),
        ((WRITE,), (RESCALE,), _PENDING, _SINCE, {NOTHING: _GO_ON, Shared.PARTITION: _REFUSE}),
        ((WRITE,), (CLEAN,), _PENDING, _BEFORE, {NOTHING: _GO_ON}),
        ((WRITE,), (CLEAN,), _EITHER, _SINCE, {NOTHING: _GO_ON, Shared.LOOKED_UP: _REFUSE}),
        # A rollback whose victim is off the timeline is over but for its last file.
        ((WRITE,), (ROLLBACK,), _PENDING, _BEFORE, {NOTHING: _GO_ON, Shared.VICTIM: _FINISH}),
        # Mine leaves out the rows of the victim.
        ((WRITE,), (ROLLBACK,), _LIVING, _BEFORE, {Shared.VICTIM: _GO_ON}),
        ((*_COMPACTIONS, RESCALE, *_UNDOING), (ROLLBACK,), _LIVING, _BEFORE, {Shared.VICTIM: _REFUSE}),
        ((WRITE,), (ROLLBACK,), _DEAD, _BEFORE, {NOTHING: _FINISH}),
        (
            (WRITE,),
            (ROLLBACK,),
            _EITHER,
            _SINCE,
            {
                NOTHING: _GO_ON,
                **_all(_REFUSE, Shared.ITSELF, Shared.BASIS, Shared.FILE_GROUP, Shared.BUCKET, Shared.PARTITION),
                **_all(_REFUSE, Shared.LOOKED_UP, Shared.READ, Shared.REPLACED),
            },
        ),
        ((WRITE,), (RESTORE,), _PENDING, _WHENEVER, {NOTHING: _REFUSE}),
        ((WRITE,), (RESTORE,), _COMPLETED, _SINCE, {NOTHING: _REFUSE}),
        # A commit waits before it plans anew. Only a user's call finishes a dead restore.
        ((WRITE,), (RESTORE,), _LIVING, _SINCE, {NOTHING: _WAIT}),
        ((WRITE,), (RESTORE,), _DEAD, _SINCE, {NOTHING: _REFUSE}),
        ((WRITE,), (SAVEPOINT,), _PENDING, _WHENEVER, {NOTHING: _GO_ON}),
        ((WRITE,), (ARCHIVING,), _PENDING, _SINCE, {NOTHING: _GO_ON, Shared.ITSELF: _GIVE_WAY}),
        # --- a compaction, a log compaction
        (_COMPACTIONS, _PLANNED, _PENDING, _BEFORE, {Shared.FILE_GROUP: _GIVE_WAY}),
        ((COMPACTION,), (COMPACTION,), _LIVING, _BEFORE, {Shared.PLAN: _REFUSE}),
        ((COMPACTION,), (COMPACTION,), _DEAD, _BEFORE, {Shared.PLAN: _UNDO}),
        ((LOG_COMPACTION,), (LOG_COMPACTION,), _LIVING, _BEFORE, {Shared.PLAN: _REFUSE}),
        ((LOG_COMPACTION,), (LOG_COMPACTION,), _DEAD, _BEFORE, {Shared.PLAN: _UNDO}),
        ((COMPACTION,), (WRITE,), _PENDING, _BEFORE, {NOTHING: _GO_ON}),
        ((LOG_COMPACTION,), (WRITE,), _PENDING, _BEFORE, {NOTHING: _WAIT}),
        (_COMPACTIONS, (WRITE,), _PENDING, _SINCE, {NOTHING: _GO_ON}),
        (_COMPACTIONS, (WRITE,), _COMPLETED, _SINCE, {NOTHING: _GO_ON, Shared.REPLACED: _REFUSE}),
        ((LOG_COMPACTION,), (WRITE,), _COMPLETED, _SINCE, {Shared.BASIS: _REFUSE}),
        (_COMPACTIONS, (RESCALE,), _PENDING, _BEFORE, {Shared.PARTITION: _GIVE_WAY}),
        (_REWRITING, (ROLLBACK,), _PENDING, _BEFORE, {NOTHING: _GO_ON, Shared.VICTIM: _FINISH}),
        (_REWRITING, (ROLLBACK,), _EITHER, _SINCE, {NOTHING: _GO_ON, Shared.BASIS: _REFUSE}),
        (_COMPACTIONS, (ROLLBACK,), _PENDING, _SINCE, {Shared.ITSELF: _REFUSE}),
        (_REWRITING, (RESTORE,), _PENDING, _WHENEVER, {NOTHING: _REFUSE}),
        (_REWRITING, (RESTORE,), _COMPLETED, _SINCE, {NOTHING: _REFUSE}),
        # --- a rescale
        ((RESCALE,), (WRITE,), (Known.LIVING,), _BEFORE, {NOTHING: _WAIT}),
        ((RESCALE,), (WRITE,), (Known.FOREIGN,), _BEFORE, {NOTHING: _REFUSE}),
        ((RESCALE,), (WRITE, RESCALE), _DEAD, _BEFORE, {NOTHING: _UNDO}),
        ((RESCALE,), (WRITE,), _COMPLETED, _SINCE, {NOTHING: _GO_ON, Shared.PARTITION: _REFUSE}),
        ((RESCALE,), _COMPACTIONS, _PENDING, _BEFORE, {NOTHING: _GO_ON, Shared.PARTITION: _UNDO}),
        ((RESCALE,), _COMPACTIONS, _LIVING, _BEFORE, {Shared.PARTITION: _WAIT}),
        ((RESCALE,), _COMPACTIONS, _DEAD, _BEFORE, {Shared.PARTITION: _UNDO}),
        ((RESCALE,), (CLUSTERING,), _PENDING, _BEFORE, {NOTHING: _GO_ON}),
        ((RESCALE,), (CLUSTERING,), _PENDING, _BEFORE, _all(_REFUSE, Shared.PARTITION, Shared.UNTOLD)),
        # The bucket numbers of the later rescale count, so the earlier rescale must not complete after it.
        ((RESCALE,), (RESCALE,), (Known.LIVING,), _BEFORE, {NOTHING: _REFUSE}),
        # --- a clean
        ((CLEAN,), (WRITE, CLUSTERING), _PENDING, _BEFORE, {NOTHING: _GIVE_WAY}),
        ((CLEAN,), _COMPACTIONS, _PENDING, _BEFORE, {NOTHING: _GO_ON}),
        ((CLEAN,), _PLANNED, _PENDING, _BEFORE, {Shared.FILE_GROUP: _GIVE_WAY}),
        ((CLEAN,), (WRITE, *_PLANNED, SAVEPOINT), _PENDING, _SINCE, {NOTHING: _GO_ON}),
        ((CLEAN,), (WRITE,), _COMPLETED, _SINCE, {NOTHING: _GO_ON, Shared.EARLIER: _GIVE_WAY}),
        ((CLEAN,), (CLEAN,), _PENDING, _BEFORE, {NOTHING: _FINISH}),
        ((CLEAN,), _UNDOING, _PENDING, _BEFORE, {NOTHING: _REFUSE}),
        ((CLEAN,), (CLEAN, *_UNDOING), _EITHER, _SINCE, {NOTHING: _GIVE_WAY}),
        ((CLEAN,), (SAVEPOINT,), _COMPLETED, _WHENEVER, {Shared.FILES: _GIVE_WAY}),
        ((CLEAN,), (SAVEPOINT,), _COMPLETED, _SINCE, {NOTHING: _GIVE_WAY}),
        # --- a rollback by name, a restore
        ((ROLLBACK,), (WRITE, *_PLANNED), _PENDING, _BEFORE, {Shared.TARGET: _UNDO}),
        ((RESTORE,), (WRITE, *_PLANNED), _PENDING, _BEFORE, {Shared.TARGET: _REFUSE}),
        (_UNDOING, (WRITE,), _PENDING, _BEFORE, {NOTHING: _GO_ON}),
        (_UNDOING, (WRITE,), _LIVING, _WHENEVER, {Shared.LATER: _REFUSE}),
        (_UNDOING, (WRITE,), _DEAD, _BEFORE, {Shared.LATER: _UNDO}),
        ((ROLLBACK,), (WRITE,), _DEAD, _SINCE, {Shared.LATER: _REFUSE}),
        ((RESTORE,), (WRITE,), _DEAD, _SINCE, {Shared.LATER: _GIVE_WAY}),
        ((ROLLBACK,), (WRITE,), _COMPLETED, _BEFORE, {Shared.LATER: _REFUSE}),
        ((RESTORE,), (WRITE,), _COMPLETED, _BEFORE, {Shared.LATER: _UNDO}),
        ((ROLLBACK,), _PLANNED, _PENDING, _BEFORE, {Shared.LATER: _REFUSE}),
        ((RESTORE,), _PLANNED, _PENDING, _BEFORE, {Shared.LATER: _UNDO}),
        (_UNDOING, (ROLLBACK,), _PENDING, _BEFORE, {NOTHING: _GO_ON, Shared.VICTIM: _FINISH}),
        ((RESTORE,), (ROLLBACK,), _PENDING, _BEFORE, {Shared.TARGET: _REFUSE}),
        ((RESTORE,), (ROLLBACK,), _PENDING, _SINCE, {NOTHING: _GO_ON, Shared.VICTIM: _GIVE_WAY}),
        (_UNDOING, (RESTORE,), _PENDING, _BEFORE, {NOTHING: _REFUSE}),
        ((RESTORE,), (RESTORE,), _PENDING, _BEFORE, {Shared.TARGET: _FINISH}),
        (_UNDOING, (SAVEPOINT,), _EITHER, _BEFORE, {NOTHING: _GO_ON, Shared.TARGET: _REFUSE}),
        ((RESTORE,), (ARCHIVING,), _PENDING, _SINCE, {Shared.TARGET: _REFUSE}),
        # --- a savepoint
        ((SAVEPOINT,), (WRITE, *_PLANNED), _PENDING, _BEFORE, {Shared.TARGET: _REFUSE}),
        ((SAVEPOINT,), (ROLLBACK,), _PENDING, _BEFORE, {NOTHING: _GO_ON, Shared.TARGET: _REFUSE}),
        ((SAVEPOINT,), (RESTORE,), _PENDING, _BEFORE, {NOTHING: _REFUSE}),
        ((SAVEPOINT, *_UNDOING), (CLEAN,), _PENDING, _BEFORE, {NOTHING: _GO_ON, Shared.FILES: _REFUSE}),
        ((SAVEPOINT, *_UNDOING), (ARCHIVING,), _PENDING, _BEFORE, {NOTHING: _GO_ON, Shared.TARGET: _REFUSE}),
        # --- archiving
        ((ARCHIVING,), (WRITE, *_PLANNED, CLEAN), _PENDING, _BEFORE, {NOTHING: _GIVE_WAY}),
        ((ARCHIVING,), _UNDOING, _PENDING, _BEFORE, {NOTHING: _WAIT}),
        ((ARCHIVING,), (SAVEPOINT,), _EITHER, _BEFORE, {NOTHING: _GIVE_WAY}),
    )
)

# Writers of pyhudi decide one after another, and each compares its changes with what was decided since its plan. So a
# writer keeps no other out, and undoes dead writes once it is complete. Another engine knows no decisions.
OPTIMISTIC = SINGLE_WRITER.changed([((WRITE,), (WRITE,), (Known.LIVING,), _BEFORE, {NOTHING: _GO_ON})])
