"""The options of a command line, and the table that they lead to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import InvalidOptionError
from ...operations.progress import Observer
from ...operations.write.services import Call

if TYPE_CHECKING:
    from ...options.model import HudiOptions
    from ...storage.base import Storage


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return options that were given as ``key=value``; raises `InvalidOptionError` for another text."""
    found = [text.partition("=") for text in texts]
    wrong = [key for key, separator, _ in found if not separator or not key]
    if wrong:
        # Keep the rest out of the message: it may be a secret after another separator.
        name = re.split(r"[^\w.-]", wrong[0], maxsplit=1)[0]
        raise InvalidOptionError(f"{name!r} is no option with a value.", "Write it as key=value.")
    return {key: value for key, _, value in found}


def refuse_secrets(options: Mapping[str, str]) -> None:
    """Raise `InvalidOptionError` for an option that may hold a secret: other users of a machine see command lines."""
    from ...options.secrets import holds_secret  # noqa: PLC0415 (help and errors of the parser need no options)

    found = next((key for key, text in options.items() if holds_secret(key, text)), None)
    if found is not None:
        raise InvalidOptionError(
            f"The option {found} may hold a secret, and a command line is shown to every user of the machine.",
            "Give it by the store's environment variables, or in the file hudi-defaults.conf.",
        )


def call_of(path: str, given: Mapping[str, str], observer: Observer | None = None) -> Call:
    """Return the call of a service for a table; ``observer`` receives its progress, None for the log."""
    from ...operations.write.inline import means_of  # noqa: PLC0415

    options, storage = opened(path, given)
    settings = options.write_settings()
    return Call(
        storage,
        settings.patience,
        options.upkeep,
        lambda: replace(means_of(settings, application=options.application), observer=observer),
        options.metadata_enable,
    )


def opened(path: str, given: Mapping[str, str]) -> tuple[HudiOptions, Storage]:
    """Return the options of a table with those of hudi-defaults.conf, and its store."""
    from ...options.sources import WRITING, resolve_options  # noqa: PLC0415
    from ...storage import open_storage  # noqa: PLC0415
    from ..source.paths import absolute  # noqa: PLC0415

    path = absolute(path)
    options = resolve_options(given, path, WRITING).options
    return options, open_storage(path, options.storage_options, durable=options.durable)
