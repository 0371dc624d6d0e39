"""The bodies of instants, and their encodings.

``metadata.models`` is imported at its first use: pydantic, which it needs, is slow to import. Of the processes that
Spark starts for a write, tasks need no models, and those of a first write open no instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import models as models
else:

    def __getattr__(name: str) -> object:
        if name == "models":
            from importlib import import_module  # noqa: PLC0415

            return import_module(".models", __name__)
        raise AttributeError(name)
