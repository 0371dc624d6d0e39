"""What the newest completed writes recorded: rows of files, seconds by phase, attempts and waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...errors import PyHudiError
from ...storage.base import split
from ...storage.parallel import for_each
from ...timeline.instants import Instant
from ...timeline.metadata.models import CommitMetadata
from ..inspect.walked_table import WalkedTable
from ..result import SECONDS, CommitResult, result_from
from .figures import AttemptCount, PhaseSeconds, WaitOfWrite

MOST_BODIES = 300
MOST_PHASES = 30
MOST_WAITS = 50
_MOST_MET = 5
_WAIT = "wait"
_MOST_SECONDS = 1e9


@dataclass(frozen=True)
class OpenedWrites:
    """The newest completed writes, newest first.

    Attributes:
        rows: The rows of base files that these writes state, by file name.
        timed: How many of them recorded seconds by phase.
    """

    results: tuple[CommitResult, ...]
    rows: Mapping[str, int]
    timed: int

    @classmethod
    def newest(cls, walked: WalkedTable, tell: Callable[[str], None]) -> OpenedWrites:
        """Open the newest writes of a timeline; ``tell`` is called with a sentence for each that cannot be read."""
        timeline = walked.timeline

        def read(write: Instant) -> CommitMetadata | PyHudiError:
            try:
                return timeline.files.read_commit(write)
            except PyHudiError as error:
                return error

        writes = timeline.writes[: -MOST_BODIES - 1 : -1]
        results: list[CommitResult] = []
        rows: dict[str, int] = {}
        timed = 0
        for write, body in zip(writes, for_each(timeline.storage, read, writes), strict=True):
            if isinstance(body, PyHudiError):
                tell(f"The report lacks what the {write.action} {write.requested_time} recorded: {body}")
                continue
            results.append(result_from(walked.table.path, write.requested_time, body))
            timed += SECONDS in body.extra_metadata
            for stats in body.partition_to_write_stats.values():
                rows |= {split(stat.path)[1]: stat.num_writes for stat in stats if stat.path}
        return cls(tuple(results), rows, timed)

    def phases(self) -> tuple[PhaseSeconds, ...]:
        """Return the phases that commits recorded, those with most seconds first."""
        commits: Counter[str] = Counter()
        total: Counter[str] = Counter()
        most: dict[str, float] = {}
        for result in self.results:
            for phase, seconds in result.seconds.items():
                # Other software may have written any number here, even infinity.
                if not 0 <= seconds < _MOST_SECONDS:
                    continue
                commits[phase] += 1
                total[phase] += seconds  # type: ignore[assignment]
                most[phase] = max(most.get(phase, 0.0), seconds)
        phases = sorted(commits, key=lambda phase: (-total[phase], phase))[:MOST_PHASES]
        return tuple(PhaseSeconds(phase, commits[phase], round(total[phase], 3), most[phase]) for phase in phases)

    def attempts(self) -> tuple[AttemptCount, ...]:
        """Return the number of commits for each number of attempts."""
        counts = Counter(result.attempts for result in self.results)
        return tuple(AttemptCount(attempts, counts[attempts]) for attempts in sorted(counts)[:MOST_PHASES])

    def waits(self) -> tuple[WaitOfWrite, ...]:
        """Return the newest commits that took several attempts, or waited."""
        results = [result for result in self.results if result.attempts > 1 or result.met or _WAIT in result.seconds]
        return tuple(
            WaitOfWrite(each.instant, each.attempts, float(each.seconds.get(_WAIT, 0.0)), each.met[:_MOST_MET])
            for each in results[:MOST_WAITS]
        )
