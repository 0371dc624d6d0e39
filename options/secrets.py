"""Options that hold secrets: shown as stars, and carried through Spark under names that it redacts.

Spark shows the options of a read in plans and event logs, with stars for the values of keys that match
``spark.redaction.regex``. Its default knows "secret", "password", "token" and "access.key", and not what many stores
call theirs, so that every option of a store has a second name with "secret" in it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

from ..errors import OptionConflictError
from ..storage.secrets import STARS

logger = logging.getLogger("pyhudi")

STORAGE_PREFIX = "hoodie.pyhudi.storage."
_HIDDEN = f"{STORAGE_PREFIX}secret."
_SECRET = re.compile(
    r"secret|passw|pwd|token|credential|access.key|account.key|connection.string|\bsas|\bauth|\bkey$", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"(?:secret|passw(?:or)?d|pwd|token|accountkey)[\w.-]*[\"']?\s*[=:]|://[^/@\s]*:[^/@\s]*@", re.IGNORECASE
)
_REDACTED_BY_SPARK = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
_told: set[str] = set()


def storage_name(key: str) -> str:
    """Return the store's own name of an option, of which the lower-case key begins with the prefix."""
    return key.removeprefix(_HIDDEN) if key.startswith(_HIDDEN) else key.removeprefix(STORAGE_PREFIX)


def storage_options(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the store among options by lower-case key, by the store's own names.

    Raises:
        OptionConflictError: One option was given under both names and with two values.
    """
    found: dict[str, str] = {}
    for key, text in texts.items():
        if key.startswith(STORAGE_PREFIX):
            name = storage_name(key)
            if found.setdefault(name, text) != text:
                raise OptionConflictError(
                    f"{STORAGE_PREFIX}{name} and {_HIDDEN}{name} are two names of one option and were given two "
                    "values.",
                    "Give only one of them.",
                )
    return found


def hidden_from_spark(texts: Mapping[str, str]) -> dict[str, str]:
    """Return options by keys under which Spark shows no value of a store's."""
    return {
        f"{_HIDDEN}{storage_name(key)}" if key.startswith(STORAGE_PREFIX) else key: text for key, text in texts.items()
    }


def tell_what_spark_shows(keys: Iterable[str]) -> None:
    """Log, once a process, which keys hold secrets that Spark would show."""
    for key in map(str.lower, keys):
        if key.startswith(STORAGE_PREFIX) and _SECRET.search(key) and not _REDACTED_BY_SPARK.search(key):
            if key not in _told:
                logger.warning(
                    "Spark may show the value of %s in plans and event logs: give it by the environment, or as %s%s.",
                    key,
                    _HIDDEN,
                    storage_name(key),
                )
            _told.add(key)


def masked(key: str, text: str) -> str:
    """Return an option's value as it may be shown."""
    secret = key.startswith(STORAGE_PREFIX) or _SECRET.search(key) or _SECRET_VALUE.search(text)
    return STARS if secret and text else text
