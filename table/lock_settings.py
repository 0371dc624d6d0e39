"""Which lock keeps writers of other software out of a table, as the table's properties say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .config.property_keys import LOCK, LOCK_PROVIDER


@dataclass(frozen=True, slots=True)
class LockSettings:
    """The provider of a table's lock by its name, and the options that configure it; they travel with tasks."""

    provider: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # they may hold secrets


def lock_settings(properties: Mapping[str, str]) -> LockSettings | None:
    """Return the settings of a table's lock; None if the race for the next decision is enough."""
    provider = properties.get(LOCK_PROVIDER)
    if not provider:
        return None
    options = sorted((key, text) for key, text in properties.items() if key.startswith(LOCK))
    return LockSettings(provider, tuple(options))
