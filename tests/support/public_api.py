"""What other packages and users may rely on, a line for each name with its signature."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

MODULES = (
    "pyhudi",
    "pyhudi.arrow",
    "pyhudi.errors",
    "pyhudi.index.base",
    "pyhudi.index.outside",
    "pyhudi.testing.indexes",
    "pyhudi.testing.outside_indexes",
    "pyhudi.testing.tables",
    "pyhudi.connector.jobs",
)


def public_names() -> list[str]:
    """Return all that is public: names of modules, members of classes, entry points and option keys."""
    lines = [line for name in MODULES for line in _of_module(import_module(name))]
    lines.append(f"entry points {import_module('pyhudi.index.registry').ENTRY_POINTS}")
    for name, option in import_module("pyhudi.options.names").OPTIONS.items():
        lines += [f"option {name}", *(f"option {key}" for key in (option.key, *option.aliases))]
    return sorted(set(lines))


def _of_module(module: ModuleType) -> Iterator[str]:
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", [one for one in own if not one.startswith("_")]):
        value = getattr(module, name)
        yield f"{module.__name__}.{name}{_signature(value)}"
        if inspect.isclass(value):
            yield from (f"{module.__name__}.{name}.{one}" for one in _members(value))


def _members(kind: type) -> Iterator[str]:
    if issubclass(kind, enum.Enum):
        yield from (f"{one.name} = {one.value!r}" for one in kind)
        return
    fields = {one.name for one in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    yield from sorted(fields)
    for name in dir(kind):
        if name.startswith("_") or name in fields or not _is_ours(kind, name):
            continue
        yield f"{name}{_signature(getattr(kind, name)) if callable(getattr(kind, name)) else ''}"


def _is_ours(kind: type, name: str) -> bool:
    owner = next(one for one in kind.__mro__ if name in vars(one))
    return owner.__module__.startswith("pyhudi")


def _signature(value: object) -> str:
    try:
        return str(inspect.signature(value)) if callable(value) else ""  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
