"""What ``hoodie.metadata.enable`` and the options beside it mean, by who gave them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..errors import OptionError, UnsupportedOptionError
from .catalogue import Scope
from .names import OPTIONS, name_of
from .parsing import parse_options

logger = logging.getLogger("pyhudi")

_ENABLE = OPTIONS["metadata_enable"].key
WHY_UNUSED = "a write keeps the metadata table that a table has, and drop_index drops it"
# Apache Hudi's options that build an index, and the name of the index.
_OTHER_INDEXES = {
    "hoodie.metadata.record.index.enable": "record index",
    "hoodie.metadata.global.record.level.index.enable": "record index",
    "hoodie.metadata.record.level.index.enable": "record index",
    "hoodie.metadata.index.bloom.filter.enable": "index of bloom filters",
    "hoodie.metadata.index.secondary.enable": "secondary index",
    "hoodie.metadata.index.expression.enable": "index of an expression",
}
_warned: set[str] = set()


def forbids_metadata(key: str, text: str, scopes: frozenset[Scope]) -> bool:
    """Return whether a setting of a session or a file would have writes do without a metadata table.

    Such a setting addresses every table and engine of the session, so it counts for reads alone.
    """
    if Scope.READ in scopes or Scope.WRITE not in scopes:
        return False
    return name_of(key) == "metadata_enable" and _is_false(key, text)


def _is_false(key: str, text: str) -> bool:
    try:
        return parse_options({key: text}).metadata_enable is False
    except OptionError:
        # The options of the operation are parsed with it, for an error that names its place.
        return False


def warn_once(key: str, place: str) -> None:
    """Log that such a setting does not count, once for each place."""
    if place not in _warned:
        _warned.add(place)
        logger.warning("The option %s=false of %s is not used: %s.", key, place, WHY_UNUSED)


def refuse_other_indexes(texts: Mapping[str, str]) -> None:
    """Raise `UnsupportedOptionError` if options ask for a metadata table with an index that pyhudi does not build."""
    for key, what in _OTHER_INDEXES.items():
        if texts.get(key, "").strip().lower() == "true":
            raise UnsupportedOptionError(
                f"The options {_ENABLE}=true and {key}=true ask for a {what}, which pyhudi neither builds nor keeps.",
                f"Leave {key} out, or give it false; pyhudi builds files, column_stats and partition_stats.",
            )
