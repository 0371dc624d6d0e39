"""Options that hold secrets: shown as stars, and carried through Spark under names that Spark redacts.

Spark shows the options of a read in plans and event logs, with stars for the values of keys that match
``spark.redaction.regex``. Its default covers "secret", "password", "token" and "access.key", but not the names that
many stores use. So every option of a store has a second name with "secret" in it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

from ..errors import OptionConflictError
from ..storage.secrets import HARMLESS, STARS

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
_warned_keys: set[str] = set()


def storage_name(key: str) -> str:
    """Return the store's own name of an option, without pyhudi's prefix or the prefix that hides it from Spark.

    ``key`` is in lower case and begins with one of the two prefixes.
    """
    return key.removeprefix(_HIDDEN) if key.startswith(_HIDDEN) else key.removeprefix(STORAGE_PREFIX)


def storage_options(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the store, by the store's own names; ``texts`` has lower-case keys.

    Each option has a second name with "secret" in it, because Spark stars out the values of such names in plans and
    event logs. Raises OptionConflictError if an option has one value under each name and the two differ.
    """
    options: dict[str, str] = {}
    for key, text in texts.items():
        if key.startswith(STORAGE_PREFIX):
            name = storage_name(key)
            if options.setdefault(name, text) != text:
                raise OptionConflictError(
                    f"{STORAGE_PREFIX}{name} and {_HIDDEN}{name} are two names of one option and were given two "
                    "values.",
                    "Give only one of the two names.",
                )
    return options


def hidden_from_spark(texts: Mapping[str, str]) -> dict[str, str]:
    """Return options with the store's under keys with "secret" in them, whose values Spark does not show."""
    return {
        f"{_HIDDEN}{storage_name(key)}" if key.startswith(STORAGE_PREFIX) else key: text for key, text in texts.items()
    }


def tell_what_spark_shows(keys: Iterable[str]) -> None:
    """Log, once a process, which keys hold secrets that Spark may show."""
    for key in map(str.lower, keys):
        # Spark stars out the values of some keys by itself.
        if key.startswith(STORAGE_PREFIX) and _SECRET.search(key) and not _REDACTED_BY_SPARK.search(key):
            if key not in _warned_keys:
                logger.warning(
                    "Spark may show the value of %s in plans and event logs: give it by the environment, or as %s%s.",
                    key,
                    _HIDDEN,
                    storage_name(key),
                )
            _warned_keys.add(key)


def holds_secret(key: str, text: str) -> bool:
    """Return whether an option may hold a secret; of a store's options, all but those that name places and switches."""
    key = key.lower()
    if _SECRET_VALUE.search(text):
        return True
    if key.startswith(STORAGE_PREFIX):
        return storage_name(key) not in HARMLESS
    return bool(text) and _SECRET.search(key) is not None


def masked(key: str, text: str) -> str:
    """Return an option's value with a secret starred out."""
    secret = key.startswith(STORAGE_PREFIX) or _SECRET.search(key) or _SECRET_VALUE.search(text)
    return STARS if secret and text else text
