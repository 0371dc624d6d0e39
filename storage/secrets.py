"""Secrets among a store's options, hidden in errors: a store's client may quote them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InvalidOptionError

STARS = "***"

# Shorter texts are no secrets, and parts of too many words.
_SHORTEST = 6
HARMLESS = frozenset(
    {"endpoint_url", "region", "profile", "anon", "use_ssl", "requester_pays", "cache_regions", "host", "port"}
)
_USER_INFO = re.compile(r"//([^/@\s]*:[^/@\s]*)@")


def secrets_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of all but the harmless options of a store, and each user and password in a URL.

    The longest come first, so that `hide` leaves no rest of a secret that contains another.
    """
    secrets: set[str] = set()
    for name, text in options.items():
        # Of user:password in a URL, the whole and the password.
        secrets |= {part for info in _USER_INFO.findall(text) for part in (info, info.partition(":")[2])}
        if name not in HARMLESS:
            secrets |= {text, text.strip(), *_leaves(text)}
    return tuple(sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True))


def hide(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text with stars in place of each secret."""
    for secret in secrets:
        # Clients quote values by ``repr``.
        for spelling in {secret, repr(secret)[1:-1]}:
            text = text.replace(spelling, STARS)
    return text


def tells(error: BaseException, secrets: tuple[str, ...]) -> bool:
    """Return whether an error or any of its causes quotes a secret."""
    return any(hide(text, secrets) != text for text in map(str, _causes(error)))


def refuse_password(path: str) -> None:
    """Raise InvalidOptionError for a URL with a password in it: plans and logs show paths."""
    if _USER_INFO.search(path):
        raise InvalidOptionError(
            f"The path {_USER_INFO.sub(f'//{STARS}@', path)} has a password in it, and paths are shown in plans, logs "
            "and errors.",
            "Leave it out of the path, and give it by the environment or by hoodie.pyhudi.storage.secret.password.",
        )


def _leaves(text: str) -> set[str]:
    """Return the texts inside a JSON object; empty for any other text."""
    if not text.lstrip().startswith("{"):
        return set()
    try:
        unvisited: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return set()
    texts: set[str] = set()
    while unvisited:
        value = unvisited.pop()
        if isinstance(value, str):
            texts.add(value)
        elif isinstance(value, dict | list):
            unvisited += value.values() if isinstance(value, dict) else value
    return texts


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, as a traceback shows them; each once, as errors may cause each other."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
