"""The description of a table service: its arguments, its settings, and when a write runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from ...storage.base import Storage
    from ...timeline.timeline import Timeline
    from ...timeline.writers.patience import Patience
    from ..result import ServiceResult
    from ..service_settings import Upkeep
    from ..services.means import Means
    from ..version_change import VersionResult

REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Call:
    """The table and the settings of a service's call, besides the service's own arguments."""

    storage: Storage
    patience: Patience
    upkeep: Callable[[], Upkeep]
    means: Callable[[], Means]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a service.

    Attributes:
        kind: ``str`` or ``int``; ``bool`` for a flag that is off by default; ``list`` for one or more texts.
        default: `REQUIRED` if the caller must give a value.
        metavar: The placeholder of the value in a command's help; None for the name.
    """

    name: str
    help: str
    kind: type = str
    default: Any = REQUIRED
    metavar: str | None = None


@dataclass(frozen=True, slots=True)
class AfterWrite:
    """How a completed write runs a service.

    Attributes:
        automatic: Returns whether the settings switch it on.
        pays: Returns whether the service may have work to do, by the timeline.
        run: Runs it, by a listing since the write; returns None if it had no work.
    """

    name: str
    automatic: Callable[[Upkeep], bool]
    pays: Callable[[Timeline, Upkeep], bool]
    run: Callable[[Call, Timeline], ServiceResult | None]


Run: TypeAlias = "Callable[..., ServiceResult | VersionResult | pa.Table]"


@dataclass(frozen=True, slots=True)
class Service:
    """A table service.

    Attributes:
        name: Its name as a method, a job and a command.
        settings: The names of its settings: fields of `Upkeep`, ``patience`` or ``means``.
        changes: Whether it may change the rows of the table.
        after_write: How a write runs it; None if no write does.
        due: Runs it in a round of all services, if it is due; None if no round runs it.
    """

    name: str
    help: str
    run: Run
    arguments: tuple[Argument, ...] = ()
    settings: tuple[str, ...] = ()
    changes: bool = False
    after_write: AfterWrite | None = None
    due: Callable[[Call], ServiceResult] | None = None
