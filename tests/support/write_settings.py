"""The settings of a write by the names of their fields, in whichever of their groups these are."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from pyhudi.operations.planning.request import WriteSettings

_DEFAULTS = WriteSettings()
_GROUPS = ("keys", "replacement", "evolution", "tasks", "commit", "origin")


def write_settings(base: WriteSettings = _DEFAULTS, /, **changed: Any) -> WriteSettings:
    """Return settings with some fields changed, of themselves and of their groups."""
    for name in _GROUPS:
        group = getattr(base, name)
        inside = {field.name: changed.pop(field.name) for field in fields(group) if field.name in changed}
        if inside:
            changed[name] = replace(group, **inside)
    return replace(base, **changed)
