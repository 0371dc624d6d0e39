"""The services of the metadata table, as the registry of services calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...timeline.timeline import Timeline
    from ..result import ServiceResult
    from ..service_settings import Upkeep
    from .service_entry import Call


def keep_metadata(call: Call, *, dry_run: bool = False) -> ServiceResult:
    """Merge, clean and archive the metadata table."""
    from ..services.metadata.upkeep import keep_up  # noqa: PLC0415

    return keep_up(call.storage, call.upkeep(), dry_run=dry_run)


def metadata_after_write(call: Call, timeline: Timeline) -> ServiceResult | None:
    """Do as `keep_metadata` after a write, and return the result; None if nothing is due."""
    from ..services.metadata.upkeep import upkeep_after_write  # noqa: PLC0415

    return upkeep_after_write(call.storage, timeline, call.upkeep(), call.patience)


def metadata_due(call: Call) -> ServiceResult:
    """Do as `keep_metadata` in a round of services, if it is due; else the result is empty."""
    from ..services.metadata.upkeep import upkeep_where_due  # noqa: PLC0415

    return upkeep_where_due(call.storage, call.upkeep(), call.patience)


def may_keep_metadata(timeline: Timeline, _: Upkeep) -> bool:
    """Return whether a look at the metadata table may find work to do."""
    from ..services.metadata.upkeep import is_worth_a_look  # noqa: PLC0415

    return is_worth_a_look(timeline.storage.path)


def build_index(call: Call, *, name: str, columns: Sequence[str] | None = None, dry_run: bool = False) -> ServiceResult:
    """Build a partition of the metadata table."""
    from ..services.metadata.create_index import create_index  # noqa: PLC0415

    return create_index(call.storage, name, call.means(), columns=columns, dry_run=dry_run)


def drop_index_of(call: Call, *, name: str, dry_run: bool = False) -> ServiceResult:
    """Take a partition of the metadata table out of use."""
    from ..services.metadata.drop_index import drop_index  # noqa: PLC0415

    return drop_index(call.storage, name, dry_run=dry_run)


def build_after_write(call: Call, _: Timeline) -> ServiceResult | None:
    """Build the partitions of the metadata table that the options of a write ask for, if the table lacks them."""
    from ..services.metadata.create_index import create_indexes  # noqa: PLC0415

    return create_indexes(call.storage, call.upkeep().indexes, call.means())
